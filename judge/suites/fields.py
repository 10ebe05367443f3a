"""Reads typed fields from a record that somebody else wrote, and reports what is wrong with them.

Every suite format reads its records with :class:`Fields`. It either collects the faults, so that
all are reported together, or raises the first one.
"""

from __future__ import annotations

import enum
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TypeVar

from judge.files.documents import json_type

_Choice = TypeVar("_Choice", bound=enum.StrEnum)
_MAX_SHOWN = 60


class FieldError(Exception):
    """A field of a record is not valid; the message is one line that names the field."""


@dataclass(frozen=True, slots=True)
class Fields:
    """The fields of one object.

    Attributes:
        values: the object.
        place: the path of the object, such as ``cases[0].``; field names are appended to it.
        faults: collects the faults, one line each, of all objects of a record. None to raise
            :class:`FieldError` at the first fault.
    """

    values: Mapping[str, object]
    place: str = ""
    faults: list[str] | None = None

    def error(self, name: str, problem: str) -> FieldError:
        """The error that says what is wrong with a field."""
        return FieldError(f"field {f'{self.place}{name}'!r} {problem}")

    def fault(self, name: str, problem: str) -> None:
        """Records that a field is faulty, or raises the error."""
        error = self.error(name, problem)
        if self.faults is None:
            raise error
        self.faults.append(str(error))

    def only(self, *names: str) -> None:
        """Records a fault for every field whose name is not among these."""
        for name in self.values:
            if name not in names:
                self.fault(name, f"is unknown; there are {', '.join(names)}")

    def text(self, name: str, *, blank: bool = False) -> str:
        """The text of a required field; it may be blank only if ``blank`` is true."""
        value = self.values.get(name)
        if isinstance(value, str):
            if not blank and not value.strip():
                self.fault(name, "is empty")
            return value
        is_missing = name not in self.values
        self.fault(name, "is missing" if is_missing else f"must be text, not {shown(value)}")
        return ""

    def optional_text(self, name: str) -> str | None:
        """Text that is not blank; None if the field is missing or null."""
        return None if self.values.get(name) is None else self.text(name)

    def choice(self, name: str, default: _Choice) -> _Choice:
        """One of the values of an enumeration; the default if the field is missing."""
        if name not in self.values:
            return default
        value, choices = self.values[name], type(default)
        if isinstance(value, str) and value in {choice.value for choice in choices}:
            return choices(value)
        names = ", ".join(choice.value for choice in choices)
        self.fault(name, f"must be one of {names}, not {shown(value)}")
        return default

    def texts_by_name(self, name: str) -> dict[str, str]:
        """An object whose values are text; empty if the field is missing."""
        texts = {}
        for key, value in self.mapping(name).items():
            if not key.strip():
                self.fault(name, "has a blank name")
            elif not isinstance(value, str) or not value.strip():
                self.fault(f"{name}.{key}", f"must be text, not {shown(value)}")
            else:
                texts[key] = value
        return texts

    def mapping(self, name: str) -> Mapping[str, object]:
        """An object; empty if the field is missing."""
        value = self.values.get(name, {})
        if isinstance(value, dict):
            return value
        self.fault(name, f"must be an object, not {_other_type(value)}")
        return {}

    def items(self, name: str, *, required: bool) -> list[object]:
        """A list; empty if the field is missing."""
        if name not in self.values:
            if required:
                self.fault(name, "is missing")
            return []
        value = self.values[name]
        if isinstance(value, list):
            return value
        self.fault(name, f"must be a list, not {_other_type(value)}")
        return []

    def objects(self, name: str, *, required: bool, short: str = "") -> Iterator[Fields]:
        """The fields of each object in a list.

        Args:
            name: the field.
            required: whether it must be present.
            short: a string in the list is read as an object with only this field; empty if strings
                are not allowed.
        """
        for index, item in enumerate(self.items(name, required=required)):
            item_place = f"{name}[{index}]"
            if short and isinstance(item, str):
                item = {short: item}  # noqa: PLW2901 - the long form of the same item
            if isinstance(item, dict):
                yield Fields(item, f"{self.place}{item_place}.", self.faults)
            else:
                expected = "an object or text" if short else "an object"
                self.fault(item_place, f"must be {expected}, not {_other_type(item)}")


def shown(value: object) -> str:
    """A JSON value as messages show it, shortened if it is long."""
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _MAX_SHOWN else f"{text[: _MAX_SHOWN - 3]}..."


def _other_type(value: object) -> str:
    """The type of a container, or the value itself if it is not one, for a message."""
    return json_type(value) if isinstance(value, dict | list) else shown(value)
