"""Decides whether a value is accepted as BabelBench's published script does, faults included.

The rules are those of ``cal_eval_metric.py`` (FFD8FFE/babelbench at 3204319). ``int`` truncates,
any number in a string may be the right one, and lists are compared within 1e-4 whatever the suite
says. Text in place of a number ends the script with an exception. Nothing is executed:
:mod:`judge.compare.values.rules` says which values therefore cannot be decided.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from judge.compare.values.rules import (
    UNKNOWN,
    AnswerType,
    ExpressionError,
    Match,
    UnboundedError,
    VariableRule,
    evaluate,
)

_USUAL_TOLERANCE = 0.00001  # absolute, if the suite states none
_RELATIVE_TOLERANCE = 0.001
_LIST_TOLERANCE = 1e-4  # absolute, for items of lists
_NAMED_TOLERANCE = 1e-6  # absolute, of InfiAgent-DABench
_NUMBER = re.compile(r"[-+]?\d*\.\d+|\d+")


@dataclass(frozen=True, slots=True)
class Published:
    """The outcome of the published script for a value.

    Attributes:
        agrees: whether the script accepts the value.
        note: one line that says what the script does instead of deciding; empty if it decides.
    """

    agrees: bool
    note: str = ""


def published_verdict(rule: VariableRule, gold: object, answer: object) -> Published:
    """Returns whether the published script accepts a value.

    Args:
        rule: the rule of comparison.
        gold: the right value.
        answer: the value in the answer, as JSON; NaN and infinities included.
    """
    try:
        if rule.type is AnswerType.EXPRESSION:
            return _expression(str(gold), str(answer).strip())
        golds = gold if rule.match is Match.ONE_OF and isinstance(gold, list) else [gold]
        return Published(any(_accepts(rule, listed_gold, answer) for listed_gold in golds))
    except Exception as error:  # noqa: BLE001  any exception ends the script
        name = type(error).__name__
        return Published(False, f"the published script ends with {name} at this value")


def _accepts(rule: VariableRule, gold: object, answer: object) -> bool:
    match rule.type:
        case AnswerType.INT:
            return _int(gold, answer)
        case AnswerType.FLOAT:
            return _float(
                gold, answer, _USUAL_TOLERANCE if rule.tolerance is None else rule.tolerance
            )
        case AnswerType.BOOL:
            return ("true" in answer.lower() if isinstance(answer, str) else answer) == gold
        case AnswerType.TEXT:
            return _text(rule.match, str(gold), answer)
        case _:
            return _list(rule.match, gold, answer)


def _int(gold: object, answer: object) -> bool:
    try:
        return int(answer) == int(gold)  # type: ignore[call-overload, no-any-return]
    except Exception:  # noqa: BLE001  as published: any exception means a mismatch
        return False


def _float(gold: object, answer: object, tolerance: float) -> bool:
    if isinstance(answer, int | float):
        return _is_near(answer, gold, tolerance)
    if isinstance(answer, str):
        return any(_is_near(number, gold, tolerance) for number in _numbers(answer))
    return False


def _numbers(text: str) -> Iterator[float]:
    for match in _NUMBER.finditer(text):
        yield float(match[0])


def _is_near(number: float, gold: object, tolerance: float) -> bool:
    assert isinstance(gold, int | float)
    away = abs(number - gold)
    return away <= tolerance or (gold != 0 and away / abs(gold) <= _RELATIVE_TOLERANCE)


def _text(match: Match, gold: str, answer: object) -> bool:
    text = (answer if isinstance(answer, str) else str(answer)).strip()
    if match is Match.FUZZY:
        return text.lower() == gold.lower() or gold in text
    # With several golds, the answer is compared with each as written, blanks included.
    return text == (gold if match is Match.ONE_OF else gold.strip())


def _expression(gold: str, answer: str) -> Published:
    try:
        right = evaluate(gold, guess=True).value
        value = evaluate(answer, guess=True).value
    except ExpressionError:
        return Published(False)
    except UnboundedError as error:
        return Published(False, f"the published script would evaluate it without a bound: {error}")
    if value is UNKNOWN:
        return Published(
            False, "the published script would execute it; nothing was executed, so not accepted"
        )
    return Published(value == right)


def _list(match: Match, gold: object, answer: object) -> bool:
    if not isinstance(answer, list) or not isinstance(gold, list) or len(answer) != len(gold):
        return False
    if match is Match.ANY_ORDER:
        answer, gold = sorted(answer), sorted(gold)
    return all(_is_same(item, expected) for item, expected in zip(answer, gold, strict=True))


def _is_same(answer: object, gold: object) -> bool:
    if isinstance(gold, int | float):
        return bool(abs(answer - gold) <= _LIST_TOLERANCE)  # type: ignore[operator]
    return answer == gold


def named_verdict(gold: object, answer: object) -> Published:
    """Returns whether InfiAgent-DABench's script accepts the value of ``@name[value]``.

    As in its ``eval_closed_form.py``, strings must be equal, or numbers less than 1e-6 apart.
    """
    if answer == gold:
        return Published(True)
    try:
        return Published(abs(float(str(answer)) - float(str(gold))) < _NAMED_TOLERANCE)
    except ValueError:
        return Published(False)
