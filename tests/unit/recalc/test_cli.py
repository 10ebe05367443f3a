"""``judge recalc`` and ``judge engines`` as a user calls them."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import judge
import judge.recalc.library
import judge.sandbox
from judge.cli.recalc import engines, recalc
from judge.errors import JudgeError, PositionError, RecalcError, UsageError, WorkbookError
from judge.recalc import recalculate
from judge.recalc.library import MAX_LINE_BYTES, Recalculating, serve_lines
from judge.sandbox.scripted import ScriptedSandbox
from judge.workbook.reader import open_workbook
from tests.unit.recalc.fakes import ALL, package, ref

VERSIONS = {"libreoffice": "26", "ironcalc": "0.9", "formualizer": "0.13", "formulas": "1.3"}


def answers(values: dict[tuple[int, int], object]) -> Iterator[object]:
    """A service with the values of some cells, for whichever engine is requested."""

    def answer(payload: bytes) -> bytes:
        length = int.from_bytes(payload[:4], "big")
        header = json.loads(payload[4 : 4 + length])
        if header["op"] == "describe":
            return json.dumps({"versions": VERSIONS}).encode()
        lists = [
            [
                values.get((row, column), {"x": "no such function"})
                for row in range(top, bottom + 1)
                for column in range(left, right + 1)
            ]
            for _, top, left, bottom, right in header["ranges"]
        ]
        return json.dumps({"values": lists, "seconds": 0}).encode()

    while True:
        yield answer


@pytest.fixture(autouse=True)
def kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of cached results: scripted values must not be found by any other test."""
    folder = tmp_path / "kept"
    monkeypatch.setattr(judge.recalc.library, "recalc_cache_folder", lambda: folder)
    return folder


@pytest.fixture
def sandbox(monkeypatch: pytest.MonkeyPatch) -> ScriptedSandbox:
    known = {(1, 1): 3.0, (2, 1): {"e": "#N/A"}, (3, 1): 44348.0, (4, 1): "text"}
    scripted = ScriptedSandbox(answers=answers(known))  # type: ignore[arg-type]
    monkeypatch.setattr(judge.recalc.library, "open_sandbox", lambda _: scripted)
    monkeypatch.setattr(judge.sandbox, "open_sandbox", lambda _: scripted)
    return scripted


@pytest.fixture
def book(tmp_path: Path) -> Path:
    path = tmp_path / "book.xlsx"
    cells = {"A1": "=B1+1", "A2": "=NA()", "A3": "=B2", "A4": '="text"', "B1": 2, "B2": 44348}
    path.write_bytes(package(cells, A3="yyyy-mm-dd"))
    return path


def test_cells_are_printed(sandbox: ScriptedSandbox, book: Path) -> None:
    result = CliRunner().invoke(recalc, [str(book)], catch_exceptions=False)
    assert result.exit_code == 0
    assert result.stdout.splitlines() == [
        "S!A1\t3",
        "S!A2\t#N/A",
        "S!A3\t2021-06-01 00:00:00",
        "S!A4\ttext",
    ]
    assert "4 cells computed by" in result.stderr
    assert sandbox.closed


@pytest.mark.usefixtures("sandbox")
def test_json_names_dates_and_errors(book: Path) -> None:
    result = CliRunner().invoke(recalc, [str(book), "--json", "--at", "A1:A3"])
    said = json.loads(result.stdout)
    assert said["values"] == {
        "S!A1": 3,
        "S!A2": {"error": "#N/A"},
        "S!A3": {"date": "2021-06-01T00:00:00"},
    }
    assert said["not_calculated"] == {}


