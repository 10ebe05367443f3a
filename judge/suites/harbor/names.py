"""Names of tasks in Harbor: what a folder of a task may be called. Pure."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Sequence

_PLAIN = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9_-]|\.(?!\.))*")
_OTHER = re.compile(r"[^A-Za-z0-9_-]+")
_SEPARATORS = "-_."


def folder_name(task_id: str) -> str:
    """The name of the folder of a task; another one for each id."""
    if _PLAIN.fullmatch(task_id):
        return task_id
    plain = _OTHER.sub("-", task_id).strip("-_") or "task"
    return f"{plain}-{hashlib.sha256(task_id.encode()).hexdigest()[:8]}"


def find_tasks(names: Sequence[Sequence[str]], task_ids: Iterable[str]) -> list[str | None]:
    """The tasks that the names stand for.

    Adapters put the name of their benchmark before the id (``spreadsheetbench-59196``). One such
    prefix has to fit all names, or the ``1`` of ``13-1`` could be taken for a task.

    Args:
        names: for each trial, names that its task goes by.
        task_ids: ids of the tasks that there are.

    Returns:
        For each trial the id of its task, or None if there is none.
    """
    by_name = {folder_name(task_id): task_id for task_id in task_ids}
    options = [_options(name, by_name) for name in names]
    prefixes = {prefix for option in options for prefix in option}
    fitting = {prefix: sum(prefix in option for option in options) for prefix in prefixes}
    chosen = min(prefixes, key=lambda each: (-fitting[each], len(each), each), default="")
    return [option.get(chosen) for option in options]


def _options(names: Sequence[str], by_name: dict[str, str]) -> dict[str, str]:
    """Prefix -> the id of the task whose name follows it."""
    found: dict[str, str] = {}
    for name in names:
        cuts = [0, *(place + 1 for place, each in enumerate(name) if each in _SEPARATORS)]
        for cut in cuts:
            if (task_id := by_name.get(name[cut:])) is not None:
                found.setdefault(name[:cut], task_id)
    return found
