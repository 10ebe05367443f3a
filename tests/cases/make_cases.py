"""Makes the golden cases of this folder: two workbooks and a ``case.yaml`` each.

    python -m tests.cases.make_cases

A folder's name ends in its verdict: ``_ac`` where ``standard`` accepts, ``_wa`` where it does not,
``_nc`` where a formula was not calculated, ``_iw`` where the output cannot be read. The files are
committed; a test makes them anew and holds them against what is committed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import yaml

from tests.unit.compare.cells.packages import Book, cell, relations, sheet_data

FOLDER = Path(__file__).resolve().parent


@dataclass(frozen=True)
class Case:
    """A golden case.

    Attributes:
        name: name of its folder, with the verdict at its end.
        why: what it is about, in a sentence.
        expected: the gold workbook.
        actual: the output workbook, or bytes that are none.
        at: the answer position.
        official: whether the published script accepts.
        others: profiles whose verdict is not that of ``standard``.
        answer_sheet: the sheet that the suite names beside the position.
        options: options of the checker.
        style: style attributes that are compared.
        differences: cells that differ under ``standard`` -> the class.
    """

    name: str
    why: str
    expected: Book
    actual: Book | bytes
    at: str = "A1:B3"
    official: bool = False
    others: dict[str, bool] = field(default_factory=dict)
    answer_sheet: str | None = None
    options: dict[str, object] = field(default_factory=dict)
    style: list[str] = field(default_factory=list)
    differences: dict[str, str] = field(default_factory=dict)

    def record(self) -> dict[str, object]:
        """The case as it is written to its YAML file."""
        found: dict[str, object] = {"why": self.why, "at": self.at, "official": self.official}
        for name in ("others", "answer_sheet", "options", "style", "differences"):
            if getattr(self, name):
                found[name] = getattr(self, name)
        return found


def book(tail: str = "", **cells: object) -> Book:
    """Makes a workbook with one sheet; a string that begins with ``<c`` is a cell's XML."""
    written = [
        value if isinstance(value, str) and value.startswith("<c ") else cell(reference, value)
        for reference, value in cells.items()
    ]
    return Book({"Sheet1": sheet_data(*written) + tail})


def date(reference: str, serial: float, style: int = 1) -> str:
    """Makes a cell with a date (style 1), a time (2) or elapsed hours (3)."""
    return f'<c r="{reference}" s="{style}"><v>{serial}</v></c>'


def error(reference: str, code: str) -> str:
    """Makes a cell with an error."""
    return f'<c r="{reference}" t="e"><v>{code}</v></c>'


def formula(reference: str, text: str, value: object = None) -> str:
    """Makes a formula cell, with or without a cached value."""
    return cell(reference, value, formula=text)


