"""What a submission holds: its body is read onto the disk with bounds, and checked by the suite.

JSON lines and programs become one file of solutions; archives of workbooks are unpacked beside it.
All readers are the library's own. What the messages say has no path of the server in it.
"""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import zipfile
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from judge.errors import JudgeError, StoreError, SubmissionError
from judge.files.json_lines import read_placed_json_lines
from judge.files.writing import folder_beside, naming_what_is_written, sync_folder
from judge.serve.problems import Problem
from judge.serve.store.folder import DataFolder, ReceivedBody, StoredBody
from judge.serve.store.words import Kind
from judge.suites.archive import ZipRefusedError, extract_zip
from judge.suites.outputs import find_outputs
from judge.suites.submissions import iterate_submissions
from judge.suites.suite import Suite

MAX_LINES_BYTES = 64 << 20
MAX_LINE_BYTES = 1 << 20
MAX_LINES = 10_000
MAX_PROGRAM_BYTES = 1 << 20
MAX_ARCHIVE_BYTES = 512 << 20
MAX_UNPACKED_BYTES = 2 << 30
MAX_MEMBERS = 20_000
_NESTED = (".zip", ".gz", ".bz2", ".xz", ".7z", ".rar", ".tar", ".tgz")
_SHOWN = 2_000
_MOST_ERRORS = 20

LINES = "application/x-ndjson"
PROGRAM = "text/x-python"
ARCHIVE = "application/zip"
LIMITS = {LINES: MAX_LINES_BYTES, PROGRAM: MAX_PROGRAM_BYTES, ARCHIVE: MAX_ARCHIVE_BYTES}
"""The content types of bodies, and how many bytes each may have."""


@dataclass(frozen=True, slots=True)
class Checked:
    """A body that can be judged.

    Attributes:
        kind: what it holds.
        body: where it is kept.
        cases: how many cases there are to judge.
        samples: how many answers of a task there are at most.
    """

    kind: Kind
    body: StoredBody
    cases: int
    samples: int


def take_in(
    folder: DataFolder,
    received: ReceivedBody,
    content_type: str,
    suite: Suite,
    tasks: Collection[str],
    task: str | None,
) -> Checked:
    """Checks a body that has arrived, and keeps it.

    Args:
        folder: the data folder.
        received: the body.
        content_type: one of :data:`LIMITS`.
        suite: which it answers.
        tasks: ids of the tasks that may be answered.
        task: which a single program answers.

    Raises:
        Problem: 422, it cannot be judged; the errors say in which line.
        StoreError: it cannot be kept.
    """
    received.flush()
    if content_type == ARCHIVE:
        return _archive(folder, received, suite, tasks)
    if content_type == PROGRAM:
        line = _line_of_program(received.path.read_bytes(), suite, tasks, task)
        with folder.receiving() as lines:
            lines.write(line)
            lines.flush()
            return _lines(lines, suite, tasks)
    return _lines(received, suite, tasks)


def _lines(received: ReceivedBody, suite: Suite, tasks: Collection[str]) -> Checked:
    _check_lines(received.path)
    cases, samples, count = 0, 0, 0
    per_task: dict[str, int] = {}
    errors: list[dict[str, Any]] = []
    with _telling(received.path):
        for _, _, submission in iterate_submissions(received.path, suite):
            count += 1
            if submission.task_id not in tasks:
                errors.append({"detail": f"task {submission.task_id} is not in this phase"})
                continue
            cases += len(suite.task(submission.task_id).cases)
            number = per_task.get(submission.task_id, 0) + 1
            per_task[submission.task_id] = number
            samples = max(samples, number)
    if errors:
        raise Problem("invalid", f"{len(errors)} lines answer other tasks", errors[:20])
    if not count:
        raise Problem("invalid", "The file holds no solution of a task of this suite.")
    is_typed = not any(suite.task(task).answer.is_file for task in per_task)
    kind = Kind.ANSWERS if is_typed else Kind.PROGRAMS
    return Checked(kind, received.keep(), cases, samples)


