"""Checks a line of a file of solutions, and turns it into a submission.

The sandbox places each case's workbook where the solution looks for it, so that code is never
rewritten. A recorded path takes precedence, then the path in the prompt, then the path in the code,
then the default path of the suite's format.

Episodes on a desktop leave files. The field ``outputs`` of their record is an object whose names
are case numbers. Each value has ``sha256``, the hash of a file in the record's results directory
(null if no file was left), and optionally ``name``, ``ended``, ``gui_only`` and ``problem``, as in
:class:`judge.core.submission.KeptOutput`; other fields are only for people.
"""

from __future__ import annotations

import ast
import difflib
import posixpath
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from judge.core.records.runs import EpisodeOutput, usage_fault
from judge.core.replies.extract import recorded_program
from judge.core.replies.python_text import syntax_tree
from judge.core.submission import KeptOutput, SampleNumbers, Submission
from judge.core.task import Task, TaskQuestion
from judge.core.verdict import Verdict
from judge.files.documents import MalformedError, parse_json, written
from judge.files.forms import checked
from judge.sandbox.layout import can_be_placed
from judge.suites.formats import FileRole, SolutionPaths, SuiteFormat
from judge.suites.suite import Suite

__all__ = ["SolutionPaths", "solution_paths"]

_QUOTED = re.compile(r"""(?P<quote>['"])(?P<text>/[^'"\n]+?)(?P=quote)""")
_WORD_IN_PROMPT = re.compile(r"""[^\s'"`<>|]++""")


def solution_paths(
    question: TaskQuestion,
    code: str | None,
    suite_format: SuiteFormat,
    *,
    conversation: object = None,
    input_path: str | None = None,
    output_path: str | None = None,
) -> SolutionPaths:
    """Finds the paths at which a solution reads its input and writes its output.

    Args:
        question: the task.
        code: the program, if there is one.
        suite_format: the format of the task's suite.
        conversation: the recorded conversation: a list of strings (the first is the prompt) or of
            messages with ``role`` and ``content``.
        input_path: the recorded input path, which takes precedence.
        output_path: the recorded output path, which takes precedence too.
    """
    if input_path is not None and output_path is not None:
        return SolutionPaths(input_path, output_path)
    texts = [
        *_prompt_paths(conversation, suite_format.file_suffixes),
        *(_literals(code) if code else ()),
    ]
    paths: dict[FileRole, str] = {}
    for text in texts:
        if text.startswith("/"):
            role = suite_format.role_of(posixpath.basename(text), question.id)
            if role is not None and role not in paths and can_be_placed(text):
                paths[role] = text
    default = suite_format.default_paths(question)
    return SolutionPaths(
        input_path or paths.get(FileRole.INPUT) or default.input_path,
        output_path or paths.get(FileRole.OUTPUT) or default.output_path,
    )


def _prompt_paths(conversation: object, suffixes: tuple[str, ...]) -> Iterator[str]:
    """Yields the paths in messages to the chat model; its replies are not read."""
    if not isinstance(conversation, list):
        return
    for index, message in enumerate(conversation):
        if isinstance(message, str):
            if index == 0:
                yield from _file_paths(message, suffixes)
        elif isinstance(message, Mapping) and message.get("role") in {"system", "user"}:
            content = message.get("content")
            if isinstance(content, str):
                yield from _file_paths(content, suffixes)


def _file_paths(text: str, suffixes: tuple[str, ...]) -> Iterator[str]:
    """Yields the words that look like a file's absolute path, from first slash to last suffix."""
    for word in _WORD_IN_PROMPT.findall(text):
        start = word.find("/")
        end = max(_end(word, suffix) for suffix in suffixes)
        if 0 <= start < end:
            yield word[start:end]


def _end(word: str, suffix: str) -> int:
    """The index at which the last occurrence of a suffix ends; -1 if no suffix occurs."""
    start = word.rfind(suffix)
    return -1 if start < 0 else start + len(suffix)


