"""Decides which engine is believed for which cell.

IronCalc and formualizer answer in milliseconds; if they agree in a cell, and the benchmark found
their agreement to be right for everything that the value depends on, that is its value. For the
other cells LibreOffice is asked; it is believed unless it has no value or the trust table says that
it is wrong there. Disagreements are noted in every case.

Which engines are asked, and which is believed, follows from the content of the workbook and from
their answers. Time can only take a value away: see :meth:`_Inquiry._settle`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
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
from judge.recalc.asking import SECOND_OPINION_S, Asking, Question
from judge.recalc.contract import Engine, EngineResult
from judge.recalc.formula import traits
from judge.recalc.names import FORMUALIZER, FORMULAS, LIBREOFFICE
from judge.recalc.trust import PAIR_ENGINES, RIGHT, TrustTable
from judge.workbook.address import cell_name
from judge.workbook.cell import CellRef, CellValue, ErrorValue

WITNESS = FORMUALIZER
"""The engine that is asked in addition to LibreOffice when LibreOffice is asked first, so that a
disagreement is noticed: the one that is fastest with large workbooks."""

NOTED_DISAGREEMENTS = 5

_IN_ORDER = (LIBREOFFICE, *PAIR_ENGINES, FORMULAS)


@dataclass(slots=True)
class CascadeResult:
    """The combined result of the engines.

    Attributes:
        values: cell -> value, numbers still as numbers.
        failed: cell -> why there is none.
        used: engines whose values were taken.
        notes: disagreements and crashes of engines.
        complete: whether every engine that could matter answered, and early enough that it does so
            in every run.
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


