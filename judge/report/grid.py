"""The workbooks of a case as a grid: gold, output and input around the answer range.

Everything here is data for a page to draw. It is read from the files and from the record of the
comparison; nothing is computed or run.
"""

from __future__ import annotations

import contextlib
import enum
import math
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from judge.compare.cells.comparison import DifferenceClass
from judge.compare.cells.render import value_to_json
from judge.compare.registry import checker_of
from judge.core.records.cases import CaseComparison, DifferenceRecord
from judge.core.records.runs import RecalcIdentity, RunDocument
from judge.core.task import Task, TestCase
from judge.errors import JudgeError
from judge.recalc.wanted import calculates
from judge.report.grid_marks import UNKNOWN, Marks, complete_marks, marks_of_record
from judge.report.grid_window import (
    Block,
    GridBounds,
    choose_lines,
    plan_blocks,
    spans,
    with_places,
)
from judge.workbook.address import COLUMN_BITS, COLUMN_MASK, Window, cell_key, column_letters
from judge.workbook.cell import CellRange, CellRef, CellValue, ErrorValue
from judge.workbook.position import match_sheet
from judge.workbook.reader import Workbook, open_workbook
from judge.workbook.sheets.sheet import Sheet

_MAX_EXACT = 2**53
_Source = TypeVar("_Source", bytes, Path)


class FormulaState(enum.StrEnum):
    """Where the value of a formula comes from."""

    CACHED = "k"
    """The file stores the value, and that value was compared."""
    COMPUTED = "c"
    """One of the judge's engines computed the value."""
    AGREED = "a"
    """An engine computed a value that agrees with the other workbook's."""
    IGNORED = "i"
    """The file stores a value, but an engine's value was compared, which was not recorded."""
    NONE = "u"
    """The formula has no value."""


def encode_value(value: CellValue, text_chars: int) -> Any:
    """A value as JSON."""
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return encode_text(value, text_chars)
    if isinstance(value, float):
        return value if math.isfinite(value) else {"k": "n", "x": str(value)}
    if isinstance(value, int):
        return value if abs(value) <= _MAX_EXACT else {"k": "n", "x": str(value)[:text_chars]}
    if isinstance(value, ErrorValue):
        return {"k": "e", "x": value.code}
    return {"k": "d", "x": str(value_to_json(value)).removesuffix("T00:00:00")}


def encode_text(text: str, text_chars: int) -> Any:
    """Text as JSON, cut off if it is too long."""
    if not text.isascii():
        # A lone surrogate cannot be encoded in UTF-8.
        text = text.encode("utf-8", "replace").decode("utf-8")
    if len(text) <= text_chars:
        return text
    return {"k": "s", "x": text[:text_chars], "n": len(text)}


def encode_recorded(value: Any) -> Any:
    """A value from a record, which is JSON already."""
    if isinstance(value, dict):
        if "date" in value:
            return {"k": "d", "x": str(value["date"]).removesuffix("T00:00:00")}
        return {"k": "e", "x": str(value.get("error", ""))}
    return value


def encode_formula(formula: str, value: Any, state: FormulaState, text_chars: int) -> Any:
    """A formula with its encoded value."""
    text = encode_text(formula, text_chars)
    shown = text if isinstance(text, str) else f"{text['x']}…"
    return {"f": shown, "v": value, "s": state.value}


_SAME, _FOLLOWS, _BLANK, _AS_OUTPUT = 0, 1, 2, 3


def encode_cell(column: int, mark: int, gold: Any, output: Any, before: Any) -> list[Any] | None:
    """One cell of the three workbooks; None if all are blank and there is nothing to show.

    Args:
        column: index into the columns that are shown.
        mark: index of the comparison's result in :data:`judge.report.grid.MARKS`.
        gold: the gold's cell.
        output: the output's cell.
        before: the input's cell.

    Returns:
        ``[column, flags, gold, output?, before?]``. Bits 0 and 1 of ``flags`` describe the output,
        bits 2 and 3 the input: 0 means the same as the gold, 1 listed after ``gold``, 2 blank, 3
        the same as the output. The higher bits hold the mark.
    """
    if gold is None and output is None and before is None and mark <= 1:
        return None
    entry: list[Any] = [column, 0, gold]
    flags = mark << 4
    if not _same(output, gold):
        flags |= _BLANK if output is None else _FOLLOWS
        if output is not None:
            entry.append(output)
    if not _same(before, gold):
        if before is None:
            flags |= _BLANK << 2
        elif _same(before, output):
            flags |= _AS_OUTPUT << 2
        else:
            flags |= _FOLLOWS << 2
            entry.append(before)
    entry[1] = flags
    return entry


