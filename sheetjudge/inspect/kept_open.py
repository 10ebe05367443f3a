"""What is opened once per process and closed when the evaluation ends."""

from __future__ import annotations

import atexit
import threading
from collections.abc import Callable
from typing import Protocol, TypeVar, cast


class _Closes(Protocol):
    def close(self) -> None: ...


_Opened = TypeVar("_Opened", bound=_Closes)


class KeptOpen:
    """Things by their key; safe to use from several threads."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._things: dict[object, _Closes] = {}
        self._is_seen_to = False

    def get(self, key: object, make: Callable[[], _Opened]) -> _Opened:
        """The thing of a key, opened when it is first asked for; blocks meanwhile.

        Args:
            key: tells apart what is opened differently; of one key come things of one type.
            make: opens it; what it raises is raised, and the next call tries again.
        """
        with self._lock:
            if key not in self._things:
                self._see_to_closing()
                self._things[key] = make()
            return cast("_Opened", self._things[key])

    def _see_to_closing(self) -> None:
        if self._is_seen_to:
            return
        # Inspect announces hooks before it runs anything: those who judge nothing hear of none.
        import sheetjudge.inspect.hooks  # noqa: F401, PLC0415

        atexit.register(self.close)
        self._is_seen_to = True

    def __len__(self) -> int:
        return len(self._things)

    def close(self) -> None:
        """Closes everything, what was opened last first; :meth:`get` opens it again."""
        with self._lock:
            while self._things:
                _, thing = self._things.popitem()
                thing.close()


KEPT_OPEN = KeptOpen()
"""The judges and sandboxes of this process."""
