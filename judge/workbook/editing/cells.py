"""Sets cells of a workbook; only what that requires is rewritten, all else is copied as it is."""

from __future__ import annotations

import datetime as dt
from collections import defaultdict
from collections.abc import Mapping, Sequence

from judge.errors import WorkbookError
from judge.workbook.address import Window, parse_window
from judge.workbook.cell import Cell, CellRange, CellRef
from judge.workbook.dates import is_date_format
from judge.workbook.editing.calc_chain import without_cells
from judge.workbook.editing.cell_styles import (
    DATE_FORMAT,
    DATE_TIME_FORMAT,
    TIME_FORMAT,
    StylesXml,
)
from judge.workbook.editing.contents import CellContent, SetCell, address
from judge.workbook.editing.parts import (
    copy_package,
    linked_part,
    sheet_ids,
    styles_part,
    without_part,
)
from judge.workbook.editing.sheet_xml import NewContent, SheetXml
from judge.workbook.formula_cells import filling_cells
from judge.workbook.reader import Workbook, open_workbook
from judge.workbook.xml_parts import relationships, scan_part


def set_cells(data: bytes, edits: Sequence[SetCell]) -> bytes:
    """A copy of a workbook with some cells set; the values of formulas stay as they were.

    Of several edits of one cell the last counts.

    Raises:
        WorkbookError: a cell cannot be set: no such sheet, covered by a merged range, part of an
            array formula, a table's heading.
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
        known = _known_cells(workbook, sheet, cells)
        xml = SheetXml(
            workbook.package.read(part), part, date_1904=workbook.facts.date_1904
        ).with_cells(
            {
                place: NewContent(edit.content, _style(edit, known.get(place), styles))
                for place, edit in cells.items()
            }
        )
        replaced[part] = xml
        gone = [place for place, cell in known.items() if cell.formula is not None]
        if chain is not None and gone:
            chain = without_cells(chain, ids.get(part, ""), gone)
            if chain is None and chain_name is not None:
                replaced |= without_part(workbook.package, chain_name)
            elif chain_name is not None:
                replaced[chain_name] = chain
    if styles_name and styles.xml != before:
        replaced[styles_name] = styles.xml
    return copy_package(data, replaced)


def _known_cells(
    workbook: Workbook, sheet: str, places: Mapping[tuple[int, int], SetCell]
) -> dict[tuple[int, int], Cell]:
    rows = [row for row, _ in places]
    columns = [column for _, column in places]
    area = CellRange(sheet, min(rows), min(columns), max(rows), max(columns))
    stored = workbook.cells(area)
    return {place: stored[place] for place in places if place in stored}


def _style(edit: SetCell, known: Cell | None, styles: StylesXml) -> int | None:
    """The cell format that an edit needs; None if the cell's own will do."""
    style = edit.style
    base = style if style is not None else known.style if known is not None else 0
    shows_dates = known is not None and style is None and is_date_format(known.number_format)
    wanted = _date_format(edit.content)
    if wanted is not None and not shows_dates and style is None:
        style = base = styles.with_number_format(base, wanted)
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
            first = (merge.min_row, merge.min_column)
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
        inside = [place for place in cells if filled.holds(*place)]
        size = (filled.max_row - filled.min_row + 1) * (filled.max_column - filled.min_column + 1)
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
    found: list[Window] = []

    def on_start(tag: str, attributes: dict[str, str]) -> None:
        area = parse_window(attributes.get("ref", "")) if tag == "table" else None
        if area is not None and attributes.get("headerRowCount", "1") != "0":
            found.append(Window(area.min_row, area.min_column, area.min_row, area.max_column))

    for link in relationships(workbook.package, part).values():
        if link.kind == "table" and link.target in workbook.package:
            scan_part(workbook.package, link.target, on_start)
    return found
