"""Items about cells: ``cell``, ``range``, ``formula`` and ``format``."""

from __future__ import annotations

import colorsys
import datetime as dt
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from judge.compare.cells.value import Agree, comparator
from judge.compare.checklists.items import (
    AMOUNT,
    AREA,
    AREAS,
    CELL,
    ROWS,
    TEXT,
    TEXT_OR_TEXTS,
    TEXTS,
    TRUTH,
    VALUE,
    VALUES,
    Item,
    ItemKind,
    Outcome,
    Reading,
    fails,
    holds,
    needed,
    one_of,
)
from judge.compare.checklists.workspace import (
    OpenBook,
    Workspace,
    address_of,
    window_of,
)
from judge.compare.profiles import PROFILES, Profile, TextNumbers
from judge.core.finding import in_words
from judge.core.submission import Origin
from judge.errors import GoldFaultError, WorkbookError
from judge.files.documents import MalformedError
from judge.formulas.lexer import Kind, outside_text, tokens
from judge.formulas.references import read_formula
from judge.formulas.shift import with_sheet_renamed
from judge.workbook.address import Window, cell_key, cell_name
from judge.workbook.cell import Cell, CellRange, CellValue, ErrorValue, json_value
from judge.workbook.reader import open_workbook
from judge.workbook.styles.style_sheet import canonical_number_format

MAX_CELLS = 100_000
"""Largest range that an item compares, in cells; the largest published one has 2,470."""

_NEAR_ZERO = 1e-9  # a rounding error where the right value is zero
_BOUND_NOISE = 1e-9
"""A difference may exceed the tolerance by this share of the tolerance, as a rounding error."""

_DAYS = re.compile(r"\d{4}-\d\d-\d\d")

# -- values ----------------------------------------------------------------------------------------


def value_of_json(value: object) -> CellValue:
    """Returns the cell value that an item states as JSON.

    Raises:
        MalformedError: a date cannot be read.
    """
    if isinstance(value, Mapping):
        if "error" in value:
            return ErrorValue(str(value["error"]).upper())
        text = str(value.get("date"))
        try:
            if _DAYS.fullmatch(text):
                return dt.datetime.fromisoformat(text)
            return (
                dt.time.fromisoformat(text) if ":" in text[:3] else dt.datetime.fromisoformat(text)
            )
        except ValueError as error:
            raise MalformedError(f"{text!r} is not a date") from error
    if isinstance(value, str) and not value.strip():
        return None
    return value  # type: ignore[return-value]


def agreement_of(item: Item) -> Agree:
    """Returns a function that tests whether a value agrees with the one that an item states.

    Numbers agree within ``tolerance``, or within the share ``relative`` of the larger number. If
    neither is given, only rounding errors are ignored. Text is compared without regard to case and
    white space, unless ``exact`` is set. A number in a text cell does not count as a number unless
    ``text_numbers`` is set.
    """
    tolerance = item.number("tolerance")
    exact = item.fields.get("exact") is True
    rules: Profile = replace(
        PROFILES["strict"],
        absolute_tolerance=tolerance * (1 + _BOUND_NOISE),
        relative_tolerance=item.number("relative"),
        near_zero=_NEAR_ZERO,
        ignore_case=not exact,
        ignore_whitespace=not exact,
        text_numbers=TextNumbers.PLAIN
        if item.fields.get("text_numbers") is True
        else TextNumbers.NEVER,
    )
    return comparator(rules)


_AGREEMENT_FORMS = {
    "tolerance": AMOUNT,
    "relative": AMOUNT,
    "exact": TRUTH,
    "text_numbers": TRUTH,
}


def _allowed(item: Item) -> Sequence[object]:
    listed = item.fields.get("one_of")
    if isinstance(listed, list | tuple):
        return listed
    return [item.fields.get("expected")]


