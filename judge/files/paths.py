"""Paths that callers of the library give, and the paths of the judge's cache and state."""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints, overload

from judge.errors import UsageError

GivenPath = Annotated[str | Path, "a path"]
"""A parameter, or a field of options, that is a path as ``str`` or ``Path``."""


@overload
def as_path(given: GivenPath) -> Path: ...
@overload
def as_path(given: GivenPath | None) -> Path | None: ...
def as_path(given: GivenPath | None) -> Path | None:
    """Returns a given path as ``Path``, and None unchanged."""
    return None if given is None else Path(given)


def hold_paths(options: object) -> None:
    """Converts each :data:`GivenPath` field to ``Path``, in a frozen class's ``__post_init__``.

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
    """Returns whether a type is :data:`GivenPath`, optional or not, declared as option or not."""
    if hint == GivenPath:
        return True
    return get_origin(hint) in {Annotated, Union, UnionType} and any(
        _takes_path(member) for member in get_args(hint) if not isinstance(member, str)
    )


def cache_folder() -> Path:
    """Returns the cache folder: ``JUDGE_CACHE``, or ``judge`` in the user's cache folder.

    It holds suites, roots and computed values. A leading ``~`` in either variable means the user's
    home.
    """
    if named := os.environ.get("JUDGE_CACHE"):
        return Path(named).expanduser()
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base).expanduser() if base else Path.home() / ".cache") / "judge"


def shipped_folder(name: str, marker: str) -> Path | None:
    """Returns a folder with data that people edit, in the checkout or in the installation.

    Args:
        name: ``dataset`` or ``inference``; in an installed package it is in ``judge/data``.
        marker: a file that the folder must contain.

    Returns:
        The folder; None if the installation is incomplete.
    """
    package = Path(__file__).parent.parent
    folders = (package / "data" / name, package.parent / name)
    return next((folder for folder in folders if (folder / marker).is_file()), None)


def state_folder() -> Path:
    """Returns the folder of the user's persistent state: ``judge`` in the state folder (XDG)."""
    base = os.environ.get("XDG_STATE_HOME")
    return (Path(base).expanduser() if base else Path.home() / ".local" / "state") / "judge"
