"""Converts objects of a sheet to dictionaries for the comparison, as the published functions do.

Data validations are compared with the properties that a rule requires.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from judge.compare.published_error import PublishedError, Side, no_attribute
from judge.compare.rules.book import Book
from judge.compare.rules.methods import Places, matches
from judge.workbook.address import MAX_COLUMN, column_letters, parse_cell
from judge.workbook.facts.charts import Anchor, Chart, Plot, Source, Title
from judge.workbook.facts.pivots import Pivot
from judge.workbook.tree import Element, number, whole
from judge.workbook.workbook_parts import Tab
from judge.workbook.xml_parts import is_on

_BARS = {"barChart": "BarChart", "bar3DChart": "BarChart3D"}
_CLASSES = {
    "areaChart": "AreaChart",
    "area3DChart": "AreaChart3D",
    "lineChart": "LineChart",
    "line3DChart": "LineChart3D",
    "pieChart": "PieChart",
    "pie3DChart": "PieChart3D",
    "ofPieChart": "ProjectedPieChart",
    "doughnutChart": "DoughnutChart",
    "scatterChart": "ScatterChart",
    "bubbleChart": "BubbleChart",
    "radarChart": "RadarChart",
    "stockChart": "StockChart",
    "surfaceChart": "SurfaceChart",
    "surface3DChart": "SurfaceChart3D",
}
_ORDER = {"absolute": 0, "oneCell": 1, "twoCell": 2}
_WIDTH, _HEIGHT = 15, 7.5
"""The size that openpyxl gives every chart that it reads."""


def sparklines(book: Book, sheet: str) -> dict[str, str]:
    """Cell -> data of the sparklines in the part that is read for a sheet.

    Raises:
        PublishedError: there is no such sheet, or no such part.
        WorkbookError: the part is broken or over a limit.
    """
    part = book.texts.part(sheet)
    tab = next((tab for tab in book.workbook.tabs if tab.part == part), None)
    if tab is None:
        return {}
    lines = {}
    for element in book.facts.tree(tab).walk():
        if element.name == "x14:sparkline":
            range_text, data = element.text_of("xm:sqref"), element.text_of("xm:f")
            for name, value in (("xm:sqref", range_text), ("xm:f", data)):
                if value is None:
                    raise PublishedError("KeyError", repr(name))
            lines[(range_text or "").strip()] = (data or "").strip()
    return lines


# -- charts ---------------------------------------------------------------------------------------


def charts(book: Book, sheet: str, property_names: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Returns series references -> requested properties of each chart.

    Args:
        book: the workbook.
        sheet: name of the sheet.
        property_names: names of properties.

    Raises:
        PublishedError: the published function raises.
        WorkbookError: a part is broken or over a limit.
    """
    tab = book.tab(sheet)
    if tab is None:
        return {}
    listed = [
        chart
        for chart in book.facts.charts(tab)
        if chart.plots
        and chart.plots[0].kind in {*_BARS, *_CLASSES}
        and _is_plain(chart.anchor)
        and not chart.dropped_by_openpyxl
    ]
    listed.sort(key=lambda chart: 3 if chart.anchor is None else _ORDER[chart.anchor.kind])
    return {chart_key(chart): _chart_properties(chart, property_names) for chart in listed}


def _is_plain(anchor: Anchor | None) -> bool:
    return anchor is not None and anchor.plain


def chart_key(chart: Chart) -> str:
    """References of the series of a chart's first part: values and categories of each."""
    plot = chart.plots[0]
    return ";".join(
        f"{_reference(plot, series.values)},{_reference(plot, series.categories)}"
        for series in plot.series
    )


def _reference(plot: Plot, source: Source | None) -> str:
    # Points of scatter charts are read as x and y, which the published key does not ask for.
    if source is None or plot.kind in {"scatterChart", "bubbleChart"}:
        return ""
    return source.reference if source.kind in {"numRef", "strRef"} else ""


