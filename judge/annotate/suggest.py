"""Suggests corner cases with their golds, and says which are sound, contested or rejected."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from judge.annotate.answers import GoldAnswer, ProgramRuns, answer_of, formulas_problem
from judge.annotate.carried import carried_ideas
from judge.annotate.carried_keys import Material
from judge.annotate.casebook import CaseData
from judge.annotate.edit import apply_edits
from judge.annotate.gold import CARRIED, FORMULAS, MIN_AGREEING, GoldMaker, Proposal
from judge.annotate.idea import Idea, IdeasTogether, Subject, Values, grouped, split_up, subject_of
from judge.annotate.mutants import ideas
from judge.annotate.relations import relation_ideas
from judge.annotate.strength import Trial, killed, try_case
from judge.annotate.support import Reads, cells_read, merged_reads
from judge.annotate.validator import (
    SelfComparison,
    contest_of,
    doubts_of,
    named_values,
    new_errors,
    problem_of,
)
from judge.annotate.worth import by_likelihood, doubt_of_formulas, row_of
from judge.closable import Closable
from judge.compare.cells.comparison import DifferenceClass
from judge.compare.profiles import get_profile
from judge.core.limits import Limits
from judge.core.submission import Submission
from judge.core.task import Task
from judge.core.verdict import Verdict
from judge.errors import PositionError, UsageError, WorkbookError
from judge.grading.case import GradingRules
from judge.workbook.address import MAX_COLUMN, MAX_ROW
from judge.workbook.cell import CellRange
from judge.workbook.reader import workbooks_kept

__all__ = ["Suggester", "Suggestion", "subject_of", "suggest"]

_Outcome = TypeVar("_Outcome")

MAX_CELLS = 4_000_000
"""Limit on the cells in the workbooks of all ideas; so many take about a minute of processor time.

