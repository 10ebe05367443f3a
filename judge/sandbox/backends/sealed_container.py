"""Runs services, but never solutions, in a container that is already isolated.

In a verifier of an agent framework, or in a pod, no namespaces can be made, and there is no network
to block. The judge's own services still read files from untrusted sources. So they run as another
user if this process may choose one, without capabilities, with the filter of system calls and
limited memory, and everything that they start ends with them.

The check for such a container cannot be switched off. If something cannot be read, the container
counts as not sealed.
"""

from __future__ import annotations

import contextlib
import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import Any, NoReturn

from judge.core.limits import GIB
from judge.errors import SandboxError
from judge.sandbox import layout, roots
from judge.sandbox.bundle import BOOT, boot_frame
from judge.sandbox.contract import Backend, BackendFinding, SandboxInfo, ServiceChannel
from judge.sandbox.link import FrameChannel, PipeStream, start_service
from judge.sandbox.roots import root_named

NAME = "sealed-container"
_NOBODY = 65534  # id of the user nobody
_PROBE_S = 30
_END_S = 10
_SYSTEM_PYTHON = Path("/usr/bin/python3")
_OFFICE = (
    Path("/usr/lib/libreoffice/program/soffice.bin"),
    Path("/usr/lib/python3/dist-packages/uno.py"),
    _SYSTEM_PYTHON,
)
"""The paths of LibreOffice and its UNO bridge, as installed by Debian's packages."""
_BOUNDS = MappingProxyType({"RLIMIT_CORE": 0, "RLIMIT_FSIZE": GIB, "RLIMIT_NOFILE": 1024})
_REFUSAL = (
    "solutions do not run in a container that is only sealed from outside: nothing would "
    "separate them from the golds and from the judge"
)


class SealedContainerSandbox:
    """The backend for services only; see ``judge.sandbox.contract.Sandbox``.

    Raises:
        SandboxError: this is not a container, or it has a network.
    """

    def __init__(self) -> None:
        self._enclosure = find_enclosure()
        if not self._enclosure.is_sealed:
            raise SandboxError(
                f"this is not a sealed container: {'; '.join(self._enclosure.openings)}",
                hint="services run directly only in a container without a network; elsewhere use "
                "--sandbox docker or bubblewrap",
            )
        self._lock = threading.Lock()
        self._services: set[_Service] = set()

    @cached_property
    def info(self) -> SandboxInfo:
        """Description of this backend, with the privileges that it can give up here."""
        held = self._held
        return SandboxInfo(
            backend=NAME,
            image=roots.content_identity(),
            python=platform.python_version(),
            packages=MappingProxyType(roots.pins()),
            runtime=" ".join(os.uname()[:3:2]),
            runs_solutions=False,
            isolation=MappingProxyType(
                {
                    "solutions": "refused",
                    "container": "; ".join(self._enclosure.evidence),
                    "network": "none",
                    "user": "nobody" if held["user"] else "the judge's own, without capabilities",
                    "system call filter": "yes" if held["filter"] else "not possible here",
                    "memory limit": "by sampling every 50 ms",
                }
            ),
        )

    def session(self) -> NoReturn:
        """Always refuses, because a solution needs its own sandbox.

        Raises:
            SandboxError: always.
        """
        raise SandboxError(
            _REFUSAL, hint="run solutions where Docker or bubblewrap works (judge doctor)"
        )

    def has_root(self, root: str) -> bool:
        """Whether :meth:`service` is available for that root."""
        if root == "office":
            return all(path.exists() for path in _OFFICE)
        return root == "python" and _engines() is not None

    def root_digest(self, root: str) -> str | None:
        """Identifies the build of that root by its path and the time when it was made."""
        if not self.has_root(root):
            return None
        path = _OFFICE[0] if root == "office" else _engines()
        assert path is not None
        stat = path.stat()
        return f"{path}:{stat.st_ino}:{stat.st_mtime_ns}"

    def service(
        self, program: str, *, root: str = "python", memory_bytes: int | None = None
    ) -> ServiceChannel:
        """Starts one of the judge's own programs in a process of this container."""
        if not self.has_root(root):
            raise SandboxError(
                f"this container has no {root} root",
                hint="use the image of `judge sandbox build --verifier`",
            )
        memory_bytes = memory_bytes or root_named(root).memory_bytes
        held = self._held
        config = {
            "program": program,
            "path": [] if root == "office" else _paths(),
            "user": _NOBODY if held["user"] else None,
            "filter": held["filter"],
            "bounds": {**_BOUNDS, "RLIMIT_DATA": memory_bytes},
            "memory_bytes": memory_bytes,
        }
        service = _Service(_command(root), config, self._forget)
        with self._lock:
            self._services.add(service)
        try:
            start_service(service.stream, service.config, entry="direct")
        except BaseException:
            service.close()
            raise
        return FrameChannel(service.stream, service.close)

    def close(self) -> None:
        """Ends every service."""
        with self._lock:
            services = list(self._services)
        for service in services:
            service.close()

    def _forget(self, service: _Service) -> None:
        with self._lock:
            self._services.discard(service)

    @cached_property
    def _held(self) -> dict[str, bool]:
        """Finds out which privileges a service can give up here."""
        user = _NOBODY if os.geteuid() == 0 else None
        config = {"program": None, "user": user, "path": _paths()}
        try:
            completed = subprocess.run(
                _command("python"),
                input=boot_frame("direct", config),
                env=dict(layout.ENVIRONMENT),
                capture_output=True,
                check=True,
                timeout=_PROBE_S,
            )
            privileges: dict[str, bool] = json.loads(completed.stdout)
        except (OSError, subprocess.SubprocessError, ValueError) as error:
            raise SandboxError(f"cannot start a service in this container: {error}") from error
        if not privileges["plain"]:
            raise SandboxError(
                "a service cannot give up its capabilities in this container",
                hint="start the container with no-new-privileges, or drop its capabilities",
            )
        return privileges


