"""Pages as text: what they contain, and what they refuse."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import zlib
from pathlib import Path
from typing import Any

import pytest

from judge.api import ScoreOptions, score
from judge.report.grid import MARKS
from judge.report.grid_window import GridBounds
from judge.report.html import report_html
from judge.report.html.page import highlight, inline_json
from judge.report.html.pages import KINDS, TaskPages
from judge.report.html.render import GRID_BOUNDS, pack, pack_all
from judge.report.load import load_run
from tests.browser.made_run import (
    MadeCase,
    MadeTask,
    case,
    few_tasks,
    make_run,
    make_suite,
    workbook,
)


@pytest.fixture(scope="module")
def run_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("page")
    tasks = few_tasks()
    make_suite(root / "suite", tasks)
    return make_run(root / "run", root / "suite", tasks)


@pytest.fixture(scope="module")
def html(run_folder: Path) -> str:
    return report_html(run_folder)


def unpack(text: str) -> Any:
    return json.loads(zlib.decompress(base64.b64decode(text)))


def test_the_policy_names_the_hash_of_style_and_script(html: str) -> None:
    found = re.search(r'Content-Security-Policy" content="([^"]*)"', html)
    assert found is not None
    policy = dict(rule.split(" ", 1) for rule in found[1].replace("&#39;", "'").split("; "))
    assert policy["default-src"] == policy["connect-src"] == policy["form-action"] == "'none'"
    for element, rule in (("style", "style-src"), ("script", "script-src")):
        texts = re.findall(rf"<{element}>(.*?)</{element}>", html, re.DOTALL)
        assert len(texts) == 1
        digest = base64.b64encode(hashlib.sha256(texts[0].encode()).digest()).decode()
        assert policy[rule] == f"'sha256-{digest}'"


def test_nothing_is_fetched(html: str) -> None:
    without_pages = re.sub(r'<script type="text/plain".*?</script>', "", html, flags=re.DOTALL)
    assert not re.findall(
        r"""(?:src|href|action|url)\s*=?\s*["'(]\s*(?:https?:)?//""", without_pages
    )
    assert " style=" not in without_pages
    assert not re.findall(r"\son[a-z]+=", without_pages.partition("<script>")[0])


def test_pages_are_in_it(html: str, run_folder: Path) -> None:
    packed = re.findall(r'<script type="text/plain" id="page-(\d+)">([^<]*)</script>', html)
    assert [int(number) for number, _ in packed] == list(range(len(few_tasks())))
    page = unpack(packed[1][1])
    assert page["entry"]["task_id"] == "10-2"
    assert "".join(text for _, text in page["code"]) == few_tasks()[1].solution


def test_every_mark_of_a_grid_has_a_letter_and_a_name() -> None:
    assert set(MARKS) - {""} == set(KINDS)
    letters = [letter for letter, _ in KINDS.values() if letter]
    assert len(set(letters)) == len(letters)


def test_json_in_a_script_element_cannot_end_it() -> None:
    markup = inline_json({"a": "</script><!--&"})
    assert "<" not in markup
    assert json.loads(markup) == {"a": "</script><!--&"}


# -- packing --------------------------------------------------------------------------------------


def test_packed_documents_come_back() -> None:
    document = {"text": "käse \u202e", "numbers": [1, 2.5, None]}
    assert unpack(pack(document)) == document


def test_the_largest_pages_are_made_smaller_until_all_fit() -> None:
    made: list[tuple[int, GridBounds]] = []

    def make(number: int, bounds: GridBounds) -> dict[str, object]:
        made.append((number, bounds))
        size = 40_000 if number == 2 else 200
        amount = min(size, bounds.cells)
        return {
            "n": number,
            "cells": [
                hashlib.sha256(bytes([i % 251, number])).hexdigest() + str(i) for i in range(amount)
            ],
        }

    packed = pack_all(4, make, limit=120_000)
    assert sum(map(len, packed)) <= 120_000
    assert [unpack(each)["n"] for each in packed] == [0, 1, 2, 3]
    assert {number for number, bounds in made if bounds is not GRID_BOUNDS[0]} == {2}
    assert [len(unpack(packed[n])["cells"]) for n in (0, 1, 3)] == [200] * 3


