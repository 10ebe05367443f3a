"""Items about sheets and about the objects on them: ``sheet`` and ``object``."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping

from judge.compare.checklists.items import (
    AREA,
    COUNT,
    TEXT,
    TEXTS,
    TRUTH,
    Item,
    ItemKind,
    Outcome,
    Reading,
    fails,
    holds,
    needed,
    one_of,
)
from judge.compare.checklists.workspace import MissingError, OpenBook, Workspace, window_of
from judge.workbook.address import Window, cell_key, column_number, folded, parse_area
from judge.workbook.cell import CellValue, ErrorValue
from judge.workbook.facts.sheets import Filter, SheetFacts
from judge.workbook.number_formats import to_serial

# -- sheets ----------------------------------------------------------------------------------------


def _sheet(item: Item, workspace: Workspace, _: Reading) -> Outcome:
    book = workspace.book(item.file)
    names = [tab.name for tab in book.workbook.tabs]
    if order := item.texts("order"):
        own = [folded(name) for name in names]
        right = own == [folded(name) for name in order]
        return holds(list(order), names) if right else fails(list(order), names)
    if "count" in item.fields:
        count = item.fields["count"]
        return holds(count, len(names)) if len(names) == count else fails(count, len(names))
    sheet = item.text("sheet")
    tab = next((tab for tab in book.workbook.tabs if folded(tab.name) == folded(sheet)), None)
    if item.fields.get("exists") is False:
        return holds(None, None) if tab is None else fails("no such sheet", tab.name)
    if tab is None:
        return fails(sheet, names, detail="there is no such sheet")
    state = item.text("state")
    if state and tab.state != state:
        return fails(state, tab.state, tab.name)
    return holds(sheet, tab.name)


def _sheet_words(item: Item) -> str:
    if order := item.texts("order"):
        return f"the sheets are {', '.join(order)}, in this order"
    if "count" in item.fields:
        return f"there are {item.fields['count']} sheets"
    if item.fields.get("exists") is False:
        return f"there is no sheet {item.text('sheet')}"
    state = item.text("state")
    return f"there is a sheet {item.text('sheet')}" + (f", which is {state}" if state else "")


def _sheet_faults(item: Item) -> Iterator[str]:
    if not {"sheet", "order", "count"} & item.fields.keys():
        yield f"item {item.id} (sheet): sheet, order or count is needed"


# -- objects ---------------------------------------------------------------------------------------


def _facts(item: Item, book: OpenBook) -> SheetFacts:
    sheet = book.sheet_named(item.text("sheet"))
    tab = book.book.facts.tab(sheet)
    if tab is None:
        raise MissingError(f"there is no sheet {sheet!r}")
    return book.book.facts.sheet(tab)


def _meets(item: Item, areas: Iterable[str]) -> bool:
    """Whether any area overlaps the item's range; without a range, whether any area exists."""
    if "range" not in item.fields:
        return any(True for _ in areas)
    window = window_of(item.text("range"))
    return any(
        part is not None and part.overlaps(window)
        for area in areas
        for part in map(parse_area, area.split())
    )


def _counted(item: Item, matching: list[str]) -> Outcome:
    """Judges the number of matching objects: by the item's ``count``, or whether any matches."""
    if "count" in item.fields:
        count = item.fields["count"]
        return (
            holds(count, len(matching)) if len(matching) == count else fails(count, len(matching))
        )
    required = _object_words(item)
    return holds(required, matching[:5]) if matching else fails(required, None)


def _name(item: Item, book: OpenBook) -> Outcome:
    required = item.text("name").casefold()
    names = {name.name.casefold(): name for name in book.book.facts.names if not name.hidden}
    name = names.get(required)
    if name is None:
        return fails(item.text("name"), sorted(part.name for part in names.values())[:20])
    target = item.text("refers_to")
    if target and _bare(target) != _bare(name.refers_to):
        return fails(target, name.refers_to, name.name)
    return holds(item.text("name"), name.refers_to)


def _bare(reference: str) -> str:
    return reference.lstrip("=").replace("$", "").replace("'", "").replace(" ", "").casefold()


def _validation(item: Item, book: OpenBook) -> Outcome:
    kind = item.text("type")
    return _counted(
        item,
        [
            f"{part.kind} at {' '.join(part.places)}"
            for part in _facts(item, book).validations
            if part.kind is not None
            and (not kind or part.kind == kind)
            and _meets(item, part.places)
        ],
    )


def _conditional(item: Item, book: OpenBook) -> Outcome:
    kind = item.text("type")
    return _counted(
        item,
        [
            f"{part.kind} at {' '.join(part.places)}"
            for part in _facts(item, book).formats
            if (not kind or part.kind == kind) and _meets(item, part.places)
        ],
    )


def _filter(item: Item, book: OpenBook) -> Outcome:
    facts = _facts(item, book)
    listed: list[Filter] = [table.filter for table in facts.tables if table.filter is not None]
    if facts.filter is not None:
        listed.append(facts.filter)
    return _counted(item, [part.place for part in listed if _meets(item, [part.place])])


def _table(item: Item, book: OpenBook) -> Outcome:
    required = item.text("name").casefold()
    tables = _facts(item, book).tables
    return _counted(
        item,
        [
            f"{table.name} at {table.place}"
            for table in tables
            if (not required or table.name.casefold() == required) and _meets(item, [table.place])
        ],
    )


def _frozen(item: Item, book: OpenBook) -> Outcome:
    pane = _facts(item, book).view.pane
    panes = {"rows": 0, "columns": 0}
    if pane is not None and pane.frozen:
        panes = {"rows": int(pane.rows), "columns": int(pane.columns)}
    required = {name: item.fields[name] for name in ("rows", "columns") if name in item.fields}
    if not required:
        return holds("frozen", panes) if any(panes.values()) else fails("frozen", panes)
    right = all(panes[name] == count for name, count in required.items())
    return holds(required, panes) if right else fails(required, panes)


