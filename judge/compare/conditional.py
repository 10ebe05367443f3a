"""Conditional formats: which rules speak for a cell, and what they would make of its looks.

Rules are compared as rules: two cells look the same if the same conditions, read from where the
cell stands, lead to the same look. Whether a condition holds is not computed; a cell that is
painted and one that a rule paints are not the same.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from judge.compare.formula_shift import shift_formula
from judge.compare.sheet_tail import ConditionalRule
from judge.compare.style import colours_agree
from judge.compare.style_sheet import ConditionalStyle, StyleSheet

CONDITIONAL_ATTRIBUTES = ("fill", "font_color", "bold")
"""Style attributes that conditional formats can change."""


@dataclass(frozen=True, slots=True)
class AppliedRule:
    """A rule as it reads in one cell."""

    condition: tuple[object, ...]
    look: ConditionalStyle


def applied_rules(
    rules: Sequence[ConditionalRule], styles: StyleSheet, row: int, column: int
) -> list[AppliedRule]:
    """The rules that speak for a cell, in their order, with formulas as they read there."""
    applied = _applied(rules, styles, row, column)
    return [rule for _, rule in sorted(applied, key=lambda pair: pair[0])]


def _applied(
    rules: Sequence[ConditionalRule], styles: StyleSheet, row: int, column: int
) -> Iterator[tuple[int, AppliedRule]]:
    for rule in rules:
        if not any(window.holds(row, column) for window in rule.windows):
            continue
        top = min(window.min_row for window in rule.windows)
        left = min(window.min_column for window in rule.windows)
        formulas = tuple(
            _canonical(shift_formula(text, row - top, column - left)) for text in rule.formulas
        )
        look = ConditionalStyle()
        if rule.style is not None and 0 <= rule.style < len(styles.conditional):
            look = styles.conditional[rule.style]
        yield rule.priority, AppliedRule((rule.kind, rule.terms, formulas), look)


_TEXT = re.compile(r'("(?:[^"]|"")*")')
_IDLE = re.compile(r"[\s$]+")


def _canonical(formula: str) -> str:
    """A condition without spaces and dollar signs, which mean nothing in the cell itself."""
    pieces = _TEXT.split(formula)
    return "".join(
        piece if index % 2 else _IDLE.sub("", piece).upper() for index, piece in enumerate(pieces)
    )


def rules_agree(name: str, expected: Sequence[AppliedRule], actual: Sequence[AppliedRule]) -> bool:
    """Whether the rules of two cells set one attribute alike under the same conditions."""
    first = [rule for rule in expected if getattr(rule.look, name) is not None]
    second = [rule for rule in actual if getattr(rule.look, name) is not None]
    if len(first) != len(second):
        return False
    unmatched = list(second)
    for rule in first:
        match = next((each for each in unmatched if _same(name, rule, each)), None)
        if match is None:
            return False
        unmatched.remove(match)
    return True


def _same(name: str, first: AppliedRule, second: AppliedRule) -> bool:
    if first.condition != second.condition:
        return False
    one, other = getattr(first.look, name), getattr(second.look, name)
    if name == "fill":
        return one.pattern == other.pattern and all(map(colours_agree, one.colours, other.colours))
    return colours_agree(one, other) if name == "font_color" else bool(one == other)