def _chart_properties(chart: Chart, property_names: Sequence[str]) -> dict[str, Any]:
    plot = chart.plots[0]
    properties: dict[str, Any] = {}
    for name in ("title", "legend", "anchor", "width", "height", "type", "direction"):
        if name not in property_names:
            continue
        if name == "title":
            properties[name] = first_run(chart.title)
        elif name == "legend":
            properties[name] = chart.legend
        elif name == "anchor":
            properties[name] = _anchor(chart.anchor)
        elif name == "type":
            properties[name] = plot.kind
        elif name == "direction":
            if plot.kind not in _BARS:
                raise no_attribute(_CLASSES[plot.kind], "barDir")
            properties[name] = plot.direction
        else:
            properties[name] = _WIDTH if name == "width" else _HEIGHT
    for letter in "xyz":
        if f"{letter}title" in property_names:
            properties[f"{letter}title"] = first_run(_axis_title(chart, letter))
    return properties


def first_run(title: Title | None) -> str | None:
    """The text of a title as the published function reads it: only the text of its first run."""
    if title is None:
        return None
    # openpyxl adds an empty run to text without runs, and reads an empty text as "None".
    return "" if title.first_run is None else title.first_run or "None"


def _axis_title(chart: Chart, letter: str) -> Title | None:
    plot = chart.plots[0]
    axes = {axis.identifier: axis for axis in chart.axes}
    title = None
    if plot.kind in {"scatterChart", "bubbleChart"}:
        index = "xy".find(letter)
        chosen = axes.get(plot.axes[index]) if 0 <= index < len(plot.axes) else None
        return None if chosen is None else chosen.title
    kinds = {"x": {"catAx", "dateAx"}, "y": {"valAx"}, "z": {"serAx"}}[letter]
    for identifier in plot.axes:
        axis = axes.get(identifier)
        if axis is not None and axis.kind in kinds:
            title = axis.title
    return title


def _anchor(anchor: Anchor | None) -> list[Any]:
    if anchor is None or anchor.kind != "twoCell":
        name = "OneCellAnchor" if anchor is not None and anchor.kind == "oneCell" else None
        raise no_attribute(name or "AbsoluteAnchor", "editAs")
    start, end = anchor.start or (0, 0), anchor.end or (0, 0)
    return [anchor.edit_as, start[0], end[1], end[0], end[1]]


# -- pivot tables ---------------------------------------------------------------------------------