def _merged(item: Item, book: OpenBook) -> Outcome:
    merges = _facts(item, book).merges
    if "range" not in item.fields:
        return _counted(item, list(merges))
    window = window_of(item.text("range"))
    right = any(parse_area(area) == window for area in merges)
    required = item.text("range")
    return holds(required, required) if right else fails(required, list(merges[:20]))


def _chart(item: Item, book: OpenBook) -> Outcome:
    kind = item.text("type").casefold()
    charts = [" and ".join(chart.kinds) for chart in _facts(item, book).charts]
    return _counted(item, [chart for chart in charts if not kind or kind in chart.casefold()])


def _pivot(item: Item, book: OpenBook) -> Outcome:
    required = item.text("name").casefold()
    pivots = [pivot.name for pivot in _facts(item, book).pivots]
    return _counted(item, [name for name in pivots if not required or name.casefold() == required])


def _sorted(item: Item, book: OpenBook) -> Outcome:
    """Checks Excel's order: numbers, then text, truth values and errors, with blanks last."""
    sheet = book.sheet_named(item.text("sheet"))
    window = _sorted_window(item, book, sheet)
    grid = book.grid(sheet)
    descending = item.fields.get("descending") is True
    values = [
        (row, grid.values.get(cell_key(row, window.min_column)))
        for row in range(window.min_row, window.max_row + 1)
    ]
    for (_, before), (row, after) in itertools.pairwise(values):
        if not _in_order(before, after, descending=descending):
            spot = f"{sheet}!{item.text('column')}{row}"
            required = "descending" if descending else "ascending"
            return fails(required, f"{_shown(after)} after {_shown(before)}", spot)
    return holds(_object_words(item), None, sheet)


def _sorted_window(item: Item, book: OpenBook, sheet: str) -> Window:
    column = column_number(item.text("column"))
    first = int(item.number("first_row", 2))
    used = book.workbook.used_range(sheet)
    last = max(first, used.max_row if used is not None else first)
    if "last_row" in item.fields:
        last = min(last, int(item.number("last_row")))
    return Window(first, column, last, column)


def _rank(value: CellValue) -> tuple[int, float, str]:
    if isinstance(value, ErrorValue):
        return 3, 0.0, ""
    if isinstance(value, bool):
        return 2, float(value), ""
    if isinstance(value, str):
        return 1, 0.0, value.casefold()
    if isinstance(value, int | float):
        return 0, float(value), ""
    assert value is not None
    return 0, to_serial(value), ""


def _in_order(before: CellValue, after: CellValue, *, descending: bool) -> bool:
    if after is None:
        return True
    if before is None:
        return False
    first, second = _rank(before), _rank(after)
    return first >= second if descending else first <= second


def _shown(value: CellValue) -> str:
    return "a blank" if value is None else str(getattr(value, "code", value))


OBJECTS: Mapping[str, Callable[[Item, OpenBook], Outcome]] = {
    "name": _name,
    "validation": _validation,
    "filter": _filter,
    "table": _table,
    "frozen": _frozen,
    "merged": _merged,
    "conditional": _conditional,
    "sorted": _sorted,
    "chart": _chart,
    "pivot": _pivot,
}

_NOUNS = {
    "name": "a defined name",
    "validation": "a data validation",
    "filter": "a filter",
    "table": "a table",
    "frozen": "frozen panes",
    "merged": "merged cells",
    "conditional": "a conditional format",
    "chart": "a chart",
    "pivot": "a pivot table",
}


def _object(item: Item, workspace: Workspace, _: Reading) -> Outcome:
    return OBJECTS[item.text("object")](item, workspace.book(item.file))


def _object_words(item: Item) -> str:
    kind, sheet = item.text("object"), item.text("sheet") or "the sheet in front"
    if kind == "sorted":
        order = "descending" if item.fields.get("descending") is True else "ascending"
        return f"column {item.text('column')} of {sheet} is sorted in {order} order"
    words = _NOUNS[kind]
    if "count" in item.fields:
        words = f"{words}, {item.fields['count']} in all,"
    for name, text in (("type", "of type"), ("name", "called"), ("refers_to", "for")):
        if name in item.fields:
            words += f" {text} {item.fields[name]}"
    for name in ("rows", "columns"):
        if name in item.fields:
            words += f", {item.fields[name]} {name}"
    area = f" at {item.text('range')}" if "range" in item.fields else ""
    return f"there is {words}{area}" if kind == "name" else f"{sheet} has {words}{area}"


def _object_faults(item: Item) -> Iterator[str]:
    kind = item.text("object")
    if kind == "name" and "name" not in item.fields:
        yield f"item {item.id} (object): name is missing"
    if kind == "sorted" and not item.text("column").isalpha():
        yield f"item {item.id} (object): column is not the letters of a column"


KINDS = {
    "sheet": ItemKind(
        _sheet,
        _sheet_words,
        {
            "sheet": TEXT,
            "exists": TRUTH,
            "state": one_of("visible", "hidden", "veryHidden"),
            "count": COUNT,
            "order": TEXTS,
        },
        faults=_sheet_faults,
    ),
    "object": ItemKind(
        _object,
        _object_words,
        {
            "object": needed(one_of(*OBJECTS)),
            "sheet": TEXT,
            "range": AREA,
            "name": TEXT,
            "refers_to": TEXT,
            "type": TEXT,
            "count": COUNT,
            "rows": COUNT,
            "columns": COUNT,
            "column": TEXT,
            "first_row": COUNT,
            "last_row": COUNT,
            "descending": TRUTH,
        },
        faults=_object_faults,
    ),
}
