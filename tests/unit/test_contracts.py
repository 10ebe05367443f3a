"""Everything that is registered keeps its contract: every checker and every suite format."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from judge.compare.cells.computing import Compute, NoEngines
from judge.compare.contract import Checker, GoldFaultError, Needs, Rules
from judge.compare.profiles import get_profile
from judge.compare.registry import (
    aspects_of,
    check_options,
    checker_names,
    checker_of,
    register,
    unregister,
)
from judge.core.finding import (
    DifferenceLocation,
    Finding,
    FoundDifference,
    LocationKind,
    finding_of,
    nearest,
)
from judge.core.submission import Answer, Origin
from judge.core.task import CheckerSpec, Gold, Task, TestCase
from judge.errors import UsageError
from judge.suites.formats import SuiteFormat, suite_formats


def members(contract: type) -> dict[str, object]:
    """The public members of a contract."""
    return {name: each for name, each in vars(contract).items() if not name.startswith("_")}


def parameters(member: object) -> list[str]:
    assert callable(member)
    return [name for name in inspect.signature(member).parameters if name != "self"]


@pytest.mark.parametrize("name", checker_names())
def test_a_checker_has_all_that_its_contract_names(name: str) -> None:
    check_members(Checker, checker_of(CheckerSpec(name)))


@pytest.mark.parametrize("suite_format", list(suite_formats()), ids=lambda each: each.names[0])
def test_a_format_has_all_that_its_contract_names(suite_format: SuiteFormat) -> None:
    check_members(SuiteFormat, suite_format)


class WordCount(Checker):
    """The smallest checker: a name, and how an answer is compared. It reads no cells."""

    name = "word_count"

    def check(
        self,
        task: Task,
        case: TestCase,
        golds: Sequence[Gold],
        answer: Answer,
        compute: Compute,
        rules: Rules,
    ) -> Finding:
        words = len((answer.text or "").split())
        place = DifferenceLocation(LocationKind.KEY, "words")
        return nearest(
            [
                (
                    str(gold.value),
                    finding_of(
                        [] if words == gold.value else [FoundDifference("count", place)], units=1
                    ),
                )
                for gold in golds
            ]
        )


def test_a_name_and_a_comparison_make_a_checker(tmp_path: Path) -> None:
    checker = WordCount()
    register(checker)
    try:
        spec = CheckerSpec(checker.name)
        check_options(spec)
        with pytest.raises(UsageError, match="the checker word_count has no options"):
            check_options(spec.with_options({"tolerance": 1}))
        path = tmp_path / "gold.txt"
        path.write_bytes(b"one two")
        golds = (Gold(value=2), Gold(path=path))
        task = Task("1", "Two words.", "text", (TestCase(1, (), golds),), checker=spec)
        case, rules = task.cases[0], Rules(get_profile("standard"))

        def agrees(text: str) -> bool:
            answer = Answer(Origin.SOLUTION, text=text)
            return checker.check(task, case, golds[:1], answer, NoEngines(), rules).agrees

        assert (agrees("two words"), agrees("three more words")) == (True, False)
        assert checker.describe(spec) == "word_count"
        assert checker.key(task) == {"checker": ["word_count", {}]}
        assert checker.needs(task, case, rules) == Needs(golds=True, inputs=False, engines=True)
        assert checker.own_answers(task, golds[1])[""].data == b"one two"
        assert aspects_of(spec) == ()
        assert checker.requirements(task, None) is None
        assert checker.measure(task, golds, Answer(Origin.SOLUTION, text="")) is None
        assert not checker.counts_cells
        path.unlink()
        with pytest.raises(GoldFaultError):
            checker.examine(task, replace(case, golds=golds[1:]), None)
    finally:
        unregister(checker.name)


def test_what_is_not_a_checker_is_not_registered() -> None:
    class Lookalike:
        name = "lookalike"

    with pytest.raises(UsageError, match="is not a checker"):
        register(Lookalike())  # type: ignore[arg-type]


def check_members(contract: type, made: object) -> None:
    for name, member in members(contract).items():
        assert hasattr(made, name), name
        if inspect.isfunction(member):
            assert parameters(getattr(made, name)) == parameters(member), name
