"""Takes back the leases of dead or silent holders, by counters and this machine's clock.

Both servers and dispatchers watch, so that leases are returned even while a dispatcher is down.
Jumps of the system clock have no effect, because a watcher measures the time since it last saw a
counter change.
"""

from __future__ import annotations

import threading
import time
import traceback
from collections.abc import Callable
from pathlib import Path

import sqlalchemy as sa

from judge.console import print_label
from judge.errors import JudgeError
from judge.grading.store import CASES_FILE
from judge.serve.queue.leases import held_by, lose
from judge.serve.store import tables as t
from judge.serve.store.database import Actor, Database
from judge.serve.store.folder import DataFolder
from judge.serve.store.tables import JudgingState

LEASE_S = 30.0
"""A lease is lost if its counter does not change for this many seconds, by the watcher's clock."""

BEAT_S = 5.0
"""Seconds between two heartbeats of a holder."""


class Watcher:
    """Watches all leases.

    Args:
        database: the server's database.
        folder: the data folder, whose results directories show the progress of a judging.
        name: the name of the process, for the audit log.
        patience_s: see :data:`LEASE_S`.
        clock: returns seconds that never go back.
    """

    def __init__(
        self,
        database: Database,
        folder: DataFolder,
        name: str,
        *,
        patience_s: float = LEASE_S,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._database = database
        self._folder = folder
        self._actor = Actor(f"watcher:{name}"[:80])
        self._patience_s = patience_s
        self._clock = clock
        self._seen: dict[tuple[str, str, int], float] = {}
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None

    def look(self) -> int:
        """Checks all leases once.

        Returns:
            How many leases it took back.

        Raises:
            StoreError: the database cannot be reached.
        """
        query = sa.select(t.judging.c.id, t.judging.c.lease, t.judging.c.beat).where(
            t.judging.c.state == JudgingState.RUNNING
        )
        with self._database.reading() as connection:
            leases = [(row.id, row.lease, row.beat) for row in connection.execute(query)]
        now = self._clock()
        self._seen = {lease: self._seen.get(lease, now) for lease in leases}
        lost = 0
        for (judging, lease, beats), since in self._seen.items():
            if now - since >= self._patience_s:
                lost += _take_back(
                    self._database, self._folder, self._actor, judging, lease, beat_seen=beats
                )
        return lost

    def start(self) -> None:
        """Checks the leases regularly, on a separate thread, until :meth:`stop`."""
        self._thread = threading.Thread(target=self._watch, name="judge-watcher", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Ends the thread."""
        self._ended.set()
        if self._thread is not None:
            self._thread.join()

    def _watch(self) -> None:
        while not self._ended.wait(min(2.0, self._patience_s / 4)):
            try:
                self.look()
            except Exception as error:  # noqa: BLE001  nothing else would return leases
                # A counter could not change while the database was unavailable.
                self._seen.clear()
                if not isinstance(error, JudgeError):
                    print_label("error:", "red", f"watcher: {traceback.format_exc()}")


def return_leases(database: Database, folder: DataFolder, holder: str) -> int:
    """Takes back all leases of a dispatcher that is known to be dead.

    Returns:
        How many there were.
    """
    with database.reading() as connection:
        leases = held_by(connection, holder)
    actor = Actor(f"dispatcher:{holder}")
    return sum(
        _take_back(database, folder, actor, row["id"], row["lease"], beat_seen=None)
        for row in leases
    )


def cases_on_record(results: Path) -> int:
    """How many lines of cases a results directory has."""
    try:
        with (results / CASES_FILE).open("rb") as file:
            return sum(1 for _ in file)
    except OSError:
        return 0


def _take_back(
    database: Database,
    folder: DataFolder,
    actor: Actor,
    judging: str,
    lease: str,
    *,
    beat_seen: int | None,
) -> bool:
    progress = cases_on_record(folder.results(judging))
    with database.writing(actor) as transaction:
        return lose(transaction, judging, lease, beat_seen=beat_seen, progress=progress)
