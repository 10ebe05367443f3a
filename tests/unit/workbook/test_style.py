from __future__ import annotations

import contextlib
import re

import pytest

from judge.compare.cells.comparison import Comparison, DifferenceClass
from judge.compare.cells.computing import compare_files
from judge.errors import UsageError, WorkbookError
from judge.workbook.cell import STYLE_ATTRIBUTES
from judge.workbook.reader import open_workbook
from judge.workbook.styles.style_sheet import (
    Fill,
    Palette,
    canonical_number_format,
    colours_agree,
    resolve_colour,
)
from tests.unit.compare.cells.packages import STYLES, Book, cell, relations, sheet_data

PALETTE = Palette()


@pytest.mark.parametrize(
    ("attributes", "colour"),
    [
        ({"rgb": "FFFF0000"}, "FF0000"),
        ({"rgb": "00ff00"}, "00FF00"),
        ({"rgb": "nonsense"}, None),
        ({"theme": "0"}, "FFFFFF"),
        ({"theme": "1"}, "000000"),
        ({"theme": "4"}, "4F81BD"),
        ({"theme": "99"}, None),
        ({"indexed": "10"}, "FF0000"),
        ({"indexed": "64"}, "000000"),
        ({"indexed": "200"}, None),
        ({"auto": "1"}, None),
        ({}, None),
        # As Excel shows them: accent 1, lighter 60 %, darker 25 %; white, darker 15 %.
        ({"theme": "4", "tint": "0.59999389629810485"}, "B8CCE4"),
        ({"theme": "4", "tint": "-0.249977111117893"}, "366092"),
        ({"theme": "0", "tint": "-0.14999847407452621"}, "D9D9D9"),
        ({"theme": "1", "tint": "0.499984740745262"}, "808080"),
        ({"rgb": "FF000000", "tint": "nonsense"}, "000000"),
    ],
)
def test_colours(attributes: dict[str, str], colour: str | None) -> None:
    assert colours_agree(resolve_colour(attributes, PALETTE), colour)


def test_colours_agree_to_a_rounding_step() -> None:
    assert colours_agree("B8CCE4", "B9CDE5")
    assert not colours_agree("B8CCE4", "B8CCF4")
    assert colours_agree(None, None)
    assert not colours_agree(None, "000000")


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("[$-409]d\\-mmm\\-yy;@", "d-mmm-yy"),
        ('"$"#,##0.00', "[$$-409]#,##0.00"),
        ("YYYY-MM-DD", "yyyy\\-mm\\-dd"),
    ],
)
def test_number_formats_that_show_the_same(first: str, second: str) -> None:
    assert canonical_number_format(first) == canonical_number_format(second)
    assert canonical_number_format(first) != canonical_number_format("0.00")


def test_the_looks_of_cell_formats() -> None:
    workbook = open_workbook(Book({"Sheet1": sheet_data(cell("A1", 1))}).to_bytes())
    assert workbook.style(0).fill == Fill()
    assert workbook.style(6).fill == Fill("solid", ("FF0000",))
    assert workbook.style(7).fill == Fill("solid", ("B9CDE5",))
    assert workbook.style(8).bold
    assert workbook.style(9).font_color == "FF0000"
    assert workbook.style(1).number_format == "yyyy\\-mm\\-dd"
    assert workbook.style(99) == open_workbook(
        Book({"Sheet1": sheet_data()}, styles=None).to_bytes()
    ).style(0)


def test_a_custom_theme() -> None:
    theme = (
        '<a:theme xmlns:a="http://schemas.openxmlformats.org/drawingml/2006/main">'
        '<a:themeElements><a:clrScheme name="Own">'
        '<a:dk1><a:sysClr val="windowText" lastClr="111111"/></a:dk1>'
        '<a:accent1><a:srgbClr val="123456"/></a:accent1></a:clrScheme></a:themeElements></a:theme>'
    )
    links = relations(
        ("rId1", "worksheet", "worksheets/sheet1.xml"),
        ("rIdY", "styles", "styles.xml"),
        ("rIdT", "theme", "theme/theme1.xml"),
    )
    book = Book(
        {"Sheet1": sheet_data(cell("A1", 1))},
        styles=STYLES.replace(' tint="0.5999938962981048"', ""),
        parts={"xl/theme/theme1.xml": theme, "xl/_rels/workbook.xml.rels": links},
    )
    workbook = open_workbook(book.to_bytes())
    assert workbook.style(7).fill == Fill("solid", ("123456",))
    assert workbook.style(0).font_color == "111111"


