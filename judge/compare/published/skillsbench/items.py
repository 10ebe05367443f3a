"""SkillsBench's tests of workbook tasks as items: as published, and as intended.

As intended, they use computed values and check every required cell.
"""

from __future__ import annotations

import itertools
import posixpath
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from judge.compare.checklists.items import Outcome, State, not_judged
from judge.compare.checklists.suites import ItemDetails, PublishedSuite, as_check, as_intended
from judge.compare.checklists.workspace import MissingError, OpenBook, Workspace
from judge.compare.published.skillsbench.attempt import (
    PASSED,
    SKIPPED,
    Attempt,
    Sheet,
    Test,
    TestOutcome,
    Value,
    number,
    opened,
    polars_table,
)
from judge.compare.published.skillsbench.objects import (
    DOTS_TOLERANCE,
    LIFTS,
    OBJECT_TESTS,
    changed_rate,
    dots,
    embedded,
    rates_of,
    wrong_rate,
)
from judge.compare.published.skillsbench.values import (
    EXPORTS,
    IMPORTS,
    PRODUCTS,
    SHARES,
    STATISTICS,
    VALUE_TESTS,
    WEIGHTED,
    YEARS,
    gdp_answers,
)
from judge.compare.published_error import PublishedError, Side
from judge.errors import WorkbookError
from judge.workbook.address import cell_key, column_letters
from judge.workbook.cell import Cell, ErrorValue

TESTS: Mapping[str, Mapping[str, Test]] = {**OBJECT_TESTS, **VALUE_TESTS}
"""Task -> name of a test, as pytest writes it -> the test."""

OUTPUTS: Mapping[str, str] = {
    "exceltable-in-ppt": "/root/results.pptx",
    "jpg-ocr-stat": "/app/workspace/stat_ocr.xlsx",
    "powerlifting-coef-calc": "/root/data/openipf.xlsx",
    "protein-expression-analysis": "/root/protein_expression.xlsx",
    "sales-pivot-analysis": "/root/demographic_analysis.xlsx",
    "weighted-gdp-calc": "/root/gdp.xlsx",
    "xlsx-recover-data": "/root/nasa_budget_recovered.xlsx",
}
"""Task -> the file that its tests open."""


def judge_test(task: str, name: str, attempt: Attempt) -> TestOutcome:
    """Returns the result of a published test.

    Args:
        task: the task, such as ``jpg-ocr-stat``.
        name: the test as pytest names it.
        attempt: the files that it checks.

    Raises:
        PublishedError: the task has no such test.
    """
    test = TESTS.get(task, {}).get(name)
    if test is None:
        raise PublishedError("UsageError", f"not found: {task} {name}", Side.RULES)
    return test.outcome(attempt)


_GDP_TOLERANCE = 0.5  # absolute, of the published test
_PROTEIN_TOLERANCE = 0.01  # absolute, of the published test
_QUARTERS = ("Q1", "Q2", "Q3", "Q4")


class ComputedSheet(Sheet):
    """A sheet with computed values in place of stored ones.

    Args:
        book: the workbook.
        name: the sheet's name.
    """

    def __init__(self, book: OpenBook, name: str) -> None:
        super().__init__(book.workbook, name)
        self._grid = book.grid(name).values

    def value_of(self, cell: Cell | None) -> Value:
        """Returns the computed value of a stored cell; None if the cell is blank."""
        if cell is None:
            return None
        value = self._grid.get(cell_key(cell.row, cell.column))
        return value.code if isinstance(value, ErrorValue) else value


