"""Filesystems from Debian packages: if no container registry answers, and for LibreOffice.

``mmdebstrap --variant=extract`` unpacks packages without running their scripts: it is quick and
needs no chroot. Whatever is needed of what those scripts would have set up is done in hooks.
"""

from __future__ import annotations

import hashlib
import os
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from judge.core.limits import GIB
from judge.errors import SandboxError
from judge.sandbox import roots

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
# What goes with a desktop is for a user whose files are where published tasks have them.
_DESKTOP_ACCOUNTS = _ACCOUNTS.replace("solution", "user")
# Docker gives a tmpfs the rights of the folder that it hides.
_OPEN = 'chmod 1777 "$1"/home "$1"/run'
# Programs of the new system itself write the lists that its packages' own scripts would have.
_COMPILE = "python3 -W ignore -m compileall -q --invalidation-mode unchecked-hash /usr/lib/python3*"
_CACHES = (
    'ldconfig -r "$1"',
    'chroot "$1" sh -c "/usr/lib/*/glib-2.0/glib-compile-schemas /usr/share/glib-2.0/schemas"',
    'chroot "$1" sh -c "/usr/lib/*/gdk-pixbuf-2.0/gdk-pixbuf-query-loaders --update-cache"',
    'chroot "$1" update-mime-database /usr/share/mime',
    'chroot "$1" fc-cache --system-only',
    'printf "%032d\\n" 1 > "$1"/etc/machine-id',
    # read-only at run time: without this every program would compile its modules anew
    f'chroot "$1" sh -c "{_COMPILE}"',
)
# No program has rights of its own inside, so none is to look as if it had.
_NO_IDENTITIES = 'find "$1"/usr -type f -perm /6000 -exec chmod ug-s {} +'
_SLIM_DESKTOP = (
    'cd "$1"/usr && rm -rf lib/*/libLLVM*.so* lib/*/libgallium*.so* lib/*/libz3.so*'  # for OpenGL
    " lib/*/libgs.so* lib/*/dri libexec/gcc lib/gcc"
    " lib/systemd lib/*/systemd share/poppler share/ghostscript share/color"
    " share/fonts/type1 share/fonts/opentype share/fonts/X11"
    " lib/libreoffice/share/gallery/* share/libreoffice/share/gallery/*"
    " lib/libreoffice/share/template share/bug share/lintian"
    " lib/*/perl* lib/*/perl-base share/perl*"
)


@dataclass(frozen=True, slots=True)
class Recipe:
    """What a filesystem is made of.

    Attributes:
        suite: Debian's release.
        packages: its packages; what they depend on comes with them.
        hooks: shell commands run after unpacking, with the folder as ``$1``.
        backports: suite whose versions are preferred; None for none.
        sources: lock of pure Python packages that come as source archives; empty for none.
    """

    suite: str
    packages: tuple[str, ...]
    hooks: tuple[str, ...]
    backports: str | None = None
    sources: str = ""

    @property
    def digest(self) -> str:
        """Changes with the recipe."""
        parts = [*self.packages, *([self.backports] if self.backports else []), *self.hooks]
        if self.sources:
            parts += [roots.lock_text(self.sources), roots.lock_text(f"{self.sources}-build")]
        return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]


PYTHON = Recipe(
    suite="bookworm",
    packages=(
        "base-files", "coreutils", "dash", "libc-bin", "libstdc++6", "python3-minimal",
        "libpython3.11-stdlib", "python3.11-minimal",
    ),
    hooks=(_ACCOUNTS, _SHELL, _SLIM),
)  # fmt: skip
"""A small Debian 12 with Python 3.11."""

OFFICE = Recipe(
    suite="trixie",
    packages=(
        "base-files", "base-passwd", "coreutils", "dash", "fontconfig-config", "fonts-liberation",
        "grep", "libc-bin", "libreoffice-calc-nogui", "python3-uno", "sed",
    ),
    hooks=(_ACCOUNTS, _SHELL, _REGISTRY, _SLIM),
    backports="trixie-backports",
)  # fmt: skip
"""A Debian 13 with LibreOffice from its backports and the UNO bridge."""

DESKTOP = Recipe(
    suite="trixie",
    packages=(
        "base-files", "base-passwd", "coreutils", "dash", "grep", "libc-bin", "sed",
        # Calc as users see it
        "libreoffice-calc", "libreoffice-gtk3", "libreoffice-style-colibre",
        "adwaita-icon-theme", "gsettings-desktop-schemas", "hicolor-icon-theme",
        "libgdk-pixbuf2.0-bin", "libglib2.0-bin", "libgtk-3-common", "librsvg2-common",
        "shared-mime-info",
        # the last one has the characters of China, Japan and Korea
        "fontconfig", "fontconfig-config", "fonts-dejavu-core", "fonts-liberation",
        "fonts-droid-fallback",
        # a screen, its windows, and what tells programs of them
        "x11-utils", "x11-xkb-utils", "xkb-data", "xvfb", "openbox", "wmctrl", "xdotool",
        "at-spi2-core", "dbus-bin", "dbus-daemon", "dbus-session-bus-common",
        "gir1.2-atspi-2.0", "python3", "python3-gi", "python3-pil", "python3-xlib",
    ),
    hooks=(
        _DESKTOP_ACCOUNTS, _OPEN, _SHELL, _REGISTRY, *_CACHES, _SLIM, _SLIM_DESKTOP,
        _NO_IDENTITIES,
    ),
    backports="trixie-backports",
    sources="desktop",
)  # fmt: skip
"""A Debian 13 with LibreOffice Calc on a screen in memory."""

SHELL = Recipe(suite="trixie", packages=("bash",), hooks=())
"""The shell of the Debian that LibreOffice comes from."""


def _mirror() -> str | None:
    """The mirror that was requested; None leaves the choice to mmdebstrap."""
    return os.environ.get("JUDGE_DEBIAN_MIRROR")


def _scratch() -> str | None:
    """Memory rather than disk, if there is space: the package manager syncs at every step."""
    shared = Path("/dev/shm")  # noqa: S108 - a folder made there is private
    if shared.is_dir() and shutil.disk_usage(shared).free > _WANTED_MEMORY_BYTES:
        return str(shared)
    return None


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
        brought = None
        if recipe.sources:
            brought = Path(folder, "brought")
            roots.install_sources(recipe.sources, brought)
        command = _command(recipe, target, brought)
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


def _command(recipe: Recipe, target: Path, brought: Path | None) -> list[str]:
    mode = "root" if os.geteuid() == 0 else "unshare"
    folders = " ".join(f'"$1"/{name}' for name in _FOLDERS.split())
    command = ["mmdebstrap", "--variant=extract", f"--mode={mode}", "--quiet"]
    command += [f"--hook-dir={_HOOKS}", f"--extract-hook=mkdir -p {folders}"]
    if brought is not None:
        packages = '"$1"/usr/lib/python3/dist-packages/'
        command.append(f"--extract-hook=cp -r {shlex.quote(str(brought))}/. {packages}")
    command += [f"--extract-hook={hook}" for hook in recipe.hooks]  # this variant runs no later
    command += [f"--include={','.join(recipe.packages)}"]
    suite, backports = recipe.suite, recipe.backports
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
