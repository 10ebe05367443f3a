"""Computes what a comparison needs: formulas of cells, and conditions of conditional formats."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from judge.compare.cells.conditions import (
    MAX_CONDITIONS,
    NOT_ASKED,
    Answers,
    ConditionAnswers,
    ConditionKey,
    ConditionQuestions,
    Questions,
)
from judge.core.submission import Origin
from judge.errors import RecalcError, WorkbookError
from judge.formulas.traits import traits
from judge.recalc.blank_cells import BlankCells
from judge.recalc.engines import INSTALL_COMMAND, ServiceEngine
from judge.recalc.names import LIBREOFFICE
from judge.recalc.policy import Recalculator
from judge.recalc.scratch import ScratchFormula, with_formulas
from judge.workbook.cell import NOTHING_COMPUTED, CellRange, CellRef, CellValue, ComputedValues
from judge.workbook.reader import Workbook, open_workbook

_VOLATILE = "a condition depends on a volatile function, such as TODAY"


def answer_conditions(
    recalculator: Recalculator,
    questions: ConditionQuestions,
    gold: Workbook,
    output: Workbook,
    *,
    origin: Origin,
) -> ConditionAnswers:
    """Evaluates the conditions of both workbooks that a comparison needs.

    Args:
        recalculator: computes formulas.
        questions: the result of :func:`judge.compare.cells.answer_range.wanted_conditions`.
        gold: the gold workbook.
        output: the output workbook.
        origin: where the output comes from.

    Raises:
        EngineUnavailableError: an engine cannot be started.
    """
    return ConditionAnswers(
        gold=_answers(recalculator, questions.gold, gold, Origin.GOLD),
        output=_answers(recalculator, questions.output, output, origin),
    )


def _answers(
    recalculator: Recalculator, questions: Questions, workbook: Workbook, origin: Origin
) -> Answers:
    if questions.is_empty:
        return NOT_ASKED
    try:
        values = recalculator.fill(workbook, list(questions.ranges), origin=origin)
    except WorkbookError:
        # The comparison finds and reports the same fault when it reads the values.
        values = NOTHING_COMPUTED
    unknown: dict[ConditionKey, str] = {}
    stands_for: dict[ConditionKey, ConditionKey] = {}
    wanted: dict[object, ConditionKey] = {}
    blanks = BlankCells(workbook)
    for key in questions.conditions:
        if traits(key[1]).volatile:
            unknown[key] = _VOLATILE
            continue
        meaning = blanks.meaning(*key)
        if meaning in wanted or len(wanted) < MAX_CONDITIONS:
            stands_for[key] = wanted.setdefault(meaning, key)
    if not wanted:
        return Answers({}, unknown, values, engines=values.engines)
    try:
        cells, book, computed = _computed(recalculator, workbook, list(wanted.values()))
        changing = recalculator.changing_cells(book, list(computed.values))
    except WorkbookError as error:
        reason = f"conditions cannot be computed in this workbook: {error.message}"
        unknown |= dict.fromkeys(stands_for, reason)
        return Answers({}, unknown, values, engines=values.engines)
    truths: dict[ConditionKey, bool] = {}
    for key, asked in stands_for.items():
        ref = cells[asked]
        if ref in changing:
            unknown[key] = _VOLATILE
        elif ref in computed.values:
            truths[key] = _is_true(computed.values[ref])
        else:
            unknown[key] = computed.not_calculated.get(ref, "nothing computed it")
    return Answers(
        truths,
        unknown,
        values,
        engines=tuple(dict.fromkeys((*values.engines, *computed.engines))),
    )


def _computed(
    recalculator: Recalculator, workbook: Workbook, wanted: Sequence[ConditionKey]
) -> tuple[dict[ConditionKey, CellRef], Workbook, ComputedValues]:
    by_sheet: dict[str, list[ConditionKey]] = defaultdict(list)
    for key in wanted:
        by_sheet[key[0]].append(key)
    formulas = {
        sheet: [ScratchFormula(text, traits(text).array_sensitive) for _, text in keys]
        for sheet, keys in by_sheet.items()
    }
    data, places = with_formulas(workbook.data, formulas)
    cells = {
        key: ref
        for sheet, keys in by_sheet.items()
        for key, ref in zip(keys, places[sheet], strict=True)
    }
    book = open_workbook(data)
    areas = [_around(refs) for refs in places.values()]
    return cells, book, recalculator.fill(book, areas, origin=Origin.SOLUTION)


def _around(refs: Sequence[CellRef]) -> CellRange:
    first, last = refs[0], refs[-1]
    return CellRange(first.sheet, first.row, first.column, last.row, last.column)


def _is_true(value: CellValue) -> bool:
    """Whether the value of a condition counts as true; strings and errors do not."""
    return bool(value) if isinstance(value, bool | int | float) else False


_FILE_TIMEOUT_S = 30.0


class EngineCompute:
    """Computes formulas with a recalculator; see :class:`judge.compare.cells.computing.Compute`.

    Args:
        recalculator: decides what is computed, and computes it.
    """

    def __init__(self, recalculator: Recalculator) -> None:
        self._recalculator = recalculator

    def fill(
        self, workbook: Workbook, ranges: Sequence[CellRange], *, origin: Origin
    ) -> ComputedValues:
        """Computes the formula cells of some ranges that have no trusted value."""
        return self._recalculator.fill(workbook, ranges, origin=origin)

    def answer_conditions(
        self, questions: ConditionQuestions, gold: Workbook, output: Workbook, *, origin: Origin
    ) -> ConditionAnswers:
        """Finds out which conditions of conditional formats hold."""
        return answer_conditions(self._recalculator, questions, gold, output, origin=origin)

    def print_sheet(self, workbook: bytes, number: int) -> list[str]:
        """Returns the lines of a sheet as text; see :class:`judge.compare.sealed.SealedFiles`."""
        engine = self._engine(office=True)
        return engine.print_sheet(workbook, number, timeout_s=_FILE_TIMEOUT_S)

    def read_file(self, reader: str, data: bytes, options: Mapping[str, Any]) -> Mapping[str, Any]:
        """Reads a file; see :class:`judge.compare.sealed.SealedFiles`."""
        return self._engine(office=False).read_file(
            reader, data, options, timeout_s=_FILE_TIMEOUT_S
        )

    def _engine(self, *, office: bool) -> ServiceEngine:
        for engine in self._recalculator.engines:
            if isinstance(engine, ServiceEngine) and (engine.name == LIBREOFFICE) is office:
                return engine
        what = "LibreOffice" if office else "the engines of the Python root"
        raise RecalcError(
            f"cannot read a file with {what}: not in the sandbox, or excluded by the options",
            hint=f"Run `{INSTALL_COMMAND}`, and leave --recalc and --engine as they are.",
        )
