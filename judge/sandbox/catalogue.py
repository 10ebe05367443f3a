"""What programs can be isolated with: one table of roots, whichever backend shows them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from judge.core.limits import GIB, MIB
from judge.errors import SandboxError
from judge.sandbox import debian, layout, roots, unpacked

_HALF = (("/tmp", 2),)  # noqa: S108 - inside, on a tmpfs of its own


@dataclass(frozen=True, slots=True)
class ServiceRoot:
    """One root, as services get it.

    Attributes:
        name: as ``Sandbox.service`` takes it.
        title: for people, as in "… image for Docker".
        recipe: the Debian packages that it is unpacked from; None for the solutions' interpreter.
        option: of ``judge sandbox build``, to build it; empty if that needs none.
        memory_bytes: memory of a service that names none.
        home: home folder of a service.
        path: folders from which a service imports as well.
        room: each folder that can be written, and by what to divide the service's memory for what
            it may hold.
        first: whether the service is process 1 of its namespace and hides its descriptors: for one
            that runs programs which are not to be trusted, and must not be signalled or imitated by
            them (see docs/security.md).
    """

    name: str
    title: str
    recipe: debian.Recipe | None = None
    option: str = ""
    memory_bytes: int = 2 * GIB
    home: str = "/tmp/home"  # noqa: S108 - inside, on a tmpfs of its own
    path: tuple[str, ...] = ()
    room: tuple[tuple[str, int], ...] = _HALF
    first: bool = False

    @property
    def folder(self) -> Path:
        """Where it is, or will be, for bubblewrap."""
        if self.recipe is None:
            return roots.python_root()
        return unpacked.folder_of(self.name, self.recipe)

    @property
    def command(self) -> str:
        """What builds it."""
        return f"judge sandbox build {self.option}".strip()

    def sizes(self, memory_bytes: int) -> dict[str, int]:
        """Bytes of each folder that can be written."""
        return {folder: memory_bytes // part for folder, part in self.room}


SOLUTIONS = "python"
"""The root that solutions run in."""

ROOTS = MappingProxyType(
    {
        root.name: root
        for root in (
            ServiceRoot(SOLUTIONS, "Python", path=(layout.ENGINES, layout.SITE)),
            ServiceRoot("office", "LibreOffice", debian.OFFICE),
            ServiceRoot(
                "desktop",
                "Desktop",
                debian.DESKTOP,
                option="--desktop",
                memory_bytes=1536 * MIB,
                home="/home/user",
                room=(("/tmp", 6), ("/home", 6), ("/run", 24)),  # noqa: S108 - inside
                first=True,
            ),
        )
    }
)
"""Name -> root."""


def root_named(name: str) -> ServiceRoot:
    """The root of a name.

    Raises:
        SandboxError: there is none.
    """
    try:
        return ROOTS[name]
    except KeyError:
        known = ", ".join(ROOTS)
        raise SandboxError(f"no such root: {name!r}", hint=f"known: {known}") from None
