"""Features of the input that the output lost; constants although a formula is requested."""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping
from dataclasses import replace

import openpyxl
import pytest
from openpyxl.chart import BarChart, Reference
from openpyxl.comments import Comment
from openpyxl.formatting.rule import Rule
from openpyxl.workbook.defined_name import DefinedName
from openpyxl.worksheet.datavalidation import DataValidation
from openpyxl.worksheet.table import Table

from judge.compare.cells.comparison import Comparison, DifferenceClass
from judge.compare.cells.computing import compare_files
from judge.compare.cells.requested_formula import words_for_formula
from judge.compare.cells.scope import Losses, find_losses
from judge.errors import UsageError, WorkbookError
from judge.formulas.shift import formula_shape
from judge.workbook.address import Window
from judge.workbook.cell import CellRange
from judge.workbook.features import covered_cells
from judge.workbook.reader import open_workbook
from tests.unit.compare.cells.packages import (
    Book,
    cell,
    in_namespaces,
    relations,
    sheet_data,
    simple,
    zipped,
)

NOWHERE: list[CellRange] = []
Change = Callable[[openpyxl.Workbook], None]


def losses(before: bytes, gold: bytes, output: bytes, answer: list[CellRange] = NOWHERE) -> Losses:
    first, second, third = map(open_workbook, (before, gold, output))
    return find_losses(first, second, third, answer)


def lost(before: bytes, gold: bytes, output: bytes) -> Mapping[str, int]:
    return losses(before, gold, output).counts


# -- what openpyxl can write -----------------------------------------------------------------------


def rich(*changes: Change) -> bytes:
    """A workbook with one feature of each kind, with changes."""
    book = openpyxl.Workbook()
    sheet = book.create_sheet("Data")
    book.remove(book.worksheets[0])
    for row in range(1, 9):
        sheet.append([f"n{row}" if row > 1 else "name", row if row > 1 else "amount", None])
    for row in range(2, 9):
        sheet.cell(row, 3, f"=B{row}*2")
    choice = DataValidation("list", formula1='"Open,Closed"')
    choice.add("D2:D8")
    sheet.add_data_validation(choice)
    sheet.conditional_formatting.add("B2:B8", Rule("cellIs", operator="greaterThan", formula=["3"]))
    sheet.merge_cells("F1:G2")
    sheet["A2"].comment = Comment("ask first", "me")
    sheet.add_table(Table(displayName="Orders", ref="A1:B8"))
    book.defined_names["Rate"] = DefinedName("Rate", attr_text="Data!$B$2")
    hidden = book.create_sheet("Lists")
    hidden.sheet_state = "hidden"
    chart = BarChart()
    chart.add_data(Reference(sheet, min_col=2, min_row=1, max_row=8), titles_from_data=True)
    sheet.add_chart(chart, "I1")
    for change in changes:
        change(book)
    saved = io.BytesIO()
    book.save(saved)
    return saved.getvalue()


BEFORE = rich()


def _without(attribute: str, empty: object) -> Change:
    return lambda book: setattr(book["Data"], attribute, empty)


def _validations(book: openpyxl.Workbook) -> None:
    book["Data"].data_validations.dataValidation = []


def _broken_validation(book: openpyxl.Workbook) -> None:
    _validations(book)
    choice = DataValidation("list", formula1="#REF!")
    choice.add("D2:D8")
    book["Data"].add_data_validation(choice)


def _shorter_validation(book: openpyxl.Workbook) -> None:
    _validations(book)
    choice = DataValidation("list", formula1='"Open,Closed"')
    choice.add("D2:D5")
    book["Data"].add_data_validation(choice)


def _formats(book: openpyxl.Workbook) -> None:
    book["Data"].conditional_formatting = type(book["Data"].conditional_formatting)()


def _merge(book: openpyxl.Workbook) -> None:
    book["Data"].unmerge_cells("F1:G2")


def _comment(book: openpyxl.Workbook) -> None:
    book["Data"]["A2"].comment = None


