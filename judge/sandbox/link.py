"""The judge's side of the protocol with a warden, and the streams of bytes that carry it.

A stream consists of the pipes of a local process, or of the connection to a container.

The status of a run is derived from its raw facts (:func:`classify`). Stronger evidence is checked
first. A kill by the warden or the kernel (for memory, processor time or wall-clock time) takes
precedence over the way in which the program ended.

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

import contextlib
import os
import select
import signal
import struct
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, fields
from typing import Any, Protocol

from judge.core.limits import MIB, Limits
from judge.errors import SandboxError
from judge.sandbox import layout
from judge.sandbox.bundle import boot_frame
from judge.sandbox.contract import OutputStatus, RunRequest, RunResult, RunStatus
from judge.sandbox.warden import frames


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


_BOOT_S = 120.0
_GRACE_S = 30.0
_LENGTH = struct.Struct(">I")
_FACT_NAMES = frozenset(field.name for field in fields(RunFacts))


class StreamEndedError(Exception):
    """Raised when the other side has closed the stream."""


class ByteStream(Protocol):
    """A two-way stream to a program in the sandbox; deadlines are ``time.monotonic`` values."""

    def send(self, data: bytes, deadline: float) -> None:
        """Sends everything, or raises StreamEndedError or TimeoutError."""
        ...

    def receive(self, size: int, deadline: float) -> bytes:
        """Receives exactly ``size`` bytes, or raises StreamEndedError or TimeoutError."""
        ...

    def stderr_tail(self) -> str:
        """The end of the text that the program inside wrote to standard error."""
        ...


def receive_frame(stream: ByteStream, deadline: float) -> bytes:
    """Reads one frame and returns its payload."""
    return stream.receive(frames.frame_length(stream.receive(_LENGTH.size, deadline)), deadline)


class SandboxGoneError(SandboxError):
    """Raised when the program inside ended, or the connection to it was lost."""


class WardenLink:
    """The connection to one zygote.

    Args:
        stream: the stream to its standard input and output.
        config: see ``judge.sandbox.warden.zygote.main``.
    """

    def __init__(self, stream: ByteStream, config: dict[str, Any]) -> None:
        self._stream = stream
        self._config = config
        self._warm = set(config["warm"])
        self.python = ""

    def boot(self) -> None:
        """Sends the trusted programs into the sandbox."""
        self._send(boot_frame("zygote", self._config), _after(_BOOT_S))

    def await_greeting(self) -> None:
        """Waits until the interpreter is warm."""
        header, _ = self._receive(_after(_BOOT_S))
        try:
            self.python = str(header["hello"]["python"])
        except (KeyError, TypeError) as error:
            raise SandboxError(f"the warden's first message is invalid: {header}") from error

    def run(self, request: RunRequest, roots: tuple[str, ...]) -> RunResult:
        """Runs one program.

        Args:
            request: the run.
            roots: the writable mounts, which the warden checks for free space.

        Raises:
            SandboxError: the warden failed; the link is unusable.
        """
        self._warm_up(request.program)
        limits = request.limits
        header = {
            "files": list(request.files),
            "program_name": request.program_name,
            "folder": request.program_name.rpartition("/")[0],
            "collect": request.collect,
            "limits": asdict(limits),
            "home": layout.HOME,
            "environment": dict(layout.ENVIRONMENT),
            "writable": list(roots),
            "disk_bytes": layout.disk_bytes(limits)
            + sum(len(content) for content in request.files.values()),
            "inodes": layout.INODES,
        }
        blobs = [request.program.encode("utf-8", "surrogatepass"), *request.files.values()]
        deadline = _after(limits.wall_s + _GRACE_S)
        try:
            message = frames.pack(header, blobs)
        except frames.ProtocolError as error:
            raise SandboxError(f"the run cannot be sent: {error}") from error
        self._send(b"R" + message, deadline)
        return _result(*self._receive(deadline), request)

    def _warm_up(self, program: str) -> None:
        modules = [name for name in layout.modules_to_warm(program) if name not in self._warm]
        if modules:
            self._warm.update(modules)
            message = b"W" + frames.pack({"modules": modules})
            self._send(message, _after(_BOOT_S))

    def _receive(self, deadline: float) -> tuple[dict[str, Any], list[bytes]]:
        with self._translated_errors():
            header, blobs = frames.unpack(receive_frame(self._stream, deadline))
        if "failed" in header:
            raise SandboxError(f"the warden failed: {header['failed']}{self._stderr_suffix()}")
        return header, blobs

    def _send(self, data: bytes, deadline: float) -> None:
        with self._translated_errors():
            self._stream.send(data, deadline)

    @contextlib.contextmanager
    def _translated_errors(self) -> Iterator[None]:
        """Converts stream errors to the judge's own errors."""
        try:
            yield
        except StreamEndedError as error:
            raise SandboxGoneError(f"the sandbox disappeared{self._stderr_suffix()}") from error
        except TimeoutError as error:
            raise SandboxError(f"the sandbox does not answer{self._stderr_suffix()}") from error
        except frames.ProtocolError as error:
            raise SandboxError(f"the warden sent an invalid message: {error}") from error

    def _stderr_suffix(self) -> str:
        text = self._stream.stderr_tail().strip()
        return f"\n{text}" if text else ""


