"""Finds the JSON object with a typed answer in a chat model's reply. Pure; evaluates nothing.

There are two ways: :func:`published_answer` reads like the published script of BabelBench,
including its faults; :func:`stated_answer` finds the object wherever and however it is written.
Both take time linear in the length of the reply, and read at most its last
:data:`MAX_ANSWER_CHARS` characters.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass

from judge.core.replies.extract import answer_of, bounded_reply
from judge.core.replies.relaxed import MAX_DEPTH, NotLiteralError, read_literal

_FENCE = "```"
_JSON_FENCE = "```json"
_FINAL = re.compile(r"(?<=final answer\.)\n*+ *+(?=\{)")
_PYTHON_FENCE = {name: re.compile(rf"```{name}\n*+(?=\{{)") for name in ("python", "py")}
_PYTHON_END = re.compile(r"\}\n*+```")
_TUPLE = re.compile(r"\(([^()A-Z*/+-]+)\)")
_LONE_COMMA = re.compile(r",\s*+([}\]])")
_NAMED = re.compile(r"@(?P<name>\w++)\[")
_OPEN = re.compile(r"\{(?=\s*+[\"'}/#])")
_MAX_FAILURES = 20_000
_COST_OF_DEEP_JSON = 20
"""Number of failed attempts that JSON counts as if it is nested too deeply."""

_MAX_REREAD_CHARS = 8_000_000


@dataclass(frozen=True, slots=True)
class StatedAnswer:
    """The answer that a reply states.

    Attributes:
        values: name of a variable -> its value; None if the reply has no such object.
        problem: why there are no values; empty if there are.
    """

    values: dict[str, object] | None
    problem: str = ""


# -- as published ---------------------------------------------------------------------------------


def published_answer(reply: str) -> StatedAnswer:
    """Reads a reply as the published script does.

    The script looks for three kinds of text: a fence with the tag ``json``; an object directly
    after ``final answer.``; an object in a fence with the tag ``python`` or ``py``. The first kind
    that occurs counts. Of its occurrences, the last one that can be read as JSON counts, and it
    must be an object.

    Args:
        reply: the reply.

    Returns:
        The object; its values may contain NaN and infinities.
    """
    text = bounded_reply(reply)
    kinds: tuple[Callable[[str], Iterator[str]], ...] = (
        _json_fences,
        _final_answers,
        lambda text: _python_fences(text, "python"),
        lambda text: _python_fences(text, "py"),
    )
    for kind in kinds:
        pieces = list(kind(text))
        if pieces:
            return _last_readable(pieces)
    return StatedAnswer(None, "the reply has no answer where the published script looks for it")


def _json_fences(text: str) -> Iterator[str]:
    position = 0
    while (start := text.find(_JSON_FENCE, position)) >= 0:
        start += len(_JSON_FENCE)
        end = text.find(_FENCE, start)
        if end < 0:
            return
        yield text[start:end]
        position = end + len(_FENCE)


def _final_answers(text: str) -> Iterator[str]:
    position = 0
    while match := _FINAL.search(text, position):
        # At least one character is between the braces.
        end = text.find("}", match.end() + 2)
        if end < 0:
            return
        yield text[match.end() : end + 1]
        position = end + 1


def _python_fences(text: str, name: str) -> Iterator[str]:
    position = 0
    while match := _PYTHON_FENCE[name].search(text, position):
        end = _PYTHON_END.search(text, match.end() + 1)
        if end is None:
            return
        yield text[match.end() : end.start() + 1]
        position = end.end()


def _last_readable(pieces: list[str]) -> StatedAnswer:
    for piece in reversed(pieces):
        try:
            document = json.loads(_published_cleaning(piece).strip())
        except (ValueError, RecursionError):
            continue
        if isinstance(document, dict):
            return StatedAnswer(document)
        return StatedAnswer(None, "the last JSON value in the reply is not an object")
    return StatedAnswer(None, "the published script cannot read the reply's JSON")


def _published_cleaning(text: str) -> str:
    """Changes the text as the published script does before it reads JSON.

    Another rule of the script, about values without quotes, is left out, because it makes no
    difference: text that it matches is not JSON, neither before nor after the rule is applied.
    """
    text = _TUPLE.sub(r"[\1]", text)
    text = text.replace('\\"', '"').replace("True", "true").replace("False", "false")
    return _LONE_COMMA.sub(r"\1", text)


# -- as names and values --------------------------------------------------------------------------


def named_answer(reply: str) -> StatedAnswer:
    """Reads values that are written as ``@name[value]``; the last value of a name counts.

    Args:
        reply: the reply.

    Returns:
        At least one value; all values are text.
    """
    text = bounded_reply(reply)
    values: dict[str, object] = {}
    position = end = line_end = 0
    while match := _NAMED.search(text, position):
        start = position = match.end()
        # Each sign is searched for once, however many names lack an end.
        if end < start:
            end = _index_of(text, "]", start)
        if line_end < start:
            line_end = _index_of(text, "\n", start)
        if end < line_end:
            values[match["name"]] = text[start:end]
            position = end + 1
    if not values:
        return StatedAnswer(None, "the reply holds no @name[value]")
    return StatedAnswer(values)


def _index_of(text: str, sign: str, start: int) -> int:
    """Returns the index of a sign; the length of the text if the sign does not occur."""
    position = text.find(sign, start)
    return len(text) if position < 0 else position


# -- as written -----------------------------------------------------------------------------------


def stated_answer(reply: str, names: Collection[str]) -> StatedAnswer:
    """Finds the answer in a reply, in any fence or none, in the notation of JSON or Python.

    The last object that has all the names counts. If no object has all, the last one that has any
    of them counts, and otherwise the last object. Marked reasoning is ignored.

    Args:
        reply: the reply.
        names: the names of the variables.

    Returns:
        The object, as JSON: NaN and infinities become None.
    """
    text = answer_of(bounded_reply(reply).replace("\r\n", "\n"))
    required = set(names)
    best: dict[str, object] | None = None
    most = -1
    for candidate in _objects(text):
        here = 2 if required <= candidate.keys() else int(not required.isdisjoint(candidate))
        if here >= most:
            best, most = candidate, here
    if best is None:
        return StatedAnswer(None, "the reply holds no JSON object")
    return StatedAnswer(best)


def _objects(text: str) -> Iterator[dict[str, object]]:
    """Yields every object in the text that is not inside another one, in order."""
    decoder = json.JSONDecoder(strict=False, parse_constant=_nothing, parse_float=_finite)
    position = failures = reread = 0
    while match := _OPEN.search(text, position):
        start = match.start()
        try:
            document, position = _read(text, start, decoder)
        except _FailedError as error:
            # Text that is not an object may contain one, as code does, up to a limit of brackets.
            failures += _COST_OF_DEEP_JSON if error.problem.is_deep else 1
            position = error.problem.position if error.problem.is_deep else start + 1
            reread += error.cost
            if failures > _MAX_FAILURES or reread > _MAX_REREAD_CHARS:
                return
            continue
        if isinstance(document, dict):
            yield {str(name): value for name, value in document.items()}


class _FailedError(Exception):
    """There is no object at an index.

    Attributes:
        problem: the reason.
        cost: how many characters were read before this was clear.
    """

    def __init__(self, problem: NotLiteralError, cost: int) -> None:
        super().__init__(problem, cost)
        self.problem = problem
        self.cost = cost


def _read(text: str, start: int, decoder: json.JSONDecoder) -> tuple[object, int]:
    """Reads the object at an index, as strict JSON if possible, otherwise as relaxed JSON.

    Raises:
        _FailedError: there is no object.
    """
    cost = 0
    try:
        value, end = decoder.raw_decode(text, start)
        # Objects with that many brackets are rare; the relaxed reader counts their depth.
        if text.count("{", start, end) + text.count("[", start, end) <= MAX_DEPTH:
            return value, end
    except json.JSONDecodeError as error:
        # To find its line number, the error has read everything before it.
        cost = error.pos - start + error.pos // 16
    except (ValueError, RecursionError):  # a number with thousands of digits, or nested too deeply
        pass
    try:
        return read_literal(text, start)
    except NotLiteralError as problem:
        raise _FailedError(problem, cost + problem.position - start) from None


def _nothing(_: str) -> None:
    return None


def _finite(digits: str) -> float | None:
    number = float(digits)  # 1e999 becomes infinite
    return number if math.isfinite(number) else None
