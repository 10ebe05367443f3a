"""How long a formula can be. Pure."""

from __future__ import annotations

LONGEST_FORMULA = 8_192
"""Characters that a formula can have, as a person sees it.

Source: Excel specifications and limits, "length of formula contents".
"""

_LONGEST_IN_FILE = 2 * LONGEST_FORMULA
"""Prefixes that only the file shows included: a formula of nothing but calls of new functions."""

_PREFIXES = ("_xlfn.", "_xlws.", "_xludf.", "_xlpm.")


def is_too_long(formula: str) -> bool:
    """Whether no spreadsheet would read a formula for its length alone.

    Asked before any expression looks at a formula: what is longer is a text that somebody made to
    be slow, and is not looked at.

    Args:
        formula: with or without its leading ``=``.
    """
    length = len(formula) - formula.startswith("=")
    if length <= LONGEST_FORMULA:
        return False
    if length > _LONGEST_IN_FILE:
        return True
    hidden = sum(formula.count(prefix) * len(prefix) for prefix in _PREFIXES)
    return length - hidden > LONGEST_FORMULA
