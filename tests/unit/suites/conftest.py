"""Suites made on the spot. Loading opens no workbook, so any bytes can stand for one."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

WriteSuite = Callable[..., Path]


def task_record(task_id: int | str = 101, **changes: Any) -> dict[str, Any]:
    """Returns a good record with changes; a change to ``...`` removes a field."""
    record: dict[str, Any] = {
        "id": task_id,
        "instruction": "Sum column A in B1.",
        "spreadsheet_path": f"spreadsheet/{task_id}",
        "instruction_type": "Cell-Level Manipulation",
        "answer_position": "B1",
    }
    record.update(changes)
    return {name: value for name, value in record.items() if value is not ...}


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The test's own cache folder, which hides the sandbox's root too.

    A test that runs programs belongs in tests/e2e.
    """
    folder = tmp_path / "cache"
    monkeypatch.setenv("JUDGE_CACHE", str(folder))
    return folder


@pytest.fixture
def write_suite(tmp_path: Path) -> WriteSuite:
    """Writes a suite folder: ``write_suite(records, files)`` with paths relative to it."""

    def write(
        records: Sequence[Any] | str | bytes | None = None,
        files: Sequence[str] | None = None,
        name: str = "suite",
    ) -> Path:
        folder = tmp_path / name
        folder.mkdir()
        if records is None:
            records = [task_record()]
        if isinstance(records, str):
            records = records.encode()
        content = records if isinstance(records, bytes) else json.dumps(records).encode()
        (folder / "dataset.json").write_bytes(content)
        if files is None:
            ids = [record["id"] for record in records if isinstance(record, dict)]
            files = [
                f"spreadsheet/{task_id}/{number}_{task_id}_{role}.xlsx"
                for task_id in ids
                for number in (1, 2)
                for role in ("input", "answer")
            ]
        for file in files:
            path = folder / file
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(f"bytes of {file}".encode())
        return folder

    return write
