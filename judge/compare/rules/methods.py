"""How a property is compared with what a rule asks for: the published methods."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping
from typing import Any

from judge.compare.rules import patterns
from judge.compare.rules.raised import PublishedError, Side
from judge.workbook.address import Window, parse_window

_COMPARISONS: Mapping[str, Callable[[Any, Any], Any]] = {
    name: getattr(operator, name) for name in ("eq", "ne", "le", "lt", "ge", "gt")
}
_FLAGS = {"A", "ASCII", "I", "IGNORECASE", "M", "MULTILINE", "S", "DOTALL", "X", "VERBOSE", "U"}
_MAX_SEARCHED = 4096


class Places(tuple[str, ...]):
    """Rectangles of cells as a rule or a file writes them."""

    __slots__ = ()

    def windows(self) -> list[Window]:
        """The rectangles.

        Raises:
            PublishedError: one is not a range.
        """
        return [window_of(each) for each in self]


def window_of(text: str) -> Window:
    """A rectangle; whole rows and columns too.

    Raises:
        PublishedError: it is not a range.
    """
    window = parse_window(text.replace("$", "").upper())
    if window is None:
        raise PublishedError("ValueError", f"{text} is not a valid coordinate or range")
    return window


def matches(value: object, rule: Mapping[str, Any]) -> bool:
    """Whether a value is as a rule asks.

    Args:
        value: the value.
        rule: its ``method`` and ``ref``.

    Raises:
        PublishedError: the published function raises.
    """
    for name in ("method", "ref"):
        if name not in rule:
            raise PublishedError("KeyError", repr(name), Side.RULES)
    method, ref = rule["method"], rule["ref"]
    if not isinstance(method, str):
        raise PublishedError(
            "AttributeError",
            f"{type(method).__name__!r} object has no attribute 'startswith'",
            Side.RULES,
        )
    if method.startswith("re"):
        return _search(method, ref, value)
    if method in _COMPARISONS:
        return _compared(_COMPARISONS[method], value, ref)
    if method.startswith("approx"):
        return _near(method, value, ref)
    if method == "spreadsheet_range":
        return _within_ranges(value, ref)
    if method.startswith("range."):
        names = [f"l{letter}" for letter in method[6:8]]
        if len(names) != 2 or any(name not in _COMPARISONS for name in names):
            raise PublishedError("AttributeError", f"no operator {method[6:8]!r}", Side.RULES)
        return _compared(_COMPARISONS[names[0]], ref[0], value) and _compared(
            _COMPARISONS[names[1]], value, ref[1]
        )
    if method in {"str_list_eq", "str_set_eq"}:
        if not isinstance(value, str):
            raise PublishedError(
                "AttributeError", f"{type(value).__name__!r} object has no attribute 'strip'"
            )
        items = value.strip("\"'").split(",")
        return set(items) == set(ref) if method == "str_set_eq" else items == list(ref)
    raise PublishedError("NotImplementedError", "", Side.RULES)


def _compared(compare: Callable[[Any, Any], Any], first: object, second: object) -> bool:
    try:
        return bool(compare(first, second))
    except TypeError as error:
        raise PublishedError("TypeError", str(error)) from error


def _search(method: str, pattern: object, value: object) -> bool:
    names = method.split(".")[1:]
    if not all(name in _FLAGS for name in names):
        raise PublishedError("AttributeError", f"module 're' has no {names!r}", Side.RULES)
    flags = re.RegexFlag(0)
    for name in names:
        flags |= getattr(re, name)
    if not isinstance(value, str):
        raise PublishedError(
            "TypeError",
            f"expected string or bytes-like object, got {type(value).__name__!r}",
        )
    try:
        return patterns.search(str(pattern), value[:_MAX_SEARCHED], flags)
    except patterns.PatternError as error:
        raise PublishedError("error", str(error), Side.RULES) from error


def _near(method: str, value: Any, ref: Any) -> bool:
    try:
        threshold = float(method.split(":")[1])
    except (IndexError, ValueError) as error:
        raise PublishedError(type(error).__name__, str(error), Side.RULES) from error
    try:
        number = float(value)
    except (ValueError, TypeError):
        return False
    except OverflowError as error:
        raise PublishedError("OverflowError", str(error)) from error
    try:
        return abs(number - float(ref)) <= threshold
    except OverflowError as error:
        raise PublishedError("OverflowError", str(error), Side.RULES) from error


def _within_ranges(value: object, ref: Any) -> bool:
    """Whether rectangles hold some cells and are within others, rectangle by rectangle."""
    if not isinstance(value, Places):
        raise PublishedError("TypeError", f"{type(value).__name__!r} object is not iterable")
    inner, outer = (places_of(each).windows() for each in ref[:2])
    windows = value.windows()
    return all(any(_holds(window, place) for window in windows) for place in inner) and all(
        any(_holds(each, place) for each in outer) for place in windows
    )


def _holds(outer: Window, inner: Window) -> bool:
    return (
        outer.min_row <= inner.min_row
        and outer.max_row >= inner.max_row
        and outer.min_column <= inner.min_column
        and outer.max_column >= inner.max_column
    )


def places_of(written: object) -> Places:
    """Rectangles written as a list, or as text with spaces."""
    if isinstance(written, str):
        return Places(written.split())
    return Places(str(each) for each in written) if isinstance(written, list | tuple) else Places()


def asked_of(rule: Mapping[str, Any]) -> str:
    """A method and what it refers to, as a rule writes them."""
    return f"{rule.get('method')} {rule.get('ref')!r}"


def method_holds(value: object, method: Mapping[str, Any]) -> bool:
    """A method on a value; one that does not apply to its type does not hold.

    Raises:
        PublishedError: the rule itself is at fault.
    """
    ref = method.get("ref")
    if isinstance(value, bool) != isinstance(ref, bool) and method.get("method") == "eq":
        return False
    if isinstance(value, str) and isinstance(ref, str) and len(ref) == len(value) == 8:
        value, ref = value.upper(), ref.upper()
    try:
        return matches(value, {**method, "ref": ref})
    except PublishedError as error:
        if error.side is Side.RULES:
            raise
        return False