@dataclass(frozen=True, slots=True)
class _Choice:
    """What some answers make of one cell.

    Attributes:
        value: its value.
        engines: whose value that is.
        against: engine -> what it says, if they disagree and that is worth a note.
    """

    value: CellValue
    engines: tuple[str, ...]
    against: Mapping[str, CellValue] | None = None


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
        self._disagreements = 0
        dependencies = question.dependencies
        self._nameless = bool(dependencies.unprefixed or dependencies.unknown or dependencies.names)
        self._sure = self._on_sure_ground()

    def run(self) -> CascadeResult:
        self._ask()
        for cell in sorted(self._question.formulas):
            self._settle(cell)
        if self._disagreements > NOTED_DISAGREEMENTS:
            more = self._disagreements - NOTED_DISAGREEMENTS
            self._outcome.notes.append(f"engines disagree in {more} more cells")
        asking = self._asking
        quick_s, full_s = self._question.quick_s, self._question.timeout_s
        self._outcome.complete = asking.timely.keys() == asking.answers.keys() and all(
            asking.given_s[name] <= quick_s < full_s for name in asking.silent
        )
        return self._outcome

    def _ask(self) -> None:
        """Asks the engines in turn, until the answers settle every cell."""
        question, asking = self._question, self._asking
        if LIBREOFFICE not in self._engines:
            asking.ask_pair(question.timeout_s)
        elif self._sure:
            asking.ask_pair(question.quick_s, second_alone=False)
            if next(self._left_by_pair(), None) is not None:
                asking.ask(LIBREOFFICE, question.timeout_s)
        else:
            # LibreOffice will be asked in any case, so it starts together with the other.
            with ThreadPoolExecutor(max_workers=1) as beside:
                asked = beside.submit(asking.ask, LIBREOFFICE, question.timeout_s)
                asking.ask(WITNESS, min(SECOND_OPINION_S, question.timeout_s))
                asked.result()
        if LIBREOFFICE in asking.given_s:
            if LIBREOFFICE not in asking.timely:
                asking.ask_pair(question.timeout_s)
            elif any(self._needs_second_opinion(cell) for cell in self._left_by_pair()):
                asking.ask_pair(min(SECOND_OPINION_S, question.timeout_s))
        # It takes a hundred times as long as the others: if they run out of time, so does it.
        if not asking.out_of_time_of(question.timeout_s) and self._unsettled():
            asking.ask(FORMULAS, question.timeout_s)

    def _settle(self, cell: CellRef) -> None:
        """Takes a value for a cell, or says why there is none.

        An answer that came late does not come in every run. It may confirm a value, and give one
        where there is no other, but where the value would be another one without it, there is none.
        """
        answers, timely = self._asking.answers, self._asking.timely
        choice = self._choice(cell, answers)
        if choice is not None and len(timely) < len(answers):
            other = self._choice(cell, timely)
            if other is not None and not same_value(choice.value, other.value):
                late = ", ".join(sorted(answers.keys() - timely.keys()))
                self._outcome.failed[cell] = (
                    f"{late} took almost too long, and without it the value would be "
                    f"{_shown(other.value)} rather than {_shown(choice.value)}"
                )
                return
        if choice is None:
            self._outcome.failed[cell] = self._why_not(cell)
            return
        self._outcome.values[cell] = choice.value
        self._outcome.used.update(choice.engines)
        if choice.against is not None:
            self._note(cell, choice.against, choice.engines[0])

    def _unsettled(self) -> bool:
        """Whether a cell has no value by the answers that every run gets."""
        timely = self._asking.timely
        return any(self._choice(cell, timely) is None for cell in self._question.formulas)

    def _left_by_pair(self) -> Iterator[CellRef]:
        """The cells that the agreement of the pair does not settle."""
        timely = self._asking.timely
        for cell in self._question.formulas:
            if self._agreed(self._results(cell, timely)) is None:
                yield cell

    def _needs_second_opinion(self, cell: CellRef) -> bool:
        """Whether LibreOffice has no value for a cell, or one that can be overruled."""
        result = self._results(cell, self._asking.timely).get(LIBREOFFICE)
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
            and self._question.ascii_only
            # The quick engines count days from 1900 alone.
            and not self._question.dialect.date_1904
            and self._trust.pair_is_sure(dependencies.functions)
        )

    def _results(self, cell: CellRef, answers: Mapping[str, EngineResult]) -> dict[str, CellValue]:
        """Engine -> the value that it has for a cell, if it is a usable one; in a fixed order."""
        found: dict[str, CellValue] = {}
        for name in _IN_ORDER:
            answer = answers.get(name)
            value = None if answer is None else self._usable(name, answer.values.get(cell))
            if value is not None:
                found[name] = value
        return found

    def _usable(self, name: str, value: CellValue) -> CellValue:
        """A value of an engine; None if it only means that the engine lacks something."""
        if isinstance(value, ErrorValue):
            if value.code == "#NAME?" and not self._nameless:
                return ErrorValue("#REF!") if self._question.dependencies.broken else None
            if name != LIBREOFFICE and value.code in INCAPABLE_ERRORS:
                return None
        return value

    def _choice(self, cell: CellRef, answers: Mapping[str, EngineResult]) -> _Choice | None:
        """What some answers make of a cell; None if they do not settle it."""
        results = self._results(cell, answers)
        agreed = self._agreed(results)
        if agreed is not None:
            return agreed
        last = {FORMULAS: results.pop(FORMULAS)} if FORMULAS in results else {}
        if LIBREOFFICE in results:
            return self._with_office(cell, results.pop(LIBREOFFICE), results)
        return self._without_office(cell, results) or self._without_office(cell, results | last)

    def _agreed(self, results: Mapping[str, CellValue]) -> _Choice | None:
        """The value in which the pair agrees, if that can be relied on."""
        first, second = (results.get(name) for name in PAIR_ENGINES)
        if not self._sure or first is None or second is None or is_doubtful(first):
            return None
        return _Choice(first, PAIR_ENGINES) if same_value(first, second) else None

    def _with_office(
        self, cell: CellRef, office: CellValue, others: Mapping[str, CellValue]
    ) -> _Choice:
        """The choice where LibreOffice has a value."""
        against = {
            name: result for name, result in others.items() if not same_value(result, office)
        }
        if not against:
            return _Choice(with_logical(office, others), (LIBREOFFICE,))
        agreed = agreed_error(office, others)
        if agreed is not None:
            return _Choice(agreed, tuple(others))
        said = {LIBREOFFICE: office, **against}
        better = self._better_than_office(cell, office, against)
        if better is not None:
            return _Choice(against[better], (better,), said)
        chosen = with_logical(office, others)
        agrees = same_value(chosen, next(iter(against.values())))
        return _Choice(chosen, (LIBREOFFICE,), None if agrees else said)

    def _better_than_office(
        self, cell: CellRef, office: CellValue, against: Mapping[str, CellValue]
    ) -> str | None:
        """The engine that is believed instead of LibreOffice, if one is."""
        if cell in self._question.intersecting:
            return None
        functions = traits(self._question.formulas[cell]).functions
        weak = self._trust.weak(LIBREOFFICE, functions)
        good = [
            name
            for name, result in against.items()
            # LibreOffice's value was never found to be wrong where another engine had an error.
            if isinstance(office, ErrorValue) or not isinstance(result, ErrorValue)
            if weak and self._trust.is_good(name, weak)
        ]
        return max(good, key=lambda name: self._trust.share(name, weak), default=None)

    def _without_office(self, cell: CellRef, results: Mapping[str, CellValue]) -> _Choice | None:
        """The choice of the other engines: two that agree, or a good one.

        An engine that is the only one was requested by name, and is believed.
        """
        if not results or (len(self._engines) > 1 and cell in self._question.intersecting):
            return None
        if len(self._engines) == 1:
            ((name, value),) = results.items()
            return _Choice(value, (name,))
        functions = self._question.functions_below(cell)
        standing = {name: self._trust.share(name, functions) for name in results}
        ranked = sorted(results, key=lambda name: standing[name], reverse=True)
        split = any(not same_value(results[ranked[0]], result) for result in results.values())
        against = results if split else None
        for index, name in enumerate(ranked):
            allies = [
                other for other in ranked[index + 1 :] if same_value(results[name], results[other])
            ]
            if allies:
                return _Choice(results[name], (name, *allies), against)
        best, *rivals = ranked
        if standing[best] < RIGHT or is_doubtful(results[best]):
            return None
        # A rival that is as good was measured on other arguments than the ones at hand. Of many
        # cells the functions of all are known, by which a rival may seem worse than it is.
        if rivals and (standing[rivals[0]] >= RIGHT or not self._question.follows_each):
            return None
        return _Choice(results[best], (best,), against)

    def _note(self, cell: CellRef, results: Mapping[str, CellValue], taken: str) -> None:
        self._disagreements += 1
        if self._disagreements <= NOTED_DISAGREEMENTS:
            said = ", ".join(f"{name} {_shown(result)}" for name, result in results.items())
            self._outcome.notes.append(f"engines disagree in {address(cell)}: {said}; took {taken}")

    def _why_not(self, cell: CellRef) -> str:
        said = []
        if cell in self._question.intersecting:
            said.append("Excel takes one cell of a range here, which only LibreOffice can compute")
        for name in self._engines:
            answer = self._asking.answers.get(name)
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