def values() -> Iterator[Case]:
    """Rules for values."""
    yield Case(
        "numbers_to_two_decimals_ac",
        "Numbers are compared to two decimals.",
        book(A1=1.234, A2=100),
        book(A1=1.2311, A2=100.001),
        official=True,
        others={"strict": False},
    )
    yield Case(
        "numbers_beyond_two_decimals_wa",
        "A difference in the second decimal counts.",
        book(A1=1.23),
        book(A1=1.24),
        others={"ssb2": True},
        differences={"A1": "wrong_value"},
    )
    yield Case(
        "rounding_on_a_boundary_ac",
        "5279.174999999999 and 5279.175 are the same sum, though they round apart.",
        book(A1=5279.174999999999),
        book(A1=5279.175),
    )
    yield Case(
        "long_identifiers_wa",
        "Sixteen digits that differ in the last one are two identifiers, not a rounding error.",
        book(A1="911313316543723"),
        book(A1="911313316543722"),
        others={"ssb2": True},
        differences={"A1": "wrong_value"},
    )
    yield Case(
        "number_as_text_ac",
        "The benchmark takes a text that spells a number for the number.",
        book(A1=5),
        book(A1=" 5.00 "),
        official=True,
        others={"strict": False},
    )
    yield Case(
        "underscores_in_a_number_wa",
        "Only Python reads 1_000 as a number; a spreadsheet does not.",
        book(A1=1000),
        book(A1="1_000"),
        official=True,
        differences={"A1": "type"},
    )
    yield Case(
        "text_nan_ac",
        "The text NaN is a text like any other, and equal to itself.",
        book(A1="NaN"),
        book(A1="NaN"),
    )
    yield Case(
        "blank_and_empty_text_ac",
        "A blank cell and an empty text are the same.",
        book(A1="", B1=1),
        book(B1=1),
        official=True,
    )
    yield Case(
        "blank_and_zero_wa",
        "A blank cell is not zero.",
        book(A1=0),
        book(B9=1),
        others={"ssb2": True},
        differences={"A1": "missing"},
    )
    yield Case(
        "blank_and_space_wa",
        "A space is not nothing.",
        book(B1=1),
        book(A1=" ", B1=1),
        differences={"A1": "extra"},
    )
    yield Case(
        "boolean_and_one_ac",
        "The benchmark takes TRUE for 1.",
        book(A1=1),
        book(A1=True),
        official=True,
        others={"strict": False},
    )
    yield Case(
        "case_of_text_wa",
        "Texts are compared exactly.",
        book(A1="Total"),
        book(A1="total"),
        differences={"A1": "wrong_value"},
    )
    yield Case(
        "error_for_a_number_wa",
        "An error where a number should be.",
        book(A1=5),
        book(A1=error("A1", "#DIV/0!")),
        differences={"A1": "error_value"},
    )
    yield Case(
        "error_and_its_text_ac",
        "An error and the text that shows the same are the same to the benchmark.",
        book(A1=error("A1", "#N/A")),
        book(A1="#N/A"),
        official=True,
        others={"strict": False},
    )
    yield Case(
        "not_meaningful_wa",
        "n/a for #N/A: the same in finance, two texts elsewhere.",
        book(A1=error("A1", "#N/A")),
        book(A1="n/a"),
        others={"ssb2": True},
        differences={"A1": "error_value"},
    )
    yield Case(
        "infinite_text_wa",
        "inf and infinity are texts.",
        book(A1="inf"),
        book(A1="infinity"),
        official=True,
        differences={"A1": "wrong_value"},
    )


def dates() -> Iterator[Case]:
    """Rules for dates and times."""
    yield Case(
        "date_and_its_serial_ac",
        "A date without its number format is still the date.",
        book(A1=date("A1", 45351)),
        book(A1=45351),
        official=True,
        others={"strict": False},
    )
    yield Case(
        "date_and_its_text_wa",
        "A date written as text is not a date.",
        book(A1=date("A1", 45351)),
        book(A1="2024-02-29"),
        differences={"A1": "type"},
    )
    yield Case(
        "same_day_other_hour_ac",
        "Dates count to the day; the script rounds to the nearest one and tells these apart.",
        book(A1=date("A1", 45351.4)),
        book(A1=date("A1", 45351.6)),
        others={"strict": False},
    )
    yield Case(
        "next_day_rounded_alike_wa",
        "An afternoon and the next morning, which the script rounds to the same day.",
        book(A1=date("A1", 45351.6)),
        book(A1=date("A1", 45352.4)),
        official=True,
        others={"ssb2": False},
        differences={"A1": "wrong_value"},
    )
    yield Case(
        "times_without_seconds_ac",
        "Times count to the minute.",
        book(A1=date("A1", 0.5, 2)),
        book(A1=date("A1", 0.5003472222222222, 2)),
        official=True,
        others={"strict": False},
    )
    yield Case(
        "time_with_milliseconds_ac",
        "Milliseconds hide the seconds from the script, which then compares them.",
        book(A1=date("A1", 0.5, 2)),
        book(A1=date("A1", 0.500000006, 2)),
    )
    yield Case(
        "elapsed_hours_ac",
        "Thirty hours are thirty hours.",
        book(A1=date("A1", 1.25, 3)),
        book(A1=date("A1", 1.25, 3)),
        official=True,
    )
    yield Case(
        "elapsed_hours_as_number_ac",
        "Thirty hours without their format store the same 1.25.",
        book(A1=date("A1", 1.25, 3)),
        book(A1=1.25),
        others={"strict": False, "ssb2": False},
    )


