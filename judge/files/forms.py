"""Which fields of results have which type, where somebody else may have written them.

A form is a tree of plain values. ``"text"``, ``"number"``, ``"integer"``, ``"amount"`` and
``"count"`` (which are not negative), ``"flag"``, ``"sha256"``, ``"id"`` (text or an integer),
``"text?"`` (or null) and ``"any"`` name types, ``[form]`` is an array, ``{"field": form}`` an
object, ``{"*": form}`` an object with any fields. A field that no form names may hold anything. One
whose name ends in ``!`` has to be there, one whose name ends in ``?`` may be null.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from judge.files.documents import MalformedError, json_type

Form = str | list[Any] | dict[str, Any]

_SHA256 = re.compile("[0-9a-f]{64}")

_DIFFERENCE: Form = {
    "kind!": "text",
    "sheet!": "text",
    "cell!": "text",
    "expected!": "any",
    "actual!": "any",
    "expected_formula": "text",
    "actual_formula": "text",
    "detail": "text",
}

CASE_RECORD: Form = {
    "task!": "id",
    "sample!": "count",
    "case!": "count",
    "verdict!": "text",
    "cause": "text",
    "run_key": "text",
    "comparison_key": "text",
    "timings_s": {"*": "amount"},
    "run": {
        "status?": "text",
        "output_status?": "text",
        "exit_code?": "integer",
        "signal?": "integer",
        "cpu_s?": "amount",
        "wall_s?": "amount",
        "peak_memory_bytes?": "count",
        "stdout": "text",
        "stderr": "text",
        "stdout_bytes": "count",
        "stderr_bytes": "count",
        "output_bytes": "count",
        "output_sha256?": "sha256",
        "survivors": "count",
        "detail?": "text",
    },
    "comparison": {
        "equal": "flag",
        "profile": "text",
        "official_equal?": "flag",
        "ranges": ["text"],
        "cells": "count",
        "differing_cells": "count",
        "touched_cells?": "count",
        "difference_counts": {"*": "count"},
        "differences": [_DIFFERENCE],
        "notes": ["text"],
        "engines": ["text"],
        "computed_cells": {"*": "count"},
        "computed_values": {"*": {"*": {"*": "any"}}},
    },
}
"""A record of cases.jsonl."""

RUN: Form = {
    "suite?": {
        "name!": "text",
        "source?": "text",
        "digest?": "text",
        "format?": "text",
        "corrections?": [{"*": "any"}],
    },
    "profile?": "text",
    "style?": ["text"],
    "checker?": {"*": "any"},
    "recalc?": {"mode?": "text", "engine?": "text", "engines?": ["text"], "lenient_names?": "flag"},
    "limits?": {"*": "number"},
    "sandbox?": {
        "backend!": "text",
        "image?": "text",
        "python?": "text",
        "runtime?": "text",
        "packages?": {"*": "text"},
    },
    "model?": "text",
    "setting?": "text",
    "solutions?": "text",
    "outputs?": "text",
    "judge_version?": "text",
    "created?": "text",
    "rejudged?": [{"*": "any"}],
}
"""The document of run.json."""

REPORT: Form = {
    "overall": {"tasks_without_submission": "count"},
    "tasks!": [
        {
            "id!": "id",
            "sample!": "count",
            "instruction_type!": "text",
            "test_case_results!": ["text?"],
        }
    ],
}
"""What is read of report.json."""

SUBMISSION: Form = {
    "id!": "id",
    "sample?": "count",
    "instruction_type?": "text",
    "calls?": ["any"],
}
"""What is read of a record of submissions.jsonl where a run is reported on."""


def check_form(value: object, form: Form, place: str = "") -> None:
    """Checks a value of JSON against a form.

    Raises:
        MalformedError: names the first field that has another type.
    """
    if isinstance(form, str):
        if not _fits(value, form):
            raise MalformedError(_said(place, _NAMES.get(form, form), value))
    elif isinstance(form, list):
        if not isinstance(value, list):
            raise MalformedError(_said(place, "an array", value))
        for number, each in enumerate(value):
            check_form(each, form[0], f"{place}[{number}]")
    elif not isinstance(value, dict):
        raise MalformedError(_said(place, "an object", value))
    else:
        _check_fields(value, form, place)


def _check_fields(value: Mapping[str, object], form: Mapping[str, Any], place: str) -> None:
    for name, inner in form.items():
        field = name.rstrip("!?")
        if name == "*":
            for each in value:
                check_form(value[each], inner, _inside(place, each))
        elif field not in value:
            if name.endswith("!"):
                raise MalformedError(f"field {_inside(place, field)!r} is missing")
        elif value[field] is not None or not name.endswith("?"):
            check_form(value[field], inner, _inside(place, field))


def _inside(place: str, field: str) -> str:
    return f"{place}.{field}" if place else field


def _said(place: str, expected: str, value: object) -> str:
    where = f"field {place!r} must be" if place else "expected"
    return f"{where} {expected}, not {json_type(value)}"


def _fits(value: object, form: str) -> bool:
    match form:
        case "text" | "text?":
            return isinstance(value, str) or (value is None and form == "text?")
        case "flag":
            return isinstance(value, bool)
        case "number":
            return _is_number(value)
        case "integer":
            return isinstance(value, int) and _is_number(value)
        case "amount":
            return isinstance(value, int | float) and _is_number(value) and value >= 0
        case "count":
            return isinstance(value, int) and _is_number(value) and value >= 0
        case "id":
            return isinstance(value, str) or (isinstance(value, int) and _is_number(value))
        case "sha256":
            return isinstance(value, str) and _SHA256.fullmatch(value) is not None
        case _:
            return True


def _is_number(value: object) -> bool:
    # What no measurement comes near would overflow wherever something is added up.
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 2**63


_NAMES = {
    "text?": "text",
    "number": "a number",
    "integer": "an integer",
    "amount": "a number from 0 on",
    "count": "an integer from 0 on",
    "flag": "true or false",
    "id": "text or an integer",
    "sha256": "a SHA-256 in hexadecimal digits",
}
