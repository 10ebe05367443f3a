"""The sandbox of a Docker daemon, local or remote: nothing is mounted, all data goes over streams.

The warden is a container's main process. When the judge closes the connection, the daemon closes
the warden's input, the warden ends, and the daemon removes the container. If the host lets a
container create namespaces, each case gets its own namespaces inside, and a container is used for
many submissions; otherwise each submission has its own container.
"""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import os
import secrets
import threading
import time
import weakref
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from importlib import resources
from types import MappingProxyType
from typing import Any, Self

from judge.closable import Closable
from judge.core.limits import MIB, Limits
from judge.errors import SandboxError
from judge.sandbox import layout, roots
from judge.sandbox.backends.daemon import ContainerSpec, Daemon
from judge.sandbox.bundle import BOOT
from judge.sandbox.contract import (
    Backend,
    BackendFinding,
    OutputStatus,
    RunRequest,
    RunResult,
    RunStatus,
    SandboxInfo,
    ServiceChannel,
)
from judge.sandbox.link import (
    ContainerStream,
    FrameChannel,
    SandboxGoneError,
    WardenLink,
    start_service,
)
from judge.sandbox.owner import Owner
from judge.sandbox.pool import Pool
from judge.sandbox.roots import root_named


@dataclass(frozen=True, slots=True)
class Shape:
    """The limits of a container; a run that needs other limits gets another container.

    Attributes:
        memory_bytes: memory limit of a run.
        disk_bytes: size of each writable mount.
        processes: greatest number of processes of a run.
        roots: folders of the writable mounts.
    """

    memory_bytes: int
    disk_bytes: int
    processes: int
    roots: frozenset[str]

    @classmethod
    def of(cls, limits: Limits, roots: frozenset[str]) -> Self:
        """The shape that a run with these limits needs."""
        return cls(limits.memory_bytes, layout.disk_bytes(limits), limits.processes, roots)

    def serves(self, needed: Shape, *, nested: bool) -> bool:
        """Whether a container of this shape is right for a run that needs ``needed``.

        With namespaces, each case has mounts of its own. Otherwise, a case has the mounts of the
        container: if there were more of them than the run needs, earlier submissions would decide
        where a program can write.
        """
        return needed == (replace(self, roots=needed.roots) if nested else self)


