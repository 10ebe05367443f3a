"""Results directories as snapshots: what depends on the machine is masked, the rest is kept."""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path
from typing import Any

MASK = "*"
MEASURED = {"cpu_s", "wall_s", "peak_memory_bytes", "output_bytes", "output_sha256"}
OF_THE_INTERPRETER = {"stderr", "stderr_bytes"}
OF_THE_MACHINE = {"run_key", "comparison_key", "created", "solutions", "image", "python", "runtime"}
MASKED = MEASURED | OF_THE_INTERPRETER | OF_THE_MACHINE
OF_ENGINES = {"engines", "computed_cells", "computed_values"}
"""On a busy machine a different engine may be the first to answer."""
TIME_LIMIT = re.compile(r"(?:processor|wall) time limit after [\d.]+ s")
"""Which of the two limits a program reaches first depends on how busy the machine is."""


def masked(value: Any, name: str = "") -> Any:
    """Returns a document without what differs between two machines or two runs."""
    if name in MASKED and value is not None:
        return MASK
    if name == "timings_s":
        return dict.fromkeys(value, MASK)
    if name in {"host", "packages"} or (name == "source" and str(value).startswith("/")):
        return MASK
    if name == "engines" and isinstance(value, list):
        return [each if each.startswith("rules ") else each.split()[0] for each in value]
    if isinstance(value, dict):
        return _run_without_its_limit({key: masked(each, key) for key, each in value.items()})
    if isinstance(value, list):
        return [masked(each) for each in value]
    return TIME_LIMIT.sub("time limit", value) if isinstance(value, str) else value


def _run_without_its_limit(record: dict[str, Any]) -> dict[str, Any]:
    """Returns the record of a run; if a time limit was exceeded, the record says only that."""
    if record.get("status") in {"cpu_limit", "wall_limit"}:
        return {**dict.fromkeys(record, MASK), "status": "time limit"}
    return record


def snapshot_of_run(run: Path) -> str:
    """Returns run.json, report.json and the records of all cases, one line each."""
    documents = [_read(run / "run.json"), _read(run / "report.json")]
    return "".join(f"{_line(each)}\n" for each in [*documents, *_cases(run)])


def digests_of_run(run: Path) -> str:
    """The same for a run whose texts are not ours: verdicts and the first digits of hashes."""
    lines = [f"report {_digest(_read(run / 'report.json'))}"]
    for record in _cases(run):
        comparison = record.get("comparison", {})
        record["comparison"] = {
            key: None if key in OF_ENGINES else value for key, value in comparison.items()
        }
        lines.append(f"{record['task']} {record['case']} {record['verdict']} {_digest(record)}")
    return "".join(f"{line}\n" for line in lines)


def _read(path: Path) -> dict[str, Any]:
    document: dict[str, Any] = masked(json.loads(path.read_text(encoding="utf-8")))
    return document


def _cases(run: Path) -> list[dict[str, Any]]:
    lines = (run / "cases.jsonl").read_text(encoding="utf-8").splitlines()
    records = [masked(json.loads(line)) for line in lines]
    return sorted(records, key=lambda record: (record["task"], record["sample"], record["case"]))


def _line(document: dict[str, Any]) -> str:
    return json.dumps(document, ensure_ascii=False)


def _digest(document: dict[str, Any]) -> str:
    return hashlib.sha256(_line(document).encode()).hexdigest()[:12]
