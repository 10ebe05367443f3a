"""Text as a rule compares it: prepared in the published order, and alike in the way it asks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from judge.compare.rules.similarity import ratio


def texts_alike(rule: Mapping[str, Any], actual: str, expected: str) -> bool | None:
    """Whether two strings are alike in the way that a rule asks; None for an unknown way."""
    kind = rule.get("type")
    if kind == "includes":
        return expected in actual
    if kind == "included_by":
        return actual in expected
    if kind == "fuzzy_match":
        return bool(ratio(actual, expected) >= rule.get("threshold", 85.0))
    return actual == expected if kind == "exact_match" else None


def prepared_text(rule: Mapping[str, Any], text: str) -> str:
    """A string after the replacements of a rule, in the published order."""
    for before, after in rule.get("normalization", ()):
        text = text.replace(before, after)
    if "trim_leadings" in rule:
        text = text.lstrip(rule["trim_leadings"])
    if "trim_trailings" in rule:
        text = text.rstrip(rule["trim_trailings"])
    if "ignore_chars" in rule:
        ignored = set(rule["ignore_chars"])
        text = "".join(each for each in text if each not in ignored)
    return text.lower() if rule.get("ignore_case", False) else text