def _check_lines(path: Path) -> None:
    """Bounds on lines, and no files of another results directory."""
    with _telling(path):
        for number, _, length, record in read_placed_json_lines(path, SubmissionError, whole=True):
            if number > MAX_LINES:
                raise Problem("invalid", f"The file has more than {MAX_LINES:,} lines.")
            if length > MAX_LINE_BYTES:
                raise _at_line(number, f"the line is longer than {MAX_LINE_BYTES >> 20} MiB")
            if "outputs" in record:
                raise _at_line(number, "finished workbooks are sent as a ZIP archive")


def _at_line(number: int, detail: str) -> Problem:
    return Problem("invalid", f"Line {number}: {detail}.", [{"line": number, "detail": detail}])


def _line_of_program(data: bytes, suite: Suite, tasks: Collection[str], task: str | None) -> bytes:
    if task is None:
        raise Problem("invalid", "A program needs `task`, the id of the task that it solves.")
    if task not in suite or task not in tasks:
        raise Problem("invalid", f"There is no task {task[:80]!r} in this phase.")
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise Problem("invalid", f"The program is not UTF-8 at byte {error.start}.") from error
    record = {"id": suite.task(task).written_id, "solution": text}
    return json.dumps(record).encode() + b"\n"


def _archive(
    folder: DataFolder, received: ReceivedBody, suite: Suite, tasks: Collection[str]
) -> Checked:
    with received.path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    target = folder.unpacked(digest)
    with naming_what_is_written(target, StoreError), folder_beside(target, ".new-") as scratch:
        inside = scratch / "files"
        inside.mkdir()
        try:
            with received.path.open("rb") as file:
                extract_zip(file, inside, most_bytes=MAX_UNPACKED_BYTES, most_members=MAX_MEMBERS)
        except (ZipRefusedError, zipfile.BadZipFile, NotImplementedError, EOFError) as error:
            raise Problem("invalid", f"The archive is refused: {error}"[:_SHOWN]) from error
        nested = next((p for p in inside.rglob("*") if p.suffix.lower() in _NESTED), None)
        if nested is not None:
            raise Problem("invalid", f"{nested.name[:100]!r} is an archive in the archive.")
        with _telling(inside):
            outputs = find_outputs(inside, suite)
        others = sorted(outputs.attempted - set(tasks))
        if others:
            raise Problem("invalid", f"Task {others[0]} is not in this phase.")
        samples = max(len(outputs.samples_of(task) or [0]) for task in outputs.attempted)
        cases = sum(
            len(suite.task(task).cases) * len(outputs.samples_of(task) or [0])
            for task in outputs.attempted
        )
        body = received.keep()
        if not target.exists():
            _put(inside, target)
    return Checked(Kind.WORKBOOKS, body, cases, samples)


def _put(inside: Path, target: Path) -> None:
    try:
        inside.rename(target)
    except OSError:
        if not target.is_dir():  # otherwise another request has just put the same files there
            raise
        shutil.rmtree(inside, ignore_errors=True)
    sync_folder(target.parent)


@contextmanager
def _telling(path: Path) -> Iterator[None]:
    """Raises what the library says of a body as a problem, without the server's paths."""
    try:
        yield
    except StoreError:
        raise
    except JudgeError as error:
        text = error.message
        for place in (str(path), str(path.resolve()), str(path.parent)):
            text = text.replace(place, "the submission")
        hint = "" if error.hint is None else f" ({error.hint})"
        lines = re.findall(r"\bline (\d{1,6})\b:? ?([^\n]*)", text)[:_MOST_ERRORS]
        errors = [{"line": int(line), "detail": detail[:300]} for line, detail in lines]
        raise Problem("invalid", (text + hint)[:_SHOWN], errors) from error
