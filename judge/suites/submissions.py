"""Reads solutions from a ``.jsonl``: the judge's own, other people's, and the benchmark's logs."""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from judge.core.sample_numbers import SampleNumbers
from judge.core.submission import Submission
from judge.core.task import Task
from judge.core.verdict import Verdict
from judge.errors import SubmissionError
from judge.files.documents import MalformedError, parse_json, read_text
from judge.files.json_lines import read_placed_lines
from judge.replies.recorded import recorded_program
from judge.sandbox.layout import can_be_placed
from judge.suites.formats import SolutionPaths, SuiteFormat
from judge.suites.solution_paths import solution_paths
from judge.suites.suite import Suite

_OWN_FIELDS = frozenset(
    {"id", "solution", "code", "sample", "model", "setting", "expected", "label"}
    | {"input_path", "output_path"}
)
_VERDICTS = frozenset(verdict.value for verdict in Verdict)
_MAX_SHOWN = 20


def load_submissions(
    path: Path, suite: Suite, *, ids: Collection[str] | None = None
) -> list[Submission]:
    """Reads a file of solutions, one JSON object on each line.

    A record has ``id`` (integer or text) and ``solution`` (a program, or a whole reply with
    fenced code; null if there was none), and optionally ``model``, ``setting``, ``sample``,
    ``conversation``, ``input_path``, ``output_path``, ``expected`` (a verdict code, or one for
    each case) and ``label``. All other fields are kept as provenance. ``conv_*.jsonl`` of the
    benchmark's inference scripts are such files.

    If a task asks for a typed answer, its record has ``response`` instead: the reply as it came,
    null if there was none. Several replies to a question without a ``sample`` are its samples, in
    file order. A suite may know another name for its tasks than ``id``
    (:meth:`judge.suites.formats.SuiteFormat.alias_of`).

    Args:
        path: the file.
        suite: the suite that the solutions answer.
        ids: the tasks to read; records of others are skipped, known or not.

    Returns:
        The submissions in file order; ``code`` is missing if the reply holds none, or if the task
        asks for a typed answer.

    Raises:
        SubmissionError: the file cannot be read or accepted; names every faulty line.
    """
    return [each for _, _, each in iterate_submissions(path, suite, ids=ids)]


def iterate_submissions(
    path: Path, suite: Suite, *, ids: Collection[str] | None = None, programs: bool = True
) -> Iterator[tuple[int, int, Submission]]:
    """The same one after the other, each with the place of its line in the file and its length.

    Faults are raised after the last submission: until then, none of them can be relied on.
    ``programs`` says whether programs and their paths are extracted, which is most of the work;
    without them, submissions have neither.
    """
    wanted = None if ids is None else {str(task_id) for task_id in ids}
    faults: list[str] = []
    unknown: dict[str, int] = {}
    lines = TakenKeys()
    empty = True
    for number, place, length, line in _lines(path):
        empty = False
        try:
            submission = _read_line(line, suite, wanted, unknown, number, lines, programs=programs)
        except _LineError as error:
            faults.append(f"line {number}: {error}")
            continue
        if submission is None:
            continue
        if (first := lines.line_of(submission.key)) is not None:
            faults.append(
                f"line {number}: task {submission.task_id}, sample {submission.sample} "
                f"is on line {first} already"
            )
            continue
        lines.put(submission.key, number)
        yield place, length, submission
    if empty and not path.exists():
        raise SubmissionError(f"{path}: cannot be read: no such file")
    if empty:
        raise SubmissionError(f"{path} is empty: it holds no solution")
    _raise_faults(path, faults)
    _raise_unknown(path, suite, unknown)


def read_submission(
    line: bytes, suite: Suite, key: tuple[str, int], *, programs: bool = True
) -> Submission:
    """A submission from a line that was accepted before.

    Args:
        line: the line.
        suite: the suite that it answers.
        key: the task id and the sample that it has.
        programs: as for :func:`iterate_submissions`.

    Raises:
        SubmissionError: it is another line now.
    """
    found: Submission | None = None
    with contextlib.suppress(_LineError, UnicodeDecodeError):
        text, taken = line.decode("utf-8"), TakenKeys()
        found = _read_line(text, suite, None, {}, 0, taken, programs=programs)
    if found is None or found.task_id != key[0]:
        raise SubmissionError(
            f"the solution of task {key[0]}, sample {key[1]}, has changed while it was in use",
            hint="Run the command again.",
        )
    # A typed answer without a number has been given one.
    return found if found.sample == key[1] else replace(found, sample=key[1])


class TakenKeys:
    """Which (task id, sample) is on which line of a file."""

    def __init__(self) -> None:
        self._lines: dict[str, SampleNumbers] = {}

    def line_of(self, key: tuple[str, int]) -> int | None:
        """The number of the line; None where there is none."""
        samples = self._lines.get(key[0])
        return None if samples is None else samples.get(key[1])

    def put(self, key: tuple[str, int], line: int) -> None:
        """Notes a line."""
        self._lines.setdefault(key[0], SampleNumbers()).put(key[1], line)


