r"""Untrusted text, with everything escaped that would not be visible.

Control characters act on a terminal (C0, DEL, C1), bidirectional controls reverse lines, and
zero-width characters make two names look like one. All of them are written as JSON writes them,
``\u001b``: a JSON document in which they are escaped is still the same document.
"""

from __future__ import annotations

from unicodedata import category


def visible(text: str) -> str:
    """Text with everything escaped that acts on a terminal, or is invisible in one.

    Line ends, tabs and spaces of every width stay. So does everything that Python calls printable.
    """
    if text.isprintable():
        return text
    return "\n".join(
        line if line.isprintable() else "".join(map(_shown, line)) for line in text.split("\n")
    )


def _shown(character: str) -> str:
    if character.isprintable() or character == "\t" or category(character) == "Zs":
        return character
    if character == "\r":
        return "\\r"
    code = ord(character)
    if code <= 0xFFFF:
        return f"\\u{code:04x}"
    # Beyond the first plane JSON writes two halves.
    high, low = divmod(code - 0x10000, 0x400)
    return f"\\u{0xD800 + high:04x}\\u{0xDC00 + low:04x}"
