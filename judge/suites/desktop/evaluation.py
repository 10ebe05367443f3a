"""The field ``evaluator`` of a task: which checker decides it, with what, or why none can."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Any

from judge.compare.files.options import NAME as METRICS
from judge.compare.files.registry import INFEASIBLE, METRIC_NAMES, WORKBOOK
from judge.compare.rules.options import NAME as RULES
from judge.core.submission import AnswerForm
from judge.core.task import CheckerSpec, Gold
from judge.suites.desktop.format import ASKED_FILE, SUFFIXES

FindGold = Callable[[Any], Gold | str | None]
"""Makes a gold of a metric's field ``expected``: the name of one that is not there, or None."""


@dataclass(frozen=True, slots=True)
class Evaluation:
    """How a task is decided.

    Attributes:
        spec: the checker.
        answer: what a submission leaves.
        golds: the golds that are there.
        missing: names of those that are not.
        reason: why a finished file does not decide the task; None if it does.
        context: details of the task to state with it.
    """

    spec: CheckerSpec
    answer: AnswerForm = AnswerForm.WORKBOOK
    golds: tuple[Gold, ...] = ()
    missing: tuple[str, ...] = ()
    reason: str | None = None
    context: Mapping[str, str] = field(default_factory=dict)


def read_evaluation(evaluator: Mapping[str, Any], name: str, find: FindGold) -> Evaluation:
    """Reads the field.

    Args:
        evaluator: the field.
        name: whose evaluator the task was written for.
        find: finds golds.
    """
    function = evaluator.get("func")
    if function == WORKBOOK:
        return _of_rules(evaluator, name, find)
    if function == INFEASIBLE:
        spec = CheckerSpec(METRICS, {"metrics": [{"func": INFEASIBLE}], "evaluator": name})
        return Evaluation(spec, AnswerForm.TEXT, (Gold(value="FAIL"),))
    return _of_metrics(evaluator, name, find)


def _of_rules(evaluator: Mapping[str, Any], name: str, find: FindGold) -> Evaluation:
    given = evaluator.get("options")
    rules = given.get("rules", []) if isinstance(given, dict) else []
    spec = CheckerSpec(RULES, {"rules": rules, "evaluator": name})
    expected = evaluator.get("expected")
    reason = _gold_elsewhere(expected)
    found = find(expected)
    golds = (found,) if isinstance(found, Gold) else ()
    missing = (found,) if isinstance(found, str) else ()
    return Evaluation(spec, golds=golds, missing=missing, reason=reason)


def _gold_elsewhere(expected: Any) -> str | None:
    if isinstance(expected, dict) and expected.get("type") in {"vm_file", "vm_script_output"}:
        return "the gold is a file of the desktop"
    return None


def _listed(evaluator: Mapping[str, Any], name: str, count: int) -> list[Any]:
    """A field for each of the metrics; one that is not a list is for the only metric."""
    given = evaluator.get(name)
    found = given if isinstance(given, list) else [given]
    return [*found, *[None] * count][:count]


def _of_metrics(evaluator: Mapping[str, Any], name: str, find: FindGold) -> Evaluation:
    function = evaluator.get("func")
    functions = function if isinstance(function, list) else [function]
    count = len(functions)
    fields = (_listed(evaluator, each, count) for each in ("result", "expected", "options"))
    metrics: list[dict[str, Any]] = []
    golds: dict[str, Gold] = {}
    missing, reasons = [], []
    for func, result, expected, options in zip(functions, *fields, strict=True):
        reason = _reason(func, result, expected)
        if reason is not None:
            reasons.append(reason)
            continue
        call: dict[str, Any] = {"func": func, "result": _file_of(result)}
        gold = find(expected)
        if isinstance(gold, Gold):
            golds[gold.name] = gold
            call["gold"] = gold.name
        elif gold is not None:
            missing.append(gold)
            call["gold"] = gold
        elif isinstance(expected, dict) and expected.get("type") == "rule":
            call["expected"] = expected.get("rules")
        if isinstance(options, dict) and options:
            call["options"] = options
        metrics.append(call)
    files = {metric["result"] for metric in metrics}
    if not reasons and len(files) > 1:
        reasons.append(f"the evaluator looks at {len(files)} files: {', '.join(sorted(files))}")
    if reasons:
        return Evaluation(CheckerSpec("unjudged"), reason="; ".join(dict.fromkeys(reasons)))
    (file,) = files
    conj = evaluator.get("conj", "and")
    spec = CheckerSpec(METRICS, {"metrics": metrics, "conj": conj, "evaluator": name})
    is_workbook = file.endswith(SUFFIXES[0])
    return Evaluation(
        spec,
        AnswerForm.WORKBOOK if is_workbook else AnswerForm.FILES,
        tuple(golds.values()),
        tuple(missing),
        context={} if is_workbook else {ASKED_FILE: file},
    )


def _reason(func: Any, result: Any, expected: Any) -> str | None:
    """Why a metric cannot be judged here; None if it can."""
    if func not in METRIC_NAMES or func == INFEASIBLE:
        return f"the evaluator {func} needs the desktop, or is not one that is known here"
    kind = result.get("type") if isinstance(result, dict) else None
    if kind not in {"vm_file", "local_file"}:
        return f"the evaluator {func} looks at {kind}, which only the desktop has"
    if not _file_of(result).lower().endswith(SUFFIXES):
        return (
            f"the evaluator {func} looks at {_file_of(result)!r}, which is not a known kind of file"
        )
    return _gold_elsewhere(expected)


def _file_of(result: Mapping[str, Any]) -> str:
    """The name of the file that was left on the desktop."""
    path = result.get("path")
    first = path[0] if isinstance(path, list) and path else path
    return PurePosixPath(str(first)).name
