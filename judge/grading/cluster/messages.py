"""Messages between client and workers, as bytes: the handshake, requests and answers.

Before a worker gets its first case, it must introduce itself. Its answer is compared field by
field. A worker that differs in anything that could change a verdict is refused, with a notice.

Requests are sent from the client to the workers, which run the client's code anyway, so they are
pickled. Answers are sent in the other direction: they must not run code, and a worker may send
anything. An answer has a head, which is JSON, followed by records (also JSON) and outputs, whose
lengths are in the head. Its values are counted before any of it is read, and every field is checked
against the request.
"""

from __future__ import annotations

import json
import pickle
import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TypedDict

from judge.core.records.cases import CaseRecord
from judge.core.task import Task, TestCase
from judge.errors import JudgeError, StoreError
from judge.files.documents import (
    MIB,
    MalformedError,
    as_object,
    dump_json,
    has_more_values,
    parse_json,
)
from judge.files.forms import Amount, checked, declared_only
from judge.files.json_lines import MAX_LINE_BYTES, MAX_LINE_VALUES
from judge.grading.batch import Settings, WorkerRecipe
from judge.grading.case_records import case_record, record_of_result, result_of_record
from judge.grading.jobs import Job, JudgedCase
from judge.grading.keys import GRADER_VERSION
from judge.grading.verify import CaseCheck
from judge.suites import load_suite
from judge.version import __version__

RETURN_BYTES = 64 * MIB
"""How many bytes of outputs one answer carries, if workers cannot access the results folder. A
worker that has this much answers at once, and the client requests the rest again."""

RETURN_RECORD_BYTES = 2 * MIB
"""The same limit for records. A JSON value takes at least 2 bytes: half this many values fit."""

MAX_ANSWER_BYTES = 2 * RETURN_BYTES + RETURN_RECORD_BYTES + MAX_LINE_BYTES + MIB
"""Longest answer that an honest worker sends: it stops when it exceeds one of these limits."""

_MAX_ANSWER_VALUES = 2 * MAX_LINE_VALUES
_MAX_WORDS = 10_000
_MAX_SECONDS = 1e7
_HEAD = struct.Struct(">I")
_NO_OUTPUT = -1
_MAX_INTRODUCTION_BYTES = 100_000


class ReplyHead(TypedDict):
    """The head of an answer, before its records and outputs.

    ``judged`` lists for each case the position of the work, the position of the case in it, and the
    lengths of its record and its output. ``checks`` lists for each check the position of the work
    and the length. A length of -1 means that there is no output.
    """

    seconds: Amount
    judged: list[list[int]]
    checks: list[list[int]]
    gone: str
    error: str


@dataclass(frozen=True, slots=True)
class Check:
    """A test case whose golds are checked by comparing them with themselves."""

    task: Task
    case: TestCase


@dataclass(frozen=True, slots=True)
class Request:
    """Work for about a second.

    Attributes:
        key: the name of the task.
        recipe: describes the sandbox and the engines that the worker opens.
        work: submissions to judge, or cases to check.
        folder: the results directory, if the worker can access it and may store outputs there.
    """

    key: str
    recipe: WorkerRecipe
    work: tuple[Job | Check, ...]
    folder: str | None = None

    def to_bytes(self) -> bytes:
        """Encodes the message for sending."""
        return pickle.dumps(self)

    @staticmethod
    def from_bytes(data: bytes) -> Request:
        """Reads a received request; workers trust their client."""
        request = pickle.loads(data)  # noqa: S301  from the client, whose code the worker runs
        assert isinstance(request, Request)
        return request


