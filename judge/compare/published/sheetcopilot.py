"""Judges boards as the published evaluation judges them in Excel, its faults included.

Source: agent/utils/compare_sheets.py and agent/evaluation.py of the published repository;
docs/boards.md lists what they do not check. Formulas have the values that Excel would show, so a
value is computed if the file has none.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from decimal import Decimal

from judge.compare.boards.board import Board, Differences, Evidence, shown, where
from judge.compare.boards.cells import FIELDS, BoardBook, SheetCells, differing_field
from judge.compare.boards.charts import ChartView, charts_of, numbers_agree, same_values
from judge.compare.boards.conditions import RuleView, rules_of, same_group
from judge.compare.boards.objects import PivotView, axes_agree, pivots_of
from judge.compare.published_error import PublishedError
from judge.core.finding import FoundDifference
from judge.workbook.address import Window, cell_key, parse_window
from judge.workbook.cell import CellValue, ErrorValue
from judge.workbook.facts.sheets import view_of
from judge.workbook.workbook_parts import Tab

_MANY_ROWS, _STEP = 200, 100


class OfficialJudge:
    """Judges an answer by a board, as the published evaluation does.

    Args:
        answer: the workbook to judge.
        gold: the gold.
        board: its board.
    """

    def __init__(self, answer: BoardBook, gold: BoardBook, board: Board) -> None:
        self._answer = answer
        self._gold = gold
        self._board = board
        self._differences = Differences(board, [tab.name for tab in gold.tabs])

    def differences(self) -> list[FoundDifference]:
        """Returns the differences for which the published evaluation rejects the answer.

        Raises:
            PublishedError: the published evaluation raises.
            WorkbookError: a workbook is broken or over a limit.
            RecalcError: an engine cannot be started.
        """
        golds, answers = self._gold.tabs, self._answer.tabs
        if len(golds) != len(answers):
            self._differences.sheet_count(len(golds), len(answers))
            return self._differences.listed
        checked = [number for number in range(1, len(golds) + 1) if number in self._board.sheets]
        for number in checked:
            self._sheet(number, golds[number - 1], answers[number - 1])
        if all("view" in self._board.sheets[number] for number in checked):
            self._panes(checked)
        return self._differences.listed

    def _sheet(self, number: int, gold: Tab, answer: Tab) -> None:
        categories = self._board.sheets[number]
        if "cells" in categories:
            self._cells(number, gold, answer, categories["cells"])
        if "charts" in categories:
            self._charts(number, gold, answer, categories["charts"])
        if "pivot_tables" in categories:
            self._pivots(number, gold, answer, categories["pivot_tables"])
        if "filters" in categories:
            self._filters(number, gold, answer)
        if "format_conditions" in categories:
            self._conditions(number, gold, answer, categories["format_conditions"])

    # -- cells -----------------------------------------------------------------------------------

    def _cells(self, number: int, gold: Tab, answer: Tab, required: Sequence[str]) -> None:
        first, second = self._gold.sheet(gold), self._answer.sheet(answer)
        rows, columns = first.table_size
        if (rows, columns) != second.table_size:
            self._differences.add(
                (number, "cells", "values"),
                answer.name,
                Evidence(
                    f"table of {rows} x {columns}", "table of {} x {}".format(*second.table_size)
                ),
            )
            return
        single = _single_header(first) if rows == columns == 1 else None
        package = self._answer.book.workbook.package
        with package.blamed():
            package.budget.take_cells(rows * columns // (_STEP if rows > _MANY_ROWS else 1))
        free = list(range(1, columns + 1))
        for column in range(1, columns + 1):
            header = single or _com(first, cell_key(1, column))[1]
            match = next(
                (
                    candidate
                    for candidate in free
                    if header == _com(second, cell_key(1, candidate))[1]
                ),
                None,
            )
            if match is None:
                self._differences.add(
                    (number, "cells", "values"),
                    answer.name,
                    Evidence(shown(first.values.get(cell_key(1, column))), None, "no such header"),
                )
                return
            free.remove(match)
            for row in range(1, rows + 1, _STEP if rows > _MANY_ROWS else 1):
                keys = cell_key(row, column), cell_key(row, match)
                if self._cell(number, answer.name, (first, second), keys, required):
                    return

    def _cell(
        self,
        number: int,
        sheet: str,
        sides: tuple[SheetCells, SheetCells],
        keys: tuple[int, int],
        required: Sequence[str],
    ) -> bool:
        """Returns whether a pair of cells differs; the first such pair ends the comparison."""
        first, second = sides
        if "values" in required and not _values_agree(_com(first, keys[0]), _com(second, keys[1])):
            missing = second.not_calculated.get(keys[1]) or first.not_calculated.get(keys[0])
            shown_values = Evidence(
                shown(first.values.get(keys[0])), shown(second.values.get(keys[1])), where(keys[1])
            )
            self._differences.add((number, "cells", "values"), sheet, shown_values, missing=missing)
            return True
        looks = first.look(keys[0]), second.look(keys[1])
        if "formatting" in required:
            name = differing_field(*looks, FIELDS, rounded=False)
            if name is not None:
                shown_values = Evidence(
                    getattr(looks[0], name), getattr(looks[1], name), f"{name} of {where(keys[1])}"
                )
                self._differences.add((number, "cells", "formatting"), sheet, shown_values)
                return True
        # Because of the precedence of its operators, the class of the number format is compared for
        # every board.
        classes = looks[0].format_class, looks[1].format_class
        if classes[0] != classes[1]:
            shown_values = Evidence(*classes, f"number format of {where(keys[1])}")
            self._differences.add((number, "cells", "formatting"), sheet, shown_values)
            return True
        if "hyperlink" in required:
            links = first.links.get(keys[0], ()), second.links.get(keys[1], ())
            if links[0] != links[1]:
                shown_values = Evidence(list(links[0]), list(links[1]), where(keys[1]))
                self._differences.add((number, "cells", "hyperlink"), sheet, shown_values)
                return True
        return False

    # -- objects ---------------------------------------------------------------------------------

    def _charts(self, number: int, gold: Tab, answer: Tab, required: Sequence[str]) -> None:
        first, second = charts_of(self._gold, gold), charts_of(self._answer, answer)
        if len(first) != len(second):
            shown_values = Evidence(len(first), len(second))
            self._differences.add((number, "charts", "count"), answer.name, shown_values)
            return
        failed = [[_chart_fails(a, b, required) for b in second] for a in first]
        # Pairs are counted, so that two equal charts give four and are never accepted.
        matching = sum(not value for line in failed for value in line)
        if matching != len(first):
            names = [failure for line in failed for failure in line if failure is not None]
            name = names[0] if names else required[0]
            shown_values = Evidence(
                [str(chart) for chart in first],
                [str(chart) for chart in second],
                f"{matching} of the pairs of charts agree, {len(first)} have to",
            )
            self._differences.add((number, "charts", name), answer.name, shown_values)

    def _pivots(self, number: int, gold: Tab, answer: Tab, required: Sequence[str]) -> None:
        first, second = pivots_of(self._gold, gold), pivots_of(self._answer, answer)
        if len(first) != len(second):
            shown_values = Evidence(len(first), len(second))
            self._differences.add((number, "pivot_tables", "count"), answer.name, shown_values)
            return
        results = [_pivot_fails(a, b, required) for a in first for b in second]
        failed = [result for result in results if result is not None]
        if failed and len(failed) == len(results):  # one matching pair is enough
            shown_values = Evidence(
                [str(pivot) for pivot in first], [str(pivot) for pivot in second]
            )
            self._differences.add((number, "pivot_tables", failed[0]), answer.name, shown_values)

    def _filters(self, number: int, gold: Tab, answer: Tab) -> None:
        position = (number, "filters", "filters")
        windows = [
            _filter_window(owner, tab)
            for owner, tab in ((self._gold, gold), (self._answer, answer))
        ]
        if windows[1] is None:
            self._differences.add(
                position, answer.name, Evidence(str(windows[0] or "a filter"), None)
            )
            return
        if windows[0] is None:
            raise PublishedError("AttributeError", "'NoneType' object has no attribute 'Range'")
        first, second = self._gold.sheet(gold), self._answer.sheet(answer)
        keys = first.visible(windows[0]), second.visible(windows[1])
        if len(keys[0]) != len(keys[1]):
            shown_values = Evidence(f"{len(keys[0])} cells shown", f"{len(keys[1])} cells shown")
            self._differences.add(position, answer.name, shown_values)
            return
        for one, other in zip(*keys, strict=True):
            if _com(first, one)[1] != _com(second, other)[1]:
                shown_values = Evidence(
                    shown(first.values.get(one)), shown(second.values.get(other)), where(other)
                )
                self._differences.add(position, answer.name, shown_values)
                return

    def _conditions(self, number: int, gold: Tab, answer: Tab, required: Sequence[str]) -> None:
        first, second = rules_of(self._gold, gold), rules_of(self._answer, answer)
        if len(first) != len(second):
            shown_values = Evidence(len(first), len(second))
            self._differences.add((number, "format_conditions", "count"), answer.name, shown_values)
            return
        failed = [_rule_fails(a, b, required) for a in first for b in second]
        if not failed or not all(failed):
            return  # no rules at all, or one matching pair, is enough
        # With one pair, only the board's properties count; with several, that no pair agrees.
        names = (
            [failure for failure in failed[0] if failure in required]
            if len(failed) == 1
            else failed[0]
        )
        if names:
            shown_values = Evidence([str(rule) for rule in first], [str(rule) for rule in second])
            self._differences.add(
                (number, "format_conditions", names[0]), answer.name, shown_values
            )

    # -- panes -----------------------------------------------------------------------------------

    def _panes(self, checked: Sequence[int]) -> None:
        """Compares panes.

        For the n-th sheet that the board checks, the published code takes the panes of the n-th
        sheet of the workbook.
        """
        golds, answers = self._gold.book.workbook.tabs, self._answer.book.workbook.tabs
        pairs = list(zip(golds, answers, strict=False))
        if any(tab.state != "visible" for tab in (*pairs[-1],)):
            pairs_of_panes: list[tuple[object, object]] = [((), None)] * len(pairs)
        else:
            if any(tab.state != "visible" for pair in pairs for tab in pair):
                raise PublishedError("TypeError", "'NoneType' object is not subscriptable")
            pairs_of_panes = [
                (pane_of(self._gold, first), pane_of(self._answer, second))
                for first, second in pairs
            ]
        for index, number in enumerate(checked):
            if index >= len(pairs):
                return
            first, second = pairs_of_panes[index]
            if first != second:
                shown_values = Evidence(first, second, f"sheet {index + 1} of the workbook")
                self._differences.add(
                    (number, "view", "freeze_pane"), answers[index].name, shown_values
                )


def pane_of(owner: BoardBook, tab: Tab) -> tuple[float, float]:
    """Returns how many rows are above the split of a sheet, and how many columns left of it."""
    pane = view_of(owner.book.facts.tree(tab)).pane
    return (0, 0) if pane is None else (pane.rows, pane.columns)


# -- values ---------------------------------------------------------------------------------------


def _com(sheet: SheetCells, key: int) -> tuple[str, object]:
    """Returns a cell's type and value as Excel gives them to a script: money as decimals."""
    value: CellValue = sheet.values.get(key)
    if value is None:
        # A formula always has a result: one without a value shows an empty string.
        return ("text", "") if key in sheet.filled else ("blank", None)
    if isinstance(value, bool):
        return "boolean", value
    if isinstance(value, str):
        return "text", value
    if isinstance(value, ErrorValue):
        return "error", value.code
    if isinstance(value, dt.datetime | dt.date):
        return "date", value
    number = sheet.serial(value)
    assert isinstance(number, int | float)
    if sheet.look(key).format_class == "currency":
        return "money", Decimal(repr(round(float(number), 4)))
    return "number", float(number)


