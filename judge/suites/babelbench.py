"""The published format of BabelBench: questions over pictures and tables, with typed answers."""

from __future__ import annotations

import csv
import functools
import io
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from judge.compare.registry import check_options
from judge.core.replies.relaxed import NotLiteralError, read_literal
from judge.core.score import ScoreColumn, ScoreTable
from judge.core.submission import AnswerForm
from judge.core.task import (
    AbsentInput,
    CheckerSpec,
    FileKind,
    Gold,
    InputFile,
    Task,
    TaskQuestion,
    TestCase,
)
from judge.errors import SuiteError, UsageError
from judge.files.documents import MIB, MalformedError, as_object, parse_json, read_text
from judge.files.media import HEAD_BYTES, ZIP_MAGIC, image_type
from judge.suites.fields import FieldError
from judge.suites.folders import Boundary, is_plain_name
from judge.suites.formats import DATA_FOLDER, Contents, SolutionPaths, SuiteFormat
from judge.suites.suite import data_folder

DEFINITION = "benchmark.csv"
NAME = "babelbench"
COLUMNS = ("tag", "prompt", "imgs", "attachments", "prompt_type", "eval_info", "difficulty")
"""The columns that are read. The columns with the URLs of the files are not, because a URL often
names what the picture shows and so gives the answer away."""


PAPER_TABLE = ScoreTable(
    "Table 4 of the paper",
    (
        ScoreColumn("Total"),
        ScoreColumn("yes", "image", "yes", "Image"),
        ScoreColumn("no", "image", "no", "Image"),
        ScoreColumn("yes", "table", "yes", "Table"),
        ScoreColumn("no", "table", "no", "Table"),
        ScoreColumn("Both", "image_and_table", "yes"),
        ScoreColumn("Easy", "paper_difficulty", "Easy", "Difficulty"),
        ScoreColumn("OK", "paper_difficulty", "OK", "Difficulty"),
        ScoreColumn("Hard", "paper_difficulty", "Hard", "Difficulty"),
    ),
)
"""The columns, from left to right, have 247, 236, 11, 132, 115, 121, 59, 103 and 85 questions."""

_MAX_HEADER_BYTES = 4096


class BabelBench(SuiteFormat):
    """The format with a ``benchmark.csv`` next to ``000-csvs`` and ``000-imgs``."""

    names: tuple[str, ...] = (NAME,)
    definition = DEFINITION
    file_suffixes = (".csv", ".xlsx", ".png")

    def recognises(self, root: Path) -> bool:
        """Whether there is a ``benchmark.csv`` with the published columns."""
        try:
            with (root / DEFINITION).open("rb") as file:
                head = file.readline(_MAX_HEADER_BYTES)
        except OSError:
            return False
        names = head.decode("utf-8-sig", "replace").strip().split(",")
        return set(COLUMNS) <= set(names)

    def load(self, root: Path) -> Contents:
        """Reads a suite; each case names its missing files."""
        tasks, faults = read_suite(root)
        return Contents(format=NAME, tasks=tasks, faults=faults, tables=(PAPER_TABLE,))

    def alias_of(self, record: Mapping[str, object]) -> str | None:
        """The published key: the question and the pictures, by which result files name a task."""
        prompt, images = record.get("prompt"), record.get("imgs")
        if not isinstance(prompt, str) or not isinstance(images, str | list):
            return None
        return alias(prompt, str(images))

    def default_paths(self, question: TaskQuestion, folder: str = DATA_FOLDER) -> SolutionPaths:
        """The paths for a program: its input is the first file, under the file's own name."""
        files = question.inputs[0].files if question.inputs else ()
        name = files[0].path.name if files else "input"
        return SolutionPaths(f"{folder}/{name}", f"{folder}/answer.json")


FORMAT = BabelBench()


def alias(prompt: str, images: str) -> str:
    """The published key of a question; the kind of line ends does not matter."""
    return f"{prompt}_{images}".replace("\r\n", "\n")


