"""Finds where a solution expects its input and its output.

The sandbox places each case's workbook where the solution looks for it, so that code is never
rewritten. A recorded path takes precedence, then the path in the prompt, then the path in the code,
then the default path of the suite's format.
"""

from __future__ import annotations

import ast
import posixpath
import re
from collections.abc import Iterator, Mapping

from judge.core.task import TaskQuestion
from judge.replies.python_text import syntax_tree
from judge.sandbox.layout import can_be_placed
from judge.suites.formats import FileRole, SolutionPaths, SuiteFormat

__all__ = ["SolutionPaths", "solution_paths"]

_QUOTED = re.compile(r"""(?P<quote>['"])(?P<text>/[^'"\n]+?)(?P=quote)""")
_WORD_IN_PROMPT = re.compile(r"""[^\s'"`<>|]++""")


def solution_paths(
    question: TaskQuestion,
    code: str | None,
    conventions: SuiteFormat,
    *,
    conversation: object = None,
    input_path: str | None = None,
    output_path: str | None = None,
) -> SolutionPaths:
    """Finds both paths of a solution.

    Args:
        question: the task.
        code: the program, if there is one.
        conventions: the format of the task's suite.
        conversation: the recorded conversation: a list of strings (the first is the prompt) or of
            messages with ``role`` and ``content``.
        input_path: the recorded input path, which takes precedence.
        output_path: the recorded output path, which takes precedence too.
    """
    if input_path is not None and output_path is not None:
        return SolutionPaths(input_path, output_path)
    texts = [
        *_prompt_paths(conversation, conventions.file_suffixes),
        *(_literals(code) if code else ()),
    ]
    paths: dict[FileRole, str] = {}
    for text in texts:
        if text.startswith("/"):
            role = conventions.role_of(posixpath.basename(text), question.id)
            if role is not None and role not in paths and can_be_placed(text):
                paths[role] = text
    default = conventions.default_paths(question)
    return SolutionPaths(
        input_path or paths.get(FileRole.INPUT) or default.input_path,
        output_path or paths.get(FileRole.OUTPUT) or default.output_path,
    )


def _prompt_paths(conversation: object, suffixes: tuple[str, ...]) -> Iterator[str]:
    """Yields the paths in messages to the chat model; its replies are not read."""
    if not isinstance(conversation, list):
        return
    for index, message in enumerate(conversation):
        if isinstance(message, str):
            if index == 0:
                yield from _file_paths(message, suffixes)
        elif isinstance(message, Mapping) and message.get("role") in {"system", "user"}:
            content = message.get("content")
            if isinstance(content, str):
                yield from _file_paths(content, suffixes)


def _file_paths(text: str, suffixes: tuple[str, ...]) -> Iterator[str]:
    """Yields the words that look like a file's absolute path, from first slash to last suffix."""
    for word in _WORD_IN_PROMPT.findall(text):
        start = word.find("/")
        end = max(_end(word, suffix) for suffix in suffixes)
        if 0 <= start < end:
            yield word[start:end]


def _end(word: str, suffix: str) -> int:
    """The index at which the last occurrence of a suffix ends; -1 if no suffix occurs."""
    start = word.rfind(suffix)
    return -1 if start < 0 else start + len(suffix)


def _literals(code: str) -> list[str]:
    """The string constants of a program, in the order of the code."""
    tree = syntax_tree(code)
    if tree is None:
        return [match["text"] for match in _QUOTED.finditer(code)]
    literals = [
        (node.lineno, node.col_offset, node.value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    ]
    return [text for _, _, text in sorted(literals)]
