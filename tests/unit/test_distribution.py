from __future__ import annotations

from types import SimpleNamespace

import pytest

from tests import distribution
from tests.conftest import REPOSITORY

ATTACKS = [f"tests/conformance/test_attacks.py::test_attack[{name}]" for name in "ab"]
SCORE = "tests/e2e/test_dev100.py::test_the_expected_score"
PAGES = "tests/browser/test_view.py"
VALUES = "tests/unit/compare/cells/test_value.py"
THIRTY = [f"tests/unit/test_{file}.py::test[{n}]" for file in "abcdef" for n in range(5)]


@pytest.mark.parametrize(
    "start", [*distribution.ONE_BY_ONE, *distribution.WAITING, *distribution.LONGEST]
)
def test_named_tests_exist(start: str) -> None:
    path, _, name = start.partition("::")
    files = list(REPOSITORY.glob(f"{path}*"))
    assert files
    assert not name or all(f"def {name}" in file.read_text(encoding="utf-8") for file in files)


def test_a_file_goes_to_one_worker_but_long_files_test_by_test() -> None:
    assert distribution.unit_of(f"{VALUES}::test_numbers[1]") == VALUES
    assert distribution.unit_of(ATTACKS[0]) == ATTACKS[0]
    assert distribution.unit_of(SCORE) == SCORE


def test_workers_take_the_longest_unit_of_their_kind_first() -> None:
    left = [VALUES, *ATTACKS, PAGES, SCORE]
    taken = []
    for _ in range(len(left)):
        taken.append(distribution.choose(left, computes=True))
        left.remove(taken[-1])
    assert taken == [SCORE, PAGES, VALUES, *ATTACKS]
    assert distribution.choose([VALUES, SCORE, *ATTACKS], computes=False) == ATTACKS[0]
    assert distribution.choose([VALUES, SCORE], computes=False) == SCORE


def test_there_are_more_workers_than_processors(monkeypatch: pytest.MonkeyPatch) -> None:
    for processors, workers in ((1, 2), (2, 4), (64, distribution.MAX_WORKERS)):
        monkeypatch.setattr("os.sched_getaffinity", lambda _, count=processors: set(range(count)))
        assert distribution.workers() == workers


def test_a_worker_sends_what_is_shown() -> None:
    def reported(when: str, outcome: str) -> bool:
        return distribution.is_shown("testreport", {"data": {"when": when, "outcome": outcome}})

    assert not distribution.is_shown("logstart", {})
    assert not distribution.is_shown("logfinish", {})
    assert distribution.is_shown("warning_recorded", {})
    assert distribution.is_shown("runtest_protocol_complete", {"item_index": 1})
    assert [reported(when, "passed") for when in ("setup", "call", "teardown")] == [
        False, True, False,
    ]  # fmt: skip
    for outcome in ("failed", "skipped", "rerun"):
        assert all(reported(when, outcome) for when in ("setup", "call", "teardown"))


class Worker:
    """A worker that is sent tests, and its view of the collection."""

    shutting_down = False

    def __init__(self, name: str) -> None:
        self.gateway = SimpleNamespace(id=name)
        self.sent: list[int] = []
        self.completed = 0

    def send_runtest_some(self, indices: list[int]) -> None:
        self.sent += indices

    def shutdown(self) -> None:
        self.shutting_down = True


@pytest.fixture
def scheduled() -> tuple[distribution.Distribution, Worker, Worker]:
    """Two workers that have got the first of thirty tests in six files."""
    option = SimpleNamespace(loadscopereorder=False)
    config = SimpleNamespace(option=option, getvalue=lambda _: ["2*popen"])
    scheduler = distribution.Distribution(config)
    workers = Worker("gw0"), Worker("gw1")
    for worker in workers:
        scheduler.add_node(worker)
    for worker in workers:
        scheduler.add_node_collection(worker, THIRTY)
    scheduler.schedule()
    return scheduler, *workers


def complete(scheduler: distribution.Distribution, worker: Worker, tests: int) -> None:
    for _ in range(tests):
        assert scheduler.has_pending
        scheduler.mark_test_complete(worker, worker.sent[worker.completed])
        worker.completed += 1


def test_every_test_is_sent_once_and_is_pending_until_it_is_complete(
    scheduled: tuple[distribution.Distribution, Worker, Worker],
) -> None:
    scheduler, *workers = scheduled
    while any(worker.completed < len(worker.sent) for worker in workers):
        for worker in workers:
            complete(scheduler, worker, min(1, len(worker.sent) - worker.completed))
    assert sorted(workers[0].sent + workers[1].sent) == list(range(len(THIRTY)))
    assert scheduler.tests_finished
    assert not scheduler.has_pending
    assert all(worker.shutting_down for worker in workers)
    assert [scheduler.remove_node(worker) for worker in workers] == [None, None]


def test_what_a_crashed_worker_left_is_run_by_another(
    scheduled: tuple[distribution.Distribution, Worker, Worker],
) -> None:
    scheduler, crashed, other = scheduled
    complete(scheduler, crashed, tests=7)  # one file, and two tests of the next
    assert scheduler.remove_node(crashed) == THIRTY[crashed.sent[7]]
    while other.completed < len(other.sent):
        complete(scheduler, other, tests=1)
    assert sorted(crashed.sent[:7] + other.sent) == list(range(len(THIRTY)))
