"""What a worker preloads that has been taken over: it sends pickles that run code."""

from __future__ import annotations

import os
import pickle
from typing import Any

from judge.cluster import duties

MARK = "JUDGE_TEST_MARK"
"""Environment variable: how the files begin that show that code was run."""

honest = getattr(duties, "honest", duties.answer)  # a preload may be loaded twice
_answers: list[int] = []


class Evil:
    """Runs code where it is unpickled: makes a file that says what it was, and where."""

    def __init__(self, way: str) -> None:
        self.way = way

    def __reduce__(self) -> tuple[Any, ...]:
        path = os.environ[MARK] + self.way
        return (exec, (f"import os; open({path!r} + f'-{{os.getpid()}}', 'w').close()",))


class EvilError(Exception):
    """Carries it, as the exception of a task."""


class EvilBytes(bytes):
    """Looks like an answer."""

    def __reduce__(self) -> tuple[Any, ...]:
        return Evil("bytes").__reduce__()


def answer(data: bytes) -> object:
    """Greets honestly, and then tries one way after the other."""
    from distributed import get_worker  # noqa: PLC0415  needed where a worker runs, not by tests

    if data[:1] == b"H":
        return honest(data)
    _answers.append(len(_answers))
    warning = {name: pickle.dumps(Evil(name)) for name in ("message", "category")}
    get_worker().log_event("warn", warning)
    match len(_answers) % 4:
        case 0:
            raise EvilError(Evil("exception"))
        case 1:
            return Evil("result")
        case 2:
            return EvilBytes(b"x")
    return pickle.dumps(Evil("bytes-of-a-pickle"))


def install() -> None:
    """Takes the worker over."""
    duties.answer, duties.honest = answer, honest  # type: ignore[assignment,attr-defined]


def dask_setup(worker: object) -> None:
    """What Dask calls when it preloads this file."""
    del worker
    install()
