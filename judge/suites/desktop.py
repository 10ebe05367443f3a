"""The published formats of Spider2-V and OSWorld, for their tasks about workbooks.

Each task is a JSON file. Its field ``evaluator`` decides which checker judges the task. A task that
cannot be decided from a finished file is left out, with the reason.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePath, PurePosixPath, PureWindowsPath
from typing import Any
from urllib.parse import unquote, urlsplit

from judge.compare.files.options import INFEASIBLE, METRIC_NAMES, WORKBOOK, expects_signal
from judge.compare.files.options import NAME as METRICS
from judge.compare.registry import check_options
from judge.compare.rules.options import NAME as RULES
from judge.core.score import ScoreColumn, ScoreTable
from judge.core.submission import AnswerForm
from judge.core.task import (
    LEFT_OUT_OPTION,
    AbsentInput,
    CheckerSpec,
    FileKind,
    Gold,
    InputFile,
    Phrasing,
    Task,
    TaskQuestion,
    TestCase,
)
from judge.errors import SuiteError, UsageError
from judge.files.documents import MIB, read_json, read_text
from judge.suites.fields import FieldError, Fields
from judge.suites.folders import Boundary
from judge.suites.formats import (
    DATA_FOLDER,
    Contents,
    SolutionPaths,
    SuiteFormat,
)

EXAMPLES = "evaluation_examples/examples"
SUFFIXES = (
    ".xlsx",
    ".csv",
    ".pdf",
    ".json",
    ".yaml",
    ".yml",
    ".txt",
    ".ipynb",
    ".sqlite",
    ".db",
)
"""Suffixes of the files that a task may ask for; most tasks ask for the first."""

_OUTPUT = re.compile(
    rf"(?:(?P<number>\d{{1,6}})_)?(?P<id>[0-9A-Za-z-]{{1,80}})_output"
    rf"(?:{'|'.join(map(re.escape, SUFFIXES))})"
)
REQUESTED_FILE = "file"
"""Name of the task detail that names the requested file, if that is not a workbook."""

DESKTOP_FOLDER = "folder"
"""Name of the task detail that says in which folder, below the home folder, the task is done.

On a desktop, the task's files are placed in this folder, and afterwards the whole folder is
collected.
"""

_TITLE = "Success by difficulty, feasibility and instruction"
_COLUMNS = (
    ScoreColumn("Overall"),
    ScoreColumn("Easy", "actions", "easy", "Actions"),
    ScoreColumn("Medium", "actions", "medium", "Actions"),
    ScoreColumn("Hard", "actions", "hard", "Actions"),
    ScoreColumn("Infeasible", "feasible", "no"),
    ScoreColumn("Feasible", "feasible", "yes"),
    ScoreColumn("Abstract", "instruction", "abstract", "Instruction"),
    ScoreColumn("Verbose", "instruction", "verbose", "Instruction"),
)
"""The columns of Table 4 of the Spider2-V paper and of Table 15 of the OSWorld paper."""


class DesktopFormat(SuiteFormat):
    """The format of a folder with ``evaluation_examples``, as in the published repository.

    Args:
        name: the name of the format, and of the evaluator that its rules were written for.
        folder: the tasks' folder, below ``examples``.
        before: the tasks' folder of another format; a suite that has this folder too is read in
            that format.
        examples: the folder that holds the folders of tasks.
    """

    file_suffixes = SUFFIXES
    output_pattern = "{id}_output.xlsx"

    def __init__(
        self, name: str, folder: str, before: str | None = None, *, examples: str = EXAMPLES
    ) -> None:
        self.name = name
        self.folder = folder
        self.names = (name,)
        self.examples = examples
        self.definition = f"{examples}/{folder}"
        self._before = before

    def recognises(self, root: Path) -> bool:
        """Whether a folder has tasks of this format, but none of a format that precedes it."""
        other = self._before is not None and (root / self.examples / self._before).is_dir()
        return (root / self.definition).is_dir() and not other

    def load(self, root: Path) -> Contents:
        """Reads a suite; tasks that cannot be judged without a desktop give the reason."""
        tasks, faults = read_suite(root, self)
        present = {group for task in tasks for group in task.groups.items()}
        columns = [
            column
            for column in _COLUMNS
            if not column.division or (column.division, column.group) in present
        ]
        tables = (ScoreTable(_TITLE, tuple(columns)),) if len(columns) > 1 else ()
        return Contents(self.name, tasks, self._notes(root), faults, tables)

    def _notes(self, root: Path) -> tuple[str, ...]:
        """A note if the folder also holds tasks of the other format; says how to judge them."""
        other = "" if self._before is not None else SPIDER2V.definition
        if not other or not (root / other).is_dir():
            return ()
        count = sum(1 for _ in task_files(root / other))
        if not count:
            return ()  # workbooks that OSWorld's tasks name, without tasks of Spider2-V
        reason = f"its {count:,} tasks of the format {SPIDER2V.name} are not part of this suite"
        return (f"{other}: {reason}; name that folder to judge them: {root / other}",)

    def output_of(self, file_name: str) -> tuple[str, int] | None:
        """Reads ``{id}_output.xlsx``, with any suffix; ``1_``, the case number, may precede it."""
        match = _OUTPUT.fullmatch(file_name)
        return None if match is None else (match["id"], int(match["number"] or 1))

    def default_paths(self, question: TaskQuestion, folder: str = DATA_FOLDER) -> SolutionPaths:
        """The paths of a program: the workbook keeps its name, and the output is next to it."""
        files = question.inputs[0].files if question.inputs else ()
        name = PurePath(files[0].path.name if files else "input.xlsx")
        suffix = PurePath(question.details.get(REQUESTED_FILE, "output.xlsx")).suffix
        return SolutionPaths(f"{folder}/{name}", f"{folder}/{name.stem}_output{suffix}")


SPIDER2V = DesktopFormat("spider2v", "excel", before="libreoffice_calc")
OSWORLD = DesktopFormat("osworld", "libreoffice_calc")
"""OSWorld's format; its tasks also use the workbooks of Spider2-V in the same folder."""


