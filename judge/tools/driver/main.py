"""The driver's main program: answers the judge's requests, each of which is one frame.

A request is a message of ``judge.sandbox.warden.frames`` with ``op`` in its header. If the request
cannot be fulfilled, the answer has a ``fault``; if that is the fault of a program, also its
``kind``: ``timeout``, ``died``, ``too-long``.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import stat
import struct
import sys
import time
from collections.abc import Callable
from typing import Any

from judge.sandbox.warden import files, frames
from judge.tools.driver.children import (
    Child,
    EndedError,
    TooLongError,
    memory_bytes,
    reap,
)
from judge.tools.driver.shell import Shell

Answer = tuple[dict[str, Any], list[bytes]]

HOME = "/home/agent"
OWN = "/tmp/.judge"  # noqa: S108 - inside
MAX_LINE_BYTES = 4 * 1024 * 1024
MAX_LINES = 1_000
MAX_FRAME_BYTES = 64 * 1024 * 1024
MAX_FILES, MAX_FILES_BYTES = 2_000, 256 * 1024 * 1024
_INTERRUPT_S = 3.0
_SEND_S = 10.0


class FaultError(Exception):
    """A request cannot be fulfilled."""

    def __init__(self, message: str, kind: str = "") -> None:
        super().__init__(message)
        self.kind = kind


class Driver:
    """The programs that run for one episode."""

    def __init__(self) -> None:
        self._helpers: dict[str, Child] = {}
        self._servers: dict[str, Child] = {}
        self._shell: Shell | None = None
        self._environment = dict(os.environ)
        self._functions = ""
        self._data_bytes = 0
        self._ops: dict[str, Callable[[dict[str, Any], list[bytes]], Answer]] = {
            "start": self._start,
            "write": self._write,
            "read": self._read,
            "remove": self._remove,
            "manifest": self._manifest,
            "hash": self._hash,
            "python": self._python,
            "bash": self._bash,
            "draw": self._draw,
            "open": self._open,
            "send": self._send,
            "receive": self._receive,
            "close": self._close,
            "memory": self._memory,
        }

    def answer(self, header: dict[str, Any], blobs: list[bytes]) -> Answer:
        """Returns the answer to a request."""
        try:
            return self._ops[header["op"]](header, blobs)
        except FaultError as error:
            return {"fault": str(error), "kind": error.kind}, []
        except OSError as error:
            return {"fault": f"{error.strerror or error}", "kind": ""}, []
        except ValueError as error:  # text that no path can have: a NUL, half a surrogate pair
            return {"fault": str(error), "kind": ""}, []
        finally:
            reap(self._pids())

    def _pids(self) -> set[int]:
        children = (*self._helpers.values(), *self._servers.values())
        pids = {child.process.pid for child in children}
        return pids | ({self._shell.process.pid} if self._shell is not None else set())

    def _start(self, header: dict[str, Any], blobs: list[bytes]) -> Answer:
        os.makedirs(OWN, exist_ok=True)
        for folder in header["folders"]:
            os.makedirs(folder, exist_ok=True)
        for path, data in zip(header["files"], blobs, strict=True):
            files.place(path, data)
        for name, text in header["programs"].items():
            with open(os.path.join(OWN, f"{name}.py"), "w", encoding="utf-8") as file:
                file.write(text)
        self._environment |= {"HOME": HOME, **header["environment"]}
        for name in ("PYTHONHASHSEED", "HOSTNAME"):
            self._environment.pop(name, None)
        self._functions = header["functions"]
        self._data_bytes = header["data_bytes"]
        return {}, []

    def _memory(self, _header: dict[str, Any], _: list[bytes]) -> Answer:
        return {"memory_bytes": memory_bytes()}, []

    # -- files ------------------------------------------------------------------------------------

    def _write(self, header: dict[str, Any], blobs: list[bytes]) -> Answer:
        files.place(_inside(header["path"]), blobs[0])
        return {}, []

    def _remove(self, header: dict[str, Any], _: list[bytes]) -> Answer:
        with contextlib.suppress(OSError):
            os.unlink(_inside(header["path"]))
        return {}, []

    def _read(self, header: dict[str, Any], _: list[bytes]) -> Answer:
        path = _inside(header["path"])
        status, size, data = files.collect(path, header["max_bytes"])
        return {"status": status, "bytes": size}, [] if data is None else [data]

    def _hash(self, header: dict[str, Any], _: list[bytes]) -> Answer:
        _status, _size, data = files.collect(_inside(header["path"]), header["max_bytes"])
        return {"sha256": None if data is None else hashlib.sha256(data).hexdigest()}, []

    def _manifest(self, _header: dict[str, Any], _: list[bytes]) -> Answer:
        """Returns path -> SHA-256 of every regular file in the home folder."""
        hashes: dict[str, str] = {}
        size = 0
        for root, folders, names in os.walk(HOME, followlinks=False):
            folders[:] = sorted(folder for folder in folders if not folder.startswith("."))
            for name in sorted(names):
                path = os.path.join(root, name)
                with contextlib.suppress(OSError):
                    status = os.lstat(path)
                    if not stat.S_ISREG(status.st_mode) or name.startswith("."):
                        continue
                    size += status.st_size
                    if len(hashes) == MAX_FILES or size > MAX_FILES_BYTES:
                        raise FaultError(
                            f"{HOME} has more than {MAX_FILES:,} files, or "
                            f"{MAX_FILES_BYTES:,} bytes"
                        )
                    _status, _size, data = files.collect(path, MAX_FILES_BYTES)
                    if data is not None:
                        hashes[path] = hashlib.sha256(data).hexdigest()
        return {"files": hashes}, []

    # -- programs of the agent --------------------------------------------------------------------

    def _helper(self, name: str) -> tuple[Child, bool]:
        """Returns a helper that answers requests, and whether it has just been started."""
        child = self._helpers.get(name)
        if child is not None and child.process.poll() is None:
            return child, False
        command = [sys.executable, "-s", "-P", os.path.join(OWN, f"{name}.py")]
        child = Child(command, self._environment, HOME, self._data_bytes)
        self._helpers[name] = child
        return child, True

    def _ask(self, name: str, frame: dict[str, Any], limit_s: float) -> dict[str, Any]:
        """Sends a request to a helper, and returns the answer.

        Raises:
            FaultError: the helper did not answer.
        """
        child, _ = self._helper(name)
        payload = json.dumps(frame).encode()
        deadline = time.monotonic() + limit_s
        try:
            child.send(struct.pack(">I", len(payload)) + payload, deadline)
            try:
                data = child.frame(deadline, MAX_FRAME_BYTES)
            except TimeoutError:
                child.interrupt()
                data = child.frame(time.monotonic() + _INTERRUPT_S, MAX_FRAME_BYTES)
                answer = _object(data)
                answer["interrupted"] = True
                return answer
            return _object(data)
        except TimeoutError:
            self._drop(name)
            raise FaultError(f"no answer in {limit_s:g} s", "timeout") from None
        except (EndedError, TooLongError, ValueError) as error:
            code = child.process.poll()
            self._drop(name)
            how = f"by signal {-code}" if code is not None and code < 0 else "by itself"
            raise FaultError(f"the program ended {how} {error}".strip(), "died") from None

    def _drop(self, name: str) -> None:
        child = self._helpers.pop(name, None)
        if child is not None:
            child.kill()

    def _python(self, header: dict[str, Any], _: list[bytes]) -> Answer:
        if not self._alive("python"):
            frame = {"do": "place", "files": {}, "folders": [], "work_in": HOME}
            self._ask("python", frame, header["limit_s"])
        return self._ask("python", header["frame"], header["limit_s"]), []

    def _alive(self, name: str) -> bool:
        child = self._helpers.get(name)
        return child is not None and child.process.poll() is None

    def _bash(self, header: dict[str, Any], _: list[bytes]) -> Answer:
        if self._shell is not None and self._shell.process.poll() is not None:
            self._shell.close()
            self._shell = None
        if self._shell is None:
            self._shell = Shell(self._environment, HOME, OWN, self._functions, self._data_bytes)
        result = self._shell.run(header["command"], header["limit_s"])
        if result["lost"]:
            self._shell.close()
            self._shell = None
        return result, []

    def _draw(self, header: dict[str, Any], _: list[bytes]) -> Answer:
        picture = os.path.join(OWN, "drawn.png")
        with contextlib.suppress(OSError):
            os.unlink(picture)
        frame = {
            "path": _inside(header["path"]),
            "sheet": header["sheet"],
            "area": header["area"],
            "picture": picture,
        }
        answer = self._ask("drawing", frame, header["limit_s"])
        if "fault" in answer or answer.get("interrupted"):
            raise FaultError(str(answer.get("fault", "it took too long"))[:600])
        _status, _size, data = files.collect(picture, header["max_bytes"])
        if data is None:
            raise FaultError("the picture is too large, or was not made")
        return {}, [data]

    # -- MCP servers ------------------------------------------------------------------------------

    def _open(self, header: dict[str, Any], _: list[bytes]) -> Answer:
        name = header["server"]
        self._end_server(name)
        for part in os.listdir(header["content"]):
            with contextlib.suppress(FileExistsError):
                os.symlink(os.path.join(header["content"], part), f"{header['links']}/{part}")
        environment = {**self._environment, **header["environment"]}
        self._servers[name] = Child(header["command"], environment, HOME, self._data_bytes)
        return {}, []

    def _server(self, header: dict[str, Any]) -> Child:
        child = self._servers.get(header["server"])
        if child is None:
            raise FaultError("it does not run", "died")
        return child

    def _send(self, header: dict[str, Any], blobs: list[bytes]) -> Answer:
        child = self._server(header)
        try:
            child.send(blobs[0] + b"\n", time.monotonic() + min(header["limit_s"], _SEND_S))
        except TimeoutError:
            raise FaultError("it does not read what it is sent", "timeout") from None
        except EndedError:
            raise self._died(child) from None
        return {}, []

    def _receive(self, header: dict[str, Any], _: list[bytes]) -> Answer:
        """Returns at least one whole line of a server's output."""
        child = self._server(header)
        try:
            lines = child.lines(time.monotonic() + header["limit_s"], MAX_LINE_BYTES, MAX_LINES)
        except TimeoutError:
            raise FaultError("no line in time", "timeout") from None
        except TooLongError:
            raise FaultError(f"a line has more than {MAX_LINE_BYTES:,} bytes", "too-long") from None
        except EndedError:
            raise self._died(child) from None
        return {"complained": child.stderr_bytes}, lines

    @staticmethod
    def _died(child: Child) -> FaultError:
        code = child.wait(0.5)
        how = "it closed its output" if code is None else f"it ended with exit code {code}"
        if code is not None and code < 0:
            how = f"it was ended by signal {-code}"
        lines = child.stderr_end.strip().splitlines()
        # Lines of a stack trace are indented in all languages; they do not help as a message.
        words = [line for line in lines if re.search(r"^\S.*\w\w", line)] or lines
        return FaultError(f"{how}: {words[-1][:300]}" if words else how, "died")

    def _close(self, header: dict[str, Any], _: list[bytes]) -> Answer:
        """Ends a server; returns how many seconds it took, and the end of its standard error."""
        return self._end_server(header["server"]), []

    def _end_server(self, name: str) -> dict[str, Any]:
        child = self._servers.pop(name, None)
        if child is None:
            return {}
        started = time.monotonic()
        child.end()
        return {"seconds": time.monotonic() - started, "complaint": child.stderr_end[-4000:]}


def _inside(path: str) -> str:
    """Returns a path that is below the home folder.

    Raises:
        FaultError: the path leads elsewhere.
    """
    whole = os.path.normpath(os.path.join(HOME, path))
    if not whole.startswith(f"{HOME}/") or "\0" in path:
        raise FaultError(f"{path[:200]!r} is not below {HOME}")
    return whole


def _object(data: bytes) -> dict[str, Any]:
    document = json.loads(data)
    if not isinstance(document, dict):
        raise ValueError("not an answer")  # noqa: TRY004 - a fault of what it sent
    return document


def main() -> None:
    """Serves until standard input ends."""
    requests, answers = sys.stdin.fileno(), sys.stdout.fileno()
    driver = Driver()
    while True:
        try:
            header, blobs = frames.unpack(frames.read_frame(requests))
        except frames.ClosedError:
            return
        frames.write_all(answers, frames.pack(*driver.answer(header, blobs)))
