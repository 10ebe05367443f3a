"""Reads the tasks of Spider2-V and OSWorld, and says which of them need a desktop."""

from __future__ import annotations

import stat
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

from judge.compare.files.options import NAME as METRICS
from judge.compare.files.options import asks_signal
from judge.compare.registry import check_options
from judge.core.submission import AnswerForm
from judge.core.task import (
    LEFT_OUT_OPTION,
    AbsentInput,
    FileKind,
    Gold,
    InputFile,
    Phrasing,
    Task,
    TestCase,
)
from judge.errors import SuiteError, UsageError
from judge.files.documents import MIB, read_json, read_text
from judge.suites.boundary import Boundary
from judge.suites.desktop.evaluation import read_evaluation

if TYPE_CHECKING:
    from judge.suites.desktop.format import DesktopFormat

_MAX_TASKS = 10_000
_COPIES = {"download", "copyfile_from_host_to_guest"}
_PLAN_FILE = "verbose_instruction.txt"
_PHRASINGS = ("abstract", "verbose")
_DIFFICULTIES = ((5, "easy"), (15, "medium"))
"""Most actions of a task -> its class in the Spider2-V paper; what takes more is hard."""
_MAX_PLAN_BYTES = MIB


class _FieldError(Exception):
    """What is wrong with a field of a task."""


def read_suite(root: Path, chosen: DesktopFormat) -> tuple[tuple[Task, ...], tuple[str, ...]]:
    """Reads the tasks of a suite.

    Args:
        root: the folder with ``evaluation_examples``.
        chosen: which of the formats it is.

    Returns:
        The tasks; and all faults, each with its file and field. Tasks that a file alone cannot
        decide, and those whose workbooks are not there, are left out with the reason.

    Raises:
        SuiteError: a task's file cannot be read.
    """
    boundary = Boundary(root)
    faults: list[str] = []
    tasks: list[Task] = []
    counterparts: dict[str, object] = {}
    for path in task_files(root / chosen.definition):
        record = read_json(path, SuiteError)
        name = path.relative_to(root)
        if not boundary.holds(boundary.root / name):
            faults.append(f"{name}: leads out of the suite's folder")
            continue
        try:
            tasks.append(_task(record, boundary, chosen))
            counterparts[tasks[-1].id] = (record or {}).get("counterpart")
        except _FieldError as error:
            faults.append(f"{name}: {error}")
    seen: set[str] = set()
    for task in tasks:
        if task.id in seen:
            faults.append(f"{chosen.definition}: the id {task.id} is used twice")
        seen.add(task.id)
    return _parted(_joined(tasks, counterparts)), tuple(faults)


def _joined(tasks: Sequence[Task], counterparts: Mapping[str, object]) -> tuple[Task, ...]:
    """The tasks, of which each pair of phrasings is known by the id of its first phrasing."""
    phrased = {task.id: task.phrasing for task in tasks if task.phrasing is not None}
    joined = []
    for task in tasks:
        own, other_id = phrased.get(task.id), str(counterparts.get(task.id))
        other = phrased.get(other_id)
        if own and other and counterparts.get(other_id) == task.id and own.name != other.name:
            is_first = _PHRASINGS.index(own.name) < _PHRASINGS.index(other.name)
            phrasing = replace(own, of=task.id if is_first else other_id)
            joined.append(replace(task, phrasing=phrasing))
        else:
            joined.append(task)
    return tuple(joined)


def _parted(tasks: Sequence[Task]) -> tuple[Task, ...]:
    """The tasks, with whether each can be done if some of them cannot."""
    feasible = [task.answer is not AnswerForm.TEXT for task in tasks]
    if all(feasible):
        return tuple(tasks)
    return tuple(
        replace(task, groups={**task.groups, "feasible": "yes" if can else "no"})
        for task, can in zip(tasks, feasible, strict=True)
    )


def _difficulty(actions: object) -> str | None:
    """The class of a task by the actions that its authors count; None where they count none."""
    if not isinstance(actions, int) or isinstance(actions, bool) or actions < 0:
        return None
    return next((name for most, name in _DIFFICULTIES if actions <= most), "hard")


def task_files(folder: Path) -> Iterator[Path]:
    """The JSON files of tasks: in the folder itself, or in a folder of the task's name each.

    Raises:
        SuiteError: the folder cannot be listed, or has too many entries.
    """
    try:
        entries = sorted(folder.iterdir())
    except OSError as error:
        raise SuiteError(f"{folder} cannot be listed: {error.strerror}") from error
    if len(entries) > _MAX_TASKS:
        raise SuiteError(f"{folder} has more than {_MAX_TASKS:,} entries")
    for entry in entries:
        if entry.suffix == ".json":
            yield entry
        elif (own := entry / f"{entry.name}.json").is_file():
            yield own


