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
import socket
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, NoReturn

REPOSITORY = Path(__file__).resolve().parent.parent
_SERVER = "import sys; from tests.forked_command import serve; serve(int(sys.argv[1]))"
_LONG_S = 900.0
_FEW_BYTES = 1 << 20


class ForkedCommand:
    """Runs ``judge`` with arguments, one command at a time; close it at the end."""

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
        self, arguments: list[str], *, cwd: Path | None = None
    ) -> subprocess.CompletedProcess[str]:
        """What came of the command: exit code (less than 0: the signal) and what it wrote."""
        folder = str(cwd or Path.cwd())
        request = {"arguments": arguments, "cwd": folder, "environment": {**os.environ}}
        with tempfile.TemporaryFile() as stdout, tempfile.TemporaryFile() as stderr:
            streams = [stdout.fileno(), stderr.fileno()]
            socket.send_fds(self._socket, [json.dumps(request).encode()], streams)
            code = int(self._socket.recv(_FEW_BYTES))
            said = []
            for stream in (stdout, stderr):
                stream.seek(0)
                said.append(stream.read().decode())
        return subprocess.CompletedProcess(arguments, code, *said)

    def close(self) -> None:
        """Ends the process that others are forked from."""
        self._socket.close()
        self._process.wait(_LONG_S)


def serve(descriptor: int) -> None:
    """Imports the command and forks a process for each request, until nobody asks any more."""
    from judge.cli.main import COMMANDS  # noqa: PLC0415

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
            child = os.fork()
            if child == 0:
                requests.close()
                _become(json.loads(data), streams)
            for stream in streams:
                os.close(stream)
            _, status = os.waitpid(child, 0)
            requests.send(str(os.waitstatus_to_exitcode(status)).encode())


def _become(request: dict[str, Any], streams: list[int]) -> NoReturn:
    from judge.cli.main import main  # noqa: PLC0415

    for stream, number in zip(streams, (1, 2), strict=True):
        os.dup2(stream, number)
        os.close(stream)
    os.chdir(request["cwd"])
    os.environ.clear()
    os.environ.update(request["environment"])
    sys.argv[1:] = request["arguments"]
    code: object = 1
    try:
        main(request["arguments"])
    except SystemExit as end:
        code = end.code
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        atexit._run_exitfuncs()  # what the interpreter does, but for taking it to pieces
        os._exit(code if isinstance(code, int) else 1)
