"""Which cells of an input a program reads, seen by running it with a tracing layer.

The traced run is a run of its own: its output workbook is thrown away, so tracing cannot change a
verdict. What it reports comes from a program that may be hostile; it only says where to look for
corner cases, and is read with bounds.
"""

from __future__ import annotations

import json
import posixpath
from collections.abc import Mapping
from typing import Any

from judge.core.limits import Limits
from judge.core.submission import Submission
from judge.sandbox.contract import OutputStatus, RunRequest, SandboxSession
from judge.workbook.address import MAX_COLUMN, MAX_ROW

MAX_READS = 100_000
"""Cells that one traced run reports."""

MAX_TRACE_BYTES = 4 * 1024**2

Reads = Mapping[str, frozenset[tuple[int, int]]]
"""Sheet -> row and column of the cells that were read, blank ones included."""

_LAYER = """
import atexit as _atexit, json as _json
_seen, _written, _state = {}, set(), {"on": True, "left": %(most)d}
def _note(cell):
    if not _state["on"] or _state["left"] <= 0:
        return
    try:
        key = (cell.parent.title, cell.row, cell.column)
    except AttributeError:
        return
    if key in _seen or key in _written:
        return
    _seen[key] = None
    _state["left"] -= 1
def _traced(kind, writes):
    held = kind.value
    if not isinstance(held, property):
        return
    def read(self):
        _note(self)
        return held.fget(self)
    def write(self, value):
        try:
            _written.add((self.parent.title, self.row, self.column))
        except AttributeError:
            pass
        held.fset(self, value)
    kind.value = property(read, write if held.fset else None, None, held.__doc__)
def _save():
    _state["on"] = False
    sheets = {}
    for sheet, row, column in _seen:
        sheets.setdefault(sheet, []).append([row, column])
    with open(%(path)r, "w", encoding="utf-8") as target:
        _json.dump(sheets, target)
try:
    import openpyxl as _openpyxl
    from openpyxl.cell.cell import Cell as _Cell
    from openpyxl.cell.read_only import ReadOnlyCell as _ReadOnlyCell
    _traced(_Cell, True)
    _traced(_ReadOnlyCell, False)
    _plain_save = _openpyxl.Workbook.save
    def _quiet_save(self, *args, **kwargs):
        _state["on"] = False
        try:
            return _plain_save(self, *args, **kwargs)
        finally:
            _state["on"] = True
    _openpyxl.Workbook.save = _quiet_save
except ImportError:
    pass
_atexit.register(_save)
exec(compile(%(code)r, "solution.py", "exec"), {"__name__": "__main__"})
"""


def traced_program(code: str, trace_path: str) -> str:
    """A program that does what another does, and reports the cells that it read.

    Args:
        code: the program.
        trace_path: where the report goes; absolute, inside the sandbox.
    """
    return _LAYER % {"most": MAX_READS, "path": trace_path, "code": code}


def cells_read(
    session: SandboxSession, submission: Submission, input_data: bytes, limits: Limits
) -> Reads:
    """The cells of an input that a program reads; nothing if that cannot be seen.

    Raises:
        SandboxError: the sandbox failed, not the program.
    """
    if submission.code is None:
        return {}
    trace_path = posixpath.join(posixpath.dirname(submission.output_path), "cells-read.json")
    result = session.run(
        RunRequest(
            program=traced_program(submission.code, trace_path),
            files={submission.input_path: input_data},
            collect=trace_path,
            limits=limits,
        )
    )
    if result.output_status is not OutputStatus.COLLECTED or result.output is None:
        return {}
    return parse_reads(result.output)


def parse_reads(data: bytes) -> Reads:
    """Reads a report of :func:`traced_program`; what is not a cell is passed over."""
    if len(data) > MAX_TRACE_BYTES:
        return {}
    try:
        document: Any = json.loads(data)
    except (ValueError, RecursionError):
        return {}
    if not isinstance(document, dict):
        return {}
    return {
        sheet: frozenset(
            (place[0], place[1])
            for place in places[:MAX_READS]
            if isinstance(place, list)
            and len(place) == 2
            and all(type(each) is int for each in place)
            and 1 <= place[0] <= MAX_ROW
            and 1 <= place[1] <= MAX_COLUMN
        )
        for sheet, places in document.items()
        if isinstance(places, list)
    }
