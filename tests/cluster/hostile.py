"""Preloaded by a compromised worker: pickles that run code, and answers without end.

Each worker begins with a way of its own, the next of :data:`WAYS` that no other has taken.
"""

from __future__ import annotations

import os
import pickle
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from judge.grading.cluster import worker

MARK = "JUDGE_TEST_MARK"
"""Environment variable with the prefix of files whose existence shows that code was run."""

honest = getattr(worker, "honest", worker.answer)  # a preload may be loaded twice

MB = 1_000_000


class Evil:
    """Runs code when it is unpickled: makes a file that says which attack it was, and where."""

    def __init__(self, way: str) -> None:
        self.way = way

    def __reduce__(self) -> tuple[Any, ...]:
        path = os.environ[MARK] + self.way
        return (exec, (f"import os; open({path!r} + f'-{{os.getpid()}}', 'w').close()",))


class EvilError(Exception):
    """Carries the attack as the exception of a task."""


class EvilBytes(bytes):
    """Looks like an answer."""

    def __reduce__(self) -> tuple[Any, ...]:
        return Evil("bytes").__reduce__()


class Compressed:
    """Short where it is sent, but long where it is read."""


def _raise() -> object:
    raise EvilError(Evil("exception"))


def _with_events() -> bytes:
    from distributed import get_worker  # noqa: PLC0415  needed where a worker runs, not by tests

    # ``log_event`` would look at every object first: half a minute that no attacker spends.
    event = {"op": "log-event", "topic": "warn", "msg": [{}] * (9 * MB)}
    worker = get_worker()
    worker.loop.add_callback(worker.batched_send, event)
    return pickle.dumps(Evil("bytes-of-a-pickle"))


def _compressed() -> object:
    from distributed.protocol.compression import compressions  # noqa: PLC0415
    from distributed.protocol.serialize import register_serialization_family  # noqa: PLC0415

    data = compressions["zlib"].compress(bytes(300 * MB))

    def dumps(_: Compressed) -> tuple[dict[str, Any], list[Any]]:
        return {"compression": ("zlib",)}, [data]

    def loads(header: object, frames: object) -> object:
        raise NotImplementedError

    register_serialization_family("msgpack", dumps, loads)
    return Compressed()


WAYS = {
    "an exception": _raise,
    "a result": lambda: Evil("result"),
    "bytes": lambda: EvilBytes(b"x"),
    "a pickle, and an event of millions of objects": _with_events,
    "an answer of 240 MB": lambda: bytes(240 * MB),
    # Dask makes a part of each object in a list; of millions, which takes minutes, none arrived.
    "parts without end": lambda: [{}] * 110_000,
    "millions of objects": lambda: deque([{}] * (9 * MB)),
    "a compressed answer": _compressed,
}


def _ways_of_this_worker() -> Iterator[str]:
    """Takes the first attack that no other worker has taken; further answers are plain results.

    Two large attacks of one worker would get in each other's way: one answers with many objects,
    another makes each object that is sent take a second. And they would be sent twice.
    """
    for number, way in enumerate(WAYS):
        taken = Path(f"{os.environ[MARK]}way-{number}")
        try:
            taken.touch(exist_ok=False)
        except FileExistsError:
            continue
        yield way
        break
    while True:
        yield "a result"


_ways = _ways_of_this_worker()


def answer(data: bytes) -> object:
    """Greets honestly, then carries out its attack."""
    from distributed import get_worker  # noqa: PLC0415  needed where a worker runs, not by tests

    if data[:1] == b"H":
        return honest(data)
    warning = {name: pickle.dumps(Evil(name)) for name in ("message", "category")}
    get_worker().log_event("warn", warning)
    return WAYS[next(_ways)]()


def install() -> None:
    """Takes over the worker."""
    worker.answer, worker.honest = answer, honest  # type: ignore[assignment,attr-defined]


def dask_setup(worker: object) -> None:
    """Called by Dask when it preloads this file."""
    del worker
    install()
