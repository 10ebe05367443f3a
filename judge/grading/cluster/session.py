"""The cluster that a command uses; it is opened once for all runs that are judged."""

from __future__ import annotations

import contextlib
import importlib.util
import secrets
import threading
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from judge.core.task import Task, TestCase
from judge.core.verdict import Verdict
from judge.errors import JudgeError, UsageError, how_to_install
from judge.grading.batch import Settings, WorkerRecipe
from judge.grading.case import case_result
from judge.grading.cluster.config import ClusterSpec
from judge.grading.cluster.dispatch import Dispatcher, Terms
from judge.grading.cluster.messages import Check, Identity, Question
from judge.grading.jobs import Job, JudgedCase
from judge.grading.running import RunOutcome
from judge.grading.verify import CaseCheck
from judge.suites import Suite

if TYPE_CHECKING:
    from judge.grading.cluster.connection import Connection

_PROBE = ".shared-"


class ClusterSession:
    """The cluster of one command.

    Args:
        cluster_spec: where the workers are, or how they are started.
        stack: closes the connection, and ends the workers that were started for it.
        on_notice: called with notices for people.

    Raises:
        UsageError: the judge was installed without the packages that a cluster needs.
        ClusterError: the cluster cannot be reached.
    """

    def __init__(
        self,
        cluster_spec: ClusterSpec,
        stack: contextlib.ExitStack,
        on_notice: Callable[[str], None],
    ) -> None:
        check_installed(cluster_spec.kind)
        from judge.grading.cluster.connection import reached  # noqa: PLC0415  an extra, and slow

        self._spec = cluster_spec
        self._notice = on_notice
        self._connection: Connection = stack.enter_context(reached(cluster_spec))
        self._prepared: WorkerRecipe | None = None
        self._preparing = threading.Lock()

    @contextlib.contextmanager
    def dispatcher(
        self, recipe: WorkerRecipe, settings: Settings, suite: Suite, folder: Path | None
    ) -> Iterator[Dispatcher]:
        """Opens a dispatcher that distributes the work of one run; runs may overlap.

        Args:
            recipe: describes the sandbox and the engines that workers open.
            settings: the sandbox and the engines on this machine; those of the workers must be
                equal.
            suite: the suite, which must have the same path on the workers.
            folder: the results directory; None if nothing is kept.
        """
        with self._preparing:
            if recipe != self._prepared:
                self._connection.prepare(recipe)
                self._prepared = recipe
        with contextlib.ExitStack() as stack:
            probe = None if folder is None else stack.enter_context(_probe(folder))
            terms = Terms(
                recipe,
                Question(str(suite.root.resolve()), None if probe is None else str(probe)),
                Identity.of(settings, suite.digest),
                None if folder is None else str(folder.resolve()),
                self._spec.workers,
                self._spec.wait_s,
            )
            yield Dispatcher(self._connection.for_run(), terms, on_notice=self._notice)


def check_installed(kind: str) -> None:
    """Checks that the packages that a cluster needs are installed.

    Args:
        kind: the kind, as in :class:`judge.grading.cluster.config.ClusterSpec`.

    Raises:
        UsageError: a package is missing; the hint names the extra to install.
    """
    needed = {"slurm": "dask_jobqueue", "kubernetes": "dask_kubernetes"}
    extra = kind if kind in needed else "cluster"
    for module in ("distributed", "cryptography", needed.get(kind, "distributed")):
        if importlib.util.find_spec(module) is None:
            raise UsageError(
                f"--cluster needs {module}, which is not installed",
                hint=how_to_install(extra),
            )


