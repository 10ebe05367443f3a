"""The judge's own reading of rule lists, without the faults of the published evaluators.

Formulas are computed. Sheets are found through the workbook's relationships. A missing sheet never
equals a sheet without objects. Objects are compared one to one, and as wholes. A difference names
the sheets that its rule compares and the properties that the rule requires.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from judge.compare.cells.computing import Compute
from judge.compare.rules import cell_rules, object_rules
from judge.compare.rules.book import Book, Rule, SheetRef, sheet_named
from judge.compare.rules.judged import Judged, MissingSheetError, RuleDifference
from judge.compare.rules.options import place_of
from judge.compare.rules.published_error import PublishedError, Side
from judge.compare.rules.words import properties_in_words, rule_in_words
from judge.core.finding import FoundDifference, Subject, about, differing_cell, sheet_of
from judge.core.records.cases import AboutRecord, DifferingCellRecord, SheetRecord
from judge.core.submission import Origin
from judge.workbook.address import cell_name, parse_cell

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
_ASKED = ("chart_props", "pivot_props", "props")
_MAX_ASKED = 40


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
    asked: object = next((rule[name] for name in _ASKED if name in rule), ())
    names = tuple(map(str, asked)) if isinstance(asked, list | tuple | dict) else ()
    if rule.get("type") == "check_cell" and not cells:
        cells = _checked_cell(rule)
        all_cells = len(cells)
    decimals = rule.get("precision", 4) if rule.get("type") == "sheet_data" else None
    key = "sheet_idx" if "sheet_idx" in rule else "sheet_idx0"
    return about(
        subject,
        _sheet(rule.get("sheet_idx1"), answer, gold),
        _sheet(rule.get(key), answer, gold),
        names[:_MAX_ASKED],
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
    "sheet_data": cell_rules.sheet_data,
    "sheet_print": cell_rules.sheet_print,
    "sheet_fuzzy": cell_rules.sheet_fuzzy,
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
    "check_cell": cell_rules.check_cell,
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
