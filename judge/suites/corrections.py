"""Corrections of known faults in published suites, with reasons; applied only on request."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from judge.compare.cells.options import check_style_names
from judge.core.records.runs import RunDocument
from judge.core.task import LEFT_OUT_CASES_OPTION, LEFT_OUT_OPTION, Task, TestCase
from judge.errors import PositionError, SuiteError, UsageError
from judge.files.documents import written
from judge.files.paths import GivenPath, as_path
from judge.files.writing import naming_what_is_written, write_whole
from judge.files.yaml_documents import dump_yaml, read_yaml
from judge.suites.suite import Suite, data_folder
from judge.workbook.address import cell_name, parse_cell
from judge.workbook.cell import CellRef, CellValue
from judge.workbook.editing.sheet_xml import Formula, address, content_from_json, content_to_json
from judge.workbook.position import parse_position


class UnfitCellsError(Exception):
    """The cells of a correction are not valid, or do not match a file."""


@dataclass(frozen=True, slots=True)
class CellCorrection:
    """One corrected cell of a gold.

    Attributes:
        ref: the cell, with the real name of its sheet.
        was: the value that the file holds; None if the cell is blank.
        now: the right value; None for a blank cell.
    """

    ref: CellRef
    was: CellValue
    now: CellValue

    def __str__(self) -> str:
        return f"{address(self.ref)} is {shown_value(self.now)} instead of {shown_value(self.was)}"

    def to_json(self) -> dict[str, object]:
        """The cell as it is written in a correction."""
        return {
            "sheet": self.ref.sheet,
            "cell": cell_name(self.ref.row, self.ref.column),
            "was": content_to_json(self.was),
            "now": content_to_json(self.now),
        }


def read_cells(entries: object) -> tuple[CellCorrection, ...]:
    """Reads the cells of a correction from parsed YAML or JSON.

    Raises:
        UnfitCellsError: the cells are not valid; says what is wrong.
    """
    if not isinstance(entries, list) or not entries:
        raise UnfitCellsError(f"field 'cells' must be a list of cells, not {written(entries)}")
    cells = tuple(_cell(number, entry) for number, entry in enumerate(entries, 1))
    if len({cell.ref for cell in cells}) < len(cells):
        raise UnfitCellsError("field 'cells' names a cell twice")
    return cells


def _cell(number: int, entry: object) -> CellCorrection:
    names = {"sheet", "cell", "was", "now"}
    if not isinstance(entry, Mapping) or entry.keys() != names:
        raise UnfitCellsError(
            f"cell {number}: must have sheet, cell, was and now, not {written(entry)}"
        )
    sheet, position = entry["sheet"], parse_cell(str(entry["cell"]))
    if not isinstance(sheet, str) or not sheet or position is None:
        raise UnfitCellsError(f"cell {number}: {sheet!r}, {entry['cell']!r} is not a cell")
    was, now = (_value(number, name, entry[name]) for name in ("was", "now"))
    if same_value(was, now):
        raise UnfitCellsError(f"cell {number}: 'was' and 'now' are the same value")
    return CellCorrection(CellRef(sheet, *position), was, now)


def _value(number: int, name: str, value: object) -> CellValue:
    if isinstance(value, dt.date):  # as YAML reads a date without quotes
        return value if isinstance(value, dt.datetime) else dt.datetime.combine(value, dt.time())
    try:
        content = content_from_json(value)
    except (UsageError, ValueError, OverflowError) as error:
        raise UnfitCellsError(
            f"cell {number}: {name!r} must be a number, text, true, false, nothing, or one of "
            f'{{error: "#N/A"}}, {{date: "2024-01-31"}}, {{time: "12:30:00"}}, {{seconds: 90}}, '
            f"not {written(value)}"
        ) from error
    if isinstance(content, Formula):
        raise UnfitCellsError(f"cell {number}: {name!r} must be a value, not a formula")
    return content


def same_value(first: CellValue, second: CellValue) -> bool:
    """Whether two values are the same; a Boolean never equals a number."""
    if isinstance(first, bool) is not isinstance(second, bool):
        return False
    return bool(first == second) or content_to_json(first) == content_to_json(second)


def shown_value(value: CellValue) -> str:
    """A value as messages show it."""
    if value is None:
        return "blank"
    content = content_to_json(value)
    return str(next(iter(content.values()))) if isinstance(content, dict) else repr(content)


FIELDS = ("answer_position", "answer_sheet", "style", "exclude", "gold")
"""The fields of a task that can be corrected; ``gold`` stands for cells of one case's gold."""

