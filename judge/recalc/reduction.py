"""A workbook reduced to what the requested cells depend on.

Engines open and compute whole workbooks. Formulas that no asked cell depends on, and the cells of
sheets that none of them names, are left out where that saves more than it costs.
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
from xml.sax.saxutils import escape

from judge.errors import WorkbookError
from judge.formulas.functions import PREFIX
from judge.formulas.lexer import Kind, Token, is_too_long, sheet_of, tokens
from judge.formulas.references import Reference
from judge.formulas.traits import ESCAPED_LETTER
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
from judge.workbook.reader import Workbook

WORTH_FORMULAS = 100
"""Superfluous formulas on the sheets concerned from which leaving them out saves time."""

WORTH_BYTES = 200_000
"""The same for the size of a sheet that no formula concerned names."""

_SHEET_DATA = re.compile(rb"<(?P<prefix>\w+:)?sheetData\b[^<>]*(?<!/)>")


def reduced(workbook: Workbook, rests_on: Dependencies, index: FormulaIndex) -> bytes:
    """The package of a workbook, without what some cells do not depend on.

    Args:
        workbook: the workbook.
        rests_on: what the cells asked for depend on; a package is complete unless this says
            precisely what they reach.
        index: the formulas that were found on the way.
    """
    reach = rests_on.reach
    if reach is None or not rests_on.complete:
        return workbook.data
    try:
        with zipfile.ZipFile(io.BytesIO(workbook.data)) as archive:
            parts = {tab.name: tab.part for tab in workbook.tabs}
            return _reduced(archive, parts, reach, index) or workbook.data
    except (WorkbookError, zipfile.BadZipFile, KeyError, NotImplementedError):
        # What cannot be read here is reported by whoever needs it.
        return workbook.data


def slimmed(package: bytes) -> bytes:
    """The package of a workbook with only what the quick engines compute from.

    They fail at some of what no value depends on: comments, the values last seen in other
    workbooks. LibreOffice needs some of it for functions that they lack, and reduces its own
    package.

    Args:
        package: the workbook; returned as it is where it cannot be read here.
    """
    try:
        with zipfile.ZipFile(io.BytesIO(package)) as archive:
            entries = [each for each in archive.infolist() if _may_hold_cells(each.filename)]
            check_size(entries)
            parts = {
                entry.filename: _slimmed(entry.filename, archive.read(entry)) for entry in entries
            }
    except (WorkbookError, zipfile.BadZipFile, KeyError, NotImplementedError):
        # What cannot be read here is reported by whoever needs it.
        return package
    return _packed({name: content for name, content in parts.items() if content is not None})


def _may_hold_cells(name: str) -> bool:
    return name.lower().endswith(".rels") or less_of(name, b"") is not None


def _slimmed(name: str, content: bytes) -> bytes | None:
    content = only_elements(content)
    if name.lower().endswith(".rels") and (b"<!" in content or b"\0" in content):
        raise WorkbookError(f"{name} is not read here")
    if name == "xl/styles.xml":
        return content  # IronCalc needs more of it than LibreOffice
    less = less_of(name, content)
    return _without(less, b"externalReferences") if less and name == _MAIN else less


def of_cells(package: bytes, parts: Mapping[str, str], cells: AbstractSet[CellRef]) -> bytes:
    """A package with the formulas of some cells alone, and without names.

    Args:
        package: a slimmed package; returned as it is where it cannot be read here.
        parts: worksheet -> name of its part.
        cells: the cells. What they read, that is computed, is among them.
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
    """A package in which some formula cells are constants, where they are written as usual.

    Args:
        package: the workbook; returned as it is where it cannot be read here.
        parts: worksheet -> name of its part.
        values: the cells. Days are counted from 1900.
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


def with_sheets(
    package: bytes, parts: Mapping[str, str], change: Callable[[bytes, str], bytes]
) -> bytes:
    """A package whose sheets went through a function.

    Args:
        package: a slimmed package; returned as it is where it cannot be read here.
        parts: worksheet -> name of its part.
        change: content and name of a sheet -> its new content, the same object where nothing is to
            be changed.
    """
    contents = dict(_parts(package))
    new = {part: change(contents[part], sheet) for sheet, part in parts.items() if part in contents}
    if all(new[part] is contents[part] or new[part] == contents[part] for part in new):
        return package
    return _packed(contents | new)


def with_bounded_columns(sheet_xml: bytes, last_row: LastRow) -> bytes:
    """A sheet whose formulas name the used rows of whole columns, where that makes no difference.

    Excel stops at the last row that is used; IronCalc goes through a million rows for each formula
    that looks something up, and takes blank cells below the data for numbers.

    Args:
        sheet_xml: the sheet of a slimmed package.
        last_row: the last row of the sheet that a reference names.
    """

    def bounded(found: re.Match[bytes]) -> bytes:
        text = html.unescape(found["text"].decode("utf-8", "surrogateescape"))
        new = bounded_columns(text, last_row)
        return found[0] if new == text else escape(new).encode("utf-8", "surrogateescape")

    return _WITH_COLUMNS.sub(bounded, sheet_xml)


LastRow = Callable[[str | None], int | None]
"""The sheet that a reference names, None for that of the formula -> its last row that holds
something; None if that is not known."""

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

_WITH_COLUMNS = re.compile(rb"(?<=>)(?P<text>[^<]*?[A-Za-z]:\$?[A-Za-z]{1,3}[,)][^<]*+)(?=</f>)")


def bounded_columns(formula: str, last_row: LastRow) -> str:
    """A formula that names the used rows of whole columns, where that makes no difference.

    Args:
        formula: with or without its leading ``=``.
        last_row: the last row of the sheet that a reference names.
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
    """The whole columns of which only the used rows count, and the last one of these."""
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


