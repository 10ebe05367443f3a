"""A suspect as the page shows it: the workbooks of a case, with the cells of the evidence."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from judge.core.records.cases import CaseComparison
from judge.core.task import Task, TestCase
from judge.errors import UsageError
from judge.report.grid import MARKS, GridRules, build_grid
from judge.report.grid_window import GridBounds
from judge.suspects.model import Evidence, EvidenceFile, Suspect
from judge.workbook.address import Window, parse_window
from judge.workbook.cell import CellRef

BOUNDS = GridBounds(cells=12_000, columns=60, blocks=6, text_chars=2_000)
MAX_PLACES = 500
"""Cells of one suspect that are marked; a piece of evidence may be a whole range."""

_COMPARED_AGAIN: CaseComparison = {"differing_cells": 1}
"""A record that says that cells differ and lists none, so that the files are compared."""

_PANES = {EvidenceFile.INPUT: "input", EvidenceFile.GOLD: "gold", EvidenceFile.SUBMISSION: "output"}


@dataclass(frozen=True, slots=True)
class ShownCase:
    """What is shown next to a suspect.

    Attributes:
        number: number of the case.
        output: an output of it; None for none.
    """

    number: int
    output: Path | None


def show_case(task: Task, suspect: Suspect, shown: ShownCase) -> dict[str, Any]:
    """The workbooks of a case around its answer and the evidence.

    Args:
        task: the task.
        suspect: whose evidence is marked.
        shown: what to show.

    Returns:
        A JSON object: ``case``, ``grid`` (see :func:`judge.report.grid.build_grid`), ``marks``, and
        ``evidence``, each piece with its ``file``, ``sheet``, ``cell``, ``case``, ``expected``,
        ``found``, ``note``, ``pane`` (if it is in a workbook that is shown) and ``places``, the
        [row, column] of its cells.

    Raises:
        UsageError: the task has no such case.
    """
    case = next((each for each in task.cases if each.number == shown.number), None)
    if case is None:
        raise UsageError(f"task {task.id} has no case {shown.number}")
    evidence = [_evidence(each, suspect, shown.number) for each in suspect.evidence]
    places = [
        CellRef(each["sheet"], row, column)
        for each in evidence
        if each["pane"]
        for row, column in each["places"]
    ]
    grid = _grid(task, case, shown.output, places[:MAX_PLACES])
    return {"case": shown.number, "grid": grid, "marks": MARKS, "evidence": evidence}


def _grid(
    task: Task, case: TestCase, output: Path | None, places: Sequence[CellRef]
) -> dict[str, Any]:
    notes: list[str] = []
    data = None
    record: CaseComparison = {}
    if output is not None:
        try:
            data, record = output.read_bytes(), _COMPARED_AGAIN
        except OSError as error:
            notes.append(f"{output} cannot be read: {error.strerror}")
    grid = build_grid(task, case, record, data, GridRules(), BOUNDS, places)
    return {"blocks": grid["blocks"], "notes": [*notes, *grid["notes"]]}


def _evidence(evidence: Evidence, suspect: Suspect, shown: int) -> dict[str, Any]:
    own = evidence.case if evidence.case is not None else suspect.case
    pane = _PANES.get(evidence.file)
    if evidence.file is EvidenceFile.OTHER_CASE:
        pane = "gold"
    if own is not None and own != shown:
        pane = None
    return {
        "file": evidence.file.value,
        "sheet": evidence.sheet,
        "cell": evidence.cell,
        "case": own,
        "expected": evidence.expected,
        "found": evidence.found,
        "note": evidence.note,
        "pane": pane,
        "places": list(_places(evidence.cell)),
    }


def _places(cell: str) -> Iterator[tuple[int, int]]:
    window = parse_window(cell.replace("$", "")) if cell else None
    if window is None or _size(window) > MAX_PLACES:
        if window is not None:
            yield window.min_row, window.min_column
        return
    for row in range(window.min_row, window.max_row + 1):
        for column in range(window.min_column, window.max_column + 1):
            yield row, column


def _size(window: Window) -> int:
    return (window.max_row - window.min_row + 1) * (window.max_column - window.min_column + 1)
