"""Checks of checklist suites: what the published code does with odd answers, and its limits."""

from __future__ import annotations

import io
from collections.abc import Mapping
from typing import Any

import openpyxl
import pytest
from openpyxl.styles import Font

from judge.compare.published import ib_bench, officebench, opencomputer
from judge.compare.published.opencomputer import Document, Expression, ExpressionError
from judge.compare.published_error import PublishedError
from judge.workbook.reader import open_workbook


def book(cells: Mapping[str, object], sheet: str = "Data") -> bytes:
    workbook: Any = openpyxl.Workbook()
    workbook.active.title = sheet
    for address, value in cells.items():
        workbook.active[address] = value
    stream = io.BytesIO()
    workbook.save(stream)
    return stream.getvalue()


# -- expressions -----------------------------------------------------------------------------------

RESULT = {"value": 12.0, "formula": "=SUM(A1:A3)", "data": [[1, "x"], [2, None]]}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("abs((result.get('value') or 0) - 12.4) < 0.5", True),
        ("'SUM' in result.get('formula','').upper()", True),
        ("result.get('formula') is not None and 'MIN' in result.get('formula','')", False),
        ("all(isinstance(r[0], (int, float)) for r in result.get('data', []))", True),
        ("len(result.get('data', [])) == 2", True),
        ("any(v == 2 for row in result.get('data',[]) if row for v in row)", True),
        ("-1 if result.get('none') else 1", 1),
        ("not result.get('none')", True),
        ("result.get('formula','').startswith('=S')", True),
    ],
)
def test_expressions_have_the_value_that_python_gives_them(text: str, expected: object) -> None:
    assert Expression(text).value({"result": RESULT}) == expected
    assert eval(text, {"result": RESULT}) == expected


@pytest.mark.parametrize(
    "text",
    [
        "__import__('os').system('true')",
        "result.__class__",
        "result.get.__globals__",
        "(lambda: 1)()",
        "open('x')",
        "'a' * 1000000000",
        "9 ** 9 ** 9",
        "[x for x in range(9)]",
        "'{0.__class__}'.format(1)",
        "result.pop('value')",
        "1 +",
        "(" * 5000 + "1" + ")" * 5000,
        "all(1 for a in d for b in d for c in d for e in d)",
        "unknown",
    ],
)
def test_an_expression_outside_of_the_grammar_is_an_error(text: str) -> None:
    with pytest.raises(ExpressionError):
        Expression(text).value({"result": RESULT, "d": [0] * 100})


# -- OpenComputer ----------------------------------------------------------------------------------


def passes(check: Mapping[str, object], cells: Mapping[str, object]) -> bool:
    return opencomputer.judge_check(check, Document(open_workbook(book(cells))))


def command(text: str, key: str = "match") -> dict[str, object]:
    return {"command": text, "key": key, "expected": True}


def test_a_number_has_to_be_exact_and_a_text_passes_for_it() -> None:
    assert not passes(command("check-cell-value A1 1565.84"), {"A1": 1565.84000001})  # O1
    assert passes(command("check-cell-value A1 42"), {"A1": "42"})  # O7


def test_a_cell_that_cannot_be_read_is_zero_to_an_expression() -> None:
    check = {"command": "cell-value E18 Loan", "eval": "abs((result.get('value') or 0)) < 0.5"}
    assert opencomputer.judge_check(check, Document(None))  # O4
    with pytest.raises(PublishedError):
        opencomputer.judge_check(command("check-cell-value E18 0 Loan"), Document(None))


def test_a_name_in_a_text_counts_as_a_function() -> None:
    check = {"command": "cell-value A1", "eval": "'COUNTIF' in result.get('formula','')"}
    assert passes(check, {"A1": '=5+0*LEN("COUNTIF")'})  # O5


def test_named_ranges_and_unnamed_filters_are_never_seen() -> None:
    with pytest.raises(PublishedError, match="getNamedRanges"):
        passes(command("check-named-range Tax Data"), {"A1": 1})  # O2
    assert not passes(command("check-autofilter Data"), {"A1": 1})  # O11


@pytest.mark.parametrize(
    ("rows", "passed"), [(b'a,b\n1,"x\ny"\n2,z\n', True), (b"a,b\n1,x\n", False), (None, False)]
)
def test_rows_of_a_csv_file_may_have_line_breaks(rows: bytes | None, passed: bool) -> None:
    document = Document(None, {} if rows is None else {"/a.csv": rows})
    assert opencomputer.judge_check(command("check-csv-rows /a.csv 2 true"), document) is passed


def test_sheets_are_named_whatever_their_case_and_counted() -> None:
    assert passes(command("check-sheet-exists dAtA", "exists"), {"A1": 1})
    assert passes(command("check-sheet-count 1"), {"A1": 1})


