"""Reduces a workbook to what the requested cells depend on.

Engines open and compute whole workbooks. Formulas that no requested cell depends on, and the cells
of sheets that no remaining formula names, are left out if that saves more time than it costs.
"""

from __future__ import annotations

import bisect
import functools
import html
import io
import re
import zipfile
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field

from judge.errors import WorkbookError
from judge.formulas.functions import PREFIX
from judge.formulas.lexer import Kind, Token, is_too_long, sheet_of, tokens
from judge.formulas.references import Reference
from judge.formulas.traits import ESCAPED_LETTER
from judge.recalc.functions.contents import SUBTOTALS
from judge.recalc.rewrite import check_size, with_constants, without_formulas
from judge.recalc.services.package import only_elements
from judge.recalc.services.slim import less_of
from judge.workbook.address import (
    COLUMN_BITS,
    COLUMN_MASK,
    WHOLE_SHEET,
    cell_name,
    column_number,
)
from judge.workbook.cell import CellRef, CellValue, ErrorValue
from judge.workbook.dependency import Dependencies, FormulaIndex, Reach
from judge.workbook.editing.parts import escape_text
from judge.workbook.reader import Workbook

MIN_FORMULAS = 100
"""Superfluous formulas are left out if there are at least this many; fewer are not worth it."""

MIN_SHEET_BYTES = 200_000
"""A sheet that no remaining formula names is emptied if it is at least this long, in bytes."""

_SHEET_DATA = re.compile(rb"<(?P<prefix>\w+:)?sheetData\b[^<>]*(?<!/)>")


def reduced(workbook: Workbook, rests_on: Dependencies, index: FormulaIndex) -> bytes:
    """The package of a workbook, without formulas that the requested cells do not depend on.

    Args:
        workbook: the workbook.
        rests_on: what the requested cells depend on; unless this is known precisely, the package
            stays complete.
        index: the formulas that were found while dependencies were followed.
    """
    reach = rests_on.reach
    if reach is None or not rests_on.complete:
        return workbook.data
    try:
        with zipfile.ZipFile(io.BytesIO(workbook.data)) as archive:
            parts = {tab.name: tab.part for tab in workbook.tabs}
            return _reduced(archive, parts, reach, index) or workbook.data
    except (WorkbookError, zipfile.BadZipFile, KeyError, NotImplementedError):
        # The code that needs an unreadable part reports it.
        return workbook.data


def slimmed(package: bytes) -> bytes:
    """The package of a workbook with only the parts that the quick engines compute from.

    They fail on some parts that no value depends on, such as comments and the cached values of
    other workbooks. LibreOffice needs some of these for functions that the quick engines lack, so
    its service reduces its package itself.

    Args:
        package: the workbook; returned unchanged if it cannot be read here.
    """
    try:
        with zipfile.ZipFile(io.BytesIO(package)) as archive:
            entries = [entry for entry in archive.infolist() if _may_hold_cells(entry.filename)]
            check_size(entries)
            parts = {
                entry.filename: _slimmed(entry.filename, archive.read(entry)) for entry in entries
            }
    except (WorkbookError, zipfile.BadZipFile, KeyError, NotImplementedError):
        # The code that needs an unreadable part reports it.
        return package
    return _packed({name: content for name, content in parts.items() if content is not None})


def _may_hold_cells(name: str) -> bool:
    return name.lower().endswith(".rels") or less_of(name, b"") is not None


_MAIN = "xl/workbook.xml"


def _slimmed(name: str, content: bytes) -> bytes | None:
    content = only_elements(content)
    if name.lower().endswith(".rels") and (b"<!" in content or b"\0" in content):
        raise WorkbookError(f"{name} is not read here")
    if name == "xl/styles.xml":
        return content  # IronCalc needs more of it than LibreOffice
    less = less_of(name, content)
    if less and name == _MAIN:
        return _without(less, b"externalReferences")
    return less and _without_dimension(less)


_DIMENSION = re.compile(rb"<(?:\w+:)?dimension\b[^<>]*/>")


