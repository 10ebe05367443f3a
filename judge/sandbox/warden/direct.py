"""The main program of a service in a container that is already sealed.

The service does not have its own namespace. The processes that it starts are found as descendants,
as this process adopts orphans. They are killed when the judge closes its pipe, or when the judge or
the service ends. The service itself gives up its privileges, as far as possible, before it reads
anything.
"""

from __future__ import annotations

import json
import os
import resource
import select
import signal
import sys
import time
from typing import Any

from judge.sandbox.warden import kernel, meters, service

_TICK_S = 0.05
_END_S = 5.0
_MEMORY_EXIT = 137  # as of a process that was killed: 128 + SIGKILL


def main(config: dict[str, Any]) -> None:
    """Runs the service; at the end, kills it and everything that it started.

    Args:
        config: ``alive`` (a pipe that ends when the judge does not need the service any more),
            ``user`` (id to run as, or None to keep this one), ``filter`` (whether to install the
            filter of system calls), ``bounds`` (name of a resource limit -> amount),
            ``memory_bytes``, and the ``program``, ``path`` and ``home`` of a service. Without a
            program, it only writes which privileges can be given up here.
    """
    if config["program"] is None:
        _report(config["user"], config["path"])
        return
    kernel.adopt_orphans()
    child = os.fork()
    if child == 0:
        os.close(config["alive"])
        for name, amount in config["bounds"].items():
            _bound(getattr(resource, name), amount)
        service.give_up_privileges(config["user"], with_filter=config["filter"])
        service.execute(config)
        return
    _watch(child, config["alive"], config["memory_bytes"])


def _report(user: int | None, path: list[str]) -> None:
    """Writes which privileges can be given up here, as JSON."""
    found = {
        "user": user is not None and _holds(user, path, with_filter=False),
        "filter": _holds(None, path, with_filter=True),
        "plain": _holds(None, path, with_filter=False),
    }
    sys.stdout.write(json.dumps(found))
    sys.stdout.flush()


def _holds(user: int | None, path: list[str], *, with_filter: bool) -> bool:
    """Tries in a child whether it can give up these privileges and still import its modules."""
    child = os.fork()
    if child == 0:
        try:
            service.give_up_privileges(user, with_filter=with_filter)
            for folder in (*path, os.path.dirname(os.__file__)):
                os.listdir(folder)
        except OSError:
            os._exit(1)
        os._exit(0)
    return os.waitpid(child, 0)[1] == 0


def _bound(kind: int, amount: int) -> None:
    hard = resource.getrlimit(kind)[1]
    allowed = amount if hard == resource.RLIM_INFINITY else min(amount, hard)
    resource.setrlimit(kind, (allowed, allowed))


def _watch(child: int, alive: int, limit_bytes: int) -> None:
    """Waits until the service or the judge ends or memory runs out; then kills all descendants."""
    # Only the child has the protocol's descriptors, so that its end ends the stream.
    nothing = os.open("/dev/null", os.O_RDWR)
    os.dup2(nothing, 0)
    os.dup2(nothing, 1)
    code = None
    while code is None:
        ended, _, _ = select.select([alive], [], [], _TICK_S)
        pid, status = os.waitpid(-1, os.WNOHANG)
        while pid not in (0, child):
            pid, status = os.waitpid(-1, os.WNOHANG)
        if pid == child:
            code = os.waitstatus_to_exitcode(status)
        elif ended:
            code = 0
        elif meters.memory_of(descendants(), limit_bytes) > limit_bytes:
            code = _MEMORY_EXIT
    _end_all()
    os._exit(code & 0xFF)


def descendants() -> list[int]:
    """Ids of all descendants of this process."""
    parents = {pid: meters.parent_of(pid) for pid in meters.processes(frozenset({os.getpid()}))}
    found, level = [], [os.getpid()]
    while level:
        level = [pid for pid, parent in parents.items() if parent in level]
        found += level
    return found


def _end_all() -> None:
    """Kills all descendants; those that are started meanwhile become children of this process."""
    deadline = time.monotonic() + _END_S
    while time.monotonic() < deadline:
        below = descendants()
        for pid in below:
            try:
                os.kill(pid, signal.SIGKILL)
            except OSError:
                continue
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            return
        time.sleep(0.005)