def _result(header: dict[str, Any], blobs: list[bytes], request: RunRequest) -> RunResult:
    """The facts of a run from the warden's reply."""
    try:
        facts = RunFacts(**{k: v for k, v in header["facts"].items() if k in _FACT_NAMES})
        output_status = OutputStatus(header["output"]["status"])
        stdout, stderr, output = blobs
        status, detail = classify(facts, request.limits)
        return RunResult(
            status=status,
            output_status=output_status,
            exit_code=facts.exit_code,
            signal=facts.signal,
            cpu_s=facts.cpu_s,
            wall_s=facts.wall_s,
            peak_memory_bytes=facts.peak_memory_bytes,
            stdout=stdout,
            stderr=stderr,
            stdout_bytes=header["stdout_bytes"],
            stderr_bytes=header["stderr_bytes"],
            output=output if output_status is OutputStatus.COLLECTED else None,
            output_bytes=header["output"]["size"],
            survivors=facts.survivors,
            detail=detail,
        )
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise SandboxError(f"the warden sent an invalid reply: {error!r}") from error


def _after(seconds: float) -> float:
    return time.monotonic() + seconds


class FrameChannel:
    """A running service; see ``judge.sandbox.contract.ServiceChannel``.

    Args:
        stream: the stream to its standard input and output.
        end: ends the service and everything that it started; may be called twice.
    """

    def __init__(self, stream: ByteStream, end: Callable[[], None]) -> None:
        self._stream = stream
        self._end = end
        self._usable = True

    def call(self, payload: bytes, timeout_s: float) -> bytes:
        """Sends one frame and waits for one frame."""
        if not self._usable:
            raise SandboxError("this service has ended")
        deadline = _after(timeout_s)
        try:
            self._stream.send(_LENGTH.pack(len(payload)) + payload, deadline)
            return receive_frame(self._stream, deadline)
        except TimeoutError:
            self.close()
            raise TimeoutError(f"no answer from the service in {timeout_s:g} s") from None
        except (StreamEndedError, frames.ProtocolError) as error:
            stderr = self._stream.stderr_tail().strip()
            self.close()
            raise SandboxError(f"the service ended: {error} {stderr}".strip()) from error

    def close(self) -> None:
        """Ends the service."""
        self._usable = False
        self._end()


def start_service(stream: ByteStream, config: dict[str, Any], *, entry: str = "service") -> None:
    """Sends a service program into the sandbox.

    Args:
        stream: the stream to the interpreter that waits for it.
        config: the argument of the entry's ``main``.
        entry: the module of ``judge.sandbox.warden`` that is its main program.

    Raises:
        SandboxError: it ended immediately.
    """
    try:
        stream.send(boot_frame(entry, config), _after(_BOOT_S))
    except (StreamEndedError, TimeoutError) as error:
        raise SandboxError(f"the service did not start: {stream.stderr_tail().strip()}") from error


# -- streams --------------------------------------------------------------------------------------

_CHUNK_BYTES = 1 << 18
_STDERR_TAIL_BYTES = 4096


