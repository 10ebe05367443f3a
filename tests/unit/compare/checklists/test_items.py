"""One item of each kind on a folder: whether it holds, and its message if it does not."""

from __future__ import annotations

import io
from dataclasses import replace
from typing import Any

import pytest
from openpyxl import Workbook
from openpyxl.formatting.rule import CellIsRule
from openpyxl.styles import Font, PatternFill
from openpyxl.workbook.defined_name import DefinedName
from openpyxl.worksheet.datavalidation import DataValidation

from judge.compare.cells.computing import NoEngines
from judge.compare.checklists.checker import CHECKER, NO_DETERMINISTIC_ITEM
from judge.compare.checklists.items import State
from judge.compare.checklists.kinds import KINDS
from judge.compare.contract import AnswerFaultError, Rules
from judge.compare.profiles import get_profile
from judge.core.finding import Finding
from judge.core.submission import Answer, AnswerFile, AnswerForm, Origin
from judge.core.task import CheckerSpec, Gold, Task, TestCase
from judge.errors import GoldFaultError, UsageError
from judge.files.packed_folder import packed
from judge.workbook.cell import CellRef, ComputedValues

CALENDAR = b"""BEGIN:VCALENDAR
BEGIN:VEVENT
SUMMARY:Budget\\, review
DTSTART;TZID=Europe/Berlin:20240531T100000
DTEND:20240531T113000
END:VEVENT
END:VCALENDAR
"""
MAIL = b"From: a@x.org\nTo: bob@x.org\nSubject: Report\n\nThe total is 42.\n"
REPLY = (
    b'{"total": 1234.5, "row": {"value": "Row 140"}, "text": "It fell by -97 to 1,970", "no": null}'
)


class Engines(NoEngines):
    """Computes only B3."""

    def fill(self, workbook, ranges, *, origin, like=None):  # type: ignore[no-untyped-def]
        return ComputedValues({CellRef("Data", 3, 2): 12})


def book(*, filled: bool = True) -> bytes:
    workbook = Workbook()
    sheet: Any = workbook.active
    sheet.title = "Data"
    if filled:
        sheet.append(["Name", "Amount"])
        sheet.append(["north", 5])
        sheet.append(["south", "=SUM(B2,Other!A1)"])
        sheet.append(["west", "42"])
        sheet["B2"].font = Font(color="FF0070C0", bold=True)
        sheet["B3"].font = Font(color="FF00B050")
        sheet["B2"].number_format = "0.00"
        sheet["A1"].fill = PatternFill("solid", fgColor="FFFFFF00")
        sheet.auto_filter.ref = "A1:B4"
        sheet.freeze_panes = "A2"
        sheet.merge_cells("D1:E1")
        rule = DataValidation(type="list", formula1='"a,b"')
        rule.add("C2:C4")
        sheet.add_data_validation(rule)
        sheet.conditional_formatting.add("B2:B4", CellIsRule("greaterThan", ["3"]))  # type: ignore[no-untyped-call]
        workbook.defined_names["Sales"] = DefinedName("Sales", attr_text="Data!$B$2:$B$4")
    workbook.create_sheet("Other")["A1"] = 7
    written = io.BytesIO()
    workbook.save(written)
    return written.getvalue()


FILES = {
    "book.xlsx": book(),
    "data/rows.csv": b'name,amount\nnorth,5\nsouth,"1,200"\n',
    "calendar/bob.ics": CALENDAR,
    "emails/bob/1.eml": MAIL,
    "reply.json": REPLY,
}


def judge(*items: dict[str, object], files: dict[str, bytes] | None = None) -> Finding:
    """Judges items on a folder."""
    listed = [
        {"id": str(number), "file": "book.xlsx", **item}
        for number, item in enumerate(items, start=1)
    ]
    spec = CheckerSpec("checklist", {"items": listed})
    CHECKER.check_options(spec.options)
    task = Task("t", "", "", (TestCase(1, (), ()),), spec, AnswerForm.FILES)
    answer = Answer(Origin.FINISHED, (AnswerFile("t", packed(FILES if files is None else files)),))
    rules = Rules(get_profile("standard"))
    return CHECKER.check(task, task.cases[0], (), answer, Engines(), rules)


CELL = {"kind": "cell", "sheet": "Data"}
LOOK = {"kind": "format", "sheet": "Data"}
OBJECT = {"kind": "object", "sheet": "data"}
TEXT = {"kind": "text", "file": ""}
TABLE = {"kind": "table", "file": "data/rows.csv"}
EVENT = {"kind": "calendar", "file": "calendar/bob.ics"}
POST = {"kind": "mail", "file": "emails/bob/*.eml"}

