"""Data validations against the properties that a rule asks for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from judge.compare.rules.book import Book
from judge.compare.rules.methods import Places, matches
from judge.compare.rules.raised import PublishedError, Side, no_attribute
from judge.workbook.tree import Element, is_on
from judge.workbook.workbook_parts import Tab

_TRUTHS = {"showDropDown", "showInputMessage", "showErrorMessage", "allowBlank"}
_ALIASES = {
    "ranges": "sqref",
    "cells": "sqref",
    "hide_drop_down": "showDropDown",
    "allow_blank": "allowBlank",
    "validation_type": "type",
}
_WORDS = {"type", "errorStyle", "imeMode", "operator"}
_TEXTS = {"errorTitle", "error", "promptTitle", "prompt"}


def validations(book: Book, tab: Tab) -> list[Element]:
    """The validations of a sheet that the published reader sees: not those of the extension part.

    Raises:
        WorkbookError: the part is broken or over a limit.
    """
    holder = book.facts.tree(tab).child("dataValidations")
    return [] if holder is None else holder.all("dataValidation")


def validation_property(element: Element, name: str) -> object:
    """A property of a validation.

    Raises:
        PublishedError: there is no such property.
    """
    name = _ALIASES.get(name, name)
    attributes = element.attributes
    if name == "sqref":
        return Places(attributes.get("sqref", "").split())
    if name in _TRUTHS:
        return is_on(attributes.get(name))
    if name in _WORDS:
        word = attributes.get(name)
        return None if word == "none" else word
    if name in _TEXTS:
        return attributes.get(name)
    if name in {"formula1", "formula2"}:
        child = element.child(name)
        return None if child is None else child.text or "None"
    raise no_attribute("DataValidation", name)


def validations_match(found: Sequence[Element], wanted: Sequence[Mapping[str, Any]]) -> bool:
    """At least as many validations as entries, and each validation fits some entry.

    Raises:
        PublishedError: the published function raises.
    """
    if not isinstance(wanted, list | tuple):
        raise PublishedError("TypeError", "dv_props is not a list", Side.RULES)
    if len(found) < len(wanted):
        # The first one is still looked at, and may raise.
        for each in found[:1]:
            any(fits(each, entry) for entry in wanted)
        return False
    return all(any(fits(each, entry) for entry in wanted) for each in found)


def fits(element: Element, entry: Mapping[str, Any]) -> bool:
    """Whether a validation has all properties of an entry.

    Raises:
        PublishedError: the published function raises.
    """
    return all(matches(validation_property(element, name), rule) for name, rule in entry.items())