# -- the field evaluator --------------------------------------------------------------------------

FindGold = Callable[[Any], Gold | str | None]
"""Makes a gold from a metric's field ``expected``.

Returns the name if the file is missing, and None if the field names no file.
"""


@dataclass(frozen=True, slots=True)
class Evaluation:
    """How the answer to a task is judged.

    Attributes:
        spec: the checker.
        answer: the form of answer that the task expects.
        golds: the golds that exist.
        missing: names of the missing golds.
        reason: why a finished file does not decide the task; None if it does.
        context: details to add to the task.
    """

    spec: CheckerSpec
    answer: AnswerForm = AnswerForm.WORKBOOK
    golds: tuple[Gold, ...] = ()
    missing: tuple[str, ...] = ()
    reason: str | None = None
    context: Mapping[str, str] = field(default_factory=dict)


def read_evaluation(evaluator: Mapping[str, Any], name: str, find: FindGold) -> Evaluation:
    """Reads the field ``evaluator`` of a task.

    Args:
        evaluator: the field.
        name: the evaluator that the task was written for.
        find: finds golds.
    """
    function = evaluator.get("func")
    if function == WORKBOOK:
        return _of_rules(evaluator, name, find)
    if function == INFEASIBLE:
        spec = CheckerSpec(METRICS, {"metrics": [{"func": INFEASIBLE}], "evaluator": name})
        return Evaluation(spec, AnswerForm.TEXT, (Gold(value="FAIL"),))
    return _of_metrics(evaluator, name, find)


def _of_rules(evaluator: Mapping[str, Any], name: str, find: FindGold) -> Evaluation:
    options = evaluator.get("options")
    rules = options.get("rules", []) if isinstance(options, dict) else []
    spec = CheckerSpec(RULES, {"rules": rules, "evaluator": name})
    expected = evaluator.get("expected")
    reason = _gold_elsewhere(expected)
    gold = find(expected)
    golds = (gold,) if isinstance(gold, Gold) else ()
    missing = (gold,) if isinstance(gold, str) else ()
    return Evaluation(spec, golds=golds, missing=missing, reason=reason)


def _gold_elsewhere(expected: Any) -> str | None:
    if isinstance(expected, dict) and expected.get("type") in {"vm_file", "vm_script_output"}:
        return "the gold is a file of the desktop"
    return None


def _listed(evaluator: Mapping[str, Any], name: str, count: int) -> list[Any]:
    """The value of a field for each metric; a single value belongs to the first metric."""
    value = evaluator.get(name)
    values = value if isinstance(value, list) else [value]
    return [*values, *[None] * count][:count]


