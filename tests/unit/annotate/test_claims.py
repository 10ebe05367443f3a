"""A stranger's suite: nothing in its ``annotations`` is trusted, and nothing in it hangs."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from judge.annotate.casebook import Casebook, digest
from judge.errors import StoreError
from tests.unit.annotate.conftest import doubling_case

CONTENT = b"what a stranger wants to be written"


def announce(suite: Path, **changes: Any) -> Path:
    """Leaves a save that looks interrupted, as a crash would; returns the records."""
    versions = suite / "annotations" / "versions"
    versions.mkdir(parents=True, exist_ok=True)
    sha256 = digest(CONTENT)
    (versions / f"{sha256}.xlsx").write_bytes(CONTENT)
    record = {
        "state": "saving",
        "id": "a",
        "time": "t",
        "author": "x",
        "task": "7",
        "case": 4,
        "draft": "4-ab",
        "replaces": None,
        "base": 1,
        "files": {
            "input": "spreadsheet/7/4_7_input.xlsx",
            "gold": "spreadsheet/7/4_7_answer.xlsx",
        },
        "input": sha256,
        "gold": sha256,
        **changes,
    }
    records = suite / "annotations" / "records.jsonl"
    records.write_text(json.dumps(record) + "\n")
    return records


def test_a_save_that_a_crash_interrupted_is_finished(suite: Path) -> None:
    announce(suite)
    Casebook(suite)
    assert (suite / "spreadsheet/7/4_7_input.xlsx").read_bytes() == CONTENT


@pytest.mark.parametrize("where", ["../victim.xlsx", "ABSOLUTE", "spreadsheet/../../victim.xlsx"])
@pytest.mark.parametrize("role", ["input", "gold"])
def test_no_record_writes_outside_of_the_suite(suite: Path, where: str, role: str) -> None:
    victim = suite.parent / "victim.xlsx"
    files = {"input": "spreadsheet/7/4_7_input.xlsx", "gold": "spreadsheet/7/4_7_answer.xlsx"}
    announce(suite, files={**files, role: where.replace("ABSOLUTE", str(victim))})
    with pytest.raises(StoreError, match=rf"files\.{role} cannot be right"):
        Casebook(suite)
    assert not victim.exists()
    assert not (suite / "spreadsheet/7/4_7_input.xlsx").exists()


@pytest.mark.parametrize("name", ["dataset.json", "annotations/x.xlsx", "notes.txt", "a\\b.xlsx"])
def test_no_record_writes_anything_but_workbooks_of_cases(suite: Path, name: str) -> None:
    announce(suite, files={"input": name, "gold": name})
    before = (suite / "dataset.json").read_bytes()
    with pytest.raises(StoreError, match="cannot be right"):
        Casebook(suite)
    assert (suite / "dataset.json").read_bytes() == before


def test_no_link_leads_a_save_out_of_the_suite(suite: Path) -> None:
    outside = suite.parent / "outside"
    outside.mkdir()
    (suite / "link").symlink_to(outside)
    announce(suite, files={"input": "link/4.xlsx", "gold": "link/5.xlsx"})
    with pytest.raises(StoreError, match="a link leads there"):
        Casebook(suite)
    assert list(outside.iterdir()) == []


def test_a_case_is_not_saved_into_a_folder_that_became_a_link(suite: Path) -> None:
    outside = suite.parent / "outside"
    book = Casebook(suite)
    draft = book.begin("7", "Ann")
    (suite / "spreadsheet" / "7").rename(outside)
    (suite / "spreadsheet" / "7").symlink_to(outside)
    there = sorted(outside.iterdir())
    with pytest.raises(StoreError, match="a link leads there"):
        book.save(draft, *doubling_case(9, 2, 3, 4), {})
    assert sorted(outside.iterdir()) == there
    assert book.records() == []
    assert [each.id for each in book.drafts("7")] == [draft.id]


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("files", None),
        ("files", []),
        ("id", {}),
        ("input", 5),
        ("input", "../../x"),
        ("draft", "../x"),
        ("draft", 5),
        ("task", None),
        ("case", "x"),
        ("case", 0),
        ("case", True),
        ("case", 10**400),
        ("base", "x"),
        ("changed", 5),
        ("author", 5),
        ("time", []),
        ("state", "something"),
    ],
)
def test_a_record_of_something_else_is_named(suite: Path, field: str, value: object) -> None:
    records = announce(suite, **{field: value})
    if field == "state":
        records.write_text(json.dumps({"state": value}) + "\n")
    with pytest.raises(StoreError, match=r"records\.jsonl: a record whose field") as caught:
        Casebook(suite)
    assert len(caught.value.message) < 400


def _step(**fields: object) -> Callable[[str], str]:
    return lambda text: text + json.dumps(fields) + "\n"


def _head(**fields: object) -> Callable[[str], str]:
    return lambda text: json.dumps({**json.loads(text), **fields}) + "\n"


@pytest.mark.parametrize(
    "change",
    [
        _head(base=[]),
        _head(base={"case": 1, "input": "../../../etc/passwd", "gold": "x"}),
        _head(case="x"),
        _head(author=None),
        _head(replaces=5),
        _step(x=1),
        _step(edits=5, answers=[]),
        _step(edits=[], answers={}),
    ],
)
def test_a_draft_of_something_else_is_named(suite: Path, change: Callable[[str], str]) -> None:
    draft = Casebook(suite).begin("7", "Ann")
    path = suite / f"annotations/drafts/7/{draft.id}.jsonl"
    path.write_text(change(path.read_text()))
    with pytest.raises(StoreError, match=r"\.jsonl: a record whose field"):
        Casebook(suite).drafts("7")


def test_files_that_are_no_drafts_give_no_number(suite: Path) -> None:
    folder = suite / "annotations/drafts/7"
    folder.mkdir(parents=True)
    for name in ("x-ab", f"{10**30}-ab", "\u0663-ab", "5-xyz"):
        (folder / f"{name}.jsonl").write_text("{}\n")
    assert Casebook(suite).drafts("7") == []
    assert Casebook(suite).begin("7", "Ann").number == 4


@pytest.mark.parametrize("name", ["annotations/records.jsonl", "annotations/.lock"])
@pytest.mark.parametrize("what", ["a FIFO", "/dev/zero"])
def test_nothing_waits_for_what_is_not_a_file(suite: Path, name: str, what: str) -> None:
    announce(suite)
    path = suite / name
    path.unlink(missing_ok=True)
    if what == "a FIFO":
        os.mkfifo(path)
    else:
        path.symlink_to(what)
    with pytest.raises(StoreError, match="not a regular file"):
        Casebook(suite)


def test_workbooks_and_drafts_are_regular_files_too(suite: Path) -> None:
    book = Casebook(suite)
    draft = book.begin("7", "Ann")
    path = suite / f"annotations/drafts/7/{draft.id}.jsonl"
    path.unlink()
    os.mkfifo(path)
    with pytest.raises(StoreError, match="a FIFO"):
        book.drafts("7")
    case = suite / "spreadsheet/7/1_7_input.xlsx"
    case.unlink()
    os.mkfifo(case)
    with pytest.raises(StoreError, match="a FIFO"):
        book.case("7", 1)


@pytest.mark.parametrize(
    "where", ["../victim.xlsx", "dataset.json", "spreadsheet/7/1_7_input.xlsx"]
)
def test_no_record_removes_what_the_judge_did_not_save(suite: Path, where: str) -> None:
    victim = suite.parent / "victim.xlsx"
    victim.write_bytes(b"a file of somebody else")
    files = {"input": where, "gold": where}
    announce(suite, state="removing", takes_back="b", restores=None, files=files)
    before = {each: each.read_bytes() for each in suite.rglob("*.xlsx")}
    with contextlib.suppress(StoreError):
        Casebook(suite)
    assert victim.exists()
    assert (suite / "dataset.json").exists()
    assert all(path.exists() and path.read_bytes() == data for path, data in before.items())
