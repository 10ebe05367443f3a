"""The steps of an annotator's work: begin a draft, change it, view its gold, save it.

The command line and the page are built on this; it opens the sandbox and the engines once.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from judge.annotate.answers import changed_cells
from judge.annotate.casebook import Casebook, CaseData, Draft, SavedCase
from judge.annotate.edits import Edit, SetCell, address, content_to_json, edit_to_json
from judge.annotate.gold import (
    BY_HAND,
    FORMULAS,
    MIN_AGREEING,
    GoldMaker,
    Proposal,
    reference_name,
)
from judge.annotate.rules import BrokenRule, check_cases
from judge.closable import Closable
from judge.core.submission import Submission
from judge.core.task import Task
from judge.errors import UsageError
from judge.recalc.policy import Recalculator
from judge.recalc.select import open_recalculator
from judge.sandbox import open_sandbox
from judge.sandbox.contract import Sandbox
from judge.suites.submissions import load_submissions, submission_of_program


@dataclass(frozen=True, slots=True)
class Preview:
    """The case that a draft would be saved as.

    Attributes:
        proposal: input and gold.
        findings: rules that the task's cases would break if the draft were saved.
        problem: why the draft cannot be saved, or empty.
        doubts: why the draft should be checked before it is saved.
    """

    proposal: Proposal
    findings: tuple[BrokenRule, ...]
    problem: str
    doubts: tuple[str, ...]


class Annotator(Closable):
    """A suite with everything that is needed to add cases to it.

    Args:
        suite: the suite's folder.
        sandbox: ``auto``, ``docker`` or ``bubblewrap``, or an open sandbox, which is not closed.
        recalculator: an open recalculator, which is not closed; None opens one with all engines.
        ids: the tasks to work on; if given, faults of other tasks are ignored.
    """

    def __init__(
        self,
        suite: Path | str,
        *,
        ids: Sequence[str] = (),
        sandbox: str | Sandbox = "auto",
        recalculator: Recalculator | None = None,
    ) -> None:
        self.book = Casebook(suite, ids=ids)
        self._stack = contextlib.ExitStack()
        self._kind = sandbox
        self._sandbox: Sandbox | None = None if isinstance(sandbox, str) else sandbox
        self._recalculator = recalculator
        self._maker: GoldMaker | None = None

    @property
    def sandbox(self) -> Sandbox:
        """The sandbox, opened when it is first needed.

        Raises:
            SandboxError: no sandbox is available.
        """
        if self._sandbox is None:
            assert isinstance(self._kind, str)
            opened = open_sandbox(self._kind)
            self._sandbox = self._stack.enter_context(contextlib.closing(opened))
        return self._sandbox

    @property
    def recalculator(self) -> Recalculator:
        """The recalculator, opened when it is first needed."""
        if self._recalculator is None:
            opened = open_recalculator(self.sandbox)
            self._recalculator = self._stack.enter_context(contextlib.closing(opened))
        return self._recalculator

    @property
    def maker(self) -> GoldMaker:
        """The object that makes golds."""
        if self._maker is None:
            self._maker = GoldMaker(self.recalculator, self.sandbox)
        return self._maker

    def close(self) -> None:
        """Closes the sandbox and the engines that were opened here; safe to call twice."""
        self._stack.close()

    @staticmethod
    @contextlib.contextmanager
    def engines(kind: str = "auto", *, jobs: int = 1) -> Iterator[tuple[Sandbox, Recalculator]]:
        """Opens a sandbox and its engines for the time of a ``with`` block.

        Raises:
            SandboxError: no sandbox is available.
        """
        with (
            contextlib.closing(open_sandbox(kind, jobs=jobs)) as sandbox,
            contextlib.closing(open_recalculator(sandbox, workers=jobs)) as recalculator,
        ):
            yield sandbox, recalculator

    # -- cases -----------------------------------------------------------------------------------

    def cases(self, task_id: str) -> list[CaseData]:
        """The current cases of a task, in order."""
        task = self.book.task(task_id)
        numbers = {case.number for case in task.cases}
        numbers |= {int(record["case"]) for record in self.book.records(task_id)}
        return [self.book.case(task_id, number) for number in sorted(numbers)]

    def check(self, task_id: str) -> list[BrokenRule]:
        """Checks a task's cases against the rules of the manual."""
        return check_cases(
            self.book.task(task_id),
            self.cases(task_id),
            records=self.book.records(task_id),
            recalculator=self.recalculator,
        )

    def references(self, task_id: str, paths: Sequence[Path]) -> list[Submission]:
        """Loads reference solutions of a task from program files and files of solutions.

        Raises:
            SubmissionError: a file cannot be used.
            UsageError: a file of solutions has none for the task.
        """
        task = self.book.task(task_id)
        submissions: list[Submission] = []
        origins: list[Path] = []
        for path in paths:
            if path.suffix == ".jsonl":
                loaded = load_submissions(path, self.book.suite, ids=[task_id])
                if not loaded:
                    raise UsageError(f"{path} has no solution of task {task_id}")
                submissions += loaded
            else:
                submissions.append(submission_of_program(path, task, self.book.suite.suite_format))
            origins += [path] * (len(submissions) - len(origins))
        return with_unique_names(submissions, origins)

    def preview(
        self,
        draft: Draft,
        references: Sequence[Submission] = (),
        *,
        decide: str = "",
        kills: bool = False,
        same_values: bool = False,
    ) -> Preview:
        """Makes the gold of a draft, and checks the draft against the rules.

        Args:
            draft: the draft.
            references: solutions that are known to be right.
            decide: the source that a person chose, because the sources disagree or because only one
                exists.
            kills: whether the draft makes an accepted program fail.
            same_values: whether the edits change only the way values are stored, but no value.

        Raises:
            UsageError: no source of that name gives an answer.
            WorkbookError: the edits do not fit the workbook.
            SandboxError: the sandbox failed.
        """
        task = self.book.task(draft.task_id)
        answers = [answer for answer in draft.answers if isinstance(answer, SetCell)]
        proposal = self.maker.propose(
            task,
            draft.base,
            draft.edits,
            references=references,
            answers=answers,
            same_values=same_values,
            decide=decide,
        )
        if proposal.gold is None:
            return Preview(proposal, (), _why_no_gold(proposal), ())
        new = CaseData(draft.number, proposal.input, proposal.gold)
        others = [case for case in self.cases(task.id) if case.number != draft.number]
        findings = check_cases(
            task,
            sorted([*others, new], key=lambda case: case.number),
            records=self.book.records(task.id),
            recalculator=self.recalculator,
            killing={draft.number} if kills else (),
        )
        own = tuple(
            finding
            for finding in findings
            if finding.case == draft.number and finding.rule != "recorded"
        )
        problem = "" if answers else _open_vote(proposal)
        return Preview(proposal, own, problem, _doubts(proposal, by_hand=bool(answers)))

    def save(
        self,
        draft: Draft,
        preview: Preview,
        *,
        kind: str = "set",
        facts: dict[str, Any] | None = None,
    ) -> SavedCase:
        """Saves a draft with the workbooks of its preview.

        Args:
            draft: the draft, which is removed.
            preview: the result of :meth:`preview` for the same state of the draft.
            kind: how the case was made, for the record: ``set``, ``suggest``, ``hack``.
            facts: further facts for the record.

        Raises:
            UsageError: the draft has no gold, or its sources disagree and nobody has decided.
            ConflictError: somebody else saved the case first; the draft is kept.
        """
        proposal = preview.proposal
        if proposal.gold is None or preview.problem:
            raise UsageError(preview.problem)
        return self.book.save(
            draft,
            proposal.input,
            proposal.gold,
            {"kind": kind, **record_facts(draft, proposal), **(facts or {})},
        )

    def task(self, task_id: str) -> Task:
        """A task by its id."""
        return self.book.task(task_id)


