"""The judge's own reading of rule lists: what the published evaluators get wrong is right here.

Formulas are computed; sheets are found by their relationship; a sheet that is missing never equals
one without objects; objects are compared one to one and as wholes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from judge.comparison.computing import Compute
from judge.core.answer import Origin
from judge.core.finding import DifferencePlace, FoundDifference, PlaceKind
from judge.rules import whole_objects as whole
from judge.rules.book import Book, SheetRef
from judge.rules.matching import unmatched
from judge.rules.methods import matches, places_of, window_of
from judge.rules.options import described
from judge.rules.published import Rule, prepared_text, texts_alike
from judge.rules.raised import PublishedError, Side
from judge.rules.values import Grid, Grids, text_of, values_agree
from judge.rules.wanted_validations import all_validations, applies, cells_with, left_over
from judge.rules.whole_looks import WholeLooks, differing_looks
from judge.workbook.address import COLUMN_BITS, COLUMN_MASK, cell_key, cell_name, parse_cell
from judge.workbook.cell import CellValue
from judge.workbook.facts.render import json_value
from judge.workbook.facts.sheets import filter_of, sparklines_of, view_of
from judge.workbook.workbook_parts import Tab

NOT_CALCULATED = "not_calculated"
MISSING_SHEET = "missing_sheet"


@dataclass(frozen=True, slots=True)
class _Target:
    """A sheet that a rule names, in a book that has it."""

    book: Book
    tab: Tab


class _MissingSheetError(Exception):
    """The answer lacks a sheet."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.name = name


