"""Compares runs, from their results directories."""

from __future__ import annotations

from pathlib import Path

from judge.report.build import method_of
from judge.report.load import load_run
from judge.report.pairing import RunComparison, compare_loaded


def compare_runs(
    first: Path | str,
    *others: Path | str,
    seed: int | None = None,
    resamples: int | None = None,
) -> RunComparison:
    """Compares runs on the tasks that all of them have.

    Args:
        first: the results directory that the others are compared with.
        others: at least one other results directory.
        seed: of the bootstrap; None for the usual one.
        resamples: of the bootstrap; None for the usual number.

    Returns:
        Scores of each run, and of each pair the differences with intervals, McNemar's exact p, the
        p of the paired cluster bootstrap, both also adjusted by Holm's method, the tasks won and
        lost, and the smallest difference that would be found.

    Raises:
        StoreError: a directory holds no run.
        UsageError: runs of different suites, or without a task in common.
    """
    method = method_of(seed=seed, resamples=resamples)
    return compare_loaded([load_run(path) for path in (first, *others)], method)
