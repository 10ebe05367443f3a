"""Scores by instruction type."""

from __future__ import annotations

from collections import defaultdict

from inspect_ai.scorer import Metric, MetricProtocol, SampleScore, Value, mean, metric, stderr

INSTRUCTION_TYPE = "instruction_type"
"""What samples call the sort of their task."""

QUESTION = "question"
"""What samples call the question that they ask: the phrasings of a task share it."""


@metric
def by_type() -> Metric:
    """Mean and clustered standard error of each instruction type, under ``T`` and ``T stderr``."""
    average, error = mean(), stderr(cluster=QUESTION)

    def compute(scores: list[SampleScore]) -> Value:
        groups: dict[str, list[SampleScore]] = defaultdict(list)
        for score in scores:
            kind = (score.sample_metadata or {}).get(INSTRUCTION_TYPE)
            groups[str(kind or "unknown")].append(score)
        found: dict[str, str | int | float | bool | None] = {}
        for name, members in sorted(groups.items()):
            found[name] = _number(average, members)
            found[f"{name} stderr"] = _number(error, members)
        return found

    return compute


def _number(metric_of: Metric, scores: list[SampleScore]) -> float:
    assert isinstance(metric_of, MetricProtocol)
    value = metric_of(scores)
    assert isinstance(value, int | float)
    return float(value)
