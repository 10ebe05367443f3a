"""Defines which way of which backend runs what, and why; nothing else does.

Docker and bubblewrap are each opened in several ways (``conftest.BACKENDS``). Everything runs on
both as they are opened by default. A further way runs what it defends against differently; what it
shares with the default, such as the check of the output path or the limit by the clock, is shown
there.
"""

from __future__ import annotations

from collections.abc import Iterable

import pytest

USUAL = ("docker", "bubblewrap")

SINGLE_USE = "docker-single-use"
"""A container for each submission. All its cases share one file system, which is cleared between
them, and one space of processes; a user of its own is what keeps a case apart. The warden is root
with three capabilities, and Docker's profile of system calls is there as well as ours. Memory and
time are read from the container's control group, as in the usual way."""

SAMPLED = "bubblewrap-sampled"
"""Without control groups: memory, time and processes are what the warden finds in ``/proc`` every
20 ms. Each case has a world of its own, made as in the usual way."""

ORDINARY_USER = "bubblewrap-ordinary-user"
"""Started without privileges: warden and solution are one user of the host, kept apart by
namespaces and capabilities alone. Measured as in the sampled way."""

WAYS = (*USUAL, SINGLE_USE, SAMPLED, ORDINARY_USER)

APART = (*USUAL, SINGLE_USE, ORDINARY_USER)
"""For attacks on what separates cases, their files and the warden from each other."""
MEASURED = (*USUAL, SAMPLED)
"""For what is measured and limited while a case runs."""
SERVICES = (*USUAL, ORDINARY_USER)
"""For our own programs inside: a service starts in the same way whether a container serves once or
often; without control groups it is measured by itself, as ordinary user as well as root."""

_WARDEN_ATTACKED = """
    forged_frame_descriptors forged_frame_proc kill_everybody kill_parent signal_by_descriptor
    stop_parent throttle_warden trace_warden
"""
_RIGHTS = """
    enter_namespaces forbidden_calls leave_setuid output_device priorities read_host_proc
    regain_privileges writable_places write_control_groups write_proc
"""
_FILES_OF_THE_SOLUTION = """
    locked_folders output_hard_link output_symlink_parent output_unreadable
"""

FURTHER = {
    SINGLE_USE: {
        "a case's files are cleared away rather than gone with its file system": """
            deep_tree disk_many_files disk_many_folders leave_secret poison_packages shadow_stdlib
        """,
        "a case's processes are looked for rather than gone with their namespace": """
            daemon_double_fork fork_bomb leave_connections locks odd_children orphans output_swapper
        """,
        "the interpreter that cases are forked from serves one submission": """
            poison_interpreter poison_modules
        """,
        "another user stands between the solution and the warden": _WARDEN_ATTACKED,
        "another user is measured, by the usual counters: a few of each suffice": """
            memory_child oom_score unwaited_children
        """,
        "no namespaces, other capabilities, another profile": _RIGHTS,
        "the warden reads and clears away files of another user": _FILES_OF_THE_SOLUTION,
    },
    SAMPLED: {
        "memory is added up over processes, and what they share is counted once": """
            memory_child memory_children memory_main memory_shared oom_score output_tight
        """,
        "time is added up over processes, those that ended between two looks included": """
            clock hidden_time odd_names relay unwaited_children
        """,
        "processes are bounded by the limit of a user": "fork_bomb thread_bomb zombies",
    },
    ORDINARY_USER: {
        "warden and solution are one user": _WARDEN_ATTACKED,
        "capabilities in a namespace that an ordinary user made": _RIGHTS,
        "the warden is root nowhere": _FILES_OF_THE_SOLUTION,
        "the warden's own processes count as that user's": "orphans thread_bomb",
        "what processes share can be read by capability alone": "memory_shared",
        "files of the host belong to nobody inside": "leave_secret poison_packages",
    },
}
"""Way -> why it differs -> the attacks that try it there."""


def attacks_of(way: str) -> frozenset[str]:
    """The attacks that a further way runs."""
    return frozenset(name for names in FURTHER[way].values() for name in names.split())


def ways_of(attack: str) -> tuple[str, ...]:
    """The ways in which an attack runs."""
    return (*USUAL, *(way for way in FURTHER if attack in attacks_of(way)))


def marks(way: str) -> pytest.MarkDecorator:
    """Returns the pytest mark for tests that need the backend of a way."""
    mark: pytest.MarkDecorator = getattr(pytest.mark, way.partition("-")[0])
    return mark


def run_in(ways: Iterable[str]) -> pytest.MarkDecorator:
    """Opens a test's ``sandbox`` in each of these ways, instead of the usual ones."""
    params = [pytest.param(way, marks=marks(way)) for way in ways]
    return pytest.mark.parametrize("sandbox", params, indirect=True)