def _without_dimension(xml: bytes) -> bytes:
    """Removes the range that a sheet claims to use; other parts are not changed.

    formualizer reserves space for every cell of that range, which takes 0.2 s if the range extends
    to the last column. No value depends on the range.
    """
    start = _SHEET_DATA.search(xml)
    if start is None:
        return xml
    head = xml[: start.start()]
    less = _DIMENSION.sub(b"", head)
    return xml if less == head else less + xml[start.start() :]


def of_cells(package: bytes, parts: Mapping[str, str], cells: AbstractSet[CellRef]) -> bytes:
    """A package in which only some cells have formulas, without defined names.

    Args:
        package: a slimmed package; returned unchanged if it cannot be read here.
        parts: worksheet -> name of its part.
        cells: the cells; they include every formula cell that one of them reads.
    """
    kept: dict[str, set[bytes]] = {part: set() for part in parts.values()}
    for sheet, row, column in cells:
        kept[parts[sheet]].add(cell_name(row, column).encode())
    contents = dict(_parts(package))
    if not contents:
        return package
    for name, content in contents.items():
        if name in kept:
            contents[name] = without_formulas(content, kept[name], filling=True)
        elif name == _MAIN:
            contents[name] = _without(content, b"definedNames")
    return _packed(contents)


def with_known(
    package: bytes, parts: Mapping[str, str], values: Mapping[CellRef, CellValue]
) -> bytes:
    """A package in which some formula cells are constants; cells in an unusual notation stay.

    Args:
        package: the workbook; returned unchanged if it cannot be read here.
        parts: worksheet -> name of its part.
        values: cell -> its value. Days are counted from 1900.
    """
    by_part: dict[str, dict[bytes, CellValue]] = defaultdict(dict)
    for (sheet, row, column), value in values.items():
        by_part[parts[sheet]][cell_name(row, column).encode()] = value
    contents = dict(_parts(package)) if by_part else {}
    if not contents:
        return package
    for name, cells in by_part.items():
        if name in contents:
            contents[name] = with_constants(contents[name], cells)
    return _packed(contents)


_SHOWS_FORMULAS = frozenset(("FORMULATEXT", "ISFORMULA"))
"""Functions that distinguish a cell with a formula from a cell with a value."""


_READING_FORMULAS = _SHOWS_FORMULAS | SUBTOTALS


def replaceable(
    values: Mapping[CellRef, CellValue], rests_on: Dependencies
) -> Mapping[CellRef, CellValue]:
    """The values that may replace their formulas: no other formula depends on the formula itself.

    SUBTOTAL and AGGREGATE read that a cell is itself a subtotal, and omit it.
    """
    if _READING_FORMULAS.isdisjoint(rests_on.functions):
        return values
    if rests_on.walk is None:
        return {}
    index = rests_on.walk.index
    shown, totaled = (
        [
            (step.ref.sheet if read.sheet is None else index.named(read.sheet), read)
            for step in rests_on.walk.steps
            if not functions.isdisjoint(step.traits.functions)
            for read in step.reads
        ]
        for functions in (_SHOWS_FORMULAS, SUBTOTALS)
    )
    subtotals = {
        step.ref for step in rests_on.walk.steps if not SUBTOTALS.isdisjoint(step.traits.functions)
    }
    return {
        ref: value
        for ref, value in values.items()
        if not any(
            sheet == ref.sheet
            and read.min_row <= ref.row <= read.max_row
            and read.min_column <= ref.column <= read.max_column
            for sheet, read in (*shown, *(totaled if ref in subtotals else ()))
        )
    }


_TEXT = re.compile(rb"(?<=[<:])t(?:\s[^<>]*)?>[^<]+")
"""The start of an element with text that no formula computes, in the strings or on a sheet."""


def with_texts(package: bytes, change: Callable[[bytes], bytes]) -> bytes:
    """A package with changed text constants.

    Args:
        package: the workbook; returned unchanged if it cannot be read here.
        change: returns the changed text, in XML.
    """

    def changed(match: re.Match[bytes]) -> bytes:
        start, text = match[0].split(b">", 1)
        return start + b">" + change(text)

    contents = _parts(package)
    return _packed({name: _TEXT.sub(changed, part) for name, part in contents.items()})


