"""Talks to the Docker daemon, local or remote; no other module imports the ``docker`` package.

The environment (``DOCKER_HOST`` and related variables) names the daemon, as for Docker's own
client. Errors of the daemon or the connection become a ``SandboxError``.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import secrets
import shutil
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import IO, Any

from judge.console import visible
from judge.errors import SandboxError
from judge.files.documents import read_kept
from judge.files.paths import cache_folder
from judge.files.writing import write_whole
from judge.sandbox.link import ContainerStream
from judge.sandbox.warden import filter as call_filter

_HINT = "start the daemon, check DOCKER_HOST, or use --sandbox bubblewrap"
_DAEMON_PATH = f"{os.defpath}:/usr/local/bin:/usr/sbin:/usr/local/sbin:/sbin"
_LABEL = "judge.sandbox"
_ANY_VERSION = "auto"  # the client asks the daemon which version of the API it speaks
_GREETING_TIMEOUT_S = 10
_API_TIMEOUT_S = 60
_EVENT_DELAY_S = 3
"""Seconds that the daemon may take to report that the kernel killed a process in a container."""
_DESCRIPTORS = 1024  # open files of each process
_NANO_CPUS = 1_000_000_000  # one processor
_NAMESPACE_CALLS = frozenset({"mount", "umount2", "pivot_root", "unshare", "setns"})


def _package() -> Any:
    try:
        import docker  # noqa: PLC0415 - slow, and only needed for this backend
    except ImportError as error:
        raise SandboxError(
            "the Python package `docker` is missing", hint="run: python -m pip install docker"
        ) from error
    return docker


@contextlib.contextmanager
def _translated(failure: str) -> Iterator[None]:
    from requests.exceptions import RequestException  # noqa: PLC0415 - comes with docker

    try:
        yield
    except _package().errors.DockerException as error:
        reason = getattr(error, "explanation", None) or str(error)
        raise SandboxError(f"{failure}: {reason}", hint=_HINT) from error
    except (RequestException, OSError) as error:
        raise SandboxError(f"{failure}: {error}", hint=_HINT) from error


def _connect(version: str) -> Any:
    """A client that speaks a version of the API, of a daemon that has just answered."""
    docker = _package()
    try:
        parameters = docker.utils.kwargs_from_env()
        client = docker.APIClient(version=version, timeout=_GREETING_TIMEOUT_S, **parameters)
        if version != _ANY_VERSION:
            client.ping()  # so that a daemon that hangs is noticed as soon as by the first client
    except (docker.errors.DockerException, OSError, ValueError) as error:
        # ValueError: an invalid address reaches the library that parses it
        installed = shutil.which("dockerd", path=_DAEMON_PATH) is not None
        host = os.environ.get("DOCKER_HOST")
        message, hint = explain_unreachable(error, host=host, installed=installed)
        raise SandboxError(message, hint=hint) from error
    client.timeout = _API_TIMEOUT_S  # once the daemon has answered, real work may take longer
    return client


@dataclass(frozen=True, slots=True)
class ContainerSpec:
    """A container to start; all other properties are the same for every container.

    Attributes:
        image: its image.
        command: its main program.
        user: ``uid:gid`` of the main program.
        environment: the environment of the main program.
        memory_bytes: limit on memory and swap together.
        processes: limit on processes and threads.
        mounts: folder -> options of the tmpfs there.
        capabilities: capabilities that are not dropped.
        nests: whether the main program makes namespaces inside (see docs/security.md).
        runtime: container runtime; None for the daemon's default.
        label: the label that names its owner.
    """

    image: str
    command: tuple[str, ...]
    user: str
    environment: Mapping[str, str]
    memory_bytes: int
    processes: int
    mounts: Mapping[str, str]
    capabilities: tuple[str, ...] = ()
    nests: bool = False
    runtime: str | None = None
    label: str = ""
    hostname: str = field(default="sandbox")


class Daemon:
    """A connection to the daemon, for several threads.

    Raises:
        SandboxError: no daemon answers.
    """

    def __init__(self) -> None:
        self._local = threading.local()
        self._errors = _package().errors
        self._version = _ANY_VERSION  # each answer costs the daemon two processes
        self._version = self._api.api_version  # contacts the daemon

    @property
    def _api(self) -> Any:
        """This thread's own client: connections are not shared between threads."""
        if not hasattr(self._local, "api"):
            self._local.api = _connect(self._version)
        return self._local.api

    def facts(self) -> dict[str, Any]:
        """The daemon's report about itself, which is requested once."""
        return dict(self._facts)

    @cached_property
    def _facts(self) -> Any:
        with _translated("the Docker daemon does not describe itself"):
            return self._api.info()

    def image_id(self, tag: str) -> str | None:
        """An image's id; None if the image does not exist."""
        with _translated(f"the Docker daemon does not report whether {tag} exists"):
            try:
                return str(self._api.inspect_image(tag)["Id"])
            except self._errors.ImageNotFound:
                return None

    @cached_property
    def _identity(self) -> str:
        """A key that distinguishes this daemon from other daemons."""
        return str(self.facts().get("ID", ""))

    def own_image_id(self, tag: str) -> str | None:
        """The id of an image that the judge made; None if there is no image of that name.

        A name can be reassigned to another image. So the id of the image that was built, or first
        used, under a name is noted in the cache folder, for each daemon.

        Raises:
            SandboxError: the name now belongs to another image.
        """
        image = self.image_id(tag)
        if image is None:
            return None
        noted = read_kept(self._note_of(tag))
        if not isinstance(noted, dict) or "image" not in noted:
            self.note_image(tag)
        elif noted["image"] != image:
            raise SandboxError(
                f"the image {tag} is not the one that was built here: its id is {image}, and was "
                f"{visible(str(noted['image']))[:80]}",
                hint="`judge sandbox build` builds it again.",
            )
        return image

    def note_image(self, tag: str) -> None:
        """Notes the id of an image that was just built; a full disk does not fail the build."""
        path = self._note_of(tag)
        with contextlib.suppress(OSError):
            path.parent.mkdir(parents=True, exist_ok=True)
            write_whole(path, json.dumps({"tag": tag, "image": self.image_id(tag)}).encode())

    def _note_of(self, tag: str) -> Path:
        name = f"{self._identity} {tag}"
        return cache_folder() / "images" / f"{hashlib.sha256(name.encode()).hexdigest()[:32]}.json"

    def image_labels(self, tag: str) -> dict[str, str]:
        """The labels of an image."""
        with _translated(f"the Docker daemon does not describe {tag}"):
            return dict(self._api.inspect_image(tag)["Config"].get("Labels") or {})

    # ---- containers

    def start(self, spec: ContainerSpec) -> tuple[str, ContainerStream]:
        """Starts a container.

        Returns:
            Its id, and the stream to its main program.
        """
        api = self._api
        with _translated("a container could not be started"):
            created = api.create_container(
                spec.image,
                entrypoint=list(spec.command),
                command=[],
                name=f"judge-{secrets.token_hex(8)}",
                hostname=spec.hostname,
                user=spec.user,
                working_dir="/",
                stdin_open=True,
                network_disabled=True,
                environment=dict(spec.environment),
                labels={_LABEL: spec.label},
                host_config=self._host_config(spec),
            )
            identity = str(created["Id"])
            try:
                parameters = {"stdin": 1, "stdout": 1, "stderr": 1, "stream": 1}
                stream = ContainerStream(api.attach_socket(identity, params=parameters))
                api.start(identity)
            except BaseException:
                self.remove(identity)
                raise
        return identity, stream

    def _host_config(self, spec: ContainerSpec) -> dict[str, Any]:
        ulimit = _package().types.Ulimit
        config: dict[str, Any] = self._api.create_host_config(
            network_mode="none",
            read_only=True,
            ipc_mode="none",
            cap_drop=["ALL"],
            cap_add=list(spec.capabilities),
            security_opt=["no-new-privileges"],
            mem_limit=spec.memory_bytes,
            memswap_limit=spec.memory_bytes,
            pids_limit=spec.processes,
            nano_cpus=_NANO_CPUS,
            tmpfs={folder: self._mount_options(text) for folder, text in spec.mounts.items()},
            log_config={"type": "none"},
            ulimits=[
                ulimit(name="nofile", soft=_DESCRIPTORS, hard=_DESCRIPTORS),
                ulimit(name="core", soft=0, hard=0),
            ],
            auto_remove=True,
            runtime=spec.runtime,
        )
        if spec.nests:
            config["SecurityOpt"] += [f"seccomp={json.dumps(_nesting_profile())}"]
            # with a masked /proc no nested one can be mounted; the nested one does not show more
            config["MaskedPaths"] = config["ReadonlyPaths"] = []
        return config

    def _mount_options(self, options: str) -> str:
        """Adapts the options of a tmpfs to this engine: Podman does not have a limit on inodes."""
        if not self._is_podman:
            return options
        return ",".join(
            option for option in options.split(",") if not option.startswith("nr_inodes=")
        )

    @cached_property
    def _is_podman(self) -> bool:
        with _translated("the Docker daemon does not report its version"):
            parts = self._api.version().get("Components") or []
        return any("podman" in str(part.get("Name", "")).lower() for part in parts)

    def remove(self, identity: str) -> None:
        """Removes a container now, if it still exists."""
        with (
            _translated("a container could not be removed"),
            contextlib.suppress(self._errors.NotFound),
        ):
            try:
                self._api.remove_container(identity, force=True, v=True)
            except self._errors.APIError as error:
                if error.status_code != 409:  # the daemon is already removing it
                    raise

    def labelled(self) -> dict[str, str]:
        """The containers of all judges: id -> label."""
        with _translated("the Docker daemon does not list its containers"):
            containers = self._api.containers(all=True, filters={"label": _LABEL})
            return {
                str(container["Id"]): str(container["Labels"].get(_LABEL, ""))
                for container in containers
            }

    def ran_out_of_memory(self, identity: str, since: float) -> bool:
        """Whether the kernel killed a container's process for memory, according to daemon events.

        Args:
            identity: the id of the container, which may no longer exist.
            since: the time from which to search, in seconds since the epoch.
        """
        filters = {"container": identity, "event": "oom"}
        with (
            contextlib.suppress(SandboxError),
            _translated("the Docker daemon does not report events"),
        ):
            events = self._api.events(
                since=int(since) - 1,
                until=int(time.time()) + _EVENT_DELAY_S,
                filters=filters,
                decode=True,
            )
            return any(True for _ in events)
        return False

    # ---- images

    def pull(self, tag: str) -> str | None:
        """Pulls an image; returns the reason if that fails."""
        try:
            with _translated(tag):
                self._api.pull(*tag.rsplit(":", 1))
        except SandboxError as error:
            return error.message
        return None if self.image_id(tag) is not None else f"{tag} does not exist after its pull"

    def run_plain(self, image: str, command: list[str]) -> str:
        """Runs a trusted command in a container without a network; returns its output."""
        api = self._api
        with _translated(f"{image} could not be run"):
            host = api.create_host_config(network_mode="none")
            container = api.create_container(
                image, command=command, entrypoint=[], host_config=host
            )
            try:
                api.start(container)
                api.wait(container)
                return str(api.logs(container, stderr=False).decode(errors="replace"))
            finally:
                api.remove_container(container, force=True)

    def import_tarball(self, tarball: Path, tag: str) -> None:
        """Makes an image from a filesystem in a tar file."""
        repository, _, version = tag.partition(":")
        with _translated(f"{tag} could not be imported"), tarball.open("rb") as file:
            self._api.import_image_from_data(file, repository=repository, tag=version)
        if self.image_id(tag) is None:
            raise SandboxError(f"{tag} does not exist after its import")

    def build(
        self,
        context: IO[bytes],
        tag: str,
        arguments: Mapping[str, str],
        labels: Mapping[str, str],
    ) -> None:
        """Builds an image, without a network, from a context in a tar file."""
        output = []
        with _translated(f"{tag} could not be built"):
            steps = self._api.build(
                fileobj=context,
                custom_context=True,
                tag=tag,
                rm=True,
                forcerm=True,
                pull=False,
                network_mode="none",
                buildargs=dict(arguments),
                labels=dict(labels),
                decode=True,
            )
            for step in steps:
                if "error" in step:
                    raise SandboxError(f"{tag} could not be built: {step['error'].strip()}")
                output.append(str(step.get("stream", "")))
        if self.image_id(tag) is None:
            raise SandboxError(f"{tag} could not be built: {''.join(output)[-500:]}")


