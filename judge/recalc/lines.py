"""Computes one workbook after the other for another program: reads and answers line by line."""

from __future__ import annotations

from collections.abc import Callable
from typing import BinaryIO, NotRequired, TypedDict

from judge.errors import JudgeError, UsageError
from judge.files.documents import MalformedError, as_object, dump_json, parse_json
from judge.files.forms import checked
from judge.recalc.explaining import explanation_as_json
from judge.recalc.library import Recalculating, recalculation_as_json

MAX_LINE_BYTES = 64 * 1024
"""Longest request, in bytes; the rest of a longer line is skipped."""

MAX_CELLS = 100_000
"""Largest answer, in cells."""

REQUEST_FIELDS = ("id", "path", "at", "explain", "output")


class RecalcRequest(TypedDict):
    """One line of the input.

    Attributes:
        path: the workbook.
        id: any value; it is repeated in the answer.
        at: the cells to compute, such as ``Sheet1!A1:B9``; every formula cell if it is missing.
        explain: a single cell to explain; nothing else is then computed.
        output: where to write a copy whose formula cells hold the computed values.
    """

    path: str
    id: NotRequired[object]
    at: NotRequired[str | None]
    explain: NotRequired[str | None]
    output: NotRequired[str | None]


def serve_lines(
    recalculating: Recalculating, requests: BinaryIO, answer: Callable[[str], None]
) -> None:
    """Answers every line until the input ends; a failure is also an answer.

    Args:
        recalculating: the open engines.
        requests: the input, one JSON object per line; see :class:`RecalcRequest`. Blank lines are
            not answered.
        answer: called with a line of JSON for each request, in order: the fields of
            :func:`recalculation_as_json` or :func:`explanation_as_json`, or ``error`` with a
            ``message``, a ``hint`` and the exit code that the command would have; in any case
            ``id`` and ``path`` as requested.
    """
    while line := requests.readline(MAX_LINE_BYTES + 1):
        too_long = len(line) > MAX_LINE_BYTES and not line.endswith(b"\n")
        if too_long:
            _skip_line(requests)
        if line.strip():
            answer(dump_json(_answer_to(recalculating, line, too_long=too_long)))


def _skip_line(requests: BinaryIO) -> None:
    """Skips the rest of a line, reading it in bounded pieces."""
    while (piece := requests.readline(MAX_LINE_BYTES)) and not piece.endswith(b"\n"):
        pass


def _answer_to(recalculating: Recalculating, line: bytes, *, too_long: bool) -> dict[str, object]:
    repeated: dict[str, object] = {}
    try:
        if too_long:
            raise UsageError(f"a request has more than {MAX_LINE_BYTES:,} bytes")
        try:
            document = as_object(parse_json(line))
            repeated = {name: document[name] for name in ("id", "path") if name in document}
            request = checked(document, RecalcRequest)
        except MalformedError as error:
            raise UsageError(f"a request cannot be read: {error}") from error
        _check_fields(document)
        return repeated | _computed(recalculating, request)
    except JudgeError as error:
        fault = {"message": error.message, "hint": error.hint, "exit_code": error.exit_code}
        return repeated | {"error": fault}


def _check_fields(document: dict[str, object]) -> None:
    unknown = [name for name in document if name not in REQUEST_FIELDS]
    if unknown:
        raise UsageError(
            f"a request has the unknown field {unknown[0]!r}",
            hint=f"The fields are {', '.join(REQUEST_FIELDS)}.",
        )
    if document.get("explain") is not None and (
        document.get("at") is not None or document.get("output") is not None
    ):
        raise UsageError("explain cannot be combined with at or output")


def _computed(recalculating: Recalculating, request: RecalcRequest) -> dict[str, object]:
    explained = request.get("explain")
    if explained is not None:
        return {**explanation_as_json(recalculating.explain(request["path"], explained))}
    result = recalculating(request["path"], at=request.get("at"), output=request.get("output"))
    cells = len(result.computed.values) + len(result.computed.not_calculated)
    if cells > MAX_CELLS:
        raise UsageError(
            f"{request['path']}: {cells:,} formula cells; an answer has at most {MAX_CELLS:,}",
            hint="Request a part of them with at.",
        )
    return {**recalculation_as_json(result)}