_OF_CASES = {"exclude", "gold"}
"""The fields that can be corrected for a single case; the correction must state the gold's hash."""

_SHA256 = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True, slots=True)
class Correction:
    """One known fault of a suite, and its correction.

    Attributes:
        format: the format of the suites that have the fault.
        task: the task's id as text.
        field: one of :data:`FIELDS`.
        was: the field's value as published; the correction is not applied to a suite that has
            another value. None if the suite has no such field.
        now: the corrected value; for ``exclude`` the reason, for ``gold`` nothing.
        reason: what is wrong, for people; for a correction of a case, what the question says.
        source: where the fault can be seen.
        evidence: what the cells show; empty if not stated.
        case: number of the case, if the correction is about a single one.
        gold_sha256: hash of the gold of that case, as published.
        input_sha256: hash of the case's first input, if the correction depends on it.
        cells: for ``gold``, the wrong cells and their right values.
        by: who reviewed the correction; empty if unknown.
        at: when it was reviewed, in ISO format; empty if unknown.
    """

    format: str
    task: str
    field: str
    was: str | None
    now: str | tuple[str, ...]
    reason: str
    source: str
    evidence: str = ""
    case: int | None = None
    gold_sha256: str | None = None
    input_sha256: str | None = None
    cells: tuple[CellCorrection, ...] = ()
    by: str = ""
    at: str = ""

    @property
    def key(self) -> tuple[str, str, int | None, str]:
        """Format, task, case and field; no two corrections may have the same key."""
        return (self.format, self.task, self.case, self.field)

    def __str__(self) -> str:
        of_case = "" if self.case is None else f"case {self.case} "
        if self.field == "exclude":
            return f"{of_case}left out: {self.reason}"
        if self.field == "gold":
            more = f" and {len(self.cells) - 3} more" if len(self.cells) > 3 else ""
            cells = ", ".join(map(str, self.cells[:3]))
            return f"{of_case}gold: {cells}{more}: {self.reason}"
        now = self.now if isinstance(self.now, str) else ", ".join(self.now)
        return f"{self.field} is read as {now!r}: {self.reason}"


class CorrectionFaultError(Exception):
    """A correction is not valid."""


def known_faults_folder() -> Path:
    """The folder of the corrections that ship with the judge.

    Raises:
        SuiteError: the installation is incomplete.
    """
    return data_folder() / "corrections"


def load_corrections(path: Path) -> tuple[Correction, ...]:
    """Reads a file of corrections or of certified tasks, or all ``*.yaml`` of a folder.

    Raises:
        SuiteError: a file cannot be read, or a field is not valid; all faults are named.
    """
    paths = sorted(path.glob("*.yaml")) if path.is_dir() else [path]
    corrections: list[Correction] = []
    faults: list[str] = []
    for file in paths:
        document = read_yaml(file, SuiteError)
        if isinstance(document, dict) and "tasks" in document:
            from judge.suites.certified import certification_in  # noqa: PLC0415  it imports this

            corrections += certification_in(document, file).corrections()
            continue
        entries = document.get("corrections") if isinstance(document, dict) else None
        if not isinstance(entries, list) or not isinstance(document.get("format"), str):
            raise SuiteError(
                f"{file}: fields 'format' (text) and 'corrections' (a list) are needed"
            )
        for number, entry in enumerate(entries, 1):
            try:
                corrections.append(correction_of(document["format"], entry))
            except CorrectionFaultError as fault:
                faults.append(f"{file}, correction {number}: {fault}")
    seen: set[tuple[str, str, int | None, str]] = set()
    for correction in corrections:
        if correction.key in seen:
            of_case = "" if correction.case is None else f", case {correction.case}"
            faults.append(
                f"task {correction.task}{of_case}: field {correction.field!r} is corrected twice"
            )
        seen.add(correction.key)
    if faults:
        raise SuiteError(
            f"{path}: {len(faults)} faults in the corrections",
            faults=tuple(faults),
            hint="dataset/schema.md describes what a correction looks like",
        )
    return tuple(corrections)


