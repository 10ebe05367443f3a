"""IB-bench's programmatic criteria as items: strings of the reply, cells and colours.

Written from the behaviour of ``eval/score.py`` and ``eval/helpers.py`` at daaa1m/ib-bench@bf205153.
Its faults are numbered B1 to B12 in docs/checklists.md. The reading ``official`` has them;
``standard`` is the judge's own reading.
"""

from __future__ import annotations

import colorsys
import datetime as dt
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from judge.compare.checklists.items import Outcome, broken, not_judged
from judge.compare.checklists.suites import ItemDetails, PublishedSuite, as_check, as_intended
from judge.compare.checklists.workspace import (
    WORKBOOK_SUFFIXES,
    MissingError,
    OpenBook,
    Workspace,
    address_of,
)
from judge.compare.published_error import PublishedError, Side
from judge.compare.rules.patterns import PatternError, search
from judge.errors import WorkbookError
from judge.formulas.lexer import Kind, tokens
from judge.workbook.address import cell_name, parse_area, parse_cell
from judge.workbook.cell import Cell, CellRange, ErrorValue
from judge.workbook.reader import Workbook

MATCH_TYPES = ("substring_one_of", "regex_pattern", "excel_cell_value", "excel_formatting")

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


_MAX_LEAVES = 100_000  # values of a reply that are searched


def _names(workspace: Workspace) -> list[str]:
    return [name for name in workspace.files if name.lower().endswith(WORKBOOK_SUFFIXES)]


def _book(workspace: Workspace, name: str) -> OpenBook | None:
    """Returns a workbook of the answer; None if it cannot be opened."""
    try:
        return workspace.book(name)
    except (WorkbookError, MissingError):
        return None


def _first(workspace: Workspace) -> Workbook | None:
    """Returns the first workbook, even if the task names another (B10)."""
    names = _names(workspace)
    book = _book(workspace, names[0]) if names else None
    return None if book is None else book.workbook


def _official(check: object, workspace: Workspace) -> Outcome:
    criterion = as_check(check)
    reply = workspace.reply
    if reply and not isinstance(reply, Mapping):
        return broken(f"the reply is a {type(reply).__name__}, which has no criteria")
    name = str(criterion.get("id"))
    judged = judge_criterion(name, criterion, reply or None, _first(workspace))
    return replace(_shown(criterion), detail=judged.detail).outcome(right=judged.passed)


def _shown(criterion: Mapping[str, object]) -> ItemDetails:
    kind = criterion.get("match_type")
    if kind == "excel_cell_value":
        spot = "!".join(str(criterion[name]) for name in ("sheet", "cell") if name in criterion)
        return ItemDetails(criterion.get("expected"), place=spot)
    if kind == "excel_formatting":
        return ItemDetails(place=str(criterion.get("sheet", "")))
    return ItemDetails(criterion.get("accepted_values") or criterion.get("valid_patterns"))


# -- as intended: texts -------------------------------------------------------------------------


def leaves(value: object) -> Iterator[str]:
    """The values in a reply as strings, at any depth of nesting; null is left out."""
    waiting, count = [value], 0
    while waiting and count < _MAX_LEAVES:
        node, count = waiting.pop(0), count + 1
        if isinstance(node, Mapping):
            waiting[:0] = node.values()
        elif isinstance(node, list):
            waiting[:0] = node
        elif isinstance(node, str):
            yield node
        elif node is not None:
            yield json.dumps(node)


_NUMBER = re.compile(r"[-+(]?[$€£]?\d[\d,]*(?:\.\d+)?\)?(?:%|x|bps|[mb]n?)?", re.IGNORECASE)
_SEPARATOR = re.compile(r"(?<=\d),(?=\d{3}(?!\d))")


def has_value(text: str, accepted: str) -> bool:
    """Whether a string contains an accepted value; a number must match whole, with its sign.

    ``97`` is not in ``-97``, ``1970`` or ``0.97``; it is in ``$97.0m`` and ``97%``.
    """
    value, within = accepted.strip().casefold(), text.casefold()
    if not _NUMBER.fullmatch(value):
        return accepted.casefold() in within
    value, within = _SEPARATOR.sub("", value), _SEPARATOR.sub("", within)
    before = r"(?<!\d)(?<!\d\.)(?<!\.)" + ("" if value[0] in "-+(" else r"(?<![^\w]-)(?<!^-)")
    currency = "" if value[0] in "-+(" else r"(?<![^\w]-[$€£])(?<!^-[$€£])"
    after = r"(?!\d)(?!\.\d*[1-9])" if value[-1].isdigit() else ""
    return re.search(before + currency + re.escape(value) + after, within) is not None