def places() -> Iterator[Case]:
    """Positions and sheets."""
    yield Case(
        "closing_quote_alone_ac",
        "A closing quote without an opening one.",
        book(A1=1),
        book(A1=1),
        at="Sheet1'!A1:B2",
        official=True,
    )
    yield Case(
        "spaces_after_the_comma_ac",
        "Spaces make the script fall over.",
        book(A1=1, B2=2),
        book(A1=1, B2=2),
        at="A1:A2, B1:B2",
    )
    yield Case(
        "part_without_a_sheet_wa",
        "A part that names no sheet belongs to the sheet before it, not to the first.",
        Book({"One": sheet_data(cell("A1", 1)), "Two": sheet_data(cell("A1", 1), cell("B1", 2))}),
        Book({"One": sheet_data(cell("A1", 1)), "Two": sheet_data(cell("A1", 1), cell("B1", 3))}),
        at="'Two'!A1,B1",
        official=True,
        differences={"B1": "wrong_value"},
    )
    yield Case(
        "answer_sheet_wa",
        "The suite names the sheet beside the position; the script looks at the first one.",
        Book({"One": sheet_data(cell("A1", 1)), "Two": sheet_data(cell("A1", 2))}),
        Book({"One": sheet_data(cell("A1", 1)), "Two": sheet_data(cell("A1", 3))}),
        at="A1",
        answer_sheet="Two",
        official=True,
        differences={"A1": "wrong_value"},
    )
    yield Case(
        "end_without_a_column_wa",
        "B1:3 holds no cell for the script, which accepts anything.",
        book(B1=1, B3=3),
        book(B1=1, B3=4),
        at="B1:3",
        official=True,
        differences={"B3": "wrong_value"},
    )
    yield Case(
        "whole_column_wa",
        "A whole column sees what stands below the gold.",
        book(A1=1),
        book(A1=1, A9=2),
        at="A:A",
        differences={"A9": "extra"},
    )
    yield Case(
        "lower_case_columns_ac",
        "Lower-case columns are columns; the script reads others.",
        book(A1=1, B2=2),
        book(A1=1, B2=2),
        at="a1:b2",
        official=True,
    )
    yield Case(
        "lower_case_columns_wa",
        "The script looks at other columns and finds no difference.",
        book(A1=1, B2=2),
        book(A1=1, B2=3),
        at="a1:b2",
        official=True,
        differences={"B2": "wrong_value"},
    )
    yield Case(
        "sheet_in_other_case_ac",
        "Excel does not tell SHEET1 from Sheet1.",
        book(A1=1),
        Book({"SHEET1": sheet_data(cell("A1", 1))}),
        at="'Sheet1'!A1",
    )
    yield Case(
        "missing_sheet_wa",
        "The sheet of the answer is not there.",
        book(A1=1),
        Book({"Answer": sheet_data(cell("A1", 1))}),
        at="'Sheet1'!A1",
        differences={"": "missing_sheet"},
    )