def _nesting_profile() -> dict[str, Any]:
    """The seccomp profile of a container in which the warden may make namespaces."""
    refused = sorted(set(call_filter.refused_names()) - _NAMESPACE_CALLS)
    return {
        "defaultAction": "SCMP_ACT_ALLOW",
        "archMap": [
            {
                "architecture": "SCMP_ARCH_X86_64",
                "subArchitectures": ["SCMP_ARCH_X86", "SCMP_ARCH_X32"],
            },
            {"architecture": "SCMP_ARCH_AARCH64", "subArchitectures": ["SCMP_ARCH_ARM"]},
        ],
        "syscalls": [{"names": refused, "action": "SCMP_ACT_ERRNO"}],
    }


# -- daemons that do not answer --------------------------------------------------------------------

_OTHERWISE = "or use --sandbox bubblewrap"
_FORMS = "write unix:///var/run/docker.sock or tcp://HOST:PORT, or unset it"
_FAR_HOST = f"check that the host is up and listens there; {_FORMS}"


def explain_unreachable(
    error: BaseException, *, host: str | None, installed: bool
) -> tuple[str, str]:
    """Explains why the daemon could not be reached, and what to do about it.

    Args:
        error: the client's exception, with its causes.
        host: value of ``DOCKER_HOST``; None or empty if it is not set.
        installed: whether a daemon is installed on this machine.

    Returns:
        A message and a hint, each in one line.
    """
    reason = next((cause for cause in _causes(error) if isinstance(cause, OSError)), None)
    location = f" at {host} (DOCKER_HOST)" if host else ""
    if isinstance(reason, TimeoutError) and not _is_of_the_system(reason):
        message = f"the Docker daemon{location} does not answer within {_GREETING_TIMEOUT_S} s"
        hint = (
            _FAR_HOST if _is_far(host) else "restart the daemon: systemctl restart docker (as root)"
        )
        return message, f"{hint}; {_OTHERWISE}"
    if reason is None or not _is_of_the_system(reason):
        problem = str(error).splitlines()[0] if str(error) else type(error).__name__
        if host:
            return (
                f"DOCKER_HOST is {host!r}, which cannot be used: {problem}",
                f"{_FORMS}, {_OTHERWISE}",
            )
        return f"no Docker daemon answers: {problem}", f"start the daemon, {_OTHERWISE}"
    message = f"no Docker daemon answers{location}: {reason.strerror or reason}"
    if isinstance(reason, PermissionError):
        hint = (
            "give this user access to the daemon's socket: usermod -aG docker USER (as root), "
            "then log in again"
        )
    elif _is_far(host):
        hint = _FAR_HOST
    elif host:
        hint = f"start the daemon that listens there; {_FORMS}"
    elif installed:
        hint = "start the daemon: systemctl start docker (as root)"
    else:
        hint = "apt-get install docker.io (as root)"
    return message, f"{hint}; {_OTHERWISE}"


def _is_far(host: str | None) -> bool:
    """Whether a value of ``DOCKER_HOST`` names a daemon that is not behind a local socket."""
    return bool(host) and not str(host).startswith("unix://")


def _causes(error: BaseException) -> Iterator[BaseException]:
    """Returns an error and its causes, innermost first."""
    chain: list[BaseException] = []
    cause: BaseException | None = error
    while cause is not None and cause not in chain:
        chain.append(cause)
        cause = cause.__cause__ or cause.__context__
    return reversed(chain)


def _is_of_the_system(error: OSError) -> bool:
    """Whether the kernel or the resolver raised an error; the client raises OSErrors as well."""
    return error.errno is not None
