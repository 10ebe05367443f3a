"""Errors that a published evaluator raises instead of giving a verdict."""

from __future__ import annotations

import enum
from collections.abc import Iterator
from contextlib import contextmanager


class Side(enum.StrEnum):
    """The document that causes the error of the published evaluator."""

    ANSWER = "answer"
    GOLD = "gold"
    RULES = "rules"
    """The rule list itself: whatever the answer holds, the evaluator cannot judge it."""


class PublishedError(Exception):
    """The published evaluator raises an error at this point.

    Attributes:
        kind: name of the Python exception.
        message: its message.
        side: the document that causes the error.
        index: the index of the rule that it raises for, from 0; None if unknown.
    """

    def __init__(self, kind: str, message: str, side: Side | None = None) -> None:
        super().__init__(f"{kind}: {message}" if message else f"{kind}: ")
        self.kind = kind
        self.message = message
        self.side = side
        self.index: int | None = None


@contextmanager
def blaming(side: Side) -> Iterator[None]:
    """Adds the document to errors that are raised in the block and do not name one yet."""
    try:
        yield
    except PublishedError as error:
        error.side = error.side or side
        raise


def no_attribute(of: str, name: str) -> PublishedError:
    """Returns the published evaluator's error for an object that lacks an attribute."""
    return PublishedError("AttributeError", f"{of!r} object has no attribute {name!r}")
