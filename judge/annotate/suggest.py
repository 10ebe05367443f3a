"""Corner cases with their golds, sorted by what they are: sound, contested, or none at all."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from judge.annotate.answers import formulas_problem
from judge.annotate.casebook import CaseData
from judge.annotate.edits import SetCell
from judge.annotate.gold import MIN_AGREEING, GoldMaker, Proposal
from judge.annotate.idea import Idea, Subject, subject_of
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

__all__ = ["Suggester", "Suggestion", "subject_of", "suggest"]

MAX_TOGETHER = 6
"""Ideas that are tried in one workbook; most kill nothing, and are done with in one go."""

MAX_CELLS = 4_000_000
"""Cells of the workbooks that all ideas together are tried in, about a minute of processor time.

Each idea is tried in a copy of the input and of the gold, which is computed and compared whole.
"""

ENOUGH_KILLS = 2
"""Ideas of one family that kill; its others are not tried."""

_FAMILIES = (
    frozenset(
        {"blank-read", "empty-key", "blank-columns", "blank-rows", "blank-cells", "one-row"}
        | {"no-row", "zeros-and-blanks", "blank-numbers-of-a-row"}
    ),
    frozenset({"equal-amounts", "repeated-keys", "duplicate-keys", "duplicate-rows", "ties"}),
    frozenset({"spaces", "nbsp"}),
)
"""Mutators that find the same mistakes."""


def _family(mutator: str) -> str:
    return next((min(family) for family in _FAMILIES if mutator in family), mutator)


@dataclass(frozen=True, slots=True)
class Suggestion:
    """A corner case to approve.

    Attributes:
        number: its number among those that are not rejected, from 1; 0 if it is rejected.
        idea: what is changed.
        proposal: input and gold; None where the edits did not even fit the workbook.
        rejected: why it is not a case for this question, or was not examined; or empty.
        contested: why only a person can say what its answer is, or empty.
        doubts: what to look at before it is accepted.
        kills: the accepted programs that it makes fail.
        examined: whether it was tried; False once :data:`MAX_CELLS` are used up.
    """

    number: int
    idea: Idea
    proposal: Proposal | None
    rejected: str
    contested: str = ""
    doubts: tuple[str, ...] = ()
    kills: tuple[Trial, ...] = ()
    examined: bool = True

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
) -> Iterator[Suggestion]:
    """Corner cases of a task; each is computed when it is needed.

    Of a large case only the first ideas are examined (:data:`MAX_CELLS`); the others are given as
    left out.

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

    Raises:
        WorkbookError, PositionError: the base case cannot be read.
        SandboxError: the sandbox failed.
    """
    suggester = Suggester(
        task, base, maker, references=references, others=others, victims=victims or {}
    )
    subject = subject_of(task, base, suggester.reads())
    key = f"{task.id}/{seed}"
    made = [*suggester.relations(subject, key), *ideas(subject, key)]
    chosen = [*more, *(idea for idea in made if not only or idea.mutator in only)]
    last = max(numbers, default=0)
    for suggestion in suggester.examine(chosen):
        if not numbers or suggestion.number in numbers:
            yield suggestion
        if numbers and suggestion.number >= last:
            return


class Suggester:
    """Examines ideas: makes their golds, tries the programs, and decides which become suggestions.

    Args:
        task: the task.
        base: the case to change.
        maker: makes the golds.
        references: solutions that are known to be right.
        others: cases whose answers a new one must not repeat.
        victims: name -> program that all cases accept.
        limits: bounds of each run of a program.
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
        limits: Limits | None = None,
    ) -> None:
        self._task = task
        self._base = base
        self._maker = maker
        self._references = references
        self._others = others
        self._victims = victims
        self._limits = limits or Limits()
        self._rules = GradingRules(get_profile("standard"))
        self._sources = len(references) + (not formulas_problem(task, base, ()))
        self._itself = (
            SelfComparison(task, base, others, maker, self._rules, self._limits)
            if victims and not references and maker.formulas_say_nothing(task, base)
            else None
        )
        self._idea_cells = _stored_cells(base)
        self._cells_taken = 0
        self._shown = 0
        self._kills: dict[str, int] = {}

    def relations(self, subject: Subject, seed: str) -> Iterator[Idea]:
        """Ideas whose answer follows only from a relation; none if any source gives answers."""
        if self._itself is not None and self._itself.golds:
            yield from relation_ideas(subject, self._task.instruction, self._itself.golds, seed)

    def reads(self) -> Reads:
        """The cells of the input that the victims and the references read."""
        programs = list(self._victims.values())
        ideas = []
        for program in programs:
            with self._maker.sandbox.session() as session:
                ideas.append(cells_read(session, program, self._base.input, self._limits))
        return merged_reads(ideas)

    def examine(self, ideas: Sequence[Idea]) -> Iterator[Suggestion]:
        """Examines ideas in their order, except that some are tried together."""
        if not self._victims:
            for idea in ideas:
                yield self._one(idea)
            return
        for together in _batches(ideas):
            open_ideas = [
                idea
                for idea in together
                if self._kills.get(_family(idea.mutator), 0) < ENOUGH_KILLS
            ]
            if len(open_ideas) > 1 and self._harmless(open_ideas):
                for idea in open_ideas:
                    yield Suggestion(0, idea, None, f"{KILLS_NONE} (tried with others)")
                continue
            for idea in open_ideas:
                yield self._one(idea)

    def _harmless(self, together: Sequence[Idea]) -> bool:
        """Whether ideas, tried in one workbook, make no program fail; and all sources agree."""
        if not self._takes_cells():
            return False
        edits = tuple(edit for idea in together for edit in idea.edits)
        try:
            proposal = self._maker.propose(
                self._task, self._base, edits, references=self._references
            )
        except (WorkbookError, PositionError, UsageError):
            return False
        if proposal.is_open:
            return False
        return not self._killed(proposal) and not self._repeated(proposal)[0]

    def _takes_cells(self) -> bool:
        """Whether one more pair of workbooks may be made, whose cells then count."""
        if self._cells_taken and self._cells_taken + self._idea_cells > MAX_CELLS:
            return False
        self._cells_taken += self._idea_cells
        return True

    @property
    def _left_out(self) -> str:
        return (
            f"not examined: the two workbooks hold {self._idea_cells:,} cells, which every idea "
            f"computes and compares, and after {MAX_CELLS:,} cells no more ideas are tried"
        )

    def _one(self, idea: Idea) -> Suggestion:
        named = named_values(self._task, self._base, idea)
        if named:
            return Suggestion(0, idea, None, f"the question names {named!r}, which it changes")
        if idea.disputed and self._sources < MIN_AGREEING and not self._victims:
            return Suggestion(0, idea, None, _ONE_SOURCE)
        if not self._takes_cells():
            return Suggestion(0, idea, None, self._left_out, examined=False)
        try:
            proposal = self._maker.propose(
                self._task,
                self._base,
                idea.edits,
                references=self._references,
                same_values=idea.same_values,
            )
        except (WorkbookError, PositionError, UsageError) as error:
            return Suggestion(0, idea, None, error.message)
        if proposal.gold is None and self._itself is not None:
            return self._by_relation(idea, proposal)
        return self._examined(idea, proposal)

    def _repeated(self, proposal: Proposal) -> tuple[tuple[Trial, ...], str]:
        if self._itself is None or proposal.gold is not None:
            return (), ""
        if self._kills.get(_REPEATED, 0) >= ENOUGH_KILLS:
            return (), ""
        return self._itself.repeated(proposal.input, self._victims)

    def _by_relation(self, idea: Idea, proposal: Proposal) -> Suggestion:
        """The suggestion of an idea whose answer no source gives, by the programs' own answers."""
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
            f"{reason}; nothing says what the answer is, give it by hand",
            doubts_of(proposal),
            kills,
        )

    def _examined(self, idea: Idea, proposal: Proposal) -> Suggestion:
        kills = self._killed(proposal) if self._victims else ()
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
        of_errors, enough = (_ERRORS_DISPUTED, 1) if idea.disputed else (_ERRORS, ENOUGH_KILLS)
        if errors and (
            not any(map(_gives_a_value, kills)) or self._kills.get(of_errors, 0) >= enough
        ):
            rejected = f"the answer becomes an error in {errors} cells"
        if rejected:
            return Suggestion(0, idea, proposal, rejected, doubts=doubts_of(proposal))
        self._shown += 1
        if kills:
            family = _family(idea.mutator)
            for group in (family, of_errors) if errors else (family,):
                self._kills[group] = self._kills.get(group, 0) + 1
        contested = contest_of(proposal, idea, errors)
        return Suggestion(self._shown, idea, proposal, "", contested, doubts_of(proposal), kills)

    def _killed(self, proposal: Proposal) -> tuple[Trial, ...]:
        """The programs that a proposal makes fail.

        If no source gives the answer, these are the programs that give none.
        """
        trials = killed(self._trials(proposal.input, proposal.gold or self._base.gold))
        if proposal.gold is None:
            trials = [trial for trial in trials if trial.verdict in _NO_ANSWER]
        return tuple(trials)

    def _trials(self, input_data: bytes, gold: bytes) -> list[Trial]:
        return try_case(
            self._task,
            CaseData(0, input_data, gold),
            self._victims,
            self._maker.sandbox,
            self._maker.recalculator,
            self._rules,
            self._limits,
        )


