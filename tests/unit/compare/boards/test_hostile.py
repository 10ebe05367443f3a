"""Answers made to cost time: each gets a verdict within the limits of the reader."""

from __future__ import annotations

import io
import zipfile

import pytest

from judge.compare.boards.board import CATEGORIES
from judge.compare.cells.computing import NoEngines
from judge.compare.contract import AnswerFaultError, Rules
from judge.compare.profiles import get_profile
from judge.compare.registry import checker_of
from judge.core.submission import Answer, Origin
from judge.core.task import CheckerSpec, Gold, Task, TestCase
from tests.boards import workbook

BOARD = {
    str(sheet): {category: dict.fromkeys(names, True) for category, names in CATEGORIES.items()}
    for sheet in (1, 2)
}
BOARD["2"]["filters"] = {}
DATA, CHART, PIVOT = "xl/worksheets/sheet1.xml", "xl/charts/chart1.xml", "xl/pivotTables/p.xml"


def changed(part: str, old: str, new: str) -> bytes:
    buffer = io.BytesIO()
    with (
        zipfile.ZipFile(io.BytesIO(workbook())) as source,
        zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as target,
    ):
        for name in source.namelist():
            text = source.read(name)
            if name == part:
                assert old.encode() in text, old
                text = text.replace(old.encode(), new.encode(), 1)
            target.writestr(name, text)
    return buffer.getvalue()


FAR = '<row r="1048576"><c r="A1048576" s="1"><v>1</v></c><c r="XFD1048576"><v>1</v></c></row>'
RULE = '<conditionalFormatting sqref="A1:XFD1048576"><cfRule type="expression" priority="9"/>'
SERIES = "<ser><val><numRef><f>'Data'!$A$1:$XFD$1048576</f></numRef></val></ser>"
COLUMN = '<col min="1" max="16384"/>'
HOSTILE = {
    "far cells": (DATA, "</sheetData>", f"{FAR}</sheetData>"),
    "filter of everything": (DATA, 'ref="A1:C6"', 'ref="A1:XFD1048576"'),
    "filter of nothing": (DATA, 'ref="A1:C6"', 'ref="Everything"'),
    "rules": (DATA, "<pageMargins", f"{RULE}</conditionalFormatting>" * 1000 + "<pageMargins"),
    "columns": (DATA, "<sheetData>", f"<cols>{COLUMN * 20_000}</cols><sheetData>"),
    "series of everything": (CHART, "</barChart>", f"{SERIES * 500}</barChart>"),
    "pane": (DATA, 'ySplit="1"', 'ySplit="1e300"'),
    "pivot fields": (PIVOT, '<field x="0"/>', '<field x="-99999999"/>' * 20_000),
    "no pivot": (PIVOT, "<pivotTableDefinition", "<other"),
}  # fmt: skip


@pytest.mark.parametrize("name", HOSTILE)
@pytest.mark.parametrize("profile", ["standard", "official"])
def test_a_verdict_for_each(name: str, profile: str) -> None:
    golds = [Gold(data=workbook(), options={"board": BOARD})]
    task = Task("1", "?", "?", (TestCase(1, (), tuple(golds)),), CheckerSpec("boards"))
    answer = Answer.of_workbook(changed(*HOSTILE[name]), Origin.FINISHED)
    try:
        found = checker_of(task.checker).check(
            task, task.cases[0], golds, answer, NoEngines(), Rules(get_profile(profile))
        )
    except AnswerFaultError:
        return
    # What does not change the table at A1 is not noticed, as published.
    unnoticed = {"columns"} if profile == "standard" else {"columns", "far cells"}
    assert found.agrees is (name in unnoticed), found.cause