def record_facts(draft: Draft, proposal: Proposal) -> dict[str, Any]:
    """The facts about how a case was made, for its record."""
    edits: Sequence[Edit] = draft.edits
    by = [source.name for source in proposal.sources if source.agrees]
    return {
        "edits": [edit_to_json(edit) for edit in edits],
        "structural": any(not isinstance(edit, SetCell) for edit in edits),
        "changed": [address(ref) for ref in changed_cells(draft.base.input, proposal.input)],
        "answers_by_hand": [edit_to_json(answer) for answer in draft.answers],
        "gold_by": by or [BY_HAND],
        "gold_disagreeing": [reference.name for reference in proposal.disagreeing],
        "decided": proposal.decided,
        "moved": [
            {
                "cell": address(change.ref),
                "before": content_to_json(change.before),
                "after": content_to_json(change.after),
            }
            for change in proposal.moved
        ],
        "notes": list(proposal.notes),
    }


def _why_no_gold(proposal: Proposal) -> str:
    return f"no source gives the answer now ({'; '.join(proposal.problems)})"


def refusals(preview: Preview) -> list[str]:
    """Why a preview is saved only on explicit request: its doubts, and the rules that it breaks."""
    broken = [
        f"rule {finding.rule}: {finding.message}"
        for finding in preview.findings
        if finding.is_error
    ]
    return [*preview.doubts, *broken]


def _open_vote(proposal: Proposal) -> str:
    """Why a draft whose sources disagree is not saved; empty if they agree, or one was chosen."""
    if not proposal.is_open:
        return ""
    return (
        f"the sources disagree: {proposal.vote}. Compare the cells with the question; then name "
        "the source that is right with --decide, or set the cells by hand with --gold"
    )


def _doubts(proposal: Proposal, *, by_hand: bool) -> tuple[str, ...]:
    if proposal.decided:
        return ()
    doubts = [
        f"{reference.name} says something else: {reference.problem}"
        for reference in proposal.disagreeing
    ]
    independent = proposal.independent + by_hand
    if independent < MIN_AGREEING:
        missing = [
            f"{source.name} gives no answer: {source.problem}"
            for source in proposal.sources
            if source.agrees is None and source.name != FORMULAS
        ]
        same = (
            f" ({' and '.join(proposal.agreeing)} compute it in the same way)"
            if independent and len(proposal.agreeing) > 1
            else ""
        )
        doubts += [
            f"only {independent} independent source gives this answer{same}; two are required",
            *missing,
        ]
    return tuple(doubts)


def with_unique_names(
    submissions: Sequence[Submission], origins: Sequence[Path]
) -> list[Submission]:
    """References with unique names: files of the same name are distinguished by their paths."""
    names = [reference_name(submission) for submission in submissions]
    distinct = []
    for reference, name, origin in zip(submissions, names, origins, strict=True):
        others = [
            other
            for other, other_name in zip(origins, names, strict=True)
            if other_name == name and other != origin
        ]
        if others:
            start = 1
            while start < len(origin.parts) and any(
                other.parts[-start:] == origin.parts[-start:] for other in others
            ):
                start += 1
            path = "/".join(origin.parts[-start:])
            label = path if origin.suffix == ".py" else f"{path}: {name}"
        distinct.append(replace(reference, label=label) if others else reference)
    return distinct