def with_sheets(
    package: bytes, parts: Mapping[str, str], change: Callable[[bytes, str], bytes]
) -> bytes:
    """Applies a function to the sheets of a package.

    Args:
        package: a slimmed package; returned unchanged if it cannot be read here.
        parts: worksheet -> name of its part.
        change: called with the content and the name of a sheet; returns the new content, or the
            same object if nothing changes.
    """
    contents = dict(_parts(package))
    new = {part: change(contents[part], sheet) for sheet, part in parts.items() if part in contents}
    if all(new[part] is contents[part] or new[part] == contents[part] for part in new):
        return package
    return _packed(contents | new)


_COLUMNS_AS_ARGUMENT = re.compile(rb":\$?[A-Za-z]{1,3}[,)]")
"""Finds part of what the next pattern finds, much faster: it begins with a fixed character."""

_WITH_COLUMNS = re.compile(rb"(?<=>)(?P<text>[^<]*?[A-Za-z]:\$?[A-Za-z]{1,3}[,)][^<]*+)(?=</f>)")


def with_bounded_columns(sheet_xml: bytes, last_row: LastRow) -> bytes:
    """Replaces whole columns in a sheet's formulas by their used rows, if that changes nothing.

    Excel stops at the last used row. IronCalc goes through a million rows for each formula that
    looks something up, and reads blank cells below the data as numbers.

    Args:
        sheet_xml: the sheet of a slimmed package.
        last_row: finds the last used row of the sheet that a reference names.
    """
    if _COLUMNS_AS_ARGUMENT.search(sheet_xml) is None:
        return sheet_xml

    def bounded(match: re.Match[bytes]) -> bytes:
        text = html.unescape(match["text"].decode("utf-8", "surrogateescape"))
        new = bounded_columns(text, last_row)
        return match[0] if new == text else escape_text(new).encode("utf-8", "surrogateescape")

    return _WITH_COLUMNS.sub(bounded, sheet_xml)


LastRow = Callable[[str | None], int | None]
"""The sheet that a reference names (None for the formula's own sheet) -> its last used row; None if
that is not known."""

_SKIPS_BLANKS: Mapping[str, Sequence[int]] = {
    function: positions
    for positions, functions in {
        (0,): "LARGE SMALL PERCENTILE PERCENTILE.INC PERCENTILE.EXC QUARTILE QUARTILE.INC "
        "QUARTILE.EXC TRIMMEAN",
        (1,): "MATCH VLOOKUP RANK RANK.EQ RANK.AVG",
        (1, 2): "LOOKUP",
        tuple(range(255)): "COUNT COUNTA SUM AVERAGE MEDIAN MIN MAX MODE MODE.SNGL PRODUCT GEOMEAN "
        "STDEV STDEV.S STDEVP STDEV.P VAR VAR.S VARP VAR.P",
    }.items()
    for function in functions.split()
}
"""Function -> the positions of arguments in which blank cells below the data do not count."""


def bounded_columns(formula: str, last_row: LastRow) -> str:
    """Replaces whole columns in a formula by their used rows, if that changes nothing.

    Args:
        formula: with or without its leading ``=``.
        last_row: finds the last used row of the sheet that a reference names.
    """
    if is_too_long(formula):
        return formula
    pieces: list[str] = []
    copied = 0
    for columns, last in sorted(_used_columns(tokens(formula), last_row)):
        first_column, last_column = columns.text.split(":")
        rows = f"{first_column}$1:{last_column}${max(1, last)}"
        pieces += (formula[copied : columns.start], rows)
        copied = columns.end
    new = "".join((*pieces, formula[copied:]))
    return formula if is_too_long(new) else new


def _used_columns(words: Iterable[Token], last_row: LastRow) -> list[tuple[Token, int]]:
    """The whole columns whose blank rows do not count, each with its last used row."""
    used: list[tuple[Token, int]] = []
    calls = [_OpenCall("")]
    name = ""
    for word in words:
        if word.kind is Kind.FUNCTION:
            name = PREFIX.sub("", word.text).upper()
        elif word.kind is Kind.OPEN or word.text == "{":
            calls[-1].arguments[-1].append(word)
            calls.append(_OpenCall(name))
            name = ""
        elif (word.kind is Kind.CLOSE or word.text == "}") and len(calls) > 1:
            used += calls.pop().used_columns(last_row)
        elif word.kind is Kind.SEPARATOR:
            calls[-1].arguments.append([])
        elif word.kind is not Kind.SPACE:
            calls[-1].arguments[-1].append(word)
    return used