# -- code and conversations -----------------------------------------------------------------------


@pytest.mark.parametrize(
    "code", ["", "x = 1\n", "def f(:\n\t'", "\ufeff# Ω\r\nprint('</script>')", "\x00\x1b"]
)
def test_coloured_pieces_are_the_source(code: str) -> None:
    assert "".join(text for _, text in highlight(code)) == code


def test_kinds_of_pieces() -> None:
    assert highlight("import os  # why\n") == [("k", "import "), ("", "os  "), ("c", "# why\n")]


def pages_of(tmp_path: Path, record: dict[str, object], files: dict[str, str]) -> dict[str, Any]:
    task = MadeTask("1", [case({"B2": 2, "B3": 4, "B4": 6})], record=record)
    make_suite(tmp_path / "suite", [task])
    run = make_run(tmp_path / "run", tmp_path / "suite", [task])
    for name, text in files.items():
        (run / name).parent.mkdir(exist_ok=True)
        (run / name).write_text(text, encoding="utf-8")
    entry = {"task_id": "1", "sample": 0, "cases": [{"case": 1}]}
    return TaskPages(load_run(run), {"tasks": [entry]}).page(0)


MESSAGES = json.dumps({"messages": [{"role": "user", "content": "hello"}]})


@pytest.mark.parametrize(
    ("told", "turns"),
    [
        ("conversations/1.0.json", [("user", "hello")]),
        (["question", "answer"], [("user", "question"), ("assistant", "answer")]),
        ([{"role": "system", "content": "be brief"}], [("system", "be brief")]),
        ("../outside.json", []),
        ("/etc/passwd", []),
        ("run.json", []),
        ("\x00.json", []),
        (7, []),
    ],
)
def test_conversations(tmp_path: Path, told: object, turns: list[tuple[str, str]]) -> None:
    files = {"conversations/1.0.json": MESSAGES, "../outside.json": MESSAGES}
    page = pages_of(tmp_path, {"conversation": told}, files)
    assert [(each["role"], each["content"]) for each in page["conversation"]] == turns


def test_an_output_that_is_gone_is_named(tmp_path: Path) -> None:
    task = MadeTask("1", [MadeCase(workbook({}), workbook({"B2": 1}), workbook({"B2": 2}))])
    make_suite(tmp_path / "suite", [task])
    run = make_run(tmp_path / "run", tmp_path / "suite", [task])
    for path in (run / "workbooks").glob("*/*"):
        path.unlink()
    entry = {"task_id": "1", "sample": 0, "cases": [{"case": 1}]}
    grid = TaskPages(load_run(run), {"tasks": [entry]}).page(0)["cases"][0]["grid"]
    assert grid["notes"] == ["the output workbook is no longer available"]
    assert grid["blocks"][0]["sheet"] == "Data"


def test_outputs_that_were_made_elsewhere_are_shown_from_where_they_lie(tmp_path: Path) -> None:
    task = MadeTask("1", [case({"B2": 2, "B3": 5, "B4": 6})])
    make_suite(tmp_path / "suite", [task])
    outputs = tmp_path / "outputs"
    outputs.mkdir()
    output = task.cases[0].output
    assert output is not None
    (outputs / "1_1_output.xlsx").write_bytes(output)
    options = ScoreOptions(dataset=str(tmp_path / "suite"), out=tmp_path / "run", recalc="never")
    score(outputs, options)
    entry = {"task_id": "1", "sample": 0, "cases": [{"case": 1}]}
    pages = TaskPages(load_run(tmp_path / "run"), {"tasks": [entry]})
    grid = pages.page(0)["cases"][0]["grid"]
    assert grid["notes"] == []
    assert [1, (MARKS.index("wrong_value") << 4) | 0b1001, 4, 5] in grid["blocks"][0]["cells"][2]
    assert pages.page(0)["code"] is None
    # Another file in its place is not what was judged.
    (outputs / "1_1_output.xlsx").write_bytes(workbook({"B2": 0}))
    grid = pages.page(0)["cases"][0]["grid"]
    assert grid["notes"] == ["the output workbook is no longer available"]
