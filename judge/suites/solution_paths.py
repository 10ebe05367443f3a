"""Where a solution expects its input and its output. Pure.

The sandbox places each case's workbook where the solution looks for it, so that code is never
rewritten. What was recorded counts first; then what the prompt said; then what stands in the
code; then the default paths.
"""

from __future__ import annotations

import ast
import posixpath
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from judge.core.submission import default_input_path, default_output_path
from judge.replies.program import syntax_tree
from judge.sandbox.layout import can_be_placed

_QUOTED = re.compile(r"""(?P<quote>['"])(?P<text>/[^'"\n]+?)(?P=quote)""")
_WORD_IN_PROMPT = re.compile(r"""[^\s'"`<>|]++""")


@dataclass(frozen=True, slots=True)
class SolutionPaths:
    """Absolute paths at which a solution finds its input and leaves its output."""

    input_path: str
    output_path: str


def solution_paths(
    task_id: str,
    code: str | None,
    *,
    conversation: object = None,
    input_path: str | None = None,
    output_path: str | None = None,
) -> SolutionPaths:
    """Finds both paths of a solution.

    Args:
        task_id: the task's id as text.
        code: the program, where there is one.
        conversation: what was recorded of it: a list of texts (the first is the prompt) or of
            messages with ``role`` and ``content``.
        input_path: the recorded input path, which counts before anything else.
        output_path: the recorded output path, likewise.
    """
    texts = [*_prompt_paths(conversation), *(_literals(code) if code else ())]
    return SolutionPaths(
        input_path or _first(texts, task_id, "input|init") or default_input_path(task_id),
        output_path or _first(texts, task_id, "output") or default_output_path(task_id),
    )


def _first(texts: Iterable[str], task_id: str, words: str) -> str | None:
    """The first absolute path whose file is named like a workbook of this task."""
    name = re.compile(rf"\d+_{re.escape(task_id)}_(?:{words})\.xls[xm]")
    for text in texts:
        if (
            text.startswith("/")
            and name.fullmatch(posixpath.basename(text))
            and can_be_placed(text)
        ):
            return text
    return None


def _prompt_paths(conversation: object) -> Iterator[str]:
    """Paths in what the chat model was sent, never in what it answered."""
    if not isinstance(conversation, list):
        return
    for index, message in enumerate(conversation):
        if isinstance(message, str):
            if index == 0:
                yield from _workbook_paths(message)
        elif isinstance(message, Mapping) and message.get("role") in {"system", "user"}:
            content = message.get("content")
            if isinstance(content, str):
                yield from _workbook_paths(content)


def _workbook_paths(text: str) -> Iterator[str]:
    """What looks like the absolute path of a workbook, from its first slash to its last ending."""
    for word in _WORD_IN_PROMPT.findall(text):
        start = word.find("/")
        end = max(word.rfind(".xlsx"), word.rfind(".xlsm"))
        if 0 <= start < end - 1:
            yield word[start : end + len(".xlsx")]


def _literals(code: str) -> list[str]:
    """String constants of a program in the order in which they stand."""
    tree = syntax_tree(code)
    if tree is None:
        return [match["text"] for match in _QUOTED.finditer(code)]
    found = [
        (node.lineno, node.col_offset, node.value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    ]
    return [text for _, _, text in sorted(found)]
