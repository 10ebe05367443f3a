"""YAML from strangers: its content, within limits, or what is wrong with it."""

from __future__ import annotations

import datetime as dt
import os
from pathlib import Path

import pytest

from judge.errors import SuiteError
from judge.files import yaml_documents
from judge.files.yaml_documents import MAX_BYTES, MalformedYamlError, parse_yaml, read_yaml
from tests.conftest import REPOSITORY


def laughs(levels: int) -> str:
    """Makes a few lines that expand to ten to the power of the levels."""
    lines = ["a0: &a0 [lol, lol, lol, lol, lol, lol, lol, lol, lol, lol]"]
    for level in range(1, levels):
        again = ", ".join([f"*a{level - 1}"] * 10)
        lines.append(f"a{level}: &a{level} [{again}]")
    return "\n".join(lines)


def test_what_people_write_is_read() -> None:
    text = (
        "format: x\ncorrections:\n- task: 7\n  field: style\n  now: [fill]\n"
        "date: 2024-02-29\nshare: 0.5\nlong: >\n  "
        + " ".join(["word"] * 40)
        + "\nno: null\nyes: true\n"
    )
    assert parse_yaml(text) == {
        "format": "x",
        "corrections": [{"task": 7, "field": "style", "now": ["fill"]}],
        "date": dt.date(2024, 2, 29),
        "share": 0.5,
        "long": " ".join(["word"] * 40) + "\n",
        False: None,
        True: True,
    }
    assert parse_yaml("") is None


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (laughs(10), "aliases are not supported: write the value itself"),
        ("a: &a [*a]", "aliases are not supported"),
        ("a: &a {b: 1}\nc:\n  <<: *a\n", "aliases are not supported"),
        ("[" * 5_000, "nested more than 50 levels deep"),
        ("\n".join(" " * n + "a:" for n in range(200)), "nested more than 50 levels deep"),
        ("a: !!int " + "1" * 5_000, "too long for any type except text"),
        ("a: !!binary " + "A" * 5_000, "too long for any type except text"),
        ("a: 2024-99-99", "month must be in 1..12"),
        ("a: [", "not YAML"),
        ("a: \x01", "not YAML"),
        ("a: !!python/object/apply:os.system [ls]", "could not determine a constructor"),
        ("a: 1\n---\nb: 2\n", "single document"),
    ],
)
def test_what_is_refused_is_named(text: str, problem: str) -> None:
    with pytest.raises(MalformedYamlError, match="not YAML: ") as raised:
        parse_yaml(text)
    assert problem in str(raised.value)


def test_nodes_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(yaml_documents, "MAX_NODES", 10)
    assert parse_yaml("[" + "1," * 9 + "]") == [1] * 9
    with pytest.raises(MalformedYamlError, match="more than 10 entries"):
        parse_yaml("[" + "1," * 10 + "]")


@pytest.mark.parametrize("text", ["1" * 100_000, "1:" * 50_000 + "1", "0x" + "f" * 100_000])
def test_a_scalar_too_long_for_a_number_is_text(text: str) -> None:
    assert parse_yaml(f"a: {text}") == {"a": text}


def test_files_are_bounded_and_regular(tmp_path: Path) -> None:
    path = tmp_path / "x.yaml"
    path.write_text("a: " + "b" * MAX_BYTES)
    with pytest.raises(SuiteError, match=r"x\.yaml: longer than 1 MiB"):
        read_yaml(path, SuiteError)
    path.write_bytes(b"a: \xff")
    with pytest.raises(SuiteError, match=r"x\.yaml: not UTF-8"):
        read_yaml(path, SuiteError)
    with pytest.raises(SuiteError, match=r"none\.yaml: cannot be read: no such file"):
        read_yaml(tmp_path / "none.yaml", SuiteError)
    path.unlink()
    os.mkfifo(path)
    with pytest.raises(SuiteError, match="a FIFO, not a regular file"):
        read_yaml(path, SuiteError)


def test_every_file_of_the_repository_is_read() -> None:
    paths = [*REPOSITORY.glob("dataset/**/*.yaml"), *REPOSITORY.glob("inference/**/*.yaml")]
    assert len(paths) >= 4
    for path in paths:
        assert read_yaml(path, SuiteError)
