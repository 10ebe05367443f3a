"""Metrics for JSON, YAML and notebooks.

Sources, read and not run: ``check_json`` (xlang-ai/Spider2-V, general.py at 06235a32),
``compare_json_file`` (chrome.py at 34684a67), ``check_yaml_file`` (dbt.py at ebb518db),
``compare_notebook_outputs`` and ``compare_notebook_cells`` (jupyterlab.py at 7c52bd66).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from judge.compare.files.metric import (
    MISSING,
    Metric,
    MetricInput,
    Mismatch,
    UnreadableAnswerError,
    plain_text,
    published_text,
    same_values,
)
from judge.compare.published_error import PublishedError, Side, blaming
from judge.compare.rules.methods import matches
from judge.files.documents import MalformedError, parse_json
from judge.files.yaml_documents import MalformedYamlError, parse_yaml

_MISSING = object()


def _document(data: bytes, side: Side, *, yaml: bool = False) -> Any:
    """Returns the content of a JSON or YAML file; its size is limited.

    Raises:
        PublishedError: the file cannot be read.
    """
    try:
        return parse_yaml(published_text(data, side)) if yaml else parse_json(data)
    except (MalformedError, MalformedYamlError) as error:
        kind = "YAMLError" if yaml else "JSONDecodeError"
        raise PublishedError(kind, str(error), side) from error


def _own(metric_input: MetricInput, *, yaml: bool = False) -> Any:
    """Returns the content of the answer, for the judge's own reading."""
    try:
        return _document(
            plain_text(metric_input.answer or b"", Side.ANSWER).encode(), Side.ANSWER, yaml=yaml
        )
    except PublishedError as error:
        raise UnreadableAnswerError(error.message) from error


# -- JSON -----------------------------------------------------------------------------------------


def published_json_file(metric_input: MetricInput) -> float:
    """Whether the documents are equal in Python, where 1, 1.0 and true are the same."""
    if metric_input.answer is None:
        raise PublishedError("TypeError", "expected str, bytes or os.PathLike object", Side.ANSWER)
    first = _document(metric_input.answer, Side.ANSWER)
    return float(first == _document(metric_input.bytes_of_gold, Side.GOLD))


def right_json_file(metric_input: MetricInput) -> Mismatch | None:
    """Returns the difference between the documents, if there is one; true is not 1."""
    if metric_input.answer is None:
        return MISSING
    gold, own = _document(metric_input.bytes_of_gold, Side.GOLD), _own(metric_input)
    return None if same_values(gold, own) else Mismatch(str(gold)[:500], str(own)[:500])


def _listed(metric_input: MetricInput, name: str) -> list[Mapping[str, Any]]:
    rules = metric_input.rules if isinstance(metric_input.rules, dict) else {}
    listed = rules.get(name, [])
    if not all(isinstance(rule, dict) and isinstance(rule.get("key"), list) for rule in listed):
        raise PublishedError("KeyError", "'key'", Side.RULES)
    return list(listed)


def _published_value(document: Any, path: list[Any]) -> Any:
    for key in path:
        try:
            document = document[key]
        except KeyError:
            return _MISSING
        except (TypeError, IndexError) as error:
            raise PublishedError(type(error).__name__, str(error), Side.ANSWER) from error
    return document


def published_check_json(metric_input: MetricInput) -> float:
    """Whether all expected keys match their rules, and no unexpected key matches its rule."""
    if metric_input.answer is None:
        return 0.0
    document = _document(metric_input.answer, Side.ANSWER)
    holds = True
    with blaming(Side.ANSWER):
        for rule in _listed(metric_input, "expect"):
            value = _published_value(document, rule["key"])
            if value is _MISSING:
                return 0.0
            holds = holds and matches(value, rule)
        for rule in _listed(metric_input, "unexpect"):
            value = _published_value(document, rule["key"])
            holds = holds and not matches(None if value is _MISSING else value, rule)
    return float(holds)


def _value(document: Any, path: list[Any]) -> Any:
    for key in path:
        if isinstance(document, dict):
            document = document.get(key, _MISSING) if isinstance(key, str | int) else _MISSING
        elif isinstance(document, list) and isinstance(key, int):
            document = document[key] if -len(document) <= key < len(document) else _MISSING
        else:
            return _MISSING
    return document


def _meets(value: Any, rule: Mapping[str, Any]) -> bool:
    """Whether a value meets a rule; False if the method does not apply to its type."""
    if isinstance(value, bool) != isinstance(rule.get("ref"), bool) and rule.get("method") == "eq":
        return False
    try:
        return matches(value, rule)
    except PublishedError as error:
        if error.side is Side.RULES:
            raise
        return False


