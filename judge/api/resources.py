"""Resources for judging, other than runs: a sandbox, calculation engines, prepared suites."""

from __future__ import annotations

import contextlib
import threading
import weakref
from collections.abc import Iterable
from dataclasses import fields, replace
from pathlib import Path
from typing import TYPE_CHECKING

from judge.collector import rarely_collecting
from judge.compare.cells.options import check_contradictions, check_style_names
from judge.compare.contract import Rules
from judge.compare.profiles import get_profile
from judge.compare.registry import checker_of
from judge.console import print_label
from judge.core.task import Task
from judge.errors import SandboxError
from judge.grading.batch import Settings, WorkerRecipe
from judge.grading.options import GradingOptions
from judge.recalc.select import check_recalculation
from judge.sandbox import check_sandbox_kind, open_sandbox
from judge.sandbox.contract import Sandbox
from judge.sandbox.select import check_runs_solutions
from judge.suites import Suite

if TYPE_CHECKING:
    from judge.api.options import JudgingOptions
    from judge.grading.cluster.session import ClusterExecutorFactory, ClusterSession
    from judge.grading.verify import CheckAll


def check_judging(options: JudgingOptions) -> None:
    """Checks the names in options, and that they do not contradict each other.

    Raises:
        UsageError: a name does not exist, or an option contradicts a published profile.
    """
    profile = get_profile(options.profile)
    check_style_names(options.style)
    check_sandbox_kind(options.sandbox)
    check_recalculation(options.recalc, options.engine)
    check_contradictions(profile, options.checker, style=options.style, recalc=options.recalc)
    if options.cluster is not None:
        from judge.grading.cluster.config import parse_cluster  # noqa: PLC0415  most runs need no cluster
        from judge.grading.cluster.session import check_installed  # noqa: PLC0415

        check_installed(parse_cluster(options.cluster, insecure=options.insecure_cluster).kind)


