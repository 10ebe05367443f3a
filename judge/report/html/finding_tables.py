"""Shows properties of two sheets, or of objects on them, as short tables of gold and output.

Pivot tables are shown as lists of fields.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from judge.compare.rules import objects as whole
from judge.compare.rules.book import Book
from judge.compare.rules.objects import pivot_property, pivot_source
from judge.compare.rules.words import property_in_words
from judge.console import clipped
from judge.workbook.address import column_letters, parse_window
from judge.workbook.facts.pivots import Pivot, PivotData
from judge.workbook.facts.sheets import (
    Filter,
    FilterColumn,
    FormatRule,
    Sparkline,
    Validation,
    View,
    filter_of,
    formats_of,
    sparklines_of,
    validations_of,
    view_of,
)
from judge.workbook.tree import Element
from judge.workbook.workbook_parts import Tab

_MAX_TEXT_CHARS = 400


@dataclass(frozen=True, slots=True)
class Property:
    """A property of an object.

    Attributes:
        name: its name for people.
        value: the value that is compared.
        text: the value for people; empty if it has no value.
        counts: whether a difference in it counts.
    """

    name: str
    value: object
    text: str
    counts: bool = True


def rows_of(
    expected: Sequence[Property] | None, actual: Sequence[Property] | None
) -> list[dict[str, Any]]:
    """The properties of two objects side by side; properties that neither has are left out.

    Args:
        expected: properties of the gold's object; None if the gold lacks it.
        actual: properties of the output's object; None if the output lacks it.

    Returns:
        For each property ``name``, ``expected``, ``found`` and ``state``: ``agrees``, ``differs``,
        ``unasked`` for a difference that does not count, or ``listed`` if there is only one object.
    """
    first = {one.name: one for one in expected or ()}
    second = {one.name: one for one in actual or ()}
    rows = []
    for name in dict.fromkeys((*first, *second)):
        one, other = first.get(name), second.get(name)
        texts = ["" if owner is None else clip(owner.text) for owner in (one, other)]
        if not any(texts):
            continue
        alike = one is not None and other is not None and one.value == other.value
        counts = any(owner is not None and owner.counts for owner in (one, other))
        state = "agrees" if alike else "differs" if counts else "unasked"
        if expected is None or actual is None:
            state = "listed"
        rows.append({"name": name, "expected": texts[0], "found": texts[1], "state": state})
    return rows


def row(name: str, expected: object, actual: object, *, counts: bool = True) -> dict[str, Any]:
    """One row of a table: two values, marked if they differ."""
    first, second = (clip("" if value is None else str(value)) for value in (expected, actual))
    state = "agrees" if first == second else "differs" if counts else "unasked"
    return {"name": name, "expected": first, "found": second, "state": state}


def clip(text: str) -> str:
    """Text for a page, cut off if it is very long."""
    return clipped(text, _MAX_TEXT_CHARS)


_Object = TypeVar("_Object")


@dataclass(frozen=True, slots=True)
class ObjectPairs:
    """Pairs of objects of two sheets, by their indices.

    Attributes:
        agreeing: how many pairs agree in all properties that count.
        pairs: the other objects, paired by similarity; None for a missing partner.
    """

    agreeing: int
    pairs: tuple[tuple[int | None, int | None], ...]


def pair(
    expected: Sequence[_Object],
    actual: Sequence[_Object],
    properties: Callable[[_Object], Sequence[Property]],
    *,
    most: int = 60,
) -> ObjectPairs:
    """Pairs objects of two sheets: first those that agree, then by similarity.

    Args:
        expected: objects of the gold.
        actual: objects of the output.
        properties: returns the properties of an object that are compared.
        most: how many objects of each sheet are compared.
    """
    sides = [[list(properties(one)) for one in side[:most]] for side in (expected, actual)]
    left, right = list(range(len(sides[0]))), list(range(len(sides[1])))
    agreeing = 0
    for one in list(left):
        twin = next((other for other in right if _agree(sides[0][one], sides[1][other])), None)
        if twin is not None:
            left.remove(one)
            right.remove(twin)
            agreeing += 1
    ranked = sorted(
        (-_likeness(sides[0][one], sides[1][other]), one, other) for one in left for other in right
    )
    pairs: list[tuple[int | None, int | None]] = []
    for _, one, other in ranked:
        if one in left and other in right:
            left.remove(one)
            right.remove(other)
            pairs.append((one, other))
    pairs += [(one, None) for one in left] + [(None, other) for other in right]
    pairs.sort(key=lambda indices: (indices[0] is None, indices[0] or 0, indices[1] or 0))
    return ObjectPairs(agreeing, tuple(pairs))


def _agree(expected: Sequence[Property], actual: Sequence[Property]) -> bool:
    first, second = (
        [(one.name, one.value) for one in side if one.counts] for side in (expected, actual)
    )
    return first == second


def _likeness(expected: Sequence[Property], actual: Sequence[Property]) -> int:
    other = {one.name: one.value for one in actual}
    return sum(
        (2 if one.counts else 1)
        for one in expected
        if one.name in other and one.value == other[one.name]
    )


_MAX_ROWS = 60
Rows = list[dict[str, Any]]
Sheet = tuple[Book, Tab]
"""A sheet and its workbook."""


def sheet_rows(gold: Book, output: Book) -> Rows:
    """The names of the sheets, in their order."""
    first, second = ([tab.name for tab in book.facts.tabs] for book in (gold, output))
    return [
        row(f"sheet {index + 1}", *(_at(names, index) for names in (first, second)))
        for index in range(min(_MAX_ROWS, max(len(first), len(second))))
    ]


def _at(names: Sequence[str], index: int) -> str | None:
    return names[index] if index < len(names) else None


def pane_rows(gold: Sheet, output: Sheet) -> Rows:
    """Frozen rows and columns."""
    views = [_view(sheet) for sheet in (gold, output)]
    return [
        row(name, *(_frozen(view, name) for view in views))
        for name in ("frozen rows", "frozen columns")
    ]


def _view(sheet: Sheet) -> View:
    book, tab = sheet
    return view_of(book.facts.tree(tab))


def _frozen(view: View, name: str) -> str:
    if view.pane is None or not view.pane.frozen:
        return "none"
    return f"{view.pane.rows if name == 'frozen rows' else view.pane.columns:g}"


def zoom_rows(expected: str, output: Sheet) -> Rows:
    """The sheet's zoom and the required zoom, side by side."""
    rows = [row("zoom", expected, f"{_view(output).zoom} %")]
    rows[0]["state"] = "differs"
    return rows