def right_check_json(metric_input: MetricInput) -> Mismatch | None:
    """Returns the first rule that fails; a missing key meets no rule, numbers index only lists."""
    expected, unexpected = _listed(metric_input, "expect"), _listed(metric_input, "unexpect")
    if not expected and not unexpected:
        raise PublishedError("ValueError", "no key is expected or unexpected", Side.RULES)
    if metric_input.answer is None:
        return MISSING
    document = _own(metric_input)
    for rules, expected_truth in ((expected, True), (unexpected, False)):
        for rule in rules:
            value = _value(document, rule["key"])
            holds = value is not _MISSING and _meets(value, rule)
            if holds is not expected_truth:
                shown_value = None if value is _MISSING else value
                where = ".".join(map(str, rule["key"]))
                asks = f"{'' if expected_truth else 'not '}{rule.get('method')} {rule.get('ref')!r}"
                return Mismatch(asks, shown_value, where)
    return None


# -- YAML -----------------------------------------------------------------------------------------


def _yaml_rules(metric_input: MetricInput) -> list[tuple[str, list[Any], Any]]:
    if not isinstance(metric_input.rules, list):
        raise PublishedError("TypeError", "the rules are not a list", Side.RULES)
    rules = []
    for rule in metric_input.rules:
        if not isinstance(rule, list) or len(rule) != 3 or not isinstance(rule[1], list):
            raise PublishedError(
                "ValueError", f"{rule!r} is not [match, key path, value]"[:200], Side.RULES
            )
        rules.append((str(rule[0]), rule[1], rule[2]))
    return rules


def _is_int(key: object) -> bool:
    try:
        int(key)  # type: ignore[call-overload]
    except (TypeError, ValueError, OverflowError):
        return False
    return True


def _published_step(value: Any, key: Any) -> Any:
    if type(value) is dict:
        return value[key]
    if _is_int(key):
        return value[int(key)]
    name, expected = key
    for item in value:
        if item[name] == expected:
            return item
    raise ValueError(key)


_PUBLISHED_HOLDS: Mapping[str, Callable[[Any, Any], Any]] = {
    "match": lambda value, expected: value == expected,
    "in": lambda value, expected: value in expected,
    "contain": lambda value, expected: expected in value,
    "not_null": lambda value, _: value,
}


def published_yaml(metric_input: MetricInput) -> float:
    """Whether all rules hold; an answer for which a rule raises an error is wrong."""
    if metric_input.answer is None:
        return 0.0
    try:
        document = _document(metric_input.answer, Side.ANSWER, yaml=True)
        for kind, path, expected in _yaml_rules(metric_input):
            value = document
            for key in path:
                value = _published_step(value, key)
            holds = _PUBLISHED_HOLDS[kind](value, expected)
            if not holds:
                return 0.0
    except (PublishedError, KeyError, TypeError, IndexError, ValueError, AttributeError):
        return 0.0
    return 1.0


def _step(value: Any, key: Any) -> Any:
    """Returns the value at a key: a field, or a list item by its number or a field's value."""
    if isinstance(value, dict):
        return value[key] if isinstance(key, str | int) and key in value else _MISSING
    if not isinstance(value, list):
        return _MISSING
    if isinstance(key, list) and len(key) == 2:
        return next(
            (
                item
                for item in value
                if isinstance(item, dict) and key[0] in item and same_values(item[key[0]], key[1])
            ),
            _MISSING,
        )
    if not _is_int(key):
        return _MISSING
    index = int(key)
    return value[index] if -len(value) <= index < len(value) else _MISSING


def _holds(kind: str, value: Any, expected: Any) -> bool:
    if value is _MISSING:
        return False
    if kind == "match":
        return same_values(value, expected)
    if kind == "not_null":
        return value is not None and value not in ("", [], {})
    inner, outer = (value, expected) if kind == "in" else (expected, value)
    if isinstance(outer, str):
        return isinstance(inner, str) and inner in outer
    return isinstance(outer, dict | list) and any(same_values(inner, item) for item in outer)


def right_yaml(metric_input: MetricInput) -> Mismatch | None:
    """Returns the first rule that does not hold; true is not 1, and 0 and false are not null."""
    rules = _yaml_rules(metric_input)
    if not rules:
        raise PublishedError("ValueError", "there are no rules", Side.RULES)
    unknown = [kind for kind, *_ in rules if kind not in {"match", "in", "contain", "not_null"}]
    if unknown:
        raise PublishedError("ValueError", f"unknown match type {unknown[0]!r}", Side.RULES)
    if metric_input.answer is None:
        return MISSING
    document = _own(metric_input, yaml=True)
    for kind, path, expected in rules:
        value = document
        for key in path:
            value = _step(value, key)
        if not _holds(kind, value, expected):
            text = None if value is _MISSING else str(value)[:500]
            return Mismatch(f"{kind} {expected!r}", text, ".".join(map(str, path)))
    return None


_FORMAT = 4  # nbformat 4, the current format of notebooks


def _cells(data: bytes) -> list[dict[str, Any]]:
    """Returns the cells of a notebook, with text joined into one string as ``nbformat`` does.

    Raises:
        MalformedError: the file is not a notebook of format 4.
    """
    document = parse_json(data)
    if not isinstance(document, dict) or document.get("nbformat") != _FORMAT:
        raise MalformedError(f"not a notebook of format {_FORMAT}")
    cells = document.get("cells")
    if not isinstance(cells, list) or not all(isinstance(cell, dict) for cell in cells):
        raise MalformedError("the notebook has no cells")
    return [_joined_cell(cell) for cell in cells]


