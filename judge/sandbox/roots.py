"""Defines the folder trees that programs see inside a sandbox: their contents and names.

Solutions run in a root with this interpreter and the pinned packages. Services run there, or in a
root of Debian packages with LibreOffice. :mod:`judge.sandbox.build` makes the roots.
"""

from __future__ import annotations

import hashlib
import platform
import re
import sys
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from types import MappingProxyType

from judge.core.limits import GIB, MIB
from judge.errors import SandboxError
from judge.files.paths import cache_folder
from judge.sandbox import layout

_FORMAT = "3"
COMPLETE = "complete.json"
BUILD_HINT = "run: judge sandbox build"


def lock_text(name: str) -> str:
    """The pins of ``solutions`` or ``engines``, with hashes."""
    return resources.files("judge.sandbox.image").joinpath(f"{name}.lock").read_text("utf-8")


def pins(name: str = "solutions") -> dict[str, str]:
    """Package -> version, as pinned."""
    versions = {}
    for line in lock_text(name).splitlines():
        if line and not line[0].isspace() and "==" in line:
            package, _, version = line.partition("==")
            versions[package] = version.split()[0]
    return versions


def python_digest() -> str:
    """Names the root of this particular interpreter; the version includes its build."""
    return _digest(sys.version)


def content_identity() -> str:
    """Names everything that a solution can see: the versions of the interpreter and the packages.

    Two builds of the same version have the same name, because they differ only in the machine on
    which they were built.
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
    """The folder of this interpreter's root, whether it exists or not."""
    return cache_folder() / "roots" / f"python-{python_digest()}"


def is_complete(root: Path) -> bool:
    """Whether a root is complete."""
    return (root / COMPLETE).is_file()


# -- contents of roots of Debian packages ----------------------------------------------------------

# LibreOffice does not start for a user without an entry in passwd.
_ACCOUNTS = (
    "printf 'root:x:0:0::/:/bin/sh\\nsolution:x:1000:1000::/home/solution:/bin/sh\\n"
    'nobody:x:65534:65534::/:/bin/sh\\n\' > "$1"/etc/passwd'
    " && printf 'root:x:0:\\nsolution:x:1000:\\nnogroup:x:65534:\\n' > \"$1\"/etc/group"
)

_SHELL = 'ln -sf dash "$1"/usr/bin/sh'

_REGISTRY = (
    # share/registry/main.xcd refers to these files; the package's own script would copy them
    'mkdir -p "$1"/etc/libreoffice/registry && '
    'cp -n "$1"/usr/lib/libreoffice/share/.registry/*.xcd "$1"/etc/libreoffice/registry/'
)

_SLIM = (
    'rm -rf "$1"/usr/share/doc "$1"/usr/share/man "$1"/usr/share/locale "$1"/var/cache/apt'
    ' "$1"/var/lib/apt/lists "$1"/var/lib/dpkg/info'
)

# On a desktop, the user's files are at the paths that published tasks have.
_DESKTOP_ACCOUNTS = _ACCOUNTS.replace("solution", "user")

# Docker gives a tmpfs the permissions of the folder that it hides.
_OPEN = 'chmod 1777 "$1"/home "$1"/run'

# Programs of the new system write the lists that the packages' own scripts would write.
# A root is read-only at run time: without this, programs would compile their modules every time.
_COMPILE = "python3 -W ignore -m compileall -q --invalidation-mode unchecked-hash /usr/lib/python3*"

_CACHES = (
    'ldconfig -r "$1"',
    'chroot "$1" sh -c "/usr/lib/*/glib-2.0/glib-compile-schemas /usr/share/glib-2.0/schemas"',
    'chroot "$1" sh -c "/usr/lib/*/gdk-pixbuf-2.0/gdk-pixbuf-query-loaders --update-cache"',
    'chroot "$1" update-mime-database /usr/share/mime',
    'chroot "$1" fc-cache --system-only',
    'printf "%032d\\n" 1 > "$1"/etc/machine-id',
    f'chroot "$1" sh -c "{_COMPILE}"',
)

