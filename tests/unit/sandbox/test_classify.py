"""The table from facts to statuses."""

from __future__ import annotations

import signal

import pytest

from judge.core.limits import MIB, Limits
from judge.sandbox.contract import RunStatus
from judge.sandbox.link import RunFacts, classify

LIMITS = Limits(cpu_s=2, wall_s=5, memory_bytes=256 * MIB)

TABLE = [
    (RunFacts(exit_code=0), RunStatus.OK, ""),
    (RunFacts(exit_code=0, survivors=3), RunStatus.OK, ""),
    (RunFacts(exit_code=1), RunStatus.EXITED, "exit code 1"),
    (RunFacts(exit_code=137), RunStatus.EXITED, "exit code 137"),
    (RunFacts(exit_code=1, compiled=False), RunStatus.COMPILE_ERROR, "does not compile"),
    (RunFacts(signal=signal.SIGSEGV), RunStatus.SIGNALED, "SIGSEGV"),
    (RunFacts(signal=signal.SIGKILL), RunStatus.SIGNALED, "SIGKILL"),
    (RunFacts(signal=signal.SIGXCPU, cpu_s=0.1), RunStatus.SIGNALED, "SIGXCPU"),
    (RunFacts(signal=62), RunStatus.SIGNALED, "signal 62"),
    # kills of the warden
    (RunFacts(signal=9, killed_for="cpu", cpu_s=2.1), RunStatus.CPU_LIMIT, "2 s of processor"),
    (
        RunFacts(signal=9, killed_for="wall", wall_s=5),
        RunStatus.WALL_LIMIT,
        "5 s of wall-clock time",
    ),
    (RunFacts(signal=9, killed_for="memory"), RunStatus.MEMORY_LIMIT, "256 MiB"),
    # kills of the kernel
    (RunFacts(signal=9, memory_kills=1), RunStatus.MEMORY_LIMIT, "killed 1 process over"),
    (RunFacts(exit_code=0, memory_kills=2), RunStatus.MEMORY_LIMIT, "killed 2 processes over"),
    (RunFacts(exit_code=1, memory_kills=1), RunStatus.MEMORY_LIMIT, "killed 1 process"),
    # a limit passed between two samples counts as well
    (RunFacts(exit_code=0, cpu_s=2.01), RunStatus.CPU_LIMIT, "2 s"),
    (RunFacts(exit_code=0, cpu_s=2.0), RunStatus.OK, ""),
    # the disk
    (RunFacts(exit_code=1, disk_full=True), RunStatus.DISK_LIMIT, "full"),
    (RunFacts(exit_code=0, disk_full=True), RunStatus.DISK_LIMIT, "full"),
    (RunFacts(signal=9, killed_for="wall", disk_full=True), RunStatus.WALL_LIMIT, "clock"),
    # several causes at once: what was done outweighs what was seen
    (RunFacts(signal=9, killed_for="cpu", memory_kills=1), RunStatus.MEMORY_LIMIT, "kernel"),
    (RunFacts(signal=9, killed_for="wall", cpu_s=3), RunStatus.CPU_LIMIT, "processor"),
    (RunFacts(signal=9, killed_for="memory", compiled=False), RunStatus.MEMORY_LIMIT, "256 MiB"),
]


@pytest.mark.parametrize(("facts", "status", "word"), TABLE)
def test_classify(facts: RunFacts, status: RunStatus, word: str) -> None:
    found, detail = classify(facts, LIMITS)
    assert found is status
    assert word in detail
    assert bool(detail) == (status is not RunStatus.OK)