@dataclass(frozen=True)
class Computed(Attempt):
    """The output of a solution, with computed values.

    Attributes:
        book: the output as a workbook; None if it is not a workbook.
    """

    book: OpenBook | None = None

    def sheet(self, name: str, *, formulas: bool = False) -> Sheet:  # noqa: ARG002
        """Returns a sheet with computed values; ``formulas`` is ignored.

        Raises:
            PublishedError: there is no workbook, or no such sheet.
        """
        if self.book is None:
            return super().sheet(name)
        super().sheet(name)
        return ComputedSheet(self.book, name)

    def formulas(self, name: str) -> Sheet:
        """Returns a sheet with its formulas as strings.

        Raises:
            PublishedError: there is no workbook, or no such sheet.
        """
        return super().sheet(name, formulas=True)


Intended = Callable[[Computed], str]
"""A test as intended; returns what is wrong, or an empty string."""


_COMPUTED: Mapping[str, str] = {
    "exceltable-in-ppt": "S12",
    "jpg-ocr-stat": "S13",
    "powerlifting-coef-calc": "S10",
    "protein-expression-analysis": "S12",
    "sales-pivot-analysis": "S5",
    "weighted-gdp-calc": "S1",
    "xlsx-recover-data": "S8",
}
"""Task -> the fault that explains a difference, for tests that differ only in using computed
values."""


def intended_outcome(
    task: str, name: str, attempt: Computed, workspace: Workspace
) -> tuple[TestOutcome, str]:
    """Returns what a test should have returned, and the fault that explains a difference."""
    override = _overrides(workspace).get(task, {}).get(name)
    if override is not None:
        body, fault = override
        return Test(lambda _: body(attempt)).outcome(attempt), fault
    if attempt.output is None:
        return TestOutcome("failure", "there is no output"), "S9"
    return TESTS[task][name].outcome(attempt), _COMPUTED[task]


# -- values ----------------------------------------------------------------------------------------


def _gdp_values(rows: Sequence[int], attempt: Computed) -> str:
    sheet, answers = attempt.sheet("Task"), gdp_answers(attempt)
    for row in rows:
        for column, value in zip(YEARS, answers[row], strict=True):
            cell = f"{column}{row}"
            actual = sheet.value(cell)
            if actual is None:
                return f"{cell} is blank"
            if not abs(number(actual) - value) <= _GDP_TOLERANCE:
                return f"{cell}: {actual} in place of {value:g}"
    return ""


def _gdp_data(rows: Sequence[int], attempt: Computed) -> str:
    sheet = attempt.formulas("Task")
    cells = [f"{column}{row}" for row in rows for column in YEARS]
    return ", ".join(cell for cell in cells if sheet.value(cell) is None)


def _receipts(attempt: Computed) -> str:
    if attempt.sheet_names != ["results"]:
        return f"the sheets are {', '.join(attempt.sheet_names)}"
    actual = _receipt_rows(attempt.sheet("results"))
    expected = _receipt_rows(Sheet(opened(attempt.file("stat_oracle.xlsx")), "results"))
    for row, (texts, oracle) in enumerate(zip(actual, expected, strict=False), start=1):
        if texts != oracle:
            return f"row {row}: {texts} in place of {oracle}"
    same = len(actual) == len(expected)
    return "" if same else f"{len(actual)} rows in place of {len(expected)}"


def _receipt_rows(sheet: Sheet) -> list[list[str]]:
    """Returns the rows that are not blank, with amounts to two decimals."""
    rows = [
        [
            ""
            if value is None
            else f"{value:.2f}"
            if isinstance(value, float | int)
            else str(value)
            for value in row
        ]
        for row in sheet.grid()
    ]
    width = max((at for row in rows for at, text in enumerate(row, start=1) if text), default=0)
    return [row[:width] for row in rows if any(row)]


