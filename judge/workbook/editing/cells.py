"""Sets cells of a workbook: rewrites only the affected markup, and copies everything else.

New cell formats are added at the end of the style sheet, so that the existing ones keep their
numbers. Cells that lose their formula are removed from the calculation chain, Excel's list of
formula cells, which must name only formula cells.
"""

from __future__ import annotations

import datetime as dt
import re
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence

from judge.errors import WorkbookError
from judge.workbook.address import Window, cell_name, parse_window
from judge.workbook.cell import Cell, CellRange, CellRef
from judge.workbook.editing.parts import (
    QUOTED,
    attribute,
    copy_package,
    linked_part,
    sheet_ids,
    styles_part,
    with_attribute,
    without_part,
)
from judge.workbook.editing.sheet_xml import CellContent, NewContent, SetCell, SheetXml, address
from judge.workbook.number_formats import is_date_format
from judge.workbook.reader import Workbook, filling_cells, open_workbook
from judge.workbook.xml_parts import relationships, scan_part

_ENTRY = re.compile(rb"<(?:\w+:)?c\b" + QUOTED + rb"/>")


def without_cells(xml: bytes, sheet_id: str, cells: Collection[tuple[int, int]]) -> bytes | None:
    """Removes some cells from the calculation chain.

    Args:
        xml: the part.
        sheet_id: the ``sheetId`` of the cells' sheet.
        cells: (row, column), 1-based.

    Returns:
        The part, unchanged if it names none of the cells; None if nothing is left of it.
    """
    addresses = {cell_name(*position) for position in cells}
    pieces: list[bytes] = []
    copied = kept = 0
    sheet = reference = ""
    for match in _ENTRY.finditer(xml):
        # An entry without a sheet belongs to the sheet of the entry before it.
        sheet = attribute(match[0], "i") or sheet
        pieces.append(xml[copied : match.start()])
        copied = match.end()
        if sheet == sheet_id and attribute(match[0], "r") in addresses:
            continue
        kept += 1
        unclear = reference != sheet and attribute(match[0], "i") is None
        pieces.append(with_attribute(match[0], "i", sheet) if unclear else match[0])
        reference = sheet
    pieces.append(xml[copied:])
    return b"".join(pieces) if kept else None


DATE_FORMAT, TIME_FORMAT, DATE_TIME_FORMAT = 14, 21, 22
"""Ids of built-in number formats: for a date, a time of day, and both."""

_XF = re.compile(rb"<(?:\w+:)?xf\b" + QUOTED + rb"(?:/>|(?<!/)>.*?</(?:\w+:)?xf\s*>)", re.DOTALL)


class StylesXml:
    """The XML of a style sheet, to which cell formats can be added.

    Args:
        xml: the part.
    """

    def __init__(self, xml: bytes) -> None:
        self.xml = xml
        self._made: dict[tuple[object, ...], int] = {}

    def with_number_format(self, base: int, number_format: int) -> int:
        """Index of a format like another one, with a built-in number format.

        Raises:
            WorkbookError: the style sheet has no such format.
        """
        key = ("number", base, number_format)
        if key not in self._made:
            self._made[key] = self._append_xf(
                base, {"numFmtId": str(number_format), "applyNumberFormat": "1"}
            )
        return self._made[key]

    def with_fill(self, base: int, colour: str) -> int:
        """Index of a format like another one, with a plain background.

        Args:
            base: index of the format.
            colour: ``RRGGBB``, or ``AARRGGBB``.

        Raises:
            WorkbookError: the style sheet has no such format, or no list of fills.
        """
        key = ("fill", base, colour)
        if key not in self._made:
            colour = colour.lstrip("#").upper()
            if not re.fullmatch(r"[0-9A-F]{6}|[0-9A-F]{8}", colour):
                raise WorkbookError(f"{colour!r} is not a colour; write it as RRGGBB")
            fill = (
                '<{0}fill><{0}patternFill patternType="solid"><{0}fgColor rgb="'
                + colour.rjust(8, "F")
                + '"/><{0}bgColor indexed="64"/></{0}patternFill></{0}fill>'
            )
            index = self._append("fills", "fill", fill)
            self._made[key] = self._append_xf(base, {"fillId": str(index), "applyFill": "1"})
        return self._made[key]

    def _append_xf(self, base: int, changes: dict[str, str]) -> int:
        start, end, _ = self._list("cellXfs")
        formats = _XF.findall(self.xml[start:end])
        if not 0 <= base < len(formats):
            raise WorkbookError(f"the workbook has no cell format {base}")
        written = formats[base]
        tag_end = written.index(b">") + 1
        tag = written[:tag_end]
        for name, value in changes.items():
            tag = with_attribute(tag, name, value)
        return self._append("cellXfs", "xf", (tag + written[tag_end:]).decode(), plain=True)

    def _append(self, group: str, member: str, text: str, *, plain: bool = False) -> int:
        start, end, prefix = self._list(group)
        opening = re.compile(rb"<(?:\w+:)?" + member.encode() + rb"\b")
        count = len(opening.findall(self.xml[start:end]))
        new = text if plain else text.format(prefix)
        tag_start = self.xml.rindex(b"<", 0, start)
        tag = with_attribute(self.xml[tag_start:start], "count", str(count + 1))
        self.xml = self.xml[:tag_start] + tag + self.xml[start:end] + new.encode() + self.xml[end:]
        return count

    def _list(self, group: str) -> tuple[int, int, str]:
        """The position of a list's members, and the prefix of its elements."""
        match = re.search(
            rb"<(?P<prefix>\w+:)?" + group.encode() + rb"\b" + QUOTED + rb">", self.xml
        )
        if match is None or match[0].endswith(b"/>"):
            raise WorkbookError(f"the workbook's style sheet has no {group}")
        prefix = (match["prefix"] or b"").decode()
        end = self.xml.find(f"</{prefix}{group}".encode(), match.end())
        if end < 0:
            raise WorkbookError("the workbook's style sheet is not well-formed")
        return match.end(), end, prefix


