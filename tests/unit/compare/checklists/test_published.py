"""Checks of published suites under both profiles: which results differ, and by which fault."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from typing import Any

import openpyxl
import pytest
from openpyxl.styles import Font

from judge.compare.cells.computing import Compute, NoEngines
from judge.compare.checklists.items import Item, Outcome, Reading, State
from judge.compare.checklists.kinds import judge_item, words_of
from judge.compare.checklists.workspace import REPLY, Workspace, answer_of_folder
from judge.compare.published.ib_bench import has_value, is_colour, leaves
from judge.compare.published.officebench_items import has_word, same_value
from judge.compare.published.opencomputer_items import FormulaText
from judge.core.submission import Origin
from judge.workbook.cell import CellRef, ComputedValues


def book(cells: Mapping[str, object], sheet: str = "Data", **colours: str) -> bytes:
    workbook: Any = openpyxl.Workbook()
    workbook.active.title = sheet
    for address, value in cells.items():
        workbook.active[address] = value
    for address, colour in colours.items():
        workbook.active[address].font = Font(color=colour)
    stream = io.BytesIO()
    workbook.save(stream)
    return stream.getvalue()


class Computing(NoEngines):
    """Gives each formula the value that a test sets."""

    def __init__(self, values: Mapping[CellRef, object]) -> None:
        self._values = values

    def fill(self, *_: object, **__: object) -> ComputedValues:
        return ComputedValues(dict(self._values))  # type: ignore[arg-type]


def both(
    suite: str,
    check: object,
    files: Mapping[str, bytes],
    *,
    compute: Compute | None = None,
    golds: Mapping[str, bytes] | None = None,
    before: Mapping[str, bytes] | None = None,
) -> tuple[Outcome, Outcome]:
    """Returns the outcomes of a check under ``official`` and ``standard``."""
    item = Item("it", "published", fields={"suite": suite, "check": check})
    workspace = Workspace(
        answer_of_folder(files, Origin.FINISHED),
        compute=compute or NoEngines(),
        golds=golds,
        before=before,
    )
    assert words_of(item)
    official, standard = (judge_item(item, workspace, reading) for reading in Reading)
    return official, standard


def turn(outcomes: tuple[Outcome, Outcome]) -> tuple[str, str, str]:
    official, standard = outcomes
    return official.ended.value, standard.ended.value, standard.fault


SAME, RIGHT, WRONG = ("holds", "holds"), ("fails", "holds"), ("holds", "fails")

# -- OpenComputer ----------------------------------------------------------------------------------


def command(text: str, key: str = "match") -> dict[str, object]:
    return {"command": text, "key": key, "expected": True}


def evaluating(text: str, expression: str) -> dict[str, object]:
    return {"command": text, "eval": expression}


@pytest.mark.parametrize(
    ("check", "cells", "expected"),
    [
        (command("check-cell-value A1 1565.84"), {"A1": 1565.844}, (*RIGHT, "O1")),
        (command("check-cell-value A1 1565.84"), {"A1": 1565.9}, ("fails", "fails", "")),
        (command("check-cell-value A1 42"), {"A1": "42"}, (*WRONG, "O7")),
        (command("check-cell-value A1 Total"), {"A1": "total"}, (*SAME, "")),
        (command("check-cell-value A1 1 Other"), {"A1": 1}, ("fails", "fails", "")),
        (
            evaluating("cell-value B9", "abs(result.get('value') or 0) < 0.5"),
            {"A1": 1},
            (*WRONG, "O4"),
        ),
        (
            evaluating("cell-value A1", "'COUNTIF' in result.get('formula','').upper()"),
            {"A1": '=5+0*LEN("COUNTIF")'},
            (*WRONG, "O5"),
        ),
        (
            evaluating("cell-value A1", "'COUNTIF' in result.get('formula','').upper()"),
            {"A1": "=COUNTIFS(B1:B3,1)"},
            (*SAME, ""),
        ),
        (
            evaluating("cell-value A1", "result.get('formula').upper() == 'X'"),
            {"A1": 1},
            ("fails", "fails", ""),
        ),
        (command("check-column-sorted A desc 1", "sorted"), {"A1": 5, "A3": 3}, (*WRONG, "O12")),
        (command("check-column-sorted A asc 1", "sorted"), {"A1": 5, "A2": "x"}, (*RIGHT, "O12")),
        (command("check-calc-pref measurement_unit_calc 2"), {}, ("error", "not_judged", "O10")),
    ],
)
def test_opencomputer(
    check: dict[str, object], cells: Mapping[str, object], expected: tuple[str, str, str]
) -> None:
    assert turn(both("opencomputer", check, {"a.xlsx": book(cells)})) == expected


def test_opencomputer_sees_filters_and_names() -> None:
    workbook: Any = openpyxl.Workbook()
    workbook.active["A1"] = 1
    workbook.active.auto_filter.ref = "A1:B4"
    workbook.defined_names["CustomerList"] = openpyxl.workbook.defined_name.DefinedName(
        "CustomerList", attr_text="Customers!$A$1:$A$9"
    )
    stream = io.BytesIO()
    workbook.save(stream)
    files = {"a.xlsx": stream.getvalue()}
    name = command("check-named-range CustomerList Customers")
    assert turn(both("opencomputer", name, files)) == ("error", "holds", "O2")
    assert turn(both("opencomputer", command("check-autofilter Sheet"), files)) == (*RIGHT, "O11")


def test_a_formula_that_gives_zero_has_the_value_zero() -> None:
    check = command("check-cell-value A1 0")
    compute = Computing({CellRef("Data", 1, 1): 0.0})
    files = {"a.xlsx": book({"A1": "=B1-B1"})}
    assert turn(both("opencomputer", check, files, compute=compute))[1] == "holds"


@pytest.mark.parametrize(
    ("formula", "word", "count"),
    [
        ("=SUMIFS(B1:B2,C1:C2,1)", "SUMIF", 1),
        ("=SUMIFS(B1:B2,C1:C2,1)", "SUM", 0),
        ("=IF(A1>1,IF(B1>1,1,2),3)", "IF", 2),
        ('="B2"&C2', "B2", 0),
        ("=$B$2*B21", "B2", 1),
        ("=RANK.EQ(A1,B1:B3)", "RANK", 1),
        ("=A1*0.95", "0.9", 0),
    ],
)
def test_words_of_a_formula(formula: str, word: str, count: int) -> None:
    text = FormulaText.of(formula).upper()
    assert text.count(word) == count
    assert (word in text) is (count > 0)
    assert (text.find(word) >= 0) is (count > 0)


# -- IB-bench --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "accepted", "expected"),
    [
        ("-97", "97", False),
        ("1970", "97", False),
        ("0.97", "97", False),
        ("97.5", "97", False),
        ("97.0", "97", True),
        ("$97m", "97", True),
        ("about 97%, net", "97", True),
        ("-$97", "97", False),
        ("16,477", "16477", True),
        ("16477", "16,477", True),
        ("2020-97", "97", True),
        ("Row 140", "row 140", True),
        ("-98", "-98", True),
    ],
)
def test_numbers_are_whole_numbers(text: str, accepted: str, expected: bool) -> None:
    assert has_value(text, accepted) is expected


def test_leaves_of_a_reply() -> None:
    assert list(leaves({"a": [1, {"b": "x"}, None, True], "c": 2.5})) == ["1", "x", "true", "2.5"]


def criterion(kind: str, **fields: object) -> dict[str, object]:
    return {"id": "it", "match_type": kind, "description": "It", **fields}


def reply(value: object) -> dict[str, bytes]:
    return {REPLY: json.dumps({"it": value}).encode()}


@pytest.mark.parametrize(
    ("check", "value", "expected"),
    [
        (criterion("substring_one_of", accepted_values=["97"]), "-97", (*WRONG, "B2")),
        (criterion("substring_one_of", accepted_values=["97"]), {"x": "97 m"}, (*SAME, "")),
        (criterion("substring_one_of", accepted_values=["none"]), None, (*WRONG, "B3")),
        (
            criterion("substring_one_of", accepted_values=["5"], forbidden_elements=["#REF!"]),
            "5 #ref!",
            (*WRONG, "B4"),
        ),
        (criterion("regex_pattern", required_elements=["EBITDA"]), "ebitda", (*RIGHT, "B4")),
    ],
)
def test_ib_bench_texts(
    check: dict[str, object], value: object, expected: tuple[str, str, str]
) -> None:
    assert turn(both("ib-bench", check, reply(value))) == expected


CELL = criterion("excel_cell_value", sheet="Data", cell="A1", expected=12, tolerance=1)


def test_ib_bench_computes_formulas() -> None:
    files = {**reply("x"), "m.xlsx": book({"A1": "=B1"})}
    compute = Computing({CellRef("Data", 1, 1): 12.4})
    assert turn(both("ib-bench", CELL, files, compute=compute)) == (*RIGHT, "B1")
    assert turn(both("ib-bench", CELL, files)) == ("fails", "fails", "")


def test_ib_bench_cells() -> None:
    assert turn(both("ib-bench", CELL, {**reply("x"), "m.xlsx": book({"A1": "12"})})) == (
        *WRONG,
        "B12",
    )
    two = {**reply("x"), "a.xlsx": book({}, "Notes"), "m.xlsx": book({"A1": 12})}
    assert turn(both("ib-bench", CELL, two)) == (*RIGHT, "B10")
    assert turn(both("ib-bench", CELL, {"m.xlsx": book({"A1": 12})})) == (*RIGHT, "B11")


@pytest.mark.parametrize(
    ("cells", "colours", "expected"),
    [
        ({"A1": 5}, {"A1": "FF0070C0"}, (*RIGHT, "B6")),
        ({"A1": 5}, {"A1": "FF0000FF"}, (*SAME, "")),
        ({"A1": 5}, {"A1": "FF000000"}, ("fails", "fails", "")),
        ({"A1": True}, {}, (*RIGHT, "B7")),
        ({"A1": "=SUM(T[Sales])"}, {"A1": "FF000000"}, (*RIGHT, "B8")),
        ({"A1": "=Other!B1"}, {"A1": "FF00B050"}, (*RIGHT, "B6")),
        ({}, {}, ("holds", "not_judged", "B9")),
    ],
)
def test_ib_bench_colours(
    cells: Mapping[str, object], colours: Mapping[str, str], expected: tuple[str, str, str]
) -> None:
    check = criterion("excel_formatting", sheet="Data", cells=["A1:B2"])
    files = {**reply("x"), "m.xlsx": book(cells, **colours)}
    assert turn(both("ib-bench", check, files)) == expected


def test_families_of_colours() -> None:
    assert is_colour("0070C0", "blue")
    assert is_colour("C00000", "red")
    assert not is_colour("000000", "red")
    assert not is_colour(None, "blue")


# -- OfficeBench -----------------------------------------------------------------------------------


def cell_check(value: str) -> dict[str, object]:
    matches = [{"row": 1, "col": 1, "value": value}]
    return {
        "function": "evaluate_excel_cell_value",
        "args": {"file": "./data/a.xlsx", "matches": matches},
    }


def contains(*words: str, kind: str = "xlsx", negated: bool = False) -> dict[str, object]:
    function = "evaluate_not_contain" if negated else "evaluate_contain"
    name = "data/a.xlsx" if kind == "xlsx" else "data/a.txt"
    return {"function": function, "args": {"doc_type": kind, "file": name, "keywords": [*words]}}


@pytest.mark.parametrize(
    ("check", "cells", "expected"),
    [
        (cell_check("200000"), {"A1": 2000001}, (*WRONG, "F1")),
        (cell_check("200000"), {"A1": 200000}, (*SAME, "")),
        (contains("1"), {"A1": "x"}, (*WRONG, "F7")),
        (contains("Location"), {"A1": "Locations"}, (*WRONG, "F7")),
        (contains("total due", "104.98"), {"A1": "Total due", "B1": 104.98}, (*SAME, "")),
    ],
)
def test_officebench_cells(
    check: dict[str, object], cells: Mapping[str, object], expected: tuple[str, str, str]
) -> None:
    assert turn(both("officebench", check, {"data/a.xlsx": book(cells)})) == expected


def test_officebench_computes_and_looks_at_all_sheets() -> None:
    files = {"data/a.xlsx": book({"A1": "=B2+B3"})}
    compute = Computing({CellRef("Data", 1, 1): 200000})
    outcomes = both("officebench", cell_check("200000"), files, compute=compute)
    assert turn(outcomes) == (*RIGHT, "F2")
    workbook: Any = openpyxl.Workbook()
    workbook.create_sheet("Other")["A1"] = 200000
    stream = io.BytesIO()
    workbook.save(stream)
    outcomes = both("officebench", cell_check("200000"), {"data/a.xlsx": stream.getvalue()})
    assert turn(outcomes) == (*RIGHT, "F3")


def test_officebench_files_have_to_be_there() -> None:
    missing = contains("x", kind="txt", negated=True)
    assert turn(both("officebench", missing, {"data/b.txt": b"y"})) == (*WRONG, "F10")
    no_file = {"function": "evaluate_excel_cell_value", "args": {"matches": []}}
    official, standard = both("officebench", no_file, {"data/b.txt": b"y"})
    assert official.ended is standard.ended is State.ERROR


def test_officebench_reads_the_mail_of_the_workspace() -> None:
    check = {
        "function": "evaluate_contain",
        "args": {"doc_type": "email", "username": "Bob", "keywords": ["Hello"]},
    }
    mail = b"Subject: Hello\n\nBob"
    there = both("officebench", check, {"emails/Bob/1.eml": mail})
    assert turn(there) == ("fails", "holds", "F6")
    elsewhere = both("officebench", check, {"emails/Tom/1.eml": mail})
    assert turn(elsewhere) == ("error", "fails", "")


@pytest.mark.parametrize(
    ("second", "expected"),
    [("20240101T100000", ("holds", "holds", "")), ("20240101T093000", ("fails", "fails", ""))],
)
def test_officebench_calendars(second: str, expected: tuple[str, str, str]) -> None:
    events = "".join(
        f"BEGIN:VEVENT\nDTSTART:{start}\nDTEND:{end}\nEND:VEVENT\n"
        for start, end in ((second, "20240101T110000"), ("20240101T090000", "20240101T100000"))
    )
    check = {"function": "evaluate_calendar_no_overlap", "args": {"username": "Bob"}}
    files = {"calendar/Bob.ics": events.encode()}
    assert turn(both("officebench", check, files)) == expected


def test_officebench_compares_with_golds() -> None:
    arguments = {
        "doc_type": "xlsx",
        "result_file": "./data/a.xlsx",
        "expected_file": "../../../../reference/a.xlsx",
    }
    check = {"function": "evaluate_exact_match", "args": arguments}
    files = {"data/a.xlsx": book({"A1": "=1+1"})}
    compute = Computing({CellRef("Data", 1, 1): 2})
    golds = {"a.xlsx": book({"A1": 2})}
    assert turn(both("officebench", check, files, compute=compute, golds=golds)) == (*RIGHT, "F2")
    assert turn(both("officebench", check, files, golds={}))[1] == "error"


def test_values_and_words() -> None:
    assert same_value(2100000, "2,100,000")
    assert not same_value(5, "5 x")
    assert not same_value(None, "5")
    assert has_word("Tom, Bob", "bob")
    assert not has_word("Bobby", "bob")
    assert has_word("costs 1,494.97", "1494.97")


# -- SkillsBench -----------------------------------------------------------------------------------


def test_skillsbench_reads_the_scores_that_were_asked_for() -> None:
    headings = ["Name", "Sex", "BodyweightKg", "Best3SquatKg", "Best3BenchKg", "Best3DeadliftKg"]
    row = ["Ann", "F", 60.0, 100.0, 60.0, 120.0]
    cells: dict[str, object] = {f"{'ABCDEF'[at]}1": name for at, name in enumerate(headings)}
    cells |= {f"{'ABCDEF'[at]}2": value for at, value in enumerate(row)}
    workbook: Any = openpyxl.Workbook()
    workbook.active.title = "Data"
    dots = workbook.create_sheet("Dots")
    for address, value in cells.items():
        workbook["Data"][address] = dots[address] = value
    dots["G1"], dots["H1"], dots["G2"], dots["H2"] = "TotalKg", "Dots", 280, "wrong"
    stream = io.BytesIO()
    workbook.save(stream)
    truth = {"cleaned_with_coefficients.xlsx": book({**cells, "G1": "Dots", "G2": 310.393})}
    check = {
        "task": "powerlifting-coef-calc",
        "test": "TestDotsAccuracy::test_dots_values_match_ground_truth",
    }
    outcomes = both("skillsbench", check, {"openipf.xlsx": stream.getvalue()}, golds=truth)
    assert turn(outcomes) == (*WRONG, "S10")


def test_skillsbench_has_no_blank_zero_and_no_skipped_failure() -> None:
    gdp = {
        "task": "weighted-gdp-calc",
        "test": "TestStep1LookupFormulas::test_exports_have_data",
    }
    files = {"gdp.xlsx": book({"H12": 1}, "Task")}
    assert turn(both("skillsbench", gdp, files)) == (*WRONG, "S4")
    lost = {"task": "xlsx-recover-data", "test": "test_row_sums_consistent"}
    assert turn(both("skillsbench", lost, {"other.txt": b""}))[:2] == ("not_judged", "fails")


def test_skillsbench_takes_amounts_that_are_numbers() -> None:
    check = {"task": "jpg-ocr-stat", "test": "test_outputs"}
    golds = {"stat_oracle.xlsx": book({"A1": "x", "B1": "47.70"}, "results")}
    files = {"stat_ocr.xlsx": book({"A1": "x", "B1": 47.7}, "results")}
    assert turn(both("skillsbench", check, files, golds=golds)) == (*RIGHT, "S13")


# -- WindowsAgentArena-V2 --------------------------------------------------------------------------


def test_waa_rules() -> None:
    rule = {"type": "sheet_data", "sheet_idx0": 0, "sheet_idx1": "EI0"}
    golds = {"gold.xlsx": book({"A1": 2})}
    right = both("waa-v2", rule, {"a.xlsx": book({"A1": 2})}, golds=golds)
    wrong = both("waa-v2", rule, {"a.xlsx": book({"A1": 3})}, golds=golds)
    assert (turn(right), turn(wrong)) == ((*SAME, ""), ("fails", "fails", ""))
    computed = Computing({CellRef("Data", 1, 1): 2})
    formula = both("waa-v2", rule, {"a.xlsx": book({"A1": "=1+1"})}, golds=golds, compute=computed)
    assert turn(formula) == (*RIGHT, "W2")
