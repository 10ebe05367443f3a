"""A cluster without processes: its workers answer, die or differ as a script says."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

from judge.core.limits import Limits
from judge.core.submission import Submission
from judge.core.task import Task, TestCase
from judge.core.verdict import CaseResult, Verdict
from judge.errors import ClusterError
from judge.grading.cluster.dispatch import Answered, WorkerFacts
from judge.grading.cluster.messages import Introduction, Reply, Request
from judge.grading.jobs import CaseJob, Job, JudgedCase
from judge.grading.keys import CaseKeys


class DiesError(Exception):
    """Raised by a script when a worker should die."""


def job(number: int, cases: int = 2) -> Job:
    """A submission with some cases."""
    listed = tuple(TestCase(at, (), ()) for at in range(1, cases + 1))
    task = Task(str(number), "", "", listed)
    submission = Submission(str(number), "pass", "/in", "/out", provenance={"said": "x" * 100})
    return Job(
        task,
        submission,
        tuple(CaseJob(each, CaseKeys(f"r{number}", f"c{number}")) for each in listed),
        Limits(),
    )


def judged(work: Job, position: int, verdict: Verdict = Verdict.AC) -> JudgedCase:
    """The result of one case."""
    each = work.cases[position]
    result = CaseResult(work.task.id, work.sample, each.case.number, verdict)
    return JudgedCase(each.keys, result)


def all_right(request: Request) -> Reply:
    """Accepts every case."""
    reply = Reply(seconds=0.1)
    for at, work in enumerate(request.work):
        assert isinstance(work, Job)
        reply.judged[at] = {case: judged(work, case) for case in range(len(work.cases))}
    return reply


@dataclass
class ScriptedCluster:
    """See :class:`judge.grading.cluster.dispatch.Cluster`; time passes where something waits.

    Attributes:
        introductions: worker -> what it says of itself.
        answer: what a worker does with a request; raises DiesError to die of it.
        answers_of: the same of single workers.
        silent: workers that say who they are, and then answer nothing.
        mute: workers that do not even say that.
        busy: workers that work for another run.
        late: workers that come after so many answers.
        restarts: whether a worker that died comes back under another name.
        sent: every request, with the worker that got it.
        waiting: worker -> what it has been given and not answered.
    """

    introductions: dict[str, Introduction] = field(
        default_factory=lambda: {"w1": Introduction(), "w2": Introduction()}
    )
    answer: Callable[[Request], Reply | bytes | None] = all_right
    answers_of: dict[str, Callable[[Request], Reply | bytes | None]] = field(default_factory=dict)
    silent: set[str] = field(default_factory=set)
    mute: set[str] = field(default_factory=set)
    busy: set[str] = field(default_factory=set)
    late: dict[str, int] = field(default_factory=dict)
    restarts: bool = True
    threads: int = 1
    lost: bool = False
    now: float = 0.0
    answers: int = 0
    sent: list[tuple[str, Request]] = field(default_factory=list)
    cancelled: set[str] = field(default_factory=set)
    waiting: dict[str, list[tuple[str, bytes]]] = field(default_factory=dict)
    deepest: int = 0

    def clock(self) -> float:
        return self.now

    def workers(self) -> Mapping[str, WorkerFacts]:
        if self.lost:
            raise ClusterError("the scheduler is gone")
        there = [name for name in self.introductions if self.late.get(name, 0) <= self.answers]
        return {name: WorkerFacts(self.threads) for name in there}

    def send(self, address: str, key: str, request: bytes) -> None:
        self.waiting.setdefault(address, []).append((key, request))
        self.deepest = max(self.deepest, len(self.waiting[address]))
        if request[:1] == b"W":
            self.sent.append((address, Request.from_bytes(request[1:])))

    def wait(self, timeout_s: float) -> Sequence[Answered]:
        if self.lost:
            raise ClusterError("the scheduler is gone")
        for address, given in list(self.waiting.items()):
            self.waiting[address] = self.waiting.pop(address)  # the next one is asked next time
            if given and not self._is_silent(address, given[0][1]):
                key, request = given.pop(0)
                return self._do(address, key, request)
        self.now += timeout_s
        return ()

    def cancel(self, keys: Collection[str]) -> None:
        self.cancelled |= set(keys)

    def is_next(self, address: str, key: str) -> bool:
        del key
        return address not in self.busy

    def _is_silent(self, address: str, request: bytes) -> bool:
        return address in self.mute or (address in self.silent and request[:1] == b"W")

    def _do(self, address: str, key: str, request: bytes) -> Sequence[Answered]:
        self.now += 0.1
        if request[:1] == b"H":
            said = self.introductions[address]
            return (Answered(key, said.to_bytes()),)
        self.answers += 1
        try:
            answer = self.answers_of.get(address, self.answer)
            reply = answer(Request.from_bytes(request[1:]))
        except DiesError:
            return self._die(address, key)
        if reply is None:
            return (Answered(key, None, "its answer is not plain data"),)
        return (Answered(key, reply if isinstance(reply, bytes) else reply.to_bytes()),)

    def _die(self, address: str, key: str) -> Sequence[Answered]:
        said = self.introductions.pop(address)
        if self.restarts:
            self.introductions[f"{address}'"] = said
        left = [name for name, _ in self.waiting.pop(address)]
        return tuple(Answered(each, None, "it is gone") for each in (key, *left))


def other(introduction: Introduction, **changes: object) -> Introduction:
    """A worker whose judge differs from this one."""
    identity = replace(introduction.identity, **changes)  # type: ignore[arg-type]
    return replace(introduction, identity=identity)