def _protein_values(block: str, attempt: Computed) -> str:
    """Compares the cells of a step with the values that follow from the sheet ``Data``."""
    task, data = attempt.sheet("Task"), polars_table(attempt.sheet("Data"))
    table = {(row["Protein_ID"], name): row[name] for row in data.records() for name in row}
    expected: dict[str, float] = {}
    for row in range(11, 21):
        values: dict[bool, list[float]] = {True: [], False: []}
        for at in range(3, 13):
            column = column_letters(at)
            value = table.get((task.value(f"A{row}"), str(task.value(f"{column}10"))))
            if isinstance(value, int | float):
                values[task.value(f"{column}9") == "Treated"].append(value)
                if block == "lookup":
                    expected[f"{column}{row}"] = value
        _add_statistics(expected, block, row, values[False], values[True])
    for cell, value in expected.items():
        actual = task.value(cell)
        if not isinstance(actual, int | float) or abs(actual - value) > _PROTEIN_TOLERANCE:
            return f"{cell}: {actual} in place of {value:.4g}"
    return ""


def _add_statistics(
    expected: dict[str, float],
    block: str,
    row: int,
    control: Sequence[float],
    treated: Sequence[float],
) -> None:
    """Adds the expected values of step 2 or 3 for the protein of a row."""
    if not control or not treated:
        return
    means = statistics.fmean(control), statistics.fmean(treated)
    column = column_letters(row - 9)
    if block == "statistics":
        for line, values in ((24, control), (26, treated)):
            expected[f"{column}{line}"] = statistics.fmean(values)
            if len(values) > 1:
                expected[f"{column}{line + 1}"] = statistics.stdev(values)
    if block == "changes":
        expected[f"D{row + 21}"] = means[1] - means[0]
        expected[f"C{row + 21}"] = 2 ** (means[1] - means[0])


# -- tables ----------------------------------------------------------------------------------------


def _dots_scores(sex: str | None, attempt: Computed) -> str:
    """Checks the scores on the required sheet."""
    lifters = polars_table(attempt.sheet("Data")).records()
    scored = polars_table(attempt.sheet("Dots")).records()
    if len(lifters) != len(scored):
        return f"{len(scored)} rows in place of {len(lifters)}"
    for row, own in zip(lifters, scored, strict=True):
        if sex is not None and row["Sex"] != sex:
            continue
        total = sum(number(row[lift]) for lift in LIFTS)
        score = dots(row["Sex"], number(row["BodyweightKg"]), total)
        if own.get("Name") != row["Name"]:
            return f"{own.get('Name')} in place of {row['Name']}"
        if not abs(number(own["Dots"]) - score) <= DOTS_TOLERANCE:
            return f"{row['Name']}: {own['Dots']} in place of {score:g}"
    return ""


def _dots_formulas(column: str, calls: Sequence[str], attempt: Computed) -> str:
    sheet = attempt.formulas("Dots")
    rows = len(polars_table(attempt.sheet("Data")).rows)
    for row in range(2, rows + 2):
        value = sheet.value(f"{column}{row}")
        if not isinstance(value, str) or not value.startswith("="):
            return f"{column}{row} holds no formula"
        if any(call not in value for call in calls):
            return f"{column}{row} does not call {' and '.join(calls)}"
    return ""


def _source(attempt: Computed) -> Sequence[Mapping[str, Value]]:
    """Returns the rows of the required sheet."""
    return polars_table(attempt.sheet("SourceData")).records()


def _column(rows: Sequence[Mapping[str, Value]], part: str) -> str:
    name = next((name for name in (rows[0] if rows else ()) if part in name.lower()), None)
    if name is None:
        raise KeyError(part)
    return name


def _quarters(attempt: Computed) -> str:
    """Checks that the quarters follow the order of the median incomes."""
    rows = _source(attempt)
    quarter, income = _column(rows, "quarter"), _column(rows, "median")
    groups: dict[str, list[float]] = {name: [] for name in _QUARTERS}
    for row in rows:
        name, value = row[quarter], row[income]
        if not isinstance(value, int | float):
            continue
        if not isinstance(name, str) or name not in groups:
            return f"{name!r} is not a quarter"
        groups[name].append(value)
    for lower, upper in itertools.pairwise(_QUARTERS):
        if not groups[lower] or not groups[upper] or max(groups[lower]) > min(groups[upper]):
            return f"{lower} and {upper} are not in order"
    return ""


