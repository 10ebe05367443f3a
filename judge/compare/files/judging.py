"""Several metrics of one task: the published score, and the judge's own verdict."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from judge.compare.files.asked import Asked, UnreadableAnswerError
from judge.compare.files.options import MetricCall
from judge.compare.files.registry import METRICS
from judge.compare.rules.raised import PublishedError, Side
from judge.core.finding import DifferencePlace, Finding, FoundDifference, PlaceKind, finding_of


@dataclass(frozen=True, slots=True)
class Judged:
    """What one metric says.

    Attributes:
        score: the published score; None if the function raises.
        error: what it raises.
        wrong: what does not hold under the judge's own reading.
        undecided: whether that is only what could not be computed.
    """

    score: float | None = None
    error: PublishedError | None = None
    wrong: tuple[FoundDifference, ...] = ()
    undecided: bool = False


def judge_metric(call: MetricCall, number: int, asked: Asked, *, published_only: bool) -> Judged:
    """Judges one metric.

    Args:
        call: the metric.
        number: its number among those of the task, from 1.
        asked: the files.
        published_only: leave out the judge's own reading.

    Raises:
        PublishedError: under the judge's own reading, the gold or the task is at fault.
        UnreadableAnswerError: the answer is not a file of the kind that is read.
        RecalcError: what reads the file in the sandbox cannot be started.
    """
    metric = METRICS[call.func]
    score, error = None, None
    try:
        score = float(metric.published(asked))
    except PublishedError as raised:
        error = raised
    except UnreadableAnswerError:
        score = 0.0
        if published_only:
            raise
    if published_only:
        return Judged(score, error)
    found = metric.standard(asked)
    wrong: tuple[FoundDifference, ...] = ()
    if found is not None:
        place = DifferencePlace(PlaceKind.RULE, f"{number} ({call.func})")
        wrong = (FoundDifference(call.func, place, found.expected, found.actual, found.detail),)
    return Judged(score, error, wrong)


def published_score(
    judged: Sequence[Callable[[], Judged]], *, all_of: bool
) -> tuple[float | None, PublishedError | None]:
    """The published score of a task; what is raised ends it.

    All of: the first score of 0 ends it, and otherwise it is the mean. Any of: the first score of 1
    ends it, and otherwise it is the largest.
    """
    scores = []
    for make in judged:
        said = make()
        if said.error is not None:
            return None, said.error
        score = said.score or 0.0
        if all_of and score == 0.0:
            return 0.0, None
        if not all_of and score == 1.0:
            return 1.0, None
        scores.append(score)
    if not scores:
        return None, PublishedError("ZeroDivisionError", "no metric", Side.RULES)
    return (sum(scores) / len(scores) if all_of else max(scores)), None


def finding_of_metrics(
    judged: Sequence[Judged], *, all_of: bool, published: tuple[float | None, PublishedError | None]
) -> Finding:
    """The judge's own finding, with the published score on record."""
    wrong = [each for said in judged for each in said.wrong]
    right = not wrong if all_of else any(not said.wrong for said in judged)
    found = finding_of([] if right else wrong, units=len(judged))
    open_ones = [said.undecided for said in judged if said.wrong]
    undecided = not right and (all(open_ones) if all_of else any(open_ones))
    return with_score(replace(found, undecided=undecided), published)


def finding_of_score(published: tuple[float | None, PublishedError | None], units: int) -> Finding:
    """The finding of the published score: only 1 is right."""
    score, error = published
    differences = []
    if score != 1.0:
        said = "a score of 1"
        actual: object = str(error) if error is not None else score
        kind = "published_error" if error is not None else "published_score"
        differences.append(FoundDifference(kind, DifferencePlace(PlaceKind.RULE), said, actual))
    return with_score(finding_of(differences, units=units), published)


def with_score(found: Finding, published: tuple[float | None, PublishedError | None]) -> Finding:
    """A finding with the published score on record."""
    score, error = published
    record = {**found.record, "official_equal": score == 1.0, "official_score": score}
    if error is not None:
        record["published_error"] = str(error)
    return replace(found, record=record)  # type: ignore[arg-type]
