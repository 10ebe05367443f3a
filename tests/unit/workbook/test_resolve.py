from __future__ import annotations

from collections.abc import Mapping

import pytest

from judge.errors import PositionError
from judge.workbook.address import Window
from judge.workbook.cell import CellRange
from judge.workbook.position import (
    ResolvedPosition,
    SheetIndex,
    match_sheet,
    parse_position,
    resolve_position,
)


def index(*names: str, used: Mapping[str, Window] | None = None) -> SheetIndex:
    return SheetIndex(names, (used or {}).get)


def resolve(
    position: str,
    gold: SheetIndex,
    output: SheetIndex | None = None,
    answer_sheet: str | None = None,
) -> ResolvedPosition:
    return resolve_position(parse_position(position, answer_sheet=answer_sheet), gold, output)


@pytest.mark.parametrize(
    ("meant", "names", "found"),
    [
        ("Sheet1", ["Sheet1", "sheet1"], "Sheet1"),
        ("SHEET1", ["Sheet1", "Sheet2"], "Sheet1"),
        ("Sheet 1", ["Sheet1"], "Sheet1"),
        ("Report", ["Report of the year", "Data"], "Report of the year"),
        ("Report", ["Report A", "Report B"], None),
        ("sheet1", ["Sheet1", "SHEET1"], None),
        ("", ["Sheet1"], None),
        ("None", ["Sheet1"], None),
    ],
)
def test_sheets_are_matched_exactly_then_loosely_then_by_prefix(
    meant: str, names: list[str], found: str | None
) -> None:
    assert match_sheet(meant, names) == found


def test_a_loose_match_is_noted() -> None:
    resolved = resolve("'SHEET1'!A1", index("Sheet1"))
    assert resolved.gold_ranges == (CellRange("Sheet1", 1, 1, 1, 1),)
    assert resolved.notes == ("sheet 'SHEET1' was read as 'Sheet1'",)


def test_a_position_without_a_sheet_takes_the_answer_sheet() -> None:
    resolved = resolve("A1", index("First", "Second"), answer_sheet="Second")
    assert resolved.gold_ranges[0].sheet == "Second"
    assert "answer sheet" in resolved.notes[0]


def test_a_position_without_any_sheet_takes_the_first_one() -> None:
    resolved = resolve("A1", index("First", "Second"))
    assert resolved.gold_ranges[0].sheet == "First"
    assert "no sheet is named" in resolved.notes[0]
    assert resolve("A1", index("Only")).notes == ()


def test_an_answer_sheet_that_lists_several_is_ignored() -> None:
    assert (
        resolve("A1", index("First", "B"), answer_sheet="'A','B'").gold_ranges[0].sheet == "First"
    )


def test_a_misnamed_sheet_may_be_the_answer_sheet() -> None:
    assert resolve("'X'!A1", index("A", "B"), answer_sheet="B").gold_ranges[0].sheet == "B"


def test_a_sheet_that_the_gold_lacks_is_named_with_those_it_has() -> None:
    with pytest.raises(PositionError, match=r"'Sheet9'.*'A', 'B'"):
        resolve("'Sheet9'!A1", index("A", "B"))


def test_the_only_sheet_is_meant_whatever_it_is_called() -> None:
    resolved = resolve("'Sheet9'!A1,B2", index("Data"))
    assert [each.sheet for each in resolved.gold_ranges] == ["Data", "Data"]
    assert resolved.notes == (
        "no sheet is called 'Sheet9'; the only one, 'Data', was used instead",
    )


def test_the_only_sheet_cannot_be_two() -> None:
    with pytest.raises(PositionError, match=r"'Sheet8'.*'Data'"):
        resolve("'Sheet8'!A1,'Sheet9'!A1", index("Data"))


def test_the_output_may_lack_the_sheet_or_spell_it_differently() -> None:
    gold = index("Result")
    assert resolve("'Result'!A1", gold, index("Other")).output_ranges == (None,)
    assert resolve("'Result'!A1", gold, index("Result of all")).output_ranges == (None,)
    (found,) = resolve("'Result'!A1", gold, index("RESULT")).output_ranges
    assert found is not None
    assert found.sheet == "RESULT"


def test_open_ends_are_bounded_by_gold_and_output_together() -> None:
    gold = index("S", used={"S": Window(2, 2, 10, 4)})
    output = index("S", used={"S": Window(1, 1, 15, 9)})
    assert resolve("B:C", gold, output).gold_ranges == (CellRange("S", 1, 2, 15, 3),)
    assert resolve("5:6", gold, output).gold_ranges == (CellRange("S", 5, 1, 6, 9),)
    assert resolve("B:C", gold).gold_ranges == (CellRange("S", 1, 2, 10, 3),)
    assert resolve("B20:C", gold, output).gold_ranges == (CellRange("S", 20, 2, 20, 3),)
    assert resolve("B:C", index("S"), index("S")).gold_ranges == (CellRange("S", 1, 2, 1, 3),)


def test_the_output_alone_bounds_the_range_if_the_gold_is_blank() -> None:
    output = index("S", used={"S": Window(1, 1, 3, 3)})
    assert resolve("A:A", index("S"), output).output_ranges == (CellRange("S", 1, 1, 3, 1),)
