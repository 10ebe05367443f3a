"""The options with which the office is started."""

from __future__ import annotations

import pytest

from judge.desktop.driver.settings import as_table


@pytest.mark.parametrize(
    ("path", "content", "options"),
    [
        ("/home/user/a.xlsx", b"a,b", []),
        ("/home/user/a.csv", b"a,b\n1;;;2\n", ["--infilter=CSV:44,34,76,1,,0,false"]),
        ("/home/user/a.CSV", b"a;b;c\r\n1,5;2;3\r\n", ["--infilter=CSV:59,34,76,1,,0,false"]),
        ("/home/user/a.csv", b"a\tb", ["--infilter=CSV:9,34,76,1,,0,false"]),
        ("/home/user/a.csv", b"", ["--infilter=CSV:44,34,76,1,,0,false"]),
        ("/home/user/a.tsv", b"a, b\t c, d", ["--infilter=CSV:9,34,76,1,,0,false"]),
    ],
)
def test_text_files_are_opened_without_a_dialog(
    path: str, content: bytes, options: list[str]
) -> None:
    assert as_table(path, content) == options