class Container:
    """A started container with a trusted program in it."""

    def __init__(self, daemon: Daemon, spec: ContainerSpec) -> None:
        self._daemon = daemon
        self._lock = threading.Lock()
        self._closed = False
        self._started = time.time()
        identity, stream = daemon.start(spec)
        self._identity = identity
        self.stream: ContainerStream = stream

    def end(self) -> None:
        """Removes the container while another thread is talking to it; its stream then ends."""
        with self._lock:
            if not self._closed:
                self._daemon.remove(self._identity)

    def close(self) -> None:
        """Removes the container; safe to call twice."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
        self.stream.close()
        self._daemon.remove(self._identity)

    def ran_out_of_memory(self) -> bool:
        """Whether the kernel killed a process in the container because of its memory limit."""
        return self._daemon.ran_out_of_memory(self._identity, self._started)


_NAME = "docker"
_NESTED = {"0": False, "1": True}
"""Values of ``JUDGE_DOCKER_NESTED``."""

PYTHON_IMAGE = "judge-sandbox"
PYTHON_LABEL = "judge.sandbox.python"
BASE_LABEL = "judge.sandbox.base"
BUILD_HINT = "run: judge sandbox build --backend docker"
_BOOT_COMMAND = (layout.INTERPRETER, *layout.PYTHON_FLAGS, "-c", BOOT)
_CAPABILITIES = (
    "SETUID",  # to run each case as another user
    "SETGID",
    "KILL",  # to kill the processes that this user left behind
)
_WARDEN_MEMORY_BYTES = 256 * MIB
_WARDEN_PROCESSES = 8  # for the warden itself, on top of the processes of a case
_SERVICE_PROCESSES = 512
_ROOT, _NOBODY = "0:0", "65534:65534"
_FIRST_USER, _USERS, _BLOCKS = 10_000, 100, 500
_NESTED_USER = 1000
_NESTED_WARDENS = 2  # the warden's own processes, which count towards the limit of a case
_TMPFS = "rw,nosuid,nodev,noexec,mode=1777"
_USUAL_ROOTS = frozenset({"/home", "/mnt", "/tmp", "/data", "/dev/shm"})  # noqa: S108 - inside


class WarmContainer:
    """A container with a warm warden.

    Args:
        container: the container, not booted yet.
        shape: the shape for which it was made.
        config: the warden's configuration; see ``judge.sandbox.warden.zygote.main``.
        nested: whether it makes namespaces for each case, so that it can be used for many
            submissions.
    """

    def __init__(
        self, container: Container, shape: Shape, config: dict[str, Any], *, nested: bool
    ) -> None:
        self.container = container
        self.shape = shape
        self.nested = nested
        self._watched = ("/",) if nested else tuple(sorted(shape.roots))
        self._link = WardenLink(container.stream, config)
        try:
            self._link.boot()
            self._link.await_greeting()
        except BaseException:
            container.close()
            raise

    def run(self, request: RunRequest) -> RunResult:
        """Runs one program."""
        return self._link.run(request, self._watched)

    def serves(self, needed: Shape) -> bool:
        """Whether this container can run a program that needs this shape."""
        return self.shape.serves(needed, nested=self.nested)

    def end(self) -> None:
        """Removes the container while another thread is talking to it."""
        self.container.end()

    def close(self) -> None:
        """Removes the container; safe to call twice."""
        self.container.close()


class DockerSession(Closable):
    """The cases of one submission, in one container."""

    def __init__(self, sandbox: DockerSandbox) -> None:
        self._sandbox = sandbox
        self._container: WarmContainer | None = sandbox.take()
        self._ended = False

    def run(self, request: RunRequest) -> RunResult:
        """Runs one program."""
        if self._ended:
            raise SandboxError("this session has ended")
        mounts = frozenset(layout.folders_of(request)) | _USUAL_ROOTS
        shape = Shape.of(request.limits, mounts)
        self._sandbox.expect(request.program)
        container = self._container
        if container is None or not container.serves(shape):
            self._drop(reusable=True)
            container = self._container = self._sandbox.take(shape)
        started = time.monotonic()
        try:
            return container.run(request)
        except SandboxGoneError:
            self._drop(reusable=False)
            if container.container.ran_out_of_memory():
                return _killed_for_memory(time.monotonic() - started)
            self._ended = True
            raise
        except BaseException:
            self._ended = True
            self._drop(reusable=False)
            raise

    def close(self) -> None:
        """Releases the container."""
        self._ended = True
        self._drop(reusable=True)

    def _drop(self, *, reusable: bool) -> None:
        container, self._container = self._container, None
        if container is not None:
            self._sandbox.give_up(container, reusable=reusable)


def content_identity(tag: str, labels: Mapping[str, str], architecture: str) -> str:
    """Makes an id from the contents of an image, because the daemon's id changes with every build.

    Args:
        tag: the tag, which is a digest of the recipe and of the pinned packages.
        labels: the image's labels: the version of its interpreter, and the base that a user chose.
        architecture: the architecture of the daemon's machine.
    """
    base = labels.get(BASE_LABEL)
    python = f"Python {labels.get(PYTHON_LABEL, '')}, {architecture}"
    return f"{tag}, {python}" + (f", on {base}" if base else "")


def _killed_for_memory(wall_s: float) -> RunResult:
    return RunResult(
        status=RunStatus.MEMORY_LIMIT,
        output_status=OutputStatus.MISSING,
        wall_s=wall_s,
        detail="the kernel killed the whole container for its memory limit",
    )


class DockerSandbox:
    """The backend; see ``judge.sandbox.contract.Sandbox``.

    Args:
        images: name of a root -> tag of its image; ``python`` is the root for solutions.
        jobs: how many sessions are open at once; the same number of containers is kept ready.
        runtime: container runtime instead of the daemon's default, such as ``runsc``.
        nested: whether to make namespaces for each case inside the container, which is then used
            for many submissions (see docs/security.md); None to do so if the host allows it.

    Raises:
        SandboxError: no daemon answers, or the image does not exist.
    """

    def __init__(
        self,
        images: Mapping[str, str],
        *,
        jobs: int = 1,
        runtime: str | None = None,
        nested: bool | None = None,
    ) -> None:
        self._daemon = Daemon()
        self._images = dict(images)
        image_id = self._daemon.own_image_id(self._images["python"])
        if image_id is None:
            raise SandboxError(
                f"the image {self._images['python']} does not exist", hint=BUILD_HINT
            )
        self._image_id = image_id
        self._runtime = runtime
        self._nested = nested
        self._deciding = threading.Lock()
        self._owner = Owner.this_process()
        self._blocks = itertools.count(secrets.randbelow(_BLOCKS))
        self._shape = Shape.of(Limits(), _USUAL_ROOTS)
        self._modules: set[str] = set()
        self._pool: Pool[WarmContainer] = Pool(
            self._prepare, jobs, reusable=lambda: self._nested is True
        )
        self._warm_containers: weakref.WeakSet[WarmContainer] = weakref.WeakSet()
        self._services: set[Container] = set()
        self._lock = threading.Lock()
        self._reap()

    @property
    def info(self) -> SandboxInfo:
        """Description of this backend; the first container shows how cases are separated."""
        user = "a separate user for each case"
        if self._nested is None:
            user = "a separate user or separate namespaces for each case"
        elif self._nested:
            user = "without capabilities, in separate namespaces for each case"
        isolation = MappingProxyType({**self._info.isolation, "user": user})
        return replace(self._info, isolation=isolation)

    @cached_property
    def _info(self) -> SandboxInfo:
        facts = self._daemon.facts()
        labels = self._daemon.image_labels(self._image_id)
        runtime = self._runtime or facts.get("DefaultRuntime", "")
        return SandboxInfo(
            backend=_NAME,
            image=content_identity(self._images["python"], labels, facts.get("Architecture", "")),
            former_image=f"{self._images['python']}@{self._image_id.removeprefix('sha256:')[:16]}",
            python=labels.get(PYTHON_LABEL, ""),
            packages=MappingProxyType(roots.pins()),
            runtime=f"Docker {facts.get('ServerVersion', '')}, {runtime}",
            isolation=MappingProxyType(
                {
                    "memory limit": f"by control group, version {facts.get('CgroupVersion', '1')}",
                    "processor time": "by control group",
                    "network": "none",
                    "system call filter": "yes",
                }
            ),
        )

    def session(self) -> DockerSession:
        """Opens a session for one submission."""
        return DockerSession(self)

    def has_root(self, root: str) -> bool:
        """Whether :meth:`service` is available for that root."""
        return self.root_digest(root) is not None

    def root_digest(self, root: str) -> str | None:
        """The id of the image for that root; None if there is no image."""
        tag = self._images.get(root)
        if tag is None and root.startswith(roots.SERVER_ROOT):
            tag = server_tag(root_named(root))
        return None if tag is None else self._daemon.own_image_id(tag)

    def service(
        self, program: str, *, root: str = "python", memory_bytes: int | None = None
    ) -> ServiceChannel:
        """Starts one of the judge's own programs inside."""
        kind = root_named(root)
        image = self.root_digest(root)
        if image is None:
            raise SandboxError(
                f"the image {self._images.get(root, root)} does not exist",
                hint=f"run: {kind.command} --backend docker",
            )
        memory_bytes = memory_bytes or kind.memory_bytes
        sizes = kind.sizes(memory_bytes)
        spec = ContainerSpec(
            image=image,
            command=_BOOT_COMMAND,
            user=_NOBODY,
            environment={"HOME": kind.home},
            memory_bytes=memory_bytes,
            processes=_SERVICE_PROCESSES,
            mounts={folder: f"{_TMPFS},size={size}" for folder, size in sizes.items()},
            runtime=self._runtime,
            label=self._owner.label(),
        )
        container = Container(self._daemon, spec)
        with self._lock:
            self._services.add(container)
        config = {
            "program": program,
            "user": None,
            "path": [*kind.path],
            "watch_bytes": None,
            "home": kind.home,
            "first": kind.is_process_1,
            "processes": None,
        }
        try:
            start_service(container.stream, config)
        except BaseException:
            self._end_service(container)
            raise
        return FrameChannel(container.stream, lambda: self._end_service(container))

    def close(self) -> None:
        """Ends everything that this backend started, including sessions that are in use."""
        self._pool.close()
        with self._lock:
            services, warm_containers = list(self._services), list(self._warm_containers)
        for warm_container in warm_containers:
            with contextlib.suppress(SandboxError):
                warm_container.end()
        for container in services:
            self._end_service(container)
        # A daemon that was restarted recently may have failed to remove these at the start.
        with contextlib.suppress(SandboxError):
            self._reap()

    def take(self, shape: Shape | None = None) -> WarmContainer:
        """Takes a prepared container of the required shape from the pool.

        Raises:
            SandboxError: none is available.
        """
        while True:
            if shape is not None:
                self._shape = shape  # the next runs will probably need the same
            container = self._pool.take()
            if shape is None or container.serves(shape):
                return container
            self._pool.discard(container)

    def expect(self, program: str) -> None:
        """Lets containers that are prepared from now on import what this program mentions.

        The next programs will probably need the same. A container that serves a single submission
        imports it while it waits to be taken.
        """
        self._modules.update(layout.modules_to_warm(program))

    def give_up(self, container: WarmContainer, *, reusable: bool) -> None:
        """Returns a container to the pool, or removes it in the background."""
        if reusable and container.nested:
            self._pool.give_back(container)
        else:
            self._pool.discard(container)

    def _end_service(self, container: Container) -> None:
        with self._lock:
            self._services.discard(container)
        with contextlib.suppress(SandboxError):
            container.close()

    def _prepare(self) -> WarmContainer:
        """Starts a container with a warm warden; the first one shows what the host allows."""
        with self._deciding:
            if self._nested is None:
                return self._prepare_first()
        return self._make(nested=self._nested)

    def _prepare_first(self) -> WarmContainer:
        try:
            container = self._make(nested=True)
            try:
                container.run(RunRequest("", {}, None))
            except BaseException:
                container.close()
                raise
        except SandboxError:
            container = self._make(
                nested=False
            )  # this raises too, unless namespaces were the reason
        self._nested = container.nested
        return container

    def _make(self, *, nested: bool) -> WarmContainer:
        shape = self._shape
        mounts = {"/run": f"{_TMPFS},size={MIB}"}
        if not nested:
            size = f"{_TMPFS},size={shape.disk_bytes},nr_inodes={layout.INODES}"
            mounts = dict.fromkeys(shape.roots, size)
        spec = ContainerSpec(
            image=self._image_id,  # not the name, which may belong to another image by now
            command=_BOOT_COMMAND,
            user=_NOBODY if nested else _ROOT,
            environment=layout.ENVIRONMENT,
            memory_bytes=shape.memory_bytes + _WARDEN_MEMORY_BYTES,
            processes=shape.processes + _WARDEN_PROCESSES,
            mounts=mounts,
            capabilities=() if nested else _CAPABILITIES,
            nests=nested,
            runtime=self._runtime,
            label=self._owner.label(),
        )
        config: dict[str, Any] = {
            "mode": "namespaces" if nested else "users",
            "user": None if nested else _FIRST_USER + next(self._blocks) % _BLOCKS * _USERS,
            "nested": _NESTED_USER if nested else None,
            "groups": None,
            "bound_bytes": spec.memory_bytes,
            "spare_processes": _NESTED_WARDENS if nested else 0,
            "warm": sorted(self._modules),
            "open_folders": [] if nested else sorted(mounts),
        }
        container = WarmContainer(Container(self._daemon, spec), shape, config, nested=nested)
        with self._lock:
            self._warm_containers.add(container)
        return container

    def _reap(self) -> None:
        """Removes containers whose judges ran on this host and have ended.

        A container that cannot be removed is ignored; a killed daemon may leave such containers.
        """
        for identity, label in self._daemon.labelled().items():
            owner = Owner.from_label(label)
            if owner is not None and self._owner.knows_ended(owner):
                with contextlib.suppress(SandboxError):
                    self._daemon.remove(identity)