@dataclass(slots=True)
class Reply:
    """The answer to a request.

    Attributes:
        seconds: how long it took.
        judged: position of the work -> position of the case in its job -> the judged case.
        checks: position of the work -> the finished check.
        gone: why the sandbox of this worker can no longer be used; empty if it still works.
        error: why the worker could not do any work; empty if it could.
    """

    seconds: float = 0.0
    judged: dict[int, dict[int, JudgedCase]] = field(default_factory=dict)
    checks: dict[int, CaseCheck] = field(default_factory=dict)
    gone: str = ""
    error: str = ""

    def to_bytes(self) -> bytes:
        """Encodes the answer: the length of the head, the head, records and checks, outputs."""
        judged: list[tuple[int, int, bytes, bytes | None]] = [
            (work, case, dump_json(record_of_result(done.keys, done.result)).encode(), done.output)
            for work, cases in self.judged.items()
            for case, done in cases.items()
        ]
        checks = [(work, json.dumps(asdict(check)).encode()) for work, check in self.checks.items()]
        outputs = [output for *_, output in judged if output is not None]
        head = dump_json(
            {
                "seconds": self.seconds,
                "judged": [
                    [work, case, len(record), _NO_OUTPUT if output is None else len(output)]
                    for work, case, record, output in judged
                ],
                "checks": [[work, len(check)] for work, check in checks],
                "gone": self.gone[:_MAX_WORDS],
                "error": self.error[:_MAX_WORDS],
            }
        ).encode()
        records = [record for _, _, record, _ in judged] + [check for _, check in checks]
        return b"".join([_HEAD.pack(len(head)), head, *records, *outputs])

    @staticmethod
    def from_bytes(data: bytes, request: Sequence[Job | Check]) -> Reply:
        """Reads an answer.

        Args:
            data: the answer; only its verdicts are trusted.
            request: the work that was requested.

        Raises:
            MalformedError: it is not an answer to this request, or is longer than one can be.
        """
        if len(data) > MAX_ANSWER_BYTES:
            raise MalformedError(f"it has more than {MAX_ANSWER_BYTES // MIB} MiB")
        try:
            return _read(data, request)
        except MalformedError:
            raise
        except (StoreError, Exception) as error:
            # Lengths, JSON and types of fields can fail in many ways; all mean the same here.
            message = str(error)[:200]
            raise MalformedError(f"{type(error).__name__}: {message}") from error


def _read(data: bytes, request: Sequence[Job | Check]) -> Reply:
    requested = sum(len(work.cases) if isinstance(work, Job) else 1 for work in request)
    (size,) = _HEAD.unpack_from(data)
    start = _HEAD.size + size
    head = parse_json(data[_HEAD.size : start], max_values=16 + 5 * requested)
    fields = checked(as_object(head), ReplyHead)
    if not 0 <= fields["seconds"] < _MAX_SECONDS:
        raise MalformedError("a duration that is impossible")
    reply = Reply(seconds=fields["seconds"])
    reply.gone, reply.error = fields["gone"][:_MAX_WORDS], fields["error"][:_MAX_WORDS]
    listed, checks = fields["judged"], fields["checks"]
    lengths = [record for _, _, record, _ in listed] + [check for _, check in checks]
    outputs = [output for *_, output in listed if output != _NO_OUTPUT]
    if any(length < 0 for length in (*lengths, *outputs)):
        raise MalformedError("a negative length")
    if start + sum(lengths) + sum(outputs) != len(data):
        raise MalformedError("a length that differs from the one stated in its header")
    texts = data[start : start + sum(lengths)].decode()
    if has_more_values(texts, _MAX_ANSWER_VALUES):
        raise MalformedError(f"its records have more than {_MAX_ANSWER_VALUES:,} values")
    records = _cut(data, start, lengths)
    files = _cut(data, start + sum(lengths), outputs)
    for work, case, _, length in listed:
        judged = _judged(_requested(request, work), case, next(records))
        output = None if length == _NO_OUTPUT else next(files)
        reply.judged.setdefault(work, {})[case] = JudgedCase(judged.keys, judged.result, output)
    for work, _ in checks:
        reply.checks[work] = _checked(_requested(request, work), next(records))
    return reply


def _cut(data: bytes, start: int, lengths: Sequence[int]) -> Iterator[bytes]:
    for length in lengths:
        yield data[start : start + length]
        start += length


def _requested(request: Sequence[Job | Check], position: int) -> Job | Check:
    if not 0 <= position < len(request):
        raise MalformedError("work that was not requested")
    return request[position]


def _judged(work: Job | Check, position: int, text: bytes) -> JudgedCase:
    if not isinstance(work, Job) or not 0 <= position < len(work.cases):
        raise MalformedError("a case that was not requested")
    if len(text) > MAX_LINE_BYTES:
        raise MalformedError(f"a record of more than {MAX_LINE_BYTES // MIB} MiB")
    requested = work.cases[position]
    document = as_object(parse_json(text, max_values=MAX_LINE_VALUES))
    record = declared_only(case_record(document), CaseRecord)
    case = (record["task"], record["sample"], record["case"])
    keys = (record.get("run_key"), record.get("comparison_key"))
    if case != (work.task.id, work.sample, requested.case.number):
        raise MalformedError("a case other than the one requested")
    if keys != (requested.keys.run, requested.keys.comparison):
        raise MalformedError("a case of other code or other rules")
    return JudgedCase(requested.keys, result_of_record(record))