@dataclass(frozen=True, slots=True)
class CorrectedSuite:
    """A suite with the corrections that fit it.

    Attributes:
        suite: the suite, with the digest of its files.
        applied: the corrections that were applied, in suite order.
        unfit: corrections that were not applied, because the field of the task has a value other
            than the one that they correct.
    """

    suite: Suite
    applied: tuple[Correction, ...]
    unfit: tuple[Correction, ...]

    @property
    def records(self) -> list[dict[str, object]]:
        """The corrections that were applied, as run.json describes them."""
        return describe_corrections(self.applied)


def apply_corrections(suite: Suite, corrections: Iterable[Correction]) -> CorrectedSuite:
    """Corrects the tasks of a suite.

    Ignores corrections of other formats and of tasks that the suite does not have. Does not change
    golds that already hold the right values.

    Raises:
        SuiteError: corrections were made for files with other contents; it names all of them.
    """
    by_task: dict[str, list[Correction]] = {}
    for correction in corrections:
        if correction.format == suite.format:
            by_task.setdefault(correction.task, []).append(correction)
    applied: list[Correction] = []
    unfit: list[Correction] = []
    faults: list[str] = []
    tasks: list[Task] = []
    for task in suite.tasks:
        for correction in by_task.get(task.id, ()):
            try:
                corrected = _corrected(task, correction)
            except UnfitCellsError as fault:
                faults.append(f"task {task.id}, case {correction.case}: {fault}")
                continue
            (unfit if corrected is None else applied).append(correction)
            task = corrected or task  # noqa: PLW2901 - several corrections of one task add up
        tasks.append(task)
    if faults:
        raise SuiteError(
            f"{suite.root}: {len(faults)} corrections are not for the files of this suite",
            faults=tuple(faults),
            hint="Put back the file that was reviewed, or take the correction out and review the "
            "file again (`judge verify SUITE --review`).",
        )
    return CorrectedSuite(suite.with_tasks(tasks), tuple(applied), tuple(unfit))


def _corrected(task: Task, correction: Correction) -> Task | None:
    """Applies one correction to a task; None if the task does not have the fault.

    Raises:
        UnfitCellsError: the correction was made for another file.
    """
    if correction.case is not None:
        return _corrected_in_case(task, correction)
    now = correction.now
    option = {"exclude": LEFT_OUT_OPTION, "style": "style"}.get(correction.field)
    if option is not None:
        if task.checker.options.get(option):
            return None
        value = now if isinstance(now, str) else list(now)
        return replace(task, checker=task.checker.with_options({option: value}))
    if task.checker.options.get(correction.field) != correction.was:
        return None
    return replace(task, checker=task.checker.with_options({correction.field: now}))


def _corrected_in_case(task: Task, correction: Correction) -> Task | None:
    from judge.suites.gold_corrections import (  # noqa: PLC0415  edits workbooks: rarely needed
        GoldCorrection,
        corrected_case,
    )

    case = next((case for case in task.cases if case.number == correction.case), None)
    if case is None:
        return None
    bound = GoldCorrection(correction.gold_sha256 or "", correction.input_sha256, correction.cells)
    corrected = corrected_case(case, bound)
    if corrected is None:
        return None
    if correction.field == "exclude":
        reasons = task.checker.options.get(LEFT_OUT_CASES_OPTION)
        reasons = dict(reasons) if isinstance(reasons, Mapping) else {}
        if str(case.number) in reasons:
            return None
        reasons[str(case.number)] = correction.reason
        return replace(task, checker=task.checker.with_options({LEFT_OUT_CASES_OPTION: reasons}))
    return replace(task, cases=_replaced(task.cases, corrected))