@contextlib.contextmanager
def _probe(folder: Path) -> Iterator[Path]:
    """Makes a file with an unguessable name: a worker that can see it can access the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder.resolve() / f"{_PROBE}{secrets.token_hex(16)}"
    path.touch()
    try:
        yield path
    finally:
        path.unlink(missing_ok=True)


@dataclass(frozen=True, slots=True)
class ClusterExecutorFactory:
    """Makes executors on a cluster, for :attr:`judge.grading.batch.Settings.executor_of`.

    Attributes:
        session: the cluster.
        recipe: describes the sandbox and the engines that workers open.
        suite: the suite of the run.
        folder: its results directory; None if nothing is kept.
    """

    session: ClusterSession
    recipe: WorkerRecipe
    suite: Suite
    folder: Path | None

    def __call__(self, settings: Settings) -> ClusterExecutor:
        """Returns an executor for the jobs of a run."""
        recipe = self.recipe
        if settings.sandbox is None:
            recipe = replace(recipe, isolates=False)
        else:
            recipe = replace(recipe, sandbox=settings.sandbox.info.backend)
        return ClusterExecutor(
            lambda: self.session.dispatcher(recipe, settings, self.suite, self.folder)
        )


class ClusterExecutor:
    """Runs jobs on the workers of a cluster; see :class:`judge.grading.jobs.Executor`.

    Args:
        dispatcher: opens the dispatcher that distributes the work.
    """

    def __init__(
        self, dispatcher: Callable[[], contextlib.AbstractContextManager[Dispatcher]]
    ) -> None:
        self._make = dispatcher
        self._dispatcher: Dispatcher | None = None

    @property
    def stopped(self) -> JudgeError | None:
        """Why the work was given up; None if it was not."""
        return None if self._dispatcher is None else self._dispatcher.stopped

    def judge(self, jobs: Iterable[Job]) -> Generator[JudgedCase]:
        """Runs the jobs; yields each case in the calling thread when it is done."""
        reused: list[JudgedCase] = []
        waiting = _without_reused(jobs, reused)
        head = next(waiting, None)
        yield from _taken(reused)
        if head is None:
            return
        with (
            self._make() as self._dispatcher,
            contextlib.closing(self._dispatcher.run(_chained(head, waiting))) as outcomes,
        ):
            for outcome in outcomes:
                yield from _taken(reused)
                if isinstance(outcome, JudgedCase):
                    yield outcome
                elif not isinstance(outcome, CaseCheck):
                    assert isinstance(outcome.work, Job)
                    yield from _judge_errors(outcome.work, outcome.reason)
        yield from _taken(reused)

    def verify(self, pairs: Sequence[tuple[Task, TestCase]]) -> Generator[CaseCheck]:
        """Checks cases against themselves; returns the checks in the same order.

        Raises:
            JudgeError: the work was given up.
        """
        order = {(task.id, case.number): at for at, (task, case) in enumerate(pairs)}
        done: dict[int, CaseCheck] = {}
        following = 0
        checks = (Check(task, case) for task, case in pairs)
        with (
            self._make() as self._dispatcher,
            contextlib.closing(self._dispatcher.run(checks)) as outcomes,
        ):
            for outcome in outcomes:
                if isinstance(outcome, CaseCheck):
                    done[order[outcome.task_id, outcome.case]] = outcome
                elif not isinstance(outcome, JudgedCase):
                    assert isinstance(outcome.work, Check)
                    where = (outcome.work.task.id, outcome.work.case.number)
                    done[order[where]] = _unchecked(*where, outcome.reason)
                while following in done:
                    yield done.pop(following)
                    following += 1
        if self._dispatcher.stopped is not None:
            raise self._dispatcher.stopped


def _chained(head: Job, waiting: Iterator[Job]) -> Iterator[Job]:
    yield head
    yield from waiting


def _without_reused(jobs: Iterable[Job], reused: list[JudgedCase]) -> Iterator[Job]:
    """Yields the jobs without recorded cases, which are appended to ``reused``."""
    for job in jobs:
        reused.extend(
            JudgedCase(case.keys, case.recorded, reused=True)
            for case in job.cases
            if case.recorded is not None
        )
        cases = tuple(case for case in job.cases if case.recorded is None)
        if cases:
            yield replace(job, cases=cases)


def _taken(reused: list[JudgedCase]) -> Iterator[JudgedCase]:
    while reused:
        yield reused.pop(0)


def _judge_errors(job: Job, reason: str) -> Iterator[JudgedCase]:
    """Yields a judge error (JE) for each case of a job that was given up."""
    for case in job.cases:
        outcome = RunOutcome(Verdict.JE, reason)
        result = case_result(job.task.id, job.sample, case.case.number, outcome, None)
        yield JudgedCase(case.keys, result)


def _unchecked(task_id: str, case: int, reason: str) -> CaseCheck:
    return CaseCheck(task_id, case, 0, False, f"JE: {reason}", None, "", 0, 0, ())
