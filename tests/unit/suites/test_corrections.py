"""Known faults of published suites: read, applied where they fit, recorded in a run."""

from __future__ import annotations

import datetime as dt
import hashlib
import json
from pathlib import Path

import pytest
import yaml

from judge.compare.cells.options import CheckOptions, position_of
from judge.compare.profiles import get_profile
from judge.compare.registry import check_options
from judge.core.records.runs import RunDocument
from judge.errors import SuiteError
from judge.grading.case import GradingRules, known_fault
from judge.grading.keys import FileDigests, comparison_key
from judge.suites import Suite, load_suite
from judge.suites.corrections import (
    FIELDS,
    Correction,
    apply_corrections,
    as_recorded,
    corrected_suite,
    describe_corrections,
    known_faults_folder,
    load_corrections,
    write_corrections,
)
from judge.suites.validate import Severity, findings_of_corrections
from judge.workbook.cell import CellValue, ErrorValue
from tests.unit.annotate.books import table, values
from tests.unit.suites.conftest import WriteSuite, task_record

FORMAT = "spreadsheetbench-v0.1"


@pytest.fixture
def suite(write_suite: WriteSuite) -> Suite:
    records = [task_record("7-5", answer_position="A1"), task_record(9, answer_position="B2")]
    return load_suite(write_suite(records))


def write(folder: Path, *entries: dict[str, object], **document: object) -> Path:
    path = folder / "corrections.yaml"
    path.write_text(yaml.safe_dump({"format": FORMAT, "corrections": [*entries]} | document))
    return path


def entry(**changes: object) -> dict[str, object]:
    return {
        "task": "7-5",
        "field": "answer_position",
        "was": "A1",
        "now": "A1:A4",
        "reason": "row 1 is no answer",
        "source": "seen in the golds",
    } | changes


def test_a_position_is_corrected_and_the_digest_stays(suite: Suite, tmp_path: Path) -> None:
    corrected = corrected_suite(suite, write(tmp_path, entry()))
    assert [position_of(task.checker)[0] for task in corrected.suite.tasks] == ["A1:A4", "B2"]
    assert corrected.suite.digest == suite.digest
    assert [str(each) for each in corrected.applied] == [
        "answer_position is read as 'A1:A4': row 1 is no answer"
    ]
    assert not corrected.unfit


def test_nothing_is_corrected_unless_it_is_asked_for(suite: Suite) -> None:
    assert corrected_suite(suite, None).suite is suite


def test_a_value_that_is_not_the_published_one_is_left(suite: Suite, tmp_path: Path) -> None:
    corrected = corrected_suite(suite, write(tmp_path, entry(was="A2"), entry(task=77)))
    assert corrected.suite.tasks == suite.tasks
    assert [each.task for each in corrected.unfit] == ["7-5"]
    (finding,) = findings_of_corrections(corrected)
    assert (finding.severity, finding.task) == (Severity.WARNING, "7-5")


def test_corrections_of_another_format_are_passed_over(suite: Suite, tmp_path: Path) -> None:
    path = write(tmp_path, entry(), format="spreadsheetbench-verified")
    assert not corrected_suite(suite, path).applied


def test_styles_and_tasks_that_are_left_out_become_options(suite: Suite, tmp_path: Path) -> None:
    left_out = {"task": 9, "field": "exclude", "reason": "no question", "source": "its text"}
    path = write(tmp_path, entry(field="style", now=["fill"], was=None), left_out)
    first, second = corrected_suite(suite, path).suite.tasks
    assert CheckOptions.of(first.checker.options).style == ("fill",)
    assert second.checker.options["left_out"] == "no question"


def test_a_run_remembers_what_was_corrected(suite: Suite, tmp_path: Path) -> None:
    left_out = {"task": 9, "field": "exclude", "reason": "no question", "source": "its text"}
    corrected = corrected_suite(suite, write(tmp_path, entry(), left_out))
    run: RunDocument = {
        "suite": {"name": "made", "corrections": describe_corrections(corrected.applied)},
        "checker": {"ignore_case": True},
    }
    again = as_recorded(suite, run)
    assert again.tasks == corrected.suite.with_checker_options({"ignore_case": True}).tasks
    assert as_recorded(suite, {}).tasks == suite.tasks


@pytest.mark.parametrize(
    ("wrong", "fault"),
    [
        ({"field": "golds"}, "field 'field' must be one of"),
        ({"reason": ""}, "field 'reason' must be text"),
        ({"source": None}, "field 'source' must be text"),
        ({"now": "nowhere"}, "cannot be read: 'nowhere' is not a range of cells"),
        ({"now": 7}, "field 'now' must be text"),
        ({"field": "style", "now": ["glitter"]}, "no style attribute 'glitter'"),
        ({"was": 5}, "field 'was' must be text"),
        ({"why": "x"}, "unknown fields why"),
    ],
)
def test_each_fault_of_a_file_is_named(
    wrong: dict[str, object], fault: str, tmp_path: Path
) -> None:
    with pytest.raises(SuiteError) as raised:
        load_corrections(write(tmp_path, entry(task="1"), entry(**wrong)))
    (found,) = raised.value.faults
    assert "correction 2" in found
    assert fault in found