def _text_outcome(criterion: Mapping[str, object], reply: Mapping[str, object]) -> tuple[bool, str]:
    """Returns the result that a criterion should have, and the fault that explains a difference."""
    whole = bool(criterion.get("search_full_response"))
    part = reply if whole else reply.get(str(criterion.get("id")))
    published = json.dumps(reply) if whole else str(reply.get(str(criterion.get("id")), ""))
    # Patterns over the whole reply are written for its JSON, with the names of its keys.
    as_json = whole and criterion.get("match_type") == "regex_pattern"
    plain = published if as_json else "\n".join(leaves(part))
    steps = (
        ("", _matches(criterion, published)),
        ("B3", _matches(criterion, plain)),
        ("B4", _matches(criterion, plain, case=False)),
        ("B2", _matches(criterion, plain, case=False, numbers=True)),
    )
    right = steps[-1][1]
    turned = [fault for fault, holds_here in steps[1:] if holds_here == right]
    return right, turned[0] if turned else "B2"


def _matches(
    criterion: Mapping[str, object], text: str, *, case: bool = True, numbers: bool = False
) -> bool:
    lower = text.lower()

    def within(word: str) -> bool:
        return word in text if case else word.lower() in lower

    if any(map(within, texts_in(criterion, "forbidden_elements"))):
        return False
    if criterion.get("match_type") == "substring_one_of":
        accepted = texts_in(criterion, "accepted_values")
        return any(has_value(text, word) if numbers else word.lower() in lower for word in accepted)
    if not all(map(within, texts_in(criterion, "required_elements"))):
        return False
    patterns = texts_in(criterion, "valid_patterns")
    return not patterns or any(bool(search(pattern, text, re.IGNORECASE)) for pattern in patterns)


# -- as intended: workbooks ---------------------------------------------------------------------


def _model(criterion: Mapping[str, object], workspace: Workspace) -> tuple[OpenBook, bool]:
    """Returns the workbook that a criterion checks, and whether it is the first workbook.

    Raises:
        MissingError: no workbook can be opened.
        WorkbookError: the only workbook cannot be opened.
    """
    names = _names(workspace)
    if not names:
        raise MissingError("there is no workbook")
    sheet = criterion.get("sheet")
    for number, name in enumerate(names):
        book = _book(workspace, name)
        if book is not None and (sheet is None or sheet in book.workbook.sheet_names):
            return book, number == 0
    return workspace.book(names[0]), True


def _cell_outcome(
    criterion: Mapping[str, object], workspace: Workspace
) -> tuple[ItemDetails, bool, str]:
    book, is_first = _model(criterion, workspace)
    sheet = book.sheet_named(str(criterion.get("sheet") or ""))
    read = book.cell(sheet, *address_of(str(criterion.get("cell"))))
    value, expected = read.value, criterion.get("expected")
    stored = None if read.stored is None else read.stored.value
    shown = replace(_shown(criterion), found=_json(value), detail=read.unknown)
    if isinstance(expected, str):
        right = _as_text(value) == expected.strip().lower() if value is not None else False
    else:
        right = (
            isinstance(value, int | float)
            and not isinstance(value, bool)
            and isinstance(expected, int | float)
            and abs(value - expected) <= float(str(criterion.get("tolerance") or 0))
        )
    fault = "B10" if not is_first else "B1" if value != stored else "B12"
    return shown, right, fault


def _as_text(value: object) -> str:
    return str(getattr(value, "code", value)).strip().lower()


def _json(value: object) -> object:
    if isinstance(value, ErrorValue):
        return value.code
    return str(value) if isinstance(value, dt.date | dt.time | dt.timedelta) else value


_HUES: Mapping[str, tuple[float, float]] = {
    "blue": (190.0, 260.0),
    "green": (80.0, 170.0),
    "red": (340.0, 380.0),
}
"""Colour of the convention -> range of hues, in degrees."""

