"""Takes typed fields out of JSON and remembers every fault with the field that has it. Pure."""

from __future__ import annotations

import enum
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TypeVar

from judge.files.documents import json_type

_Choice = TypeVar("_Choice", bound=enum.StrEnum)


@dataclass(frozen=True, slots=True)
class Fields:
    """The fields of one object.

    Attributes:
        values: the object.
        place: where it is, such as ``cases[0].``; field names are added to it.
        faults: what is wrong, one line each; shared by all objects of a task.
    """

    values: Mapping[str, object]
    place: str
    faults: list[str]

    def fault(self, name: str, problem: str) -> None:
        """Notes what is wrong with a field."""
        self.faults.append(f"field {f'{self.place}{name}'!r} {problem}")

    def only(self, *known: str) -> None:
        """Notes every field that means nothing here."""
        for name in self.values:
            if name not in known:
                self.fault(name, f"is unknown; there are {', '.join(known)}")

    def text(self, name: str, *, blank: bool = False) -> str:
        """Text that has to be there; where ``blank`` is false, it has to say something."""
        if name not in self.values:
            self.fault(name, "is missing")
            return ""
        value = self.values[name]
        if not isinstance(value, str):
            self.fault(name, f"must be text, not {shown(value)}")
            return ""
        if not blank and not value.strip():
            self.fault(name, "is empty")
        return value

    def optional_text(self, name: str) -> str | None:
        """Text that says something, or None where the field is missing or null."""
        return None if self.values.get(name) is None else self.text(name)

    def choice(self, name: str, default: _Choice) -> _Choice:
        """One of the values of an enumeration; the default where the field is missing."""
        if name not in self.values:
            return default
        value, choices = self.values[name], type(default)
        if isinstance(value, str) and value in {each.value for each in choices}:
            return choices(value)
        known = ", ".join(each.value for each in choices)
        self.fault(name, f"must be one of {known}, not {shown(value)}")
        return default

    def texts_by_name(self, name: str) -> dict[str, str]:
        """An object whose values are strings; empty if the field is missing."""
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
        """An object; empty where the field is missing."""
        value = self.values.get(name, {})
        if isinstance(value, dict):
            return value
        self.fault(name, f"must be an object, not {shown(value)}")
        return {}

    def items(self, name: str, *, required: bool) -> list[object]:
        """A list; empty where the field is missing."""
        if name not in self.values:
            if required:
                self.fault(name, "is missing")
            return []
        value = self.values[name]
        if isinstance(value, list):
            return value
        self.fault(name, f"must be a list, not {shown(value)}")
        return []

    def objects(self, name: str, *, required: bool, short: str = "") -> Iterator[Fields]:
        """The objects of a list, each with its place.

        Args:
            name: the field.
            required: whether it must be present.
            short: the field that a string stands for if it is given instead of an object; empty
                if a string is not allowed.
        """
        for index, item in enumerate(self.items(name, required=required)):
            place = f"{name}[{index}]"
            if short and isinstance(item, str):
                item = {short: item}  # noqa: PLW2901 - the long way of writing the same
            if isinstance(item, dict):
                yield Fields(item, f"{self.place}{place}.", self.faults)
            else:
                wanted = "an object or text" if short else "an object"
                self.fault(place, f"must be {wanted}, not {shown(item)}")


def shown(value: object) -> str:
    """A JSON value for a message, shortened if it is long."""
    if isinstance(value, dict | list):
        return json_type(value)
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 60 else text[:57] + "..."
