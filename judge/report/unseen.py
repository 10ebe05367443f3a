"""Characters that are invisible, or change the direction of text."""

from __future__ import annotations

UNSEEN = {
    *range(0x20),
    *range(0x7F, 0xA0),
    0xAD,
    0x61C,
    0x180E,
    *range(0x200B, 0x2010),
    *range(0x2028, 0x202F),
    *range(0x2060, 0x2070),
    0xFEFF,
    *range(0xFFF9, 0xFFFC),
    *range(0xD800, 0xE000),
}
"""Code points that pages show by their name."""


def shown_plainly(text: str) -> str:
    """Replaces these characters by their names where markup is impossible: drawings and labels."""
    return "".join(
        character if ord(character) not in UNSEEN else f"U+{ord(character):04X}"
        for character in text
    )