def _cell(item: Item, workspace: Workspace, _: Reading) -> Outcome:
    book = workspace.book(item.file)
    sheet = book.sheet_named(item.text("sheet"))
    row, column = address_of(item.text("cell"))
    read = book.cell(sheet, row, column)
    spot = f"{sheet}!{cell_name(row, column)}"
    allowed = _allowed(item)
    expected = allowed[0] if len(allowed) == 1 else {"one of": list(allowed)}
    if read.unknown:
        return Outcome(0.0, expected, None, spot, f"not computed: {read.unknown}", undecided=True)
    agree = agreement_of(item)
    actual = json_value(read.value)
    if any(agree(value_of_json(value), read.value) for value in allowed):
        return holds(expected, actual, spot)
    number_as_text = isinstance(read.value, str) and any(
        isinstance(value, int | float) for value in allowed
    )
    return fails(expected, actual, spot, "the cell holds text" if number_as_text else "")


def _cell_words(item: Item) -> str:
    allowed = [in_words(value) for value in _allowed(item)]
    spot = _spot(item, item.text("cell"))
    within = ""
    if item.number("tolerance"):
        within = f", within {item.number('tolerance'):g}"
    elif item.number("relative"):
        within = f", within {item.number('relative') * 100:g} %"
    if allowed == ["nothing"]:
        return f"cell {spot} is blank"
    return f"cell {spot} is {' or '.join(allowed)}{within}"


def _cell_faults(item: Item) -> Iterator[str]:
    if ("expected" in item.fields) == ("one_of" in item.fields):
        yield f"item {item.id} (cell): expected or one_of is needed, and not both"


# -- ranges ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Pair:
    """A cell of a range: its position, the expected value, and the value in the answer."""

    row: int
    column: int
    expected: CellValue
    found: CellValue
    unknown: str


def _range(item: Item, workspace: Workspace, _: Reading) -> Outcome:
    book = workspace.book(item.file)
    sheet = book.sheet_named(item.text("sheet"))
    window = window_of(item.text("range"))
    agree = agreement_of(item)
    pairs = list(_pairs(item, workspace, book, sheet, window))
    wrong = [pair for pair in pairs if pair.unknown or not agree(pair.expected, pair.found)]
    if not wrong:
        return holds(f"{len(pairs)} cells", None, f"{sheet}!{item.text('range')}")
    first = wrong[0]
    return Outcome(
        1 - len(wrong) / len(pairs),
        json_value(first.expected),
        json_value(first.found),
        f"{sheet}!{cell_name(first.row, first.column)}",
        f"{len(wrong):,} of {len(pairs):,} cells differ",
        undecided=all(pair.unknown for pair in wrong),
    )


def _pairs(
    item: Item, workspace: Workspace, book: OpenBook, sheet: str, window: Window
) -> Iterator[_Pair]:
    if window.size > MAX_CELLS:
        raise MalformedError(f"the range {item.text('range')} has more than {MAX_CELLS:,} cells")
    expected = _expected_values(item, workspace, window)
    grid = book.grid(sheet)
    for row, column in window.cells():
        key = cell_key(row, column)
        yield _Pair(
            row,
            column,
            expected.get((row, column)),
            grid.values.get(key),
            grid.not_calculated.get(key, ""),
        )


def _expected_values(
    item: Item, workspace: Workspace, window: Window
) -> Mapping[tuple[int, int], CellValue]:
    """Returns the values that the item states, or the values of the same range in its gold.

    Raises:
        GoldFaultError: the gold is missing, or cannot be read.
    """
    rows = item.fields.get("expected")
    if isinstance(rows, list | tuple):
        return {
            (window.min_row + down, window.min_column + right): value_of_json(value)
            for down, row in enumerate(rows)
            for right, value in enumerate(row)
        }
    name = item.text("gold")
    if name not in workspace.golds:
        raise GoldFaultError(f"the case has no gold {name!r}")
    try:
        workbook = open_workbook(workspace.golds[name])
        gold = OpenBook(name, workbook, workspace.compute, Origin.GOLD)
        grid = gold.grid(gold.sheet_named(item.text("sheet")))
    except WorkbookError as error:
        raise GoldFaultError(f"{name}: {error.message}") from error
    return {(row, column): grid.values.get(cell_key(row, column)) for row, column in window.cells()}


