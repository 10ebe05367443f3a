"""Derives the status of a run from its raw facts: pure, no input or output.

Stronger evidence is checked first. What the warden or the kernel did itself (a kill for memory, for
processor time, for wall-clock time) takes precedence over the way in which the program ended.

Ambiguities that remain:

* A program that gets ``MemoryError`` (a single request too big for the address space or for the
  kernel's overcommit rule) ends as EXITED: nothing within the limit was refused.
* A program that fills the disk and then uses too much time or memory gets the status of the limit
  that ended it.
* If no control group is available, memory is sampled every 20 ms: a program that allocates and
  frees a great deal between two samples is not noticed, and gets the status of the event that
  ends it.
* In a container the kernel's counter is that of the container. It runs only the case, so the
  process that was killed belongs to the case, but it is not known which process it was.
* A program that is refused a new process or thread (``limits.processes``) ends as EXITED with the
  exception that it got.
* If a program sends SIGKILL to itself, its status is SIGNALED, as no counter shows a kill for
  memory.
"""

from __future__ import annotations

import signal
from dataclasses import dataclass

from judge.core.limits import MIB, Limits
from judge.sandbox.contract import RunStatus


@dataclass(frozen=True, slots=True)
class RunFacts:
    """The warden's facts about one run.

    Attributes:
        compiled: False if the program does not compile, so that none of it ran.
        exit_code: exit code of the main process if it ended by itself.
        signal: signal that ended the main process, including the warden's own kills.
        killed_for: ``cpu``, ``wall`` or ``memory`` if the warden ended it for that limit.
        cpu_s: processor seconds of the process tree.
        wall_s: wall-clock seconds.
        peak_memory_bytes: the most memory that the tree held.
        memory_kills: processes that the kernel killed for exceeding the memory limit.
        disk_full: whether a sample, or the end of the run, showed no free block or inode.
        survivors: processes that outlived the main process.
    """

    compiled: bool = True
    exit_code: int | None = None
    signal: int | None = None
    killed_for: str | None = None
    cpu_s: float = 0.0
    wall_s: float = 0.0
    peak_memory_bytes: int = 0
    memory_kills: int = 0
    disk_full: bool = False
    survivors: int = 0


def classify(facts: RunFacts, limits: Limits) -> tuple[RunStatus, str]:
    """The status of a run, and the reason on one line if the status does not show it."""
    if facts.killed_for == "memory":
        return RunStatus.MEMORY_LIMIT, f"more than {limits.memory_bytes // MIB} MiB"
    if facts.memory_kills:
        noun = "process" if facts.memory_kills == 1 else "processes"
        return (
            RunStatus.MEMORY_LIMIT,
            f"the kernel killed {facts.memory_kills} {noun} over {limits.memory_bytes // MIB} MiB",
        )
    if facts.killed_for == "cpu" or facts.cpu_s > limits.cpu_s:
        return RunStatus.CPU_LIMIT, f"more than {limits.cpu_s:g} s of processor time"
    if facts.killed_for == "wall":
        return RunStatus.WALL_LIMIT, f"more than {limits.wall_s:g} s of wall-clock time"
    if facts.disk_full:
        return RunStatus.DISK_LIMIT, "the disk was full"
    if not facts.compiled:
        return RunStatus.COMPILE_ERROR, "the program does not compile"
    if facts.signal is not None:
        return RunStatus.SIGNALED, _signal_name(facts.signal)
    if facts.exit_code:
        return RunStatus.EXITED, f"exit code {facts.exit_code}"
    return RunStatus.OK, ""


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
