"""A worker of a cluster: opens the sandbox and the engines once, and answers requests with them."""

from __future__ import annotations

import contextlib
import itertools
import pickle
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from judge.core.records.cases import CaseRun
from judge.core.verdict import Verdict
from judge.errors import JudgeError
from judge.files.documents import dump_json
from judge.grading.batch import Settings, WorkerRecipe
from judge.grading.case import CaseJudge
from judge.grading.case_records import record_of_result, recordable
from judge.grading.cluster.messages import (
    RETURN_BYTES,
    RETURN_RECORD_BYTES,
    Check,
    Introduction,
    Question,
    Reply,
    Request,
    introduce,
)
from judge.grading.jobs import Job, JudgedCase, Worker
from judge.grading.store import RunDirectory
from judge.grading.verify import verify_case
from judge.version import __version__

RETURN_S = 30.0
"""After this many seconds, a worker begins no further case: it returns the finished cases, and the
client requests the others again. So the client can tell a stuck worker from a busy one."""

_clock = time.monotonic


class WorkerResources:
    """The sandbox and engines of this process, opened for one recipe at a time.

    Args:
        open_recipe: opens the sandbox and the engines.
    """

    def __init__(
        self,
        open_recipe: Callable[[WorkerRecipe, contextlib.ExitStack], Settings] = WorkerRecipe.open,
    ) -> None:
        self._open_recipe = open_recipe
        self._opening = threading.Lock()
        self._changing = threading.Lock()
        self._recipe: WorkerRecipe | None = None
        self._settings: Settings | None = None
        self._stack = contextlib.ExitStack()
        self._busy: tuple[str, Worker] | None = None

    def open(self, recipe: WorkerRecipe) -> Settings:
        """Opens sandbox and engines for a recipe; closes those for another recipe.

        Raises:
            SandboxError: there is no such sandbox here.
            UsageError: there is no such profile or engine.
        """
        with self._opening:
            if self._settings is None or self._recipe != recipe:
                self.close()
                stack = contextlib.ExitStack()
                settings = self._open_recipe(recipe, stack)
                self._recipe, self._settings, self._stack = recipe, settings, stack
            return self._settings

    def close(self) -> None:
        """Closes sandbox and engines, which ends everything that runs in them."""
        with self._changing:
            stack, self._stack = self._stack, contextlib.ExitStack()
            self._settings = self._recipe = None
        stack.close()

    def abandon(self, key: str) -> None:
        """Ends everything that runs for a request for which no client waits any more."""
        busy = self._busy
        if busy is not None and busy[0] == key:
            busy[1].stop.set()
            self.close()

    @property
    def current(self) -> str | None:
        """The key of the current request."""
        busy = self._busy
        return None if busy is None else busy[0]

    def introduce(self, recipe: WorkerRecipe, question: Question) -> Introduction:
        """Describes this worker."""
        try:
            return introduce(question, self.open(recipe))
        except JudgeError as error:
            return Introduction(problem=error.message)

    def perform(self, request: Request) -> Reply:
        """Does the work; the reply reports anything that prevents it."""
        started, reply = time.perf_counter(), Reply()
        try:
            settings = self.open(request.recipe)
            judge = CaseJudge(settings.recalculator, settings.rules)
            worker = Worker(settings.sandbox, judge)
            self._busy = (request.key, worker)
            self._do_all(request, worker, judge, reply)
            reply.gone = "" if worker.sandbox_error is None else worker.sandbox_error.message
        except JudgeError as error:
            reply.error = error.message
        except Exception as error:  # noqa: BLE001  only bytes are returned to the client
            reply.error = f"the judge failed: {type(error).__name__}: {error}"
        finally:
            self._busy = None
        reply.seconds = time.perf_counter() - started
        return reply

    @staticmethod
    def _do_all(request: Request, worker: Worker, judge: CaseJudge, reply: Reply) -> None:
        outputs = _Outputs(request.folder)
        for position, work in enumerate(request.work):
            if worker.stop.is_set() or outputs.full:
                return
            if isinstance(work, Check):
                reply.checks[position] = verify_case(work.task, work.case, judge)
                continue
            done = reply.judged.setdefault(position, {})
            _judge_cases(work, worker, done, outputs)


def _judge_cases(job: Job, worker: Worker, done: dict[int, JudgedCase], outputs: _Outputs) -> None:
    positions = {item.case.number: position for position, item in enumerate(job.cases)}

    def take(judged: JudgedCase) -> None:
        done[positions[judged.result.case]] = outputs.keep(judged)

    # Before the first case `full` is never true, so every answer has at least one case.
    worker.run(job, take, itertools.takewhile(lambda _: not outputs.full, job.cases))


class _Outputs:
    """The outputs of one request: stored in the results folder, or sent back."""

    def __init__(self, folder: str | None) -> None:
        self._store = None if folder is None else RunDirectory(Path(folder))
        self._bytes = self._record_bytes = 0
        self._until = _clock() + RETURN_S

    @property
    def full(self) -> bool:
        """Whether the answer should be sent before more work is done."""
        return (
            self._bytes >= RETURN_BYTES
            or self._record_bytes >= RETURN_RECORD_BYTES
            or _clock() >= self._until
        )

    def keep(self, judged: JudgedCase) -> JudgedCase:
        """Stores an output in the results folder; if that is not possible, keeps it to be sent."""
        judged = replace(judged, result=recordable(judged.keys, judged.result))
        self._record_bytes += len(dump_json(record_of_result(judged.keys, judged.result)))
        if judged.output is None:
            return judged
        if self._store is None and len(judged.output) > RETURN_BYTES:
            cause = f"its output has {len(judged.output):,} bytes, too many to send back: give "
            cause += "the workers access to the results folder"
            run: CaseRun = {**judged.result.run, "output_sha256": None}
            result = replace(judged.result, verdict=Verdict.JE, cause=cause, run=run)
            return replace(judged, result=result, output=None)
        if self._store is None:
            self._bytes += len(judged.output)
            return judged
        self._store.put_workbook(judged.output)
        return replace(judged, output=None)


_RESOURCES = WorkerResources()

_HELLO, _WORK = b"H", b"W"


def worker_resources() -> WorkerResources:
    """Returns the worker of this process."""
    return _RESOURCES


def handshake_request(recipe: WorkerRecipe, question: Question) -> bytes:
    """Encodes the handshake: a part that any version can read, then the pickled recipe."""
    return _HELLO + question.to_bytes() + b"\n" + pickle.dumps(recipe)


def work_request(request: Request) -> bytes:
    """Encodes a request for work."""
    return _WORK + request.to_bytes()


def answer(data: bytes) -> bytes:
    """Answers a request of the client; the workers of a cluster run this function."""
    if data[:1] == _WORK:
        return _RESOURCES.perform(Request.from_bytes(data[1:])).to_bytes()
    head, _, recipe = data[1:].partition(b"\n")
    question = Question.from_bytes(head)
    if question.judge != __version__:
        return Introduction().to_bytes()
    opened: WorkerRecipe = pickle.loads(recipe)  # noqa: S301  from the client, like the code that it names
    return _RESOURCES.introduce(opened, question).to_bytes()