def _range_words(item: Item) -> str:
    source = "is as expected" if "expected" in item.fields else f"is that of {item.text('gold')}"
    return f"each cell of {_spot(item, item.text('range'))} {source}"


def _range_faults(item: Item) -> Iterator[str]:
    if ("expected" in item.fields) == ("gold" in item.fields):
        yield f"item {item.id} (range): expected or gold is needed, and not both"


# -- formulas --------------------------------------------------------------------------------------


def _formula(item: Item, workspace: Workspace, _: Reading) -> Outcome:
    book = workspace.book(item.file)
    sheet = book.sheet_named(item.text("sheet"))
    expected = _formula_words(item).partition(": ")[2] or "a formula"
    for window in map(window_of, item.texts("cells")):
        if window.size > MAX_CELLS:
            raise MalformedError(f"a range has more than {MAX_CELLS:,} cells")
        stored = book.cells(sheet, window)
        for row, column in window.cells():
            cell = stored.get((row, column))
            fault = _formula_fault(item, cell, sheet)
            if fault:
                actual = None if cell is None else cell.formula or json_value(cell.value)
                return fails(expected, actual, f"{sheet}!{cell_name(row, column)}", fault)
    return holds(expected, None, f"{sheet}!{', '.join(item.texts('cells'))}")


def _formula_fault(item: Item, cell: Cell | None, sheet: str) -> str:
    """Returns the requirement of the item that the cell does not meet; empty if it meets all."""
    formula = None if cell is None else cell.formula
    if formula is None:
        return "there is no formula"
    parts, references = read_formula(formula)
    for name in item.texts("functions"):
        if name.upper() not in parts.functions:
            return f"the formula does not use {name.upper()}"
    any_of = [name.upper() for name in item.texts("any_function")]
    if any_of and not parts.functions & set(any_of):
        return f"the formula uses none of {', '.join(any_of)}"
    for name in item.texts("without"):
        if name.upper() in parts.functions:
            return f"the formula uses {name.upper()}"
    for reference in item.texts("references"):
        named, _, area = reference.rpartition("!")
        window = window_of(area)
        named = (named.strip("'") or sheet).casefold()
        if not any(
            (part.sheet or sheet).casefold() == named
            and Window(part.min_row, part.min_column, part.max_row, part.max_column).covers(window)
            for part in references
        ):
            return f"the formula does not refer to {reference}"
    text = item.text("text")
    if text and _plain(text, sheet) != _plain(formula, sheet):
        return "the formula is another one"
    return ""


def _plain(formula: str, sheet: str) -> str:
    """Returns a formula without spaces, dollar signs and the name of its own sheet."""
    own = with_sheet_renamed(f"={formula.lstrip('=')}", sheet, "\x00own")
    bare = outside_text(own, lambda part: part.replace(" ", "").replace("$", "").upper())
    return bare.replace("'\x00OWN'!", "").replace("\x00OWN!", "")


def _formula_words(item: Item) -> str:
    spots = _spot(item, ", ".join(item.texts("cells")))
    parts = []
    if functions := item.texts("functions"):
        parts.append(f"uses {', '.join(functions)}")
    if any_of := item.texts("any_function"):
        parts.append(f"uses {' or '.join(any_of)}")
    if without := item.texts("without"):
        parts.append(f"does not use {', '.join(without)}")
    if references := item.texts("references"):
        parts.append(f"refers to {', '.join(references)}")
    if text := item.text("text"):
        parts.append(f"is {text}")
    return f"{spots} holds a formula" + (f": it {' and '.join(parts)}" if parts else "")


# -- looks -----------------------------------------------------------------------------------------