def test_a_field_is_corrected_once(tmp_path: Path) -> None:
    with pytest.raises(SuiteError) as raised:
        load_corrections(write(tmp_path, entry(), entry(now="C1")))
    assert raised.value.faults == ("task 7-5: field 'answer_position' is corrected twice",)


@pytest.mark.parametrize("text", ["- 1", "{", "format: x", "\x00"])
def test_a_file_that_is_none(text: str, tmp_path: Path) -> None:
    path = tmp_path / "corrections.yaml"
    path.write_text(text)
    with pytest.raises(SuiteError, match="corrections"):
        load_corrections(path)


def test_the_corrections_that_ship_say_what_is_wrong_and_where_it_is_seen() -> None:
    shipped = load_corrections(known_faults_folder())
    assert {each.format for each in shipped} == {FORMAT, "spreadsheetbench-verified"}
    assert len(shipped) > 20
    for each in shipped:
        assert each.field in FIELDS
        assert len(each.reason) > 20
        assert each.source
        assert each.was != each.now


def test_options_of_a_command_count_more_than_those_of_a_task(suite: Suite) -> None:
    corrected = apply_corrections(
        suite, [Correction(FORMAT, "9", "style", None, ("fill",), "colour", "golds")]
    ).suite
    chosen = corrected.with_checker_options({"style": ["bold"], "tolerance": 0.5})
    assert CheckOptions.of(chosen.task(9).checker.options).style == ("bold",)
    assert CheckOptions.of(chosen.task("7-5").checker.options).tolerance == 0.5
    assert suite.with_checker_options({}) is suite


# -- cells of golds, and single cases --------------------------------------------------------------

QUESTION = table(("item", "price"), ("ham", 2), ("egg", 3))
GOLD = table(("item", "price", "gross"), ("ham", 2, 2.2), ("egg", 3, 4.4))