def _same(first: Any, second: Any) -> bool:
    # In Python, True equals 1; as the value of a cell or formula, it does not.
    if isinstance(first, dict):
        return isinstance(second, dict) and repr(first) == repr(second)
    return type(first) is type(second) and bool(first == second)


MARKS = ("", "agrees", *(kind.value for kind in DifferenceClass), UNKNOWN)
"""The marks of a cell; the first is for cells outside the answer."""

_MARK_INDEX = {name: index for index, name in enumerate(MARKS)}
_AGREES = 1
_DIFFERS = _MARK_INDEX[DifferenceClass.WRONG_VALUE.value]
"""The mark for a kind of difference that only another checker has; the list of differences names
it."""


@dataclass(frozen=True, slots=True)
class GridRules:
    """How the run was judged, which decides whether a value in a file counted.

    Attributes:
        profile: the comparison profile.
        style: style attributes that were compared.
        recalc_mode: ``auto``, ``never`` or ``always``.
        ran_programs: whether outputs count as written in the sandbox, where no formula is computed.
    """

    profile: str = "standard"
    style: tuple[str, ...] = ()
    recalc_mode: str = "auto"
    ran_programs: bool = True

    @staticmethod
    def of_run(run: RunDocument) -> GridRules:
        """Reads the rules from the description of a run."""
        recalc = run.get("recalc") or RecalcIdentity()
        return GridRules(
            profile=run.get("profile") or "standard",
            style=tuple(run.get("style") or ()),
            recalc_mode=recalc.get("mode") or "auto",
            ran_programs="outputs" not in run or run.get("values") == "computed",
        )


def build_grid(
    task: Task,
    case: TestCase,
    record: CaseComparison,
    output: bytes | None,
    rules: GridRules,
    bounds: GridBounds | None = None,
    extra_cells: Sequence[CellRef] = (),
    kept: KeptWorkbooks | None = None,
) -> dict[str, Any]:
    """The grid of one case.

    Args:
        task: the task; its answer position decides what is shown.
        case: input and gold.
        record: the comparison as cases.jsonl has it; empty if nothing was compared.
        output: the output workbook; None if nothing was submitted.
        rules: how the run was judged.
        bounds: how much to show.
        extra_cells: cells outside the answer that are also shown.
        kept: golds and inputs that earlier grids opened.

    Returns:
        A JSON object: ``blocks`` (see :func:`encode_block`) and ``notes`` on parts that cannot be
        shown.
    """
    bounds = bounds or GridBounds()
    notes: list[str] = []
    gold_path = case.golds[0].path if case.golds else None
    if gold_path is None:
        return {"blocks": [], "notes": ["the gold is not a workbook that can be shown"]}
    kept = kept or KeptWorkbooks()
    with contextlib.ExitStack() as lent:

        def borrowed(path: Path) -> Workbook:
            return lent.enter_context(kept.lend(path))

        gold = _open("gold", gold_path, notes, borrowed)
        if gold is None:
            return {"blocks": [], "notes": notes}
        output_book = None if output is None else _open("output", output, notes, open_workbook)
        before = _open("input", case.input_path, notes, borrowed) if case.inputs else None
        sides = Sides(gold, output_book, before, rules)
        return _grid_of(task, sides, record, bounds, extra_cells, notes)