_NOTHING = Token(Kind.SPACE, "", 0)


@dataclass(slots=True)
class _OpenCall:
    """A call whose arguments are being read; a nested call is a single token in them."""

    function: str
    arguments: list[list[Token]] = field(default_factory=lambda: [[]])

    def used_columns(self, last_row: LastRow) -> list[tuple[Token, int]]:
        """The whole columns among the arguments in which blank cells do not count.

        All of them get the same last row, since a look-up takes its result from one column at the
        row that it finds in another.
        """
        columns: list[Token] = []
        rows: list[int | None] = []
        for position in _SKIPS_BLANKS.get(self.function, ()):
            if position >= len(self.arguments):
                break
            *sheet, area = self.arguments[position] or [_NOTHING]
            if area.kind is Kind.COLUMNS and all(_is_one_sheet(word) for word in sheet):
                columns.append(area)
                rows.append(last_row(sheet_of(sheet[0]) if sheet else None))
        last = [row for row in rows if row is not None]
        return [(area, max(last)) for area in columns] if len(last) == len(rows) and last else []


def _is_one_sheet(word: Token) -> bool:
    return word.kind is Kind.SHEET and ":" not in word.text


def last_rows(workbook: Workbook, index: FormulaIndex) -> Callable[[str, str | None], int | None]:
    """Makes a function that finds the last used row of a sheet.

    Args:
        workbook: an open workbook.
        index: its formulas.

    Returns:
        The function. Its arguments are the sheet of a formula and the sheet that the formula names
        (None for its own sheet). It returns None if the last row is not known.
    """

    @functools.cache
    def last_row(home: str, named: str | None) -> int | None:
        sheet = home if named is None else index.named(named)
        if sheet is None:
            return None
        try:
            if workbook.sheet(sheet).fills:
                return None  # its array formulas may fill a different range after the calculation
            used = workbook.used_range(sheet)
        except WorkbookError:
            return None
        return 0 if used is None else used.max_row

    return last_row


def _without(content: bytes, element: bytes) -> bytes:
    """A part without the first element that has the given name."""
    start = re.search(rb"<(\w+:)?%s\b[^<>]*(?<!/)>" % element, content)
    if start is None:
        return content
    before, end = content[: start.start()], b"</%s%s>" % (start[1] or b"", element)
    _, closed, after = content[start.end() :].partition(end)
    return before + after if closed else content


class _Packed(bytes):
    """A package that was packed here; it keeps its parts, so that it need not be unpacked again."""

    parts: Mapping[str, bytes]


def _packed(parts: Mapping[str, bytes]) -> bytes:
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w", zipfile.ZIP_STORED) as copy:
        for name, content in parts.items():
            copy.writestr(zipfile.ZipInfo(name), content)
    package = _Packed(target.getvalue())
    package.parts = parts
    return package


def is_ascii_only(package: bytes) -> bool:
    """Whether no part of a package holds text beyond ASCII that a formula could read.

    Letters count in any notation: as plain characters, as XML's character references, and as
    Excel's own ``_x00E9_``. The package determines which parts are sheets, so every XML part counts
    except those that cannot be a sheet. A package that cannot be read here may hold anything.
    """
    if isinstance(package, _Packed):
        return not any(map(_beyond_ascii, package.parts.values()))
    try:
        with zipfile.ZipFile(io.BytesIO(package)) as archive:
            check_size(archive.infolist())
            return not any(_beyond_ascii(archive.read(entry)) for entry in archive.infolist())
    except (WorkbookError, zipfile.BadZipFile, KeyError, NotImplementedError):
        return False


