"""The arguments and the results of a published metric."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from judge.compare.published.spider2v.compare_table import Evaluator
from judge.compare.published_error import PublishedError, Side
from judge.compare.sealed import SealedFiles

MAX_BYTES = 32 << 20  # of a text file that is compared


class UnreadableAnswerError(Exception):
    """The answer is not a file that the metric can read; the message says why."""


@dataclass(frozen=True, slots=True)
class MetricInput:
    """One metric of a task, with the answer and the gold that it compares.

    Attributes:
        answer: bytes of the submitted file; None if no file was submitted.
        text: the typed answer; None if the answer is a file.
        gold: bytes of the gold; None if the metric has no gold.
        rules: the rules that the task gives instead of a gold.
        options: the metric's own options.
        evaluator: the published evaluator whose functions are used.
        files: reads databases and PDF files in the sandbox; None if there is no sandbox.
    """

    answer: bytes | None = None
    text: str | None = None
    gold: bytes | None = None
    rules: Any = None
    options: Mapping[str, Any] = field(default_factory=dict)
    evaluator: Evaluator = Evaluator.OSWORLD
    files: SealedFiles | None = None

    @property
    def bytes_of_gold(self) -> bytes:
        """The bytes of the gold.

        Raises:
            PublishedError: the metric has no gold.
        """
        if self.gold is None:
            raise PublishedError("TypeError", "the metric has no gold", Side.RULES)
        return self.gold

    def rule(self, name: str) -> Any:
        """Returns the rule of the task that has this name.

        Raises:
            PublishedError: the task has no rule of this name.
        """
        if not isinstance(self.rules, Mapping) or name not in self.rules:
            raise PublishedError("KeyError", repr(name), Side.RULES)
        return self.rules[name]


@dataclass(frozen=True, slots=True)
class Mismatch:
    """A difference that makes the answer wrong.

    Attributes:
        expected, actual: the two values, as JSON.
        detail: position of the difference in the file.
    """

    expected: object = None
    actual: object = None
    detail: str = ""


MISSING = Mismatch("a file", None, "the file was not submitted")

Published = Callable[[MetricInput], float]
"""Returns the published score; raises PublishedError if the published function raises."""

Standard = Callable[[MetricInput], Mismatch | None]
"""Returns the difference in the judge's own reading; None if the answer is right."""


@dataclass(frozen=True, slots=True)
class Metric:
    """A metric in two readings: as published, and the judge's own."""

    published: Published
    standard: Standard


def published_text(data: bytes, side: Side) -> str:
    """Returns a file's text like ``open(path).read()``.

    Raises:
        PublishedError: the file is not UTF-8.
    """
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise PublishedError("UnicodeDecodeError", str(error)[:200], side) from error
    return text.replace("\r\n", "\n").replace("\r", "\n")


def plain_text(data: bytes, side: Side) -> str:
    """Returns a file's text without byte order mark, with line feeds as line ends.

    Raises:
        UnreadableAnswerError: the answer is not text.
        PublishedError: the gold is not text.
    """
    if len(data) > MAX_BYTES:
        raise UnreadableAnswerError(f"the file is longer than {MAX_BYTES:,} bytes")
    try:
        return published_text(data.removeprefix(b"\xef\xbb\xbf"), side)
    except PublishedError as error:
        if side is Side.ANSWER:
            raise UnreadableAnswerError("the file is not UTF-8 text") from error
        raise


def same_values(first: object, second: object) -> bool:
    """Whether two JSON documents are equal; true is not equal to 1."""
    waiting = [(first, second)]
    while waiting:
        one, two = waiting.pop()
        if isinstance(one, bool) != isinstance(two, bool):
            return False
        if isinstance(one, Mapping) and isinstance(two, Mapping):
            if one.keys() != two.keys():
                return False
            waiting.extend((one[key], two[key]) for key in one)
        elif _is_list(one) and _is_list(two):
            if len(one) != len(two):  # type: ignore[arg-type]
                return False
            waiting.extend(zip(one, two, strict=True))  # type: ignore[call-overload]
        elif one != two:
            return False
    return True


def _is_list(value: object) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str | bytes)


def first_difference(
    first: Sequence[object], second: Sequence[object], noun: str
) -> Mismatch | None:
    """Returns the first difference between two lists; None if they are equal."""
    for number, pair in enumerate(zip(first, second, strict=False), start=1):
        if pair[0] != pair[1]:
            return Mismatch(str(pair[0])[:500], str(pair[1])[:500], f"{noun} {number}")
    if len(first) != len(second):
        return Mismatch(f"{len(first)} {noun}s", f"{len(second)} {noun}s")
    return None
