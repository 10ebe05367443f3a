"""Which submissions are judged first: those that will keep a worker busy for longest.

What is long and begins last is waited for by all the other workers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

from judge.core.task import Task

Item = TypeVar("Item")


class ExpectedCost:
    """About how much there is to do for a case of a task, in bytes of its files.

    Programs, engines and the comparison all read these files, and what they take grows with them;
    the size of a file is taken once, however many submissions there are for its task.
    """

    def __init__(self) -> None:
        self._known: dict[str, dict[int, int]] = {}

    def of(self, task: Task, case: int) -> int:
        """The size of the inputs and golds of a case; those that cannot be found count nothing.

        Args:
            task: the task.
            case: number of the case.
        """
        known = self._known.get(task.id)
        if known is None:
            known = {
                each.number: sum(map(_size, (file.path for file in each.inputs)))
                + sum(_size(gold.path) for gold in each.golds if gold.path is not None)
                for each in task.cases
            }
            self._known[task.id] = known
        return known.get(case, 0)


def longest_first(items: Sequence[Item], cost: Callable[[Item], int]) -> list[Item]:
    """The items, what takes long before what is quick; equals stay in the order given."""
    return sorted(items, key=cost, reverse=True)


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0
