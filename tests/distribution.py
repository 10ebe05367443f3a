"""Which worker runs which tests where several run them at once (``pytest -n``).

Most tests of this suite wait: for a limit that a hostile program runs into, for a container, for a
page, for a desktop that has to come to rest (it keeps a processor busy for less than half of the
time). So there are two workers for each processor. One of them takes the tests that compute, so
that the processors are busy from the beginning to the end while the other one waits. A third one
costs more than it gains: every worker collects all tests, imports their modules, and makes the
fixtures that are shared.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Iterable
from typing import Any

from xdist.scheduler.loadscope import LoadScopeScheduling
from xdist.workermanage import WorkerController

WORKERS_PER_PROCESSOR = 2
MAX_WORKERS = 12

ONE_BY_ONE = (
    "tests/conformance/",
    "tests/e2e/",
    "tests/parity/test_golds",
    "tests/parity/test_reader",
    "tests/inference/test_resume",
    "tests/inference/test_settings",
)
"""Here each test is assigned separately; elsewhere a whole file, with what its tests share."""

TOGETHER = ("tests/conformance/test_desktop",)
"""Except here, where the tests of a file share a running desktop."""

WAITING = (
    "tests/conformance/",
    "tests/desktop/",
    "tests/cluster/",
    "tests/browser/test_desktop",
    "tests/e2e/test_sample_desktop",
    "tests/inference/test_desktop",
    "tests/inference/test_faults",
    "tests/inference/test_resume",
    "tests/inference/test_mission",
)
"""Tests that mostly wait; all others mostly compute."""

LONGEST = (
    "tests/e2e/test_dev100.py::test_the_expected_score",
    "tests/unit/serve/spine/test_kills",
    "tests/inference/test_smollm2",
    "tests/browser/test_large",
    "tests/parity/test_official_verdicts",
    "tests/desktop/test_desktop",
    "tests/inference/test_desktop_smollm2",
    "tests/e2e/test_sample_desktop",
    "tests/conformance/test_interruptions",
    "tests/conformance/test_doctor",
    "tests/desktop/",
    "tests/browser/test_desktop",
    "tests/conformance/test_desktop_leaks",
    "tests/conformance/test_leaks",
    "tests/browser/test_annotate",
    "tests/unit/recalc/test_cascade",
    "tests/unit/recalc/test_golds",
    "tests/unit/recalc/test_engines",
    "tests/cluster/",
    "tests/inference/",
    "tests/e2e/",
    "tests/browser/",
    "tests/parity/",
    "tests/inspect/",
    "tests/unit/compare/rules/test_hostile",
    "tests/unit/core/replies/test_hostile_replies",
    "tests/unit/compare/cells/test_hostile",
    "tests/unit/compare/files/test_hostile_pdfs",
    "tests/unit/serve/spine/",
    "tests/unit/serve/disputes/",
    "tests/unit/report/test_malformed",
    "tests/unit/test_slow_outputs",
    "tests/unit/compare/",
    "tests/unit/annotate/",
    "tests/unit/suites/test_validate",
    "tests/unit/suites/test_sample",
    "tests/unit/serve/",
    "tests/unit/recalc/",
)
"""What comes first, so that nobody waits for it at the end.

The run of the hundred solutions is begun at once, and what reads it comes well behind it
(``tests/e2e/``), so that no worker waits for the one that makes it. A file that forks its worker
hundreds of times comes while the worker is small.
"""


def workers() -> int:
    """How many workers ``-n auto`` means on this machine."""
    return min(WORKERS_PER_PROCESSOR * len(os.sched_getaffinity(0)), MAX_WORKERS)


def unit_of(node_id: str) -> str:
    """Returns the unit with which a test is assigned: its file, or the test alone."""
    apart = node_id.startswith(ONE_BY_ONE) and not node_id.startswith(TOGETHER)
    return node_id if apart else node_id.partition("::")[0]


@functools.cache  # asked of all that is left whenever a unit is handed out
def rank(unit: str) -> int:
    """Returns the position of a unit in ``LONGEST``."""
    return next(
        (number for number, start in enumerate(LONGEST) if unit.startswith(start)), len(LONGEST)
    )


def choose(waiting_units: Iterable[str], *, computes: bool) -> str:
    """Returns the unit that a worker takes next: of its kind if possible, the longest first."""
    return min(waiting_units, key=lambda unit: (unit.startswith(WAITING) is computes, rank(unit)))


def is_shown(name: str, contents: dict[str, Any]) -> bool:
    """Says whether the main process shows or counts what a worker tells it in a message.

    It does not if a test begins or ends, and if its setup or teardown went well.
    """
    if name == "testreport":
        report = contents["data"]
        return bool(report["when"] == "call" or report["outcome"] != "passed")
    return name not in {"logstart", "logfinish"}


def send_what_is_shown(config: Any) -> None:
    """Lets a worker send only messages that the main process shows or counts.

    pytest-xdist sends six for each test, which costs more than most tests do. Lists of durations, a
    JUnit report and the names of tests need all of them.
    """
    options = config.option
    if options.durations or options.xmlpath or options.verbose > 0:
        return
    plugins = config.pluginmanager.get_plugins()
    worker = next(plugin for plugin in plugins if hasattr(plugin, "sendevent"))
    send = worker.sendevent

    def send_if_shown(name: str, **contents: Any) -> None:
        if is_shown(name, contents):
            send(name, **contents)

    worker.sendevent = send_if_shown


class Distribution(LoadScopeScheduling):  # type: ignore[misc]
    """Assigns units, longest first; one worker for each processor takes those that compute."""

    def _split_scope(self, nodeid: str) -> str:
        return unit_of(nodeid)

    def mark_test_complete(
        self, node: WorkerController, item_index: int, duration: float = 0
    ) -> None:
        """Forgets a unit that is complete: what is pending is counted anew after each test."""
        unit = self._split_scope(self.registered_collections[node][item_index])
        super().mark_test_complete(node, item_index, duration)
        if all(self.assigned_work[node][unit].values()):
            del self.assigned_work[node][unit]

    def _assign_work_unit(self, node: WorkerController) -> None:
        computes = self.nodes.index(node) < len(os.sched_getaffinity(0))
        self.workqueue.move_to_end(choose(self.workqueue, computes=computes), last=False)
        super()._assign_work_unit(node)
