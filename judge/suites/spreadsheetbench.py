"""The published formats of SpreadsheetBench, v0.1 and Verified.

A ``dataset.json`` has the records of the tasks, and each task has a folder of numbered workbooks.
Published suites do not always follow their own naming scheme: an input is called ``2_591-29_input
.xlsx``, a gold has another task's id, a pair is called ``initial.xlsx`` and ``golden.xlsx``. Such
names are understood, and recorded as notes. Reading a suite opens no workbook.
"""

from __future__ import annotations

import enum
import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

from judge.compare.cells.options import CELL_RANGE, POSITION_OPTIONS, range_spec
from judge.core.task import CheckerSpec, Task, TaskQuestion, TestCase
from judge.errors import SuiteError
from judge.files.documents import MalformedError, dump_json, parse_json, read_regular
from judge.suites.fields import Fields, shown
from judge.suites.folders import Boundary, inner_path
from judge.suites.formats import DATA_FOLDER, Contents, FileRole, SolutionPaths, SuiteFormat


class InstructionType(enum.StrEnum):
    """The two kinds of instruction, as the benchmark names them."""

    CELL_LEVEL = "Cell-Level Manipulation"
    SHEET_LEVEL = "Sheet-Level Manipulation"


KNOWN_FIELDS = frozenset(
    {
        "id",
        "instruction",
        "spreadsheet_path",
        "instruction_type",
        "answer_position",
        "answer_sheet",
        "data_position",
        "exclude",
        "style",
        "checker",
        "category",
    }
)
"""Names of the fields that are read; others are ignored, with a note."""


@dataclass(frozen=True, slots=True)
class TaskRecord:
    """A valid record of ``dataset.json``.

    Attributes:
        raw_id: the id as the file has it, an integer or text.
        instruction: the question.
        folder: the task's folder, relative to the suite, without ``..``.
        instruction_type: cell level or sheet level.
        answer_position: where the answer is expected, as written.
        answer_sheet: the sheet that the position refers to, or None.
        data_position: where the input's data is, or None.
        excluded: why the suite leaves the task out, or None.
        checker: the checker and its options.
        category: the kind of manipulation that is requested (find, sort, sum …), or None.
        unknown_fields: names of fields that the judge does not know.
    """

    raw_id: int | str
    instruction: str
    folder: PurePosixPath
    instruction_type: InstructionType
    answer_position: str
    answer_sheet: str | None
    data_position: str | None
    excluded: str | None
    checker: CheckerSpec
    category: str | None
    unknown_fields: tuple[str, ...]

    @property
    def id(self) -> str:
        """The id as text."""
        return str(self.raw_id)


def read_record(record: object) -> tuple[TaskRecord | None, tuple[str, ...]]:
    """Checks one record.

    Args:
        record: the parsed JSON value.

    Returns:
        The record, or None if it has faults; and the faults, each naming its field.
    """
    if not isinstance(record, dict):
        return None, (f"must be an object with the fields of a task, not {shown(record)}",)
    faults: list[str] = []
    fields = Fields(record, faults=faults)
    raw_id = _raw_id(fields)
    instruction = _instruction(fields)
    instruction_type = _instruction_type(fields)
    answer_position = fields.text("answer_position")
    folder = _folder(fields, raw_id)
    answer_sheet = _optional_text(fields, "answer_sheet")
    data_position = _optional_text(fields, "data_position")
    excluded = _excluded(fields)
    checker = _checker(fields)
    category = _optional_text(fields, "category")
    if faults or instruction_type is None or raw_id is None or folder is None:
        return None, tuple(faults)
    checked = TaskRecord(
        raw_id=raw_id,
        instruction=instruction,
        folder=folder,
        instruction_type=instruction_type,
        answer_position=answer_position,
        answer_sheet=answer_sheet,
        data_position=data_position,
        excluded=excluded,
        checker=checker,
        category=category,
        unknown_fields=tuple(sorted(record.keys() - KNOWN_FIELDS)),
    )
    return checked, ()


def _optional_text(fields: Fields, name: str) -> str | None:
    """Text; None if the field is missing, null or empty."""
    is_given = fields.values.get(name) not in (None, "")
    return fields.text(name, blank=True) if is_given else None


def _instruction(fields: Fields) -> str:
    """The question. It may be empty: the published suite of 912 has such a task (55457)."""
    value = fields.values.get("instruction")
    return value if isinstance(value, str) else fields.text("instruction")