def _literals(code: str) -> list[str]:
    """The string constants of a program, in the order of the code."""
    tree = syntax_tree(code)
    if tree is None:
        return [match["text"] for match in _QUOTED.finditer(code)]
    literals: list[tuple[int, int, str]] = []
    waiting: list[object] = [tree]
    while waiting:  # like ast.walk, in a third of the time
        node = waiting.pop()
        if isinstance(node, list):
            waiting += node
        elif isinstance(node, ast.Constant):
            if isinstance(node.value, str):
                literals.append((node.lineno, node.col_offset, node.value))
        elif isinstance(node, ast.AST):
            waiting += vars(node).values()
    return [text for _, _, text in sorted(literals)]


_OWN_FIELDS = frozenset(
    {"id", "solution", "code", "sample", "model", "setting", "expected", "label"}
    | {"input_path", "output_path"}
)
_LOOK_ALIKE: Mapping[str, tuple[str, ...]] = {
    "id": ("taskid", "task", "questionid", "instanceid", "index", "qid"),
    "solution": (
        *("program", "python", "script", "pythoncode", "solutioncode", "generatedcode"),
        *("response", "reply", "completion", "generation", "answer", "output", "prediction"),
        *("text", "content"),
    ),
    "response": (
        *("reply", "answer", "completion", "generation", "output", "prediction", "solution"),
        *("text", "content", "code"),
    ),
}
"""Field -> other names that people use for it, in lower-case letters; the most likely first."""

_MISTAKEN = {"solution": ("program", "pythoncode", "solutioncode", "generatedcode")}
"""Field -> names that can only mean this field; they are read even if the field exists but is
empty."""

_MIN_SIMILARITY = 0.75  # of two field names, from 0 to 1, for a hint
_MAX_FIELDS = 12
_MAX_FIELD_CHARS = 40
_VERDICTS = frozenset(verdict.value for verdict in Verdict)


class TakenKeys:
    """Remembers on which line of a file each (task id, sample) occurs."""

    def __init__(self) -> None:
        self._lines: dict[str, SampleNumbers] = {}

    def line_of(self, key: tuple[str, int]) -> int | None:
        """The number of the line with a key; None if no line has the key."""
        samples = self._lines.get(key[0])
        return None if samples is None else samples.get(key[1])

    def put(self, key: tuple[str, int], line: int) -> None:
        """Records that a line has a key."""
        self._lines.setdefault(key[0], SampleNumbers()).put(key[1], line)


class LineError(Exception):
    """A line is not valid."""


FIELD = "outputs"


class LineReader:
    """Turns the lines of one file into submissions.

    Args:
        suite: the suite that they answer.
        folder: the folder of the file; None for records that are not in a file.
        ids: ids of the requested tasks; None for all.
        programs: whether programs and their paths are extracted.

    Attributes:
        taken: the accepted lines, which the caller adds.
        unknown: id of a task that the suite lacks -> the first line that answers it.
    """

    def __init__(
        self,
        suite: Suite,
        folder: Path | None,
        ids: Collection[str] | None = None,
        *,
        programs: bool = True,
    ) -> None:
        self._suite = suite
        self._folder = folder
        self._wanted = ids
        self._programs = programs
        self.taken = TakenKeys()
        self.unknown: dict[str, int] = {}

    def read(self, line: str, number: int) -> Submission | None:
        """Reads a line; returns None if its task is not requested, or unknown.

        Raises:
            LineError: the line cannot be accepted.
        """
        try:
            record = parse_json(line)
        except MalformedError as error:
            raise LineError(str(error)) from error
        if not isinstance(record, dict):
            raise LineError(f"must be an object with id and solution, not {type(record).__name__}")
        return self.read_record(record, number)

    def read_record(self, record: Mapping[str, object], number: int) -> Submission | None:
        """Reads a parsed line; returns None if its task is not requested, or unknown.

        Raises:
            LineError: the line cannot be accepted.
        """
        suite = self._suite
        if (fault := usage_fault(record)) is not None:
            raise LineError(fault)
        raw_id = record["id"] if "id" in record else suite.aliased(record)
        if raw_id is None and suite.suite_format.alias_of(record) is not None:
            raise LineError("the suite has no question with this prompt and these pictures")
        if isinstance(raw_id, bool) or not isinstance(raw_id, int | str):
            if "id" in record:
                raise LineError("field 'id' must be an integer or text")
            raise LineError(lacking("id", record))
        task_id = str(raw_id)
        if self._wanted is not None and task_id not in self._wanted:
            return None
        submission: Submission | None = None
        if task_id not in suite and "response" in record:
            pass  # a reply to a question of another suite
        elif task_id in suite and not suite.task(task_id).answer.is_file:
            submission = _typed(task_id, record, suite, self.taken)
        elif task_id in suite and record.get(FIELD) is not None:
            if self._folder is None:
                raise LineError(f"field {FIELD!r}: this record is not in a results directory")
            submission = _files_submission(task_id, record, suite, self._folder)
        else:
            submission = _submission(task_id, record, suite, programs=self._programs)
        if submission is None:
            self.unknown.setdefault(task_id, number)
        return submission