def _table(book: openpyxl.Workbook) -> None:
    del book["Data"].tables["Orders"]


def _name(book: openpyxl.Workbook) -> None:
    del book.defined_names["Rate"]


def _broken_name(book: openpyxl.Workbook) -> None:
    book.defined_names["Rate"] = DefinedName("Rate", attr_text="#REF!$B$2")


def _shown(book: openpyxl.Workbook) -> None:
    book["Lists"].sheet_state = "visible"


def _sheet(book: openpyxl.Workbook) -> None:
    del book["Lists"]


def _constants(book: openpyxl.Workbook) -> None:
    for row in (2, 3):
        book["Data"].cell(row, 3, row * 2)


def _blank(book: openpyxl.Workbook) -> None:
    book["Data"].cell(2, 3).value = None


CHANGES = {
    "data_validation": _validations,
    "conditional_format": _formats,
    "merged_cells": _merge,
    "comment": _comment,
    "table": _table,
    "name": _name,
    "hidden_sheet": _shown,
    "sheet": _sheet,
    "formula": _constants,
}


@pytest.mark.parametrize("kind", CHANGES)
def test_a_loss_counts_unless_the_gold_lost_it_too(kind: str) -> None:
    output = rich(CHANGES[kind])
    assert lost(BEFORE, BEFORE, output) == {kind: 1}
    assert lost(BEFORE, output, rich(CHANGES[kind], lambda book: book.create_sheet("x"))) == {}


def test_a_chart_that_is_lost_is_one_loss_and_its_series_are_none() -> None:
    output = rich(_without("_charts", []))
    found = losses(BEFORE, BEFORE, output)
    assert found.counts == {"chart": 1}
    assert str(found.losses[0]) == "Data: chart (bar)"


def _second_chart(book: openpyxl.Workbook) -> None:
    """Another chart of the same type, with two series and without a title."""
    chart = BarChart()
    sheet = book.worksheets[0]
    chart.add_data(Reference(sheet, min_col=2, max_col=3, min_row=2, max_row=4))
    sheet.add_chart(chart, "K20")


def _a_series_less(book: openpyxl.Workbook) -> None:
    for chart in getattr(book["Data"], "_charts"):  # noqa: B009  the stubs do not have it
        chart.series = []


def test_parts_of_the_charts_that_stay_are_losses_of_their_own() -> None:
    both = rich(_second_chart)
    assert lost(BEFORE, BEFORE, rich(_a_series_less)) == {"chart_part": 1}
    assert lost(both, both, BEFORE) == {"chart": 1}
    assert lost(both, both, rich(_without("_charts", []))) == {"chart": 1}
    assert lost(both, both, rich(_a_series_less)) == {"chart": 1, "chart_part": 1}


def test_part_of_a_validation_is_a_loss_of_its_cells() -> None:
    (found,) = losses(BEFORE, BEFORE, rich(_shorter_validation)).losses
    assert (found.kept, found.left) == (7, 4)
    assert str(found) == 'Data!D2:D8: data validation list "Open,Closed" (4 of 7 left)'


@pytest.mark.parametrize(
    ("change", "kind"), [(_broken_name, "name"), (_broken_validation, "data_validation")]
)
def test_what_refers_to_nothing_is_lost_and_cannot_be_lost(change: Change, kind: str) -> None:
    broken = rich(change)
    assert lost(BEFORE, BEFORE, broken) == {kind: 1}
    assert lost(broken, broken, rich(CHANGES[kind])) == {}


def test_formulas_that_became_constants_and_formulas_that_are_gone() -> None:
    (found,) = losses(BEFORE, BEFORE, rich(_constants)).losses
    assert str(found) == "Data!C2: formulas are constants, such as =B2*2 (5 of 7 left)"
    (found,) = losses(BEFORE, BEFORE, rich(_blank)).losses
    assert found.label == "formulas are gone, such as =B2*2"


def _renamed(book: openpyxl.Workbook) -> None:
    book["Data"].title = "Renamed"


