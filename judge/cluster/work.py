"""What a worker is asked and what it answers, as bytes.

Requests go from the client to the workers, which run its code anyway; they are pickled. Answers go
the other way, where nothing may be executed: they are msgpack with JSON records in it, and every
field is checked against what was asked.
"""

from __future__ import annotations

import json
import pickle
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import msgpack

from judge.core.records.cases import CaseRecord
from judge.core.task import Task, TestCase
from judge.errors import StoreError
from judge.files.documents import MIB, MalformedError, as_object, dump_json, parse_json
from judge.grading.case_records import case_record, record_of_result, result_of_record
from judge.grading.jobs import Job, JudgedCase
from judge.grading.recipe import WorkerRecipe
from judge.grading.verify import CaseCheck

RETURN_BYTES = 64 * MIB
"""Outputs that come back in one answer, if the workers do not see the results folder. A worker that
has as many answers at once; what is left is requested again."""


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
        """As it is sent."""
        judged = [
            [work, case, dump_json(record_of_result(each.keys, each.result)), each.output]
            for work, cases in self.judged.items()
            for case, each in cases.items()
        ]
        checks = [[work, json.dumps(asdict(check))] for work, check in self.checks.items()]
        packed: bytes = msgpack.packb(
            {
                "seconds": self.seconds,
                "judged": judged,
                "checks": checks,
                "gone": self.gone,
                "error": self.error,
            }
        )
        return packed

    @staticmethod
    def from_bytes(data: bytes, request: Sequence[Job | Check]) -> Reply:
        """Reads an answer.

        Args:
            data: the answer; believed in nothing but the verdicts.
            request: the work that was requested.

        Raises:
            MalformedError: it is not an answer to this request.
        """
        try:
            fields = msgpack.unpackb(data, strict_map_key=True)
            reply = Reply(
                seconds=float(fields["seconds"]),
                gone=str(fields["gone"]),
                error=str(fields["error"]),
            )
            for work, case, record, output in fields["judged"]:
                judged = _judged(request[work], case, record, output)
                reply.judged.setdefault(work, {})[case] = judged
            for work, check in fields["checks"]:
                reply.checks[work] = _checked(request[work], check)
        except MalformedError:
            raise
        except (StoreError, Exception) as error:
            # msgpack, JSON and the types of fields fail in many ways; each means the same here.
            raise MalformedError(f"{type(error).__name__}: {error}") from error
        return reply


def _judged(work: Job | Check, position: int, record: str, output: bytes | None) -> JudgedCase:
    if not isinstance(work, Job) or not 0 <= position < len(work.cases):
        raise MalformedError("a case that was not requested")
    asked = work.cases[position]
    found: CaseRecord = case_record(as_object(parse_json(record.encode())))
    said = (found["task"], found["sample"], found["case"])
    keys = (found.get("run_key"), found.get("comparison_key"))
    if said != (work.task.id, work.sample, asked.case.number):
        raise MalformedError("a case other than the one requested")
    if keys != (asked.keys.run, asked.keys.comparison):
        raise MalformedError("a case of other code or other rules")
    if output is not None and not isinstance(output, bytes):
        raise MalformedError("an output that is not bytes")
    return JudgedCase(asked.keys, result_of_record(found), output)


def _checked(work: Job | Check, text: str) -> CaseCheck:
    if not isinstance(work, Check):
        raise MalformedError("a check that was not requested")
    fields: Mapping[str, Any] = as_object(parse_json(text.encode()))
    check = CaseCheck(
        **{**fields, "notes": tuple(fields["notes"]), "doubts": tuple(fields["doubts"])}
    )
    if (check.task_id, check.case) != (work.task.id, work.case.number):
        raise MalformedError("a check of another case")
    return check
