"""What a worker is asked and what it answers, as bytes.

Requests go from the client to the workers, which run its code anyway; they are pickled. Answers go
the other way, where nothing may be executed, and where a worker may send what it likes. An answer
is a head, which is JSON, and then records (JSON as well) and outputs, whose lengths are in the
head. Nothing is read of it before it was counted, and every field is checked against what was
asked.
"""

from __future__ import annotations

import json
import pickle
import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from judge.core.records.answers import CheckRecord, ReplyHead
from judge.core.records.cases import CaseRecord
from judge.core.task import Task, TestCase
from judge.errors import StoreError
from judge.files.documents import (
    MIB,
    MalformedError,
    as_object,
    dump_json,
    has_more_values,
    parse_json,
)
from judge.files.forms import checked, declared_only
from judge.files.json_lines import MAX_LINE_BYTES, MAX_LINE_VALUES
from judge.grading.case_records import case_record, record_of_result, result_of_record
from judge.grading.jobs import Job, JudgedCase
from judge.grading.recipe import WorkerRecipe
from judge.grading.verify import CaseCheck

RETURN_BYTES = 64 * MIB
"""Outputs that come back in one answer, if the workers do not see the results folder. A worker that
has as many answers at once; what is left is requested again."""

RETURN_RECORD_BYTES = 2 * MIB
"""The same of records. They have at most half as many values: each takes two bytes or more."""

MAX_ANSWER_BYTES = 2 * RETURN_BYTES + RETURN_RECORD_BYTES + MAX_LINE_BYTES + MIB
"""The longest answer of an honest worker: it stops after what goes beyond one of the bounds."""

_MAX_ANSWER_VALUES = 2 * MAX_LINE_VALUES
_MAX_WORDS = 10_000
_MAX_SECONDS = 1e7
_HEAD = struct.Struct(">I")
_NO_OUTPUT = -1


@dataclass(frozen=True, slots=True)
class Check:
    """A test case to be checked against itself."""

    task: Task
    case: TestCase


@dataclass(frozen=True, slots=True)
class Request:
    """Work for about a second.

    Attributes:
        key: the name of the task.
        recipe: what sandbox and engines are opened from.
        work: submissions to judge, or cases to check.
        folder: the results directory, if the worker sees it and may leave outputs there.
    """

    key: str
    recipe: WorkerRecipe
    work: tuple[Job | Check, ...]
    folder: str | None = None

    def to_bytes(self) -> bytes:
        """As it is sent."""
        return pickle.dumps(self)

    @staticmethod
    def from_bytes(data: bytes) -> Request:
        """As it arrives at a worker, which trusts its client."""
        request = pickle.loads(data)  # noqa: S301  from the client, whose code the worker runs
        assert isinstance(request, Request)
        return request


