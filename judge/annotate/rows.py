"""Inserting and deleting rows: what is below moves, and whatever refers to it is updated.

Formulas, merged cells, conditional formats, validations, links, filters, tables, names and charts
follow. What is anchored by other means (drawings, comments, pivot tables) stays, and is reported.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from judge.annotate.structure import formula_parts, rewrite_formulas
from judge.errors import UsageError, WorkbookError
from judge.formulas.lexer import Kind, sheet_of
from judge.formulas.references import Area, area_text, corner, with_areas
from judge.workbook.address import MAX_ROW, cell_key, parse_cell
from judge.workbook.editing.parts import (
    QUOTED,
    attribute,
    copy_package,
    escape_text,
    with_attribute,
)
from judge.workbook.formula_cells import sheet_formulas
from judge.workbook.reader import Workbook
from judge.workbook.xml_parts import relationships

RowMap = Callable[[int, int], tuple[int, int] | None]
"""First and last row of a span -> where they are afterwards; None where the span is gone."""

_STAYING = {
    "drawing": "pictures and charts stay where they are on the sheet",
    "vmlDrawing": "comments and form controls stay at their old rows",
    "comments": "comments stay at their old rows",
    "threadedComment": "comments stay at their old rows",
    "pivotTable": "pivot tables stay where they are",
}

_PLACES = re.compile(rb"(?P<name>\b(?:ref|sqref|activeCell))\s*=\s*\"(?P<text>[^\"]*)\"")
_PLACE_TEXT = re.compile(rb"(?P<open><\w+:sqref>)(?P<text>[^<]*)")
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
    """What does not move with the rows of a sheet, one line each."""
    links = relationships(workbook.package, workbook.sheet(sheet).part)
    found = [_STAYING[link.kind] for link in links.values() if link.kind in _STAYING]
    return [f"{sheet!r}: {line}" for line in dict.fromkeys(found)]


def with_rows_moved(workbook: Workbook, sheet: str, row: int, by: int) -> bytes:
    """The workbook with rows inserted (``by`` above 0) or deleted (below 0) from a row on.

    Cached values are left as they are, to be computed again by the caller. Shared formulas are
    written out.

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
            xml = _move_places(_move_cells(xml, row, by), rows)
        if xml != before:
            replaced[part] = xml
    for link in relationships(workbook.package, workbook.sheet(sheet).part).values():
        if link.kind == "table" and link.target in workbook.package:
            table = replaced.get(link.target) or workbook.package.read(link.target)
            replaced[link.target] = _move_places(table, rows)
    return copy_package(workbook.data, replaced)


def row_map(row: int, by: int) -> RowMap:
    """Where spans of rows are after an insertion or deletion."""

    def inserted(first: int, last: int) -> tuple[int, int] | None:
        first, last = (each + by if each >= row else each for each in (first, last))
        # A range to the end of the sheet still ends there.
        return (first, min(last, MAX_ROW)) if first <= MAX_ROW else None

    def deleted(first: int, last: int) -> tuple[int, int] | None:
        end = row - by
        first = first if first < row else max(row, first + by) if first >= end else row
        last = last if last < row else last + by if last >= end else row - 1
        return (first, last) if first <= last else None

    return inserted if by > 0 else deleted