def _raw_id(fields: Fields) -> int | str | None:
    value = fields.values.get("id")
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    if isinstance(value, str):
        if not value.strip():
            fields.fault("id", "is empty")
        elif "/" in value or value in {".", ".."} or "\0" in value:
            fields.fault("id", f"must not hold a slash: {value!r}")
        else:
            return value
    elif value is None:
        fields.fault("id", "is missing")
    else:
        fields.fault("id", f"must be an integer or text, not {shown(value)}")
    return None


def _instruction_type(fields: Fields) -> InstructionType | None:
    if fields.values.get("instruction_type", "") is None:
        fields.fault("instruction_type", "is null")
        return None
    text = fields.text("instruction_type")
    if not text:
        return None
    try:
        return InstructionType(text.strip())
    except ValueError:
        names = " or ".join(repr(kind.value) for kind in InstructionType)
        fields.fault("instruction_type", f"must be {names}, not {text!r}")
        return None


def _folder(fields: Fields, raw_id: int | str | None) -> PurePosixPath | None:
    text = _optional_text(fields, "spreadsheet_path")
    if text is None:
        return PurePosixPath("spreadsheet", str(raw_id))
    path = inner_path(text.replace("\\", "/"))
    if path is None:
        fields.fault("spreadsheet_path", f"leaves the suite: {text!r}")
    return path


def _excluded(fields: Fields) -> str | None:
    value = fields.values.get("exclude")
    if value is None or value is False or value == "":
        return None
    if value is True:
        return "excluded by the suite, without a reason"
    if isinstance(value, str):
        return value
    fields.fault("exclude", f"must be text or true or false, not {shown(value)}")
    return None


def _checker(fields: Fields) -> CheckerSpec:
    """Reads ``checker``, which is a name or an object with ``name`` and options, and ``style``."""
    name = CheckerSpec().name
    options: dict[str, object] = {}
    value = fields.values.get("checker")
    if isinstance(value, str) and value.strip():
        name = value
    elif isinstance(value, dict) and isinstance(value.get("name", name), str):
        name = value.get("name", name)
        options = {key: option for key, option in value.items() if key != "name"}
    elif value is not None:
        fields.fault("checker", f"must be a name or an object with a name, not {shown(value)}")
    for stated in POSITION_OPTIONS:
        if stated in options:
            fields.fault("checker", f"must not hold {stated!r}: the record has a field for it")
    style = fields.values.get("style")
    if style is not None:
        if _is_list_of(style, lambda item: isinstance(item, str) and bool(item)):
            options["style"] = tuple(style) if isinstance(style, list) else ()
        else:
            fields.fault("style", f'must be a list such as ["fill"], not {shown(style)}')
    return CheckerSpec(name=name, options=options)


def _is_list_of(value: object, accepts: Callable[[object], bool]) -> bool:
    return isinstance(value, list) and bool(value) and all(accepts(item) for item in value)


def task_of_record(record: TaskRecord, cases: tuple[TestCase, ...]) -> Task:
    """The task that a record describes, with its test cases."""
    checker = record.checker
    stated = {
        "answer_position": record.answer_position,
        "answer_sheet": record.answer_sheet,
        "data_position": record.data_position,
    }
    if checker.name == CELL_RANGE:
        checker = range_spec(record.answer_position, record.answer_sheet, checker.options)
        stated = {"data_position": record.data_position}
    return Task(
        id=record.id,
        instruction=record.instruction,
        kind=record.instruction_type.value,
        cases=cases,
        checker=checker,
        groups={} if record.category is None else {"category": record.category},
        context={name: text for name, text in stated.items() if text is not None},
        excluded=record.excluded,
        raw_id=record.raw_id,
    )


DEFINITION = "dataset.json"
"""The file with the records of the tasks."""

V0_1 = "spreadsheetbench-v0.1"
"""Name of the format with ``{n}_{id}_input.xlsx`` and ``{n}_{id}_answer.xlsx``."""

VERIFIED = "spreadsheetbench-verified"
"""Name of the format with ``1_{id}_init.xlsx`` and ``1_{id}_golden.xlsx``."""

_OUTPUT = re.compile(r"^(?P<number>\d+)_(?P<id>.+)_output\.xls[xm]$", re.IGNORECASE)
_HINT = "dataset/schema.md describes what a suite looks like"
_ROLE = {"input": FileRole.INPUT, "init": FileRole.INPUT, "output": FileRole.OUTPUT}


