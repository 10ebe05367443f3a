"""Which worker gets which work, and which one is blamed when workers die."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest

from judge.core.limits import Limits
from judge.core.verdict import Verdict
from judge.errors import ClusterError
from judge.grading.batch import WorkerRecipe
from judge.grading.cluster import dispatch
from judge.grading.cluster.dispatch import (
    DEATHS,
    DEPTH,
    STUCK_S,
    Answered,
    Dispatcher,
    LostPiece,
    Terms,
)
from judge.grading.cluster.messages import Identity, Introduction, Question, Reply, Request
from judge.grading.jobs import ATTEMPTS, CaseJob, Job, JudgedCase
from tests.unit.grading.cluster.scripted import (
    DiesError,
    ScriptedCluster,
    all_right,
    job,
    judged,
    other,
)


def dispatcher(cluster: ScriptedCluster, workers: int = 2) -> tuple[Dispatcher, list[str]]:
    told: list[str] = []
    terms = Terms(WorkerRecipe(), Question(), Identity(), workers=workers, wait_s=30.0)
    return Dispatcher(cluster, terms, on_notice=told.append, clock=cluster.clock), told


def counted(outcomes: Sequence[object]) -> Counter[tuple[str, int]]:
    """Counts how often each case was judged."""
    results = [each.result for each in outcomes if isinstance(each, JudgedCase)]
    return Counter((each.task_id, each.case) for each in results)


def every_case_once(jobs: list[Job]) -> Counter[tuple[str, int]]:
    return Counter((each.task.id, one.case.number) for each in jobs for one in each.cases)


def test_every_case_is_judged_once() -> None:
    cluster, jobs = ScriptedCluster(), [job(number) for number in range(50)]
    work, _ = dispatcher(cluster)
    assert counted(list(work.run(jobs))) == every_case_once(jobs)
    assert work.stopped is None


def test_quick_cases_are_sent_in_chunks_and_the_window_stays_small() -> None:
    cluster, jobs = ScriptedCluster(), [job(number) for number in range(400)]
    work, _ = dispatcher(cluster)
    assert counted(list(work.run(jobs))) == every_case_once(jobs)
    assert len(cluster.sent) < len(jobs) / 2
    assert cluster.deepest <= DEPTH


def slow(request: Request) -> Reply:
    reply = all_right(request)
    reply.seconds = 20.0 * len(request.work)
    return reply


def test_slow_cases_are_sent_one_submission_at_a_time() -> None:
    cluster, jobs = ScriptedCluster(answer=slow), [job(number) for number in range(20)]
    work, _ = dispatcher(cluster)
    list(work.run(jobs))
    assert all(len(request.work) == 1 for _, request in cluster.sent)


def test_conversations_stay_with_the_client() -> None:
    cluster = ScriptedCluster()
    work, _ = dispatcher(cluster)
    list(work.run([job(1)]))
    (sent,) = cluster.sent[0][1].work
    assert isinstance(sent, Job)
    assert sent.submission is not None
    assert not sent.submission.provenance


def test_a_worker_that_dies_once_costs_no_case() -> None:
    deaths: list[str] = []

    def answer(request: Request) -> Reply:
        if not deaths:
            deaths.append(request.key)
            raise DiesError
        return all_right(request)

    cluster, jobs = ScriptedCluster(answer=answer), [job(number) for number in range(30)]
    work, told = dispatcher(cluster)
    assert counted(list(work.run(jobs))) == every_case_once(jobs)
    assert any("is gone" in each for each in told)


def killing(fatal: Callable[[Job, int], bool]) -> Callable[[Request], Reply]:
    """Workers die from a chunk that contains a fatal case."""

    def answer(request: Request) -> Reply:
        for each in request.work:
            assert isinstance(each, Job)
            if any(fatal(each, one.case.number) for one in each.cases):
                raise DiesError
        return all_right(request)

    return answer


@pytest.mark.parametrize("fatal_cases", [{2}, {1, 2, 3}])
def test_only_the_cases_that_kill_their_worker_are_given_up(fatal_cases: set[int]) -> None:
    answer = killing(lambda work, case: work.task.id == "7" and case in fatal_cases)
    cluster = ScriptedCluster(answer=answer)
    jobs = [job(number, cases=3) for number in range(40)]
    work, _ = dispatcher(cluster)
    outcomes = list(work.run(jobs))
    lost = [each for each in outcomes if isinstance(each, LostPiece)]
    given_up = {(each.work.task.id, one.case.number) for each in lost for one in _cases(each)}
    assert given_up == {("7", case) for case in fatal_cases}
    whole = every_case_once(jobs)
    assert counted(outcomes) == Counter({key: 1 for key in whole if key not in given_up})
    assert all("workers died" in each.reason for each in lost)


def _cases(lost: LostPiece) -> Sequence[CaseJob]:
    assert isinstance(lost.work, Job)
    return lost.work.cases


def test_a_submission_is_tried_often_enough_to_survive_workers_that_die_by_themselves() -> None:
    deaths: list[str] = []

    def answer(request: Request) -> Reply:
        if len(deaths) < DEATHS and any(each.task.id == "3" for each in request.work):
            deaths.append(request.key)
            raise DiesError
        return all_right(request)

    cluster, jobs = ScriptedCluster(answer=answer), [job(number) for number in range(10)]
    work, _ = dispatcher(cluster)
    assert counted(list(work.run(jobs))) == every_case_once(jobs)


def test_suspects_go_alone_to_a_worker_that_has_nothing_else() -> None:
    answer = killing(lambda work, _: work.task.id == "7")
    cluster = ScriptedCluster(answer=answer)
    together: list[list[str]] = []
    plain = cluster.send

    def send(address: str, key: str, request: bytes) -> None:
        plain(address, key, request)
        if request[:1] == b"W":
            held = [Request.from_bytes(data[1:]) for _, data in cluster.waiting[address]]
            ids = [each.task.id for one in held for each in one.work]
            if "7" in ids:
                together.append(ids)

    cluster.send = send  # type: ignore[method-assign]
    work, _ = dispatcher(cluster)
    list(work.run([job(number) for number in range(40)]))
    assert together[0] != ["7"]  # at first nobody knows
    assert set(map(tuple, together[2:])) == {("7",)}


NOTHING = Reply(seconds=0.1)
UNREADABLE = [None, b"", b"\x80\x04nonsense", b"\x81\xa1x\x01", NOTHING, Reply(error="disk full")]


@pytest.mark.parametrize("answer", UNREADABLE)
def test_a_worker_that_answers_what_cannot_be_used_is_left_out(
    answer: Reply | bytes | None,
) -> None:
    """Whatever the bad worker gets, and however often, the honest one judges everything."""
    cluster, jobs = ScriptedCluster(), [job(number, cases=3) for number in range(24)]
    cluster.answers_of["w1"] = lambda _: answer
    work, told = dispatcher(cluster)
    outcomes = list(work.run(jobs))
    assert not [each for each in outcomes if isinstance(each, LostPiece)]
    assert counted(outcomes) == every_case_once(jobs)
    assert work.stopped is None
    assert len([address for address, _ in cluster.sent if address == "w1"]) <= DEPTH
    assert any("w1 is no longer used" in each for each in told)


@pytest.mark.parametrize("answer", UNREADABLE)
def test_where_no_worker_can_be_used_the_run_stops_and_no_case_has_a_verdict(
    answer: Reply | bytes | None,
) -> None:
    work, _ = dispatcher(ScriptedCluster(answer=lambda _: answer))
    assert list(work.run([job(number) for number in range(10)])) == []
    assert isinstance(work.stopped, ClusterError)
    assert "no worker is left" in work.stopped.message


@pytest.mark.parametrize("seconds", [-1.0, 1e9, float("nan"), float("inf")])
def test_a_worker_that_says_an_impossible_time_is_left_out(seconds: float) -> None:
    """The number would decide how much work is sent at a time."""
    cluster, jobs = ScriptedCluster(), [job(number) for number in range(24)]
    cluster.answers_of["w1"] = lambda request: replace(all_right(request), seconds=seconds)
    work, told = dispatcher(cluster)
    assert counted(list(work.run(jobs))) == every_case_once(jobs)
    assert any("w1 is no longer used" in each for each in told)


def test_a_worker_that_never_answers_is_left_out_and_its_cases_go_elsewhere() -> None:
    cluster, jobs = ScriptedCluster(), [job(number) for number in range(24)]
    cluster.silent.add("w1")
    work, told = dispatcher(cluster)
    outcomes = list(work.run(jobs))
    assert counted(outcomes) == every_case_once(jobs)
    verdicts = {each.result.verdict for each in outcomes if isinstance(each, JudgedCase)}
    assert verdicts == {Verdict.AC}
    assert any("w1" in each and "has not answered for" in each for each in told)
    assert {key for key, _ in cluster.waiting["w1"]} <= cluster.cancelled


def test_a_run_stops_where_no_worker_ever_answers() -> None:
    cluster = ScriptedCluster(silent={"w1", "w2"})
    work, _ = dispatcher(cluster)
    assert list(work.run([job(number) for number in range(5)])) == []
    assert work.stopped is not None
    assert "has not answered for" in work.stopped.message


def test_a_long_honest_case_is_not_cut() -> None:
    """Each attempt may take as long as its limit; the patience is added to that."""
    patient = Limits(cpu_s=5000, wall_s=5000)
    jobs = [replace(job(number, cases=1), limits=patient) for number in range(4)]
    cluster = ScriptedCluster()

    def slowly(request: Request) -> Reply:
        cluster.now += ATTEMPTS * patient.wall_s + STUCK_S
        return all_right(request)

    cluster.answer = slowly
    work, told = dispatcher(cluster)
    assert counted(list(work.run(jobs))) == every_case_once(jobs)
    assert told == []


def test_a_worker_that_does_not_say_who_it_is_keeps_nobody_waiting() -> None:
    cluster = ScriptedCluster(mute={"w2"})
    work, told = dispatcher(cluster)
    jobs = [job(number) for number in range(10)]
    assert counted(list(work.run(jobs))) == every_case_once(jobs)
    assert any("w2 did not introduce itself" in each for each in told)


def test_what_a_worker_did_not_get_to_is_sent_again() -> None:
    def half(request: Request) -> Reply:
        reply, work = Reply(seconds=0.1), request.work[0]
        assert isinstance(work, Job)
        reply.judged[0] = {0: judged(work, 0)}
        return reply

    cluster, jobs = ScriptedCluster(answer=half), [job(number, cases=3) for number in range(5)]
    work, _ = dispatcher(cluster)
    assert counted(list(work.run(jobs))) == every_case_once(jobs)


def test_a_worker_without_a_sandbox_is_left_and_its_cases_go_elsewhere() -> None:
    cluster = ScriptedCluster()
    broken: list[str] = []

    def answer(request: Request) -> Reply:
        reply = all_right(request)
        if not broken:
            broken.append(request.key)
            work = request.work[0]
            assert isinstance(work, Job)
            reply.judged[0] = {0: judged(work, 0, Verdict.JE)}
            reply.gone = "no sandbox"
        return reply

    cluster.answer = answer
    jobs = [job(number) for number in range(30)]
    work, told = dispatcher(cluster)
    outcomes = list(work.run(jobs))
    assert counted(outcomes) == every_case_once(jobs)
    verdicts = {each.result.verdict for each in outcomes if isinstance(each, JudgedCase)}
    assert verdicts == {Verdict.AC}
    assert any("no sandbox" in each for each in told)


def test_the_run_stops_where_no_worker_has_a_sandbox() -> None:
    def answer(request: Request) -> Reply:
        return Reply(gone="no sandbox")

    work, _ = dispatcher(ScriptedCluster(answer=answer))
    list(work.run([job(number) for number in range(5)]))
    assert isinstance(work.stopped, ClusterError)
    assert "no sandbox" in work.stopped.message


def test_a_run_stops_when_all_workers_are_gone_for_good() -> None:
    def answer(_: Request) -> Reply:
        raise DiesError

    work, _ = dispatcher(ScriptedCluster(answer=answer, restarts=False))
    list(work.run([job(number) for number in range(5)]))
    assert work.stopped is not None
    assert "no worker is left" in work.stopped.message


def test_a_run_stops_when_the_scheduler_is_gone() -> None:
    cluster = ScriptedCluster()

    def answer(request: Request) -> Reply:
        cluster.lost = cluster.answers > 2
        return all_right(request)

    cluster.answer = answer
    jobs = [job(number) for number in range(100)]
    work, _ = dispatcher(cluster)
    assert 0 < len(list(work.run(jobs))) < 200
    assert work.stopped is not None


def test_a_worker_that_joins_midway_is_compared_and_works() -> None:
    cluster = ScriptedCluster(
        {"w1": Introduction(), "w2": Introduction()}, late={"w2": 3}, answer=slow
    )
    jobs = [job(number) for number in range(60)]
    work, _ = dispatcher(cluster, workers=1)
    assert counted(list(work.run(jobs))) == every_case_once(jobs)
    assert {address for address, _ in cluster.sent} == {"w1", "w2"}


def test_a_late_worker_that_differs_gets_no_case() -> None:
    odd = other(Introduction(), grader="0")
    cluster = ScriptedCluster({"w1": Introduction(), "w2": odd}, late={"w2": 3}, answer=slow)
    work, told = dispatcher(cluster, workers=1)
    list(work.run([job(number) for number in range(60)]))
    assert {address for address, _ in cluster.sent} == {"w1"}
    assert any("w2" in each and "grader" in each for each in told)


@pytest.mark.parametrize(
    ("changes", "word"),
    [
        ({"judge": "0.0"}, "judge"),
        ({"grader": "0"}, "grader"),
        ({"image": "another"}, "image"),
        ({"engines": ("LibreOffice 1",)}, "engines"),
        ({"suite": "abc"}, "suite"),
    ],
)
def test_a_worker_that_differs_is_refused_before_the_first_case(
    changes: dict[str, object], word: str
) -> None:
    cluster = ScriptedCluster({"w1": Introduction(), "w2": other(Introduction(), **changes)})
    work, _ = dispatcher(cluster)
    with pytest.raises(ClusterError, match=rf"worker w2: .*{word}"):
        list(work.run([job(1)]))
    assert not cluster.sent


def test_a_worker_of_several_threads_is_refused() -> None:
    work, _ = dispatcher(ScriptedCluster(threads=4))
    with pytest.raises(ClusterError, match="4 threads"):
        list(work.run([job(1)]))


def test_a_worker_that_cannot_work_says_why() -> None:
    cluster = ScriptedCluster({"w1": Introduction(problem="bubblewrap is not installed")})
    work, _ = dispatcher(cluster, workers=1)
    with pytest.raises(ClusterError, match="bubblewrap is not installed"):
        list(work.run([job(1)]))


def test_without_workers_nothing_begins() -> None:
    work, _ = dispatcher(ScriptedCluster({}))
    with pytest.raises(ClusterError, match="0 of 2 workers"):
        list(work.run([job(1)]))


def test_closing_takes_back_what_is_under_way() -> None:
    cluster = ScriptedCluster()
    work, _ = dispatcher(cluster)
    run = work.run([job(number) for number in range(50)])
    next(run)
    held = {key for given in cluster.waiting.values() for key, _ in given}
    run.close()
    assert held
    assert held <= cluster.cancelled


def test_chunks_are_bounded_in_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dispatch, "MAX_WORK", 3)
    cluster = ScriptedCluster()
    work, _ = dispatcher(cluster)
    list(work.run([job(number) for number in range(100)]))
    assert max(len(request.work) for _, request in cluster.sent) <= 3


def test_the_death_of_a_worker_is_not_the_fault_of_what_waited_behind_another_run() -> None:
    """None of five deaths counts, since the dying worker works for another run each time."""
    deaths: list[str] = []

    def answer(request: Request) -> Reply:
        if len(deaths) < 5:
            deaths.append(request.key)
            raise DiesError
        return all_right(request)

    cluster, jobs = ScriptedCluster(answer=answer), [job(0)]
    cluster.is_next = lambda *_: False  # type: ignore[method-assign]
    work, _ = dispatcher(cluster)
    outcomes = list(work.run(jobs))
    verdicts = [each.result.verdict for each in outcomes if isinstance(each, JudgedCase)]
    assert verdicts == [Verdict.AC] * len(jobs[0].cases)
    assert len(deaths) == 5


def test_a_worker_that_works_for_another_run_is_not_taken_for_a_silent_one() -> None:
    cluster = ScriptedCluster(silent={"w1"}, busy={"w1"})
    del cluster.introductions["w2"]
    work, told = dispatcher(cluster)
    running = work.run([job(0)])

    def later(timeout_s: float) -> Sequence[Answered]:
        if cluster.now > 10_000:
            cluster.silent.clear()
        return ScriptedCluster.wait(cluster, timeout_s)

    cluster.wait = later  # type: ignore[method-assign]
    assert len(list(running)) == len(job(0).cases)
    assert not any("has not answered" in each for each in told)
