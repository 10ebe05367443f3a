"""A short form of the attack corpus, for the current machine.

Each program attacks one property. It prints ``REACHED`` if the attack succeeds. The sandbox must
also report the expected result. The long form is in the tests.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from dataclasses import dataclass, replace

from judge.core.limits import MIB, Limits
from judge.errors import SandboxError
from judge.sandbox.contract import (
    OutputStatus,
    RunRequest,
    RunResult,
    RunStatus,
    Sandbox,
    SandboxSession,
)

_INPUT, _OUTPUT = "/mnt/data/input/1_1_input.xlsx", "/mnt/data/output/1_1_output.xlsx"
_LIMITS = Limits(cpu_s=1, wall_s=20, memory_bytes=256 * MIB, processes=32, output_bytes=4 * MIB)


@dataclass(frozen=True, slots=True)
class SelfTest:
    """One attack and its required outcome.

    Attributes:
        name: short name.
        attacked: the property that it attacks, for people.
        program: the program.
        statuses: how the run may end.
        output: the required state of the output path.
        survivors: how many of its processes must have been killed at its end; None for any number.
        wall_s: limit of wall-clock seconds, generous for attacks that should not reach it, so that
            a busy machine does not look like a failure.
    """

    name: str
    attacked: str
    program: str
    statuses: tuple[RunStatus, ...] = (RunStatus.OK,)
    output: OutputStatus = OutputStatus.MISSING
    survivors: int | None = None
    wall_s: float = _LIMITS.wall_s


@dataclass(frozen=True, slots=True)
class AttackOutcome:
    """Whether the sandbox withstood one attack.

    Attributes:
        name: the attack.
        attacked: the property that it attacks.
        held: whether it withstood the attack.
        detail: what happened, if it did not withstand the attack.
    """

    name: str
    attacked: str
    held: bool
    detail: str = ""


_OUT_OF_TIME = (RunStatus.CPU_LIMIT, RunStatus.WALL_LIMIT)
"""On a busy machine the wall-clock limit may be reached first."""

SELF_TESTS = (
    SelfTest(
        "fork bomb",
        "processes are bounded, and all of them end",
        """
        import os
        while True:
            try:
                os.fork()
            except OSError:
                pass
        """,
        _OUT_OF_TIME,
    ),
    SelfTest(
        "daemon",
        "nothing outlives a run",
        """
        import os, time
        if os.fork() == 0:
            os.setsid()
            if os.fork() == 0:
                time.sleep(1000)
            os._exit(0)
        os.wait()
        """,
        survivors=1,
    ),
    SelfTest(
        "memory",
        "memory of the main process is bounded",
        """
        kept = []
        while True:
            kept.append(b"x" * 2**20)
        """,
        (RunStatus.MEMORY_LIMIT,),
    ),
    SelfTest(
        "memory in a child",
        "a kill for memory in a child is noticed",
        """
        import os
        if os.fork() == 0:
            kept = []
            while True:
                kept.append(b"x" * 2**20)
        os.wait()
        """,
        (RunStatus.MEMORY_LIMIT,),
    ),
    SelfTest(
        "sleep",
        "wall-clock time is bounded",
        "import time; time.sleep(100)",
        (RunStatus.WALL_LIMIT,),
        wall_s=2,
    ),
    SelfTest(
        "disk",
        "disk usage is bounded",
        """
        number = 0
        while True:
            number += 1
            open(f"/tmp/{number}", "w").close()
        """,
        (RunStatus.DISK_LIMIT,),
    ),
    SelfTest(
        "flood",
        "endless output takes bounded memory",
        """
        import os
        while True:
            os.write(1, b"x" * 65536)
        """,
        _OUT_OF_TIME,
        wall_s=2,
    ),
    SelfTest(
        "network",
        "no connection leaves the sandbox, and no socket bypasses a namespace",
        """
        import socket
        for address in (("1.1.1.1", 53), ("169.254.169.254", 80), ("172.17.0.1", 2375)):
            try:
                end = socket.socket()
                end.settimeout(1)
                end.connect(address)
                print("REACHED", address)
            except OSError:
                pass
        for family in (16, 17, 38, 40):
            try:
                socket.socket(family, socket.SOCK_RAW)
                print("REACHED family", family)
            except OSError:
                pass
        """,
    ),
    SelfTest(
        "warden",
        "the warden cannot be traced, signalled or impersonated",
        """
        import ctypes, os, signal
        libc = ctypes.CDLL(None)
        for name in os.listdir("/proc"):
            if not name.isdigit() or int(name) == os.getpid():
                continue
            if libc.ptrace(16, int(name), 0, 0) == 0:
                print("REACHED by ptrace")
            for number in (0, 1, 2, 100, 101):
                try:
                    os.open(f"/proc/{name}/fd/{number}", os.O_WRONLY)
                    print("REACHED a descriptor")
                except OSError:
                    pass
            try:
                os.kill(int(name), signal.SIGKILL)
            except OSError:
                pass
        for number in range(3, 1024):
            try:
                os.write(number, bytes(8))
                print("REACHED a descriptor of its own")
            except OSError:
                pass
        """,
    ),
    SelfTest(
        "privileges",
        "there are no privileges, and none can be gained",
        """
        import ctypes, os
        libc = ctypes.CDLL(None)
        if os.getuid() == 0 or set(os.getgroups()) - {os.getgid()}:
            print("REACHED by identity")
        for line in open("/proc/self/status"):
            name, _, value = line.partition(":")
            if name in ("CapEff", "CapPrm", "CapAmb") and int(value, 16):
                print("REACHED", line)
        for flags in (0x10000000, 0x20000, 0x40000000):
            if libc.unshare(flags) == 0:
                print("REACHED a namespace")
        if libc.mount(b"none", b"/tmp", b"tmpfs", 0, None) == 0:
            print("REACHED a mount")
        """,
    ),
    SelfTest(
        "system files",
        "no file of the image can be changed",
        """
        import openpyxl, os, sys
        for path in (openpyxl.__file__, os.__file__, sys.executable, "/etc/passwd",
                     "/proc/sys/kernel/core_pattern", "/usr/lib/new"):
            try:
                open(path, "ab").write(b"")
                print("REACHED", path)
            except OSError:
                pass
        """,
    ),
    SelfTest(
        "host files",
        "nothing of the host can be read",
        """
        import os
        for path in ("/etc/shadow", "/root/.ssh", "/var/run/docker.sock", "/proc/1/root/etc",
                     "/proc/1/environ"):
            try:
                seen = os.listdir(path) if os.path.isdir(path) else open(path).read()
                if seen:
                    print("REACHED", path)
            except OSError:
                pass
        """,
    ),
    SelfTest(
        "link",
        "a link at the output path is not followed",
        f"import os; os.symlink('/etc/passwd', {_OUTPUT!r})",
        output=OutputStatus.LINK,
    ),
    SelfTest(
        "FIFO",
        "a FIFO at the output path does not hang the judge",
        f"import os; os.mkfifo({_OUTPUT!r})",
        output=OutputStatus.SPECIAL,
    ),
    SelfTest(
        "sparse file",
        "a huge output is not read",
        f"open({_OUTPUT!r}, 'wb').truncate(10 * 2**30)",
        output=OutputStatus.TOO_LARGE,
    ),
)

_LEAVE = """
import openpyxl, os, time
for folder in ("/tmp", "/home/solution", "/dev/shm", "/mnt/data"):
    open(folder + "/left", "w").write("x")
