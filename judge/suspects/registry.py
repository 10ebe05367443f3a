"""All signs, in the order in which they are listed."""

from __future__ import annotations

import functools
import importlib

from judge.errors import UsageError
from judge.suspects.contract import Sign

_HOMES = (
    "judge.suspects.signs.contradicted_input",
    "judge.suspects.signs.error_values",
    "judge.suspects.signs.stale",
    "judge.suspects.signs.volatile",
    "judge.suspects.signs.changed_rule",
    "judge.suspects.signs.says_nothing",
    "judge.suspects.signs.odd_formula",
    "judge.suspects.signs.ranges",
    "judge.suspects.signs.contradicted_example",
    "judge.suspects.signs.wording",
    "judge.suspects.signs.leftover",
    "judge.suspects.signs.outvoted",
)
"""The modules whose ``SIGN`` each sign of this package is."""

_REGISTERED: dict[str, Sign] = {}


def register(sign: Sign) -> None:
    """Adds a sign that lives elsewhere; once is enough.

    Raises:
        UsageError: another sign has that name.
    """
    known = {all_sign.name: all_sign for all_sign in all_signs()}
    if known.get(sign.name, sign) is not sign:
        raise UsageError(f"a sign {sign.name!r} already exists")
    if sign.name not in known:
        _REGISTERED[sign.name] = sign


def unregister(name: str) -> None:
    """Removes a sign that was registered."""
    _REGISTERED.pop(name, None)


def all_signs() -> tuple[Sign, ...]:
    """Every sign."""
    return (*_own(), *_REGISTERED.values())


@functools.cache
def _own() -> tuple[Sign, ...]:
    return tuple(importlib.import_module(home).SIGN for home in _HOMES)
