"""The judge's own reading of rule lists, without the faults of the published evaluators.

Formulas are computed. Sheets are found through the workbook's relationships. A missing sheet never
equals a sheet without objects. Objects are compared one to one, and as wholes. A difference names
the sheets that its rule compares and the properties that the rule requires.

Each type of rule is a function of the two workbooks and the rule; those about values and text of
cells are here. It returns None if the rule holds. It raises ``PublishedError`` if the gold or the
rule is at fault, ``MissingSheetError`` if the answer lacks a sheet, and ``WorkbookError`` if a
workbook is broken or over a limit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

from judge.compare.cells.computing import Compute
from judge.compare.published.spider2v.looks import name_of
from judge.compare.published_error import PublishedError, Side
from judge.compare.rules import object_rules
from judge.compare.rules.book import (
    MAX_CELLS,
    NOT_CALCULATED,
    Book,
    Judged,
    MissingSheetError,
    Rule,
    RuleDifference,
    SheetRef,
    Target,
    option_of,
    sheet_named,
    text_of,
    values_agree,
)
from judge.compare.rules.looks import WholeLooks
from judge.compare.rules.methods import (
    method_holds,
    places_of,
    prepared_text,
    requirement_of,
    texts_alike,
    window_of,
)
from judge.compare.rules.options import place_of
from judge.compare.rules.words import (
    method_in_words,
    properties_in_words,
    property_in_words,
    rule_in_words,
)
from judge.core.finding import FoundDifference, Subject, about, differing_cell, sheet_of
from judge.core.records.cases import AboutRecord, DifferingCellRecord, SheetRecord
from judge.core.submission import Origin
from judge.workbook.address import Window, cell_key, cell_name, parse_cell
from judge.workbook.cell import CellValue, json_value

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
            return RuleDifference(
                requirement_of(method), value, where, target.tab.name, kind, (cell,), 1
            )
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


_SUBJECTS: Mapping[str, Subject] = {
    "sheet_name": Subject.SHEETS,
    "sheet_data": Subject.CELLS,
    "sheet_print": Subject.LINES,
    "sheet_fuzzy": Subject.CELLS,
    "sparkline": Subject.SPARKLINES,
    "chart": Subject.CHARTS,
    "style": Subject.LOOKS,
    "freeze": Subject.PANES,
    "zoom": Subject.ZOOM,
    "data_validation": Subject.VALIDATIONS,
    "row_props": Subject.ROWS,
    "col_props": Subject.COLUMNS,
    "filter": Subject.FILTER,
    "pivot_table": Subject.PIVOTS,
    "check_cell": Subject.LOOKS,
}
_PROPERTY_OPTIONS = ("chart_props", "pivot_props", "props")
_MAX_PROPERTIES = 40
"""How many properties of a rule pages receive; a rule list may be hostile."""


def about_rule(
    rule: Rule,
    answer: Book,
    gold: Book | None,
    cells: Sequence[DifferingCellRecord] = (),
    all_cells: int = 0,
) -> AboutRecord | None:
    """Returns the sheets and objects of a rule; None if its type does not exist.

    Args:
        rule: the rule as written in the suite.
        answer: the workbook that is judged.
        gold: the gold; None if the task has no gold.
        cells: the first cells that differ.
        all_cells: how many cells differ in total.
    """
    subject = _SUBJECTS.get(str(rule.get("type")))
    if subject is None:
        return None
    listed: object = next((rule[name] for name in _PROPERTY_OPTIONS if name in rule), ())
    names = tuple(map(str, listed)) if isinstance(listed, list | tuple | dict) else ()
    if rule.get("type") == "check_cell" and not cells:
        cells = _checked_cell(rule)
        all_cells = len(cells)
    decimals = rule.get("precision", 4) if rule.get("type") == "sheet_data" else None
    key = "sheet_idx" if "sheet_idx" in rule else "sheet_idx0"
    return about(
        subject,
        _sheet(rule.get("sheet_idx1"), answer, gold),
        _sheet(rule.get(key), answer, gold),
        names[:_MAX_PROPERTIES],
        decimals if isinstance(decimals, int) else None,
        tuple(cells),
        all_cells,
    )


def _checked_cell(rule: Rule) -> tuple[DifferingCellRecord, ...]:
    """Returns the cell that a rule checks, with the properties that the rule requires."""
    coordinate, props = rule.get("coordinate"), rule.get("props")
    cell = parse_cell(coordinate) if isinstance(coordinate, str) else None
    if cell is None or not isinstance(props, Mapping):
        return ()
    return (differing_cell(cell_name(*cell), detail=properties_in_words(props)),)


def _sheet(index: object, answer: Book, gold: Book | None) -> SheetRecord | None:
    """Returns the sheet that a rule names; None if there is no such sheet."""
    try:
        ref: SheetRef = sheet_named(index, answer, gold)
    except PublishedError:
        return None
    if ref.book is None or ref.name not in ref.book.names:
        return None
    return sheet_of(ref.name, in_gold=ref.book.side is Side.GOLD)


MISSING_SHEET = "missing_sheet"

_CHECKS: Mapping[str, Callable[[Judged, Rule], RuleDifference | None]] = {
    "sheet_name": object_rules.sheet_name,
    "sheet_data": sheet_data,
    "sheet_print": sheet_print,
    "sheet_fuzzy": sheet_fuzzy,
    "sparkline": object_rules.sparkline,
    "chart": object_rules.chart,
    "style": object_rules.style,
    "freeze": object_rules.freeze,
    "zoom": object_rules.zoom,
    "data_validation": object_rules.data_validation,
    "row_props": object_rules.row_props,
    "col_props": object_rules.col_props,
    "filter": object_rules.filter_rule,
    "pivot_table": object_rules.pivot_table,
    "check_cell": check_cell,
}


class StandardJudge:
    """Checks rules on two workbooks.

    Args:
        answer: the workbook to judge.
        gold: the gold; None if the task has no gold.
        compute: computes formulas.
        origin: where the answer comes from.
    """

    def __init__(self, answer: Book, gold: Book | None, compute: Compute, origin: Origin) -> None:
        self._judged = Judged(answer, gold, compute, origin)

    def differences(self, rules: Sequence[Rule]) -> list[FoundDifference]:
        """Returns the rules that do not hold: at most one difference for each rule.

        Raises:
            PublishedError: the gold or the rules are at fault.
            WorkbookError: a workbook is broken or over a limit.
            RecalcError: an engine cannot be started.
        """
        differences = []
        for index, rule in enumerate(rules):
            kind = str(rule.get("type"))
            check = _CHECKS.get(kind)
            if check is None:
                raise PublishedError(
                    "NotImplementedError", f"Unimplemented sheet check: {kind}", Side.RULES
                )
            try:
                outcome = check(self._judged, rule)
            except MissingSheetError as missing:
                outcome = RuleDifference(missing.name, None, sheet=missing.name, kind=MISSING_SHEET)
            if outcome is not None:
                differences.append(self._difference(index, rule, outcome))
        return differences

    def _difference(self, index: int, rule: Rule, outcome: RuleDifference) -> FoundDifference:
        return FoundDifference(
            outcome.kind or str(rule.get("type")),
            place_of(index, rule, outcome.sheet),
            outcome.expected,
            outcome.actual,
            outcome.detail,
            index + 1,
            rule_in_words(rule),
            about_rule(
                rule, self._judged.answer, self._judged.gold, outcome.cells, outcome.all_cells
            ),
        )