def _rows_inserted(book: openpyxl.Workbook) -> None:
    """As in Excel: everything below moves, including rules and merged cells."""
    sheet = book["Data"]
    for row in range(8, 1, -1):
        sheet.cell(row + 2, 3, f"=B{row + 2}*2")
    sheet.cell(2, 3).value = sheet.cell(3, 3).value = None
    _validations(book)
    choice = DataValidation("list", formula1='"Open,Closed"')
    choice.add("D4:D10")
    sheet.add_data_validation(choice)
    _merge(book)
    sheet.merge_cells("F3:G4")


@pytest.mark.parametrize("change", [_rows_inserted, _renamed])
def test_what_the_gold_moved_is_not_lost(change: Change) -> None:
    assert lost(BEFORE, rich(change), BEFORE) == {}


def test_what_the_output_moved_is_not_lost() -> None:
    assert lost(BEFORE, BEFORE, rich(_rows_inserted)) == {}


def test_a_sheet_that_is_gone_is_one_loss_and_not_one_for_everything_on_it() -> None:
    found = losses(BEFORE, BEFORE, rich(_renamed))
    assert str(found.losses[0]) == "sheet 'Data' is gone"
    assert found.counts == {"sheet": 1}


def test_a_hidden_sheet_that_shows_is_reported_in_words() -> None:
    (found,) = losses(BEFORE, BEFORE, rich(_shown)).losses
    assert str(found) == "sheet 'Lists' is visible"


# -- what openpyxl drops ---------------------------------------------------------------------------

X14 = "http://schemas.microsoft.com/office/spreadsheetml/2009/9/main"
XM = "http://schemas.microsoft.com/office/excel/2006/main"
DRAWING = "http://schemas.openxmlformats.org/drawingml/2006/spreadsheetDrawing"

COMPATIBILITY = "http://schemas.openxmlformats.org/markup-compatibility/2006"

EXTENDED = (
    f'<extLst><ext xmlns:x14="{X14}" xmlns:xm="{XM}">'
    "<x14:conditionalFormattings><x14:conditionalFormatting>"
    '<x14:cfRule type="expression" priority="1"><xm:f>Lists!$A$1&gt;1</xm:f></x14:cfRule>'
    "<xm:sqref>B1:B4</xm:sqref></x14:conditionalFormatting>"
    '<x14:conditionalFormatting><x14:cfRule type="dataBar" id="{BAR}"/>'
    "<xm:sqref>C1:C4</xm:sqref></x14:conditionalFormatting></x14:conditionalFormattings>"
    '<x14:dataValidations count="1"><x14:dataValidation type="list"><x14:formula1>'
    "<xm:f>Lists!$A$1:$A$3</xm:f></x14:formula1><xm:sqref>A1:A4 A6</xm:sqref>"
    "</x14:dataValidation></x14:dataValidations>"
    "<x14:sparklineGroups><x14:sparklineGroup><x14:sparklines><x14:sparkline>"
    "<xm:f>Data!A1:C1</xm:f><xm:sqref>D1</xm:sqref></x14:sparkline></x14:sparklines>"
    "</x14:sparklineGroup></x14:sparklineGroups></ext></extLst>"
)
BAR = (
    '<conditionalFormatting sqref="C1:C4"><cfRule type="dataBar" priority="2"><dataBar/>'
    f'<extLst><ext xmlns:x14="{X14}"><x14:id>{{BAR}}</x14:id></ext></extLst></cfRule>'
    "</conditionalFormatting>"
)
DRAWN = (
    f'<xdr:wsDr xmlns:xdr="{DRAWING}" xmlns:mc="{COMPATIBILITY}"><xdr:twoCellAnchor><xdr:pic/>'
    "</xdr:twoCellAnchor><xdr:twoCellAnchor><mc:AlternateContent><mc:Choice><xdr:sp/></mc:Choice>"
    "<mc:Fallback><xdr:sp/></mc:Fallback></mc:AlternateContent></xdr:twoCellAnchor></xdr:wsDr>"
)
PARTS: dict[str, str | bytes] = {
    "xl/worksheets/_rels/sheet1.xml.rels": relations(
        ("rId1", "drawing", "../drawings/drawing1.xml"),
        ("rId2", "pivotTable", "../pivotTables/pivotTable1.xml"),
        ("rId3", "comments", "../comments1.xml"),
    ),
    "xl/drawings/drawing1.xml": DRAWN,
    "xl/pivotTables/pivotTable1.xml": in_namespaces('<pivotTableDefinition name="Totals"/>'),
    "xl/comments1.xml": in_namespaces(
        '<comments><comment ref="A1"><text><t>Hi</t></text></comment></comments>'
    ),
}
BOLD = "<r><t>Due </t></r><r><rPr><b/></rPr><t>today</t></r>"
BOOK = Book(
    {
        "Data": sheet_data(cell("A1", 1), cell("A2", 0, kind="s")) + BAR + EXTENDED,
        "Lists": sheet_data(),
    },
    shared=[BOLD, "<r><rPr><b/></rPr><t>all of it</t></r>"],
    parts=PARTS,
)
PLAIN = Book({"Data": sheet_data(cell("A1", 1)) + BAR, "Lists": sheet_data()})


