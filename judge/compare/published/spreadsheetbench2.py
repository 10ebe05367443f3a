"""What SpreadsheetBench 2's published evaluation does with values and positions. Pure rules.

Rewritten from the behaviour of its ``evaluation.py``, and checked against recorded verdicts of its
functions. What it does that a reader would not expect:

- Numbers agree up to 1 % of the larger one, so that the years 2023 and 2024 do. Dates become whole
  days first, and then agree up to 1 % of their serial number, which is more than a year.
- ``-``, ``N/A``, ``#DIV/0!`` and their like mean the same. None is 0, the empty string is not.
- Strings are whatever number Python reads in them, rounded to two decimals; ``nan`` differs from
  itself. Strings that begin with ``=`` are compared without dollar signs and case, even if they
  are not formulas.
- If one of two cells shows an error, what counts is their formulas, and neither values nor colours.
- A sheet that the input or the gold lacks holds no cell at all, whatever its range says. It is
  found by its name, or by that in lower case and without outer spaces.
- Colours of fonts are looked up in the theme that Office has by default, whatever theme the
  workbook has; indexed and automatic colours are black. Letter case of a colour counts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from judge.compare.cells.value import is_not_meaningful
from judge.compare.published.spreadsheetbench import ScriptError, transformed
from judge.workbook.cell import CellValue, ErrorValue

_TOLERANCE = 0.01
_ERRORS = frozenset({"#REF!", "#VALUE!", "#DIV/0!", "#NAME?", "#NULL!", "#N/A", "#NUM!"})


@dataclass(frozen=True, slots=True)
class ArrayText:
    """An array formula, which agrees only with an array formula of exactly the same text."""

    text: str


@dataclass(frozen=True, slots=True)
class TableFormula:
    """The formula of a data table, which agrees with nothing."""


Written = CellValue | ArrayText | TableFormula
"""What a cell holds if formulas are not replaced by their values."""


# -- values ---------------------------------------------------------------------------------------


def shows_error(value: Written) -> bool:
    """Whether a value, or text that reads the same, is one of Excel's seven old errors."""
    return (value.code if isinstance(value, ErrorValue) else value) in _ERRORS


def values_agree(expected: Written, actual: Written) -> bool:
    """Whether the script takes two values for equal.

    Raises:
        ScriptError: the script falls over at one of them.
    """
    if isinstance(expected, TableFormula) or isinstance(actual, TableFormula):
        return False
    if isinstance(expected, ArrayText) or isinstance(actual, ArrayText):
        return expected == actual
    if is_not_meaningful(expected) and is_not_meaningful(actual):
        return True
    # Booleans are integers here, as in the script.
    if isinstance(expected, int | float) and isinstance(actual, int | float):
        return _numbers_agree(expected, actual)
    return _transformed_agree(transformed(expected), transformed(actual))


def _transformed_agree(first: CellValue, second: CellValue) -> bool:
    if first in {"", None} and second in {"", None}:
        return True
    if first is None or second is None:
        other = second if first is None else first
        return isinstance(other, int | float) and other == 0
    if type(first) is not type(second):
        return False
    if first == second:
        return True
    if isinstance(first, str) and isinstance(second, str):
        return first[:1] == second[:1] == "=" and _without_signs(first) == _without_signs(second)
    if isinstance(first, int | float) and isinstance(second, int | float):
        return _numbers_agree(first, second)
    return False


def _numbers_agree(first: float, second: float) -> bool:
    if first == second:
        return True
    try:
        apart = abs(first - second)
        if first == 0 or second == 0:
            return apart <= _TOLERANCE
        return apart / max(abs(first), abs(second)) <= _TOLERANCE
    except OverflowError:
        raise ScriptError("OverflowError: a whole number too large for a float") from None


