"""A workbook is read as LibreOffice and openpyxl read it, or it counts as unreadable."""

from __future__ import annotations

import json

import pytest

from benchmarks.package_forms import PAGE, RECORD, UNREADABLE, Reading, openpyxls, ours, page
from tests.unit.workbook.package_forms import (
    AS_EXCEL,
    AS_LIBREOFFICE,
    AS_OPENPYXL,
    FORMS,
    WITHOUT_THE_SHEET,
)

RECORDED: dict[str, dict[str, Reading]] = json.loads(RECORD.read_text())


@pytest.mark.parametrize("name", FORMS)
def test_a_form_is_read_as_both_programs_read_it_or_not_at_all(name: str) -> None:
    found = ours(FORMS[name]())
    readings = RECORDED[name]
    allowed: list[Reading] = [UNREADABLE]
    if name in AS_EXCEL:
        cell, value, _ = AS_EXCEL[name]
        plain = RECORDED["plain"]["openpyxl"]
        assert not isinstance(plain, str)
        allowed = [plain | {"Data": plain["Data"] | {cell: value}}]
    elif name in WITHOUT_THE_SHEET:
        whole = readings["libreoffice"]
        assert not isinstance(whole, str)
        allowed = [{sheet: cells for sheet, cells in whole.items() if sheet != "Data"}]
    elif readings["libreoffice"] == readings["openpyxl"]:
        allowed.append(readings["openpyxl"])
    elif name in AS_LIBREOFFICE:
        allowed = [readings["libreoffice"]]
    elif name in AS_OPENPYXL:
        allowed = [readings["openpyxl"]]
    assert found in allowed


@pytest.mark.parametrize("name", FORMS)
def test_what_openpyxl_reads_is_still_what_was_recorded(name: str) -> None:
    assert openpyxls(FORMS[name]()) == RECORDED[name]["openpyxl"]


USUAL = [
    "plain",
    "workbook: all parts prefixed",
    "workbook: strict",
    "worksheet: all prefixed",
    "worksheet: byte order mark",
    "worksheet: without a declaration",
    "rows: without numbers",
    "rows: line breaks and spaces between everything",
    "cells: without references",
    "strings: runs",
    "strings: phonetic runs",
    "strings: CDATA",
    "links: absolute target",
    "formula: array",
    "formula: shared",
    "date: UTC with milliseconds",
    "error: of Google Sheets",
    "error: of LibreOffice",
    "sheets: Straße and Strasse",
    "sheets: a macro sheet",
    "styles: a date format of East Asia",
    "types: the sheet in other letters",
    "types: the sheet with an escape",
    "types: with macros",
    "parts: the sheet ends in .BIN",
    "styles: without formats and a relationship",
    "names: of a sheet",
    *(name for name in FORMS if name.startswith("ranges: ")),
]
"""Forms in which programs write workbooks."""


@pytest.mark.parametrize("name", USUAL)
def test_what_real_programs_write_is_read(name: str) -> None:
    assert ours(FORMS[name]()) != UNREADABLE


def test_decisions_concern_forms_on_which_the_programs_differ() -> None:
    for name in (*AS_LIBREOFFICE, *AS_OPENPYXL, *WITHOUT_THE_SHEET):
        assert RECORDED[name]["libreoffice"] != RECORDED[name]["openpyxl"]


def test_the_page_says_what_is_read() -> None:
    assert PAGE.read_text() == page(RECORDED)
