"""The cells on which an answer depends: by the gold's formulas, and by what programs read."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from judge.annotate.support import (
    MAX_TRACE_BYTES,
    Support,
    cells_read,
    find_groups,
    merged_reads,
    parse_reads,
    precedents,
    traced_program,
)
from judge.annotate.tables import Kind, find_tables
from judge.core.limits import Limits
from judge.sandbox.scripted import ScriptedSandbox
from judge.workbook.cell import CellRange, CellRef
from judge.workbook.reader import open_workbook
from tests.unit.annotate.books import table
from tests.unit.annotate.test_gold import CRASHED, program, wrote

ANSWER = CellRange("Sheet", 2, 4, 3, 4)
ROWS: tuple[tuple[object, ...], ...] = (
    ("key", "price", None, "answer", None, "key", "note"),
    ("a", 10, "=B2*2", "=C2+VLOOKUP(A2,$F$2:$F$4,1,FALSE)", None, "a", "x"),
    ("b", 20, "=B3*2", "=C3+VLOOKUP(A3,$F$2:$F$4,1,FALSE)", None, "b", "y"),
    (None, None, None, None, None, "c", "z"),
)
BOOK = open_workbook(table(*ROWS))


def test_formulas_are_followed_through_other_formulas() -> None:
    found = precedents(BOOK, [ANSWER])
    assert found is not None
    support = Support(found)
    held = {
        (row, column)
        for row in range(1, 5)
        for column in range(1, 8)
        if support.holds(CellRef("Sheet", row, column))
    }
    assert held == {
        *((row, column) for row in (2, 3) for column in (1, 2, 3)),
        *((row, 6) for row in (2, 3, 4)),
    }


def test_what_formulas_do_not_show_is_not_known() -> None:
    assert precedents(BOOK, [CellRange("Sheet", 2, 7, 4, 7)]) is None
    hidden = open_workbook(table(('=INDIRECT("A2")',), (5,)))
    assert precedents(hidden, [CellRange("Sheet", 1, 1, 1, 1)]) is None
    assert Support().holds(CellRef("Sheet", 900, 900))


def test_a_formula_that_refers_to_itself_is_followed_once() -> None:
    ring = open_workbook(table(("=B1", "=A1")))
    found = precedents(ring, [CellRange("Sheet", 1, 1, 1, 1)])
    assert found is not None
    assert len(found) == 2


def test_constants_are_grouped_without_headings_and_answers() -> None:
    support = Support(precedents(BOOK, [ANSWER]), {"Sheet": frozenset({(2, 7), (3, 7)})})
    groups = find_groups(BOOK, [ANSWER], support, find_tables(BOOK, [ANSWER]))
    assert [(each.column, each.kind, each.rows(), each.by_formulas) for each in groups] == [
        (1, Kind.TEXT, [2, 3], True),
        (2, Kind.NUMBER, [2, 3], True),
        (6, Kind.TEXT, [2, 3, 4], True),
        (7, Kind.TEXT, [2, 3], False),
    ]
    assert [each.column for each in groups if each.is_looked_up] == [1, 6]


# -- reads ----------------------------------------------------------------------------------------

READER = """
import openpyxl
book = openpyxl.load_workbook({source!r})
sheet = book.active
sheet["D2"].value = sheet["B2"].value
kept = sheet["D2"].value
list(sheet.iter_rows(min_row=4, max_row=4, min_col=6, max_col=7, values_only=True))
book.save({target!r})
if sheet["F2"].value:
    raise SystemExit(3)
"""


def test_a_traced_program_reports_what_it_reads_and_does_what_it_did(tmp_path: Path) -> None:
    source, target, trace = (str(tmp_path / each) for each in ("in.xlsx", "out.xlsx", "reads"))
    Path(source).write_bytes(table(*ROWS))
    code = traced_program(READER.format(source=source, target=target), trace)
    ended = subprocess.run([sys.executable, "-c", code], check=False)
    assert ended.returncode == 3
    # Not what it wrote itself, not what saving reads; what it reads before it fails counts.
    assert parse_reads(Path(trace).read_bytes()) == {
        "Sheet": {(2, 2), (4, 6), (4, 7), (2, 6)},
    }
    assert open_workbook(Path(target)).cells(ANSWER)[2, 4].value == 10


@pytest.mark.parametrize(
    "report",
    [
        b"",
        b"no json",
        b"[" * 100_000,
        b"[[1, 2]]",
        b'{"Sheet": 5}',
        b'{"Sheet": [[1], [1, 2, 3], ["1", 2], [true, 2], [0, 1], [1, 99999999], null]}',
        b" " * (MAX_TRACE_BYTES + 1),
    ],
)
def test_what_a_program_reports_is_not_trusted(report: bytes) -> None:
    assert not any(parse_reads(report).values())


def test_reads_come_through_the_sandbox_and_are_nothing_if_it_says_so() -> None:
    report = json.dumps({"Sheet": [[2, 1], [2, 1], [3, 1]]}).encode()
    sandbox = ScriptedSandbox([wrote(report), CRASHED])
    with sandbox.session() as session:
        found = cells_read(session, program("a"), b"input", Limits())
        assert found == {"Sheet": {(2, 1), (3, 1)}}
        assert cells_read(session, program("a"), b"input", Limits()) == {}
    request = sandbox.requests[0]
    assert request.collect == "/cells-read.json"
    assert dict(request.files) == {"/in.xlsx": b"input"}
    assert merged_reads([found, {"Sheet": frozenset({(9, 9)}), "B": frozenset()}]) == {
        "Sheet": {(2, 1), (3, 1), (9, 9)},
        "B": frozenset(),
    }