# No program has special privileges inside, so none should look as if it had.
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
    """The packages and commands from which a filesystem is built.

    Attributes:
        suite: the Debian release.
        packages: its packages; their dependencies are added.
        hooks: shell commands that run after unpacking, with the folder as ``$1``.
        backports: suite whose versions are preferred; None if there is none.
        sources: lock of pure Python packages that come as source archives; empty if there are none.
        wheels: lock of Python packages for the folder :data:`judge.sandbox.layout.SITE`; empty if
            there are none.
        python: version of the interpreter for these packages, such as ``3.13``.
    """

    suite: str
    packages: tuple[str, ...]
    hooks: tuple[str, ...]
    backports: str | None = None
    sources: str = ""
    wheels: str = ""
    python: str = ""

    @property
    def digest(self) -> str:
        """A hash of the recipe."""
        parts = [*self.packages, *([self.backports] if self.backports else []), *self.hooks]
        if self.sources:
            parts += [lock_text(self.sources), lock_text(f"{self.sources}-build")]
        if self.wheels:
            parts += [lock_text(self.wheels), self.python]
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
    hooks=(_ACCOUNTS, _SHELL, _REGISTRY, f'chroot "$1" sh -c "{_COMPILE}"', _SLIM),
    backports="trixie-backports",
)  # fmt: skip
"""A Debian 13 with LibreOffice from its backports and the UNO bridge."""