def _joined_cell(cell: dict[str, Any]) -> dict[str, Any]:
    joined = {**cell, "source": _joined(cell.get("source", ""))}
    outputs = cell.get("outputs")
    if isinstance(outputs, list):
        joined["outputs"] = [
            _joined_output(output) for output in outputs if isinstance(output, dict)
        ]
    return joined


def _joined_output(output: dict[str, Any]) -> dict[str, Any]:
    joined = {name: _joined(value) if name == "text" else value for name, value in output.items()}
    data = output.get("data")
    if isinstance(data, dict):
        joined["data"] = {
            kind: value if _is_json(kind) else _joined(value) for kind, value in data.items()
        }
    return joined


def _is_json(kind: str) -> bool:
    return kind == "application/json" or kind.endswith("+json")


def _joined(text: Any) -> Any:
    if isinstance(text, list) and all(isinstance(line, str) for line in text):
        return "".join(text)
    return text


def _published(metric_input: MetricInput, field: str) -> float:
    if metric_input.answer is None:
        return 0.0
    try:
        own, gold = _cells(metric_input.answer), _cells(metric_input.bytes_of_gold)
    except MalformedError:
        return 0.0
    if len(own) != len(gold):
        return 0.0
    for one, two in zip(own, gold, strict=True):
        if one.get("cell_type") != two.get("cell_type"):
            return 0.0
        compared = field == "source" or one.get("cell_type") == "code"
        if compared and one.get(field) != two.get(field):
            return 0.0
    return 1.0


def published_outputs(metric_input: MetricInput) -> float:
    """Whether the cells have the same types, and code cells have the same stored outputs."""
    return _published(metric_input, "outputs")


def published_cells(metric_input: MetricInput) -> float:
    """Whether the cells have the same types and the same text."""
    return _published(metric_input, "source")


def _both(metric_input: MetricInput) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    try:
        gold = _cells(metric_input.bytes_of_gold)
    except MalformedError as error:
        raise PublishedError("NotebookError", str(error), Side.GOLD) from error
    try:
        return gold, _cells(metric_input.answer or b"")
    except MalformedError as error:
        raise UnreadableAnswerError(str(error)) from error


def shown(cell: dict[str, Any]) -> list[object]:
    """Returns what the outputs of a cell show, without run counts; stream pieces are joined."""
    outputs: list[Any] = []
    pieces: list[str] = []  # of the stream at the end of the list
    for output in cell.get("outputs") or ():
        kind = output.get("output_type")
        if kind == "stream":
            stream = ["stream", output.get("name")]
            if not (outputs and outputs[-1][:2] == stream):
                pieces = []
                outputs.append([*stream, pieces])
            pieces.append(str(output.get("text", "")))
        elif kind == "error":
            outputs.append(["error", output.get("ename"), output.get("evalue")])
        else:
            outputs.append(["data", output.get("data")])
    return [
        [*output[:2], _without_ends(output[2])] if output[0] == "stream" else output
        for output in outputs
    ]


def _without_ends(pieces: Sequence[str]) -> str:
    """Joins the pieces of a stream, without blanks at the ends of its lines."""
    return "\n".join(line.rstrip() for line in "".join(pieces).rstrip().split("\n"))


def right_outputs(metric_input: MetricInput) -> Mismatch | None:
    """Returns the first difference between the outputs of the code cells."""
    if metric_input.answer is None:
        return MISSING
    gold, own = ([shown(cell) for cell in cells if cell.get("cell_type") == "code"]
                 for cells in _both(metric_input))  # fmt: skip
    return _first(gold, own, "code cell")


def right_cells(metric_input: MetricInput) -> Mismatch | None:
    """Returns the first difference in the types or text of cells, ignoring blanks at the end."""
    if metric_input.answer is None:
        return MISSING
    gold, own = ([[cell.get("cell_type"), str(cell["source"]).rstrip()] for cell in cells]
                 for cells in _both(metric_input))  # fmt: skip
    return _first(gold, own, "cell")


def _first(gold: list[list[Any]], own: list[list[Any]], noun: str) -> Mismatch | None:
    if len(gold) != len(own):
        return Mismatch(f"{len(gold)} {noun}s", f"{len(own)} {noun}s")
    for number, (one, two) in enumerate(zip(gold, own, strict=True), start=1):
        if not same_values(one, two):
            return Mismatch(str(one)[:500], str(two)[:500], f"{noun} {number}")
    return None


METRICS = {
    "compare_json_file": Metric(published_json_file, right_json_file),
    "check_json": Metric(published_check_json, right_check_json),
    "check_yaml_file": Metric(published_yaml, right_yaml),
    "compare_notebook_outputs": Metric(published_outputs, right_outputs),
    "compare_notebook_cells": Metric(published_cells, right_cells),
}
