"""What the engines are asked, how long each is waited for, and what they answered."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from judge.errors import RecalcError
from judge.recalc.agreement import same_value
from judge.recalc.blocks import covering
from judge.recalc.contract import (
    Dialect,
    Engine,
    EngineResult,
    EngineUnavailableError,
    Patience,
    TeamedEngine,
)
from judge.recalc.dependency import Dependencies
from judge.recalc.sampling import FEWEST, agrees, draw
from judge.recalc.trust import PAIR_ENGINES
from judge.workbook.cell import CellRange, CellRef

QUICK_S = 0.1
"""How long each quick engine gets at first if LibreOffice is available; real workbooks that take
them longer are computed by LibreOffice in the meantime. Whatever they are still needed for is asked
again."""

QUICK_S_OF_FORMULA = 2e-4
QUICK_S_OF_NAMED_CELL = 2e-9
QUICK_S_OF_BYTE = 1e-6
"""How much longer the first of two quick engines gets for each formula, each cell that a formula
names, and each byte of the workbook: LibreOffice takes several times as long for each of them."""

SECOND_OPINION_S = 5.0
"""How long each gets then if LibreOffice has an answer: a hundred times what most need."""

PATIENCE = Patience(times=4.0, least_s=0.025)
"""The second quick engine gets at most so many times what the first took, or so many seconds if
that is more: beyond it, LibreOffice is faster than waiting."""

FOLLOWED_ALONE = 500
"""Up to how many cells the dependencies of each one are followed if no two engines agree."""


@dataclass(frozen=True, slots=True)
class Question:
    """What the engines are asked.

    Attributes:
        workbook: the package.
        formulas: cell wanted -> its formula (that of the array formula that fills it).
        dependencies: what the cells depend on.
        dialect: how the formulas are interpreted.
        timeout_s: how long one engine may take.
        intersecting: cells whose formula takes a range where Excel expects one value, and is not an
            array formula. The quick engines compute arrays there, which Excel does not.
        dependencies_of: what one cell depends on.
    """

    workbook: bytes
    formulas: Mapping[CellRef, str]
    dependencies: Dependencies
    dialect: Dialect
    timeout_s: float
    intersecting: frozenset[CellRef] = frozenset()
    dependencies_of: Callable[[CellRef], Dependencies] | None = None

    def functions_below(self, cell: CellRef) -> frozenset[str]:
        """Every function that one cell depends on; those of all cells if there are many cells."""
        if self.dependencies_of is None or len(self.formulas) > FOLLOWED_ALONE:
            return self.dependencies.functions
        return self.dependencies_of(cell).functions


class Asking:
    """The engines while one question is answered; each is asked when it is needed.

    Args:
        engines: the available engines by name.
        question: what they are asked.

    Attributes:
        answers: engine -> what it computed.
        silent: engine without an answer -> why.
        fell_over: engine without an answer -> the seconds that it was given.
        vouched: cells in which the pair agrees, as a sample of them shows.
        out_of_time: whether an engine used up all the available time.
    """

    def __init__(self, engines: Mapping[str, Engine], question: Question) -> None:
        self._engines = engines
        self._question = question
        self._ranges: tuple[CellRange, ...] = covering(question.formulas)
        self.answers: dict[str, EngineResult] = {}
        self.silent: dict[str, str] = {}
        self.fell_over: dict[str, float] = {}
        self.vouched: AbstractSet[CellRef] = frozenset()
        self.out_of_time = False

    def ask_together(self) -> None:
        """Asks the quick engines, whose results are useless without each other's, in turn."""
        first, second = PAIR_ENGINES
        question = self._question
        limit_s = self._quick_s()
        if len(question.formulas) < FEWEST and self._ask_at_once(first, second, limit_s):
            return
        started = time.perf_counter()
        self.ask(first, limit_s)
        if first not in self.answers:
            return
        limit_s = PATIENCE.limit_s(time.perf_counter() - started)
        values = self.answers[first].values
        sample = draw(question.workbook, question.formulas, values)
        if sample is None:
            self.ask(second, limit_s)
            return
        self.ask(second, limit_s, sample.package, covering(sample.cells))
        # What it says of a sample is not what it says of the workbook: it can be asked that again.
        said = self.answers.pop(second, None)
        if said is not None and agrees(sample, values, said.values, same_value):
            self.vouched = question.formulas.keys() & values.keys()

    def _quick_s(self) -> float:
        """How long the first quick engine gets where LibreOffice would have all of this to do."""
        question = self._question
        return min(
            QUICK_S
            + QUICK_S_OF_FORMULA * question.dependencies.cells
            + QUICK_S_OF_NAMED_CELL * question.dependencies.named_cells
            + QUICK_S_OF_BYTE * len(question.workbook),
            SECOND_OPINION_S,
        )

    def _ask_at_once(self, first: str, second: str, timeout_s: float) -> bool:
        """Asks two engines in one go; False if they cannot be asked so."""
        engine, other = self._engines[first], self._engines[second]
        if not isinstance(engine, TeamedEngine) or not engine.is_teamed_with(other):
            return False
        question = self._question
        timeout_s = min(timeout_s, question.timeout_s)
        try:
            self.answers[first], then = engine.compute_both(
                other,
                question.workbook,
                self._ranges,
                timeout_s=timeout_s,
                patience=PATIENCE,
                dialect=question.dialect,
            )
        except EngineUnavailableError:
            raise
        except RecalcError as error:
            self.fell_over[first] = timeout_s
            self.silent[first] = error.message
            return True
        if isinstance(then, EngineUnavailableError):
            raise then
        if isinstance(then, RecalcError):
            self.fell_over[second] = PATIENCE.limit_s(timeout_s)
            self.silent[second] = then.message
        else:
            self.answers[second] = then
        return True

    def ask_pair(self, limit_s: float) -> None:
        """Asks the quick engines that have not answered yet.

        Args:
            limit_s: how long each may take.
        """
        for name in PAIR_ENGINES:
            waited = self.fell_over.get(name, 0.0)
            if name in self._engines and name not in self.answers and waited < limit_s:
                self.ask(name, limit_s)

    def ask(
        self,
        name: str,
        timeout_s: float,
        workbook: bytes | None = None,
        ranges: Sequence[CellRange] = (),
    ) -> None:
        """Asks one engine; what it says, or why it says nothing, is noted.

        Args:
            name: the engine.
            timeout_s: how long it may take.
            workbook: what it computes, if not the workbook as it is.
            ranges: the cells to compute then.
        """
        question = self._question
        timeout_s = min(timeout_s, question.timeout_s)
        started = time.perf_counter()
        try:
            self.answers[name] = self._engines[name].compute(
                workbook or question.workbook,
                ranges or self._ranges,
                timeout_s=timeout_s,
                dialect=question.dialect,
            )
        except EngineUnavailableError:
            raise
        except RecalcError as error:
            self.fell_over[name] = timeout_s
            taken_s = time.perf_counter() - started
            self.out_of_time |= question.timeout_s <= min(taken_s, timeout_s)
            self.silent[name] = error.message