def test_a_custom_palette_and_custom_fills() -> None:
    styles = STYLES.replace(
        '<fgColor rgb="FFFF0000"/></patternFill>', '<fgColor indexed="2"/></patternFill>'
    ).replace(
        "</styleSheet>",
        '<colors><indexedColors><rgbColor rgb="00000001"/><rgbColor rgb="00000002"/>'
        '<rgbColor rgb="00ABCDEF"/></indexedColors></colors></styleSheet>',
    )
    styles = styles.replace(
        '<patternFill patternType="gray125"/>',
        '<gradientFill><stop position="0"><color rgb="FF000001"/></stop></gradientFill>',
    ).replace('<xf numFmtId="9"/>', '<xf numFmtId="9" fillId="1"/>')
    workbook = open_workbook(Book({"Sheet1": sheet_data(cell("A1", 1))}, styles=styles).to_bytes())
    assert workbook.style(6).fill == Fill("solid", ("ABCDEF",))
    assert workbook.style(4).fill == Fill("gradient", ("000001",))


# -- comparing ------------------------------------------------------------------------------------


def book(style: int, *, tail: str = "", styles: str = STYLES, link: str | None = None) -> bytes:
    parts = {}
    if link is not None:
        tail += '<hyperlinks><hyperlink ref="A1" r:id="rId1"/></hyperlinks>'
        parts["xl/worksheets/_rels/sheet1.xml.rels"] = relations(("rId1", "hyperlink", link))
    return Book(
        {"Sheet1": sheet_data(cell("A1", 1, style=style), cell("A2", 2)) + tail},
        styles=styles,
        parts=parts,
    ).to_bytes()


def compare(gold: bytes, output: bytes, *style: str) -> Comparison:
    return compare_files(gold, output, "A1:B3", style=style)


@pytest.mark.parametrize(
    ("attribute", "style"),
    [("fill", 6), ("fill", 7), ("bold", 8), ("font_color", 9), ("number_format", 4)],
)
def test_an_attribute_counts_only_if_requested(attribute: str, style: int) -> None:
    gold, output = book(style), book(0)
    others = [name for name in STYLE_ATTRIBUTES if name != attribute]
    assert compare(gold, gold, *STYLE_ATTRIBUTES).equal
    assert compare(gold, output, *others).equal
    comparison = compare(gold, output, attribute)
    assert not comparison.equal
    (difference,) = comparison.differences
    assert (difference.kind, difference.cell) == (DifferenceClass.STYLE, "A1")
    assert difference.detail.startswith(attribute.replace("_", " "))


def test_alignment_italic_and_underline() -> None:
    styles = STYLES.replace(
        '<xf numFmtId="9"/>',
        '<xf numFmtId="9" fontId="1"><alignment horizontal="center" wrapText="1" indent="2" '
        'textRotation="45"/></xf>',
    ).replace("<font><b/></font>", '<font><i/><u val="double"/></font>')
    gold, output = book(4, styles=styles), book(4)
    for attribute in ("alignment", "italic", "underline"):
        assert not compare(gold, output, attribute).equal
    detail = compare(gold, output, "alignment").differences[0].detail
    assert "center, bottom, wrapped, indent 2, rotated 45" in detail


def test_a_wrong_value_is_not_counted_twice() -> None:
    gold, output = book(6), Book({"Sheet1": sheet_data(cell("A1", 9), cell("A2", 2))}).to_bytes()
    assert compare(gold, output, "fill").difference_counts == {DifferenceClass.WRONG_VALUE: 1}


def test_hyperlinks() -> None:
    gold = book(0, link="https://example.org/a")
    assert compare(gold, book(0, link="https://example.org/a"), "hyperlink").equal
    for output in (book(0), book(0, link="https://example.org/b")):
        comparison = compare(gold, output, "hyperlink")
        assert [each.cell for each in comparison.differences] == ["A1"]


def test_unknown_attributes_are_named() -> None:
    with pytest.raises(UsageError, match="no style attribute 'colour'"):
        compare(book(0), book(0), "colour")


# -- conditional formats --------------------------------------------------------------------------


