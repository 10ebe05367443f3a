"""Text as a rule compares it: prepared in the published order, and alike in the way it asks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

# -- how alike two strings are ---------------------------------------------------------------------
# How alike two strings are: ``rapidfuzz.fuzz.ratio``.

_MAX_CHARS = 32_768
"""A cell holds no more."""


def ratio(first: str, second: str) -> float:
    """Twice the length of the longest common subsequence over both lengths, from 0 to 100."""
    first, second = first[:_MAX_CHARS], second[:_MAX_CHARS]
    total = len(first) + len(second)
    if not total:
        return 100.0
    return 100.0 - 100.0 * ((total - 2 * _common(first, second)) / total)


def _common(first: str, second: str) -> int:
    """Length of the longest common subsequence, by a row of bits for each character (Hyyrö)."""
    places: dict[str, int] = {}
    for index, character in enumerate(first):
        places[character] = places.get(character, 0) | 1 << index
    row = mask = (1 << len(first)) - 1
    for character in second:
        shared = row & places.get(character, 0)
        row = ((row + shared) | (row - shared)) & mask
    return len(first) - row.bit_count()


# -- texts of a rule -------------------------------------------------------------------------------


def texts_alike(rule: Mapping[str, Any], actual: str, expected: str) -> bool | None:
    """Whether two strings are alike in the way that a rule asks; None for an unknown way."""
    kind = rule.get("type")
    if kind == "includes":
        return expected in actual
    if kind == "included_by":
        return actual in expected
    if kind == "fuzzy_match":
        return bool(ratio(actual, expected) >= rule.get("threshold", 85.0))
    return actual == expected if kind == "exact_match" else None


def prepared_text(rule: Mapping[str, Any], text: str) -> str:
    """A string after the replacements of a rule, in the published order."""
    for before, after in rule.get("normalization", ()):
        text = text.replace(before, after)
    if "trim_leadings" in rule:
        text = text.lstrip(rule["trim_leadings"])
    if "trim_trailings" in rule:
        text = text.rstrip(rule["trim_trailings"])
    if "ignore_chars" in rule:
        ignored = set(rule["ignore_chars"])
        text = "".join(each for each in text if each not in ignored)
    return text.lower() if rule.get("ignore_case", False) else text
