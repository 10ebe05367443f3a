"""The published verdicts: every recorded call, with both evaluators."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from judge.cli.compare import compare
from judge.compare.cells.computing import NoEngines
from judge.compare.contract import GoldFaultError, Rules
from judge.compare.profiles import get_profile
from judge.compare.published_error import Side
from judge.compare.registry import check_options, checker_of
from judge.compare.rules.book import Book, prints_beside
from judge.compare.rules.checker import published_verdict
from judge.compare.rules.options import RuleOptions
from judge.core.finding import Finding
from judge.core.submission import Answer, Origin
from judge.core.task import CheckerSpec, Gold, Task, TestCase
from judge.errors import UsageError, WorkbookError
from judge.workbook.reader import open_workbook

HERE = Path(__file__).parents[3] / "workbook_rules"
CORPUS = HERE / "corpus"
OFFICIAL = Rules(get_profile("official"))


def book(path: Path, side: Side) -> Book:
    return Book(open_workbook(path), side, prints_beside(path))


def recorded(path: Path) -> Iterator[dict[str, Any]]:
    for line in path.read_text().splitlines():
        record = json.loads(line)
        if record.get("kind") != "header":
            yield record


def verdict(result: Path | None, gold: Path | None, rules: Any, evaluator: str) -> object:
    """Returns the recorded result of the published function."""
    options = RuleOptions.of({"rules": rules, "evaluator": evaluator})
    try:
        answer = book(result, Side.ANSWER) if result is not None else None
    except WorkbookError:
        answer = None
    if answer is None:
        return 0.0
    try:
        golden = book(gold, Side.GOLD) if gold is not None else None
    except WorkbookError:
        return {"raised": "BadZipFile: File is not a zip file"}
    found = published_verdict(answer, golden, options)
    return {"raised": str(found.error)} if found.error is not None else float(found.equal or 0)


@pytest.mark.parametrize("evaluator", ["spider2v", "osworld"])
def test_every_given_call(evaluator: str) -> None:
    wrong = {}
    count = 0
    for record in recorded(HERE / "rules_oracle.jsonl"):
        result, gold = (
            CORPUS / record[name] if record[name] else None for name in ("result", "expected")
        )
        count += 1
        found = verdict(result, gold, record["rules"], evaluator)
        if found != record[evaluator]:
            wrong[record["n"]] = found
    assert count == 177
    assert not wrong


@pytest.mark.slow
@pytest.mark.data
def test_the_recorded_verdicts_of_spider2v(judge_data: Path) -> None:
    root = judge_data / "spider2v_calc"
    records = list(recorded(root / "published_verdicts.jsonl"))
    wrong = [
        (each["id"], each["kind"], each["evaluator"])
        for each in records
        if verdict(
            root / each["result_path"],
            root / each["expected_path"],
            each["rules"],
            each["evaluator"],
        )
        != each["value"]
    ]
    assert len(records) == 324
    assert not wrong


# -- the checker ----------------------------------------------------------------------------------


def task(rules: list[dict[str, Any]], gold: str | None, evaluator: str = "spider2v") -> Task:
    golds = () if gold is None else (Gold(CORPUS / gold),)
    spec = CheckerSpec("rules", {"rules": rules, "evaluator": evaluator})
    return Task("1", "?", "?", (TestCase(1, (), golds),), spec)


def find(
    rules: list[dict[str, Any]], result: str, gold: str | None, evaluator: str = "spider2v"
) -> Finding:
    made = task(rules, gold, evaluator)
    case = made.cases[0]
    answer = Answer.of_workbook((CORPUS / result).read_bytes(), Origin.FINISHED)
    return checker_of(made.checker).check(made, case, case.golds, answer, NoEngines(), OFFICIAL)


DATA = {"type": "sheet_data", "sheet_idx0": 0, "sheet_idx1": "EI0"}


def test_the_first_failing_rule_is_the_difference() -> None:
    found = find([{"type": "sheet_name"}, DATA], "val5.xlsx", "base.xlsx")
    assert not found.agrees
    (difference,) = found.record["differences"]
    assert difference["kind"] == "sheet_data"
    assert found.cause.startswith("rule 2 does not hold: All values of the first sheet")
    assert (difference["rule"], difference["place"]["name"][:12]) == (2, "2 (sheet_dat")
    assert found.record["cells"] == 2
    assert find([DATA], "base.xlsx", "base.xlsx").agrees


def test_a_raise_over_the_answer_is_a_wrong_answer_with_the_error_on_record() -> None:
    style = {"type": "style", "sheet_idx0": 0, "sheet_idx1": "EI0", "props": ["font_color"]}
    found = find([style], "font_nocolor.xlsx", "base.xlsx")
    assert not found.agrees
    assert found.record["published_error"].startswith("AttributeError: 'NoneType'")
    (difference,) = found.record["differences"]
    assert (difference["kind"], difference["rule"]) == ("published_error", 1)
    assert found.cause.endswith(f"raises {found.record['published_error']})")


@pytest.mark.parametrize(
    ("rule", "result", "gold"),
    [
        ({**DATA, "sheet_idx1": "ENSheet2"}, "two.xlsx", "base.xlsx"),
        ({"type": "nope"}, "base.xlsx", "base.xlsx"),
        ({**DATA, "sheet_idx0": "XX0"}, "base.xlsx", "base.xlsx"),
        (DATA, "base.xlsx", None),
    ],
)
def test_a_raise_over_the_gold_or_the_rules_is_a_bad_test(
    rule: dict[str, Any], result: str, gold: str | None
) -> None:
    with pytest.raises(GoldFaultError, match="the published evaluator raises"):
        find([rule], result, gold)


def test_a_task_without_a_gold() -> None:
    zoom = {"type": "zoom", "sheet_idx": 0, "method": "eq", "ref": 260}
    assert find([zoom], "zoom260.xlsx", None).agrees
    assert not find([zoom], "base.xlsx", None).agrees


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"rules": "sheet_data"},
        {"rules": [1]},
        {"rules": [{"kind": "zoom"}]},
        {"rules": [{"type": "zoom"}], "evaluator": "rule"},
        {"rules": [], "precision": 4},
    ],
)
def test_options_that_do_not_fit_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match="rule"):
        check_options(CheckerSpec("rules", options))


def test_compare_by_rules(tmp_path: Path) -> None:
    rules = tmp_path / "rules.json"
    rules.write_text(json.dumps({"rules": [DATA], "evaluator": "osworld"}))
    names = [str(CORPUS / "base.xlsx"), str(CORPUS / "val5.xlsx")]
    tail = ["--rules", str(rules), "--profile", "official"]
    run = CliRunner().invoke(compare, [names[0], names[0], *tail])
    assert run.exit_code == 0, run.output
    run = CliRunner().invoke(compare, [*names, *tail, "--json"])
    assert run.exit_code == 1
    assert json.loads(run.stdout)["difference_counts"] == {"sheet_data": 1}
    run = CliRunner().invoke(compare, [*names, *tail[:2]])
    assert run.stdout.splitlines()[1:] == [
        (
            "  rule 1 (Sheet1): All values of the first sheet are those of the gold's first sheet; "
            "numbers are compared to 4 decimals."
        ),
        "    expected 1",
        "    found 5",
        "    B2",
    ]
    run = CliRunner().invoke(compare, names)
    assert isinstance(run.exception, UsageError)
    rules.write_text('{"type": "sheet_data"}')
    run = CliRunner().invoke(compare, [*names, *tail])
    assert isinstance(run.exception, UsageError)
    assert str(rules) in run.exception.message