def rule(
    formula: str,
    where: str = "A1:B3",
    *,
    style: int = 0,
    kind: str = "expression",
    more: str = "",
    priority: int = 1,
) -> str:
    return (
        f'<conditionalFormatting sqref="{where}"><cfRule type="{kind}" dxfId="{style}" '
        f'priority="{priority}"{more}><formula>{formula}</formula></cfRule></conditionalFormatting>'
    )


def conditional(*rules: str) -> bytes:
    return book(0, tail="".join(rules))


def test_a_conditional_format_counts_as_the_looks_that_it_sets() -> None:
    gold = conditional(rule("$A1&gt;1"))
    assert compare(gold, gold, "fill").equal
    assert compare(gold, book(0)).equal
    comparison = compare(gold, book(0), "fill")
    assert comparison.difference_counts == {DifferenceClass.STYLE: 6}
    assert comparison.differences[0].detail == "fill: other conditional formats"
    assert compare(gold, book(0), "bold").equal
    assert not compare(conditional(rule("$A1&gt;1", style=1)), book(0), "bold").equal
    assert not compare(conditional(rule("$A1&gt;1", style=1)), book(0), "font_color").equal


def test_conditions_are_read_at_the_position_of_the_cell() -> None:
    gold = conditional(rule("$A1&gt;$C$1", "A1:B3"))
    split = conditional(rule("$A1 &gt; $C$1", "A1:B1"), rule("$a2&gt;$c$1", "A2:B3", priority=2))
    assert compare(gold, split, "fill").equal
    assert not compare(gold, conditional(rule("$A2&gt;$C$1", "A1:B3")), "fill").equal
    assert not compare(gold, conditional(rule("A1&gt;$C$1", "A1:B3")), "fill").equal


def test_kind_and_terms_of_a_rule_count() -> None:
    gold = conditional(rule("5", kind="cellIs", more=' operator="greaterThan"'))
    assert compare(gold, gold, "fill").equal
    less = conditional(rule("5", kind="cellIs", more=' operator="lessThan"'))
    assert not compare(gold, less, "fill").equal


def test_rules_may_be_in_another_order_but_not_more_numerous() -> None:
    first, second = rule("A1=1"), rule("A1=2", priority=2)
    gold = conditional(first, second)
    assert compare(gold, conditional(second, first), "fill").equal
    assert not compare(gold, conditional(first, first), "fill").equal
    assert not compare(gold, conditional(first), "fill").equal


def test_more_rules_than_can_be_compared_are_an_error() -> None:
    many = [
        conditional(rule("A1=1", "A1:XFD1048576"), rule("A1=2", "A1:XFD1048576", style=style))
        for style in (0, 1)
    ]
    with pytest.raises(WorkbookError, match="too many conditional formats"):
        compare_files(many[0], many[1], "A1:XFD1048576", style=["fill"])


def test_rules_of_whole_sheets_cost_no_more_than_those_of_cells() -> None:
    gold = conditional(*(rule(f"A1={n}", "A1:XFD1048576", priority=n) for n in range(1, 200)))
    other = conditional(*(rule(f"$A1={n}", "A1:XFD1048576", priority=n) for n in range(1, 200)))
    spaced = conditional(*(rule(f"A1 = {n}", "A1:XFD1048576", priority=n) for n in range(1, 200)))
    assert compare_files(gold, spaced, "A1:XFD1048576", style=["fill"]).equal
    with pytest.raises(WorkbookError, match="too many conditional formats"):
        compare_files(gold, other, "A1:XFD1048576", style=["fill"])


@pytest.mark.parametrize("number", ["9" * 5000, "\u00b2", "-1", ""])
@pytest.mark.parametrize("attribute", ["numFmtId", "fontId", "fillId", "indent"])
def test_invalid_numbers_are_named_or_ignored(attribute: str, number: str) -> None:
    styles = STYLES.replace(
        '<xf numFmtId="9"/>',
        '<xf numFmtId="9" fontId="1" fillId="1"><alignment indent="2"/></xf>',
    )
    broken = re.sub(rf'({attribute})="\d+"', rf'\g<1>="{number}"', styles)
    assert broken != styles
    # No other error comes of it.
    with contextlib.suppress(WorkbookError):
        compare(book(4, styles=broken), book(4, styles=broken + " "), *STYLE_ATTRIBUTES)
