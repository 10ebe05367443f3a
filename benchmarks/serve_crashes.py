#!/usr/bin/env python3
"""Kills the parts of `judge serve` with SIGKILL at random moments while they judge.

    .venv/bin/python -m benchmarks.serve_crashes --kills 20 --database sqlite
    .venv/bin/python -m benchmarks.serve_crashes --kills 20 --database postgresql

Submissions of the sample suite are sent over HTTP all the time, each with an idempotency key and
repeated until it is accepted, so that the queue is never empty. Server, dispatcher, PostgreSQL, and
all of them together, are killed in random order, each time during a judging, and started again.
Afterwards each submission must be judged exactly once, with the right verdicts; `admin check` must
find nothing; no process may be left; and the board's document must equal that of the same
submissions without kills, except for ids and times. Prints the counts; exits with 1 if one of them
is wrong. --seed determines the moments.
"""

from __future__ import annotations

import json
import os
import random
import sys
import threading
import time
from collections import Counter
from typing import Any

from benchmarks.command_line import parser_of, run_command
from benchmarks.serve_rig import Rig, is_right, rig_of

PARTS = ("server", "dispatcher", "database", "all")
ALL_AT_ONCE = 5
WAITING = 3
"""How many judgings are always waiting."""

_LATEST_S = 3.0


class Feeder(threading.Thread):
    """Submits whenever fewer than :data:`WAITING` judgings wait, until it is stopped."""

    def __init__(self, rig: Rig) -> None:
        super().__init__(daemon=True)
        self._rig = rig
        self.number = 0
        self.ended = threading.Event()

    def run(self) -> None:
        """Submits."""
        while not self.ended.is_set():
            try:
                waiting = self._rig.count("queued")
            except Exception:  # noqa: BLE001  the database is being killed
                waiting = WAITING
            if waiting < WAITING:
                self._rig.hand_in(self.number)
                self.number += 1
            else:
                time.sleep(0.1)


def killed(kind: str, kills: int, seed: int) -> tuple[dict[str, Any], list[str], int]:
    """Makes a run with kills; returns counts, board documents and the number of submissions."""
    chance = random.Random(seed)
    names = [name for name in PARTS if kind == "postgresql" or name != "database"]
    rounds = [name for name in names for _ in range(ALL_AT_ONCE if name == "all" else kills)]
    chance.shuffle(rounds)
    hits: Counter[str] = Counter()
    begun = time.monotonic()
    with rig_of(kind) as rig:
        rig.start("dispatcher", "server")
        rig.prepare()
        feeder = Feeder(rig)
        feeder.start()
        for name in rounds:
            rig.wait_for("a judging under way", lambda: bool(rig.held("dispatcher")))
            time.sleep(chance.uniform(0.0, _LATEST_S))
            hits[name] += kill(rig, name)
        feeder.ended.set()
        feeder.join()
        rig.wait_until_judged()
        counts = {
            "database": kind,
            "seed": seed,
            "kills": dict(Counter(rounds)),
            "of them while a judging was under way": dict(hits),
            "leases lost": rig.lost_leases(),
            "seconds": round(time.monotonic() - begun),
            "load": round(os.getloadavg()[0]),
        }
        print(json.dumps(counts), flush=True)
        results = rig.results()
        return results, rig.documents(), feeder.number


def kill(rig: Rig, name: str) -> bool:
    """Kills a part and starts it again; returns whether a judging was running."""
    was_judging = bool(rig.held("dispatcher"))
    if name in {"database", "all"} and rig.postgresql is not None:
        rig.postgresql.kill()
    for part in ("server", "dispatcher"):
        if name in {part, "all"}:
            rig.parts[part].kill()
    if name in {"database", "all"} and rig.postgresql is not None:
        rig.postgresql.start()
    if name in {"dispatcher", "all"}:
        rig.lost += rig.leftovers()
    for part in ("server", "dispatcher"):
        if name in {part, "all"}:
            rig.parts[part].start_again()
    return was_judging


def calm(kind: str, number: int) -> tuple[dict[str, Any], list[str]]:
    """Judges the same submissions without kills."""
    with rig_of(kind) as rig:
        rig.start("dispatcher", "server")
        rig.prepare()
        for number_ in range(number):
            rig.hand_in(number_)
        rig.wait_until_judged()
        return rig.results(), rig.documents()


def main() -> None:
    """Runs the command."""
    parser = parser_of(__doc__)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--database", choices=["sqlite", "postgresql"], default="sqlite")
    options = parser.parse_args()
    results, documents, number = killed(options.database, options.kills, options.seed)
    print(json.dumps(results), flush=True)
    undisturbed, others = calm(options.database, number)
    print(f"without kills: {json.dumps(undisturbed)}")
    same = len({*documents, *others}) == 1
    print(f"the board's documents are {'equal' if same else 'different'}")
    sys.exit(0 if same and is_right(results) and is_right(undisturbed) else 1)


if __name__ == "__main__":
    run_command(main)
