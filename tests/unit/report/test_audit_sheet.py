"""Audit sheets returned by strangers: marks, or an error that names the row."""

from __future__ import annotations

import json
import os
import re
import resource
import zipfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

import openpyxl
import pytest
from openpyxl.worksheet.worksheet import Worksheet

from judge.api.runs import Audit, make_audit, read_audit
from judge.errors import JudgeError, StoreError, UsageError
from judge.report.audit_sheet import CASE_MARK, INSTRUCTION_MARK
from tests.bounds import in_bounds
from tests.unit.report.runs import TABLE, Solution, TaskSpec, book, make_run, make_suite

MEMORY_BYTES = 3 << 30
CPU_S = 20
bounded = partial(in_bounds, cpu_s=CPU_S, memory_bytes=MEMORY_BYTES)


@pytest.fixture
def run(tmp_path: Path) -> Path:
    suite = make_suite(tmp_path / "suite", [TaskSpec("7", cases=2), TaskSpec("8", cases=2)])
    solutions = [
        Solution("7", ["AC", "WA"], output=book(TABLE)),
        Solution("8", ["AC", "AC"], output=book(TABLE)),
    ]
    return make_run(tmp_path / "run", suite, solutions)


@pytest.fixture
def audit(run: Path) -> Audit:
    return make_audit(run)


def edit(audit: Audit, change: Callable[[Worksheet], object]) -> None:
    workbook = openpyxl.load_workbook(audit.sheet)
    change(workbook["verdicts"])
    workbook.save(audit.sheet)


def column(page: Worksheet, heading: str) -> int:
    return next(cell.column for cell in page[1] if cell.value == heading)


def put(heading: str, row: int, value: object) -> Callable[[Worksheet], object]:
    def change(page: Worksheet) -> None:
        page.cell(row, column(page, heading)).value = value  # type: ignore[assignment]

    return change


def refused(run: Path, sheet: Path) -> str:
    with pytest.raises(UsageError) as caught:
        read_audit(run, sheet)
    message = caught.value.message
    assert message.startswith(str(sheet))
    assert len(message) < len(str(sheet)) + 500
    assert message.isprintable()
    return message.removeprefix(str(sheet))


@pytest.mark.parametrize(
    ("heading", "value", "said"),
    [
        ("no", "1" * 400, ", row 3: the sample has no case number '111"),
        ("no", "9" * 5_000, ", row 3: the sample has no case number '999"),
        ("no", 1e300, ", row 3: the sample has no case number '1e+300'"),
        ("no", -1, ", row 3: the sample has no case number '-1'"),
        ("no", 2.5, ", row 3: the sample has no case number '2.5'"),
        ("no", True, ", row 3: the sample has no case number 'True'"),
        ("no", "\N{ARABIC-INDIC DIGIT TWO}", ", row 3: the sample has no case number"),
        ("no", "=1+1", ", row 3: the sample has no case number '(a formula without a value)'"),
        (CASE_MARK, "=1+1", "'(a formula without a value)' is neither right nor wrong"),
        (CASE_MARK, True, "'true' is neither right nor wrong"),
        (CASE_MARK, 1, "'1' is neither right nor wrong"),
        (CASE_MARK, "x" * 30_000, "xxx…' is neither right nor wrong"),
        (CASE_MARK, "a\u202eb", r"'a\u202eb' is neither right nor wrong"),
        (INSTRUCTION_MARK, "no", "'no' is neither right nor wrong"),
        ("case", 1, "is case 2 of task '7' with the verdict WA, but the row says case '1'"),
        ("case verdict", "AC", "with the verdict WA, but the row says case '2' and 'AC'"),
        ("audit", "another", ": holds rows of several audits: "),
    ],
)
def test_a_cell_that_was_edited(
    run: Path, audit: Audit, heading: str, value: object, said: str
) -> None:
    edit(audit, put(heading, 3, value))
    assert said in refused(run, audit.sheet)


def test_ids_of_many_audits_are_not_all_named(run: Path, audit: Audit) -> None:
    def change(page: Worksheet) -> None:
        place = column(page, "audit")
        for row in range(2, 1_000):
            page.cell(row, column(page, "no")).value = 1
            page.cell(row, place).value = f"{row}" * 100

    edit(audit, change)
    assert "several audits" in refused(run, audit.sheet)


def test_a_mark_without_its_number_is_not_lost(run: Path, audit: Audit) -> None:
    edit(audit, put(CASE_MARK, 3, "wrong"))
    edit(audit, put("no", 3, None))
    assert "row 3: has a mark, but no number" in refused(run, audit.sheet)


def test_a_formula_with_a_value_is_a_mark(run: Path, audit: Audit) -> None:
    edit(audit, put(CASE_MARK, 3, "=H1"))
    with zipfile.ZipFile(audit.sheet) as archive:
        parts = {name: archive.read(name).decode() for name in archive.namelist()}
    sheet = parts["xl/worksheets/sheet1.xml"]
    valued = re.sub(
        r"<c r=\"H3\"([^>]*)><f>H1</f><v ?/?>(?:</v>)?",
        r'<c r="H3"\1 t="str"><f>H1</f><v>Right</v>',
        sheet,
    )
    assert valued != sheet
    with zipfile.ZipFile(audit.sheet, "w") as archive:
        for name, text in (parts | {"xl/worksheets/sheet1.xml": valued}).items():
            archive.writestr(name, text)
    assert read_audit(run, audit.sheet).marked_cases == 1


