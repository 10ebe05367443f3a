"""The sandbox of a Docker daemon, local or remote: nothing is mounted, all goes over streams.

The only module that imports the ``docker`` package. One container for each submission, with the
warden as its main process; when the judge hangs up, the daemon closes the warden's input, the
warden ends, and the daemon removes the container.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import secrets
import socket
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType, TracebackType
from typing import Any, Self

from judge.errors import SandboxError
from judge.limits import MIB, Limits
from judge.sandbox import layout
from judge.sandbox.bundle import BOOT
from judge.sandbox.contract import (
    OutputStatus,
    RunRequest,
    RunResult,
    RunStatus,
    SandboxInfo,
    ServiceChannel,
)
from judge.sandbox.link import (
    FrameChannel,
    SandboxGoneError,
    StreamEndedError,
    WardenLink,
    start_service,
)
from judge.sandbox.pool import Pool

PYTHON_IMAGE = "judge-sandbox"
OFFICE_IMAGE = "judge-office"
BUILD_HINT = "run: judge sandbox build --backend docker"
_DAEMON_HINT = "start the daemon, check DOCKER_HOST, or use --sandbox bubblewrap"
_LABEL = "judge.sandbox"
_GREETING_TIMEOUT_S = 10
_API_TIMEOUT_S = 60
_CAPABILITIES = (
    "SETUID",  # a user of its own for each case
    "SETGID",
    "KILL",  # ending what that user left
)
_WARDEN_MEMORY_BYTES = 256 * MIB
_WARDEN_PROCESSES = 8
_SERVICE_PROCESSES = 512
_NOBODY = "65534:65534"
_FIRST_USER, _USERS, _BLOCKS = 10_000, 100, 500
_TMPFS = "rw,nosuid,nodev,noexec,mode=1777"
_USUAL_ROOTS = ("/home", "/mnt", "/tmp", "/data", "/dev/shm")  # noqa: S108 - inside
_CHUNK_BYTES = 1 << 18
_COMPLAINT_BYTES = 4096


def _package() -> Any:
    try:
        import docker  # noqa: PLC0415 - slow, and only wanted where this backend is
    except ImportError as error:
        raise SandboxError(
            "the Python package `docker` is missing", hint="run: python -m pip install docker"
        ) from error
    return docker


@contextlib.contextmanager
def translated(what: str) -> Iterator[None]:
    """Turns what the daemon, or the way to it, got wrong into the judge's own error."""
    from requests.exceptions import RequestException  # noqa: PLC0415 - comes with docker

    try:
        yield
    except _package().errors.DockerException as error:
        said = getattr(error, "explanation", None) or str(error)
        raise SandboxError(f"{what}: {said}", hint=_DAEMON_HINT) from error
    except (RequestException, OSError) as error:
        raise SandboxError(f"{what}: {error}", hint=_DAEMON_HINT) from error


def connect() -> Any:
    """A client of the daemon that the environment names (DOCKER_HOST and its kin).

    Raises:
        SandboxError: none answers.
    """
    docker = _package()
    with translated("no Docker daemon answers"):
        parameters = docker.utils.kwargs_from_env()
        client = docker.APIClient(version="auto", timeout=_GREETING_TIMEOUT_S, **parameters)
        client.timeout = _API_TIMEOUT_S  # one that answered may take longer over real work
        return client


def image_id(client: Any, tag: str) -> str | None:
    """An image's id, None where it is not there."""
    with translated(f"the daemon does not say whether {tag} is there"):
        try:
            return str(client.inspect_image(tag)["Id"])
        except _package().errors.ImageNotFound:
            return None


def pull(client: Any, tag: str) -> str | None:
    """Pulls an image; gives the reason where it cannot be had."""
    try:
        client.pull(*tag.rsplit(":", 1))
        client.inspect_image(tag)
    except _package().errors.APIError as error:
        return str(error.explanation or error)
    return None


def run_plain(client: Any, image: str, command: list[str]) -> str:
    """Runs a trusted command in a container without a network; gives what it printed."""
    host = client.create_host_config(network_mode="none")
    container = client.create_container(image, command=command, entrypoint=[], host_config=host)
    try:
        client.start(container)
        client.wait(container)
        return str(client.logs(container, stderr=False).decode(errors="replace"))
    finally:
        client.remove_container(container, force=True)