def _grid_of(
    task: Task,
    sides: Sides,
    record: CaseComparison,
    bounds: GridBounds,
    extra_cells: Sequence[CellRef],
    notes: list[str],
) -> dict[str, Any]:
    gold, output = sides.gold, sides.output
    try:
        blocks = _blocks_of(task, gold, output)
        shown = [cell for cell in extra_cells if cell.sheet in gold.sheet_names]
        blocks = with_places(blocks, shown, _OutputSheets(output).sheet)
        _read(blocks[: bounds.blocks], gold, output)
        marks = _marks(task, sides, blocks, record, sides.rules)
        encoded = [encode_block(block, sides, marks, bounds) for block in blocks[: bounds.blocks]]
    except JudgeError as error:
        return {"blocks": [], "notes": [*notes, error.message]}
    if len(blocks) > bounds.blocks:
        notes.append(f"{len(blocks) - bounds.blocks} further parts of the answer are not shown")
    return {"blocks": encoded, "notes": notes}


class KeptWorkbooks:
    """Keeps golds and inputs open, because the grids of all samples of a case show the same files.

    Safe to use from several threads: a workbook is lent to one grid at a time.
    """

    def __init__(self) -> None:
        self._kept: dict[tuple[Path, int, int], Workbook] = {}
        self._lock = threading.Lock()

    @contextlib.contextmanager
    def lend(self, path: Path) -> Iterator[Workbook]:
        """Lends a workbook; opens the file if it is not kept open, or has changed.

        Raises:
            WorkbookError: the file is missing, not a workbook, or over a limit.
        """
        try:
            facts = path.stat()
        except OSError:
            yield open_workbook(path)
            return
        key = path, facts.st_mtime_ns, facts.st_size
        with self._lock:
            workbook = self._kept.pop(key, None)
        if workbook is None:
            workbook = open_workbook(path)
        yield workbook
        # What one grid reads must not use up the limits of another.
        if facts.st_size <= _MAX_KEPT_BYTES and workbook.package.budget.is_mostly_left:
            with self._lock:
                self._kept[key] = workbook
                while len(self._kept) > _MAX_KEPT:
                    del self._kept[next(iter(self._kept))]


_MAX_KEPT = 16
"""How many golds and inputs are kept open: enough for one task, because its samples are shown in
succession."""

_MAX_KEPT_BYTES = 4 << 20
"""Largest file that is kept open."""


def _open(
    name: str, source: _Source, notes: list[str], opener: Callable[[_Source], Workbook]
) -> Workbook | None:
    try:
        return opener(source)
    except JudgeError as error:
        notes.append(f"the {name} cannot be read: {error.message}")
        return None


@dataclass(frozen=True, slots=True)
class _OutputSheets:
    """Finds the sheet of an output that corresponds to a sheet of the gold."""

    output: Workbook | None

    def sheet(self, gold_sheet: str) -> str | None:
        if self.output is None:
            return None
        return match_sheet(gold_sheet, self.output.sheet_names)


def _blocks_of(task: Task, gold: Workbook, output: Workbook | None) -> list[Block]:
    areas = checker_of(task.checker).areas(task, gold, output)
    return plan_blocks(areas.gold, areas.output)


def _read(blocks: Sequence[Block], gold: Workbook, output: Workbook | None) -> None:
    """Reads the cells of the blocks, in one pass over each sheet."""
    gold.preload(CellRange.of(block.sheet, block.window) for block in blocks)
    if output is not None:
        output.preload(
            CellRange.of(block.output_sheet, block.window)
            for block in blocks
            if block.output_sheet is not None
        )


# -- the three workbooks --------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Sides:
    """The workbooks of a grid, and how the run was judged."""

    gold: Workbook
    output: Workbook | None
    before: Workbook | None
    rules: GridRules

    @property
    def trusts_gold(self) -> bool:
        """Whether the stored values of the gold's formulas counted."""
        return self._trusts(self.gold)

    @property
    def trusts_output(self) -> bool:
        """Whether the stored values of the output's formulas counted."""
        if self.output is None or self.rules.recalc_mode == "never":
            return True
        return not self.rules.ran_programs and self._trusts(self.output)

    def _trusts(self, workbook: Workbook) -> bool:
        if self.rules.recalc_mode == "never":
            return True
        return self.rules.recalc_mode == "auto" and calculates(workbook.facts)


