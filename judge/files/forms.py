"""Checks the types of the fields of JSON documents that someone else may have written.

A document is declared once, as a ``TypedDict`` or a dataclass: mypy reads the declaration,
:func:`checked` derives the check from it, and :func:`json_schema` the published schema. In a
declaration, text is ``str``, an integer ``int``, a number ``float``, a truth value ``bool``;
``object`` may be anything, ``X | None`` may be null, ``list[X]`` (in a dataclass, ``tuple[X,
...]``) is an array, ``dict[str, X]`` an object with any fields, a ``StrEnum`` one of its values.
Types that Python lacks are defined here: :data:`Count`, :data:`Amount`, :data:`Sha256`,
:data:`TaskId`. An undeclared field may hold anything; a required field must not be missing.
:func:`plain` writes a dataclass as the JSON that :func:`checked` reads.
"""

from __future__ import annotations

import collections.abc
import dataclasses
import enum
import inspect
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

Count = Annotated[int, "at least 0"]
"""An integer that is not negative."""

Amount = Annotated[float, "at least 0"]
"""A number that is not negative."""

Sha256 = Annotated[str, "SHA-256"]
"""The hash of a file's content."""

TaskId = Annotated[str | int, "id"]
"""A task's id, as its suite writes it."""

SCHEMA_DIALECT = "https://json-schema.org/draft/2020-12/schema"

_SHA256 = re.compile("[0-9a-f]{64}")
_BOUND = 2**63
"""Upper bound of numbers; a larger number cannot be a measurement, and sums of such numbers
overflow."""


def checked(document: object, declared: type[Document]) -> Document:
    """Checks that a document has the declared types, and returns it with that type.

    Args:
        document: a JSON value.
        declared: a ``TypedDict`` or a dataclass.

    Returns:
        The document itself; for a dataclass, an instance with the declared fields.

    Raises:
        MalformedError: a field has another type; the message names it.
    """
    kind: Any = declared
    try:
        _check_of(kind)(document)
    except _MisfitError as misfit:
        raise MalformedError(str(misfit)) from None
    if is_typeddict(kind):
        return cast("Document", document)
    return cast("Document", _converted(document, _form_of(kind)))


