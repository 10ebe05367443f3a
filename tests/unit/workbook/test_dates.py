"""Dates, number formats and shared formulas, compared with openpyxl, whose rules they follow."""

from __future__ import annotations

import datetime as dt

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from openpyxl.formula.translate import Translator
from openpyxl.styles.numbers import BUILTIN_FORMATS as THEIRS
from openpyxl.styles.numbers import is_date_format as their_date
from openpyxl.styles.numbers import is_timedelta_format as their_elapsed
from openpyxl.utils import get_column_letter
from openpyxl.utils.datetime import MAC_EPOCH, WINDOWS_EPOCH, from_excel, from_ISO8601

from judge.formulas.shift import formula_shape, shift_formula
from judge.workbook.address import (
    MAX_COLUMN,
    MAX_ROW,
    Window,
    cell_key,
    cell_name,
    column_letters,
    column_number,
    parse_cell,
    parse_window,
)
from judge.workbook.number_formats import (
    BUILTIN_FORMATS,
    from_iso8601,
    from_serial,
    is_date_format,
    is_elapsed_format,
    to_serial,
)

SERIALS = st.one_of(
    st.floats(-100_000, 3_000_000), st.integers(-100_000, 3_000_000), st.floats(0, 61)
)


@given(SERIALS, st.booleans(), st.booleans())
def test_serials_are_the_dates_that_openpyxl_makes_of_them(
    serial: float, date_1904: bool, elapsed: bool
) -> None:
    epoch = MAC_EPOCH if date_1904 else WINDOWS_EPOCH
    try:
        expected = from_excel(serial, epoch, timedelta=elapsed)
    except (OverflowError, ValueError) as error:
        with pytest.raises(type(error)):
            from_serial(serial, date_1904=date_1904, elapsed=elapsed)
        return
    found = from_serial(serial, date_1904=date_1904, elapsed=elapsed)
    assert (type(found), found) == (type(expected), expected)


FORMATS = st.lists(
    st.sampled_from(
        [
            *'dmyhsDMYHS0#?.,/ -;_\\"@*()[]',
            *("[h]", "[hh]", "[mm]", "[ss]", "[H]", "[Red]", "[$-409]", "[>5]"),
            *("AM/PM", '"text"', "General", "\\d", "_d", "E+00", "\n"),
        ]
    ),
    max_size=12,
).map("".join)


@given(FORMATS)
def test_formats_are_dates_where_openpyxl_says_so(code: str) -> None:
    assert is_date_format(code) is their_date(code)
    assert is_elapsed_format(code) is their_elapsed(code)


def test_the_built_in_formats() -> None:
    assert THEIRS == BUILTIN_FORMATS


@given(
    st.one_of(
        st.datetimes(dt.datetime(1000, 1, 1)).map(  # noqa: DTZ001
            lambda each: each.isoformat(timespec="milliseconds")
        ),
        st.dates(dt.date(1000, 1, 1)).map(dt.date.isoformat),
        st.times().map(lambda each: each.isoformat(timespec="seconds")),
        st.sampled_from(["PT5H", "PT1H2M3.5S", "PT0S", "", "T", "2024-13-01", "25:00", "no"]),
    )
)
def test_texts_of_date_cells(text: str) -> None:
    try:
        expected = from_ISO8601(text)  # type: ignore[no-untyped-call]
    except ValueError:
        expected = None
    if expected is None:
        with pytest.raises(ValueError):
            from_iso8601(text)
        return
    found = from_iso8601(text)
    assert (type(found), found) == (type(expected), expected)


@given(st.integers(61, 2_900_000), st.integers(0, 86_399))
def test_a_date_and_its_serial(day: int, second: int) -> None:
    serial = day + second / 86_400
    value = from_serial(serial)
    assert to_serial(value) == pytest.approx(serial, abs=1e-8)


@pytest.mark.parametrize(
    ("value", "serial"),
    [
        (dt.date(1900, 3, 1), 61),
        (dt.datetime(1900, 1, 1), 1),  # noqa: DTZ001
        (dt.time(18), 0.75),
        (dt.timedelta(days=2, hours=12), 2.5),
    ],
)
def test_serials_of_other_kinds(
    value: dt.datetime | dt.date | dt.time | dt.timedelta, serial: float
) -> None:
    assert to_serial(value) == serial


# -- addresses ------------------------------------------------------------------------------------


@given(st.integers(1, MAX_COLUMN), st.integers(1, MAX_ROW))
def test_addresses_are_written_and_read(column: int, row: int) -> None:
    assert column_letters(column) == get_column_letter(column)
    assert column_number(column_letters(column).lower()) == column
    assert parse_cell(cell_name(row, column)) == (row, column)
    window = Window(row, column, MAX_ROW, MAX_COLUMN)
    assert parse_window(str(window)) == window