def _stored_cells(base: CaseData) -> int:
    """The stored cells of the input and of the gold."""
    return sum(
        len(workbook.cells(CellRange(sheet, 1, 1, MAX_ROW, MAX_COLUMN)))
        for workbook in (base.input_workbook, base.gold_workbook)
        for sheet in workbook.sheet_names
    )


_REPEATED = "values that an answer repeats"
_ERRORS = "answers that become errors"
_ERRORS_DISPUTED = "answers that become errors, of ideas on which right solutions may differ"


def _gives_a_value(trial: Trial) -> bool:
    """Whether a program gives a value where the gold holds an error."""
    differences = trial.comparison.get("differences", [])
    return any(
        difference["kind"] == DifferenceClass.ERROR_VALUE.value for difference in differences
    )


KILLS_NONE = "it makes none of the programs fail"

_ONE_SOURCE = "right solutions may differ here, and only one source says what is right"

_NO_ANSWER = frozenset({Verdict.RE, Verdict.NO, Verdict.TLE, Verdict.MLE, Verdict.OLE, Verdict.IW})


def _batches(ideas: Sequence[Idea]) -> Iterator[list[Idea]]:
    """Batches of ideas that can be tried in one workbook, since no two change the same row."""
    waiting: list[Idea] = []
    rows: set[tuple[str, int]] = set()
    for idea in ideas:
        own = _rows_of(idea)
        if not own:
            yield [idea]
            continue
        if own & rows or len(waiting) == MAX_TOGETHER:
            yield waiting
            waiting, rows = [], set()
        waiting.append(idea)
        rows |= own
    if waiting:
        yield waiting


def _rows_of(idea: Idea) -> set[tuple[str, int]]:
    """The rows that an idea changes, if it is one that can be tried with others."""
    if idea.disputed or idea.same_values or idea.twins or len(idea.edits) > MAX_TOGETHER:
        return set()
    rows: set[tuple[str, int]] = set()
    for edit in idea.edits:
        if not isinstance(edit, SetCell):
            return set()
        rows.add((edit.ref.sheet, edit.ref.row))
    return rows