Each idea is tried in copies of the input and of the gold, which are computed and compared whole.
"""

ENOUGH_KILLS = 2
"""Once this many ideas of a family have killed a program, no more ideas of the family are tried."""

_FAMILIES = (
    frozenset(
        {"blank-read", "empty-key", "blank-columns", "blank-rows", "blank-cells", "one-row"}
        | {"no-row", "zeros-and-blanks", "blank-numbers-of-a-row"}
    ),
    frozenset({"equal-amounts", "repeated-keys", "duplicate-keys", "duplicate-rows", "ties"}),
    frozenset({"spaces", "nbsp", "key-with-blank"}),
    frozenset({"renamed-key", "other-prefix"}),
)
"""Families of mutators; the mutators of a family find the same mistakes."""


def _family(mutator: str) -> str:
    return next((min(family) for family in _FAMILIES if mutator in family), mutator)


@dataclass(frozen=True, slots=True)
class Suggestion:
    """A corner case to approve.

    Attributes:
        number: its number among the suggestions that are not rejected, from 1; 0 if rejected.
        idea: the changes.
        proposal: input and gold; None if the edits do not fit the workbook.
        rejected: why it is not a case for this question, or was not examined; or empty.
        contested: why only a person can decide what its answer is, or empty.
        doubts: what to check before it is accepted.
        kills: the accepted programs that it makes fail.
        examined: whether it was tried; False after :data:`MAX_CELLS` or the time limit is reached.
        doubtful: why the gold's formulas, if they are its only source, are doubtful; or empty.
    """

    number: int
    idea: Idea
    proposal: Proposal | None
    rejected: str
    contested: str = ""
    doubts: tuple[str, ...] = ()
    kills: tuple[Trial, ...] = ()
    examined: bool = True
    doubtful: str = ""

    @property
    def state(self) -> str:
        """``sound``, ``contested``, ``rejected``, or ``left out`` if it was not examined."""
        if not self.examined:
            return "left out"
        return "rejected" if self.rejected else "contested" if self.contested else "sound"


def suggest(
    task: Task,
    base: CaseData,
    maker: GoldMaker,
    *,
    references: Sequence[Submission] = (),
    others: Sequence[CaseData] = (),
    seed: int = 0,
    only: Collection[str] = (),
    numbers: Collection[int] = (),
    victims: Mapping[str, Submission] | None = None,
    more: Sequence[Idea] = (),
    is_over: Callable[[], bool] = lambda: False,
    on_progress: Callable[[Progress], None] = lambda _: None,
) -> Iterator[Suggestion]:
    """Yields corner cases for a task; each is computed when it is requested.

    For a large case, only the first ideas are examined (:data:`MAX_CELLS`); the others are yielded
    as left out.

    Args:
        task: the task.
        base: the case to change.
        maker: makes the golds.
        references: solutions that are known to be right.
        others: cases whose answers a new one must not repeat.
        seed: the same seed, with the same other arguments, gives the same suggestions.
        only: names of the mutators to use; empty for all.
        numbers: numbers of the suggestions to yield; empty for all.
        victims: name -> program that all cases accept; if there are any, only an idea that makes
            one of them fail becomes a suggestion.
        more: ideas from other sources, which are examined first.
        is_over: called before each idea; once it returns True, the other ideas are left out.
        on_progress: called after each idea.

    Raises:
        WorkbookError, PositionError: the base case cannot be read.
        SandboxError: the sandbox failed.
    """
    key = f"{task.id}/{seed}"
    last = max(numbers, default=0)
    examined, shown = 0, 0
    with Suggester(
        task, base, maker, references=references, others=others, victims=victims or {}
    ) as suggester:
        subject = subject_of(task, base, suggester.reads())
        ideas_made = by_likelihood([*suggester.relations(subject, key), *ideas(subject, key)])
        chosen = [*more, *(idea for idea in ideas_made if not only or idea.mutator in only)]
        for suggestion in suggester.examine(chosen, is_over=is_over):
            examined += suggestion.examined
            shown += bool(suggestion.number)
            on_progress(Progress(examined, len(chosen), shown, tuple(suggester.contradictions)))
            if not numbers or suggestion.number in numbers:
                yield suggestion
            if numbers and suggestion.number >= last:
                return


@dataclass(frozen=True, slots=True)
class Progress:
    """The progress of a search.

    Attributes:
        examined: number of ideas that were examined.
        ideas: number of all ideas.
        shown: number of suggestions so far.
        contradictions: relations that the gold's own formulas break, so far.
    """

    examined: int
    ideas: int
    shown: int
    contradictions: tuple[str, ...]


_TIME_IS_UP = "not examined: the time limit was reached"

_NOT_KEPT = "the programs do not keep this relation at other rows either"

_REPEATED = "values that an answer repeats"

_ERRORS = "answers that become errors"

_ERRORS_DISPUTED = "answers that become errors, of ideas on which right solutions may differ"

_ENOUGH_ERRORS = {_ERRORS: ENOUGH_KILLS, _ERRORS_DISPUTED: 1}

KILLS_NONE = "it makes none of the programs fail"

_ONE_SOURCE = "right solutions may differ here, and only one source says what is right"

_NO_ANSWER = frozenset({Verdict.RE, Verdict.NO, Verdict.TLE, Verdict.MLE, Verdict.OLE, Verdict.IW})


class Suggester(Closable):
    """Examines ideas: makes their golds, tries the programs, and decides which become suggestions.

    While one idea is examined, the programs already run on the input of the next one.

    Args:
        task: the task.
        base: the case to change.
        maker: makes the golds.
        references: solutions that are known to be right.
        others: cases whose answers a new one must not repeat.
        victims: name -> program that all cases accept.
    """

    def __init__(
        self,
        task: Task,
        base: CaseData,
        maker: GoldMaker,
        *,
        references: Sequence[Submission] = (),
        others: Sequence[CaseData] = (),
        victims: Mapping[str, Submission],
    ) -> None:
        self._task = task
        self._base = base
        self._maker = maker
        self._references = references
        self._others = others
        self._victims = victims
        self._limits = Limits()
        self._runs = ProgramRuns(maker.sandbox, self._limits) if victims or references else None
        self._rules = GradingRules(get_profile("standard"))
        self._sources = len(references) + (not formulas_problem(task, base, ()))
        self._itself = (
            SelfComparison(task, base, others, maker, self._rules, self._runs)
            if self._runs is not None and victims and not references
            else None
        )
        self._has_no_source = bool(
            self._itself is not None and maker.formulas_say_nothing(task, base)
        )
        answer = _answer_of(task, base, maker)
        self._answer: Values | None = None if answer is None or answer.unknown else answer.values
        self._answer_cells = len(answer.values) if answer is not None else 0
        self.contradictions: list[str] = []
        self._idea_cells = _stored_cells(base)
        self._cells_taken = 0
        self._shown = 0
        self._kills: dict[str, int] = {}

    def close(self) -> None:
        """Stops the programs that are still running."""
        if self._runs is not None:
            self._runs.close()

    def relations(self, subject: Subject, seed: str) -> Iterator[Idea]:
        """Ideas that are based on relations.

        Relations that do not determine the answer are used only if no source gives answers.
        """
        if self._answer is not None:
            workbooks = self._base.input_workbook, self._base.gold_workbook
            material = Material(subject, *workbooks, self._task.instruction, self._answer)
            yield from carried_ideas(material, seed)
        if self._has_no_source and self._itself is not None and self._itself.golds:
            yield from relation_ideas(subject, self._task.instruction, self._itself.golds, seed)

    def reads(self) -> Reads:
        """The cells of the input that the victims and the references read."""
        programs = list(self._victims.values())
        ideas = []
        for program in programs:
            with self._maker.sandbox.session() as session:
                ideas.append(cells_read(session, program, self._base.input, self._limits))
        return merged_reads(ideas)

    def examine(
        self, ideas: Sequence[Idea], *, is_over: Callable[[], bool] = lambda: False
    ) -> Iterator[Suggestion]:
        """Examines ideas in order; some of them are tried together.

        Args:
            ideas: the ideas.
            is_over: called before each; once it returns True, the other ideas are left out.
        """
        groups = grouped(ideas) if self._victims else ((idea,) for idea in ideas)
        waiting = deque(IdeasTogether(group) for group in groups)
        while waiting:
            together = waiting.popleft()
            if is_over():
                for idea in together.ideas:
                    yield Suggestion(0, idea, None, _TIME_IS_UP, examined=False)
                continue
            together = self._still_open(together)
            if not together.ideas:
                continue
            if self._has_cells():
                self._prepare(together)
            if waiting and self._has_cells(2):
                self._prepare(waiting[0])
            if len(together.ideas) == 1:
                yield self._keeping_workbooks(self._one, together)
                continue
            why, suspects = self._keeping_workbooks(self._harmless, together)
            if why:
                for idea in together.ideas:
                    yield Suggestion(0, idea, None, f"{why} (tried with others)")
            else:
                waiting.extendleft(reversed(split_up(together.ideas, suspects)))

    def _still_open(self, together: IdeasTogether) -> IdeasTogether:
        """The ideas without those whose family has killed enough programs."""
        still_open = tuple(
            idea
            for idea in together.ideas
            if self._kills.get(_family(idea.mutator), 0) < ENOUGH_KILLS
        )
        return together if len(still_open) == len(together.ideas) else IdeasTogether(still_open)

    def _prepare(self, together: IdeasTogether) -> None:
        """Makes the input with some ideas, and starts the programs on it."""
        is_one_refused = len(together.ideas) == 1 and self._refused(together.ideas[0])
        if together.is_prepared or is_one_refused:
            return
        together.is_prepared = True
        try:
            together.edited = apply_edits(
                self._base.input, together.edits, recalculator=self._maker.recalculator
            )
        except (WorkbookError, UsageError) as error:
            together.problem = error.message
            return
        if self._runs is not None:
            self._runs.start([*self._references, *self._victims.values()], together.edited.data)

    def _keeping_workbooks(
        self, examine: Callable[[IdeasTogether], _Outcome], together: IdeasTogether
    ) -> _Outcome:
        """Runs an examination, and keeps parsed workbooks, so that none is parsed twice."""
        with workbooks_kept(self._base.input_workbook, self._base.gold_workbook):
            return examine(together)

    def _harmless(self, together: IdeasTogether) -> tuple[str, frozenset[tuple[str, int]]]:
        """Checks whether ideas that are tried in one workbook are harmless: no program fails on it.

        Returns:
            Why none of them becomes a suggestion, or empty; and the recorded rows of the answer
            where a program differs.
        """
        nowhere: frozenset[tuple[str, int]] = frozenset()
        if not self._takes_cells() or together.edited is None:
            return "", nowhere
        try:
            proposal = self._maker.propose(
                self._task,
                self._base,
                together.edits,
                references=self._references,
                edited=together.edited,
                runs=self._runs,
                same_values=all(idea.same_values for idea in together.ideas),
            )
        except (WorkbookError, PositionError, UsageError):
            return "", nowhere
        if proposal.is_open:
            return "", nowhere
        kills = self._killed(proposal, self._victims)
        if not kills and not self._repeated(proposal)[0]:
            return KILLS_NONE, nowhere
        rows = frozenset(
            (difference["sheet"], row_of(difference["cell"]))
            for trial in kills
            for difference in trial.comparison.get("differences", [])
        )
        return self._only_errors(together, proposal, kills), rows

    def _only_errors(
        self, together: IdeasTogether, proposal: Proposal, kills: Sequence[Trial]
    ) -> str:
        """Why to reject ideas on which programs differ from the gold only where it has an error.

        Empty until enough ideas whose answers become errors have been suggested. From then on, each
        further one would be rejected even if it was examined alone.
        """
        groups = {_ERRORS_DISPUTED if idea.disputed else _ERRORS for idea in together.ideas}
        if any(self._kills.get(group, 0) < _ENOUGH_ERRORS[group] for group in groups):
            return ""
        if not kills or not all(map(_differs_in_errors_alone, kills)):
            return ""
        errors = new_errors(self._task, self._base, proposal, self._maker.recalculator)
        # Errors in the whole answer hide whatever else the ideas do to it.
        return (
            f"the answer becomes an error in {errors} cells"
            if (0 < errors < self._answer_cells)
            else ""
        )

    def _has_cells(self, pairs: int = 1) -> bool:
        """Whether the limit on cells allows this many more pairs of workbooks.

        It always allows a first pair.
        """
        is_first = pairs == 1 and not self._cells_taken
        return is_first or self._cells_taken + pairs * self._idea_cells <= MAX_CELLS

    def _takes_cells(self) -> bool:
        """Whether the limit allows one more pair of workbooks; if so, counts its cells."""
        has_cells = self._has_cells()
        if has_cells:
            self._cells_taken += self._idea_cells
        return has_cells

    @property
    def _left_out(self) -> str:
        return (
            f"not examined: the two workbooks have {self._idea_cells:,} cells, which every idea "
            f"computes and compares, and after {MAX_CELLS:,} cells no more ideas are tried"
        )

    def _refused(self, idea: Idea) -> str:
        """Why an idea is not tried; empty if it is tried."""
        named = named_values(self._task, self._base, idea)
        if named:
            return f"it changes {named!r}, which the question names"
        if idea.disputed and self._sources < MIN_AGREEING and not self._victims:
            return _ONE_SOURCE
        return ""

    def _one(self, together: IdeasTogether) -> Suggestion:
        (idea,) = together.ideas
        refused = self._refused(idea)
        if refused:
            return Suggestion(0, idea, None, refused)
        carried, answer = idea.carried, None
        if carried is not None:
            assert self._answer is not None, "relations are made from the answer of the case"
            answer = carried.answer(self._answer)
        if not self._takes_cells():
            return Suggestion(0, idea, None, self._left_out, examined=False)
        if together.edited is None:
            return Suggestion(0, idea, None, together.problem)
        try:
            proposal = self._maker.propose(
                self._task,
                self._base,
                idea.edits,
                references=self._references,
                edited=together.edited,
                runs=self._runs,
                same_values=idea.same_values,
                carried_answer=answer,
                is_certain=carried is not None and carried.is_certain,
            )
        except (WorkbookError, PositionError, UsageError) as error:
            return Suggestion(0, idea, None, error.message)
        if proposal.gold is None and self._has_no_source:
            return self._by_relation(idea, proposal)
        if carried is not None:
            return self._by_carrying(idea, proposal)
        examined = self._examined(idea, proposal)
        if examined.rejected and idea.twins and self._itself is not None:
            # The gold's formulas agree with the programs, but both may have the same fault.
            return self._by_relation(idea, proposal)
        return examined

    def _by_carrying(self, idea: Idea, proposal: Proposal) -> Suggestion:
        """The suggestion for an idea whose answer is carried over from the case."""
        assert idea.carried is not None
        formulas = next((source for source in proposal.sources if source.name == FORMULAS), None)
        if idea.carried.is_certain:
            if formulas is not None and formulas.agrees is False:
                self.contradictions.append(idea.title)
            return self._examined(idea, proposal)
        if proposal.agreeing != (CARRIED,):
            if self._is_kept_by_programs_alone(proposal):
                self.contradictions.append(idea.title)
            return self._examined(idea, proposal)
        keeping = self._keeping(idea)
        if not keeping:
            return Suggestion(0, idea, proposal, _NOT_KEPT)
        return self._examined(idea, proposal, keeping)

    def _is_kept_by_programs_alone(self, proposal: Proposal) -> bool:
        """Whether all programs keep a relation that the gold's formulas, the only source, break.

        If the relation did not hold for the question, the programs would break it too.
        """
        carried = next((source for source in proposal.sources if source.name == CARRIED), None)
        if carried is None or carried.data is None or proposal.agreeing != (FORMULAS,):
            return False
        if not self._victims:
            return False
        return not killed(self._trials(proposal.input, carried.data))

    def _keeping(self, idea: Idea) -> Mapping[str, Submission]:
        """The programs that keep a relation after a similar change elsewhere.

        There is no other evidence that the relation holds for the question.
        """
        assert idea.carried is not None
        assert self._answer is not None
        if not idea.carried.trial:
            return self._victims
        try:
            trial = self._maker.propose(
                self._task,
                self._base,
                idea.carried.trial,
                carried_answer=idea.carried.trial_answer(self._answer),
            )
        except (WorkbookError, PositionError, UsageError):
            return {}
        if trial.gold is None:
            return {}
        lost = {failed.name for failed in killed(self._trials(trial.input, trial.gold))}
        return {name: program for name, program in self._victims.items() if name not in lost}

    def _repeated(self, proposal: Proposal) -> tuple[tuple[Trial, ...], str]:
        if not self._has_no_source or self._itself is None or proposal.gold is not None:
            return (), ""
        if self._kills.get(_REPEATED, 0) >= ENOUGH_KILLS:
            return (), ""
        return self._itself.repeated(proposal.input, self._victims)

    def _by_relation(self, idea: Idea, proposal: Proposal) -> Suggestion:
        """The suggestion for an idea without a source, by the consistency of each program."""
        assert self._itself is not None
        reason, family = idea.relation, _family(idea.mutator)
        try:
            kills = self._itself.broken(idea, self._victims) if idea.twins else ()
        except WorkbookError as error:
            return Suggestion(0, idea, None, error.message)
        if not kills:
            kills, reason = self._repeated(proposal)
            family = _REPEATED
        if not kills:
            return self._examined(idea, proposal)
        self._shown += 1
        self._kills[family] = self._kills.get(family, 0) + 1
        return Suggestion(
            self._shown,
            idea,
            proposal,
            "",
            f"{reason}; no source gives the answer: give it by hand",
            doubts_of(proposal),
            kills,
        )

    def _examined(
        self, idea: Idea, proposal: Proposal, victims: Mapping[str, Submission] | None = None
    ) -> Suggestion:
        """The suggestion for an idea; ``victims`` are the programs to try, or None to try all."""
        tried = self._victims if victims is None else victims
        kills = self._killed(proposal, tried) if tried else ()
        rejected = problem_of(
            self._task,
            self._base,
            proposal,
            [self._base, *self._others],
            recalculator=self._maker.recalculator,
            kills=bool(kills),
        )
        if not rejected and self._victims and not kills:
            rejected = KILLS_NONE
        errors = 0
        if not rejected:
            errors = new_errors(self._task, self._base, proposal, self._maker.recalculator)
        of_errors = _ERRORS_DISPUTED if idea.disputed else _ERRORS
        if errors and (
            not any(map(_gives_a_value, kills))
            or self._kills.get(of_errors, 0) >= _ENOUGH_ERRORS[of_errors]
        ):
            rejected = f"the answer becomes an error in {errors} cells"
        if rejected:
            return Suggestion(0, idea, proposal, rejected, doubts=doubts_of(proposal))
        self._shown += 1
        if kills:
            family = _family(idea.mutator)
            for group in (family, of_errors) if errors else (family,):
                self._kills[group] = self._kills.get(group, 0) + 1
        return Suggestion(
            self._shown,
            idea,
            proposal,
            "",
            contest_of(proposal, idea, errors),
            doubts_of(proposal),
            kills,
            doubtful=doubt_of_formulas(idea, proposal, kills),
        )

    def _killed(self, proposal: Proposal, victims: Mapping[str, Submission]) -> tuple[Trial, ...]:
        """The programs that a proposal makes fail.

        If no source gives the answer, these are the programs that give no answer either.
        """
        trials = killed(self._trials(proposal.input, proposal.gold or self._base.gold, victims))
        if proposal.gold is None:
            trials = [trial for trial in trials if trial.verdict in _NO_ANSWER]
        return tuple(trials)

    def _trials(
        self, input_data: bytes, gold: bytes, victims: Mapping[str, Submission] | None = None
    ) -> list[Trial]:
        assert self._runs is not None, "programs are tried"
        return try_case(
            self._task,
            CaseData(0, input_data, gold),
            self._victims if victims is None else victims,
            self._runs,
            self._maker.recalculator,
            self._rules,
        )


def _stored_cells(base: CaseData) -> int:
    """The number of stored cells in the input and the gold together."""
    return sum(
        len(workbook.cells(CellRange(sheet, 1, 1, MAX_ROW, MAX_COLUMN)))
        for workbook in (base.input_workbook, base.gold_workbook)
        for sheet in workbook.sheet_names
    )


def _answer_of(task: Task, base: CaseData, maker: GoldMaker) -> GoldAnswer | None:
    """The gold's answer; None if it cannot be read."""
    try:
        return answer_of(task, base.gold_workbook, maker.recalculator)
    except (WorkbookError, PositionError):
        return None


def _differs_in_errors_alone(trial: Trial) -> bool:
    """Whether all of a program's differences are recorded, and in each the gold has an error."""
    differences = trial.comparison.get("differences", [])
    counted = sum(trial.comparison.get("difference_counts", {}).values())
    return 0 < counted == len(differences) and all(
        isinstance(difference["expected"], dict) and "error" in difference["expected"]
        for difference in differences
    )


def _gives_a_value(trial: Trial) -> bool:
    """Whether a program gives a value where the gold holds an error."""
    differences = trial.comparison.get("differences", [])
    return any(
        difference["kind"] == DifferenceClass.ERROR_VALUE.value for difference in differences
    )
