"""Distributes work among workers, and handles workers that die.

Work is sent in chunks of one or two seconds, so a cluster costs little more than threads; each
worker has one chunk that it is working on and one that is waiting. A worker answers in the order of
the requests: if it dies, only its oldest chunk can be at fault. The work of that chunk is tried
again, alone on an idle worker, so that no other work is blamed for it; then case by case; then it
is given up. A worker that does not answer, or whose answer no honest worker would send, is left
out: it gets no more work, and its chunks are handled as if it had died.
"""

from __future__ import annotations

import itertools
import secrets
import time
from collections import deque
from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from judge.core.verdict import Verdict
from judge.errors import ClusterError, JudgeError
from judge.files.documents import MIB, MalformedError
from judge.grading.batch import WorkerRecipe
from judge.grading.cluster.messages import Check, Identity, Introduction, Question, Reply, Request
from judge.grading.cluster.worker import RETURN_S, handshake_request, work_request
from judge.grading.jobs import ATTEMPTS, Job, JudgedCase
from judge.grading.verify import CaseCheck


@dataclass(frozen=True, slots=True)
class WorkerFacts:
    """A worker, as the scheduler knows it.

    Attributes:
        threads: how many tasks it runs at a time.
    """

    threads: int = 1


@dataclass(frozen=True, slots=True)
class Answered:
    """A task that has ended.

    Attributes:
        key: the name under which it was sent.
        data: the answer of the worker; None if there is no readable answer.
        problem: why there is no answer.
    """

    key: str
    data: bytes | None
    problem: str = ""


class Cluster(Protocol):
    """A group of workers, each of which answers its tasks one at a time and in order."""

    def workers(self) -> Mapping[str, WorkerFacts]:
        """Returns the current workers, by address.

        Raises:
            ClusterError: the scheduler is gone.
        """
        ...

    def send(self, address: str, key: str, request: bytes) -> None:
        """Sends a task to a worker.

        Raises:
            ClusterError: the scheduler is gone.
        """
        ...

    def wait(self, timeout_s: float) -> Sequence[Answered]:
        """Waits until a task has ended; returns all ended tasks.

        Raises:
            ClusterError: the scheduler is gone.
        """
        ...

    def cancel(self, keys: Collection[str]) -> None:
        """Cancels tasks; the workers end everything that runs for them."""
        ...

    def is_next(self, address: str, key: str) -> bool:
        """Returns whether no earlier task of another run is still waiting at this worker.

        If a worker is gone or silent, the task that it worked on is at fault, and not those that
        were waiting.
        """
        ...


@dataclass(frozen=True, slots=True)
class Piece:
    """A submission to judge or a case to check, with its failed attempts.

    Attributes:
        work: the work.
        worker_deaths: how many workers died from it or could not answer because of it.
        single: whether it is a single case, which is tried for the last time.
    """

    work: Job | Check
    worker_deaths: int = 0
    single: bool = False

    @property
    def cases(self) -> int:
        """How many cases the piece has."""
        return len(self.work.cases) if isinstance(self.work, Job) else 1

    @property
    def wall_s(self) -> float:
        """The time limit of each run, in seconds."""
        return self.work.limits.wall_s if isinstance(self.work, Job) else 0.0

    @property
    def size_bytes(self) -> int:
        """Size in bytes of the finished answers (files) that are sent with the piece."""
        if isinstance(self.work, Check):
            return 0
        answers = (case.outcome.answer for case in self.work.cases if case.outcome is not None)
        files = (file for answer in answers if answer is not None for file in answer.files)
        return sum(len(file.data) for file in files)


@dataclass(frozen=True, slots=True)
class LostPiece:
    """A piece of work that was given up.

    Attributes:
        work: the submission, with one case, or the check.
        reason: why it was given up, for people.
    """

    work: Job | Check
    reason: str


Outcome = JudgedCase | CaseCheck | LostPiece


