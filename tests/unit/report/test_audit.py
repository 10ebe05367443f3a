"""An audit from the draw to the rates, with 50 of 60 instructions."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from pathlib import Path

import openpyxl
import pytest
from openpyxl.worksheet.worksheet import Worksheet

from judge.api.runs import make_audit, read_audit
from judge.core.statistics import ratio_interval, wilson
from judge.errors import StoreError, UsageError
from judge.grading.case_records import CaseKey
from judge.report.audit import (
    AuditMarks,
    AuditRates,
    AuditSample,
    Confusion,
    audit_rates,
    draw_sample,
)
from judge.report.audit_sheet import CASE_MARK, INSTRUCTION_MARK
from judge.report.build import method_of
from judge.report.load import load_run
from tests.unit.report.runs import TABLE, Solution, TaskSpec, book, make_run, make_suite

TASKS = 60
KINDS = (("AC", "AC"), ("WA", "WA"), ("AC", "WA"), ("AC", "RE"))


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """Verdicts repeat: solved, failed, half, half; ids look like dates."""
    suite = make_suite(tmp_path / "suite", [TaskSpec(f"{n}-1", cases=2) for n in range(TASKS)])
    solutions = [
        Solution(
            f"{n}-1",
            [(code, {"cause": "=1+1" if code == "WA" else ""}) for code in KINDS[n % 4]],
            output=book(TABLE),
        )
        for n in range(TASKS)
    ]
    return make_run(tmp_path / "run", suite, solutions)


def headings_of(page: Worksheet) -> dict[str, int]:
    """Maps headings to the numbers of their columns."""
    return {str(cell.value): number for number, cell in enumerate(page[1], start=1)}


def accepted_cases(sample: AuditSample, key: tuple[str, int]) -> list[int]:
    """Returns the cases of a drawn submission that the judge accepted."""
    return [case for case in (1, 2) if sample.verdicts[*key, case] == "AC"]


def fill(
    sheet: Path, cases: Mapping[CaseKey, str], instructions: Mapping[str, str] | None = None
) -> None:
    """Marks a sheet as a person would, with a spreadsheet program."""
    workbook = openpyxl.load_workbook(sheet)
    page = workbook["verdicts"]
    headings = headings_of(page)
    for row in range(2, page.max_row + 1):
        task = str(page.cell(row, headings["task"]).value)
        sample = int(str(page.cell(row, headings["sample"]).value))
        case = int(str(page.cell(row, headings["case"]).value))
        page.cell(row, headings[CASE_MARK]).value = cases.get((task, sample, case))
        if case == 1:
            page.cell(row, headings[INSTRUCTION_MARK]).value = (instructions or {}).get(task)
    workbook.save(sheet)


def all_right(sample: AuditSample) -> dict[CaseKey, str]:
    return dict.fromkeys(sample.verdicts, "right")


def counts(rates: AuditRates) -> list[tuple[int, int, int, int]]:
    return [
        (each.true_positive, each.false_positive, each.true_negative, each.false_negative)
        for each in (rates.cases, rates.solved)
    ]


def test_fifty_instructions_there_and_back(run: Path) -> None:
    audit = make_audit(run)
    assert len(audit.sample.submissions) == 50
    assert audit.sample.population == 60
    assert audit.sheet == run / "audit.xlsx"
    marks = all_right(audit.sample)
    accepted = [key for key, verdict in marks.items() if audit.sample.verdicts[key] == "AC"]
    rejected = [key for key in marks if audit.sample.verdicts[key] != "AC"]
    drawn = audit.sample.submissions
    solved = [key for key in drawn if accepted_cases(audit.sample, key) == [1, 2]]
    # Two accepted cases of one solved instruction, and one of another, are wrong in truth.
    (first, second), rest = solved[:2], solved[2:]
    wrong_yes = [(*first, 1), (*first, 2), (*second, 1)]
    # Three rejected cases are right in truth: one instruction whose only fault they were is solved.
    half = next(key for key in drawn if accepted_cases(audit.sample, key) == [1])
    failed = next(key for key in drawn if accepted_cases(audit.sample, key) == [])
    wrong_no = [(*half, 2), (*failed, 1)]
    for key in (*wrong_yes, *wrong_no):
        marks[key] = "Wrong "
    fill(audit.sheet, marks)
    rates = read_audit(run, audit.sheet)
    unsolved = 50 - len(solved)
    assert counts(rates) == [
        (len(accepted) - 3, 3, len(rejected) - 2, 2),
        (len(rest), 2, unsolved - 1, 1),
    ]
    assert rates.case_false_discovery.value == pytest.approx(3 / len(accepted))
    assert rates.case_false_omission.value == pytest.approx(2 / len(rejected))
    # Both are shares of all 50 instructions, solved or not.
    assert rates.instruction_false_positive == wilson(2, 50)
    assert rates.instruction_false_negative == wilson(2, 50)
    # Two of the three lie in one cluster: the interval is of clusters.
    clusters = sorted({key[0] for key in accepted})
    assert rates.case_false_discovery == ratio_interval(
        [sum(key[0] == task for key in wrong_yes) for task in clusters],
        [sum(key[0] == task for key in accepted) for task in clusters],
    )
    assert (rates.marked_cases, rates.sampled_cases) == (100, 100)
    assert (rates.marked_instructions, rates.marked_by_cases) == (50, 50)


def sample_of(verdicts: Mapping[CaseKey, str]) -> AuditSample:
    return AuditSample("id", 1, 50, verdicts)


def test_the_published_rates_by_hand() -> None:
    # 50 instructions with three cases: 15 pass in all three (45 cases), 35 fail in all (105 cases).
    verdicts = {
        (str(task), 0, case): "AC" if task < 15 else "WA"
        for task in range(50)
        for case in (1, 2, 3)
    }
    marks = dict.fromkeys(verdicts, True)
    # Four of those that fail are right: all three of one instruction, and one of another.
    for key in (("20", 0, 1), ("20", 0, 2), ("20", 0, 3), ("21", 0, 2)):
        marks[key] = False
    rates = audit_rates(sample_of(verdicts), AuditMarks(marks, {}), method_of())
    assert rates.case_false_discovery.value == 0  # 0 of 45
    assert rates.case_false_omission.value == pytest.approx(4 / 105)  # 3.8 %
    assert rates.instruction_false_positive == wilson(0, 50)  # 0 of 50
    assert rates.instruction_false_negative == wilson(2, 50)  # 2 of 50: 4 %
    assert (rates.false_positive_instructions, rates.false_negative_instructions) == (0, 2)
    assert rates.whole_instructions == 50
    # "Solved" is another question: one instruction that is called unsolved is solved in truth.
    assert rates.solved == Confusion(15, 0, 34, 1)


def test_an_instruction_can_count_for_both_rates_and_counts_once() -> None:
    verdicts = {
        (task, 0, case): verdict
        for task, said in {
            "a": ("AC", "AC", "WA"),
            "b": ("WA", "RE", "WA"),
            "c": ("AC", "AC", "AC"),
            "d": ("AC", "WA", "AC"),
        }.items()
        for case, verdict in enumerate(said, start=1)
    }
    marks = dict.fromkeys(verdicts, True)
    marks["a", 0, 1] = marks["a", 0, 2] = marks["a", 0, 3] = False
    marks["b", 0, 2] = False
    marks["d", 0, 1] = False
    del marks["d", 0, 3]  # not all of its cases are marked: it does not count as an instruction
    rates = audit_rates(sample_of(verdicts), AuditMarks(marks, {}), method_of())
    assert rates.case_false_discovery.value == pytest.approx(3 / 6)  # a1, a2, d1 of a, c and d
    assert rates.case_false_omission.value == pytest.approx(2 / 5)  # a3, b2 of a3, b and d2
    assert rates.instruction_false_positive == wilson(1, 3)  # a of a, b, c
    assert rates.instruction_false_negative == wilson(2, 3)  # a and b
    assert rates.whole_instructions == 3


def test_several_samples_of_a_task_are_a_cluster() -> None:
    verdicts = {(task, sample, 1): "AC" for task in "abc" for sample in range(4)}
    marks = dict.fromkeys(verdicts, True) | {("a", 0, 1): False, ("a", 1, 1): False}
    rates = audit_rates(sample_of(verdicts), AuditMarks(marks, {}), method_of())
    assert rates.instruction_false_positive == ratio_interval([2, 0, 0], [4, 4, 4])
    assert rates.instruction_false_positive.value == pytest.approx(2 / 12)


def test_nothing_wrong_is_still_an_interval(run: Path) -> None:
    audit = make_audit(run, size=10)
    fill(audit.sheet, all_right(audit.sample))
    rates = read_audit(run, audit.sheet)
    assert rates.case_false_discovery.value == 0.0
    assert (rates.case_false_discovery.high or 0) > 0.1
    assert rates.instruction_false_positive.value == 0.0


def test_a_mark_of_the_instruction_goes_before_those_of_its_cases(run: Path) -> None:
    audit = make_audit(run)
    drawn = audit.sample.submissions
    solved = next(key for key in drawn if accepted_cases(audit.sample, key) == [1, 2])
    fill(audit.sheet, all_right(audit.sample), {solved[0]: "wrong"})
    rates = read_audit(run, audit.sheet)
    assert rates.solved.false_positive == 1
    assert rates.cases.false_positive == 0
    assert rates.marked_by_cases == 49


def test_what_is_left_blank_does_not_count(run: Path) -> None:
    audit = make_audit(run, size=5)
    rates = read_audit(run, audit.sheet)
    assert rates.marked_cases == rates.marked_instructions == 0
    assert rates.case_false_discovery.value is None
    key = audit.sample.submissions[0]
    fill(audit.sheet, {(*key, 1): "right"})
    rates = read_audit(run, audit.sheet)
    assert (rates.marked_cases, rates.marked_instructions) == (1, 0)


def test_csv_with_the_semicolons_and_dates_of_a_spreadsheet_program(run: Path) -> None:
    audit = make_audit(run, out=run.parent / "audit.csv")
    text = audit.sheet.read_text(encoding="utf-8-sig")
    table = list(csv.DictReader(text.splitlines(keepends=True)))
    assert all(row["cause"] in {"", "'=1+1"} for row in table)
    for row in table:
        row[CASE_MARK] = "right"
        row["task"] = "01.01.2026"  # what became of 1-1
    with audit.sheet.open("w", encoding="utf-8-sig", newline="") as file:
        writer = csv.DictWriter(file, fieldnames=list(table[0]), delimiter=";")
        writer.writeheader()
        writer.writerows(reversed(table))
    rates = read_audit(run, audit.sheet)
    assert rates.marked_cases == 100
    assert rates.cases.false_positive == rates.cases.false_negative == 0


def test_the_sheet_shows_what_a_person_needs(run: Path) -> None:
    audit = make_audit(run, size=20)
    page = openpyxl.load_workbook(audit.sheet)["verdicts"]
    headings = headings_of(page)
    row = next(
        number
        for number in range(2, page.max_row + 1)
        if page.cell(number, headings["case verdict"]).value == "WA"
    )
    cause = page.cell(row, headings["cause"])
    assert (cause.value, cause.data_type) == ("=1+1", "s")  # a text, though it looks like a formula
    for name in ("input", "gold", "output"):
        link = page.cell(row, headings[name]).hyperlink
        assert link is not None
        assert link.target is not None
        assert Path(link.target.removeprefix("file://")).is_file()
    assert page.cell(2, headings["instruction"]).value == f"Do the work of {page['B2'].value}."
    assert str(page.cell(2, headings["instruction verdict"]).value) in {"solved", "not solved"}
    assert page.data_validations.dataValidation[0].formula1 == '"right,wrong"'
    assert "how to" in openpyxl.load_workbook(audit.sheet).sheetnames


def test_the_draw_is_seeded_and_even(run: Path) -> None:
    loaded = load_run(run)
    assert draw_sample(loaded, 50, 1) == draw_sample(loaded, 50, 1)
    assert draw_sample(loaded, 50, 1).submissions != draw_sample(loaded, 50, 2).submissions
    assert len(draw_sample(loaded, 500, 1).submissions) == 60
    drawn = dict.fromkeys([each.task_id for each in loaded.submissions], 0)
    for seed in range(300):
        for task, _ in draw_sample(loaded, 20, seed).submissions:
            drawn[task] += 1
    assert all(60 <= times <= 140 for times in drawn.values())  # 100 expected, sd 8.2


def test_marks_stay_with_the_verdicts_that_were_marked(run: Path) -> None:
    audit = make_audit(run, size=5)
    fill(audit.sheet, all_right(audit.sample))
    before = read_audit(run, audit.sheet)
    task, sample, case = next(iter(audit.sample.verdicts))
    text = (run / "cases.jsonl").read_text()
    line = next(x for x in text.splitlines() if f'"task":"{task}"' in x and f'"case":{case},' in x)
    verdict = audit.sample.verdicts[task, sample, case]
    other = "WA" if verdict == "AC" else "AC"
    changed = line.replace(f'"verdict":"{verdict}"', f'"verdict":"{other}"')
    (run / "cases.jsonl").write_text(text + changed + "\n")
    after = read_audit(run, audit.sheet)
    assert after.rejudged_cases == 1
    assert counts(after) == counts(before)


def test_a_sheet_with_marks_is_not_overwritten(run: Path) -> None:
    make_audit(run, size=5)
    with pytest.raises(UsageError, match="may hold marks"):
        make_audit(run, size=5)
    with pytest.raises(UsageError, match=r"\.xlsx or \.csv"):
        make_audit(run, out=run / "audit.ods")


def test_sheets_that_cannot_be_read_back(run: Path, tmp_path: Path) -> None:
    audit = make_audit(run, size=5)
    key = next(iter(audit.sample.verdicts))
    fill(audit.sheet, {key: "maybe"})
    with pytest.raises(UsageError, match=r"row 2: .* 'maybe' is neither right nor wrong"):
        read_audit(run, audit.sheet)
    fill(audit.sheet, {key: "right"})
    workbook = openpyxl.load_workbook(audit.sheet)
    workbook["verdicts"]["A2"] = 99
    workbook.save(audit.sheet)
    with pytest.raises(UsageError, match="no case number '99'"):
        read_audit(run, audit.sheet)
    for column, cell in enumerate(workbook["verdicts"][3], start=1):
        workbook["verdicts"].cell(2, column).value = cell.value
    workbook["verdicts"].cell(2, 8).value = "wrong"
    workbook["verdicts"].cell(3, 8).value = "right"
    workbook.save(audit.sheet)
    with pytest.raises(UsageError, match="marked both ways"):
        read_audit(run, audit.sheet)
    stranger = tmp_path / "list.csv"
    stranger.write_text("a,b\n1,2\n")
    with pytest.raises(UsageError, match="lacks the columns no, audit"):
        read_audit(run, stranger)
    (run / "audits.jsonl").unlink()
    with pytest.raises(StoreError, match="has no audit"):
        read_audit(run, audit.sheet)