def _marks(
    task: Task,
    sides: Sides,
    blocks: Sequence[Block],
    record: CaseComparison,
    rules: GridRules,
) -> Marks:
    marks = marks_of_record(record)
    if not marks.doubtful or sides.output is None:
        return marks
    return complete_marks(
        marks,
        task,
        sides.gold,
        sides.output,
        profile=rules.profile,
        style=rules.style,
        computed=_computed_cells(sides, blocks),
    )


def _computed_cells(sides: Sides, blocks: Sequence[Block]) -> set[tuple[str, int]]:
    """Formula cells of the answer whose value is not in the files."""
    cells: set[tuple[str, int]] = set()
    for block in blocks:
        for book, name, trusted in (
            (sides.gold, block.sheet, sides.trusts_gold),
            (sides.output, block.output_sheet, sides.trusts_output),
        ):
            if book is None or name is None:
                continue
            sheet = book.sheet(name)
            for window in block.answer:
                cells |= {
                    (block.sheet, key)
                    for key in sheet.formula_keys(window)
                    if not (trusted and _has_cached_value(sheet, key))
                }
    return cells


def _has_cached_value(sheet: Sheet, key: int) -> bool:
    raw = sheet.raw_formula(key)
    return raw is None or raw.cached


# -- one block -------------------------------------------------------------------------------------


