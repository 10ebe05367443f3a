"""What a report says about suspect golds, as data; a part of :mod:`judge.report.model`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from judge.report.score_model import Scores


@dataclass(frozen=True, slots=True)
class CaseSuspect:
    """A reason to doubt the gold of a case, at its verdict.

    Attributes:
        sign: the sign that found it.
        certainty: ``sure``, ``likely`` or ``possible``.
        standing: ``open``, ``fault``, ``fine``, ``unclear``, ``disputed`` or ``corrected``.
        whole_task: whether it is about the task as a whole.
        summary: what is where.
        why: why it matters to the answer.
        decisions: who decided what, one line each.
    """

    sign: str
    certainty: str
    standing: str
    whole_task: bool
    summary: str
    why: str
    decisions: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ScoresWithoutSuspects:
    """The scores with suspected cases set aside.

    Attributes:
        certainty: suspects that are this sure or surer are set aside.
        label: what that is called.
        set_aside_cases: scored cases that are set aside.
        set_aside_tasks: tasks that have such a case.
        scores: the scores of the others.
    """

    certainty: str
    label: str
    set_aside_cases: int
    set_aside_tasks: int
    scores: Scores


@dataclass(frozen=True, slots=True)
class SuspectsSummary:
    """The suspects about the tasks of a run.

    Attributes:
        without: the scores without them, from the fewest that are set aside to all.
        standing: what is known about them -> how many.
    """

    without: tuple[ScoresWithoutSuspects, ...]
    standing: Mapping[str, int]