def test_rules_of_the_extension_part_drawings_pivots_and_rich_text() -> None:
    found = losses(BOOK.to_bytes(), BOOK.to_bytes(), PLAIN.to_bytes())
    assert found.counts == {
        "data_validation": 1,
        "conditional_format": 1,
        "sparkline": 1,
        "picture": 1,
        "shape": 1,
        "pivot_table": 1,
        "comment": 1,
        "rich_text": 1,
    }
    told = {each.kind: str(each) for each in found.losses}
    assert told["data_validation"] == (
        "Data!A1:A4: data validation list Lists!$A$1:$A$3 (0 of 5 left)"
    )
    assert told["rich_text"] == "formats of parts of the text 'Due today'"


def test_macros_are_kept_or_lost() -> None:
    links = "xl/_rels/workbook.xml.rels"
    project = (
        b'<Relationship Id="rIdV" Target="vbaProject.bin" Type="http://schemas.microsoft.com/'
        b'office/2006/relationships/vbaProject"/></Relationships>'
    )
    parts = PLAIN.all_parts()
    parts |= {links: parts[links].replace(b"</Relationships>", project), "xl/vbaProject.bin": b"x"}
    macros = zipped(parts)
    assert losses(macros, macros, PLAIN.to_bytes()).counts == {"macros": 1}
    assert losses(macros, PLAIN.to_bytes(), PLAIN.to_bytes()).counts == {}
    assert losses(macros, macros, zipped(parts | {"docProps/x.xml": b"<x/>"})).counts == {}


def test_a_rule_that_left_the_extension_part_is_the_same_rule() -> None:
    inside = EXTENDED[EXTENDED.index("<x14:dataValidations") : EXTENDED.index("<x14:sparkline")]
    old = Book(
        {
            "Data": sheet_data()
            + f"<extLst><ext>{inside}</ext></extLst>".replace(
                "<ext>", f'<ext xmlns:x14="{X14}" xmlns:xm="{XM}">'
            )
        }
    )
    new = Book(
        {
            "Data": sheet_data()
            + (
                '<dataValidations><dataValidation type="list" sqref="A6 A1:A4">'
                "<formula1>Lists!$A$1:$A$3</formula1></dataValidation></dataValidations>"
            )
        }
    )
    assert lost(old.to_bytes(), old.to_bytes(), new.to_bytes()) == {}
    assert lost(new.to_bytes(), new.to_bytes(), old.to_bytes()) == {}


def test_a_worksheet_that_cannot_be_skipped_through_holds_the_same() -> None:
    parsed = replace(BOOK, sheets={**BOOK.sheets, "Data": "<!-- -->" + BOOK.sheets["Data"]})
    assert lost(BOOK.to_bytes(), BOOK.to_bytes(), parsed.to_bytes()) == {}