class JudgingResources:
    """Sandbox and engines, opened once and only if needed, and prepared suites.

    Safe to use from several threads.

    Args:
        options: how to judge.
        stack: closes what is opened.
        sandbox: an open sandbox to use in place of the one that the options name; its owner closes
            it.
    """

    def __init__(
        self,
        options: JudgingOptions,
        stack: contextlib.ExitStack,
        *,
        sandbox: Sandbox | None = None,
    ) -> None:
        self._options = options
        self._stack = stack
        self._given = sandbox
        self._opening = threading.Lock()
        self._corrections: dict[int, list[dict[str, object]]] = {}
        self._settings: dict[tuple[str, bool], Settings] = {}
        self._session: ClusterSession | None = None

    def adapt(self, suite: Suite, options: JudgingOptions | None = None) -> Suite:
        """The suite with the corrections and the comparison options that were requested.

        Args:
            suite: the suite as defined by its files.
            options: the requested options, if they are not the same for all suites.
        """
        options = options or self._options
        if options.corrections is None:
            return suite.with_checker_options(options.checker)
        from judge.suites.corrections import corrected_suite  # noqa: PLC0415  most runs need no cluster

        corrected = corrected_suite(suite, options.corrections)
        adapted = corrected.suite.with_checker_options(options.checker)
        # Only as long as the suite is in use, as a server judges many suites.
        self._corrections[id(adapted)] = corrected.records
        weakref.finalize(adapted, self._corrections.pop, id(adapted), None).atexit = False
        return adapted

    def corrections_of(self, suite: Suite) -> list[dict[str, object]]:
        """The corrections that :meth:`adapt` applied to a suite, in the form of run.json."""
        return self._corrections.get(id(suite), [])

    def settings_for(
        self, tasks: Iterable[Task], *, runs: bool, remembered: str | None = None
    ) -> Settings:
        """Opens what is needed to judge answers to these tasks; the sandbox only if it is needed.

        Args:
            tasks: the tasks.
            runs: whether there are submissions to run, rather than answers made elsewhere.
            remembered: see :meth:`settings`.
        """
        listed = list(tasks)
        rules = Rules(get_profile(self._options.profile), self._options.style)
        return self.settings(
            needs_sandbox=runs and any(task.answer.is_file for task in listed),
            needs_engines=any(
                checker_of(task.checker).needs(task, case, rules).engines
                for task in listed
                for case in task.cases
            ),
            remembered=remembered,
        )

    def settings(
        self, *, needs_sandbox: bool, needs_engines: bool = True, remembered: str | None = None
    ) -> Settings:
        """Opens sandbox and engines when they are first needed.

        Args:
            needs_sandbox: whether programs have to be run.
            needs_engines: whether formulas may have to be computed.
            remembered: the backend that the run was started with; ``auto`` then selects this one.
                Another would run everything again, or mix results of both.
        """
        options = self._options
        kind = remembered or "auto" if options.sandbox == "auto" else options.sandbox
        isolates = needs_sandbox or (needs_engines and options.recalculation != "never")
        key = (kind, isolates)
        with self._opening:
            if key not in self._settings:
                # Finished outputs run no programs, but the engines that compute their formulas
                # read untrusted files, and so need a sandbox as well.
                sandbox = self._given or self._open_sandbox(kind) if isolates else None
                if not self._settings:
                    self._stack.enter_context(rarely_collecting())
                recipe = self._recipe(kind)
                self._settings[key] = recipe.settings(sandbox, self._stack)
            opened = self._settings[key]
        if needs_sandbox and opened.sandbox is not None:
            check_runs_solutions(opened.sandbox)
        return opened

    def _recipe(self, kind: str) -> WorkerRecipe:
        options = self._options
        shared = {field.name: getattr(options, field.name) for field in fields(GradingOptions)}
        shared |= {"sandbox": kind, "recalc": options.recalculation}
        return WorkerRecipe(**shared, threads=max(1, options.jobs))

    def placed(self, settings: Settings, suite: Suite, folder: Path | None = None) -> Settings:
        """The settings for judging on the cluster that the options name; unchanged without one.

        Args:
            settings: the result of :meth:`settings`.
            suite: the suite of the run.
            folder: its results directory; None if nothing is kept.

        Raises:
            ClusterError: the cluster cannot be reached.
        """
        factory = self._executor_factory(settings, suite, folder)
        return settings if factory is None else replace(settings, executor_of=factory)

    def checks(self, settings: Settings, suite: Suite) -> CheckAll | None:
        """The executor that checks cases of a suite on the cluster, if the options name one.

        Raises:
            ClusterError: the cluster cannot be reached.
        """
        factory = self._executor_factory(settings, suite, None)
        return None if factory is None else factory(settings).verify

    def _executor_factory(
        self, settings: Settings, suite: Suite, folder: Path | None
    ) -> ClusterExecutorFactory | None:
        options = self._options
        if options.cluster is None:
            return None
        from judge.grading.cluster.config import parse_cluster  # noqa: PLC0415
        from judge.grading.cluster.session import ClusterExecutorFactory, ClusterSession  # noqa: PLC0415

        with self._opening:
            if self._session is None:
                cluster_spec = parse_cluster(options.cluster, insecure=options.insecure_cluster)
                self._session = ClusterSession(cluster_spec, self._stack, _print_note)
        assert settings.recipe is not None, "settings() opens them from a recipe"
        return ClusterExecutorFactory(
            self._session, replace(settings.recipe, threads=1), suite, folder
        )

    def _open_sandbox(self, kind: str) -> Sandbox:
        try:
            sandbox = open_sandbox(kind, jobs=max(1, self._options.jobs))
        except SandboxError as error:
            if kind == self._options.sandbox:
                raise
            raise SandboxError(
                f"this run was started with {kind}, which is not available now: {error.message}",
                hint=f"{error.hint or 'Make it available again'}; or choose another with "
                "--sandbox, which runs every case again.",
            ) from error
        return self._stack.enter_context(contextlib.closing(sandbox))


def _print_note(notice: str) -> None:
    print_label("note:", "yellow", notice)
