"""The scorer: one judge per process, opened with the first sample."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any, Literal

from inspect_ai.scorer import Score, Scorer, Target, mean, scorer, stderr
from inspect_ai.solver import TaskState

from judge.api.judging import Judge
from judge.api.options import JudgingOptions, cores
from judge.errors import UsageError
from judge.suites import Suite
from judge.suites.corrections import corrected_suite
from judge.version import __version__
from sheetjudge.inspect.asking import limits_of
from sheetjudge.inspect.faults import shown_by_inspect
from sheetjudge.inspect.kept_open import KEPT_OPEN
from sheetjudge.inspect.metrics import QUESTION, by_type
from sheetjudge.inspect.records import submission_of_state
from sheetjudge.inspect.suites import suite_of_sample
from sheetjudge.inspect.verdicts import score_of

_OF_CLUSTERS = {"cluster", "insecure_cluster"}
JUDGING_OPTIONS = frozenset(field.name for field in fields(JudgingOptions)) - _OF_CLUSTERS
"""Options of the scorer that a task takes as well."""

_KINDS: Mapping[str, tuple[tuple[type, ...], str]] = {
    "style": ((str, list, tuple), "a name or several"),
    "checker": ((dict,), "a mapping of options, such as {ignore_case: true}"),
    "corrections": ((str, Path), "a path"),
    "lenient_names": ((bool,), "true or false"),
}
"""What options may be that are not checked elsewhere, and the words for it."""

_METRICS = [mean(), stderr(cluster=QUESTION), by_type()]


@scorer(metrics={"soft": _METRICS, "hard": _METRICS})
def judge_verdict(
    suite: str | None = None,
    profile: str = "standard",
    style: str | Sequence[str] = (),
    checker: Mapping[str, Any] | None = None,
    corrections: str | None = None,
    recalc: Literal["auto", "never", "always"] = "auto",
    engine: str = "auto",
    lenient_names: bool = False,
    sandbox: str = "auto",
    jobs: int | None = None,
    limits: Mapping[str, Any] | None = None,
) -> Scorer:
    """Judges what was handed in as ``judge score`` does: soft and hard, from 0 to 1.

    A sample of which no case can be judged (the judge failed, or the test is bad) is not scored.

    Args:
        suite: the suite; None to find it by the digest that the samples name.
        profile: comparison profile.
        style: style attributes to compare in addition to the values.
        checker: comparison options that count before those of the tasks.
        corrections: known faults of suites, to be applied.
        recalc: ``auto``, ``never`` or ``always``.
        engine: calculation engine.
        lenient_names: whether newer functions written without their prefix are computed.
        sandbox: ``auto``, ``docker`` or ``bubblewrap``.
        jobs: submissions to judge at a time; None for one on each core.
        limits: bounds of programs, such as ``{"cpu_s": 20}``.
    """
    with shown_by_inspect():
        options = options_of(
            {
                "profile": profile,
                "style": style,
                "checker": checker,
                "corrections": corrections,
                "recalc": recalc,
                "engine": engine,
                "lenient_names": lenient_names,
                "sandbox": sandbox,
                "jobs": jobs,
                "limits": limits,
            }
        )

    async def score(state: TaskState, target: Target) -> Score:
        del target  # golds stay with the judge
        judge = await asyncio.to_thread(_judge, state.metadata, suite, options)
        assert judge.suite is not None
        task = judge.suite.task(str(state.sample_id))
        submission = submission_of_state(state, judge.suite, task)
        found = await judge.ajudge(task, submission)
        return score_of(found, submission, state.output, _judged_with(judge.suite, options))

    return score


def options_of(given: Mapping[str, Any]) -> JudgingOptions:
    """How to judge, out of the options of the scorer as Inspect reads them.

    Raises:
        UsageError: an option has a value that it cannot have.
    """
    chosen = {name: value for name, value in given.items() if value is not None}
    for name, (kinds, words) in _KINDS.items():
        if name in chosen and not isinstance(chosen[name], kinds):
            raise UsageError(f"{name} is {str(chosen[name])[:80]!r}: not {words}")
    style, corrections = chosen.pop("style", ()), chosen.pop("corrections", None)
    return JudgingOptions(
        jobs=chosen.pop("jobs", None) or cores(),
        style=(style,) if isinstance(style, str) else tuple(style),
        corrections=None if corrections is None else Path(corrections),
        limits=limits_of(chosen.pop("limits", None)),
        **chosen,
    )


def check_judging(suite: Suite, options: JudgingOptions) -> None:
    """Checks what would otherwise be noticed with the first score, when replies have been paid for.

    Raises:
        UsageError: a comparison option has a value that it cannot have.
        SuiteError: the corrections cannot be read, or do not fit the suite.
    """
    corrected_suite(suite, options.corrections).suite.with_checker_options(options.checker)


def _judge(metadata: Mapping[str, Any], source: str | None, options: JudgingOptions) -> Judge:
    suite = suite_of_sample(metadata, source)
    return KEPT_OPEN.get(judge_key(suite, options), lambda: Judge(suite, options))


def judge_key(suite: Suite, options: JudgingOptions) -> tuple[str, str, str]:
    """What tells the judges of a process apart."""
    return ("judge", suite.digest, repr(options))


def _judged_with(suite: Suite, options: JudgingOptions) -> dict[str, Any]:
    return {
        "suite": suite.name,
        "suite_digest": suite.digest,
        "judge_version": __version__,
        "profile": options.profile,
        "style": list(options.style),
        "recalc": options.recalc,
        "engine": options.engine,
    }
