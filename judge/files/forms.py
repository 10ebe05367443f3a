"""Which fields of a JSON document have which type, if someone else may have written them.

A document is declared once, as a ``TypedDict``: mypy reads it, and :func:`checked` derives the
check from it. In a declaration, text is ``str``, an integer ``int``, a number ``float``, a truth
value ``bool``; ``object`` may be anything, ``X | None`` may be null, ``list[X]`` is an array, and
``dict[str, X]`` an object with any fields. What Python has no type for has one here:
:data:`Count`, :data:`Amount`, :data:`Sha256`, :data:`TaskId`. A field that is not declared may hold
anything; one that is required has to be there.

A record may also be a frozen dataclass, of which :func:`read` makes an object and :func:`plain` the
JSON: there, ``tuple[X, ...]`` is an array, ``Mapping[str, X]`` an object with any fields, a
``StrEnum`` one of its values, and a field with a default may be missing.

Declarations of a ``TypedDict`` belong in modules without ``from __future__ import annotations``,
which would hide which of their fields are required.
"""

from __future__ import annotations

import dataclasses
import enum
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from types import NoneType, UnionType
from typing import (
    Annotated,
    Any,
    NotRequired,
    Required,
    TypeVar,
    Union,
    cast,
    get_args,
    get_origin,
    get_type_hints,
    is_typeddict,
)

from judge.files.documents import MalformedError, json_type, written

Document = TypeVar("Document")

Count = Annotated[int, "from 0 on"]
"""An integer that is not negative."""

Amount = Annotated[float, "from 0 on"]
"""A number that is not negative."""

Sha256 = Annotated[str, "SHA-256"]
"""The hash of a file's content."""

TaskId = Annotated[str | int, "id"]
"""A task's id, as its suite writes it."""

_SHA256 = re.compile("[0-9a-f]{64}")


def checked(document: object, declared: type[Document]) -> Document:
    """The document, which is from here on what was declared.

    Args:
        document: a value of JSON.
        declared: a ``TypedDict``.

    Raises:
        MalformedError: names the first field that has another type.
    """
    kind: Any = declared  # a TypedDict can be hashed, which mypy does not know of every class
    _check(document, _form_of(kind), "")
    return cast("Document", document)


def read(document: object, declared: type[Document]) -> Document:
    """The object that a document describes.

    Args:
        document: a value of JSON.
        declared: a dataclass.

    Raises:
        MalformedError: names the first field that has another type.
    """
    kind: Any = declared
    _check(document, _form_of(kind), "")
    return cast("Document", _built(document, kind))


