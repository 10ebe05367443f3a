"""The interface of a kind of items, and the fields that its items have."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from judge.compare.checklists.items import Item, Judged, Outcome, Reading, is_number
from judge.compare.checklists.workspace import Workspace
from judge.workbook.address import parse_area, parse_cell

_MAX_LIST = 1_000


@dataclass(frozen=True, slots=True)
class FieldForm:
    """A field of a kind.

    Attributes:
        fits: whether a value is allowed.
        words: the allowed values in words, for messages, such as ``a number``.
        required: whether every item of the kind must have the field.
    """

    fits: Callable[[object], bool]
    words: str
    required: bool = False


def needed(form: FieldForm) -> FieldForm:
    """Returns the same field as a required one."""
    return replace(form, required=True)


def is_texts(value: object) -> bool:
    """Whether a value is a list of strings, not empty and not too long."""
    return (
        isinstance(value, list | tuple)
        and 0 < len(value) <= _MAX_LIST
        and all(isinstance(text, str) for text in value)
    )


def is_value(value: object) -> bool:
    """Whether a JSON value can stand for the value of a cell; ``null`` stands for a blank cell."""
    if isinstance(value, Mapping):
        return value.keys() in ({"date"}, {"error"}) and all(
            isinstance(text, str) for text in value.values()
        )
    return value is None or isinstance(value, bool | str) or is_number(value)


def _is_values(value: object) -> bool:
    return (
        isinstance(value, list | tuple)
        and 0 < len(value) <= _MAX_LIST
        and all(map(is_value, value))
    )


def _is_count(value: object) -> bool:
    return type(value) is int and 0 <= value < 2**31


def _is_amount(value: object) -> bool:
    return is_number(value) and value >= 0  # type: ignore[operator]


def _is_area(value: object) -> bool:
    return isinstance(value, str) and parse_area(value) is not None


def _is_cell(value: object) -> bool:
    return isinstance(value, str) and parse_cell(value) is not None


def one_of(*names: str) -> FieldForm:
    """Returns a field whose value is one of the given strings."""
    return FieldForm(lambda value: value in names, f"one of {', '.join(names)}")


TEXT = FieldForm(lambda value: isinstance(value, str), "a string")
TEXTS = FieldForm(is_texts, "a list of strings")
TEXT_OR_TEXTS = FieldForm(
    lambda value: isinstance(value, str) or is_texts(value), "a string or a list of strings"
)
NUMBER = FieldForm(is_number, "a number")
AMOUNT = FieldForm(_is_amount, "a number from 0 on")
COUNT = FieldForm(_is_count, "a whole number from 0 on")
TRUTH = FieldForm(lambda value: isinstance(value, bool), "true or false")
OBJECT = FieldForm(lambda value: isinstance(value, Mapping), "an object")
OBJECTS = FieldForm(
    lambda value: (
        isinstance(value, list | tuple)
        and 0 < len(value) <= _MAX_LIST
        and all(isinstance(part, Mapping) for part in value)
    ),
    "a list of objects",
)
CELL = FieldForm(_is_cell, "a cell such as B2")
AREA = FieldForm(_is_area, "a cell or a range such as B2:D9")
AREAS = FieldForm(
    lambda value: _is_area(value) or (is_texts(value) and all(map(_is_area, value))),  # type: ignore[call-overload]
    "a range or a list of ranges",
)
VALUE = FieldForm(
    is_value,
    'a value: a number, a string, true, false, null for a blank cell, {"date": "2024-05-31"}',
)
VALUES = FieldForm(_is_values, "a list of values")
ROWS = FieldForm(
    lambda value: (
        isinstance(value, list | tuple)
        and 0 < len(value) <= 100_000
        and all(isinstance(row, list | tuple) and all(map(is_value, row)) for row in value)
    ),
    "a list of rows, each a list of values",
)


def faults_of(item: Item, forms: Mapping[str, FieldForm]) -> Iterator[str]:
    """Yields what is wrong with the fields of an item, one line for each fault."""
    for name in item.fields:
        if name not in forms:
            others = ", ".join(forms) if forms else "none"
            yield f"item {item.id} ({item.kind}) has the unknown field {name!r}; known: {others}"
    for name, form in forms.items():
        if name in item.fields:
            if not form.fits(item.fields[name]):
                yield f"item {item.id} ({item.kind}): {name} is not {form.words}"
        elif form.required:
            yield f"item {item.id} ({item.kind}): {name} is missing"


JudgeItem = Callable[[Item, Workspace, Reading], Outcome]


@dataclass(frozen=True, slots=True)
class ItemKind:
    """A kind of item.

    Attributes:
        judge: decides an item of this kind. It may raise ``MissingError``, ``WorkbookError``,
            ``PatternError``, ``MalformedError`` and ``PublishedError``; each becomes an outcome.
        words: states the requirement of an item as a sentence.
        forms: the fields of this kind, besides those that every item has.
        judged: who judges items of this kind.
        has_two_readings: whether ``official`` and ``standard`` may differ.
        faults: yields a line for every other fault in the fields of an item.
    """

    judge: JudgeItem
    words: Callable[[Item], str]
    forms: Mapping[str, FieldForm] = field(default_factory=dict)
    judged: Judged = Judged.DETERMINISTIC
    has_two_readings: bool = False
    faults: Callable[[Item], Iterator[str]] = lambda _: iter(())
