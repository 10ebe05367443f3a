"""Writes the facts about a workbook for machines and for people."""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Iterator
from typing import Any

from judge.workbook.cell import json_value
from judge.workbook.facts.book import BookFacts
from judge.workbook.facts.charts import Chart, Source
from judge.workbook.facts.pivots import Pivot
from judge.workbook.facts.references import read_reference
from judge.workbook.facts.sheets import Line, SheetFacts

_LINE = tuple(field.name for field in dataclasses.fields(Line))
_SHOWN = 12
"""Largest number of lines of one kind that people are shown."""


def facts_to_json(book: BookFacts) -> dict[str, Any]:
    """All facts as JSON: fields as in :mod:`judge.workbook.facts.sheets`.

    The source of a chart's values also has ``values``, the values that its cells hold now; None if
    it does not refer to cells of the workbook.

    Raises:
        WorkbookError: a part is broken or over a limit.
    """
    facts = book.workbook.facts
    return {
        "application": facts.application,
        "app_version": facts.app_version,
        "date_1904": facts.date_1904,
        "sheets": [_plain(sheet, book) for sheet in book.sheets()],
        "names": [_plain(name, book) for name in book.names],
        "remarks": list(book.workbook.remarks),
    }


_SCALARS = (str, int, float, type(None))


def _plain(value: Any, book: BookFacts) -> Any:
    kind = type(value)
    if kind in _SCALARS or kind is bool:
        return value
    if kind is Line:
        # There may be a million of them.
        return {name: getattr(value, name) for name in _LINE}
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        shown = {
            field.name: _plain(getattr(value, field.name), book)
            for field in dataclasses.fields(value)
        }
        if isinstance(value, Source) and value.reference:
            values = read_reference(book.workbook, value.reference)
            shown["values"] = None if values is None else list(map(json_value, values))
        return shown
    if isinstance(value, tuple):
        return [_plain(item, book) for item in value]
    return value.value if isinstance(value, enum.Enum) else value


def facts_to_lines(book: BookFacts) -> Iterator[str]:
    """Writes the facts for people: one line for each fact, indented below its sheet.

    Raises:
        WorkbookError: a part is broken or over a limit.
    """
    for sheet in book.sheets():
        kind = "" if sheet.kind == "worksheet" else ", chart sheet"
        state = "" if sheet.state == "visible" else f", {sheet.state}"
        yield f"{sheet.name}{kind}{state}"
        for line in _sheet_lines(sheet):
            yield f"  {line}"
    names = [name for name in book.names if not name.hidden]
    if names:
        yield "names"
        for line in _some(f"{name.name} = {name.refers_to}" for name in names):
            yield f"  {line}"


def _sheet_lines(sheet: SheetFacts) -> Iterator[str]:
    if sheet.tab_colour:
        yield f"tab colour {sheet.tab_colour}"
    if sheet.view.zoom != 100:
        yield f"zoom {sheet.view.zoom} %"
    pane = sheet.view.pane
    if pane is not None:
        kind = "frozen" if pane.frozen else "split"
        yield f"{kind}: {pane.columns:g} columns, {pane.rows:g} rows"
    for chart in sheet.charts:
        yield from chart_lines(chart)
    for pivot in sheet.pivots:
        yield from pivot_lines(pivot)
    for table in sheet.tables:
        yield f"table {table.name} at {table.place}: {', '.join(table.columns[:_SHOWN])}"
    if sheet.filter is not None:
        yield f"filter at {sheet.filter.place}"
        for column in sheet.filter.columns:
            shown = "; ".join(" ".join(value) for value in column.values[:_SHOWN])
            terms = ", ".join(f"{name}={text}" for name, text in column.terms)
            yield f"  column {column.column + 1}: {column.kind or 'no condition'} {shown}{terms}"
    yield from _line_lines(sheet)
    yield from _some(
        f"validation at {' '.join(validation.places[:_SHOWN])}: {validation.kind or 'anything'} "
        f"{validation.operator if validation.kind not in {None, 'list', 'custom'} else ''} "
        f"{', '.join(validation.formulas)}"
        for validation in sheet.validations
    )
    yield from _some(
        f"conditional format at {' '.join(rule.places[:_SHOWN])}: {rule.kind} "
        f"{rule.operator or ''} {', '.join(rule.formulas)} -> "
        f"{', '.join(f'{name} {text}' for name, text in rule.look) or 'drawn'}"
        for rule in sheet.formats
    )
    yield from _some(f"hyperlink at {link.place}: {link.target}" for link in sheet.links)
    yield from _some(
        f"sparkline at {sparkline.place}: {sparkline.kind} of {sparkline.reference}"
        for sparkline in sheet.sparklines
    )
    if sheet.merges:
        yield f"merged: {', '.join(sheet.merges[:_SHOWN])}{_more(len(sheet.merges))}"
    for problem in sheet.problems:
        yield f"not readable: {problem}"


