"""Pieces of work: what is given to workers, what is left of it, and what is given up."""

from __future__ import annotations

from dataclasses import dataclass, replace

from judge.cluster.work import Check, Reply
from judge.core.verdict import Verdict
from judge.grading.jobs import Job, JudgedCase
from judge.grading.verify import CaseCheck


@dataclass(frozen=True, slots=True)
class Piece:
    """A submission, or a case to be checked, with what happened to it.

    Attributes:
        work: what is to be done.
        deaths: workers that died of it, or could not answer for it.
        single: whether it is a case that is tried by itself, for the last time.
    """

    work: Job | Check
    deaths: int = 0
    single: bool = False

    @property
    def cases(self) -> int:
        """How many cases it is."""
        return len(self.work.cases) if isinstance(self.work, Job) else 1

    @property
    def wall_s(self) -> float:
        """The time limit of each of its runs."""
        return self.work.limits.wall_s if isinstance(self.work, Job) else 0.0

    @property
    def size_bytes(self) -> int:
        """About how much of it has to be sent, beyond the least."""
        if isinstance(self.work, Check):
            return 0
        answers = (case.outcome.answer for case in self.work.cases if case.outcome is not None)
        files = (file for answer in answers if answer is not None for file in answer.files)
        return sum(len(file.data) for file in files)


@dataclass(frozen=True, slots=True)
class Lost:
    """A piece that is given up.

    Attributes:
        work: the submission, with one case, or the check.
        reason: why, for people.
    """

    work: Job | Check
    reason: str


Outcome = JudgedCase | CaseCheck | Lost


def counts(judged: JudgedCase, reply: Reply) -> bool:
    """Whether a result stands: not if all that it says is that the worker's sandbox is gone."""
    return not (reply.gone and judged.result.verdict is Verdict.JE)


def what_is_left(piece: Piece, done: dict[int, Outcome]) -> Piece | None:
    """What is left of a piece."""
    if isinstance(piece.work, Check):
        return None if done else piece
    left = tuple(each for at, each in enumerate(piece.work.cases) if at not in done)
    return replace(piece, work=replace(piece.work, cases=left)) if left else None


def split(work: Job | Check) -> list[Job | Check]:
    """The same work, case by case."""
    if isinstance(work, Check):
        return [work]
    return [replace(work, cases=(case,)) for case in work.cases]


def lean(work: Job | Check) -> Job | Check:
    """What a worker needs of it: not the conversation that led to the program."""
    if isinstance(work, Check) or work.submission is None:
        return work
    return replace(work, submission=replace(work.submission, provenance={}))
