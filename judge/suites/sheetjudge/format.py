"""The judge's own format: a ``suite.json`` next to any files."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from judge.core.submission import AnswerForm
from judge.core.task import Task, TaskQuestion
from judge.files.documents import dump_json
from judge.suites.formats import DATA_FOLDER, Contents, FileRole, SolutionPaths, SuiteFormat
from judge.suites.sheetjudge import DEFINITION, NAME

_SUFFIXES = (".xlsx", ".xlsm", ".csv", ".tsv", ".txt", ".json")
_ENDING = "|".join(re.escape(suffix) for suffix in _SUFFIXES)
_OUTPUT = re.compile(rf"^(?P<number>\d+)_(?P<id>.+)_output(?:{_ENDING})$", re.IGNORECASE)
_SUFFIX_OF_ANSWER = {
    AnswerForm.WORKBOOK: ".xlsx",
    AnswerForm.TABLE: ".csv",
    AnswerForm.FILES: ".xlsx",
    AnswerForm.TEXT: ".txt",
}


class OwnFormat(SuiteFormat):
    """A ``suite.json`` that lists tasks, cases and files."""

    names: tuple[str, ...] = (NAME,)
    definition = DEFINITION
    file_suffixes = _SUFFIXES
    output_pattern = "{n}_{id}_output.xlsx (or .xlsm, .csv, .tsv, .txt, .json)"

    def recognises(self, root: Path) -> bool:
        """Whether there is a ``suite.json``."""
        return (root / DEFINITION).is_file()

    def load(self, root: Path) -> Contents:
        """Reads a suite."""
        from judge.suites.sheetjudge.reading import read_suite  # noqa: PLC0415  only for its suites

        return read_suite(root)

    def output_of(self, file_name: str) -> tuple[str, int] | None:
        """Reads ``{n}_{id}_output.xlsx`` and its like."""
        match = _OUTPUT.match(file_name)
        return None if match is None else (match["id"], int(match["number"]))

    def role_of(self, file_name: str, task_id: str) -> FileRole | None:
        """``{id}_input`` and ``{id}_output`` with any suffix, with or without a case number."""
        match = re.fullmatch(rf"(?:\d+_)?{re.escape(task_id)}_(input|output)\.\w+", file_name)
        return None if match is None else FileRole(match[1])

    def default_paths(self, question: TaskQuestion, folder: str = DATA_FOLDER) -> SolutionPaths:
        """``input/1_{id}_input`` and ``output/1_{id}_output``, with the suffixes of their files."""
        files = question.inputs[0].files if question.inputs else ()
        suffix = files[0].path.suffix if files else ".xlsx"
        return SolutionPaths(
            f"{folder}/input/1_{question.id}_input{suffix}",
            f"{folder}/output/1_{question.id}_output{_SUFFIX_OF_ANSWER[question.answer]}",
        )

    def definition_of(self, root: Path, tasks: Sequence[Task]) -> str:
        """The ``suite.json`` of the tasks."""
        from judge.suites.sheetjudge.writing import suite_document  # noqa: PLC0415  as above

        return f"{dump_json(suite_document(tasks, root), indent=2)}\n"


FORMAT = OwnFormat()
