"""Outputs that were made elsewhere: as far as they are known before they are compared."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path

from judge.core.answer import Answer, Origin
from judge.core.records.cases import CaseRun
from judge.core.task import Task, TestCase
from judge.core.verdict import Verdict
from judge.errors import WorkbookError
from judge.files.documents import read_regular
from judge.grading.running import RunOutcome
from judge.grading.store import MAX_WORKBOOK_BYTES

FINISHED = "finished"
"""The status of such an output on record."""

NO_OUTPUT = hashlib.sha256(b"").hexdigest()
"""Stands for the digest of an output that is not there, or cannot be read."""


@dataclass(frozen=True, slots=True)
class FinishedOutput:
    """An output that was made elsewhere, and the case it answers."""

    task: Task
    case: TestCase
    path: Path | None
    sample: int = 0


def read_output(
    path: Path | None, missing: str, *, trusts_values: bool = True
) -> tuple[str, RunOutcome]:
    """The digest of a finished output, and its outcome as far as it is known before comparing.

    Args:
        path: the file; None where there is none.
        missing: what to say then.
        trusts_values: whether the values in it are trusted like those of a gold: where the user
            names the file or its folder, not where a results directory does.
    """
    if path is None:
        return NO_OUTPUT, RunOutcome(Verdict.NO, missing)
    try:
        data = read_regular(path, WorkbookError, most_bytes=MAX_WORKBOOK_BYTES)
    except WorkbookError as error:
        return NO_OUTPUT, RunOutcome(Verdict.IW, error.message.removeprefix(f"{path.parent}/"))
    if data is None:
        return NO_OUTPUT, RunOutcome(Verdict.NO, missing)
    return outcome_of_output(data, path.name, trusts_values=trusts_values)


def outcome_of_output(
    data: bytes, name: str, *, trusts_values: bool = True
) -> tuple[str, RunOutcome]:
    """The same for the bytes of an output.

    Args:
        data: the content.
        name: the file's name, for messages.
        trusts_values: as for :func:`read_output`.
    """
    digest = hashlib.sha256(data).hexdigest()
    origin = Origin.FINISHED if trusts_values else Origin.SOLUTION
    record: CaseRun = {"status": FINISHED, "output_sha256": digest}
    if not trusts_values:
        record["origin"] = origin.value
    return digest, RunOutcome(None, "", record, Answer.of_workbook(data, origin, name))
