"""Converts corrections between the text that a reviewer types and entries of a file."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from judge.annotate.edits import content_text, parse_assignment
from judge.compare.cells.answer_range import prepare
from judge.compare.cells.options import range_spec
from judge.core.task import Task, TestCase
from judge.errors import PositionError, UsageError, WorkbookError
from judge.suites.corrections import (
    CellCorrection,
    Correction,
    CorrectionFaultError,
    UnfitCellsError,
    correction_of,
    describe_corrections,
    read_cells,
)
from judge.suites.gold_corrections import stored_value
from judge.suspects.model import CaseFiles
from judge.workbook.cell import CellRef
from judge.workbook.editing.sheet_xml import Formula, SetCell, address, content_to_json
from judge.workbook.position import match_sheet, parse_position
from judge.workbook.reader import Workbook, open_workbook

SOURCE = "judge verify --review"


@dataclass(frozen=True, slots=True)
class Typed:
    """A reviewer's corrections as typed; all fields are empty if the gold is right.

    Attributes:
        cells: case number -> lines such as ``Sheet1!C8=BBB``.
        position: the answer position; empty to keep the suite's.
        style: styles to compare, with commas between them; empty to keep the suite's.
        left_out: cases that are left out.
        task_left_out: whether the task is left out.
    """

    cells: Mapping[int, str] = field(default_factory=dict)
    position: str = ""
    style: str = ""
    left_out: tuple[int, ...] = ()
    task_left_out: bool = False


@dataclass(frozen=True, slots=True)
class Signed:
    """The author, time and reasons of a correction.

    Attributes:
        by: the reviewer.
        at: the time in ISO format.
        reason: the reason that the question gives to a reader.
        evidence: the reason that the cells give.
        sign: the sign of the suspect.
    """

    by: str
    at: str
    reason: str
    evidence: str
    sign: str

    def entry(self, task: str, field_name: str, **more: object) -> dict[str, object]:
        """A signed correction, as an entry of a file of corrections."""
        return {
            "task": task,
            "field": field_name,
            **more,
            "reason": self.reason,
            "evidence": self.evidence,
            "source": f"{SOURCE} ({self.sign})",
            "by": self.by,
            "at": self.at,
        }


def corrections_of(
    task: Task, files: Sequence[CaseFiles], typed: Typed, signed: Signed, suite_format: str
) -> list[Correction]:
    """Reads the corrections that were typed.

    Args:
        task: the task, as its suite has it.
        files: hashes of the files of its cases.
        typed: the corrections, as typed.
        signed: author, time and reasons.
        suite_format: the format of the suite.

    Raises:
        UsageError: a correction does not fit the task; the message names it.
    """
    entries = list(_entries(task, {file.case: file for file in files}, typed, signed))
    if not entries:
        raise UsageError(
            "a fault needs a correction",
            hint="Type cells of the gold, a position or a style, or leave out the case or task.",
        )
    try:
        return [correction_of(suite_format, entry) for entry in entries]
    except CorrectionFaultError as fault:
        raise UsageError(str(fault)) from fault


def _entries(
    task: Task, files: Mapping[int, CaseFiles], typed: Typed, signed: Signed
) -> list[dict[str, object]]:
    entries = []
    cases = {case.number: case for case in task.cases}
    for number, text in typed.cells.items():
        if not text.strip():
            continue
        cells = typed_cells(_case(cases, number, task), text)
        listed = [cell.to_json() for cell in cells]
        entries.append(signed.entry(task.id, "gold", **_bound(files, number), cells=listed))
    if position := typed.position.strip():
        was = task.checker.options.get("answer_position")
        if position == was:
            raise UsageError(
                "the position is the suite's own: type another position, or leave the field empty"
            )
        _check_position(task, position)
        entries.append(signed.entry(task.id, "answer_position", was=was, now=position))
    if styles := [part.strip() for part in typed.style.split(",") if part.strip()]:
        entries.append(signed.entry(task.id, "style", now=styles))
    for number in typed.left_out:
        _case(cases, number, task)
        entries.append(signed.entry(task.id, "exclude", **_bound(files, number)))
    if typed.task_left_out:
        entries.append(signed.entry(task.id, "exclude"))
    return entries


def _check_position(task: Task, position: str) -> None:
    """Checks that the golds have the sheets of a position, if the position can be read."""
    try:
        parse_position(position)
    except PositionError:
        return  # the error is reported when the correction is read
    spec = range_spec(position)
    for case in task.cases:
        try:
            prepare(spec, gold=open_workbook(case.gold_path), output=None, typed=True)
        except (PositionError, WorkbookError) as error:
            raise UsageError(f"case {case.number}: {error.message}", hint=error.hint) from error


def _case(cases: Mapping[int, TestCase], number: int, task: Task) -> TestCase:
    if number not in cases:
        raise UsageError(f"task {task.id} has no case {number}")
    return cases[number]


def _bound(files: Mapping[int, CaseFiles], number: int) -> dict[str, object]:
    existing = files.get(number)
    if existing is None or existing.gold_sha256 is None:
        raise UsageError(f"case {number} has no gold that is a file, or was not audited")
    bound: dict[str, object] = {"case": number, "gold_sha256": existing.gold_sha256}
    return (
        bound if existing.input_sha256 is None else {**bound, "input_sha256": existing.input_sha256}
    )


def typed_cells(case: TestCase, text: str) -> tuple[CellCorrection, ...]:
    """Reads cells of a gold, one on each line, as in the annotator's commands.

    Args:
        case: the case whose gold is corrected.
        text: lines such as ``C8=BBB``, ``'Sheet 2'!B3=5``, ``D4=`` for a blank cell.

    Raises:
        UsageError: a line does not change the value of a cell of the gold.
    """
    try:
        gold = open_workbook(case.gold_path)
        lines = [line for line in text.splitlines() if line.strip()]
        cells = tuple(_cell(gold, line.strip()) for line in lines)
    except WorkbookError as error:
        raise UsageError(f"{case.gold_path.name}: {error.message}") from error
    if len({cell.ref for cell in cells}) < len(cells):
        raise UsageError("a cell is named twice")
    return cells


def _cell(gold: Workbook, line: str) -> CellCorrection:
    edit: SetCell = parse_assignment(line, gold.sheet_names[0])
    sheet = match_sheet(edit.ref.sheet, gold.sheet_names)
    if sheet is None:
        raise UsageError(
            f"{line!r}: the gold has no sheet {edit.ref.sheet!r}",
            hint=f"Its sheets: {', '.join(gold.sheet_names)}.",
        )
    if isinstance(edit.content, Formula):
        raise UsageError(f"{line!r}: type the right value, not a formula")
    ref = CellRef(sheet, edit.ref.row, edit.ref.column)
    was = stored_value(gold, ref)
    if content_to_json(was) == content_to_json(edit.content):
        raise UsageError(f"{line!r}: {address(ref)} already holds this value")
    return CellCorrection(ref, was, edit.content)


def entries_of(corrections: Sequence[Correction]) -> tuple[Mapping[str, object], ...]:
    """Corrections in the form that is stored with a decision."""
    return tuple(describe_corrections(corrections))


def typed_again(entries: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Corrections of a decision as typed by a reviewer, with the fields of :class:`Typed`."""
    typed: dict[str, Any] = {
        "cells": {},
        "position": "",
        "style": "",
        "left_out": [],
        "task_left_out": False,
    }
    for entry in entries:
        match entry.get("field"), entry.get("case"):
            case "gold", number:
                lines = "\n".join(f"{address(e.ref)}={_text(e)}" for e in _read(entry))
                typed["cells"][str(number)] = lines
            case "exclude", None:
                typed["task_left_out"] = True
            case "exclude", number:
                typed["left_out"].append(number)
            case "answer_position", _:
                typed["position"] = str(entry.get("now", ""))
            case "style", _:
                typed["style"] = ", ".join(map(str, entry.get("now") or ()))
    return typed


def _text(cell: CellCorrection) -> str:
    text = content_text(cell.now)
    return text.removesuffix("T00:00:00") if isinstance(cell.now, dt.date) else text


def _read(entry: Mapping[str, Any]) -> tuple[CellCorrection, ...]:
    try:
        return read_cells(entry.get("cells"))
    except UnfitCellsError:
        return ()
