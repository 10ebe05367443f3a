"""Descriptions of tables compared with those of pandas; and tables as plain text."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from judge.errors import WorkbookError
from judge.inference.content import INFO, ContentLimits, describe, render_content
from judge.workbook import preview
from judge.workbook.preview import read_table

TABLES = {
    "plain": "name,points,share\na,1,0.5\nb,2,1.5\n",
    "blanks": "name,points,share\na,,0.5\n,2,\n",
    "logical": "yes,maybe\nTrue,TRUE\nFalse,\n",
    "mixed": "code,when\n1,2020-01-01\nx7,2021-02-03\n",
    "labels": ",a,a\n1,2,3\n",
    "missing": "x,y\nNA,n/a\n#N/A,null\n",
    "signs": "a,b,c\n-1,+2,1e3\n 4, 5,.5\n",
    "header only": "a,b\n",
    "quoted": 'text,n\n"two\nlines",1\n"a,b",2\n',
}


@pytest.mark.parametrize("name", TABLES)
def test_columns_are_described_as_pandas_does(name: str, tmp_path: Path) -> None:
    import pandas as pd  # noqa: PLC0415  every worker collects this test, and one runs it

    path = tmp_path / "t.csv"
    path.write_text(TABLES[name])
    buffer = io.StringIO()
    pd.read_csv(path).info(buf=buffer, memory_usage=False)
    lines = [line.rstrip() for line in buffer.getvalue().splitlines()]
    expected = lines[1:-1] if lines[-1].startswith("dtypes") else lines[1:]
    assert describe(read_table(path, 100).rows, 100).splitlines() == expected


@pytest.mark.parametrize(
    ("data", "rows"),
    [
        ("näme;n\nü;1\n".encode(), (("näme", "n"), ("ü", "1"))),
        ("näme;n\nü;1\n".encode("cp1252"), (("näme", "n"), ("ü", "1"))),
        ("a\tb\r\n1\t2\r\n".encode("utf-16"), (("a", "b"), ("1", "2"))),
        (b"\xef\xbb\xbfa|b\n\n1|\n", (("a", "b"), ("1", None))),
        (b"a,b\n1\n1,2,3\n", (("a", "b", None), ("1", None, None), ("1", "2", "3"))),
        (b"", ()),
    ],
)
def test_tables_of_every_make(data: bytes, rows: object, tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes(data)
    assert read_table(path, 10).rows == rows


def test_a_long_table_is_read_up_to_a_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(preview, "MAX_TABLE_BYTES", 1_000)
    path = tmp_path / "t.csv"
    path.write_text("number\n" + "".join(f"{number}\n" for number in range(1_000)))
    table = read_table(path, 10)
    assert (len(table.rows), table.total_rows, table.more_rows) == (10, None, True)
    whole = read_table(path, 10_000)
    assert whole.rows[-1] == ("274",)
    text = render_content([whole], INFO, ContentLimits(), heading="Table")
    assert text.startswith("Table: t.csv\nRangeIndex: 275 entries")
    assert "[counted in the first 276 rows]" in text


def test_tables_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(WorkbookError, match="missing"):
        read_table(tmp_path / "gone.csv", 1)
    path = tmp_path / "t.csv"
    path.write_text("a,b\n" + "x" * 200_000 + "\n")
    with pytest.raises(WorkbookError, match=r"t\.csv, line 2: field larger"):
        read_table(path, 1)
    with pytest.raises(WorkbookError):
        read_table(tmp_path, 1)
