"""The engines, as a comparison uses them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from judge.compare.cells.conditions import ConditionAnswers, ConditionQuestions
from judge.core.submission import Origin
from judge.errors import RecalcError
from judge.recalc.conditions import answer_conditions
from judge.recalc.engines import INSTALL_COMMAND, ServiceEngine
from judge.recalc.names import LIBREOFFICE
from judge.recalc.policy import Recalculator
from judge.workbook.cell import CellRange, ComputedValues
from judge.workbook.reader import Workbook

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
        """Computes the formula cells of some ranges that have no value to trust."""
        return self._recalculator.fill(workbook, ranges, origin=origin)

    def answer_conditions(
        self, questions: ConditionQuestions, gold: Workbook, output: Workbook, *, origin: Origin
    ) -> ConditionAnswers:
        """Finds out which conditions of conditional formats hold."""
        return answer_conditions(self._recalculator, questions, gold, output, origin=origin)

    def print_sheet(self, workbook: bytes, number: int) -> list[str]:
        """The lines of a sheet as text; see :class:`judge.compare.sealed.SealedFiles`."""
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
            f"{what} would have to read a file, but the sandbox has none, or none is to be used",
            hint=f"Run `{INSTALL_COMMAND}`, and leave --recalc and --engine as they are.",
        )