@pytest.mark.parametrize("text", ["", "no-such-command A1", "check-cell-value 'A1", "cell-value"])
def test_a_command_that_cannot_be_read_is_an_error(text: str) -> None:
    with pytest.raises(PublishedError):
        passes(command(text), {"A1": 1})


# -- IB-bench --------------------------------------------------------------------------------------

NUMBER = {"match_type": "substring_one_of", "accepted_values": ["97"]}


@pytest.mark.parametrize("reply", ["97", "-97", "1970", "0.97", ["97"], {"value": "97"}])
def test_a_number_is_right_wherever_its_digits_are(reply: object) -> None:
    assert ib_bench.judge_criterion("n", NUMBER, {"n": reply}, None).passed  # B2, B3


def test_what_is_forbidden_and_required_has_a_case() -> None:
    criterion = {
        "match_type": "regex_pattern",
        "forbidden_elements": ["#REF!"],
        "required_elements": ["SUM"],
        "valid_patterns": ["sum"],
    }
    assert ib_bench.judge_criterion("f", criterion, {"f": "SUM #ref!"}, None).passed  # B4
    assert not ib_bench.judge_criterion("f", criterion, {"f": "SUM #REF!"}, None).passed
    assert not ib_bench.judge_criterion("f", criterion, {"f": "sum"}, None).passed


def test_a_pattern_that_runs_away_is_only_followed() -> None:
    criterion = {"match_type": "regex_pattern", "valid_patterns": ["^(a+)+$"]}
    assert not ib_bench.judge_criterion("f", criterion, {"f": "a" * 5000 + "!"}, None).passed


def cell(expected: object, tolerance: float = 0) -> dict[str, object]:
    asked = {"sheet": "Data", "cell": "A1", "expected": expected, "tolerance": tolerance}
    return {"match_type": "excel_cell_value", **asked}


@pytest.mark.parametrize(
    ("value", "expected", "passed"),
    [
        (12, 12, True),
        ("12", 12, True),  # B12
        ("1,572", 1572, False),
        (True, 1, True),
        (None, 0, False),
        ("=1+1", 2, False),  # B1: no stored value
        (" Buy ", "buy", True),
    ],
)
def test_the_stored_value_counts(value: object, expected: object, passed: bool) -> None:
    workbook = open_workbook(book({"A1": value, "B1": 1}))
    outcome = ib_bench.judge_criterion("c", cell(expected), {"ok": "1"}, workbook)
    assert outcome.passed is passed


def test_a_reply_that_is_not_an_object_raises() -> None:
    with pytest.raises(PublishedError, match="'list' object"):
        ib_bench.judge_criterion("n", NUMBER, ["97"], None)


def test_without_a_reply_nothing_passes() -> None:
    workbook = open_workbook(book({"A1": 12}))
    assert not ib_bench.judge_criterion("c", cell(12), None, workbook).passed  # B11


@pytest.mark.parametrize(
    ("value", "colour", "passed"),
    [
        (5, "FF0000FF", True),
        (5, "FF0070C0", False),  # B6
        ("=Other!A1", "FF00FF00", True),
        ("=SUM(Table1[Sales])", "FF000000", False),  # B8
        ("=SUM(B1:B2)", "FF000000", True),
        ("text", "FF000000", True),
    ],
)
def test_colours_follow_the_convention(value: object, colour: str, passed: bool) -> None:
    workbook: Any = openpyxl.Workbook()
    workbook.active.title = "Data"
    workbook.active["A1"] = value
    workbook.active["A1"].font = Font(color=colour)
    stream = io.BytesIO()
    workbook.save(stream)
    criterion = {"match_type": "excel_formatting", "sheet": "Data", "cells": ["A1:B2"]}
    opened = open_workbook(stream.getvalue())
    assert ib_bench.judge_criterion("c", criterion, {"ok": "1"}, opened).passed is passed


# -- OfficeBench -----------------------------------------------------------------------------------


def workspace(**files: bytes) -> officebench.Workspace:
    return officebench.Workspace({name.replace("_", "."): data for name, data in files.items()})


def test_a_digit_behind_the_value_is_not_seen_and_a_formula_is_its_text() -> None:
    check = {"file": "./a.xlsx", "matches": [{"row": 1, "col": 1, "value": "200000"}]}
    name = "evaluate_excel_cell_value"
    assert officebench.judge_check(name, check, workspace(a_xlsx=book({"A1": 2000001})))  # F1
    assert not officebench.judge_check(name, check, workspace(a_xlsx=book({"A1": "=100000*2"})))