def _totals(attempt: Computed) -> str:
    rows = _source(attempt)
    earners, median = _column(rows, "earners"), _column(rows, "median")
    for row in rows:
        first, second = row[earners], row[median]
        if isinstance(first, int | float) and isinstance(second, int | float):
            total = row.get("Total")
            if not isinstance(total, int | float) or abs(first * second - total) > 1:
                return f"{first:g} times {second:g} is not {total}"
    return ""


# -- a presentation --------------------------------------------------------------------------------


def _rates(data: bytes | None, workspace: Workspace) -> Mapping[tuple[Value, Value], Value]:
    workbook = embedded(data)
    book = OpenBook("the embedded workbook", workbook, workspace.compute, workspace.origin)
    return rates_of(ComputedSheet(book, workbook.sheet_names[0]))


def _presentation(workspace: Workspace) -> dict[str, tuple[Intended, str]]:
    def rate(*, inverse: bool) -> Intended:
        return lambda attempt: wrong_rate(
            _rates(attempt.output, workspace), attempt, inverse=inverse
        )

    return {
        "test_exchange_rate_updated": (rate(inverse=False), "S12"),
        "test_inverse_rate_updated": (rate(inverse=True), "S12"),
        "test_other_cells_unchanged": (
            lambda attempt: changed_rate(
                _rates(attempt.file("input.pptx"), workspace),
                _rates(attempt.output, workspace),
                attempt,
            ),
            "S12",
        ),
    }


# -- all of them -----------------------------------------------------------------------------------


def _gdp() -> dict[str, tuple[Intended, str]]:
    step, counted = "TestStep1DataValues::test", "TestStep2Statistics::test"
    values: Mapping[str, Sequence[int]] = {
        f"{step}_exports_values": EXPORTS,
        f"{step}_imports_values": IMPORTS,
        f"{step}_gdp_values": PRODUCTS,
        "TestStep2NetExportsCalculation::test_net_exports_pct_values": SHARES,
        f"{counted}_min_values": STATISTICS[:1],
        f"{counted}_max_values": STATISTICS[1:2],
        f"{counted}_median_values": STATISTICS[2:3],
        f"{counted}_mean_values": STATISTICS[3:4],
        f"{counted}_percentile_values": STATISTICS[4:],
        "TestStep3WeightedMean::test_weighted_mean_values": WEIGHTED,
    }
    looked_up = "TestStep1LookupFormulas::test"
    areas = {
        f"{looked_up}_exports_have_data": EXPORTS,
        f"{looked_up}_imports_have_data": IMPORTS,
        f"{looked_up}_gdp_have_data": PRODUCTS,
        "TestStep2NetExportsCalculation::test_net_exports_pct_have_data": SHARES,
        f"{counted}_statistics_have_data": STATISTICS,
        "TestStep3WeightedMean::test_weighted_mean_has_data": WEIGHTED,
    }
    return {
        **{name: (partial(_gdp_values, table), "S3") for name, table in values.items()},
        **{name: (partial(_gdp_data, rows), "S4") for name, rows in areas.items()},
    }


