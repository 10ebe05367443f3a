"""Options of the comparison on their way from a suite or a command to a case's verdict."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from judge import api
from judge.api.reporting import check_complete
from judge.compare.profiles import get_profile
from judge.core.submission import Answer, Origin
from judge.core.verdict import Verdict
from judge.errors import UsageError
from judge.grading.case import CaseJudge, GradingRules, Judgement
from judge.recalc.policy import Recalculator
from judge.report.build import build_report_data
from judge.report.load import load_run
from judge.suites import load_suite
from tests.unit.compare.cells.packages import BROKEN_LOOKS, Book, cell, sheet_data, simple

INPUT = {"A1": 1, "B1": None, "D1": "keep"}
GOLD = {"A1": 1, "B1": 2, "D1": "keep"}
BROKEN = Book({"Sheet1": sheet_data(cell("A1", 1))}, styles=BROKEN_LOOKS).to_bytes()


def write_suite(folder: Path, **task: object) -> Path:
    """A suite of one task with one case, whose answer is in B1."""
    record = {
        "id": 1,
        "instruction": "Write 2 into B1.",
        "instruction_type": "Cell-Level Manipulation",
        "answer_position": "B1",
    } | task
    place = folder / "suite" / "spreadsheet" / "1"
    place.mkdir(parents=True)
    (folder / "suite" / "dataset.json").write_text(json.dumps([record]))
    (place / "1_1_input.xlsx").write_bytes(simple(INPUT))
    (place / "1_1_answer.xlsx").write_bytes(simple(GOLD))
    return folder / "suite"


def judged(
    suite: Path, output: bytes, *, profile: str = "standard", style: tuple[str, ...] = ()
) -> Judgement:
    task = load_suite(suite).task(1)
    (case,) = task.cases
    judge = CaseJudge(
        Recalculator([], mode="never"), GradingRules(get_profile(profile), style=style)
    )
    return judge.judge(task, case, Answer.of_workbook(output, Origin.SOLUTION))


def test_a_task_can_ask_that_nothing_else_was_changed(tmp_path: Path) -> None:
    suite = write_suite(tmp_path, checker={"name": "cell_range", "untouched": True})
    assert judged(suite, simple(GOLD)).verdict is Verdict.AC
    changed = judged(suite, simple(GOLD | {"D1": "lost"}))
    assert changed.verdict is Verdict.WA
    assert changed.comparison["touched_cells"] == 1
    assert "D1: changed: was 'keep', is 'lost'" in changed.cause


def test_without_that_option_the_input_is_not_even_read(tmp_path: Path) -> None:
    suite = write_suite(tmp_path)
    (suite / "spreadsheet/1/1_1_input.xlsx").write_bytes(b"no workbook")
    judgement = judged(suite, simple(GOLD | {"D1": "lost"}))
    assert judgement.verdict is Verdict.AC
    assert judgement.comparison["touched_cells"] is None


def test_an_input_that_cannot_be_read_is_the_fault_of_the_suite(tmp_path: Path) -> None:
    suite = write_suite(tmp_path, checker={"name": "cell_range", "untouched": True})
    (suite / "spreadsheet/1/1_1_input.xlsx").write_bytes(b"no workbook")
    judgement = judged(suite, simple(GOLD))
    assert judgement.verdict is Verdict.BT
    assert "1_1_input.xlsx: the file is text, not an .xlsx package" in judgement.cause


def test_what_the_output_erased_is_reported_without_that_option_too(tmp_path: Path) -> None:
    suite = write_suite(tmp_path, answer_position="A1:D1")
    judgement = judged(suite, simple({"A1": 1, "B1": 2}))
    assert judgement.verdict is Verdict.WA
    assert judgement.cause == (
        "Sheet1!D1: erased: expected 'keep', found blank (the input holds 'keep')"
    )


@pytest.mark.parametrize("damaged", [b"no workbook", BROKEN[:-40], None])
def test_an_input_that_cannot_be_read_leaves_the_verdict_as_it_is(
    tmp_path: Path, damaged: bytes | None
) -> None:
    suite = write_suite(tmp_path, answer_position="A1:D1")
    path = suite / "spreadsheet/1/1_1_input.xlsx"
    task = load_suite(suite).task(1)
    if damaged is None:
        path.unlink()
    else:
        path.write_bytes(damaged)
    judge = CaseJudge(Recalculator([], mode="never"), GradingRules(get_profile("standard")))
    answer = Answer.of_workbook(simple({"A1": 1, "B1": 2}), Origin.SOLUTION)
    judgement = judge.judge(task, task.cases[0], answer)
    assert judgement.verdict is Verdict.WA
    assert judgement.cause == "Sheet1!D1: is blank: expected 'keep', found blank"


def test_ssb2_counts_cells_to_change_and_cells_to_keep_apart(tmp_path: Path) -> None:
    suite = write_suite(tmp_path, answer_position="A1:D1")
    groups = judged(suite, simple(GOLD | {"D1": "lost"}), profile="ssb2").comparison["groups"]
    assert groups == {
        "modification": {"cells": 1, "differing_cells": 0},
        "regression": {"cells": 3, "differing_cells": 1},
    }


@pytest.mark.parametrize(
    ("gold", "output", "verdict"),
    [(None, BROKEN, Verdict.IW), (BROKEN, None, Verdict.BT), (BROKEN, BROKEN, Verdict.BT)],
)
def test_whose_looks_cannot_be_read_gets_the_blame(
    tmp_path: Path, gold: bytes | None, output: bytes | None, verdict: Verdict
) -> None:
    suite = write_suite(tmp_path, answer_position="A1")
    if gold is not None:
        (suite / "spreadsheet/1/1_1_answer.xlsx").write_bytes(gold)
    judgement = judged(suite, output or simple(GOLD), style=("bold",))
    assert judgement.verdict is verdict
    assert "xl/styles.xml is not well-formed" in judgement.cause


def score(
    folder: Path, suite: Path, output: Mapping[str, object], **options: Any
) -> dict[str, Any]:
    """Returns the report on one finished output."""
    outputs = folder / "outputs"
    outputs.mkdir(exist_ok=True)
    (outputs / "1_1_output.xlsx").write_bytes(simple(output))
    chosen = api.ScoreOptions(
        dataset=str(suite), out=folder / f"run{len(list(folder.iterdir()))}", recalc="never"
    )
    for name, value in options.items():
        object.__setattr__(chosen, name, value)
    (run,) = api.score(outputs, chosen)
    check_complete([run])
    return dict(run.report)


@pytest.mark.parametrize(
    ("output", "checker"),
    [
        ({"B1": 2.3}, {"tolerance": 0.5}),
        ({"B1": 2.3}, {"relative_tolerance": 0.2}),
        ({"B1": 7}, {"ignore": ("B1",)}),
    ],
)
def test_options_of_a_command_reach_the_verdict(
    tmp_path: Path, output: dict[str, object], checker: dict[str, object]
) -> None:
    suite = write_suite(tmp_path)
    plain = score(tmp_path, suite, output)
    lenient = score(tmp_path, suite, output, checker=checker)
    assert plain["overall"]["verdicts"] == {"WA": 1}
    assert lenient["overall"]["verdicts"] == {"AC": 1}
    assert dict(lenient["run"]["checker"]).keys() == checker.keys()


@pytest.mark.parametrize(
    ("gold", "output", "option"),
    [
        ({"B1": "Yes"}, {"B1": "yes"}, "ignore_case"),
        ({"B1": "a b"}, {"B1": " a  b "}, "ignore_whitespace"),
        ({"B1": 1, "B2": 2}, {"B1": 2, "B2": 1}, "unordered_rows"),
        ({"B1": 1}, {"B1": 1, "B2": 2}, "ignore_extra"),
    ],
)
def test_each_switch_is_set_by_a_task_and_by_a_command(
    tmp_path: Path, gold: dict[str, object], output: dict[str, object], option: str
) -> None:
    suite = write_suite(tmp_path, answer_position="B1:B2")
    (suite / "spreadsheet/1/1_1_answer.xlsx").write_bytes(simple(gold))
    assert score(tmp_path, suite, output)["overall"]["verdicts"] == {"WA": 1}
    by_command = score(tmp_path, suite, output, checker={option: True})
    assert by_command["overall"]["verdicts"] == {"AC": 1}
    record = json.loads((suite / "dataset.json").read_text())
    record[0]["checker"] = {"name": "cell_range", option: True}
    (suite / "dataset.json").write_text(json.dumps(record))
    assert score(tmp_path, suite, output)["overall"]["verdicts"] == {"AC": 1}
    against = score(tmp_path, suite, output, checker={option: False})
    assert against["overall"]["verdicts"] == {"WA": 1}


def test_an_option_that_does_not_exist_is_refused(tmp_path: Path) -> None:
    suite = write_suite(tmp_path)
    with pytest.raises(UsageError, match="the checker has no option 'fuzzy'"):
        score(tmp_path, suite, GOLD, checker={"fuzzy": True})


def test_a_report_names_what_was_corrected(tmp_path: Path) -> None:
    suite = write_suite(tmp_path)
    path = tmp_path / "corrections.yaml"
    path.write_text(
        "format: spreadsheetbench-v0.1\n"
        "corrections:\n"
        "  - {task: 1, field: answer_position, was: B1, now: D1, reason: moved, source: golds}\n"
    )
    report = score(tmp_path, suite, GOLD | {"B1": 7}, corrections=path)
    assert report["overall"]["verdicts"] == {"AC": 1}
    (named,) = report["run"]["suite"]["corrections"]
    assert (named["task"], named["was"], named["now"], named["reason"]) == (
        "1",
        "B1",
        "D1",
        "moved",
    )


def test_a_task_that_is_left_out_is_a_bad_test_and_listed(tmp_path: Path) -> None:
    suite = write_suite(tmp_path)
    path = tmp_path / "corrections.yaml"
    path.write_text(
        "format: spreadsheetbench-v0.1\n"
        "corrections:\n"
        "  - {task: 1, field: exclude, reason: the question is empty, source: its text}\n"
    )
    report = score(tmp_path, suite, {"B1": 7}, corrections=path)
    assert report["overall"]["verdicts"] == {"BT": 1}
    (listed,) = report["overall"]["excluded"]["BT"]
    assert "the task is left out: the question is empty" in listed.values()


def with_merge(values: Mapping[str, object], merge: str = "D1:E1") -> bytes:
    """A workbook of one sheet with a merged range."""
    cells = [cell(reference, value) for reference, value in values.items()]
    merged = f'<mergeCells count="1"><mergeCell ref="{merge}"/></mergeCells>' if merge else ""
    return Book({"Sheet1": sheet_data(*cells) + merged}).to_bytes()


def write_merged_suite(folder: Path, **options: str) -> Path:
    """A suite whose input and gold have a merged range, and whose question requests a formula."""
    checker = {"name": "cell_range", **options} if options else None
    suite = write_suite(
        folder,
        instruction="Write a formula into B1.",
        **({} if checker is None else {"checker": checker}),
    )
    place = suite / "spreadsheet" / "1"
    (place / "1_1_input.xlsx").write_bytes(with_merge(INPUT))
    gold = sheet_data(cell("A1", 1), cell("B1", 2, formula="A1*2"), cell("D1", "keep"))
    merged = '<mergeCells count="1"><mergeCell ref="D1:E1"/></mergeCells>'
    (place / "1_1_answer.xlsx").write_bytes(Book({"Sheet1": gold + merged}).to_bytes())
    return suite


def test_what_the_output_lost_is_on_record_only_where_an_option_asks(tmp_path: Path) -> None:
    suite = write_merged_suite(tmp_path)
    found = judged(suite, simple(GOLD))
    assert found.verdict is Verdict.AC
    assert not {"kept", "formula_asked"} & found.comparison.keys()
    assert found.comparison["groups"] == {}


def test_what_the_output_lost_is_reported_with_the_verdict_or_decides_it(tmp_path: Path) -> None:
    for mode, verdict in (("note", Verdict.AC), ("fail", Verdict.WA)):
        suite = write_merged_suite(tmp_path / mode, keep=mode)
        found = judged(suite, simple(GOLD))
        assert found.verdict is verdict
        assert found.comparison["kept"] == {
            "as": mode,
            "lost": 1,
            "counts": {"merged_cells": 1},
            "losses": [
                {
                    "kind": "merged_cells",
                    "what": "merged cells, 1 x 2",
                    "sheet": "Sheet1",
                    "place": "D1:E1",
                    "kept": 1,
                    "left": 0,
                }
            ],
        }
        assert judged(suite, with_merge(GOLD)).verdict is Verdict.AC
        assert "kept" not in judged(suite, simple(GOLD), profile="official").comparison
    assert found.cause == "lost: Sheet1!D1:E1: merged cells, 1 x 2"


def test_constants_where_a_formula_is_asked_for(tmp_path: Path) -> None:
    for mode, verdict in (("note", Verdict.AC), ("fail", Verdict.WA)):
        suite = write_merged_suite(tmp_path / mode, formula_asked=mode)
        found = judged(suite, with_merge(GOLD))
        assert found.verdict is verdict
        assert found.comparison["formula_asked"] == {
            "as": mode,
            "asked": True,
            "words": "formula",
            "gold_formulas": 1,
            "constants": 1,
        }
    assert found.cause == (
        "no formula: the question asks for a formula ('formula'), and the gold has 1 in the "
        "answer; the output has constants"
    )


def test_a_note_does_not_depend_on_an_input_that_can_be_read(tmp_path: Path) -> None:
    for mode, verdict in (("note", Verdict.AC), ("fail", Verdict.BT)):
        suite = write_merged_suite(tmp_path / mode, keep=mode)
        (suite / "spreadsheet" / "1" / "1_1_input.xlsx").write_bytes(b"PK broken")
        found = judged(suite, with_merge(GOLD))
        assert found.verdict is verdict
    assert "1_1_input.xlsx" in found.cause


def test_a_hostile_part_of_the_output_is_not_an_error_of_the_judge(tmp_path: Path) -> None:
    broken = Book(
        {"Sheet1": sheet_data(*(cell(place, value) for place, value in GOLD.items()))},
        parts={"xl/worksheets/_rels/sheet1.xml.rels": "<Relationships"},
    ).to_bytes()
    for mode, verdict in (("note", Verdict.AC), ("fail", Verdict.IW)):
        found = judged(write_merged_suite(tmp_path / mode, keep=mode), broken)
        assert found.verdict is verdict
        assert mode == "fail" or "well-formed" in found.comparison["kept"]["problem"]


def test_a_report_counts_what_the_options_found(tmp_path: Path) -> None:
    suite = write_merged_suite(tmp_path)
    outputs = tmp_path / "outputs"
    outputs.mkdir()
    (outputs / "1_1_output.xlsx").write_bytes(simple(GOLD))

    def scored(**checker: object) -> Any:
        chosen = api.ScoreOptions(
            dataset=str(suite), out=tmp_path / "run", recalc="never", checker=checker
        )
        (run,) = api.score(outputs, chosen)
        return run.report

    plain = scored()
    assert "scope" not in plain
    noted = scored(keep="note", formula_asked="note")
    assert noted["scope"] == {
        "kept": {
            "cases": 1,
            "not_examined": 0,
            "cases_with_losses": 1,
            "tasks_with_losses": 1,
            "accepted_cases_with_losses": 1,
            "by_kind": {"merged_cells": 1},
            "losing_tasks": ["1"],
        },
        "formula_asked": {
            "cases": 1,
            "not_examined": 0,
            "asked": 1,
            "constants": 1,
            "accepted_constants": 1,
        },
    }
    assert noted["run"]["checker"] == {"keep": "note", "formula_asked": "note"}
    assert noted["overall"] == plain["overall"]
    assert noted["tasks"] == plain["tasks"]
    data = build_report_data(load_run(tmp_path / "run"), {})
    assert data.notes == (
        (
            "parts of the input that the gold keeps are lost in 1 of 1 cases, 1 of them accepted: "
            "merged cells 1; tasks 1"
        ),
        "constants where the question asks for a formula: 1 of 1 such cases, 1 of them accepted",
    )
    assert scored() == plain
