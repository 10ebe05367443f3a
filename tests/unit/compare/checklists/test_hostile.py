"""Items and answers made to be slow, large or broken always get a verdict, and never JE."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Mapping

import pytest

from judge.compare.checklists import workspace
from judge.compare.checklists.checker import CHECKER
from judge.compare.contract import Rules
from judge.compare.profiles import get_profile
from judge.core.submission import Answer, AnswerFile, AnswerForm, Origin
from judge.core.task import CheckerSpec, Task, TestCase
from judge.core.verdict import Verdict
from judge.errors import UsageError
from judge.files import packed_folder
from judge.files.packed_folder import packed
from judge.grading.case import CaseJudge, Judgement
from judge.recalc.policy import Recalculator
from tests.unit.compare.checklists.test_items import FILES

JUDGE = CaseJudge(Recalculator([], mode="never"), Rules(get_profile("standard")))
ITEMS = [
    {"id": "cell", "kind": "cell", "file": "book.xlsx", "cell": "B2", "expected": 5},
    {"id": "formula", "kind": "formula", "file": "book.xlsx", "cells": "B3", "functions": ["SUM"]},
    {"id": "filter", "kind": "object", "file": "book.xlsx", "object": "filter"},
    {"id": "text", "kind": "text", "reply_key": "total", "number": 1},
    {"id": "pattern", "kind": "text", "patterns": ["^(a+)+$", "(x+x+)+y"]},
    {"id": "table", "kind": "table", "file": "data/rows.csv", "rows": 2},
    {"id": "event", "kind": "calendar", "file": "calendar/bob.ics", "summary": "review"},
    {"id": "mail", "kind": "mail", "file": "emails/*", "subject": "x", "contains": "y"},
    {"id": "answer", "kind": "answer", "key": "a.b", "type": "float", "expected": 1},
    {"id": "file", "kind": "file", "pattern": "*.xlsx"},
]


def judged(
    data: bytes, *items: Mapping[str, object], form: AnswerForm = AnswerForm.FILES
) -> Judgement:
    spec = CheckerSpec("checklist", {"items": list(items) or ITEMS})
    task = Task("t", "", "", (TestCase(1, (), ()),), spec, form)
    answer = Answer(Origin.FINISHED, (AnswerFile("answer", data),))
    return JUDGE.judge(task, task.cases[0], answer)


def bomb() -> bytes:
    written = io.BytesIO()
    with zipfile.ZipFile(written, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("large.xlsx", bytes(40 << 20))
    return written.getvalue()


DEEP = b"[" * 100_000 + b"]" * 100_000
HOSTILE = {
    "nothing": b"",
    "no archive": b"PK\x03\x04" + bytes(100),
    "an empty folder": packed({}),
    "a folder in a folder": packed({"answer.zip": packed(FILES)}),
    "a broken workbook": packed({**FILES, "book.xlsx": FILES["book.xlsx"][:400]}),
    "a workbook that is none": packed({**FILES, "book.xlsx": packed({"a": b"b"})}),
    "deep JSON": packed({**FILES, "reply.json": DEEP}),
    "JSON that is too deep to search": packed({**FILES, "reply.json": b"[" * 500 + b"]" * 500}),
    "a long run of one letter": packed(
        {**FILES, "reply.json": b'{"t": "' + b"a" * 50_000 + b'!"}'}
    ),
    "bytes in place of text": packed(dict.fromkeys(FILES, b"\xff\x00\xfe" * 1_000)),
    "a table of quotes": packed({**FILES, "data/rows.csv": b'"' * 300_000}),
    "a mail of headers": packed({**FILES, "emails/bob/1.eml": b"Subject: =?utf-8?q?\n" * 20_000}),
    "paths that lead elsewhere": packed({"../book.xlsx": b"x", "/etc/book.xlsx": b"x"}),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_answer_has_a_verdict(name: str) -> None:
    verdict = judged(HOSTILE[name])
    assert verdict.verdict is Verdict.WA, verdict.cause
    assert len(verdict.comparison["items"]) == len(ITEMS)


def test_an_archive_that_inflates_without_bound_cannot_be_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(packed_folder, "MAX_BYTES", 1 << 20)
    assert judged(bomb()).verdict is Verdict.IW
    monkeypatch.setattr(packed_folder, "MAX_FILES", 3)
    assert judged(packed(FILES)).verdict is Verdict.IW


def test_an_archive_in_place_of_a_workbook_is_a_folder_without_it() -> None:
    item: dict[str, object] = {"id": "1", "kind": "cell", "cell": "B2", "expected": 5}
    assert judged(packed(FILES), item, form=AnswerForm.WORKBOOK).verdict is Verdict.AC
    assert judged(b"PK\x03\x04 broken", item, form=AnswerForm.WORKBOOK).verdict is Verdict.IW


def test_patterns_that_run_away_are_bounded_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workspace, "MAX_STEPS_OF_A_CHECKLIST", 10_000)
    runaway = {"kind": "text", "patterns": ["(a|aa)+(a|aa)+b{90}"]}
    items = [{"id": str(number), **runaway} for number in range(50)]
    short = judged(packed({"reply.json": b"aaaa"}), items[0])
    long = judged(packed({"reply.json": b"a" * 3_000}), *items)
    assert (short.verdict, long.verdict) == (Verdict.WA, Verdict.WA)
    assert short.comparison["items"][0]["state"] == "fails"
    assert {item["state"] for item in long.comparison["items"]} == {"error"}


def test_a_range_as_large_as_a_sheet_is_not_walked() -> None:
    for kind, area in (("formula", "cells"), ("range", "range"), ("format", "cells")):
        item: dict[str, object] = {"id": "1", "kind": kind, "file": "book.xlsx", area: "A:XFD"}
        item |= {"expected": [[1]]} if kind == "range" else {}
        item |= {"bold": True} if kind == "format" else {}
        verdict = judged(packed(FILES), item)
        assert (verdict.verdict, verdict.comparison["items"][0]["state"]) == (Verdict.WA, "error")


def test_a_million_items_are_refused_before_they_are_read() -> None:
    item = {"id": "1", "kind": "file", "file": "a"}
    with pytest.raises(UsageError, match="1 to 2,000 items"):
        CHECKER.check_options({"items": [item] * 1_000_000})
    # A list that nobody checked before is a bad test.
    assert judged(packed(FILES), *([item] * 3_000)).verdict is Verdict.BT