def _some(lines: Iterator[str]) -> Iterator[str]:
    listed = [" ".join(line.split()) for line in lines]
    yield from listed[:_SHOWN]
    if len(listed) > _SHOWN:
        yield f"… and {len(listed) - _SHOWN} more (all with --json)"


def _more(count: int) -> str:
    return f" and {count - _SHOWN} more" if count > _SHOWN else ""


def _line_lines(sheet: SheetFacts) -> Iterator[str]:
    for noun, lines in (("rows", sheet.rows), ("columns", sheet.columns)):
        hidden = [line for line in lines if line.hidden]
        if hidden:
            shown = (
                str(line.first) if line.first == line.last else f"{line.first}-{line.last}"
                for line in hidden[:_SHOWN]
            )
            yield f"hidden {noun}: {', '.join(shown)}{_more(len(hidden))}"


def chart_lines(chart: Chart) -> Iterator[str]:
    """Describes a chart for people: a line for the chart, then indented lines for its plots."""
    title = f" {chart.title.text!r}" if chart.title is not None else ""
    start = chart.anchor.start if chart.anchor is not None else None
    start_text = f" at column {start[0] + 1}, row {start[1] + 1}" if start is not None else ""
    legend = f", legend {chart.legend}" if chart.legend else ", no legend"
    yield f"chart{title}{start_text}{legend}"
    for plot in chart.plots:
        details = [detail for detail in (plot.direction, plot.grouping, plot.style) if detail]
        yield f"  {plot.kind} {' '.join(details)}".rstrip()
        for series in plot.series[:_SHOWN]:
            named = _source_text(series.name)
            parts = [
                f"values {_source_text(series.values)}",
                f"categories {_source_text(series.categories)}",
            ]
            parts.extend(f"trend line {trendline.kind}" for trendline in series.trendlines)
            yield f"    series {named}: {', '.join(parts)}"
        if len(plot.series) > _SHOWN:
            yield f"    … and {len(plot.series) - _SHOWN} more (all with --json)"
    for axis in chart.axes:
        if axis.title is not None:
            yield f"  {axis.kind} {axis.position}: {axis.title.text!r}"


def _source_text(source: Source | None) -> str:
    if source is None:
        return "none"
    return source.reference or ", ".join(text or "" for text in source.cached[:_SHOWN]) or "none"


def pivot_lines(pivot: Pivot) -> Iterator[str]:
    """Describes a pivot table for people: a line for the table, then indented lines for fields."""
    source = pivot.source_name or f"{pivot.source_sheet}!{pivot.source_range}"
    yield f"pivot table {pivot.name!r} at {pivot.place}, of {source}"
    for heading, fields in (
        ("rows", pivot.names_of(pivot.rows)),
        ("columns", pivot.names_of(pivot.columns)),
        ("filters", pivot.names_of(pivot.pages)),
        ("values", tuple(f"{field.function} of {field.column}" for field in pivot.data)),
    ):
        if fields:
            yield f"  {heading}: {', '.join(fields[:_SHOWN])}"
