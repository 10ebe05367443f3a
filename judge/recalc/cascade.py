"""Decides which engine is believed for which cell.

IronCalc and formualizer answer in milliseconds; if they agree, and the benchmark found their
agreement to be right for everything that the value depends on, no other engine is asked. For the
rest LibreOffice is asked; it is believed unless it has no value or the trust table says that it is
wrong there. Disagreements are noted in every case.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from judge.recalc.agreement import (
    COARSE_ERRORS,
    INCAPABLE_ERRORS,
    agreed_error,
    is_doubtful,
    same_value,
    with_logical,
)
from judge.recalc.asking import QUICK_S, SECOND_OPINION_S, Asking, Question
from judge.recalc.contract import Engine
from judge.recalc.engines import FORMUALIZER, FORMULAS, LIBREOFFICE
from judge.recalc.formula import traits
from judge.recalc.trust import PAIR_ENGINES, RIGHT, TrustTable
from judge.workbook.address import cell_name
from judge.workbook.cell import CellRef, CellValue, ErrorValue

WITNESS = FORMUALIZER
"""The engine that is asked in addition to LibreOffice when LibreOffice is asked first, so that a
disagreement is noticed: the one that is fastest with large workbooks."""

NOTED_DISAGREEMENTS = 5


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
        self._asking = Asking(engines, question)
        self._answers = self._asking.answers
        self._disagreements = 0
        dependencies = question.dependencies
        self._nameless = bool(dependencies.unprefixed or dependencies.unknown or dependencies.names)

    def run(self) -> CascadeResult:
        question = self._question
        office = LIBREOFFICE in self._engines
        left = set(question.formulas)
        if not office:
            self._asking.ask_pair(question.timeout_s)
            left = self._take_agreed(left)
        elif self._on_sure_ground():
            self._asking.ask_together()
            left = self._take_agreed(left)
            if left:
                self._asking.ask(LIBREOFFICE, question.timeout_s)
        else:
            # LibreOffice will be asked in any case, so it starts together with them.
            with ThreadPoolExecutor(max_workers=1) as beside:
                asked = beside.submit(self._asking.ask, LIBREOFFICE, question.timeout_s)
                if WITNESS in self._engines:
                    self._asking.ask(WITNESS, QUICK_S)
                asked.result()
        if office and any(self._needs_second_opinion(cell) for cell in left):
            silent = LIBREOFFICE not in self._answers
            self._asking.ask_pair(question.timeout_s if silent else SECOND_OPINION_S)
        left = {cell for cell in sorted(left) if not self._decide(cell)}
        if left and FORMULAS in self._engines and not self._asking.out_of_time:
            # It takes a hundred times as long as the others: if they time out, so does it.
            self._asking.ask(FORMULAS, question.timeout_s)
            left = {cell for cell in sorted(left) if not self._decide_without_office(cell)}
        for cell in sorted(left):
            self._outcome.failed[cell] = self._why_not(cell)
        if self._disagreements > NOTED_DISAGREEMENTS:
            more = self._disagreements - NOTED_DISAGREEMENTS
            self._outcome.notes.append(f"engines disagree in {more} more cells")
        enough_s = min(SECOND_OPINION_S, question.timeout_s)
        self._outcome.complete = all(
            waited < enough_s for waited in self._asking.fell_over.values()
        )
        return self._outcome

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
                cell in self._asking.vouched or (second is not None and same_value(first, second))
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
                if name in self._asking.silent:
                    said.append(self._asking.silent[name])
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
