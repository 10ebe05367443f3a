"""Defines what a tool for an agent is: a name, arguments as a JSON schema, and a function."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from judge.console import visible
from judge.errors import JudgeError
from judge.files.documents import MalformedError, parse_json

MAX_RESULT_CHARS = 20_000
"""Longest result of a call, in characters; the middle of a longer one is left out."""

_MAX_NAMED = 60
"""How many arguments of a server's tool an error message names."""

MAX_ITEMS = 2_000
"""Largest number of members of a list in the arguments of a call."""


class ToolFaultError(JudgeError):
    """A call cannot be executed because its arguments do not fit or a file cannot be used."""


@dataclass(frozen=True, slots=True)
class ToolOutcome:
    """The result of a call.

    Attributes:
        text: the text for the model.
        error: why there is no result, one of
            :data:`judge.core.records.tool_episodes.ERROR_KINDS`; empty if there is a result.
        pictures: the bytes of each picture, undecoded.
        fault: which server or sandbox broke, and how; empty if nothing broke.
    """

    text: str
    error: str = ""
    pictures: tuple[bytes, ...] = ()
    fault: str = ""


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool.

    Attributes:
        name: the name: letters, digits and ``_``.
        description: the description for the model, in a few sentences.
        properties: argument -> its JSON schema: ``type``, ``description``, ``enum``, ``items``,
            ``minimum`` and ``maximum``.
        required: the arguments that every call must have.
        run: executes a call; takes checked arguments and returns text, or an outcome. It may raise
            a JudgeError, whose message the agent reads.
        writes: whether the tool changes files.
        given: the schema of the arguments if a server provides one; only the names and types at its
            top level are checked here.
    """

    name: str
    description: str
    properties: Mapping[str, Mapping[str, Any]]
    required: tuple[str, ...]
    run: Callable[[Mapping[str, Any]], str | ToolOutcome]
    writes: bool = False
    given: Mapping[str, Any] | None = None

    @property
    def schema(self) -> dict[str, Any]:
        """The JSON schema of the arguments."""
        if self.given is not None:
            return dict(self.given)
        return {
            "type": "object",
            "properties": {name: dict(schema) for name, schema in self.properties.items()},
            "required": list(self.required),
            "additionalProperties": False,
        }

    def __call__(self, arguments: Mapping[str, Any]) -> str:
        """Checks the arguments, and executes the call.

        Returns:
            Text of at most :data:`MAX_RESULT_CHARS` characters.

        Raises:
            ToolFaultError: the arguments do not fit the schema.
            JudgeError: the call cannot be executed.
        """
        check_arguments(self, arguments)
        result = self.run(arguments)
        return shortened(visible(result if isinstance(result, str) else result.text))

    def done(self, arguments: Mapping[str, Any]) -> ToolOutcome:
        """Checks the arguments, and executes the call; the result is not shortened.

        Raises:
            ToolFaultError, JudgeError: as in :meth:`__call__`.
        """
        check_arguments(self, arguments)
        result = self.run(arguments)
        return ToolOutcome(visible(result)) if isinstance(result, str) else result


_TYPES: Mapping[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "array": (list,),
    "object": (dict,),
    "null": (type(None),),
}


_NUMBERS = {"integer", "number"}


def check_arguments(tool: Tool, arguments: Mapping[str, Any]) -> None:
    """Checks that arguments fit the schema of a tool.

    Raises:
        ToolFaultError: an argument does not fit; the message names it. If the tool has no such
            argument, the message lists those that it has.
    """
    if tool.given is not None:
        _check_given(tool.name, tool.given, arguments)
        return
    listed = ", ".join(tool.properties) or "none"
    for name in arguments:
        if name not in tool.properties:
            raise ToolFaultError(f"{tool.name} has no argument {name!r:.80}; it has: {listed}")
    for name in tool.required:
        if name not in arguments:
            raise ToolFaultError(f"{tool.name} needs the argument {name!r}; it has: {listed}")
    for name, value in arguments.items():
        _check(f"argument {name!r} of {tool.name}", tool.properties[name], value)


def _check_given(name: str, schema: Mapping[str, Any], arguments: Mapping[str, Any]) -> None:
    """Checks names, and types if the server's schema states them; the server checks the rest."""
    properties, required = schema.get("properties"), schema.get("required")
    properties = properties if isinstance(properties, dict) else {}
    listed = ", ".join(map(str, list(properties)[:_MAX_NAMED])) or "none"
    listed += ", …" if len(properties) > _MAX_NAMED else ""
    for needed in required if isinstance(required, list) else ():
        if isinstance(needed, str) and needed not in arguments:
            raise ToolFaultError(f"{name} needs the argument {needed!r:.80}; it has: {listed}")
    for key, value in arguments.items():
        own = properties.get(key)
        if own is None and schema.get("additionalProperties") is False:
            raise ToolFaultError(f"{name} has no argument {key!r:.80}; it has: {listed}")
        kind = own.get("type") if isinstance(own, dict) else None
        if isinstance(kind, str) and kind in _TYPES:
            types = _TYPES[kind]
            if not isinstance(value, types) or (isinstance(value, bool) and bool not in types):
                raise ToolFaultError(f"argument {key!r:.80} of {name} must be of type {kind}")


