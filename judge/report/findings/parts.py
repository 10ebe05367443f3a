"""One kind of part of a page for each kind of thing that a rule is about."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from judge.compare.rules.words import properties_in_words
from judge.core.finding import Subject
from judge.core.records.cases import AboutRecord
from judge.report.findings import tables
from judge.report.findings.cells import show_values
from judge.report.findings.charts import show_charts
from judge.report.findings.looks import Side, show_looks
from judge.report.findings.pivots import show_pivots
from judge.report.grid import GridRules
from judge.report.grid_window import GridBounds
from judge.workbook.reader import Workbook

_POINTS, _FEW_POINTS = 200, 40
_MANY_CELLS = 30_000
"""Grids of at least so many cells leave room for all points of a chart."""


@dataclass(frozen=True, slots=True)
class Shown:
    """A difference with the sheets that show it.

    Attributes:
        about: what is on record of it.
        wanted: what was expected, as it is on record.
        gold: the sheet that shows what is right; None without one.
        output: the sheet that is judged; None if there is no such sheet.
        before: the input; None without one.
        rules: how the run judged.
        bounds: how much is shown.
    """

    about: AboutRecord
    wanted: object
    gold: tables.Sheet | None
    output: tables.Sheet | None
    before: Workbook | None
    rules: GridRules
    bounds: GridBounds


def part_of(shown: Shown) -> dict[str, Any] | None:
    """The part of a page that shows a difference.

    Returns:
        An object with ``kind`` (``charts``, ``pivots``, ``looks``, ``grid``, ``rows``) and what
        that kind needs (rows may have ``heads``, the names of both sides, where they are not gold
        and output); None if there is nothing to show.

    Raises:
        PublishedError: there is no such property.
        WorkbookError: a workbook is broken or over a limit.
    """
    subject = shown.about["subject"]
    objects = _OBJECTS.get(subject)
    if objects is not None:
        return None if shown.gold is None else objects(shown, shown.gold, shown.output)
    if shown.output is None:
        return None
    alone = _OF_THE_OUTPUT.get(subject)
    if alone is not None:
        return alone(shown, shown.output)
    show = _OF_BOTH.get(subject)
    return None if show is None or shown.gold is None else show(shown, shown.gold, shown.output)


def _charts(shown: Shown, gold: tables.Sheet, output: tables.Sheet | None) -> dict[str, Any]:
    few = shown.bounds.cells < _MANY_CELLS
    found = show_charts(
        (gold[0].workbook, gold[0].facts.charts(gold[1])),
        (gold[0].workbook, ())
        if output is None
        else (output[0].workbook, output[0].facts.charts(output[1])),
        shown.about["asked"],
        most_pairs=shown.bounds.blocks,
        most_points=_FEW_POINTS if few else _POINTS,
    )
    return {"kind": "charts", **found}


def _pivots(shown: Shown, gold: tables.Sheet, output: tables.Sheet | None) -> dict[str, Any]:
    found = show_pivots(
        (gold[0], gold[0].facts.pivots(gold[1])),
        (gold[0], ()) if output is None else (output[0], output[0].facts.pivots(output[1])),
        shown.about["asked"],
        most_pairs=shown.bounds.blocks,
    )
    return {"kind": "pivots", **found}


def _values(shown: Shown, gold: tables.Sheet, output: tables.Sheet) -> dict[str, Any]:
    block = show_values(
        (gold[0].workbook, gold[1].name),
        (output[0].workbook, output[1].name),
        shown.before,
        shown.about,
        shown.rules,
        shown.bounds,
    )
    return {"kind": "grid", "block": block}


def _lines(shown: Shown, gold: tables.Sheet, output: tables.Sheet) -> dict[str, Any]:
    of_rows = shown.about["subject"] == Subject.ROWS
    return _table(tables.line_rows(gold, output, shown.about["asked"], of_rows=of_rows))


def _looks(shown: Shown, output: tables.Sheet) -> dict[str, Any]:
    gold = shown.gold
    found = show_looks(
        None if gold is None else Side(gold[0], gold[1].name),
        Side(output[0], output[1].name),
        shown.about["asked"],
        shown.about.get("cells", ()),
        shown.about.get("all_cells", 0),
    )
    return {"kind": "looks", **found}


def _zoom(shown: Shown, output: tables.Sheet) -> dict[str, Any]:
    return {
        **_table(tables.zoom_rows(str(shown.wanted or ""), output)),
        "heads": ["asked", "output"],
    }


def _validations(shown: Shown, output: tables.Sheet) -> dict[str, Any]:
    said = [properties_in_words(shown.wanted)] if isinstance(shown.wanted, dict) else []
    heads = ["wanted, and not found", "in the output"]
    return {**_table(tables.validation_rows(said, output)), "heads": heads}


def _table(rows: tables.Rows) -> dict[str, Any]:
    return {"kind": "rows", "rows": rows}


def _table_of(
    rows: Callable[[tables.Sheet, tables.Sheet], tables.Rows],
) -> Callable[[Shown, tables.Sheet, tables.Sheet], dict[str, Any]]:
    return lambda _, gold, output: _table(rows(gold, output))


_OBJECTS: Mapping[str, Callable[[Shown, tables.Sheet, tables.Sheet | None], dict[str, Any]]] = {
    Subject.CHARTS: _charts,
    Subject.PIVOTS: _pivots,
}
_OF_THE_OUTPUT: Mapping[str, Callable[[Shown, tables.Sheet], dict[str, Any]]] = {
    Subject.LOOKS: _looks,
    Subject.ZOOM: _zoom,
    Subject.VALIDATIONS: _validations,
}
_OF_BOTH: Mapping[str, Callable[[Shown, tables.Sheet, tables.Sheet], dict[str, Any]]] = {
    Subject.CELLS: _values,
    Subject.ROWS: _lines,
    Subject.COLUMNS: _lines,
    Subject.PANES: _table_of(tables.pane_rows),
    Subject.FILTER: _table_of(tables.filter_rows),
    Subject.FORMATS: _table_of(tables.format_rows),
    Subject.SPARKLINES: _table_of(tables.sparkline_rows),
}
