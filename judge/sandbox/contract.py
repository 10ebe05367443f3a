"""The contract of sandboxes: ``run(RunRequest) -> RunResult``, which contains only facts.

A backend never names a verdict. The result says what a solution did; an
exception (:class:`judge.errors.SandboxError`) means that the *judge* failed.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType, TracebackType
from typing import Protocol, Self

from judge.core.limits import Limits


class RunStatus(enum.StrEnum):
    """How a run ended."""

    OK = "ok"
    """The program ended by itself with exit code 0."""
    COMPILE_ERROR = "compile_error"
    """The program does not compile; none of it ran. The warden reports this before the program
    runs: a SyntaxError that a running program raises is EXITED."""
    EXITED = "exited"
    """The program ended by itself with another exit code."""
    SIGNALED = "signaled"
    """The program was ended by a signal, but not because of a limit."""
    CPU_LIMIT = "cpu_limit"
    WALL_LIMIT = "wall_limit"
    MEMORY_LIMIT = "memory_limit"
    """The process tree needed more memory than the limit."""
    DISK_LIMIT = "disk_limit"
    """The program used all of the disk space that it may write to."""


class OutputStatus(enum.StrEnum):
    """What the judge found at the output path after the run."""

    COLLECTED = "collected"
    MISSING = "missing"
    TOO_LARGE = "too_large"
    NOT_A_FILE = "not_a_file"
    """A directory: a mistake, not an attack."""
    LINK = "link"
    """A symbolic link, or a file with more than one hard link."""
    SPECIAL = "special"
    """A FIFO, socket or device."""


@dataclass(frozen=True, slots=True)
class RunRequest:
    """One program to run once.

    Attributes:
        program: the Python source text.
        files: absolute path -> content of files to place before the run. Parent folders are made.
        collect: absolute path of the file to collect. If it ends with a slash, it is a folder,
            which is collected as one zip. None to collect nothing.
        limits: the limits of the run.
        program_name: absolute path of the program inside, which tracebacks show.
    """

    program: str
    files: Mapping[str, bytes]
    collect: str | None
    limits: Limits = field(default_factory=Limits)
    program_name: str = "/mnt/data/solution.py"


def _empty() -> Mapping[str, str]:
    return MappingProxyType({})


@dataclass(frozen=True, slots=True)
class RunResult:
    """The facts of one run.

    Attributes:
        status: how it ended.
        output_status: what was at the path to collect (MISSING if nothing was requested).
        exit_code: exit code if the program ended by itself.
        signal: number of the signal that ended it, if one did.
        cpu_s: processor seconds of the process tree.
        wall_s: wall-clock seconds, not counting the start of the sandbox.
        peak_memory_bytes: the most memory that the process tree held; None if not measured.
        stdout: the first ``limits.console_bytes`` of standard output.
        stderr: the *last* ``limits.console_bytes`` of standard error (the traceback's end).
        stdout_bytes: how much was written to standard output in total.
        stderr_bytes: how much was written to standard error in total.
        output: the collected file, if ``output_status`` is COLLECTED.
        output_bytes: size of the output, collected or not.
        survivors: processes of the program that were still alive at its end, and were killed.
        detail: the reason as a line for people, if the status does not show it.
    """

    status: RunStatus
    output_status: OutputStatus
    exit_code: int | None = None
    signal: int | None = None
    cpu_s: float = 0.0
    wall_s: float = 0.0
    peak_memory_bytes: int | None = None
    stdout: bytes = b""
    stderr: bytes = b""
    stdout_bytes: int = 0
    stderr_bytes: int = 0
    output: bytes | None = None
    output_bytes: int = 0
    survivors: int = 0
    detail: str = ""


@dataclass(frozen=True, slots=True)
class SandboxInfo:
    """Description of a backend, for ``run.json`` and for reuse keys.

    Attributes:
        backend: ``docker`` or ``bubblewrap``.
        image: an id that changes with everything that a solution can see, and is the same on every
            machine with the same interpreter and packages.
        python: version of the interpreter inside.
        packages: name -> version of the packages that a solution can import.
        runtime: version of the daemon or of ``bwrap``.
        isolation: protection -> whether it is enforced here, for people.
        former_image: the image id in reuse keys of earlier versions of the judge, which named the
            build instead of its content; empty if there is no such id.
        runs_solutions: whether it runs programs of strangers, not only the judge's services.
    """

    backend: str
    image: str
    python: str
    packages: Mapping[str, str] = field(default_factory=_empty)
    runtime: str = ""
    isolation: Mapping[str, str] = field(default_factory=_empty)
    former_image: str = ""
    runs_solutions: bool = True


class SandboxSession(Protocol):
    """Runs the cases of *one* submission in isolation; destroyed when it is closed.

    Each :meth:`run` is a separate process, and sees nothing that earlier runs left behind. Used by
    one thread at a time.
    """

    def run(self, request: RunRequest) -> RunResult:
        """Runs one program.

        Raises:
            SandboxError: the sandbox failed (not the program); the session is unusable.
        """
        ...

    def close(self) -> None:
        """Destroys the sandbox of the session; safe to call twice."""
        ...

    def __enter__(self) -> Self: ...

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None: ...


class ServiceChannel(Protocol):
    """One of the judge's own programs, isolated because of the *files that it reads*.

    Calculation engines open workbooks that a solution wrote, so they run inside as well. The
    program gets length-prefixed frames on its standard input and answers on its standard output:
    a frame is a 4-byte big-endian length and that many bytes. Used by one thread at a time.
    """

    def call(self, payload: bytes, timeout_s: float) -> bytes:
        """Sends one frame and waits for one frame.

        Raises:
            TimeoutError: no answer came in time; the service was killed, the channel is unusable.
            SandboxError: the service ended or sent an invalid frame; the channel is unusable.
        """
        ...

    def close(self) -> None:
        """Ends the service and everything that it started; safe to call twice."""
        ...


class Sandbox(Protocol):
    """A backend. Safe to use from several threads; each session belongs to one thread."""

    @property
    def info(self) -> SandboxInfo:
        """The description of this backend, which is known without running a program."""
        ...

    def session(self) -> SandboxSession:
        """Opens a session for one submission, from the pool of prepared sandboxes if there is one.

        Raises:
            SandboxError: no session can be opened.
        """
        ...

    def service(
        self, program: str, *, root: str = "python", memory_bytes: int | None = None
    ) -> ServiceChannel:
        """Starts one of the judge's own programs inside, isolated like a solution.

        Args:
            program: Python source text of the service.
            root: ``python`` (the solutions' interpreter, with the calculation engines from the
                package registry importable), ``office`` (LibreOffice and its UNO bridge) or
                ``desktop`` (LibreOffice Calc and the programs that show it on a screen); see
                ``judge.sandbox.roots``. With ``desktop`` the service is process 1, so it must
                reap orphans, and none of its descriptors 0 to 2 leads to the judge: it reads
                ``sys.stdin.buffer`` and writes ``sys.stdout.buffer`` like any other service.
            memory_bytes: memory limit of the service's process tree; None for the usual limit of
                the root.

        Raises:
            SandboxError: the root does not exist (the hint names the command that makes it).
        """
        ...

    def has_root(self, root: str) -> bool:
        """Whether :meth:`service` is available for that root."""
        ...

    def root_digest(self, root: str) -> str | None:
        """An id that changes whenever that root is rebuilt; None if the root does not exist."""
        ...

    def close(self) -> None:
        """Ends the pool and everything that this backend started; safe to call twice."""
        ...


@dataclass(frozen=True, slots=True)
class BackendFinding:
    """The result of one check of the machine.

    Attributes:
        name: the subject of the check.
        ok: whether it exists and works.
        detail: the result of the check, in one line.
        fix: the command that fixes it; empty if there is no such command, or nothing to fix.
        backend: the sandbox that is available if this check succeeds; empty if that is not enough.
    """

    name: str
    ok: bool
    detail: str
    fix: str = ""
    backend: str = ""


@dataclass(frozen=True, slots=True)
class Backend:
    """A kind of sandbox, as ``judge.sandbox.select`` registers it.

    Attributes:
        title: its name in messages.
        open: opens it for a number of simultaneous sessions. Raises SandboxError if it does not
            work here; the hint names the command to run.
        probe: checks which of its requirements this machine meets.
        runs_solutions: whether it runs programs of strangers, not only the judge's services.
    """

    title: str
    open: Callable[[int], Sandbox]
    probe: Callable[[], Sequence[BackendFinding]]
    runs_solutions: bool = True
