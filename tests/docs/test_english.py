"""Documents, docstrings and messages contain no phrases that read as translated."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.docs import english
from tests.docs.english import REPOSITORY, TURNS, UNUSED_WORDS_HEADING


def _name(path: Path) -> str:
    return path.relative_to(REPOSITORY).as_posix()


@pytest.mark.parametrize("path", english.documents(), ids=_name)
def test_a_document_contains_no_listed_phrase(path: Path) -> None:
    hits = english.hits_of_document(path)
    assert not hits, "\n" + "\n".join(map(str, hits))


def test_strings_of_a_module_contain_no_listed_phrase() -> None:
    hits = [hit for path in english.modules() for hit in english.hits_of_module(path)]
    assert not hits, "\n" + "\n".join(map(str, hits))


def test_the_glossary_lists_every_phrase() -> None:
    glossary = (REPOSITORY / "docs" / "glossary.md").read_text(encoding="utf-8")
    rows = [
        line for line in glossary.partition(UNUSED_WORDS_HEADING)[2].splitlines() if line[:1] == "|"
    ]
    assert rows[2:] == [f"| {turn.name} | {turn.instead} |" for turn in TURNS]


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("two workbooks held\nagainst each other", "held against"),
        ("Holds the cases of a task against the rules", "held against"),
        ("'{}' is no colour", "is no (noun)"),
        ("the program was told its path", "told (given, informed)"),
        ("No sandbox can be had", "to be had, can be had"),
        ("the id stands in record 4", "stands (in, at, there)"),
        ("the same command takes the draft up again", "takes up again"),
        ("it is kept; else the command ends.", "else (before a clause)"),
        ("a file else. Else nothing", "else (before a clause)"),
        ("two that agree are asked for", "is asked for (required)"),
    ],
)
def test_a_phrase_is_found(text: str, name: str) -> None:
    assert name in [turn.name for turn in TURNS if list(turn.hits(text))]


@pytest.mark.parametrize(
    "text",
    [
        "there is no profile 'x'",
        "it is no longer there",
        "the verdict is NO",
        "a text file, or the rest on another sheet",
        "none of them is one of the two",
        "true if it can be told apart",
        "the first path, or else the second",
        "a standard that stands for others",
    ],
)
def test_plain_english_is_not_found(text: str) -> None:
    assert [turn.name for turn in TURNS if list(turn.hits(text))] == []


def test_only_messages_of_a_module_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(english, "REPOSITORY", tmp_path)
    module = tmp_path / "module.py"
    module.write_text(
        '"""Held against\n\na gold, with ``anew now``."""\n'
        'raise ValueError(f"{1} is no file", "anew", "made anew here")  # made anew\n',
        encoding="utf-8",
    )
    assert [(hit.line, hit.found) for hit in english.hits_of_module(module)] == [
        (1, "Held against"),
        (4, "anew"),
        (4, "is no"),
    ]
