"""What a published evaluator raises where it should have given a verdict."""

from __future__ import annotations

import enum
from collections.abc import Iterator
from contextlib import contextmanager


class Side(enum.StrEnum):
    """The document that is at fault when the published evaluator raises."""

    ANSWER = "answer"
    GOLD = "gold"
    RULES = "rules"
    """The rule list itself: whatever the answer holds, the evaluator cannot judge it."""


class PublishedError(Exception):
    """The published evaluator raises here.

    Attributes:
        kind: name of the Python exception.
        message: its message.
        side: whose fault it is.
        index: the index of the rule that it raises over, from 0; None if it is not known.
    """

    def __init__(self, kind: str, message: str, side: Side | None = None) -> None:
        super().__init__(f"{kind}: {message}" if message else f"{kind}: ")
        self.kind = kind
        self.message = message
        self.side = side
        self.index: int | None = None


@contextmanager
def blaming(side: Side) -> Iterator[None]:
    """Says whose fault the raises within are, unless they say so themselves."""
    try:
        yield
    except PublishedError as error:
        error.side = error.side or side
        raise


def no_attribute(of: str, name: str) -> PublishedError:
    """The error of the published evaluator for an object without such an attribute."""
    return PublishedError("AttributeError", f"{of!r} object has no attribute {name!r}")