class _Service:
    """A supervisor process with one service as its child."""

    def __init__(
        self, command: list[str], config: dict[str, Any], forget: Callable[[_Service], None]
    ) -> None:
        self._home = Path(tempfile.mkdtemp(prefix="judge-service-"))
        self._forget = forget
        self._lock = threading.Lock()
        self._closed = False
        read_end, self._alive = os.pipe()
        self.config = {**config, "home": str(self._home), "alive": read_end}
        if config["user"] is not None:
            os.chown(self._home, config["user"], config["user"])
        environment = {**layout.ENVIRONMENT, "HOME": str(self._home), "TMPDIR": str(self._home)}
        environment.pop("PYTHONPATH")
        try:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                bufsize=0,
                cwd="/",
                env=environment,
                pass_fds=(read_end,),
                start_new_session=True,  # the judge handles an interrupt at the terminal
            )
        except OSError as error:
            os.close(self._alive)
            shutil.rmtree(self._home, ignore_errors=True)
            raise SandboxError(f"a service could not be started: {error}") from error
        finally:
            os.close(read_end)
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        assert self._process.stderr is not None
        self.stream = PipeStream(
            self._process.stdin.fileno(),
            self._process.stdout.fileno(),
            self._process.stderr.fileno(),
        )

    def close(self) -> None:
        """Ends the service and everything that it started; safe to call twice."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
        os.close(self._alive)  # the supervisor ends its descendants, and then itself
        try:
            self._process.wait(_END_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout, self._process.stderr):
            assert pipe is not None
            with contextlib.suppress(OSError):
                pipe.close()
        shutil.rmtree(self._home, ignore_errors=True)
        self._forget(self)


def _engines() -> Path | None:
    """The folder of the calculation engines, in the verifier image or in bubblewrap's root."""
    for base in (Path("/"), roots.python_root()):
        folder = base / layout.ENGINES[1:]
        if folder.is_dir():
            return folder
    return None


def _paths() -> list[str]:
    engines = _engines()
    if engines is None:
        return []
    folders = (engines, engines.parent / Path(layout.SITE).name)
    return [str(folder) for folder in folders if folder.is_dir()]


def _command(root: str) -> list[str]:
    """The command of an interpreter, without the judge's packages, that awaits its boot frame."""
    if root == "office":  # its bridge is a package of the system's own interpreter
        return [str(_SYSTEM_PYTHON), *layout.PYTHON_FLAGS, "-c", BOOT]
    return [sys.executable, "-I", "-S", "-c", BOOT]


# -- whether this is a sealed container ------------------------------------------------------------

