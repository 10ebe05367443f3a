"""What a rule is, and how it names a sheet."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from judge.compare.rules.book import Book, SheetRef
from judge.compare.rules.raised import PublishedError, Side

Rule = Mapping[str, Any]
"""A rule of a rule list, as it is written."""


def option_of(rule: Rule, name: str) -> Any:
    """An option that a rule must have.

    Raises:
        PublishedError: it has not.
    """
    if name not in rule:
        raise PublishedError("KeyError", repr(name), Side.RULES)
    return rule[name]


def nth(names: Sequence[str], index: int) -> str:
    """The name at a place, which may count from the end; empty beyond the names."""
    return names[index] if -len(names) <= index < len(names) else ""


def sheet_named(index: object, answer: Book, gold: Book | None) -> SheetRef:
    """The book and the sheet that a rule names; an index beyond the sheets gives an empty name.

    Raises:
        PublishedError: it is not a way to name a sheet.
    """
    if isinstance(index, int):
        return SheetRef(answer, nth(answer.names, index))
    if isinstance(index, str) and index[:2] in {"RI", "EI", "RN", "EN"}:
        book = answer if index[0] == "R" else gold
        if index[1] == "N" or book is None:
            return SheetRef(book, index[2:])
        try:
            return SheetRef(book, nth(book.names, int(index[2:])))
        except ValueError:
            pass
    raise PublishedError("ValueError", f"unrecognized sheet {index!r}", Side.RULES)
