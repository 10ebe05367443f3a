"""Results that someone else wrote: whatever they contain, faults are named and nothing hangs."""

from __future__ import annotations

import copy
import json
import os
import resource
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from judge.api.rejudging import change_verdict, rejudge
from judge.api.runs import make_audit
from judge.errors import JudgeError, StoreError
from judge.files.documents import (
    MAX_DEPTH,
    MalformedError,
    parse_json,
    read_regular,
)
from judge.files.json_lines import read_json_lines
from judge.grading.store import CASES_FILE, REPORT_FILE, RUN_FILE, SUBMISSIONS_FILE, RunDirectory
from judge.report.html import report_html
from judge.report.report import Report
from judge.report.view import ViewPage
from judge.sandbox.scripted import ScriptedSandbox
from tests.unit.report.runs import CELL, TABLE, Solution, TaskSpec, book, make_run, make_suite
from tests.unit.serving import ask, served

pytestmark = pytest.mark.slow

FILES = (RUN_FILE, REPORT_FILE, CASES_FILE, SUBMISSIONS_FILE, "overrides.jsonl")
ASKED = {
    "model": "m",
    "tokens": {"prompt": 5, "completion": 6},
    "cost": 0.1,
    "seconds": 1.0,
    "calls": [{"attempts": 1, "latency_s": 0.5}],
    "conversation": [{"role": "user", "content": "x"}],
    "instruction_type": CELL,
}
COMPARED = {
    "differences": [
        {"kind": "wrong_value", "sheet": "Sheet1", "cell": "B2", "expected": 1, "actual": 2}
    ],
    "notes": ["a note"],
    "ranges": ["'Sheet1'!B2:B4"],
    "engines": ["an engine"],
    "computed_values": {"gold": {"Sheet1": {"B2": 1}}, "output": {}},
}


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run with everything that a run can have."""
    folder = tmp_path_factory.mktemp("sound")
    suite = make_suite(folder / "suite", [TaskSpec("1", cases=2), TaskSpec("2", cases=1)])
    solutions = [
        Solution("1", ("AC", ("WA", {"comparison": COMPARED})), record=ASKED, output=book(TABLE)),
        Solution("2", ("RE",), record=ASKED),
    ]
    made = make_run(folder / "results" / "sound", suite, solutions, inference={"mode": "single"})
    change_verdict(made, "2", 1, "AC", by="Ann", why="so")
    return made


@pytest.fixture
def run(sound: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of it. It holds no formula, so that a sandbox would be opened hundreds of times only
    for its engines to say their versions: here one is opened that has none.
    """
    sandbox = ScriptedSandbox(roots=())
    monkeypatch.setattr("judge.api.resources.open_sandbox", lambda *_, **__: sandbox)
    return Path(shutil.copytree(sound, tmp_path / "results" / "run"))


def uses(run: Path) -> Iterator[Callable[[], object]]:
    yield lambda: Report.of_run(run).to_json()
    yield lambda: Report.of_run(run).to_markdown()
    yield lambda: Report.of_run(run).to_csv("cases")
    yield lambda: report_html(run)
    yield lambda: rejudge(run)
    yield lambda: make_audit(run, size=2, out=run / "audit.csv")


def deep() -> bytes:
    return b'{"a":' * 100_000 + b"1" + b"}" * 100_000 + b"\n"


CONTENTS: dict[str, bytes] = {
    "deep": deep(),
    "UTF-16": '{"task": "1"}\n'.encode("utf-16"),
    "no UTF-8": b'{"task": "\xff"}\n',
    "an array": b"[]\n",
    "null": b"null\n",
    "text": b'"text"\n',
    "no JSON": b"<html>\n",
    "a number without end": b'{"task": ' + b"9" * 10_000 + b"}\n",
    "NUL": b"\0" * 4_096 + b"\n",
}


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("content", CONTENTS)
def test_a_file_that_is_something_else(run: Path, name: str, content: str) -> None:
    (run / name).write_bytes(CONTENTS[content])
    for use in uses(run):
        with pytest.raises(StoreError) as raised:
            use()
        assert raised.value.exit_code == 9
        assert name in raised.value.message


