"""Charts, pivot tables, filters, rows and columns, in the form needed to compare them."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from judge.compare.published.spider2v.objects import column_property, row_property
from judge.compare.rules.book import Book, text_of
from judge.workbook.address import MAX_COLUMN, MAX_ROW, parse_window
from judge.workbook.facts.charts import Anchor, Axis, Chart, Plot, Series, Source, Title
from judge.workbook.facts.pivots import Pivot
from judge.workbook.facts.references import read_reference
from judge.workbook.facts.sheets import Filter
from judge.workbook.tree import number, whole
from judge.workbook.workbook_parts import Tab
from judge.workbook.xml_parts import is_on

# -- the size of a chart ---------------------------------------------------------------------------
# The size of a chart on its sheet, for every kind of anchor.

_EMU_PER_CM = 360_000
_EMU_PER_POINT = 12_700
_EMU_PER_PIXEL = 9_525
_PIXELS_PER_CHARACTER = 7
"""Width of a character in the default font, Calibri 11."""

_DEFAULT_WIDTH = 64 / _PIXELS_PER_CHARACTER
_DEFAULT_HEIGHT = 15.0  # of a row, in points


def chart_size(book: Book, tab: Tab, anchor: Anchor | None) -> tuple[int, int] | tuple[None, None]:
    """Returns the width and height of a chart in whole centimetres.

    Programs store a chart's size in different ways, and round differently when they convert it.
    A fraction of three quarters of a centimetre or more is rounded up, because programs do not
    create charts whose size is near such a value.

    Raises:
        WorkbookError: the sheet is broken or over a limit.
    """
    if anchor is None:
        return None, None
    if anchor.extent is not None:
        return _centimetres(anchor.extent[0]), _centimetres(anchor.extent[1])
    if anchor.start is None or anchor.end is None:
        return None, None
    left, top, right, bottom = anchor.offsets
    width = _columns(book, tab, anchor.start[0], anchor.end[0]) + right - left
    height = _rows(book, tab, anchor.start[1], anchor.end[1]) + bottom - top
    return _centimetres(width), _centimetres(height)


def _centimetres(emu: float) -> int:
    return math.floor(emu / _EMU_PER_CM + 0.25)


def _columns(book: Book, tab: Tab, first: int, last: int) -> float:
    """Returns the width in EMU of the columns from ``first`` up to, but without, ``last``."""
    first, last = max(0, first), min(last, MAX_COLUMN)
    root = book.facts.tree(tab)
    form = root.child("sheetFormatPr")
    usual = (form and number(form.attributes.get("defaultColWidth"))) or _DEFAULT_WIDTH
    total = max(0, last - first) * usual
    for holder in root.all("cols"):
        for element in holder.all("col"):
            start = max(first, (whole(element.attributes.get("min")) or 1) - 1)
            end = min(last, whole(element.attributes.get("max")) or 0)
            width = number(element.attributes.get("width"))
            own = (
                0.0
                if is_on(element.attributes.get("hidden"))
                else usual
                if width is None
                else width
            )
            total += max(0, end - start) * (own - usual)
    return total * _PIXELS_PER_CHARACTER * _EMU_PER_PIXEL


def _rows(book: Book, tab: Tab, first: int, last: int) -> float:
    """Returns the height in EMU of the rows from ``first`` up to, but without, ``last``."""
    first, last = max(0, first), min(last, MAX_ROW)
    form = book.facts.tree(tab).child("sheetFormatPr")
    usual = (form and number(form.attributes.get("defaultRowHeight"))) or _DEFAULT_HEIGHT
    total = max(0, last - first) * usual
    for row, attributes in book.facts.row_attributes(tab).items():
        if first < row <= last:
            height = number(attributes.get("ht"))
            own = 0.0 if is_on(attributes.get("hidden")) else usual if height is None else height
            total += own - usual
    return total * _EMU_PER_POINT


# -- objects as wholes -----------------------------------------------------------------------------

_PIVOT_WORDS = re.compile(r"(?:pt@)?(?P<what>categories|(?:data|label)? ?\d+)")
_AXES = {"x": {"catAx", "dateAx"}, "y": {"valAx"}, "z": {"serAx"}}


@dataclass(frozen=True, slots=True)
class DescribedObject:
    """An object: its description for people, and the content to compare."""

    name: str
    content: object


def charts(book: Book, tab: Tab, property_names: Sequence[str]) -> list[DescribedObject]:
    """Returns the charts of a sheet: the data of all their parts, and the requested properties.

    Raises:
        WorkbookError: a part is broken or over a limit.
    """
    return [
        DescribedObject(
            f"chart {chart.title.text!r}"
            if chart.title is not None and chart.title.text
            else "chart",
            (
                tuple(tuple(map(data_of, plot.series)) for plot in chart.plots),
                tuple(
                    (name, _property(book, tab, chart, name))
                    for name in sorted(set(property_names))
                ),
            ),
        )
        for chart in book.facts.charts(tab)
    ] + _unread(book.facts.unread(tab)[0])


def _property(book: Book, tab: Tab, chart: Chart, name: str) -> object:
    """Returns a property of a chart that may depend on the sheet, such as size or series names."""
    if name in {"width", "height"}:
        return chart_size(book, tab, chart.anchor)[name == "height"]
    if name == "series_names":
        return tuple(
            tuple(series_name(book, series) for series in plot.series) for plot in chart.plots
        )
    return chart_property(chart, name)


def series_name(book: Book, series: Series) -> str | None:
    """Returns the name of a series as it is shown, from its cells or its own text.

    A name that refers to cells is read from their stored values. If a cell has no stored value, or
    the reference is not to cells, the text that the chart stores is used. For a series without a
    name, it returns None, since each program shows a different default.

    Raises:
        WorkbookError: a sheet is broken or over a limit.
    """
    source = series.name
    if source is None:
        return None
    values = read_reference(book.workbook, source.reference) if source.reference else None
    shown = [text_of(value) for value in values or () if value is not None]
    if not shown:
        shown = [value for value in source.cached if value]
    return " ".join(" ".join(shown).split()) or None


def _unread(reasons: Sequence[str]) -> list[DescribedObject]:
    """Returns placeholders for objects that cannot be read; none equals a missing object."""
    return [
        DescribedObject("an object that cannot be read", ("cannot be read", why)) for why in reasons
    ]


def data_of(series: Series) -> tuple[str, ...]:
    """Returns the references of a series as they are compared: values, categories and sizes."""
    return tuple(map(_reference, (series.values, series.categories, series.sizes)))


def _reference(source: Source | None) -> str:
    """Returns a reference as it is compared: in lower case, without dollar signs and quotes.

    For the data of pivot charts, LibreOffice writes words instead of references, and its versions
    write different words.
    """
    if source is None:
        return ""
    if not source.reference:
        return "literals " + ",".join(value or "" for value in source.cached)
    match = _PIVOT_WORDS.fullmatch(source.reference.strip())
    if match is not None:
        return f"pivot {match['what'].removeprefix('data').strip()}"
    return plain(source.reference)


def plain(reference: str) -> str:
    """Returns a reference in lower case, without dollar signs and quotes."""
    return reference.replace("$", "").replace("'", "").casefold()


def chart_property(chart: Chart, name: str) -> object:
    """Returns a property of a chart by its name in rules; None if the chart does not have it."""
    if name == "type":
        return tuple(plot.kind for plot in chart.plots)
    if name == "title":
        return _title(chart.title)
    if name == "legend":
        return chart.legend
    if name == "direction":
        return tuple(plot.direction for plot in chart.plots)
    if name == "anchor":
        anchor = chart.anchor
        return None if anchor is None else (anchor.start, anchor.end)
    if name == "trendlines":
        return tuple(
            tuple(
                sorted(
                    (
                        trendline.kind,
                        trendline.order or 0,
                        trendline.period or 0,
                        trendline.equation,
                        trendline.r_squared,
                    )
                    for trendline in series.trendlines
                )
            )
            for plot in chart.plots
            for series in plot.series
        )
    if name == "labels":
        return tuple(shown_labels(series, plot) for plot in chart.plots for series in plot.series)
    if name in {"xtitle", "ytitle", "ztitle"}:
        return tuple(_axis_title(chart, plot, name[0]) for plot in chart.plots[:1])
    return None


def shown_labels(series: Series, plot: Plot) -> tuple[str, ...]:
    """Returns what a series' data labels show; its own settings override the chart's."""
    labels = plot.labels if series.labels is None else series.labels
    return () if labels is None else tuple(sorted(labels.shows))


def _title(title: Title | None) -> str | None:
    return None if title is None else " ".join(title.text.split()) or None


def _axis_title(chart: Chart, plot: Plot, letter: str) -> str | None:
    axes: Mapping[str, Axis] = {axis.identifier: axis for axis in chart.axes}
    listed = [axes[candidate] for candidate in plot.axes if candidate in axes]
    if plot.kind in {"scatterChart", "bubbleChart"}:
        index = "xy".find(letter)
        return _title(listed[index].title) if 0 <= index < len(listed) else None
    chosen = next((axis for axis in listed if axis.kind in _AXES[letter]), None)
    return None if chosen is None else _title(chosen.title)


def pivots(book: Book, tab: Tab, property_names: Sequence[str]) -> list[DescribedObject]:
    """Returns the pivot tables of a sheet: their source cells, and requested properties by name.

    Raises:
        WorkbookError: a part is broken or over a limit.
    """
    return [
        DescribedObject(
            f"pivot table {pivot.name!r}",
            (
                pivot_source(book, pivot),
                tuple((name, pivot_property(pivot, name)) for name in sorted(set(property_names))),
            ),
        )
        for pivot in book.facts.pivots(tab)
    ] + _unread(book.facts.unread(tab)[1])


def pivot_source(book: Book, pivot: Pivot) -> tuple[object, ...]:
    """Returns the sheet and cells of the source; a table or a name is resolved if it exists."""
    sheet, range_text = pivot.source_sheet, pivot.source_range
    if range_text is None and pivot.source_name is not None:
        folded_name = pivot.source_name.casefold()
        for facts in book.facts.sheets():
            for table in facts.tables:
                if table.name.casefold() == folded_name:
                    sheet, range_text = facts.name, table.place
        for name in book.facts.names:
            if range_text is None and name.name.casefold() == folded_name and "!" in name.refers_to:
                sheet, _, range_text = name.refers_to.replace("$", "").rpartition("!")
                sheet = sheet.strip("'").replace("''", "'")
    window = parse_window((range_text or "").replace("$", ""))
    rows = None if window is None else (window.min_row, window.max_row)
    # Outer columns without items are ignored: programs differ in whether they name them.
    headings = [field.name for field in pivot.fields]
    used = [index for index, field in enumerate(pivot.fields) if field.items]
    named = headings[used[0] : used[-1] + 1] if used else headings
    return (pivot.source_type, sheet, rows, tuple(named))


def pivot_property(pivot: Pivot, name: str) -> object:
    """Returns a property of a pivot table by its name in rules; fields are given by their names."""
    if name == "row_fields":
        return pivot.names_of(pivot.rows)
    if name == "col_fields":
        return pivot.names_of(pivot.columns)
    if name == "data_fields":
        return tuple((field.column, field.function, field.shown_as) for field in pivot.data)
    if name == "data_fields_name":
        return tuple(field.name for field in pivot.data)
    if name in {"filter", "selection"}:
        shown = tuple(
            (
                field.name,
                frozenset(
                    item.value if item.value is not None else item.index
                    for item in field.items
                    if item.index is not None and item.hidden
                ),
            )
            for field in pivot.fields
        )
        hidden = tuple(field for field in shown if field[1])
        return (hidden, frozenset(pivot.names_of(pivot.pages))) if name == "filter" else hidden
    if name == "ordered":
        return tuple(
            tuple(item.value for item in field.items if item.index is not None)
            for field in pivot.fields
            if field.axis is not None
        )
    if name == "name":
        return pivot.name
    if name == "location":
        return pivot.place
    attributes = dict(pivot.attributes)
    attribute = {
        "show_total": "visualTotals",
        "show_empty_row": "showEmptyRow",
        "show_empty_col": "showEmptyCol",
        "show_headers": "showHeaders",
    }.get(name, name)
    return is_on(attributes.get(attribute), default=not name.startswith("show_empty"))


def filter_content(filtered: Filter | None) -> object:
    """Returns a filter as it is compared: all kinds of conditions, values in any order."""
    if filtered is None:
        return None
    columns = tuple(
        sorted(
            (
                column.column,
                column.kind,
                tuple(sorted(column.values)),
                column.blanks,
                column.joined_by_and and len(column.values) > 1,
                column.terms,
                column.hidden_button or not column.show_button,
            )
            for column in filtered.columns
            if column.kind or column.hidden_button or not column.show_button
        )
    )
    sort = None if filtered.sort is None else filtered.sort.keys
    return filtered.place.replace("$", "").upper(), columns, sort


def rows(book: Book, tab: Tab, name: str) -> dict[int, object]:
    """Returns a property of all rows that do not have its default value.

    Raises:
        PublishedError: there is no such property.
        WorkbookError: the part is broken or over a limit.
    """
    usual = row_property({}, name)
    if name in {"height", "ht"}:
        sheet = book.facts.tree(tab).child("sheetFormatPr")
        usual = None if sheet is None else number(sheet.attributes.get("defaultRowHeight"))
    rows_by_number = {}
    for row, attributes in book.facts.row_attributes(tab).items():
        value = row_property(attributes, name)
        if value not in {usual, None}:
            rows_by_number[row] = value
    return rows_by_number


def columns(book: Book, tab: Tab, name: str) -> dict[int, object]:
    """Returns a property of all columns that do not have its default value.

    The first and last column of a group give its position, and are not properties of a column.

    Raises:
        PublishedError: there is no such property.
        WorkbookError: the part is broken or over a limit.
    """
    root = book.facts.tree(tab)
    sheet = root.child("sheetFormatPr")
    usual = column_property({}, name)
    if name == "width":
        usual = None if sheet is None else number(sheet.attributes.get("defaultColWidth"))
    columns_by_number: dict[int, object] = {}
    for holder in root.all("cols"):
        for element in holder.all("col"):
            value = column_property(element.attributes, name)
            if name in {"min", "max"} or (name == "width" and "width" not in element.attributes):
                continue
            first = max(1, whole(element.attributes.get("min")) or 1)
            last = min(16_384, whole(element.attributes.get("max")) or first)
            if value != usual:
                columns_by_number.update(dict.fromkeys(range(first, last + 1), value))
    return columns_by_number


def as_json(content: object) -> object:
    """Returns the content to compare as JSON."""
    if isinstance(content, tuple | list):
        return [as_json(item) for item in content]
    if isinstance(content, frozenset):
        return sorted(map(str, content))
    return (
        content
        if isinstance(content, str | int | float | bool) or content is None
        else str(content)
    )
