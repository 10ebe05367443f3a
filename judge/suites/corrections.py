"""Known faults of published suites: written down with reason and source, applied on request."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from judge.comparison.style_check import check_style_names
from judge.core.results import RunDocument
from judge.core.task import Task
from judge.errors import PositionError, SuiteError, UsageError
from judge.files.yaml_documents import read_yaml
from judge.suites.locate import data_folder
from judge.suites.suite import Suite
from judge.workbook.position import parse_position

FIELDS = ("answer_position", "answer_sheet", "style", "exclude")
"""The fields of a task that can be corrected."""


@dataclass(frozen=True, slots=True)
class Correction:
    """One known fault of a suite, and what is right.

    Attributes:
        format: the format of the suites that have the fault.
        task: the task's id as text.
        field: one of :data:`FIELDS`.
        was: the field's value as published; where a suite has another one, the correction is not
            applied. None where the suite has no such field.
        now: the corrected value; for ``exclude`` the reason.
        reason: what is wrong, for people.
        source: where it can be seen.
    """

    format: str
    task: str
    field: str
    was: str | None
    now: str | tuple[str, ...]
    reason: str
    source: str

    def __str__(self) -> str:
        if self.field == "exclude":
            return f"left out: {self.reason}"
        now = self.now if isinstance(self.now, str) else ", ".join(self.now)
        return f"{self.field} is read as {now!r}: {self.reason}"


def known_faults_folder() -> Path:
    """The folder of the corrections that ship with the judge.

    Raises:
        SuiteError: the installation is incomplete.
    """
    return data_folder() / "corrections"


def load_corrections(path: Path) -> tuple[Correction, ...]:
    """Reads a file of corrections, or all ``*.yaml`` of a folder.

    Raises:
        SuiteError: a file cannot be read, or a field is not valid; all faults are named.
    """
    paths = sorted(path.glob("*.yaml")) if path.is_dir() else [path]
    found: list[Correction] = []
    faults: list[str] = []
    for each in paths:
        document = read_yaml(each, SuiteError)
        entries = document.get("corrections") if isinstance(document, dict) else None
        if not isinstance(entries, list) or not isinstance(document.get("format"), str):
            raise SuiteError(
                f"{each}: fields 'format' (text) and 'corrections' (a list) are needed"
            )
        for number, entry in enumerate(entries, 1):
            try:
                found.append(_correction(document["format"], entry))
            except _FaultError as fault:
                faults.append(f"{each}, correction {number}: {fault}")
    seen: set[tuple[str, str, str]] = set()
    for correction in found:
        key = (correction.format, correction.task, correction.field)
        if key in seen:
            faults.append(f"task {correction.task}: field {correction.field!r} is corrected twice")
        seen.add(key)
    if faults:
        raise SuiteError(
            f"{path}: {len(faults)} faults in the corrections",
            faults=tuple(faults),
            hint="dataset/schema.md describes what a correction looks like",
        )
    return tuple(found)


class _FaultError(Exception):
    """A correction is not valid."""


def _correction(suite_format: str, entry: object) -> Correction:
    if not isinstance(entry, dict):
        raise _FaultError(f"must be an object, not {entry!r}")
    unknown = entry.keys() - {"task", "field", "was", "now", "reason", "source"}
    if unknown:
        raise _FaultError(f"unknown fields {', '.join(sorted(map(str, unknown)))}")
    field = entry.get("field")
    if field not in FIELDS:
        raise _FaultError(f"field 'field' must be one of {', '.join(FIELDS)}, not {field!r}")
    reason, source = _text(entry, "reason"), _text(entry, "source")
    was = entry.get("was")
    if was is not None and not isinstance(was, str):
        raise _FaultError(f"field 'was' must be text, not {was!r}")
    return Correction(
        format=suite_format,
        task=_text(entry, "task"),
        field=field,
        was=was,
        now=reason if field == "exclude" else _new_value(field, entry.get("now")),
        reason=reason,
        source=source,
    )


def _text(entry: Mapping[object, object], name: str) -> str:
    value = entry.get(name)
    if name == "task" and isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    if not isinstance(value, str) or not value.strip():
        raise _FaultError(f"field {name!r} must be text, not {value!r}")
    return " ".join(value.split())


def _new_value(field: str, now: object) -> str | tuple[str, ...]:
    try:
        if field == "style":
            if (
                not isinstance(now, list)
                or not now
                or not all(isinstance(each, str) for each in now)
            ):
                raise _FaultError(f"field 'now' must be a list of style attributes, not {now!r}")
            check_style_names(now)
            return tuple(now)
        if not isinstance(now, str) or not now.strip():
            raise _FaultError(f"field 'now' must be text, not {now!r}")
        if field == "answer_position":
            parse_position(now)
    except (PositionError, UsageError) as error:
        raise _FaultError(f"field 'now': {error.message}") from error
    return now


@dataclass(frozen=True, slots=True)
class CorrectedSuite:
    """A suite with the corrections that fit it.

    Attributes:
        suite: the suite; its digest is that of its files.
        applied: the corrections that were applied, in suite order.
        unfit: corrections of tasks that the suite has, but with a value other than the one that
            was found wrong.
    """

    suite: Suite
    applied: tuple[Correction, ...]
    unfit: tuple[Correction, ...]


def apply_corrections(suite: Suite, corrections: Iterable[Correction]) -> CorrectedSuite:
    """Corrects the tasks of a suite.

    Corrections of other formats and of tasks that the suite does not have are passed over.
    """
    by_task: dict[str, list[Correction]] = {}
    for each in corrections:
        if each.format == suite.format:
            by_task.setdefault(each.task, []).append(each)
    applied: list[Correction] = []
    unfit: list[Correction] = []
    tasks: list[Task] = []
    for task in suite.tasks:
        for correction in by_task.get(task.id, ()):
            corrected = _corrected(task, correction)
            (unfit if corrected is None else applied).append(correction)
            task = corrected or task  # noqa: PLW2901 - several corrections of one task add up
        tasks.append(task)
    return CorrectedSuite(suite.with_tasks(tasks), tuple(applied), tuple(unfit))


def _corrected(task: Task, correction: Correction) -> Task | None:
    """The task with one correction; None where it does not have the fault."""
    now = correction.now
    option = {"exclude": "left_out", "style": "style"}.get(correction.field)
    if option is not None:
        if task.checker.options.get(option):
            return None
        value = now if isinstance(now, str) else list(now)
        return replace(task, checker=task.checker.with_options({option: value}))
    if task.checker.options.get(correction.field) != correction.was:
        return None
    return replace(task, checker=task.checker.with_options({correction.field: now}))


def corrected_suite(suite: Suite, path: Path | None) -> CorrectedSuite:
    """A suite with the corrections of a file or folder; unchanged if None is given.

    Raises:
        SuiteError: the corrections cannot be read.
    """
    if path is None:
        return CorrectedSuite(suite, (), ())
    return apply_corrections(suite, load_corrections(path))


def as_recorded(suite: Suite, run: RunDocument) -> Suite:
    """A suite with the corrections and the options of the comparison that a run.json names."""
    remembered = run.get("suite")
    named = None if remembered is None else remembered.get("corrections")
    try:
        corrections = [_correction(suite.format, each) for each in named or ()]
    except _FaultError as fault:
        raise SuiteError(f"run.json names a correction that cannot be read: {fault}") from fault
    corrected = apply_corrections(suite, corrections).suite
    return corrected.with_checker_options(run.get("checker") or {})


def describe_corrections(corrections: Sequence[Correction]) -> list[dict[str, object]]:
    """Corrections as they are written into run.json and the report."""
    return [
        {
            "task": each.task,
            "field": each.field,
            "was": each.was,
            "now": each.now if isinstance(each.now, str) else list(each.now),
            "reason": each.reason,
            "source": each.source,
        }
        for each in corrections
    ]