def is_result(judged: JudgedCase, reply: Reply) -> bool:
    """Returns whether a case has a result, and that result is not the loss of the sandbox."""
    return not (reply.gone and judged.result.verdict is Verdict.JE)


def remainder(piece: Piece, outcomes: dict[int, Outcome]) -> Piece | None:
    """Returns the part of a piece that is not done; None if everything is done."""
    if isinstance(piece.work, Check):
        return None if outcomes else piece
    cases = tuple(case for at, case in enumerate(piece.work.cases) if at not in outcomes)
    return replace(piece, work=replace(piece.work, cases=cases)) if cases else None


def split(work: Job | Check) -> list[Job | Check]:
    """Splits work into single cases."""
    if isinstance(work, Check):
        return [work]
    return [replace(work, cases=(case,)) for case in work.cases]


def lean(work: Job | Check) -> Job | Check:
    """Copies the work without the parts that no worker needs, such as the model's conversation."""
    if isinstance(work, Check) or work.submission is None:
        return work
    return replace(work, submission=replace(work.submission, provenance={}))


CHUNK_S = 2.0
"""How long a chunk should take, in seconds. Sending it costs client, scheduler and worker together
a few hundredths of a second."""

DEPTH = 2
"""How many chunks a worker has: the one that it works on, and the next."""

DEATHS = 3
"""How many workers a submission may kill before it is tried case by case."""

STUCK_S = 1800.0
"""How many seconds a worker may exceed the time limits of a case before it is left out. This does
not affect the verdict on the case, which is tried elsewhere. The slowest honest case (three
attempts, sandbox and engines started again, all engines up to their time limits) takes minutes on
an idle machine."""

MAX_WORK = 1000
MAX_BYTES = 32 * MIB
_POLL_S = 2.0
_FIRST_S = 1.0


@dataclass(slots=True)
class _Chunk:
    key: str
    pieces: tuple[Piece, ...]

    @property
    def alone(self) -> bool:
        return self.pieces[0].worker_deaths > 0

    @property
    def patience_s(self) -> float:
        """Seconds that the chunk may take; after ``RETURN_S``, a worker starts no further case."""
        return RETURN_S + STUCK_S + ATTEMPTS * max(piece.wall_s for piece in self.pieces)


@dataclass(slots=True)
class _WorkerState:
    """A worker that may get work.

    Attributes:
        chunks: the chunks that it has not answered yet, in order.
        shares: whether it can access the results folder.
        since: when it began to work on the first of its chunks.
    """

    chunks: deque[_Chunk] = field(default_factory=deque)
    shares: bool = False
    since: float = 0.0

    @property
    def room(self) -> bool:
        return len(self.chunks) < DEPTH and not any(chunk.alone for chunk in self.chunks)


@dataclass(frozen=True, slots=True)
class Terms:
    """What the client sends to all workers of a run, and what it expects of them.

    Attributes:
        recipe: describes the sandbox and the engines that workers open.
        question: the first request to a worker.
        identity: the identity that a worker must have.
        folder: the results directory, for workers that can access it.
        workers: how many workers to wait for before the first case.
        wait_s: seconds to wait for workers, and for new ones after all were lost.
    """

    recipe: WorkerRecipe
    question: Question
    identity: Identity
    folder: str | None = None
    workers: int = 1
    wait_s: float = 60.0


