"""Scripted engines and workbooks."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from typing import Any

import openpyxl
from openpyxl.worksheet.formula import ArrayFormula

from judge.recalc.contract import PLAIN, Dialect, EngineResult, OutOfTimeError
from judge.workbook.cell import CellRange, CellRef, CellValue
from judge.workbook.reader import Workbook, open_workbook

SHEET = "S"
ALL = CellRange(SHEET, 1, 1, 20, 10)


def ref(row: int, column: int = 1) -> CellRef:
    return CellRef(SHEET, row, column)


class ScriptedEngine:
    """Gives the same cells at every call; raises instead if given an exception.

    With ``seconds`` it takes so much processor time, and has no answer where it gets less.

    Attributes:
        asked: for each call the ranges and the names to rewrite.
    """

    def __init__(
        self,
        name: str,
        values: Mapping[CellRef, CellValue] | BaseException,
        failed: Mapping[CellRef, str] | None = None,
        *,
        seconds: float = 0.0,
    ) -> None:
        self._name = name
        self._seconds = seconds
        self._values = values
        self._failed = failed or {}
        self.asked: list[tuple[tuple[CellRange, ...], dict[str, str]]] = []
        self.closed = False

    @property
    def name(self) -> str:
        return self._name

    @property
    def version(self) -> str:
        return "1"

    def compute(
        self,
        workbook: bytes,
        ranges: Sequence[CellRange],
        *,
        timeout_s: float,
        dialect: Dialect = PLAIN,
    ) -> EngineResult:
        self.asked.append((tuple(ranges), dict(dialect.names)))
        if isinstance(self._values, BaseException):
            raise self._values
        if self._seconds > timeout_s:
            raise OutOfTimeError(f"{self._name}: took longer than {timeout_s:g} s")
        return EngineResult(self._values, self._failed, self._seconds)

    def close(self) -> None:
        self.closed = True


def workbook(cells: Mapping[str, Any], **formats: str) -> Workbook:
    """Makes a workbook as openpyxl writes it: formulas have no values."""
    return open_workbook(package(cells, **formats))


def package(cells: Mapping[str, Any], **formats: str) -> bytes:
    book = openpyxl.Workbook()
    sheet = book.worksheets[0]
    sheet.title = SHEET
    for address, value in cells.items():
        if isinstance(value, tuple):
            sheet[address] = ArrayFormula(*value)
        else:
            sheet[address] = value
    for address, code in formats.items():
        sheet[address].number_format = code
    stream = io.BytesIO()
    book.save(stream)
    return stream.getvalue()
