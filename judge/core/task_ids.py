"""Lists of task ids as a person writes them."""

from __future__ import annotations

from collections.abc import Iterable


def split_ids(values: Iterable[str]) -> tuple[str, ...]:
    """Splits each value at its commas; blanks around an id, and empty ids, are ignored."""
    return tuple(part.strip() for value in values for part in value.split(",") if part.strip())