def submission_of_program(
    program: Path,
    task: Task,
    conventions: SuiteFormat,
    *,
    input_path: str | None = None,
    output_path: str | None = None,
) -> Submission:
    """A submission of one program file.

    Args:
        program: the Python file, which is used as it is.
        task: the task that it answers.
        conventions: the format of the task's suite.
        input_path: where it finds its input; None to look into the program.
        output_path: where it leaves its output; None to look into the program.

    Raises:
        SubmissionError: the file cannot be read.
    """
    code = read_text(program, SubmissionError)
    paths = solution_paths(
        task.question, code, conventions, input_path=input_path, output_path=output_path
    )
    return Submission(
        task_id=task.id,
        code=code if code.strip() else None,
        input_path=paths.input_path,
        output_path=paths.output_path,
        label=program.name,
    )


def submission_of_reply(reply: str, task: Task, conventions: SuiteFormat | None) -> Submission:
    """A submission of what a chat model said, as the record ``{"solution": reply}`` is read.

    Args:
        reply: the reply, or the program alone; the typed answer, where the task asks for one.
        task: the task that it answers.
        conventions: the format of the task's suite; needed where a program has to be run.
    """
    if not task.answer.is_file or conventions is None:
        return Submission(task.id, None, "", "", answer=reply)
    code = recorded_program({"solution": reply})
    paths = solution_paths(task.question, code, conventions)
    return Submission(task.id, code, paths.input_path, paths.output_path)


def submission_record(submission: Submission, suite: Suite) -> dict[str, object]:
    """The record of a submission, which :func:`load_submissions` reads back as it was.

    Args:
        submission: what to write down.
        suite: the suite that it answers; gives the id as that suite writes it.
    """
    raw_id = suite.task(submission.task_id).raw_id
    record: dict[str, object] = {
        "id": submission.task_id if raw_id is None else raw_id,
        "sample": submission.sample,
    }
    if suite.task(submission.task_id).answer.is_file:
        record["solution"] = submission.code
        record["input_path"] = submission.input_path
        record["output_path"] = submission.output_path
    else:
        record["response"] = submission.answer
    optional = {
        "model": submission.model,
        "setting": submission.setting,
        "expected": list(submission.expected) or None,
        "label": submission.label,
    }
    record.update({name: value for name, value in optional.items() if value is not None})
    record.update(submission.provenance)
    return record


class _LineError(Exception):
    """What is wrong with one line."""


def _lines(path: Path) -> Iterator[tuple[int, int, int, str]]:
    """Lines that are not blank, numbered from 1, with their places and lengths."""
    for number, place, raw in read_placed_lines(path, SubmissionError):
        try:
            yield number, place, len(raw), raw.decode("utf-8")
        except UnicodeDecodeError as error:
            raise SubmissionError(
                f"{path}, line {number}: not UTF-8 at byte {error.start}",
                hint="save the file as UTF-8",
            ) from error


def _read_line(
    line: str,
    suite: Suite,
    wanted: set[str] | None,
    unknown: dict[str, int],
    number: int,
    taken: TakenKeys,
    *,
    programs: bool = True,
) -> Submission | None:
    """One submission; None if the task is not requested, or not known (which is remembered)."""
    try:
        record = parse_json(line)
    except MalformedError as error:
        raise _LineError(str(error)) from error
    if not isinstance(record, dict):
        raise _LineError(f"must be an object with id and solution, not {type(record).__name__}")
    raw_id = record["id"] if "id" in record else suite.aliased(record)
    if raw_id is None and suite.conventions.alias_of(record) is not None:
        raise _LineError("the suite has no question with this prompt and these pictures")
    if isinstance(raw_id, bool) or not isinstance(raw_id, int | str):
        raise _LineError("field 'id' must be an integer or text" if "id" in record else _no("id"))
    task_id = str(raw_id)
    if wanted is not None and task_id not in wanted:
        return None
    submission: Submission | None = None
    if task_id not in suite and "response" in record:
        pass  # a reply to a question of another suite
    elif task_id in suite and not suite.task(task_id).answer.is_file:
        submission = _typed(task_id, record, suite, taken)
    else:
        submission = _submission(task_id, record, suite, programs=programs)
    if submission is None:
        unknown.setdefault(task_id, number)
    return submission