def move_formula(formula: str, home: str | None, sheet: str, rows: RowMap) -> str:
    """A formula whose references to a sheet follow its rows.

    Args:
        formula: its text.
        home: the sheet that it is on; None if it is not on a sheet (a defined name).
        sheet: the sheet whose rows moved.
        rows: where they moved to.
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
            place = rows(int(number), int(number))
            return "#REF!" if place is None else f"{prefix}{column}{place[0]}"
        last_column, last_number = corner(area.last)
        return _moved_pair(prefix, column, number, last_column, last_number, rows)

    return with_areas(formula, moved)


def _moved_pair(
    prefix: str, column: str, first: str, last_column: str, last: str, rows: RowMap
) -> str:
    marks = ["$" if each.startswith("$") else "" for each in (first, last)]
    place = rows(int(first.lstrip("$")), int(last.lstrip("$")))
    if place is None:
        return "#REF!"
    return f"{prefix}{column}{marks[0]}{place[0]}:{last_column}{marks[1]}{place[1]}"


def _unshared(workbook: Workbook, sheet: str, xml: bytes) -> bytes:
    """The sheet with every shared formula written out: its offsets do not survive the move."""
    texts = {
        cell_key(cell.row, cell.column): cell.formula or "="
        for cell in sheet_formulas(workbook, sheet)
    }
    pieces: list[bytes] = []
    copied = 0
    for found in _SHARED.finditer(xml):
        # The formula directly follows the start of its cell.
        start = xml.rindex(b"<", 0, found.start())
        name = attribute(xml[start : found.start()], "r") or ""
        place = parse_cell(name)
        if place is None:
            raise WorkbookError(f"{sheet!r} holds a shared formula without a place")
        tag = (found["prefix"] or b"") + b"f"
        text = escape_text(texts.get(cell_key(*place), "=")[1:]).encode()
        pieces += [xml[copied : found.start()], b"<" + tag + b">" + text + b"</" + tag + b">"]
        copied = found.end()
    return b"".join([*pieces, xml[copied:]])


def _move_cells(xml: bytes, row: int, by: int) -> bytes:
    """The stored rows and their cells, renumbered; deleted rows taken out."""
    pieces: list[bytes] = []
    copied = 0
    position = 0
    while (found := _ROW.search(xml, position)) is not None:
        number = int(attribute(found[0], "r") or 0)
        close = b"</" + (found["prefix"] or b"") + b"row>"
        end = found.end()
        if not found[0].endswith(b"/>"):
            end = xml.index(close, found.end()) + len(close)
        position = end
        if number < row:
            continue
        pieces.append(xml[copied : found.start()])
        copied = end
        if by < 0 and number < row - by:
            continue
        new = str(number + by)
        pieces.append(with_attribute(found[0], "r", new))

        def renumbered(match: re.Match[bytes], new: str = new) -> bytes:
            name = attribute(match[0], "r") or ""
            if not name:
                return match[0]
            return with_attribute(match[0], "r", name.rstrip("0123456789") + new)

        pieces.append(_CELL.sub(renumbered, xml[found.end() : end]))
    return b"".join([*pieces, xml[copied:]])


def _move_places(xml: bytes, rows: RowMap) -> bytes:
    """Attributes and text that name ranges of the sheet: merged cells, formats, filters, links.

    Elements whose whole range is gone keep the first row of what is left, except merged cells,
    which are removed.
    """

    def moved(text: bytes) -> bytes:
        places = [_move_area(each, rows) for each in text.decode().split()]
        return " ".join(each for each in places if each).encode()

    def in_attribute(match: re.Match[bytes]) -> bytes:
        text = moved(match["text"])
        return match["name"] + b'="' + text + b'"' if text else match[0]

    xml = re.sub(
        rb"<(?:\w+:)?mergeCell\b" + QUOTED + rb"/>",
        lambda tag: tag[0] if _survives(tag[0], rows) else b"",
        xml,
    )
    xml = _MERGES.sub(_counted, xml)
    return _PLACE_TEXT.sub(
        lambda match: match["open"] + (moved(match["text"]) or match["text"]),
        _PLACES.sub(in_attribute, xml),
    )


def _counted(match: re.Match[bytes]) -> bytes:
    """The list of merged cells with its count; nothing if none is left."""
    count = len(re.findall(rb"<(?:\w+:)?mergeCell\b", match["inside"]))
    if not count:
        return b""
    return with_attribute(match["open"], "count", str(count)) + match["inside"] + match["close"]


def _survives(tag: bytes, rows: RowMap) -> bool:
    place = _move_area(attribute(tag, "ref") or "", rows)
    first, colon, last = place.partition(":")
    return bool(colon) and first != last


def _move_area(text: str, rows: RowMap) -> str:
    match = _AREA.fullmatch(text)
    if match is None:
        return text
    place = rows(int(match["r1"]), int(match["r2"] or match["r1"]))
    if place is None:
        return ""
    first = f"{match['c1']}{place[0]}"
    return first if match["c2"] is None else f"{first}:{match['c2']}{place[1]}"