class StandardJudge:
    """Checks rules on two workbooks.

    Args:
        answer: the workbook to judge.
        gold: the gold; None if the task has none.
        compute: computes formulas.
        origin: where the answer comes from.
    """

    def __init__(self, answer: Book, gold: Book | None, compute: Compute, origin: Origin) -> None:
        self._answer = answer
        self._gold = gold
        self._compute = compute
        self._origin = origin
        self._grids = {
            book.side: Grids(book, compute, origin if book.side is Side.ANSWER else Origin.GOLD)
            for book in (answer, gold)
            if book is not None
        }

    def differences(self, rules: Sequence[Rule]) -> list[FoundDifference]:
        """What does not hold: at most one entry for each rule.

        Raises:
            PublishedError: the gold or the rules are at fault.
            WorkbookError: a workbook is broken or over a limit.
            RecalcError: an engine cannot be started.
        """
        found = []
        for index, rule in enumerate(rules):
            kind = str(rule.get("type"))
            check = _CHECKS.get(kind)
            if check is None:
                raise PublishedError(
                    "NotImplementedError", f"Unimplemented sheet check: {kind}", Side.RULES
                )
            name = f"{index + 1} ({described(rule)})"
            try:
                said = check(self, rule)
            except _MissingSheetError as missing:
                place = DifferencePlace(PlaceKind.RULE, name, missing.name)
                found.append(FoundDifference(MISSING_SHEET, place, missing.name, None))
                continue
            if said is not None:
                found.append(
                    FoundDifference(
                        said.kind or kind,
                        DifferencePlace(PlaceKind.RULE, name, said.sheet),
                        said.expected,
                        said.actual,
                        said.detail,
                    )
                )
        return found

    # -- sheets ----------------------------------------------------------------------------------

    def _target(self, rule: Rule, option: str) -> _Target:
        """The sheet that a rule names.

        Raises:
            PublishedError: the rule or the gold is at fault.
            _MissingSheetError: the answer lacks it.
        """
        ref = sheet_named(_option(rule, option), self._answer, self._gold)
        if ref.book is None:
            raise PublishedError("ValueError", "the rule requires a gold", Side.RULES)
        tab = ref.book.tab(ref.name)
        if tab is None:
            if ref.book.side is Side.GOLD:
                raise PublishedError(
                    "KeyError", f"the gold has no sheet {rule[option]!r}", Side.GOLD
                )
            raise _MissingSheetError(ref.name or str(rule[option]))
        return _Target(ref.book, tab)

    def _pair(self, rule: Rule) -> tuple[_Target, _Target]:
        """The sheet of the gold, or the second, and that of the answer.

        Raises:
            PublishedError: the rule or the gold is at fault, such as a rule that cannot fail.
            _MissingSheetError: the answer lacks one of them.
        """
        first, second = (
            sheet_named(_option(rule, name), self._answer, self._gold)
            for name in ("sheet_idx0", "sheet_idx1")
        )
        if first.book is not None and (first.book, first.name) == (second.book, second.name):
            raise PublishedError(
                "ValueError", f"sheet {first.name!r} is compared with itself", Side.RULES
            )
        expected = self._target(rule, "sheet_idx1")
        return expected, self._target(rule, "sheet_idx0")

    def _grid(self, target: _Target) -> Grid:
        return self._grids[target.book.side].sheet(target.tab.name)

    # -- rules -----------------------------------------------------------------------------------

    def _sheet_name(self, _: Rule) -> Said | None:
        if self._gold is None:
            raise PublishedError("ValueError", "the rule requires a gold", Side.RULES)
        expected, actual = (
            [tab.name for tab in book.facts.tabs] for book in (self._gold, self._answer)
        )
        return None if expected == actual else Said(expected, actual)

    def _sheet_data(self, rule: Rule) -> Said | None:
        decimals = rule.get("precision", 4)
        if not isinstance(decimals, int):
            raise PublishedError("TypeError", "decimals must be an integer", Side.RULES)
        expected, actual = self._pair(rule)
        first, second = self._grid(expected), self._grid(actual)
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

    def _sheet_print(self, rule: Rule) -> Said | None:
        expected, actual = self._pair(rule)
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

    def _sheet_fuzzy(self, rule: Rule) -> Said | None:
        expected, actual = self._pair(rule)
        first, second = self._grid(expected).values, self._grid(actual).values
        for each in _option(rule, "rules"):
            for place in places_of(_option(each, "range")):
                window = window_of(place)
                for row in range(window.min_row, window.max_row + 1):
                    for column in range(window.min_column, window.max_column + 1):
                        self._answer.workbook.package.budget.take_cells(1)
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

    def _sparkline(self, rule: Rule) -> Said | None:
        return self._described(
            rule,
            lambda target, _: [
                whole.Described(
                    f"sparkline at {each.place}",
                    (each.kind, each.place.replace("$", ""), whole.plain(each.reference)),
                )
                for each in sparklines_of(target.book.facts.tree(target.tab))
            ],
            (),
        )

    def _chart(self, rule: Rule) -> Said | None:
        return self._described(
            rule,
            lambda target, asked: whole.charts(target.book, target.tab, asked),
            rule.get("chart_props", ()),
        )

    def _pivot_table(self, rule: Rule) -> Said | None:
        return self._described(
            rule,
            lambda target, asked: whole.pivots(target.book, target.tab, asked),
            rule.get("pivot_props", ()),
        )

    def _described(
        self,
        rule: Rule,
        read: Callable[[_Target, Sequence[str]], list[whole.Described]],
        asked: Sequence[str],
    ) -> Said | None:
        """Objects of both sheets, matched one to one."""
        expected, actual = self._pair(rule)
        lacking, extra = unmatched(
            read(expected, asked), read(actual, asked), lambda a, b: a.content == b.content
        )
        if not lacking and not extra:
            return None
        first, second = (each[0] if each else None for each in (lacking, extra))
        return Said(
            None if first is None else whole.as_json(first.content),
            None if second is None else whole.as_json(second.content),
            f"{len(lacking)} without a counterpart in the output, {len(extra)} without one in the "
            f"gold; {(first or second or whole.Described('', None)).name}",
            actual.tab.name,
        )

    def _style(self, rule: Rule) -> Said | None:
        expected, actual = self._pair(rule)
        found = differing_looks(
            WholeLooks(expected.book, expected.tab.name),
            WholeLooks(actual.book, actual.tab.name),
            tuple(rule.get("props", ())),
            compute=self._compute,
            origin=self._origin,
        )
        if not found:
            return None
        cell, said = next(iter(found.items()))
        more = f" and {len(found) - 1} more cells" if len(found) > 1 else ""
        return Said("the gold's look", said, f"{cell}{more}", actual.tab.name)

    def _freeze(self, rule: Rule) -> Said | None:
        expected, actual = self._pair(rule)
        panes = []
        for target in (expected, actual):
            pane = view_of(target.book.facts.tree(target.tab)).pane
            frozen = pane is not None and pane.frozen
            panes.append([pane.columns, pane.rows] if pane is not None and frozen else None)
        return (
            None
            if panes[0] == panes[1]
            else Said(panes[0], panes[1], "columns, rows", actual.tab.name)
        )

    def _zoom(self, rule: Rule) -> Said | None:
        target = self._target(rule, "sheet_idx")
        zoom = view_of(target.book.facts.tree(target.tab)).zoom
        if matches(zoom, rule):
            return None
        return Said(_asked(rule), zoom, sheet=target.tab.name)

    def _data_validation(self, rule: Rule) -> Said | None:
        target = self._target(rule, "sheet_idx")
        found = all_validations(target.book, target.tab)
        lacking, extra = left_over(found, _option(rule, "dv_props"))
        if not lacking and not extra:
            return None
        return Said(
            lacking[0] if lacking else None,
            " ".join(cells_with(extra[0])) if extra else None,
            f"{len(lacking)} not met, {len(extra)} beyond the requested ones",
            target.tab.name,
        )

    def _row_props(self, rule: Rule) -> Said | None:
        return self._lines(rule, whole.rows, "row")

    def _col_props(self, rule: Rule) -> Said | None:
        return self._lines(rule, whole.columns, "column")

    def _lines(
        self, rule: Rule, read: Callable[[Book, Tab, str], dict[int, object]], what: str
    ) -> Said | None:
        expected, actual = self._pair(rule)
        for name in rule.get("props", ()):
            first = read(expected.book, expected.tab, name)
            second = read(actual.book, actual.tab, name)
            for line in sorted(first.keys() | second.keys()):
                if first.get(line) != second.get(line):
                    return Said(
                        first.get(line),
                        second.get(line),
                        f"{name} of {what} {line}",
                        actual.tab.name,
                    )
        return None

    def _filter(self, rule: Rule) -> Said | None:
        expected, actual = self._pair(rule)
        contents = [
            whole.filter_content(filter_of(each.book.facts.tree(each.tab).child("autoFilter")))
            for each in (expected, actual)
        ]
        if contents[0] == contents[1]:
            return None
        first, second = map(whole.as_json, contents)
        return Said(first, second, sheet=actual.tab.name)

    def _check_cell(self, rule: Rule) -> Said | None:
        target = self._target(rule, "sheet_idx")
        coordinate = _option(rule, "coordinate")
        place = parse_cell(coordinate) if isinstance(coordinate, str) else None
        if place is None:
            raise PublishedError("ValueError", f"{coordinate} is not a cell", Side.RULES)
        key = cell_key(*place)
        looks = WholeLooks(target.book, target.tab.name)
        for name, method in _option(rule, "props").items():
            kind = ""
            if name == "value":
                grid = self._grid(target)
                if key in grid.not_calculated:
                    kind = NOT_CALCULATED
                value: object = _comparable(grid.values.get(key))
            else:
                value = looks.property(name, key)
            if kind or not applies(value, method):
                where = f"{name} of {coordinate}"
                return Said(_asked(method), value, where, target.tab.name, kind)
        return None


