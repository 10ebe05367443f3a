"""The only module that decides whether a value agrees with its gold under a profile."""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from judge.compare.profiles import Profile, TextNumbers
from judge.compare.published.babelbench import published_verdict
from judge.compare.values.rules import (
    AnswerType,
    ExpressionError,
    Match,
    UnboundedError,
    VariableRule,
    evaluate,
)
from judge.core.replies.relaxed import NotLiteralError, number_of, read_literal

# -- numbers in strings ----------------------------------------------------------------------------

MAX_CHARS = 2_000
"""Text longer than this, in characters, is not searched for a number."""

_NUMBER = re.compile(
    r"""
    (?<![\w.,])
    (?P<sign>[-+\u2212])?+ (?:[$\u20ac\u00a3\u00a5]\s?+)?+
    (?P<digits> \d{1,3}(?:,\d{3})++(?!\d) | \d++ (?!,\d{3}(?!\d)) | (?=\.\d) )
    (?P<rest> (?:\.\d++)?+ (?:[eE][-+]?+\d++)?+ )
    """,
    re.VERBOSE | re.ASCII,
)
_DIGITS = re.compile(r"\d")


def number_in(text: str) -> float | None:
    """Returns the number that text consists of, or the only number in it.

    Signs, exponents and thousands separators count. A currency, a percent sign or words around the
    number do not affect its value. ``between 3 and 7`` states no number.

    Args:
        text: the text.

    Returns:
        A finite number; None if the text has no number, or several different ones.
    """
    if len(text) > MAX_CHARS:
        return None
    numbers = set()
    rest = []
    position = 0
    for match in _NUMBER.finditer(text):
        rest.append(text[position : match.start()])
        position = match.end()
        numbers.add(_value(match))
    rest.append(text[position:])
    # Digits that are part of something else, such as a word or a date, make it ambiguous.
    if len(numbers) != 1 or _DIGITS.search("".join(rest)):
        return None
    (number,) = numbers
    return number if number is not None and math.isfinite(number) else None


def _value(match: re.Match[str]) -> float | None:
    digits = match["digits"].replace(",", "") + match["rest"]
    sign = -1 if match["sign"] in {"-", "\u2212"} else 1
    number = number_of(digits)
    return None if number is None else sign * number


# -- agreement -------------------------------------------------------------------------------------

USUAL_TOLERANCE = 1e-5
"""How far a number may be from the gold's if the suite sets no tolerance."""

RELATIVE_TOLERANCE = 1e-3
"""Numbers whose relative difference from the gold is at most this also agree, except in the profile
``strict``."""

LIST_TOLERANCE = 1e-4
"""How far a number in a list may be from the gold's; lists have no relative tolerance."""

_NOISE = 1e-9  # relative; a rounding error
_LAST_DIGITS = 4
"""A float this many units in the last place away from a whole number still counts as that number.
"""

_MAX_PAIRS = 1_000_000  # of list items that are compared; beyond it, sorted lists are
_WORDS = {"true": True, "yes": True, "false": False, "no": False}
_SIGNS = str.maketrans({"\u00d7": "*", "\u00f7": "/", "\u2212": "-", "\u2013": "-", "\u00b7": "*"})


@dataclass(frozen=True, slots=True)
class Agreement:
    """The result of comparing a value with its gold.

    Attributes:
        kind: what is wrong, in a word or two; empty if the value agrees.
        detail: a remark for people, if the two values do not explain the difference.
    """

    kind: str = ""
    detail: str = ""

    @property
    def agrees(self) -> bool:
        """Whether the value is right."""
        return not self.kind


AGREES = Agreement()
"""The result for a value that agrees."""

WRONG_VALUE = "wrong_value"
WRONG_TYPE = "wrong_type"


def compare_value(rule: VariableRule, gold: object, answer: object, profile: Profile) -> Agreement:
    """Compares a value with its gold.

    Args:
        rule: what is expected.
        gold: the right value; for :attr:`Match.ONE_OF` a list of right values.
        answer: the value in the answer, as JSON.
        profile: ``official`` gives the published verdict; other profiles decide by their rules
            about numbers in text, booleans and case.
    """
    if profile.published:
        verdict = published_verdict(rule, gold, answer)
        return AGREES if verdict.agrees else Agreement(WRONG_VALUE, verdict.note)
    if rule.match is Match.ONE_OF and isinstance(gold, list):
        agreements = [_COMPARE[rule.type](rule, one, answer, profile) for one in gold]
        return next((one for one in agreements if one.agrees), agreements[0])
    return _COMPARE[rule.type](rule, gold, answer, profile)