@dataclass(slots=True)
class _OpenCall:
    """A call whose arguments are being read; a nested call is one token of them."""

    function: str
    arguments: list[list[Token]] = field(default_factory=lambda: [[]])

    def used_columns(self, last_row: LastRow) -> list[tuple[Token, int]]:
        """The whole columns among its arguments in which blank cells do not count.

        All of them end in the same row, since a look-up takes its result from the row of another.
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


_NOTHING = Token(Kind.SPACE, "", 0)


def _is_one_sheet(word: Token) -> bool:
    return word.kind is Kind.SHEET and ":" not in word.text


def last_rows(workbook: Workbook, index: FormulaIndex) -> Callable[[str, str | None], int | None]:
    """Finds the last row of a sheet that holds something; None if that is not known.

    Args:
        workbook: an open workbook.
        index: its formulas.

    Returns:
        A function of the sheet of a formula, and of the sheet that the formula names, if it names
        one.
    """

    @functools.cache
    def last_row(home: str, named: str | None) -> int | None:
        sheet = home if named is None else index.named(named)
        if sheet is None:
            return None
        try:
            if workbook.sheet(sheet).fills:
                return None  # how far its array formulas reach may change
            used = workbook.used_range(sheet)
        except WorkbookError:
            return None
        return 0 if used is None else used.max_row

    return last_row


_MAIN = "xl/workbook.xml"


def _without(content: bytes, element: bytes) -> bytes:
    """A part without the first element of a name."""
    start = re.search(rb"<(\w+:)?%s\b[^<>]*(?<!/)>" % element, content)
    if start is None:
        return content
    before, end = content[: start.start()], b"</%s%s>" % (start[1] or b"", element)
    _, closed, after = content[start.end() :].partition(end)
    return before + after if closed else content


def _packed(parts: Mapping[str, bytes]) -> bytes:
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w", zipfile.ZIP_STORED) as copy:
        for name, content in parts.items():
            copy.writestr(zipfile.ZipInfo(name), content)
    return target.getvalue()


def is_ascii_only(package: bytes) -> bool:
    """Whether no part of a package holds text beyond ASCII that a formula could read.

    Letters count in any notation: as they are, as numbers of XML, as Excel's own ``_x00E9_``. Which
    parts are sheets is up to the package, so every part of XML counts but those that cannot be one.
    A package that cannot be read here may hold anything.
    """
    try:
        with zipfile.ZipFile(io.BytesIO(package)) as archive:
            check_size(archive.infolist())
            return not any(_beyond_ascii(archive.read(entry)) for entry in archive.infolist())
    except (WorkbookError, zipfile.BadZipFile, KeyError, NotImplementedError):
        return False


class Constants:
    """Which cells of a workbook hold constants of some kind.

    What a file keeps as the value of a formula does not count: it is computed again.

    Args:
        workbook: the workbook.
        is_meant: whether a value is of that kind.
    """

    def __init__(self, workbook: Workbook, is_meant: Callable[[CellValue], bool]) -> None:
        self._workbook = workbook
        self._is_meant = is_meant
        self._known: dict[str, Mapping[int, Sequence[int]] | None] = {}

    def __call__(self, sheet: str, reference: Reference) -> bool:
        """Whether a rectangle holds any; on a sheet that cannot be read it may."""
        if sheet not in self._known:
            self._known[sheet] = self._columns(sheet)
        columns = self._known[sheet]
        if columns is None:
            return True
        for column, rows in columns.items():
            if reference.min_column <= column <= reference.max_column:
                first = bisect.bisect_left(rows, reference.min_row)
                if first < len(rows) and rows[first] <= reference.max_row:
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
    """Where a workbook holds text beyond ASCII."""
    return Constants(workbook, _is_beyond_ascii)


def logical_constants(workbook: Workbook, package: bytes) -> Constants | None:
    """Where a workbook holds TRUE and FALSE; None if nowhere.

    Args:
        workbook: the workbook.
        package: what the quick engines get of it.
    """
    if not any(
        (b'"b"' in part or b"'b'" in part) and _LOGICAL.search(part)
        for part in _parts(package).values()
    ):
        return None
    return Constants(workbook, lambda value: isinstance(value, bool))


def nameless_constants(workbook: Workbook, package: bytes) -> Constants | None:
    """Where a workbook holds ``#NAME?``; None if nowhere.

    Args:
        workbook: the workbook.
        package: what the quick engines get of it.
    """
    if not any(b">#NAME?<" in part for part in _parts(package).values()):
        return None
    return Constants(workbook, lambda value: value == ErrorValue("#NAME?"))


_LOGICAL = re.compile(rb"""\bt\s*=\s*["']b["']""")


class Spills:
    """Where formulas may spill to: below and to the right of dynamic array formulas.

    Only those whose reference is their own cell, as libraries write them; Excel finds out on
    loading how far they reach.

    Args:
        sheets: sheet -> row and column of these formulas, and whether the cells below and to the
            right are free.
    """

    def __init__(self, sheets: Mapping[str, Sequence[tuple[int, int, bool, bool]]]) -> None:
        self._sheets = sheets

    def __call__(self, sheet: str, reference: Reference) -> bool:
        """Whether a rectangle holds a cell to which a formula may spill, its own aside."""
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
    """Where the formulas of a package may spill to; None if none does.

    Args:
        package: what the quick engines get.
        parts: worksheet -> name of its part.
    """
    contents = _parts(package)
    sheets = {
        sheet: _spilling(contents[part])
        for sheet, part in parts.items()
        if b' cm="' in contents.get(part, b"")
    }
    return Spills(sheets) if any(sheets.values()) else None


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


MAX_SPILLING = 1000
"""Beyond so many formulas of a sheet that may spill, all that is below and to the right counts."""

_FILLED_CELL = re.compile(rb"""<c r="([A-Z]{1,3}\d{1,7})"[^<>]*+(?<!/)>""")
_SPILLING = re.compile(
    rb"""<c r="(?P<cell>(?P<letters>[A-Z]{1,3})(?P<row>\d{1,7}))"(?P<rest>[^<>]*+)>"""
    rb"""<f(?=[^<>]*? t="array")[^<>]*? ref="(?P=cell)(?::(?P=cell))?\""""
)


def _parts(package: bytes) -> Mapping[str, bytes]:
    """The parts of a slimmed package; none if it cannot be read here."""
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


def _beyond_ascii(part: bytes) -> bool:
    start = part[:4096].lstrip()
    if not start.startswith((b"<", b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff", b"\0<")):
        return False  # a picture
    if _NEVER_CELLS.match(start):
        return False
    # A zero byte is part of a letter of two bytes.
    return not part.isascii() or b"\0" in part or _ESCAPED.search(part) is not None


_NEVER_CELLS = re.compile(
    rb"(?:<\?xml[^<>]*\?>\s*)?<(?:\w+:)?(?:theme|styleSheet|workbook|coreProperties|Properties|wsDr|"
    rb"chartSpace|comments|ThreadedComments|personList)\b"
)
"""How parts begin that hold names of fonts, people and files, and the text of drawings and
comments. Where a formula uses a name of the workbook, no cell is sure anyway."""

_ESCAPED = re.compile(rb"&#|_x[0-9A-Fa-f]{4}_")


def _reduced(
    archive: zipfile.ZipFile, parts: Mapping[str, str], reach: Reach, index: FormulaIndex
) -> bytes | None:
    superfluous = index.known - len(reach.cells) >= WORTH_FORMULAS
    check_size(archive.infolist())
    size = {entry.filename: entry.file_size for entry in archive.infolist()}
    unnamed = {
        part
        for sheet, part in parts.items()
        if sheet not in reach.sheets and size.get(part, 0) >= WORTH_BYTES
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
    """A sheet without its rows; as it is where they are not found."""
    start = _SHEET_DATA.search(xml)
    if start is None:
        return xml
    end = xml.rfind(b"</" + (start["prefix"] or b"") + b"sheetData")
    return xml[: start.end()] + xml[end:] if end >= start.end() else xml
