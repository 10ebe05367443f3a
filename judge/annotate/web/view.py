"""Renders a part of a worksheet for the page: text, formats and merged cells as plain data.

Also finds answer cells whose colour changed, and describes conditional formats.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from judge.annotate.edits import Formula, content_text
from judge.console import clipped
from judge.workbook.address import Window, cell_name
from judge.workbook.cell import Cell, CellRange, CellRef
from judge.workbook.reader import Workbook
from judge.workbook.sheets.sheet_tail import ConditionalRule
from judge.workbook.styles.style_sheet import (
    AUTOMATIC_FONT,
    CellStyle,
    ConditionalStyle,
    attribute_agrees,
)

COLOURS: Mapping[str, str] = {"fill": "background", "font_color": "text"}
"""Compared attribute -> its name for people."""

_MAX_RULES = 10
_MAX_CONDITION_CHARS = 80


@dataclass(frozen=True, slots=True)
class ColourChange:
    """A cell whose colour has changed.

    Attributes:
        ref: the cell.
        before, after: its colours, in words.
    """

    ref: CellRef
    before: str
    after: str


def colour_changes(
    before: Workbook, after: Workbook, ranges: tuple[CellRange, ...]
) -> tuple[ColourChange, ...]:
    """Cells of some ranges whose colours differ between two workbooks.

    Raises:
        WorkbookError: a workbook cannot be read.
    """
    changes = []
    for area in ranges:
        if area.sheet not in before.sheet_names or area.sheet not in after.sheet_names:
            continue
        old, new = before.cells(area), after.cells(area)
        for position in sorted(old.keys() | new.keys()):
            was = before.style(old[position].style) if position in old else CellStyle()
            now = after.style(new[position].style) if position in new else CellStyle()
            other = [name for name in COLOURS if not attribute_agrees(name, was, now)]
            if other:
                words = [", ".join(_colour(style, name) for name in other) for style in (was, now)]
                changes.append(ColourChange(CellRef(area.sheet, *position), *words))
    return tuple(changes)


def _colour(style: CellStyle, name: str) -> str:
    value = getattr(style, name)
    return str(value) if name == "fill" else f"{COLOURS[name]} #{value}"


def rule_lines(workbook: Workbook, sheet: str) -> list[str]:
    """Describes the conditional formats of a sheet, which the page does not draw, for people.

    Raises:
        WorkbookError: the sheet cannot be read.
    """
    rules = sorted(workbook.sheet(sheet).tail.rules, key=lambda rule: rule.priority)
    looks = workbook.style_sheet.conditional
    lines = []
    for rule in rules[:_MAX_RULES]:
        has_look = rule.style is not None and 0 <= rule.style < len(looks)
        look = looks[rule.style] if has_look and rule.style is not None else ConditionalStyle()
        lines.append(_rule_line(rule, look))
    if len(rules) > _MAX_RULES:
        lines.append(f"{len(rules) - _MAX_RULES} more conditional formats")
    return lines


def _rule_line(rule: ConditionalRule, look: ConditionalStyle) -> str:
    where = ", ".join(map(str, rule.windows[:3])) + (" …" if len(rule.windows) > 3 else "")
    terms = [value for name, value in rule.terms if name in {"operator", "text", "rank"}]
    condition = clipped(" ".join([rule.kind, *terms, *rule.formulas]), _MAX_CONDITION_CHARS)
    paints = [str(look.fill)] if look.fill is not None else []
    paints += [f"text #{look.font_color}"] if look.font_color else []
    paints += ["bold"] if look.bold else []
    return f"{where}: {condition}" + (f" paints {', '.join(paints)}" if paints else "")


MAX_ROWS, MAX_COLUMNS = 200, 60
"""Size of the part of a sheet that is shown at a time."""

_SPARE_ROWS, _SPARE_COLUMNS = 5, 2
_MIN_ROWS, _MIN_COLUMNS = 20, 8
_ISO_TIME = re.compile(r"(\d{4}-\d{2}-\d{2})T(\d{2}:\d{2}:\d{2})")
_DAY = "00:00:00"
_DECIMALS = re.compile(r"[#0,]*0(?:\.(?P<decimals>0+))?(?P<percent>%)?")


def show_window(
    workbook: Workbook,
    sheet: str,
    first: tuple[int, int],
    *,
    answer: Collection[CellRange] = (),
    marked: Collection[CellRef] = (),
    least: Window | None = None,
) -> dict[str, Any]:
    """Renders the part of a sheet that the page shows.

    Args:
        workbook: the workbook.
        sheet: the sheet's real name.
        first: upper left cell as (row, column), 1-based.
        answer: the answer range, which is marked.
        marked: cells that were changed or moved.
        least: a rectangle to include even if it is empty, so that input and gold show the same
            rows.

    Returns:
        ``rows``: the shown text of each row; ``raw``: the text to edit, by cell address, if it
        differs; ``styles``, ``merges``, ``answer`` and ``marked`` by addresses of the whole sheet;
        ``first_row``, ``first_column``, ``last_row`` and ``last_column``; ``max_rows`` and
        ``max_columns``: the largest part that is shown at a time.

    Raises:
        WorkbookError: the sheet is missing, broken or over a limit.
    """
    window, last = _window(workbook, sheet, first, least)
    area = CellRange(sheet, window.min_row, window.min_column, window.max_row, window.max_column)
    tail = workbook.sheet(sheet).tail
    return {
        "sheet": sheet,
        "first_row": window.min_row,
        "first_column": window.min_column,
        "last_row": last.max_row,
        "last_column": last.max_column,
        "max_rows": MAX_ROWS,
        "max_columns": MAX_COLUMNS,
        **_shown_cells(workbook, area),
        "merges": [str(merge) for merge in tail.merges if _inside(merge, window)],
        "answer": [str(part) for part in _parts(answer, sheet, window)],
        "marked": [cell_name(ref.row, ref.column) for ref in marked if ref.sheet == sheet],
        "conditional": rule_lines(workbook, sheet),
    }


def _shown_cells(workbook: Workbook, area: CellRange) -> dict[str, Any]:
    """``rows``, ``raw``, ``styles`` and ``formats`` of :func:`show_window`."""
    rows = [[""] * area.columns for _ in range(area.rows)]
    raw: dict[str, str] = {}
    styles: dict[str, str] = {}
    formats: dict[str, str] = {}
    for (row, column), cell in workbook.cells(area).items():
        name = cell_name(row, column)
        text, typed = shown_text(cell), typed_text(cell)
        rows[row - area.min_row][column - area.min_column] = text
        if typed != text:
            raw[name] = typed
        if look := css(workbook.style(cell.style), number=isinstance(cell.value, int | float)):
            styles[name] = look
        if cell.number_format != "General":
            formats[name] = cell.number_format
    return {"rows": rows, "raw": raw, "styles": styles, "formats": formats}


def _window(
    workbook: Workbook, sheet: str, first: tuple[int, int], least: Window | None
) -> tuple[Window, Window]:
    """The rectangle to show, and the sheet's used range with some spare rows and columns."""
    used = workbook.used_range(sheet)
    rows = [_MIN_ROWS, (used.max_row if used else 0) + _SPARE_ROWS]
    columns = [_MIN_COLUMNS, (used.max_column if used else 0) + _SPARE_COLUMNS]
    if least is not None:
        rows.append(least.max_row)
        columns.append(least.max_column)
    last = Window(1, 1, max(rows), max(columns))
    row = min(max(first[0], 1), last.max_row)
    column = min(max(first[1], 1), last.max_column)
    shown = Window(
        row,
        column,
        min(last.max_row, row + MAX_ROWS - 1),
        min(last.max_column, column + MAX_COLUMNS - 1),
    )
    return shown, last


