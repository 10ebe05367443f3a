"""Reading rows as text, similar or not, gives the same as parsing them."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from judge.errors import WorkbookError
from judge.workbook.address import WHOLE_SHEET, Window, cell_key, column_letters
from judge.workbook.number_formats import NumberFormats, read_number_formats
from judge.workbook.package import Package
from judge.workbook.sheets import plain_rows, sheet_scan
from judge.workbook.sheets.sheet_cells import SheetCells
from judge.workbook.xml_parts import STRICT_MAIN
from tests.unit.compare.cells.packages import Book

pytestmark = pytest.mark.slow

PART = "xl/worksheets/sheet1.xml"

Cell = Callable[[str], str]


def _cell(attributes: str, body: str) -> Cell:
    inside = f">{body}</c>" if body else "/>"
    return lambda place: f'<c r="{place}"{attributes}{inside}'


CELLS: tuple[Cell, ...] = (
    _cell("", "<v>12</v>"),
    _cell(' t="n"', "<v>-3.5E-2</v>"),
    _cell(' s="1"', "<v>45000</v>"),
    _cell(' s="1"', "<v>59</v>"),
    _cell(' s="1"', "<v>45000.75</v>"),
    _cell(' s="1"', "<v>99999999</v>"),
    _cell(' s="3"', "<v>45000</v>"),
    _cell(' s="5" t="s"', "<v>1</v>"),
    _cell(' t="inlineStr"', "<is><t>a &amp; b</t></is>"),
    _cell(' t="inlineStr"', "<is><t></t></is>"),
    _cell(' t="inlineStr"', '<is><t xml:space="preserve"> c </t></is>'),
    _cell(' t="inlineStr"', "<is><r><t>rich</t></r></is>"),
    _cell(' t="str"', "<v>text &lt;</v>"),
    _cell(' s="4" t="str"', "<v></v>"),
    _cell("", "<v/>"),
    _cell(' t="b"', "<v>1</v>"),
    _cell(' t="e"', "<v>#N/A</v>"),
    _cell(' s="6"', ""),
    _cell(' s="4" ', ""),
    _cell("", "<f>A1+1</f><v>7</v>"),
    _cell(' s="4" t="str"', "<f>A1&amp;B1</f><v></v>"),
    lambda place: f'<c s="1" r="{place}"><v>9</v></c>',
    lambda _: "<c><v>8</v></c>",
)
GOOD = len(CELLS)
CELLS += (
    _cell(' t="inlineStr"', "<v>astray</v>"),
    _cell(' t="n"', "<is><t>astray</t></is>"),
    _cell("", "<v>1_0</v>"),
    _cell("", "<v>\n7\n</v>"),
    _cell(' s="99"', "<v>1</v>"),
    _cell(' t="x"', "<v>1</v>"),
    _cell(' t="s"', "<v>+1</v>"),
    _cell("", "<v>1</v><v>2</v>"),
    _cell("", '<f t="x">A1</f><v>2</v>'),
    lambda _: '<c r="B2"><v>stands twice</v></c>'.replace("stands twice", "77"),
    lambda _: '<c r="C2" t="s"><v>0</v></c>',
)
"""Those from :data:`GOOD` on make a sheet unreadable, if they are requested or out of order."""

SHAPES = st.lists(st.sampled_from(range(GOOD)), min_size=1, max_size=5)
STRAY_SHAPES = st.lists(st.sampled_from(range(len(CELLS))), min_size=1, max_size=5)


def rows_of(shapes: list[list[int]], order: list[int]) -> str:
    """Rows, each with one of some shapes; the columns begin with B."""
    written = []
    for number, which in enumerate(order, 1):
        shape = shapes[which % len(shapes)]
        cells = (CELLS[kind](f"{column_letters(at)}{number}") for at, kind in enumerate(shape, 2))
        written.append(f'<row r="{number}">{"".join(cells)}</row>')
    return "".join(written)


def read_both_ways(
    xml: str, windows: list[Window], *, blanks: bool
) -> tuple[SheetCells | str, SheetCells | str]:
    """Returns the cells of a sheet as the scanner reads them and as the parser does."""
    data = Book({"S": f"<sheetData>{xml}</sheetData>"}, shared=["zero", "one"]).to_bytes()
    formats: NumberFormats = read_number_formats(Package(data), "xl/styles.xml")

    def either(read: Callable[[], SheetCells]) -> SheetCells | str:
        try:
            return read()
        except WorkbookError:
            return "unreadable"

    scanner = sheet_scan.SheetScanner(
        Package(data), PART, windows, formats, date_1904=False, blanks=blanks
    )
    as_text = either(
        lambda: sheet_scan.scan_sheet(
            Package(data), PART, windows, formats, date_1904=False, blanks=blanks
        )
    )
    return as_text, either(scanner.scan_all)


def assert_alike(
    as_text: SheetCells | str, parsed: SheetCells | str, *, blanks: bool, readable: bool = True
) -> None:
    if not readable and isinstance(as_text, str):
        assert as_text == parsed
        return
    assert isinstance(as_text, SheetCells)
    assert isinstance(parsed, SheetCells)
    assert as_text.values == parsed.values
    assert {key: type(value) for key, value in as_text.values.items()} == {
        key: type(value) for key, value in parsed.values.items()
    }
    assert as_text.strings == parsed.strings
    assert as_text.formulas.keys() == parsed.formulas.keys()
    for key, formula in as_text.formulas.items():
        other = parsed.formulas[key]
        assert (formula.text, formula.kind, formula.cached) == (
            other.text,
            other.kind,
            other.cached,
        )
        assert as_text.styles.get(key, 0) == parsed.styles.get(key, 0)
    if blanks:
        assert as_text.styles == parsed.styles


@pytest.mark.parametrize("blanks", [False, True])
@given(
    shapes=st.lists(SHAPES, min_size=1, max_size=4),
    order=st.lists(st.integers(0, 3), min_size=1, max_size=60),
    window=st.sampled_from(
        [WHOLE_SHEET, Window(1, 1, 40, 20), Window(1, 2, 2000, 3), Window(1, 3, 1500, 3)]
    ),
)
@settings(max_examples=150, deadline=None)
def test_rows_read_as_text_are_those_that_the_parser_reads(
    blanks: bool, shapes: list[list[int]], order: list[int], window: Window
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(plain_rows, "_MIN_CHARS", 0)
        patch.setattr(plain_rows, "_MIN_ALIKE_ROWS", 2)
        both = read_both_ways(rows_of(shapes, order), [window], blanks=blanks)
    assert_alike(*both, blanks=blanks)


@pytest.mark.parametrize("blanks", [False, True])
@given(
    shapes=st.lists(STRAY_SHAPES, min_size=1, max_size=4),
    order=st.lists(st.integers(0, 3), min_size=1, max_size=60),
    window=st.sampled_from([WHOLE_SHEET, Window(1, 2, 2000, 3), Window(3, 3, 1500, 3)]),
)
@settings(max_examples=150, deadline=None)
def test_what_the_parser_refuses_is_not_read_as_text(
    blanks: bool, shapes: list[list[int]], order: list[int], window: Window
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(plain_rows, "_MIN_CHARS", 0)
        patch.setattr(plain_rows, "_MIN_ALIKE_ROWS", 2)
        both = read_both_ways(rows_of(shapes, order), [window], blanks=blanks)
    assert_alike(*both, blanks=blanks, readable=False)


def test_many_rows_alike_are_taken_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    taken = []
    plain = plain_rows.RowShapes.take

    def spied(self: plain_rows.RowShapes, rows: str) -> tuple[str, list[plain_rows.ShapeRows]]:
        rest, found = plain(self, rows)
        taken.extend(found)
        return rest, found

    monkeypatch.setattr(plain_rows.RowShapes, "take", spied)
    xml = rows_of([[0, 2, 7, 8], [0, 2]], [0, 0, 1] * 1500)
    as_text, parsed = read_both_ways(xml, [Window(1, 1, 4500, 9)], blanks=False)
    assert_alike(as_text, parsed, blanks=False)
    assert sum(len(each.digits) for each in taken) > 2000
    assert isinstance(as_text, SheetCells)
    assert as_text.values[cell_key(4500, 2)] == 12


def test_two_cells_of_one_address_are_an_error() -> None:
    twice = '<row r="3"><c r="B3"><v>1</v></c></row>' * 4000
    as_text, parsed = read_both_ways(twice, [Window(1, 1, 9, 9)], blanks=False)
    assert as_text == parsed == "unreadable"


def test_text_around_a_removed_row_does_not_form_a_cell() -> None:
    """Removing a run of cells from a text joins what was around it."""
    alike = "".join(f'<row r="{n}"><c r="B{n}"><v>{n}</v></c></row>' for n in range(1, 4000))
    noise = '<row r="4000"><c r="A4000" s="1"/>c r="B4001"/&gt;<c r="B4000"><v>1</v></c></row>'
    as_text, parsed = read_both_ways(alike + noise, [Window(1, 1, 5000, 9)], blanks=True)
    assert_alike(as_text, parsed, blanks=True)


@pytest.mark.parametrize(
    ("between", "readable"),
    [
        ("", True),
        (" \n\t", True),
        ("<!-- -->", True),
        ("text", True),
        ("<x/>", False),
        ("</x>", False),
    ],
)
def test_what_is_between_two_rows_is_not_passed_over(between: str, readable: bool) -> None:
    rows = [f'<row r="{number}"><c r="A{number}"><v>{number}</v></c></row>' for number in (1, 2, 3)]
    read, parsed = read_both_ways(between.join(["", *rows, ""]), [Window(2, 1, 2, 1)], blanks=False)
    assert isinstance(read, SheetCells) is readable
    assert isinstance(parsed, SheetCells) is readable
    if isinstance(read, SheetCells) and isinstance(parsed, SheetCells):
        assert read.values == parsed.values == {cell_key(2, 1): 2}


SKIPPED = (
    '<row r="7" spans="1:3" ht="15"><c r="A7" s="1"><v>1</v></c><c r="B7"><f>A1*2</f><v /></c>'
    '<c r="C7" t="inlineStr"><is><t>ROW</t></is></c></row><row r="8" />'
)
RICH = SKIPPED.replace("<t>ROW</t>", "<r><rPr><b/></rPr><t>ROW</t></r>")


def _changed(old: str, new: str, rows: str = SKIPPED) -> str:
    assert old in rows
    return rows.replace(old, new)


HOSTILE_ROWS = {
    "rows out of order": _changed('r="8"', 'r="6"'),
    "a row twice": _changed('r="8"', 'r="7"'),
    "a row beyond the sheet": _changed('r="8"', 'r="1048577"'),
    "a row without number": _changed(' r="8"', ""),
    "a row in a row": _changed('<c r="B7">', '<row r="8"/><c r="B7">'),
    "a cell of another row": _changed('r="B7"', 'r="B2"'),
    "a cell of a row with more digits": _changed('r="B7"', 'r="B77"'),
    "columns out of order": _changed('r="C7"', 'r="A7"'),
    "a column twice": _changed('r="C7"', 'r="B7"'),
    "a column beyond the sheet": _changed('r="C7"', 'r="XFE7"'),
    "a column of four letters": _changed('r="C7"', 'r="AAAA7"'),
    "columns out of order behind what could be a row": _changed(
        "<b/>", '<rzow r="1"/>', RICH
    ).replace("</row>", '<c r="A7"/></row>', 1),
    "columns out of order in two rows of a kind": SKIPPED
    + SKIPPED.replace("7", "9").replace('r="8"', 'r="10"').replace('r="C9"', 'r="A9"'),
    "a digit in a tag": _changed("<v>1</v>", "<v1>1</v1>"),
    "a digit in an end tag": _changed("<v>1</v>", "<v>1</v1>"),
    "a digit in the name of an attribute": _changed(' s="1"', ' s1="1"'),
    "an attribute twice": _changed(' s="1"', ' s="1" s="2"'),
    "an attribute twice, in the general form": _changed(' s="1"', ' s="1" t="n" s="2"'),
    "an attribute of a row twice": _changed(' ht="15"', ' ht="15" ht="16"'),
    "the number of a row twice": _changed(' ht="15"', ' r="9"'),
    "no space between attributes": _changed('" ht=', '"ht='),
    "a quote too many": _changed(' s="1"', ' s="1""'),
    "a slash in a tag": _changed(' s="1">', ' s="1"/ >'),
    "a cell that closes twice": _changed(' s="1">', ' s="1"/>'),
    "no end of a cell": _changed("</v></c>", "</v>"),
    "no end of a row": _changed("</row>", ""),
    "two values": _changed("<v />", "<v/><v/>"),
    "a formula behind its value": _changed("<f>A1*2</f><v />", "<v /><f>A1*2</f>"),
    "an element in a value": _changed("<v>1</v>", "<v><x/>1</v>"),
    "a comment": _changed("<v>1</v>", "<v>1<!-- </v></c></row> --></v>"),
    "a CDATA section": _changed("ROW", '<![CDATA[</t></is></c></row><row r="3"/>]]>'),
    "the end of a CDATA section": _changed("ROW", "]]>"),
    "an instruction": _changed("ROW", "<?x </row> ?>"),
    "an unknown entity": _changed("ROW", "&row;"),
    "an ampersand": _changed("ROW", "R&W"),
    "a reference to no character": _changed("ROW", "&#0;"),
    "a control character": _changed("ROW", "\x01"),
    "no character": _changed("ROW", "\ufffe"),
    "a namespace": _changed(' s="1"', ' xmlns="x"'),
    "a prefix": _changed("<v>1</v>", "<x:v>1</x:v>"),
    "a cell in text": _changed("ROW", '&lt;row r="3"&gt;&lt;c r="A1"'),
    "a column in what could be a cell": _changed("<b/>", '<charset val="A"/>', RICH),
}


@pytest.mark.parametrize("window", [Window(3, 1, 5, 9), Window(1, 1, 1, 1), Window(20, 1, 30, 9)])
@pytest.mark.parametrize("what", HOSTILE_ROWS)
def test_hostile_rows_that_are_not_requested_are_read_as_the_parser_reads_them(
    what: str, window: Window
) -> None:
    above = "".join(f'<row r="{n}"><c r="A{n}"><v>{n}</v></c></row>' for n in range(1, 6))
    below = '<row r="25"><c r="A25"><v>25</v></c></row>'
    read, parsed = read_both_ways(above + HOSTILE_ROWS[what] + below, [window], blanks=False)
    if isinstance(parsed, SheetCells) and isinstance(read, SheetCells):
        assert read.values == parsed.values != {}
    else:
        assert read == parsed == "unreadable"


def test_rows_are_in_order_across_pieces() -> None:
    grammar = sheet_scan.RowGrammar(lambda _: None, b"<worksheet>")
    piece = grammar.rows(b'<row r="7"/><row r="8"/><row')
    assert (piece.numbers, piece.data) == ((7, 8), b'<row r="7"/><row r="8"/>')
    with pytest.raises(sheet_scan.NotPlainError):
        grammar.rows(b'<row r="8"/>')


def test_a_style_sheet_that_was_read_before_is_still_held_to_the_namespace() -> None:
    data = Book({"S": "<sheetData/>"}).to_bytes()
    formats = read_number_formats(Package(data), "xl/styles.xml")
    assert read_number_formats(Package(data), "xl/styles.xml") == formats
    strict = Package(data)
    strict.agree_on_namespace(STRICT_MAIN, "xl/workbook.xml")
    with pytest.raises(WorkbookError, match="not in the namespace"):
        read_number_formats(strict, "xl/styles.xml")


def test_attributes_of_rows_are_checked_in_the_order_of_the_file() -> None:
    checked: list[str] = []
    grammar = sheet_scan.RowGrammar(lambda named: checked.append(named["ht"]), b"<worksheet>")
    heights = ["9", "5", "7", "5", "1", "8", "9", "3", "2"]
    grammar.rows(
        b"".join(b'<row r="%d" ht="%s"/>' % (n, h.encode()) for n, h in enumerate(heights, 1))
    )
    assert checked == [*dict.fromkeys(heights)]
