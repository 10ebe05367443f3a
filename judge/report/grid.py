"""The workbooks of a case as a grid: gold, output and input around the answer range.

Everything here is data for a page to draw; it is read from the files and from the record of the
comparison, and nothing is computed or run.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from judge.compare.cells.comparison import DifferenceClass
from judge.compare.registry import checker_of
from judge.core.records.cases import CaseComparison, DifferenceRecord
from judge.core.records.runs import RecalcIdentity, RunDocument
from judge.core.task import Task, TestCase
from judge.errors import JudgeError
from judge.recalc.policy import calculates
from judge.report.grid_cells import (
    FormulaState,
    encode_cell,
    encode_formula,
    encode_recorded,
    encode_value,
)
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
from judge.workbook.cell import CellRef
from judge.workbook.position import match_sheet
from judge.workbook.reader import Workbook, open_workbook
from judge.workbook.sheets.sheet import Sheet

MARKS = ("", "agrees", *(kind.value for kind in DifferenceClass), UNKNOWN)
"""What a grid can say about a cell: nothing (it is outside the answer), or one of these."""

_MARK_INDEX = {name: index for index, name in enumerate(MARKS)}
_AGREES = 1
_DIFFERS = _MARK_INDEX[DifferenceClass.WRONG_VALUE.value]
"""Of a kind that is another checker's own; the differences that are listed say how."""


@dataclass(frozen=True, slots=True)
class GridRules:
    """How the run judged, which decides whether a value in a file counted.

    Attributes:
        profile: the comparison profile.
        style: style attributes that were compared.
        recalc_mode: ``auto``, ``never`` or ``always``.
        ran_programs: whether outputs count as those of the sandbox, where nothing calculates.
    """

    profile: str = "standard"
    style: tuple[str, ...] = ()
    recalc_mode: str = "auto"
    ran_programs: bool = True

    @staticmethod
    def of_run(run: RunDocument) -> GridRules:
        """Reads them from a run's description."""
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
    places: Sequence[CellRef] = (),
) -> dict[str, Any]:
    """The grid of one case.

    Args:
        task: whose answer position counts.
        case: input and gold.
        record: the comparison as cases.jsonl has it; empty where there was none.
        output: the output workbook, or None where there is none.
        rules: how the run judged.
        bounds: how much to show.
        places: cells outside the answer that are to be shown as well.

    Returns:
        A JSON object: ``blocks`` (see :func:`encode_block`) and ``notes`` on what cannot be shown.
    """
    bounds = bounds or GridBounds()
    notes: list[str] = []
    gold_path = case.golds[0].path if case.golds else None
    if gold_path is None:
        return {"blocks": [], "notes": ["the gold is not a workbook that can be shown"]}
    gold = _open("gold", gold_path, notes)
    if gold is None:
        return {"blocks": [], "notes": notes}
    output_book = None if output is None else _open("output", output, notes)
    before = _open("input", case.input_path, notes) if case.inputs else None
    try:
        blocks = _blocks_of(task, gold, output_book)
        known = [each for each in places if each.sheet in gold.sheet_names]
        blocks = with_places(blocks, known, _Answering(output_book).sheet)
        sides = Sides(gold, output_book, before, rules)
        marks = _marks(task, sides, blocks, record, rules)
        encoded = [encode_block(block, sides, marks, bounds) for block in blocks[: bounds.blocks]]
    except JudgeError as error:
        return {"blocks": [], "notes": [*notes, error.message]}
    if len(blocks) > bounds.blocks:
        notes.append(f"{len(blocks) - bounds.blocks} further parts of the answer are not shown")
    return {"blocks": encoded, "notes": notes}


def _open(name: str, source: bytes | Path, notes: list[str]) -> Workbook | None:
    try:
        return open_workbook(source)
    except JudgeError as error:
        notes.append(f"the {name} cannot be read: {error.message}")
        return None


@dataclass(frozen=True, slots=True)
class _Answering:
    """The sheets of an output, by those of the gold."""

    output: Workbook | None

    def sheet(self, gold_sheet: str) -> str | None:
        if self.output is None:
            return None
        return match_sheet(gold_sheet, self.output.sheet_names)


def _blocks_of(task: Task, gold: Workbook, output: Workbook | None) -> list[Block]:
    areas = checker_of(task.checker).areas(task, gold, output)
    return plan_blocks(areas.gold, areas.output)


