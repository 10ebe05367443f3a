from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from judge.core.records.runs import RunDocument
from judge.errors import StoreError
from judge.grading.store import CASES_FILE, RUN_FILE, SCHEMA_VERSION, RunDirectory


def test_records_come_back_in_order(tmp_path: Path) -> None:
    with RunDirectory(tmp_path / "run") as store:
        for number in range(3):
            store.append(CASES_FILE, {"n": number, "text": "Zeile\nzwei — é"})
        assert [each["n"] for each in store.read_records(CASES_FILE)] == [0, 1, 2]


def test_a_torn_last_line_is_dropped_and_cut_off_before_the_next_append(tmp_path: Path) -> None:
    path = tmp_path / CASES_FILE
    path.write_bytes(b'{"n": 1}\n{"n": 2, "tor')
    with RunDirectory(tmp_path) as store:
        assert list(store.read_records(CASES_FILE)) == [{"n": 1}]
        store.append(CASES_FILE, {"n": 3})
        assert list(store.read_records(CASES_FILE)) == [{"n": 1}, {"n": 3}]
    assert path.read_bytes() == b'{"n": 1}\n{"n":3}\n'


def test_a_broken_line_in_the_middle_is_named(tmp_path: Path) -> None:
    (tmp_path / CASES_FILE).write_text('{"n": 1}\n{"n": \n{"n": 3}\n')
    with pytest.raises(StoreError, match=r"cases\.jsonl, line 2: not JSON"):
        list(RunDirectory(tmp_path).read_records(CASES_FILE))


def test_another_schema_version_is_refused(tmp_path: Path) -> None:
    (tmp_path / RUN_FILE).write_text('{"schema_version": 99}')
    with pytest.raises(StoreError, match="schema_version is 99"):
        RunDirectory(tmp_path)


def test_a_run_json_that_is_not_json_is_refused(tmp_path: Path) -> None:
    (tmp_path / RUN_FILE).write_text("{")
    with pytest.raises(StoreError, match=r"run\.json: not JSON"):
        RunDirectory(tmp_path)


def test_a_file_is_not_a_results_directory(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.touch()
    with pytest.raises(StoreError, match="is a file"):
        RunDirectory(path)


def test_run_json_carries_the_schema_version(tmp_path: Path) -> None:
    store = RunDirectory(tmp_path / "new")
    assert store.read_run() is None
    store.write_run({"model": "m"})
    assert RunDirectory(tmp_path / "new").read_run() == {
        "schema_version": SCHEMA_VERSION,
        "model": "m",
    }
    assert [path.name for path in (tmp_path / "new").iterdir()] == [RUN_FILE]


def test_workbooks_are_kept_once_under_their_hash(tmp_path: Path) -> None:
    store = RunDirectory(tmp_path)
    digest = store.put_workbook(b"content")
    assert store.put_workbook(b"content") == digest
    assert store.get_workbook(digest) == b"content"
    kept = [path for path in (tmp_path / "workbooks").rglob("*") if path.is_file()]
    assert kept == [tmp_path / "workbooks" / digest[:2] / f"{digest}.xlsx"]


def test_workbooks_of_the_old_layout_are_read_and_not_kept_twice(tmp_path: Path) -> None:
    store = RunDirectory(tmp_path)
    digest = store.put_workbook(b"content")
    old = tmp_path / "workbooks" / f"{digest}.xlsx"
    store.workbook_path(digest).rename(old)
    assert store.get_workbook(digest) == b"content"
    assert store.workbook_path(digest) == old
    assert store.put_workbook(b"content") == digest
    assert [path for path in (tmp_path / "workbooks").rglob("*") if path.is_file()] == [old]


def test_a_damaged_workbook_counts_as_missing(tmp_path: Path) -> None:
    store = RunDirectory(tmp_path)
    digest = store.put_workbook(b"content")
    store.workbook_path(digest).write_bytes(b"cont")
    assert store.get_workbook(digest) is None


def test_two_writers_do_not_share_a_directory(tmp_path: Path) -> None:
    with RunDirectory(tmp_path) as first:
        first.lock()
        with pytest.raises(StoreError, match="another judge is writing"):
            RunDirectory(tmp_path).lock()
    RunDirectory(tmp_path).lock()


class _FullDisk:
    """``os.write`` on a disk with space for ``room`` more bytes."""

    def __init__(self, room: int) -> None:
        self._write, self._room = os.write, room

    def __call__(self, descriptor: int, data: memoryview) -> int:
        if not self._room:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        taken = bytes(data[: self._room])
        self._room -= len(taken)
        return self._write(descriptor, taken)


def test_a_full_disk_is_said_and_leaves_whole_records_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with RunDirectory(tmp_path) as store:
        store.append(CASES_FILE, {"n": 1})
        with monkeypatch.context() as patched:
            patched.setattr(os, "write", _FullDisk(room=5))
            with pytest.raises(StoreError, match="the disk is full") as caught:
                store.append(CASES_FILE, {"n": 2})
        assert caught.value.hint is not None
        assert "same command" in caught.value.hint
        assert (tmp_path / CASES_FILE).read_bytes() == b'{"n":1}\n'
        store.append(CASES_FILE, {"n": 2})
    assert (tmp_path / CASES_FILE).read_bytes() == b'{"n":1}\n{"n":2}\n'


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "parent").touch()
    with pytest.raises(StoreError, match=r"run\.json: cannot be read: Not a directory"):
        RunDirectory(tmp_path / "parent" / "run").write_run({})


def test_half_a_surrogate_pair_is_kept(tmp_path: Path) -> None:
    record: RunDocument = {"model": "x = '\ud800'"}
    with RunDirectory(tmp_path) as store:
        store.append(CASES_FILE, record)
        store.write_run(record)
        assert list(store.read_records(CASES_FILE)) == [record]
        assert (store.read_run() or {})["model"] == record["model"]
