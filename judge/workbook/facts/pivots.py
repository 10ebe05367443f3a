"""Pivot tables of a sheet: their contents, and how they are read.

Attributes that a file leaves out have the format's default. Source: ECMA-376 part 1, chapter
18.10.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass

from judge.errors import WorkbookError
from judge.workbook.address import Window, parse_window
from judge.workbook.package import Package
from judge.workbook.tree import MAX_ELEMENTS, Element, identifier, read_tree, whole
from judge.workbook.workbook_parts import main_part
from judge.workbook.xml_parts import is_on, linked_parts, relationships, scan_part


@dataclass(frozen=True, slots=True)
class PivotItem:
    """An item of a pivot field.

    Attributes:
        index: the index of the shared item in the cache; None for totals.
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
        name: the name under which it is shown.
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
        location: the attributes of the definition's ``location``, as written.
        attributes: its other attributes (layout, totals), as written.
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
        """The headings of some fields, given by index; ``Values`` for -2."""
        return tuple(
            "Values"
            if index == -2
            else self.fields[index].name
            if 0 <= index < len(self.fields)
            else f"field {index}"
            for index in indices
        )


_SHARED = {"s", "n", "b", "d", "e", "m"}


@dataclass(frozen=True, slots=True)
class _Cache:
    """A pivot cache: the location of the source, and its columns with their distinct values."""

    type: str
    sheet: str | None
    range: str | None
    name: str | None
    fields: tuple[tuple[str, tuple[str | None, ...]], ...]


class PivotReader:
    """Reads the pivot tables of a workbook; each cache is read once.

    Args:
        package: the workbook.
    """

    def __init__(self, package: Package) -> None:
        self._package = package
        self._parts: dict[str, str] | None = None
        self._caches: dict[str, _Cache] = {}

    def read(self, part: str) -> Pivot:
        """Reads one pivot table.

        Args:
            part: name of its part.

        Raises:
            WorkbookError: the part or its cache is missing, broken or over a limit.
        """
        root = read_tree(self._package, part, max_elements=MAX_ELEMENTS)
        cache = self._cache(part, root)
        fields = _fields(root.child("pivotFields"), cache)
        attributes = dict(root.attributes)
        name = attributes.pop("name", "")
        location = root.child("location")
        location_attributes = {} if location is None else dict(location.attributes)
        return Pivot(
            name=name,
            place=location_attributes.get("ref", ""),
            source_type=cache.type,
            source_sheet=cache.sheet,
            source_range=cache.range,
            source_name=cache.name,
            fields=fields,
            rows=_indices(root.child("rowFields"), "x"),
            columns=_indices(root.child("colFields"), "x"),
            pages=_indices(root.child("pageFields"), "fld"),
            data=_data(root.child("dataFields"), fields),
            location=tuple(sorted(location_attributes.items())),
            attributes=tuple(sorted(attributes.items())),
        )

    def _cache(self, part: str, root: Element) -> _Cache:
        """The cache of a pivot table, found by its cache id or by its relationship."""
        if self._parts is None:
            self._parts = self._cache_parts()
        target = self._parts.get(root.attributes.get("cacheId", ""))
        if target is None:
            target = next(
                (
                    link.target
                    for link in relationships(self._package, part).values()
                    if link.kind == "pivotCacheDefinition" and not link.external
                ),
                None,
            )
        if target is None or target not in self._package:
            raise WorkbookError(f"{part}: its cache is missing")
        if target not in self._caches:
            self._caches[target] = _read_cache(self._package, target)
        return self._caches[target]

    def _cache_parts(self) -> dict[str, str]:
        main = main_part(self._package)
        root = read_tree(self._package, main, max_elements=MAX_ELEMENTS)
        links = relationships(self._package, main)
        listed = root.child("pivotCaches")
        caches = {}
        for node in [] if listed is None else listed.all("pivotCache"):
            link = links.get(identifier(node.attributes) or "")
            if link is not None and not link.external:
                caches[node.attributes.get("cacheId", "")] = link.target
        return caches


