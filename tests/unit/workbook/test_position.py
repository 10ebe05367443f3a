"""Positions: each irregularity of the published suites; no text causes a crash."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judge.errors import PositionError
from judge.workbook.address import MAX_COLUMN, MAX_ROW
from judge.workbook.position import Position, PositionPart, parse_position


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("A1", "A1"),
        ("A1:B9", "A1:B9"),
        ("'Sheet1'!A1:B9", "'Sheet1'!A1:B9"),
        ("Sheet1!A1:B9", "'Sheet1'!A1:B9"),
        ("'it''s'!C3", "'it''s'!C3"),
        ("'Sheet1'!A1,'Sheet2'!B2", "'Sheet1'!A1,'Sheet2'!B2"),
        ("'Hi!'!A1", "'Hi!'!A1"),
    ],
)
def test_regular_positions_need_no_notes(written: str, meant: str) -> None:
    position = parse_position(written)
    assert (str(position), position.notes) == (meant, ())


@pytest.mark.parametrize(
    ("written", "meant", "note"),
    [
        ("Sheet1'!A1:F14", "'Sheet1'!A1:F14", "closing quote without an opening"),
        ("'Sheet1!A1:F14", "'Sheet1'!A1:F14", "opening quote without a closing"),
        ("'Sheet1!'A1:F14", "'Sheet1'!A1:F14", "quotes around the range"),
        ("'Sheet2'!'B7:C22", "'Sheet2'!B7:C22", "quotes around the range"),
        ("'Sheet1'!A1:F14'", "'Sheet1'!A1:F14", "quotes around the range"),
        ("'A!'A1:G9,'B!'A1:G8'", "'A'!A1:G9,'B'!A1:G8", "quotes around the range"),
        ("A'!A1:C7,'B'!A1:C4", "'A'!A1:C7,'B'!A1:C4", "closing quote without an opening"),
        ("B12:B110, C12:C23", "B12:B110,C12:C23", "spaces around the range"),
        ("\u00a0'Sheet1'!C2:C3", "'Sheet1'!C2:C3", "spaces before the sheet"),
        ("Sheet1!A1\uff1aB9", "'Sheet1'!A1:B9", "full-width characters"),
        ("\u2018Sheet1\u2019!A1", "'Sheet1'!A1", "unusual quotes"),
        ("Sheet1!!A1:B9", "'Sheet1'!A1:B9", "a bang twice"),
        ("'Sheet1'!!A1:B9", "'Sheet1'!A1:B9", "a bang twice"),
        ("'Sheet1'\uff01A1:B9", "'Sheet1'!A1:B9", "full-width bang"),
        ("'Sheet1'!a1:b9", "'Sheet1'!A1:B9", "lower-case columns"),
        ("BD2:308", "BD2:BD308", "an end without a column"),
        ("A2:C", "A2:C", "an end without a row"),
        ("A:C9", "A1:C9", "a start without a row"),
        ("C9:A1", "A1:C9", "reverse order"),
        ("A1 : B9", "A1:B9", "spaces within the range"),
        ("'Sheet1'!D3,D10", "'Sheet1'!D3,'Sheet1'!D10", "names no sheet"),
        ("A1,\uff22\uff12", "A1,B2", "full-width characters"),
        ("'Name'!'Name!A1:G16'", "'Name'!A1:G16", "the sheet twice"),
        ("'Name'!'Name'!A1:G16", "'Name'!A1:G16", "the sheet twice"),
        ("'My Name'!my name!A1", "'My Name'!A1", "the sheet twice"),
        ("Name!Name!A1:B2", "'Name'!A1:B2", "the sheet twice"),
        ("'A'!'A!B2','B, c'!'B, c!C3'", "'A'!B2,'B, c'!C3", "the sheet twice"),
        ("Data, raw!A1:B2", "'Data, raw'!A1:B2", None),
        ("'b2b, sez, de'!A5:V10", "'b2b, sez, de'!A5:V10", None),
        ("$A$1:$B$9", "A1:B9", None),
        ("A:C", "A:C", None),
        ("5:9", "5:9", None),
        ("A1,", "A1", None),
    ],
)
def test_irregular_positions_are_read_as_they_were_meant(
    written: str, meant: str, note: str | None
) -> None:
    position = parse_position(written)
    assert str(position) == meant
    assert position.text == written
    if note is not None:
        assert any(note in each for each in position.notes), position.notes


@pytest.mark.parametrize(
    "written",
    [
        *("", " ", "'", "!", "A", "1", "Sheet1", "Sheet1!", "!A1", "A1:B2:C3", "A0", "A1:B0"),
        *("XFE1", "A1048577", "Sheet1!Q!", "A1;;B2x", ":", "A1:", ":B2", "\u0661", "A1" * 60_000),
    ],
)
def test_what_is_not_a_position_is_named(written: str) -> None:
    with pytest.raises(PositionError, match="answer position"):
        parse_position(written)


@pytest.mark.parametrize(
    ("written", "fault"),
    [
        ("", "cannot be read: it is blank"),
        ("A1,,B2", "at ',B2': there is a separator where a range should begin"),
        ("'A'!'B!A1'", "names two sheets, 'A' and 'B', for one range"),
        ("'Sheet1'!", "no cells follow the sheet 'Sheet1'"),
        ("!A1", "there is no sheet before the exclamation mark"),
        ("'Sheet1'A1", "there is no exclamation mark between the sheet and the cells"),
        ("A1:B2:C3", "'A1:B2:C3' has more than one colon"),
        ("A1:", "there is nothing after the colon of 'A1:'"),
        ("'S'!:B2", "there is nothing before the colon of ':B2'"),
        ("ABCD5", "there is no column ABCD; the last one is XFD"),
        ("A1:XFE2", "there is no column XFE"),
        ("A1:B0", "there is no row 0; rows go from 1 to 1,048,576"),
        ("'S'!B", "'B' is a column without a row; a whole column is B:B"),
        ("7", "'7' is a row without a column; a whole row is 7:7"),
        ("A:5", "'A:5' has a column on one side and a row on the other"),
        ("the total", "'the total' is not a range of cells"),
    ],
)
def test_an_unreadable_position_says_what_is_wrong_with_it(written: str, fault: str) -> None:
    with pytest.raises(PositionError) as raised:
        parse_position(written)
    assert fault in raised.value.message


def test_open_ends() -> None:
    columns, rows = parse_position("B:D").parts[0], parse_position("5:9").parts[0]
    assert (columns.min_row, columns.max_row) == (1, None)
    assert (columns.min_column, columns.max_column) == (2, 4)
    assert (rows.min_row, rows.max_row, rows.min_column, rows.max_column) == (5, 9, 1, None)


def test_the_answer_sheet_is_kept_without_its_quotes() -> None:
    assert parse_position("A1", answer_sheet="MAIN'").answer_sheet == "MAIN"
    assert parse_position("A1", answer_sheet="").answer_sheet is None
    assert parse_position("A1").answer_sheet is None


# -- properties -----------------------------------------------------------------------------------

_ROWS = st.integers(1, MAX_ROW)
_COLUMNS = st.integers(1, MAX_COLUMN)
_SHEETS = st.text(
    st.characters(blacklist_categories=["Cs", "Cc"], blacklist_characters="[]:*?/\\"), min_size=1
).filter(lambda name: not name.startswith("'") and not name.endswith("'"))


@st.composite
def parts(draw: st.DrawFn, sheet: str | None) -> PositionPart:
    rows = sorted([draw(_ROWS), draw(_ROWS)])
    columns = sorted([draw(_COLUMNS), draw(_COLUMNS)])
    shape = draw(st.sampled_from(["cells", "columns", "open columns", "rows"]))
    if shape == "cells":
        return PositionPart(sheet, rows[0], columns[0], rows[1], columns[1])
    if shape == "columns":
        return PositionPart(sheet, 1, columns[0], None, columns[1])
    if shape == "open columns":
        return PositionPart(sheet, rows[0], columns[0], None, columns[1])
    return PositionPart(sheet, rows[0], 1, rows[1], None)


@st.composite
def positions(draw: st.DrawFn) -> Position:
    if draw(st.booleans()):
        return Position("", tuple(draw(st.lists(parts(None), min_size=1, max_size=4))))
    sheets = draw(st.lists(_SHEETS, min_size=1, max_size=4))
    return Position("", tuple(draw(parts(sheet)) for sheet in sheets))


@pytest.mark.parametrize(
    ("written", "notes"),
    [
        ("A1;B2", ("'A1;B2' has ';' between ranges",)),
        ("A1\uff0cB2", ("'A1\uff0cB2' has '\uff0c' between ranges",)),
        ("A1,", ("'A1,' has a separator at the end",)),
        ("A1,B2", ()),
    ],
)
def test_unusual_separators_are_noted(written: str, notes: tuple[str, ...]) -> None:
    assert parse_position(written).notes == notes


@given(positions())
def test_a_position_printed_and_read_again_is_the_same(position: Position) -> None:
    assert parse_position(str(position)).parts == position.parts


@given(st.text())
def test_no_text_crashes_the_grammar(text: str) -> None:
    try:
        position = parse_position(text)
    except PositionError:
        return
    assert parse_position(str(position)).parts == position.parts


@given(
    st.lists(
        st.sampled_from(
            ["'", "!", ",", ":", "A", "B2", "1", " ", "Sheet1", "\u00a0", "\uff1a", "$"]
        ),
        max_size=14,
    ).map("".join)
)
def test_no_combination_of_position_parts_crashes_the_grammar(text: str) -> None:
    try:
        position = parse_position(text)
    except PositionError:
        return
    assert parse_position(str(position)).parts == position.parts
