"""Writing other cached values into the same workbook."""

from __future__ import annotations

import datetime as dt
import io
import zipfile
from pathlib import Path

import pytest

from judge.errors import WorkbookError
from judge.recalc.rewrite import with_values, without_values
from judge.workbook.cell import CellRange, CellRef, CellValue, ErrorValue
from judge.workbook.reader import open_workbook, sheet_formulas
from tests.unit.recalc.fakes import ALL, SHEET, package, ref

WHEN = dt.datetime(2021, 6, 1, 12)  # noqa: DTZ001 - spreadsheet dates have no zone

VALUES: list[CellValue] = [
    1,
    0.1 + 0.2,
    -1e300,
    True,
    False,
    'a <"text"> & more\nlines',
    " spaces ",
    "",
    ErrorValue("#N/A"),
    "bell\x07",
]


def test_written_values_are_read_unchanged() -> None:
    data = package({f"A{row}": "=B1" for row in range(1, len(VALUES) + 1)} | {"B1": "x"})
    copy = with_values(data, {ref(row): value for row, value in enumerate(VALUES, 1)})
    cells = open_workbook(copy).cells(ALL)
    found = [cells[row, 1].value for row in range(1, len(VALUES) + 1)]
    assert found[:7] == VALUES[:7]
    assert [type(value) for value in found[:7]] == [type(value) for value in VALUES[:7]]
    assert found[7] in {None, ""}
    assert found[8:] == [ErrorValue("#N/A"), "bell"]
    assert all(cells[row, 1].formula == "=B1" for row in range(1, len(VALUES) + 1))
    assert all(cells[row, 1].has_cached_value for row in range(1, len(VALUES) + 1))


@pytest.mark.parametrize("date_1904", [False, True])
def test_dates_are_written_as_serials_of_the_workbook(date_1904: bool) -> None:
    data = package({"A1": "=B1"}, A1="yyyy-mm-dd hh:mm")
    if date_1904:
        data = _edited(data, "xl/workbook.xml", b"<workbookPr", b'<workbookPr date1904="1"')
    copy = open_workbook(with_values(data, {ref(1): WHEN}, date_1904=date_1904))
    assert copy.facts.date_1904 is date_1904
    assert copy.cells(ALL)[1, 1].value == WHEN


def test_everything_else_is_the_same_byte_for_byte() -> None:
    data = package({"A1": "=B1", "B1": "text", "C1": ("C1:C2", "=A1:A2")})
    copy = with_values(data, {ref(1): 5})
    before, after = zipfile.ZipFile(io.BytesIO(data)), zipfile.ZipFile(io.BytesIO(copy))
    assert before.namelist() == after.namelist()
    changed = [name for name in before.namelist() if before.read(name) != after.read(name)]
    assert changed == ["xl/worksheets/sheet1.xml"]
    old, new = before.read(changed[0]), after.read(changed[0])
    assert new.replace(b"<v>5</v>", b"<v/>").replace(b"<v />", b"<v/>") == old.replace(
        b"<v />", b"<v/>"
    )


def test_cells_without_addresses_are_counted() -> None:
    data = _edited(
        package({"A1": "=1", "B1": "=2", "A2": "=3"}),
        "xl/worksheets/sheet1.xml",
        *(b' r="A1"', b"", b' r="B1"', b"", b' r="A2"', b"", b'<row r="2"', b"<row"),
    )
    copy = with_values(data, {ref(1, 2): 7, ref(2): 8})
    cells = open_workbook(copy).cells(ALL)
    assert (cells[1, 2].value, cells[2, 1].value) == (7, 8)
    assert not cells[1, 1].has_cached_value


def test_values_are_taken_out() -> None:
    data = with_values(package({"A1": "=1", "A2": 5, "A3": "=3"}), {ref(1): 1, ref(3): "x"})
    cells = open_workbook(without_values(data)).cells(ALL)
    assert not cells[1, 1].has_cached_value
    assert not cells[3, 1].has_cached_value
    assert cells[2, 1].value == 5


def test_a_missing_sheet_to_rewrite() -> None:
    with pytest.raises(WorkbookError, match="no worksheet 'Other'"):
        with_values(package({"A1": 1}), {CellRef("Other", 1, 1): 1})


@pytest.mark.data
def test_real_workbooks_keep_their_formulas_and_constants(judge_data: Path) -> None:
    suite = judge_data / "spreadsheetbench_912_dev300" / "spreadsheet"
    golds = sorted(suite.glob("*/1_*_answer.xlsx"))[::25]
    assert golds
    seen = 0
    for path in golds:
        book = open_workbook(path)
        stripped = without_values(book.data)
        bare = open_workbook(stripped)
        values: dict[CellRef, CellValue] = {}
        for sheet in book.sheet_names:
            was, now = sheet_formulas(book, sheet), sheet_formulas(bare, sheet)
            assert [cell.formula for cell in was] == [cell.formula for cell in now]
            assert not any(cell.has_cached_value for cell in now)
            values |= {CellRef(sheet, cell.row, cell.column): cell.value for cell in was}
        seen += len(values)
        full = open_workbook(with_values(stripped, values, date_1904=book.facts.date_1904))
        for place, value in values.items():
            area = CellRange(place.sheet, place.row, place.column, place.row, place.column)
            found = full.cells(area)[place.row, place.column].value
            assert found == value or (found in {None, ""} and value in {None, ""})
    assert seen > 300


def _edited(data: bytes, part: str, *replacements: bytes) -> bytes:
    source, target = zipfile.ZipFile(io.BytesIO(data)), io.BytesIO()
    with zipfile.ZipFile(target, "w") as copy:
        for name in source.namelist():
            content = source.read(name)
            if name == part:
                for old, new in zip(replacements[::2], replacements[1::2], strict=True):
                    assert old in content
                    content = content.replace(old, new, 1)
            copy.writestr(name, content)
    return target.getvalue()


def test_the_sheet_of_the_fakes_is_the_one_meant() -> None:
    assert open_workbook(package({"A1": 1})).sheet_names == (SHEET,)