class ContainerStream:
    """The hijacked connection to a container's standard streams, taken apart again.

    Without a terminal the daemon sends standard output and error as chunks on one connection, each
    with a head of 8 bytes: which of the two, and how long.
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
        wanted = bytes(self._output[:size])
        del self._output[:size]
        return wanted

    def complaint(self) -> str:
        """The end of its standard error."""
        with contextlib.suppress(StreamEndedError, TimeoutError):
            while True:
                self._receive_more(time.monotonic() + 0.05)
        return self._tail.decode(errors="replace")

    def close(self) -> None:
        """Hangs up."""
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
                self._tail = (self._tail + part)[-_COMPLAINT_BYTES:]
            position = end
        del received[:position]


@dataclass(frozen=True, slots=True)
class Shape:
    """What a container is made for; a run that wants another gets another container.

    Attributes:
        memory_bytes: memory of a run.
        disk_bytes: size of each writable mount.
        processes: processes of a run.
        roots: writable mounts.
    """

    memory_bytes: int
    disk_bytes: int
    processes: int
    roots: frozenset[str]

    @classmethod
    def of(cls, limits: Limits, roots: frozenset[str]) -> Self:
        """What a run with these limits wants."""
        return cls(limits.memory_bytes, layout.disk_bytes(limits), limits.processes, roots)

    def serves(self, wanted: Shape) -> bool:
        """Whether a container of this shape does for a run that wants ``wanted``."""
        return wanted.roots <= self.roots and replace(wanted, roots=self.roots) == self


class Container:
    """A started container with a trusted program that waits for its boot frame."""

    def __init__(self, sandbox: DockerSandbox, identity: str, stream: ContainerStream) -> None:
        self._sandbox = sandbox
        self._lock = threading.Lock()
        self._closed = False
        self.identity = identity
        self.stream = stream
        self.started = time.time()
        self.shape: Shape | None = None
        self.link: WardenLink | None = None

    def close(self) -> None:
        """Removes it; safe to call twice."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
        self.stream.close()
        self._sandbox.remove(self.identity)


class DockerSession:
    """The cases of one submission, in one container."""

    def __init__(self, sandbox: DockerSandbox) -> None:
        self._sandbox = sandbox
        self._container: Container | None = sandbox.take()
        self._broken = False
        self._closed = False

    def run(self, request: RunRequest) -> RunResult:
        """Runs one program."""
        if self._closed or self._broken:
            raise SandboxError("this session has ended")
        tops = frozenset(layout.folders_of(request))
        wanted = Shape.of(request.limits, tops | frozenset(_USUAL_ROOTS))
        container = self._container
        if container is None or container.shape is None or not container.shape.serves(wanted):
            self._drop()
            container = self._container = self._sandbox.take(wanted)
        assert container.link is not None
        assert container.shape is not None
        started = time.monotonic()
        try:
            return container.link.run(request, tuple(sorted(container.shape.roots)))
        except SandboxGoneError:
            self._drop()
            if self._sandbox.ran_out_of_memory(container):
                return _killed_for_memory(time.monotonic() - started)
            self._broken = True
            raise
        except BaseException:
            self._broken = True
            raise

    def close(self) -> None:
        """Removes the container."""
        self._closed = True
        self._drop()

    def _drop(self) -> None:
        container, self._container = self._container, None
        if container is not None:
            self._sandbox.discard(container)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()


def _killed_for_memory(wall_s: float) -> RunResult:
    return RunResult(
        status=RunStatus.MEMORY_LIMIT,
        output_status=OutputStatus.MISSING,
        wall_s=wall_s,
        detail="the kernel ended the whole container for its memory",
    )