def lacks(name: str) -> str:
    """The message for a missing field."""
    return f"field {name!r} is missing"


def lacking(name: str, record: Mapping[str, object]) -> str:
    """The message for a missing field; it names the line's fields, and the probable misspelling."""
    fields = sorted(record, key=lambda field: field != "id")
    shown = ", ".join(map(_quoted, fields[:_MAX_FIELDS]))
    more = f" and {len(fields) - _MAX_FIELDS} more" if len(fields) > _MAX_FIELDS else ""
    listing = f"the line has {shown}{more}" if fields else "the line has no field"
    meant = _look_alike(name, record, _LOOK_ALIKE[name])
    return f"{lacks(name)}: {listing}" + (f"; is it {_quoted(meant)}?" if meant else "")


def _quoted(field: str) -> str:
    return repr(field[:_MAX_FIELD_CHARS])


def _look_alike(
    name: str, record: Mapping[str, object], synonyms: Collection[str], *, text: bool = False
) -> str | None:
    """Finds the field of a record that probably is the required field under another name.

    Args:
        name: the required field.
        record: the record.
        synonyms: other names that people use for it.
        text: whether to consider only fields that hold text.
    """
    plain: dict[str, str] = {}
    own = (_OWN_FIELDS if name in _OWN_FIELDS else _OWN_FIELDS - {"solution", "code"}) | {name}
    for field, value in record.items():
        if field not in own and (not text or _says_something(value)):
            letters = "".join(filter(str.isalnum, field[:_MAX_FIELD_CHARS].lower()))
            plain.setdefault(letters, field)
    for synonym in (name, *synonyms):
        if (field_meant := plain.get(synonym)) is not None:
            return field_meant
    near: list[str] = difflib.get_close_matches(name, plain, n=1, cutoff=_MIN_SIMILARITY)
    return plain[near[0]] if near else None


def _says_something(value: object) -> bool:
    return isinstance(value, str) and bool(value.strip())


def _check_meant(name: str, record: Mapping[str, object]) -> None:
    """Checks that an empty field does not have its answer in a field of another name.

    Raises:
        LineError: the field is empty, and the answer probably is in another one.
    """
    if _says_something(record.get(name)):
        return
    if (meant := _look_alike(name, record, _MISTAKEN.get(name, ()), text=True)) is not None:
        raise LineError(f"field {name!r} is empty, but {_quoted(meant)} is not: is it the answer?")


def _submission(
    task_id: str, record: Mapping[str, object], suite: Suite, *, programs: bool
) -> Submission | None:
    """Makes the submission of a record with a program; None if the suite lacks the task."""
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
            suite.suite_format,
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
    """The submission of a typed answer; without a sample number, it gets the next free one."""
    if "response" not in record:
        raise LineError(lacking("response", record))
    _check_meant("response", record)
    submission = _without_program(task_id, record, suite, _OWN_FIELDS | {"response"})
    sample = submission.sample
    if record.get("sample") is None:
        while taken.line_of((task_id, sample)) is not None:
            sample += 1
    return replace(submission, sample=sample, answer=_text(record, "response"))


def _files_submission(
    task_id: str, record: Mapping[str, object], suite: Suite, folder: Path
) -> Submission:
    """The submission of files that were left on a desktop."""
    if _says_something(record.get("solution")):
        raise LineError(f"has both {FIELD!r} and 'solution', but only one can be the answer")
    try:
        outputs = read_outputs(record, suite.task(task_id), folder)
    except MalformedError as error:
        raise LineError(str(error)) from error
    return replace(_without_program(task_id, record, suite, _OWN_FIELDS), outputs=outputs)


