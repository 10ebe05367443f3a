"""The main program of a place for one of the judge's own programs: isolates it, then runs it.

The program communicates with the judge itself, over standard input and output. What it reads was
written by a solution, so it has no more rights than one.
"""

from __future__ import annotations

import os
import signal
import sys
import time
import types
from typing import Any

from judge.sandbox.warden import filter as call_filter
from judge.sandbox.warden import kernel, meters

_TICK_S = 0.05
_MEMORY_EXIT = 137


def main(config: dict[str, Any]) -> None:
    """Runs the service and ends with it.

    Args:
        config: ``program`` (its text), ``user`` (id to run as, or None to keep this one), ``path``
            (folders to import from), ``watch_bytes`` (memory limit to be enforced from here, or
            None if a control group does it), ``home``.
    """
    if config["watch_bytes"] is not None:
        _fork_under_watch(config["watch_bytes"])
    user = config["user"]
    kernel.drop_capabilities(bounding_only=True)
    if user is not None:
        os.setgroups([])
        os.setresgid(user, user, user)
        os.setresuid(user, user, user)
    kernel.drop_capabilities()
    kernel.forbid_new_privileges()
    kernel.install_filter(call_filter.assemble())
    left = kernel.privileges_left()
    if left:
        raise PermissionError(f"privileges could not be given up: {left}")
    os.makedirs(config["home"], exist_ok=True)
    os.chdir(config["home"])
    sys.path[:0] = config["path"]
    for name in [name for name in sys.modules if name.split(".")[0] == "judge"]:
        del sys.modules[name]
    module = types.ModuleType("__main__")
    sys.modules["__main__"] = module
    exec(compile(config["program"], "service", "exec", dont_inherit=True), module.__dict__)  # noqa: S102 - the job


def _fork_under_watch(limit_bytes: int) -> None:
    """Continues in a child; the parent stays here and kills everything that exceeds the limit."""
    child = os.fork()
    if child == 0:
        return
    # the protocol is the child's alone: its end must be seen as the end of the stream
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
