"""The published methods that rules use to compare properties and strings."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from judge.compare.published_error import PublishedError, Side
from judge.compare.rules import patterns
from judge.workbook.address import Window, parse_window

_COMPARISONS: Mapping[str, Callable[[Any, Any], Any]] = {
    name: getattr(operator, name) for name in ("eq", "ne", "le", "lt", "ge", "gt")
}
_FLAGS = {"A", "ASCII", "I", "IGNORECASE", "M", "MULTILINE", "S", "DOTALL", "X", "VERBOSE", "U"}
_MAX_SEARCHED_CHARS = 4096  # of a value; patterns may be expensive


class Places(tuple[str, ...]):
    """Ranges of cells, as written in a rule or a file."""

    __slots__ = ()

    def windows(self) -> list[Window]:
        """The rectangles.

        Raises:
            PublishedError: an entry is not a range.
        """
        return [window_of(part) for part in self]


def window_of(text: str) -> Window:
    """Returns the rectangle of a reference, which may be whole rows or columns.

    Raises:
        PublishedError: the text is not a range.
    """
    window = parse_window(text.replace("$", "").upper())
    if window is None:
        raise PublishedError("ValueError", f"{text} is not a valid coordinate or range")
    return window


def matches(value: object, rule: Mapping[str, Any]) -> bool:
    """Whether a value meets a rule.

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
        return patterns.search(str(pattern), value[:_MAX_SEARCHED_CHARS], flags)
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
    """Whether ranges cover a rule's inner ranges, and each is inside one of its outer ranges."""
    if not isinstance(value, Places):
        raise PublishedError("TypeError", f"{type(value).__name__!r} object is not iterable")
    inner, outer = (places_of(text).windows() for text in ref[:2])
    windows = value.windows()
    return all(
        any(window.covers(inner_window) for window in windows) for inner_window in inner
    ) and all(any(bounds.covers(window) for bounds in outer) for window in windows)


def places_of(written: object) -> Places:
    """Returns the ranges in a list, or in a string separated by spaces; none for other values."""
    if isinstance(written, str):
        return Places(written.split())
    return Places(str(text) for text in written) if isinstance(written, list | tuple) else Places()


def requirement_of(rule: Mapping[str, Any]) -> str:
    """Returns the method of a rule and the value that it compares with, as one string."""
    return f"{rule.get('method')} {rule.get('ref')!r}"


def method_holds(value: object, method: Mapping[str, Any]) -> bool:
    """Whether a method holds for a value; False if it does not apply to the value's type.

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


# -- similarity of strings -------------------------------------------------------------------------
# The similarity of two strings, as in ``rapidfuzz.fuzz.ratio``.

_MAX_CHARS = 32_768
"""How many characters a cell can hold at most."""


def ratio(first: str, second: str) -> float:
    """Returns how similar two strings are, from 0 to 100.

    The ratio is twice the length of the longest common subsequence, divided by the sum of the
    lengths.
    """
    first, second = first[:_MAX_CHARS], second[:_MAX_CHARS]
    total = len(first) + len(second)
    if not total:
        return 100.0
    return 100.0 - 100.0 * ((total - 2 * _common(first, second)) / total)


def _common(first: str, second: str) -> int:
    """Returns the length of the longest common subsequence, by Hyyrö's bit-parallel algorithm."""
    positions: dict[str, int] = {}
    for index, character in enumerate(first):
        positions[character] = positions.get(character, 0) | 1 << index
    row = mask = (1 << len(first)) - 1
    for character in second:
        shared = row & positions.get(character, 0)
        row = ((row + shared) | (row - shared)) & mask
    return len(first) - row.bit_count()


# -- texts of a rule -------------------------------------------------------------------------------


def texts_alike(rule: Mapping[str, Any], actual: str, expected: str) -> bool | None:
    """Whether two strings are similar by a rule's type of match; None if it is unknown."""
    kind = rule.get("type")
    if kind == "includes":
        return expected in actual
    if kind == "included_by":
        return actual in expected
    if kind == "fuzzy_match":
        return bool(ratio(actual, expected) >= rule.get("threshold", 85.0))
    return actual == expected if kind == "exact_match" else None


def prepared_text(rule: Mapping[str, Any], text: str) -> str:
    """Returns a string after the replacements of a rule, in the published order."""
    for before, after in rule.get("normalization", ()):
        text = text.replace(before, after)
    if "trim_leadings" in rule:
        text = text.lstrip(rule["trim_leadings"])
    if "trim_trailings" in rule:
        text = text.rstrip(rule["trim_trailings"])
    if "ignore_chars" in rule:
        ignored = set(rule["ignore_chars"])
        text = "".join(character for character in text if character not in ignored)
    return text.lower() if rule.get("ignore_case", False) else text


_First = TypeVar("_First")
_Second = TypeVar("_Second")
_MAX_PAIRED = 1000  # items of a list; each pair is compared


def unmatched(
    expected: Sequence[_First], actual: Sequence[_Second], agree: Callable[[_First, _Second], bool]
) -> tuple[list[_First], list[_Second]]:
    """Pairs the items of two lists one to one, as many as possible.

    Args:
        expected: the items that have to be present.
        actual: the items that are present.
        agree: whether two items match.

    Returns:
        The items of both lists without a partner; items after the first thousand of a list are
        never paired.
    """
    partner: dict[int, int] = {}
    edges = [
        [index for index, item in enumerate(actual[:_MAX_PAIRED]) if agree(one, item)]
        for one in expected[:_MAX_PAIRED]
    ]

    def place_for(index: int, tried: set[int]) -> bool:
        waiting = [(index, iter(edges[index]))]
        path: list[tuple[int, int]] = []
        while waiting:
            here, candidates = waiting[-1]
            candidate_index = next(
                (candidate for candidate in candidates if candidate not in tried), None
            )
            if candidate_index is None:
                waiting.pop()
                if path:
                    path.pop()
                continue
            tried.add(candidate_index)
            path.append((here, candidate_index))
            if candidate_index not in partner:
                partner.update({taken: one for one, taken in path})
                return True
            waiting.append((partner[candidate_index], iter(edges[partner[candidate_index]])))
        return False

    for index in range(len(edges)):
        place_for(index, set())
    matched = set(partner.values())
    return (
        [item for index, item in enumerate(expected) if index not in matched],
        [item for index, item in enumerate(actual) if index not in partner],
    )