def formulas() -> Iterator[Case]:
    """Formulas, merged cells, hyperlinks, looks."""
    yield Case(
        "formula_with_its_value_ac",
        "A formula counts as the value that stands beside it.",
        book(A1=3),
        book(A1=formula("A1", "1+2", 3)),
        official=True,
    )
    yield Case(
        "formula_without_a_value_nc",
        "A formula that nothing has calculated is not a blank cell.",
        book(A1=3),
        book(A1=formula("A1", "1+2")),
        differences={"A1": "not_calculated"},
    )
    yield Case(
        "formula_for_a_blank_nc",
        "Nor is it where the gold is blank, though the script accepts that.",
        book(B1=1),
        book(A1=formula("A1", "1+2"), B1=1),
        official=True,
        differences={"A1": "not_calculated"},
    )
    yield Case(
        "formula_that_shows_nothing_ac",
        "A formula whose value is the empty text is blank.",
        book(B1=1),
        book(A1='<c r="A1" t="str"><f>""</f><v></v></c>', B1=1),
        official=True,
    )
    yield Case(
        "same_formula_on_both_sides_ac",
        "Neither has a value, but the same formula gives the same one.",
        book(A1=formula("A1", "B1*2"), B1=2),
        book(A1=formula("A1", "B1*2"), B1=2),
        official=True,
    )
    yield Case(
        "value_under_a_merged_range_wa",
        "Excel shows nothing of what stands under a merged range.",
        book(A1=1, B1=2),
        book('<mergeCells><mergeCell ref="A1:B1"/></mergeCells>', A1=1, B1=2),
        differences={"B1": "missing"},
    )
    link = '<hyperlinks><hyperlink ref="A1" r:id="rId1"/></hyperlinks>'
    target = {
        "xl/worksheets/_rels/sheet1.xml.rels": relations(
            ("rId1", "hyperlink", "https://example.org/")
        )
    }
    linked = Book({"Sheet1": sheet_data('<c r="A1"/>', cell("B1", 1)) + link}, parts=target)
    yield Case(
        "hyperlink_on_a_blank_cell_ac",
        "openpyxl puts a link's target into a blank cell; Excel shows a blank cell.",
        book(B1=1),
        linked,
    )
    yield Case(
        "fill_not_asked_for_ac",
        "Looks do not count unless they are asked for.",
        book(A1='<c r="A1" s="6"><v>1</v></c>'),
        book(A1=1),
        official=True,
    )
    yield Case(
        "fill_wa",
        "A red cell that is not red.",
        book(A1='<c r="A1" s="6"><v>1</v></c>'),
        book(A1=1),
        style=["fill"],
        official=True,
        differences={"A1": "style"},
    )
    rule = (
        '<conditionalFormatting sqref="A1:A2"><cfRule type="expression" dxfId="0" priority="1">'
        "<formula>$A1&gt;1</formula></cfRule></conditionalFormatting>"
    )
    yield Case(
        "conditional_fill_wa",
        "The colour that a conditional format gives is a colour.",
        book(rule, A1=1, A2=2),
        book(A1=1, A2=2),
        style=["fill"],
        official=True,
        differences={"A1": "style", "A2": "style"},
    )


def options() -> Iterator[Case]:
    """Options of the checker, and outputs that are not workbooks."""
    yield Case(
        "rows_in_another_order_ac",
        "Rows in any order, where the task says so.",
        book(A1="a", B1=1, A2="b", B2=2),
        book(A1="b", B1=2, A2="a", B2=1),
        options={"unordered_rows": True},
    )
    yield Case(
        "rows_in_another_order_wa",
        "Rows in another order, where the task does not say so.",
        book(A1="a", A2="b"),
        book(A1="b", A2="a"),
        differences={"A1": "wrong_value", "A2": "wrong_value"},
    )
    yield Case(
        "within_a_tolerance_ac",
        "A tolerance of the task's own.",
        book(A1=10),
        book(A1=10.4),
        options={"tolerance": 0.5},
    )
    yield Case(
        "ignored_cells_ac",
        "Cells that do not count.",
        book(A1=1, B1=2),
        book(A1=1, B1=3),
        options={"ignore": ["B1:B3"]},
    )
    yield Case(
        "not_a_workbook_iw",
        "An output that is a text file.",
        book(A1=1),
        b"A,B\n1,2\n",
    )
    yield Case(
        "entity_bomb_iw",
        "A document type is not read, whatever it holds.",
        book(A1=1),
        Book(
            {"Sheet1": ""},
            parts={
                "xl/worksheets/sheet1.xml": '<!DOCTYPE x [<!ENTITY a "1">]><worksheet '
                'xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"><sheetData/>'
                "</worksheet>"
            },
        ),
    )


def cases() -> list[Case]:
    """All golden cases."""
    return [*values(), *dates(), *places(), *formulas(), *options()]


def files(case: Case) -> dict[str, bytes]:
    """Returns the files of a case by name."""
    actual = case.actual if isinstance(case.actual, bytes) else case.actual.to_bytes()
    text = yaml.safe_dump(case.record(), sort_keys=False, allow_unicode=True, width=95)
    return {
        "case.yaml": text.encode(),
        "expected.xlsx": case.expected.to_bytes(),
        "actual.xlsx": actual,
    }


def main() -> None:
    """Writes the cases into this folder."""
    for case in cases():
        folder = FOLDER / case.name
        folder.mkdir(exist_ok=True)
        for name, data in files(case).items():
            (folder / name).write_bytes(data)


if __name__ == "__main__":
    main()
