"""The process for the next action, when none can be started yet."""

from __future__ import annotations

import errno
import subprocess
from collections.abc import Callable
from typing import Any, cast

import pytest

from judge.desktop.driver import acting
from judge.desktop.driver.acting import ActorPool
from judge.desktop.driver.processes import BrokenError, Processes

MODULES = dict.fromkeys(acting._MODULES, "")


class _Processes:
    """Processes of a desktop, to which an action has added some."""

    def __init__(self) -> None:
        self.environment: dict[str, str] = {}
        self.swept = 0

    def end_others(self) -> int:
        self.swept += 1
        return 1


def pool_where(
    monkeypatch: pytest.MonkeyPatch, start: Callable[[], subprocess.Popen[bytes]]
) -> tuple[ActorPool, _Processes]:
    processes = _Processes()
    monkeypatch.setattr(acting, "_AGAIN_S", 0)
    monkeypatch.setattr("judge.desktop.driver.acting.subprocess.Popen", lambda *_, **__: start())
    return ActorPool(cast(Processes, processes), MODULES, frozenset()), processes


def test_leftovers_of_an_action_are_ended_until_the_next_process_can_start(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    usual: Any = subprocess.Popen
    refusals = [BlockingIOError(errno.EAGAIN, "no more processes")] * 3

    def start() -> subprocess.Popen[bytes]:
        if refusals:
            raise refusals.pop()
        pipe = subprocess.PIPE
        process: subprocess.Popen[bytes] = usual(["cat"], stdin=pipe, stdout=pipe, stderr=pipe)
        return process

    pool, processes = pool_where(monkeypatch, start)
    pool.prepare()
    pool.close()
    assert processes.swept == 3
    assert not refusals


@pytest.mark.parametrize(("number", "ready_s"), [(errno.EAGAIN, -1), (errno.ENOENT, 30)])
def test_a_process_that_cannot_be_started_is_the_desktops_fault(
    monkeypatch: pytest.MonkeyPatch, number: int, ready_s: float
) -> None:
    def start() -> subprocess.Popen[bytes]:
        raise OSError(number, "not today")  # of EAGAIN it makes a BlockingIOError

    pool, processes = pool_where(monkeypatch, start)
    monkeypatch.setattr(acting, "_READY_S", ready_s)
    with pytest.raises(BrokenError, match=r"no process for an action can be started: .*not today"):
        pool.prepare()
    assert processes.swept == 0