openpyxl.left = True
if os.fork() == 0:
    os.setsid()
    time.sleep(1000)
"""
_LOOK = """
import openpyxl, os
for folder in ("/tmp", "/home/solution", "/dev/shm", "/mnt/data"):
    if os.path.exists(folder + "/left"):
        print("REACHED", folder)
if hasattr(openpyxl, "left"):
    print("REACHED a module")
if len([name for name in os.listdir("/proc") if name.isdigit()]) > 3:
    print("REACHED a process")
"""
_LEFTOVERS = ("leftovers", "the next run sees nothing that a run leaves behind")
COUNT = len(SELF_TESTS) + 1
"""How many attacks there are."""


def attack(sandbox: Sandbox) -> Iterator[AttackOutcome]:
    """Runs the self-tests, one after the other.

    Args:
        sandbox: the backend to attack.

    Yields:
        The outcome of each attack.

    Raises:
        SandboxError: no session can be opened.
    """
    for test in SELF_TESTS:
        yield _attack_once(sandbox, test)
    with sandbox.session() as session:
        try:
            _run(session, _LEAVE)
            result = _run(session, _LOOK)
        except SandboxError as error:
            yield AttackOutcome(*_LEFTOVERS, held=False, detail=error.message)
            return
    reached = _reached(result)
    yield AttackOutcome(*_LEFTOVERS, held=not reached, detail=reached)


def _attack_once(sandbox: Sandbox, test: SelfTest) -> AttackOutcome:
    with sandbox.session() as session:
        try:
            result = _run(session, test.program, test.wall_s)
            after = _run(session, "print('still here')")
        except SandboxError as error:
            return AttackOutcome(test.name, test.attacked, held=False, detail=error.message)
    detail = _reached(result)
    if not detail and result.status not in test.statuses:
        detail = f"ended as {result.status}, not as {test.statuses[0]}: {result.detail}"
    if not detail and result.output_status is not test.output:
        detail = f"the output was {result.output_status}, not {test.output}"
    if not detail and test.survivors not in (None, result.survivors):
        detail = f"{result.survivors} processes had to be killed at the end, not {test.survivors}"
    if not detail and after.stdout != b"still here\n":
        detail = "the next run did not succeed"
    return AttackOutcome(test.name, test.attacked, held=not detail, detail=detail)


def _run(session: SandboxSession, program: str, wall_s: float = _LIMITS.wall_s) -> RunResult:
    limits = replace(_LIMITS, wall_s=wall_s)
    return session.run(RunRequest(textwrap.dedent(program), {_INPUT: b"x"}, _OUTPUT, limits))


def _reached(result: RunResult) -> str:
    """The resources that the program reports as reached; often empty."""
    for line in result.stdout.decode(errors="replace").splitlines():
        if line.startswith("REACHED"):
            return line
    return ""