DESKTOP = Recipe(
    suite="trixie",
    packages=(
        "base-files", "base-passwd", "coreutils", "dash", "grep", "libc-bin", "sed",
        # Calc with the user interface that users see
        "libreoffice-calc", "libreoffice-gtk3", "libreoffice-style-colibre",
        "adwaita-icon-theme", "gsettings-desktop-schemas", "hicolor-icon-theme",
        "libgdk-pixbuf2.0-bin", "libglib2.0-bin", "libgtk-3-common", "librsvg2-common",
        "shared-mime-info",
        # the last package has Chinese, Japanese and Korean characters
        "fontconfig", "fontconfig-config", "fonts-dejavu-core", "fonts-liberation",
        "fonts-droid-fallback",
        # a screen, a window manager, and the accessibility services
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
"""Debian 13 with LibreOffice Calc on a screen that exists only in memory."""


AGENT = Recipe(
    suite="trixie",
    packages=(
        "base-files", "base-passwd", "bash", "coreutils", "dash", "diffutils", "file", "findutils",
        "grep", "libc-bin", "mawk", "sed", "unzip", "zip",
        "fontconfig-config", "fonts-dejavu-core", "fonts-liberation", "fonts-droid-fallback",
        # computes and draws workbooks, and makes pictures of their pages
        "libreoffice-calc-nogui", "python3", "python3-uno", "poppler-utils",
    ),
    hooks=(
        _ACCOUNTS.replace("solution", "agent"), _OPEN, _SHELL, _REGISTRY,
        f'chroot "$1" sh -c "{_COMPILE} {layout.SITE}"', _SLIM, _NO_IDENTITIES,
    ),
    backports="trixie-backports",
    wheels="solutions",
    python="3.13",
)  # fmt: skip
"""A Debian 13 for agents: a shell, Python with the packages of solutions, and LibreOffice."""


SHELL = Recipe(suite="trixie", packages=("bash",), hooks=())
"""Bash, from the same Debian release as LibreOffice."""


# -- the roots ------------------------------------------------------------------------------------

_HALF = (("/tmp", 2),)  # noqa: S108 - inside, on a separate tmpfs


@dataclass(frozen=True, slots=True)
class ServiceRoot:
    """A root filesystem in which services run.

    Attributes:
        name: its name, for ``Sandbox.service``.
        title: its name for people, as in "… image for Docker".
        recipe: the Debian packages from which it is unpacked; None for the solutions' interpreter.
        option: the option of ``judge sandbox build`` that builds it; empty if none is needed.
        memory_bytes: memory limit of a service that does not set its own.
        home: home folder of a service.
        path: further folders from which a service imports modules.
        shares: pairs of a writable folder and a divisor; the size of the folder is the service's
            memory divided by it.
        is_process_1: whether the service is process 1 of its namespace and hides its descriptors.
            This is for services that run untrusted programs, which must not signal or imitate them
            (see docs/security.md).
        content: a folder that services see at :data:`SERVER_CONTENT`; None if there is none.
    """

    name: str
    title: str
    recipe: Recipe | None = None
    option: str = ""
    memory_bytes: int = 2 * GIB
    home: str = "/tmp/home"  # noqa: S108 - inside, on a separate tmpfs
    path: tuple[str, ...] = ()
    shares: tuple[tuple[str, int], ...] = _HALF
    is_process_1: bool = False
    content: Path | None = None

    @property
    def folder(self) -> Path:
        """The folder of the root for bubblewrap, which may not exist yet."""
        if self.recipe is None:
            return python_root()
        return cache_folder() / "roots" / f"{self.name}-{self.recipe.digest}"

    @property
    def command(self) -> str:
        """The command that builds the root."""
        return f"judge sandbox build {self.option}".strip()

    def sizes(self, memory_bytes: int) -> dict[str, int]:
        """Writable folder -> its size in bytes."""
        return {folder: memory_bytes // part for folder, part in self.shares}


SOLUTIONS = "python"
"""The root in which solutions run."""

AGENT_ROOT = "agent"
"""The root in which agents' tools run."""

AGENT_HOME = "/home/agent"
"""The folder in which agents work."""


ROOTS = MappingProxyType(
    {
        root.name: root
        for root in (
            ServiceRoot(SOLUTIONS, "Python", path=(layout.ENGINES, layout.SITE)),
            ServiceRoot("office", "LibreOffice", OFFICE),
            ServiceRoot(
                "desktop",
                "Desktop",
                DESKTOP,
                option="--desktop",
                memory_bytes=1536 * MIB,
                home="/home/user",
                shares=(("/tmp", 6), ("/home", 6), ("/run", 24)),  # noqa: S108 - inside
                is_process_1=True,
            ),
            ServiceRoot(
                AGENT_ROOT,
                "Agent",
                AGENT,
                option="--agent",
                memory_bytes=1536 * MIB,
                home=AGENT_HOME,
                path=(layout.SITE,),
                shares=(("/tmp", 6), ("/home", 6)),  # noqa: S108 - inside
                is_process_1=True,
            ),
        )
    }
)
"""Name -> root."""


SERVER = "/server"
"""The folder in which an MCP server finds its packages or files, as links.

It may write to this folder, because many servers keep a log next to their package."""

SERVER_CONTENT = "/content"
"""The folder to which these links lead."""

SERVER_ROOT = "mcp-"
"""Prefix of the names of MCP servers' roots."""


def server_folder(digest: str) -> Path:
    """The folder of an MCP server's packages or files, by its hash."""
    return cache_folder() / "servers" / digest


def server_root_name(digest: str) -> str:
    """The name of the root of an MCP server."""
    return f"{SERVER_ROOT}{digest}"


def _server_root(name: str) -> ServiceRoot:
    return ServiceRoot(
        name,
        "MCP server",
        option="--mcp NAME",
        memory_bytes=1 * GIB,
        home=AGENT_HOME,
        shares=(("/tmp", 4), ("/home", 4), (SERVER, 16)),  # noqa: S108 - inside
        is_process_1=True,
        content=server_folder(name.removeprefix(SERVER_ROOT)),
    )


def root_named(name: str) -> ServiceRoot:
    """Finds a root by its name.

    Raises:
        SandboxError: there is no such root.
    """
    if re.fullmatch(rf"{SERVER_ROOT}[0-9a-f]{{64}}", name):
        return _server_root(name)
    try:
        return ROOTS[name]
    except KeyError:
        names = ", ".join(ROOTS)
        raise SandboxError(f"no such root: {name!r}", hint=f"known: {names}") from None