class PipeStream:
    """Pipes to a process inside a sandbox.

    Args:
        stdin: descriptor of its standard input.
        stdout: descriptor of its standard output.
        stderr: descriptor of its standard error, of which the end is kept.
    """

    def __init__(self, stdin: int, stdout: int, stderr: int) -> None:
        self._stdin = stdin
        self._stdout = stdout
        self._stderr = stderr
        self._tail = b""
        for fd in (stdin, stdout, stderr):
            os.set_blocking(fd, False)

    def send(self, data: bytes, deadline: float) -> None:
        """Sends everything."""
        view = memoryview(data)
        while view:
            self._await(self._stdin, select.POLLOUT, deadline)
            try:
                view = view[os.write(self._stdin, view[:_CHUNK_BYTES]) :]
            except BlockingIOError:
                continue
            except OSError as error:
                raise StreamEndedError(str(error)) from error

    def receive(self, size: int, deadline: float) -> bytes:
        """Receives exactly ``size`` bytes."""
        chunks = []
        while size:
            self._await(self._stdout, select.POLLIN, deadline)
            try:
                chunk = os.read(self._stdout, min(size, _CHUNK_BYTES))
            except BlockingIOError:
                continue
            except OSError as error:
                raise StreamEndedError(str(error)) from error
            if not chunk:
                raise StreamEndedError("end of stream")
            chunks.append(chunk)
            size -= len(chunk)
        return b"".join(chunks)

    def stderr_tail(self) -> str:
        """The end of its standard error."""
        self._read_stderr()
        return self._tail.decode(errors="replace")

    def _await(self, fd: int, event: int, deadline: float) -> None:
        poller = select.poll()
        poller.register(fd, event)
        poller.register(self._stderr, select.POLLIN)
        while True:
            left = deadline - time.monotonic()
            if left <= 0:
                raise TimeoutError
            for ready, _ in poller.poll(left * 1000):
                if ready == fd:
                    return
                if not self._read_stderr():
                    poller.unregister(ready)

    def _read_stderr(self) -> bool:
        """Reads what is available; False at the end of the stream."""
        with contextlib.suppress(BlockingIOError):
            while True:
                chunk = os.read(self._stderr, _CHUNK_BYTES)
                if not chunk:
                    return False
                self._tail = (self._tail + chunk)[-_STDERR_TAIL_BYTES:]
        return True


class ContainerStream:
    """The hijacked connection to a container's standard streams, demultiplexed.

    Without a terminal, the daemon sends standard output and error as chunks on one connection. Each
    chunk has a header of 8 bytes with the stream that it belongs to and its length.
    """

    def __init__(self, attached: Any) -> None:
        self._attached = attached  # keeps the response, and with it the connection, alive
        self._socket = getattr(attached, "_sock", attached)
        self._received = bytearray()
        self._output = bytearray()
        self._tail = b""

    def send(self, data: bytes, deadline: float) -> None:
        """Sends everything."""
        view = memoryview(data)
        try:
            while view:
                self._set_timeout(deadline)
                view = view[self._socket.send(view[:_CHUNK_BYTES]) :]
        except TimeoutError:
            raise
        except OSError as error:
            raise StreamEndedError(str(error)) from error

    def receive(self, size: int, deadline: float) -> bytes:
        """Receives exactly ``size`` bytes of standard output."""
        while len(self._output) < size:
            self._receive_more(deadline)
        data = bytes(self._output[:size])
        del self._output[:size]
        return data

    def stderr_tail(self) -> str:
        """The end of its standard error."""
        with contextlib.suppress(StreamEndedError, TimeoutError):
            while True:
                self._receive_more(time.monotonic() + 0.05)
        return self._tail.decode(errors="replace")

    def close(self) -> None:
        """Closes the connection."""
        with contextlib.suppress(OSError):
            self._socket.close()
        with contextlib.suppress(OSError):
            self._attached.close()

    def _set_timeout(self, deadline: float) -> None:
        left = deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError
        self._socket.settimeout(left)

    def _receive_more(self, deadline: float) -> None:
        self._set_timeout(deadline)
        try:
            chunk = self._socket.recv(_CHUNK_BYTES)
        except TimeoutError:
            raise
        except OSError as error:
            raise StreamEndedError(str(error)) from error
        if not chunk:
            raise StreamEndedError("end of stream")
        self._received += chunk
        self._take_apart()

    def _take_apart(self) -> None:
        position = 0
        received = self._received
        while len(received) - position >= 8:
            end = position + 8 + int.from_bytes(received[position + 4 : position + 8], "big")
            if len(received) < end:
                break
            part = received[position + 8 : end]
            if received[position] == 1:
                self._output += part
            else:
                self._tail = (self._tail + part)[-_STDERR_TAIL_BYTES:]
            position = end
        del received[:position]