class SpreadsheetBench(SuiteFormat):
    """The format with a ``dataset.json``, and one folder of numbered workbooks for each task."""

    names = (V0_1, VERIFIED)
    definition = DEFINITION
    file_suffixes = (".xlsx", ".xlsm")
    output_pattern = "{n}_{id}_output.xlsx, such as 1_59196_output.xlsx"

    def recognises(self, root: Path) -> bool:
        """Whether a folder holds a ``dataset.json``."""
        return (root / DEFINITION).is_file()

    def load(self, root: Path) -> Contents:
        """Reads a suite, and determines which naming scheme most of its tasks follow."""
        reading = read_suite(root)
        verified = 2 * reading.verified > len(reading.tasks)
        return Contents(
            format=VERIFIED if verified else V0_1,
            tasks=tuple(reading.tasks),
            notes=tuple(reading.notes),
            faults=tuple(reading.faults),
        )

    def output_of(self, file_name: str) -> tuple[str, int] | None:
        """Reads ``{n}_{id}_output.xlsx``; white space in the name is ignored."""
        match = _OUTPUT.match(re.sub(r"\s+", "", file_name))
        return None if match is None else (match["id"], int(match["number"]))

    def role_of(self, file_name: str, task_id: str) -> FileRole | None:
        """Reads ``{n}_{id}_input.xlsx`` and ``{n}_{id}_init.xlsx`` as inputs."""
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
        """The text of a ``dataset.json`` with the changed records."""
        return f"{dump_json(dataset_records(root, tasks), indent=2)}\n"


FORMAT = SpreadsheetBench()


# -- which workbook is what -----------------------------------------------------------------------

_WORKBOOK = re.compile(r"\.xls[xm]$", re.IGNORECASE)
_NUMBERED = re.compile(
    r"^(?P<number>\d+)_(?P<id>.*)_(?P<role>input|initial|init|answer|golden|gold)\.xls[xm]$",
    re.IGNORECASE,
)
_BARE = re.compile(r"^(?P<role>input|initial|init|answer|golden|gold)\.xls[xm]$", re.IGNORECASE)
_NUMBER = re.compile(r"^(?P<number>\d+)_")
_NOT_A_SUITE_FILE = (".", "~$")


class Role(enum.Enum):
    """The role of a workbook in its case."""

    INPUT = "input"
    GOLD = "gold"


_ROLES = {
    "input": Role.INPUT,
    "init": Role.INPUT,
    "initial": Role.INPUT,
    "answer": Role.GOLD,
    "golden": Role.GOLD,
    "gold": Role.GOLD,
}
_VERIFIED_WORDS = frozenset({"init", "initial", "golden", "gold"})


@dataclass(frozen=True, slots=True)
class CaseFiles:
    """The two workbooks of a case, by file name.

    Attributes:
        number: the case's number, as in its file names.
        input_name: file name of the input.
        gold_name: file name of the gold.
    """

    number: int
    input_name: str
    gold_name: str


@dataclass(frozen=True, slots=True)
class Pairing:
    """The cases of a folder, as read from its file names.

    Attributes:
        cases: the cases in the order of their numbers.
        faults: why an expected case is missing; without the name of the folder.
        notes: irregular names that were understood; without the name of the folder.
        verified_names: whether the files are named as in SpreadsheetBench Verified.
    """

    cases: tuple[CaseFiles, ...]
    faults: tuple[str, ...]
    notes: tuple[str, ...]
    verified_names: bool


@dataclass(frozen=True, slots=True)
class _Candidate:
    name: str
    number: int
    task_id: str | None
    role: Role
    word: str


