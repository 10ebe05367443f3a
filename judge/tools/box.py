"""Sandboxes for the tools of one episode, controlled through a driver inside.

Nothing inside is trusted, not even the driver: it limits its answers, but this module checks them
again.
"""

from __future__ import annotations

import contextlib
import hashlib
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from judge.closable import Closable
from judge.console import visible
from judge.core.limits import MIB
from judge.errors import SandboxError
from judge.sandbox.contract import Sandbox, ServiceChannel
from judge.sandbox.roots import AGENT_HOME, root_named
from judge.sandbox.warden import frames
from judge.tools.contract import ToolFaultError
from judge.tools.driver import driver_digest, driver_text, helper_texts

HOME = AGENT_HOME
MAX_WORKBOOK_BYTES = 64 * MIB
MAX_DRAWN_BYTES = 8 * MIB
_START_S = 120.0
_FILES_S = 120.0
_SLACK_S = 30.0
"""How many seconds an answer may be late, because the driver first has to end the program."""

_DATA_SHARE = 0.8
"""Share of the sandbox's memory that one process may allocate."""

_MAX_MESSAGE_CHARS = 600
_NO_FILE = {
    "missing": "there is no file",
    "too_large": "the file is too long",
    "not_a_file": "it is a folder",
    "link": "it is a link",
    "special": "it is not a regular file",
}


