"""Pivot tables of two sheets as lists of fields."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from judge.compare.rules.book import Book
from judge.compare.rules.objects import pivot_property, pivot_source
from judge.report.findings.tables import Property, clip, pair, rows_of
from judge.workbook.facts.pivots import Pivot, PivotData

_AREAS = {
    "filters": {"filter", "filters"},
    "columns": {"col_fields", "columns"},
    "rows": {"row_fields", "rows"},
    "values": {"data_fields", "values", "summary_type"},
}
_FUNCTIONS = {
    "countNums": "count of numbers",
    "stdDev": "standard deviation",
    "stdDevp": "standard deviation of all",
    "var": "variance",
    "varp": "variance of all",
}
_SHOWN_AS = {
    "percentOfTotal": "% of total",
    "percentOfRow": "% of row",
    "percentOfCol": "% of column",
    "percent": "% of",
    "runTotal": "running total",
    "difference": "difference from",
    "percentDiff": "% difference from",
}
_MAX_FIELDS = 60
_MAX_ITEMS = 12
_SETTINGS = ("name", "location", "show_total", "show_empty_row", "show_empty_col", "show_headers")


def show_pivots(
    gold: tuple[Book, Sequence[Pivot]],
    output: tuple[Book, Sequence[Pivot]],
    counted: Collection[str],
    *,
    max_pairs: int,
) -> dict[str, Any]:
    """The pivot tables of two sheets that do not agree, in pairs.

    Args:
        gold: the workbook with the right answer, and the pivot tables of its sheet.
        output: the workbook that is judged, and the pivot tables of its sheet.
        counted: names of the properties that count.
        max_pairs: how many pairs are shown.

    Returns:
        ``agreeing`` and ``more`` as for charts, and ``pairs``. Each pair has ``rows``, ``gold`` and
        ``output``. The last two are null if that side has no pivot table; otherwise, they list its
        areas, each with ``name``, ``fields`` (``text`` and ``state``) and ``more``.

    Raises:
        WorkbookError: a workbook is broken or over a limit.
    """
    sides = [[(book, pivot) for pivot in pivots] for book, pivots in (gold, output)]
    paired = pair(sides[0], sides[1], lambda side: _properties(*side, counted))
    shown = []
    for places in paired.pairs[:max_pairs]:
        both = [
            None if index is None else side[index]
            for index, side in zip(places, sides, strict=True)
        ]
        properties = [None if side is None else _properties(*side, counted) for side in both]
        rows = [row for row in rows_of(*properties) if row["name"] not in _AREAS]
        pivots = [None if side is None else side[1] for side in both]
        shown.append(
            {
                "rows": rows,
                "gold": _areas(pivots[0], pivots[1], counted),
                "output": _areas(pivots[1], pivots[0], counted),
            }
        )
    return {"agreeing": paired.agreeing, "more": len(paired.pairs) - len(shown), "pairs": shown}


def _properties(book: Book, pivot: Pivot, counted: Collection[str]) -> list[Property]:
    source = (pivot.source_sheet, pivot.source_range or pivot.source_name)
    hidden = _hidden(pivot)
    properties = [
        Property("source", pivot_source(book, pivot), "!".join(filter(None, source))),
        *(
            Property(area, fields, ", ".join(fields), bool(names.intersection(counted)))
            for area, names in _AREAS.items()
            for fields in [_fields(pivot, area, counted)]
        ),
        Property(
            "hidden items",
            pivot_property(pivot, "selection"),
            hidden,
            bool({"filter", "selection"}.intersection(counted)),
        ),
    ]
    properties += [
        Property(name.replace("_", " "), value, str(value))
        for name in _SETTINGS
        if name in counted
        for value in [pivot_property(pivot, name)]
    ]
    if "name" not in counted:
        properties.append(Property("name", pivot.name, pivot.name, counts=False))
    if "ordered" in counted:
        order = pivot_property(pivot, "ordered")
        properties.append(Property("order of the items", order, _order(pivot)))
    return properties


def _fields(pivot: Pivot, area: str, counted: Collection[str]) -> tuple[str, ...]:
    if area == "values":
        return tuple(_value(data, named="data_fields_name" in counted) for data in pivot.data)
    indices = {"filters": pivot.pages, "columns": pivot.columns, "rows": pivot.rows}[area]
    return pivot.names_of(indices)


def _value(data: PivotData, *, named: bool) -> str:
    function = _FUNCTIONS.get(data.function, data.function)
    shown = "" if data.shown_as == "normal" else f", {_SHOWN_AS.get(data.shown_as, data.shown_as)}"
    name = f" “{data.name}”" if named and data.name else ""
    return f"{function} of {data.column or f'field {data.field}'}{shown}{name}"


def _areas(
    pivot: Pivot | None, other: Pivot | None, counted: Collection[str]
) -> list[dict[str, Any]] | None:
    """The fields of a pivot table by area; a field is marked if the other table lacks it there."""
    if pivot is None:
        return None
    areas = []
    for area, names in _AREAS.items():
        fields = _fields(pivot, area, counted)
        others = () if other is None else _fields(other, area, counted)
        counts = bool(names.intersection(counted))
        areas.append(
            {
                "name": area,
                "fields": [
                    {
                        "text": clip(field),
                        "state": "agrees"
                        if other is None or (index < len(others) and others[index] == field)
                        else "differs"
                        if counts
                        else "unasked",
                    }
                    for index, field in enumerate(fields[:_MAX_FIELDS])
                ],
                "more": max(0, len(fields) - _MAX_FIELDS),
            }
        )
    return areas


def _hidden(pivot: Pivot) -> str:
    hidden = []
    for field in pivot.fields:
        items = [
            item.value or "?" for item in field.items if item.hidden and item.index is not None
        ]
        if items:
            hidden.append(f"{field.name}: {_some(items)}")
    return "; ".join(hidden[:_MAX_ITEMS])


def _order(pivot: Pivot) -> str:
    orders = (
        f"{field.name}: {_some([item.value or '?' for item in field.items])}"
        for field in pivot.fields
        if field.axis is not None
    )
    return "; ".join(orders)


def _some(items: Sequence[str]) -> str:
    more = f" and {len(items) - _MAX_ITEMS} more" if len(items) > _MAX_ITEMS else ""
    return ", ".join(items[:_MAX_ITEMS]) + more