def formulas_agree(expected: Written, actual: Written) -> bool:
    """Whether the script takes what two cells hold for equal if formulas count.

    Raises:
        ScriptError: the script falls over at one of them.
    """
    if isinstance(expected, str) and isinstance(actual, str) and expected[:1] == actual[:1] == "=":
        return _normalised(expected) == _normalised(actual)
    if expected in {None, ""} and actual in {None, ""}:
        return True
    return values_agree(expected, actual)


def _without_signs(formula: str) -> str:
    return formula.replace("$", "").upper()


def _normalised(formula: str) -> str:
    plain = _without_signs(formula)
    return f"={plain[2:]}" if plain.startswith("=+") else plain


def may_differ_from_itself(value: Written) -> bool:
    """Whether a value may differ from an equal one: ``nan`` as text, a data table, an error.

    Two equal errors come from formulas that may differ.
    """
    if isinstance(value, str):
        return value[:1] == "#" or value.strip()[-3:].lower() == "nan"
    return isinstance(value, ErrorValue | TableFormula)


# -- positions ------------------------------------------------------------------------------------


def script_ranges(position: str) -> list[tuple[str | None, str]]:
    """The parts of a position as (sheet, cells); None for the gold's first sheet.

    Parts end at commas outside quotes. Each quote opens or closes, so that one that is missing
    makes everything up to the next one a single part.

    Raises:
        ScriptError: the script falls over.
    """
    parts: list[tuple[str | None, str]] = []
    for part in _split(position):
        sheet, bang, cells = part.partition("!")
        if "!" in cells:
            raise ScriptError("ValueError: more than one bang")
        if not bang:
            parts.append((None, _unquoted(part)))
        else:
            parts.append((_unquoted(sheet), _unquoted(cells)))
    return parts


def _split(position: str) -> list[str]:
    parts, start, is_quoted = [], 0, False
    for at, character in enumerate(position):
        if character == "'":
            is_quoted = not is_quoted
        elif character == "," and not is_quoted:
            parts.append(position[start:at])
            start = at + 1
    parts.append(position[start:])
    return [part.strip() for part in parts if part.strip()]


def _unquoted(text: str) -> str:
    return text.strip("'").strip()


def script_sheet(name: str, tabs: Sequence[str]) -> str | None:
    """The sheet that the script finds, chart sheets included; None if there is none."""
    if name in tabs:
        return name
    wanted = name.strip().lower()
    return next((each for each in tabs if each.strip().lower() == wanted), None)


# -- colours --------------------------------------------------------------------------------------

_THEME = (
    *("FFFFFF", "000000", "E7E6E6", "44546A", "4472C4"),
    *("ED7D31", "A5A5A5", "FFC000", "5B9BD5", "70AD47"),
)
_BLACK = "000000"


def script_colour(attributes: Mapping[str, str] | None) -> str:
    """Six digits of the colour that the script sees.

    Args:
        attributes: those of the font's colour element; None if it has none.

    Raises:
        ScriptError: openpyxl does not read such a colour.
    """
    if attributes is None or "indexed" in attributes:
        return _BLACK
    try:
        tint = float(attributes.get("tint", 0))
        if "theme" in attributes:
            return _tinted(_of_theme(int(attributes["theme"])), tint)
    except ValueError as error:
        raise ScriptError(f"ValueError: {error}") from error
    # ``rgb`` is what a colour is by default; an automatic one is of a type that is not looked up.
    return _BLACK if "auto" in attributes else attributes.get("rgb", _BLACK)[-6:]


def _of_theme(index: int) -> str | None:
    return _THEME[index] if 0 <= index < len(_THEME) else None


def _tinted(colour: str | None, tint: float) -> str:
    if colour is None:
        return _BLACK
    if not tint:
        return colour
    shades = []
    for at in (0, 2, 4):
        shade = int(colour[at : at + 2], 16)
        tinted = int(shade + (255 - shade) * tint) if tint > 0 else int(shade * (1 + tint))
        shades.append(min(255, max(0, tinted)))
    return "".join(f"{shade:02X}" for shade in shades)
