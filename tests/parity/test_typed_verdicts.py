"""The profile ``official`` against the recorded verdicts of BabelBench's published matcher."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from benchmarks.typed_disagreements import (
    FOLDER,
    VERDICTS,
    Compared,
    compared,
    of_our_own,
    report,
)
from judge import verify
from judge.suites import load_suite
from tests.conftest import REPOSITORY

pytestmark = pytest.mark.data


@pytest.fixture(scope="module")
def babelbench(judge_data: Path) -> Path:
    if not (judge_data / FOLDER / VERDICTS).is_file():
        pytest.skip(f"no recorded verdicts of BabelBench in {judge_data}")
    return judge_data


@pytest.fixture(scope="module")
def found(babelbench: Path) -> list[Compared]:
    return list(compared(babelbench))


def test_every_recorded_verdict_is_reproduced(found: list[Compared]) -> None:
    assert [each.row for each in found if not each.is_reproduced] == []
    assert len(found) == 8367


@pytest.fixture(scope="module")
def own(babelbench: Path) -> list[Compared]:
    return list(of_our_own(babelbench))


def test_every_disagreement_has_a_reason(found: list[Compared], own: list[Compared]) -> None:
    assert [each.row for each in [*found, *own] if each.reason is None] == []


def test_the_page_lists_each_reason_with_its_verdicts(
    found: list[Compared], own: list[Compared]
) -> None:
    """The list in the documents is that of these very cases."""
    page = REPOSITORY / "docs" / "typed-disagreements.md"
    assert page.read_text(encoding="utf-8") == report(found, own)


def test_what_is_not_recorded_is_decided_and_explained(own: list[Compared]) -> None:
    told = Counter((each.reason, each.standard.agrees) for each in own if each.reason)
    assert told == {
        ("a fraction is cut off", False): 90,
        ("a fraction is cut off, though it is a float's rounding error", True): 86,
        ("a key has parentheses", True): 1,
        ("a value has a quote", True): 1,
        ("blanks around text in a list count", True): 2,
        ("the list is given as text", True): 10,
    }
    nested = [each for each in own if each.row["id"] in {"59", "86"} and each.reason]
    assert [each.row["kind"] for each in nested] == ["as text", "as text"]
    numbers = [each for each in own if each.row["kind"] == "next whole number"]
    assert not [each for each in numbers if each.standard.agrees or each.published]


@pytest.mark.parametrize(
    ("profile", "lost"), [("standard", []), ("official", ["204", "209"]), ("strict", [])]
)
def test_golds_accept_themselves(babelbench: Path, profile: str, lost: list[str]) -> None:
    checks = verify(str(babelbench / FOLDER), profile=profile)
    assert len(checks) == 247
    assert [check.task_id for check in checks if not check.gold_forms["values"]] == []
    assert [check.task_id for check in checks if not check.gold_forms["reply"]] == lost


def test_the_groups_are_those_of_the_papers_table(babelbench: Path) -> None:
    tasks = load_suite(babelbench / FOLDER).tasks
    groups = [task.groups for task in tasks]
    assert len(groups) == 247
    (table,) = load_suite(babelbench / FOLDER).tables
    counts = [sum(map(column.holds, groups)) for column in table.columns]
    assert counts == [247, 236, 11, 132, 115, 121, 59, 103, 85]

    def count(division: str, name: str) -> int:
        return sum(each[division] == name for each in groups)

    assert [count("image", name) for name in ("yes", "no")] == [236, 11]
    assert [count("table", name) for name in ("yes", "no")] == [132, 115]
    assert count("image_and_table", "yes") == 121
    assert [count("paper_difficulty", name) for name in ("Easy", "OK", "Hard")] == [59, 103, 85]
    assert count("difficulty", "Extreme Hard") == 3


def test_media_types_are_those_of_the_content(babelbench: Path) -> None:
    tasks = load_suite(babelbench / FOLDER).tasks
    files = {each.path: each for task in tasks for each in task.cases[0].inputs}
    assert {each.media_type for each in files.values()} <= {
        *("image/png", "image/jpeg", "image/webp"),
        None,
    }
    assert {path.suffix for path, each in files.items() if each.media_type} == {".png"}
