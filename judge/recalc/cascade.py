"""Decides which engine is believed for which cell.

IronCalc and formualizer answer in milliseconds; if they agree in a cell, and the benchmark found
their agreement to be right for everything that the value depends on, that is its value. For the
other cells LibreOffice is asked; it is believed unless it has no value or the trust table says that
it is wrong there. Disagreements are noted in every case.

Which engine is believed follows from what a cell depends on and from what the engines answer for
it. Time can only take a value away: see :meth:`_Inquiry._decide`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from judge.formulas.functions import RARE
from judge.formulas.traits import traits
from judge.recalc.agreement import (
    COARSE_ERRORS,
    INCAPABLE_ERRORS,
    agreed_error,
    is_doubtful,
    is_fine_error,
    same_value,
    with_logical,
)
from judge.recalc.asking import SECOND_OPINION_S, Asking, Question
from judge.recalc.contract import Engine
from judge.recalc.explaining import Explanation, address
from judge.recalc.ground import Ground
from judge.recalc.names import FORMULAS, LIBREOFFICE
from judge.recalc.trust import PAIR_ENGINES, RIGHT, TrustTable
from judge.workbook.cell import CellRef, CellValue, ErrorValue
from judge.workbook.reader import DATA_TABLE

NOTED_DISAGREEMENTS = 5

_IN_ORDER = (LIBREOFFICE, *PAIR_ENGINES, FORMULAS)

_SURE = (
    "the two agree, and were always right where they agreed on the functions that the cell depends "
    "on (the cell is sure)"
)
_READ_OTHERWISE = "LibreOffice reads something that the cell depends on differently from Excel"
_CONFIRMED = f"{_READ_OTHERWISE}, and another engine confirms its value"
_UNDISPUTED = "no engine that counts here contradicts it"
_BETTER = (
    "LibreOffice was measured to be wrong for a function of the formula, and this engine to be "
    "right"
)
_NO_BETTER = "no engine that contradicts it has a better record for the functions of the formula"
_TWO = "LibreOffice has no value that counts, and these engines agree"
_RELIABLE = (
    "LibreOffice has no value that counts, and this engine was measured to be right for every "
    "function that the cell depends on"
)


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

    def explain(self, question: Question, cell: CellRef) -> Explanation:
        """As :meth:`compute` for one of the cells; then the engines that were not needed are asked.

        Raises:
            EngineUnavailableError: an engine cannot be started.
        """
        return _Inquiry(self._engines, self._trust, question).explained(cell)


@dataclass(frozen=True, slots=True)
class _Choice:
    """What the answers make of one cell.

    Attributes:
        value: its value.
        engines: whose value that is.
        against: engine -> what it says, if they disagree and that is worth a note.
        why: why that is believed, for people; only if it is not simply that engines agree.
    """

    value: CellValue
    engines: tuple[str, ...]
    against: Mapping[str, CellValue] | None = None
    why: str = ""


@dataclass(frozen=True, slots=True)
class _Open:
    """A cell whose value depends on what is missing.

    Attributes:
        engines: those whose answers could change it, not asked, out of time, or ended.
    """

    engines: frozenset[str]


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
        self._pair = tuple(name for name in PAIR_ENGINES if name in engines)
        self._ground = Ground(
            question.dependencies,
            trust,
            question.reads_text,
            question.reads_logical,
            question.reads_spilled,
        )
        all_sure = self._sure_cells()
        self._sure = all_sure & question.formulas.keys()
        # The pair computes sure cells apart from all others, so that nothing else in the workbook
        # can keep it from that.
        self._apart = self._asking
        if self._sure and question.narrowed is not None:
            self._apart = Asking(engines, question.narrowed_to(all_sure))
        self._decided: dict[CellRef, _Choice | _Open | None] = {}

    def run(self) -> CascadeResult:
        self._ask()
        for cell in sorted(self._question.formulas):
            self._settle(cell)
        if self._disagreements > NOTED_DISAGREEMENTS:
            more = self._disagreements - NOTED_DISAGREEMENTS
            self._outcome.notes.append(f"engines disagree in {more} more cells")
        self._outcome.complete = (
            self._asking.is_settled
            and self._apart.is_settled
            and not any(isinstance(choice, _Open) for choice in self._decided.values())
        )
        return self._outcome

    def explained(self, cell: CellRef) -> Explanation:
        """The engines' answers for a cell, and what was made of them."""
        outcome, choice = self.run(), self._decided[cell]
        answers = {name: self._asked(name, cell) for name in _IN_ORDER if name in self._engines}
        for name, asked in answers.items():
            # The slowest engine is not asked for a cell that is decided without it.
            if name != FORMULAS:
                asked.ask(name, self._question.timeout_s)
        return Explanation(
            cell,
            self._question.formulas[cell],
            outcome.values.get(cell),
            choice.engines if isinstance(choice, _Choice) else (),
            choice.why if isinstance(choice, _Choice) else outcome.failed[cell],
            {name: asked.word_of(name, cell) for name, asked in answers.items()},
            tuple(outcome.notes),
        )

    def _sure_cells(self) -> AbstractSet[CellRef]:
        """The cells in which an agreement of the pair is accepted, requested or not."""
        # The quick engines count days from 1900 alone.
        if self._pair != PAIR_ENGINES or self._question.dialect.date_1904:
            return frozenset()
        return self._ground.sure()

    def _asked(self, name: str, cell: CellRef) -> Asking:
        """Where an engine was asked about a cell."""
        return self._apart if name in self._pair and cell in self._sure else self._asking

    def _missing(self, cell: CellRef) -> frozenset[str]:
        """The engines that may have a value for a cell that is not there (yet)."""
        return frozenset(name for name in self._engines if name in self._asked(name, cell).missing)

    def _ask(self) -> None:
        """Asks the engines in turn, until no answer could change a cell any more."""
        self._ask_first()
        for cell in self._question.formulas:
            self._decided[cell] = self._decide(cell)
        while True:
            opened = {
                cell: choice for cell, choice in self._decided.items() if isinstance(choice, _Open)
            }
            needed = {
                (name, cell in self._sure): self._asked(name, cell)
                for cell, choice in opened.items()
                for name in choice.engines
            }
            asked = next(
                (
                    (name, asking)
                    for (name, _), asking in sorted(needed.items(), key=_in_order)
                    if self._may_answer(name, asking)
                ),
                None,
            )
            if asked is None:
                return
            name, asking = asked
            asking.ask(name, self._question.timeout_s)
            for cell in opened:
                self._decided[cell] = self._decide(cell)

    def _may_answer(self, name: str, asking: Asking) -> bool:
        if not asking.may_answer(name):
            return False
        # It takes a hundred times as long as the others: if they run out of time, so does it.
        limit_s = self._question.timeout_s
        return name != FORMULAS or not (
            self._asking.out_of_time_of(limit_s) or self._apart.out_of_time_of(limit_s)
        )

    def _ask_first(self) -> None:
        """Asks the engines that will be needed in any case."""
        question, asking, apart = self._question, self._asking, self._apart
        all_sure = len(self._sure) == len(question.formulas)
        if LIBREOFFICE not in self._engines:
            if self._sure:
                apart.ask_pair(question.timeout_s)
            if not all_sure:
                asking.ask_pair(question.timeout_s)
        elif all_sure:
            apart.ask_pair(apart.quick_s, second_alone=False)
        else:
            # LibreOffice will be asked in any case, so it starts together with the others.
            with ThreadPoolExecutor(max_workers=1) as beside:
                asked = beside.submit(asking.ask, LIBREOFFICE, question.timeout_s)
                if self._sure:
                    apart.ask_pair(apart.quick_s, second_alone=False)
                if self._pair and apart is not (asking if self._sure else None):
                    asking.ask(self._pair[0], min(SECOND_OPINION_S, question.timeout_s))
                asked.result()

    def _settle(self, cell: CellRef) -> None:
        """Takes a value for a cell, or says why there is none."""
        choice = self._decided[cell]
        if not isinstance(choice, _Choice):
            self._outcome.failed[cell] = self._why_not(cell, choice)
            return
        self._outcome.values[cell] = choice.value
        self._outcome.used.update(choice.engines)
        against = choice.against
        if choice.engines == PAIR_ENGINES and against is None:
            against = self._office_against(cell, choice.value)
        if against is not None:
            self._note(cell, against, choice.engines[0])

    def _office_against(self, cell: CellRef, value: CellValue) -> Mapping[str, CellValue] | None:
        """What LibreOffice says, and the others, where the pair is believed against it."""
        results = self._results(cell)
        office = results.get(LIBREOFFICE)
        if office is None or same_value(with_logical(office, value), value):
            return None
        return results

    def _results(self, cell: CellRef) -> dict[str, CellValue]:
        """Engine -> the value that it has for a cell, if it is a usable one; in a fixed order."""
        found: dict[str, CellValue] = {}
        for name in _IN_ORDER:
            answer = self._asked(name, cell).answers.get(name)
            value = None if answer is None else self._usable(name, cell, answer.values.get(cell))
            if value is not None:
                found[name] = value
        return found

    def _usable(self, name: str, cell: CellRef, value: CellValue) -> CellValue:
        """A value of an engine; None if it only means that the engine lacks something."""
        if name != LIBREOFFICE and self._question.formulas[cell] == DATA_TABLE:
            return None  # the others know no data tables, and repeat what is stored
        if isinstance(value, ErrorValue):
            if value.code == "#NAME?" and (
                not self._ground.is_nameless(cell) or self._is_rare(cell)
            ):
                return ErrorValue("#REF!") if self._ground.is_broken(cell) else None
            if name != LIBREOFFICE and value.code in INCAPABLE_ERRORS:
                return None
        return value

    def _is_rare(self, cell: CellRef) -> bool:
        """Whether a formula calls a function that engines show ``#NAME?`` for, and Excel knows."""
        rare = RARE | self._question.lambdas
        return not rare.isdisjoint(traits(self._question.formulas[cell]).functions)

    def _decide(self, cell: CellRef) -> _Choice | _Open | None:
        """What the answers make of a cell.

        A choice, or None, is what it would be with any answer of the engines that are missing:
        an engine that is late, out of time or ended can only leave a cell open.
        """
        if self._ground.valueless(cell):
            return None
        results, missing = self._results(cell), self._missing(cell)
        if len(self._engines) == 1:
            # An engine that is the only one was requested by name, and is believed.
            for name, value in results.items():
                return _Choice(value, (name,), why="it is the only engine that may answer")
            return _Open(missing) if missing else None
        if cell not in self._sure:
            return self._beyond_pair(cell, results, missing)
        awaited = missing.intersection(PAIR_ENGINES)
        said = [results[name] for name in PAIR_ENGINES if name in results]
        may_agree = len(said) + len(awaited) == len(PAIR_ENGINES) and not any(
            map(is_doubtful, said)
        )
        if may_agree and not awaited:
            if same_value(*said):
                return _Choice(said[0], PAIR_ENGINES, why=_SURE)
            may_agree = False
        choice = self._beyond_pair(cell, results, missing)
        if not may_agree:
            return choice
        # It has to be the value in which they would agree.
        if isinstance(choice, _Choice) and said and same_value(choice.value, said[0]):
            return choice
        return _Open(awaited | choice.engines if isinstance(choice, _Open) else awaited)

    def _beyond_pair(
        self, cell: CellRef, results: Mapping[str, CellValue], missing: frozenset[str]
    ) -> _Choice | _Open | None:
        """The choice where an agreement of the pair does not settle a cell."""
        if LIBREOFFICE in missing:
            return _Open(frozenset((LIBREOFFICE,)))
        quick = {name: results[name] for name in self._pair if name in results}
        if LIBREOFFICE in results:
            office = results[LIBREOFFICE]
            spilled = self._ground.reads_spilled(cell)
            if spilled or self._ground.reads_logical(cell):
                choice = self._against_office(office, quick, missing)
                if choice is not None or spilled:
                    return choice
            return self._beside_office(cell, office, quick, missing)
        if missing.intersection(self._pair):
            return _Open(missing.intersection(self._pair))
        choice = self._without_office(cell, quick)
        if choice is not None or cell in self._question.intersecting:
            return choice
        if FORMULAS in missing:
            return _Open(frozenset((FORMULAS,)))
        last = {FORMULAS: results[FORMULAS]} if FORMULAS in results else {}
        return self._without_office(cell, quick | last)

    def _against_office(
        self, office: CellValue, quick: Mapping[str, CellValue], missing: frozenset[str]
    ) -> _Choice | _Open | None:
        """The choice where LibreOffice is known to read something differently from Excel.

        It needs another engine that agrees with it. Failing that, the pair is believed if it
        agrees.
        """
        awaited = missing.intersection(self._pair)
        for word in quick.values():
            likewise = with_logical(office, word)
            if same_value(likewise, word) and not (awaited and office in (0, 1)):
                return _Choice(likewise, (LIBREOFFICE,), why=_CONFIRMED)
        if awaited:
            return _Open(awaited)
        words = [*quick.values()]
        if len(words) < len(PAIR_ENGINES) or any(map(is_doubtful, words)):
            return None
        if not same_value(*words):
            return None
        against = {LIBREOFFICE: office, **quick}
        return _Choice(words[0], PAIR_ENGINES, against, "they agree, and " + _READ_OTHERWISE)

    def _beside_office(
        self,
        cell: CellRef,
        office: CellValue,
        quick: Mapping[str, CellValue],
        missing: frozenset[str],
    ) -> _Choice | _Open:
        """The choice where LibreOffice has a value."""
        weak = self._trust.weak(LIBREOFFICE, traits(self._question.formulas[cell]).functions)
        coarse = isinstance(office, ErrorValue) and office.code in COARSE_ERRORS
        # The second of the pair is consulted where it could matter, so that its word does not
        # depend on what it was asked for beside this cell.
        consulted = self._pair if weak or coarse or cell in self._sure else self._pair[:1]
        others = {name: quick[name] for name in consulted if name in quick}
        awaited = missing.intersection(consulted)
        if awaited and (
            self._may_be_logical(office, others, awaited)
            or (coarse and self._may_agree_on_error(office, others, awaited))
            or (
                cell not in self._question.intersecting
                and any(weak and self._trust.is_good(name, weak) for name in awaited)
            )
        ):
            return _Open(awaited)
        return self._with_office(cell, office, others)

    def _may_be_logical(
        self, office: CellValue, others: Mapping[str, CellValue], awaited: frozenset[str]
    ) -> bool:
        """Whether a missing engine could say that a number is TRUE or FALSE."""
        witness = next((name for name in self._pair if name in others or name in awaited), None)
        return not isinstance(office, bool) and office in (0, 1) and witness in awaited

    def _may_agree_on_error(
        self, office: CellValue, others: Mapping[str, CellValue], awaited: frozenset[str]
    ) -> bool:
        """Whether the pair could agree on another error, with what is missing."""
        if len(others) + len(awaited) < len(PAIR_ENGINES):
            return False
        return all(is_fine_error(result) and result != office for result in others.values())

    def _with_office(
        self, cell: CellRef, office: CellValue, others: Mapping[str, CellValue]
    ) -> _Choice:
        """The choice between LibreOffice and others."""
        against = {
            name: result for name, result in others.items() if not same_value(result, office)
        }
        if not against:
            return _Choice(office, (LIBREOFFICE,), why=_UNDISPUTED)
        agreed = agreed_error(office, others)
        if agreed is not None:
            return _Choice(agreed, tuple(others), why="they agree on an error of another kind")
        said = {LIBREOFFICE: office, **against}
        better = self._better_than_office(cell, office, against)
        if better is not None:
            return _Choice(against[better], (better,), said, _BETTER)
        chosen = with_logical(office, next(iter(others.values())))
        agrees = same_value(chosen, next(iter(against.values())))
        return _Choice(chosen, (LIBREOFFICE,), None if agrees else said, _NO_BETTER)

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
        """The choice of the other engines: two that agree, or a good one."""
        if not results or cell in self._question.intersecting:
            return None
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
                return _Choice(results[name], (name, *allies), against, _TWO)
        best, *rivals = ranked
        if standing[best] < RIGHT or is_doubtful(results[best]):
            return None
        # A rival that is as good was measured on other arguments than the ones at hand. Of many
        # cells the functions of all are known, by which a rival may seem worse than it is.
        if rivals and (standing[rivals[0]] >= RIGHT or not self._question.follows_each):
            return None
        return _Choice(results[best], (best,), against, _RELIABLE)

    def _note(self, cell: CellRef, results: Mapping[str, CellValue], taken: str) -> None:
        self._disagreements += 1
        if self._disagreements <= NOTED_DISAGREEMENTS:
            said = ", ".join(f"{name} {_shown(result)}" for name, result in results.items())
            self._outcome.notes.append(f"engines disagree in {address(cell)}: {said}; took {taken}")

    def _why_not(self, cell: CellRef, choice: _Open | None) -> str:
        valueless = self._ground.valueless(cell)
        if valueless:
            return f"its value in Excel is not known: {valueless}"
        said = []
        if self._ground.reads_spilled(cell):
            said.append(
                "it may read cells to which a dynamic array formula spills, and the file does not "
                "say which these are (write the range that it fills as its reference)"
            )
        if cell in self._question.intersecting:
            said.append("Excel takes one cell of a range here, which only LibreOffice can compute")
        for name in self._engines:
            asking = self._asked(name, cell)
            answer = asking.answers.get(name)
            if answer is None:
                if name in asking.silent:
                    said.append(asking.silent[name])
                continue
            if cell in answer.failed:
                said.append(f"{name}: {answer.failed[cell]}")
            elif cell in answer.values:
                said.append(f"{name} says {_shown(answer.values[cell])}")
            else:
                said.append(f"{name} has no value")
        if choice is not None and said:
            names = " and ".join(sorted(choice.engines))
            said.append(f"the value depends on what {names} would say")
        functions = sorted(traits(self._question.formulas[cell]).functions)
        formula = f" ({', '.join(functions)})" if functions else ""
        return "; ".join(said) + formula if said else f"no engine is available{formula}"


def _in_order(asked: tuple[tuple[str, bool], Asking]) -> tuple[int, bool]:
    (name, is_sure), _ = asked
    return _IN_ORDER.index(name), is_sure


def _shown(value: CellValue) -> str:
    return value.code if isinstance(value, ErrorValue) else repr(value)[:60]
