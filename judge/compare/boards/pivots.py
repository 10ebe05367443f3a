"""Pivot tables as boards compare them."""

from __future__ import annotations

from dataclasses import dataclass

from judge.compare.boards.cells import BoardBook
from judge.workbook.address import Window, cell_name, parse_window
from judge.workbook.facts.pivots import Pivot
from judge.workbook.workbook_parts import Tab

_MAX_PIVOTS = 300
"""Pivot tables of a sheet that are read; a sheet with more never has as many as its gold."""


@dataclass(frozen=True, slots=True)
class PivotView:
    """A pivot table.

    Attributes:
        name: its name.
        written: its source as the file names it.
        source: sheet and cells of its source, a table resolved and clipped to the cells in use.
        fields: how many columns the source has.
        rows, columns: headings on the axes; ``Values`` stands for the summarised fields.
        pages: headings of the fields that filter the whole table.
        hidden: heading and item of what is filtered out.
        data: heading and function of each summarised field.
    """

    name: str
    written: str
    source: str
    fields: int
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    pages: tuple[str, ...]
    hidden: tuple[tuple[str, str], ...]
    data: tuple[tuple[str, str], ...]

    def __str__(self) -> str:
        return f"pivot table {self.name!r}"


def pivots_of(owner: BoardBook, tab: Tab) -> list[PivotView]:
    """The pivot tables of a sheet.

    Raises:
        WorkbookError: a part is broken or over a limit.
        RecalcError: an engine cannot be started.
    """
    return [_view(owner, pivot) for pivot in owner.book.facts.pivots(tab)[:_MAX_PIVOTS]]


def _view(owner: BoardBook, pivot: Pivot) -> PivotView:
    rows, columns = (pivot.names_of(each) for each in (pivot.rows, pivot.columns))
    hidden = sorted(
        (field.name, str(item.index if item.value is None else item.value))
        for field in pivot.fields
        for item in field.items
        if item.hidden and item.index is not None
    )
    return PivotView(
        name=pivot.name,
        written=pivot.source_name or f"{pivot.source_sheet}!{pivot.source_range}",
        source=_source(owner, pivot),
        fields=len(pivot.fields),
        rows=rows,
        columns=columns,
        pages=pivot.names_of(pivot.pages),
        hidden=tuple(hidden),
        data=tuple((each.column, each.function) for each in pivot.data),
    )


def _source(owner: BoardBook, pivot: Pivot) -> str:
    """Sheet and cells of the source, however they are named."""
    sheet, place = pivot.source_sheet, pivot.source_range
    if place is None and pivot.source_name is not None:
        sheet, place = _named(owner, pivot.source_name)
    cells = owner.named(sheet or "")
    window = _window((place or "").replace("$", "").upper())
    if cells is None or window is None:
        return f"{sheet}!{place}".casefold()
    last_row, last_column = cells.last_row, cells.last_column
    return (
        f"{sheet}!{cell_name(window.min_row, window.min_column)}:"
        f"{cell_name(min(window.max_row, last_row), min(window.max_column, last_column))}"
    ).casefold()


def _window(place: str) -> Window | None:
    """A rectangle; whole columns such as ``A:F`` begin in row 1."""
    first, _, last = place.partition(":")
    if first.isalpha() and last.isalpha():
        return parse_window(f"{first}1:{last}1048576")
    return parse_window(place)


def _named(owner: BoardBook, name: str) -> tuple[str | None, str | None]:
    """Sheet and cells of a table or a defined name."""
    wanted = name.casefold()
    for tab in owner.tabs:
        for table in owner.book.facts.sheet(tab).tables:
            if table.name.casefold() == wanted:
                return tab.name, table.place
    for each in owner.book.facts.names:
        if each.name.casefold() == wanted and "!" in each.refers_to:
            sheet, _, place = each.refers_to.rpartition("!")
            return sheet.strip("'").replace("''", "'"), place
    return None, name


def without_values(fields: tuple[str, ...]) -> tuple[str, ...]:
    """Headings on an axis without the place of the summarised fields."""
    return tuple(field for field in fields if field != "Values")


def axes_agree(expected: PivotView, actual: PivotView) -> bool:
    """Whether rows and columns have the same fields, possibly exchanged."""
    first = (expected.rows, expected.columns)
    return first in {(actual.rows, actual.columns), (actual.columns, actual.rows)}