class Constants:
    """Finds the cells of a workbook that hold constants of some kind.

    The cached value of a formula does not count, since the formula is computed again.

    Args:
        workbook: the workbook.
        is_meant: whether a value is of that kind.
    """

    def __init__(self, workbook: Workbook, is_meant: Callable[[CellValue], bool]) -> None:
        self._workbook = workbook
        self._is_meant = is_meant
        self._known: dict[str, Mapping[int, Sequence[int]] | None] = {}

    def __call__(self, sheet: str, reference: Reference) -> bool:
        """Whether a rectangle holds one of the constants in question; True if it cannot be read."""
        if sheet not in self._known:
            self._known[sheet] = self._columns(sheet)
        columns = self._known[sheet]
        if columns is None:
            return True
        if not columns:
            return False
        _, top, left, bottom, right = reference
        within = range(left, right + 1)
        for column in within if len(within) < len(columns) else columns:
            rows = columns.get(column, ()) if column in within else ()
            first = bisect.bisect_left(rows, top)
            if first < len(rows) and rows[first] <= bottom:
                return True
        return False

    def _columns(self, sheet: str) -> Mapping[int, Sequence[int]] | None:
        """Column -> the sorted rows of its cells with such constants."""
        try:
            values = self._workbook.stored_values(sheet)
            keys = [key for key, value in values.items() if self._is_meant(value)]
            if keys:
                computed = set(self._workbook.sheet(sheet).formula_keys(WHOLE_SHEET))
                keys = sorted(key for key in keys if key not in computed)
        except WorkbookError:
            return None
        columns: dict[int, list[int]] = defaultdict(list)
        for key in keys:
            columns[key & COLUMN_MASK].append(key >> COLUMN_BITS)
        return columns


def text_beyond_ascii(workbook: Workbook) -> Constants:
    """Finds the cells of a workbook that hold text beyond ASCII."""
    return Constants(workbook, _is_beyond_ascii)


_LOGICAL = re.compile(rb"""\bt\s*=\s*["']b["']""")


def logical_constants(workbook: Workbook, package: bytes) -> Constants | None:
    """Finds the cells of a workbook that hold TRUE or FALSE; None if there are none.

    Args:
        workbook: the workbook.
        package: the package that the quick engines get.
    """
    if not any(
        (b'"b"' in part or b"'b'" in part) and _LOGICAL.search(part)
        for part in _parts(package).values()
    ):
        return None
    return Constants(workbook, lambda value: isinstance(value, bool))


def nameless_constants(workbook: Workbook, package: bytes) -> Constants | None:
    """Finds the cells of a workbook that hold ``#NAME?``; None if there are none.

    Args:
        workbook: the workbook.
        package: the package that the quick engines get.
    """
    if not any(b">#NAME?<" in part for part in _parts(package).values()):
        return None
    return Constants(workbook, lambda value: value == ErrorValue("#NAME?"))


class Spills:
    """The cells into which formulas may spill: below and to the right of dynamic array formulas.

    Only formulas whose stated range is their own cell count, as libraries write them; Excel finds
    out on loading how many cells they fill.

    Args:
        sheets: sheet -> for each such formula, its row and column, and whether the cell below and
            the cell to the right are free.
    """

    def __init__(self, sheets: Mapping[str, Sequence[tuple[int, int, bool, bool]]]) -> None:
        self._sheets = sheets

    def __call__(self, sheet: str, reference: Reference) -> bool:
        """Whether a rectangle holds a cell to which a formula may spill from another cell."""
        for row, column, down, right in self._sheets.get(sheet, ()):
            last_row, last_column = reference.max_row, reference.max_column
            if not down:
                last_row = min(last_row, row)
            if not right:
                last_column = min(last_column, column)
            reaches = last_row > row or last_column > column
            within = last_row >= max(row, reference.min_row)
            if reaches and within and last_column >= max(column, reference.min_column):
                return True
        return False


def spills(package: bytes, parts: Mapping[str, str]) -> Spills | None:
    """Finds the cells into which formulas of a package may spill; None if no formula can spill.

    Args:
        package: the package that the quick engines get.
        parts: worksheet -> name of its part.
    """
    contents = _parts(package)
    sheets = {
        sheet: _spilling(contents[part])
        for sheet, part in parts.items()
        if b' cm="' in contents.get(part, b"")
    }
    return Spills(sheets) if any(sheets.values()) else None


MAX_SPILLING = 1000
"""If more formulas than this may spill on a sheet, they count as spilling to every cell below and
to the right of the topmost and leftmost of them."""


