"""Memory according to the processes' files in /proc."""

from __future__ import annotations

import os

import pytest

from judge.sandbox.warden import meters


def test_shared_pages_are_divided_where_that_can_be_seen() -> None:
    resident = int(meters._stat(os.getpid())[21]) * meters.PAGE_BYTES
    assert 0 < meters._proportional_bytes(os.getpid()) <= 2 * resident


def test_where_it_cannot_be_seen_all_resident_pages_count(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    read = meters.read

    def refuse(path: str) -> bytes:
        if path.endswith("smaps_rollup"):
            raise PermissionError(13, "Permission denied")
        return read(path)

    monkeypatch.setattr(meters, "read", refuse)
    resident = int(meters._stat(os.getpid())[21]) * meters.PAGE_BYTES
    assert meters._proportional_bytes(os.getpid()) >= resident // 2 > 0


def test_a_process_that_is_gone_holds_nothing() -> None:
    assert meters._proportional_bytes(2**22 + 1) == 0
