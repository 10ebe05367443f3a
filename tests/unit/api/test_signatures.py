"""The public names of the library: their parameters, with defaults."""

from __future__ import annotations

import dataclasses
import inspect
import re
from collections.abc import Iterator
from typing import Any

import judge
from tests.conftest import Snapshot


def lines_of(name: str, public: Any) -> Iterator[str]:
    """Returns the signature of a public name; for a class, also its fields and public members."""
    if not callable(public):
        yield f"{name}: {type(public).__name__}"
        return
    if not inspect.isclass(public):
        yield f"{name}{inspect.signature(public)}"
        return
    yield f"class {name}({', '.join(base.__name__ for base in public.__bases__)})"
    if dataclasses.is_dataclass(public):
        yield from (f"    {name}.{_field(field)}" for field in dataclasses.fields(public))
    else:
        yield f"    {name}{inspect.signature(public)}"
    own = [vars(base) for base in reversed(public.__mro__) if base.__module__.startswith("judge.")]
    for member, value in {key: value for part in own for key, value in part.items()}.items():
        if not member.startswith("_"):
            yield from _member(f"    {name}.{member}", value)


def _field(field: dataclasses.Field[Any]) -> str:
    if field.default_factory is not dataclasses.MISSING:
        made_by = getattr(field.default_factory, "__name__", "a function")
        return f"{field.name}: {field.type} = {made_by}()"
    default = "" if field.default is dataclasses.MISSING else f" = {field.default!r}"
    return f"{field.name}: {field.type}{default}"


def _member(name: str, value: Any) -> Iterator[str]:
    if isinstance(value, property):
        yield f"{name} -> {inspect.signature(value.fget or value.__get__).return_annotation}"
    elif isinstance(value, classmethod | staticmethod):
        yield f"{name}{inspect.signature(value.__func__)} ({type(value).__name__})"
    elif callable(value):
        yield f"{name}{inspect.signature(value)}"


def test_public_signatures_are_as_recorded(snapshot: Snapshot) -> None:
    names = sorted(judge.__all__)
    lines = [line for name in names for line in lines_of(name, getattr(judge, name))]
    text = "".join(f"{line}\n" for line in lines)
    snapshot("signatures.txt", re.sub(r" at 0x[0-9a-f]+", "", text))
