"""IB-bench's own scorer of programmatic criteria, faults included.

Written from the behaviour of ``eval/score.py`` and ``eval/helpers.py`` at daaa1m/ib-bench@bf205153.
Its faults are numbered B1 to B12 in docs/checklists.md. The judge's own reading is in
:mod:`judge.compare.checklists.published.ib_bench`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from judge.compare.rules.patterns import PatternError, search
from judge.compare.rules.published_error import PublishedError, Side
from judge.errors import WorkbookError
from judge.workbook.address import cell_name, parse_area, parse_cell
from judge.workbook.cell import Cell, CellRange
from judge.workbook.reader import Workbook

MATCH_TYPES = ("substring_one_of", "regex_pattern", "excel_cell_value", "excel_formatting")

_MAX_CELLS = 1_000_000
_COLOURS: Mapping[str, tuple[str, Sequence[int]]] = {
    "blue": ("0000FF", (4, 5)),
    "green": ("00FF00", (6, 9)),
    "red": ("FF0000", (1, 2)),
}
"""Colour of the convention -> its hex digits, and the theme colours accepted for it (B5, B6)."""

_SUBJECTS: Mapping[str, str] = {
    "blue": "a number that was typed",
    "green": "a reference to another sheet",
    "red": "a reference to another workbook",
}


@dataclass(frozen=True, slots=True)
class PublishedCriterion:
    """The scorer's outcome for one criterion.

    Attributes:
        passed: whether the criterion earns all of its points; there is no partial credit.
        detail: the reason, in one line.
    """

    passed: bool
    detail: str = ""


def judge_criterion(
    name: str,
    criterion: Mapping[str, object],
    reply: object,
    workbook: Workbook | None,
) -> PublishedCriterion:
    """Returns the published outcome of a programmatic criterion.

    Args:
        name: the criterion's id, which is its key in the reply.
        criterion: the criterion as written in the rubric.
        reply: the parsed reply; None if it could not be parsed, which fails every criterion.
        workbook: the first workbook of the output; None if it is missing or cannot be opened.

    Raises:
        PublishedError: the reply is JSON, but not an object.
    """
    if not reply:
        return PublishedCriterion(False, "the reply could not be parsed")
    if not isinstance(reply, Mapping):
        problem = f"{type(reply).__name__!r} object has no attribute 'get'"
        raise PublishedError("AttributeError", problem, Side.ANSWER)
    kind = criterion.get("match_type")
    if kind in {"substring_one_of", "regex_pattern"}:
        whole = bool(criterion.get("search_full_response"))
        text = json.dumps(reply) if whole else str(reply.get(name, ""))
        return (_substring if kind == "substring_one_of" else _pattern)(criterion, text)
    if workbook is None:
        return PublishedCriterion(False, "there is no workbook")
    sheet = criterion.get("sheet") or workbook.active_sheet
    if sheet not in workbook.sheet_names:
        return PublishedCriterion(False, f"there is no sheet {sheet!r}")
    judge_sheet = _cell_value if kind == "excel_cell_value" else _formatting
    return judge_sheet(criterion, workbook, str(sheet))


# -- texts -----------------------------------------------------------------------------------------


def texts_in(criterion: Mapping[str, object], field: str) -> Sequence[str]:
    """Returns the strings in a field of a criterion; no strings if the field is missing."""
    listed = criterion.get(field)
    return [str(text) for text in listed] if isinstance(listed, list) else []


def _substring(criterion: Mapping[str, object], text: str) -> PublishedCriterion:
    for forbidden in texts_in(criterion, "forbidden_elements"):
        if forbidden and forbidden in text:
            return PublishedCriterion(False, f"the forbidden {forbidden!r} is in the reply")
    for accepted in texts_in(criterion, "accepted_values"):
        if accepted.upper() in text.upper():
            return PublishedCriterion(True, f"{accepted!r} is in the reply")
    return PublishedCriterion(False, "none of the accepted values is in the reply")


def _pattern(criterion: Mapping[str, object], text: str) -> PublishedCriterion:
    for forbidden in texts_in(criterion, "forbidden_elements"):
        if forbidden and forbidden in text:
            return PublishedCriterion(False, f"the forbidden {forbidden!r} is in the reply")
    for required in texts_in(criterion, "required_elements"):
        if required not in text:
            return PublishedCriterion(False, f"the required {required!r} is not in the reply")
    patterns = texts_in(criterion, "valid_patterns")
    for pattern in patterns:
        try:
            if search(pattern, text, re.IGNORECASE):
                return PublishedCriterion(True, f"the reply matches {pattern!r}")
        except PatternError as error:
            return PublishedCriterion(False, f"the pattern {pattern!r}: {error}")
    return PublishedCriterion(not patterns, "no pattern matches the reply" if patterns else "")


# -- cells -----------------------------------------------------------------------------------------


def _cell_value(
    criterion: Mapping[str, object], workbook: Workbook, sheet: str
) -> PublishedCriterion:
    address = parse_cell(str(criterion.get("cell")))
    if address is None:
        return PublishedCriterion(False, f"{criterion.get('cell')!r} is not a cell")
    row, column = address
    try:
        cell = workbook.cells(CellRange(sheet, row, column, row, column)).get((row, column))
    except WorkbookError as error:
        return PublishedCriterion(False, error.message)
    value = None if cell is None else cell.value
    if value is None:
        return PublishedCriterion(False, f"cell {criterion.get('cell')} is empty")
    expected = criterion.get("expected")
    shown = getattr(value, "code", value)
    if isinstance(expected, str):
        same = str(shown).strip().upper() == expected.strip().upper()
        return PublishedCriterion(same, f"{shown!r} in place of {expected!r}" if not same else "")
    try:
        number = float(shown)  # type: ignore[arg-type] # texts and truth values pass here: B12
        distance = abs(number - float(expected))  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        return PublishedCriterion(False, f"{shown!r} is not a number")
    near = distance <= float(criterion.get("tolerance") or 0)  # type: ignore[arg-type]
    return PublishedCriterion(near, "" if near else f"{number} in place of {expected}")


def _formatting(
    criterion: Mapping[str, object], workbook: Workbook, sheet: str
) -> PublishedCriterion:
    try:
        areas = areas_of(criterion, workbook, sheet)
        for area in areas:
            for cell in workbook.cells(area).values():
                fault = colour_fault(cell, workbook)
                if fault:
                    name = cell_name(cell.row, cell.column)
                    return PublishedCriterion(False, f"{name}: {fault}")
    except WorkbookError as error:
        return PublishedCriterion(False, error.message)
    return PublishedCriterion(True, "the colours follow the convention")


def areas_of(
    criterion: Mapping[str, object], workbook: Workbook, sheet: str
) -> Sequence[CellRange]:
    """Returns the cells whose colours are checked: those listed, or the whole sheet."""
    listed = texts_in(criterion, "cells")
    if not listed:
        used = workbook.used_range(sheet)
        return [] if used is None else [used]
    areas = []
    for text in listed:
        window = parse_area(text)
        if window is not None:
            areas.append(CellRange.of(sheet, window))
    return areas


def colour_fault(cell: Cell, workbook: Workbook) -> str:
    """Returns how a cell's colour breaks the bankers' convention; empty if it does not."""
    colour = needed_colour(cell)
    if not colour or _is_colour(cell, workbook, *_COLOURS[colour]):
        return ""
    return f"{_SUBJECTS[colour]} should be {colour}"


def needed_colour(cell: Cell) -> str:
    """Returns the colour that the published code requires of a cell (B7, B8); empty for any.

    openpyxl returns an array formula as an object, for which the code requires no colour.
    """
    if cell.array_range is not None:
        return ""
    written = cell.value if cell.formula is None else cell.formula
    if isinstance(written, str) and written.startswith("="):
        if "[" in written and "]" in written:
            return "red"
        return "green" if "!" in written else ""
    return "blue" if isinstance(written, int | float) else ""


def _is_colour(cell: Cell, workbook: Workbook, digits: str, themes: Sequence[int]) -> bool:
    written = workbook.font_colours.of_format(cell.style) or {}
    if "rgb" in written:
        return written["rgb"].upper().endswith(digits)
    return written.get("theme") in {str(theme) for theme in themes}
