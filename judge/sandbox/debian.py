"""Filesystems from Debian packages: if no container registry answers, and for LibreOffice.

``mmdebstrap --variant=extract`` unpacks packages without running their scripts: it is quick and
needs no chroot. Whatever is needed of what those scripts would have set up is done in hooks.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from judge.core.limits import GIB
from judge.errors import SandboxError

_HOOKS = "/usr/share/mmdebstrap/hooks/merged-usr"
_FOLDERS = "proc sys dev run home opt mnt tmp data etc"
_WANTED_MEMORY_BYTES = 3 * GIB

# LibreOffice does not start for a user without an entry.
_ACCOUNTS = (
    "printf 'root:x:0:0::/:/bin/sh\\nsolution:x:1000:1000::/home/solution:/bin/sh\\n"
    'nobody:x:65534:65534::/:/bin/sh\\n\' > "$1"/etc/passwd'
    " && printf 'root:x:0:\\nsolution:x:1000:\\nnogroup:x:65534:\\n' > \"$1\"/etc/group"
)
_SHELL = 'ln -sf dash "$1"/usr/bin/sh'
_REGISTRY = (
    # share/registry/main.xcd points there; the package's own script would have copied it
    'mkdir -p "$1"/etc/libreoffice/registry && '
    'cp -n "$1"/usr/lib/libreoffice/share/.registry/*.xcd "$1"/etc/libreoffice/registry/'
)
_SLIM = (
    'rm -rf "$1"/usr/share/doc "$1"/usr/share/man "$1"/usr/share/locale "$1"/var/cache/apt'
    ' "$1"/var/lib/apt/lists "$1"/var/lib/dpkg/info'
)

PYTHON_PACKAGES = (
    "base-files", "coreutils", "dash", "libc-bin", "libstdc++6", "python3-minimal",
    "libpython3.11-stdlib", "python3.11-minimal",
)  # fmt: skip
OFFICE_PACKAGES = (
    "base-files", "base-passwd", "coreutils", "dash", "fontconfig-config", "fonts-liberation",
    "grep", "libc-bin", "libreoffice-calc-nogui", "python3-uno", "sed",
)  # fmt: skip
OFFICE_BACKPORTS = "trixie-backports"


def _mirror() -> str | None:
    """The mirror that was requested; None leaves the choice to mmdebstrap."""
    return os.environ.get("JUDGE_DEBIAN_MIRROR")


def _scratch() -> str | None:
    """Memory rather than disk, if there is space: the package manager syncs at every step."""
    shared = Path("/dev/shm")  # noqa: S108 - a folder made there is private
    if shared.is_dir() and shutil.disk_usage(shared).free > _WANTED_MEMORY_BYTES:
        return str(shared)
    return None


_PYTHON_HOOKS = (_ACCOUNTS, _SHELL, _SLIM)
_OFFICE_HOOKS = (_ACCOUNTS, _SHELL, _REGISTRY, _SLIM)


def python_digest() -> str:
    """Changes with the recipe of :func:`python_tarball`."""
    return _digest(*PYTHON_PACKAGES, *_PYTHON_HOOKS)


def office_digest() -> str:
    """Changes with the recipe of :func:`office_tarball`."""
    return _digest(*OFFICE_PACKAGES, OFFICE_BACKPORTS, *_OFFICE_HOOKS)


def _digest(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]


@contextmanager
def python_tarball() -> Iterator[Path]:
    """A small Debian 12 with Python 3.11 as a tar file that is deleted at the end."""
    with _tarball("bookworm", PYTHON_PACKAGES, _PYTHON_HOOKS, backports=None) as tarball:
        yield tarball


@contextmanager
def office_tarball() -> Iterator[Path]:
    """A Debian 13 with LibreOffice from its backports and the UNO bridge, as a tar file."""
    with _tarball("trixie", OFFICE_PACKAGES, _OFFICE_HOOKS, backports=OFFICE_BACKPORTS) as tarball:
        yield tarball


@contextmanager
def _tarball(
    suite: str, packages: tuple[str, ...], hooks: tuple[str, ...], *, backports: str | None
) -> Iterator[Path]:
    if shutil.which("mmdebstrap") is None:
        raise SandboxError(
            "mmdebstrap is not installed; it makes this part of the sandbox from Debian packages",
            hint="run: apt-get install mmdebstrap",
        )
    with tempfile.TemporaryDirectory(prefix="judge-", dir=_scratch()) as folder:
        target = Path(folder, "root.tar")
        command = _command(suite, packages, hooks, target, backports=backports)
        environment = {**os.environ, "TMPDIR": folder}
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            said = "\n".join(done.stderr.strip().splitlines()[-6:])
            raise SandboxError(
                f"mmdebstrap failed:\n{said}",
                hint=f"check that {_mirror() or 'Debian'} answers, or name a mirror in "
                "JUDGE_DEBIAN_MIRROR",
            )
        yield target


def _command(
    suite: str,
    packages: tuple[str, ...],
    hooks: tuple[str, ...],
    target: Path,
    *,
    backports: str | None,
) -> list[str]:
    mode = "root" if os.geteuid() == 0 else "unshare"
    folders = " ".join(f'"$1"/{name}' for name in _FOLDERS.split())
    command = ["mmdebstrap", "--variant=extract", f"--mode={mode}", "--quiet"]
    command += [f"--hook-dir={_HOOKS}", f"--extract-hook=mkdir -p {folders}"]
    command += [f"--extract-hook={hook}" for hook in hooks]  # this variant runs no later ones
    command += [f"--include={','.join(packages)}"]
    if backports is not None:
        command.append(f'--aptopt=APT::Default-Release "{backports}"')
    mirror = _mirror()
    if mirror is not None:
        suites = [suite] if backports is None else [suite, backports]
        return [*command, suite, str(target), *(f"deb {mirror} {each} main" for each in suites)]
    if backports is not None:  # of the same mirror as the suite that they are for
        more = rf"s/^\(deb .*\) {suite} main$/&\n\1 {backports} main/"
        command.append(f"--setup-hook=sed -i '{more}' \"$1\"/etc/apt/sources.list")
    return [*command, suite, str(target)]