_HUES = {"red": (0.0, 0.06), "green": (0.22, 0.46), "blue": (0.5, 0.73)}
COLOURS = ("black", "white", "grey", "yellow", "orange", "purple", *_HUES)
_OTHER_HUES = {"orange": 0.12, "yellow": 0.22, "cyan": 0.5, "purple": 0.92}


def colour_class(rgb: str) -> str:
    """Returns the family of a colour, such as ``blue`` for both 0000FF and 0070C0.

    Args:
        rgb: six hexadecimal digits.

    Returns:
        One of :data:`COLOURS`, or ``cyan``; empty if ``rgb`` is not a colour.
    """
    try:
        red, green, blue = (int(rgb[-6:][index : index + 2], 16) / 255 for index in (0, 2, 4))
    except ValueError:
        return ""
    hue, light, saturation = colorsys.rgb_to_hls(red, green, blue)
    if light < 0.12:
        return "black"
    if light > 0.93:
        return "white"
    if saturation < 0.2:
        return "grey"
    for name, (low, high) in _HUES.items():
        if low <= hue <= high:
            return name
    if hue > 0.94:
        return "red"
    return next(name for name, end in _OTHER_HUES.items() if hue < end)


def source_of(cell: Cell) -> str:
    """Returns the source of a cell's value, which bankers show by its colour.

    Returns:
        ``typed`` for a number, ``file`` or ``sheet`` for a formula that refers to another file or
        sheet, ``formula`` for any other formula; empty for text, dates, truth values and blanks.
    """
    if cell.formula is not None:
        words = tokens(cell.formula)
        sheets = [token.text for token in words if token.kind in {Kind.SHEET, Kind.QUOTED}]
        if any("[" in name for name in sheets):
            return "file"
        return "sheet" if any(token.kind is Kind.SHEET for token in words) else "formula"
    is_number = isinstance(cell.value, int | float) and not isinstance(cell.value, bool)
    return "typed" if is_number else ""


BANKER = {"typed": "blue", "sheet": "green", "file": "red"}
"""Source of a value -> the colour that bankers give it."""


def convention_fault(cell: Cell, book: OpenBook) -> str:
    """Returns how a cell's colour breaks the bankers' convention; empty if it does not."""
    right = BANKER.get(source_of(cell))
    if right is None:
        return ""
    colour = book.workbook.style(cell.style).font_color
    family = colour_class(colour)
    return "" if family == right else f"is {family or colour} and not {right}"


def _format(item: Item, workspace: Workspace, _: Reading) -> Outcome:
    book = workspace.book(item.file)
    sheet = book.sheet_named(item.text("sheet"))
    banker = item.text("convention") == "banker"
    looked = 0
    for window in _windows(item, book, sheet):
        stored = book.cells(sheet, window)
        if banker:
            positions = [spot for spot, cell in stored.items() if source_of(cell) in BANKER]
        elif window.size > MAX_CELLS:
            raise MalformedError(f"a range has more than {MAX_CELLS:,} cells")
        else:
            positions = list(window.cells())
        looked += len(positions)
        for spot in positions:
            cell = stored.get(spot) or Cell(*spot, None)
            fault = convention_fault(cell, book) if banker else _look_fault(item, cell, book)
            if fault:
                return fails(place=f"{sheet}!{cell_name(*spot)}", detail=fault)
    if not looked:
        return fails(place=sheet, detail="the area holds nothing")
    return holds(place=sheet)


def _windows(item: Item, book: OpenBook, sheet: str) -> Iterator[CellRange]:
    listed = item.texts("cells")
    if not listed:
        used = book.workbook.used_range(sheet)
        if used is not None:
            yield used
    for text in listed:
        yield CellRange.of(sheet, window_of(text))


