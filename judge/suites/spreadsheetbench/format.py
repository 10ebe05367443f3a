"""The published formats of SpreadsheetBench, v0.1 and Verified."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from judge.core.task import Task, TaskQuestion
from judge.files.documents import dump_json
from judge.suites.formats import DATA_FOLDER, Contents, FileRole, SolutionPaths, SuiteFormat
from judge.suites.spreadsheetbench.reading import DEFINITION, read_suite

V0_1 = "spreadsheetbench-v0.1"
"""Name of the format with ``{n}_{id}_input.xlsx`` and ``{n}_{id}_answer.xlsx``."""

VERIFIED = "spreadsheetbench-verified"
"""Name of the format with ``1_{id}_init.xlsx`` and ``1_{id}_golden.xlsx``."""

_OUTPUT = re.compile(r"^(?P<number>\d+)_(?P<id>.+)_output\.xls[xm]$", re.IGNORECASE)
_ROLE = {"input": FileRole.INPUT, "init": FileRole.INPUT, "output": FileRole.OUTPUT}


class SpreadsheetBench(SuiteFormat):
    """A ``dataset.json``, and one folder of numbered workbooks for each task."""

    names = (V0_1, VERIFIED)
    definition = DEFINITION
    file_suffixes = (".xlsx", ".xlsm")
    output_pattern = "{n}_{id}_output.xlsx, such as 1_59196_output.xlsx"

    def recognises(self, root: Path) -> bool:
        """Whether there is a ``dataset.json``."""
        return (root / DEFINITION).is_file()

    def load(self, root: Path) -> Contents:
        """Reads a suite, and finds out which of the two namings most of its tasks follow."""
        reading = read_suite(root)
        verified = 2 * reading.verified > len(reading.tasks)
        return Contents(
            format=VERIFIED if verified else V0_1,
            tasks=tuple(reading.tasks),
            notes=tuple(reading.notes),
            faults=tuple(reading.faults),
        )

    def output_of(self, file_name: str) -> tuple[str, int] | None:
        """Reads ``{n}_{id}_output.xlsx``; blanks do not count."""
        match = _OUTPUT.match(re.sub(r"\s+", "", file_name))
        return None if match is None else (match["id"], int(match["number"]))

    def role_of(self, file_name: str, task_id: str) -> FileRole | None:
        """``{n}_{id}_input.xlsx`` and ``{n}_{id}_init.xlsx`` are inputs."""
        name = re.compile(rf"\d+_{re.escape(task_id)}_(input|init|output)\.xls[xm]")
        match = name.fullmatch(file_name)
        return None if match is None else _ROLE[match[1]]

    def default_paths(self, question: TaskQuestion, folder: str = DATA_FOLDER) -> SolutionPaths:
        """``input/1_{id}_input.xlsx`` and ``output/1_{id}_output.xlsx``."""
        return SolutionPaths(
            f"{folder}/input/1_{question.id}_input.xlsx",
            f"{folder}/output/1_{question.id}_output.xlsx",
        )

    def new_case_names(self, task_id: str, number: int) -> tuple[str, str]:
        """``{n}_{id}_input.xlsx`` and ``{n}_{id}_answer.xlsx``."""
        return f"{number}_{task_id}_input.xlsx", f"{number}_{task_id}_answer.xlsx"

    def definition_of(self, root: Path, tasks: Sequence[Task]) -> str:
        """The records of ``dataset.json``, with what has changed in them."""
        from judge.suites.spreadsheetbench.writing import (  # noqa: PLC0415  only to write suites
            dataset_records,
        )

        return f"{dump_json(dataset_records(root, tasks), indent=2)}\n"


FORMAT = SpreadsheetBench()