def _number(answer: object, profile: Profile) -> float | None:
    """Returns the finite number that a value is or states; whole numbers stay ``int``."""
    if isinstance(answer, bool):
        return int(answer) if profile.booleans_are_numbers else None
    if isinstance(answer, int):
        return answer
    if isinstance(answer, float):
        return answer if math.isfinite(answer) else None
    if isinstance(answer, str) and profile.text_numbers is TextNumbers.PLAIN:
        return number_in(answer)
    return None


def _near(number: float, gold: float, tolerance: float, relative: float = 0.0) -> bool:
    if isinstance(gold, int) and isinstance(number, float) and number.is_integer():
        number = int(number)  # as a float, the difference of two large numbers would be rounded
    try:
        away = abs(number - gold)
        # A difference equal to the tolerance is allowed, even if its last digit is a rounding
        # error.
        return away <= tolerance * (1 + _NOISE) or away <= relative * abs(gold)
    except OverflowError:  # a whole number too large for a float is near no float
        return False


def _of_int(rule: VariableRule, gold: object, answer: object, profile: Profile) -> Agreement:
    expected = int(gold) if isinstance(gold, int | float | str) else 0
    # Some golds are strings of digits; the same string agrees in every profile.
    is_gold = isinstance(answer, str) and isinstance(gold, str) and answer.strip() == gold.strip()
    number = expected if is_gold else _number(answer, profile)
    if number is None:
        return Agreement(WRONG_TYPE, _no_number(answer))
    if rule.tolerance:
        return AGREES if _near(number, expected, rule.tolerance) else Agreement(WRONG_VALUE)
    return AGREES if _whole(number) == expected else Agreement(WRONG_VALUE)


def _whole(number: float) -> int | None:
    """Returns a number as a whole number; None if it has a fraction.

    Rounding errors in the last digits of a float, as in 3.0000000000000004, do not count as a
    fraction. Large floats are exact: 1e13 is not 10,000,000,000,001.
    """
    if isinstance(number, int):
        return number
    nearest = round(number)
    return nearest if abs(number - nearest) <= _LAST_DIGITS * math.ulp(number) else None


def _of_float(rule: VariableRule, gold: object, answer: object, profile: Profile) -> Agreement:
    assert isinstance(gold, int | float)
    number = _number(answer, profile)
    if number is None:
        return Agreement(WRONG_TYPE, _no_number(answer))
    tolerance = USUAL_TOLERANCE if rule.tolerance is None else rule.tolerance
    relative = rule.relative_tolerance
    if relative is None:
        relative = _NOISE if profile.text_numbers is TextNumbers.NEVER else RELATIVE_TOLERANCE
    return AGREES if _near(number, gold, tolerance, relative) else Agreement(WRONG_VALUE)


def _no_number(answer: object) -> str:
    return "the text does not state one number" if isinstance(answer, str) else ""


def _of_bool(rule: VariableRule, gold: object, answer: object, profile: Profile) -> Agreement:
    del rule
    value: object = answer
    if isinstance(answer, str) and profile.text_numbers is TextNumbers.PLAIN:
        value = _WORDS.get(answer.strip().strip(".!\"'`").lower())
    elif isinstance(answer, int | float) and not isinstance(answer, bool):
        value = bool(answer) if profile.booleans_are_numbers and answer in (0, 1) else None
    if not isinstance(value, bool):
        return Agreement(WRONG_TYPE)
    return AGREES if value == gold else Agreement(WRONG_VALUE)


def _of_text(rule: VariableRule, gold: object, answer: object, profile: Profile) -> Agreement:
    is_number = isinstance(answer, int | float) and profile.text_numbers is TextNumbers.PLAIN
    if is_number or isinstance(answer, bool):
        answer = str(answer)
    if not isinstance(answer, str):
        return Agreement(WRONG_TYPE)
    expected, text = _plain(str(gold), profile), _plain(answer, profile)
    if text == expected or (rule.match is Match.FUZZY and _contains(text, expected)):
        return AGREES
    same = text.casefold() == expected.casefold()
    return Agreement(WRONG_VALUE, "they differ in upper and lower case only" if same else "")


def _plain(text: str, profile: Profile) -> str:
    """Returns text without outer blanks, and with all accents composed in the same way."""
    plain = unicodedata.normalize("NFC", text).strip()
    if profile.ignore_whitespace:
        plain = " ".join(plain.split())
    return plain.casefold() if profile.ignore_case else plain


def _contains(text: str, expected: str) -> bool:
    """Whether text contains the expected text as separate words, ignoring case."""
    pattern = rf"(?<!\w){re.escape(expected.casefold())}(?!\w)"
    return re.search(pattern, text.casefold()) is not None