def _of_metrics(evaluator: Mapping[str, Any], name: str, find: FindGold) -> Evaluation:
    function = evaluator.get("func")
    functions = function if isinstance(function, list) else [function]
    count = len(functions)
    fields = (
        _listed(evaluator, name_of_field, count)
        for name_of_field in ("result", "expected", "options")
    )
    metrics: list[dict[str, Any]] = []
    golds: dict[str, Gold] = {}
    missing, reasons = [], []
    for func, result, expected, options in zip(functions, *fields, strict=True):
        reason = _reason(func, result, expected)
        if reason is not None:
            reasons.append(reason)
            continue
        call: dict[str, Any] = {"func": func, "result": _file_of(result)}
        gold = find(expected)
        if isinstance(gold, Gold):
            golds[gold.name] = gold
            call["gold"] = gold.name
        elif gold is not None:
            missing.append(gold)
            call["gold"] = gold
        elif isinstance(expected, dict) and expected.get("type") == "rule":
            call["expected"] = expected.get("rules")
        if isinstance(options, dict) and options:
            call["options"] = options
        metrics.append(call)
    files = {metric["result"] for metric in metrics}
    if not reasons and len(files) > 1:
        reasons.append(f"the evaluator reads {len(files)} files: {', '.join(sorted(files))}")
    if reasons:
        return Evaluation(CheckerSpec("unjudged"), reason="; ".join(dict.fromkeys(reasons)))
    (file,) = files
    conj = evaluator.get("conj", "and")
    spec = CheckerSpec(METRICS, {"metrics": metrics, "conj": conj, "evaluator": name})
    is_workbook = file.endswith(SUFFIXES[0])
    return Evaluation(
        spec,
        AnswerForm.WORKBOOK if is_workbook else AnswerForm.FILES,
        tuple(golds.values()),
        tuple(missing),
        context={} if is_workbook else {REQUESTED_FILE: file},
    )


def _reason(func: Any, result: Any, expected: Any) -> str | None:
    """Why a metric cannot be judged here; None if it can."""
    if func not in METRIC_NAMES or func == INFEASIBLE:
        return f"the evaluator {func} needs the desktop, or is unknown to the judge"
    kind = result.get("type") if isinstance(result, dict) else None
    if kind not in {"vm_file", "local_file"}:
        return f"the evaluator {func} reads {kind}, which only the desktop has"
    if not _file_of(result).lower().endswith(SUFFIXES):
        return f"the evaluator {func} reads {_file_of(result)!r}, which is not a known kind of file"
    return _gold_elsewhere(expected)


def _file_of(result: Mapping[str, Any]) -> str:
    """The name of the file that is retrieved from the desktop."""
    path = result.get("path")
    first = path[0] if isinstance(path, list) and path else path
    return _last(str(first))


_WINDOWS = re.compile(r"[A-Za-z]:\\")


def _last(path: str) -> str:
    """The last name of a path, which may be a Windows path."""
    return (PureWindowsPath(path) if _WINDOWS.match(path) else PurePosixPath(path)).name


# -- tasks ----------------------------------------------------------------------------------------

_MAX_TASKS = 10_000
_COPIES = {"download", "copyfile_from_host_to_guest"}
_PLAN_FILE = "verbose_instruction.txt"
_PHRASINGS = ("abstract", "verbose")
_DIFFICULTIES = ((5, "easy"), (15, "medium"))
"""Largest number of actions -> difficulty in the Spider2-V paper; tasks with more actions are
hard."""
_MAX_PLAN_BYTES = MIB


def read_suite(root: Path, chosen: DesktopFormat) -> tuple[tuple[Task, ...], tuple[str, ...]]:
    """Reads the tasks of a suite.

    Args:
        root: the folder with ``evaluation_examples``.
        chosen: the format of the suite.

    Returns:
        The tasks; and all faults, each with its file and field. A task that cannot be decided from
        a file, or whose workbooks are missing, is left out with the reason.

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
        except FieldError as error:
            faults.append(f"{name}: {error}")
    seen: set[str] = set()
    for task in tasks:
        if task.id in seen:
            faults.append(f"{chosen.definition}: the id {task.id} is used twice")
        seen.add(task.id)
    return _grouped_by_feasibility(_with_pairs(tasks, counterparts)), tuple(faults)


def _with_pairs(tasks: Sequence[Task], counterparts: Mapping[str, object]) -> tuple[Task, ...]:
    """The tasks; two phrasings of the same task both refer to the id of the first."""
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


def _grouped_by_feasibility(tasks: Sequence[Task]) -> tuple[Task, ...]:
    """The tasks, grouped into feasible and infeasible; unchanged if all are feasible."""
    feasible = [task.answer is not AnswerForm.TEXT for task in tasks]
    if all(feasible):
        return tuple(tasks)
    return tuple(
        replace(task, groups={**task.groups, "feasible": "yes" if can else "no"})
        for task, can in zip(tasks, feasible, strict=True)
    )


def _difficulty(actions: object) -> str | None:
    """The difficulty of a task by its number of actions; None if its authors give no number."""
    if not isinstance(actions, int) or isinstance(actions, bool) or actions < 0:
        return None
    return next((name for most, name in _DIFFICULTIES if actions <= most), "hard")


def task_files(folder: Path) -> Iterator[Path]:
    """The JSON files of tasks: in the folder itself, or each in a folder named after its task.

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
        raise FieldError("must hold an object")
    fields = Fields(record)
    task_id = record.get("id")
    if not isinstance(task_id, str) or task_id != PurePosixPath(task_id).name or not task_id:
        raise fields.error("id", "must be a plain name")
    instruction = fields.text("instruction", blank=True)
    evaluator = record.get("evaluator")
    if not isinstance(evaluator, dict):
        raise fields.error("evaluator", "must be an object")
    folders = _folders_of(boundary, task_id, chosen)
    inputs, absent = _inputs(record.get("config"), boundary, folders)
    evaluation = read_evaluation(
        evaluator, chosen.name, lambda expected: _gold(expected, boundary, folders)
    )
    reason = evaluation.reason
    missing = [file.name for file in absent] + list(evaluation.missing)
    if reason is None and missing:
        reason = f"these files are missing: {', '.join(missing)}"
        if evaluation.answer is AnswerForm.TEXT:
            reason = f"infeasible, so that the answer FAIL is right; {reason}"
    spec = evaluation.spec
    if reason is not None:
        spec = spec.with_options({LEFT_OUT_OPTION: reason})
    try:
        check_options(spec)
    except UsageError as error:
        raise FieldError(f"field 'evaluator': {error.message}") from error
    tags = record.get("tags")
    levels = [phrasing for phrasing in _PHRASINGS if isinstance(tags, list) and phrasing in tags]
    groups = {"instruction": levels[0]} if levels else {}
    if (difficulty := _difficulty(record.get("action_number"))) is not None:
        groups["actions"] = difficulty
    plan = _find(_PLAN_FILE, boundary, folders)
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
        signals=spec.name == METRICS and expects_signal(spec.options),
        phrasing=Phrasing(levels[0], task_id) if levels else None,
        plan="" if plan is None else _plan(plan),
    )


