"""Rules about values and text of cells, in the judge's own reading.

Each type of rule is a function of the two workbooks and the rule. It returns None if the rule
holds. It raises ``PublishedError`` if the gold or the rule is at fault, ``MissingSheetError`` if
the answer lacks a sheet, and ``WorkbookError`` if a workbook is broken or over a limit.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

from judge.compare.published.spider2v.looks import name_of
from judge.compare.rules.book import Rule, option_of, text_of, values_agree
from judge.compare.rules.judged import MAX_CELLS, NOT_CALCULATED, Judged, RuleDifference, Target
from judge.compare.rules.looks import WholeLooks
from judge.compare.rules.methods import (
    asked_of,
    method_holds,
    places_of,
    prepared_text,
    texts_alike,
    window_of,
)
from judge.compare.rules.published_error import PublishedError, Side
from judge.compare.rules.words import method_in_words, property_in_words
from judge.core.finding import differing_cell
from judge.core.records.cases import DifferingCellRecord
from judge.workbook.address import Window, cell_key, cell_name, parse_cell
from judge.workbook.cell import CellValue
from judge.workbook.facts.render import json_value

_MAX_AFTER = 2000
"""How many more cells are compared after the first one that differs."""


def sheet_data(judged: Judged, rule: Rule) -> RuleDifference | None:
    """Checks that all values of two sheets agree."""
    decimals = rule.get("precision", 4)
    if not isinstance(decimals, int):
        raise PublishedError("TypeError", "decimals must be an integer", Side.RULES)
    expected, actual = judged.pair(rule)
    first, second = judged.grid(expected), judged.grid(actual)
    unknown = first.not_calculated.keys() | second.not_calculated.keys()
    # Neither value is known, but equal formulas have equal values.
    both = first.not_tried & second.not_tried
    missing = unknown - {key for key in both if _formula(expected, key) == _formula(actual, key)}
    wrong = [
        key
        for key in first.values.keys() | second.values.keys()
        if key not in unknown
        and not values_agree(first.values.get(key), second.values.get(key), decimals)
    ]
    if not wrong and not missing:
        return None
    keys = sorted(wrong) or sorted(missing)
    cells = tuple(
        differing_cell(
            name_of(key), json_value(first.values.get(key)), json_value(second.values.get(key))
        )
        for key in keys[:MAX_CELLS]
    )
    return RuleDifference(
        cells[0]["expected"],
        cells[0]["actual"],
        _cells(keys),
        actual.tab.name,
        "" if wrong else NOT_CALCULATED,
        cells,
        len(keys),
    )


def _formula(target: Target, key: int) -> str | None:
    return target.book.workbook.sheet(target.tab.name).formula(key)


def sheet_print(judged: Judged, rule: Rule) -> RuleDifference | None:
    """Checks that the printed lines of two sheets agree, ignoring white space around them."""
    expected, actual = judged.pair(rule)
    lines = []
    for target in (expected, actual):
        written = target.book.lines(target.tab.name)
        if written is None and target.book.unprinted:
            why = target.book.unprinted
            return RuleDifference(None, None, why, target.tab.name, NOT_CALCULATED)
        if written is None and target.book.side is Side.GOLD:
            raise PublishedError("FileNotFoundError", "the gold has no text file", Side.GOLD)
        stripped = [line.strip() for line in written or ()]
        while stripped and not stripped[-1]:
            stripped.pop()
        lower = rule.get("ignore_case", False)
        lines.append([line.lower() if lower else line for line in stripped])
    if lines[0] == lines[1]:
        return None
    row = next(
        (n for n, pair in enumerate(zip(*lines, strict=False)) if pair[0] != pair[1]),
        min(map(len, lines)),
    )
    column = [line[row] if row < len(line) else None for line in lines]
    return RuleDifference(column[0], column[1], f"line {row + 1}", actual.tab.name)


def sheet_fuzzy(judged: Judged, rule: Rule) -> RuleDifference | None:
    """Checks that the text of ranges is similar."""
    expected, actual = judged.pair(rule)
    texts = _Texts(judged.grid(expected).values, judged.grid(actual).values)
    for entry in option_of(rule, "rules"):
        for window in places_of(option_of(entry, "range")):
            keys = _keys_of(window_of(window))
            for key in keys:
                judged.answer.workbook.package.budget.take_cells(1)
                if texts.alike(entry, key):
                    continue
                # The verdict is known; some more cells are compared only to show them.
                more = (
                    other for other in islice(keys, _MAX_AFTER) if not texts.alike(entry, other)
                )
                cells = tuple(map(texts.cell, (key, *islice(more, MAX_CELLS - 1))))
                first = cells[0]
                return RuleDifference(
                    first["expected"],
                    first["actual"],
                    first["cell"],
                    actual.tab.name,
                    "",
                    cells,
                    len(cells),
                )
    return None


def _keys_of(window: Window) -> Iterator[int]:
    return (
        cell_key(row, column)
        for row in range(window.min_row, window.max_row + 1)
        for column in range(window.min_column, window.max_column + 1)
    )


@dataclass(frozen=True, slots=True)
class _Texts:
    """The values of two sheets as text."""

    expected: Mapping[int, CellValue]
    actual: Mapping[int, CellValue]

    def alike(self, rule: Rule, key: int) -> bool:
        """Whether the text of a cell is similar in the way that the rule requires."""
        expected, actual = text_of(self.expected.get(key)), text_of(self.actual.get(key))
        alike = texts_alike(rule, prepared_text(rule, actual), prepared_text(rule, expected))
        if alike is None:
            raise PublishedError("ValueError", f"no type {rule.get('type')!r}", Side.RULES)
        return alike

    def cell(self, key: int) -> DifferingCellRecord:
        """Returns a cell with the text of both sides."""
        return differing_cell(
            name_of(key), text_of(self.expected.get(key)), text_of(self.actual.get(key))
        )


def check_cell(judged: Judged, rule: Rule) -> RuleDifference | None:
    """Checks the properties of one cell that the rule names."""
    target = judged.target(rule, "sheet_idx")
    coordinate = option_of(rule, "coordinate")
    position = parse_cell(coordinate) if isinstance(coordinate, str) else None
    if position is None:
        raise PublishedError("ValueError", f"{coordinate} is not a cell", Side.RULES)
    key = cell_key(*position)
    looks = WholeLooks(target.book, target.tab.name)
    for name, method in option_of(rule, "props").items():
        kind = ""
        if name == "value":
            grid = judged.grid(target)
            if key in grid.not_calculated:
                kind = NOT_CALCULATED
            value: object = _comparable(grid.values.get(key))
        else:
            value = looks.property(name, key)
        if kind or not method_holds(value, method):
            where = f"{name} of {coordinate}"
            words = f"{property_in_words(name)} {method_in_words(method)}"
            cell = differing_cell(cell_name(*position), words, value)
            return RuleDifference(asked_of(method), value, where, target.tab.name, kind, (cell,), 1)
    return None


def _cells(keys: Sequence[int]) -> str:
    named = [name_of(key) for key in keys[:5]]
    more = f" and {len(keys) - 5} more cells" if len(keys) > 5 else ""
    return ", ".join(named) + more


def _comparable(value: CellValue) -> object:
    """Returns a value in the JSON form that rules use."""
    comparable = json_value(value)
    if isinstance(comparable, dict):
        return next(iter(comparable.values()))
    return comparable
