"""Structural edits: inserts and deletes rows, renames sheets, merges cells, changes date systems.

Cells below an inserted row move, and everything that refers to them is updated: formulas, merged
cells, conditional formats, validations, links, filters, tables, names and charts. Objects that are
anchored by other means (drawings, comments, pivot tables) stay in place, and are reported.
"""

from __future__ import annotations

import functools
import html
import re
from collections.abc import Callable

from judge.errors import UsageError, WorkbookError
from judge.formulas.lexer import Kind, sheet_of
from judge.formulas.references import Area, area_text, corner, with_areas
from judge.formulas.shift import with_sheet_renamed
from judge.workbook.address import MAX_ROW, Window, cell_key, folded, parse_cell
from judge.workbook.editing.parts import (
    QUOTED,
    SHEET_TAG,
    attribute,
    copy_package,
    escape_attribute,
    escape_text,
    with_attribute,
)
from judge.workbook.package import Package
from judge.workbook.reader import Workbook, sheet_formulas
from judge.workbook.workbook_parts import main_part
from judge.workbook.xml_parts import relationships

_PROPERTIES = re.compile(rb"<(?:\w+:)?workbookPr\b" + QUOTED + rb"/?>")
_FORMULA_TEXT = re.compile(
    rb"(?P<open><(?:\w+:)?(?:f|formula|formula1|formula2|definedName)(?=[\s>])"
    + QUOTED
    + rb"(?<!/)>)(?P<text>[^<]+)(?=</)"
)
_FORMULA_PARTS = re.compile(r"/(?:worksheets|chartsheets|charts|tables|pivotCache)/[^/]+\.xml$")
_MERGED_RANGES = re.compile(rb"<(?P<prefix>\w+:)?mergeCells\b" + QUOTED + rb">")
_BEFORE_MERGES = (
    *("sheetData", "sheetCalcPr", "sheetProtection", "protectedRanges", "scenarios"),
    *("autoFilter", "sortState", "dataConsolidate", "customSheetViews"),
)
_FORBIDDEN_IN_NAMES = re.compile(r"[\[\]:*?/\\\x00-\x1f]")
MAX_NAME_CHARS = 31


def rewrite_formulas(xml: bytes, change: Callable[[str], str]) -> bytes:
    """A part of a package after a function has rewritten the text of every formula in it."""

    def changed(match: re.Match[bytes]) -> bytes:
        text = html.unescape(match["text"].decode())
        new = change(text)
        return match[0] if new == text else match["open"] + escape_text(new).encode()

    return _FORMULA_TEXT.sub(changed, xml)


def formula_parts(package: Package) -> list[str]:
    """Names of the parts that may hold formulas: the workbook part, sheets, charts, tables."""
    main = main_part(package)
    return [main, *(name for name in package.names if _FORMULA_PARTS.search(name))]


def renamed(package: Package, old: str, new: str) -> dict[str, bytes | None]:
    """The changed parts of a package after a sheet is renamed.

    Raises:
        UsageError: the name is taken, or not allowed for a sheet.
        WorkbookError: there is no such sheet.
    """
    if not new or len(new) > MAX_NAME_CHARS or _FORBIDDEN_IN_NAMES.search(new) or new[0] == "'":
        raise UsageError(
            f"{new!r} cannot be the name of a sheet",
            hint="At most 31 characters, none of [ ] : * ? / \\, no apostrophe at the beginning.",
        )
    main = main_part(package)
    xml = package.read(main)
    tags = list(SHEET_TAG.finditer(xml))
    names = [attribute(tag[0], "name") or "" for tag in tags]
    if old not in names:
        raise WorkbookError(f"the workbook has no sheet {old!r}")
    if folded(new) in {folded(name) for name in names if name != old}:
        raise UsageError(f"there is already a sheet {new!r}")
    tag = tags[names.index(old)]
    xml = xml[: tag.start()] + with_attribute(tag[0], "name", new) + xml[tag.end() :]
    change = functools.partial(with_sheet_renamed, old=old, new=new)
    replaced: dict[str, bytes | None] = {main: rewrite_formulas(xml, change)}
    for name in formula_parts(package)[1:]:
        before = package.read(name)
        if (after := rewrite_formulas(before, change)) != before:
            replaced[name] = after
    return replaced | _renamed_titles(package, old, new)


