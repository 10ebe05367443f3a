"""The options of the checker ``checklist``: items with points, groups of them, and their kinds.

An item states a requirement, in the fields that its :class:`ItemKind` declares, and the points that
it is worth. Judging an item on an answer gives an :class:`Outcome`.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from judge.compare.checklists.workspace import Workspace
from judge.errors import UsageError
from judge.files.yaml_documents import read_yaml
from judge.workbook.address import parse_area, parse_cell

NAME = "checklist"

RUBRIC = "rubric"
"""Name of the task detail with the rubric's hash, which identifies it in published scores."""

MAX_ITEMS = 2_000
"""Largest number of items in a task; the longest published list has 60."""

_MAX_ID_CHARS = 200  # of the id of an item
_OPTIONS = ("evaluator", "profile", "pass_share", "items", "groups")
_COMMON = ("id", "kind", "group", "points", "penalty", "words", "file", "gates")


class Reading(enum.StrEnum):
    """A reading: the interpretation by which an item is judged."""

    OFFICIAL = "official"
    """The reading of the suite's published code, including its faults."""
    STANDARD = "standard"
    """The reading that the suite's authors intended."""


class State(enum.StrEnum):
    """The state of an item after judging."""

    HOLDS = "holds"
    FAILS = "fails"
    NOT_JUDGED = "not_judged"
    """The item is for a model, a person or a program, and there is no result yet."""
    ERROR = "error"
    """The published code raises an error, or the item is invalid; the item earns nothing."""


class Judged(enum.StrEnum):
    """Who judges an item."""

    DETERMINISTIC = "deterministic"
    LLM = "llm"
    HUMAN = "human"
    PROGRAM = "program"


@dataclass(frozen=True, slots=True)
class Item:
    """One criterion.

    Attributes:
        id: identifier, unique in the list.
        kind: name of a kind; see :data:`judge.compare.checklists.kinds.KINDS`.
        points: the points that the item earns if it holds completely.
        group: the group that the item counts in; empty if it has no group.
        words: the requirement in the suite's words; empty if the suite gives none.
        file: path below the answer's folder; empty for the main file.
        penalty: whether the points are deducted if the item fails, instead of earned if it holds.
        gates: kinds of later items that earn nothing under ``official`` if this item fails.
        fields: all other fields by name, as the kind declares them.
    """

    id: str
    kind: str
    points: float = 1.0
    group: str = ""
    words: str = ""
    file: str = ""
    penalty: bool = False
    gates: tuple[str, ...] = ()
    fields: Mapping[str, object] = field(default_factory=dict)

    def text(self, name: str, default: str = "") -> str:
        """Returns a field as text."""
        value = self.fields.get(name, default)
        return value if isinstance(value, str) else default

    def number(self, name: str, default: float = 0.0) -> float:
        """Returns a field as a number."""
        value = self.fields.get(name)
        return float(value) if is_number(value) else default  # type: ignore[arg-type]

    def texts(self, name: str) -> tuple[str, ...]:
        """Returns the strings of a field that holds a string or a list of strings."""
        value = self.fields.get(name)
        if isinstance(value, str):
            return (value,)
        return tuple(map(str, value)) if isinstance(value, list | tuple) else ()


@dataclass(frozen=True, slots=True)
class ChecklistOptions:
    """The options of a task.

    Attributes:
        items: the items, in order.
        groups: name of a group -> its weight; empty if the plain sum of points counts.
        evaluator: the evaluator that published the list, such as ``ib-bench``; empty for others.
        profile: the profile that overrides the command's for this task; None if the command's
            profile applies.
        pass_share: the smallest share of all points that the suite accepts as passed; None if the
            suite sets no such share.
    """

    items: tuple[Item, ...]
    groups: Mapping[str, float] = field(default_factory=dict)
    evaluator: str = ""
    profile: str | None = None
    pass_share: float | None = None

    @staticmethod
    def of(options: Mapping[str, object]) -> ChecklistOptions:
        """Reads the options of a suite or a command, without checking the fields of kinds.

        Raises:
            UsageError: an option is unknown, or its value does not fit.
        """
        for name in options:
            if name not in _OPTIONS:
                raise UsageError(
                    f"the checker {NAME} has no option {name!r}",
                    hint=f"Options: {', '.join(_OPTIONS)}.",
                )
        listed = options.get("items")
        if not isinstance(listed, list | tuple) or not 1 <= len(listed) <= MAX_ITEMS:
            raise UsageError(f"option items: expected a list of 1 to {MAX_ITEMS:,} items")
        items = tuple(_item(value, number) for number, value in enumerate(listed, start=1))
        _check_ids(items)
        groups = _groups(options.get("groups"))
        for item in items:
            if groups and item.group not in groups:
                raise UsageError(f"item {item.id}: the group {item.group!r} has no weight")
        evaluator, profile = options.get("evaluator"), options.get("profile")
        if not isinstance(evaluator, str | None) or not isinstance(profile, str | None):
            raise UsageError("options evaluator and profile: expected names")
        share = options.get("pass_share")
        if share is not None and not (is_number(share) and 0 <= share <= 1):  # type: ignore[operator]
            raise UsageError("option pass_share: expected a share from 0 to 1")
        passed_from = None if share is None else float(share)  # type: ignore[arg-type]
        return ChecklistOptions(items, groups, evaluator or "", profile, passed_from)


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of judging an item.

    Attributes:
        share: how much of the item holds, from 0 to 1; the item counts as holding only at 1.
        expected: the expected value, as JSON.
        found: the value in the answer, as JSON.
        place: where the item was judged, such as ``Sheet1!B2`` or a file; empty if this is not a
            single position.
        detail: an explanation for people, if the values do not suffice.
        state: the state if it does not follow from ``share``; None if it does.
        undecided: whether the item fails only because a formula could not be computed.
        fault: number of the published fault that makes the readings differ, such as ``B1``.
    """

    share: float
    expected: object = None
    found: object = None
    place: str = ""
    detail: str = ""
    state: State | None = None
    undecided: bool = False
    fault: str = ""

    @property
    def ended(self) -> State:
        """The state of the item."""
        return self.state or (State.HOLDS if self.share >= 1 else State.FAILS)


def holds(expected: object = None, found: object = None, place: str = "") -> Outcome:
    """Returns the outcome of an item that holds."""
    return Outcome(1.0, expected, found, place)


def fails(
    expected: object = None, found: object = None, place: str = "", detail: str = ""
) -> Outcome:
    """Returns the outcome of an item that fails."""
    return Outcome(0.0, expected, found, place, detail)


def not_judged(detail: str) -> Outcome:
    """Returns the outcome of an item that was not judged, with the reason."""
    return Outcome(0.0, detail=detail, state=State.NOT_JUDGED)


def broken(detail: str) -> Outcome:
    """Returns the outcome of an item that is invalid, or whose published code raises an error."""
    return Outcome(0.0, detail=detail, state=State.ERROR)


# -- reading ---------------------------------------------------------------------------------------


def is_number(value: object) -> bool:
    """Whether a JSON value is a number; true, false, NaN and infinity are not."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return -1e300 < value < 1e300


