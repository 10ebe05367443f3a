"""Scores of a report, as data: of all tasks, of their parts, and tables of them.

Shares are fractions from 0 to 1; ``None`` means that a number is not known or not defined.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from judge.core.statistics import Estimate


@dataclass(frozen=True, slots=True)
class Scores:
    """The scores of a group of tasks, under both denominators.

    Attributes:
        soft_restriction: mean soft score over the tasks that have a scored case.
        hard_restriction: the same for the hard score.
        tasks: tasks with at least one scored case.
        cases: scored cases.
        all_tasks: tasks, those without a scored case included.
        all_cases: cases, those that are not scored (JE, BT, SK, not run) included.
        soft_of_all: soft score where every unscored case counts as not accepted.
        hard_of_all: hard score where every unscored case counts as not accepted.
        verdicts: verdict code -> cases, in the order of :class:`judge.core.verdict.Verdict`.
    """

    soft_restriction: Estimate
    hard_restriction: Estimate
    tasks: int
    cases: int
    all_tasks: int
    all_cases: int
    soft_of_all: float | None
    hard_of_all: float | None
    verdicts: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Group:
    """A part of the tasks with its scores.

    Attributes:
        key: the part's name in data (``rows_up_to_50``).
        label: the part's name for people (``rows ≤ 50``).
        share: its share of the run's tasks.
        scores: its scores.
        paper_share: share of the first of each pair over the whole benchmark in the paper's
            Table 3; None for everything else.
    """

    key: str
    label: str
    share: float | None
    scores: Scores
    paper_share: float | None = None


@dataclass(frozen=True, slots=True)
class Breakdown:
    """One way of parting the tasks.

    Attributes:
        key: ``instruction_type``, ``rows``, ``columns``, ``tables``, ``layout``, ``category``,
            ``answer_cells``, ``workbook_bytes`` or ``rounds``.
        label: its name for people.
        rule: how a task comes into its part, in a sentence or two.
        groups: the parts; a task is in exactly one of them.
        unknown_tasks: tasks of which it is not known (a workbook that cannot be read, …).
        from_paper: whether it is one of the four pairs of the paper's Table 3.
    """

    key: str
    label: str
    rule: str
    groups: tuple[Group, ...]
    unknown_tasks: int = 0
    from_paper: bool = False


@dataclass(frozen=True, slots=True)
class TableColumn:
    """A column of a table of scores.

    Attributes:
        heading: what it has in common with its neighbours; empty if nothing.
        label: its own heading.
        suite_tasks: tasks of the whole suite that are in it: its denominator in the paper.
        score_of_suite: hard score over those, where tasks without a solution count as failed.
        scores: its scores over the tasks of the run.
    """

    heading: str
    label: str
    suite_tasks: int
    score_of_suite: float | None
    scores: Scores


@dataclass(frozen=True, slots=True)
class TableOfScores:
    """A table of scores that the suite asks for, such as that of its paper.

    Attributes:
        title: its caption.
        columns: its columns; a task may be in several.
    """

    title: str
    columns: tuple[TableColumn, ...]
