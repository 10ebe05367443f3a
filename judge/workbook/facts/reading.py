"""Attributes of a file that may be hostile, as numbers and truth values. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping

from judge.workbook.tree import Element

_ON = {"1", "true", "t", "on"}
_NUMBER = re.compile(r"[+-]?[0-9]{1,30}(?:\.[0-9]{0,30})?(?:[eE][+-]?[0-9]{1,3})?")
MAX_ELEMENTS = 500_000
"""Elements of one part that are read: a chart of 100,000 points has 400,000."""


def is_on(text: str | None, *, default: bool = False) -> bool:
    """Whether an attribute says yes."""
    return default if text is None else text.strip().lower() in _ON


def number(text: str | None) -> float | None:
    """The number of an attribute; None if it is not one."""
    return float(text) if text is not None and _NUMBER.fullmatch(text.strip()) else None


def whole(text: str | None) -> int | None:
    """The whole number of an attribute, negative ones included; None if it is not one."""
    if text is None or re.fullmatch(r"-?[0-9]{1,9}", text.strip()) is None:
        return None
    return int(text)


def identifier(attributes: Mapping[str, str]) -> str | None:
    """The id of the relationship that an element names."""
    return attributes.get("r:id")


def colour(element: Element | None) -> str | None:
    """The colour of a drawing element's plain fill: six digits, or the name in the theme."""
    fill = None if element is None else element.child("solidFill")
    for each in [] if fill is None else fill.children:
        value = each.attributes.get("val")
        if value:
            return value.upper() if each.name == "srgbClr" else value
    return None
