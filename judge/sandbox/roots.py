"""The folder tree that bubblewrap shows to solutions: this interpreter and the pinned packages.

It is made once for each interpreter and set of pins, from copies: the interpreter (moved to
``/usr``, whatever its place on the host), its standard library, the shared libraries that any of
its modules needs, a few plain commands, and packages installed by pip. It contains nothing else of
the host, not even its paths.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import platform
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Callable, Iterator, Sequence
from importlib import resources
from pathlib import Path

from judge.errors import SandboxError
from judge.files.paths import cache_folder
from judge.files.writing import folder_beside
from judge.sandbox import elf, layout

_FORMAT = "3"
COMPLETE = "complete.json"
_COMMANDS = ("sh", "cat", "cp", "ls", "mkdir", "mv", "rm")
_LEFT_OUT = shutil.ignore_patterns(
    "test", "tests", "idlelib", "tkinter", "turtledemo", "ensurepip", "lib2to3", "site-packages",
    "dist-packages", "config-*", "*.a", "_tkinter*", "__pycache__",
)  # fmt: skip
BUILD_HINT = "run: judge sandbox build"

Report = Callable[[str], None]


def lock_text(name: str) -> str:
    """The pins of ``solutions`` or ``engines``, with hashes."""
    return resources.files("judge.sandbox.image").joinpath(f"{name}.lock").read_text("utf-8")


def pins(name: str = "solutions") -> dict[str, str]:
    """Package -> version, as pinned."""
    found = {}
    for line in lock_text(name).splitlines():
        if line and not line[0].isspace() and "==" in line:
            package, _, version = line.partition("==")
            found[package] = version.split()[0]
    return found


def lock_without(name: str, present: set[str]) -> str:
    """A lock without the packages in ``present``."""
    kept, keep = [], True
    for line in lock_text(name).splitlines():
        if line and not line[0].isspace():
            keep = line.partition("==")[0] not in present
        if keep:
            kept.append(line)
    return "\n".join(kept) + "\n"


def python_digest() -> str:
    """Names the root of this very interpreter, whose build is a part of its version."""
    return _digest(sys.version)


def content_identity() -> str:
    """Names what a solution can see: the version of the interpreter and the packages.

    Two builds of one version have the same name, since machines differ in nothing else.
    """
    version = f"{platform.python_implementation()} {platform.python_version()}"
    return f"python-{_digest(version)}"


def _digest(interpreter: str) -> str:
    digest = hashlib.sha256()
    parts = (_FORMAT, interpreter, platform.machine(), lock_text("solutions"), lock_text("engines"))
    for part in parts:
        digest.update(part.encode() + b"\0")
    return digest.hexdigest()[:16]


def python_root() -> Path:
    """Where this interpreter's root is, or will be."""
    return cache_folder() / "roots" / f"python-{python_digest()}"


def is_complete(root: Path) -> bool:
    """Whether a root is complete."""
    return (root / COMPLETE).is_file()


def build_python_root(report: Report) -> Path:
    """Makes the root of this interpreter if it does not exist yet.

    Args:
        report: called with each step, for people.

    Raises:
        SandboxError: a step failed; nothing incomplete is left.
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
    """A folder next to ``target`` that replaces it at the end; removed if anything fails.

    Raises:
        SandboxError: it cannot be made, filled or put in place.
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
            if not is_complete(target):  # another judge may have made it meanwhile
                raise SandboxError(f"{target} cannot be put in place: {failure}") from failure


def _copy_interpreter(work: Path) -> Path:
    """Copies interpreter and standard library below ``usr``; returns the copy's path."""
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
        found = shutil.which(name, path="/usr/bin:/bin")
        if found:
            shutil.copy2(Path(found).resolve(), work / "usr/bin" / name)
    return copy


def _copy_libraries(work: Path, interpreter: Path) -> None:
    """Puts every shared library that anything in the root needs into its ``usr/lib``."""
    loader = elf.loader_of(interpreter)
    wanting = [path for path in work.rglob("*.so*") if path.is_file() and not path.is_symlink()]
    wanting += [path for path in (work / "usr/bin").iterdir() if not path.is_symlink()]
    original = Path(getattr(sys, "_base_executable", None) or sys.executable).resolve()
    for found in elf.libraries_of([original, *wanting], loader):
        target = work / "usr/lib" / found.name
        if not found.is_relative_to(work) and not target.exists():
            shutil.copy2(found.resolve(), target)
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


def pip_command() -> list[str]:
    """The command for pip here, with the host's own configuration.

    Raises:
        SandboxError: there is none.
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


def install(lock: str, target: Path, options: Sequence[str] = ()) -> None:
    """Installs locked packages into a folder, without tests and uncompiled.

    Args:
        lock: text of the lock.
        target: the folder.
        options: more options for pip, such as those for an interpreter other than this one.

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
    """Installs pure Python packages of which the index has source archives alone.

    What builds them is pinned as well, and nothing else is taken from the index for it.

    Args:
        name: of the lock; ``NAME-build`` is the lock of what builds them.
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
        SandboxError: it failed.
    """
    command = [*pip_command(), "--quiet", "--disable-pip-version-check", "--no-input", *arguments]
    environment = None if builders is None else {**os.environ, "PYTHONPATH": str(builders)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        said = "\n".join((done.stderr or done.stdout).strip().splitlines()[-6:])
        raise SandboxError(
            f"pip failed:\n{said}",
            hint="check that pip's package index answers (pip config list), then build again",
        )


def _compile(work: Path) -> None:
    """Compiles for the interpreter that made the root; the sources' times then do not matter."""
    command = [
        sys.executable, "-m", "compileall", "-q", "-j", "0", "-f",
        "--invalidation-mode", "unchecked-hash", "-s", str(work), "-p", "/",
        str(work / "usr/lib"), str(work / layout.SITE[1:]), str(work / layout.ENGINES[1:]),
    ]  # fmt: skip
    # some packages hold files that no Python compiles (templates); they are not imported either
    subprocess.run(command, capture_output=True, check=False)
