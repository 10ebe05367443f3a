"""Rules about values and text of cells, as the judge reads them.

Every rule is a function of the two workbooks and the rule, which gives None if the rule holds. It
raises ``PublishedError`` if the gold or the rule is at fault, ``MissingSheetError`` if the answer
lacks a sheet, ``WorkbookError`` if a workbook is broken or over a limit.
"""

from __future__ import annotations

from collections.abc import Sequence

from judge.rules.judged import NOT_CALCULATED, Judged, Said
from judge.rules.methods import asked_of, method_holds, places_of, window_of
from judge.rules.naming import Rule, option_of
from judge.rules.raised import PublishedError, Side
from judge.rules.texts import prepared_text, texts_alike
from judge.rules.values import text_of, values_agree
from judge.rules.whole_looks import WholeLooks
from judge.workbook.address import COLUMN_BITS, COLUMN_MASK, cell_key, cell_name, parse_cell
from judge.workbook.cell import CellValue
from judge.workbook.facts.render import json_value


def sheet_data(judged: Judged, rule: Rule) -> Said | None:
    """Whether all values of two sheets agree."""
    decimals = rule.get("precision", 4)
    if not isinstance(decimals, int):
        raise PublishedError("TypeError", "decimals must be an integer", Side.RULES)
    expected, actual = judged.pair(rule)
    first, second = judged.grid(expected), judged.grid(actual)
    missing = first.not_calculated.keys() | second.not_calculated.keys()
    wrong = [
        key
        for key in first.values.keys() | second.values.keys()
        if key not in missing
        and not values_agree(first.values.get(key), second.values.get(key), decimals)
    ]
    if not wrong and not missing:
        return None
    key = min(wrong or missing)
    return Said(
        json_value(first.values.get(key)),
        json_value(second.values.get(key)),
        _cells(sorted(wrong) or sorted(missing)),
        actual.tab.name,
        "" if wrong else NOT_CALCULATED,
    )


def sheet_print(judged: Judged, rule: Rule) -> Said | None:
    """Whether the printed lines of two sheets agree, whatever white space is around them."""
    expected, actual = judged.pair(rule)
    lines = []
    for target in (expected, actual):
        written = target.book.lines(target.tab.name)
        if written is None and target.book.unprinted:
            why = target.book.unprinted
            return Said(None, None, why, target.tab.name, NOT_CALCULATED)
        if written is None and target.book.side is Side.GOLD:
            raise PublishedError("FileNotFoundError", "the gold has no text file", Side.GOLD)
        stripped = [each.strip() for each in written or ()]
        while stripped and not stripped[-1]:
            stripped.pop()
        lower = rule.get("ignore_case", False)
        lines.append([each.lower() if lower else each for each in stripped])
    if lines[0] == lines[1]:
        return None
    row = next(
        (n for n, pair in enumerate(zip(*lines, strict=False)) if pair[0] != pair[1]),
        min(map(len, lines)),
    )
    said = [each[row] if row < len(each) else None for each in lines]
    return Said(said[0], said[1], f"line {row + 1}", actual.tab.name)


def sheet_fuzzy(judged: Judged, rule: Rule) -> Said | None:
    """Whether the text of ranges is alike."""
    expected, actual = judged.pair(rule)
    first, second = judged.grid(expected).values, judged.grid(actual).values
    for each in option_of(rule, "rules"):
        for place in places_of(option_of(each, "range")):
            window = window_of(place)
            for row in range(window.min_row, window.max_row + 1):
                for column in range(window.min_column, window.max_column + 1):
                    judged.answer.workbook.package.budget.take_cells(1)
                    key = cell_key(row, column)
                    wanted, found = text_of(first.get(key)), text_of(second.get(key))
                    alike = texts_alike(
                        each, prepared_text(each, found), prepared_text(each, wanted)
                    )
                    if alike is None:
                        raise PublishedError(
                            "ValueError", f"no type {each.get('type')!r}", Side.RULES
                        )
                    if not alike:
                        return Said(wanted, found, cell_name(row, column), actual.tab.name)
    return None


def check_cell(judged: Judged, rule: Rule) -> Said | None:
    """Whether the asked properties of one cell are as the rule says."""
    target = judged.target(rule, "sheet_idx")
    coordinate = option_of(rule, "coordinate")
    place = parse_cell(coordinate) if isinstance(coordinate, str) else None
    if place is None:
        raise PublishedError("ValueError", f"{coordinate} is not a cell", Side.RULES)
    key = cell_key(*place)
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
            return Said(asked_of(method), value, where, target.tab.name, kind)
    return None


def _cells(keys: Sequence[int]) -> str:
    named = [cell_name(key >> COLUMN_BITS, key & COLUMN_MASK) for key in keys[:5]]
    more = f" and {len(keys) - 5} more cells" if len(keys) > 5 else ""
    return ", ".join(named) + more


def _comparable(value: CellValue) -> object:
    """A value as rules write it in JSON."""
    said = json_value(value)
    if isinstance(said, dict):
        return next(iter(said.values()))
    return said
