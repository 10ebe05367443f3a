"""Outputs of notebooks, as Jupyter stores them (nbformat 4)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from judge.compare.files.asked import (
    MISSING,
    Asked,
    Metric,
    UnreadableAnswerError,
    Wrong,
    same_values,
)
from judge.compare.rules.raised import PublishedError, Side
from judge.files.documents import MalformedError, parse_json

_FORMAT = 4


def _cells(data: bytes) -> list[dict[str, Any]]:
    """The cells, with text in one piece as ``nbformat`` reads it.

    Raises:
        MalformedError: it is not a notebook of format 4.
    """
    document = parse_json(data)
    if not isinstance(document, dict) or document.get("nbformat") != _FORMAT:
        raise MalformedError(f"not a notebook of format {_FORMAT}")
    cells = document.get("cells")
    if not isinstance(cells, list) or not all(isinstance(cell, dict) for cell in cells):
        raise MalformedError("the notebook has no cells")
    return [_joined_cell(cell) for cell in cells]


def _joined_cell(cell: dict[str, Any]) -> dict[str, Any]:
    found = {**cell, "source": _joined(cell.get("source", ""))}
    outputs = cell.get("outputs")
    if isinstance(outputs, list):
        found["outputs"] = [
            _joined_output(output) for output in outputs if isinstance(output, dict)
        ]
    return found


def _joined_output(output: dict[str, Any]) -> dict[str, Any]:
    found = {name: _joined(value) if name == "text" else value for name, value in output.items()}
    data = output.get("data")
    if isinstance(data, dict):
        found["data"] = {
            kind: value if _is_json(kind) else _joined(value) for kind, value in data.items()
        }
    return found


def _is_json(kind: str) -> bool:
    return kind == "application/json" or kind.endswith("+json")


def _joined(text: Any) -> Any:
    if isinstance(text, list) and all(isinstance(each, str) for each in text):
        return "".join(text)
    return text


def _published(asked: Asked, field: str) -> float:
    if asked.answer is None:
        return 0.0
    try:
        own, gold = _cells(asked.answer), _cells(asked.bytes_of_gold)
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


def published_outputs(asked: Asked) -> float:
    """Cells of the same types, and outputs of code with everything that is stored of them."""
    return _published(asked, "outputs")


def published_cells(asked: Asked) -> float:
    """Cells of the same types with the same text."""
    return _published(asked, "source")


def _both(asked: Asked) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    try:
        gold = _cells(asked.bytes_of_gold)
    except MalformedError as error:
        raise PublishedError("NotebookError", str(error), Side.GOLD) from error
    try:
        return gold, _cells(asked.answer or b"")
    except MalformedError as error:
        raise UnreadableAnswerError(str(error)) from error


def shown(cell: dict[str, Any]) -> list[object]:
    """What the outputs of a cell show: not how often it was run, nor in how many pieces."""
    found: list[Any] = []
    pieces: list[str] = []  # of the stream that is last in the list
    for each in cell.get("outputs") or ():
        kind = each.get("output_type")
        if kind == "stream":
            stream = ["stream", each.get("name")]
            if not (found and found[-1][:2] == stream):
                pieces = []
                found.append([*stream, pieces])
            pieces.append(str(each.get("text", "")))
        elif kind == "error":
            found.append(["error", each.get("ename"), each.get("evalue")])
        else:
            found.append(["data", each.get("data")])
    return [[*each[:2], _without_ends(each[2])] if each[0] == "stream" else each for each in found]


def _without_ends(pieces: Sequence[str]) -> str:
    """The pieces of a stream in one, without blanks at the ends of its lines."""
    return "\n".join(line.rstrip() for line in "".join(pieces).rstrip().split("\n"))


def right_outputs(asked: Asked) -> Wrong | None:
    """What the code cells show, one after the other."""
    if asked.answer is None:
        return MISSING
    gold, own = ([shown(cell) for cell in cells if cell.get("cell_type") == "code"]
                 for cells in _both(asked))  # fmt: skip
    return _first(gold, own, "code cell")


def right_cells(asked: Asked) -> Wrong | None:
    """Types and text of the cells, blanks at the end aside."""
    if asked.answer is None:
        return MISSING
    gold, own = ([[cell.get("cell_type"), str(cell["source"]).rstrip()] for cell in cells]
                 for cells in _both(asked))  # fmt: skip
    return _first(gold, own, "cell")


def _first(gold: list[list[Any]], own: list[list[Any]], what: str) -> Wrong | None:
    if len(gold) != len(own):
        return Wrong(f"{len(gold)} {what}s", f"{len(own)} {what}s")
    for number, (one, two) in enumerate(zip(gold, own, strict=True), start=1):
        if not same_values(one, two):
            return Wrong(str(one)[:500], str(two)[:500], f"{what} {number}")
    return None


METRICS = {
    "compare_notebook_outputs": Metric(published_outputs, right_outputs),
    "compare_notebook_cells": Metric(published_cells, right_cells),
}