def _submission(
    task_id: str, record: Mapping[str, object], suite: Suite, *, programs: bool
) -> Submission | None:
    """The submission of a record without faults; None if the suite lacks the task."""
    reply = _reply(record)
    code = recorded_program(record) if programs else None
    input_path, output_path = _path(record, "input_path"), _path(record, "output_path")
    sample, model, setting = _sample(record), _text(record, "model"), _text(record, "setting")
    expected, label = _expected(record, task_id, suite), _text(record, "label")
    if task_id not in suite:
        return None
    paths = SolutionPaths("", "")
    if programs:
        paths = solution_paths(
            suite.task(task_id).question,
            code,
            suite.conventions,
            conversation=record.get("conversation"),
            input_path=input_path,
            output_path=output_path,
        )
    provenance = {name: value for name, value in record.items() if name not in _OWN_FIELDS}
    if reply is not None and reply != code and reply.strip():
        provenance.setdefault("reply", reply)
    return Submission(
        task_id=task_id,
        code=code,
        input_path=paths.input_path,
        output_path=paths.output_path,
        sample=sample,
        model=model,
        setting=setting,
        expected=expected,
        label=label,
        provenance=provenance,
    )


def _typed(
    task_id: str, record: Mapping[str, object], suite: Suite, taken: TakenKeys
) -> Submission:
    """The submission of a typed answer; one without a number gets the next free one."""
    if "response" not in record:
        raise _LineError(_no("response"))
    sample = _sample(record)
    if record.get("sample") is None:
        while taken.line_of((task_id, sample)) is not None:
            sample += 1
    paths = suite.conventions.default_paths(suite.task(task_id).question)
    return Submission(
        task_id=task_id,
        code=None,
        input_path=paths.input_path,
        output_path=paths.output_path,
        sample=sample,
        model=_text(record, "model"),
        setting=_text(record, "setting"),
        expected=_expected(record, task_id, suite),
        label=_text(record, "label"),
        provenance={
            name: value
            for name, value in record.items()
            if name not in _OWN_FIELDS and name != "response"
        },
        answer=_text(record, "response"),
    )


def _no(name: str) -> str:
    return f"field {name!r} is missing"


def _reply(record: Mapping[str, object]) -> str | None:
    name = "solution" if "solution" in record else "code"
    if name not in record:
        raise _LineError(_no("solution"))
    return _text(record, name)


def _text(record: Mapping[str, object], name: str) -> str | None:
    value = record.get(name)
    if value is None or isinstance(value, str):
        return value
    raise _LineError(f"field {name!r} must be text, not {type(value).__name__}")


def _path(record: Mapping[str, object], name: str) -> str | None:
    value = _text(record, name)
    if value is None:
        return None
    if not value.startswith("/"):
        raise _LineError(f"field {name!r} must be an absolute path, not {value!r}")
    if not can_be_placed(value):
        raise _LineError(
            f"field {name!r}: no file can be placed at {value[:80]!r} in a sandbox; "
            "use a path below a folder such as /mnt, /data or /tmp"
        )
    return value


def _sample(record: Mapping[str, object]) -> int:
    value = record.get("sample")
    if value is None:
        return 0
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 2**63:
        raise _LineError(f"field 'sample' must be 0 or a positive integer, not {value!r}")
    return value


def _expected(record: Mapping[str, object], task_id: str, suite: Suite) -> tuple[str, ...]:
    value = record.get("expected")
    if value is None:
        return ()
    codes = [value] if isinstance(value, str) else value
    if not isinstance(codes, list) or not all(code in _VERDICTS for code in codes):
        raise _LineError(f"field 'expected' must be verdict codes such as AC or WA, not {value!r}")
    if len(codes) > 1 and task_id in suite:
        cases = len(suite.task(task_id).cases)
        if len(codes) != cases:
            raise _LineError(f"field 'expected' has {len(codes)} codes, the task {cases} cases")
    return tuple(codes)


def _raise_faults(path: Path, faults: list[str]) -> None:
    if not faults:
        return
    if len(faults) == 1:
        raise SubmissionError(f"{path}, {faults[0]}", hint=_hint_for(faults))
    shown = [f"\n  {fault}" for fault in faults[:_MAX_SHOWN]]
    if len(faults) > _MAX_SHOWN:
        shown.append(f"\n  and {len(faults) - _MAX_SHOWN} more")
    raise SubmissionError(
        f"{path} has {len(faults)} lines that cannot be used:{''.join(shown)}",
        hint=_hint_for(faults),
    )


def _hint_for(faults: list[str]) -> str:
    if all(fault.endswith("already") for fault in faults):
        return "several solutions of one task are told apart by a field 'sample': 0, 1, 2 …"
    if all(_no("response") in fault for fault in faults):
        return 'replies are given as {"id": …, "response": "…"}'
    return 'one JSON object on each line: {"id": …, "solution": "…"}'


def _raise_unknown(path: Path, suite: Suite, unknown: Mapping[str, int]) -> None:
    if not unknown:
        return
    named = ", ".join(f"{task_id} (line {line})" for task_id, line in unknown.items())
    raise SubmissionError(
        f"{path}: the suite {suite.name} has no task {named}",
        hint="is it the right suite (--dataset)? --ids grades only the tasks that you name",
    )