def plain(value: Any) -> Any:
    """An object, or a part of one, as :func:`read` reads it."""
    if dataclasses.is_dataclass(value):
        fields = dataclasses.fields(value)
        return {field.name: plain(getattr(value, field.name)) for field in fields}
    if isinstance(value, Mapping):
        return {name: plain(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [plain(each) for each in value]
    return value.value if isinstance(value, enum.StrEnum) else value


def _built(value: Any, declared: Any) -> Any:
    """What :func:`_check` checked, as the type that declares it."""
    origin, arguments = get_origin(declared), get_args(declared)
    if value is None:
        return None
    if origin in {Union, UnionType}:
        (declared,) = (argument for argument in arguments if argument is not NoneType)
        return _built(value, declared)
    if dataclasses.is_dataclass(declared):
        hints = get_type_hints(declared, include_extras=True)
        names = (field.name for field in dataclasses.fields(declared) if field.name in value)
        kind: Any = declared
        return kind(**{name: _built(value[name], hints[name]) for name in names})
    if origin is tuple:
        return tuple(_built(each, arguments[0]) for each in value)
    return declared(value) if _is_choice(declared) else value


def _is_choice(declared: Any) -> bool:
    return isinstance(declared, type) and issubclass(declared, enum.StrEnum)


def declared_only(document: Document, declared: type[Document]) -> Document:
    """The document without the fields that are not declared.

    Args:
        document: what :func:`checked` returned.
        declared: the ``TypedDict``.
    """
    kind: Any = declared
    return cast("Document", _declared_only(document, _form_of(kind)))


def _declared_only(value: Any, form: _Form) -> Any:
    match form:
        case _Nullable(inner) if value is not None:
            return _declared_only(value, inner)
        case _Array(each_form):
            return [_declared_only(each, each_form) for each in value]
        case _Object(None, fields):
            there = ((field.name, field.form) for field in fields if field.name in value)
            return {name: _declared_only(value[name], each_form) for name, each_form in there}
        case _Object(any_field, _) if any_field is not None:
            return {name: _declared_only(value[name], any_field) for name in value}
    return value


@dataclass(frozen=True, slots=True)
class _Scalar:
    """A value that is neither an array nor an object; the name is what messages call it."""

    name: str
    fits: Callable[[object], bool]


@dataclass(frozen=True, slots=True)
class _Choice:
    """One of some strings."""

    values: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Array:
    each: _Form


@dataclass(frozen=True, slots=True)
class _Object:
    """An object: either any fields of one form, or those that are declared."""

    any_field: _Form | None
    fields: tuple[_Field, ...] = ()


@dataclass(frozen=True, slots=True)
class _Nullable:
    form: _Form


@dataclass(frozen=True, slots=True)
class _Field:
    name: str
    form: _Form
    is_required: bool


_Form = _Scalar | _Choice | _Array | _Object | _Nullable


def _is_number(value: object) -> bool:
    # What no measurement comes near would overflow wherever something is added up.
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 2**63


def _is_integer(value: object) -> bool:
    return isinstance(value, int) and _is_number(value)


_ANYTHING = _Scalar("anything", lambda _: True)
_SCALARS = {
    str: _Scalar("text", lambda value: isinstance(value, str)),
    int: _Scalar("an integer", _is_integer),
    float: _Scalar("a number", _is_number),
    bool: _Scalar("true or false", lambda value: isinstance(value, bool)),
    object: _ANYTHING,
    Count: _Scalar(
        "an integer from 0 on",
        lambda value: isinstance(value, int) and _is_integer(value) and value >= 0,
    ),
    Amount: _Scalar(
        "a number from 0 on",
        lambda value: isinstance(value, int | float) and _is_number(value) and value >= 0,
    ),
    Sha256: _Scalar(
        "a SHA-256 in hexadecimal digits",
        lambda value: isinstance(value, str) and _SHA256.fullmatch(value) is not None,
    ),
    TaskId: _Scalar(
        "text or an integer", lambda value: isinstance(value, str) or _is_integer(value)
    ),
}


@cache
def _form_of(declared: Any) -> _Form:
    """The form that a type declares."""
    origin, arguments = get_origin(declared), get_args(declared)
    if is_typeddict(declared):
        hints = get_type_hints(declared, include_extras=True)
        required = declared.__required_keys__
        return _Object(
            None, tuple(_Field(name, _form_of(hints[name]), name in required) for name in hints)
        )
    if dataclasses.is_dataclass(declared):
        return _form_of_dataclass(declared)
    if _is_choice(declared):
        return _Choice(tuple(each.value for each in declared))
    if origin in {Required, NotRequired}:
        return _form_of(arguments[0])
    if origin is Annotated:
        return _SCALARS[declared]
    if origin in {Union, UnionType} and NoneType in arguments:
        (inner,) = (argument for argument in arguments if argument is not NoneType)
        return _Nullable(_form_of(inner))
    if origin in {list, tuple}:
        return _Array(_form_of(arguments[0]))
    if origin in {dict, Mapping}:
        return _Object(_form_of(arguments[1]))
    return _SCALARS[declared]


def _form_of_dataclass(declared: Any) -> _Form:
    hints = get_type_hints(declared, include_extras=True)
    unset = dataclasses.MISSING
    return _Object(
        None,
        tuple(
            _Field(
                field.name,
                _form_of(hints[field.name]),
                field.default is unset and field.default_factory is unset,
            )
            for field in dataclasses.fields(declared)
        ),
    )


def _check(value: object, form: _Form, place: str) -> None:
    match form:
        case _Nullable(inner):
            if value is not None:
                _check(value, inner, place)
        case _Scalar(name, fits):
            if not fits(value):
                raise MalformedError(_said(place, name, value))
        case _Choice(values):
            _check_choice(value, values, place)
        case _Array(each_form):
            for number, each in enumerate(_array(value, place)):
                _check(each, each_form, f"{place}[{number}]")
        case _Object(any_field, fields):
            if not isinstance(value, dict):
                raise MalformedError(_said(place, "an object", value))
            if any_field is not None and any_field is not _ANYTHING:
                for name in value:
                    _check(value[name], any_field, _inside(place, name))
            _check_fields(value, fields, place)


def _check_choice(value: object, values: tuple[str, ...], place: str) -> None:
    if value not in values:
        where = f"field {place!r}: " if place else ""
        raise MalformedError(f"{where}expected one of {', '.join(values)}, found {written(value)}")


def _array(value: object, place: str) -> list[object]:
    if not isinstance(value, list):
        raise MalformedError(_said(place, "an array", value))
    return value


def _check_fields(value: dict[str, object], fields: tuple[_Field, ...], place: str) -> None:
    for field in fields:
        if field.name in value:
            found, form = value[field.name], field.form
            # Most fields are plain values, and right: nobody asks then where they stand.
            if not (isinstance(form, _Scalar) and form.fits(found)):
                _check(found, form, _inside(place, field.name))
        elif field.is_required:
            raise MalformedError(f"field {_inside(place, field.name)!r} is missing")


def _inside(place: str, field: str) -> str:
    return f"{place}.{field}" if place else field


def _said(place: str, expected: str, value: object) -> str:
    where = f"field {place!r} must be" if place else "expected"
    return f"{where} {expected}, not {json_type(value)}"