def test_only_the_sheet_in_front_is_read() -> None:
    both: Any = openpyxl.Workbook()
    both.active["A1"] = 5
    both.active = both.index(both.create_sheet("Front"))
    stream = io.BytesIO()
    both.save(stream)
    check = {"file": "a.xlsx", "matches": [{"row": 1, "col": 1, "value": 5}]}
    name = "evaluate_excel_cell_value"
    assert not officebench.judge_check(name, check, workspace(a_xlsx=stream.getvalue()))  # F3


def test_a_missing_file_holds_nothing_and_so_not_the_keywords() -> None:
    check = {"file": "a.xlsx", "doc_type": "xlsx", "keywords": ["1"]}
    assert not officebench.judge_check("evaluate_contain", check, workspace())
    assert officebench.judge_check("evaluate_not_contain", check, workspace())  # F10
    assert officebench.judge_check("evaluate_contain", check, workspace(a_xlsx=book({"A1": "x"})))


def test_commas_go_from_the_first_number_on() -> None:
    check = {"file": "a.txt", "doc_type": "txt", "keywords": ["due", "1389.99"]}
    assert officebench.judge_check("evaluate_contain", check, workspace(a_txt=b"Due: 1,389.99"))
    check = {**check, "keywords": ["1,389", "1389.99"]}
    assert officebench.judge_check("evaluate_contain", check, workspace(a_txt=b"Due: 1,389.99"))
    check = {**check, "keywords": ["1389.99", "1,389"]}
    assert not officebench.judge_check("evaluate_contain", check, workspace(a_txt=b"Due: 1,389.99"))


def test_only_changed_lines_hold_the_keywords_of_a_difference() -> None:
    name = "evaluate_diff_contain_text"
    before = book({"A1": "Alice", "A2": 75, "A3": "Bob"})
    after = book({"A1": "Alice", "A2": 78, "A3": "Bob"})
    check = {"input_file": "a.xlsx", "output_file": "b.xlsx", "doc_type": "xlsx"}
    files = workspace(a_xlsx=before, b_xlsx=after)
    assert officebench.judge_check(name, {**check, "keywords": ["75", "78"]}, files)
    assert not officebench.judge_check(name, {**check, "keywords": ["78", "Alice"]}, files)
    same = workspace(a_xlsx=before, b_xlsx=before)
    assert not officebench.judge_check(name, {**check, "keywords": []}, same)


def test_text_files_match_if_they_are_equal_and_documents_never_do() -> None:
    check = {"result_file": "a.txt", "expected_file": "b.txt", "doc_type": "txt"}
    files = workspace(a_txt=b"x\r\n", b_txt=b"x\n")
    assert officebench.judge_check("evaluate_exact_match", check, files)
    check = {**check, "doc_type": "doc"}
    assert not officebench.judge_check("evaluate_exact_match", check, files)  # F9


def test_every_mailbox_that_is_there_reads_as_empty() -> None:
    check = {"doc_type": "email", "username": "Bob", "keywords": ["Hello"]}
    files = officebench.Workspace({"emails/bob/1.eml": b"Subject: Hello"})
    assert officebench.judge_check("evaluate_not_contain", check, files)  # F6
    check = {**check, "keywords": ["found"]}
    assert officebench.judge_check("evaluate_contain", check, files)


def test_a_comparator_is_read_and_never_run() -> None:
    assert officebench.listed_values("lambda x: x in ['1', '2']") == ["1", "2"]
    for text in ("lambda x: __import__('os')", "lambda x: x in open('a')", "x", "lambda x: (" * 9):
        with pytest.raises(PublishedError):
            officebench.listed_values(text)


@pytest.mark.parametrize(
    ("function", "arguments"),
    [
        ("evaluate_excel_cell_value", {"matches": []}),  # F4
        ("evaluate_contain", {"doc_type": "email", "username": "Bob", "keywords": []}),  # F5
        ("evaluate_contain", {"doc_type": "xlsx", "file": "bad.xlsx", "keywords": []}),
        ("evaluate_contain", {"doc_type": "xlsx", "file": "bad.xls", "keywords": []}),
        ("evaluate_contain", {"doc_type": "docx", "file": "bad.xlsx", "keywords": []}),
        ("evaluate_contain", {"doc_type": "txt", "file": "latin.txt", "keywords": []}),
        ("evaluate_contain", {"doc_type": "csv", "file": "latin.txt", "keywords": []}),
        ("no_such_function", {}),
    ],
)
def test_where_the_published_code_raises_the_check_raises(
    function: str, arguments: Mapping[str, object]
) -> None:
    files = officebench.Workspace({"bad.xlsx": b"no", "bad.xls": b"", "latin.txt": b"\xe9"})
    with pytest.raises(PublishedError):
        officebench.judge_check(function, arguments, files)
