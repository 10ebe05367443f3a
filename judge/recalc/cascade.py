"""Decides which engine is believed for which cell.

IronCalc and formualizer answer in milliseconds; if they agree, and the benchmark found their
agreement to be right for everything that the value depends on, no other engine is asked. For the
rest LibreOffice is asked; it is believed unless it has no value or the trust table says that it is
wrong there. Disagreements are noted in every case.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from judge.errors import RecalcError
from judge.recalc.agreement import (
    COARSE_ERRORS,
    INCAPABLE_ERRORS,
    agreed_error,
    is_doubtful,
    same_value,
    with_logical,
)
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
from judge.recalc.engines import FORMUALIZER, FORMULAS, LIBREOFFICE
from judge.recalc.formula import traits
from judge.recalc.sampling import FEWEST, agrees, draw
from judge.recalc.trust import PAIR_ENGINES, RIGHT, TrustTable
from judge.workbook.address import cell_name
from judge.workbook.cell import CellRange, CellRef, CellValue, ErrorValue

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

WITNESS = FORMUALIZER
"""The engine that is asked in addition to LibreOffice when LibreOffice is asked first, so that a
disagreement is noticed: the one that is fastest with large workbooks."""

NOTED_DISAGREEMENTS = 5

FOLLOWED_ALONE = 500
"""Up to how many cells the dependencies of each one are followed if no two engines agree."""


@dataclass(slots=True)
class CascadeResult:
    """The combined result of the engines.

    Attributes:
        values: cell -> value, numbers still as numbers.
        failed: cell -> why there is none.
        used: engines whose values were taken.
        notes: disagreements and crashes of engines.
        complete: whether every engine that was asked answered.
    """

    values: dict[CellRef, CellValue] = field(default_factory=dict)
    failed: dict[CellRef, str] = field(default_factory=dict)
    used: set[str] = field(default_factory=set)
    notes: list[str] = field(default_factory=list)
    complete: bool = True


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


class Cascade:
    """Asks engines in turn.

    Args:
        engines: the available engines; their order does not matter.
        trust: what the benchmark found.
    """

    def __init__(self, engines: Sequence[Engine], trust: TrustTable) -> None:
        self._engines = {engine.name: engine for engine in engines}
        self._trust = trust

    def compute(self, question: Question) -> CascadeResult:
        """Computes some cells; the result accounts for every cell, whatever the engines answer.

        Raises:
            EngineUnavailableError: an engine cannot be started.
        """
        return _Inquiry(self._engines, self._trust, question).run()


class _Inquiry:
    """One question on its way through the engines."""

    def __init__(
        self, engines: Mapping[str, Engine], trust: TrustTable, question: Question
    ) -> None:
        self._engines = engines
        self._trust = trust
        self._question = question
        self._outcome = CascadeResult()
        self._answers: dict[str, EngineResult] = {}
        self._silent: dict[str, str] = {}
        self._fell_over: dict[str, float] = {}
        """Engines without an answer -> the seconds that they were given."""
        self._vouched: AbstractSet[CellRef] = frozenset()
        """Cells in which the pair agrees, as a sample of them shows."""
        self._out_of_time = False
        """Whether an engine used up all the available time."""
        self._ranges: tuple[CellRange, ...] = covering(question.formulas)
        self._disagreements = 0
        dependencies = question.dependencies
        self._nameless = bool(dependencies.unprefixed or dependencies.unknown or dependencies.names)

    def run(self) -> CascadeResult:
        question = self._question
        office = LIBREOFFICE in self._engines
        left = set(question.formulas)
        if not office:
            self._ask_pair(question.timeout_s)
            left = self._take_agreed(left)
        elif self._on_sure_ground():
            self._ask_together()
            left = self._take_agreed(left)
            if left:
                self._ask(LIBREOFFICE, question.timeout_s)
        else:
            # LibreOffice will be asked in any case, so it starts together with them.
            with ThreadPoolExecutor(max_workers=1) as beside:
                asked = beside.submit(self._ask, LIBREOFFICE, question.timeout_s)
                if WITNESS in self._engines:
                    self._ask(WITNESS, QUICK_S)
                asked.result()
        if office and any(self._needs_second_opinion(cell) for cell in left):
            silent = LIBREOFFICE not in self._answers
            self._ask_pair(question.timeout_s if silent else SECOND_OPINION_S)
        left = {cell for cell in sorted(left) if not self._decide(cell)}
        if left and FORMULAS in self._engines and not self._out_of_time:
            # It takes a hundred times as long as the others: if they time out, so does it.
            self._ask(FORMULAS, question.timeout_s)
            left = {cell for cell in sorted(left) if not self._decide_without_office(cell)}
        for cell in sorted(left):
            self._outcome.failed[cell] = self._why_not(cell)
        if self._disagreements > NOTED_DISAGREEMENTS:
            more = self._disagreements - NOTED_DISAGREEMENTS
            self._outcome.notes.append(f"engines disagree in {more} more cells")
        enough_s = min(SECOND_OPINION_S, question.timeout_s)
        self._outcome.complete = all(waited < enough_s for waited in self._fell_over.values())
        return self._outcome

    def _ask_together(self) -> None:
        """Asks the quick engines, whose results are useless without each other's, in turn."""
        first, second = PAIR_ENGINES
        question = self._question
        limit_s = self._quick_s()
        if len(question.formulas) < FEWEST and self._ask_at_once(first, second, limit_s):
            return
        started = time.perf_counter()
        self._ask(first, limit_s)
        if first not in self._answers:
            return
        limit_s = PATIENCE.limit_s(time.perf_counter() - started)
        values = self._answers[first].values
        sample = draw(question.workbook, question.formulas, values)
        if sample is None:
            self._ask(second, limit_s)
            return
        self._ask(second, limit_s, sample.package, covering(sample.cells))
        # What it says of a sample is not what it says of the workbook: it can be asked that again.
        said = self._answers.pop(second, None)
        if said is not None and agrees(sample, values, said.values, same_value):
            self._vouched = question.formulas.keys() & values.keys()

    def _quick_s(self) -> float:
        """How long the first quick engine gets where LibreOffice would have all of this to do."""
        question = self._question
        return (
            QUICK_S
            + QUICK_S_OF_FORMULA * question.dependencies.cells
            + QUICK_S_OF_NAMED_CELL * question.dependencies.named_cells
            + QUICK_S_OF_BYTE * len(question.workbook)
        )

    def _ask_at_once(self, first: str, second: str, timeout_s: float) -> bool:
        """Asks two engines in one go; False if they cannot be asked so."""
        engine, other = self._engines[first], self._engines[second]
        if not isinstance(engine, TeamedEngine) or not engine.is_teamed_with(other):
            return False
        question = self._question
        timeout_s = min(timeout_s, question.timeout_s)
        try:
            self._answers[first], then = engine.compute_both(
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
            self._fell_over[first] = timeout_s
            self._silent[first] = error.message
            return True
        if isinstance(then, EngineUnavailableError):
            raise then
        if isinstance(then, RecalcError):
            self._fell_over[second] = PATIENCE.limit_s(timeout_s)
            self._silent[second] = then.message
        else:
            self._answers[second] = then
        return True

    def _ask_pair(self, limit_s: float) -> None:
        """Asks the quick engines that have not answered yet.

        Args:
            limit_s: how long each may take.
        """
        for name in PAIR_ENGINES:
            waited = self._fell_over.get(name, 0.0)
            if name in self._engines and name not in self._answers and waited < limit_s:
                self._ask(name, limit_s)

    def _ask(
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
            self._answers[name] = self._engines[name].compute(
                workbook or question.workbook,
                ranges or self._ranges,
                timeout_s=timeout_s,
                dialect=question.dialect,
            )
        except EngineUnavailableError:
            raise
        except RecalcError as error:
            self._fell_over[name] = timeout_s
            taken_s = time.perf_counter() - started
            self._out_of_time |= question.timeout_s <= min(taken_s, timeout_s)
            self._silent[name] = error.message

    def _needs_second_opinion(self, cell: CellRef) -> bool:
        """Whether LibreOffice has no value for a cell, or one that can be overruled."""
        result = self._result_of(LIBREOFFICE, cell)
        if result is None or (isinstance(result, ErrorValue) and result.code in COARSE_ERRORS):
            return True
        functions = traits(self._question.formulas[cell]).functions
        return bool(self._trust.weak(LIBREOFFICE, functions))

    def _on_sure_ground(self) -> bool:
        """Whether an agreement of the pair would be accepted without asking LibreOffice."""
        dependencies = self._question.dependencies
        return (
            all(name in self._engines for name in PAIR_ENGINES)
            and dependencies.complete
            and not (dependencies.array_sensitive or dependencies.opaque)
            and not (dependencies.unprefixed or dependencies.unknown or dependencies.volatile)
            and self._trust.pair_is_sure(dependencies.functions)
        )

    def _take_agreed(self, cells: set[CellRef]) -> set[CellRef]:
        """Accepts the cells in which the pair agrees, if that can be relied on.

        Returns:
            The cells that are left.
        """
        if not self._on_sure_ground():
            return cells
        left = set()
        for cell in cells:
            first, second = (self._result_of(name, cell) for name in PAIR_ENGINES)
            agreed = first is not None and (
                cell in self._vouched or (second is not None and same_value(first, second))
            )
            if agreed and not is_doubtful(first):
                self._take(cell, first, *PAIR_ENGINES)
            else:
                left.add(cell)
        return left

    def _result_of(self, name: str, cell: CellRef) -> CellValue:
        """The value that an engine has for a cell; None if it has no usable one."""
        answer = self._answers.get(name)
        value = answer.values.get(cell) if answer is not None else None
        if isinstance(value, ErrorValue):
            if value.code == "#NAME?" and not self._nameless:
                return ErrorValue("#REF!") if self._question.dependencies.broken else None
            if name != LIBREOFFICE and value.code in INCAPABLE_ERRORS:
                return None
        return value

    def _decide(self, cell: CellRef) -> bool:
        """Settles one cell with the answers so far, including that of LibreOffice."""
        office = self._result_of(LIBREOFFICE, cell)
        if office is None:
            return self._decide_without_office(cell)
        names = [name for name in self._answers if name != LIBREOFFICE]
        others = {
            name: result for name in names if (result := self._result_of(name, cell)) is not None
        }
        against = {
            name: result for name, result in others.items() if not same_value(result, office)
        }
        if not against:
            self._take(cell, with_logical(office, others), LIBREOFFICE)
            return True
        agreed = agreed_error(office, others)
        if agreed is not None:
            self._take(cell, agreed, *others)
            return True
        better = self._better_than_office(cell, against)
        if better is not None:
            self._disagree(cell, {LIBREOFFICE: office, **against}, better)
            self._take(cell, against[better], better)
            return True
        chosen = with_logical(office, others)
        if not same_value(chosen, next(iter(against.values()))):
            self._disagree(cell, {LIBREOFFICE: office, **against}, LIBREOFFICE)
        self._take(cell, chosen, LIBREOFFICE)
        return True

    def _better_than_office(self, cell: CellRef, against: Mapping[str, CellValue]) -> str | None:
        """The engine that is believed instead of LibreOffice, if one is."""
        if cell in self._question.intersecting:
            return None
        functions = traits(self._question.formulas[cell]).functions
        weak = self._trust.weak(LIBREOFFICE, functions)
        office = self._answers[LIBREOFFICE].values[cell]
        good = [
            name
            for name, result in against.items()
            # LibreOffice's value was never found to be wrong where another engine had an error.
            if isinstance(office, ErrorValue) or not isinstance(result, ErrorValue)
            if weak and self._trust.is_good(name, weak)
        ]
        return max(good, key=lambda name: self._trust.share(name, weak), default=None)

    def _decide_without_office(self, cell: CellRef) -> bool:
        """Settles one cell with the answers of the other engines: two that agree, or a good one.

        An engine that is the only one was requested by name, and is believed.
        """
        names = [name for name in self._answers if name != LIBREOFFICE]
        results = {
            name: result for name in names if (result := self._result_of(name, cell)) is not None
        }
        if not results or (len(self._engines) > 1 and cell in self._question.intersecting):
            return False
        functions = self._question.functions_below(cell)
        standing = {name: self._trust.share(name, functions) for name in results}
        ranked = sorted(results, key=lambda name: standing[name], reverse=True)
        for index, name in enumerate(ranked):
            allies = [
                other for other in ranked[index + 1 :] if same_value(results[name], results[other])
            ]
            if allies:
                self._note_split(cell, results, name)
                self._take(cell, results[name], name, *allies)
                return True
        best = ranked[0]
        if len(self._engines) == 1:
            self._take(cell, results[best], best)
            return True
        if standing[best] < RIGHT or is_doubtful(results[best]):
            return False
        self._note_split(cell, results, best)
        self._take(cell, results[best], best)
        return True

    def _note_split(self, cell: CellRef, results: Mapping[str, CellValue], taken: str) -> None:
        if any(not same_value(result, results[taken]) for result in results.values()):
            self._disagree(cell, results, taken)

    def _disagree(self, cell: CellRef, results: Mapping[str, CellValue], taken: str) -> None:
        self._disagreements += 1
        if self._disagreements <= NOTED_DISAGREEMENTS:
            said = ", ".join(f"{name} {_shown(result)}" for name, result in results.items())
            self._outcome.notes.append(f"engines disagree in {address(cell)}: {said}; took {taken}")

    def _take(self, cell: CellRef, value: CellValue, *engines: str) -> None:
        self._outcome.values[cell] = value
        self._outcome.used.update(engines)

    def _why_not(self, cell: CellRef) -> str:
        said = []
        if cell in self._question.intersecting:
            said.append("Excel takes one cell of a range here, which only LibreOffice can compute")
        for name in self._engines:
            answer = self._answers.get(name)
            if answer is None:
                if name in self._silent:
                    said.append(self._silent[name])
                continue
            if cell in answer.failed:
                said.append(f"{name}: {answer.failed[cell]}")
            elif cell in answer.values:
                said.append(f"{name} says {_shown(answer.values[cell])}")
            else:
                said.append(f"{name} has no value")
        functions = sorted(traits(self._question.formulas[cell]).functions)
        formula = f" ({', '.join(functions)})" if functions else ""
        return "; ".join(said) + formula if said else f"no engine is available{formula}"


def _shown(value: CellValue) -> str:
    return value.code if isinstance(value, ErrorValue) else repr(value)[:60]


def address(cell: CellRef) -> str:
    """A cell in the usual notation: ``Sheet1!B7``."""
    return f"{cell.sheet}!{cell_name(cell.row, cell.column)}"