def plain(value: Any) -> Any:
    """Converts a dataclass, or a part of one, to the JSON that :func:`checked` reads."""
    if dataclasses.is_dataclass(value):
        fields = dataclasses.fields(value)
        return {field.name: plain(getattr(value, field.name)) for field in fields}
    if isinstance(value, Mapping):
        return {name: plain(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    return value.value if isinstance(value, enum.StrEnum) else value


def declared_only(document: Document, declared: type[Document]) -> Document:
    """Removes undeclared fields from a document.

    Args:
        document: the document that :func:`checked` returned.
        declared: the ``TypedDict``.
    """
    kind: Any = declared
    return cast("Document", _converted(document, _form_of(kind)))


def json_schema(declared: Any) -> dict[str, object]:
    """Returns the JSON Schema of a document; its descriptions are the declarations' docstrings."""
    definitions: dict[str, object] = {}
    _schema_of(_form_of(declared), definitions)
    name = declared.__name__
    return {
        "$schema": SCHEMA_DIALECT,
        "$ref": f"#/$defs/{name}",
        "$defs": dict(sorted(definitions.items())),
    }


# -- the forms of values ---------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Scalar:
    """The form of a value that is neither an array nor an object."""

    check: _Check
    schema: Mapping[str, object]


@dataclass(frozen=True, slots=True)
class _Choice:
    """One of the values of an enumeration."""

    declared: type[enum.StrEnum]

    @property
    def values(self) -> list[str]:
        return [member.value for member in self.declared]


@dataclass(frozen=True, slots=True)
class _Array:
    items: _Form
    is_tuple: bool


@dataclass(frozen=True, slots=True)
class _Mapping:
    """The form of an object with any fields, whose values all have the same form."""

    values: _Form


@dataclass(frozen=True, slots=True)
class _Record:
    """The form of an object with declared fields."""

    declared: type[Any]
    fields: Mapping[str, _Form]
    required: frozenset[str]


@dataclass(frozen=True, slots=True)
class _Nullable:
    form: _Form


_Form = _Scalar | _Choice | _Array | _Mapping | _Record | _Nullable


class _MisfitError(Exception):
    """A value does not have the declared form; its path is added while the exception propagates."""

    def __init__(self, expected: str, value: object) -> None:
        super().__init__(expected)
        self.expected = expected
        self.value = value
        self.path = ""

    def inside(self, step: str) -> _MisfitError:
        """Returns the same exception, with its path in the surrounding array or object."""
        self.path = step + self.path
        return self

    def __str__(self) -> str:
        path = self.path.removeprefix(".")
        if not self.expected:
            return f"field {path!r} is missing"
        where = f"field {path!r} must be" if path else "expected"
        return f"{where} {self.expected}, not {json_type(self.value)}"


class _WrongChoiceError(_MisfitError):
    """A value is not one of the allowed values."""

    def __str__(self) -> str:
        path = self.path.removeprefix(".")
        where = f"field {path!r}: " if path else ""
        return f"{where}expected one of {self.expected}, found {written(self.value)}"


_Check = Callable[[Any], None]
"""Raises :class:`_MisfitError` if a value does not have a form."""


def _number(name: str, *kinds: type, least: int = 1 - _BOUND) -> _Check:
    accepted = frozenset(kinds)  # exact types: for `isinstance`, True is an int

    def check(value: Any) -> None:
        if type(value) not in accepted or not least <= value < _BOUND:  # refuses NaN as well
            raise _MisfitError(name, value)

    return check


def _check_text(value: Any) -> None:
    if not isinstance(value, str):
        raise _MisfitError("text", value)


def _check_truth(value: Any) -> None:
    if not isinstance(value, bool):
        raise _MisfitError("true or false", value)


def _check_sha256(value: Any) -> None:
    if not isinstance(value, str) or _SHA256.fullmatch(value) is None:
        raise _MisfitError("a SHA-256 in hexadecimal digits", value)


_check_integer = _number("text or an integer", int)


def _check_task_id(value: Any) -> None:
    if not isinstance(value, str):
        _check_integer(value)


_ANYTHING = _Scalar(lambda _: None, {})
_SCALARS = {
    str: _Scalar(_check_text, {"type": "string"}),
    int: _Scalar(_number("an integer", int), {"type": "integer"}),
    float: _Scalar(_number("a number", int, float), {"type": "number"}),
    bool: _Scalar(_check_truth, {"type": "boolean"}),
    object: _ANYTHING,
    Count: _Scalar(
        _number("an integer of at least 0", int, least=0), {"type": "integer", "minimum": 0}
    ),
    Amount: _Scalar(
        _number("a number of at least 0", int, float, least=0), {"type": "number", "minimum": 0}
    ),
    Sha256: _Scalar(_check_sha256, {"type": "string", "pattern": f"^{_SHA256.pattern}$"}),
    TaskId: _Scalar(_check_task_id, {"type": ["string", "integer"]}),
}


@cache
def _form_of(declared: Any) -> _Form:
    """Returns the form that a type declares."""
    origin, arguments = get_origin(declared), get_args(declared)
    if is_typeddict(declared) or dataclasses.is_dataclass(declared):
        return _record_of(declared)
    if isinstance(declared, type) and issubclass(declared, enum.StrEnum):
        return _Choice(declared)
    if origin in {Required, NotRequired}:
        return _form_of(arguments[0])
    if origin in {Union, UnionType} and NoneType in arguments:
        (inner,) = (argument for argument in arguments if argument is not NoneType)
        return _Nullable(_form_of(inner))
    if origin in {list, tuple, collections.abc.Sequence}:
        return _Array(_form_of(arguments[0]), is_tuple=origin is tuple)
    if origin in {dict, collections.abc.Mapping}:
        return _Mapping(_form_of(arguments[1]))
    return _SCALARS[declared]


def _record_of(declared: Any) -> _Record:
    hints = get_type_hints(declared, include_extras=True)
    if is_typeddict(declared):
        # If annotations are strings, the class itself does not know which are marked.
        required = frozenset(
            name
            for name, hint in hints.items()
            if get_origin(hint) is Required
            or (name in declared.__required_keys__ and get_origin(hint) is not NotRequired)
        )
    else:
        fields = dataclasses.fields(declared)
        hints = {field.name: hints[field.name] for field in fields}
        required = frozenset(
            field.name
            for field in fields
            if field.default is field.default_factory is dataclasses.MISSING
        )
    return _Record(declared, {name: _form_of(hint) for name, hint in hints.items()}, required)


# -- checking --------------------------------------------------------------------------------------


@cache
def _check_of(declared: Any) -> _Check:
    return _compiled(_form_of(declared))


def _compiled(form: _Form) -> _Check:
    """Compiles the check of a form to functions, since a run may have millions of records."""
    match form:
        case _Scalar(check):
            return check
        case _Choice():
            return _choice_check(form.values)
        case _Nullable(inner):
            return _nullable_check(_compiled(inner))
        case _Array(items):
            return _array_check(_compiled(items))
        case _Mapping(values):
            return _mapping_check(None if values is _ANYTHING else _compiled(values))
        case _Record(_, fields, required):
            checks = {
                name: _compiled(field) for name, field in fields.items() if field is not _ANYTHING
            }
            return _record_check(checks, required)


def _nullable_check(inner: _Check) -> _Check:
    def check(value: Any) -> None:
        if value is not None:
            inner(value)

    return check


def _choice_check(values: list[str]) -> _Check:
    def check(value: Any) -> None:
        if value not in values:
            raise _WrongChoiceError(", ".join(values), value)

    return check


def _array_check(items: _Check) -> _Check:
    def check(value: Any) -> None:
        if not isinstance(value, list):
            raise _MisfitError("an array", value)
        number = 0
        try:
            for number, item in enumerate(value):  # noqa: B007  the message needs it
                items(item)
        except _MisfitError as misfit:
            raise misfit.inside(f"[{number}]") from None

    return check


def _mapping_check(values: _Check | None) -> _Check:
    def check(value: Any) -> None:
        if not isinstance(value, dict):
            raise _MisfitError("an object", value)
        if values is None:
            return
        name = ""
        try:
            for name, item in value.items():  # noqa: B007  as above
                values(item)
        except _MisfitError as misfit:
            raise misfit.inside(f".{name}") from None

    return check


def _record_check(checks: Mapping[str, _Check], required: frozenset[str]) -> _Check:
    check_of = checks.get

    def check(value: Any) -> None:
        if not isinstance(value, dict):
            raise _MisfitError("an object", value)
        name = ""
        try:
            for name, item in value.items():
                if (field := check_of(name)) is not None:
                    field(item)
        except _MisfitError as misfit:
            raise misfit.inside(f".{name}") from None
        if not required <= value.keys():
            raise _MisfitError("", None).inside(f".{min(required - value.keys())}")

    return check


# -- converting checked values ---------------------------------------------------------------------


def _converted(value: Any, form: _Form) -> Any:
    """Converts a checked value: keeps declared fields only, and makes declared dataclasses."""
    match form:
        case _Nullable(inner):
            return None if value is None else _converted(value, inner)
        case _Choice(declared):
            return declared(value)
        case _Array(items, is_tuple):
            converted = (_converted(item, items) for item in value)
            return tuple(converted) if is_tuple else list(converted)
        case _Mapping(values):
            return {name: _converted(item, values) for name, item in value.items()}
        case _Record(declared, fields):
            own = {name: _converted(value[name], fields[name]) for name in fields if name in value}
            return own if is_typeddict(declared) else declared(**own)
    return value


# -- schemas ---------------------------------------------------------------------------------------


def _schema_of(form: _Form, definitions: dict[str, object]) -> dict[str, object]:
    """Returns the schema of a form; schemas of records are definitions with their names."""
    match form:
        case _Scalar():
            return dict(form.schema)
        case _Choice():
            return {"type": "string", "enum": form.values}
        case _Nullable(inner):
            schema = _schema_of(inner, definitions)
            if isinstance(kind := schema.get("type"), str):
                return {**schema, "type": [kind, "null"]}
            return {"anyOf": [schema, {"type": "null"}]} if schema else {}
        case _Array(items):
            return {"type": "array", "items": _schema_of(items, definitions)}
        case _Mapping(values):
            return {"type": "object", "additionalProperties": _schema_of(values, definitions)}
        case _Record(declared, fields, required):
            name = declared.__name__
            if name not in definitions:
                definitions[name] = {}  # a record may contain records of its own type
                definitions[name] = {
                    "type": "object",
                    "description": inspect.getdoc(declared) or "",
                    "properties": {
                        field: _schema_of(field_form, definitions)
                        for field, field_form in fields.items()
                    },
                    "required": [field for field in fields if field in required],
                }
            return {"$ref": f"#/$defs/{name}"}