def _replaced(cases: Sequence[TestCase], new: TestCase) -> tuple[TestCase, ...]:
    return tuple(new if case.number == new.number else case for case in cases)


def corrected_suite(suite: Suite, path: GivenPath | None) -> CorrectedSuite:
    """A suite with the corrections of a file or folder; unchanged if None is given.

    Raises:
        SuiteError: the corrections cannot be read, or are for other files.
    """
    if path is None:
        return CorrectedSuite(suite, (), ())
    return apply_corrections(suite, load_corrections(as_path(path)))


def corrected_as_recorded(suite: Suite, run: RunDocument) -> CorrectedSuite:
    """A suite with the corrections that a run.json names.

    Raises:
        SuiteError: one of them cannot be read, or is for another file.
    """
    remembered = run.get("suite")
    named = None if remembered is None else remembered.get("corrections")
    try:
        corrections = [correction_of(suite.format, entry) for entry in named or ()]
    except CorrectionFaultError as fault:
        raise SuiteError(f"run.json names a correction that cannot be read: {fault}") from fault
    return apply_corrections(suite, corrections)


def as_recorded(suite: Suite, run: RunDocument) -> Suite:
    """A suite with the corrections and the options of the comparison that a run.json names."""
    corrected = corrected_as_recorded(suite, run).suite
    return corrected.with_checker_options(run.get("checker") or {})


# -- reading one correction ------------------------------------------------------------------------


_ENTRY_FIELDS = {
    *("task", "field", "was", "now", "reason", "source", "evidence", "by", "at"),
    *("case", "gold_sha256", "input_sha256", "cells"),
}


def correction_of(suite_format: str, entry: object) -> Correction:
    """Reads one correction from parsed YAML or JSON.

    Args:
        suite_format: the format of the suites that have the fault.
        entry: the correction.

    Raises:
        CorrectionFaultError: it is not valid; the message says why.
    """
    if not isinstance(entry, dict):
        raise CorrectionFaultError(f"must be an object, not {written(entry)}")
    unknown = entry.keys() - _ENTRY_FIELDS
    if unknown:
        raise CorrectionFaultError(f"unknown fields {', '.join(sorted(map(str, unknown)))}")
    field = entry.get("field")
    if field not in FIELDS:
        raise CorrectionFaultError(
            f"field 'field' must be one of {', '.join(FIELDS)}, not {written(field)}"
        )
    reason, source = _text(entry, "reason"), _text(entry, "source")
    was = entry.get("was")
    if was is not None and not isinstance(was, str):
        raise CorrectionFaultError(f"field 'was' must be text, not {written(was)}")
    evidence, by, at = (
        _text(entry, name) if entry.get(name) is not None else ""
        for name in ("evidence", "by", "at")
    )
    correction = Correction(
        format=suite_format,
        task=_text(entry, "task"),
        field=field,
        was=was,
        now=reason if field in _OF_CASES else _new_value(field, entry.get("now")),
        reason=reason,
        source=source,
        evidence=evidence,
        by=by,
        at=at,
    )
    return (
        _of_case(correction, entry)
        if field == "gold" or "case" in entry
        else _whole(correction, entry)
    )


def _whole(correction: Correction, entry: Mapping[object, object]) -> Correction:
    """Reads a correction of a whole task, which may not have a field that belongs to a case."""
    for name in ("gold_sha256", "input_sha256", "cells"):
        if name in entry:
            raise CorrectionFaultError(f"field {name!r} is only for corrections of a case")
    return correction