def _item(value: object, number: int) -> Item:
    where = f"option items: item {number}"
    if not isinstance(value, Mapping):
        raise UsageError(f"{where} is not an object")
    name = value.get("id", str(number))
    if not isinstance(name, str) or not name.strip() or len(name) > _MAX_ID_CHARS:
        raise UsageError(f"{where}: the id is not a string of 1 to {_MAX_ID_CHARS} characters")
    where = f"item {name}"
    for key in ("kind", "group", "words", "file"):
        if not isinstance(value.get(key, ""), str):
            raise UsageError(f"{where}: {key} is not a string")
    if "kind" not in value:
        raise UsageError(f"{where}: kind is missing")
    points, penalty = value.get("points", 1), value.get("penalty", False)
    if not is_number(points) or points < 0:
        raise UsageError(
            f"{where}: points must be a number of at least 0",
            hint='Points to take off are "penalty": true.',
        )
    if not isinstance(penalty, bool):
        raise UsageError(f"{where}: penalty is true or false")
    gates = value.get("gates", [])
    if not isinstance(gates, list | tuple) or not all(isinstance(gate, str) for gate in gates):
        raise UsageError(f"{where}: gates is not a list of kinds of items")
    return Item(
        id=name,
        kind=str(value["kind"]),
        points=float(points),
        group=str(value.get("group", "")),
        words=str(value.get("words", "")),
        file=str(value.get("file", "")),
        penalty=penalty,
        gates=tuple(gates),
        fields={key: given for key, given in value.items() if key not in _COMMON},
    )


def _check_ids(items: Sequence[Item]) -> None:
    ids: set[str] = set()
    for item in items:
        if item.id in ids:
            raise UsageError(f"there are two items {item.id!r}")
        ids.add(item.id)


def _groups(value: object) -> dict[str, float]:
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise UsageError(
            'option groups: expected groups with weights, such as {"values": {"weight": 2}}'
        )
    weights = {}
    for name, group in value.items():
        weight = group.get("weight") if isinstance(group, Mapping) else None
        if not is_number(weight) or weight < 0:  # type: ignore[operator]
            raise UsageError(f"group {name}: the weight is not a number of at least 0")
        weights[str(name)] = float(weight)  # type: ignore[arg-type]
    return weights


def read_items(path: Path) -> dict[str, Any]:
    """Reads the options of a checklist from a JSON or YAML file; the items are not checked.

    Args:
        path: a file with a list of items, or with an object that has the field ``items``.

    Raises:
        UsageError: the file cannot be read, or holds neither.
    """
    document = read_yaml(path, UsageError)
    options = {"items": document} if isinstance(document, list) else document
    if not isinstance(options, dict) or "items" not in options:
        raise UsageError(
            f"{path}: expected a list of items, or an object with the field 'items'",
            hint="docs/checklists.md lists the kinds of items.",
        )
    return options


_MAX_LIST_ITEMS = 1_000  # of a field of an item


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
        and 0 < len(value) <= _MAX_LIST_ITEMS
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
        and 0 < len(value) <= _MAX_LIST_ITEMS
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
AMOUNT = FieldForm(_is_amount, "a number of at least 0")
COUNT = FieldForm(_is_count, "a whole number of at least 0")
TRUTH = FieldForm(lambda value: isinstance(value, bool), "true or false")
OBJECT = FieldForm(lambda value: isinstance(value, Mapping), "an object")
OBJECTS = FieldForm(
    lambda value: (
        isinstance(value, list | tuple)
        and 0 < len(value) <= _MAX_LIST_ITEMS
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
