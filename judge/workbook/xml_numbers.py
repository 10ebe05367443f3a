"""Whole numbers in attributes of a file that may be hostile. Pure."""

from __future__ import annotations

import re

_WHOLE = re.compile(r"[0-9]{1,9}")


def whole_number(text: str | None) -> int | None:
    """The number that is written in some digits; None if the text is anything else.

    Nine digits hold every index and count of a workbook. ``str.isdigit`` cannot test for this: it
    accepts superscripts, and :class:`int` refuses them, as it refuses thousands of digits.
    """
    return int(text) if text is not None and _WHOLE.fullmatch(text) else None
