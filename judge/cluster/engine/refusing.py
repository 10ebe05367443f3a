"""Nothing that arrives from a cluster is unpickled in a way that could run code.

``distributed`` unpickles in many places: results, exceptions, the type of a result, warnings,
events. Each of them can come from a worker. A pickle runs code only through the classes and
functions that it names, and Python announces each of these to its audit hooks first; while a
cluster is in use, every name is refused here but those that are harmless.
"""

from __future__ import annotations

import contextlib
import pickle
import sys
import threading
from collections.abc import Iterator

_HARMLESS = frozenset({("builtins", "bytes")})
"""What Dask names for every answer, which is bytes."""

_lock = threading.Lock()
_state = {"hooked": False, "users": 0}


class RefusedPickleError(pickle.UnpicklingError):
    """A pickle named something other than plain data."""


@contextlib.contextmanager
def refusing_pickles() -> Iterator[None]:
    """Refuses pickles that name classes or functions, in all threads of this process."""
    with _lock:
        if not _state["hooked"]:
            sys.addaudithook(_check)  # audit hooks stay for good; this one does nothing otherwise
            _state["hooked"] = True
        _state["users"] += 1
    try:
        yield
    finally:
        with _lock:
            _state["users"] -= 1


def _check(event: str, arguments: tuple[object, ...]) -> None:
    if event == "pickle.find_class" and _state["users"] and arguments not in _HARMLESS:
        module, name = arguments
        raise RefusedPickleError(f"a pickle from the cluster names {module}.{name}")