HOLDING: tuple[dict[str, object], ...] = (
    {**CELL, "cell": "B2", "expected": 5},
    {**CELL, "cell": "B3", "expected": 12},
    {**CELL, "cell": "B3", "expected": 11.5, "tolerance": 0.5},
    {**CELL, "cell": "A2", "expected": " North "},
    {**CELL, "cell": "A2", "one_of": ["south", "north"]},
    {**CELL, "cell": "B4", "expected": 42, "text_numbers": True},
    {**CELL, "cell": "F9", "expected": None},
    {"kind": "range", "sheet": "Data", "range": "A2:B3", "expected": [["north", 5], ["south", 12]]},
    {"kind": "formula", "sheet": "Data", "cells": "B3", "functions": ["sum"], "references": ["B2"]},
    {"kind": "formula", "sheet": "Data", "cells": "B3", "text": "=sum($B$2, Other!A1)"},
    {**LOOK, "cells": "B2", "bold": True, "number_format": "0.00", "font": "blue"},
    {**LOOK, "cells": "A1", "fill": "yellow", "bold": False},
    {**LOOK, "convention": "banker"},
    {"kind": "sheet", "sheet": "OTHER"},
    {"kind": "sheet", "sheet": "Sheet3", "exists": False},
    {"kind": "sheet", "order": ["Data", "Other"]},
    {"kind": "sheet", "count": 2},
    {**OBJECT, "object": "name", "name": "sales", "refers_to": "=Data!B2:B4"},
    {**OBJECT, "object": "filter", "range": "A1:B4"},
    {**OBJECT, "object": "frozen", "rows": 1},
    {**OBJECT, "object": "merged", "range": "D1:E1"},
    {**OBJECT, "object": "validation", "type": "list", "range": "C3"},
    {**OBJECT, "object": "conditional", "count": 1},
    {**OBJECT, "object": "sorted", "column": "A"},
    {**TEXT, "reply_key": "row", "contains": "row 140"},
    {**TEXT, "reply_key": "text", "number": -97},
    {**TEXT, "reply_key": "text", "number": 1970, "without": "#REF!"},
    {**TEXT, "file": "book.xlsx", "contains": ["South", "12"]},
    {**TEXT, "patterns": ["fell by -\\d+"]},
    {"kind": "file", "file": "data/rows.csv"},
    {"kind": "file", "file": "data/other.csv", "exists": False},
    {"kind": "file", "pattern": "emails/*.eml", "count": 1},
    {**TABLE, "rows": 2, "columns": ["Name", "Amount"]},
    {**TABLE, "row": 2, "column": "amount", "expected": 1200},
    {**EVENT, "summary": "budget, review", "start": "2024-05-31 10:00"},
    {**EVENT, "summary": "holiday", "exists": False},
    {**POST, "to": "bob", "contains": "the total is 42"},
    {"kind": "answer", "key": "total", "type": "float", "expected": 1234.5},
    {
        "kind": "rules",
        "rules": [
            {
                "type": "check_cell",
                "sheet_idx": 0,
                "coordinate": "B2",
                "props": {"value": {"method": "eq", "ref": 5}},
            }
        ],
        "evaluator": "osworld",
    },
    {
        "kind": "metrics",
        "metrics": [
            {
                "func": "check_include_exclude",
                "expected": {"include": ["total"], "exclude": []},
            }
        ],
    },
)

FAILING: tuple[tuple[dict[str, object], str], ...] = (
    ({**CELL, "cell": "B2", "expected": 5.1}, "found 5"),
    ({**CELL, "cell": "B4", "expected": 42}, "the cell holds text"),
    ({**CELL, "sheet": "Sheet9", "cell": "B4", "expected": 42}, "no sheet 'Sheet9'"),
    ({**CELL, "cell": "A1", "expected": 1, "file": "other.xlsx"}, "no file 'other.xlsx'"),
    ({**CELL, "cell": "A1", "expected": 1, "file": "data/rows.csv"}, "data/rows.csv"),
    ({"kind": "formula", "sheet": "Data", "cells": "B2:B3"}, "there is no formula"),
    ({"kind": "formula", "cells": "B3", "functions": ["VLOOKUP"]}, "does not use VLOOKUP"),
    ({"kind": "formula", "cells": "B3", "without": ["SUM"]}, "the formula uses SUM"),
    ({"kind": "formula", "cells": "B3", "references": ["Other!B1"]}, "does not refer to Other!B1"),
    ({**LOOK, "cells": "B3", "bold": True}, "is not bold"),
    ({**LOOK, "sheet": "Other", "convention": "banker"}, "is black and not blue"),
    ({**OBJECT, "object": "filter", "range": "G1"}, "has a filter"),
    ({**OBJECT, "object": "frozen", "rows": 2}, "rows 2"),
    ({**OBJECT, "object": "sorted", "column": "A", "descending": True}, "descending"),
    ({**OBJECT, "object": "chart"}, "has a chart"),
    ({**TEXT, "reply_key": "text", "number": 97}, "97"),
    ({**TEXT, "reply_key": "no", "contains": "None"}, "contains None"),
    ({**TEXT, "reply_key": "text", "without": "IT FELL"}, "IT FELL"),
    ({**TABLE, "rows": 3}, "rows"),
    ({**EVENT, "start": "2024-05-31 11:00"}, "from 2024-05-31 11:00"),
    ({**POST, "subject": "Invoice"}, "about Invoice"),
    ({"kind": "answer", "key": "sum", "type": "float", "expected": 1}, "the reply has no 'sum'"),
)