def _look_fault(item: Item, cell: Cell, book: OpenBook) -> str:
    """Returns what is wrong with the format of a cell; empty if nothing is wrong."""
    style = book.workbook.style(cell.style)
    for name in ("bold", "italic"):
        if name in item.fields and getattr(style, name) is not item.fields[name]:
            return f"is {'' if getattr(style, name) else 'not '}{name}"
    if "underline" in item.fields and (style.underline != "none") is not item.fields["underline"]:
        return f"has the underline {style.underline}"
    formats = item.texts("number_format")
    own = canonical_number_format(style.number_format)
    if formats and own not in map(canonical_number_format, formats):
        return f"has the number format {style.number_format}"
    font, fill = item.text("font"), item.text("fill")
    if font and not _has_colour(style.font_color, font):
        return f"has text in {style.font_color}"
    colours = style.fill.colours if style.fill.pattern != "none" else ()
    if fill and not any(colour and _has_colour(colour, fill) for colour in colours):
        return f"has {style.fill}"
    if (horizontal := item.text("alignment")) and style.alignment.horizontal != horizontal:
        return f"is aligned {style.alignment.horizontal}"
    return ""


def _has_colour(colour: str, required: str) -> bool:
    """Whether a colour is the required colour, or belongs to the required family."""
    if required.lower() in COLOURS:
        return colour_class(colour) == required.lower()
    return colour[-6:].upper() == required[-6:].upper()


def _format_words(item: Item) -> str:
    spots = _spot(item, ", ".join(item.texts("cells")))
    if item.text("convention") == "banker":
        return (
            f"{spots}: typed numbers are blue, references to other sheets green, "
            "to other workbooks red"
        )
    parts = [
        name if item.fields[name] else f"not {name}"
        for name in ("bold", "italic", "underline")
        if name in item.fields
    ]
    if formats := item.texts("number_format"):
        parts.append(f"with the number format {' or '.join(formats)}")
    if font := item.text("font"):
        parts.append(f"with {font} text")
    if fill := item.text("fill"):
        parts.append(f"filled {fill}")
    if alignment := item.text("alignment"):
        parts.append(f"aligned {alignment}")
    return f"{spots} is {', '.join(parts)}"


_LOOK_FORMS = {
    "bold": TRUTH,
    "italic": TRUTH,
    "underline": TRUTH,
    "number_format": TEXT_OR_TEXTS,
    "font": TEXT,
    "fill": TEXT,
    "alignment": TEXT,
    "convention": one_of("banker"),
}


def _format_faults(item: Item) -> Iterator[str]:
    if not any(name in item.fields for name in _LOOK_FORMS):
        yield f"item {item.id} (format): one of {', '.join(_LOOK_FORMS)} is needed"
    elif "convention" not in item.fields and "cells" not in item.fields:
        yield f"item {item.id} (format): cells is missing"


def _spot(item: Item, area: str) -> str:
    """Returns sheet, cells and file in words for a message."""
    spot = "!".join(filter(None, (item.text("sheet"), area))) or "the sheet in front"
    return f"{spot} of {item.file}" if item.file else spot


KINDS = {
    "cell": ItemKind(
        _cell,
        _cell_words,
        {
            "sheet": TEXT,
            "cell": needed(CELL),
            "expected": VALUE,
            "one_of": VALUES,
            **_AGREEMENT_FORMS,
        },
        faults=_cell_faults,
    ),
    "range": ItemKind(
        _range,
        _range_words,
        {
            "sheet": TEXT,
            "range": needed(AREA),
            "expected": ROWS,
            "gold": TEXT,
            **_AGREEMENT_FORMS,
        },
        faults=_range_faults,
    ),
    "formula": ItemKind(
        _formula,
        _formula_words,
        {
            "sheet": TEXT,
            "cells": needed(AREAS),
            "functions": TEXTS,
            "any_function": TEXTS,
            "without": TEXTS,
            "references": TEXTS,
            "text": TEXT,
        },
    ),
    "format": ItemKind(
        _format,
        _format_words,
        {"sheet": TEXT, "cells": AREAS, **_LOOK_FORMS},
        faults=_format_faults,
    ),
}
