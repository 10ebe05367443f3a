"""Data validations as the judge's own reading compares them with what a rule asks for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from judge.compare.published.spider2v.validations import validation_property
from judge.compare.rules.book import Book
from judge.compare.rules.matching import unmatched
from judge.compare.rules.methods import Places, method_holds, places_of
from judge.compare.rules.rectangles import between, cells_of, overlap
from judge.workbook.tree import Element
from judge.workbook.workbook_parts import Tab


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