def encode_block(block: Block, sides: Sides, marks: Marks, bounds: GridBounds) -> dict[str, Any]:
    """A block as JSON.

    Returns:
        ``sheet``; ``output_sheet`` and ``input_sheet`` (null for a missing sheet); ``answer``
        (ranges as text); the shown ``rows`` and ``columns``, as ``[first, count]`` of each
        unbroken stretch; ``whole_rows``, how many rows the window has; ``cells``, for each shown
        row a list of results of :func:`judge.report.grid.encode_cell`.
    """
    window = block.window
    differing = marks.keys(block.sheet) | {cell_key(*position) for position in block.places}
    columns = choose_lines(
        window.min_column,
        window.max_column,
        {key_column for _, key_column in map(_position, differing)},
        bounds.columns,
    )
    limit = max(60, bounds.cells // len(columns))
    rows = choose_lines(
        window.min_row, window.max_row, {row for row, _ in map(_position, differing)}, limit
    )
    panes = _Panes(block, sides, marks, bounds.text_chars)
    return {
        "sheet": block.sheet,
        "output_sheet": block.output_sheet,
        "input_sheet": panes.before_name,
        "answer": [str(window) for window in block.answer],
        "rows": spans(rows),
        "columns": [[column_letters(first), first, count] for first, count in spans(columns)],
        "whole_rows": window.max_row - window.min_row + 1,
        "whole_columns": window.max_column - window.min_column + 1,
        "cells": [panes.row(row, columns) for row in rows],
    }


def _position(key: int) -> tuple[int, int]:
    return key >> COLUMN_BITS, key & COLUMN_MASK


class _Panes:
    """Gold, output and input of one block, cell by cell."""

    def __init__(self, block: Block, sides: Sides, marks: Marks, text_chars: int) -> None:
        self._block = block
        self._marks = marks
        self._text_chars = text_chars
        window = block.window
        self._gold = _Side.of(
            sides.gold,
            block.sheet,
            window,
            trusted=sides.trusts_gold,
            computed=marks.computed.get(("gold", block.sheet)),
        )
        self._output = _Side.of(
            sides.output,
            block.output_sheet,
            window,
            trusted=sides.trusts_output,
            computed=marks.computed.get(("output", block.output_sheet or "")),
        )
        self.before_name = None
        if sides.before is not None:
            self.before_name = match_sheet(block.sheet, sides.before.sheet_names)
        # The input is shown as stored: it was not judged.
        self._before = _Side.of(sides.before, self.before_name, window, trusted=True)
        every = (self._gold, self._output, self._before)
        self._stored: set[int] = set().union(*(side.values for side in every))
        self._stored.update(*(side.formulas for side in every))
        self._stored.update(*(side.computed for side in every))
        self._stored.update(marks.keys(block.sheet))
        self._lacks_sheet = self._output.sheet is None and self._output.judged

    def row(self, row: int, columns: Sequence[int]) -> list[list[Any]]:
        """The cells of one row that are not empty."""
        cells = []
        first_key, chars = cell_key(row, 0), self._text_chars
        for index, column in enumerate(columns):
            key = first_key | column
            if key not in self._stored and not self._lacks_sheet:
                continue
            mark = self._mark(row, column, key)
            recorded = self._marks.recorded.get((self._block.sheet, key))
            agrees = mark == _AGREES
            gold = self._gold.encode(key, chars, agrees, recorded, "expected")
            output = self._output.encode(key, chars, agrees, recorded, "actual")
            before = self._before.encode(key, chars)
            entry = encode_cell(index, mark, gold, output, before)
            if entry is not None:
                cells.append(entry)
        return cells

    def _mark(self, row: int, column: int, key: int) -> int:
        if not self._block.in_answer(row, column):
            return 0
        if self._output.sheet is None:
            return _MARK_INDEX[DifferenceClass.MISSING_SHEET.value] if self._output.judged else 0
        kind = self._marks.kinds.get((self._block.sheet, key))
        if kind is not None:
            return _MARK_INDEX.get(kind, _DIFFERS)
        if self._marks.doubtful and (self._gold.is_computed(key) or self._output.is_computed(key)):
            return _MARK_INDEX[UNKNOWN]
        return _AGREES


@dataclass(frozen=True, slots=True)
class _Side:
    """One sheet of one workbook.

    Attributes:
        sheet: its cells; None if the workbook or the sheet does not exist.
        values: the values of the window by cell key.
        formulas: keys of the formula cells.
        trusted: whether the values that the file stores with formulas counted.
        judged: whether there is a workbook at all.
        computed: cell key -> value that one of the judge's engines computed, if it is on record.
    """

    sheet: Sheet | None
    values: Mapping[int, Any]
    formulas: frozenset[int]
    trusted: bool
    judged: bool
    computed: Mapping[int, Any] = field(default_factory=dict)

    @staticmethod
    def of(
        workbook: Workbook | None,
        name: str | None,
        window: Window,
        *,
        trusted: bool,
        computed: Mapping[int, Any] | None = None,
    ) -> _Side:
        if workbook is None or name is None:
            return _Side(None, {}, frozenset(), trusted, judged=workbook is not None)
        sheet = workbook.sheet(name)
        values = sheet.values(window)
        formulas = frozenset(sheet.formula_keys(window))
        return _Side(sheet, values, formulas, trusted, judged=True, computed=computed or {})

    def is_computed(self, key: int) -> bool:
        """Whether the verdict depends on a value that is not in the file."""
        if self.sheet is None or key not in self.formulas:
            return False
        return not (self.trusted and _has_cached_value(self.sheet, key))

    def encode(
        self,
        key: int,
        text_chars: int,
        agrees: bool = False,
        recorded: DifferenceRecord | None = None,
        side: str = "",
    ) -> Any:
        """The cell as JSON; None if it is blank."""
        if self.sheet is None:
            return None
        value = self.values.get(key)
        if value is not None:
            value = encode_value(value, text_chars)
        if key not in self.formulas:
            # Array formulas fill cells that do not hold a formula themselves.
            return encode_recorded(self.computed[key]) if key in self.computed else value
        formula = self.sheet.formula(key) or "="
        state = FormulaState.CACHED if value is not None else FormulaState.NONE
        if self.is_computed(key):
            if recorded is not None:
                value = encode_recorded(recorded.get(side))
                failed = recorded.get("kind") == DifferenceClass.NOT_CALCULATED.value
                state = FormulaState.NONE if failed and value is None else FormulaState.COMPUTED
            elif key in self.computed:
                value, state = encode_recorded(self.computed[key]), FormulaState.COMPUTED
            elif agrees:
                value, state = None, FormulaState.AGREED
            elif value is not None:
                state = FormulaState.IGNORED
        return encode_formula(formula, value, state, text_chars)
