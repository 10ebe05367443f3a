"""A cluster of this machine that several tests share: a scheduler, workers, certificates."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from judge.grading.cluster.certificates import make_certificates
from tests.forked_command import ForkedCommand, ForkedProcess

COMMAND = (sys.executable, "-c", "from judge.cli.main import main; main()")
_LONG_S = 300.0


def wait_until(holds: Callable[[], object], what: str) -> None:
    """Waits for an event; the limit is so generous that reaching it means a hang."""
    deadline = time.monotonic() + _LONG_S
    while not holds():
        assert time.monotonic() < deadline, f"{what} did not happen within {_LONG_S:g} s"
        time.sleep(0.05)


@dataclass
class Started:
    """A program of the judge that runs until it is ended."""

    process: ForkedProcess
    log: Path

    def said(self, word: str) -> list[str]:
        """Returns the output lines that contain some text."""
        return [line for line in self.log.read_text().splitlines() if word in line]

    def end(self) -> None:
        """Ends the program, and waits for its end."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        self.process.wait(_LONG_S)


@dataclass
class Machine:
    """Starts schedulers, workers and clients, with their own certificates."""

    folder: Path
    certificates: Path
    command: ForkedCommand
    address: str = ""
    started: list[Started] = field(default_factory=list)

    def environment(self, **extra: str) -> dict[str, str]:
        """The environment for a program of this cluster."""
        return {**os.environ, "JUDGE_CLUSTER_CERTIFICATES": str(self.certificates), **extra}

    def start(self, *arguments: object, **extra: str) -> Started:
        """Starts a program."""
        log = self.folder / f"{len(self.started)}.log"
        with log.open("wb") as file:
            process = self.command.start(
                [*map(str, arguments)],
                environment=self.environment(**extra),
                log=file,
                imports=["judge.grading.cluster.programs"],
            )
        self.started.append(Started(process, log))
        return self.started[-1]

    def scheduler(self) -> str:
        """Starts a scheduler on a port that the system chooses; returns its address."""
        one = self.start("cluster", "scheduler", "--listen", "tls://127.0.0.1:0")
        wait_until(
            lambda: one.said("scheduler at") or one.process.poll() is not None, "a scheduler"
        )
        self.address = one.said("scheduler at")[0].split()[-1]
        return self.address

    def workers(self, count: int, **extra: str) -> Started:
        """Starts workers."""
        one = self.start("cluster", "worker", self.address, "-n", count, **extra)
        wait_until(
            lambda: len(one.said("worker at")) == count or one.process.poll() is not None,
            "a worker",
        )
        assert one.process.poll() is None, one.log.read_text()
        return one


@contextmanager
def machine_in(folder: Path, command: ForkedCommand) -> Iterator[Machine]:
    """A machine whose programs are ended with the test."""
    make_certificates(folder / "certificates", days=1)
    machine = Machine(folder, folder / "certificates", command)
    try:
        yield machine
    finally:
        for each in reversed(machine.started):
            each.end()


@pytest.fixture(scope="module")
def machine(
    tmp_path_factory: pytest.TempPathFactory, forked_command: ForkedCommand
) -> Iterator[Machine]:
    """A scheduler and two workers."""
    with machine_in(tmp_path_factory.mktemp("machine"), forked_command) as made:
        made.scheduler()
        made.workers(2)
        yield made


def processes(pids: Sequence[int] | None = None) -> dict[int, tuple[int, str]]:
    """Maps the id of each running process to its parent and command line."""
    found = {}
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit() or (pids is not None and int(entry.name) not in pids):
            continue
        try:
            fields = (entry / "stat").read_text(errors="replace").rpartition(")")[2].split()
            line = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue
        if fields[0] != "Z":
            found[int(entry.name)] = (int(fields[1]), line)
    return found


def running(mark: str) -> list[int]:
    """Returns the processes whose command line ends with a mark that only one test uses."""
    return [pid for pid, (_, line) in processes().items() if line.strip().endswith(mark)]


def ancestors(pid: int) -> list[int]:
    """Yields a process's parent, that parent's parent, and so on."""
    known, found = processes(), []
    while (above := known.get(pid, (0, ""))[0]) > 1:
        found.append(above)
        pid = above
    return found
