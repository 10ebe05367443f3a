"""What is known of a pivot table. Pure data.

Attributes that a file leaves out have the default of the format (ECMA-376 part 1, 18.10).
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class PivotItem:
    """An item of a pivot field.

    Attributes:
        index: of the shared item in the cache; None for totals.
        hidden: whether it is filtered out; None if the file does not say.
        value: the item as text; None if the cache does not have it.
    """

    index: int | None
    hidden: bool | None
    value: str | None = None


@dataclass(frozen=True, slots=True)
class PivotField:
    """A column of the source of a pivot table.

    Attributes:
        name: its heading; empty if the cache does not have it.
        axis: ``axisRow``, ``axisCol``, ``axisPage`` or None.
        items: its items, in the order in which they are shown.
    """

    name: str
    axis: str | None
    items: tuple[PivotItem, ...]


@dataclass(frozen=True, slots=True)
class PivotData:
    """A field of values.

    Attributes:
        field: index of the column of the source.
        column: heading of that column.
        name: the name that it is shown with.
        function: ``sum``, ``count``, ``average`` …
        shown_as: ``normal``, ``percentOfTotal`` …
    """

    field: int
    column: str
    name: str
    function: str = "sum"
    shown_as: str = "normal"


@dataclass(frozen=True, slots=True)
class Pivot:
    """A pivot table.

    Attributes:
        name: its name.
        place: the cells that it fills.
        source_type: ``worksheet``, ``external`` …
        source_sheet: sheet of the source; None if the file does not say.
        source_range: cells of the source; None for a table or a name.
        source_name: table or name that is the source.
        fields: the columns of the source.
        rows, columns: indices of the fields on the axes; -2 stands for the values.
        pages: indices of the fields that filter the whole table.
        data: what is summarised.
        location: what the definition says about its place, as written.
        attributes: what else it says (layout, totals), as written.
    """

    name: str
    place: str
    source_type: str
    source_sheet: str | None
    source_range: str | None
    source_name: str | None
    fields: tuple[PivotField, ...]
    rows: tuple[int, ...]
    columns: tuple[int, ...]
    pages: tuple[int, ...]
    data: tuple[PivotData, ...]
    location: tuple[tuple[str, str], ...] = ()
    attributes: tuple[tuple[str, str], ...] = ()

    def names_of(self, indices: tuple[int, ...]) -> tuple[str, ...]:
        """Headings of fields by index; ``Values`` for -2."""
        return tuple(
            "Values"
            if index == -2
            else self.fields[index].name
            if 0 <= index < len(self.fields)
            else f"field {index}"
            for index in indices
        )
