"""The processes of a desktop, and processes that actions leave behind."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from judge.desktop.driver import guard
from judge.sandbox.warden import kernel

_TAIL_BYTES = 2_000
_END_S = 30.0
_LOOK_S = 0.005


class BrokenError(Exception):
    """The desktop broke; the message tells people how."""


@dataclass(slots=True)
class Part:
    """A process of the desktop.

    Attributes:
        name: its name in messages.
        process: the process.
        complaints: path of the file with its standard error.
        may_end: whether a user may end it.
        again: exit code with which it asks to be started again, and the command for that.
    """

    name: str
    process: subprocess.Popen[bytes]
    complaints: str
    may_end: bool = False
    again: tuple[int, tuple[str, ...]] | None = None


class Processes:
    """Starts the processes of a desktop, and checks that all of them are still running.

    Args:
        environment: the environment of every process.
        folder: the folder for their standard error.
    """

    def __init__(self, environment: Mapping[str, str], folder: str) -> None:
        self.environment = dict(environment)
        self._folder = folder
        self.parts: list[Part] = []
        self._sessions: set[int] = set()
        kernel.adopt_orphans()

    def start(
        self,
        name: str,
        command: Sequence[str],
        *,
        passed: Sequence[int] = (),
        output: int | None = None,
        may_end: bool = False,
        again_code: int | None = None,
        runs_programs: bool = False,
    ) -> Part:
        """Starts a process of the desktop.

        Args:
            name: its name in messages.
            command: the program and its arguments.
            passed: descriptors that it inherits.
            output: descriptor of its standard output; None for the file of its standard error.
            may_end: whether a user may end it.
            again_code: exit code with which it asks to be started again, once.
            runs_programs: whether it runs untrusted programs.

        Raises:
            BrokenError: there is no such program.
        """
        complaints = f"{self._folder}/{name}.err"
        with open(complaints, "ab") as errors:
            try:
                process = subprocess.Popen(
                    list(command),
                    env=self.environment,
                    stdin=subprocess.DEVNULL,
                    stdout=errors if output is None else output,
                    stderr=errors,
                    pass_fds=tuple(passed),
                    start_new_session=True,
                    preexec_fn=stand_apart if runs_programs else None,  # noqa: PLW1509
                )
            except (OSError, subprocess.SubprocessError) as error:
                raise BrokenError(f"{name} does not start: {error}") from None
        again = None if again_code is None else (again_code, tuple(command))
        part = Part(name, process, complaints, may_end, again)
        self.parts = [part for part in self.parts if part.name != name]
        self.parts.append(part)
        return part

    def check(self) -> None:
        """Checks that everything still runs; starts a process again that asked for it.

        Raises:
            BrokenError: a process ended that has to keep running.
        """
        for part in list(self.parts):
            code = part.process.poll()
            if code is None or (part.may_end and code == 0):
                continue
            if part.again is not None and code == part.again[0]:
                self.start(part.name, part.again[1], may_end=part.may_end, runs_programs=True)
                continue
            how = f"by signal {-code}" if code < 0 else f"with exit code {code}"
            raise BrokenError(f"{part.name} ended {how}{self.complaint(part)}")

    def at_rest(self) -> bool:
        """Returns whether no thread of the desktop is running, runnable or waiting for a disk."""
        return all(state in b"SIZX" for part in self.parts for state in _states(part.process.pid))

    @staticmethod
    def complaint(part: Part) -> str:
        """Returns the end of what a process wrote to standard error."""
        with contextlib.suppress(OSError), open(part.complaints, "rb") as file:
            file.seek(max(0, os.path.getsize(part.complaints) - _TAIL_BYTES))
            lines = file.read().decode("utf-8", "replace").strip().splitlines()
            return f": {lines[-1][:300]}" if lines else ""
        return ""

    def wait_for(self, what: str, is_there: Callable[[], bool], limit_s: float) -> None:
        """Waits until a condition is true.

        Raises:
            BrokenError: it does not become true in time, or a process ended.
        """
        end = time.monotonic() + limit_s
        while not is_there():
            self.check()
            if time.monotonic() > end:
                raise BrokenError(f"{what} is not there after {limit_s:g} s")
            time.sleep(0.02)

    def learn_own(self) -> None:
        """Remembers that all processes that run now belong to the desktop."""
        self._sessions = {session_of(pid) for pid in parents()} - {0, session_of(os.getpid())}

    def end_others(self) -> int:
        """Ends every descendant of the driver that does not belong to the desktop.

        Returns:
            How many were ended.
        """
        ended = 0
        deadline = time.monotonic() + _END_S
        while others := self._others():  # a process that was just forked is seen in the next round
            for pid in others:
                with contextlib.suppress(OSError):
                    os.kill(pid, signal.SIGKILL)
                    ended += 1
            time.sleep(_LOOK_S)
            self._reap()
            if time.monotonic() > deadline:
                break
        self._reap()
        return ended

    def _reap(self) -> None:
        """Reaps ended orphans, for which no other process waits."""
        ours = {part.process.pid for part in self.parts}
        for pid, parent in parents(ended=True).items():
            if parent == os.getpid() and pid not in ours:
                with contextlib.suppress(OSError):
                    os.waitpid(pid, os.WNOHANG)

    def _others(self) -> list[int]:
        tree = parents()
        roots = {part.process.pid for part in self.parts}
        # Orphans of the desktop's own programs stay in the session in which they were started.
        sessions = roots | self._sessions
        others = []
        for pid in tree:
            line = pid
            seen: set[int] = set()
            while line and line not in roots and line != os.getpid() and line not in seen:
                seen.add(line)
                line = tree.get(line, 0)
            if line == os.getpid() and pid != os.getpid() and session_of(pid) not in sessions:
                others.append(pid)
        return others

    def memory_bytes(self) -> int:
        """Returns the proportional memory of all processes, including the driver."""
        total = 0
        for pid in parents():
            with contextlib.suppress(OSError), open(f"/proc/{pid}/smaps_rollup") as file:
                for line in file:
                    if line.startswith("Pss:"):
                        total += int(line.split()[1]) * 1024
                        break
        return total


def stand_apart() -> None:
    """Stops this process from reaching other processes, before it runs an untrusted program.

    It runs after a fork. It cannot block on a lock held by another thread of the driver, since
    those only sleep and read how much memory is used.
    """
    kernel.forbid_new_privileges()
    kernel.install_filter(guard.assemble(os.getpid()))


def parents(*, ended: bool = False) -> dict[int, int]:
    """Maps running processes to their parents; with ``ended``, those that wait to be reaped."""
    parent_of = {}
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        with contextlib.suppress(OSError, ValueError, IndexError):
            with open(f"/proc/{name}/stat", "rb") as file:
                after = file.read().rpartition(b")")[2].split()
            if (after[0] in {b"Z", b"X"}) is ended:
                parent_of[int(name)] = int(after[1])
    return parent_of


def _states(pid: int) -> list[bytes]:
    """Returns the state of each thread of a process, as the kernel's one-letter code."""
    states = []
    with contextlib.suppress(OSError):  # the process has just ended
        for thread in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{thread}/stat", "rb") as file:
                states.append(file.read().rpartition(b")")[2].split()[0])
    return states


def session_of(pid: int) -> int:
    """Returns the session of a process; 0 if the process is gone."""
    try:
        return os.getsid(pid)
    except OSError:
        return 0
