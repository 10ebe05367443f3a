"""WindowsAgentArena-V2's tasks for LibreOffice Calc: OSWorld's format, but on Windows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from judge.compare.checklists.items import NAME as CHECKLIST
from judge.compare.rules.options import NAME as RULES
from judge.core.task import LEFT_OUT_OPTION, CheckerSpec, Task
from judge.suites.desktop import DesktopFormat
from judge.suites.formats import Contents

NAME = "waa-v2"
_EVALUATOR = "spider2v"
"""The evaluator; its ``compare_table`` is that of Spider2-V, an older version of OSWorld's."""


_EXAMPLES = "examples"


class WindowsAgentArena(DesktopFormat):
    """The format with ``examples/libreoffice_calc``; names of tasks end with ``-WOS``."""

    def __init__(self) -> None:
        super().__init__(_EVALUATOR, "libreoffice_calc", examples=_EXAMPLES)
        self.names = (NAME,)

    def recognises(self, root: Path) -> bool:
        """Whether a folder holds a task for Windows."""
        return any(True for _ in (root / self.definition).glob("*-WOS.json"))

    def load(self, root: Path) -> Contents:
        """Reads a suite; a task whose workbooks are missing is left out."""
        contents = super().load(root)
        tasks = tuple(map(_as_checklist, contents.tasks))
        return replace(contents, format=NAME, tasks=tasks)


def _as_checklist(task: Task) -> Task:
    """The task with one checklist item for each rule; unchanged if no rules decide it."""
    if task.checker.name != RULES:
        return task
    options: Mapping[str, object] = task.checker.options
    rules = options.get("rules")
    items = [
        {"id": str(number), "kind": "published", "suite": NAME, "check": rule}
        for number, rule in enumerate(rules if isinstance(rules, list) else [])
    ]
    left_out = {name: value for name, value in options.items() if name == LEFT_OUT_OPTION}
    return replace(
        task, checker=CheckerSpec(CHECKLIST, {"evaluator": NAME, "items": items, **left_out})
    )


FORMAT = WindowsAgentArena()
