"""Metrics for text, for tables as text, and for the existence of a file.

Sources, read and not run: ``compare_csv``, ``check_include_exclude`` and ``exact_match`` of
xlang-ai/Spider2-V (table.py at 4d3081c4, general.py at 06235a32), public copies of OSWorld's
``compare_csv`` and ``compare_text_file``. ``check_file_existence`` could not be read; Spider2-V
imports it.
"""

from __future__ import annotations

import csv
import io
import re

from judge.compare.files.metric import (
    MISSING,
    Metric,
    MetricInput,
    Mismatch,
    first_difference,
    plain_text,
    published_text,
)
from judge.compare.published.spider2v.compare_table import Evaluator
from judge.compare.published_error import PublishedError, Side

_BLANKS = re.compile(r"\s+")
_ENCODINGS = ("utf-8", "latin-1")
"""OSWorld tries more encodings, but the second of these can read any file."""

_MAX_FIELD_CHARS = 1 << 20  # of a field of a CSV file


def _csv_lines(metric_input: MetricInput, data: bytes, side: Side) -> list[str]:
    if metric_input.evaluator is Evaluator.SPIDER2V:
        text = published_text(data, side)
    else:
        try:
            text = data.decode(_ENCODINGS[0])
        except UnicodeDecodeError:
            text = data.decode(_ENCODINGS[1])
    lines = text.splitlines()
    if not metric_input.options.get("strict", True):
        lines = [line.strip() for line in lines]
    return (
        [line.lower() for line in lines]
        if metric_input.options.get("ignore_case", False)
        else lines
    )


def published_csv(metric_input: MetricInput) -> float:
    """Compares two tables line by line."""
    if metric_input.answer is None:
        return 0.0
    lines = _csv_lines(metric_input, metric_input.answer, Side.ANSWER)
    return float(lines == _csv_lines(metric_input, metric_input.bytes_of_gold, Side.GOLD))


def _rows(metric_input: MetricInput, data: bytes, side: Side) -> list[tuple[str, ...]]:
    text = plain_text(data, side)
    if metric_input.options.get("ignore_case", False):
        text = text.lower()
    limit = csv.field_size_limit(_MAX_FIELD_CHARS)
    try:
        rows = [tuple(row) for row in csv.reader(io.StringIO(text))]
    except csv.Error as error:
        raise PublishedError("Error", str(error), side) from error
    finally:
        csv.field_size_limit(limit)
    if not metric_input.options.get("strict", True):
        rows = [tuple(field.strip() for field in row) for row in rows]
    while rows and not any(rows[-1]):
        rows.pop()
    return rows


def right_csv(metric_input: MetricInput) -> Mismatch | None:
    """Compares two tables field by field, whatever their quotes."""
    if metric_input.answer is None:
        return MISSING
    gold = _rows(metric_input, metric_input.bytes_of_gold, Side.GOLD)
    return first_difference(gold, _rows(metric_input, metric_input.answer, Side.ANSWER), "row")


def _prepared(metric_input: MetricInput, text: str) -> str:
    if metric_input.options.get("ignore_blanks", False):
        text = _BLANKS.sub(" ", text.strip())
    return text.lower() if metric_input.options.get("ignore_case", False) else text


def published_text_file(metric_input: MetricInput) -> float:
    """Compares the whole text; options may ignore case and reduce runs of blanks to one blank."""
    if metric_input.answer is None:
        return 0.0
    first = _prepared(metric_input, published_text(metric_input.answer, Side.ANSWER))
    return float(
        first == _prepared(metric_input, published_text(metric_input.bytes_of_gold, Side.GOLD))
    )


def right_text_file(metric_input: MetricInput) -> Mismatch | None:
    """Compares the lines, without blank ones at the end."""
    if metric_input.answer is None:
        return MISSING
    lines = [
        _prepared(metric_input, plain_text(data, side)).rstrip("\n").split("\n")
        for data, side in (
            (metric_input.bytes_of_gold, Side.GOLD),
            (metric_input.answer, Side.ANSWER),
        )
    ]
    return first_difference(lines[0], lines[1], "line")


def answered_text(metric_input: MetricInput) -> str | None:
    """Returns the typed answer, or the text of the file."""
    if metric_input.text is not None:
        return metric_input.text
    return None if metric_input.answer is None else plain_text(metric_input.answer, Side.ANSWER)


def published_match(metric_input: MetricInput) -> float:
    """Whether the answer equals the text in the task."""
    return float(answered_text(metric_input) == metric_input.rule("expected"))


def right_match(metric_input: MetricInput) -> Mismatch | None:
    """Compares the answer with the text in the task, ignoring outer blanks."""
    actual, expected = answered_text(metric_input), metric_input.rule("expected")
    if isinstance(actual, str) and isinstance(expected, str) and actual.strip() == expected.strip():
        return None
    return Mismatch(expected, actual)


def _include_exclude(metric_input: MetricInput) -> tuple[list[str], list[str]]:
    rules = metric_input.rules if isinstance(metric_input.rules, dict) else {}
    listed_rules = []
    for name in ("include", "exclude"):
        listed = rules.get(name, [])
        if not isinstance(listed, list | str) or not all(isinstance(text, str) for text in listed):
            raise PublishedError("TypeError", f"{name} is not a list of strings", Side.RULES)
        listed_rules.append(list(listed))
    return listed_rules[0], listed_rules[1]


def published_include(metric_input: MetricInput) -> float:
    """Whether the text contains all strings of one list, and none of the other."""
    text = answered_text(metric_input)
    if text is None:
        return 0.0
    include, exclude = _include_exclude(metric_input)
    return float(
        all(part in text for part in include) and all(part not in text for part in exclude)
    )


def right_include(metric_input: MetricInput) -> Mismatch | None:
    """Compares as published, but two empty lists are a fault of the task."""
    include, exclude = _include_exclude(metric_input)
    if not include and not exclude:
        raise PublishedError("ValueError", "nothing is to be included or excluded", Side.RULES)
    text = answered_text(metric_input)
    if text is None:
        return MISSING
    for part in include:
        if part not in text:
            return Mismatch(part, None, "not in the text")
    for part in exclude:
        if part in text:
            return Mismatch(None, part, "in the text")
    return None


def published_existence(metric_input: MetricInput) -> float:
    """Whether the file exists."""
    return float(metric_input.answer is not None)


def right_existence(metric_input: MetricInput) -> Mismatch | None:
    """Checks that the file exists."""
    return MISSING if metric_input.answer is None else None


METRICS = {
    "compare_csv": Metric(published_csv, right_csv),
    "compare_text_file": Metric(published_text_file, right_text_file),
    "exact_match": Metric(published_match, right_match),
    "check_include_exclude": Metric(published_include, right_include),
    "check_file_existence": Metric(published_existence, right_existence),
}