@dataclass(slots=True)
class Reply:
    """What came of a request.

    Attributes:
        seconds: how long it took.
        judged: for each piece of work, what is done of it, by the position of the case in its job.
        checks: for each piece of work, the check, if it was one and is done.
        gone: why the sandbox of this worker cannot be used any more; empty if it can.
        error: what kept the worker from working at all.
    """

    seconds: float = 0.0
    judged: dict[int, dict[int, JudgedCase]] = field(default_factory=dict)
    checks: dict[int, CaseCheck] = field(default_factory=dict)
    gone: str = ""
    error: str = ""

    def to_bytes(self) -> bytes:
        """As it is sent: the head's length, the head, records and checks, outputs."""
        judged: list[tuple[int, int, bytes, bytes | None]] = [
            (work, case, dump_json(record_of_result(each.keys, each.result)).encode(), each.output)
            for work, cases in self.judged.items()
            for case, each in cases.items()
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
            data: the answer; believed in nothing but the verdicts.
            request: the work that was requested.

        Raises:
            MalformedError: it is not an answer to this request, or has more than any such answer.
        """
        if len(data) > MAX_ANSWER_BYTES:
            raise MalformedError(f"it has more than {MAX_ANSWER_BYTES // MIB} MiB")
        try:
            return _read(data, request)
        except MalformedError:
            raise
        except (StoreError, Exception) as error:
            # Lengths, JSON and the types of fields fail in many ways; each means the same here.
            said = str(error)[:200]
            raise MalformedError(f"{type(error).__name__}: {said}") from error


def _read(data: bytes, request: Sequence[Job | Check]) -> Reply:
    asked = sum(len(each.cases) if isinstance(each, Job) else 1 for each in request)
    (size,) = _HEAD.unpack_from(data)
    start = _HEAD.size + size
    head = parse_json(data[_HEAD.size : start], most_values=16 + 5 * asked)
    fields = checked(as_object(head), ReplyHead)
    if not 0 <= fields["seconds"] < _MAX_SECONDS:
        raise MalformedError("a time that it cannot have taken")
    reply = Reply(seconds=fields["seconds"])
    reply.gone, reply.error = fields["gone"][:_MAX_WORDS], fields["error"][:_MAX_WORDS]
    listed, checks = fields["judged"], fields["checks"]
    lengths = [record for _, _, record, _ in listed] + [check for _, check in checks]
    outputs = [output for *_, output in listed if output != _NO_OUTPUT]
    if any(each < 0 for each in (*lengths, *outputs)):
        raise MalformedError("a length that is not one")
    if start + sum(lengths) + sum(outputs) != len(data):
        raise MalformedError("a length other than it says")
    texts = data[start : start + sum(lengths)].decode()
    if has_more_values(texts, _MAX_ANSWER_VALUES):
        raise MalformedError(f"its records have more than {_MAX_ANSWER_VALUES:,} values")
    records = _cut(data, start, lengths)
    files = _cut(data, start + sum(lengths), outputs)
    for work, case, _, length in listed:
        judged = _judged(_asked(request, work), case, next(records))
        output = None if length == _NO_OUTPUT else next(files)
        reply.judged.setdefault(work, {})[case] = JudgedCase(judged.keys, judged.result, output)
    for work, _ in checks:
        reply.checks[work] = _checked(_asked(request, work), next(records))
    return reply


def _cut(data: bytes, start: int, lengths: Sequence[int]) -> Iterator[bytes]:
    for length in lengths:
        yield data[start : start + length]
        start += length


def _asked(request: Sequence[Job | Check], position: int) -> Job | Check:
    if not 0 <= position < len(request):
        raise MalformedError("work that was not requested")
    return request[position]


def _judged(work: Job | Check, position: int, record: bytes) -> JudgedCase:
    if not isinstance(work, Job) or not 0 <= position < len(work.cases):
        raise MalformedError("a case that was not requested")
    if len(record) > MAX_LINE_BYTES:
        raise MalformedError(f"a record of more than {MAX_LINE_BYTES // MIB} MiB")
    asked = work.cases[position]
    document = as_object(parse_json(record, most_values=MAX_LINE_VALUES))
    found: CaseRecord = declared_only(case_record(document), CaseRecord)
    said = (found["task"], found["sample"], found["case"])
    keys = (found.get("run_key"), found.get("comparison_key"))
    if said != (work.task.id, work.sample, asked.case.number):
        raise MalformedError("a case other than the one requested")
    if keys != (asked.keys.run, asked.keys.comparison):
        raise MalformedError("a case of other code or other rules")
    return JudgedCase(asked.keys, result_of_record(found))


def _checked(work: Job | Check, text: bytes) -> CaseCheck:
    if not isinstance(work, Check):
        raise MalformedError("a check that was not requested")
    document = as_object(parse_json(text, most_values=MAX_LINE_VALUES))
    fields: Mapping[str, Any] = checked(document, CheckRecord)
    check = CaseCheck(
        **{**fields, "notes": tuple(fields["notes"]), "doubts": tuple(fields["doubts"])}
    )
    if (check.task_id, check.case) != (work.task.id, work.case.number):
        raise MalformedError("a check of another case")
    return check
