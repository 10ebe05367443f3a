from __future__ import annotations

from typing import Any

import pytest

from judge.core.records import cases, reports, runs
from judge.files.documents import MalformedError
from judge.files.forms import checked, json_schema
from judge.grading.reference import ReferenceTime, ReferenceTimes
from tests.unit.files.declared import Case, Run


def case(**changes: Any) -> dict[str, Any]:
    return {"task": 7, "sample": 0, "runs": [{"status": None, "output": "0" * 64}]} | changes


def test_what_is_declared_comes_out_as_it_is() -> None:
    record = case(more="kept", seconds={"run": 0.5, "comparison": 1}, free=[None, {}])
    assert checked(record, Case) is record


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"task": 1.5}, "field 'task' must be text or an integer, not a number"),
        ({"task": True}, "field 'task' must be text or an integer, not true or false"),
        ({"sample": -1}, "field 'sample' must be an integer of at least 0, not a number"),
        ({"sample": None}, "field 'sample' must be an integer of at least 0, not null"),
        ({"sample": 2**70}, "field 'sample' must be an integer of at least 0, not a number"),
        (
            {"seconds": {"run": -0.5}},
            "field 'seconds.run' must be a number of at least 0, not a num",
        ),
        ({"seconds": []}, "field 'seconds' must be an object, not an array"),
        ({"runs": {}}, "field 'runs' must be an array, not an object"),
        ({"runs": [{}, 3]}, "field 'runs[1]' must be an object, not a number"),
        ({"runs": [{"status": 3}]}, "field 'runs[0].status' must be text, not a number"),
        ({"runs": [{"output": "ab"}]}, "field 'runs[0].output' must be a SHA-256 in hexadecimal"),
        ({"runs": [{"output": None}]}, "field 'runs[0].output' must be a SHA-256 in hexadecimal"),
        ({"runs": [{"ended": 0}]}, "field 'runs[0].ended' must be true or false, not a number"),
        ({"codes": [None, 1]}, "field 'codes[1]' must be text, not a number"),
    ],
)
def test_the_first_field_of_another_type_is_named(changes: dict[str, Any], said: str) -> None:
    with pytest.raises(MalformedError) as caught:
        checked(case(**changes), Case)
    assert str(caught.value).startswith(said)


def test_a_required_field_has_to_be_there() -> None:
    with pytest.raises(MalformedError, match="field 'task' is missing"):
        checked({"sample": 0}, Case)
    assert checked({}, Run) == {}
    with pytest.raises(MalformedError, match="expected an object, not an array"):
        checked([], Run)


TIME = {"digest": "0", "cpu_s": 1, "wall_s": 2.5}


def test_a_dataclass_is_a_declaration_as_well() -> None:
    document = {"host": "here", "image": "sha256:0", "tasks": {"7": TIME}, "more": 1}
    times = checked(document, ReferenceTimes)
    assert times == ReferenceTimes("here", "sha256:0", {"7": ReferenceTime("0", 1, 2.5)})


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        (
            {"tasks": {"7": {**TIME, "cpu_s": True}}},
            "field 'tasks.7.cpu_s' must be a number of at least 0",
        ),
        ({"tasks": {"7": {**TIME, "cpu_s": float("nan")}}}, "field 'tasks.7.cpu_s' must be a num"),
        ({"tasks": {"7": {**TIME, "wall_s": 2**63}}}, "field 'tasks.7.wall_s' must be a number"),
        ({"tasks": {"7": {"digest": "0", "cpu_s": 1}}}, "field 'tasks.7.wall_s' is missing"),
        ({"tasks": []}, "field 'tasks' must be an object, not an array"),
        ({"host": None}, "field 'host' must be text, not null"),
    ],
)
def test_a_document_that_is_not_of_the_dataclass_is_refused(
    changes: dict[str, Any], said: str
) -> None:
    document = {"host": "here", "image": "sha256:0", "tasks": {}} | changes
    with pytest.raises(MalformedError) as caught:
        checked(document, ReferenceTimes)
    assert str(caught.value).startswith(said)


def test_the_schema_says_what_is_declared() -> None:
    assert json_schema(Case) == {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$ref": "#/$defs/Case",
        "$defs": {
            "Case": {
                "type": "object",
                "description": "A document with required fields, and others.",
                "properties": {
                    "task": {"type": ["string", "integer"]},
                    "sample": {"type": "integer", "minimum": 0},
                    "runs": {"type": "array", "items": {"$ref": "#/$defs/Run"}},
                    "seconds": {
                        "type": "object",
                        "additionalProperties": {"type": "number", "minimum": 0},
                    },
                    "codes": {"type": "array", "items": {"type": ["string", "null"]}},
                    "free": {},
                },
                "required": ["task", "sample"],
            },
            "Run": {
                "type": "object",
                "description": "A document without a required field.",
                "properties": {
                    "status": {"type": ["string", "null"]},
                    "output": {"type": "string", "pattern": "^[0-9a-f]{64}$"},
                    "ended": {"type": "boolean"},
                },
                "required": [],
            },
        },
    }


@pytest.mark.parametrize(
    ("declared", "field"),
    [
        (cases.CaseRecord, "task"),
        (runs.OverrideRecord, "why"),
        (reports.ReportOnRecord, "tasks"),
        (runs.SubmissionRecord, "id"),
    ],
)
def test_what_records_cannot_lack(declared: Any, field: str) -> None:
    whole: dict[str, Any] = {
        "task": "7",
        "id": "7",
        "sample": 0,
        "case": 1,
        "verdict": "WA",
        "by": "Ann",
        "at": "today",
        "why": "rounding",
        "tasks": [],
    }
    assert checked(whole, declared) == whole
    del whole[field]
    with pytest.raises(MalformedError, match=f"field '{field}' is missing"):
        checked(whole, declared)


def test_nothing_of_a_run_is_required() -> None:
    assert checked({}, runs.RunDocument) == {}
    everything: dict[str, Any] = dict.fromkeys(runs.RunDocument.__annotations__)
    del everything["schema_version"]
    assert checked(everything, runs.RunDocument) == everything
    for name in everything:
        with pytest.raises(MalformedError, match=f"field '{name}' must be "):
            checked({name: 1j}, runs.RunDocument)


def test_records_of_earlier_versions_lack_fields() -> None:
    record = {
        "task": "7",
        "sample": 0,
        "case": 1,
        "verdict": "WA",
        "run": {"status": "ok", "output_sha256": "0" * 64, "peak_memory_bytes": None},
        "comparison": {
            "equal": False,
            "official_equal": None,
            "cells": 2,
            "differing_cells": 1,
            "difference_counts": {"wrong_value": 1},
            "differences": [
                {"kind": "wrong_value", "sheet": "S", "cell": "A1", "expected": 1, "actual": 2}
            ],
        },
    }
    assert checked(record, cases.CaseRecord)["comparison"]["cells"] == 2