def _without_program(
    task_id: str, record: Mapping[str, object], suite: Suite, own: Collection[str]
) -> Submission:
    """A submission without a program; all fields but those in ``own`` become its provenance."""
    paths = suite.suite_format.default_paths(suite.task(task_id).question)
    return Submission(
        task_id=task_id,
        code=None,
        input_path=paths.input_path,
        output_path=paths.output_path,
        sample=_sample(record),
        model=_text(record, "model"),
        setting=_text(record, "setting"),
        expected=_expected(record, task_id, suite),
        label=_text(record, "label"),
        provenance={name: value for name, value in record.items() if name not in own},
    )


def _reply(record: Mapping[str, object]) -> str | None:
    name = "solution" if "solution" in record else "code"
    if name not in record:
        raise LineError(lacking("solution", record))
    reply = _text(record, name)
    alias = _text(record, "code")
    if name != "code" and _says_something(alias) and alias != reply:
        raise LineError("has both 'solution' and 'code', which is its alias, and they differ")
    if name == "code" and _says_something(reply) and recorded_program(record) is None:
        raise LineError("field 'code' holds no program; a whole reply goes into 'solution'")
    _check_meant(name, record)
    return reply


def _text(record: Mapping[str, object], name: str) -> str | None:
    value = record.get(name)
    if value is None or isinstance(value, str):
        return value
    raise LineError(f"field {name!r} must be text, not {type(value).__name__}")


def _path(record: Mapping[str, object], name: str) -> str | None:
    value = _text(record, name)
    if value is None:
        return None
    if not value.startswith("/"):
        raise LineError(f"field {name!r} must be an absolute path, not {written(value)}")
    # An output may be a folder, which ends with a slash.
    path = value.removesuffix("/") if name == "output_path" else value
    if not can_be_placed(path):
        raise LineError(
            f"field {name!r}: no file can be placed at {value[:80]!r} in a sandbox; "
            "use a path below a folder such as /mnt, /data or /tmp"
        )
    return value


def _sample(record: Mapping[str, object]) -> int:
    value = record.get("sample")
    if value is None:
        return 0
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 2**63:
        raise LineError(f"field 'sample' must be 0 or a positive integer, not {written(value)}")
    return value


def _expected(record: Mapping[str, object], task_id: str, suite: Suite) -> tuple[str, ...]:
    value = record.get("expected")
    if value is None:
        return ()
    codes = [value] if isinstance(value, str) else value
    if not isinstance(codes, list) or not all(code in _VERDICTS for code in codes):
        raise LineError(
            f"field 'expected' must be verdict codes such as AC or WA, not {written(value)}"
        )
    if len(codes) > 1 and task_id in suite:
        cases = len(suite.task(task_id).cases)
        if len(codes) != cases:
            raise LineError(f"field 'expected' has {len(codes)} codes, the task {cases} cases")
    return tuple(codes)


# -- files that episodes on a desktop left ---------------------------------------------------------


def read_outputs(
    record: Mapping[str, object], task: Task, folder: Path
) -> Mapping[int, KeptOutput] | None:
    """The files that episodes left, as listed in a record; None if the record has no such field.

    Args:
        record: a record of a file of submissions.
        task: the task that it is about.
        folder: the folder of that file.

    Raises:
        MalformedError: the field is not valid; it names, for example, a case that the task lacks.
    """
    records = record.get(FIELD)
    if records is None:
        return None
    if not isinstance(records, dict):
        raise MalformedError(f"field {FIELD!r} must be an object: number of a case -> its file")
    numbers = {str(case.number): case.number for case in task.cases}
    outputs: dict[int, KeptOutput] = {}
    for number, record_of_case in records.items():
        if number not in numbers:
            raise MalformedError(f"field {FIELD!r}: the task has no case {str(number)[:40]!r}")
        outputs[numbers[number]] = _output(record_of_case, f"{FIELD}.{number}", folder)
    return outputs


def _output(document: object, field: str, folder: Path) -> KeptOutput:
    try:
        record = checked(document, EpisodeOutput)
    except MalformedError as error:
        raise MalformedError(f"{field}: {error}") from error
    return KeptOutput(
        folder=folder,
        sha256=record["sha256"],
        name=record.get("name") or "output",
        ended=record.get("ended") or "done",
        gui_only=record.get("gui_only", False),
        problem=record.get("problem", ""),
    )
