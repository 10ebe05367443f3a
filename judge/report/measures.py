"""Time, memory, tokens and cost of a run as distributions. Pure."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from statistics import median

from judge.report.model import CaseEntry, Distribution, TaskEntry

_Number = float | int | None

_OF_CASES: tuple[tuple[str, str, Callable[[CaseEntry], _Number]], ...] = (
    ("run_wall_s", "Run, wall time (s)", lambda case: case.wall_s),
    ("run_cpu_s", "Run, processor time (s)", lambda case: case.cpu_s),
    ("peak_memory_bytes", "Run, peak memory (bytes)", lambda case: case.peak_memory_bytes),
    ("recalculation_s", "Recalculation (s)", lambda case: case.recalculation_s),
    ("comparison_s", "Comparison (s)", lambda case: case.comparison_s),
)
_OF_TASKS: tuple[tuple[str, str, Callable[[TaskEntry], _Number]], ...] = (
    ("rounds", "Rounds", lambda task: task.rounds),
    ("prompt_tokens", "Tokens of the prompts", lambda task: task.prompt_tokens),
    ("completion_tokens", "Tokens of the replies", lambda task: task.completion_tokens),
    ("cost_usd", "Cost (US dollars)", lambda task: task.cost_usd),
    ("inference_s", "Chat model (s)", lambda task: task.inference_s),
)
_WITHOUT_SUM = frozenset({"peak_memory_bytes"})


def distributions(tasks: Sequence[TaskEntry]) -> tuple[Distribution, ...]:
    """What was measured, by case and by submission; what nobody measured is left out."""
    cases = [case for task in tasks for case in task.cases]
    found = [
        _distribution(key, label, "case", [read(case) for case in cases])
        for key, label, read in _OF_CASES
    ]
    found += [
        _distribution(key, label, "task", [read(task) for task in tasks])
        for key, label, read in _OF_TASKS
    ]
    return tuple(each for each in found if each is not None)


def _distribution(
    key: str, label: str, per: str, numbers: Sequence[_Number]
) -> Distribution | None:
    known = sorted(float(number) for number in numbers if number is not None)
    if not known:
        return None
    total = math.fsum(known)
    return Distribution(
        key=key,
        label=label,
        per=per,
        count=len(known),
        total=None if key in _WITHOUT_SUM else total,
        mean=total / len(known),
        median=median(known),
        # The smallest number that at least 95 % do not exceed.
        p95=known[math.ceil(0.95 * len(known)) - 1],
        maximum=known[-1],
    )