@dataclass(frozen=True, slots=True)
class Said:
    """What does not hold of a rule.

    Attributes:
        expected, actual: as JSON.
        detail: where in the sheet.
        sheet: the sheet of the answer.
        kind: class of the difference, if it is not the type of the rule.
    """

    expected: object
    actual: object
    detail: str = ""
    sheet: str = ""
    kind: str = ""


_CHECKS: Mapping[str, Callable[[StandardJudge, Rule], Said | None]] = {
    name: getattr(StandardJudge, f"_{name}")
    for name in (
        "sheet_name",
        "sheet_data",
        "sheet_print",
        "sheet_fuzzy",
        "sparkline",
        "chart",
        "style",
        "freeze",
        "zoom",
        "data_validation",
        "row_props",
        "col_props",
        "filter",
        "pivot_table",
        "check_cell",
    )
}


def sheet_named(index: object, answer: Book, gold: Book | None) -> SheetRef:
    """The book and the sheet that a rule names; an index beyond the sheets gives an empty name.

    Raises:
        PublishedError: it is not a way to name a sheet.
    """
    if isinstance(index, int):
        return SheetRef(answer, _nth(answer.names, index))
    if isinstance(index, str) and index[:2] in {"RI", "EI", "RN", "EN"}:
        book = answer if index[0] == "R" else gold
        if index[1] == "N" or book is None:
            return SheetRef(book, index[2:])
        try:
            return SheetRef(book, _nth(book.names, int(index[2:])))
        except ValueError:
            pass
    raise PublishedError("ValueError", f"unrecognized sheet {index!r}", Side.RULES)


def _nth(names: Sequence[str], index: int) -> str:
    return names[index] if -len(names) <= index < len(names) else ""


def _option(rule: Rule, name: str) -> Any:
    if name not in rule:
        raise PublishedError("KeyError", repr(name), Side.RULES)
    return rule[name]


def _cells(keys: Sequence[int]) -> str:
    named = [cell_name(key >> COLUMN_BITS, key & COLUMN_MASK) for key in keys[:5]]
    more = f" and {len(keys) - 5} more cells" if len(keys) > 5 else ""
    return ", ".join(named) + more


def _asked(rule: Mapping[str, Any]) -> str:
    return f"{rule.get('method')} {rule.get('ref')!r}"


def _comparable(value: CellValue) -> object:
    """A value as rules write it in JSON."""
    said = json_value(value)
    if isinstance(said, dict):
        return next(iter(said.values()))
    return said