def filter_rows(gold: Sheet, output: Sheet) -> Rows:
    """Range, conditions and sort order of the filters."""
    filters = [filter_of(_root(sheet).child("autoFilter")) for sheet in (gold, output)]
    if filters == [None, None]:
        return []
    ranges = [None if one is None else one.place.replace("$", "") for one in filters]
    rows = [row("range", *ranges)]
    columns = [_columns(one) for one in filters]
    rows += [
        row(_column_name(filters, number), *(column.get(number) for column in columns))
        for number in sorted({*columns[0], *columns[1]})[:_MAX_ROWS]
    ]
    rows.append(row("sorted by", *map(_sorted_by, filters)))
    return [line for line in rows if line["expected"] or line["found"]]


def _root(sheet: Sheet) -> Element:
    book, tab = sheet
    return book.facts.tree(tab)


def _columns(filtered: Filter | None) -> dict[int, str]:
    if filtered is None:
        return {}
    conditions = {column.column: _condition(column) for column in filtered.columns}
    return {number: text for number, text in conditions.items() if text}


def _condition(column: FilterColumn) -> str:
    values = [" ".join(value) for value in sorted(column.values)]
    if column.blanks:
        values.append("blanks")
    joined = (" and " if column.joined_by_and else " or ").join(values[:20])
    more = f" and {len(values) - 20} more" if len(values) > 20 else ""
    terms = ", ".join(f"{name} {text}" for name, text in column.terms)
    hidden = "no button" if column.hidden_button or not column.show_button else ""
    kind = "" if column.kind in {"filters", "customFilters"} else column.kind
    return "; ".join(filter(None, (kind, joined + more, terms, hidden)))


def _column_name(filters: Sequence[Filter | None], number: int) -> str:
    address = next((one.place for one in filters if one is not None), "")
    window = parse_window(address.replace("$", "").upper())
    return f"column {number + 1 if window is None else column_letters(window.min_column + number)}"