def hash_of(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


@pytest.fixture
def priced(write_suite: WriteSuite) -> Suite:
    """A suite of one task with two cases, whose gold says 4.4 instead of 3.3."""
    root = write_suite([task_record("7-5", answer_position="C2:C3")])
    for path in root.glob("spreadsheet/*/*.xlsx"):
        path.write_bytes(GOLD if "answer" in path.name else QUESTION)
    return load_suite(root)


def cells_entry(**changes: object) -> dict[str, object]:
    return {
        "task": "7-5",
        "case": 2,
        "field": "gold",
        "gold_sha256": hash_of(GOLD),
        "input_sha256": hash_of(QUESTION),
        "cells": [{"sheet": "Sheet", "cell": "C3", "was": 4.4, "now": 3.3}],
        "reason": "ten per cent are added to the price",
        "evidence": "B3 is 3, C3 is 4.4",
        "source": "judge verify --review",
        "by": "Ann",
        "at": "2026-11-01T10:00:00+00:00",
    } | changes


def test_cells_of_a_gold_are_corrected_in_a_file_of_its_own(priced: Suite, tmp_path: Path) -> None:
    corrected = corrected_suite(priced, write(tmp_path, cells_entry()))
    first, second = corrected.suite.task("7-5").cases
    assert first == priced.task("7-5").cases[0]
    assert values(second.gold_path.read_bytes())[3, 3] == 3.3
    assert values(second.gold_path.read_bytes())[2, 3] == 2.2
    assert second.gold_path.name == "2_7-5_answer.xlsx"
    assert priced.task("7-5").cases[1].gold_path.read_bytes() == GOLD
    assert corrected.suite.digest == priced.digest
    (applied,) = corrected.applied
    assert str(applied) == (
        "case 2 gold: 'Sheet'!C3 is 3.3 instead of 4.4: ten per cent are added to the price"
    )


def test_verdicts_on_the_published_gold_are_not_reused(priced: Suite, tmp_path: Path) -> None:
    after = corrected_suite(priced, write(tmp_path, cells_entry())).suite.task("7-5")
    before, rules = priced.task("7-5"), GradingRules(get_profile("standard"))
    keys = [
        [comparison_key("run", task, case, rules, FileDigests()) for case in task.cases]
        for task in (before, after)
    ]
    assert keys[0][0] == keys[1][0]
    assert keys[0][1] != keys[1][1]


CONTENTS = [
    (None, None),
    ("ham", "ham"),
    (True, True),
    (7, 7),
    ({"error": "#N/A"}, ErrorValue("#N/A")),
    ({"date": "2024-01-31T00:00:00"}, dt.datetime.fromisoformat("2024-01-31")),
    ({"date": "2024-01-31T12:30:00"}, dt.datetime.fromisoformat("2024-01-31T12:30")),
    (dt.date(2024, 1, 31), dt.datetime.fromisoformat("2024-01-31")),
    ({"time": "12:30:00"}, dt.time(12, 30)),
]


@pytest.mark.parametrize(("now", "held"), CONTENTS)
def test_a_cell_can_become_anything_that_a_cell_holds(
    now: object, held: CellValue, priced: Suite, tmp_path: Path
) -> None:
    cells = [{"sheet": "Sheet", "cell": "C3", "was": 4.4, "now": now}]
    corrected = corrected_suite(priced, write(tmp_path, cells_entry(cells=cells)))
    gold = corrected.suite.task("7-5").cases[1].gold_path.read_bytes()
    assert values(gold).get((3, 3)) == held
    run: RunDocument = {
        "suite": {"name": "made", "corrections": describe_corrections(corrected.applied)}
    }
    assert as_recorded(priced, json.loads(json.dumps(run))).tasks == corrected.suite.tasks


@pytest.mark.parametrize(("role", "field"), [("answer", "gold_sha256"), ("input", "input_sha256")])
def test_a_correction_never_lands_on_another_file(
    role: str, field: str, priced: Suite, tmp_path: Path
) -> None:
    path = priced.root / f"spreadsheet/7-5/2_7-5_{role}.xlsx"
    other = table(("other",))
    path.write_bytes(other)
    with pytest.raises(SuiteError) as raised:
        corrected_suite(priced, write(tmp_path, cells_entry()))
    (fault,) = raised.value.faults
    expected = hash_of(GOLD if role == "answer" else QUESTION)
    assert fault == (
        f"task 7-5, case 2: {path} is not the file that the correction was made for: its SHA-256 "
        f"is {hash_of(other)}, the correction's {field} is {expected}"
    )
    assert "review" in (raised.value.hint or "")


def test_a_gold_that_is_right_already_is_left(priced: Suite, tmp_path: Path) -> None:
    path = priced.root / "spreadsheet/7-5/2_7-5_answer.xlsx"
    path.write_bytes(table(("item", "price", "gross"), ("ham", 2, 2.2), ("egg", 3, 3.3)))
    corrected = corrected_suite(priced, write(tmp_path, cells_entry()))
    assert corrected.suite.tasks == priced.tasks
    assert [each.task for each in corrected.unfit] == ["7-5"]


def test_what_a_cell_was_has_to_be_so(priced: Suite, tmp_path: Path) -> None:
    cells = [{"sheet": "Sheet", "cell": "C3", "was": "4.4", "now": 3.3}]
    with pytest.raises(SuiteError) as raised:
        corrected_suite(priced, write(tmp_path, cells_entry(cells=cells)))
    assert (
        "'Sheet'!C3 holds 4.4, but the correction says that it was '4.4'"
        in (raised.value.faults[0])
    )


def test_a_single_case_is_left_out(priced: Suite, tmp_path: Path) -> None:
    left_out = cells_entry(field="exclude")
    del left_out["cells"]
    task = corrected_suite(priced, write(tmp_path, left_out)).suite.task("7-5")
    check_options(task.checker)
    assert known_fault(task) is None
    assert known_fault(task, 1) is None
    assert known_fault(task, 2) == ("the case is left out: ten per cent are added to the price")


@pytest.mark.parametrize(
    ("wrong", "fault"),
    [
        ({"case": None}, "field 'case' must be the number of a case"),
        ({"gold_sha256": "abc"}, "field 'gold_sha256' must be a SHA-256"),
        ({"cells": []}, "field 'cells' must be a list of cells"),
        ({"cells": [{"cell": "C3"}]}, "must have sheet, cell, was and now"),
        ({"cells": [{"sheet": "S", "cell": "C0", "was": 1, "now": 2}]}, "'C0' is not a cell"),
        ({"cells": [{"sheet": "S", "cell": "C1", "was": 1, "now": 1}]}, "are the same value"),
        (
            {"cells": [{"sheet": "S", "cell": "C1", "was": 1, "now": {"formula": "A1"}}]},
            "must be a value, not a formula",
        ),
        ({"cells": [{"sheet": "S", "cell": "C1", "was": 1, "now": [2]}]}, "must be a number"),
        ({"evidence": ""}, "field 'evidence' must be text"),
        ({"evidence": None}, "field 'evidence' must say what the cells show"),
        ({"field": "style", "now": ["fill"]}, "is corrected for all cases"),
        ({"field": "exclude"}, "field 'cells' is required if 'field' is 'gold'"),
    ],
)
def test_each_fault_of_cells_is_named(wrong: dict[str, object], fault: str, tmp_path: Path) -> None:
    with pytest.raises(SuiteError) as raised:
        load_corrections(write(tmp_path, cells_entry(**wrong)))
    assert fault in raised.value.faults[0]


def test_what_is_written_is_read_again(suite: Suite, tmp_path: Path) -> None:
    left_out = {"task": 9, "field": "exclude", "reason": "no question", "source": "its text"}
    cells: list[dict[str, object]] = [
        {"sheet": "it's", "cell": f"C{row}", "was": f"# {row}: 'x'", "now": now}
        for row, (now, _) in enumerate(CONTENTS, 1)
    ]
    style = entry(field="style", now=["fill"], was=None)
    found = load_corrections(write(tmp_path, entry(), style, left_out, cells_entry(cells=cells)))
    path = tmp_path / "written.yaml"
    write_corrections(path, FORMAT, found)
    assert load_corrections(path) == found
