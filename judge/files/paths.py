"""Paths as callers of the library give them: a string and a ``Path`` mean the same."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints, overload

from judge.errors import UsageError

GivenPath = Annotated[str | Path, "a path"]
"""A parameter, or a field of options, that takes a path in either form."""


@overload
def as_path(given: GivenPath) -> Path: ...
@overload
def as_path(given: GivenPath | None) -> Path | None: ...
def as_path(given: GivenPath | None) -> Path | None:
    """The path that was given; None where none was."""
    return None if given is None else Path(given)


def hold_paths(options: object) -> None:
    """Makes each :data:`GivenPath` of a frozen dataclass a ``Path``, from its ``__post_init__``.

    Raises:
        UsageError: a value is neither a string nor a path.
    """
    kind: Any = type(options)
    for name in _path_fields(kind):
        value = getattr(options, name)
        if value is not None and not isinstance(value, str | Path):
            raise UsageError(f"{name} is {str(value)[:80]!r}: not a path")
        object.__setattr__(options, name, as_path(value))


@cache
def _path_fields(kind: type[Any]) -> tuple[str, ...]:
    hints = get_type_hints(kind, include_extras=True)
    return tuple(name for name, hint in hints.items() if _takes_path(hint))


def _takes_path(hint: Any) -> bool:
    """Whether a type is :data:`GivenPath`, optional or not, with or without a declaration."""
    if hint == GivenPath:
        return True
    return get_origin(hint) in {Annotated, Union, UnionType} and any(
        _takes_path(member) for member in get_args(hint) if not isinstance(member, str)
    )
