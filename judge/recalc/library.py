"""Computes workbooks outside of grading: for the command, the library, and other programs."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import BinaryIO, NotRequired, TypedDict

from judge.closable import Closable
from judge.core.submission import Origin
from judge.errors import JudgeError, PositionError, UsageError
from judge.files.documents import MalformedError, as_object, dump_json, parse_json
from judge.files.documents import written as written_text
from judge.files.forms import checked
from judge.files.writing import naming_what_is_written, write_whole
from judge.recalc.explaining import Explanation, address, explanation_as_json
from judge.recalc.policy import DEFAULT_TIMEOUT_S
from judge.recalc.rewrite import with_values
from judge.recalc.select import open_recalculator, recalc_cache_folder
from judge.sandbox import open_sandbox
from judge.workbook.cell import CellRange, CellRef, ComputedValues, json_value
from judge.workbook.position import SheetIndex, parse_position, resolve_position
from judge.workbook.reader import Workbook, open_workbook


@dataclass(frozen=True, slots=True)
class Recalculation:
    """The result of computing a workbook.

    Attributes:
        computed: the values, the cells without a value, the engines and notes.
        ranges: the rectangles that were searched for formula cells.
        position_notes: how the position was interpreted, if it is not exact.
        written: where the copy with the values was written, if a copy was requested.
    """

    computed: ComputedValues
    ranges: tuple[CellRange, ...]
    position_notes: tuple[str, ...] = ()
    written: Path | None = None


class RecalculationJson(TypedDict):
    """The JSON form of a recalculation."""

    values: dict[str, object]
    not_calculated: dict[str, str]
    engines: list[str]
    notes: list[str]
    seconds: float
    written: str | None


class Recalculating(Closable):
    """Calculation engines that stay open, to compute one workbook after another.

    Safe to use from several threads. The sandbox is opened immediately, an engine when a formula
    first needs it.

    Args:
        engine: ``auto`` or the name of one engine.
        sandbox: ``auto``, ``docker`` or ``bubblewrap``.
        timeout_s: processor seconds that one engine may take for one workbook.
        lenient_names: whether newer functions without their prefix are computed.

    Raises:
        UsageError: there is no such engine.
        SandboxError: no sandbox is available.
        RecalcError: the requested engine is not installed.
    """

    def __init__(
        self,
        *,
        engine: str = "auto",
        sandbox: str = "auto",
        timeout_s: float = DEFAULT_TIMEOUT_S,
        lenient_names: bool = False,
    ) -> None:
        with contextlib.ExitStack() as stack:
            opened = stack.enter_context(contextlib.closing(open_sandbox(sandbox)))
            self._recalculator = open_recalculator(
                opened,
                engine=engine,
                timeout_s=timeout_s,
                lenient_names=lenient_names,
                cache_dir=recalc_cache_folder(),
            )
            stack.callback(self._recalculator.close)
            self._open = stack.pop_all()

    def __call__(
        self, path: Path | str | bytes, *, at: str | None = None, output: Path | str | None = None
    ) -> Recalculation:
        """Computes the formulas of a workbook; the stored values are not trusted.

        Args:
            path: the workbook, as a path or as bytes.
            at: an answer position such as ``Sheet1!A1:B9``; None for every formula cell.
            output: where to write a copy whose formula cells hold the computed values.

        Raises:
            WorkbookError: the workbook cannot be read.
            PositionError: nothing in the workbook fits ``at``.
            RecalcError: an engine cannot be started.
            JudgeError: the copy cannot be written.
        """
        workbook = _opened(path)
        ranges, notes = ranges_of(workbook, at)
        computed = self._recalculator.fill(workbook, ranges, origin=Origin.SOLUTION)
        written = None if output is None else Path(output)
        if written is not None:
            write_copy(workbook, computed, written)
        return Recalculation(computed, tuple(ranges), notes, written)

    def explain(self, path: Path | str | bytes, cell: str) -> Explanation:
        """Computes one cell, and explains it with the answers of all engines.

        Args:
            path: the workbook, as a path or as bytes.
            cell: a single cell, such as ``Sheet1!B7``.

        Raises:
            WorkbookError: the workbook cannot be read.
            PositionError: nothing in the workbook fits ``cell``, or ``cell`` is not a single cell.
            RecalcError: an engine cannot be started.
        """
        workbook = _opened(path)
        ranges, notes = ranges_of(workbook, cell)
        if len(ranges) != 1 or ranges[0].size != 1:
            raise PositionError(f"{written_text(cell)} is not a single cell, such as Sheet1!B7")
        area = ranges[0]
        ref = CellRef(area.sheet, area.min_row, area.min_column)
        answer = self._recalculator.explain(workbook, ref, origin=Origin.SOLUTION)
        return replace(answer, notes=(*notes, *answer.notes))

    def close(self) -> None:
        """Ends the engines and the sandbox; safe to call twice."""
        self._open.close()


def _opened(path: Path | str | bytes) -> Workbook:
    return open_workbook(path if isinstance(path, bytes) else Path(path))


def recalculation_as_json(result: Recalculation) -> RecalculationJson:
    """Converts a recalculation to plain data for JSON."""
    computed = result.computed
    missing = sorted(computed.not_calculated.items())
    return {
        "values": {
            address(ref): json_value(value) for ref, value in sorted(computed.values.items())
        },
        "not_calculated": {address(ref): why for ref, why in missing},
        "engines": list(computed.engines),
        "notes": [*result.position_notes, *computed.notes],
        "seconds": round(computed.seconds, 4),
        "written": None if result.written is None else str(result.written),
    }


def ranges_of(workbook: Workbook, at: str | None) -> tuple[Sequence[CellRange], tuple[str, ...]]:
    """The rectangles of a position, or the used ranges of all sheets; and notes on the position.

    Raises:
        PositionError: nothing in the workbook fits the position.
        WorkbookError: the workbook cannot be read.
    """
    if at is None:
        used = (workbook.used_range(name) for name in workbook.sheet_names)
        return [area for area in used if area is not None], ()
    sheets = SheetIndex(
        names=workbook.sheet_names, used=lambda name: workbook.sheet(name).used_window()
    )
    position = parse_position(at)
    resolved = resolve_position(position, sheets, None, typed=True)
    return resolved.gold_ranges, (*position.notes, *resolved.notes)


def write_copy(workbook: Workbook, computed: ComputedValues, output: Path) -> None:
    """Writes a copy of a workbook with the computed values, completely or not at all.

    Raises:
        JudgeError: the copy cannot be written.
    """
    data = with_values(workbook.data, computed.values, date_1904=workbook.facts.date_1904)
    with naming_what_is_written(output):
        write_whole(output, data)


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
        raise UsageError("the field 'explain' cannot be combined with 'at' or 'output'")


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
