"""Suites in the published layouts of Spider2-V and OSWorld, as far as they are about workbooks."""

from __future__ import annotations

import re
from pathlib import Path, PurePath

from judge.core.score import ScoreColumn, ScoreTable
from judge.core.task import TaskQuestion
from judge.suites.formats import (
    DATA_FOLDER,
    Contents,
    SolutionPaths,
    SuiteFormat,
)

EXAMPLES = "evaluation_examples/examples"
SUFFIXES = (
    ".xlsx",
    ".csv",
    ".pdf",
    ".json",
    ".yaml",
    ".yml",
    ".txt",
    ".ipynb",
    ".sqlite",
    ".db",
)
"""What a task may ask for; the first is what most do."""

_OUTPUT = re.compile(
    rf"(?:(?P<number>\d{{1,6}})_)?(?P<id>[0-9A-Za-z-]{{1,80}})_output"
    rf"(?:{'|'.join(map(re.escape, SUFFIXES))})"
)
ASKED_FILE = "file"
"""Name of the detail of a task that says which file it asks for, if that is not a workbook."""

_TITLE = "Success by difficulty, feasibility and instruction"
_COLUMNS = (
    ScoreColumn("Overall"),
    ScoreColumn("Easy", "actions", "easy", "Actions"),
    ScoreColumn("Medium", "actions", "medium", "Actions"),
    ScoreColumn("Hard", "actions", "hard", "Actions"),
    ScoreColumn("Infeasible", "feasible", "no"),
    ScoreColumn("Feasible", "feasible", "yes"),
    ScoreColumn("Abstract", "instruction", "abstract", "Instruction"),
    ScoreColumn("Verbose", "instruction", "verbose", "Instruction"),
)
"""As in Table 4 of the Spider2-V paper and Table 15 of the OSWorld paper."""


class DesktopFormat(SuiteFormat):
    """A folder with ``evaluation_examples``, as the repository has it.

    Args:
        name: the name of the format, and of the evaluator that its rules were written for.
        folder: the folder of the tasks, below ``evaluation_examples/examples``.
        before: another such folder; where it exists as well, the suite is of the other format.
    """

    file_suffixes = SUFFIXES
    output_pattern = "{id}_output.xlsx"

    def __init__(self, name: str, folder: str, before: str | None = None) -> None:
        self.name = name
        self.folder = folder
        self.names = (name,)
        self.definition = f"{EXAMPLES}/{folder}"
        self._before = before

    def recognises(self, root: Path) -> bool:
        """Whether the folder of the tasks is there."""
        other = self._before is not None and (root / EXAMPLES / self._before).is_dir()
        return (root / self.definition).is_dir() and not other

    def load(self, root: Path) -> Contents:
        """Reads a suite; tasks that cannot be judged without a desktop say why."""
        from judge.suites.desktop.reading import read_suite  # noqa: PLC0415  only for its suites

        tasks, faults = read_suite(root, self)
        present = {group for task in tasks for group in task.groups.items()}
        columns = [
            column
            for column in _COLUMNS
            if not column.division or (column.division, column.group) in present
        ]
        tables = (ScoreTable(_TITLE, tuple(columns)),) if len(columns) > 1 else ()
        return Contents(self.name, tasks, self._notes(root), faults, tables)

    def _notes(self, root: Path) -> tuple[str, ...]:
        """That there are tasks of the other format as well, and how those are judged."""
        other = "" if self._before is not None else SPIDER2V.definition
        if not other or not (root / other).is_dir():
            return ()
        from judge.suites.desktop.reading import task_files  # noqa: PLC0415  only for its suites

        count = sum(1 for _ in task_files(root / other))
        if not count:
            return ()  # workbooks that OSWorld's tasks name, without tasks of Spider2-V
        said = f"its {count:,} tasks of the format {SPIDER2V.name} are not part of this suite"
        return (f"{other}: {said}; name that folder to judge them: {root / other}",)

    def output_of(self, file_name: str) -> tuple[str, int] | None:
        """Reads ``{id}_output.xlsx`` or the like, perhaps with the number of the case, 1."""
        match = _OUTPUT.fullmatch(file_name)
        return None if match is None else (match["id"], int(match["number"] or 1))

    def default_paths(self, question: TaskQuestion, folder: str = DATA_FOLDER) -> SolutionPaths:
        """The workbook under its own name, and the output next to it."""
        files = question.inputs[0].files if question.inputs else ()
        name = PurePath(files[0].path.name if files else "input.xlsx")
        asked = PurePath(question.details.get(ASKED_FILE, "output.xlsx")).suffix
        return SolutionPaths(f"{folder}/{name}", f"{folder}/{name.stem}_output{asked}")


SPIDER2V = DesktopFormat("spider2v", "excel", before="libreoffice_calc")
OSWORLD = DesktopFormat("osworld", "libreoffice_calc")
"""Where both repositories are in one folder, OSWorld's tasks find Spider2-V's workbooks."""
