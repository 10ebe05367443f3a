"""A results directory in, the data of its report out."""

from __future__ import annotations

from pathlib import Path

from judge.files.paths import GivenPath
from judge.report.build import DEFAULT_METHOD, build_report_data
from judge.report.files import inspect_files
from judge.report.load import load_run
from judge.report.model import Method, ReportData


def report_data(
    path: Path | str,
    *,
    dataset: str | Path | None = None,
    suspects: GivenPath | None = None,
    method: Method = DEFAULT_METHOD,
) -> ReportData:
    """Reads a run and makes the data of its report; nothing is run and nothing is judged.

    Args:
        path: the results directory.
        dataset: the suite; None for the one that the run remembers. Without it, what takes the
            suite's workbooks (sizes, subsets) is missing, and a note says so.
        suspects: a suspects.json, in place of the suspects that the run keeps.
        method: confidence, resamples and seed of the intervals.

    Raises:
        StoreError: the directory holds no run, or nothing that was judged.
        SuiteError: the suite that was named is not the one that the run was made with.
    """
    run = load_run(path, dataset, suspects, details=False)
    return build_report_data(run, inspect_files(run), method)
