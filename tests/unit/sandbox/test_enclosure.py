"""Whether the environment is a sealed container, by made-up files of the kernel."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from judge.sandbox.backends.sealed_container import find_enclosure

DEVICES = "Inter-|   Receive\n face |bytes\n    lo: 0 0\n tunl0: 0 0\n"
IPV4 = "Iface\tDestination\tGateway\tFlags\n"
UNREACHABLE = (
    f"{'0' * 32} 00 {'0' * 32} 00 {'0' * 32} ffffffff 00000001 00000000 00200200       lo\n"
)
OVERLAY = "120 90 0:50 / / rw,relatime - overlay overlay rw,lowerdir=/l\n"
DISK = "27 1 254:0 / / rw,relatime - ext4 /dev/vda rw\n"


@pytest.fixture
def container(tmp_path: Path) -> Path:
    """The kernel's files in a container without a network."""
    net = tmp_path / "proc/self/net"
    net.mkdir(parents=True)
    (tmp_path / "proc/self/ns").mkdir()
    (tmp_path / "proc/self/ns/pid").symlink_to("pid:[4026532555]")
    (tmp_path / "proc/self/mountinfo").write_text(OVERLAY)
    (net / "dev").write_text(DEVICES)
    (net / "route").write_text(IPV4)
    (net / "ipv6_route").write_text(UNREACHABLE)
    for name, flags in (("lo", "0x9"), ("tunl0", "0x80")):
        (tmp_path / "sys/class/net" / name).mkdir(parents=True)
        (tmp_path / "sys/class/net" / name / "flags").write_text(f"{flags}\n")
    return tmp_path


def openings(root: Path) -> str:
    found = find_enclosure(root)
    assert found.is_sealed == (not found.openings)
    return "; ".join(found.openings)


def test_a_container_without_a_network_is_sealed(container: Path) -> None:
    found = find_enclosure(container)
    assert found.is_sealed
    assert len(found.evidence) == 4


def test_the_processes_of_the_machine_are_not_a_container(container: Path) -> None:
    namespace = container / "proc/self/ns/pid"
    namespace.unlink()
    namespace.symlink_to("pid:[4026531836]")
    assert openings(container) == "the processes are those of the machine itself"


def test_namespaces_on_the_files_of_the_host_are_not_a_container(container: Path) -> None:
    (container / "proc/self/mountinfo").write_text(DISK)
    assert "not that of a container" in openings(container)
    (container / ".dockerenv").touch()
    assert openings(container) == ""


def test_an_interface_that_is_up_is_an_opening(container: Path) -> None:
    (container / "sys/class/net/tunl0/flags").write_text("0x81\n")
    assert openings(container) == "a network interface is up: tunl0"


def test_an_interface_of_which_nothing_is_known_counts_as_up(container: Path) -> None:
    (container / "proc/self/net/dev").write_text(f"{DEVICES}  eth0: 0 0\n")
    assert openings(container) == "a network interface is up: eth0"


@pytest.mark.parametrize(
    ("table", "line"),
    [
        ("route", "eth0\t00000000\t010200C0\t0003\n"),
        ("ipv6_route", f"{'0' * 32} 00 {'0' * 32} 00 {'0' * 32} 00000400 0 0 00000003     eth0\n"),
    ],
)
def test_a_route_that_leads_out_is_an_opening(container: Path, table: str, line: str) -> None:
    with (container / "proc/self/net" / table).open("a") as file:
        file.write(line)
    assert openings(container) == "there is a route through eth0"


def test_what_cannot_be_read_is_an_opening(container: Path) -> None:
    (container / "proc/self/net/route").unlink()
    assert "this cannot be determined" in openings(container)
    shutil.rmtree(container / "proc")
    assert openings(container).count("this cannot be determined") == 4