def _sorted_by(filtered: Filter | None) -> str | None:
    if filtered is None or filtered.sort is None:
        return None
    return ", ".join(
        f"{address.replace('$', '')}{', descending' if descending else ''}"
        for address, descending in filtered.sort.keys
    )


def validation_rows(expected: Sequence[str], output: Sheet) -> Rows:
    """The validations that a rule requires and those of the output, side by side, in any order."""
    actual = [_validation(validation) for validation in validations_of(_root(output))]
    count = min(_MAX_ROWS, max(len(expected), len(actual)))
    return [
        {**row("", _at(expected, index), _at(actual, index)), "state": "listed"}
        for index in range(count)
    ]


def _validation(validation: Validation) -> str:
    compared = validation.kind not in {None, "list", "custom"}
    parts = [
        f"cells {' '.join(validation.places[:8])}",
        validation.kind or "anything",
        validation.operator if compared else "",
        " and ".join(validation.formulas),
        *(f"{name} {text}" for name, text in validation.attributes[:12] if text != "0"),
    ]
    return ", ".join(filter(None, parts))


def format_rows(gold: Sheet, output: Sheet) -> Rows:
    """Conditional formats that only one of the sheets has."""
    return _one_sided(
        *(
            [_format(rule) for rule in formats_of(_root(side), side[0].facts.looks)]
            for side in (gold, output)
        )
    )


def _format(rule: FormatRule) -> str:
    look = ", ".join(f"{name.replace('_', ' ')} {text}" for name, text in rule.look)
    parts = [
        f"cells {' '.join(rule.places[:8])}",
        rule.kind,
        rule.operator or "",
        " and ".join(rule.formulas),
    ]
    return f"{', '.join(filter(None, parts))}{f' → {look}' if look else ''}"


def sparkline_rows(gold: Sheet, output: Sheet) -> Rows:
    """Sparklines by cell; those that differ come first."""
    sides = [
        {sparkline.place.replace("$", ""): sparkline for sparkline in sparklines_of(_root(side))}
        for side in (gold, output)
    ]
    rows = [
        row(address, *(_sparkline(side.get(address)) for side in sides))
        for address in dict.fromkeys((*sides[0], *sides[1]))
    ]
    return sorted(rows, key=lambda line: str(line["state"]) == "agrees")[:_MAX_ROWS]


def _sparkline(sparkline: Sparkline | None) -> str | None:
    return (
        None
        if sparkline is None
        else f"{sparkline.kind} of {whole.plain(sparkline.reference).upper()}"
    )


def _one_sided(expected: Sequence[str], actual: Sequence[str]) -> Rows:
    left = list(actual)
    rows = []
    for text in expected:
        if text in left:
            left.remove(text)
        else:
            rows.append(row("", text, None))
    rows += [row("", None, text) for text in left]
    return rows[:_MAX_ROWS]


def line_rows(gold: Sheet, output: Sheet, counted: Sequence[str], *, of_rows: bool) -> Rows:
    """Properties of rows or columns that differ.

    Raises:
        PublishedError: there is no such property.
        WorkbookError: a part is broken or over a limit.
    """
    read: Callable[[Book, Tab, str], dict[int, object]] = whole.rows if of_rows else whole.columns
    rows: Rows = []
    for name in counted:
        first, second = read(*gold, name), read(*output, name)
        differing = (
            line
            for line in sorted(first.keys() | second.keys())
            if first.get(line) != second.get(line)
        )
        for line in differing:
            if len(rows) >= _MAX_ROWS:
                return rows
            label = f"row {line}" if of_rows else f"column {column_letters(line)}"
            values = (_in_words(lines.get(line)) for lines in (first, second))
            rows.append(row(f"{label}: {property_in_words(name)}", *values))
    return rows


def _in_words(value: object) -> str:
    if value is None:
        return "default"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:g}" if isinstance(value, float) else str(value)


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
    for indices in paired.pairs[:max_pairs]:
        both = [
            None if index is None else side[index]
            for index, side in zip(indices, sides, strict=True)
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
    """The fields of a pivot table by area; fields that the other table lacks there are marked."""
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
