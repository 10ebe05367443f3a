"""The number that a string states. Pure."""

from __future__ import annotations

import math
import re

from judge.replies.relaxed import number_of

MOST_CHARS = 2_000
"""Longer text states no number: it is an essay."""

_NUMBER = re.compile(
    r"""
    (?<![\w.,])
    (?P<sign>[-+\u2212])?+ (?:[$\u20ac\u00a3\u00a5]\s?+)?+
    (?P<digits> \d{1,3}(?:,\d{3})++(?!\d) | \d++ (?!,\d{3}(?!\d)) | (?=\.\d) )
    (?P<rest> (?:\.\d++)?+ (?:[eE][-+]?+\d++)?+ )
    """,
    re.VERBOSE | re.ASCII,
)
_DIGITS = re.compile(r"\d")


def number_in(text: str) -> float | None:
    """The number that text states: alone, or the only one in it.

    Signs, exponents and commas between thousands are read; a currency, a percent sign or words
    around the number say nothing about its value. ``between 3 and 7`` states no number.

    Args:
        text: the text.

    Returns:
        A finite number; None if the text has none, or several that differ.
    """
    if len(text) > MOST_CHARS:
        return None
    found = set()
    rest = []
    position = 0
    for match in _NUMBER.finditer(text):
        rest.append(text[position : match.start()])
        position = match.end()
        found.add(_value(match))
    rest.append(text[position:])
    # Digits that are part of something else, such as a word or a date, make it ambiguous.
    if len(found) != 1 or _DIGITS.search("".join(rest)):
        return None
    (number,) = found
    return number if number is not None and math.isfinite(number) else None


def _value(match: re.Match[str]) -> float | None:
    digits = match["digits"].replace(",", "") + match["rest"]
    sign = -1 if match["sign"] in {"-", "\u2212"} else 1
    number = number_of(digits)
    return None if number is None else sign * number
