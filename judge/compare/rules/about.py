"""What a rule is about: the sheets that it compares and the properties that it asks for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from judge.compare.rules.book import Book, SheetRef
from judge.compare.rules.naming import Rule, sheet_named
from judge.compare.rules.raised import PublishedError, Side
from judge.compare.rules.words import properties_in_words
from judge.core.finding import About, DifferingCell, SheetOf, Subject
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
    cells: Sequence[DifferingCell] = (),
    all_cells: int = 0,
) -> About | None:
    """What a rule is about; None if there is no such type of rule.

    Args:
        rule: the rule as it is written.
        answer: the workbook that is judged.
        gold: the gold; None without one.
        cells: the first cells that differ.
        all_cells: how many differ.
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
    found = "sheet_idx" if "sheet_idx" in rule else "sheet_idx0"
    return About(
        subject,
        _sheet(rule.get("sheet_idx1"), answer, gold),
        _sheet(rule.get(found), answer, gold),
        names[:_MAX_ASKED],
        decimals if isinstance(decimals, int) else None,
        tuple(cells),
        all_cells,
    )


def _checked_cell(rule: Rule) -> tuple[DifferingCell, ...]:
    """The cell that a rule checks, with what it asks of it."""
    coordinate, props = rule.get("coordinate"), rule.get("props")
    place = parse_cell(coordinate) if isinstance(coordinate, str) else None
    if place is None or not isinstance(props, Mapping):
        return ()
    return (DifferingCell(cell_name(*place), detail=properties_in_words(props)),)


def _sheet(index: object, answer: Book, gold: Book | None) -> SheetOf | None:
    """The sheet that a rule names; None if there is no such sheet."""
    try:
        ref: SheetRef = sheet_named(index, answer, gold)
    except PublishedError:
        return None
    if ref.book is None or ref.name not in ref.book.names:
        return None
    return SheetOf(ref.name, ref.book.side is Side.GOLD)