class Dispatcher:
    """Distributes work among the workers of a cluster.

    Args:
        cluster: the workers.
        terms: the terms of the run.
        on_notice: called with notices for people: a worker was refused or died.
        clock: a monotonic clock, in seconds.

    Attributes:
        stopped: why the work was given up early; None if it was not.
    """

    def __init__(
        self,
        cluster: Cluster,
        terms: Terms,
        *,
        on_notice: Callable[[str], None] = lambda _: None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._cluster = cluster
        self._terms = terms
        self._notice = on_notice
        self._clock = clock
        self._name = secrets.token_hex(8)  # identifies this run among all runs that use the cluster
        self._numbers = itertools.count()
        self._workers: dict[str, _WorkerState] = {}
        self._handshakes: dict[str, str] = {}  # key of the handshake -> worker
        self._refused: dict[str, str] = {}
        self._suspects: deque[Piece] = deque()
        self._again: deque[Piece] = deque()
        self._case_s = _FIRST_S
        self._looked = -_POLL_S
        self._begun = False
        self.stopped: JudgeError | None = None

    # -- before the first case ------------------------------------------------------------------

    def check_workers(self) -> None:
        """Waits for the workers and compares them with this judge.

        Raises:
            ClusterError: there are no workers, or one of them differs; the message names it.
        """
        deadline = self._clock() + self._terms.wait_s
        while True:
            self._update_workers()
            ready = len(self._workers) >= self._terms.workers
            if ready and not self._handshakes:
                return
            if self._clock() >= deadline:
                self._stop_waiting()
                return
            for answered in self._cluster.wait(0.2):
                self._take_introduction(answered)
            for address, problem in self._refused.items():
                raise ClusterError(
                    f"worker {address}: {problem}",
                    hint="All workers need the judge, the sandbox and the suite of the client.",
                )

    def _stop_waiting(self) -> None:
        """Continues with the workers that have introduced themselves; others may join later.

        Raises:
            ClusterError: no worker has introduced itself.
        """
        waited = f"within {self._terms.wait_s:g} s"
        silent = sorted(self._handshakes.values())
        if not self._workers:
            reason = f"; worker {silent[0]} did not introduce itself" if silent else ""
            raise ClusterError(
                f"{len(self._workers)} of {self._terms.workers} workers came {waited}{reason}",
                hint="Start workers (`judge cluster worker ADDRESS`), or wait longer: `wait_s` of "
                "the cluster's file.",
            )
        for address in silent:
            self._notice(f"worker {address} did not introduce itself {waited}; the others begin")

    def _update_workers(self) -> None:
        """Finds out which workers have come and which have gone."""
        self._looked = self._clock()
        present = self._cluster.workers()
        for address in [address for address in self._workers if address not in present]:
            self._remove_dead(address)
        self._handshakes = {
            key: address for key, address in self._handshakes.items() if address in present
        }
        addresses = {*self._workers, *self._handshakes.values(), *self._refused}
        for address, facts in present.items():
            if address in addresses:
                continue
            if facts.threads != 1:
                self._refuse(address, f"it has {facts.threads} threads; start it with one")
                continue
            key = self._key("greeting")
            self._handshakes[key] = address
            handshake = handshake_request(self._terms.recipe, self._terms.question)
            self._cluster.send(address, key, handshake)

    def _take_introduction(self, answered: Answered) -> None:
        address = self._handshakes.pop(answered.key, None)
        if address is None:
            return
        if answered.data is None:
            self._refuse(address, f"it does not answer: {answered.problem}")
            return
        worker = Introduction.from_bytes(answered.data)
        problem = worker.problem or self._terms.identity.difference(worker.identity)
        if problem:
            self._refuse(address, problem)
        else:
            self._workers[address] = _WorkerState(shares=worker.shares)

    def _refuse(self, address: str, problem: str) -> None:
        self._refused[address] = problem

    # -- the work ------------------------------------------------------------------------------

    def run(self, work: Iterable[Job | Check]) -> Generator[Outcome]:
        """Distributes work among the workers; yields results in any order.

        Closing the iterator cancels all unfinished work.

        Raises:
            ClusterError: before the first case, there is no worker, or a worker differs.
        """
        source = (Piece(job) for job in work)
        try:
            self.check_workers()
            yield from self._dispatch(source)
        except ClusterError as error:
            if not self._begun:
                raise
            self.stopped = error
        finally:
            self._cluster.cancel([*self._handshakes, *self._under_way()])

    def _under_way(self) -> Iterator[str]:
        return (chunk.key for worker in self._workers.values() for chunk in worker.chunks)

    def _dispatch(self, source: Iterator[Piece]) -> Generator[Outcome]:
        lost_since: float | None = None
        while True:
            if self._clock() - self._looked >= _POLL_S:
                self._update_workers()
            self._leave_out_the_stuck()
            yield from self._given_up()
            self._fill(source)
            busy = any(worker.chunks for worker in self._workers.values())
            if not busy and not self._suspects and not self._again:
                head = next(source, None)
                if head is None:
                    return
                self._again.append(head)
            if self._workers:
                lost_since = None
            elif lost_since is None:
                lost_since = self._clock()
            elif self._clock() - lost_since >= self._terms.wait_s:
                raise self._nobody()
            for answered in self._cluster.wait(_POLL_S):
                yield from self._take(answered)

    def _nobody(self) -> ClusterError:
        reasons = [f"; worker {address}: {why}" for address, why in self._refused.items()]
        waited = f"none came within {self._terms.wait_s:g} s"
        return ClusterError(f"no worker is left, and {waited}{''.join(reasons[:1])}")

    def _fill(self, source: Iterator[Piece]) -> None:
        """Sends work to workers that have room; a suspect piece is sent alone, to an idle one."""
        workers = sorted(self._workers.items(), key=lambda item: len(item[1].chunks))
        while self._suspects and workers and not workers[0][1].chunks:
            address, worker = workers.pop(0)
            self._send(address, worker, (self._suspects.popleft(),))
        # While suspects wait for idle workers, the least busy workers get no new work.
        for address, worker in workers[len(self._suspects) :]:
            while worker.room and (chunk := self._chunk(source)):
                self._send(address, worker, chunk)

    def _chunk(self, source: Iterator[Piece]) -> tuple[Piece, ...]:
        """Takes the next pieces from the queue, up to about the duration of a chunk."""
        pieces: list[Piece] = []
        expected_s, size = 0.0, 0
        while expected_s < CHUNK_S and len(pieces) < MAX_WORK and size < MAX_BYTES:
            piece = self._again.popleft() if self._again else next(source, None)
            if piece is None:
                break
            pieces.append(piece)
            expected_s += piece.cases * self._case_s
            size += piece.size_bytes
        return tuple(pieces)

    def _send(self, address: str, worker: _WorkerState, pieces: tuple[Piece, ...]) -> None:
        self._begun = True
        chunk = _Chunk(self._key("chunk"), pieces)
        folder = self._terms.folder if worker.shares else None
        work = tuple(lean(piece.work) for piece in pieces)
        if not worker.chunks:
            worker.since = self._clock()
        worker.chunks.append(chunk)
        request = Request(chunk.key, self._terms.recipe, work, folder)
        self._cluster.send(address, chunk.key, work_request(request))

    def _take(self, answered: Answered) -> Iterator[Outcome]:
        if answered.key in self._handshakes:
            address = self._handshakes[answered.key]
            self._take_introduction(answered)
            if address in self._refused:
                self._notice(f"worker {address} is not used: {self._refused[address]}")
            return
        owner = self._owner_of(answered.key)
        if owner is None:
            return  # the worker has died since
        address, worker, chunk = owner
        if answered.data is None:
            self._update_workers()
            if address in self._workers:  # the worker is alive, but its answer is invalid
                self._leave_out(address, chunk, answered.problem)
            return
        try:
            reply = Reply.from_bytes(answered.data, [piece.work for piece in chunk.pieces])
        except MalformedError as error:
            self._leave_out(address, chunk, f"its answer cannot be read: {error}")
            return
        if reply.error:
            self._leave_out(address, chunk, reply.error)
            return
        if not reply.gone and not reply.checks and not any(reply.judged.values()):
            self._leave_out(address, chunk, "it did none of the requested work")
            return
        worker.chunks.remove(chunk)
        worker.since = self._clock()
        yield from self._outcomes(address, chunk, reply)

    def _owner_of(self, key: str) -> tuple[str, _WorkerState, _Chunk] | None:
        for address, worker in self._workers.items():
            for chunk in worker.chunks:
                if chunk.key == key:
                    return address, worker, chunk
        return None

    def _outcomes(self, address: str, chunk: _Chunk, reply: Reply) -> Iterator[Outcome]:
        done = 0
        for position, piece in enumerate(chunk.pieces):
            if isinstance(piece.work, Check):
                check = reply.checks.get(position)
                outcomes: dict[int, Outcome] = {} if check is None else {0: check}
            else:
                judged = reply.judged.get(position, {})
                outcomes = {
                    case: result for case, result in judged.items() if is_result(result, reply)
                }
            done += len(outcomes)
            yield from outcomes.values()
            if (rest := remainder(piece, outcomes)) is not None:
                self._again.appendleft(rest)
        if done:
            self._case_s += 0.2 * (reply.seconds / done - self._case_s)
        if reply.gone:
            self._leave_out(address, None, reply.gone)

    # -- what went wrong -----------------------------------------------------------------------

    def _remove_dead(self, address: str) -> None:
        """Removes a worker that is gone; only the chunk that it worked on becomes suspect."""
        chunks = self._workers.pop(address).chunks
        at_work = bool(chunks) and self._cluster.is_next(address, chunks[0].key)
        self._cluster.cancel([chunk.key for chunk in chunks])
        self._notice(f"worker {address} is gone")
        if at_work:
            self._suspect(chunks.popleft().pieces)
        for chunk in chunks:
            self._requeue(chunk.pieces)

    def _leave_out_the_stuck(self) -> None:
        """Leaves out workers that have not answered for longer than an honest worker would take."""
        for address, worker in list(self._workers.items()):
            if worker.chunks and not self._cluster.is_next(address, worker.chunks[0].key):
                worker.since = self._clock()  # it is working for another run
            elif worker.chunks and self._clock() - worker.since > worker.chunks[0].patience_s:
                waited = f"it has not answered for {self._clock() - worker.since:.0f} s"
                self._leave_out(address, worker.chunks[0], waited)

    def _leave_out(self, address: str, at_fault: _Chunk | None, problem: str) -> None:
        """Stops using a worker; a chunk that may be at fault becomes suspect, the others do not."""
        self._notice(f"worker {address} is no longer used: {problem}")
        self._refused[address] = problem
        chunks = self._workers.pop(address).chunks
        self._cluster.cancel([chunk.key for chunk in chunks])
        for chunk in chunks:
            (self._suspect if chunk is at_fault else self._requeue)(chunk.pieces)

    def _requeue(self, pieces: Sequence[Piece]) -> None:
        for piece in pieces:
            (self._suspects if piece.worker_deaths else self._again).append(piece)

    def _suspect(self, pieces: Sequence[Piece]) -> None:
        for piece in pieces:
            self._suspects.append(replace(piece, worker_deaths=piece.worker_deaths + 1))

    def _given_up(self) -> Iterator[LostPiece]:
        """Splits pieces that killed too many workers into cases; gives up cases tried alone."""
        waiting, self._suspects = self._suspects, deque()
        for piece in waiting:
            if piece.worker_deaths >= DEATHS and not piece.single:
                parts = split(piece.work)
                self._suspects.extend(replace(piece, work=part, single=True) for part in parts)
            elif piece.worker_deaths > DEATHS:
                yield LostPiece(
                    piece.work,
                    f"{piece.worker_deaths} workers died, or gave no answer, while it was judged",
                )
            else:
                self._suspects.append(piece)

    def _key(self, prefix: str) -> str:
        return f"judge-{prefix}-{self._name}-{next(self._numbers)}"
