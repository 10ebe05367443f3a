"""Declarations against which documents are checked."""

from __future__ import annotations

from typing import NotRequired, Required, TypedDict

from judge.files.forms import Amount, Count, Sha256, TaskId


class Run(TypedDict, total=False):
    """A document without a required field."""

    status: str | None
    output: Sha256
    ended: bool


class Case(TypedDict):
    """A document with required fields, and others."""

    task: TaskId
    sample: Required[Count]
    runs: NotRequired[list[Run]]
    seconds: NotRequired[dict[str, Amount]]
    codes: NotRequired[list[str | None]]
    free: NotRequired[object]
