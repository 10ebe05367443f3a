"""The options of the checker ``checklist``: items with points, and groups of them.

An item states a requirement, in the fields that its kind declares (:mod:`.kinds`), and the points
that it is worth. Judging an item on an answer gives an :class:`Outcome`.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from judge.errors import UsageError
from judge.files.yaml_documents import read_yaml

NAME = "checklist"

MAX_ITEMS = 2_000
"""Largest number of items in a task; the longest published list has 60."""

_MAX_ID = 200
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
        place: the position, such as ``Sheet1!B2`` or a file; empty if there is no single position.
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
    """Returns the outcome of an item that is invalid or on which the published code raises."""
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
    if not isinstance(name, str) or not name.strip() or len(name) > _MAX_ID:
        raise UsageError(f"{where}: the id is not a string of 1 to {_MAX_ID} characters")
    where = f"item {name}"
    for key in ("kind", "group", "words", "file"):
        if not isinstance(value.get(key, ""), str):
            raise UsageError(f"{where}: {key} is not a string")
    if "kind" not in value:
        raise UsageError(f"{where}: kind is missing")
    points, penalty = value.get("points", 1), value.get("penalty", False)
    if not is_number(points) or points < 0:
        raise UsageError(
            f"{where}: points are a number from 0 on",
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
            raise UsageError(f"group {name}: the weight is not a number from 0 on")
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