def _of_case(correction: Correction, entry: Mapping[object, object]) -> Correction:
    """Reads a correction of a single case; it is valid only for files with the stated hashes."""
    if correction.field not in _OF_CASES:
        raise CorrectionFaultError(
            f"field 'case': {correction.field!r} is corrected for all cases of a task"
        )
    case = entry.get("case")
    if not isinstance(case, int) or isinstance(case, bool) or case < 1:
        raise CorrectionFaultError(
            f"field 'case' must be the number of a case, not {written(case)}"
        )
    if not correction.evidence:
        raise CorrectionFaultError("field 'evidence' must say what the cells show")
    if (correction.field == "gold") is not ("cells" in entry):
        raise CorrectionFaultError(
            "field 'cells' is required if 'field' is 'gold', and not allowed otherwise"
        )
    try:
        cells = read_cells(entry["cells"]) if correction.field == "gold" else ()
    except UnfitCellsError as fault:
        raise CorrectionFaultError(str(fault)) from fault
    return replace(
        correction,
        case=case,
        gold_sha256=_sha256(entry, "gold_sha256"),
        input_sha256=_sha256(entry, "input_sha256") if "input_sha256" in entry else None,
        cells=cells,
    )


def _sha256(entry: Mapping[object, object], name: str) -> str:
    value = entry.get(name)
    if not isinstance(value, str) or not _SHA256.fullmatch(value):
        raise CorrectionFaultError(
            f"field {name!r} must be a SHA-256 in hexadecimal, not {written(value)}"
        )
    return value


def _text(entry: Mapping[object, object], name: str) -> str:
    value = entry.get(name)
    if name == "task" and isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    if not isinstance(value, str) or not value.strip():
        raise CorrectionFaultError(f"field {name!r} must be text, not {written(value)}")
    return " ".join(value.split())


def _new_value(field: str, now: object) -> str | tuple[str, ...]:
    try:
        if field == "style":
            if (
                not isinstance(now, list)
                or not now
                or not all(isinstance(attribute, str) for attribute in now)
            ):
                raise CorrectionFaultError(
                    f"field 'now' must be a list of style attributes, not {written(now)}"
                )
            check_style_names(now)
            return tuple(now)
        if not isinstance(now, str) or not now.strip():
            raise CorrectionFaultError(f"field 'now' must be text, not {written(now)}")
        if field == "answer_position":
            parse_position(now)
    except (PositionError, UsageError) as error:
        raise CorrectionFaultError(f"field 'now': {error.message}") from error
    return now


# -- writing ---------------------------------------------------------------------------------------


def describe_corrections(corrections: Sequence[Correction]) -> list[dict[str, object]]:
    """The corrections as run.json and the report show them."""
    return [_described(correction) for correction in corrections]


def _described(correction: Correction) -> dict[str, object]:
    record: dict[str, Any] = {"task": correction.task}
    if correction.case is not None:
        record["case"] = correction.case
    record["field"] = correction.field
    if correction.case is None:
        now = correction.now
        record["was"] = correction.was
        record["now"] = now if isinstance(now, str) else list(now)
    else:
        record["gold_sha256"] = correction.gold_sha256
        if correction.input_sha256 is not None:
            record["input_sha256"] = correction.input_sha256
        if correction.cells:
            record["cells"] = [cell.to_json() for cell in correction.cells]
    record |= {"reason": correction.reason, "source": correction.source}
    further = {"evidence": correction.evidence, "by": correction.by, "at": correction.at}
    return record | {name: text for name, text in further.items() if text}


def write_corrections(path: Path, suite_format: str, corrections: Sequence[Correction]) -> None:
    """Writes a file of corrections for :func:`load_corrections`, either completely or not at all.

    Args:
        path: the file, in an existing folder.
        suite_format: the format of the suites that have the faults.
        corrections: the corrections, all of this format.

    Raises:
        SuiteError: it cannot be written.
    """
    entries = []
    for correction in corrections:
        entry = {name: value for name, value in _described(correction).items() if value is not None}
        if correction.field == "exclude":
            entry.pop("now", None)
        entries.append(entry)
    text = dump_yaml({"format": suite_format, "corrections": entries})
    with naming_what_is_written(path, SuiteError):
        write_whole(path, text.encode("utf-8", "replace"), mode=0o644, durable=True)
