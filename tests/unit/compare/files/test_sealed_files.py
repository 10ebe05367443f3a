"""Databases and PDFs, including hostile ones, are read inside the sandbox."""

from __future__ import annotations

import contextlib
import io
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pypdf
import pytest
from pypdf.generic import DecodedStreamObject, DictionaryObject, NameObject

from judge.compare.sealed import UnreadableFileError
from judge.core.task import Gold
from judge.recalc.computing import EngineCompute
from judge.recalc.select import open_recalculator
from judge.sandbox import open_sandbox
from tests.unit.compare.files.test_metrics import BROKEN, DIFFERENT, EQUAL, file, said

pytestmark = pytest.mark.bubblewrap

EVERYTHING = {"kinds": ["table", "view"], "rows": ["table", "view"], "targets": {}}
ENDLESS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i FROM n"


@pytest.fixture(scope="module")
def compute() -> Iterator[EngineCompute]:
    with (
        contextlib.closing(open_sandbox("bubblewrap")) as sandbox,
        contextlib.closing(open_recalculator(sandbox, engine="formualizer")) as recalculator,
    ):
        yield EngineCompute(recalculator)


def database(folder: Path, *statements: str) -> bytes:
    path = folder / "made.db"
    path.unlink(missing_ok=True)
    with contextlib.closing(sqlite3.connect(path)) as connection:
        for each in statements:
            connection.execute(each)
        connection.commit()
    return path.read_bytes()


def pdf(*texts: str) -> bytes:
    writer = pypdf.PdfWriter()
    font = DictionaryObject(
        {
            NameObject("/Type"): NameObject("/Font"),
            NameObject("/Subtype"): NameObject("/Type1"),
            NameObject("/BaseFont"): NameObject("/Helvetica"),
        }
    )
    for text in texts:
        page = writer.add_blank_page(200, 200)
        fonts = DictionaryObject({NameObject("/F1"): font})
        page[NameObject("/Resources")] = DictionaryObject({NameObject("/Font"): fonts})
        stream = DecodedStreamObject()
        stream.set_data(f"BT /F1 12 Tf 20 100 Td ({text}) Tj ET".encode())
        page[NameObject("/Contents")] = stream
    buffer = io.BytesIO()
    writer.write(buffer)
    return buffer.getvalue()


TABLE = ("CREATE TABLE t (a INT, b TEXT)", "INSERT INTO t VALUES (1, 'x'), (2, NULL)")


def test_tables_views_and_rows_in_order(compute: EngineCompute, tmp_path: Path) -> None:
    data = database(tmp_path, *TABLE, "CREATE VIEW v AS SELECT b FROM t WHERE a = 1")
    tables = compute.read_file("sqlite3", data, EVERYTHING)["objects"]
    assert [(each["kind"], each["name"], each["rows"]) for each in tables] == [
        ("table", "t", [[1, "x"], [2, None]]),
        ("view", "v", [["x"]]),
    ]
    assert tables[0]["columns"][0][1:3] == ["a", "INT"]
    only = {**EVERYTHING, "rows": [], "targets": {"table": ["none"], "view": ["v"]}}
    (view,) = compute.read_file("sqlite3", data, only)["objects"]
    assert (view["name"], view["rows"]) == ("v", None)


@pytest.mark.parametrize(
    "statements",
    [
        pytest.param((f"CREATE VIEW v AS {ENDLESS}",), id="a view without end"),
        pytest.param(("CREATE VIEW v AS SELECT zeroblob(900000000)",), id="a huge value"),
        pytest.param(("CREATE VIEW v AS SELECT * FROM gone",), id="a view of nothing"),
        pytest.param(
            ("CREATE VIEW v AS SELECT * FROM pragma_database_list",), id="what may not be read"
        ),
    ],
)
def test_a_hostile_database(
    compute: EngineCompute, tmp_path: Path, statements: tuple[str, ...]
) -> None:
    data = database(tmp_path, *TABLE, *statements)
    with pytest.raises(UnreadableFileError):
        compute.read_file("sqlite3", data, EVERYTHING)


def test_a_broken_database(compute: EngineCompute, tmp_path: Path) -> None:
    data = database(tmp_path, *TABLE)
    for broken in (b"", b"PK", data[:600], data[:100] + b"\xff" * 8 + data[108:]):
        with pytest.raises(UnreadableFileError):
            compute.read_file("sqlite3", broken, EVERYTHING)


def test_verdicts_over_databases(compute: EngineCompute, tmp_path: Path) -> None:
    gold = tmp_path / "gold.db"
    gold.write_bytes(database(tmp_path, *TABLE))
    options: dict[str, Any] = {"db_type": "sqlite3", "check_type": ["table-schema-content"]}
    asked = {"metrics": [{"func": "check_local_database", "gold": "gold.db", "options": options}]}
    for data, right in (
        (database(tmp_path, *TABLE), EQUAL),
        (database(tmp_path, *TABLE, "UPDATE t SET a = 3 WHERE a = 2"), DIFFERENT),
        (b"SQLite", BROKEN),
    ):
        assert said(asked, file(data), (Gold(gold),), compute=compute) == right


def test_pages_and_their_text(compute: EngineCompute, tmp_path: Path) -> None:
    gold = tmp_path / "gold.pdf"
    gold.write_bytes(pdf("Total 7"))
    asked = {
        "metrics": [
            {"func": "check_pdf_pages", "expected": {"relation": "eq", "ref_value": 1}},
            {"func": "compare_pdfs", "gold": "gold.pdf"},
        ]
    }
    for data, right in (
        (pdf("Total 7"), EQUAL),
        (pdf("Total 8"), DIFFERENT),
        (pdf("Total 7", "more"), DIFFERENT),
        (b"%PDF-1.7 nothing", BROKEN),
    ):
        assert said(asked, file(data), (Gold(gold),), compute=compute) == right
    own = file(pdf("Total 7"))
    assert said(asked, own, (Gold(gold),), compute=compute, profile="official") == EQUAL
