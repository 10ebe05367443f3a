"""A shell that keeps its state from one command to the next.

Each command is passed to the shell in a file. The shell reports on a separate descriptor when the
command has ended, so that no output of a command can be mistaken for this report.
"""

from __future__ import annotations

import contextlib
import os
import resource
import select
import signal
import subprocess
import time
from collections.abc import Mapping

from judge.tools.driver.children import descendants

HEAD_BYTES = TAIL_BYTES = 128 * 1024
"""How many bytes of a command's output are kept, of the beginning and of the end."""

_LOOP = """\
{functions}
while IFS= read -r -u {orders} __judge_command; do
  . "$__judge_command" {orders}<&- {reports}>&- </dev/null
  printf '%s %s\\n' "$?" "${{PWD//$'\\n'/ }}" >&{reports}
done
"""
_INTERRUPT_S = 2.0
_STATUS_BYTES = 8192


class Output:
    """Keeps the beginning and the end of an output, and its length."""

    def __init__(self) -> None:
        self._head = bytearray()
        self._tail = bytearray()
        self.total = 0

    def add(self, chunk: bytes) -> None:
        """Adds a chunk of the output."""
        self.total += len(chunk)
        room = HEAD_BYTES - len(self._head)
        self._head += chunk[:room]
        self._tail += chunk[room:] if room < len(chunk) else b""
        del self._tail[:-TAIL_BYTES]

    @property
    def text(self) -> str:
        """Beginning and end of the output, with a note on what is left out between them."""
        left_out = self.total - len(self._head) - len(self._tail)
        between = f"\n… {left_out} bytes are left out …\n".encode() if left_out else b""
        return (bytes(self._head) + between + bytes(self._tail)).decode("utf-8", "replace")


class Shell:
    """A bash process.

    Args:
        environment: the environment of the shell.
        folder: the working directory at the start.
        own: the folder for the files of commands.
        functions: text that the shell reads when it starts.
        data_bytes: how much private memory one of its processes may allocate.
    """

    def __init__(
        self,
        environment: Mapping[str, str],
        folder: str,
        own: str,
        functions: str,
        data_bytes: int,
    ) -> None:
        self._own = own
        self._count = 0
        orders, self._orders = os.pipe()
        self._reports, reports = os.pipe()
        self._printed, printed = os.pipe()

        def bound() -> None:
            resource.setrlimit(resource.RLIMIT_DATA, (data_bytes, data_bytes))

        text = _LOOP.format(functions=functions, orders=orders, reports=reports)
        self.process = subprocess.Popen(
            ["bash", "--norc", "--noprofile", "-c", text],
            env=dict(environment),
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=printed,
            stderr=printed,
            pass_fds=(orders, reports),
            start_new_session=True,
            preexec_fn=bound,  # noqa: PLW1509 - the driver's threads hold no lock
        )
        for descriptor in (orders, reports, printed):
            os.close(descriptor)
        for descriptor in (self._reports, self._printed):
            os.set_blocking(descriptor, False)

    def run(self, command: str, limit_s: float) -> dict[str, object]:
        """Runs one command.

        Returns:
            ``text``, ``bytes`` (length of the whole output), ``code`` (None if the command was
            stopped), ``folder``, ``timeout``, and ``lost`` (whether the shell ended).
        """
        output = Output()
        self._count += 1
        path = os.path.join(self._own, f"command-{self._count}")
        with open(path, "w", encoding="utf-8", errors="replace") as file:
            file.write(command + "\n")
        code: int | None = None
        folder, timeout, lost = "", False, False
        try:
            os.write(self._orders, path.encode() + b"\n")
            status = self._await(output, time.monotonic() + limit_s)
            if status is None:
                timeout = True
                status = self._stop(output)
        except OSError:
            status = b""
        if not status:
            lost = True
            self.kill()
            with contextlib.suppress(subprocess.TimeoutExpired):
                code = self.process.wait(1.0) if not timeout else None
        else:
            first, _, rest = status.decode("utf-8", "replace").strip().partition(" ")
            folder = rest
            if not timeout and first.isdigit():
                code = int(first)
        self._take(output)
        with contextlib.suppress(OSError):
            os.unlink(path)
        return {
            "text": output.text,
            "bytes": output.total,
            "code": code,
            "folder": folder,
            "timeout": timeout,
            "lost": lost,
        }

    def kill(self) -> None:
        """Ends the shell and everything that it started."""
        below = descendants(self.process.pid)
        for pid in (self.process.pid, *below):
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(1.0)

    def close(self) -> None:
        """Closes the descriptors to the shell, once it has ended."""
        for descriptor in (self._orders, self._reports, self._printed):
            with contextlib.suppress(OSError):
                os.close(descriptor)

    def _stop(self, output: Output) -> bytes:
        """Stops a command that takes too long; returns its status, empty if that does not work."""
        for number in (signal.SIGINT, signal.SIGKILL):
            below = descendants(self.process.pid)
            if not below:
                break
            for pid in below:
                with contextlib.suppress(OSError):
                    os.kill(pid, number)
            status = self._await(output, time.monotonic() + _INTERRUPT_S)
            if status is not None:
                return status
        return b""

    def _await(self, output: Output, deadline: float) -> bytes | None:
        """Returns the status of a command; None on timeout, empty if the shell has ended."""
        status = b""
        watched = [self._reports, self._printed]
        while True:
            left = deadline - time.monotonic()
            if left <= 0:
                return None
            readable, _, _ = select.select(watched, [], [], left)
            if self._printed in readable and not self._take_some(output):
                watched = [self._reports]
            if self._reports in readable:
                chunk = os.read(self._reports, _STATUS_BYTES)
                status += chunk
                if not chunk or status.endswith(b"\n") or len(status) > _STATUS_BYTES:
                    return status if chunk else b""

    def _take_some(self, output: Output) -> bool:
        try:
            chunk = os.read(self._printed, 65536)
        except BlockingIOError:
            return True
        output.add(chunk)
        return bool(chunk)

    def _take(self, output: Output) -> None:
        """Reads what has been printed so far, but at most a few MB of an endless flood."""
        for _ in range(64):
            before = output.total
            with contextlib.suppress(OSError):
                self._take_some(output)
            if output.total == before:
                return