def _values_agree(first: tuple[str, object], second: tuple[str, object]) -> bool:
    if first[0] != second[0]:
        return False
    a, b = first[1], second[1]
    if isinstance(a, str) and isinstance(b, str):
        return a.strip() == b.strip()
    if isinstance(a, float) and isinstance(b, float):
        return numbers_agree(a, b)
    return a == b


def _single_header(sheet: SheetCells) -> str:
    """The header of a one-cell table.

    It is the first letter of the value, because the value is a string and not rows.

    Raises:
        PublishedError: the value is not a string.
    """
    value = sheet.values.get(cell_key(1, 1))
    if not isinstance(value, str) or not value:
        kind = "NoneType" if value is None else type(value).__name__
        raise PublishedError("TypeError", f"'{kind}' object is not subscriptable")
    return value[0]


def _filter_window(owner: BoardBook, tab: Tab) -> Window | None:
    auto_filter = owner.book.facts.tree(tab).child("autoFilter")
    if auto_filter is None:
        return None
    return parse_window(auto_filter.attributes.get("ref", "").replace("$", "")) or Window(
        1, 1, 1, 1
    )


# -- what fails -----------------------------------------------------------------------------------


def _chart_fails(gold: ChartView, answer: ChartView, required: Sequence[str]) -> str | None:
    """Returns the first property that the board requires and that differs between two charts."""
    checks: Mapping[str, bool] = {
        "chart_type": gold.types == answer.types,
        "title": gold.title == answer.title,
        "legend": gold.legend == answer.legend,
        "axes": gold.axes == answer.axes,
    }
    for name, same in checks.items():
        if name in required and not same:
            return name
    if ("series" in required or "trendlines" in required) and not _series_agree(gold, answer):
        return "series"
    return None


