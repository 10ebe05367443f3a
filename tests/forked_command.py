"""The ``judge`` command in processes that are forked from one that has imported it.

Starting the command takes half a second of processor time, and a second where it asks a chat model:
nearly all of it for modules. Here they are imported once, in a process that does nothing else; what
runs is a process of its own with its own exit code, streams, folder and environment. Tests of the
start itself, of signals and of memory start the command as a user does.
"""

from __future__ import annotations

import atexit
import contextlib
import gc
import importlib
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Any, NoReturn

REPOSITORY = Path(__file__).resolve().parent.parent
_SERVER = "import sys; from tests.forked_command import serve; serve(int(sys.argv[1]))"
_LONG_S = 900.0
_POLL_S = 0.02
_FEW_BYTES = 1 << 20


class ForkedProcess:
    """A command that runs on; the parts of ``subprocess.Popen`` that tests use.

    Attributes:
        pid: its process id.
        stdout: what it writes, errors included; None where that goes to a file.
    """

    def __init__(self, command: ForkedCommand, pid: int, stdout: IO[str] | None) -> None:
        self.pid = pid
        self.stdout = stdout
        self._command = command
        self._code: int | None = None

    def poll(self) -> int | None:
        """Its exit code (less than 0: the signal); None while it runs."""
        if self._code is None:
            self._code = self._command.ask({"poll": self.pid})
        return self._code

    def wait(self, timeout: float = _LONG_S) -> int:
        """Its exit code, once it has ended."""
        deadline = time.monotonic() + timeout
        while (code := self.poll()) is None:
            assert time.monotonic() < deadline, f"process {self.pid} runs for more than {timeout} s"
            time.sleep(_POLL_S)
        return code

    def send_signal(self, number: int) -> None:
        """Sends a signal to it, unless it is known to have ended."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def terminate(self) -> None:
        """Asks the command to end."""
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """Ends the command."""
        self.send_signal(signal.SIGKILL)


class ForkedCommand:
    """Runs ``judge`` with arguments; close it at the end."""

    def __init__(self) -> None:
        self._socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._socket.settimeout(_LONG_S)
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-c", _SERVER, str(theirs.fileno())],
                pass_fds=[theirs.fileno()],
                cwd=REPOSITORY,
                stdin=subprocess.DEVNULL,
            )

    def run(
        self, arguments: Sequence[str], *, cwd: Path | None = None
    ) -> subprocess.CompletedProcess[str]:
        """The result of the command: exit code (less than 0: the signal) and output."""
        with tempfile.TemporaryFile() as stdout, tempfile.TemporaryFile() as stderr:
            streams = [stdout.fileno(), stderr.fileno()]
            code = self.ask({**_request(arguments, cwd, os.environ), "wait": True}, streams)
            assert code is not None
            said = []
            for stream in (stdout, stderr):
                stream.seek(0)
                said.append(stream.read().decode())
        return subprocess.CompletedProcess(list(arguments), code, *said)

    def start(
        self,
        arguments: Sequence[str],
        *,
        cwd: Path | None = None,
        environment: Mapping[str, str] | None = None,
        log: IO[bytes] | None = None,
        imports: Sequence[str] = (),
    ) -> ForkedProcess:
        """The command as a process that runs on, until it ends or is ended.

        Args:
            arguments: those of ``judge``.
            cwd: its folder; None for that of this process.
            environment: its environment; None for that of this process.
            log: takes what it writes, errors included; None for a pipe.
            imports: modules that it would import first; they are imported once for all.
        """
        request = _request(arguments, cwd, os.environ if environment is None else environment)
        request["imports"] = list(imports)
        if log is not None:
            pid = self.ask(request, [log.fileno(), log.fileno()])
            assert pid is not None
            return ForkedProcess(self, pid, None)
        ours, theirs = os.pipe()
        try:
            pid = self.ask(request, [theirs, theirs])
        finally:
            os.close(theirs)
        assert pid is not None
        return ForkedProcess(self, pid, os.fdopen(ours, "r"))

    def ask(self, request: Mapping[str, object], streams: Sequence[int] = ()) -> int | None:
        """Sends the process a request; it answers with a number or nothing."""
        socket.send_fds(self._socket, [json.dumps(request).encode()], streams)
        answer: int | None = json.loads(self._socket.recv(_FEW_BYTES))
        return answer

    def close(self) -> None:
        """Ends the process from which others are forked."""
        self._socket.close()
        self._process.wait(_LONG_S)


def serve(descriptor: int) -> None:
    """Imports the command and forks a process for each request, until no more requests can come."""
    from judge.cli.main import COMMANDS  # noqa: PLC0415
    from tests.conftest import one_job_by_default  # noqa: PLC0415

    one_job_by_default()
    for module, _, _ in COMMANDS.values():
        importlib.import_module(module)
    for module in ("judge.api.commands", "judge.api.inferring", "openai", "numpy", "openpyxl"):
        with contextlib.suppress(ModuleNotFoundError):
            importlib.import_module(module)
    gc.freeze()
    with socket.socket(fileno=descriptor) as requests:
        while True:
            data, streams, _, _ = socket.recv_fds(requests, _FEW_BYTES, 2)
            if not data:
                return
            request = json.loads(data)
            if "poll" in request:
                answer = _exit_code(request["poll"], os.WNOHANG)
            else:
                for module in request.get("imports", ()):
                    importlib.import_module(module)
                answer = os.fork()
                if answer == 0:
                    requests.close()
                    _become(request, streams)
                for stream in streams:
                    os.close(stream)
                if request.get("wait"):
                    answer = _exit_code(answer, 0)
            requests.send(json.dumps(answer).encode())


def _exit_code(pid: int, how: int) -> int | None:
    ended, status = os.waitpid(pid, how)
    return os.waitstatus_to_exitcode(status) if ended else None


def _request(
    arguments: Sequence[str], cwd: Path | None, environment: Mapping[str, str]
) -> dict[str, object]:
    return {
        "arguments": list(arguments),
        "cwd": str(cwd or Path.cwd()),
        "environment": {**environment},
    }


def _become(request: dict[str, Any], streams: list[int]) -> NoReturn:
    from judge.cli.main import main  # noqa: PLC0415

    for stream, number in zip(streams, (1, 2), strict=True):
        os.dup2(stream, number)
        os.close(stream)
    os.chdir(request["cwd"])
    os.environ.clear()
    os.environ.update(request["environment"])
    sys.argv[1:] = request["arguments"]
    # The streams that it was forked with remember what kind of file theirs was.
    sys.stdout, sys.stderr = (
        open(number, "w", 1, sys.stdout.encoding, errors, closefd=False)  # noqa: SIM115
        for number, errors in ((1, "strict"), (2, "backslashreplace"))
    )
    if "dask" in sys.modules:
        sys.modules["dask"].config.refresh()  # of the environment
    code: object = 1
    try:
        main(request["arguments"])
    except SystemExit as end:
        code = end.code
    except BaseException:  # noqa: BLE001  as the interpreter does
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        atexit._run_exitfuncs()  # what the interpreter does, but for taking it to pieces
        os._exit(code if isinstance(code, int) else 1)