def repaired(
    schema: Mapping[str, Any], arguments: Mapping[str, Any]
) -> tuple[dict[str, Any], list[str]]:
    """Repairs two common mistakes of models; returns the arguments, and a list of the repairs.

    If the schema requires an array or object, a string with its JSON is parsed; if it requires an
    integer, a whole float is converted. Nothing else is guessed.
    """
    properties = schema.get("properties")
    changed, repairs = dict(arguments), []
    for name, value in arguments.items():
        kinds = _kinds(properties.get(name)) if isinstance(properties, Mapping) else set()
        if isinstance(value, str) and "string" not in kinds:
            with contextlib.suppress(MalformedError):
                document = parse_json(value, max_values=MAX_ITEMS * 10)
                kind = "array" if isinstance(document, list) else "object"
                if kind in kinds and isinstance(document, _TYPES[kind]):
                    changed[name] = document
                    repairs.append(f"{name}: text to {kind}")
        elif isinstance(value, float) and value.is_integer() and kinds & _NUMBERS == {"integer"}:
            changed[name] = int(value)
            repairs.append(f"{name}: whole number")
    return changed, repairs


def _kinds(schema: object) -> set[str]:
    """Returns the types that the schema of an argument allows, if it states them directly."""
    if not isinstance(schema, Mapping):
        return set()
    stated = schema.get("type")
    kinds = (
        {kind for kind in stated if isinstance(kind, str)} if isinstance(stated, list) else set()
    )
    if isinstance(stated, str):
        kinds.add(stated)
    for branches in (schema.get("anyOf"), schema.get("oneOf")):
        for branch in branches if isinstance(branches, list) else ():
            own = branch.get("type") if isinstance(branch, Mapping) else None
            # A branch without a plain type may allow anything.
            kinds |= {own} if isinstance(own, str) else set(_TYPES)
    return kinds


def _check(named: str, schema: Mapping[str, Any], value: object) -> None:
    kinds = schema.get("type")
    if kinds is not None:
        expected = [kinds] if isinstance(kinds, str) else list(kinds)
        types = tuple(python_type for kind in expected for python_type in _TYPES[kind])
        if not isinstance(value, types) or (isinstance(value, bool) and bool not in types):
            raise ToolFaultError(f"{named} must be of type {' or '.join(expected)}")
    if "enum" in schema and value not in schema["enum"]:
        raise ToolFaultError(f"{named} must be one of {', '.join(map(str, schema['enum']))}")
    if isinstance(value, int | float) and not isinstance(value, bool):
        least, most = schema.get("minimum"), schema.get("maximum")
        if (least is not None and value < least) or (most is not None and value > most):
            raise ToolFaultError(f"{named} must be from {least} to {most}")
    if isinstance(value, list):
        if len(value) > MAX_ITEMS:
            raise ToolFaultError(f"{named} has {len(value):,} members, more than {MAX_ITEMS:,}")
        for number, member in enumerate(value, 1):
            _check(f"member {number} of {named}", schema.get("items", {}), member)
    if isinstance(value, dict) and "properties" in schema:
        missing = [name for name in schema.get("required", ()) if name not in value]
        unknown = [name for name in value if name not in schema["properties"]]
        if missing or unknown:
            raise ToolFaultError(f"{named} must have {', '.join(schema['properties'])}")
        for name, member in value.items():
            _check(f"{name!r} in {named}", schema["properties"][name], member)


def shortened(text: str, max_chars: int = MAX_RESULT_CHARS) -> str:
    """Shortens text to about ``max_chars`` characters, with a note in place of the middle."""
    if len(text) <= max_chars:
        return text
    half = max_chars // 2
    left_out = len(text) - 2 * half
    return f"{text[:half]}\n… {left_out:,} characters are left out …\n{text[-half:]}"
