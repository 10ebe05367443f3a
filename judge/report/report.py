"""The report of a results directory as one object, for programs and notebooks."""

from __future__ import annotations

import html
import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from judge.errors import UsageError
from judge.files.paths import GivenPath
from judge.report.build import DEFAULT_METHOD, build_report_data
from judge.report.load import load_run
from judge.report.markdown import render_markdown, with_interval
from judge.report.model import Method, ReportData
from judge.report.shapes import inspect_files
from judge.report.tables import TABLES, Row, metrics_of, to_csv

if TYPE_CHECKING:
    import pandas as pd


def report_data(
    path: Path | str,
    *,
    dataset: str | Path | None = None,
    suspects: GivenPath | None = None,
    method: Method = DEFAULT_METHOD,
) -> ReportData:
    """Reads a run and builds the data of its report; nothing is run and nothing is judged.

    Args:
        path: the results directory.
        dataset: the suite; None for the one that the run names. Without a suite, figures that need
            its workbooks (sizes, subsets) are missing, and a note says so.
        suspects: a suspects.json, which replaces the suspects that the run keeps.
        method: confidence, resamples and seed of the intervals.

    Raises:
        StoreError: the directory does not hold a run, or nothing has been judged.
        SuiteError: the given suite is not the one that the run was made with.
    """
    run = load_run(path, dataset, suspects, details=False)
    return build_report_data(run, inspect_files(run), method)


@dataclass(frozen=True, slots=True)
class Report:
    """A report on one run; a notebook shows it as a table of its scores.

    Attributes:
        data: every number in it.
    """

    data: ReportData

    @classmethod
    def of_run(
        cls,
        path: Path | str,
        *,
        dataset: str | Path | None = None,
        suspects: GivenPath | None = None,
        method: Method = DEFAULT_METHOD,
    ) -> Report:
        """Reads a results directory; arguments and errors are those of :func:`report_data`.

        Example: ``judge.Report.of_run("results/mine").scores()``
        """
        return cls(report_data(path, dataset=dataset, suspects=suspects, method=method))

    # -- data frames -----------------------------------------------------------------------------

    def scores(self) -> pd.DataFrame:
        """Scores with intervals, overall and by every breakdown; one row for each part."""
        return _frame(self.rows("scores"))

    def tasks(self) -> pd.DataFrame:
        """One row for each submission: scores, verdicts, tokens, cost, and its groups."""
        return _frame(self.rows("tasks"))

    def cases(self) -> pd.DataFrame:
        """One row for each test case: verdict, cause, times, memory, sizes, differences."""
        return _frame(self.rows("cases"))

    def rows(self, table: str) -> list[Row]:
        """The rows of a table of the report as plain dictionaries.

        Args:
            table: ``scores``, ``paper``, ``tasks``, ``cases``, or for desktop episodes
                ``episodes``, ``settings``, ``histogram`` or ``endings``.

        Raises:
            UsageError: there is no such table.
        """
        if table not in TABLES:
            raise UsageError(
                f"a report has no table {table!r}", hint=f"It has {', '.join(TABLES)}."
            )
        return TABLES[table](self.data)

    def metrics(self) -> dict[str, float]:
        """The numbers of the report as one flat mapping, for trackers such as MLflow.

        The names are documented in docs/logging.md, and do not change between versions. A number
        that is not known has no entry.

        Example: ``mlflow.log_metrics(judge.Report.of_run("results/mine").metrics())``
        """
        return metrics_of(self.data)

    # -- texts -----------------------------------------------------------------------------------

    def to_json(self) -> str:
        """The whole report as JSON text."""
        return json.dumps(self.data.to_json(), ensure_ascii=False, indent=2) + "\n"

    def to_csv(self, table: str = "scores") -> str:
        """One table as CSV, chosen by a name that :meth:`rows` accepts."""
        return to_csv(self.rows(table))

    def to_markdown(self) -> str:
        """The report as Markdown."""
        return render_markdown(self.data)

    def _repr_html_(self) -> str:
        groups = [(group.label, group.scores) for group in self.data.by_instruction_type.groups]
        rows = "".join(
            f"<tr><th>{html.escape(label)}</th><td>{scores.tasks}</td><td>{scores.cases}</td>"
            f"<td>{with_interval(scores.soft_restriction)}</td>"
            f"<td>{with_interval(scores.hard_restriction)}</td></tr>"
            for label, scores in [*groups, ("Overall", self.data.overall)]
        )
        return (
            f"<table><caption>{html.escape(self.data.name)}</caption><thead><tr><th></th>"
            "<th>tasks</th><th>cases</th><th>soft %</th><th>hard %</th></tr></thead>"
            f"<tbody>{rows}</tbody></table>"
        )


def _frame(rows: list[dict[str, Any]]) -> pd.DataFrame:
    try:
        import pandas as pd  # noqa: PLC0415  only needed for data frames
    except ImportError as error:
        raise UsageError(
            "data frames need pandas, which is not installed",
            hint="Run `pip install pandas`, or use Report.rows().",
        ) from error
    return pd.DataFrame(rows)