_MIN_SATURATION = 0.35  # from 0 to 1; paler colours look grey


def is_colour(digits: str | None, colour: str) -> bool:
    """Whether six hexadecimal digits are a shade of ``colour``: blue, green or red."""
    if digits is None or len(digits) < 6:
        return False
    red, green, blue = (int(digits[-6:][at : at + 2], 16) / 255 for at in (0, 2, 4))
    hue, lightness, saturation = colorsys.rgb_to_hls(red, green, blue)
    degrees = hue * 360
    low, high = _HUES[colour]
    inside = low <= degrees <= high or low <= degrees + 360 <= high
    return inside and saturation >= _MIN_SATURATION and 0.1 < lightness < 0.9


def _needed_colour(cell: Cell) -> str:
    """Returns the colour that bankers give a cell; empty if any colour is right."""
    if cell.formula is not None:
        sheets = [token.text for token in tokens(cell.formula) if token.kind is Kind.SHEET]
        if any("[" in sheet for sheet in sheets):
            return "red"
        return "green" if sheets else ""
    is_number = isinstance(cell.value, int | float) and not isinstance(cell.value, bool)
    return "blue" if is_number else ""


def _format_outcome(criterion: Mapping[str, object], workspace: Workspace) -> Outcome:
    book, is_first = _model(criterion, workspace)
    workbook = book.workbook
    sheet = book.sheet_named(str(criterion.get("sheet") or ""))
    official = _official(criterion, workspace)
    cells = [
        cell
        for area in areas_of(criterion, workbook, sheet)
        for cell in workbook.cells(area).values()
        if cell.value is not None or cell.formula is not None
    ]
    if not cells:
        empty = not_judged("nothing is in the cells whose colours are required")
        return replace(empty, fault="B9" if official.share >= 1 else "")
    for cell in cells:
        colour = _needed_colour(cell)
        if colour and not is_colour(workbook.style(cell.style).font_color, colour):
            spot = f"{sheet}!{cell_name(cell.row, cell.column)}"
            shown = ItemDetails(colour, workbook.style(cell.style).font_color, spot)
            return as_intended(official, shown, _cause(cell, workbook), right=False)
    wrong = next((cell for cell in cells if colour_fault(cell, workbook)), None)
    fault = "B10" if not is_first else "B11"
    if wrong is not None:
        fault = _cause(wrong, workbook)
    return as_intended(official, _shown(criterion), fault, right=True)


def _cause(cell: Cell, workbook: Workbook) -> str:
    """Returns the fault that makes the published code misjudge the colour of a cell."""
    published = needed_colour(cell)
    if published != _needed_colour(cell):
        return "B7" if cell.formula is None else "B8"
    written = workbook.font_colours.of_format(cell.style) or {}
    return "B6" if "rgb" in written else "B5"


# -- the suite -------------------------------------------------------------------------------------


def _standard(check: object, workspace: Workspace) -> Outcome:
    criterion = as_check(check)
    official = _official(check, workspace)
    reply = workspace.reply
    kind = criterion.get("match_type")
    if kind in {"substring_one_of", "regex_pattern"}:
        if not isinstance(reply, Mapping):
            return replace(_shown(criterion), detail=official.detail).outcome(right=False)
        right, fault = _text_outcome(criterion, reply)
        part = reply.get(str(criterion.get("id")))
        shown = replace(_shown(criterion), found=part)
        return as_intended(official, shown, fault, right=right)
    if kind == "excel_formatting":
        intended = _format_outcome(criterion, workspace)
    else:
        shown, right, fault = _cell_outcome(criterion, workspace)
        intended = as_intended(official, shown, fault, right=right)
    if intended.share >= 1 and intended.fault and not reply:
        return replace(intended, fault="B11")
    return intended


def _in_words(check: object) -> str:
    criterion = as_check(check)
    return str(criterion.get("description") or criterion.get("id", ""))


def _faults(check: object) -> tuple[str, ...]:
    kind = as_check(check).get("match_type")
    if kind not in MATCH_TYPES:
        return (f"there is no match_type {kind!r}",)
    return ()


def _of_workbook(check: object) -> bool:
    return str(as_check(check).get("match_type")).startswith("excel_")


SUITE = PublishedSuite(_official, _standard, _in_words, _faults, _of_workbook)