def _series_agree(gold: ChartView, answer: ChartView) -> bool:
    left = list(answer.series)
    for one in gold.series:
        for index, series in enumerate(left):
            same = same_values(one.x, series.x) and same_values(one.y, series.y)
            if same and one.marker == series.marker:
                del left[index]
                break
        else:
            return False
    return not left


def _pivot_fails(gold: PivotView, answer: PivotView, required: Sequence[str]) -> str | None:
    if "source" in required and gold.written != answer.written:
        return "source"
    if "filters" in required and gold.fields != answer.fields:
        return "filters"
    if "rows" in required and not axes_agree(gold, answer):
        return "rows"
    if "values" in required and not set(gold.data) <= set(answer.data):
        return "values"
    return None


def _rule_fails(gold: RuleView, answer: RuleView, required: Sequence[str]) -> list[str]:
    """Returns the properties that differ between two rules, as the published code names them."""
    failures = []
    if gold.formulas[:1] != answer.formulas[:1]:
        failures.append("formula1")  # whether or not the board requires it
    if "color" in required and not _colours_agree(gold.color, answer.color):
        failures.append("color")
    if "fill_color" in required and not _colours_agree(gold.fill, answer.fill):
        # A fill on one side only is recorded as a text colour.
        failures.append("fill_color" if gold.fill and answer.fill else "color")
    failures.extend(
        name
        for name in ("bold", "italic", "underline")
        if name in required and getattr(gold, name) != getattr(answer, name)
    )
    return failures


def _colours_agree(first: str | None, second: str | None) -> bool:
    if first is None or second is None:
        return first == second
    return same_group(first, second)
