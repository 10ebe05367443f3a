"""Limits for a process that a test forked, on top of what its parent has already used."""

from __future__ import annotations

import gc
import os
import resource
import traceback
from collections.abc import Callable
from pathlib import Path


def bound_process(*, cpu_s: int, memory_bytes: int) -> None:
    """Bounds this process, which is not to be the test's own.

    A worker that ran thousands of tests holds far more address space, and has used far more
    processor time, than one test may take; both are bounded from here on.

    Args:
        cpu_s: processor time from here on.
        memory_bytes: address space beyond what is in use now.
    """
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    bound = pages * resource.getpagesize() + memory_bytes
    _, most = resource.getrlimit(resource.RLIMIT_AS)
    if most != resource.RLIM_INFINITY:
        bound = min(bound, most)
    resource.setrlimit(resource.RLIMIT_AS, (bound, most))
    spent = resource.getrusage(resource.RUSAGE_SELF)
    seconds = int(spent.ru_utime + spent.ru_stime) + cpu_s
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))


def in_bounds(work: Callable[[], object], *, cpu_s: int, memory_bytes: int) -> int:
    """Does some work in a process of its own, within :func:`bound_process`.

    Returns:
        Its exit code: 0 where the work came to its end, 1 where it raised, less than 0 by a signal.
    """
    child = os.fork()
    if child == 0:
        code = 1
        try:
            gc.freeze()  # to look through what the parent holds would copy its memory
            bound_process(cpu_s=cpu_s, memory_bytes=memory_bytes)
            work()
            code = 0
        except BaseException:  # noqa: BLE001 - whatever it is, the parent must see it
            traceback.print_exc()
        finally:
            os._exit(code)
    _, status = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(status)
