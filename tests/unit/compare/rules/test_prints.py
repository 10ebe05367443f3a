"""Sheets as LibreOffice prints them: the text of both workbooks, made in the sandbox."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import openpyxl
import pytest

from judge.compare.cells.computing import NoEngines
from judge.compare.contract import AnswerFaultError
from judge.compare.sealed import UnreadableFileError, sealed
from judge.errors import RecalcError
from judge.recalc.computing import EngineCompute
from judge.recalc.select import OFFICE_ROOT, open_recalculator
from judge.sandbox import open_sandbox
from tests.unit.compare.rules.judged import CORPUS, find, outcome

PRINT: dict[str, Any] = {"type": "sheet_print", "sheet_idx0": 0, "sheet_idx1": "EI0"}
SECOND = {**PRINT, "sheet_idx0": 1, "sheet_idx1": "EI1"}


def saved(price: Any, code: str, second: str = "b") -> bytes:
    book = openpyxl.Workbook()
    sheet = book.active
    assert sheet is not None
    sheet.append(["Name, first", "Price"])
    sheet.append(["a", price])
    sheet["B2"].number_format = code
    book.create_sheet("Second")["A1"] = second
    buffer = io.BytesIO()
    book.save(buffer)
    return buffer.getvalue()


class Printer(NoEngines):
    """Prints what its script says."""

    def __init__(self, said: Sequence[str] | Exception) -> None:
        self.said = said
        self.asked: list[int] = []

    def print_sheet(self, workbook: bytes, number: int) -> list[str]:
        assert workbook
        self.asked.append(number)
        if isinstance(self.said, Exception):
            raise self.said
        return list(self.said)

    def read_file(self, reader: str, data: bytes, options: Mapping[str, Any]) -> Mapping[str, Any]:
        raise AssertionError(reader)


def test_the_file_beside_a_workbook_comes_first() -> None:
    printer = Printer(["x"])
    by_name = {**PRINT, "sheet_idx0": "RNSheet1", "sheet_idx1": "ENSheet1"}
    found = find([by_name], "val5.xlsx", "base.xlsx", compute=printer)
    assert not found.agrees  # the answer has no file here, and is printed; the gold has one
    assert printer.asked == [1]
    lines = (CORPUS / "base-Sheet1.csv").read_text().splitlines()
    assert outcome([by_name], "val5.xlsx", "base.xlsx", compute=Printer(lines)) == "equal"


def test_without_libreoffice_nothing_is_decided() -> None:
    found = find([PRINT], "val5.xlsx", "base.xlsx", compute=Printer(RecalcError("none")))
    assert found.undecided
    assert "none" in found.cause


def test_what_cannot_be_printed_is_an_unreadable_answer() -> None:

    with pytest.raises(AnswerFaultError, match="too long"):
        find([PRINT], "val5.xlsx", "base.xlsx", compute=Printer(UnreadableFileError("too long")))


def test_what_only_computes_prints_nothing() -> None:
    assert sealed(NoEngines()) is None


@pytest.fixture(scope="module")
def office() -> Iterator[EngineCompute]:
    with contextlib.closing(open_sandbox("bubblewrap")) as sandbox:
        if not sandbox.has_root(OFFICE_ROOT):
            pytest.skip("the sandbox has no LibreOffice: judge sandbox build")
        recalculator = open_recalculator(sandbox, engine="libreoffice")
        with contextlib.closing(recalculator):
            yield EngineCompute(recalculator)


@pytest.mark.office
@pytest.mark.bubblewrap
def test_libreoffice_prints_values_as_they_are_shown(office: EngineCompute, tmp_path: Path) -> None:
    gold = tmp_path / "gold.xlsx"
    gold.write_bytes(saved(12.5, "0.00"))
    assert office.print_sheet(gold.read_bytes(), 1) == ['"Name, first",Price', "a,12.50"]
    assert office.print_sheet(gold.read_bytes(), 2) == ["b"]
    for answer, right in (
        (saved("=10+2.499", "0.00"), "equal"),  # computed, and shown as 12.50
        (saved(12.5, "General"), "different"),
        (saved(12.5, "0.00", "c"), "equal"),
    ):
        assert outcome([PRINT], answer, str(gold), compute=office) == right
    assert outcome([SECOND], saved(1, "0", "b "), str(gold), compute=office) == "equal"
    assert outcome([SECOND], saved(1, "0", "c"), str(gold), compute=office) == "different"
    (tmp_path / "gold-Sheet.csv").write_text('"Name, first",Price\na,12.50\n\n')
    assert outcome([PRINT], saved(12.5, "0.00"), str(gold), compute=office) == "equal"
    assert (
        outcome([PRINT], saved(12.5, "0.00"), str(gold), compute=office, profile="official")
        == "equal"
    )


@pytest.mark.office
@pytest.mark.bubblewrap
def test_libreoffice_computes_after_it_printed(office: EngineCompute) -> None:
    with pytest.raises(UnreadableFileError, match="not a package"):
        office.print_sheet(b"nothing", 1)
    assert office.print_sheet(saved(1, "0"), 2) == ["b"]
