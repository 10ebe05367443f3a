"""Tools for the workbooks of one folder: list, view, find, set, compute, compare. No verdicts."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Protocol

from judge.compare.cells.collateral import find_collateral
from judge.compare.rules.patterns import PatternError, Steps, check_pattern, search
from judge.console import visible
from judge.errors import UsageError, WorkbookError
from judge.recalc.library import Recalculation, ranges_of
from judge.recalc.rewrite import with_values
from judge.tools.contract import Tool, ToolFaultError
from judge.workbook.address import (
    COLUMN_BITS,
    COLUMN_MASK,
    WHOLE_SHEET,
    cell_key,
    column_letters,
    parse_cell,
)
from judge.workbook.cell import CellRange, CellRef, CellValue, ErrorValue
from judge.workbook.editing.cells import set_cells
from judge.workbook.editing.sheet_xml import (
    CellContent,
    Formula,
    SetCell,
    address,
    content_from_json,
)
from judge.workbook.facts.book import BookFacts
from judge.workbook.position import match_sheet
from judge.workbook.reader import Workbook, open_workbook

MAX_CELLS, USUAL_CELLS = 10_000, 2_000
"""Largest number of cells that a call can show, and how many it shows by default."""

MAX_FOUND = 100
_MAX_SEARCHED_CHARS, _MAX_STEPS = 32_767, 20_000_000
_MAX_VALUE_CHARS = 200
_SHOWN = ("values", "formulas", "both", "formats")


class Calculator(Protocol):
    """Computes the formulas of a workbook; :class:`judge.recalc.library.Recalculating` does."""

    def __call__(self, path: bytes, *, at: str | None = None) -> Recalculation:
        """Computes the formulas at a position, or all formulas.

        Raises:
            JudgeError: the workbook cannot be read, or no engine is available.
        """
        ...


class WorkbookStore(Protocol):
    """Reads and writes workbooks for tools; see :class:`judge.tools.folder.ToolFolder`."""

    read_only: bool

    def names(self) -> list[tuple[str, int]]:
        """Returns the names of the workbooks, and their sizes in bytes."""
        ...

    def read(self, name: str) -> bytes:
        """Returns the bytes of a workbook."""
        ...

    def write(self, name: str, data: bytes) -> None:
        """Writes a workbook."""
        ...


_PATH = {"type": "string", "description": "Path of the workbook within the folder."}
_RANGE = {"type": "string", "description": "Cells, such as Sheet1!A1:D20."}
_VALUE = {
    "type": ["string", "number", "boolean", "object", "null"],
    "description": "A value; a string that begins with = is a formula; null empties the cell; "
    '{"date": "2024-01-31"} is a date.',
}


class WorkbookTools:
    """The tools for the workbooks of one folder.

    Args:
        folder: the folder.
        calculator: opens the calculation engines; called once, when they are first needed.
    """

    def __init__(self, folder: WorkbookStore, calculator: Callable[[], Calculator]) -> None:
        self._folder = folder
        self._open_calculator = calculator
        self._calculator: Calculator | None = None

    def tools(self) -> tuple[Tool, ...]:
        """All tools; if the folder is read-only, without those that write."""
        tools = (*self._reading(), *self._writing())
        return tuple(tool for tool in tools if not (tool.writes and self._folder.read_only))

    def _reading(self) -> Iterator[Tool]:
        yield Tool(
            "list_workbooks", "List the workbooks of the folder.", {}, (), self._list_workbooks
        )
        yield Tool(
            "list_sheets",
            "List the sheets of a workbook: state, used range, formulas, charts, pivot tables, "
            "tables.",
            {"path": _PATH},
            ("path",),
            self._list_sheets,
        )
        yield Tool(
            "view_range",
            "Show the cells of a range, row by row, with addresses. A formula without a stored "
            "value says so; recalc computes it.",
            {
                "path": _PATH,
                "range": _RANGE,
                "show": {
                    "type": "string",
                    "enum": list(_SHOWN),
                    "description": "Values (default), formulas, both, or formats.",
                },
                "max_cells": {"type": "integer", "minimum": 1, "maximum": MAX_CELLS},
            },
            ("path", "range"),
            self._view_range,
        )
        yield Tool(
            "find",
            "Find cells that contain some text, whatever its case, or match a regular expression.",
            {
                "path": _PATH,
                "text": {"type": "string", "description": "The text."},
                "regex": {"type": "string", "description": "Or a regular expression."},
                "in": {"type": "string", "enum": ["values", "formulas"]},
                "sheet": {"type": "string", "description": "Only this sheet."},
            },
            ("path",),
            self._find,
        )
        yield Tool(
            "diff",
            "List the cells in which a workbook differs from another, and features that it lost.",
            {"path": _PATH, "against": {**_PATH, "description": "The workbook as it was."}},
            ("path", "against"),
            self._diff,
        )

    def _writing(self) -> Iterator[Tool]:
        save = {"type": "string", "description": "Where to save; the same file by default."}
        cell = {
            "type": "object",
            "properties": {"cell": {"type": "string"}, "value": _VALUE},
            "required": ["cell", "value"],
        }
        yield Tool(
            "set_cells",
            "Set cells of a sheet; everything else stays as it is. Formulas are not computed.",
            {
                "path": _PATH,
                "sheet": {"type": "string", "description": "The sheet."},
                "cells": {"type": "array", "items": cell},
                "save_as": save,
            },
            ("path", "sheet", "cells"),
            self._set_cells,
            writes=True,
        )
        yield Tool(
            "write_range",
            "Write rows of values or formulas, beginning at a cell; everything else stays as it "
            "is. Formulas are not computed.",
            {
                "path": _PATH,
                "start": {"type": "string", "description": "The first cell, such as Sheet1!B2."},
                "rows": {"type": "array", "items": {"type": "array", "items": _VALUE}},
                "save_as": save,
            },
            ("path", "start", "rows"),
            self._write_range,
            writes=True,
        )
        yield Tool(
            "set_format",
            "Give the cells of a range a background colour.",
            {
                "path": _PATH,
                "range": _RANGE,
                "fill": {"type": "string", "description": "The colour as RRGGBB."},
                "save_as": save,
            },
            ("path", "range", "fill"),
            self._set_format,
            writes=True,
        )
        yield Tool(
            "recalc",
            "Compute the formulas of a range, or all, and show the values. save_as writes a copy "
            "with the values.",
            {"path": _PATH, "range": _RANGE, "save_as": save},
            ("path",),
            self._recalc,
        )

    # -- reading ---------------------------------------------------------------------------------

    def _open(self, arguments: Mapping[str, Any], name: str = "path") -> Workbook:
        try:
            return open_workbook(self._folder.read(arguments[name]))
        except WorkbookError as error:
            raise ToolFaultError(f"{visible(arguments[name])}: {error.message}") from error

    def _list_workbooks(self, _: Mapping[str, Any]) -> str:
        names = self._folder.names()
        return "\n".join(f"{visible(name)}: {size:,} bytes" for name, size in names) or "none"

    def _list_sheets(self, arguments: Mapping[str, Any]) -> str:
        workbook = self._open(arguments)
        book = BookFacts(workbook)
        lines = []
        for tab in workbook.tabs:
            facts = book.sheet(tab)
            parts = [f"{visible(tab.name)!r}: {facts.state}, {facts.kind}"]
            if tab.is_worksheet:
                used = workbook.used_range(tab.name)
                formulas = len(workbook.sheet(tab.name).formula_keys(WHOLE_SHEET))
                parts.append("empty" if used is None else f"used {used.window}")
                parts.append(f"{formulas:,} formulas")
            counts = {
                "charts": facts.charts,
                "pivot tables": facts.pivots,
                "tables": facts.tables,
                "merged ranges": facts.merges,
                "data validations": facts.validations,
                "conditional formats": facts.formats,
            }
            parts += [f"{len(items):,} {name}" for name, items in counts.items() if items]
            lines.append(", ".join(parts))
        return "\n".join(lines)

    def _view_range(self, arguments: Mapping[str, Any]) -> str:
        workbook = self._open(arguments)
        left = arguments.get("max_cells", USUAL_CELLS)
        shown = arguments.get("show", "values")
        areas, notes = ranges_of(workbook, arguments["range"])
        lines = list(notes)
        for area in areas:
            columns = min(area.columns, left)
            rows = min(area.rows, left // max(columns, 1))
            cut = CellRange(
                area.sheet,
                area.min_row,
                area.min_column,
                area.min_row + rows - 1,
                area.min_column + columns - 1,
            )
            lines += [f"{visible(area.sheet)}!{cut.window}", *_grid(workbook, cut, shown)]
            if (rows, columns) != (area.rows, area.columns):
                lines.append(f"more: {area.rows:,} rows and {area.columns:,} columns in all")
            left -= rows * columns
            if left <= 0:
                break
        return "\n".join(lines)

    def _find(self, arguments: Mapping[str, Any]) -> str:
        workbook = self._open(arguments)
        sheets = workbook.sheet_names
        if "sheet" in arguments:
            sheets = (_sheet(workbook, arguments["sheet"]),)
        matches = _matcher(arguments.get("text", ""), arguments.get("regex", ""))
        lines: list[str] = []
        for sheet in sheets:
            read = workbook.sheet(sheet)
            texts: dict[int, str] = {}
            if arguments.get("in", "values") == "formulas":
                texts = {key: read.formula(key) or "" for key in read.formula_keys(WHOLE_SHEET)}
            else:
                texts = {key: _text(value) for key, value in read.values(WHOLE_SHEET).items()}
            for key in sorted(key for key, text in texts.items() if matches(text)):
                if len(lines) == MAX_FOUND:
                    return "\n".join([*lines, f"more than {MAX_FOUND} cells"])
                ref = CellRef(sheet, key >> COLUMN_BITS, key & COLUMN_MASK)
                lines.append(f"{visible(address(ref))}: {_cut(texts[key])}")
        return "\n".join(lines) or "no cell"

    def _diff(self, arguments: Mapping[str, Any]) -> str:
        before, workbook = self._open(arguments, "against"), self._open(arguments)
        differences = find_collateral(before, before, workbook, (), ())
        counts = {kind.value: count for kind, count in differences.counts.items() if count}
        counts |= {"features lost": differences.features, "looks changed": differences.style}
        counts["rows or columns shifted"] = differences.moved
        lines = [f"{name}: {count:,}" for name, count in counts.items() if count]
        lines += [
            f"{cell.harm.value} {visible(cell.sheet)}!{cell.cell}" for cell in differences.cells
        ]
        return "\n".join(lines) or "no difference"

    # -- changing --------------------------------------------------------------------------------

    def _set_cells(self, arguments: Mapping[str, Any]) -> str:
        workbook = self._open(arguments)
        sheet = _sheet(workbook, arguments["sheet"])
        edits = []
        for assignment in arguments["cells"]:
            cell = parse_cell(assignment["cell"])
            if cell is None:
                raise ToolFaultError(f"{assignment['cell']!r:.80} is not a cell, such as B7")
            edits.append(SetCell(CellRef(sheet, *cell), _content(assignment["value"])))
        self._save(arguments, set_cells(workbook.data, edits))
        return f"{len(edits):,} cells of {visible(sheet)!r} were set"

    def _write_range(self, arguments: Mapping[str, Any]) -> str:
        workbook = self._open(arguments)
        areas, _ = ranges_of(workbook, arguments["start"])
        if len(areas) != 1 or areas[0].size != 1:
            raise ToolFaultError(f"{arguments['start']!r:.80} is not a cell, such as Sheet1!B2")
        first = areas[0]
        edits = []
        for down, row in enumerate(arguments["rows"]):
            for right, value in enumerate(row):
                ref = CellRef(first.sheet, first.min_row + down, first.min_column + right)
                edits.append(SetCell(ref, _content(value)))
        if not edits or len(edits) > MAX_CELLS:
            raise ToolFaultError(f"a call writes 1 to {MAX_CELLS:,} cells, not {len(edits):,}")
        self._save(arguments, set_cells(workbook.data, edits))
        return f"{len(edits):,} cells were written from {visible(address(edits[0].ref))} on"

    def _set_format(self, arguments: Mapping[str, Any]) -> str:
        workbook = self._open(arguments)
        areas, _ = ranges_of(workbook, arguments["range"])
        if sum(area.size for area in areas) > MAX_CELLS:
            raise ToolFaultError(f"a call formats at most {MAX_CELLS:,} cells")
        edits = []
        for area in areas:
            read = workbook.sheet(area.sheet)
            values = read.values(area.window)
            for row, column in area.cells():
                key = cell_key(row, column)
                formula = read.formula(key)
                content = values.get(key) if formula is None else Formula(formula[1:])
                ref = CellRef(area.sheet, row, column)
                edits.append(SetCell(ref, content, fill=arguments["fill"]))
        self._save(arguments, set_cells(workbook.data, edits))
        return f"{len(edits):,} cells were filled"

    def _recalc(self, arguments: Mapping[str, Any]) -> str:
        workbook = self._open(arguments)
        if self._calculator is None:
            self._calculator = self._open_calculator()
        computed = self._calculator(workbook.data, at=arguments.get("range")).computed
        if "save_as" in arguments:
            date_1904 = workbook.facts.date_1904
            data = with_values(workbook.data, computed.values, date_1904=date_1904)
            self._folder.write(arguments["save_as"], data)
        errors = sum(isinstance(value, ErrorValue) for value in computed.values.values())
        summary = f"{len(computed.values):,} formulas computed, {errors:,} of them errors"
        lines = [f"{summary}, {len(computed.not_calculated):,} not computed", *computed.notes]
        lines += [
            f"{visible(address(ref))}: {_cut(_text(value))}"
            for ref, value in sorted(computed.values.items())[:USUAL_CELLS]
        ]
        for ref, why in sorted(computed.not_calculated.items())[:MAX_FOUND]:
            lines.append(f"{visible(address(ref))}: not computed: {_cut(why)}")
        return "\n".join(lines)

    def _save(self, arguments: Mapping[str, Any], data: bytes) -> None:
        self._folder.write(arguments.get("save_as", arguments["path"]), data)


def _matcher(text: str, regex: str) -> Callable[[str], bool]:
    """Returns a function that tests the text of a cell; all of its calls share one limit of steps.

    Raises:
        ToolFaultError: neither or both are given, or the regular expression is not supported.
    """
    if bool(text) == bool(regex):
        raise ToolFaultError("give text to find, or a regular expression")
    if text:
        sought = text.casefold()
        return lambda cell_text: sought in cell_text.casefold()
    try:
        check_pattern(regex)
    except PatternError as error:
        raise ToolFaultError(f"this regular expression cannot be used: {error}") from error
    steps = Steps(_MAX_STEPS)

    def matches(cell_text: str) -> bool:
        try:
            return search(regex, cell_text[:_MAX_SEARCHED_CHARS], steps=steps)
        except PatternError as error:
            raise ToolFaultError(f"this regular expression takes too long: {error}") from error

    return matches


def _sheet(workbook: Workbook, name: str) -> str:
    sheet = match_sheet(name, workbook.sheet_names)
    if sheet is None:
        listed = ", ".join(repr(visible(sheet_name)) for sheet_name in workbook.sheet_names[:20])
        raise ToolFaultError(f"there is no sheet {visible(name)!r:.80}; there are {listed}")
    return sheet


def _content(value: object) -> CellContent:
    if isinstance(value, str) and value.startswith("=") and len(value) > 1:
        return Formula(value[1:])
    try:
        return content_from_json(value)
    except (UsageError, ValueError) as error:
        raise ToolFaultError(f"{value!r:.80} is not a value for a cell") from error


def _grid(workbook: Workbook, area: CellRange, show: str) -> Iterator[str]:
    """Yields the lines of a range: the columns, then each row that is not empty, numbered."""
    read = workbook.sheet(area.sheet)
    values = read.values(area.window)
    styles = read.styles(area.window) if show == "formats" else {}
    letters = map(column_letters, range(area.min_column, area.max_column + 1))
    yield "row | " + " | ".join(letters)
    for row in range(area.min_row, area.max_row + 1):
        cells = []
        for column in range(area.min_column, area.max_column + 1):
            key = cell_key(row, column)
            if show == "formats":
                cells.append(_format(workbook, styles.get(key, 0)))
                continue
            value, formula = values.get(key), read.formula(key)
            raw = read.raw_formula(key)
            stored = _text(value) if raw is None or raw.cached else "(no stored value)"
            if formula is None or show == "values":
                cells.append(_cut(stored))
            else:
                cells.append(_cut(formula if show == "formulas" else f"{formula} -> {stored}"))
        if any(cells):
            yield f"{row} | " + " | ".join(cells)


def _format(workbook: Workbook, index: int) -> str:
    style = workbook.style(index)
    parts = [] if style.number_format == "General" else [style.number_format]
    parts += [name for name in ("bold", "italic") if getattr(style, name)]
    parts += [f"fill {colour}" for colour in style.fill.colours[:1] if style.fill.pattern != "none"]
    parts += [] if style.font_color == "000000" else [f"text {style.font_color}"]
    return _cut(", ".join(parts))


def _text(value: CellValue) -> str:
    if value is None:
        return ""
    if isinstance(value, ErrorValue):
        return value.code
    if isinstance(value, bool):
        return str(value).upper()
    if isinstance(value, dt.datetime):
        return value.isoformat(sep=" ").removesuffix(" 00:00:00")
    return str(value)


def _cut(text: str) -> str:
    line = visible(" ".join(text.split()))
    return line if len(line) <= _MAX_VALUE_CHARS else f"{line[:_MAX_VALUE_CHARS]}…"
