"""A lock has one holder at a time, and does not outlive the holder's process."""

from __future__ import annotations

import os
import signal
import threading
from pathlib import Path

import pytest

from judge.files.writing import HeldError, is_held, take_lock


def test_a_lock_is_held_once(tmp_path: Path) -> None:
    path = tmp_path / ".lock"
    assert is_held(path) is False
    with take_lock(path) as lock:
        assert is_held(path) is True
        with pytest.raises(HeldError):
            take_lock(path)
        lock.close()
        lock.close()
        assert is_held(path) is False
        take_lock(path).close()
    assert path.exists()


def test_whoever_waits_gets_it(tmp_path: Path) -> None:
    path, order = tmp_path / ".lock", []

    def wait() -> None:
        with take_lock(path, wait=True):
            order.append("second")

    with take_lock(path):
        waiting = threading.Thread(target=wait)
        waiting.start()
        order.append("first")
    waiting.join()
    assert order == ["first", "second"]


def test_a_lock_goes_with_its_process(tmp_path: Path) -> None:
    path = tmp_path / ".lock"
    ready, say = os.pipe()
    child = os.fork()
    if not child:
        try:
            take_lock(path)
            os.write(say, b".")
            signal.pause()
        finally:
            os._exit(1)
    os.read(ready, 1)
    with pytest.raises(HeldError):
        take_lock(path)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    take_lock(path).close()
    os.close(ready)
    os.close(say)


def test_no_link_is_followed(tmp_path: Path) -> None:
    path = tmp_path / ".lock"
    path.symlink_to(tmp_path / "made")
    with pytest.raises(OSError, match="a link, not a regular file"):
        take_lock(path)
    assert not (tmp_path / "made").exists()
