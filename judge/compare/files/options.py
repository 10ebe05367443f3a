"""The options of the checker ``metrics``, and all metrics by their published names."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from judge.compare.files import databases, documents, pages, texts
from judge.compare.files.metric import Metric, MetricInput, Mismatch
from judge.compare.published.spider2v.compare_table import Evaluator
from judge.core.option import check_names
from judge.errors import UsageError

WORKBOOK = "compare_table"
"""The metric that compares workbooks by a list of rules; see :mod:`judge.compare.rules`."""

INFEASIBLE = "infeasible"
FAIL = "FAIL"
"""The right answer to a task that cannot be done."""


def _published_infeasible(metric_input: MetricInput) -> float:
    return float(metric_input.text == FAIL)


def _right_infeasible(metric_input: MetricInput) -> Mismatch | None:
    given = (metric_input.text or "").strip()
    return None if given == FAIL else Mismatch(FAIL, given[:200] or None, "the task cannot be done")


METRICS: dict[str, Metric] = {
    **texts.METRICS,
    **documents.METRICS,
    **databases.METRICS,
    **pages.METRICS,
    INFEASIBLE: Metric(_published_infeasible, _right_infeasible),
}

METRIC_NAMES = (WORKBOOK, *METRICS)

RULES_FROM_TASK = {
    "exact_match",
    "check_include_exclude",
    "check_json",
    "check_yaml_file",
    "check_pdf_pages",
}
"""Metrics that compare the answer with data in the task instead of a gold."""


NAME = "metrics"
_OPTIONS = ("metrics", "conj", "evaluator")
_FIELDS = ("func", "result", "gold", "expected", "options")
_MAX_METRICS = 100  # of a task


@dataclass(frozen=True, slots=True)
class MetricCall:
    """One metric of a task.

    Attributes:
        func: its published name.
        result: name of the file that it checks; empty for the only file, or the typed answer.
        gold: name of its gold; empty if the metric needs no gold.
        expected: the data that the task gives instead of a gold.
        options: options of the metric.
    """

    func: str
    result: str = ""
    gold: str = ""
    expected: Any = None
    options: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class MetricOptions:
    """The metrics of a task, which are applied to one or several files.

    Attributes:
        metrics: the metrics, in order.
        all_of: whether all metrics have to hold; otherwise any one is enough.
        evaluator: the published evaluator whose functions are used.
    """

    metrics: tuple[MetricCall, ...]
    all_of: bool = True
    evaluator: Evaluator = Evaluator.OSWORLD

    @staticmethod
    def of(options: Mapping[str, object]) -> MetricOptions:
        """Reads the options as a suite or a command gives them.

        Raises:
            UsageError: an option is unknown, or its value does not fit.
        """
        check_names(NAME, options, _OPTIONS)
        listed = options.get("metrics")
        if not isinstance(listed, list | tuple) or not 1 <= len(listed) <= _MAX_METRICS:
            raise UsageError(f"option metrics: expected 1 to {_MAX_METRICS} metrics")
        conj = options.get("conj", "and")
        if conj not in {"and", "or"}:
            raise UsageError(f"option conj: {conj!r} is neither 'and' nor 'or'")
        evaluator = options.get("evaluator", Evaluator.OSWORLD)
        if evaluator not in set(Evaluator):
            raise UsageError(
                f"option evaluator: {evaluator!r} is not known",
                hint=f"Evaluators: {', '.join(Evaluator)}.",
            )
        calls = tuple(_call(entry, number) for number, entry in enumerate(listed, start=1))
        return MetricOptions(calls, conj == "and", Evaluator(str(evaluator)))


def _call(given: object, number: int) -> MetricCall:
    where = f"option metrics: metric {number}"
    if not isinstance(given, Mapping):
        raise UsageError(f"{where} is not an object")
    unknown = [name for name in given if name not in _FIELDS]
    if unknown:
        raise UsageError(f"{where} has a field {unknown[0]!r}; fields: {', '.join(_FIELDS)}")
    if given.get("func") not in METRIC_NAMES:
        raise UsageError(
            f"{where}: {given.get('func')!r} is not a metric",
            hint=f"Metrics: {', '.join(METRIC_NAMES)}.",
        )
    for name in ("result", "gold"):
        if not isinstance(given.get(name, ""), str):
            raise UsageError(f"{where}: {name} is not the name of a file")
    options = given.get("options", {})
    if not isinstance(options, Mapping):
        raise UsageError(f"{where}: options is not an object")
    return MetricCall(
        str(given["func"]),
        str(given.get("result", "")),
        str(given.get("gold", "")),
        given.get("expected"),
        dict(options),
    )


def expects_signal(options: Mapping[str, object]) -> bool:
    """Whether the answer is a signal, as given at a desktop, instead of a file."""
    given = options.get("metrics")
    metrics = given if isinstance(given, list | tuple) else ()
    return bool(metrics) and all(
        isinstance(metric, Mapping) and metric.get("func") == INFEASIBLE for metric in metrics
    )
