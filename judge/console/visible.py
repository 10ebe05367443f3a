r"""Text that nobody vouches for, with everything spelled out that would not be seen as it is.

Control characters steer a terminal (C0, DEL, C1), bidirectional controls turn lines around, and
zero-width characters make two names look like one. All of them are written as JSON writes them,
``\u001b``: a document of JSON in which they are spelled out is the same document.
"""

from __future__ import annotations

from unicodedata import category


def visible(text: str) -> str:
    """A text with all that steers a terminal, or hides in one, spelled out.

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
