"""A suite format in one file: a folder for each task, with its workbooks and its question."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path, PurePosixPath

from judge.core.task import CheckerSpec, Task, TaskQuestion, TestCase
from judge.errors import SuiteError
from judge.files.documents import dump_json, parse_json, read_regular
from judge.suites.formats import DATA_FOLDER, Contents, FileRole, SuiteFormat
from judge.suites.submission_lines import SolutionPaths


class Folders(SuiteFormat):
    """``order.json`` is an object: name of a folder -> question."""

    names = ("folders",)
    definition = "order.json"
    file_suffixes = (".xlsx",)
    output_pattern = "{id}.out.xlsx"

    def recognises(self, root: Path) -> bool:
        """A folder with the definition of a suite."""
        return (root / self.definition).is_file()

    def load(self, root: Path) -> Contents:
        """Reads the definition; the workbooks have fixed names."""
        questions = parse_json(read_regular(root / self.definition, SuiteError) or b"")
        if not isinstance(questions, dict):
            raise SuiteError(f"{root / self.definition}: must be an object")
        tasks, faults = [], []
        for task_id, question in questions.items():
            paths = [root / task_id / name for name in ("input.xlsx", "gold.xlsx")]
            faults += [f"{each}: is not there" for each in paths if not each.is_file()]
            case = TestCase.of_workbooks(1, *paths)
            checker = CheckerSpec("sheet_order")
            groups = {"letter": task_id[0]}
            tasks.append(
                Task(task_id, question, "Sheet order", (case,), checker=checker, groups=groups)
            )
        return Contents(self.names[0], tuple(tasks), faults=tuple(faults))

    def output_of(self, file_name: str) -> tuple[str, int] | None:
        """``{id}.out.xlsx`` answers the only case of its task."""
        task_id, mark, _ = file_name.partition(".out.xlsx")
        return (task_id, 1) if mark else None

    def role_of(self, file_name: str, task_id: str) -> FileRole | None:
        """Yields ``{id}.in.xlsx`` and ``{id}.out.xlsx``."""
        name = PurePosixPath(file_name).name
        return {f"{task_id}.in.xlsx": FileRole.INPUT, f"{task_id}.out.xlsx": FileRole.OUTPUT}.get(
            name
        )

    def default_paths(self, question: TaskQuestion, folder: str = DATA_FOLDER) -> SolutionPaths:
        """Looks for files with the same names in one folder."""
        return SolutionPaths(f"{folder}/{question.id}.in.xlsx", f"{folder}/{question.id}.out.xlsx")

    def definition_of(self, root: Path, tasks: Sequence[Task]) -> str:
        """Returns the questions of the tasks."""
        del root
        return dump_json({task.id: task.instruction for task in tasks})


FORMAT = Folders()