def _renamed_titles(package: Package, old: str, new: str) -> dict[str, bytes | None]:
    """The list of titles in the document's properties, which repeats the names of the sheets."""
    name = "docProps/app.xml"
    if name not in package:
        return {}
    title = b"<vt:lpstr>%s</vt:lpstr>"
    xml = package.read(name)
    changed = xml.replace(title % escape_text(old).encode(), title % escape_text(new).encode(), 1)
    return {} if changed == xml else {name: changed}


def merged(xml: bytes, window: Window) -> bytes:
    """A worksheet with one more merged range.

    Raises:
        UsageError: the range overlaps a merged one, or is a single cell.
    """
    if (window.min_row, window.min_column) == (window.max_row, window.max_column):
        raise UsageError(f"{window} is a single cell: there is nothing to merge")
    match = _MERGED_RANGES.search(xml)
    if match is not None and not match[0].endswith(b"/>"):
        prefix = match["prefix"] or b""
        end = xml.index(b"</" + prefix + b"mergeCells", match.end())
        count = len(re.findall(rb"<(?:\w+:)?mergeCell\b", xml[match.end() : end]))
        cell = b"<" + prefix + f'mergeCell ref="{window}"/>'.encode()
        tag = with_attribute(match[0], "count", str(count + 1))
        return xml[: match.start()] + tag + xml[match.end() : end] + cell + xml[end:]
    index, prefix = _after_last(xml)
    element = b'<%smergeCells count="1"><%smergeCell ref="%s"/></%smergeCells>' % (
        prefix,
        prefix,
        escape_attribute(str(window)).encode(),
        prefix,
    )
    return xml[:index] + element + xml[index:]


def _after_last(xml: bytes) -> tuple[int, bytes]:
    """The position of the element with merged cells, after the elements that must precede it."""
    index, prefix = 0, b""
    for name in _BEFORE_MERGES:
        pattern = re.compile(
            rb"<(\w+:)?" + name.encode() + rb"\b" + QUOTED
            + rb"(?:/>|(?<!/)>.*?</(?:\w+:)?" + name.encode() + rb"\s*>)",
            re.DOTALL,
        )  # fmt: skip
        match = pattern.search(xml)
        if match is not None and match.end() > index:
            index, prefix = match.end(), match[1] or b""
    if not index:
        raise WorkbookError("the worksheet has no cells")
    return index, prefix


def date_system(package: Package, *, date_1904: bool) -> dict[str, bytes | None]:
    """The workbook part with the other date system; the caller converts the serial numbers.

    Raises:
        WorkbookError: the part cannot be changed.
    """
    main = main_part(package)
    xml = package.read(main)
    value = "1" if date_1904 else "0"
    match = _PROPERTIES.search(xml)
    if match is not None:
        tag = with_attribute(match[0], "date1904", value)
        return {main: xml[: match.start()] + tag + xml[match.end() :]}
    before = re.search(rb"<(\w+:)?(?:workbookProtection|bookViews|sheets)\b", xml)
    if before is None:
        raise WorkbookError("the workbook part lists no sheets")
    tag = b"<" + (before[1] or b"") + f'workbookPr date1904="{value}"/>'.encode()
    return {main: xml[: before.start()] + tag + xml[before.start() :]}


RowMap = Callable[[int, int], tuple[int, int] | None]
"""Maps the first and the last row of a span to their new numbers; None if the span is deleted."""

_STAYING = {
    "drawing": "pictures and charts stay where they are on the sheet",
    "vmlDrawing": "comments and form controls stay at their old rows",
    "comments": "comments stay at their old rows",
    "threadedComment": "comments stay at their old rows",
    "pivotTable": "pivot tables stay where they are",
}

_RANGES = re.compile(rb"(?P<name>\b(?:ref|sqref|activeCell))\s*=\s*\"(?P<text>[^\"]*)\"")
_RANGE_TEXT = re.compile(rb"(?P<open><\w+:sqref>)(?P<text>[^<]*)")
_AREA = re.compile(r"(?P<c1>\$?[A-Z]{1,3}\$?)(?P<r1>\d+)(?::(?P<c2>\$?[A-Z]{1,3}\$?)(?P<r2>\d+))?")
_ROW = re.compile(rb"<(?P<prefix>\w+:)?row\b" + QUOTED + rb"/?>")
_CELL = re.compile(rb"<(?:\w+:)?c\b" + QUOTED + rb"/?>")
_MERGES = re.compile(
    rb"(?P<open><(?:\w+:)?mergeCells\b" + QUOTED + rb"(?<!/)>)(?P<inside>.*?)"
    rb"(?P<close></(?:\w+:)?mergeCells\s*>)",
    re.DOTALL,
)
_SHARED = re.compile(
    rb"<(?P<prefix>\w+:)?f\b(?=[^>]*\bt\s*=\s*[\"']shared[\"'])" + QUOTED
    + rb"(?:/>|(?<!/)>[^<]*</(?:\w+:)?f\s*>)"
)  # fmt: skip


