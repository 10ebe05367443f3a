"""Data validations as the judge's own reading compares them with what a rule asks for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from judge.compare.published.spider2v.validations import validation_property
from judge.compare.rules.book import Book
from judge.compare.rules.matching import unmatched
from judge.compare.rules.methods import Places, method_holds, places_of
from judge.workbook.address import Window, parse_window
from judge.workbook.tree import Element
from judge.workbook.workbook_parts import Tab

# -- sets of cells, written as rectangles ----------------------------------------------------------

Rows = tuple[Window, ...]

_MAX_RECTANGLES = 2000


def cells_of(places: Sequence[str]) -> Rows:
    """The cells of some rectangles: for each band of rows, the columns that are covered."""
    return tuple(
        window for each in places if (window := parse_window(each.replace("$", "").upper()))
    )


def between(inner: Rows, places: Sequence[str], outer: Rows) -> bool:
    """Whether some cells hold all of others and are among a third set, however they are written."""
    middle = cells_of(places)
    return _covers(middle, inner) and _covers(outer, middle)


def overlap(first: Sequence[str], second: Sequence[str]) -> bool:
    """Whether a cell is in rectangles of both lists."""
    others = cells_of(second)
    return any(
        one.min_row <= two.max_row
        and two.min_row <= one.max_row
        and one.min_column <= two.max_column
        and two.min_column <= one.max_column
        for one in cells_of(first)[:_MAX_RECTANGLES]
        for two in others[:_MAX_RECTANGLES]
    )


def _covers(outer: Rows, inner: Rows) -> bool:
    """Whether every cell of some rectangles is in one of others."""
    edges = sorted({row for each in (*outer, *inner) for row in (each.min_row, each.max_row + 1)})
    if len(edges) > 2000:
        return all(any(_holds(each, place) for each in outer) for place in inner)
    for top in edges:
        wanted = _columns(inner, top)
        have = _columns(outer, top)
        if any(not any(a <= first and last <= b for a, b in have) for first, last in wanted):
            return False
    return True


def _holds(outer: Window, inner: Window) -> bool:
    return outer.holds(inner.min_row, inner.min_column) and outer.holds(
        inner.max_row, inner.max_column
    )


def _columns(places: Rows, row: int) -> list[tuple[int, int]]:
    """The columns that rectangles cover in a row, neighbours joined."""
    joined: list[tuple[int, int]] = []
    for first, last in sorted(
        (each.min_column, each.max_column) for each in places if each.min_row <= row <= each.max_row
    ):
        if joined and first <= joined[-1][1] + 1:
            joined[-1] = (joined[-1][0], max(joined[-1][1], last))
        else:
            joined.append((first, last))
    return joined


# -- validations -----------------------------------------------------------------------------------


def all_validations(book: Book, tab: Tab) -> list[Element]:
    """The validations of a sheet, those of the extension part too.

    Raises:
        WorkbookError: the part is broken or over a limit.
    """
    names = {"dataValidation", "x14:dataValidation"}
    return [each for each in book.facts.tree(tab).walk() if each.name in names]


def left_over(
    found: Sequence[Element], entries: Sequence[Mapping[str, Any]]
) -> tuple[list[Mapping[str, Any]], list[Element]]:
    """Entries that no validation of their own meets, and validations that should not be there.

    Cells that no entry is about may have validations of their own, unless the rule has no entry at
    all, and so asks for none.

    Raises:
        PublishedError: the rule is at fault.
    """
    lacking, extra = unmatched(entries, found, lambda entry, each: _fits(each, entry))
    beyond = {id(each) for each in extra}
    covered = [place for each in found if id(each) not in beyond for place in cells_with(each)]
    if entries:
        extra = [each for each in extra if lacking or overlap(cells_with(each), covered)]
    return lacking, extra


def cells_with(element: Element) -> list[str]:
    """The rectangles that a validation is for."""
    return (element.attributes.get("sqref") or element.text_of("xm:sqref") or "").split()


def _fits(element: Element, entry: Mapping[str, Any]) -> bool:
    """Whether a validation has all properties of an entry: cells as sets, items without blanks."""
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
            inside, outside = (cells_of(places_of(each)) for each in method["ref"][:2])
            if not between(inside, value, outside):
                return False
        elif method.get("method") in {"str_list_eq", "str_set_eq"} and isinstance(value, str):
            items = [each.strip() for each in value.strip("\"'").split(",")]
            ref = [str(each).strip() for each in method["ref"]]
            alike = items == ref if method["method"] == "str_list_eq" else set(items) == set(ref)
            if not alike:
                return False
        elif not method_holds(value, method):
            return False
    return True