def test_shared_and_plain_formulas_are_the_same_and_arrays_fill_their_cells() -> None:
    plain = [cell(f"A{row}", row, formula=f"B{row}+1") for row in (1, 2)]
    shared = [
        '<c r="A1"><f t="shared" ref="A1:A2" si="0">B1+1</f><v>1</v></c>',
        '<c r="A2"><f t="shared" si="0"/><v>2</v></c>',
    ]
    array = ['<c r="A1"><f t="array" ref="A1:A2">B1:B2+1</f><v>1</v></c>', cell("A2", 2)]
    before, gold, output = (
        Book({"S": sheet_data(*cells)}).to_bytes() for cells in (plain, shared, array)
    )
    assert lost(before, gold, output) == {}
    constants = Book({"S": sheet_data(cell("A1", 1), cell("A2", 2))}).to_bytes()
    assert lost(before, gold, constants) == {"formula": 1}


def test_formulas_of_the_kind_that_the_gold_adds_to_the_answer_are_the_answer() -> None:
    some = Book({"S": sheet_data(cell("A1", 1, formula="B1+1"), cell("C1", 1, formula="B1*2"))})
    all_of_them = Book(
        {
            "S": sheet_data(
                cell("A1", 1, formula="B1+1"),
                cell("C1", 1, formula="B1*2"),
                cell("A2", 1, formula="B2+1"),
            )
        }
    )
    constants = Book({"S": sheet_data(cell("A1", 1), cell("A2", 1), cell("C1", 1))})
    files = (some.to_bytes(), all_of_them.to_bytes(), constants.to_bytes())
    found = losses(*files, [CellRange("S", 1, 1, 9, 3)])
    assert [each.place for each in found.losses] == ["C1"]


def test_the_lost_comment_is_named_and_not_an_equal_one() -> None:
    def twin(book: openpyxl.Workbook) -> None:
        book["Data"]["A5"].comment = Comment("ask first", "me")

    def without_second(book: openpyxl.Workbook) -> None:
        twin(book)
        book["Data"]["A5"].comment = None

    both = rich(twin)
    for output, place in ((rich(without_second), "A5"), (rich(twin, _comment), "A2")):
        (loss,) = losses(both, both + b"", output).losses
        assert (loss.kind, loss.place, loss.kept, loss.left) == ("comment", place, 2, 1)


def test_covered_cells_count_once() -> None:
    assert covered_cells([Window(1, 1, 4, 1), Window(3, 1, 6, 2), Window(1, 1, 4, 1)]) == 10
    assert covered_cells([Window(1, 1, 1_048_576, 16_384)]) == 1_048_576 * 16_384
    rows = [Window(row, 1, row + 1, 1) for row in range(1, 300)]
    assert covered_cells(rows) == 598  # too many to be exact


@pytest.mark.parametrize(
    ("formula", "shape"),
    [
        ("=SUM($A$1:A9) ", "=SUM(#)"),
        ("=sum(B2)", "=SUM(#)"),
        ("='My sheet'!A1&\" a1 \"", '=#&" a1 "'),
        ("=VLOOKUP(A1,Lists!B:C,2,0)", "=VLOOKUP(#,#,2,0)"),
        ("=LOG10(5)+#REF!", "=LOG10(5)+#REF!"),
    ],
)
def test_the_shape_of_a_formula_has_no_addresses(formula: str, shape: str) -> None:
    assert formula_shape(formula) == shape


# -- in a comparison -------------------------------------------------------------------------------


def compared(output: bytes, before: bytes | None = BEFORE, **options: object) -> Comparison:
    return compare_files(BEFORE, output, "'Data'!A1:B8", before=before, options=options)


def test_a_note_leaves_the_verdict_and_fail_does_not() -> None:
    output = rich(_validations, _comment)
    assert compared(output).equal
    noted = compared(output, keep="note")
    assert noted.equal
    assert "lost: Data!A2: comment 'ask first'" in noted.notes
    assert noted.difference_counts == {}
    failed = compared(output, keep="fail")
    assert not failed.equal
    assert failed.difference_counts == {DifferenceClass.LOST: 2}
    assert failed.differing_cells == 0