def row_losses(workbook: Workbook, sheet: str) -> list[str]:
    """One line for each kind of object on a sheet that does not move with the rows."""
    links = relationships(workbook.package, workbook.sheet(sheet).part)
    kinds = [_STAYING[link.kind] for link in links.values() if link.kind in _STAYING]
    return [f"{sheet!r}: {line}" for line in dict.fromkeys(kinds)]


def with_rows_moved(workbook: Workbook, sheet: str, row: int, by: int) -> bytes:
    """The workbook with rows inserted (``by`` above 0) or deleted (below 0) at a row.

    Cached values are not changed; the caller computes them again. Shared formulas are expanded.

    Raises:
        WorkbookError: the workbook cannot be read.
        UsageError: rows with content would leave the sheet.
    """
    used = workbook.used_range(sheet)
    if by > 0 and used is not None and used.max_row >= row and used.max_row + by > MAX_ROW:
        raise UsageError(f"{by} more rows do not fit into {sheet!r}")
    rows = row_map(row, by)
    replaced: dict[str, bytes | None] = {}
    names = {workbook.sheet(name).part: name for name in workbook.sheet_names}
    for part in formula_parts(workbook.package):
        before = xml = workbook.package.read(part)
        home = names.get(part)
        if home is not None and b"shared" in xml:
            xml = _unshared(workbook, home, xml)

        def moved(formula: str, home: str | None = home) -> str:
            return move_formula(formula, home, sheet, rows)

        xml = rewrite_formulas(xml, moved)
        if home == sheet:
            xml = _move_ranges(_move_cells(xml, row, by), rows)
        if xml != before:
            replaced[part] = xml
    for link in relationships(workbook.package, workbook.sheet(sheet).part).values():
        if link.kind == "table" and link.target in workbook.package:
            table = replaced.get(link.target) or workbook.package.read(link.target)
            replaced[link.target] = _move_ranges(table, rows)
    return copy_package(workbook.data, replaced)


def row_map(row: int, by: int) -> RowMap:
    """The mapping of row spans for an insertion or deletion."""

    def inserted(first: int, last: int) -> tuple[int, int] | None:
        first, last = (bound + by if bound >= row else bound for bound in (first, last))
        # A range to the end of the sheet still ends there.
        return (first, min(last, MAX_ROW)) if first <= MAX_ROW else None

    def deleted(first: int, last: int) -> tuple[int, int] | None:
        end = row - by
        first = first if first < row else max(row, first + by) if first >= end else row
        last = last if last < row else last + by if last >= end else row - 1
        return (first, last) if first <= last else None

    return inserted if by > 0 else deleted


def move_formula(formula: str, home: str | None, sheet: str, rows: RowMap) -> str:
    """A formula with updated references to a sheet whose rows have moved.

    Args:
        formula: the text of the formula.
        home: the sheet that the formula is on; None if it is not on a sheet (a defined name).
        sheet: the sheet whose rows moved.
        rows: maps old rows to new ones.
    """

    def moved(area: Area) -> str:
        named = home if area.sheet is None else sheet_of(area.sheet)
        if area.first.kind is Kind.COLUMNS or (named or "").casefold() != sheet.casefold():
            return area_text(formula, area)
        prefix = "" if area.sheet is None else area.sheet.text
        if area.first.kind is Kind.ROWS:
            first, _, last = area.first.text.partition(":")
            return _moved_pair(prefix, "", first, "", last, rows)
        column, number = corner(area.first)
        if area.last is area.first:
            moved = rows(int(number), int(number))
            return "#REF!" if moved is None else f"{prefix}{column}{moved[0]}"
        last_column, last_number = corner(area.last)
        return _moved_pair(prefix, column, number, last_column, last_number, rows)

    return with_areas(formula, moved)