@pytest.mark.usefixtures("sandbox")
def test_a_copy_holds_the_values(book: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.xlsx"
    result = CliRunner().invoke(recalc, [str(book), "-o", str(out)], catch_exceptions=False)
    assert result.exit_code == 0
    assert result.stdout == ""
    cells = open_workbook(out).cells(ALL)
    assert cells[1, 1].value == 3
    assert cells[1, 1].formula == "=B1+1"
    assert [path.name for path in tmp_path.iterdir()].count("out.xlsx") == 1
    assert not list(tmp_path.glob("*.part"))


@pytest.mark.usefixtures("sandbox")
def test_what_is_not_calculated_is_an_error_with_its_reason(tmp_path: Path) -> None:
    path = tmp_path / "book.xlsx"
    path.write_bytes(package({"A1": "=B1", "A9": "=CUBEVALUE(1)"}))
    runner = CliRunner()
    result = runner.invoke(recalc, [str(path)])
    assert isinstance(result.exception, RecalcError)
    assert "1 formula cells could not be computed" in result.exception.message
    assert "S!A9\tnot calculated: libreoffice: no such function" in result.stderr


@pytest.mark.usefixtures("sandbox")
def test_faults_of_the_user_are_named(book: Path, tmp_path: Path) -> None:
    with pytest.raises(PositionError):
        recalculate(book, at="'Other'!A1:")
    broken = tmp_path / "broken.xlsx"
    broken.write_bytes(b"no workbook")
    with pytest.raises(WorkbookError, match=r"broken\.xlsx"):
        recalculate(broken)
    out = tmp_path / "nowhere" / "out.xlsx"
    with pytest.raises(JudgeError) as unwritten:
        recalculate(book, output=out)
    error = unwritten.value
    assert error.message == f"{out}: cannot be written: there is no folder {out.parent}"
    assert error.hint == "Make the folder first."
    assert error.exit_code == 1, "6 means that a workbook cannot be read"


@pytest.mark.usefixtures("sandbox")
def test_engines_are_listed_with_versions() -> None:
    text = CliRunner().invoke(engines, [], catch_exceptions=False).stdout
    for name, version in VERSIONS.items():
        assert name in text
        assert version in text
    said = json.loads(CliRunner().invoke(engines, ["--json"]).stdout)
    assert [entry["name"] for entry in said] == list(VERSIONS)
    assert said[0]["coverage"]["trusted"] > 50


def test_computed_results_are_not_computed_again(sandbox: ScriptedSandbox, book: Path) -> None:
    first = recalculate(book)
    asked = len(sandbox.calls)
    assert recalculate(book).computed.values == first.computed.values
    assert len(sandbox.calls) == asked > 0


@pytest.mark.usefixtures("sandbox")
def test_one_cell_is_explained_engine_by_engine(book: Path) -> None:
    result = CliRunner().invoke(recalc, [str(book), "--explain", "S!A1"], catch_exceptions=False)
    lines = result.stdout.splitlines()
    assert lines[0] == "S!A1\t=B1+1"
    assert "libreoffice\t3" in lines
    assert "formualizer\t3" in lines
    assert "formulas\tnot asked: its answer could not change the value" in lines
    assert lines[-1] == (
        "value\t3 (judge): no engine is needed: the judge was always right when it computed the "
        "functions that the cell depends on"
    )
    shown = json.loads(CliRunner().invoke(recalc, [str(book), "--explain", "A2", "--json"]).stdout)
    assert shown["value"] == {"error": "#N/A"}
    assert [entry["name"] for entry in shown["engines"]] == [
        "libreoffice",
        "formualizer",
        "ironcalc",
        "formulas",
    ]


@pytest.mark.usefixtures("sandbox")
def test_a_cell_without_a_value_is_explained(tmp_path: Path) -> None:
    path = tmp_path / "book.xlsx"
    path.write_bytes(package({"A9": "=CUBEVALUE(1)", "B1": 7}))
    result = CliRunner().invoke(recalc, [str(path), "--explain", "A9"])
    assert isinstance(result.exception, RecalcError)
    assert "libreoffice\tno such function" in result.stdout
    assert "value\tno value: libreoffice: no such function" in result.stdout
    constant = CliRunner().invoke(recalc, [str(path), "--explain", "B1"], catch_exceptions=False)
    assert constant.exit_code == 0
    assert constant.stdout.splitlines()[-1].startswith("value\t7: the value in the file counts")


@pytest.mark.usefixtures("sandbox")
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--explain", "A1:A2"], "not a single cell"),
        (["--explain", "A1", "--at", "A1"], "--at cannot be used with --explain"),
        (["--serve"], "leave out FILE"),
    ],
)
def test_options_that_contradict_each_other(book: Path, arguments: list[str], message: str) -> None:
    result = CliRunner().invoke(recalc, [str(book), *arguments])
    assert isinstance(result.exception, JudgeError)
    assert message in result.exception.message