def test_without_the_input_nothing_is_known() -> None:
    found = compared(rich(_comment), before=None, keep="fail")
    assert found.equal
    assert (
        "what the input had was not compared with the output: that requires the input"
        in found.notes
    )


@pytest.mark.parametrize(
    "broken",
    [
        {"xl/drawings/drawing1.xml": "<xdr:wsDr"},
        {"xl/comments1.xml": "<!DOCTYPE a [<!ENTITY b 'c'>]><comments>&b;</comments>"},
        {"xl/pivotTables/pivotTable1.xml": "<a>" * 300},
    ],
)
def test_a_hostile_part_is_a_note_or_a_fault_of_its_workbook(broken: dict[str, str]) -> None:
    before = BOOK.to_bytes()
    output = replace(BOOK, parts={**PARTS, **broken}).to_bytes()

    def judged(mode: str) -> Comparison:
        return compare_files(before, output, "'Data'!A1", before=before, options={"keep": mode})

    noted = judged("note")
    assert noted.equal
    assert noted.scope is not None
    assert "keep" in noted.scope.problems
    with pytest.raises(WorkbookError) as raised:
        judged("fail")
    assert raised.value.culprit is not None


def test_unknown_choices_are_refused() -> None:
    with pytest.raises(UsageError, match="option keep: expected off, note, fail, found true"):
        compared(BEFORE, keep=True)


# -- formulas that are asked for -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("question", "words"),
    [
        ("I need a formula that sums column A.", "formula"),
        ("What FORMULAE would do this?", "FORMULAE"),
        ("How do I use the SUMIFS function in Excel?", "use the SUMIFS function"),
        ("Can VLOOKUP return the second match?", "VLOOKUP"),
        ("Can I do it without formulas? Then a formula.", "formula"),
        ("Fill the column without using any formula.", ""),
        ("Give me values instead of a formula.", ""),
        ("I need a macro or a formula.", ""),
        ("Sum column A into B1.", ""),
        ("I want the sheet to function correctly.", ""),
        ("x" * 30_000 + " formula", ""),
    ],
)
def test_words_that_ask_for_a_formula(question: str, words: str) -> None:
    assert words_for_formula(question) == words


FORMULA = Book({"S": sheet_data(cell("A1", 1), cell("B1", 2, formula="A1*2"))}).to_bytes()
ARRAY = Book(
    {"S": sheet_data(cell("A1", 1), '<c r="B1"><f t="array" ref="B1">A1+A1</f><v>2</v></c>')}
).to_bytes()
BESIDE = Book({"S": sheet_data(cell("A1", 1, formula="0+1"), cell("B1", 2))}).to_bytes()
CONSTANT = simple({"A1": 1, "B1": 2}, sheet="S")
INPUT = simple({"A1": 1}, sheet="S")


@pytest.mark.parametrize(
    ("gold", "output", "before", "accepted"),
    [
        (FORMULA, CONSTANT, INPUT, False),
        (FORMULA, ARRAY, INPUT, True),
        (CONSTANT, CONSTANT, INPUT, True),
        (FORMULA, CONSTANT, FORMULA, True),  # the input has the formula, so nobody asked for it
        (FORMULA, CONSTANT, None, False),
        (FORMULA, BESIDE, INPUT, True),
        (FORMULA, BESIDE, BESIDE, False),
    ],
)
def test_constants_for_a_formula(
    gold: bytes, output: bytes, before: bytes | None, *, accepted: bool
) -> None:
    def judged(mode: str) -> Comparison:
        return compare_files(gold, output, "B1", before=before, options={"formula_asked": mode})

    assert judged("fail").equal is accepted
    noted = judged("note")
    assert noted.equal
    said = "the gold has 1 in the answer; the output has constants"
    assert (said in noted.notes) is not accepted
