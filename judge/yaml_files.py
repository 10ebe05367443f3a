"""Reads YAML that somebody else may have written: regular files, bounded in size and in meaning.

A few lines of YAML can stand for billions of values: an alias stands for what it names, and aliases
name aliases. What a document expands to is counted before any of it is built.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from judge.documents import MIB, read_text
from judge.errors import JudgeError

MOST_VALUES = 100_000
"""Values of a document, those behind each alias counted each time."""


def read_yaml(path: Path, error: type[JudgeError], *, most_bytes: int = MIB) -> Any:
    """The document of a YAML file.

    Args:
        path: the file.
        error: what to raise.
        most_bytes: a longer file is refused.

    Raises:
        JudgeError: of the class ``error``: it cannot be read, is not YAML, or stands for too much.
    """
    text = read_text(path, error, most_bytes=most_bytes)
    loader = yaml.SafeLoader(text)
    try:
        node = loader.get_single_node()
        if node is None:
            return None
        if _values(node, {}) > MOST_VALUES:
            raise error(f"{path}: its aliases stand for more than {MOST_VALUES:,} values")
        return loader.construct_document(node)
    except (yaml.YAMLError, ValueError) as problem:  # ValueError: a date or a number that is none
        raise error(f"{path}: not YAML: {problem}") from problem
    except RecursionError as problem:
        raise error(f"{path}: nested too deeply, or within itself") from problem
    finally:
        loader.dispose()


def _values(node: yaml.Node, known: dict[int, int]) -> int:
    """How many values a node stands for.

    Args:
        node: scalar, sequence or mapping.
        known: counts so far, by node; one that is being counted contains itself.
    """
    count = known.get(id(node))
    if count is not None:
        if count == 0:
            raise RecursionError
        return count
    known[id(node)] = 0
    count = 1
    if isinstance(node, yaml.SequenceNode):
        count += sum(_values(each, known) for each in node.value)
    elif isinstance(node, yaml.MappingNode):
        count += sum(_values(key, known) + _values(value, known) for key, value in node.value)
    known[id(node)] = count
    return count
