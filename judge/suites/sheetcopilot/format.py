"""Suites in the published layout of SheetCopilot."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from judge.core.score_table import ScoreColumn, ScoreTable
from judge.core.task import Task, TaskQuestion
from judge.suites.formats import (
    DATA_FOLDER,
    Contents,
    FileRole,
    SolutionPaths,
    refuse_writing,
)
from judge.suites.sheetcopilot import CATEGORIES, DEFINITION, INPUTS, NAME, division_of

if TYPE_CHECKING:
    from judge.core.records.reports import PublishedFigures
    from judge.suites.suite import Suite

CATEGORY_TABLE = ScoreTable(
    "Pass@1 by category",
    (ScoreColumn("Total"), *(ScoreColumn(each, division_of(each), "yes") for each in CATEGORIES)),
)

_OUTPUT = re.compile(
    r"(?P<id>[0-9]{1,6}_[A-Za-z][A-Za-z0-9]*)(?:_(?P<repeat>[0-9]{1,4})|_output)?\.xlsx"
)


class SheetCopilot:
    """A ``dataset.xlsx`` next to the folders of inputs and golds, as the repository has it."""

    names: tuple[str, ...] = (NAME,)
    definition = DEFINITION
    file_suffixes = (".xlsx",)
    output_pattern = (
        "{order}_{sheet}_{repeat}.xlsx or {no}_{sheet}_{repeat}.xlsx in a folder "
        "{order}_{sheet} or {no}_{sheet}, or {order}_{sheet}_output.xlsx"
    )

    def recognises(self, root: Path) -> bool:
        """Whether there is a ``dataset.xlsx`` and a folder of inputs."""
        return (root / DEFINITION).is_file() and (root / INPUTS).is_dir()

    def load(self, root: Path) -> Contents:
        """Reads a suite; tasks whose workbooks are not there are left out, with the reason."""
        from judge.suites.sheetcopilot.reading import read_suite  # noqa: PLC0415  only for its own

        return read_suite(root)

    def alias_of(self, record: Mapping[str, object]) -> None:  # noqa: ARG002
        """None: every record has an id."""
        return

    def output_of(self, file_name: str) -> tuple[str, int] | tuple[str, int, int] | None:
        """Reads ``{task}_{repeat}.xlsx``, where repeats are samples, and ``{task}_output.xlsx``."""
        match = _OUTPUT.fullmatch(file_name)
        if match is None:
            return None
        return (
            (match["id"], 1)
            if match["repeat"] is None
            else (match["id"], 1, max(int(match["repeat"]) - 1, 0))
        )

    def role_of(self, file_name: str, task_id: str) -> FileRole | None:
        """The workbook of the sheet is the input; a file named after the task is the output."""
        if file_name == f"{task_id.partition('_')[2]}.xlsx":
            return FileRole.INPUT
        found = self.output_of(file_name)
        return FileRole.OUTPUT if found is not None and found[0] == task_id else None

    def default_paths(self, question: TaskQuestion, folder: str = DATA_FOLDER) -> SolutionPaths:
        """The workbook under its own name, and ``{order}_{sheet}_output.xlsx``."""
        files = question.inputs[0].files if question.inputs else ()
        name = files[0].path.name if files else "input.xlsx"
        return SolutionPaths(f"{folder}/{name}", f"{folder}/{question.id}_output.xlsx")

    def new_case_names(self, task_id: str, number: int) -> None:  # noqa: ARG002
        """None: each task has one case, whose golds are in a folder of their own."""
        return

    def definition_of(self, root: Path, tasks: Sequence[Task]) -> str:  # noqa: ARG002
        """Refused: suites of this format are only read."""
        refuse_writing(root, NAME)

    def published_figures(
        self, suite: Suite, folder: Path, accepted: Mapping[tuple[str, int], bool]
    ) -> list[PublishedFigures]:
        """Exec@1, Pass@1, A50 and A90 as published, out of the logs of a results folder."""
        from judge.suites.sheetcopilot.logs import published_figures  # noqa: PLC0415

        return published_figures(suite, folder, accepted)


FORMAT = SheetCopilot()
