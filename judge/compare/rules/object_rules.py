"""Rules about sheets, objects, formatting, views, rows and columns, in the judge's own reading.

Each type of rule is a function of the two workbooks and the rule. It returns None if the rule
holds. It raises ``PublishedError`` if the gold or the rule is at fault, ``MissingSheetError`` if
the answer lacks a sheet, and ``WorkbookError`` if a workbook is broken or over a limit.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import islice
from typing import Any

from judge.compare.published.spider2v.objects import validation_property
from judge.compare.published_error import PublishedError, Side
from judge.compare.rules import objects as whole
from judge.compare.rules.book import (
    MAX_CELLS,
    Book,
    Judged,
    Rule,
    RuleDifference,
    Target,
    option_of,
)
from judge.compare.rules.looks import WholeLooks, differing_looks
from judge.compare.rules.methods import (
    Places,
    matches,
    method_holds,
    places_of,
    requirement_of,
    unmatched,
)
from judge.core.finding import differing_cell
from judge.workbook.address import Window, parse_window
from judge.workbook.facts.sheets import filter_of, sparklines_of, view_of
from judge.workbook.tree import Element
from judge.workbook.workbook_parts import Tab

# -- sets of cells, written as rectangles ----------------------------------------------------------

Rows = tuple[Window, ...]

_MAX_RECTANGLES = 2000  # of a list; each pair is compared


def cells_of(references: Sequence[str]) -> Rows:
    """Returns the rectangles of written ranges; text that is not a range is left out."""
    return tuple(
        window for part in references if (window := parse_window(part.replace("$", "").upper()))
    )


def between(inner: Rows, references: Sequence[str], outer: Rows) -> bool:
    """Whether ranges contain all cells of ``inner``, and ``outer`` contains all of theirs."""
    middle = cells_of(references)
    return _covers(middle, inner) and _covers(outer, middle)


def overlap(first: Sequence[str], second: Sequence[str]) -> bool:
    """Whether the rectangles of two lists have a cell in common."""
    others = cells_of(second)
    return any(
        one.overlaps(two)
        for one in cells_of(first)[:_MAX_RECTANGLES]
        for two in others[:_MAX_RECTANGLES]
    )


def _covers(outer: Rows, inner: Rows) -> bool:
    """Whether the outer rectangles cover every cell of the inner ones."""
    edges = sorted(
        {row for window in (*outer, *inner) for row in (window.min_row, window.max_row + 1)}
    )
    if len(edges) > 2000:
        return all(any(cover.covers(window) for cover in outer) for window in inner)
    for top in edges:
        columns = _columns(inner, top)
        have = _columns(outer, top)
        if any(not any(a <= first and last <= b for a, b in have) for first, last in columns):
            return False
    return True


def _columns(windows: Rows, row: int) -> list[tuple[int, int]]:
    """Returns the runs of columns that rectangles cover in a row."""
    joined: list[tuple[int, int]] = []
    for first, last in sorted(
        (window.min_column, window.max_column)
        for window in windows
        if window.min_row <= row <= window.max_row
    ):
        if joined and first <= joined[-1][1] + 1:
            joined[-1] = (joined[-1][0], max(joined[-1][1], last))
        else:
            joined.append((first, last))
    return joined


# -- validations -----------------------------------------------------------------------------------


def all_validations(book: Book, tab: Tab) -> list[Element]:
    """Returns the validations of a sheet, including those in the extension list.

    Raises:
        WorkbookError: the part is broken or over a limit.
    """
    names = {"dataValidation", "x14:dataValidation"}
    return [element for element in book.facts.tree(tab).walk() if element.name in names]


def unmatched_validations(
    actual: Sequence[Element], entries: Sequence[Mapping[str, Any]]
) -> tuple[list[Mapping[str, Any]], list[Element]]:
    """Matches validations and entries one to one; returns the unmatched ones of both.

    Cells that no entry mentions may have other validations. But a rule without entries requires
    that there are no validations at all.

    Raises:
        PublishedError: the rule is at fault.
    """
    lacking, extra = unmatched(entries, actual, lambda entry, element: _fits(element, entry))
    beyond = {id(element) for element in extra}
    covered = [
        cell for element in actual if id(element) not in beyond for cell in cells_with(element)
    ]
    if entries:
        extra = [element for element in extra if lacking or overlap(cells_with(element), covered)]
    return lacking, extra


def cells_with(element: Element) -> list[str]:
    """Returns the ranges that a validation applies to."""
    return (element.attributes.get("sqref") or element.text_of("xm:sqref") or "").split()


def _fits(element: Element, entry: Mapping[str, Any]) -> bool:
    """Whether a validation has all properties of an entry; ranges are compared as sets of cells."""
    for name, method in entry.items():
        value: object
        if name in {"ranges", "sqref", "cells"}:
            value = Places(cells_with(element))
        elif name in {"formula1", "formula2"}:
            child = element.child(name) or element.child(f"x14:{name}")
            inner = None if child is None else child.child("xm:f") or child
            value = None if inner is None else inner.text.strip()
        else:
            value = validation_property(element, name)
        if method.get("method") == "spreadsheet_range" and isinstance(value, Places):
            inside, outside = (cells_of(places_of(text)) for text in method["ref"][:2])
            if not between(inside, value, outside):
                return False
        elif method.get("method") in {"str_list_eq", "str_set_eq"} and isinstance(value, str):
            items = [item.strip() for item in value.strip("\"'").split(",")]
            ref = [str(item).strip() for item in method["ref"]]
            alike = items == ref if method["method"] == "str_list_eq" else set(items) == set(ref)
            if not alike:
                return False
        elif not method_holds(value, method):
            return False
    return True


def sheet_name(judged: Judged, _: Rule) -> RuleDifference | None:
    """Checks that the sheets have the same names, in the same order."""
    if judged.gold is None:
        raise PublishedError("ValueError", "the rule requires a gold", Side.RULES)
    expected, actual = (
        [tab.name for tab in book.facts.tabs] for book in (judged.gold, judged.answer)
    )
    return None if expected == actual else RuleDifference(expected, actual)


def sparkline(judged: Judged, rule: Rule) -> RuleDifference | None:
    """Checks that two sheets have the same sparklines."""
    return _described(
        judged,
        rule,
        lambda target, _: [
            whole.DescribedObject(
                f"sparkline at {line.place}",
                (line.kind, line.place.replace("$", ""), whole.plain(line.reference)),
            )
            for line in sparklines_of(target.book.facts.tree(target.tab))
        ],
        (),
    )


def chart(judged: Judged, rule: Rule) -> RuleDifference | None:
    """Checks that two sheets have the same charts, by the properties that the rule names."""
    return _described(
        judged,
        rule,
        lambda target, property_names: whole.charts(target.book, target.tab, property_names),
        rule.get("chart_props", ()),
    )


def pivot_table(judged: Judged, rule: Rule) -> RuleDifference | None:
    """Checks that two sheets have the same pivot tables, by the properties that the rule names."""
    return _described(
        judged,
        rule,
        lambda target, property_names: whole.pivots(target.book, target.tab, property_names),
        rule.get("pivot_props", ()),
    )


def _described(
    judged: Judged,
    rule: Rule,
    read: Callable[[Target, Sequence[str]], list[whole.DescribedObject]],
    property_names: Sequence[str],
) -> RuleDifference | None:
    """Matches the objects of both sheets one to one."""
    expected, actual = judged.pair(rule)
    lacking, extra = unmatched(
        read(expected, property_names),
        read(actual, property_names),
        lambda a, b: a.content == b.content,
    )
    if not lacking and not extra:
        return None
    first, second = (elements[0] if elements else None for elements in (lacking, extra))
    return RuleDifference(
        None if first is None else whole.as_json(first.content),
        None if second is None else whole.as_json(second.content),
        f"{len(lacking)} without a counterpart in the output, {len(extra)} without one in the "
        f"gold; {(first or second or whole.DescribedObject('', None)).name}",
        actual.tab.name,
    )


def style(judged: Judged, rule: Rule) -> RuleDifference | None:
    """Checks that the cells of two sheets agree in the requested properties of their formatting."""
    expected, actual = judged.pair(rule)
    differing = differing_looks(
        WholeLooks(expected.book, expected.tab.name),
        WholeLooks(actual.book, actual.tab.name),
        tuple(rule.get("props", ())),
        compute=judged.compute,
        origin=judged.origin,
    )
    if not differing:
        return None
    cell, detail = next(iter(differing.items()))
    more = f" and {len(differing) - 1} more cells" if len(differing) > 1 else ""
    cells = tuple(
        differing_cell(name, detail=how) for name, how in islice(differing.items(), MAX_CELLS)
    )
    return RuleDifference(
        "the gold's look", detail, f"{cell}{more}", actual.tab.name, "", cells, len(differing)
    )


def freeze(judged: Judged, rule: Rule) -> RuleDifference | None:
    """Checks that the same rows and columns are frozen."""
    expected, actual = judged.pair(rule)
    panes = []
    for target in (expected, actual):
        pane = view_of(target.book.facts.tree(target.tab)).pane
        frozen = pane is not None and pane.frozen
        panes.append([pane.columns, pane.rows] if pane is not None and frozen else None)
    return (
        None
        if panes[0] == panes[1]
        else RuleDifference(panes[0], panes[1], "columns, rows", actual.tab.name)
    )


def zoom(judged: Judged, rule: Rule) -> RuleDifference | None:
    """Checks the zoom of a sheet."""
    target = judged.target(rule, "sheet_idx")
    zoom = view_of(target.book.facts.tree(target.tab)).zoom
    if matches(zoom, rule):
        return None
    return RuleDifference(requirement_of(rule), zoom, sheet=target.tab.name)


def data_validation(judged: Judged, rule: Rule) -> RuleDifference | None:
    """Checks that the validations of a sheet and those that the rule lists match one to one."""
    target = judged.target(rule, "sheet_idx")
    validations = all_validations(target.book, target.tab)
    lacking, extra = unmatched_validations(validations, option_of(rule, "dv_props"))
    if not lacking and not extra:
        return None
    return RuleDifference(
        lacking[0] if lacking else None,
        " ".join(cells_with(extra[0])) if extra else None,
        f"{len(lacking)} not met, {len(extra)} beyond the requested ones",
        target.tab.name,
    )


def row_props(judged: Judged, rule: Rule) -> RuleDifference | None:
    """Checks that the rows of two sheets have the same properties."""
    return _lines(judged, rule, whole.rows, "row")


def col_props(judged: Judged, rule: Rule) -> RuleDifference | None:
    """Checks that the columns of two sheets have the same properties."""
    return _lines(judged, rule, whole.columns, "column")


def _lines(
    judged: Judged, rule: Rule, read: Callable[[Book, Tab, str], dict[int, object]], kind: str
) -> RuleDifference | None:
    expected, actual = judged.pair(rule)
    for name in rule.get("props", ()):
        first = read(expected.book, expected.tab, name)
        second = read(actual.book, actual.tab, name)
        for line in sorted(first.keys() | second.keys()):
            if first.get(line) != second.get(line):
                return RuleDifference(
                    first.get(line),
                    second.get(line),
                    f"{name} of {kind} {line}",
                    actual.tab.name,
                )
    return None


def filter_rule(judged: Judged, rule: Rule) -> RuleDifference | None:
    """Checks that two sheets have the same filter."""
    expected, actual = judged.pair(rule)
    contents = [
        whole.filter_content(filter_of(side.book.facts.tree(side.tab).child("autoFilter")))
        for side in (expected, actual)
    ]
    if contents[0] == contents[1]:
        return None
    first, second = map(whole.as_json, contents)
    return RuleDifference(first, second, sheet=actual.tab.name)