def pivots(book: Book, sheet: str, property_names: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Returns source -> requested properties of each pivot table.

    Raises:
        PublishedError: the published function raises.
        WorkbookError: a part is broken or over a limit.
    """
    tab = book.tab(sheet)
    if tab is None:
        return {}
    return dict(_pivot(pivot, property_names) for pivot in book.facts.pivots(tab))


def _pivot(pivot: Pivot, property_names: Sequence[str]) -> tuple[str, dict[str, Any]]:
    items = [
        [(item.hidden, item.index) for item in field.items if item.index is not None]
        for field in pivot.fields
    ]
    left = next((position for position, item in enumerate(items) if item), len(items))
    kept = items[left:]
    right = next((position for position, item in enumerate(reversed(kept)) if item), len(kept))
    selection = kept[: len(kept) - right]
    first, last = _source_corners(pivot)
    key = (
        f"{pivot.source_type};{(first[0], first[1] + left)}:{(last[0], last[1] - right)};"
        f"{pivot.source_sheet}"
    )
    attributes = dict(pivot.attributes)
    properties: dict[str, Any] = {}
    if "name" in property_names:
        properties["name"] = pivot.name
    for name, attribute, default in (
        ("show_total", "visualTotals", True),
        ("show_empty_row", "showEmptyRow", False),
        ("show_empty_col", "showEmptyCol", False),
        ("show_headers", "showHeaders", True),
    ):
        if name in property_names:
            properties[name] = is_on(attributes.get(attribute), default=default)
    if "location" in property_names:
        properties["location"] = pivot.location
    if "filter" in property_names or "selection" in property_names:
        properties["selection"] = (
            selection if "ordered" in property_names else [set(item) for item in selection]
        )
    if "filter" in property_names:
        properties["filter_fields"] = set(pivot.pages)
    if "col_fields" in property_names:
        properties["col_fields"] = [index - left for index in pivot.columns]
    if "row_fields" in property_names:
        properties["row_fields"] = [index - left for index in pivot.rows]
    if "data_fields" in property_names:
        named = "data_fields_name" in property_names
        properties["data_fields"] = [
            f"{field.field - left};{field.name if named else ''};{field.function};{field.shown_as}"
            for field in pivot.data
        ]
    return key, properties


def _source_corners(pivot: Pivot) -> tuple[tuple[int, int], tuple[int, int]]:
    if pivot.source_range is None:
        raise no_attribute("NoneType", "split")
    corners = pivot.source_range.split(":")
    if len(corners) != 2:
        count = "not enough values to unpack (expected 2, got 1)"
        raise PublishedError("ValueError", count if len(corners) < 2 else "too many values")
    first, last = (parse_cell(corner) for corner in corners)
    if first is None or last is None:
        raise PublishedError("ValueError", f"{pivot.source_range} is not a range")
    return first, last


# -- rows, columns, filters ------------------------------------------------------------------------


def rows(book: Book, sheet: str, property_names: Sequence[str]) -> dict[object, dict[str, Any]]:
    """Returns row -> requested properties, for the rows that the file lists.

    Raises:
        PublishedError: there is no such property.
        WorkbookError: the part is broken or over a limit.
    """
    tab = book.tab(sheet)
    if tab is None:
        return {}
    return {
        row: {name: row_property(attributes, name) for name in property_names}
        for row, attributes in book.facts.row_attributes(tab).items()
    }


def row_property(attributes: Mapping[str, str], name: str) -> object:
    """Returns a property of a row; its default if the file does not give it.

    Raises:
        PublishedError: there is no such property.
    """
    if name in {"height", "ht"}:
        return number(attributes.get("ht"))
    if name in {"hidden", "collapsed", "thickBot", "thickTop"}:
        return is_on(attributes.get(name))
    if name in {"outlineLevel", "outline_level"}:
        return whole(attributes.get("outlineLevel")) or 0
    raise no_attribute("RowDimension", name)


def columns(book: Book, sheet: str, property_names: Sequence[str]) -> dict[object, dict[str, Any]]:
    """Returns first column -> requested properties, for the columns that the file lists.

    Raises:
        PublishedError: there is no such property.
        WorkbookError: the part is broken or over a limit.
    """
    tab = book.tab(sheet)
    if tab is None:
        return {}
    columns_by_letter: dict[object, dict[str, Any]] = {}
    for holder in book.facts.tree(tab).all("cols"):
        for element in holder.all("col"):
            first = whole(element.attributes.get("min")) or 0
            if not 1 <= first <= MAX_COLUMN:
                continue
            columns_by_letter[column_letters(first)] = {
                name: column_property(element.attributes, name) for name in property_names
            }
    return columns_by_letter


DEFAULT_WIDTH = 13.0
"""The width that openpyxl gives a column without one."""


def column_property(attributes: Mapping[str, str], name: str) -> object:
    """Returns a property of a column; its default if the file does not give it.

    Raises:
        PublishedError: there is no such property.
    """
    if name == "width":
        width = number(attributes.get("width"))
        return DEFAULT_WIDTH if width is None else width
    if name in {"auto_size", "bestFit"}:
        return is_on(attributes.get("bestFit"))
    if name in {"hidden", "collapsed"}:
        return is_on(attributes.get(name))
    if name in {"min", "max"}:
        return whole(attributes.get(name))
    if name in {"outlineLevel", "outline_level"}:
        return whole(attributes.get("outlineLevel")) or 0
    if name == "customWidth":
        return bool(column_property(attributes, "width"))
    raise no_attribute("ColumnDimension", name)


def filters(book: Book, sheet: str) -> dict[str, Any]:
    """The filter of a sheet: its range, conditions by values and operators, sort order.

    Raises:
        WorkbookError: the part is broken or over a limit.
    """
    tab = book.tab(sheet)
    if tab is None:
        return {}
    element = book.facts.tree(tab).child("autoFilter")
    if element is None:
        return {"ref": None, "filter_column": []}
    listed = sorted(
        (_filter_column(column) for column in element.all("filterColumn")),
        key=lambda column: column["col_id"],
    )
    properties: dict[str, Any] = {"ref": element.attributes.get("ref"), "filter_column": listed}
    sort = element.child("sortState")
    if sort is not None:
        properties["sort_state"] = _sort_state(sort)
    return properties


def _flag(element: Element, name: str) -> bool | None:
    text = element.attributes.get(name)
    return None if text is None else is_on(text)


def _filter_column(element: Element) -> dict[str, Any]:
    attributes = element.attributes
    properties: dict[str, Any] = {
        "col_id": whole(attributes.get("colId")) or 0,
        "hidden_button": is_on(attributes.get("hiddenButton")),
        "show_button": is_on(attributes.get("showButton"), default=True),
    }
    values = element.child("filters")
    if values is not None:
        properties["filters_blank"] = _flag(values, "blank")
        properties["filters"] = {entry.attributes.get("val") for entry in values.all("filter")}
    custom = element.child("customFilters")
    if custom is not None:
        properties["custom_filters_op"] = _flag(custom, "and")
        properties["custom_filters"] = {
            (entry.attributes.get("operator", "equal"), entry.attributes.get("val"))
            for entry in custom.all("customFilter")
        }
    return properties


def _sort_state(element: Element) -> dict[str, Any]:
    return {
        "sort": _flag(element, "columnSort"),
        "case": _flag(element, "caseSensitive"),
        "method": element.attributes.get("sortMethod"),
        "ref": element.attributes.get("ref"),
        "condition": [
            {
                "descending": _flag(condition, "descending"),
                "key": condition.attributes.get("sortBy"),
                "ref": condition.attributes.get("ref"),
                "custom_list": condition.attributes.get("customList"),
                "dxf_id": whole(condition.attributes.get("dxfId")),
                "icon": condition.attributes.get("iconSet"),
                "iconid": whole(condition.attributes.get("iconId")),
            }
            for condition in element.all("sortCondition")
        ],
    }


_TRUTHS = {"showDropDown", "showInputMessage", "showErrorMessage", "allowBlank"}
_ALIASES = {
    "ranges": "sqref",
    "cells": "sqref",
    "hide_drop_down": "showDropDown",
    "allow_blank": "allowBlank",
    "validation_type": "type",
}
_WORDS = {"type", "errorStyle", "imeMode", "operator"}
_TEXTS = {"errorTitle", "error", "promptTitle", "prompt"}


def validations(book: Book, tab: Tab) -> list[Element]:
    """The validations of a sheet that the published reader finds; it ignores the extension part.

    Raises:
        WorkbookError: the part is broken or over a limit.
    """
    holder = book.facts.tree(tab).child("dataValidations")
    return [] if holder is None else holder.all("dataValidation")


def validation_property(element: Element, name: str) -> object:
    """A property of a validation.

    Raises:
        PublishedError: there is no such property.
    """
    name = _ALIASES.get(name, name)
    attributes = element.attributes
    if name == "sqref":
        return Places(attributes.get("sqref", "").split())
    if name in _TRUTHS:
        return is_on(attributes.get(name))
    if name in _WORDS:
        word = attributes.get(name)
        return None if word == "none" else word
    if name in _TEXTS:
        return attributes.get(name)
    if name in {"formula1", "formula2"}:
        child = element.child(name)
        return None if child is None else child.text or "None"
    raise no_attribute("DataValidation", name)


def validations_match(actual: Sequence[Element], expected: Sequence[Mapping[str, Any]]) -> bool:
    """Checks that there are at least as many validations as entries, and that each fits an entry.

    Raises:
        PublishedError: the published function raises.
    """
    if not isinstance(expected, list | tuple):
        raise PublishedError("TypeError", "dv_props is not a list", Side.RULES)
    if len(actual) < len(expected):
        # The published code still reads the first validation, and may raise.
        for element in actual[:1]:
            any(fits(element, entry) for entry in expected)
        return False
    return all(any(fits(element, entry) for entry in expected) for element in actual)


def fits(element: Element, entry: Mapping[str, Any]) -> bool:
    """Returns whether a validation has all properties of an entry.

    Raises:
        PublishedError: the published function raises.
    """
    return all(matches(validation_property(element, name), rule) for name, rule in entry.items())