def _of_list(rule: VariableRule, gold: object, answer: object, profile: Profile) -> Agreement:
    if isinstance(answer, str) and profile.text_numbers is TextNumbers.PLAIN:
        answer = _list_in(answer)
    if not isinstance(answer, list) or not isinstance(gold, list):
        return Agreement(WRONG_TYPE)
    if len(answer) != len(gold):
        return Agreement("wrong_length", f"{len(gold):,} items expected, {len(answer):,} found")
    tolerance = LIST_TOLERANCE if rule.tolerance is None else rule.tolerance

    def same(one: object, expected: object) -> bool:
        return _same(one, expected, tolerance, profile)

    if all(map(same, answer, gold)):
        return AGREES
    is_permutation = _is_permutation(answer, gold, same)
    if rule.match is Match.ANY_ORDER:
        return AGREES if is_permutation else Agreement(WRONG_VALUE)
    return Agreement("wrong_order" if is_permutation else WRONG_VALUE)


def _list_in(text: str) -> object:
    """Returns the literal that a string spells out, such as a list; None if it is not a literal."""
    stripped = text.strip()
    try:
        listed, end = read_literal(stripped)
    except NotLiteralError:
        return None
    return listed if end == len(stripped) else None


_TEXT = VariableRule(AnswerType.TEXT)


def _same(answer: object, gold: object, tolerance: float, profile: Profile) -> bool:
    """Whether an item of a list agrees; inside nested lists, the order counts."""
    if isinstance(gold, list):
        return (
            isinstance(answer, list)
            and len(answer) == len(gold)
            and all(
                _same(one, expected, tolerance, profile)
                for one, expected in zip(answer, gold, strict=True)
            )
        )
    if isinstance(gold, bool) or gold is None:
        return answer is gold
    if isinstance(gold, int | float):
        number = _number(answer, profile)
        return number is not None and _near(number, gold, tolerance)
    if isinstance(gold, str):
        return _of_text(_TEXT, gold, answer, profile).agrees
    return answer == gold


def _is_permutation(
    answer: Sequence[object], gold: Sequence[object], same: Callable[[object, object], bool]
) -> bool:
    """Whether two lists of the same length hold the same items, equally often."""
    if len(gold) ** 2 > _MAX_PAIRS:
        # Too many to try all pairs; in sorted order, items that agree are next to each other.
        pairs = zip(sorted(answer, key=_sort_key), sorted(gold, key=_sort_key), strict=True)
        return all(same(one, expected) for one, expected in pairs)
    left = list(answer)
    for expected in gold:
        index = next((at for at, one in enumerate(left) if same(one, expected)), None)
        if index is None:
            return False
        del left[index]
    return True


def _sort_key(item: object) -> tuple[int, float, str]:
    if isinstance(item, int | float):
        try:
            return (0, float(item), "")
        except OverflowError:
            return (0, math.inf, "")
    return (1, 0.0, str(item))


def _of_expression(rule: VariableRule, gold: object, answer: object, profile: Profile) -> Agreement:
    del profile
    if isinstance(answer, bool) or not isinstance(answer, str | int | float):
        return Agreement(WRONG_TYPE)
    right = evaluate(str(gold))
    # A solver may write the result after the expression: (10-6-2)*12 = 24.
    sides = str(answer).translate(_SIGNS).split("=")
    try:
        values = [evaluate(side) for side in sides if side.strip()]
    except (ExpressionError, UnboundedError) as error:
        return Agreement("not_arithmetic", str(error))
    if not values or len(sides) > 2 or len(values) != len(sides):
        return Agreement("not_arithmetic", "not an arithmetic expression")
    if not all(_near(_real(value.value), _real(right.value), 1e-9) for value in values):
        return Agreement(WRONG_VALUE, f"its value is {values[0].value!s:.40}")
    operands = right.operands if rule.operands is None else rule.operands
    if sorted(values[0].operands) != sorted(operands):
        used = ", ".join(f"{operand!s:.20}" for operand in values[0].operands[:20]) or "none"
        named = ", ".join(f"{entry!s:.20}" for entry in operands[:20])
        return Agreement("wrong_operands", f"it has to use {named}, and uses {used}")
    return AGREES


def _real(value: object) -> float:
    return value if isinstance(value, int | float) else math.nan


_COMPARE: Mapping[AnswerType, Callable[[VariableRule, object, object, Profile], Agreement]] = {
    AnswerType.INT: _of_int,
    AnswerType.FLOAT: _of_float,
    AnswerType.BOOL: _of_bool,
    AnswerType.TEXT: _of_text,
    AnswerType.LIST: _of_list,
    AnswerType.EXPRESSION: _of_expression,
}