def set_cells(data: bytes, edits: Sequence[SetCell]) -> bytes:
    """A copy of a workbook with some cells set; the cached values of formulas do not change.

    If a cell is edited several times, the last edit counts.

    Raises:
        WorkbookError: a cell cannot be set: its sheet does not exist, or it is covered by a merged
            range, part of an array formula, or a table's heading.
    """
    if not edits:
        return data
    workbook = open_workbook(data)
    by_sheet: dict[str, dict[tuple[int, int], SetCell]] = defaultdict(dict)
    for edit in edits:
        by_sheet[edit.ref.sheet][edit.ref.row, edit.ref.column] = edit
    replaced: dict[str, bytes | None] = {}
    styles_name = styles_part(workbook)
    styles = StylesXml(workbook.package.read(styles_name) if styles_name else b"")
    before = styles.xml
    chain_name = linked_part(workbook, "calcChain")
    chain = workbook.package.read(chain_name) if chain_name else None
    ids = sheet_ids(workbook.package)
    for sheet, cells in by_sheet.items():
        part = workbook.sheet(sheet).part
        _check_places(workbook, sheet, cells)
        existing = _known_cells(workbook, sheet, cells)
        xml = SheetXml(
            workbook.package.read(part), part, date_1904=workbook.facts.date_1904
        ).with_cells(
            {
                position: NewContent(edit.content, _style(edit, existing.get(position), styles))
                for position, edit in cells.items()
            }
        )
        replaced[part] = xml
        lost_formulas = [
            position for position, cell in existing.items() if cell.formula is not None
        ]
        if chain is not None and lost_formulas:
            chain = without_cells(chain, ids.get(part, ""), lost_formulas)
            if chain is None and chain_name is not None:
                replaced |= without_part(workbook.package, chain_name)
            elif chain_name is not None:
                replaced[chain_name] = chain
    if styles_name and styles.xml != before:
        replaced[styles_name] = styles.xml
    return copy_package(data, replaced)


def _known_cells(
    workbook: Workbook, sheet: str, edits: Mapping[tuple[int, int], SetCell]
) -> dict[tuple[int, int], Cell]:
    rows = [row for row, _ in edits]
    columns = [column for _, column in edits]
    area = CellRange(sheet, min(rows), min(columns), max(rows), max(columns))
    stored = workbook.cells(area)
    return {position: stored[position] for position in edits if position in stored}


def _style(edit: SetCell, existing: Cell | None, styles: StylesXml) -> int | None:
    """The cell format that an edit needs; None if the cell's own format is sufficient."""
    style = edit.style
    base = style if style is not None else existing.style if existing is not None else 0
    shows_dates = existing is not None and style is None and is_date_format(existing.number_format)
    date_format = _date_format(edit.content)
    if date_format is not None and not shows_dates and style is None:
        style = base = styles.with_number_format(base, date_format)
    if edit.fill is not None:
        style = styles.with_fill(base, edit.fill)
    return style


def _date_format(content: CellContent) -> int | None:
    if isinstance(content, dt.datetime):
        return DATE_FORMAT if content.time() == dt.time() else DATE_TIME_FORMAT
    if isinstance(content, dt.date):
        return DATE_FORMAT
    return TIME_FORMAT if isinstance(content, dt.time | dt.timedelta) else None


def _check_places(workbook: Workbook, sheet: str, cells: Mapping[tuple[int, int], SetCell]) -> None:
    target = workbook.sheet(sheet)
    for merge in target.tail.merges:
        for row, column in cells:
            first = merge.first
            if merge.holds(row, column) and (row, column) != first:
                if cells[row, column].content is None:
                    continue
                raise WorkbookError(
                    f"{address(CellRef(sheet, row, column))} is covered by the merged range "
                    f"{merge}, and shows nothing",
                    hint=f"Set {address(CellRef(sheet, *first))} instead.",
                )
    for source in filling_cells(workbook, sheet):
        filled = parse_window((source.array_range or "").replace("$", ""))
        if filled is None:
            continue
        inside = [position for position in cells if filled.holds(*position)]
        size = filled.size
        if inside and len(inside) < size:
            raise WorkbookError(
                f"{address(CellRef(sheet, *inside[0]))} is part of the array formula of {filled}, "
                "which can only be changed as a whole",
                hint=f"Set every cell of {filled}, or leave them alone.",
            )
    for heading in _table_headings(workbook, target.part):
        for row, column in cells:
            if heading.holds(row, column):
                raise WorkbookError(
                    f"{address(CellRef(sheet, row, column))} is a heading of a table; Excel would "
                    "call the file damaged",
                    hint="Change headings of tables in a spreadsheet program.",
                )


def _table_headings(workbook: Workbook, part: str) -> list[Window]:
    windows: list[Window] = []

    def on_start(tag: str, attributes: dict[str, str]) -> None:
        area = parse_window(attributes.get("ref", "")) if tag == "table" else None
        if area is not None and attributes.get("headerRowCount", "1") != "0":
            windows.append(Window(area.min_row, area.min_column, area.min_row, area.max_column))

    for link in relationships(workbook.package, part).values():
        if link.kind == "table" and link.target in workbook.package:
            scan_part(workbook.package, link.target, on_start)
    return windows
