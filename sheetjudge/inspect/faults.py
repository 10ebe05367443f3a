"""Errors of the judge as Inspect shows them: a message and what to do, without a traceback."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from inspect_ai._util.error import PrerequisiteError

from judge.errors import JudgeError


@contextlib.contextmanager
def shown_by_inspect() -> Iterator[None]:
    """Turns errors of the judge into those that end an evaluation with their message alone.

    Raises:
        PrerequisiteError: in place of a JudgeError.
    """
    try:
        yield
    except JudgeError as error:
        hint = f"\n{error.hint}" if error.hint else ""
        raise PrerequisiteError(f"{error.message}{hint}") from error