class DockerSandbox:
    """The backend; see ``judge.sandbox.contract.Sandbox``.

    Args:
        python_image: tag of the image for solutions.
        office_image: tag of the image with LibreOffice.
        jobs: how many sessions are open at one time; as many containers are kept ready.
        runtime: container runtime to use rather than the daemon's default (``runsc``).

    Raises:
        SandboxError: no daemon, or the image is not there.
    """

    def __init__(
        self, python_image: str, office_image: str, *, jobs: int = 1, runtime: str | None = None
    ) -> None:
        self._clients = threading.local()
        client = self._client()
        found = image_id(client, python_image)
        if found is None:
            raise SandboxError(f"the image {python_image} is not there", hint=BUILD_HINT)
        self._image_id = found
        self._images = {"python": python_image, "office": office_image}
        self._runtime = runtime
        self._owner = Owner.this_process()
        self._blocks = itertools.count(secrets.randbelow(_BLOCKS))
        self._shape = Shape.of(Limits(), frozenset(_USUAL_ROOTS))
        self._pool: Pool[Container] = Pool(self._prepare, jobs)
        self._services: set[Container] = set()
        self._lock = threading.Lock()
        self._info = self._describe(client)
        self._reap(client)

    @property
    def info(self) -> SandboxInfo:
        """What this backend is."""
        return self._info

    def session(self) -> DockerSession:
        """Opens a place for one submission."""
        return DockerSession(self)

    def has_root(self, root: str) -> bool:
        """Whether :meth:`service` can be had for that root."""
        return root in self._images and image_id(self._client(), self._images[root]) is not None

    def service(
        self, program: str, *, root: str = "python", memory_bytes: int = 2 * 1024**3
    ) -> ServiceChannel:
        """Starts one of our own programs inside."""
        if root not in self._images:
            raise SandboxError(f"no such root: {root!r}", hint="python and office are known")
        if not self.has_root(root):
            raise SandboxError(f"the image {self._images[root]} is not there", hint=BUILD_HINT)
        options = {
            "cap_drop": ["ALL"],
            "mem_limit": memory_bytes,
            "memswap_limit": memory_bytes,
            "pids_limit": _SERVICE_PROCESSES,
            "tmpfs": {"/tmp": f"{_TMPFS},size={memory_bytes // 2}"},  # noqa: S108 - inside
        }
        home = "/tmp/home"  # noqa: S108 - inside
        container = self._start(self._images[root], options, _NOBODY, {"HOME": home})
        with self._lock:
            self._services.add(container)
        config = {
            "program": program,
            "user": None,
            "path": [layout.ENGINES, layout.SITE] if root == "python" else [],
            "watch_bytes": None,
            "home": home,
        }
        try:
            start_service(container.stream, config)
        except BaseException:
            self._end_service(container)
            raise
        return FrameChannel(container.stream, lambda: self._end_service(container))

    def close(self) -> None:
        """Ends the pool and everything that this backend started."""
        self._pool.close()
        with self._lock:
            services = list(self._services)
        for container in services:
            self._end_service(container)

    def take(self, wanted: Shape | None = None) -> Container:
        """A prepared container, of the shape that is wanted.

        Raises:
            SandboxError: none can be had.
        """
        if wanted is not None and not self._shape.serves(wanted):
            self._shape = wanted  # what one run wants the next ones will want too
        while True:
            container = self._pool.take()
            assert container.shape is not None
            if wanted is None or container.shape.serves(wanted):
                return container
            self._pool.discard(container)

    def discard(self, container: Container) -> None:
        """Removes a container in the background."""
        self._pool.discard(container)

    def remove(self, identity: str) -> None:
        """Removes a container now, if it is still there."""
        errors = _package().errors
        with translated("a container could not be removed"), contextlib.suppress(errors.NotFound):
            try:
                self._client().remove_container(identity, force=True, v=True)
            except errors.APIError as error:
                if error.status_code != 409:  # the daemon is at it already
                    raise

    def ran_out_of_memory(self, container: Container) -> bool:
        """Whether the daemon saw the kernel kill in that container for its memory."""
        filters = {"container": container.identity, "event": "oom"}
        with contextlib.suppress(SandboxError), translated("the daemon tells no events"):
            events = self._client().events(
                since=int(container.started) - 1,
                until=int(time.time()) + 1,
                filters=filters,
                decode=True,
            )
            return any(True for _ in events)
        return False

    def _end_service(self, container: Container) -> None:
        with self._lock:
            self._services.discard(container)
        with contextlib.suppress(SandboxError):
            container.close()

    def _client(self) -> Any:
        """This thread's own client: connections are not shared between threads."""
        if not hasattr(self._clients, "client"):
            self._clients.client = connect()
        return self._clients.client

    def _prepare(self) -> Container:
        """A container with a warm warden in it."""
        shape = self._shape
        memory_bytes = shape.memory_bytes + _WARDEN_MEMORY_BYTES
        options = {
            "cap_drop": ["ALL"],
            "cap_add": list(_CAPABILITIES),
            "mem_limit": memory_bytes,
            "memswap_limit": memory_bytes,
            "pids_limit": shape.processes + _WARDEN_PROCESSES,
            "tmpfs": dict.fromkeys(
                shape.roots, f"{_TMPFS},size={shape.disk_bytes},nr_inodes={layout.INODES}"
            ),
        }
        container = self._start(self._images["python"], options, "0:0", layout.ENVIRONMENT)
        container.shape = shape
        config = {
            "mode": "users",
            "user": _FIRST_USER + next(self._blocks) % _BLOCKS * _USERS,
            "own_network": False,
            "groups": None,
            "spare_processes": 0,
            "warm": [*layout.WARM_MODULES],
            "open_folders": sorted(shape.roots),
        }
        try:
            container.link = WardenLink(container.stream, config)
            container.link.boot()
            container.link.await_hello()
        except BaseException:
            container.close()
            raise
        return container

    def _start(self, image: str, options: dict[str, Any], user: str, environment: Any) -> Container:
        """Starts a container in which an interpreter waits for its boot frame."""
        client = self._client()
        ulimit = _package().types.Ulimit
        with translated("a container could not be started"):
            host = client.create_host_config(
                network_mode="none",
                read_only=True,
                ipc_mode="none",
                security_opt=["no-new-privileges"],
                nano_cpus=1_000_000_000,
                log_config={"type": "none"},
                ulimits=[
                    ulimit(name="nofile", soft=1024, hard=1024),
                    ulimit(name="core", soft=0, hard=0),
                ],
                auto_remove=True,
                runtime=self._runtime,
                **options,
            )
            created = client.create_container(
                image,
                entrypoint=[layout.INTERPRETER, *layout.PYTHON_FLAGS, "-c", BOOT],
                command=[],
                name=f"judge-{secrets.token_hex(8)}",
                hostname="sandbox",
                user=user,
                working_dir="/",
                stdin_open=True,
                network_disabled=True,
                environment=dict(environment),
                labels={_LABEL: self._owner.label()},
                host_config=host,
            )
            identity = created["Id"]
            try:
                wanted = {"stdin": 1, "stdout": 1, "stderr": 1, "stream": 1}
                stream = ContainerStream(client.attach_socket(identity, params=wanted))
                client.start(identity)
            except BaseException:
                self.remove(identity)
                raise
        return Container(self, identity, stream)

    def _describe(self, client: Any) -> SandboxInfo:
        from judge.sandbox import roots  # noqa: PLC0415 - only the pins are wanted

        with translated("the daemon does not describe itself"):
            facts = client.info()
            labels = client.inspect_image(self._image_id)["Config"].get("Labels") or {}
        runtime = self._runtime or facts.get("DefaultRuntime", "")
        return SandboxInfo(
            backend="docker",
            image=f"{self._images['python']}@{self._image_id.removeprefix('sha256:')[:16]}",
            python=labels.get("judge.sandbox.python", ""),
            packages=MappingProxyType(roots.pins()),
            runtime=f"Docker {facts.get('ServerVersion', '')}, {runtime}",
            isolation=MappingProxyType(
                {
                    "memory limit": f"by control group, version {facts.get('CgroupVersion', '1')}",
                    "processor time": "by control group",
                    "user": "a user of its own for each case",
                    "network": "none",
                    "system call filter": "yes",
                }
            ),
        )

    def _reap(self, client: Any) -> None:
        """Removes containers of judges on this host that are no more."""
        with translated("containers left over could not be removed"):
            found = client.containers(all=True, filters={"label": _LABEL})
        for container in found:
            owner = Owner.from_label(container.get("Labels", {}).get(_LABEL, ""))
            if owner is not None and self._owner.knows_gone(owner):
                self.remove(container["Id"])


