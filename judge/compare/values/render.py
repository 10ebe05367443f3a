"""Values of typed answers as records and messages show them: short, and JSON. Pure."""

from __future__ import annotations

import math

_MOST_CHARS = 500
_MOST_ITEMS = 50
_MOST_DEPTH = 4
_MOST_DIGITS = 50


def shown_value(value: object, depth: int = 0) -> object:
    """A value as a record keeps it: JSON, of bounded size, whatever a reply holds.

    Long text and long lists are cut and end with ``…``; NaN and infinities are text.
    """
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int):
        # Digits of a huge number take long to write, and nobody reads them.
        is_short = value.bit_length() <= 3 * _MOST_DIGITS
        return value if is_short else f"a whole number of about {_digits(value):,} digits"
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, str):
        return value if len(value) <= _MOST_CHARS else value[:_MOST_CHARS] + "…"
    if depth >= _MOST_DEPTH:
        return "…"
    if isinstance(value, list):
        kept = [shown_value(each, depth + 1) for each in value[:_MOST_ITEMS]]
        return kept if len(value) <= _MOST_ITEMS else [*kept, "…"]
    if isinstance(value, dict):
        items = list(value.items())[:_MOST_ITEMS]
        return {str(name)[:_MOST_CHARS]: shown_value(each, depth + 1) for name, each in items}
    return str(value)[:_MOST_CHARS]


def _digits(value: int) -> int:
    return int(value.bit_length() * math.log10(2)) + 1