def _task(record: Any, boundary: Boundary, chosen: DesktopFormat) -> Task:
    if not isinstance(record, dict):
        raise _FieldError("must hold an object")
    task_id, instruction = record.get("id"), record.get("instruction")
    if not isinstance(task_id, str) or task_id != PurePosixPath(task_id).name or not task_id:
        raise _FieldError("field 'id' must be a plain name")
    if not isinstance(instruction, str):
        raise _FieldError("field 'instruction' must be text")
    evaluator = record.get("evaluator")
    if not isinstance(evaluator, dict):
        raise _FieldError("field 'evaluator' must be an object")
    places = _places(boundary, task_id, chosen)
    inputs, absent = _inputs(record.get("config"), boundary, places)
    evaluation = read_evaluation(
        evaluator, chosen.name, lambda given: _gold(given, boundary, places)
    )
    reason = evaluation.reason
    lacking = [each.name for each in absent] + list(evaluation.missing)
    if reason is None and lacking:
        reason = f"the files are not there: {', '.join(lacking)}"
        if evaluation.answer is AnswerForm.TEXT:
            reason = f"infeasible, so that the answer FAIL is right; {reason}"
    spec = evaluation.spec
    if reason is not None:
        spec = spec.with_options({LEFT_OUT_OPTION: reason})
    try:
        check_options(spec)
    except UsageError as error:
        raise _FieldError(f"field 'evaluator': {error.message}") from error
    tags = record.get("tags")
    levels = [phrasing for phrasing in _PHRASINGS if isinstance(tags, list) and phrasing in tags]
    groups = {"instruction": levels[0]} if levels else {}
    if (difficulty := _difficulty(record.get("action_number"))) is not None:
        groups["actions"] = difficulty
    plan = _find(_PLAN_FILE, boundary, places)
    return Task(
        id=task_id,
        instruction=instruction,
        kind=chosen.folder,
        cases=(TestCase(1, tuple(inputs), evaluation.golds, tuple(absent)),),
        checker=spec,
        answer=evaluation.answer,
        groups=groups,
        context=evaluation.context,
        raw_id=task_id,
        signals=spec.name == METRICS and asks_signal(spec.options),
        phrasing=Phrasing(levels[0], task_id) if levels else None,
        plan="" if plan is None else _plan(plan),
    )


def _plan(path: Path) -> str:
    return read_text(path, SuiteError, most_bytes=_MAX_PLAN_BYTES).strip()


# -- files ----------------------------------------------------------------------------------------


def _places(boundary: Boundary, task_id: str, chosen: DesktopFormat) -> list[Path]:
    """Folders in which the workbooks of a task may be, those of Spider2-V and of a cache too."""
    examples = boundary.root / "evaluation_examples" / "examples"
    folders = dict.fromkeys((chosen.folder, "excel", "libreoffice_calc"))
    return [*(examples / folder / task_id for folder in folders), boundary.root / "cache" / task_id]


def _find(name: str, boundary: Boundary, places: Sequence[Path]) -> Path | None:
    for folder in places:
        path = folder / name
        try:
            if boundary.holds(path) and stat.S_ISREG(path.stat().st_mode):
                return path
        except (OSError, ValueError):
            continue
    return None


def _inputs(
    config: Any, boundary: Boundary, places: Sequence[Path]
) -> tuple[list[InputFile], list[AbsentInput]]:
    found: list[InputFile] = []
    absent: list[AbsentInput] = []
    for step in config if isinstance(config, list) else []:
        if not isinstance(step, dict) or step.get("type") not in _COPIES:
            continue
        parameters = step.get("parameters")
        if not isinstance(parameters, dict):
            raise _FieldError("field 'config': a step has no parameters")
        files = parameters.get("files")
        if isinstance(files, list):
            targets = [
                (file.get("path"), file.get("url")) for file in files if isinstance(file, dict)
            ]
        else:
            targets = [(parameters.get("dest"), parameters.get("src"))]
        for target, source in targets:
            name = _name(target, "config")
            path = _find(name, boundary, places)
            if path is not None:
                found.append(InputFile(path))
            else:
                absent.append(AbsentInput(name, FileKind.WORKBOOK, f"fetch {str(source)[:300]}"))
    return found, absent


def _gold(expected: Any, boundary: Boundary, places: Sequence[Path]) -> Gold | str | None:
    """The gold of a metric, its name if it is not there, or None if the metric names none."""
    if not isinstance(expected, dict) or expected.get("type") not in {"local_file", "cloud_file"}:
        return None
    written, placed = (_first(expected.get(each)) for each in ("path", "dest"))
    name = _name(unquote(urlsplit(str(written)).path), "evaluator")
    names = [name] if placed is None else [name, _name(placed, "evaluator")]
    path = next((found for each in names if (found := _find(each, boundary, places))), None)
    return name if path is None else Gold(path)


def _first(written: Any) -> Any:
    """The workbook of a list of files, which comes first."""
    return written[0] if isinstance(written, list) and written else written


def _name(written: Any, field: str) -> str:
    name = PurePosixPath(str(written)).name
    if not isinstance(written, str) or name in {"", ".", ".."} or "\0" in name or "\\" in name:
        raise _FieldError(f"field {field!r}: {str(written)[:80]!r} is not a path of a file")
    return name