class BoxError(Exception):
    """A request to the driver could not be fulfilled.

    Attributes:
        message: what happened, for people and models.
        kind: ``timeout``, ``died`` or ``too-long``; empty for other reasons.
    """

    def __init__(self, message: str, kind: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.kind = kind


@dataclass(frozen=True, slots=True)
class BoxFile:
    """A file that was read from a sandbox.

    Attributes:
        data: its bytes; None if the file does not exist or is too long.
        problem: why there are no bytes; empty if there are bytes.
    """

    data: bytes | None
    problem: str = ""

    @property
    def sha256(self) -> str | None:
        """SHA-256 of the bytes; None if there are no bytes."""
        return None if self.data is None else hashlib.sha256(self.data).hexdigest()


class Box(Closable):
    """A sandbox with a driver in it.

    Args:
        sandbox: the sandbox; the caller has to close it.
        root: name of the root that the driver runs in.
        files: absolute path below :data:`HOME` -> content.
        folders: further folders to make.
        environment: environment variables of every program in the sandbox.
        functions: definitions of functions, which the shell reads when it starts.

    Raises:
        SandboxError: the root does not exist, or the driver does not start.
    """

    def __init__(
        self,
        sandbox: Sandbox,
        root: str,
        files: Mapping[str, bytes],
        *,
        folders: Sequence[str] = (),
        environment: Mapping[str, str] | None = None,
        functions: str = "",
    ) -> None:
        kind = root_named(root)
        self.root = root
        self.image = box_image(sandbox, root)
        self._lock = threading.Lock()
        self._channel: ServiceChannel | None = sandbox.service(
            driver_text(), root=root, memory_bytes=kind.memory_bytes
        )
        header = {
            "op": "start",
            "files": list(files),
            "folders": [HOME, *folders],
            "programs": helper_texts(),
            "environment": dict(environment or {}),
            "functions": functions,
            "data_bytes": int(kind.memory_bytes * _DATA_SHARE),
        }
        try:
            self.ask(header, list(files.values()), _START_S)
        except BaseException:
            self.close()
            raise

    def ask(
        self, header: Mapping[str, Any], blobs: Sequence[bytes], limit_s: float
    ) -> tuple[dict[str, Any], list[bytes]]:
        """Sends a request to the driver.

        Args:
            header: ``op`` and its arguments.
            blobs: contents that are sent with it.
            limit_s: seconds that the driver may take.

        Raises:
            BoxError: the driver could not fulfil the request.
            SandboxError: the sandbox broke.
        """
        channel = self._channel
        if channel is None:
            raise SandboxError("the sandbox of the tools was closed")
        try:
            payload = frames.pack(dict(header), list(blobs))[4:]
            answer, parts = frames.unpack(channel.call(payload, limit_s + _SLACK_S))
        except TimeoutError as error:
            self.close()
            raise SandboxError(
                f"the sandbox of the tools did not answer within {limit_s + _SLACK_S:g} s"
            ) from error
        except (frames.ProtocolError, RecursionError, UnicodeError) as error:
            self.close()
            raise SandboxError(f"the sandbox of the tools broke: {error}") from error
        except SandboxError:
            self.close()
            raise
        if "fault" in answer:
            message = visible(str(answer["fault"])[:_MAX_MESSAGE_CHARS])
            raise BoxError(message, str(answer.get("kind", "")))
        return answer, parts

    def read(self, path: str, max_bytes: int = MAX_WORKBOOK_BYTES) -> BoxFile:
        """Reads a file below the home folder.

        Raises:
            SandboxError: the sandbox broke.
        """
        try:
            answer, parts = self.ask(
                {"op": "read", "path": path, "max_bytes": max_bytes}, [], _FILES_S
            )
        except BoxError as error:
            return BoxFile(None, error.message)
        status = str(answer.get("status"))
        if status == "collected" and parts:
            return BoxFile(parts[0])
        return BoxFile(None, _NO_FILE.get(status, status))

    def hash(self, path: str) -> str | None:
        """Returns the SHA-256 of a file; None if the file does not exist or is too long."""
        header = {"op": "hash", "path": path, "max_bytes": MAX_WORKBOOK_BYTES}
        with contextlib.suppress(BoxError):
            answer, _ = self.ask(header, [], _FILES_S)
            digest = answer.get("sha256")
            return digest if isinstance(digest, str) else None
        return None

    def write(self, path: str, data: bytes) -> None:
        """Writes a file below the home folder.

        Raises:
            BoxError: the file cannot be written.
        """
        self.ask({"op": "write", "path": path}, [data], _FILES_S)

    def manifest(self) -> dict[str, str]:
        """Returns path -> SHA-256 of every file in the home folder.

        Raises:
            BoxError: there are too many files, or they are too long.
        """
        answer, _ = self.ask({"op": "manifest"}, [], _FILES_S)
        files = answer.get("files")
        if not isinstance(files, dict):
            raise SandboxError("the sandbox of the tools broke: it lists no files")
        return {str(path): str(digest) for path, digest in files.items()}

    def memory_bytes(self) -> int:
        """Returns the proportional memory (PSS) of all processes in the sandbox."""
        answer, _ = self.ask({"op": "memory"}, [], _FILES_S)
        return int(answer.get("memory_bytes", 0))

    def close(self) -> None:
        """Ends the sandbox and everything in it; safe to call twice."""
        with self._lock:
            channel, self._channel = self._channel, None
        if channel is not None:
            channel.close()


class Boxes(Closable):
    """The sandboxes of one episode: one for each root, all with the same files.

    A call is executed in one of them. Before the next call in another one, changed files are copied
    there. So tools in different roots work on the same files, but share nothing else.

    Args:
        sandbox: the sandbox in which they run.
        files: absolute path below :data:`HOME` -> content.
        folders: further folders to make.
        environment: environment variables of every program.
        functions: definitions of functions, which the shell reads when it starts.
    """

    def __init__(
        self,
        sandbox: Sandbox,
        files: Mapping[str, bytes],
        *,
        folders: Sequence[str] = (),
        environment: Mapping[str, str] | None = None,
        functions: str = "",
    ) -> None:
        self._sandbox = sandbox
        self._files = dict(files)
        self._folders = tuple(folders)
        self._environment = dict(environment or {})
        self._functions = functions
        self._boxes: dict[str, Box] = {}
        self._latest: Box | None = None

    def at(self, root: str) -> Box:
        """Returns the sandbox of a root with the current files; opens it if necessary.

        Raises:
            SandboxError: the sandbox cannot be opened, or broke.
            BoxError: the files cannot be copied.
        """
        box = self._boxes.get(root)
        if box is None:
            box = self._boxes[root] = Box(
                self._sandbox,
                root,
                self._files,
                folders=self._folders,
                environment=self._environment,
                functions=self._functions,
            )
        if self._latest is not None and self._latest is not box:
            self._follow(self._latest, box)
        self._latest = box
        return box

    @property
    def latest(self) -> Box:
        """The sandbox of the last call, which has the current files.

        Raises:
            SandboxError: no sandbox is open.
        """
        if self._latest is None:
            raise SandboxError("no sandbox of the tools is open")
        return self._latest

    @property
    def opened(self) -> tuple[Box, ...]:
        """The sandboxes that are open."""
        return tuple(self._boxes.values())

    def restart(self) -> None:
        """Ends all sandboxes; the next one begins with the initial files."""
        for box in self._boxes.values():
            box.close()
        self._boxes.clear()
        self._latest = None

    def close(self) -> None:
        """Ends all sandboxes; safe to call twice."""
        self.restart()

    @staticmethod
    def _follow(source: Box, target: Box) -> None:
        now, before = source.manifest(), target.manifest()
        for path, digest in now.items():
            if before.get(path) != digest:
                read = source.read(path)
                if read.data is not None:
                    target.write(path, read.data)
        for path in before.keys() - now.keys():
            target.ask({"op": "remove", "path": path}, [], _FILES_S)


class BoxFolder:
    """The workbooks of an episode, for the tools of :mod:`judge.tools.workbooks`.

    Args:
        boxes: the sandboxes.
    """

    read_only = False

    def __init__(self, boxes: Boxes) -> None:
        self._boxes = boxes

    def names(self) -> list[tuple[str, int]]:
        """Returns the paths of the workbooks below the home folder, with 0 for unknown sizes."""
        try:
            paths = self._boxes.latest.manifest()
        except BoxError as error:
            raise ToolFaultError(error.message) from error
        ends = (".xlsx", ".xlsm")
        return [(path, 0) for path in paths if path.lower().endswith(ends)]

    def read(self, name: str) -> bytes:
        """Returns the bytes of a workbook.

        Raises:
            ToolFaultError: the workbook does not exist, or cannot be read.
        """
        file = self._boxes.latest.read(name)
        if file.data is None:
            raise ToolFaultError(f"{visible(name)!r:.200}: {file.problem}")
        return file.data

    def write(self, name: str, data: bytes) -> None:
        """Writes a workbook.

        Raises:
            ToolFaultError: the workbook cannot be written.
        """
        try:
            self._boxes.latest.write(name, data)
        except BoxError as error:
            raise ToolFaultError(error.message) from error


def box_image(sandbox: Sandbox, root: str) -> str:
    """Returns an id that changes with the content of a root and with the driver."""
    text = f"{sandbox.root_digest(root)}\0{driver_digest()}"
    return hashlib.sha256(text.encode()).hexdigest()[:16]