SOURCE = "github.com/FFD8FFE/babelbench at commit 3204319"
CHECKSUMS = "babelbench-files.txt"
"""A file of ``dataset/`` with lines ``SHA-1  path``; the SHA-1 is the hash of the git blob."""

_LINE = re.compile(r"(?P<blob>[0-9a-f]{40})  (?P<path>[^\n]+)")


def blob_of(path: str) -> str | None:
    """The git blob hash of a published file; None if it is not on the list.

    Args:
        path: the file, relative to the folder ``data``.
    """
    return _blobs().get(path)


@functools.cache
def _blobs() -> dict[str, str]:
    text = read_text(data_folder() / CHECKSUMS, SuiteError)
    matches = (_LINE.fullmatch(line) for line in text.splitlines())
    return {match["path"]: match["blob"] for match in matches if match is not None}


TABLES, IMAGES = "000-csvs", "000-imgs"
_MAX_RECORDS = 100_000
_MAX_FILES = 50

_RULES: Mapping[tuple[str, str], tuple[str, str]] = {
    ("int", "exact"): ("int", "exact"),
    ("float", "exact"): ("float", "exact"),
    ("bool", "exact"): ("bool", "exact"),
    ("str", "exact"): ("text", "exact"),
    ("str", "fuzzy"): ("text", "fuzzy"),
    ("str", "either_ok"): ("text", "one_of"),
    ("str", "execution_exp"): ("expression", "exact"),
    **{
        (kind, method): ("list", match)
        for kind in ("list", "list_of_int", "list_of_str", "list_of_list", "np.ndarray")
        for method, match in (
            ("exact", "exact"),
            ("list_of_list", "exact"),
            ("disordered_match", "any_order"),
        )
    },
}
"""Published ``answer_type`` and ``eval_method`` -> type and match of a variable's rule."""


def read_suite(root: Path) -> tuple[tuple[Task, ...], tuple[str, ...]]:
    """Reads the tasks of a suite.

    Args:
        root: the folder with the ``benchmark.csv``.

    Returns:
        The tasks without faults; and all faults, each with its record and field. A missing file is
        not a fault: answers are graded without it.

    Raises:
        SuiteError: the ``benchmark.csv`` cannot be read as a table with the published columns.
    """
    boundary = Boundary(root)
    tasks, faults = [], []
    for number, record in enumerate(_records(root / DEFINITION)):
        try:
            tasks.append(_task(number, record, boundary))
        except FieldError as error:
            faults.append(f"{DEFINITION}, record {number}: {error}")
    return tuple(tasks), tuple(faults)


def _records(path: Path) -> Iterator[Mapping[str, str]]:
    text = read_text(path, SuiteError, max_bytes=64 * MIB)
    reader = csv.DictReader(io.StringIO(text, newline=""))
    try:
        names = reader.fieldnames or []
        missing = [name for name in COLUMNS if name not in names]
        if missing:
            raise SuiteError(f"{path}: the columns {', '.join(missing)} are missing")
        for number, record in enumerate(reader):
            if number >= _MAX_RECORDS:
                raise SuiteError(f"{path}: has more than {_MAX_RECORDS:,} records")
            yield {name: record.get(name) or "" for name in COLUMNS}
    except csv.Error as error:
        raise SuiteError(f"{path}: cannot be read as CSV: {error}") from error


