"""The published schemas match the types that write, read and check a results directory."""

from __future__ import annotations

import json
import runpy
from pathlib import Path
from typing import Any

import jsonschema  # type: ignore[import-untyped]  # it comes without types
import pytest

from judge.core.records.cases import CaseRecord
from judge.core.records.reports import ReportDocument
from judge.core.records.runs import RunDocument
from judge.files.forms import declared_only, json_schema

ROOT = Path(__file__).resolve().parent.parent.parent
SNAPSHOTS = sorted((ROOT / "tests/snapshots").glob("sample*.jsonl"))


def test_the_published_schemas_are_those_of_the_code() -> None:
    script = runpy.run_path(str(ROOT / "scripts/record-schemas"))
    assert script["outdated"]() == [], "run scripts/record-schemas"


def test_the_documents_link_each_schema() -> None:
    for path in (ROOT / "docs/schemas").iterdir():
        document = "serve.md" if path.name.startswith("serve.") else "results.md"
        text = (ROOT / "docs" / document).read_text(encoding="utf-8")
        assert f"(schemas/{path.name})" in text


def declared_for(record: dict[str, Any]) -> type[Any]:
    if "verdict" in record:
        return CaseRecord
    return ReportDocument if "overall" in record else RunDocument


def without_placeholders(value: Any) -> Any:
    """Removes from a snapshot what differs between machines."""
    if isinstance(value, dict):
        return {name: without_placeholders(item) for name, item in value.items() if item != "*"}
    return [without_placeholders(item) for item in value] if isinstance(value, list) else value


@pytest.mark.parametrize("path", SNAPSHOTS, ids=lambda path: path.stem)
def test_everything_that_the_samples_write_is_declared(path: Path) -> None:
    lines = path.read_text(encoding="utf-8").splitlines()
    records = [without_placeholders(json.loads(line)) for line in lines]
    kinds = {declared_for(record) for record in records}
    assert kinds == {CaseRecord, ReportDocument, RunDocument}
    for record in records:
        assert declared_only(record, declared_for(record)) == record


CASE = {"task": 7, "sample": 0, "case": 1, "verdict": "WA", "timings_s": {"run": 0.5}}


@pytest.mark.parametrize(
    ("changes", "fits"),
    [
        ({}, True),
        ({"task": "7", "run": {"exit_code": None}, "more": []}, True),
        (
            {"comparison": {"differences": [], "shares": {"modification": 1, "regression": None}}},
            True,
        ),
        ({"sample": True}, False),
        ({"sample": -1}, False),
        ({"verdict": None}, False),
        ({"run": {"output_sha256": "ab"}}, False),
        ({"timings_s": {"run": "0.5"}}, False),
        ({"comparison": {"differences": [{"kind": "value"}]}}, False),
    ],
)
def test_a_validator_of_json_schema_agrees(changes: dict[str, Any], fits: bool) -> None:
    validator = jsonschema.Draft202012Validator(json_schema(CaseRecord))
    assert validator.is_valid(CASE | changes) is fits
