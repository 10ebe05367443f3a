"""Explains the value of a cell: the engines' answers, and whose value was taken."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NotRequired, TypedDict

from judge.workbook.address import cell_name
from judge.workbook.cell import CellRef, CellValue, ErrorValue, json_value


@dataclass(frozen=True, slots=True)
class EngineAnswer:
    """The answer of one engine for a cell.

    Attributes:
        value: the value; None if the engine has none, or if it takes the cell for blank.
        why_not: why the engine has no value; empty if it has one.
    """

    value: CellValue = None
    why_not: str = ""


@dataclass(frozen=True, slots=True)
class Explanation:
    """How the value of a cell was determined.

    Attributes:
        cell: the cell.
        formula: its formula, or the array formula that fills it; None if no formula fills it.
        value: the value that counts; None if there is none.
        believed: the engines whose value was taken; empty if there is no value.
        why: in words, why the value was taken, or why there is none.
        answers: engine -> its answer, in a fixed order.
        notes: disagreements, volatile functions, and the like.
    """

    cell: CellRef
    formula: str | None
    value: CellValue
    believed: tuple[str, ...]
    why: str
    answers: Mapping[str, EngineAnswer] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


class EngineEntryJson(TypedDict):
    """The answer of one engine, in the JSON form of an explanation."""

    name: str
    believed: bool
    value: NotRequired[object]
    why_not: NotRequired[str]


class ExplanationJson(TypedDict):
    """The JSON form of an explanation."""

    cell: str
    formula: str | None
    value: object
    believed: list[str]
    why: str
    engines: list[EngineEntryJson]
    notes: list[str]


def address(cell: CellRef) -> str:
    """A cell in the usual notation: ``Sheet1!B7``."""
    return f"{cell.sheet}!{cell_name(cell.row, cell.column)}"


def explanation_as_json(explanation: Explanation) -> ExplanationJson:
    """Converts an explanation to plain data for JSON."""
    return {
        "cell": address(explanation.cell),
        "formula": explanation.formula,
        "value": json_value(explanation.value),
        "believed": list(explanation.believed),
        "why": explanation.why,
        "engines": [
            _engine_as_json(name, answer, believed=name in explanation.believed)
            for name, answer in explanation.answers.items()
        ],
        "notes": list(explanation.notes),
    }


def _engine_as_json(name: str, answer: EngineAnswer, *, believed: bool) -> EngineEntryJson:
    entry: EngineEntryJson = {"name": name, "believed": believed}
    if answer.why_not:
        entry["why_not"] = answer.why_not
    else:
        entry["value"] = json_value(answer.value)
    return entry


def explanation_lines(explanation: Explanation) -> list[str]:
    """Writes an explanation for people: the cell, a line for each engine, and the reason."""
    formula = "no formula" if explanation.formula is None else explanation.formula
    lines = [f"{address(explanation.cell)}\t{formula}"]
    for name, answer in explanation.answers.items():
        mark = "believed" if name in explanation.believed else ""
        lines.append(f"{name}\t{answer.why_not or shown(answer.value)}\t{mark}".rstrip())
    believed = " and ".join(explanation.believed)
    counts = shown(explanation.value) if believed or explanation.formula is None else "no value"
    by = f" ({believed})" if believed else ""
    lines.append(f"value\t{counts}{by}: {explanation.why}")
    return lines


def shown(value: CellValue) -> str:
    """Writes a value for people: strings in quotation marks, a blank cell as a word."""
    if value is None:
        return "blank"
    if isinstance(value, ErrorValue):
        return value.code
    return str(value) if isinstance(value, (dt.date, dt.time, dt.timedelta)) else repr(value)