def places(document: Any, place: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    inner = document.items() if isinstance(document, dict) else enumerate(document)
    for key, value in inner:
        yield (*place, key)
        if isinstance(value, dict | list):
            yield from places(value, (*place, key))


def changed(document: Any, place: tuple[Any, ...], value: object) -> Any:
    made = copy.deepcopy(document)
    holder = made
    for key in place[:-1]:
        holder = holder[key]
    if value is ...:
        del holder[place[-1]]
    else:
        holder[place[-1]] = value
    return made


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize(
    "value",
    [None, -1, "x", {"a": 5}, 10**400, 1e308, ...],
    ids=lambda value: repr(value)[:8],
)
def test_fields_of_another_type(run: Path, name: str, value: object) -> None:
    """Each field of each file in turn: a fault is named or has no effect, without a traceback."""
    lines = (run / name).read_text().splitlines()
    documents = (
        [json.loads("".join(lines))] if name.endswith(".json") else list(map(json.loads, lines))
    )
    refused = 0
    for place in places(documents[-2:][0]):
        if name == REPORT_FILE and place[0] not in {"tasks", "overall"}:
            continue  # only these are read
        new = [*documents[:-2], changed(documents[-2:][0], place, value), *documents[-1:]]
        new = new if len(documents) > 1 else new[:1]
        (run / name).write_text("".join(json.dumps(each) + "\n" for each in new))
        try:
            if name == REPORT_FILE:
                Report.of_run(run).to_json()
            else:
                report_html(run)  # which makes the document of to_json first
                (run / "audit.csv").unlink(missing_ok=True)
                make_audit(run, size=2, out=run / "audit.csv")
                rejudge(run)
        except JudgeError:
            refused += 1
    assert refused or value is None or value is ... or name == "overrides.jsonl"


@pytest.mark.parametrize("value", [10**400, -(10**400), 1e308])
@pytest.mark.parametrize(
    "field", ["tokens.prompt", "tokens.completion", "cost", "seconds", "calls[0].latency_s"]
)
def test_numbers_that_cannot_be_added_up_are_named(run: Path, field: str, value: float) -> None:
    path = run / SUBMISSIONS_FILE
    first, *others = map(json.loads, path.read_text().splitlines())
    path.write_text(
        "".join(
            json.dumps(each) + "\n"
            for each in (first, *(changed(each, PLACES[field], value) for each in others))
        )
    )
    for use in uses(run):
        with pytest.raises(StoreError) as raised:
            use()
        assert raised.value.message == (
            f"{path}, line 2: field {field!r} must be a number below 2^63"
        )


PLACES = {
    "tokens.prompt": ("tokens", "prompt"),
    "tokens.completion": ("tokens", "completion"),
    "cost": ("cost",),
    "seconds": ("seconds",),
    "calls[0].latency_s": ("calls", 0, "latency_s"),
}


def in_child(code: str, *arguments: object) -> subprocess.CompletedProcess[str]:
    """Runs code with little processor time and memory, which ends waiting and growth."""

    def bound() -> None:
        resource.setrlimit(resource.RLIMIT_CPU, (60, 60))
        resource.setrlimit(resource.RLIMIT_AS, (3 << 30, 3 << 30))

    return subprocess.run(
        [sys.executable, "-c", code, *map(str, arguments)],
        preexec_fn=bound,
        capture_output=True,
        text=True,
        check=False,
        timeout=240,
    )


JUDGE = "import sys; from judge.cli.main import main; main(sys.argv[1:])"


@pytest.mark.parametrize("kind", ["FIFO", "device", "folder", "sparse"])
def test_only_regular_files_are_read(run: Path, kind: str) -> None:
    """Reading a FIFO would wait without end; a device or a hole of a terabyte would fill memory."""
    path = run / CASES_FILE
    path.unlink()
    if kind == "FIFO":
        os.mkfifo(path)
    elif kind == "device":
        path.symlink_to("/dev/zero")
    elif kind == "folder":
        path.mkdir()
    else:
        with path.open("wb") as file:
            file.truncate(1 << 40)
    done = in_child(JUDGE, "report", run, "--format", "json")
    assert done.returncode == 9, done.stderr
    assert "Traceback" not in done.stderr
    assert f"{path}: " in done.stderr
    assert ("longer than" if kind == "sparse" else "not a regular file") in done.stderr


def test_an_output_that_is_not_a_regular_file_is_not_waited_for(run: Path) -> None:
    for path in (run / "workbooks").glob("*/*"):
        path.unlink()
        os.mkfifo(path)
    done = in_child(JUDGE, "rejudge", run)
    assert done.returncode == 11, done.stderr
    assert "its stored output is not the one that the record names" in done.stdout


@pytest.mark.parametrize("name", [RUN_FILE, CASES_FILE, REPORT_FILE, SUBMISSIONS_FILE])
@pytest.mark.parametrize("content", ["deep", "UTF-16", "an array"])
def test_one_failing_run_does_not_affect_the_others(
    sound: Path, run: Path, name: str, content: str
) -> None:
    shutil.copytree(sound, run.parent / "whole")
    (run / name).write_bytes(CONTENTS[content])
    with served(ViewPage(run.parent)) as page:
        status, _, shown = ask(page, "GET", f"/?token={page.token}")
        assert status == 200
        assert b"run" in shown
        assert b"whole" in shown
        assert json.loads(ask(page, "GET", "/progress.json")[2])["whole"]["done"] == 3
        assert ask(page, "GET", "/runs/whole/report.json")[0] == 200
        assert ask(page, "GET", f"/runs/run/?token={page.token}")[0] == 404


# -- the reader itself -----------------------------------------------------------------------------


def test_nesting_is_bounded() -> None:
    assert parse_json("[" * MAX_DEPTH + "]" * MAX_DEPTH) is not None
    with pytest.raises(MalformedError, match="nested more than 100 levels"):
        parse_json("[" * (MAX_DEPTH + 1) + "]" * (MAX_DEPTH + 1))
    assert len(parse_json("[" + ",".join(["{}"] * 1_000) + "]")) == 1_000


def test_what_comes_out_is_json_again() -> None:
    assert parse_json('[NaN, -Infinity, 1e999, 1.5, "\\ud800"]') == [
        None,
        None,
        None,
        1.5,
        "\ud800",
    ]


def test_lines_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("judge.files.json_lines.MAX_LINE_BYTES", 20)
    path = tmp_path / "lines.jsonl"
    path.write_bytes(b"\xef\xbb\xbf" + b'{"a": 1}\n\n{"b": "' + b"x" * 11 + b'"}\n{"torn')
    assert list(read_json_lines(path, StoreError, whole=True)) == [
        (1, {"a": 1}),
        (3, {"b": "x" * 11}),
    ]
    with pytest.raises(StoreError, match="line 4: not JSON at column 2"):
        list(read_json_lines(path, StoreError))
    path.write_bytes(b'{"b": "' + b"x" * 12 + b'"}\n')
    with pytest.raises(StoreError, match="line 1: longer than"):
        list(read_json_lines(path, StoreError))


def test_nothing_there_is_nothing(tmp_path: Path) -> None:
    assert read_regular(tmp_path / "nothing", StoreError) is None
    with RunDirectory(tmp_path / "nothing") as store:
        assert list(store.read_records(CASES_FILE)) == []
    with pytest.raises(StoreError, match="cannot be read"):
        read_regular(Path("a\0b"), StoreError)
