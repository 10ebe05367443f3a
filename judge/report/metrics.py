"""A report as flat numbers under stable names, for trackers of experiments. Pure.

The names are documented in docs/logging.md, and stay. A name uses letters, digits, ``_ . -`` and
``/``, which MLflow and Weights & Biases take; none of them is the beginning of another one up to a
slash, since a tracker that keeps each metric in a file cannot hold both.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Mapping

from judge.core.statistics import Estimate
from judge.report.model import ReportData
from judge.report.score_model import Scores

_NOT_IN_NAMES = re.compile(r"[^\w.-]+")
_USAGE = (
    *("submissions", "calls", "retries", "truncated", "not_alone"),
    *("prompt_tokens", "completion_tokens", "cost_usd", "inference_s"),
)


def metrics_of(data: ReportData) -> dict[str, float]:
    """The numbers of a report; one that is not known has no entry.

    Args:
        data: the report.

    Returns:
        Name -> number. Scores and shares are fractions from 0 to 1.
    """
    metrics: dict[str, float] = {}
    for name, value in _metrics(data):
        if value is None:
            continue
        # Groups whose names differ only in what no tracker takes are numbered.
        numbered = (name if number == 1 else f"{name}_{number}" for number in itertools.count(1))
        metrics[next(each for each in numbered if each not in metrics)] = float(value)
    return metrics


def _metrics(data: ReportData) -> Iterator[tuple[str, float | None]]:
    overall = data.overall
    yield from _bounded("soft", overall.soft_restriction)
    yield from _bounded("hard", overall.hard_restriction)
    yield "soft_of_all", overall.soft_of_all
    yield "hard_of_all", overall.hard_of_all
    for name in ("tasks", "cases", "all_tasks", "all_cases"):
        yield name, getattr(overall, name)
    yield "tasks_without_submission", data.tasks_without_submission
    for breakdown in (data.by_instruction_type, *data.breakdowns):
        for group in breakdown.groups:
            yield from _group(f"by/{_named(breakdown.key)}/{_named(group.key)}", group.scores)
    yield from _counts("verdict", overall.verdicts)
    yield from _counts(
        "difference", {difference.kind: difference.cases for difference in data.differences}
    )
    for measure in data.measures:
        for statistic in ("total", "mean", "median", "p95", "maximum"):
            yield f"measure/{_named(measure.key)}/{statistic}", getattr(measure, statistic)
    if data.usage is not None:
        usage: Mapping[str, object] = {**data.usage}
        for name in _USAGE:
            value = usage.get(name)
            yield f"usage/{name}", value if isinstance(value, int | float) else None
    if data.repeated is not None:
        yield from _samples(data)


def _bounded(name: str, estimate: Estimate) -> Iterator[tuple[str, float | None]]:
    yield name, estimate.value
    yield f"{name}_low", estimate.low
    yield f"{name}_high", estimate.high


def _group(name: str, scores: Scores) -> Iterator[tuple[str, float | None]]:
    yield f"{name}/soft", scores.soft_restriction.value
    yield f"{name}/hard", scores.hard_restriction.value
    yield f"{name}/tasks", scores.tasks


def _counts(name: str, counts: Mapping[str, int]) -> Iterator[tuple[str, float | None]]:
    for key, count in counts.items():
        yield f"{name}/{_named(key)}", count


def _samples(data: ReportData) -> Iterator[tuple[str, float | None]]:
    repeated = data.repeated
    assert repeated is not None
    yield "samples/number", repeated.samples
    yield "samples/soft_sd", repeated.soft_sd
    yield "samples/hard_sd", repeated.hard_sd
    yield "samples/best_of", repeated.best_of
    for k, share in repeated.pass_at.items():
        yield f"samples/pass_at/{k}", share
    for k, share in repeated.pass_hat.items():
        yield f"samples/pass_hat/{k}", share


def _named(key: str) -> str:
    """A part of a name: what trackers do not take becomes ``_``."""
    return _NOT_IN_NAMES.sub("_", key) or "_"
