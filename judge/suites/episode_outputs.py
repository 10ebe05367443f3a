"""The field ``outputs`` of a submission's record: what episodes on a desktop left.

An object whose names are numbers of cases. Of each case it has ``sha256``, the hash of a file in
the results directory that the record is in (null if none was left), and optionally ``name``,
``ended``, ``gui_only`` and ``problem``, as in :class:`judge.core.submission.KeptOutput`; the rest
is for readers.
"""

# Without `from __future__ import annotations`: see judge.files.forms.

from collections.abc import Mapping
from pathlib import Path
from typing import NotRequired, TypedDict

from judge.core.submission import KeptOutput
from judge.core.task import Task
from judge.files.documents import MalformedError
from judge.files.forms import Sha256, checked

FIELD = "outputs"


class _OutputRecord(TypedDict):
    sha256: Sha256 | None
    name: NotRequired[str]
    ended: NotRequired[str]
    gui_only: NotRequired[bool]
    problem: NotRequired[str]


def read_outputs(
    record: Mapping[str, object], task: Task, folder: Path
) -> Mapping[int, KeptOutput] | None:
    """What the record says that episodes left; None if it is of another kind.

    Args:
        record: a record of a file of submissions.
        task: the task that it is about.
        folder: the folder of that file.

    Raises:
        MalformedError: it says something that cannot be, such as a case that the task lacks.
    """
    found = record.get(FIELD)
    if found is None:
        return None
    if not isinstance(found, dict):
        raise MalformedError(f"field {FIELD!r} must be an object: number of a case -> its file")
    numbers = {str(case.number): case.number for case in task.cases}
    outputs: dict[int, KeptOutput] = {}
    for number, each in found.items():
        if number not in numbers:
            raise MalformedError(f"field {FIELD!r}: the task has no case {str(number)[:40]!r}")
        outputs[numbers[number]] = _output(each, f"{FIELD}.{number}", folder)
    return outputs


def _output(found: object, place: str, folder: Path) -> KeptOutput:
    try:
        each = checked(found, _OutputRecord)
    except MalformedError as error:
        raise MalformedError(f"{place}: {error}") from error
    return KeptOutput(
        folder=folder,
        sha256=each["sha256"],
        name=each.get("name") or "output",
        ended=each.get("ended") or "done",
        gui_only=each.get("gui_only", False),
        problem=each.get("problem", ""),
    )
