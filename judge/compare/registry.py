"""All checkers, by name."""

from __future__ import annotations

import functools
import importlib
from collections.abc import Mapping

from judge.compare.contract import Checker
from judge.core.task import LEFT_OUT_CASES_OPTION, LEFT_OUT_OPTION, CheckerSpec
from judge.errors import UsageError
from judge.files.documents import written

CHECKERS = {
    "boards": "judge.compare.boards.checker",
    "cell_range": "judge.compare.cells.checker",
    "charts": "judge.compare.charts",
    "checklist": "judge.compare.checklists.checker",
    "metrics": "judge.compare.files.checker",
    "rules": "judge.compare.rules.checker",
    "typed_answer": "judge.compare.values.checker",
    "unjudged": "judge.compare.unjudged",
}
"""Name of a checker -> the module that defines it as ``CHECKER``."""

_REGISTERED: dict[str, Checker] = {}


def register(checker: Checker) -> None:
    """Adds a custom checker under its name.

    Raises:
        UsageError: it does not inherit from :class:`judge.compare.contract.Checker`, or another
            checker has that name.
    """
    if not isinstance(checker, Checker):
        raise UsageError(
            f"{checker!r} is not a checker",
            hint="A checker inherits from judge.compare.contract.Checker; see docs/checkers.md.",
        )
    if checker.name in CHECKERS or _REGISTERED.get(checker.name, checker) is not checker:
        raise UsageError(f"a checker {checker.name!r} already exists")
    _REGISTERED[checker.name] = checker


def unregister(name: str) -> None:
    """Removes a checker that was registered."""
    _REGISTERED.pop(name, None)


def checker_names() -> list[str]:
    """Names of all checkers, in order."""
    return sorted({*CHECKERS, *_REGISTERED})


def checker_of(spec: CheckerSpec) -> Checker:
    """Returns the checker that a task names.

    Raises:
        UsageError: there is no such checker.
    """
    if spec.name in _REGISTERED:
        return _REGISTERED[spec.name]
    if spec.name not in CHECKERS:
        raise UsageError(
            f"there is no checker {spec.name!r}",
            hint=f"Checkers: {', '.join(checker_names())}.",
        )
    return _load(spec.name)


def aspects_of(spec: CheckerSpec) -> tuple[str, ...]:
    """Returns the kinds of checks that a task is judged by; empty if its checker has only one.

    Raises:
        UsageError: there is no such checker.
    """
    return checker_of(spec).aspects(spec)


def check_options(spec: CheckerSpec) -> None:
    """Checks the options that a task or a command gives.

    Raises:
        UsageError: there is no such checker or option, or a value does not fit.
    """
    checker = checker_of(spec)
    reason = spec.options.get(LEFT_OUT_OPTION, "")
    if LEFT_OUT_OPTION in spec.options and not (isinstance(reason, str) and reason.strip()):
        raise UsageError(f"option {LEFT_OUT_OPTION}: expected the reason, found {written(reason)}")
    if LEFT_OUT_CASES_OPTION in spec.options:
        _check_left_out_cases(spec.options[LEFT_OUT_CASES_OPTION])
    checker.check_options(spec.own_options)


def _check_left_out_cases(value: object) -> None:
    if not isinstance(value, Mapping) or not all(
        isinstance(number, str)
        and number.isdecimal()
        and isinstance(reason, str)
        and reason.strip()
        for number, reason in value.items()
    ):
        raise UsageError(
            f"option {LEFT_OUT_CASES_OPTION}: expected numbers of cases with reasons, such as "
            f'{{"2": "the gold is blank"}}, found {written(value)}'
        )


@functools.cache
def _load(name: str) -> Checker:
    checker: Checker = importlib.import_module(CHECKERS[name]).CHECKER
    return checker