_FILLED_CELL = re.compile(rb"""<c r="([A-Z]{1,3}\d{1,7})"[^<>]*+(?<!/)>""")


_SPILLING = re.compile(
    rb"""<c r="(?P<cell>(?P<letters>[A-Z]{1,3})(?P<row>\d{1,7}))"(?P<rest>[^<>]*+)>"""
    rb"""<f(?=[^<>]*? t="array")[^<>]*? ref="(?P=cell)(?::(?P=cell))?\""""
)


def _spilling(xml: bytes) -> Sequence[tuple[int, int, bool, bool]]:
    filled = set(_FILLED_CELL.findall(xml))
    spilling = []
    for formula in _SPILLING.finditer(xml):
        if b' cm="' in formula["rest"]:
            row, column = int(formula["row"]), column_number(formula["letters"].decode())
            down = cell_name(row + 1, column).encode() not in filled
            right = cell_name(row, column + 1).encode() not in filled
            if down or right:
                spilling.append((row, column, down, right))
    if len(spilling) > MAX_SPILLING:
        first_row = min(row for row, *_ in spilling)
        return [(first_row, min(column for _, column, *_ in spilling), True, True)]
    return spilling


def _parts(package: bytes) -> Mapping[str, bytes]:
    """The parts of a slimmed package; empty if it cannot be read here."""
    if isinstance(package, _Packed):
        return package.parts
    try:
        with zipfile.ZipFile(io.BytesIO(package)) as archive:
            check_size(archive.infolist())
            return {name: archive.read(name) for name in archive.namelist()}
    except (WorkbookError, zipfile.BadZipFile, KeyError, NotImplementedError):
        return {}


def _is_beyond_ascii(value: CellValue) -> bool:
    return isinstance(value, str) and (
        not value.isascii() or ("_x" in value and ESCAPED_LETTER.search(value) is not None)
    )


_NEVER_CELLS = re.compile(
    rb"(?:<\?xml[^<>]*\?>\s*)?<(?:\w+:)?(?:theme|styleSheet|workbook|coreProperties|Properties|wsDr|"
    rb"chartSpace|comments|ThreadedComments|personList)\b"
)
"""Root elements of parts with names of fonts, people and files, or the text of drawings and
comments. The workbook part is one of them: a cell whose formula uses a name is never sure."""


_ESCAPED = re.compile(rb"&#|_x[0-9A-Fa-f]{4}_")


def _beyond_ascii(part: bytes) -> bool:
    start = part[:4096].lstrip()
    if not start.startswith((b"<", b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff", b"\0<")):
        return False  # a picture
    if _NEVER_CELLS.match(start):
        return False
    # A zero byte is half of a two-byte character.
    return not part.isascii() or b"\0" in part or _ESCAPED.search(part) is not None


def _reduced(
    archive: zipfile.ZipFile, parts: Mapping[str, str], reach: Reach, index: FormulaIndex
) -> bytes | None:
    superfluous = index.known - len(reach.cells) >= MIN_FORMULAS
    check_size(archive.infolist())
    size = {entry.filename: entry.file_size for entry in archive.infolist()}
    unnamed = {
        part
        for sheet, part in parts.items()
        if sheet not in reach.sheets and size.get(part, 0) >= MIN_SHEET_BYTES
    }
    if not superfluous and not unnamed:
        return None
    kept = {
        part: {
            cell_name(row, column).encode() for name, row, column in reach.cells if name == sheet
        }
        for sheet, part in parts.items()
        if superfluous and sheet in reach.sheets
    }
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w", zipfile.ZIP_STORED) as copy:
        for entry in archive.infolist():
            content = archive.read(entry)
            if entry.filename in unnamed:
                content = _without_cells(content)
            elif entry.filename in kept:
                content = without_formulas(content, kept[entry.filename])
            copy.writestr(entry, content, compress_type=zipfile.ZIP_STORED)
    return target.getvalue()


def _without_cells(xml: bytes) -> bytes:
    """A sheet without its rows; unchanged if they are not found."""
    start = _SHEET_DATA.search(xml)
    if start is None:
        return xml
    end = xml.rfind(b"</" + (start["prefix"] or b"") + b"sheetData")
    return xml[: start.end()] + xml[end:] if end >= start.end() else xml
