"""What a worker is opened from: a recipe that can be pickled."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from dataclasses import dataclass, field

from judge.compare.profiles import get_profile
from judge.core.limits import Limits
from judge.grading.batch import Settings
from judge.grading.case import CaseJudge, GradingRules
from judge.grading.jobs import Worker
from judge.grading.options import GradingOptions
from judge.recalc.select import open_recalculator, recalc_cache_folder
from judge.sandbox import open_sandbox
from judge.sandbox.contract import Sandbox


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerRecipe(GradingOptions):
    """How the sandbox and the engines of a worker are opened, on whichever machine it is.

    Attributes:
        isolates: whether a sandbox is opened; without one, nothing runs.
        task_limits: task id -> bounds of its runs, where they are not those of the others.
        threads: jobs to run at a time.
    """

    isolates: bool = True
    task_limits: Mapping[str, Limits] = field(default_factory=dict)
    threads: int = 1

    def open(self, stack: contextlib.ExitStack) -> Settings:
        """Opens sandbox and engines.

        Args:
            stack: closes them.

        Raises:
            SandboxError: there is no such sandbox.
            UsageError: there is no such profile or engine.
        """
        opened: Sandbox | None = None
        if self.isolates:
            opened = open_sandbox(self.sandbox, jobs=self.threads)
            stack.enter_context(contextlib.closing(opened))
        return self.settings(opened, stack)

    def settings(self, sandbox: Sandbox | None, stack: contextlib.ExitStack) -> Settings:
        """Opens the engines for a sandbox that is already open.

        Args:
            sandbox: where programs and engines run; None where nothing does.
            stack: closes the engines.

        Raises:
            UsageError: there is no such profile or engine.
        """
        recalculator = open_recalculator(
            sandbox,
            mode=self.recalc,
            engine=self.engine,
            cache_dir=recalc_cache_folder(),
            lenient_names=self.lenient_names,
            workers=self.threads,
        )
        stack.enter_context(contextlib.closing(recalculator))
        return Settings(
            sandbox=sandbox,
            recalculator=recalculator,
            rules=GradingRules(
                profile=get_profile(self.profile),
                style=self.style,
                recalc_mode=self.recalc,
                engines=recalculator.identity,
            ),
            limits=self.limits,
            jobs=self.threads,
            task_limits=self.task_limits,
            recipe=self,
        )

    def open_worker(self, stack: contextlib.ExitStack) -> Worker:
        """Opens a worker that does jobs.

        Args:
            stack: closes what it works with.

        Raises:
            SandboxError: there is no such sandbox.
            UsageError: there is no such profile or engine.
        """
        settings = self.open(stack)
        return Worker(settings.sandbox, CaseJudge(settings.recalculator, settings.rules))
