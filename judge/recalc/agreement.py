"""When engines agree on a value, and which of their errors count. Pure."""

from __future__ import annotations

import math
from collections.abc import Mapping

from judge.recalc.trust import PAIR_ENGINES
from judge.workbook.cell import CellValue, ErrorValue

SURE_ERRORS = frozenset(("#N/A", "#DIV/0!", "#VALUE!"))
"""Errors that the quick engines never show merely because they lack a feature."""

INCAPABLE_ERRORS = frozenset(("#SPILL!", "#CALC!"))
"""Errors that mean that an engine lacks a feature, if the formula does not spill by itself."""

COARSE_ERRORS = frozenset(("#VALUE!", "#NUM!", "#REF!"))
"""LibreOffice errors that correspond to several Excel errors."""

FINE_ERRORS = frozenset(("#VALUE!", "#NUM!", "#REF!", "#DIV/0!", "#N/A"))


def same_value(first: CellValue, second: CellValue) -> bool:
    """Whether two engines agree; the order of additions may change the last digits."""
    if isinstance(first, bool) or isinstance(second, bool):
        return isinstance(first, bool) and isinstance(second, bool) and first == second
    if isinstance(first, (int, float)) and isinstance(second, (int, float)):
        return math.isclose(first, second, rel_tol=1e-9, abs_tol=1e-9)
    return first == second


def agreed_error(office: CellValue, others: Mapping[str, CellValue]) -> ErrorValue | None:
    """The error that the other engines agree on if LibreOffice shows a different one.

    LibreOffice has fewer errors than Excel: #VALUE! stands for #NUM! or #REF! in many functions.
    """
    results = list(others.values())
    if not isinstance(office, ErrorValue) or len(results) < len(PAIR_ENGINES):
        return None
    first = results[0]
    if not isinstance(first, ErrorValue) or any(result != first for result in results):
        return None
    return first if office.code in COARSE_ERRORS and is_fine_error(first) else None


def with_logical(office: CellValue, other: CellValue) -> CellValue:
    """LibreOffice loses that a value is TRUE rather than 1 where the cell has a number format."""
    if not isinstance(office, bool) and office in (0, 1) and isinstance(other, bool):
        return other if other == office else office
    return office


def is_fine_error(value: CellValue) -> bool:
    """Whether a value is one of the errors that LibreOffice does not tell apart."""
    return isinstance(value, ErrorValue) and value.code in FINE_ERRORS


def is_doubtful(value: CellValue) -> bool:
    """Whether a value is an error that the quick engines also show where they lack a feature."""
    return isinstance(value, ErrorValue) and value.code not in SURE_ERRORS
