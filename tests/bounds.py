"""Limits for a process that a test forked, on top of what its parent has already used."""

from __future__ import annotations

import gc
import json
import os
import resource
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn


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
    spent = resource.getrusage(resource.RUSAGE_SELF)
    seconds = int(spent.ru_utime + spent.ru_stime) + cpu_s
    for limit, value in ((resource.RLIMIT_AS, bound), (resource.RLIMIT_CPU, seconds)):
        _, most = resource.getrlimit(limit)
        soft = value if most == resource.RLIM_INFINITY else min(value, most)
        resource.setrlimit(limit, (soft, most))


def in_bounds(work: Callable[[], object], *, cpu_s: int, memory_bytes: int) -> int:
    """Does some work in a process of its own, within :func:`bound_process`.

    Returns:
        Its exit code: 0 where the work came to its end, 1 where it raised, less than 0 by a signal.
    """

    def without_result() -> None:
        work()

    works = {"": without_result}
    (ended,) = each_in_bounds(works, cpu_s=cpu_s, memory_bytes=memory_bytes).values()
    return ended.code


@dataclass(frozen=True)
class Ended:
    """How some work ended.

    Attributes:
        code: 0 where it came to its end, 1 where it raised, less than 0 by a signal.
        result: what it returned, as JSON has it.
    """

    code: int
    result: Any = None


def each_in_bounds(
    works: Mapping[str, Callable[[], object]], *, cpu_s: int, memory_bytes: int
) -> dict[str, Ended]:
    """Does several works one after another in one process, each within :func:`bound_process`.

    To fork a worker that holds hundreds of megabytes costs more than most of these works. What a
    work leaves behind counts as in use before the next one; a new process goes on after one that a
    signal ended.

    Args:
        works: name -> work; results must be of types that JSON has.
        cpu_s: processor time of each.
        memory_bytes: address space of each.

    Returns:
        Name -> how it ended.
    """
    ended: dict[str, Ended] = {}
    while left := [name for name in works if name not in ended]:
        ours, theirs = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(ours)
            _do({name: works[name] for name in left}, theirs, cpu_s, memory_bytes)
        os.close(theirs)
        with os.fdopen(ours, encoding="utf-8") as lines:
            for name, line in zip(left, lines, strict=False):
                ended[name] = Ended(*json.loads(line))
        _, status = os.waitpid(child, 0)
        code = os.waitstatus_to_exitcode(status)
        unfinished = [name for name in left if name not in ended]
        assert (code == 0) is not bool(unfinished), code
        ended.update({name: Ended(code) for name in unfinished[:1]})
    return ended


def _do(
    works: Mapping[str, Callable[[], object]], answers: int, cpu_s: int, memory_bytes: int
) -> NoReturn:
    code = 2
    try:
        gc.freeze()  # to look through what the parent holds would copy its memory
        for work in works.values():
            bound_process(cpu_s=cpu_s, memory_bytes=memory_bytes)
            try:
                answer: list[object] = [0, work()]
            except BaseException:  # noqa: BLE001 - whatever it is, the parent must see it
                traceback.print_exc()
                answer = [1]
            os.write(answers, json.dumps(answer).encode() + b"\n")
        code = 0
    except BaseException:  # noqa: BLE001 - a forked process must not go on with the tests
        traceback.print_exc()
    finally:
        os._exit(code)
