"""Asks the engines, and takes for each cell the value that wins their weighted vote.

IronCalc and formualizer answer in milliseconds. If they agree on a cell, and the benchmark found
their agreement to be right for everything that the value depends on, their value is taken. For the
other cells LibreOffice is asked as well, and :mod:`judge.recalc.voting` decides whose value is
taken. Disagreements are noted in every case.

Whose value is taken depends only on the formulas behind a cell and on the engines' answers for the
cell and its precedents. Lack of time can only remove a value, never change it: see
:meth:`_Inquiry._decide`.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from collections.abc import Set as AbstractSet

from judge.formulas.shapes import Call, calls, fallback
from judge.formulas.traits import traits
from judge.recalc.agreement import (
    Overruled,
    is_doubtful,
    same_value,
    with_logical,
)
from judge.recalc.asking import IN_ORDER, Answers
from judge.recalc.contract import NO_VALUE, CascadeResult, CellVotes, Engine, EngineRequest
from judge.recalc.explaining import Explanation, address
from judge.recalc.names import FORMULAS, LIBREOFFICE
from judge.recalc.support import Support
from judge.recalc.trust import PAIR_ENGINES, TrustTable
from judge.recalc.voting import (
    VOTERS,
    Choice,
    Open,
    are_alike,
    chosen_if_office_misreads,
    is_identical,
    is_settled,
    kind,
    pattern,
    possible_votes,
    winner,
)
from judge.workbook.cell import CellRef, CellValue, ErrorValue
from judge.workbook.sheets.sheet import DATA_TABLE

MAX_NOTED_DISAGREEMENTS = 5  # of a workbook; the others are counted

_OPEN = "open"
"""Replaces an overruled engine in a cell whose value depends on a missing answer."""

_ABSENT = "absent"
"""Replaces an overruled engine in a cell that lacks a value because an engine is missing."""

_PLAIN_TYPES = frozenset((int, float, str, bool))
"""Types of values that are not errors."""

_NAMELESS = ErrorValue("#NAME?")

_NO_CROSSING = ErrorValue("#VALUE!")
"""The value where Excel takes one cell of a range, but none is in the formula's row or column."""

_NOTHING_CROSSES = (
    "Excel takes one cell of a range here, and LibreOffice finds none in the row or the column of "
    "the formula; the others take the first value of an array"
)

_SURE = (
    "the two agree, and were always right where they agreed on the functions that the cell depends "
    "on (the cell is sure)"
)
_UNDISPUTED = "no engine that has a value contradicts it"
_HEAVIEST = "its record for the calls of the formula is better than that of the others"
_HEAVIER = "they agree, and by their records for the calls of the formula they are right"


class Cascade:
    """Computes cells by asking engines in turn.

    Args:
        engines: the available engines; their order does not matter.
        trust: the benchmark's records.
    """

    def __init__(self, engines: Sequence[Engine], trust: TrustTable) -> None:
        self._engines = {engine.name: engine for engine in engines}
        self._trust = trust

    def compute(self, request: EngineRequest) -> CascadeResult:
        """Computes some cells; the result accounts for every cell, whatever the engines answer.

        Raises:
            EngineUnavailableError: an engine cannot be started.
        """
        return _Inquiry(self._engines, self._trust, request).run()

    def explain(self, request: EngineRequest, cell: CellRef) -> Explanation:
        """Computes the cells, then asks the engines that were not needed about one of them.

        Raises:
            EngineUnavailableError: an engine cannot be started.
        """
        return _Inquiry(self._engines, self._trust, request).explained(cell)

    def all_votes(self, request: EngineRequest) -> dict[CellRef, CellVotes]:
        """Computes some cells with every engine except the slow one, and returns all answers.

        Raises:
            EngineUnavailableError: an engine cannot be started.
        """
        return _Inquiry(self._engines, self._trust, request).all_votes()