def _overrides(workspace: Workspace) -> Mapping[str, Mapping[str, tuple[Intended, str]]]:
    """Returns task -> test -> the test as intended, and the fault of the published test."""
    dots_tests, right = "TestDotsAccuracy::test", "TestDataTransformationCorrectness::test"
    return {
        "weighted-gdp-calc": _gdp(),
        "jpg-ocr-stat": {"test_outputs": (_receipts, "S13")},
        "protein-expression-analysis": {
            "test_step1_expression_values_filled": (partial(_protein_values, "lookup"), "S11"),
            "test_step2_statistics_calculated": (partial(_protein_values, "statistics"), "S11"),
            "test_step3_fold_changes_calculated": (partial(_protein_values, "changes"), "S11"),
        },
        "powerlifting-coef-calc": {
            "TestDotsSheetFormulas::test_total_column_is_formula": (
                partial(_dots_formulas, "G", ()),
                "S10",
            ),
            "TestDotsSheetFormulas::test_dots_column_is_formula": (
                partial(_dots_formulas, "H", ("ROUND(", "IF(")),
                "S10",
            ),
            f"{dots_tests}_dots_values_match_ground_truth": (partial(_dots_scores, None), "S10"),
            f"{dots_tests}_dots_formula_handles_male_lifters": (partial(_dots_scores, "M"), "S10"),
            f"{dots_tests}_dots_formula_handles_female_lifters": (
                partial(_dots_scores, "F"),
                "S10",
            ),
        },
        "sales-pivot-analysis": {
            "TestSourceDataContent::test_quarter_values_are_valid": (_quarters, "S6"),
            f"{right}_total_equals_earners_times_median_income": (_totals, "S5"),
            **{
                name: (_only_source(name), "S7")
                for name in TESTS["sales-pivot-analysis"]
                if name.startswith("TestSourceDataSheet")
                or name.endswith(("row_count", "state_values_are_valid", "income_file_present"))
            },
        },
        "exceltable-in-ppt": _presentation(workspace),
    }


def _only_source(name: str) -> Intended:
    """Returns the published test, restricted to the required sheet."""

    def intended(attempt: Computed) -> str:
        names = [sheet for sheet in attempt.sheet_names if "data" in sheet.lower()]
        if "SourceData" not in names:
            return "there is no sheet SourceData"
        return TESTS["sales-pivot-analysis"][name].outcome(attempt).detail

    return intended


# -- the suite -------------------------------------------------------------------------------------

__all__ = ["OUTPUTS", "SUITE", "TESTS"]


def _names(check: object) -> tuple[str, str]:
    """Returns the task and the test that a check names."""
    written = as_check(check)
    return str(written.get("task")), str(written.get("test"))


def _attempt(task: str, workspace: Workspace) -> Attempt:
    return workspace.once("skillsbench", lambda: _read(task, workspace))


def _read(task: str, workspace: Workspace) -> Attempt:
    path = workspace.path_of(posixpath.basename(OUTPUTS[task]))
    files = {posixpath.basename(name): data for name, data in workspace.before.items()}
    return Attempt(workspace.files.get(path), {**files, **workspace.golds})


def _official(check: object, workspace: Workspace) -> Outcome:
    task, test = _names(check)
    result = judge_test(task, test, _attempt(task, workspace))
    if result.result == SKIPPED:
        return not_judged(f"the test is skipped: {result.detail}")
    outcome = ItemDetails(detail=result.detail).outcome(right=result.result == PASSED)
    return replace(outcome, state=State.ERROR) if result.result == "error" else outcome


def _standard(check: object, workspace: Workspace) -> Outcome:
    task, test = _names(check)
    attempt = workspace.once("skillsbench computed", lambda: _computed(task, workspace))
    result, fault = intended_outcome(task, test, attempt, workspace)
    official = _official(check, workspace)
    return as_intended(
        official, ItemDetails(detail=result.detail), fault, right=result.result == PASSED
    )


def _computed(task: str, workspace: Workspace) -> Computed:
    read = _attempt(task, workspace)
    try:
        book = workspace.book(posixpath.basename(OUTPUTS[task]))
    except (MissingError, WorkbookError):
        book = None
    return Computed(read.output, read.files, book)


def _in_words(check: object) -> str:
    test = _names(check)[1].rpartition("::")[2].removeprefix("test_")
    return test.replace("_", " ")


def _faults(check: object) -> tuple[str, ...]:
    task, test = _names(check)
    if test in TESTS.get(task, {}):
        return ()
    return (f"{task} has no test {test!r}",)


SUITE = PublishedSuite(_official, _standard, _in_words, _faults)