def _checked(work: Job | Check, text: bytes) -> CaseCheck:
    if not isinstance(work, Check):
        raise MalformedError("a check that was not requested")
    document = as_object(parse_json(text, max_values=MAX_LINE_VALUES))
    check = checked(document, CaseCheck)
    if (check.task_id, check.case) != (work.task.id, work.case.number):
        raise MalformedError("a check of another case")
    return check


@dataclass(frozen=True, slots=True)
class Identity:
    """Everything that verdicts depend on, besides the cases themselves.

    Attributes:
        judge: version of the judge.
        grader: version of its verdicts.
        image: image of the sandbox in which programs run; empty if none do.
        engines: the calculation engines.
        suite: digest of the suite; empty if it is not compared.
    """

    judge: str = __version__
    grader: str = GRADER_VERSION
    image: str = ""
    engines: tuple[str, ...] = ()
    suite: str = ""

    @staticmethod
    def of(settings: Settings, suite: str) -> Identity:
        """Returns the identity of this process.

        Args:
            settings: the settings, with the sandbox and the engines open.
            suite: digest of the suite.
        """
        image = "" if settings.sandbox is None else settings.sandbox.info.image
        return Identity(image=image, engines=tuple(settings.rules.engines), suite=suite)

    def difference(self, other: Identity) -> str | None:
        """Describes the first property in which a worker differs; None if it does not differ."""
        for part, mine, its in (
            ("the judge", self.judge, other.judge),
            ("the grader", self.grader, other.grader),
            ("the sandbox image", self.image, other.image),
            ("the engines", ", ".join(self.engines), ", ".join(other.engines)),
            ("the suite", self.suite, other.suite),
        ):
            if mine != its:
                return f"{part} there is {its or 'missing'}, here it is {mine or 'missing'}"
        return None


@dataclass(frozen=True, slots=True)
class Question:
    """The first question to a worker; plain JSON, so that any version can read it.

    Attributes:
        suite_root: the folder of the suite; None if it is not compared.
        probe: a file that exists if the worker can access the results folder; None without one.
        judge: version of the judge that sends the question.
    """

    suite_root: str | None = None
    probe: str | None = None
    judge: str = __version__

    def to_bytes(self) -> bytes:
        """Encodes the message for sending."""
        return json.dumps(asdict(self)).encode()

    @staticmethod
    def from_bytes(data: bytes) -> Question:
        """Reads a received question."""
        fields = json.loads(data)
        return Question(fields["suite_root"], fields["probe"], fields["judge"])

    def suite_digest(self) -> str:
        """Returns the digest of the suite on this machine; empty if it is not compared.

        Raises:
            SuiteError: the suite is not on this machine.
        """
        return "" if self.suite_root is None else load_suite(Path(self.suite_root)).digest

    def sees_folder(self) -> bool:
        """Returns whether this machine can access the results folder."""
        return self.probe is not None and Path(self.probe).is_file()


@dataclass(frozen=True, slots=True)
class Introduction:
    """A worker's description of itself.

    Attributes:
        identity: everything that its verdicts depend on.
        shares: whether it can access the results folder.
        problem: why it cannot work at all; empty if it can.
    """

    identity: Identity = field(default_factory=Identity)
    shares: bool = False
    problem: str = ""

    def to_bytes(self) -> bytes:
        """Encodes the message for sending."""
        mine = self.identity
        return json.dumps(
            {
                "judge": mine.judge,
                "grader": mine.grader,
                "image": mine.image,
                "engines": list(mine.engines),
                "suite": mine.suite,
                "shares": self.shares,
                "problem": self.problem,
            }
        ).encode()

    @staticmethod
    def from_bytes(data: bytes) -> Introduction:
        """Reads an introduction; anything else becomes a problem of the worker."""
        if len(data) > _MAX_INTRODUCTION_BYTES:
            return Introduction(problem=f"its introduction has {len(data):,} bytes")
        try:
            fields: Mapping[str, object] = as_object(parse_json(data))
        except MalformedError as error:
            return Introduction(problem=f"its introduction cannot be read: {error}")
        engines = fields.get("engines")
        identity = Identity(
            judge=str(fields.get("judge", "")),
            grader=str(fields.get("grader", "")),
            image=str(fields.get("image", "")),
            engines=tuple(str(engine) for engine in engines) if isinstance(engines, list) else (),
            suite=str(fields.get("suite", "")),
        )
        return Introduction(identity, fields.get("shares") is True, str(fields.get("problem", "")))


def introduce(question: Question, settings: Settings) -> Introduction:
    """Describes this worker; a missing suite is reported as a problem, not raised."""
    try:
        identity = Identity.of(settings, question.suite_digest())
    except JudgeError as error:
        return Introduction(problem=error.message)
    return Introduction(identity, question.sees_folder())
