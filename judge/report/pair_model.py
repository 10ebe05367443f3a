"""What a comparison of two series of scores says."""

from __future__ import annotations

from dataclasses import dataclass

from judge.core.statistics import PairedDifference


@dataclass(frozen=True, slots=True)
class RunPair:
    """The second run compared with the first, on the tasks that both have.

    Attributes:
        first: name of the run that it is compared with.
        second: name of the run that is compared with it.
        tasks: tasks that both have.
        hard_difference: hard score of the second minus that of the first, with its interval.
        won: tasks that only the second run solved.
        lost: tasks that the first run alone solved.
        p_hard: McNemar's exact p on these.
        p_hard_holm: the same, adjusted for all pairs.
        soft_difference: soft score of the second minus that of the first, with interval and p.
        p_soft_holm: its p, adjusted for all pairs.
        better: tasks on which the second run has the higher soft score.
        worse: tasks on which it has the lower one.
        smallest_hard: smallest true difference of the hard scores that this many tasks show with a
            power of 80 %, where as many tasks tell the runs apart as here; None where so few do
            that none would be found.
        smallest_soft: the same for the soft score, where the differences scatter as here; None
            where scores cannot differ by as much as it would take.
    """

    first: str
    second: str
    tasks: int
    hard_difference: PairedDifference
    won: tuple[str, ...]
    lost: tuple[str, ...]
    p_hard: float
    p_hard_holm: float
    soft_difference: PairedDifference
    p_soft_holm: float
    better: tuple[str, ...]
    worse: tuple[str, ...]
    smallest_hard: float | None
    smallest_soft: float | None


@dataclass(frozen=True, slots=True)
class PairCounts:
    """Tasks by the phrasings in which they were solved.

    Attributes:
        label: which tasks these are.
        tasks: how many.
        both: solved in both phrasings.
        only_first: solved only in the first.
        only_second: solved only in the second.
        neither: solved in neither.
    """

    label: str
    tasks: int
    both: int
    only_first: int
    only_second: int
    neither: int


@dataclass(frozen=True, slots=True)
class PhrasingComparison:
    """Two phrasings of the same tasks compared.

    Attributes:
        pair: the second phrasing against the first, as two runs are compared; tasks go by the id
            of their first phrasing.
        counts: of all pairs, then of the parts of each division by what tasks are judged by.
        alone: tasks of which only one of the two phrasings has a score.
    """

    pair: RunPair
    counts: tuple[PairCounts, ...]
    alone: int
