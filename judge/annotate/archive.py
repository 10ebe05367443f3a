"""What was saved in a suite's folder: the records, and every workbook that they name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any

from judge.annotate.claims import check_record
from judge.annotate.drafts import digest
from judge.annotate.durable_files import read_records, write_file
from judge.errors import StoreError
from judge.files.documents import read_regular
from judge.workbook.budget import DEFAULT_LIMITS

FOLDER = "annotations"


def _nothing() -> Mapping[str, Any]:
    return MappingProxyType({})


@dataclass(frozen=True, slots=True)
class SavedCase:
    """A case as it was saved.

    Attributes:
        task_id: the task.
        number: number of the case.
        input_path, gold_path: its workbooks.
        record: what the records hold about it.
    """

    task_id: str
    number: int
    input_path: Path
    gold_path: Path
    record: Mapping[str, Any] = field(default_factory=_nothing)


class Archive:
    """The records and the versions of workbooks of a suite's folder.

    Args:
        root: the suite's folder.
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        self._records = root / FOLDER / "records.jsonl"

    def records(self, task_id: str | None = None) -> list[dict[str, Any]]:
        """What was saved and not taken back, in order, of one task or of all."""
        history = self.history(task_id)
        gone = {each["takes_back"] for each in history if each["state"] == "removing"}
        return [each for each in history if each["state"] == "saving" and each["id"] not in gone]

    def history(self, task_id: str | None = None) -> list[dict[str, Any]]:
        """What was saved and what was taken back, in order, of one task or of all."""
        return [
            record
            for record in self._read()
            if record.get("state") in {"saving", "removing"}
            and task_id in {None, record.get("task")}
        ]

    def _read(self) -> list[dict[str, Any]]:
        records = read_records(self._records)
        for record in records:
            check_record(self._records, record)
        return records

    def last_record(self, task_id: str, number: int) -> dict[str, Any] | None:
        """The record of the last time that a case was saved here."""
        found = [record for record in self.records(task_id) if record["case"] == number]
        return found[-1] if found else None

    def version(self, sha256: str) -> bytes:
        """A workbook that was saved or built upon, by its hash.

        Raises:
            StoreError: it is not there, or damaged.
        """
        path = self._version_path(sha256)
        data = read_workbook(path)
        if digest(data) != sha256:
            raise StoreError(f"{path}: the file is damaged")
        return data

    def keep(self, data: bytes) -> str:
        """Keeps a workbook, and gives its hash."""
        sha256 = digest(data)
        path = self._version_path(sha256)
        if not path.exists():
            write_file(path, data)
        return sha256

    def _version_path(self, sha256: str) -> Path:
        return self.root / FOLDER / "versions" / f"{sha256}.xlsx"


def read_workbook(path: Path) -> bytes:
    """The workbook at a path; only a regular file of bounded size.

    Raises:
        StoreError: it is not there, or cannot be read.
    """
    data = read_regular(path, StoreError, most_bytes=DEFAULT_LIMITS.file_bytes)
    if data is None:
        raise StoreError(f"{path}: No such file or directory")
    return data
