"""How alike two strings are: ``rapidfuzz.fuzz.ratio``."""

from __future__ import annotations

_MOST_CHARS = 32_768
"""A cell holds no more."""


def ratio(first: str, second: str) -> float:
    """Twice the length of the longest common subsequence over both lengths, from 0 to 100."""
    first, second = first[:_MOST_CHARS], second[:_MOST_CHARS]
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
