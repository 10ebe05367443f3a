"""Loads a suite from wherever it lies, whatever its format. Opens no workbook."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path

from judge.core.task import Task, TestCase
from judge.errors import SuiteError
from judge.files.documents import MalformedError, parse_json, read_regular
from judge.suites.locate import locate_suite
from judge.suites.spreadsheetbench.pairing import Pairing, pair_workbooks
from judge.suites.spreadsheetbench.records import TaskRecord, read_record, task_of_record
from judge.suites.suite import SPREADSHEETBENCH, SPREADSHEETBENCH_VERIFIED, Suite

_HINT = "dataset/schema.md describes what a suite looks like"


@dataclass
class _Findings:
    """What was found on the way; ``inside`` says which folders really lie in the suite."""

    faults: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    inside: dict[Path, bool] = field(default_factory=dict)


def load_suite(source: Path | str) -> Suite:
    """Loads a suite; says of a broken one everything that is wrong with it.

    Args:
        source: a folder, a ``.tar.gz`` (unpacked once into the cache), the ``dataset.json``
            itself, ``sample`` for the embedded suite, or the name of a fetched suite.

    Raises:
        SuiteError: there is no suite, or it is broken; ``faults`` names each fault with its file.
    """
    located = locate_suite(source)
    findings = _Findings()
    records = _read_dataset(located.root / "dataset.json")
    tasks: list[Task] = []
    seen: dict[str, int] = {}
    verified = 0
    real_root = Path(os.path.realpath(located.root))
    for index, raw in enumerate(records):
        record, faults = read_record(raw)
        label = _label(index, raw)
        findings.faults.extend(f"{label}: {fault}" for fault in faults)
        task_id = record.id if record is not None else _id_of(raw)
        if task_id is not None and task_id in seen:
            findings.faults.append(f"{label}: the id stands in record {seen[task_id]} already")
        elif task_id is not None:
            seen[task_id] = index
        if record is None:
            continue
        if record.unknown_fields:
            names = ", ".join(record.unknown_fields)
            findings.notes.append(f"{label}: unknown fields are left aside: {names}")
        task, pairing = _read_task(record, real_root, label, findings)
        if task is not None and pairing is not None:
            tasks.append(task)
            verified += pairing.verified_names
    if findings.faults:
        count = len(findings.faults)
        raise SuiteError(
            f"{located.root} is broken: {count} fault{'s' if count > 1 else ''}",
            faults=tuple(findings.faults),
            hint=_HINT,
        )
    return Suite(
        name=located.name,
        root=located.root.absolute(),
        format=SPREADSHEETBENCH_VERIFIED if 2 * verified > len(tasks) else SPREADSHEETBENCH,
        tasks=tuple(tasks),
        notes=tuple(findings.notes),
    )


def _read_dataset(path: Path) -> list[object]:
    """The records of a ``dataset.json``; at least one."""
    data = read_regular(path, SuiteError)
    if data is None:
        raise _broken(path, "is not there")
    try:
        records = parse_json(data.removeprefix(b"\xef\xbb\xbf"))
    except MalformedError as error:
        raise _broken(path, f"is {error}") from error
    if not isinstance(records, list):
        raise _broken(path, f"must be a list of tasks, not {type(records).__name__}")
    if not records:
        raise _broken(path, "is empty: a suite needs at least one task")
    return records


def _broken(path: Path, problem: str) -> SuiteError:
    return SuiteError(f"{path} {problem}", faults=(f"dataset.json {problem}",), hint=_HINT)


def _id_of(raw: object) -> str | None:
    if isinstance(raw, dict) and isinstance(raw.get("id"), int | str):
        return str(raw["id"])
    return None


def _label(index: int, raw: object) -> str:
    task_id = _id_of(raw)
    where = f"dataset.json, record {index}"
    return where if task_id is None else f"{where} (id {task_id})"


def _read_task(
    record: TaskRecord, root: Path, label: str, findings: _Findings
) -> tuple[Task | None, Pairing | None]:
    """Lists a task's folder and pairs its workbooks."""
    folder = root / record.folder
    # Nearly all tasks share one parent: only that and links are worth resolving.
    place = folder if folder.is_symlink() else folder.parent
    if place not in findings.inside:
        findings.inside[place] = Path(os.path.realpath(place)).is_relative_to(root)
    if not findings.inside[place]:
        findings.faults.append(f"{label}: {record.folder} is a link that leaves the suite")
        return None, None
    try:
        with os.scandir(folder) as entries:
            names = [
                entry.name
                for entry in entries
                if entry.is_file() and _stays_inside(entry, root, record, findings)
            ]
    except FileNotFoundError:
        findings.faults.append(f"{label}: there is no folder {record.folder}")
        return None, None
    except OSError as error:
        findings.faults.append(f"{label}: {record.folder} cannot be listed: {error.strerror}")
        return None, None
    pairing = pair_workbooks(names, record.id)
    findings.faults.extend(f"{record.folder}/: {fault}" for fault in pairing.faults)
    findings.notes.extend(f"{record.folder}/{note}" for note in pairing.notes)
    if pairing.faults:
        return None, None
    cases = tuple(
        TestCase.of_workbooks(case.number, folder / case.input_name, folder / case.gold_name)
        for case in pairing.cases
    )
    return task_of_record(record, cases), pairing


def _stays_inside(
    entry: os.DirEntry[str], root: Path, record: TaskRecord, findings: _Findings
) -> bool:
    """Whether a file is the suite's own: a link may not lead out of it."""
    if not entry.is_symlink() or Path(os.path.realpath(entry.path)).is_relative_to(root):
        return True
    findings.faults.append(f"{record.folder}/{entry.name}: a link that leaves the suite")
    return False