def _parts(ranges: Collection[CellRange], sheet: str, window: Window) -> list[Window]:
    merged = []
    for area in ranges:
        part = Window(
            max(area.min_row, window.min_row),
            max(area.min_column, window.min_column),
            min(area.max_row, window.max_row),
            min(area.max_column, window.max_column),
        )
        is_there = part.min_row <= part.max_row and part.min_column <= part.max_column
        if area.sheet == sheet and is_there:
            merged.append(part)
    return merged


def _inside(inner: Window, outer: Window) -> bool:
    return outer.holds(inner.min_row, inner.min_column) and outer.holds(
        inner.max_row, inner.max_column
    )


def typed_text(cell: Cell) -> str:
    """The text to type in order to get this cell."""
    if cell.formula is not None:
        return content_text(Formula(cell.formula.removeprefix("=")))
    return content_text(cell.value)


def shown_text(cell: Cell) -> str:
    """The text that the page shows: the value, formatted much as in a spreadsheet program."""
    value = cell.value
    if cell.formula is not None and value is None:
        return "" if cell.has_cached_value else "(no value)"
    if isinstance(value, str):
        return value
    if isinstance(value, bool) or not isinstance(value, int | float):
        text = content_text(value)
        return plain_time(text) if _is_day(value) else text
    return _number(value, cell.number_format)


def plain_time(text: str) -> str:
    """Shortens ISO date-times in text: drops midnight, and puts a blank before other times."""
    return _ISO_TIME.sub(
        lambda match: match[1] + (f" {match[2]}" if match[2] != _DAY else ""), text
    )


def _is_day(value: object) -> bool:
    return isinstance(value, dt.datetime | dt.date)


def _number(value: float, number_format: str) -> str:
    """A number with the decimals of its format if that is simple, otherwise all its digits."""
    match = _DECIMALS.fullmatch(number_format.split(";", maxsplit=1)[0])
    if match is None:
        return f"{value:.15g}"
    scaled = value * 100 if match["percent"] else value
    separator = "," if "," in number_format else ""
    return f"{scaled:{separator}.{len(match['decimals'] or '')}f}{match['percent'] or ''}"


def css(style: CellStyle, *, number: bool) -> str:
    """The CSS declarations for a cell's style; empty for the default style."""
    parts = []
    if style.fill.pattern == "solid" and style.fill.colours and style.fill.colours[0]:
        parts.append(f"background-color:#{style.fill.colours[0]}")
    if style.font_color != AUTOMATIC_FONT:
        parts.append(f"color:#{style.font_color}")
    if style.bold:
        parts.append("font-weight:bold")
    if style.italic:
        parts.append("font-style:italic")
    if style.underline != "none":
        parts.append("text-decoration:underline")
    horizontal = style.alignment.horizontal
    if horizontal in {"left", "right", "center"}:
        parts.append(f"text-align:{horizontal}")
    elif number:
        parts.append("text-align:right")
    if style.alignment.wrap:
        parts.append("white-space:pre-wrap")
    return ";".join(parts)
