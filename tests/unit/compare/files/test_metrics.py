"""The published metrics over files other than workbooks, and the judge's own version of them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from judge.compare.cells.computing import NoEngines
from judge.compare.contract import AnswerFaultError, GoldFaultError, Rules
from judge.compare.profiles import get_profile
from judge.compare.registry import check_options, checker_of
from judge.compare.sealed import UnreadableFileError
from judge.core.finding import Finding
from judge.core.submission import Answer, AnswerFile, Origin
from judge.core.task import CheckerSpec, Gold, Task, TestCase
from judge.errors import UsageError

EQUAL, DIFFERENT, RAISES, BAD, BROKEN = "equal", "different", "raises", "bad test", "unreadable"


class Reader(NoEngines):
    """A scripted reader: bytes of a file -> what is read, or why it cannot be read."""

    def __init__(self, said: Mapping[bytes, Any]) -> None:
        self.said = said

    def print_sheet(self, workbook: bytes, number: int) -> list[str]:
        raise AssertionError((workbook, number))

    def read_file(self, reader: str, data: bytes, options: Mapping[str, Any]) -> Mapping[str, Any]:
        found = self.said[data[int(options.get("library_bytes", 0)) :]]
        if isinstance(found, str):
            raise UnreadableFileError(found)
        return {"pages": len(found), "texts": found} if reader == "pypdf" else {"objects": found}


def judge(
    options: Mapping[str, Any],
    answer: Answer,
    golds: tuple[Gold, ...] = (),
    *,
    profile: str = "standard",
    compute: Any = None,
) -> Finding:
    spec = CheckerSpec("metrics", options)
    task = Task("1", "?", "?", (TestCase(1, (), golds),), spec)
    checker = checker_of(spec)
    checker.check_options(options)
    rules = Rules(get_profile(profile))
    return checker.check(task, task.cases[0], golds, answer, compute or NoEngines(), rules)


def said(*given: Any, **options: Any) -> str:
    try:
        found = judge(*given, **options)
    except GoldFaultError:
        return BAD
    except AnswerFaultError:
        return BROKEN
    if options.get("profile") == "official" and "published_error" in found.record:
        return RAISES
    return EQUAL if found.agrees else DIFFERENT


def file(data: bytes | str | None, name: str = "out") -> Answer:
    if data is None:
        return Answer(Origin.FINISHED)
    return Answer(Origin.FINISHED, (AnswerFile(name, _bytes(data)),))


def _bytes(data: bytes | str) -> bytes:
    return data.encode() if isinstance(data, str) else data


def notebook(*outputs: list[dict[str, Any]], source: str = "1") -> str:
    cells = [{"cell_type": "code", "source": source, "outputs": each} for each in outputs]
    return json.dumps({"nbformat": 4, "cells": cells})


def printed(*pieces: str) -> list[dict[str, Any]]:
    return [{"output_type": "stream", "name": "stdout", "text": piece} for piece in pieces]


def result(text: str, count: int) -> list[dict[str, Any]]:
    data = {"text/plain": [text]}
    return [{"output_type": "execute_result", "data": data, "execution_count": count}]


def rule(kind: str, path: list[Any], value: Any = None) -> list[Any]:
    return [kind, path, value]


def key(path: list[Any], method: str, ref: Any) -> dict[str, Any]:
    return {"key": path, "method": method, "ref": ref}


LISTED = "models:\n  - name: a\n    live: false\n    tests: [x, y]\n  - name: b\n"
CASES: list[tuple[str, str, Any, Any, dict[str, Any], str, str]] = [
    # what, metric, answer, gold (text) or rules, options, published, the judge's own
    ("same", "compare_csv", "a,b\n1,2\n", "a,b\n1,2\n", {}, EQUAL, EQUAL),
    ("other value", "compare_csv", "a,b\n1,3\n", "a,b\n1,2\n", {}, DIFFERENT, DIFFERENT),
    ("no file", "compare_csv", None, "a\n", {}, DIFFERENT, DIFFERENT),
    ("line ends", "compare_csv", "a\r\n1\r\n", "a\n1\n", {}, EQUAL, EQUAL),
    ("quotes", "compare_csv", '"a",1\n', "a,1\n", {}, DIFFERENT, EQUAL),
    ("byte order mark", "compare_csv", b"\xef\xbb\xbfa\n", "a\n", {}, DIFFERENT, EQUAL),
    ("line separator in a field", "compare_csv", "a\u2028b\n", "a\nb\n", {}, EQUAL, DIFFERENT),
    ("blank lines at the end", "compare_csv", "a\n\n\n", "a\n", {}, DIFFERENT, EQUAL),
    ("case", "compare_csv", "A\n", "a\n", {"ignore_case": True}, EQUAL, EQUAL),
    ("blanks", "compare_csv", " a\n", "a\n", {"strict": False}, EQUAL, EQUAL),
    ("blanks count", "compare_csv", " a\n", "a\n", {}, DIFFERENT, DIFFERENT),
    ("not UTF-8", "compare_csv", b"\xe9\n", b"\xe9\n", {}, EQUAL, BAD),
    ("text", "compare_text_file", "a\nb", "a\nb", {}, EQUAL, EQUAL),
    ("last line end", "compare_text_file", "a\n", "a", {}, DIFFERENT, EQUAL),
    ("runs of blanks", "compare_text_file", "a \n b", "a b", {"ignore_blanks": True}, EQUAL, EQUAL),
    ("other text", "compare_text_file", "a", "b", {"ignore_case": True}, DIFFERENT, DIFFERENT),
    ("no text", "compare_text_file", b"\xff", "a", {}, RAISES, BROKEN),
    ("exactly", "exact_match", "7", {"expected": "7"}, {}, EQUAL, EQUAL),
    ("blanks around", "exact_match", "7\n", {"expected": "7"}, {}, DIFFERENT, EQUAL),
    ("not that", "exact_match", "8", {"expected": "7"}, {}, DIFFERENT, DIFFERENT),
    ("no rule", "exact_match", "8", {}, {}, BAD, BAD),
    ("included", "check_include_exclude", "abc", {"include": ["b"]}, {}, EQUAL, EQUAL),
    ("excluded", "check_include_exclude", "abc", {"exclude": ["b"]}, {}, DIFFERENT, DIFFERENT),
    ("nothing asked", "check_include_exclude", "abc", {"include": []}, {}, EQUAL, BAD),
    ("there", "check_file_existence", "", None, {}, EQUAL, EQUAL),
    ("not there", "check_file_existence", None, None, {}, DIFFERENT, DIFFERENT),
    ("JSON", "compare_json_file", '{"a": [1]}', '{"a":[1.0]}', {}, EQUAL, EQUAL),
    ("true is 1", "compare_json_file", "[true]", "[1]", {}, EQUAL, DIFFERENT),
    ("no JSON", "compare_json_file", "{", "[1]", {}, RAISES, BROKEN),
    ("deep JSON", "compare_json_file", "[" * 9999, "[1]", {}, RAISES, BROKEN),
    ("missing JSON", "compare_json_file", None, "[1]", {}, RAISES, DIFFERENT),
    ("key", "check_json", '{"a": {"b": 3}}', {"expect": [key(["a", "b"], "ge", 3)]}, {}, EQUAL,
     EQUAL),
    ("no key", "check_json", "{}", {"expect": [key(["a"], "eq", 3)]}, {}, DIFFERENT, DIFFERENT),
    ("path through a number", "check_json", '{"a": 1}', {"expect": [key(["a", "b"], "eq", 3)]}, {},
     RAISES, DIFFERENT),
    ("unexpected", "check_json", '{"a": 1}', {"unexpect": [key(["a"], "eq", 1)]}, {}, DIFFERENT,
     DIFFERENT),
    ("unexpected and missing", "check_json", "{}", {"unexpect": [key(["a"], "re", "x")]}, {},
     RAISES, EQUAL),
    ("missing equals none", "check_json", "{}", {"unexpect": [key(["a"], "eq", None)]}, {},
     DIFFERENT, EQUAL),
    ("no key asked", "check_json", "{}", {}, {}, EQUAL, BAD),
    ("YAML", "check_yaml_file", LISTED, [rule("match", ["models", 1, "name"], "b")], {}, EQUAL,
     EQUAL),
    ("YAML by field", "check_yaml_file", LISTED,
     [rule("contain", ["models", ["name", "a"], "tests"], "x")], {}, EQUAL, EQUAL),
    ("YAML in", "check_yaml_file", LISTED, [rule("in", ["models", 0, "name"], ["a", "b"])], {},
     EQUAL, EQUAL),
    ("YAML wrong", "check_yaml_file", LISTED, [rule("match", ["models", 0, "name"], "b")], {},
     DIFFERENT, DIFFERENT),
    ("YAML gone", "check_yaml_file", LISTED, [rule("match", ["models", 9], "b")], {}, DIFFERENT,
     DIFFERENT),
    ("false is not null", "check_yaml_file", LISTED, [rule("not_null", ["models", 0, "live"])], {},
     DIFFERENT, EQUAL),
    ("false is 0", "check_yaml_file", LISTED, [rule("match", ["models", 0, "live"], 0)], {}, EQUAL,
     DIFFERENT),
    ("letters of a word", "check_yaml_file", LISTED, [rule("match", ["models", 0, "name", 0], "a")],
     {}, EQUAL, DIFFERENT),
    ("unknown match", "check_yaml_file", LISTED, [rule("like", ["models"], 1)], {}, DIFFERENT, BAD),
    ("no YAML", "check_yaml_file", "a: [", [rule("match", ["a"], 1)], {}, DIFFERENT, BROKEN),
    ("alias bomb", "check_yaml_file", "a: &a [1]\nb: [*a, *a]", [rule("match", ["a"], 1)], {},
     DIFFERENT, BROKEN),
    ("notebook", "compare_notebook_outputs", notebook(printed("a")), notebook(printed("a")), {},
     EQUAL, EQUAL),
    ("other output", "compare_notebook_outputs", notebook(printed("b")), notebook(printed("a")), {},
     DIFFERENT, DIFFERENT),
    ("run twice", "compare_notebook_outputs", notebook(result("1", 2)), notebook(result("1", 1)),
     {}, DIFFERENT, EQUAL),
    ("pieces", "compare_notebook_outputs", notebook(printed("a", "b")), notebook(printed("ab")), {},
     DIFFERENT, EQUAL),
    ("cells", "compare_notebook_cells", notebook([], source="x"), notebook([]), {}, DIFFERENT,
     DIFFERENT),
    ("no notebook", "compare_notebook_outputs", "{}", notebook([]), {}, DIFFERENT, BROKEN),
    ("no gold", "compare_csv", "a", None, {}, BAD, BAD),
]  # fmt: skip


@pytest.mark.parametrize(
    ("func", "answer", "other", "options", "published", "right"),
    [pytest.param(*each[1:], id=f"{each[1]}: {each[0]}") for each in CASES],
)
def test_a_metric(
    func: str,
    answer: bytes | str | None,
    other: Any,
    options: dict[str, Any],
    published: str,
    right: str,
    tmp_path: Path,
) -> None:
    call: dict[str, Any] = {"func": func, "options": options}
    golds: tuple[Gold, ...] = ()
    if isinstance(other, str | bytes):
        path = tmp_path / "gold.txt"
        path.write_bytes(_bytes(other))
        golds, call["gold"] = (Gold(path),), "gold.txt"
    elif other is not None:
        call["expected"] = other
    asked = {"metrics": [call]}
    assert said(asked, file(answer), golds, profile="official") == published
    assert said(asked, file(answer), golds) == right


def test_spider2v_reads_only_utf_8(tmp_path: Path) -> None:
    gold = tmp_path / "gold.csv"
    gold.write_text("a\n")
    asked = {"metrics": [{"func": "compare_csv", "gold": "gold.csv"}], "evaluator": "spider2v"}
    assert said(asked, file(b"\xe9\n"), (Gold(gold),), profile="official") == RAISES


# -- several metrics ------------------------------------------------------------------------------

INCLUDES = [
    {"func": "check_include_exclude", "expected": {"include": [each]}} for each in ("a", "b")
]


@pytest.mark.parametrize(
    ("conj", "text", "right"),
    [("and", "ab", True), ("and", "a", False), ("or", "b", True), ("or", "c", False)],
)
def test_all_of_and_any_of(conj: str, text: str, right: bool) -> None:
    for profile in ("official", "standard"):
        found = judge({"metrics": INCLUDES, "conj": conj}, file(text), profile=profile)
        assert found.agrees is right
        assert found.record["official_equal"] is right
        assert found.record["official_score"] == float(right)


def test_every_failing_metric_is_named() -> None:
    found = judge({"metrics": INCLUDES}, file("c"))
    assert found.record["differing_cells"] == 2
    assert "2 (check_include_exclude)" in str(found.record["differences"])


def test_what_is_raised_after_a_zero_is_never_reached() -> None:
    late = {"func": "exact_match", "expected": {}}
    assert said({"metrics": [INCLUDES[0], late]}, file("c"), profile="official") == DIFFERENT
    assert said({"metrics": [INCLUDES[0], late]}, file("c")) == BAD


def test_each_metric_looks_at_its_own_file(tmp_path: Path) -> None:
    gold = tmp_path / "gold.csv"
    gold.write_text("1\n")
    asked = {
        "metrics": [
            {"func": "compare_csv", "result": "a.csv", "gold": "gold.csv"},
            {"func": "check_file_existence", "result": "b.txt"},
        ]
    }
    both = Answer(Origin.FINISHED, (AnswerFile("b.txt", b""), AnswerFile("a.csv", b"1\n")))
    assert said(asked, both, (Gold(gold),)) == EQUAL
    assert said(asked, file("1\n", "a.csv"), (Gold(gold),)) == DIFFERENT
    assert said(asked, file("1\n", "c.csv"), (Gold(gold),)) == DIFFERENT


def test_rules_over_a_workbook_among_metrics() -> None:
    corpus = Path(__file__).parents[3] / "workbook_rules" / "corpus"
    rules = [{"type": "sheet_data", "sheet_idx0": 0, "sheet_idx1": "EI0"}]
    call = {"func": "compare_table", "gold": "base.xlsx", "options": {"rules": rules}}
    for name, right in (("base", EQUAL), ("val5", DIFFERENT), ("broken", BROKEN)):
        answer = file((corpus / f"{name}.xlsx").read_bytes())
        assert said({"metrics": [call]}, answer, (Gold(corpus / "base.xlsx"),)) == right


def test_a_task_that_cannot_be_done() -> None:
    asked = {"metrics": [{"func": "infeasible"}]}
    for text, published, right in (
        ("FAIL", EQUAL, EQUAL),
        ("FAIL\n", DIFFERENT, EQUAL),
        ("DONE", DIFFERENT, DIFFERENT),
    ):
        answer = Answer(Origin.FINISHED, text=text)
        assert said(asked, answer, profile="official") == published
        assert said(asked, answer) == right
    assert said(asked, file(b"anything")) == DIFFERENT


# -- databases and pages --------------------------------------------------------------------------


def table(name: str, *rows: list[Any], columns: str = "a") -> dict[str, Any]:
    return {"kind": "table", "name": name, "columns": [[0, columns]], "rows": list(rows)}


@pytest.mark.parametrize(
    ("own", "published", "right"),
    [
        ([table("t", [1], [2])], EQUAL, EQUAL),
        ([table("t", [2], [1])], DIFFERENT, DIFFERENT),
        ([table("t", [1], [2], columns="b")], DIFFERENT, DIFFERENT),
        ([table("u", [1], [2])], DIFFERENT, DIFFERENT),
        ([table("t", [1])], DIFFERENT, DIFFERENT),
        ("not a database", DIFFERENT, BROKEN),
    ],
)
def test_a_database(own: Any, published: str, right: str, tmp_path: Path) -> None:
    gold = tmp_path / "gold.db"
    gold.write_bytes(b"gold")
    options = {"db_type": "sqlite3", "check_type": ["table-schema-content"]}
    asked = {"metrics": [{"func": "check_local_database", "gold": "gold.db", "options": options}]}
    reader = Reader({b"gold": [table("t", [1], [2])], b"own": own})
    golds = (Gold(gold),)
    assert said(asked, file(b"own"), golds, compute=reader, profile="official") == published
    assert said(asked, file(b"own"), golds, compute=reader) == right
    assert said(asked, file(None), golds, compute=reader) == DIFFERENT


def test_a_database_that_is_not_read_here(tmp_path: Path) -> None:
    gold = tmp_path / "gold.db"
    gold.write_bytes(b"gold")
    asked = {"metrics": [{"func": "check_local_database", "gold": "gold.db"}]}
    assert said(asked, file(b"own"), (Gold(gold),)) == BAD


@pytest.mark.parametrize(
    ("own", "published", "right"),
    [
        (["Hello you"], EQUAL, EQUAL),
        (["Hello  you\n"], DIFFERENT, EQUAL),
        (["Hello them"], DIFFERENT, DIFFERENT),
        (["Hello you", ""], DIFFERENT, DIFFERENT),
        ("broken", RAISES, BROKEN),
    ],
)
def test_pages(own: Any, published: str, right: str, tmp_path: Path) -> None:
    gold = tmp_path / "gold.pdf"
    gold.write_bytes(b"gold")
    one_page = {"relation": "eq", "ref_value": 1}
    asked = {
        "metrics": [
            {"func": "check_pdf_pages", "expected": one_page},
            {"func": "compare_pdfs", "gold": "gold.pdf"},
        ]
    }
    reader = Reader({b"gold": ["Hello you"], b"own": own})
    golds = (Gold(gold),)
    assert said(asked, file(b"own"), golds, compute=reader, profile="official") == published
    assert said(asked, file(b"own"), golds, compute=reader) == right


# -- options --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"metrics": []},
        {"metrics": ["compare_csv"]},
        {"metrics": [{"func": "nope"}]},
        {"metrics": [{"func": "compare_csv", "golds": "a"}]},
        {"metrics": [{"func": "compare_csv", "gold": 1}]},
        {"metrics": [{"func": "compare_csv"}], "conj": "xor"},
        {"metrics": [{"func": "compare_csv"}], "evaluator": "me"},
        {"metrics": [{"func": "compare_csv"}], "rules": []},
    ],
)
def test_options_that_do_not_fit_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(UsageError):
        check_options(CheckerSpec("metrics", options))


def test_golds_are_their_own_answers(tmp_path: Path) -> None:
    gold = tmp_path / "gold.csv"
    gold.write_text("1\n")
    spec = CheckerSpec("metrics", {"metrics": [{"func": "compare_csv", "gold": "gold.csv"}]})
    task = Task("1", "?", "?", (TestCase(1, (), (Gold(gold),)),), spec)
    (answer,) = checker_of(spec).own_answers(task, Gold(gold)).values()
    assert said(spec.options, answer, (Gold(gold),)) == EQUAL
    assert "compare_csv" in checker_of(spec).describe(spec)