def refreshed_windows(package: Package, part: str) -> list[Window]:
    """The rectangles of a worksheet's pivot tables that Excel refreshes when it opens the file.

    Excel refreshes a pivot table if its cache says ``refreshOnLoad``, and then does not show the
    values in the file. If any cache of the workbook says so, all pivot tables count as refreshed:
    the file states in two places which table belongs to which cache, and these may differ.

    Args:
        package: the workbook.
        part: name of the worksheet's part.

    Raises:
        WorkbookError: a pivot table or its cache cannot be read.
    """
    tables = linked_parts(package, part, "pivotTable")
    if not tables:
        return []
    caches = {
        target
        for source in (main_part(package), *tables)
        for target in linked_parts(package, source, "pivotCacheDefinition")
    }
    if not any(is_on(_root_of(package, cache).get("refreshOnLoad")) for cache in sorted(caches)):
        return []
    windows = []
    for table in tables:
        location = read_tree(package, table, max_elements=MAX_ELEMENTS).child("location")
        reference = "" if location is None else location.attributes.get("ref", "")
        window = parse_window(reference)
        if window is None:
            raise WorkbookError(f"{table} is a pivot table at {reference[:30]!r}")
        windows.append(window)
    return windows


class _RootReadError(Exception):
    """Raised to stop the parser once the start tag of the root has been read."""


def _root_of(package: Package, part: str) -> dict[str, str]:
    """The attributes of a part's root element; reading stops after its start tag."""
    by_id: dict[str, str] = {}

    def on_start(_: str, attributes: dict[str, str]) -> None:
        by_id.update(attributes)
        raise _RootReadError

    with contextlib.suppress(_RootReadError):
        scan_part(package, part, on_start)
    return by_id


def _read_cache(package: Package, part: str) -> _Cache:
    root = read_tree(package, part, max_elements=MAX_ELEMENTS)
    source = root.child("cacheSource") or Element("cacheSource")
    sheet = source.child("worksheetSource") or Element("worksheetSource")
    listed = root.child("cacheFields")
    fields = tuple(
        (node.attributes.get("name", ""), _shared(node.child("sharedItems")))
        for node in ([] if listed is None else listed.all("cacheField"))
    )
    return _Cache(
        type=source.attributes.get("type", ""),
        sheet=sheet.attributes.get("sheet"),
        range=sheet.attributes.get("ref"),
        name=sheet.attributes.get("name"),
        fields=fields,
    )


def _shared(element: Element | None) -> tuple[str | None, ...]:
    if element is None:
        return ()
    return tuple(child.attributes.get("v") for child in element.children if child.name in _SHARED)


def _fields(listed: Element | None, cache: _Cache) -> tuple[PivotField, ...]:
    fields = []
    for index, node in enumerate([] if listed is None else listed.all("pivotField")):
        name, shared = cache.fields[index] if index < len(cache.fields) else ("", ())
        holder = node.child("items")
        items = tuple(
            _item(item, shared) for item in ([] if holder is None else holder.all("item"))
        )
        fields.append(PivotField(name, node.attributes.get("axis"), items))
    return tuple(fields)


def _item(element: Element, shared: tuple[str | None, ...]) -> PivotItem:
    index = whole(element.attributes.get("x"))
    hidden = element.attributes.get("h")
    value = shared[index] if index is not None and 0 <= index < len(shared) else None
    return PivotItem(index, None if hidden is None else is_on(hidden), value)


def _indices(holder: Element | None, attribute: str) -> tuple[int, ...]:
    nodes = [] if holder is None else holder.children
    numbers = (whole(node.attributes.get(attribute, "0")) for node in nodes)
    return tuple(0 if number is None else number for number in numbers)


def _data(holder: Element | None, fields: tuple[PivotField, ...]) -> tuple[PivotData, ...]:
    data_fields = []
    for node in [] if holder is None else holder.all("dataField"):
        index = whole(node.attributes.get("fld")) or 0
        data_fields.append(
            PivotData(
                field=index,
                column=fields[index].name if 0 <= index < len(fields) else "",
                name=node.attributes.get("name", ""),
                function=node.attributes.get("subtotal", "sum"),
                shown_as=node.attributes.get("showDataAs", "normal"),
            )
        )
    return tuple(data_fields)
