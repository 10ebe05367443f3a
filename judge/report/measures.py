"""Time, memory, tokens and cost of a run as distributions. Pure."""

from __future__ import annotations

import math
from array import array
from collections.abc import Callable, Iterable
from statistics import median

from judge.report.entry_model import CaseEntry, TaskEntry
from judge.report.model import Distribution

_Number = float | int | None


def _ended(case: CaseEntry, name: str) -> _Number:
    """A number of an episode that ended."""
    episode = case.episode
    number: _Number = None if episode is None or not episode.ended else getattr(episode, name)
    return number


_OF_CASES: tuple[tuple[str, str, Callable[[CaseEntry], _Number]], ...] = (
    ("run_wall_s", "Run, wall time (s)", lambda case: case.wall_s),
    ("run_cpu_s", "Run, processor time (s)", lambda case: case.cpu_s),
    ("peak_memory_bytes", "Run, peak memory (bytes)", lambda case: case.peak_memory_bytes),
    ("recalculation_s", "Recalculation (s)", lambda case: case.recalculation_s),
    ("comparison_s", "Comparison (s)", lambda case: case.comparison_s),
    ("episode_turns", "Turns of an episode", lambda case: _ended(case, "turns")),
    ("episode_steps", "Actions of an episode", lambda case: _ended(case, "steps")),
    ("episode_s", "Episode (s)", lambda case: _ended(case, "seconds")),
)
_OF_TASKS: tuple[tuple[str, str, Callable[[TaskEntry], _Number]], ...] = (
    ("rounds", "Rounds", lambda task: task.rounds),
    ("prompt_tokens", "Tokens of the prompts", lambda task: task.prompt_tokens),
    ("completion_tokens", "Tokens of the replies", lambda task: task.completion_tokens),
    ("cost_usd", "Cost (US dollars)", lambda task: task.cost_usd),
    ("inference_s", "Chat model (s)", lambda task: task.inference_s),
)
_WITHOUT_SUM = frozenset({"peak_memory_bytes"})


class Measured:
    """What was measured, collected submission by submission; eight bytes for each number."""

    def __init__(self) -> None:
        self._of_cases = [array("d") for _ in _OF_CASES]
        self._of_tasks = [array("d") for _ in _OF_TASKS]

    def add(self, task: TaskEntry) -> None:
        """Takes a submission with its cases."""
        for numbers, (_, _, read_task) in zip(self._of_tasks, _OF_TASKS, strict=True):
            if (number := read_task(task)) is not None:
                numbers.append(number)
        for case in task.cases:
            for numbers, (_, _, read_case) in zip(self._of_cases, _OF_CASES, strict=True):
                if (number := read_case(case)) is not None:
                    numbers.append(number)

    def distributions(self) -> tuple[Distribution, ...]:
        """What was measured; what nobody measured is left out."""
        cases = zip(_OF_CASES, self._of_cases, strict=True)
        tasks = zip(_OF_TASKS, self._of_tasks, strict=True)
        found = [_distribution(key, label, "case", each) for (key, label, _), each in cases]
        found += [_distribution(key, label, "task", each) for (key, label, _), each in tasks]
        return tuple(each for each in found if each is not None)


def _distribution(key: str, label: str, per: str, numbers: Iterable[float]) -> Distribution | None:
    known = sorted(numbers)
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