# -- the three workbooks --------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Sides:
    """The workbooks of a grid, and how the run judged."""

    gold: Workbook
    output: Workbook | None
    before: Workbook | None
    rules: GridRules

    @property
    def trusts_gold(self) -> bool:
        """Whether the values of the gold's formulas counted as the file has them."""
        return self._trusts(self.gold)

    @property
    def trusts_output(self) -> bool:
        """Whether those of the output's did."""
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
    """Formula cells of the answer whose value the files do not tell."""
    found: set[tuple[str, int]] = set()
    for block in blocks:
        for book, name, trusted in (
            (sides.gold, block.sheet, sides.trusts_gold),
            (sides.output, block.output_sheet, sides.trusts_output),
        ):
            if book is None or name is None:
                continue
            sheet = book.sheet(name)
            for window in block.answer:
                found |= {
                    (block.sheet, key)
                    for key in sheet.formula_keys(window)
                    if not (trusted and _has_cached_value(sheet, key))
                }
    return found


def _has_cached_value(sheet: Sheet, key: int) -> bool:
    raw = sheet.raw_formula(key)
    return raw is None or raw.cached


# -- one block -------------------------------------------------------------------------------------


def encode_block(block: Block, sides: Sides, marks: Marks, bounds: GridBounds) -> dict[str, Any]:
    """A block as JSON.

    Returns:
        ``sheet``; ``output_sheet`` and ``input_sheet`` (null where there is none); ``answer``
        (ranges as text); ``rows`` and ``columns`` that are shown, as ``[first, count]``
        stretches; ``whole_rows``, how many rows the window has; ``cells``, for each shown row the
        list of :func:`judge.report.grid_cells.encode_cell`.
    """
    window = block.window
    differing = marks.keys(block.sheet) | {cell_key(*each) for each in block.places}
    columns = choose_lines(
        window.min_column,
        window.max_column,
        {key_column for _, key_column in map(_place, differing)},
        bounds.columns,
    )
    limit = max(60, bounds.cells // len(columns))
    rows = choose_lines(
        window.min_row, window.max_row, {row for row, _ in map(_place, differing)}, limit
    )
    panes = _Panes(block, sides, marks, bounds.text_chars)
    return {
        "sheet": block.sheet,
        "output_sheet": block.output_sheet,
        "input_sheet": panes.before_name,
        "answer": [str(each) for each in block.answer],
        "rows": spans(rows),
        "columns": [[column_letters(first), first, count] for first, count in spans(columns)],
        "whole_rows": window.max_row - window.min_row + 1,
        "whole_columns": window.max_column - window.min_column + 1,
        "cells": [panes.row(row, columns) for row in rows],
    }


def _place(key: int) -> tuple[int, int]:
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
        # What stood in an input is shown as the file has it: nobody judged it.
        self._before = _Side.of(sides.before, self.before_name, window, trusted=True)
        every = (self._gold, self._output, self._before)
        self._stored: set[int] = set().union(*(each.values for each in every))
        self._stored.update(*(each.formulas for each in every))
        self._stored.update(*(each.computed for each in every))
        self._stored.update(marks.keys(block.sheet))
        self._lacks_sheet = self._output.sheet is None and self._output.judged

    def row(self, row: int, columns: Sequence[int]) -> list[list[Any]]:
        """The cells of one row that hold anything."""
        found = []
        for index, column in enumerate(columns):
            key = cell_key(row, column)
            if key not in self._stored and not self._lacks_sheet:
                continue
            mark = self._mark(row, column, key)
            gold, output = self._pair(key, agrees=mark == _AGREES)
            before = self._before.encode(key, self._text_chars)
            entry = encode_cell(index, mark, gold, output, before)
            if entry is not None:
                found.append(entry)
        return found

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

    def _pair(self, key: int, *, agrees: bool) -> tuple[Any, Any]:
        recorded = self._marks.recorded.get((self._block.sheet, key))
        chars = self._text_chars
        return (
            self._gold.encode(key, chars, agrees=agrees, recorded=recorded, side="expected"),
            self._output.encode(key, chars, agrees=agrees, recorded=recorded, side="actual"),
        )


@dataclass(frozen=True, slots=True)
class _Side:
    """One sheet of one workbook.

    Attributes:
        sheet: its cells; None where the workbook or the sheet is not there.
        values: the values of the window by key.
        formulas: keys of its formula cells.
        trusted: whether the values that the file keeps with formulas counted.
        judged: whether there is a workbook at all.
        computed: cell key -> value that an engine of the judge gave, as far as it is on record.
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
        *,
        agrees: bool = False,
        recorded: DifferenceRecord | None = None,
        side: str = "",
    ) -> Any:
        """The cell as JSON; None where it is blank."""
        if self.sheet is None:
            return None
        value = encode_value(self.values.get(key), text_chars)
        if key not in self.formulas:
            # Array formulas fill cells that hold no formula themselves.
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