def pair_workbooks(names: Iterable[str], task_id: str) -> Pairing:
    """Pairs the workbooks of one task's folder.

    Args:
        names: file names in the folder; files other than workbooks (``prompt.txt``) are ignored.
        task_id: the task's id as text.
    """
    workbooks = sorted(
        name for name in names if _WORKBOOK.search(name) and not name.startswith(_NOT_A_SUITE_FILE)
    )
    candidates, oddly_named = _read_names(workbooks)
    verified = any(candidate.word in _VERIFIED_WORDS for candidate in candidates)
    by_role: dict[tuple[int, Role], list[_Candidate]] = {}
    for candidate in candidates:
        by_role.setdefault((candidate.number, candidate.role), []).append(candidate)
    numbers = sorted({number for number, _ in by_role} | set(oddly_named))
    faults: list[str] = []
    notes: list[str] = []
    cases: list[CaseFiles] = []
    for number in numbers:
        chosen: dict[Role, str] = {}
        for role in Role:
            name = _choose(by_role.get((number, role), []), number, task_id, faults, notes)
            if name is not None:
                chosen[role] = name
        case = _complete(number, chosen, oddly_named.get(number, []), notes)
        if case is None:
            faults.extend(_missing(number, task_id, chosen, by_role, verified=verified))
        else:
            cases.append(case)
    if not workbooks:
        faults.append("no test case: the folder holds no workbook")
    elif not cases and not faults:
        faults.append(f"no test case: no name fits {{n}}_{task_id}_input.xlsx")
    return Pairing(tuple(cases), tuple(faults), tuple(notes), verified)


def _read_names(workbooks: Iterable[str]) -> tuple[list[_Candidate], dict[int, list[str]]]:
    """Separates names that state case and role from names that state only the case."""
    candidates: list[_Candidate] = []
    oddly_named: dict[int, list[str]] = {}
    for name in workbooks:
        squeezed = re.sub(r"\s+", "", name)
        if match := _NUMBERED.match(squeezed):
            word = match["role"].lower()
            number = int(match["number"])
            candidates.append(_Candidate(name, number, match["id"], _ROLES[word], word))
        elif match := _BARE.match(squeezed):
            word = match["role"].lower()
            candidates.append(_Candidate(name, 1, None, _ROLES[word], word))
        elif match := _NUMBER.match(squeezed):
            oddly_named.setdefault(int(match["number"]), []).append(name)
    return candidates, oddly_named


def _choose(
    candidates: list[_Candidate], number: int, task_id: str, faults: list[str], notes: list[str]
) -> str | None:
    """Chooses the file for a case's role; a name with the task's own id takes precedence."""
    own = [candidate for candidate in candidates if candidate.task_id == task_id] or candidates
    if len(own) > 1:
        names = ", ".join(candidate.name for candidate in own)
        faults.append(f"case {number} has more than one {own[0].role.value}: {names}")
    if not own:
        return None
    chosen = own[0]
    if re.search(r"\s", chosen.name) and chosen.task_id == task_id:
        notes.append(f"{chosen.name}: there is a blank in the name")
    if chosen.task_id is not None and chosen.task_id != task_id:
        notes.append(f"{chosen.name}: taken as the {chosen.role.value}, though named for another")
    return chosen.name


def _complete(
    number: int, chosen: Mapping[Role, str], oddly_named: list[str], notes: list[str]
) -> CaseFiles | None:
    """Completes a case that lacks one file with the only other workbook that has its number."""
    names = dict(chosen)
    if len(names) == 1 and len(oddly_named) == 1:
        (gap,) = (role for role in Role if role not in names)
        names[gap] = oddly_named[0]
        notes.append(f"{oddly_named[0]}: taken as the {gap.value} of case {number}, oddly named")
    if len(names) < len(Role):
        return None
    return CaseFiles(number, names[Role.INPUT], names[Role.GOLD])


def _missing(
    number: int,
    task_id: str,
    chosen: Mapping[Role, str],
    by_role: Mapping[tuple[int, Role], list[_Candidate]],
    *,
    verified: bool,
) -> Iterable[str]:
    words = {Role.INPUT: "init", Role.GOLD: "golden"}
    if not verified:
        words = {Role.INPUT: "input", Role.GOLD: "answer"}
    for role in Role:
        if role not in chosen and not by_role.get((number, role)):
            yield f"case {number} has no {role.value} ({number}_{task_id}_{words[role]}.xlsx)"


# -- reading --------------------------------------------------------------------------------------


@dataclass
class Reading:
    """The contents of a suite.

    Attributes:
        tasks: the tasks that could be read.
        faults: what is wrong, with the file.
        notes: irregularities that were tolerated, with the file.
        verified: how many of the tasks have files named as in SpreadsheetBench Verified.
    """

    tasks: list[Task] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    verified: int = 0