def _task(number: int, record: Mapping[str, str], boundary: Boundary) -> Task:
    images, tables = _names(record, "imgs"), _names(record, "attachments")
    variables, values = _expected(record["eval_info"])
    spec = CheckerSpec("typed_answer", {"variables": variables})
    try:
        check_options(spec)
    except UsageError as error:
        raise FieldError(f"field 'eval_info': {error.message}") from error
    inputs: list[InputFile] = []
    absent: list[AbsentInput] = []
    for folder, names in ((TABLES, tables), (IMAGES, images)):
        for name in names:
            file = _file(boundary, folder, name)
            (inputs if isinstance(file, InputFile) else absent).append(file)  # type: ignore[arg-type]
    case = TestCase(1, tuple(inputs), (Gold(value=values),), tuple(absent))
    return Task(
        id=str(number),
        instruction=record["prompt"],
        kind=record["tag"],
        cases=(case,),
        checker=spec,
        answer=AnswerForm.TEXT,
        groups=_groups(record, has_image=bool(images), has_table=bool(tables)),
        raw_id=number,
        aliases=(alias(record["prompt"], record["imgs"]),),
    )


def _groups(record: Mapping[str, str], *, has_image: bool, has_table: bool) -> dict[str, str]:
    """The groups of a task, from the paper's table and from the published columns."""
    difficulty = record["difficulty"]
    return {
        "tag": record["tag"],
        "difficulty": difficulty,
        # The paper counts three questions that are "Extreme Hard" among the hard ones.
        "paper_difficulty": "Hard" if difficulty == "Extreme Hard" else difficulty,
        "image": "yes" if has_image else "no",
        "table": "yes" if has_table else "no",
        "image_and_table": "yes" if has_image and has_table else "no",
        # The published column mixes upper and lower case.
        "prompt_type": record["prompt_type"].capitalize(),
    }


def _names(record: Mapping[str, str], field: str) -> list[str]:
    """The names of files in a field, which holds a Python list as a string."""
    text = record[field].strip()
    try:
        names, end = read_literal(text)
    except NotLiteralError:
        names, end = None, 0
    if end != len(text) or not isinstance(names, list) or len(names) > _MAX_FILES:
        raise FieldError(f"field {field!r} must be a list of file names, not {text[:80]!r}")
    for name in names:
        if not isinstance(name, str) or not is_plain_name(name):
            raise FieldError(f"field {field!r}: {str(name)[:80]!r} is not a plain file name")
    return names


def _expected(text: str) -> tuple[dict[str, object], dict[str, object]]:
    """The rules by which the variables are compared, and their correct values."""
    try:
        document = as_object(parse_json(text))
    except MalformedError as error:
        raise FieldError(f"field 'eval_info' is {error}") from error
    variables: dict[str, object] = {}
    values: dict[str, object] = {}
    for name, info in document.items():
        if not isinstance(info, dict) or "gt_answer" not in info:
            raise FieldError(f"field 'eval_info': {name!r} has no gt_answer")
        published = (str(info.get("answer_type")), str(info.get("eval_method", "exact")))
        if published not in _RULES:
            raise FieldError(
                f"field 'eval_info': {name!r} has answer_type {published[0]!r} with eval_method "
                f"{published[1]!r}, which is not known"
            )
        kind, match = _RULES[published]
        rule: dict[str, object] = {"type": kind, "match": match}
        if info.get("tolerance") is not None:
            rule["tolerance"] = info["tolerance"]
        variables[name], values[name] = rule, info["gt_answer"]
    return variables, values


def _file(boundary: Boundary, folder: str, name: str) -> InputFile | AbsentInput:
    kind = FileKind.IMAGE if folder == IMAGES else FileKind.TABLE
    path = boundary.root / folder / name
    try:
        head = _head(path) if boundary.has_file(path) else None
    except OSError:
        head = None
    if head is None:
        return AbsentInput(f"{folder}/{name}", kind, _advice(folder, name))
    if kind is FileKind.IMAGE:
        return InputFile(path, kind, image_type(head))
    return InputFile(path, FileKind.WORKBOOK if head.startswith(ZIP_MAGIC) else kind)


def _head(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(HEAD_BYTES)


def _advice(folder: str, name: str) -> str:
    """Advice on how to fetch a missing file."""
    blob = blob_of(f"{folder}/{name}")
    checksum = f"git blob {blob}" if blob else "its checksum is not known to the judge"
    return f"fetch data/{folder}/{name} of {SOURCE} ({checksum})"
