"""Reads YAML that someone else may have written: corrections, sources, models, limits.

Every node is read only once. Aliases are refused, since a few lines of them can expand to more than
fits in memory; nodes, nesting and length are limited; and a scalar that can only be text is not
parsed as a number or a date. Only this module imports yaml.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from judge.console import visible
from judge.errors import JudgeError
from judge.files.documents import MIB, read_text

MAX_BYTES = MIB
"""Longest file that is read; the longest YAML file of the judge has 12 KiB."""

MAX_NODES = 50_000
MAX_DEPTH = 50

_MAX_SCALAR_CHARS = 64
"""Longest number or date; a longer scalar is text, whatever it looks like."""

_TEXT = "tag:yaml.org,2002:str"


class MalformedYamlError(Exception):
    """A YAML document is malformed; callers add the name of the file."""


def read_yaml(path: Path, error: type[JudgeError]) -> Any:
    """Reads the document of a YAML file.

    Args:
        path: the file.
        error: the class of error to raise.

    Raises:
        JudgeError: of the class ``error``: the file is not a regular one, cannot be read, or is not
            YAML within the limits.
    """
    text = read_text(path, error, max_bytes=MAX_BYTES)
    try:
        return parse_yaml(text)
    except MalformedYamlError as problem:
        raise error(f"{path}: {problem}") from problem


def parse_yaml(text: str) -> Any:
    """Reads YAML within limits.

    Raises:
        MalformedYamlError: the message says what is wrong, and where.
    """
    loader = None
    try:
        loader = _BoundedLoader(text)
        return loader.get_single_data()
    except yaml.YAMLError as problem:
        raise MalformedYamlError(f"not YAML: {visible(_description(problem))}") from problem
    except (ValueError, OverflowError, RecursionError) as problem:
        # A date that does not exist, or a number with thousands of digits.
        message = visible(str(problem)) or type(problem).__name__
        raise MalformedYamlError(f"not YAML: {message}") from problem
    finally:
        if loader is not None:
            loader.dispose()


def _description(problem: yaml.YAMLError) -> str:
    """Describes the fault and its position; omits the name that the parser gives to its input."""
    if isinstance(problem, yaml.reader.ReaderError):
        return f"character {problem.position + 1}: {problem.reason}"
    if not isinstance(problem, yaml.MarkedYAMLError):
        return str(problem)
    parts = []
    for mark, words in (
        (problem.context_mark, problem.context),
        (problem.problem_mark, problem.problem),
    ):
        if words:
            position = "" if mark is None else f"line {mark.line + 1}, column {mark.column + 1}: "
            parts.append(position + words)
    return "; ".join(parts)


def dump_yaml(document: object) -> str:
    """Writes YAML that :func:`parse_yaml` reads back: without aliases, keys in their order."""
    text: str = yaml.dump(
        document, Dumper=_PlainDumper, sort_keys=False, allow_unicode=True, width=100
    )
    return text


class _PlainDumper(yaml.SafeDumper):
    """A safe dumper that writes repeated values in full instead of as aliases."""

    def ignore_aliases(self, data: Any) -> bool:
        """Returns True for all data, since aliases are not read."""
        del data
        return True


class _BoundedLoader(yaml.SafeLoader):
    """A safe loader that counts the nodes it makes."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self._nodes = 0
        self._depth = 0

    def compose_node(self, parent: Any, index: Any) -> Any:
        """Called for each node of the document, at every level."""
        if self.check_event(yaml.AliasEvent):
            raise self._refusal("aliases are not supported: write the value itself")
        self._nodes += 1
        self._depth += 1
        if self._nodes > MAX_NODES or self._depth > MAX_DEPTH:
            problem = (
                f"more than {MAX_NODES:,} entries"
                if self._nodes > MAX_NODES
                else f"nested more than {MAX_DEPTH} levels deep"
            )
            raise self._refusal(problem)
        try:
            return super().compose_node(parent, index)
        finally:
            self._depth -= 1

    def _refusal(self, problem: str) -> yaml.YAMLError:
        mark = self.peek_event().start_mark  # type: ignore[no-untyped-call]
        return yaml.constructor.ConstructorError(None, None, problem, mark)

    def resolve(self, kind: Any, value: Any, implicit: Any) -> Any:
        """Returns the tag of a node without an explicit tag."""
        if kind is yaml.ScalarNode and isinstance(value, str) and len(value) > _MAX_SCALAR_CHARS:
            return _TEXT
        return super().resolve(kind, value, implicit)  # type: ignore[no-untyped-call]

    def construct_object(self, node: Any, deep: bool = False) -> Any:
        """Makes a value; limits the length of scalars with an explicit tag for numbers as well."""
        if (
            isinstance(node, yaml.ScalarNode)
            and node.tag != _TEXT
            and len(node.value) > _MAX_SCALAR_CHARS
        ):
            raise yaml.constructor.ConstructorError(
                None, None, "too long for any type except text", node.start_mark
            )
        return super().construct_object(node, deep=deep)