@given(st.tuples(st.integers(1, MAX_ROW), st.integers(1, MAX_COLUMN)), st.data())
def test_keys_sort_in_reading_order(first: tuple[int, int], data: st.DataObject) -> None:
    second = data.draw(st.tuples(st.integers(1, MAX_ROW), st.integers(1, MAX_COLUMN)))
    assert (cell_key(*first) < cell_key(*second)) is (first < second)


@pytest.mark.parametrize("text", ["", "A", "1", "A0", "A1:", "B2:A1", "A1:B2:C3", "Å1", "AAAA1"])
def test_what_is_not_a_range(text: str) -> None:
    assert parse_window(text) is None


# -- shared formulas ------------------------------------------------------------------------------

CELLS = st.builds(
    "{}{}{}{}".format,
    st.sampled_from(["", "$"]),
    st.sampled_from(["A", "C", "AB", "XFD", "b"]),
    st.sampled_from(["", "$"]),
    st.sampled_from(["1", "9", "77", "1048576"]),
)
OPERANDS = st.one_of(
    CELLS,
    st.builds("{}:{}".format, CELLS, CELLS),
    st.builds("{}!{}".format, st.sampled_from(["Sheet1", "'A 1'", "'it''s B2'"]), CELLS),
    st.sampled_from(["A:C", "$A:C", "3:5", "$3:5", '"A1 ""B2"""', "TRUE", "rate", "x_1", "1.5"]),
    st.builds("LOG10({})".format, CELLS),
    st.builds("SUM({},{})".format, CELLS, CELLS),
    st.builds("IF({}>1,{},{})".format, CELLS, CELLS, CELLS),
)
FORMULAS = st.lists(OPERANDS, min_size=1, max_size=4).map(lambda parts: "=" + "+".join(parts))


@given(FORMULAS, st.integers(0, 30), st.integers(0, 30))
def test_shared_formulas_move_as_openpyxl_moves_them(formula: str, rows: int, columns: int) -> None:
    found = shift_formula(formula, rows, columns)
    # Beyond the last row or column Excel shows an error, openpyxl counts on.
    assume("#REF!" not in found)
    expected = Translator(formula, "A1").translate_formula(row_delta=rows, col_delta=columns)
    assert found.upper() == expected.upper()


@pytest.mark.parametrize(
    ("formula", "rows", "columns", "moved"),
    [
        ("=A1", -1, 0, "=#REF!"),
        ("=A1", 0, -1, "=#REF!"),
        ("=XFD1048576", 1, 0, "=#REF!"),
        # Beyond the last column or row there are no references, but names.
        ("=YTD2020*A7", 1, 0, "=YTD2020*A8"),
        ("=YTD2020*A7", 0, 1, "=YTD2020*B7"),
        ("=XFE1+XFD1", 1, 0, "=XFE1+XFD2"),
        ("=A1048577+A1048575", 1, 0, "=A1048577+A1048576"),
        ("=SUM(A:XFE)+SUM(A:B)", 0, 1, "=SUM(A:XFE)+SUM(B:C)"),
        ("=SUM(1:1048577)+SUM(1:2)", 1, 0, "=SUM(1:1048577)+SUM(2:3)"),
        ("=SUM(A:A)", 0, -1, "=SUM(#REF!)"),
        ("=$A$1+A$1+$A1", 5, 5, "=$A$1+F$1+$A6"),
        ("=Table1[A1]*A1", 1, 0, "=Table1[A1]*A2"),
        ("=[1]Sheet1!A1", 1, 0, "=[1]Sheet1!A2"),
        ("=Sheet1:Sheet3!A1", 1, 1, "=Sheet1:Sheet3!B2"),
        ('="A1"&A1', 1, 0, '="A1"&A2'),
        ("=A1", 0, 0, "=A1"),
        ("=_xlfn.XLOOKUP(A1,B1:B9,C1:C9)", 1, 0, "=_xlfn.XLOOKUP(A2,B2:B10,C2:C10)"),
    ],
)
def test_formulas_that_move(formula: str, rows: int, columns: int, moved: str) -> None:
    assert shift_formula(formula, rows, columns) == moved


def test_a_name_that_looks_like_a_cell_stays_in_the_shape() -> None:
    assert formula_shape("=YTD2020*A7") == "=YTD2020*#"
    assert formula_shape("=YTD2020*A7") != formula_shape("=YTD2021*A7")
