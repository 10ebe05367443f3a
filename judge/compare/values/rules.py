"""What is expected of each variable of a typed answer. Pure."""

from __future__ import annotations

import enum
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeVar

MAX_VARIABLES = 1_000

_Choice = TypeVar("_Choice", bound=enum.StrEnum)


class AnswerType(enum.StrEnum):
    """What sort of value a variable has."""

    INT = "int"
    FLOAT = "float"
    BOOL = "bool"
    TEXT = "text"
    LIST = "list"
    """A list, a list of lists, or an array of any depth."""
    EXPRESSION = "expression"
    """Arithmetic in a string; its value counts, and the numbers that it uses."""


class Match(enum.StrEnum):
    """How the value is compared."""

    EXACT = "exact"
    FUZZY = "fuzzy"
    """Text: the same in any case, or contained in the answer."""
    ONE_OF = "one_of"
    """The gold is a list of values, each of which is right."""
    ANY_ORDER = "any_order"
    """A list in any order; lists in it keep theirs."""


_FIELDS = frozenset({"type", "match", "tolerance", "relative_tolerance", "operands"})
_FITTING = {
    AnswerType.INT: {Match.EXACT, Match.ONE_OF},
    AnswerType.FLOAT: {Match.EXACT, Match.ONE_OF},
    AnswerType.BOOL: {Match.EXACT},
    AnswerType.TEXT: {Match.EXACT, Match.FUZZY, Match.ONE_OF},
    AnswerType.LIST: {Match.EXACT, Match.ANY_ORDER},
    AnswerType.EXPRESSION: {Match.EXACT},
}


@dataclass(frozen=True, slots=True)
class VariableRule:
    """What is expected of a variable.

    Attributes:
        type: what sort of value it has.
        match: how it is compared.
        tolerance: how far a number may be from the gold's; None for the usual one.
        relative_tolerance: the same as a share of the gold; None for the usual one.
        operands: the numbers that an expression has to use, each as often as it is named; None
            for those of the gold.
    """

    type: AnswerType
    match: Match = Match.EXACT
    tolerance: float | None = None
    relative_tolerance: float | None = None
    operands: tuple[float, ...] | None = None

    @property
    def described(self) -> str:
        """The rule in a few words: ``float, within 0.01``."""
        words = [self.type.value]
        if self.match is not Match.EXACT:
            words.append(self.match.value.replace("_", " "))
        if self.tolerance is not None:
            words.append(f"within {self.tolerance:g}")
        if self.operands is not None:
            words.append("of " + ", ".join(f"{operand:g}" for operand in self.operands))
        return ", ".join(words)

    def as_json(self) -> dict[str, object]:
        """The rule as the options of a suite write it; what is usual is left out."""
        record: dict[str, object] = {"type": self.type.value}
        if self.match is not Match.EXACT:
            record["match"] = self.match.value
        if self.tolerance is not None:
            record["tolerance"] = self.tolerance
        if self.relative_tolerance is not None:
            record["relative_tolerance"] = self.relative_tolerance
        if self.operands is not None:
            record["operands"] = list(self.operands)
        return record


def read_rules(value: object) -> dict[str, VariableRule]:
    """Reads the rules of all variables, as the option ``variables`` has them.

    Args:
        value: name of a variable -> its rule: ``type``, and if they are not the usual ones
            ``match``, ``tolerance``, ``relative_tolerance`` and ``operands``.

    Raises:
        ValueError: says which field of which variable does not fit, and why.
    """
    if not isinstance(value, Mapping) or not value:
        raise ValueError("must be an object: name of a variable -> its rule")
    if len(value) > MAX_VARIABLES:
        raise ValueError(f"has more than {MAX_VARIABLES:,} variables")
    return {str(name): _read_rule(str(name), rule) for name, rule in value.items()}


def _read_rule(name: str, value: object) -> VariableRule:
    if not isinstance(value, Mapping):
        raise ValueError(f"variable {name!r}: must be an object with a type")  # noqa: TRY004
    for field in value:
        if field not in _FIELDS:
            raise ValueError(f"variable {name!r}: the field {field!r} is not known")
    kind = _choice(AnswerType, name, "type", value.get("type"))
    match = _choice(Match, name, "match", value.get("match", Match.EXACT.value))
    if match not in _FITTING[kind]:
        raise ValueError(
            f"variable {name!r}: match {match.value!r} does not fit type {kind.value!r}"
        )
    for field in ("tolerance", "relative_tolerance"):
        bound = value.get(field)
        if bound is not None and not (_is_number(bound) and bound >= 0):
            raise ValueError(f"variable {name!r}: {field} must be 0 or a positive number")
    operands = value.get("operands")
    if operands is not None and not (
        isinstance(operands, list | tuple) and all(_is_number(operand) for operand in operands)
    ):
        raise ValueError(f"variable {name!r}: operands must be a list of numbers")
    return VariableRule(
        kind,
        match,
        tolerance=value.get("tolerance"),
        relative_tolerance=value.get("relative_tolerance"),
        operands=None if operands is None else tuple(operands),
    )


def _choice(choices: type[_Choice], name: str, field: str, value: object) -> _Choice:
    try:
        return choices(str(value))
    except ValueError:
        known = ", ".join(choice.value for choice in choices)
        raise ValueError(f"variable {name!r}: {field} must be one of {known}") from None


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def problem_of_gold(rule: VariableRule, gold: object) -> str | None:
    """Why a value cannot be the gold of a variable; None if it can."""
    if rule.match is Match.ONE_OF:
        if not isinstance(gold, list) or not gold:
            return "must be a list of the values that are right"
        problems = (_problem_of_value(rule.type, each) for each in gold)
        return next((problem for problem in problems if problem is not None), None)
    return _problem_of_value(rule.type, gold)


def _problem_of_value(kind: AnswerType, gold: object) -> str | None:
    is_text = isinstance(gold, str)
    fits = {
        # The published suites write two whole numbers as text.
        AnswerType.INT: _is_number(gold)
        or (is_text and str(gold).strip().lstrip("-+").isdecimal()),
        AnswerType.FLOAT: _is_number(gold),
        AnswerType.BOOL: isinstance(gold, bool),
        AnswerType.TEXT: is_text,
        AnswerType.LIST: isinstance(gold, list),
        AnswerType.EXPRESSION: is_text,
    }
    if fits[kind]:
        return None
    wanted = {
        AnswerType.INT: "a whole number",
        AnswerType.FLOAT: "a number",
        AnswerType.BOOL: "true or false",
        AnswerType.TEXT: "text",
        AnswerType.LIST: "a list",
        AnswerType.EXPRESSION: "an arithmetic expression in a string",
    }
    return f"must be {wanted[kind]}"
