"""How to score, and the outcome."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from judge.cluster.place import parse_place
from judge.cluster.session import check_installed
from judge.compare.cells.options import check_contradictions
from judge.compare.cells.style_check import check_style_names
from judge.compare.profiles import get_profile
from judge.core.limits import Limits
from judge.core.records.reports import ReportDocument
from judge.core.submission import Submission
from judge.core.task import Task
from judge.core.verdict import CaseResult
from judge.errors import UsageError
from judge.files.paths import GivenPath, hold_paths
from judge.recalc.policy import Mode
from judge.recalc.select import check_recalculation
from judge.sandbox import check_sandbox_kind


def cores() -> int:
    """How many cores this machine has: the usual number of jobs."""
    return os.cpu_count() or 1


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgingOptions:
    """How to judge, whatever is judged; every field has the default of the command line.

    Attributes:
        jobs: submissions, or cases, to judge at a time; at least 1.
        sandbox: ``auto``, ``docker``, ``bubblewrap``, or ``sealed-container``, which runs no
            programs.
        profile: comparison profile.
        style: style attributes to compare in addition to the values.
        checker: comparison options that take precedence over those of the tasks, such as
            ``{"ignore_case": True, "untouched": True}``.
        corrections: a file of known faults of suites, or a folder of such files, to be applied;
            None takes every suite as it is.
        recalc: ``auto``, ``never`` or ``always``; the profile ``ssb2-official`` never computes.
        engine: calculation engine, ``auto`` for the cascade.
        lenient_names: whether newer functions written without their prefix are computed.
        limits: bounds of each run of a program.
        cluster: workers that judge in place of threads: ``local:N``, the address of a scheduler, or
            a .yaml file (docs/scaling.md); None for threads of this process.
        insecure_cluster: whether the cluster may be reached without TLS on other machines.

    Raises:
        UsageError: a field holds a value that it cannot have, or contradicts a published profile.
    """

    jobs: int = field(default_factory=cores)
    sandbox: str = "auto"
    profile: str = "standard"
    style: tuple[str, ...] = ()
    checker: Mapping[str, object] = field(default_factory=dict)
    corrections: GivenPath | None = None
    recalc: Mode = "auto"
    engine: str = "auto"
    lenient_names: bool = False
    limits: Limits = field(default_factory=Limits)
    cluster: str | None = None
    insecure_cluster: bool = False

    def __post_init__(self) -> None:
        hold_paths(self)
        check_at_least("jobs", self.jobs, 1)
        profile = get_profile(self.profile)
        check_style_names(self.style)
        check_sandbox_kind(self.sandbox)
        check_recalculation(self.recalc, self.engine)
        check_contradictions(profile, self.checker, style=self.style, recalc=self.recalc)
        if self.cluster is not None:
            check_installed(parse_place(self.cluster, insecure=self.insecure_cluster).kind)

    @property
    def recalculation(self) -> Mode:
        """When formulas are computed: as asked, or never if the profile reads files as they are."""
        return "never" if get_profile(self.profile).reads_stored_values else self.recalc


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoreOptions(JudgingOptions):
    """How to score; every field has the default of the command line.

    Attributes:
        dataset: the suite (folder, archive or name); None takes the one that run.json remembers.
        out: results directory to write; None grades a run directory in place, and puts anything
            else under ``results/``.
        ids: task ids to grade; empty for all.
        limit: grade only that many tasks, in suite order.
        reference: solutions (.jsonl) whose time on this machine a task's time limits follow.
        suspects: golds that may be at fault (``suspects.json``), kept with the run: the scores are
            also given without them. None for those that the run keeps, if any.
        time_factor: how many times the reference's time a solution may take; the times in
            ``limits`` are the least that it gets.
        best_of: of several samples of a task, the best one counts instead of their mean.
        outputs: where finished workbooks are in the folder, such as ``{task}/{case}/*.xlsx``, or in
            the folder of each trial of a job (docs/agents.md).
        programs: the same for programs, which are run on all cases in place of comparing workbooks.
        reward: file for soft, hard and the verdicts of one task, as numbers from 0 to 1; None for
            no such file.
        every_task: of finished workbooks, a task without any counts as not solved (NO), in place of
            being left out.
        trust_values: whether values of formulas are trusted in outputs that only a results
            directory calls finished workbooks, or work of mouse and keyboard alone. Workbooks in a
            folder that is named itself are trusted anyway.

    Raises:
        UsageError: a field holds a value that it cannot have.
    """

    dataset: str | Path | None = None
    out: GivenPath | None = None
    ids: tuple[str, ...] = ()
    limit: int | None = None
    reference: GivenPath | None = None
    suspects: GivenPath | None = None
    time_factor: float = 10.0
    best_of: bool = False
    outputs: str | None = None
    programs: str | None = None
    reward: GivenPath | None = None
    every_task: bool = False
    trust_values: bool = False

    def __post_init__(self) -> None:
        JudgingOptions.__post_init__(self)
        check_at_least("limit", self.limit, 1)
        check_at_least("time_factor", self.time_factor, 1)
        if self.reference is not None and self.cluster is not None:
            raise UsageError(
                "time limits follow a reference on one machine, and a cluster has several",
                hint="Leave out --reference or --cluster.",
            )


def check_at_least(name: str, value: float | None, least: float) -> None:
    """Checks a number that has a lower bound; None stands for no number.

    Raises:
        UsageError: it is below the bound, or no number.
    """
    if isinstance(value, str):  # as configurations of other programs may have it
        raise UsageError(f"{name} is {value[:80]!r}; it must be a number, {least} or more")
    if value is not None and not value >= least:
        raise UsageError(f"{name} is {value}; it must be {least} or more")


@dataclass(frozen=True, slots=True)
class ScoredRun:
    """A run that was scored.

    Attributes:
        path: its results directory.
        report: the document of its report.json.
        results: every case result on record for the reported submissions.
        submissions: the submissions reported on, with their tasks; empty for finished outputs.
        reused: cases whose result was on record already.
        problem: why the run is incomplete, or None.
        not_taken: what run.json said that would decide verdicts, and the command did not ask for.
        suite_is_named: whether the command named the suite; otherwise run.json did.
    """

    path: Path
    report: ReportDocument
    results: Sequence[CaseResult]
    submissions: Sequence[tuple[Task, Submission]]
    reused: int
    problem: str | None
    not_taken: tuple[str, ...] = ()
    suite_is_named: bool = True