class _Inquiry:
    """The state of one request while engines are asked."""

    def __init__(
        self, engines: Mapping[str, Engine], trust: TrustTable, request: EngineRequest
    ) -> None:
        self._engines = engines
        self._trust = trust
        self._request = request
        self._outcome = CascadeResult()
        self._disagreements = 0
        # If there is only one engine, it was requested by name, so no other engine is missing.
        self._absent = VOTERS - engines.keys() if len(engines) > 1 else frozenset()
        self._support = Support(
            request.dependencies,
            trust,
            request.reads_text,
            request.reads_logical,
            request.reads_spilled,
            request.reads_nameless,
        )
        self._answers = Answers(engines, request, self._support)
        self._sure = self._answers.sure
        self._agreeing = self._answers.agreeing
        self._decided: dict[CellRef, Choice | Open | None] = {}
        self._agreed: dict[CellRef, CellValue] = {}
        """Sure cell on which the pair agrees -> its value, which no further answer can change."""
        self._fixed: dict[CellRef, int] = {}
        self._choices: dict[Hashable, Choice | None] = {}
        self._staying: dict[Hashable, bool] = {}
        self._kinds: dict[Hashable, int] = {}
        self._calls: dict[int, tuple[Call, ...]] = {}
        self._insteads: dict[int, CellValue] = {}
        self._has_tables = DATA_TABLE in request.formulas.values()
        self._undisputed: set[CellRef] = set()
        self._unanimous: dict[Hashable, Choice | Open | None] = {}

    def run(self) -> CascadeResult:
        self._ask()
        for cell in sorted(self._request.requested):
            if cell in self._agreed:
                self._settle_agreed(cell, self._agreed[cell])
            else:
                self._settle(cell)
        if self._disagreements > MAX_NOTED_DISAGREEMENTS:
            more = self._disagreements - MAX_NOTED_DISAGREEMENTS
            self._outcome.notes.append(f"engines disagree in {more} more cells")
        self._outcome.complete = self._answers.is_settled and not any(
            isinstance(choice, Open) and choice.engines for choice in self._decided.values()
        )
        return self._outcome

    def explained(self, cell: CellRef) -> Explanation:
        """Asks the other engines about a cell, and explains its value."""
        outcome = self.run()
        choice = self._decided[cell] if cell in self._decided else self._decide(cell)
        engines = [name for name in IN_ORDER if name in self._engines]
        for name in engines:
            # The slowest engine is not asked for a cell that is decided without it.
            if name != FORMULAS:
                self._answers.ask(name, sure=cell in self._sure)
        return Explanation(
            cell,
            self._request.formulas[cell],
            outcome.values.get(cell),
            choice.engines if isinstance(choice, Choice) else (),
            choice.why if isinstance(choice, Choice) else outcome.failed[cell],
            {name: self._answers.exchange(name, cell).answer_for(name, cell) for name in engines},
            tuple(outcome.notes),
        )

    def all_votes(self) -> dict[CellRef, CellVotes]:
        """Collects the answers of all engines; see :meth:`Cascade.all_votes`."""
        for name in sorted(self._engines.keys() - {FORMULAS}):
            for sure in (False, True):
                self._answers.ask(name, sure=sure)
        answers = {}
        for cell in self._request.requested:
            votes = self._answers.votes(cell)
            answers[cell] = CellVotes(
                self._request.formulas[cell], self._called(cell), votes, votes
            )
        return answers

    def _ask(self) -> None:
        """Asks the engines in turn until no further answer could change a cell."""
        self._answers.ask_first()
        while True:
            self._decide_all()
            needed = {
                (name, cell in self._sure)
                for cell, choice in self._decided.items()
                if isinstance(choice, Open)
                for name in choice.engines
            }
            following = next(
                (
                    (name, sure)
                    for name, sure in sorted(needed, key=_in_order)
                    if self._answers.may_answer(name, sure=sure)
                ),
                None,
            )
            if following is None:
                return
            name, sure = following
            self._answers.ask(name, sure=sure)

    def _decide_all(self) -> None:
        """Decides the values of requested cells; if engines disagree, of their precedents too."""
        requested = self._request.requested
        self._unanimous.clear()
        self._undisputed.clear()
        self._agreed = self._agreements()
        self._decided = self._decided_quickly(requested - self._agreed.keys())
        walk = self._request.dependencies.walk
        if walk is None or not (self._absent or any(map(self._is_disputed, requested))):
            return
        overruled = Overruled()
        for step in walk.steps:
            cell = step.ref
            if cell not in self._request.formulas:
                continue
            if not (self._absent or self._is_disputed(cell)):
                continue
            discounted = overruled.reading(cell.sheet, step.reads, walk.index.named)
            choice = self._decide(cell, discounted)
            if cell in requested and cell not in self._agreed:
                self._decided[cell] = choice
            if isinstance(choice, Open):
                overruled.add(_OPEN if choice.engines else _ABSENT, cell)
            elif choice is not None:
                for name in self._overruled_in(cell, choice.value):
                    overruled.add(name, cell)

    def _agreements(self) -> dict[CellRef, CellValue]:
        """The sure cells in which both engines of the pair have the very same value.

        These need no decision. Errors need one, and so do values that differ in their last digits.
        """
        if self._agreed or not self._sure or self._request.dependencies.valueless:
            return self._agreed
        answers = [self._answers.apart.answers.get(name) for name in PAIR_ENGINES]
        if any(answer is None for answer in answers):
            return {}
        first, second = (answer.values for answer in answers if answer is not None)
        agreed: dict[CellRef, CellValue] = {}
        for cell in self._sure:
            value, other = first.get(cell), second.get(cell)
            if type(value) is type(other) and value == other and type(value) in _PLAIN_TYPES:
                agreed[cell] = value
        return agreed

    def _agrees_with_all(self, cell: CellRef) -> bool:
        """Whether the pair agrees on a cell and LibreOffice has the same value for it.

        Also True if LibreOffice was not asked. False does not mean that it has another value.
        """
        if cell not in self._agreed or FORMULAS in self._answers.main.answers:
            return False
        office = self._answers.main.answers.get(LIBREOFFICE)
        if office is None:
            return True
        value, agreed = office.values.get(cell), self._agreed[cell]
        return type(value) is type(agreed) and value == agreed

    def _is_disputed(self, cell: CellRef) -> bool:
        """Whether the engines disagree on a cell, or some have no value for it."""
        if cell in self._undisputed or self._agrees_with_all(cell):
            return False
        votes = self._answers.votes(cell)
        answers = self._answers.given(cell)
        # FORMULAS is the last one, so it is left out of both counts.
        last = bool(answers) and answers[-1][0] == FORMULAS
        if len(votes) - (FORMULAS in votes) < len(answers) - last or not votes:
            return True
        first, *others = votes.values()
        return not all(same_value(first, vote) for vote in others)

    def _overruled_in(self, cell: CellRef, value: CellValue) -> list[str]:
        """The engines that answered, but have no value or a different value for a cell."""
        votes = self._answers.votes(cell)
        return [
            name
            for name, _ in self._answers.given(cell)
            if not (name in votes and same_value(with_logical(votes[name], value), value))
        ]

    def _settle(self, cell: CellRef) -> None:
        """Records the value of a cell, or why it has none."""
        choice = self._decided[cell]
        if not isinstance(choice, Choice):
            self._outcome.failed[cell] = self._why_not(cell, choice)
            return
        self._outcome.values[cell] = choice.value
        self._outcome.used.update(choice.engines)
        if choice.engines == (LIBREOFFICE,):
            self._outcome.office_alone.add(cell)
        against = choice.against
        if choice.engines == PAIR_ENGINES and against is None:
            against = self._office_against(cell, choice.value)
        if against is not None:
            self._note(cell, against, choice.engines[0])

    def _settle_agreed(self, cell: CellRef, value: CellValue) -> None:
        """Records the value on which the pair agrees in a sure cell."""
        self._outcome.values[cell] = value
        self._outcome.used.update(PAIR_ENGINES)
        if not self._agrees_with_all(cell):
            against = self._office_against(cell, value)
            if against is not None:
                self._note(cell, against, PAIR_ENGINES[0])

    def _office_against(self, cell: CellRef, value: CellValue) -> Mapping[str, CellValue] | None:
        """The values of all engines if LibreOffice disagrees with the pair; None otherwise."""
        results = self._answers.votes(cell)
        office = results.get(LIBREOFFICE)
        if office is None or same_value(with_logical(office, value), value):
            return None
        return results

    def _decided_quickly(self, cells: AbstractSet[CellRef]) -> dict[CellRef, Choice | Open | None]:
        """Decides cells as :meth:`_decide` does, but cells of one kind together.

        It decides only cells for which all engines with a value have the very same one: most cells.
        """
        decided: dict[CellRef, Choice | Open | None] = {}
        for apart in (cells & self._sure, cells - self._sure):
            if not apart:
                continue
            answers = self._answers.given(next(iter(apart)))
            names = tuple(name for name, _ in answers)
            value_of = [values.get for _, values in answers]
            for cell in apart:
                given = [get(cell) for get in value_of]
                if None not in given and self._is_one_value(cell, given):
                    self._undisputed.add(cell)
                    decided[cell] = self._decide_alike(cell, names, given[0])
                else:
                    votes = self._answers.votes(cell)
                    alike = self._is_one_value(cell, list(votes.values()))
                    decided[cell] = (
                        self._decide_alike(cell, tuple(votes), next(iter(votes.values())))
                        if alike
                        else self._decide(cell)
                    )
        return decided

    def _is_one_value(self, cell: CellRef, given: Sequence[CellValue]) -> bool:
        """Whether there is at least one value, all values are identical, and none is an error."""
        if not given or (self._has_tables and self._request.formulas[cell] == DATA_TABLE):
            return False
        first = given[0]
        if type(first) not in _PLAIN_TYPES:
            return False
        for other in given:  # noqa: SIM110 - a generator takes three times as long
            if type(other) is not type(first) or other != first:
                return False
        return True

    def _decide_alike(
        self, cell: CellRef, names: tuple[str, ...], value: CellValue
    ) -> Choice | Open | None:
        """Decides a cell for which some engines have the same value and the others have none."""
        number = self._fixed.get(cell)
        if number is None:
            number = self._kind(cell)
        instead = self._insteads[number]
        stands_for_error = instead is not None and same_value(value, instead)
        key = number, names, kind(value), stands_for_error
        if key in self._unanimous:
            decided = self._unanimous[key]
            if isinstance(decided, Choice):
                return Choice(value, decided.engines, None, decided.why)
            return decided
        decided = self._decide(cell)
        if not isinstance(decided, Choice) or (
            decided.against is None and is_identical(decided.value, value)
        ):
            self._unanimous[key] = decided
        return decided

    def _kind(self, cell: CellRef) -> int:
        """A number for everything that a decision depends on, except the values."""
        number = self._fixed.get(cell)
        if number is None:
            formula, support = self._request.formulas[cell], self._support
            instead = fallback(formula)
            called = self._called(cell)
            # Cells of a column share the object, which is compared faster than its contents.
            self._calls[id(called)] = called
            fixed = (
                id(called),
                instead,
                bool(support.valueless(cell)),
                formula == DATA_TABLE,
                cell in self._sure,
                cell in self._agreeing,
                cell in self._request.intersecting,
                support.reads_spilled(cell),
                support.reads_logical(cell),
            )
            number = self._fixed[cell] = self._kinds.setdefault(fixed, len(self._kinds))
            self._insteads[number] = instead
        return number

    def _decide(
        self, cell: CellRef, discounted: AbstractSet[str] = frozenset()
    ) -> Choice | Open | None:
        """Decides which value a cell gets, from the answers so far.

        Returns a choice, or None (no value), only if no answer that is still missing could change
        it: if an engine is late, ran out of time, ended or is not available, the cell stays open.

        Args:
            cell: the cell.
            discounted: engines that were overruled in a cell that this one reads.
        """
        if self._support.valueless(cell):
            return None
        results, missing = self._answers.votes(cell), self._answers.missing(cell)
        if len(self._engines) == 1:
            # If there is only one engine, it was requested by name, so its value is taken.
            for name, value in results.items():
                return Choice(value, (name,), why="it is the only engine that may answer")
            return Open(missing) if missing else None
        votes = results
        if FORMULAS in results:
            votes = {name: vote for name, vote in results.items() if name != FORMULAS}
        agreed = self._agreed_by_pair(cell, votes)
        if agreed is not None:
            return agreed
        awaited = missing - {FORMULAS}
        key = self._decision_key(cell, votes, discounted)
        choice = self._chosen_by_key(key, cell, votes, discounted)
        if _OPEN in discounted and self._is_disputed(cell):
            return Open(awaited or frozenset(self._engines))
        unanswered = awaited | self._absent
        if _ABSENT in discounted:
            return Open(awaited)
        if unanswered:
            staying = (key, unanswered)
            if staying not in self._staying:
                self._staying[staying] = self._stays(cell, choice, votes, unanswered, discounted)
            if not self._staying[staying]:
                return Open(awaited)
        if choice is None and LIBREOFFICE not in votes and FORMULAS in self._engines:
            # The last engine needs another one that agrees with it.
            return Open(awaited) if awaited else self._with_the_last(cell, results, missing)
        return choice

    def _decision_key(
        self, cell: CellRef, votes: Mapping[str, CellValue], discounted: AbstractSet[str]
    ) -> Hashable:
        """A key of everything that a decision depends on, except the values themselves.

        Most cells of a filled column have the same key, so each key is decided only once.
        """
        number = self._kind(cell)
        return (
            number,
            pattern(votes, self._insteads[number]),
            frozenset(discounted),
            _NAMELESS in votes.values() and self._support.is_certainly_nameless(cell),
        )

    def _chosen_by_key(
        self,
        key: Hashable,
        cell: CellRef,
        votes: Mapping[str, CellValue],
        discounted: AbstractSet[str],
    ) -> Choice | None:
        """Like :meth:`_chosen`, but reuses the decision for an earlier cell with the same key."""
        if key in self._choices:
            choice = self._choices[key]
            if choice is None:
                return None
            against = None if choice.against is None else votes
            return Choice(votes[choice.engines[0]], choice.engines, against, choice.why)
        choice = self._chosen(cell, votes, discounted)
        if choice is None or votes.get(choice.engines[0]) is choice.value:
            self._choices[key] = choice
        return choice

    def _stays(
        self,
        cell: CellRef,
        choice: Choice | None,
        votes: Mapping[str, CellValue],
        awaited: AbstractSet[str],
        discounted: AbstractSet[str],
    ) -> bool:
        """Whether a choice stays the same, whatever the awaited engines answer.

        If none of the awaited engines is available, answers are ignored that would leave the cell
        without a value because two values weigh the same.
        """
        formula = self._request.formulas[cell]
        plain = not discounted and not self._request.dialect.date_1904 and formula != DATA_TABLE
        plain = plain and _NAMELESS not in votes.values()
        plain = plain and cell not in self._request.intersecting
        if plain and not (self._support.reads_spilled(cell) or self._support.reads_logical(cell)):
            called = self._called(cell)
            if is_settled(votes, called, self._trust, awaited, fallback(formula)):
                return True
        others = (
            self._chosen(cell, possible, discounted) for possible in possible_votes(votes, awaited)
        )
        if choice is not None and awaited <= self._absent:
            others = (other for other in others if other is not None)
        return all(are_alike(choice, other) for other in others)

    def _agreed_by_pair(self, cell: CellRef, votes: Mapping[str, CellValue]) -> Choice | None:
        """The value of a sure cell on which the pair agrees; None otherwise."""
        if cell not in self._agreeing or not votes.keys() >= set(PAIR_ENGINES):
            return None
        values = [votes[name] for name in PAIR_ENGINES]
        if any(map(is_doubtful, values)) or not same_value(*values):
            return None
        return Choice(values[0], PAIR_ENGINES, why=_SURE)

    def _chosen(
        self, cell: CellRef, votes: Mapping[str, CellValue], discounted: AbstractSet[str]
    ) -> Choice | None:
        """The choice if the votes are the answers of all engines except the last one."""
        agreed = self._agreed_by_pair(cell, votes)
        if agreed is not None:
            return agreed
        if self._request.formulas[cell] == DATA_TABLE:
            office = votes.get(LIBREOFFICE)
            why = "only LibreOffice computes data tables"
            return None if office is None else Choice(office, (LIBREOFFICE,), why=why)
        if LIBREOFFICE in votes:
            spilled = self._support.reads_spilled(cell)
            if spilled or self._support.reads_logical(cell):
                choice = chosen_if_office_misreads(votes)
                if choice is not None or spilled:
                    return choice
        elif cell in self._request.intersecting:
            return None
        counted = {name: vote for name, vote in votes.items() if name not in discounted} or votes
        counted = self._with_names(cell, counted)
        if self._request.dialect.date_1904 and LIBREOFFICE in counted:
            # The quick engines only count days from 1900.
            counted = {LIBREOFFICE: counted[LIBREOFFICE]}
        if (
            cell in self._request.intersecting
            and counted.get(LIBREOFFICE) == _NO_CROSSING
            and not any(isinstance(counted.get(name), ErrorValue) for name in PAIR_ENGINES)
        ):
            return Choice(_NO_CROSSING, (LIBREOFFICE,), votes, _NOTHING_CROSSES)
        instead = fallback(self._request.formulas[cell])
        winning = winner(counted, self._called(cell), self._trust, instead)
        if winning is None:
            return None
        others = any(name not in winning.engines for name in votes)
        engines = tuple(winning.engines)
        if not others:
            return Choice(winning.value, engines, why=_UNDISPUTED)
        why = _HEAVIER if len(engines) > 1 else _HEAVIEST
        return Choice(winning.value, engines, votes, why)

    def _with_names(self, cell: CellRef, votes: Mapping[str, CellValue]) -> Mapping[str, CellValue]:
        """Drops ``#NAME?`` if another engine knows all names of the formula, as Excel does."""
        named = {name: vote for name, vote in votes.items() if vote != _NAMELESS}
        if len(named) == len(votes) or all(isinstance(w, ErrorValue) for w in named.values()):
            return votes
        return votes if self._support.is_certainly_nameless(cell) else named

    def _called(self, cell: CellRef) -> tuple[Call, ...]:
        """The calls in the formula of a cell."""
        request = self._request
        step = self._support.steps.get(cell)
        if step is not None and cell not in request.arrays:
            return step.calls
        return calls(
            request.formulas[cell],
            is_array=cell in request.arrays,
            intersects=cell in request.intersecting,
        )

    def _with_the_last(
        self, cell: CellRef, results: Mapping[str, CellValue], missing: frozenset[str]
    ) -> Choice | Open | None:
        """Decides with the last engine, ``formulas``, which needs another engine that agrees."""
        if cell in self._request.intersecting:
            return None
        if FORMULAS in missing:
            return Open(frozenset((FORMULAS,)))
        for name, vote in results.items():
            if name != FORMULAS and FORMULAS in results and same_value(vote, results[FORMULAS]):
                return Choice(vote, (name, FORMULAS), results, _HEAVIER)
        return None

    def _note(self, cell: CellRef, results: Mapping[str, CellValue], taken: str) -> None:
        self._disagreements += 1
        if self._disagreements <= MAX_NOTED_DISAGREEMENTS:
            answers = ", ".join(f"{name} {_shown(result)}" for name, result in results.items())
            self._outcome.notes.append(
                f"engines disagree in {address(cell)}: {answers}; took {taken}"
            )

    def _why_not(self, cell: CellRef, choice: Open | None) -> str:
        valueless = self._support.valueless(cell)
        if valueless:
            return f"its value in Excel is not known: {valueless}"
        reasons = []
        if self._support.reads_spilled(cell):
            reasons.append(
                "it may read cells to which a dynamic array formula spills, and the file does not "
                "say which these are (write the range that it fills as its reference)"
            )
        if cell in self._request.intersecting:
            reasons.append(
                "Excel takes one cell of a range here, which only LibreOffice can compute"
            )
        for name in self._engines:
            asking = self._answers.exchange(name, cell)
            answer = asking.answers.get(name)
            if answer is None:
                if name in asking.silent:
                    reasons.append(asking.silent[name])
                continue
            if cell in answer.failed:
                reasons.append(f"{name}: {answer.failed[cell]}")
            elif cell in answer.values:
                reasons.append(f"{name} says {_shown(answer.values[cell])}")
            else:
                reasons.append(f"{name}: {NO_VALUE}")
        if choice is not None and reasons:
            names = " and ".join(sorted(choice.engines or self._absent))
            here = "" if choice.engines else ", not available here,"
            reasons.append(f"the value depends on what {names}{here} would compute")
        functions = sorted(traits(self._request.formulas[cell]).functions)
        formula = f" ({', '.join(functions)})" if functions else ""
        return "; ".join(reasons) + formula if reasons else f"no engine is available{formula}"


def _in_order(exchange: tuple[str, bool]) -> tuple[int, bool]:
    name, sure = exchange
    return IN_ORDER.index(name), sure


def _shown(value: CellValue) -> str:
    return value.code if isinstance(value, ErrorValue) else repr(value)[:60]
