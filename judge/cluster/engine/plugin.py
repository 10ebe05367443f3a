"""What every worker gets once: sandbox and engines, and a watch on what is still wanted."""

from __future__ import annotations

import contextlib
import pickle
import threading
from typing import Any

from distributed.diagnostics.plugin import WorkerPlugin

from judge.cluster.duties import workplace
from judge.errors import JudgeError
from judge.version import __version__

NAME = "judge"
_WATCH_S = 0.2
_WANTED = frozenset({"executing", "long-running"})


class JudgePlugin(WorkerPlugin):
    """Opens sandbox and engines on a worker, and ends what nobody waits for any more.

    A cancelled task, and one whose client is gone, goes on in its thread as if nothing had
    happened; only the worker's own record of the task says that it is not wanted.

    Args:
        recipe: a pickled :class:`judge.grading.recipe.WorkerRecipe`; of another version of the
            judge it is left alone, and the handshake refuses the worker.
    """

    name = NAME

    def __init__(self, recipe: bytes) -> None:
        self._version = __version__
        self._recipe = recipe

    def setup(self, worker: Any) -> None:
        """Starts opening, and the watch, on threads: the worker introduces itself meanwhile."""
        self._ended = threading.Event()
        if self._version == __version__:
            threading.Thread(target=self._open, daemon=True).start()
        threading.Thread(target=self._watch, args=(worker,), daemon=True).start()

    def teardown(self, worker: Any) -> None:
        """Ends what runs, and closes sandbox and engines."""
        del worker
        self._ended.set()
        place = workplace()
        if (key := place.current) is not None:
            place.abandon(key)
        place.close()

    def _open(self) -> None:
        recipe = pickle.loads(self._recipe)  # noqa: S301  from the client, whose code this is
        with contextlib.suppress(JudgeError):  # the handshake says so
            workplace().open(recipe)

    def _watch(self, worker: Any) -> None:
        place = workplace()
        while not self._ended.wait(_WATCH_S):
            key = place.current
            if key is None:
                continue
            task = worker.state.tasks.get(key)
            if task is None or task.state not in _WANTED:
                place.abandon(key)