def test_the_same_row_twice(run: Path, audit: Audit) -> None:
    edit(audit, put(CASE_MARK, 3, "wrong"))

    def again(page: Worksheet) -> None:
        for cell in list(page[3]):
            assert cell.column is not None
            page.cell(9, cell.column).value = cell.value

    edit(audit, again)
    assert read_audit(run, audit.sheet).marked_cases == 1
    edit(audit, put(CASE_MARK, 9, "right"))
    assert "row 9: case 2 of task '7' is marked both ways" in refused(run, audit.sheet)


def test_a_column_twice(run: Path, audit: Audit) -> None:
    edit(audit, lambda page: page.cell(1, 30, CASE_MARK))
    assert f": has several columns '{CASE_MARK}'" in refused(run, audit.sheet)


def test_no_first_row_and_no_sheet(run: Path, audit: Audit) -> None:
    edit(audit, lambda page: page.insert_rows(1))
    assert "is empty, or has an empty first row" in refused(run, audit.sheet)
    edit(audit, lambda page: setattr(page, "title", "other"))
    assert "verdicts" in refused(run, audit.sheet)


@pytest.mark.parametrize(
    ("name", "data", "said"),
    [
        ("a.xlsx", b"", ": cannot be read"),
        ("a.xlsx", b"no,audit\n", ": cannot be read"),
        ("a.csv", b"", ": is empty"),
        ("a.csv", b"\0\0", "CSV"),
        ("a.csv", b'no,audit\n"' + b"x" * 200_000, "cannot be read as CSV"),
        ("a.csv", "no,audit\n".encode("utf-16"), "it lacks the columns"),
        ("a.csv", b"\xff\xfe" * 100, "it lacks the columns"),
        ("a.ods", b"x", ": cannot be read"),
    ],
)
def test_a_file_that_is_not_a_sheet(
    run: Path, audit: Audit, tmp_path: Path, name: str, data: bytes, said: str
) -> None:
    assert audit.sheet.is_file()
    path = tmp_path / name
    path.write_bytes(data)
    message = refused(run, path)
    assert said in message or "cannot be read as CSV" in message or "it lacks" in message


@pytest.mark.timeout(60)  # a hang guard: whoever opens the pipe waits for ever
def test_only_regular_files_are_read(run: Path, audit: Audit, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.csv")
    assert "a FIFO, not a regular file" in refused(run, tmp_path / "pipe.csv")
    (tmp_path / "zero.csv").symlink_to("/dev/zero")
    assert "a device, not a regular file" in refused(run, tmp_path / "zero.csv")
    (tmp_path / "gone.xlsx").symlink_to(tmp_path / "nothing")
    assert "no such file" in refused(run, tmp_path / "gone.xlsx")
    (tmp_path / "link.xlsx").symlink_to(audit.sheet)
    assert read_audit(run, tmp_path / "link.xlsx").marked_cases == 0


def test_a_huge_file_is_refused(run: Path, audit: Audit, tmp_path: Path) -> None:
    path = tmp_path / "huge.csv"
    with path.open("wb") as file:
        file.truncate(10 << 30)  # a hole
    assert audit.sheet.is_file()
    assert bounded(lambda: refused(run, path)) == 0


def test_a_cell_in_the_last_corner(run: Path, audit: Audit) -> None:
    edit(audit, lambda page: page.cell(1_048_576, 16_384, "far"))
    edit(audit, put(CASE_MARK, 2, "right"))
    assert bounded(lambda: read_audit(run, audit.sheet)) == 0


# -- folders of others ----------------------------------------------------------------------------


def test_a_link_in_the_folder_is_not_written_through(run: Path, tmp_path: Path) -> None:
    target = tmp_path / "elsewhere"
    (run / "audit.xlsx").symlink_to(target)
    with pytest.raises(UsageError, match="already exists"):
        make_audit(run)
    assert not target.exists()


@pytest.mark.parametrize(
    "change",
    [
        lambda record: record.update(seed=1e999),
        lambda record: record.update(verdicts=5),
        lambda record: record.update(verdicts=[["7", 0, 1]]),
        lambda record: record.update(verdicts=[["7", 0, 1, "XX"]]),
        lambda record: record["verdicts"][0].__setitem__(3, "WA"),
        lambda record: record["verdicts"].pop(),
        lambda record: record.pop("population"),
    ],
)
def test_a_sample_that_was_edited(
    run: Path, audit: Audit, change: Callable[[dict[str, object]], object]
) -> None:
    path = run / "audits.jsonl"
    record = json.loads(path.read_text())
    change(record)
    path.write_text(json.dumps(record) + "\n")
    with pytest.raises(StoreError, match=r"the record of audit \w+ is broken"):
        read_audit(run, audit.sheet)


def test_a_sheet_that_cannot_be_written_is_named_and_leaves_nothing(run: Path) -> None:
    def write() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))
        with pytest.raises(JudgeError, match=r"audit\.csv: cannot be written: "):
            make_audit(run, out=run / "audit.csv")

    assert bounded(write) == 0
    assert not (run / "audit.csv").exists()
