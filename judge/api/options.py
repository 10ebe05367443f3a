"""Options for judging and for scoring."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any, TypedDict

from judge.core.limits import Limits
from judge.core.option import Option, Section, check_bounds
from judge.errors import UsageError
from judge.files.paths import GivenPath, hold_paths
from judge.grading.options import ClusterName, GradingOptions, InsecureCluster
from judge.recalc.names import Mode


def cores() -> int:
    """The number of cores of this machine, which is the default number of jobs."""
    return os.cpu_count() or 1


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgingOptions(GradingOptions):
    """Options of everything that judges; every field has the default of the command line.

    The options that decide verdicts (``profile``, ``style``, ``recalc``, ``engine``,
    ``lenient_names``, ``sandbox`` and ``limits``) are inherited from
    :class:`judge.grading.options.GradingOptions`.

    Attributes:
        jobs: how many submissions or cases to judge at a time; at least 1.
        checker: comparison options that take precedence over those of the tasks, such as
            ``{"ignore_case": True, "untouched": True}``.
        corrections: a file with corrections of known faults of suites, or a folder of such files;
            None applies no corrections.
        cluster: workers that judge in place of threads: ``local:N``, the address of a scheduler, or
            a .yaml file (docs/scaling.md); None for threads of this process.
        insecure_cluster: whether the cluster may be reached without TLS on other machines.

    Raises:
        UsageError: a field has a value that is not valid, or contradicts a published profile.
    """

    jobs: Annotated[
        int, Option("Submissions at a time [cores].", Section.ISOLATION, short="-j", least=1)
    ] = field(default_factory=cores)
    checker: Mapping[str, object] = field(default_factory=dict)
    corrections: GivenPath | None = None
    cluster: ClusterName = None
    insecure_cluster: InsecureCluster = False

    def __post_init__(self) -> None:
        from judge.api.resources import check_judging  # noqa: PLC0415  help declares options without it

        hold_paths(self)
        check_bounds(self)
        check_judging(self)

    @property
    def recalculation(self) -> Mode:
        """When formulas are computed: as requested; never if the profile uses the stored values."""
        from judge.compare.profiles import get_profile  # noqa: PLC0415  help declares options without it

        return "never" if get_profile(self.profile).reads_stored_values else self.recalc


class ComputingChanges(TypedDict, total=False):
    """Options of :class:`JudgingOptions` that a comparison of two workbooks accepts by name."""

    recalc: Mode | None
    engine: str | None
    lenient_names: bool | None
    sandbox: str | None


class RuleChanges(ComputingChanges, total=False):
    """Options that every function that judges with a suite accepts by name."""

    profile: str | None
    style: Sequence[str] | None
    checker: Mapping[str, object] | None
    corrections: GivenPath | None


class RunChanges(RuleChanges, total=False):
    """Options of a function that runs programs."""

    limits: Limits | None


class VerifyChanges(RuleChanges, total=False):
    """Options of a function that judges many cases, and runs no programs."""

    jobs: int | None
    cluster: str | None
    insecure_cluster: bool | None


class JudgingChanges(RunChanges, VerifyChanges, total=False):
    """All options of :class:`JudgingOptions`, for functions that accept them by name."""


def with_changes(options: JudgingOptions | None, changes: Mapping[str, Any]) -> JudgingOptions:
    """The options of a call: those of an object, replaced by those given by name.

    Args:
        options: the object; None for the defaults.
        changes: a :class:`JudgingChanges`; None leaves an option as it is.

    Raises:
        UsageError: an option has a value that is not valid.
    """
    values = {name: value for name, value in changes.items() if value is not None}
    if "style" in values:
        values["style"] = tuple(values["style"])
    return replace(options or JudgingOptions(), **values)


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoreOptions(JudgingOptions):
    """Options of scoring; every field has the default of the command line.

    Attributes:
        dataset: the suite (folder, archive or name); None for the one that run.json remembers.
        out: results directory to write; None grades a run directory in place, and puts anything
            else under ``results/``.
        ids: task ids to grade; empty for all.
        limit: grade only that many tasks, in suite order.
        outputs: pattern of the finished workbooks in the folder, such as ``{task}/{case}/*.xlsx``,
            or in the folder of each trial of a job (docs/agents.md).
        programs: pattern of programs in the folder, which are run on all cases instead of comparing
            workbooks.
        trajectories: trajectories of the agents that made the finished workbooks: a pattern of
            files in the folder (ATIF, SWE-agent's .traj), or the path of an Inspect log.
        every_task: whether a task without a finished workbook counts as not solved (NO) instead of
            being left out.
        best_of: of several samples of a task, the best one counts instead of their mean.
        trust_values: whether values of formulas are trusted in outputs if only a results directory
            says that they are finished workbooks, or made only by mouse and keyboard. Workbooks in
            a folder that the call names are trusted anyway.
        suspects: golds that may be at fault (``suspects.json``), kept with the run: scores without
            them are also reported. None for those that the run keeps, if any.
        reference: solutions (.jsonl); the time that they take here sets the tasks' time limits.
        time_factor: how many times the reference's time a solution may take; the times in
            ``limits`` are lower bounds.
        reward: file for soft, hard and the verdicts of one task, as numbers from 0 to 1; None for
            no such file.

    Raises:
        UsageError: a field has a value that is not valid.
    """

    dataset: Annotated[
        str | Path | None,
        Option("Suite; default: the one that the run remembers.", Section.JUDGED, metavar="SUITE"),
    ] = None
    out: Annotated[GivenPath | None, Option("Results directory to write.", Section.JUDGED)] = None
    ids: Annotated[
        tuple[str, ...],
        Option("Only these tasks; may be repeated.", Section.JUDGED, metavar="ID,…"),
    ] = ()
    limit: Annotated[int | None, Option("Only the first N tasks.", Section.JUDGED, least=1)] = None
    outputs: Annotated[
        str | None,
        Option(
            "Where finished workbooks are, such as '{task}/{case}/*.xlsx' (docs/agents.md).",
            Section.JUDGED,
            metavar="PATTERN",
        ),
    ] = None
    programs: Annotated[
        str | None,
        Option(
            "Where programs to run on all cases are, such as 'artifacts/**/solution.py'.",
            Section.JUDGED,
            metavar="PATTERN",
        ),
    ] = None
    trajectories: Annotated[
        str | None,
        Option(
            "Where the agents' trajectories are, such as '{task}/trajectory.json', or a log of "
            "Inspect.",
            Section.JUDGED,
            metavar="PATTERN",
        ),
    ] = None
    every_task: Annotated[
        bool, Option("Count tasks without a finished workbook as not solved.", Section.JUDGED)
    ] = False
    best_of: Annotated[
        bool,
        Option(
            "Of several samples of a task, the best one counts instead of their mean.",
            Section.JUDGED,
        ),
    ] = False
    trust_values: Annotated[
        bool,
        Option(
            "Trust values of formulas in a run's finished workbooks and --gui-only episodes.",
            Section.FORMULAS,
        ),
    ] = False
    suspects: Annotated[
        GivenPath | None,
        Option(
            "Suspect golds (`judge verify --audit`): also give the scores without them.",
            Section.FAULTS,
            metavar="FILE",
            exists=True,
            folder=False,
        ),
    ] = None
    reference: Annotated[
        GivenPath | None,
        Option(
            "Solutions (.jsonl), one for each task, whose time here sets its time limits.",
            Section.LIMITS,
            exists=True,
            folder=False,
        ),
    ] = None
    time_factor: Annotated[
        float,
        Option(
            "With --reference: limit = max(--cpu or --wall, this x the reference's time).",
            Section.LIMITS,
            least=1,
        ),
    ] = 10.0
    reward: Annotated[
        GivenPath | None,
        Option(
            "Write soft, hard and the verdicts of one task as rewards from 0 to 1.",
            Section.JUDGED,
            folder=False,
        ),
    ] = None

    def __post_init__(self) -> None:
        JudgingOptions.__post_init__(self)
        if self.reference is not None and self.cluster is not None:
            raise UsageError(
                "time limits follow a reference on one machine, and a cluster has several",
                hint="Leave out --reference or --cluster.",
            )
