"""Decides when engines agree on a value, and which of their errors count. Pure."""

from __future__ import annotations

import math

from judge.workbook.cell import CellValue, ErrorValue

SURE_ERRORS = frozenset(("#N/A", "#DIV/0!", "#VALUE!"))
"""Errors that the quick engines never show merely because they lack a feature."""

INCAPABLE_ERRORS = frozenset(("#SPILL!", "#CALC!"))
"""Errors which show that an engine lacks a feature, unless the formula itself spills."""


def same_value(first: CellValue, second: CellValue) -> bool:
    """Whether two values are equal, except for last digits that the order of additions changes."""
    if type(first) is type(second) and first == second:
        return True
    if isinstance(first, bool) or isinstance(second, bool):
        return False
    if isinstance(first, (int, float)) and isinstance(second, (int, float)):
        return math.isclose(first, second, rel_tol=1e-9, abs_tol=1e-9)
    return first == second


def with_logical(office: CellValue, other: CellValue) -> CellValue:
    """Returns LibreOffice's value, as TRUE or FALSE if another engine's equal value is logical.

    LibreOffice turns TRUE into 1 in a cell with a number format.
    """
    if not isinstance(office, bool) and office in (0, 1) and isinstance(other, bool):
        return other if other == office else office
    return office


def is_doubtful(value: CellValue) -> bool:
    """Whether a value is an error that the quick engines also show when they lack a feature."""
    return isinstance(value, ErrorValue) and value.code not in SURE_ERRORS