_INITIAL_PROCESS_NAMESPACE = 0xEFFFFFFC
"""The kernel's number for the first process namespace of a machine."""
_INTERFACE_IS_UP = 0x1
_ROUTE_REJECTS = 0x0200
_LOOPBACK = "lo"
_MARKERS = (".dockerenv", "run/.containerenv")
_CONTAINER_FILESYSTEMS = frozenset({"overlay", "aufs", "9p"})
_MAX_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class Enclosure:
    """The container around this process.

    Attributes:
        openings: the reasons why it is not a sealed container, one line each; empty if it is one.
        evidence: the signs that it is a container without a network, one line each.
    """

    openings: tuple[str, ...]
    evidence: tuple[str, ...]

    @property
    def is_sealed(self) -> bool:
        """Whether it is a container without a network."""
        return not self.openings


def find_enclosure(root: Path = Path("/")) -> Enclosure:
    """Examines the environment of this process; reads a few files and opens no connection.

    A machine without a network is not enough. Nor is a network namespace on the host, because the
    host's files and processes would be accessible. The process namespace must not be the machine's
    first one, and the root of the file system must be that of a container.

    Args:
        root: the folder that contains ``/proc`` and ``/sys``.
    """
    openings: list[str] = []
    evidence: list[str] = []
    for check in (_processes, _file_system, _interfaces, _routes):
        try:
            sealed, line = check(root)
        except (OSError, ValueError, IndexError) as error:
            sealed, line = False, f"this cannot be determined: {error}"
        (evidence if sealed else openings).append(line)
    return Enclosure(tuple(openings), tuple(evidence))


def _processes(root: Path) -> tuple[bool, str]:
    namespace = str((root / "proc/self/ns/pid").readlink())
    number = int(namespace.partition("[")[2].rstrip("]"))
    if number == _INITIAL_PROCESS_NAMESPACE:
        return False, "the processes are those of the machine itself"
    return True, f"a separate process namespace ({namespace})"


def _file_system(root: Path) -> tuple[bool, str]:
    for name in _MARKERS:
        if (root / name).exists():
            return True, f"/{name} marks the root of a container"
    for line in _text(root / "proc/self/mountinfo").splitlines():
        head, _, tail = line.partition(" - ")
        if head.split()[4] == "/" and tail.split()[0] in _CONTAINER_FILESYSTEMS:
            return True, f"the root file system is {tail.split()[0]}"
    return False, "the root of the file system is not that of a container"


def _interfaces(root: Path) -> tuple[bool, str]:
    lines = _text(root / "proc/self/net/dev").splitlines()[2:]
    names = [line.partition(":")[0].strip() for line in lines]
    # Interfaces that the kernel adds to each new namespace, such as tunl0, stay down.
    up = [name for name in names if name != _LOOPBACK and _is_up(root, name)]
    if up:
        return False, f"a network interface is up: {', '.join(sorted(up))}"
    return True, "no network interface is up but the loopback"


def _is_up(root: Path, name: str) -> bool:
    flags = root / "sys/class/net" / name / "flags"
    return not flags.exists() or bool(int(_text(flags).strip(), 16) & _INTERFACE_IS_UP)


def _routes(root: Path) -> tuple[bool, str]:
    tables = root / "proc/self/net"
    ways = {line.split()[0] for line in _text(tables / "route").splitlines()[1:] if line.strip()}
    if (tables / "ipv6_route").exists():  # does not exist if IPv6 is switched off
        for line in _text(tables / "ipv6_route").splitlines():
            fields = line.split()
            if not int(fields[8], 16) & _ROUTE_REJECTS:
                ways.add(fields[9])
    ways.discard(_LOOPBACK)
    if ways:
        return False, f"there is a route through {', '.join(sorted(ways))}"
    return True, "no route leads out"


def _text(path: Path) -> str:
    with path.open("rb") as file:
        return file.read(_MAX_BYTES).decode(errors="replace")


# -- the backend -----------------------------------------------------------------------------------


def _open(jobs: int) -> SealedContainerSandbox:
    del jobs  # this backend has no sessions
    return SealedContainerSandbox()


def _probe() -> list[BackendFinding]:
    """Reports that the judge runs in a sealed container; reports nothing elsewhere."""
    enclosure = find_enclosure()
    if not enclosure.is_sealed:
        return []
    detail = f"engines run in it directly, solutions do not: {'; '.join(enclosure.evidence)}"
    return [BackendFinding("sealed container", ok=True, detail=detail)]


BACKEND = Backend("sealed container", _open, _probe, runs_solutions=False)