def _plan(path: Path) -> str:
    return read_text(path, SuiteError, max_bytes=_MAX_PLAN_BYTES).strip()


# -- files ----------------------------------------------------------------------------------------


def _folders_of(boundary: Boundary, task_id: str, chosen: DesktopFormat) -> list[Path]:
    """The folders that may hold a task's workbooks, among them Spider2-V's folder and the cache."""
    examples = boundary.root / chosen.examples
    folders = dict.fromkeys((chosen.folder, "excel", "libreoffice_calc"))
    return [*(examples / folder / task_id for folder in folders), boundary.root / "cache" / task_id]


def _find(name: str, boundary: Boundary, folders: Sequence[Path]) -> Path | None:
    for folder in folders:
        if boundary.has_file(folder / name):
            return folder / name
    return None


def _inputs(
    config: Any, boundary: Boundary, folders: Sequence[Path]
) -> tuple[list[InputFile], list[AbsentInput]]:
    inputs: list[InputFile] = []
    absent: list[AbsentInput] = []
    for step in config if isinstance(config, list) else []:
        if not isinstance(step, dict) or step.get("type") not in _COPIES:
            continue
        parameters = step.get("parameters")
        if not isinstance(parameters, dict):
            raise FieldError("field 'config': a step has no parameters")
        files = parameters.get("files")
        if isinstance(files, list):
            targets = [
                (file.get("path"), file.get("url")) for file in files if isinstance(file, dict)
            ]
        else:
            targets = [(parameters.get("dest"), parameters.get("src"))]
        for target, source in targets:
            name = _name(target, "config")
            path = _find(name, boundary, folders)
            if path is not None:
                inputs.append(InputFile(path))
            else:
                absent.append(AbsentInput(name, FileKind.WORKBOOK, f"fetch {str(source)[:300]}"))
    return inputs, absent


def _gold(expected: Any, boundary: Boundary, folders: Sequence[Path]) -> Gold | str | None:
    """The gold of a metric; its name if the file is missing, None if the metric names no file."""
    if not isinstance(expected, dict) or expected.get("type") not in {"local_file", "cloud_file"}:
        return None
    written, placed = (_first(expected.get(key)) for key in ("path", "dest"))
    name = _name(unquote(urlsplit(str(written)).path), "evaluator")
    names = [name] if placed is None else [name, _name(placed, "evaluator")]
    path = next((file for name in names if (file := _find(name, boundary, folders))), None)
    return name if path is None else Gold(path)


def _first(written: Any) -> Any:
    """The workbook of a list of files: the first file."""
    return written[0] if isinstance(written, list) and written else written


def _name(written: Any, field: str) -> str:
    name = _last(str(written))
    if not isinstance(written, str) or name in {"", ".", ".."} or "\0" in name or "\\" in name:
        raise FieldError(f"field {field!r}: {str(written)[:80]!r} is not a path of a file")
    return name