def _moved_pair(
    prefix: str, column: str, first: str, last_column: str, last: str, rows: RowMap
) -> str:
    marks = ["$" if bound.startswith("$") else "" for bound in (first, last)]
    moved = rows(int(first.lstrip("$")), int(last.lstrip("$")))
    if moved is None:
        return "#REF!"
    return f"{prefix}{column}{marks[0]}{moved[0]}:{last_column}{marks[1]}{moved[1]}"


def _unshared(workbook: Workbook, sheet: str, xml: bytes) -> bytes:
    """The sheet with every shared formula written out, as offsets would be wrong after the move."""
    texts = {
        cell_key(cell.row, cell.column): cell.formula or "="
        for cell in sheet_formulas(workbook, sheet)
    }
    pieces: list[bytes] = []
    copied = 0
    for match in _SHARED.finditer(xml):
        # The formula element directly follows the start tag of its cell.
        start = xml.rindex(b"<", 0, match.start())
        name = attribute(xml[start : match.start()], "r") or ""
        ref = parse_cell(name)
        if ref is None:
            raise WorkbookError(f"{sheet!r} holds a shared formula in a cell without an address")
        tag = (match["prefix"] or b"") + b"f"
        text = escape_text(texts.get(cell_key(*ref), "=")[1:]).encode()
        pieces += [xml[copied : match.start()], b"<" + tag + b">" + text + b"</" + tag + b">"]
        copied = match.end()
    return b"".join([*pieces, xml[copied:]])


def _move_cells(xml: bytes, row: int, by: int) -> bytes:
    """Renumbers the stored rows and their cells, and removes deleted rows."""
    pieces: list[bytes] = []
    copied = 0
    position = 0
    while (row_match := _ROW.search(xml, position)) is not None:
        number = int(attribute(row_match[0], "r") or 0)
        close = b"</" + (row_match["prefix"] or b"") + b"row>"
        end = row_match.end()
        if not row_match[0].endswith(b"/>"):
            end = xml.index(close, row_match.end()) + len(close)
        position = end
        if number < row:
            continue
        pieces.append(xml[copied : row_match.start()])
        copied = end
        if by < 0 and number < row - by:
            continue
        new = str(number + by)
        pieces.append(with_attribute(row_match[0], "r", new))

        def renumbered(match: re.Match[bytes], new: str = new) -> bytes:
            name = attribute(match[0], "r") or ""
            if not name:
                return match[0]
            return with_attribute(match[0], "r", name.rstrip("0123456789") + new)

        pieces.append(_CELL.sub(renumbered, xml[row_match.end() : end]))
    return b"".join([*pieces, xml[copied:]])


def _move_ranges(xml: bytes, rows: RowMap) -> bytes:
    """Updates attributes and text that name ranges: merged cells, formats, filters, links.

    If the whole range of an element was deleted, the element moves to the first row after it, but
    merged cells are removed.
    """

    def moved(text: bytes) -> bytes:
        ranges = [_move_area(area, rows) for area in text.decode().split()]
        return " ".join(area for area in ranges if area).encode()

    def in_attribute(match: re.Match[bytes]) -> bytes:
        text = moved(match["text"])
        return match["name"] + b'="' + text + b'"' if text else match[0]

    xml = re.sub(
        rb"<(?:\w+:)?mergeCell\b" + QUOTED + rb"/>",
        lambda tag: tag[0] if _survives(tag[0], rows) else b"",
        xml,
    )
    xml = _MERGES.sub(_counted, xml)
    return _RANGE_TEXT.sub(
        lambda match: match["open"] + (moved(match["text"]) or match["text"]),
        _RANGES.sub(in_attribute, xml),
    )


def _counted(match: re.Match[bytes]) -> bytes:
    """Corrects the count of the list of merged cells, and removes the list if it is empty."""
    count = len(re.findall(rb"<(?:\w+:)?mergeCell\b", match["inside"]))
    if not count:
        return b""
    return with_attribute(match["open"], "count", str(count)) + match["inside"] + match["close"]


def _survives(tag: bytes, rows: RowMap) -> bool:
    moved = _move_area(attribute(tag, "ref") or "", rows)
    first, colon, last = moved.partition(":")
    return bool(colon) and first != last


def _move_area(text: str, rows: RowMap) -> str:
    match = _AREA.fullmatch(text)
    if match is None:
        return text
    moved = rows(int(match["r1"]), int(match["r2"] or match["r1"]))
    if moved is None:
        return ""
    first = f"{match['c1']}{moved[0]}"
    return first if match["c2"] is None else f"{first}:{match['c2']}{moved[1]}"