def read_suite(root: Path) -> Reading:
    """Reads the ``dataset.json`` of a folder, and pairs the workbooks of each task.

    Raises:
        SuiteError: the ``dataset.json`` cannot be read at all.
    """
    records = read_records(root / DEFINITION)
    reading = Reading()
    seen: dict[str, int] = {}
    boundary = Boundary(root)
    for index, raw in enumerate(records):
        record, faults = read_record(raw)
        label = _label(index, raw)
        reading.faults.extend(f"{label}: {fault}" for fault in faults)
        task_id = record.id if record is not None else _id_of(raw)
        if task_id is not None and task_id in seen:
            reading.faults.append(f"{label}: the id is already used by record {seen[task_id]}")
        elif task_id is not None:
            seen[task_id] = index
        if record is None:
            continue
        if record.unknown_fields:
            names = ", ".join(record.unknown_fields)
            reading.notes.append(f"{label}: unknown fields are ignored: {names}")
        task, pairing = _read_task(record, boundary, label, reading)
        if task is not None and pairing is not None:
            reading.tasks.append(task)
            reading.verified += pairing.verified_names
    return reading


def read_records(path: Path) -> list[object]:
    """The raw records of a ``dataset.json``; at least one.

    Raises:
        SuiteError: it cannot be read, or is not a list.
    """
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
    return SuiteError(f"{path} {problem}", faults=(f"{DEFINITION} {problem}",), hint=_HINT)


def _id_of(raw: object) -> str | None:
    if isinstance(raw, dict) and isinstance(raw.get("id"), int | str):
        return str(raw["id"])
    return None


def _label(index: int, raw: object) -> str:
    task_id = _id_of(raw)
    where = f"{DEFINITION}, record {index}"
    return where if task_id is None else f"{where} (id {task_id})"


def _read_task(
    record: TaskRecord, boundary: Boundary, label: str, reading: Reading
) -> tuple[Task | None, Pairing | None]:
    """Lists a task's folder and pairs its workbooks."""
    folder = boundary.root / record.folder
    if not boundary.holds(folder):
        reading.faults.append(f"{label}: {record.folder} is a link that leaves the suite")
        return None, None
    try:
        with os.scandir(folder) as entries:
            names = [
                entry.name
                for entry in entries
                if entry.is_file() and _stays_inside(entry, boundary, record, reading)
            ]
    except FileNotFoundError:
        reading.faults.append(f"{label}: there is no folder {record.folder}")
        return None, None
    except OSError as error:
        reading.faults.append(f"{label}: {record.folder} cannot be listed: {error.strerror}")
        return None, None
    pairing = pair_workbooks(names, record.id)
    reading.faults.extend(f"{record.folder}/: {fault}" for fault in pairing.faults)
    reading.notes.extend(f"{record.folder}/{note}" for note in pairing.notes)
    if pairing.faults:
        return None, None
    cases = tuple(
        TestCase.of_workbooks(case.number, folder / case.input_name, folder / case.gold_name)
        for case in pairing.cases
    )
    return task_of_record(record, cases), pairing


def _stays_inside(
    entry: os.DirEntry[str], boundary: Boundary, record: TaskRecord, reading: Reading
) -> bool:
    """Whether a file is in the suite; a link must not lead out of it."""
    if not entry.is_symlink() or boundary.holds(Path(entry.path)):
        return True
    reading.faults.append(f"{record.folder}/{entry.name}: a link that leaves the suite")
    return False


# -- writing --------------------------------------------------------------------------------------


def dataset_records(root: Path, tasks: Iterable[Task]) -> list[dict[str, Any]]:
    """The records of some tasks, updated with their current positions, styles and options.

    Args:
        root: the folder of the suite that the tasks are from.
        tasks: the tasks; only their checkers may differ from the suite's.

    Raises:
        SuiteError: the ``dataset.json`` cannot be read.
    """
    records = {
        str(raw["id"]): raw
        for raw in read_records(root / DEFINITION)
        if isinstance(raw, dict) and "id" in raw
    }
    return [_record(records[task.id], task) for task in tasks]


def _record(raw: dict[str, Any], task: Task) -> dict[str, Any]:
    record, options = dict(raw), dict(task.checker.options)
    if task.checker.name == CELL_RANGE:
        for name in POSITION_OPTIONS:
            if (value := options.pop(name, None)) is not None:
                record[name] = value
    if style := options.pop("style", None):
        record["style"] = style
    if options or "checker" in record:
        record["checker"] = {"name": task.checker.name, **options}
    return record
