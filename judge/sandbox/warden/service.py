"""The main program of a sandbox for one of the judge's own programs: isolates it, then runs it.

The program communicates with the judge directly, over standard input and output. It reads what a
solution wrote, so it has no more privileges than a solution.
"""

from __future__ import annotations

import os
import resource
import signal
import sys
import threading
import time
import types
from typing import Any

from judge.sandbox.warden import filter as call_filter
from judge.sandbox.warden import kernel, meters

_TICK_S = 0.05
_MEMORY_EXIT = 137  # as of a process that was killed: 128 + SIGKILL
_DESCRIPTORS = 1024  # open files of each process


def main(config: dict[str, Any]) -> None:
    """Runs the service, and exits when it exits.

    Args:
        config: ``program`` (its source), ``user`` (id to run as, or None to keep this one),
            ``path`` (folders to import from), ``watch_bytes`` (memory limit to enforce here, or
            None if a control group does it), ``home``, ``first`` (whether it stays process 1 and
            runs untrusted programs), ``processes`` (process limit of its user, None if a control
            group counts them).
    """
    first = config["first"]
    if config["watch_bytes"] is not None and not first:
        _fork_under_watch(config["watch_bytes"])
    _bound(config["processes"], few_descriptors=first)
    give_up_privileges(config["user"], with_filter=True)
    if first:
        _stand_apart()
        if config["watch_bytes"] is not None:
            _watch_from_within(config["watch_bytes"])
    execute(config)


def give_up_privileges(user: int | None, *, with_filter: bool) -> None:
    """Gives up the user, every capability, and the calls that the filter refuses.

    Raises:
        OSError: one of these steps is not possible here.
    """
    kernel.drop_capabilities(bounding_only=True)
    if user is not None:
        os.setgroups([])
        os.setresgid(user, user, user)
        os.setresuid(user, user, user)
    kernel.drop_capabilities()
    kernel.forbid_new_privileges()
    if with_filter:
        kernel.install_filter(call_filter.assemble())
    left = kernel.privileges_left(filtered=with_filter)
    if left:
        raise PermissionError(f"privileges could not be given up: {left}")


def execute(config: dict[str, Any]) -> None:
    """Runs the program in this process, which has given up its privileges."""
    os.makedirs(config["home"], exist_ok=True)
    os.chdir(config["home"])
    sys.path[:0] = config["path"]
    for name in [name for name in sys.modules if name.split(".")[0] == "judge"]:
        del sys.modules[name]
    module = types.ModuleType("__main__")
    sys.modules["__main__"] = module
    exec(compile(config["program"], "service", "exec", dont_inherit=True), module.__dict__)  # noqa: S102 - the purpose of this function


def _bound(processes: int | None, *, few_descriptors: bool) -> None:
    # A core dump would start the host's program for core dumps.
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if few_descriptors:
        resource.setrlimit(resource.RLIMIT_NOFILE, (_DESCRIPTORS, _DESCRIPTORS))
    if processes is not None:
        resource.setrlimit(resource.RLIMIT_NPROC, (processes, processes))


def _stand_apart() -> None:
    """Protects this process from the processes that it starts, which have the same user.

    As process 1, it gets only those signals of its descendants that it handles, and when it ends,
    all of them end. No other process can read its memory or open its descriptors, and the two
    descriptors that lead to the judge have other numbers than those that programs inherit.
    """
    if os.getpid() != 1:
        raise PermissionError("this service must be process 1 of its namespace")
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # the interpreter installs a handler
    kernel.end_with_parent()  # the change of user cancelled this
    kernel.forbid_inspection()
    requests, replies = (os.dup(descriptor) for descriptor in (0, 1))  # not inherited
    nothing = os.open("/dev/null", os.O_RDWR)
    for descriptor in (0, 1):
        os.dup2(nothing, descriptor)
    os.close(nothing)
    sys.stdin = sys.__stdin__ = open(requests, encoding="utf-8")  # type: ignore[misc]  # noqa: SIM115
    sys.stdout = sys.__stdout__ = open(replies, "w", encoding="utf-8")  # type: ignore[misc]  # noqa: SIM115


def _watch_from_within(limit_bytes: int) -> None:
    """Ends everything over the limit, from a thread, because process 1 must be the service."""
    meter = meters.ProcessMeter(frozenset(), limit_bytes)

    def watch() -> None:
        while True:
            time.sleep(_TICK_S)
            if meter.sample()[1] > limit_bytes:
                os._exit(_MEMORY_EXIT)

    threading.Thread(target=watch, daemon=True).start()


def _fork_under_watch(limit_bytes: int) -> None:
    """Continues in a child; the parent stays here and kills everything over the limit."""
    child = os.fork()
    if child == 0:
        return
    # only the child has the protocol's descriptors, so that its end ends the stream
    nothing = os.open("/dev/null", os.O_RDWR)
    os.dup2(nothing, 0)
    os.dup2(nothing, 1)
    meter = meters.ProcessMeter(frozenset({1, os.getpid()}), limit_bytes)
    code = None
    while code is None:
        time.sleep(_TICK_S)
        _, used_bytes = meter.sample()
        pid, status = os.waitpid(-1, os.WNOHANG)
        if pid == child:
            code = os.waitstatus_to_exitcode(status)
        elif used_bytes > limit_bytes:
            os.kill(-1, signal.SIGKILL)
            code = _MEMORY_EXIT
    os._exit(code & 0xFF)