# -- images, and probes of this machine -----------------------------------------------------------


def python_tag() -> str:
    """Name of the image for solutions, derived from everything in it."""
    digest = hashlib.sha256()
    for name in ("Dockerfile", "solutions.lock", "engines.lock"):
        digest.update(image_file(name).encode() + b"\0")
    return f"{PYTHON_IMAGE}:{digest.hexdigest()[:16]}"


def image_tags() -> dict[str, str]:
    """Name of each root -> name of its image."""
    return {
        name: python_tag() if root.recipe is None else debian_tag(name, root.recipe)
        for name, root in roots.ROOTS.items()
    }


def debian_tag(name: str, recipe: roots.Recipe) -> str:
    """Name of the image for a root of Debian packages."""
    return f"judge-{name}:{recipe.digest}"


def server_tag(root: roots.ServiceRoot) -> str:
    """Name of the image for the root of an MCP server."""
    assert root.content is not None, f"{root.name} is not the root of a server"
    digest = hashlib.sha256(
        f"{python_tag()}\0{roots.SERVER_CONTENT}\0{root.content.name}".encode()
    ).hexdigest()
    return f"judge-mcp:{digest[:32]}"


def image_file(name: str) -> str:
    """Reads a file from which the images are made, such as ``Dockerfile``."""
    return resources.files("judge.sandbox.image").joinpath(name).read_text("utf-8")


