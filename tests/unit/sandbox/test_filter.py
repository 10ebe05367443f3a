"""The assembled system call filter, run by an interpreter of its instructions."""

from __future__ import annotations

import struct
from functools import cache

import pytest

from judge.sandbox.warden import filter as call_filter

ALLOW, KILL, EPERM, ENOSYS = 0x7FFF0000, 0x80000000, 0x00050001, 0x00050026
ARCH = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}


@cache
def instructions(machine: str) -> list[tuple[int, int, int, int]]:
    assembled = call_filter.assemble(machine)
    return [
        struct.unpack_from("=HBBI", assembled, position) for position in range(0, len(assembled), 8)
    ]


def decide(
    machine: str, number: int, first: int = 0, second: int = 0, *, arch: int | None = None
) -> int:
    """Returns what the kernel would do with a call."""
    data = struct.pack("<IIQQQ", number, ARCH[machine] if arch is None else arch, 0, first, second)
    program = instructions(machine)
    accumulator = position = 0
    while True:
        code, if_true, if_false, value = program[position]
        position += 1
        if code == 0x20:
            (accumulator,) = struct.unpack_from("<I", data, value)
        elif code == 0x06:
            return int(value)
        else:
            holds = {0x15: accumulator == value, 0x35: accumulator >= value}.get(
                code, bool(accumulator & value)
            )
            position += if_true if holds else if_false


X86 = {"read": 0, "write": 1, "openat": 257, "execve": 59, "fork": 57, "mmap": 9, "kill": 62}
ARM = {"read": 63, "write": 64, "openat": 56, "execve": 221, "mmap": 222, "kill": 129}


@pytest.mark.parametrize(
    ("machine", "name", "number"),
    [("x86_64", *item) for item in X86.items()] + [("aarch64", *item) for item in ARM.items()],
)
def test_plain_calls_are_allowed(machine: str, name: str, number: int) -> None:
    assert decide(machine, number) == ALLOW, name


@pytest.mark.parametrize("machine", list(ARCH))
def test_every_call_of_the_table_is_refused(machine: str) -> None:
    column = list(ARCH).index(machine)
    for name, numbers in call_filter._REFUSED.items():
        number = numbers[column]
        if number is not None:
            assert decide(machine, number) == EPERM, name


@pytest.mark.parametrize("machine", list(ARCH))
def test_nothing_but_the_table_is_refused(machine: str) -> None:
    column = list(ARCH).index(machine)
    special = {call_filter._CLONE3[column], call_filter._SOCKET[column]}
    special |= {call_filter._SOCKETPAIR[column]}
    table = {numbers[column] for numbers in call_filter._REFUSED.values()}
    for number in range(500):
        if number not in table and number not in special:
            expected = ALLOW if number < 450 else ENOSYS
            assert decide(machine, number) == expected, number


@pytest.mark.parametrize(("machine", "number"), [("x86_64", 56), ("aarch64", 220)])
def test_clone_makes_threads_and_processes_but_no_namespaces(machine: str, number: int) -> None:
    assert decide(machine, number, 0x3D0F00) == ALLOW  # a thread
    assert decide(machine, number, 17) == ALLOW  # a process
    namespaces = (0x20000, 0x2000000, 0x4000000, 0x8000000, 0x10000000, 0x20000000, 0x40000000)
    for flag in namespaces:
        assert decide(machine, number, 17 | flag) == EPERM, hex(flag)


@pytest.mark.parametrize("machine", list(ARCH))
def test_clone3_does_not_exist(machine: str) -> None:
    assert decide(machine, 435) == ENOSYS


@pytest.mark.parametrize(
    ("machine", "number"), [("x86_64", 41), ("x86_64", 53), ("aarch64", 198), ("aarch64", 199)]
)
def test_families_of_sockets(machine: str, number: int) -> None:
    for family in range(50):
        expected = ALLOW if family == 1 else EPERM
        assert decide(machine, number, family) == expected, family


@pytest.mark.parametrize("machine", list(ARCH))
@pytest.mark.parametrize("name", list(call_filter._OWN_ONLY))
def test_limits_and_priorities_of_the_calling_process_alone(machine: str, name: str) -> None:
    number = call_filter._OWN_ONLY[name][0][list(ARCH).index(machine)]
    assert decide(machine, number) == ALLOW
    for process in (1, 7, 2**31, 2**32 - 1):
        assert decide(machine, number, process) == EPERM
    both = name == "setpriority"  # its first argument says what the second one is
    assert decide(machine, number, 0, 1) == (EPERM if both else ALLOW)


def test_other_architectures_are_killed_and_x32_refused() -> None:
    assert decide("x86_64", 0, arch=0x40000003) == KILL
    assert decide("aarch64", 0, arch=0x40000028) == KILL
    assert decide("x86_64", 0x40000000) == EPERM


def test_unknown_machine() -> None:
    with pytest.raises(OSError, match="riscv64"):
        call_filter.assemble("riscv64")