@dataclass(frozen=True, slots=True)
class Owner:
    """The judge that a container belongs to, as far as another judge can tell.

    Attributes:
        host: the machine.
        boot: the machine's current run.
        space: process namespace of the judge, in which its id means something.
        pid: its process id.
        started: when that process started, in clock ticks since boot; ids are used again.
    """

    host: str
    boot: str
    space: str
    pid: int
    started: str

    @classmethod
    def this_process(cls) -> Self:
        """The judge that this code runs in."""
        pid = os.getpid()
        return cls(
            host=_read("/etc/machine-id") or socket.gethostname(),
            boot=_read("/proc/sys/kernel/random/boot_id"),
            space=str(Path("/proc/self/ns/pid").readlink()),
            pid=pid,
            started=_start_of(pid),
        )

    def label(self) -> str:
        """As the text of a label."""
        return " ".join((self.host, self.boot, self.space, str(self.pid), self.started))

    @classmethod
    def from_label(cls, text: str) -> Self | None:
        """From the text of a label; None where it is not one of ours."""
        parts = text.split(" ")
        if len(parts) != 5 or not parts[3].isdigit():
            return None
        return cls(parts[0], parts[1], parts[2], int(parts[3]), parts[4])

    def knows_gone(self, other: Owner) -> bool:
        """Whether this judge can be sure that the other one is no more."""
        if other.host != self.host:
            return False
        if other.boot != self.boot:
            return True
        return other.space == self.space and _start_of(other.pid) != other.started


def _read(path: str) -> str:
    try:
        return Path(path).read_text().strip()
    except OSError:
        return ""


def _start_of(pid: int) -> str:
    """Start time of a process in clock ticks since boot; empty where there is none."""
    fields = _read(f"/proc/{pid}/stat").rpartition(")")[2].split()
    return fields[19] if len(fields) > 19 else ""