def _open(jobs: int) -> DockerSandbox:
    return DockerSandbox(
        image_tags(),
        jobs=jobs,
        runtime=os.environ.get("JUDGE_DOCKER_RUNTIME") or None,
        nested=_NESTED.get(os.environ.get("JUDGE_DOCKER_NESTED", "")),
    )


def _probe() -> list[BackendFinding]:
    """Checks whether a daemon answers, and which images it has."""
    try:
        daemon = Daemon()
        facts = daemon.facts()
        tags = image_tags()
        present = {name: daemon.image_id(tag) for name, tag in tags.items()}
    except SandboxError as error:
        return [
            BackendFinding("Docker daemon", ok=False, detail=error.message, fix=error.hint or "")
        ]
    detail = f"{facts.get('ServerVersion')}, {facts.get('DefaultRuntime')}"
    detail += f", cgroup version {facts.get('CgroupVersion', '1')}"
    findings = [BackendFinding("Docker daemon", ok=True, detail=detail)]
    for name, identity in present.items():
        root, tag = roots.ROOTS[name], tags[name]
        findings.append(
            BackendFinding(
                f"{root.title} image for Docker",
                identity is not None,
                tag if identity else f"{tag} does not exist",
                "" if identity else f"{root.command} --backend docker",
                backend=_NAME if name == roots.SOLUTIONS else "",
            )
        )
    return findings


BACKEND = Backend("Docker", _open, _probe)