def test_a_workbook_or_serve_is_required() -> None:
    assert isinstance(CliRunner().invoke(recalc, []).exception, UsageError)


def served(lines: Sequence[bytes]) -> list[dict[str, Any]]:
    answers: list[str] = []
    with Recalculating() as recalculating:
        serve_lines(recalculating, io.BytesIO(b"\n".join(lines)), answers.append)
    return [json.loads(answer) for answer in answers]


def test_workbooks_are_served_line_by_line(sandbox: ScriptedSandbox, book: Path) -> None:
    request = {"path": str(book), "at": "A1", "id": {"any": 1}}
    lines = [json.dumps(request).encode(), b"", json.dumps({"path": str(book)}).encode()]
    first, second = served(lines)
    assert first["id"] == {"any": 1}
    assert first["values"] == {"S!A1": 3}
    assert len(second["values"]) == 4
    assert sandbox.closed


@pytest.mark.usefixtures("sandbox")
@pytest.mark.parametrize(
    ("line", "message"),
    [
        (b"no json", "not JSON"),
        (b"[1]", "expected a JSON object"),
        (b'{"at": "A1"}', "path"),
        (b'{"path": "/nowhere.xlsx"}', "nowhere"),
        (b'{"path": "x", "cells": "A1"}', "unknown field 'cells'"),
        (b'{"path": "x", "explain": "A1", "at": "A1"}', "'explain' cannot be combined with 'at'"),
        (b'{"path": "' + b"x" * MAX_LINE_BYTES * 3 + b'"}', "more than"),
    ],
)
def test_a_bad_line_is_an_answer_and_the_next_is_served(
    book: Path, line: bytes, message: str
) -> None:
    good = json.dumps({"path": str(book), "explain": "A1"}).encode()
    bad, explained = served([line, good])
    assert message in bad["error"]["message"]
    assert explained["value"] == 3


@pytest.mark.usefixtures("sandbox")
def test_an_answer_is_bounded(book: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(judge.recalc.library, "MAX_CELLS", 3)
    request = {"path": str(book)}
    too_many, few = served([json.dumps(request | extra).encode() for extra in ({}, {"at": "A1"})])
    assert "4 formula cells; an answer has at most 3" in too_many["error"]["message"]
    assert few["values"] == {"S!A1": 3}


@pytest.mark.usefixtures("sandbox")
def test_the_library_computes_bytes_and_paths(book: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.xlsx"
    with judge.Recalculating() as recalculating:
        assert recalculating(book.read_bytes(), at="A1").computed.values[ref(1)] == 3
        assert recalculating(book, output=out).written == out
        assert recalculating.explain(book, "A1").believed == ("judge",)
    recalculating.close()


@pytest.mark.usefixtures("sandbox")
def test_a_workbook_without_formulas(tmp_path: Path) -> None:
    plain = tmp_path / "plain.xlsx"
    plain.write_bytes(package({"A1": 1}))
    result = CliRunner().invoke(recalc, [str(plain)], catch_exceptions=False)
    assert result.exit_code == 0
    assert result.output == "nothing was computed: there is no formula\n"


def test_the_records_of_a_function_are_shown() -> None:
    result = CliRunner().invoke(engines, ["roman"], catch_exceptions=False)
    assert "ROMAN(c,1)" in result.stdout
    heading = result.stdout.splitlines()[1].split()
    assert {"formualizer", "libreoffice"} <= set(heading), "no name is broken over two lines"
    found = CliRunner().invoke(engines, ["_xlfn.ROMAN", "--json"], catch_exceptions=False)
    right, total = json.loads(found.stdout)["ROMAN"]["libreoffice"]
    assert 0 < right < total
    with pytest.raises(UsageError, match=r"no engine was measured with a function 'NO.SUCH'"):
        CliRunner().invoke(engines, ["no.such"], catch_exceptions=False)
