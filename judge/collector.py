"""How often Python's garbage collector runs while something is judged."""

from __future__ import annotations

import contextlib
import gc
import threading
from collections.abc import Iterator

RARE_COLLECTIONS = (50_000, 20, 20)
"""Thresholds for :func:`gc.set_threshold`. A workbook consists of many objects without reference
cycles, in which the garbage collector finds nothing to free: with Python's default thresholds, it
takes a tenth of a run's processor time (`benchmarks/pipeline.py`).
"""


class _Collector:
    """The garbage collector of this process, for everything that judges in this process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._judging = 0
        self._before = gc.get_threshold()

    @contextlib.contextmanager
    def rarely_run(self) -> Iterator[None]:
        """While judging, lets the collector run as rarely as the command line does.

        A program that uses the library gets its own thresholds back after the last judging; they
        stay as they are if they are higher, or if it has switched the collector off.
        """
        with self._lock:
            self._judging += 1
            if self._judging == 1:
                self._before = gc.get_threshold()
                if 0 < self._before[0] < RARE_COLLECTIONS[0]:
                    gc.set_threshold(*RARE_COLLECTIONS)
        try:
            yield
        finally:
            with self._lock:
                self._judging -= 1
                if self._judging == 0:
                    gc.set_threshold(*self._before)


rarely_collecting = _Collector().rarely_run
