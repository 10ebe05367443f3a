"""How long a formula can be. Pure."""

from __future__ import annotations

MAX_FORMULA_LENGTH = 8_192
"""Characters that a formula can have, as a person sees them.

Source: Excel specifications and limits, "length of formula contents".
"""

_MAX_IN_FILE_LENGTH = 2 * MAX_FORMULA_LENGTH
"""The same with prefixes that only the file has: a formula that only calls new functions."""

_PREFIXES = ("_xlfn.", "_xlws.", "_xludf.", "_xlpm.")


def is_too_long(formula: str) -> bool:
    """Whether a formula is too long for any spreadsheet program to read.

    This is checked before any regular expression is applied to a formula: anything longer was
    made to be slow, and is not searched.

    Args:
        formula: with or without its leading ``=``.
    """
    length = len(formula) - formula.startswith("=")
    if length <= MAX_FORMULA_LENGTH:
        return False
    if length > _MAX_IN_FILE_LENGTH:
        return True
    hidden = sum(formula.count(prefix) * len(prefix) for prefix in _PREFIXES)
    return length - hidden > MAX_FORMULA_LENGTH
