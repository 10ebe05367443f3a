"""Whether this process is in a container that is sealed already: no network, and not the host.

A verifier of an agent framework, or a pod without the right to make namespaces, is such a place.
The judge's own services may run there directly (:mod:`judge.sandbox.backends.sealed_container`).
Nothing can switch the detection off, and whatever cannot be read counts as an open door.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

_INITIAL_PROCESS_NAMESPACE = 0xEFFFFFFC
"""The kernel gives the first process namespace of a machine this number."""

_INTERFACE_IS_UP = 0x1
_ROUTE_REJECTS = 0x0200
_LOOPBACK = "lo"
_MARKERS = (".dockerenv", "run/.containerenv")
_CONTAINER_FILESYSTEMS = frozenset({"overlay", "aufs", "9p"})
_MAX_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class Enclosure:
    """What was found about the place of this process.

    Attributes:
        openings: why it is not a sealed container, one line each; empty if it is one.
        evidence: what shows that it is a container without a network, one line each.
    """

    openings: tuple[str, ...]
    evidence: tuple[str, ...]

    @property
    def is_sealed(self) -> bool:
        """Whether it is a container, and without a network."""
        return not self.openings


def find_enclosure(root: Path = Path("/")) -> Enclosure:
    """Looks where this process is; reads a few files and opens no connection.

    A machine without a network is not enough, nor is a network namespace on the host, whose files
    and processes would be in reach: the process namespace has to be other than the machine's
    first, and the root of the file system that of a container.

    Args:
        root: the folder that holds ``/proc`` and ``/sys``.
    """
    openings: list[str] = []
    evidence: list[str] = []
    for check in (_processes, _file_system, _interfaces, _routes):
        try:
            sealed, line = check(root)
        except (OSError, ValueError, IndexError) as error:
            sealed, line = False, f"it is not known: {error}"
        (evidence if sealed else openings).append(line)
    return Enclosure(tuple(openings), tuple(evidence))


def _processes(root: Path) -> tuple[bool, str]:
    namespace = str((root / "proc/self/ns/pid").readlink())
    number = int(namespace.partition("[")[2].rstrip("]"))
    if number == _INITIAL_PROCESS_NAMESPACE:
        return False, "the processes are those of the machine itself"
    return True, f"a process namespace of its own ({namespace})"


def _file_system(root: Path) -> tuple[bool, str]:
    for name in _MARKERS:
        if (root / name).exists():
            return True, f"/{name} marks the root of a container"
    for line in _text(root / "proc/self/mountinfo").splitlines():
        head, _, tail = line.partition(" - ")
        if head.split()[4] == "/" and tail.split()[0] in _CONTAINER_FILESYSTEMS:
            return True, f"the root file system is {tail.split()[0]}"
    return False, "the root of the file system is not that of a container"


def _interfaces(root: Path) -> tuple[bool, str]:
    lines = _text(root / "proc/self/net/dev").splitlines()[2:]
    names = [line.partition(":")[0].strip() for line in lines]
    # What the kernel puts into each new namespace, such as tunl0, stays down.
    up = [name for name in names if name != _LOOPBACK and _is_up(root, name)]
    if up:
        return False, f"a network interface is up: {', '.join(sorted(up))}"
    return True, "no network interface is up but the loopback"


def _is_up(root: Path, name: str) -> bool:
    flags = root / "sys/class/net" / name / "flags"
    return not flags.exists() or bool(int(_text(flags).strip(), 16) & _INTERFACE_IS_UP)


def _routes(root: Path) -> tuple[bool, str]:
    tables = root / "proc/self/net"
    ways = {line.split()[0] for line in _text(tables / "route").splitlines()[1:] if line.strip()}
    if (tables / "ipv6_route").exists():  # not where IPv6 is switched off
        for line in _text(tables / "ipv6_route").splitlines():
            fields = line.split()
            if not int(fields[8], 16) & _ROUTE_REJECTS:
                ways.add(fields[9])
    ways.discard(_LOOPBACK)
    if ways:
        return False, f"there is a route through {', '.join(sorted(ways))}"
    return True, "no route leads out"


def _text(path: Path) -> str:
    with path.open("rb") as file:
        return file.read(_MAX_BYTES).decode(errors="replace")
