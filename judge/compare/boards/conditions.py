"""The parts of conditional formats that boards compare."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache

from judge.compare.boards.cells import BoardBook
from judge.formulas.lexer import MAX_FORMULA_LENGTH, outside_text
from judge.formulas.shift import shift_formula
from judge.workbook.address import Window
from judge.workbook.sheets.sheet_tail import ConditionalRule
from judge.workbook.styles.conditional import origin_of
from judge.workbook.styles.style_sheet import INDEXED_COLOURS, ConditionalStyle
from judge.workbook.workbook_parts import Tab

_COMMON_ROW, _COMMON_COLUMN = 500_000, 8_000
"""The cell to which all conditions are moved; it is far from the edges of the sheet."""

_GROUPS: Mapping[str, frozenset[int]] = {
    "red": frozenset({3, 9, 30, 53}),
    "green": frozenset({4, 10, 14, 31, 43, 50, 51}),
    "yellow": frozenset({6, 19, 27, 36, 44}),
    "orange": frozenset({22, 40, 45, 46}),
    "purple": frozenset({7, 17, 24, 26, 29, 38, 39, 47, 54}),
    "black": frozenset({1, 48, 56}),
    "blue": frozenset({5, 8, 20, 23, 25, 28, 32, 33, 34, 37, 41, 42, 49, 55}),
    "white": frozenset({2}),
}
"""Name of a colour -> indices in the palette of 56 colours; some indices have no name.

Source: the published evaluation, agent/utils/compare_sheets.py."""

_TEXT_TERMS = {"text": ""}
_TERMS: Mapping[str, Mapping[str, str]] = {
    "aboveAverage": {"aboveAverage": "1", "equalAverage": "0", "stdDev": "0"},
    "top10": {"bottom": "0", "percent": "0", "rank": "10"},
    "timePeriod": {"timePeriod": ""},
    **{kind: {} for kind in ("expression", "cellIs", "colorScale", "dataBar", "iconSet")},
}
"""Kind of a rule -> its terms, with their default values."""

_PALETTE = INDEXED_COLOURS[8:64]


@dataclass(frozen=True, slots=True)
class RuleView:
    """A rule of a conditional format, as boards compare it.

    Attributes:
        kind: ``expression``, ``cellIs`` …
        operator: the operator of the condition; None if it has none.
        formulas: its formulas, moved to the same cell for all rules.
        terms: other parts of the condition, such as text or rank.
        color: colour that it gives the text; None if it does not change the colour.
        fill: colour that it gives the cell; None if it does not change the colour.
        bold, italic: whether it makes the text bold or italic; None if it does not change this.
        underline: how it underlines the text; None if it does not change this.
        drawn: what a colour scale, a data bar or an icon set draws.
        windows: where it applies.
        written: its formulas as in the file, for people.
    """

    kind: str
    operator: str | None
    formulas: tuple[str, ...]
    terms: tuple[tuple[str, str], ...]
    color: str | None
    fill: str | None
    bold: bool | None
    italic: bool | None
    underline: str | None
    drawn: tuple[object, ...]
    windows: tuple[Window, ...]
    written: tuple[str, ...] = field(default=(), compare=False)

    @property
    def condition(self) -> tuple[object, ...]:
        """Everything that decides when the rule applies, and what it draws."""
        return (*self.formulas, *self.terms, *self.drawn)

    def __str__(self) -> str:
        text = " ".join((self.kind, self.operator or "", *self.written)).strip()
        return f"rule {text} at {' '.join(map(str, self.windows[:5]))}"


def rules_of(owner: BoardBook, tab: Tab) -> list[RuleView]:
    """Returns the rules of a sheet that apply to cells in use, in the order of the file.

    Raises:
        WorkbookError: the sheet is broken or over a limit.
    """
    workbook = owner.book.workbook
    looks = workbook.style_sheet.conditional
    rows, columns = owner.sheet(tab).used_corner
    rules = []
    for rule in workbook.sheet(tab.name).tail.rules:
        inside = [window for window in rule.windows if window.min_row <= rows]
        if not any(element.min_column <= columns for element in inside):
            continue
        look = ConditionalStyle()
        if rule.style is not None and 0 <= rule.style < len(looks):
            look = looks[rule.style]
        rules.append(_view(rule, look))
    return rules


def _view(rule: ConditionalRule, look: ConditionalStyle) -> RuleView:
    row, column = origin_of(rule)
    terms = dict(rule.terms)
    operator = terms.pop("operator", None)
    fill = None
    if look.fill is not None:
        fill = next((colour for colour in look.fill.colours if colour), None)
    return RuleView(
        kind=rule.kind,
        operator=operator,
        formulas=tuple(
            _plain(shift_formula(formula, _COMMON_ROW - row, _COMMON_COLUMN - column))
            for formula in rule.formulas
        ),
        terms=_terms(rule.kind, terms),
        color=look.font_color,
        fill=fill,
        bold=look.bold,
        italic=look.italic,
        underline=look.underline,
        drawn=rule.drawn,
        windows=rule.windows,
        written=rule.formulas,
    )


def _terms(kind: str, terms: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    """Returns the terms that this kind of rule uses; some programs also write unused terms."""
    usual = _TERMS.get(kind, _TEXT_TERMS)
    pairs = ((name, terms.get(name, default)) for name, default in usual.items())
    return tuple((name, _switch(value)) for name, value in pairs if value)


def _switch(value: str) -> str:
    return {"true": "1", "false": "0"}.get(value, value)


def _plain(formula: str) -> str:
    """Returns a formula without equals sign and spaces, in upper case; strings stay unchanged."""
    if len(formula) > MAX_FORMULA_LENGTH:
        return formula
    return outside_text(
        formula.strip().removeprefix("="), lambda text: "".join(text.split()).upper()
    )


@cache
def colour_index(colour: str) -> int:
    """Returns the 1-based index of the nearest of 56 palette colours, like ``ColorIndex``."""
    channels = _channels(colour)

    def distance(index: int) -> int:
        return sum((a - b) ** 2 for a, b in zip(channels, _channels(_PALETTE[index]), strict=True))

    return min(range(len(_PALETTE)), key=distance) + 1


def _channels(colour: str) -> tuple[int, ...]:
    return tuple(int(colour[at : at + 2], 16) for at in (0, 2, 4))


def same_group(first: str, second: str) -> bool:
    """Whether two colours have the same name; a colour without a name matches no colour."""
    indices = {colour_index(first), colour_index(second)}
    return any(indices <= group for group in _GROUPS.values())