def said(item: object) -> str:
    return str(dict(item) if isinstance(item, dict) else item)[:70]


@pytest.mark.parametrize("item", HOLDING, ids=said)
def test_an_item_that_holds(item: dict[str, object]) -> None:
    found = judge(item)
    assert found.agrees, found.cause
    assert found.record["earned_share"] == 1.0
    assert not str(found.record["items"][0]["words"]).startswith("{")


@pytest.mark.parametrize(("item", "cause"), FAILING, ids=said)
def test_an_item_that_fails(item: dict[str, object], cause: str) -> None:
    found = judge(item)
    assert not found.agrees
    assert cause in found.cause
    assert found.record["items"][0]["state"] == State.FAILS


def test_each_deterministic_kind_has_an_item_here() -> None:
    kinds = {str(item["kind"]) for item in HOLDING}
    assert kinds | {"llm", "human", "program", "published"} == set(KINDS)


def test_a_range_earns_the_share_of_its_cells() -> None:
    rows = [["north", 5], ["south", 99]]
    found = judge({"kind": "range", "sheet": "Data", "range": "A2:B3", "expected": rows})
    assert (found.agrees, found.record["earned_share"]) == (False, 0.75)


def test_an_area_that_holds_nothing_follows_no_convention() -> None:
    assert not judge({**LOOK, "cells": "G1:H9", "convention": "banker"}).agrees


def test_only_deterministic_items_decide() -> None:
    found = judge(
        {**CELL, "cell": "B2", "expected": 5},
        {"kind": "llm", "words": "reads well", "points": 9},
        {"kind": "human", "words": "looks well"},
        {"kind": "program", "command": "test.sh"},
    )
    assert found.agrees
    states = [item["state"] for item in found.record["items"]]
    assert states == ["holds", *["not_judged"] * 3]
    assert found.record["checklist"]["share_of_all"] == pytest.approx(1 / 12)


def test_without_a_deterministic_item_there_is_no_verdict() -> None:
    with pytest.raises(GoldFaultError, match=NO_DETERMINISTIC_ITEM):
        judge({"kind": "human", "words": "looks well"})


def test_a_formula_without_a_value_is_undecided() -> None:
    found = judge({**CELL, "sheet": "Data", "cell": "B3", "expected": 12})
    assert found.agrees
    spec = CheckerSpec("checklist", {"items": [{"id": "1", **CELL, "cell": "B3", "expected": 12}]})
    task = Task("t", "", "", (TestCase(1, (), ()),), spec)
    answer = Answer.of_workbook(FILES["book.xlsx"], Origin.SOLUTION)
    rules = Rules(get_profile("standard"))
    found = CHECKER.check(task, task.cases[0], (), answer, NoEngines(), rules)
    assert (found.agrees, found.undecided) == (False, True)
    broken = replace(answer, files=(AnswerFile("o.xlsx", b"PK\x03\x04 broken"),))
    with pytest.raises(AnswerFaultError):
        CHECKER.check(task, task.cases[0], (), broken, NoEngines(), rules)


def test_a_gold_of_an_item_that_is_missing_is_a_fault_of_the_suite() -> None:
    with pytest.raises(GoldFaultError, match=r"no gold 'gold\.xlsx'"):
        judge({"kind": "range", "range": "A1:B2", "gold": "gold.xlsx"})


def test_a_gold_is_an_answer_only_where_it_has_the_form_of_one() -> None:
    spec = CheckerSpec("checklist", {"items": [{"id": "1", **CELL, "cell": "B3", "expected": 12}]})
    task = Task("t", "", "", (TestCase(1, (), ()),), spec, AnswerForm.FILES)
    assert CHECKER.own_answers(task, Gold(data=book())) == {}
    assert CHECKER.own_answers(task, Gold(data=packed(FILES))) != {}


@pytest.mark.parametrize(
    ("item", "fault"),
    [
        ({"kind": "poem"}, "no kind 'poem'"),
        ({**CELL, "cell": "B2"}, "expected or one_of is needed"),
        ({**CELL, "cell": "2B", "expected": 1}, "cell is not a cell"),
        ({**CELL, "cell": "B2", "expected": 1, "exepcted": 1}, "the unknown field 'exepcted'"),
        ({**TEXT, "patterns": ["(a"]}, "the pattern '\\(a'"),
        ({"kind": "published", "suite": "none", "check": {}}, "suite is not"),
        ({**CELL, "cell": "B2", "expected": 1, "gates": ["poem"]}, "gates names 'poem'"),
        ({"kind": "answer", "type": "int", "expected": "x"}, "must be a whole number"),
        ({"kind": "rules", "rules": [{"type": "poem"}]}, "no type 'poem'"),
    ],
    ids=said,
)
def test_a_slip_in_an_item_is_a_message(item: dict[str, object], fault: str) -> None:
    with pytest.raises(UsageError, match=fault):
        CHECKER.check_options({"items": [{"id": "1", **item}]})
