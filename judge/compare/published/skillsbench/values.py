"""The tests of the tasks whose answer is cell values, which are read as SkillsBench's code does.

See :mod:`judge.compare.published.skillsbench.attempt`.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache, partial

from judge.compare.published.skillsbench.attempt import (
    Attempt,
    Sheet,
    SkippedError,
    Test,
    archive,
    exists,
    number,
    opened,
    opens,
)


def _same_number(cell: str, value: float, expected: float, tolerance: float) -> str:
    near = abs(value - expected) <= tolerance
    return "" if near else f"{cell}: {value:g} in place of {expected:g}"


# -- weighted-gdp-calc -----------------------------------------------------------------------------

YEARS = ("H", "I", "J", "K", "L")
_GDP_TOLERANCE = 0.5  # absolute, of the published test
_ERRORS = ("#VALUE!", "#DIV/0!", "#REF!", "#NAME?", "#NULL!", "#NUM!", "#N/A")
_GDP_SHEETS = ("Task", "Data")
_WIDTHS: Mapping[str, Sequence[float]] = {
    "Task": (10.5, 7.2, 19.8, 17.8, 39.3, 15.2, 9.3, 13.0, 13.0, 13.0, 13.0, 13.0),
    "Data": (19.5, 18.5, 18.7, 14.0, 67.8, 8.7, 13.0, 12.0, 8.7, 13.0, 13.0, 13.0),
}
"""Widths of the columns A to L, in characters: constants of the published test."""

_DEFAULT_WIDTH, _MIN_WIDTH, _WIDTH_SHARE = 13.0, 3.0, 0.5

EXPORTS, IMPORTS, PRODUCTS = range(12, 18), range(19, 25), range(26, 32)
SHARES, STATISTICS, WEIGHTED = range(35, 41), range(42, 48), range(50, 51)
"""Rows of the sheet ``Task``, by the content expected in columns H to L."""

GdpAnswers = Mapping[int, Sequence[float]]
"""Row of the sheet ``Task`` -> what its columns H to L should hold, with one decimal."""


def gdp_answers(attempt: Attempt) -> GdpAnswers:
    """Computes the right values from the task's own workbook, as the instruction says.

    The published tests have the same values as constants: values with one decimal, and means
    weighted by values with one decimal.

    Raises:
        PublishedError: the folder of the task has no ``gdp.xlsx``, or an unreadable one.
        LookupError: a series that the sheet names is not among the data.
    """
    return _gdp_answers(attempt.file("gdp.xlsx"))


@lru_cache(maxsize=4)
def _gdp_answers(data: bytes) -> GdpAnswers:
    workbook = opened(data)
    task, source = Sheet(workbook, "Task"), Sheet(workbook, "Data").grid()
    head = next(row for row in source if "Series_code" in row)
    series = {row[head.index("Series_code")]: row for row in source}
    columns = [head.index(task.value(f"{column}9")) for column in YEARS]
    rows: dict[int, Sequence[float]] = {
        row: [number(series[task.value(f"D{row}")][column]) for column in columns]
        for rows_of_kind in (EXPORTS, IMPORTS, PRODUCTS)
        for row in rows_of_kind
    }
    for at, row in enumerate(SHARES):
        flows = zip(rows[EXPORTS[at]], rows[IMPORTS[at]], rows[PRODUCTS[at]], strict=True)
        rows[row] = [(out - into) / product * 100 for out, into, product in flows]
    years = list(zip(*(rows[row] for row in SHARES), strict=True))
    quarters = [statistics.quantiles(year, n=4, method="inclusive") for year in years]
    measures = (
        map(min, years),
        map(max, years),
        map(statistics.median, years),
        map(statistics.fmean, years),
        (low for low, _, _ in quarters),
        (high for _, _, high in quarters),
    )
    rows.update(zip(STATISTICS, map(list, measures), strict=True))
    answers = {row: [round(value, 1) for value in values] for row, values in rows.items()}
    means = (
        statistics.fmean(shares, products)
        for shares, products in zip(
            zip(*(answers[row] for row in SHARES), strict=True),
            zip(*(answers[row] for row in PRODUCTS), strict=True),
            strict=True,
        )
    )
    return {**answers, WEIGHTED[0]: [round(mean, 1) for mean in means]}


def _task_sheet(attempt: Attempt, *, formulas: bool = False) -> Sheet:
    """Returns the first sheet with ``Task`` in its name, or else the active sheet."""
    names = attempt.workbook.sheet_names
    name = next((name for name in names if "Task" in name), attempt.workbook.active_sheet)
    return attempt.sheet(str(name), formulas=formulas)


def _gdp_value(sheet: Sheet, cell: str) -> float:
    """Returns the number in a cell; a blank cell counts as 0 (S3)."""
    value = sheet.value(cell)
    return 0.0 if value is None else number(value)


def _gdp_values(rows: Sequence[int], attempt: Attempt) -> str:
    sheet, answers = _task_sheet(attempt), gdp_answers(attempt)
    for row in rows:
        for column, value in zip(YEARS, answers[row], strict=True):
            cell = f"{column}{row}"
            wrong = _same_number(cell, _gdp_value(sheet, cell), value, _GDP_TOLERANCE)
            if wrong:
                return wrong
    return ""


def _gdp_data(rows: Sequence[int], least: int, attempt: Attempt) -> str:
    sheet = _task_sheet(attempt, formulas=True)
    cells = [f"{column}{row}" for row in rows for column in YEARS]
    filled = sum(sheet.value(cell) is not None for cell in cells)
    return "" if filled >= least else f"{filled} cells are filled, of at least {least}"


def _gdp_reasonable(attempt: Attempt) -> str:
    sheet = _task_sheet(attempt)
    for column in YEARS:
        value = _gdp_value(sheet, f"{column}50")
        if not (value > 0 and value <= 50):
            return f"{column}50: {value:g} is not between 0 and 50"
    return ""


def _gdp_readable(attempt: Attempt) -> str:
    _task_sheet(attempt)
    return ""


def _gdp_errors(attempt: Attempt) -> str:
    sheet = _task_sheet(attempt)
    for rows in (EXPORTS, IMPORTS, PRODUCTS, SHARES, STATISTICS, WEIGHTED):
        for cell in (f"{column}{row}" for row in rows for column in YEARS):
            value = sheet.value(cell)
            if isinstance(value, str) and any(code in value for code in _ERRORS):
                return f"{cell}: {value}"
    return ""


def _gdp_no_sheets_more(attempt: Attempt) -> str:
    names = attempt.sheet_names
    return ", ".join(name for name in names if name not in _GDP_SHEETS)


def _gdp_no_sheets_less(attempt: Attempt) -> str:
    names = attempt.sheet_names
    return ", ".join(name for name in _GDP_SHEETS if name not in names)


def _gdp_widths(role: str, attempt: Attempt) -> str:
    names = attempt.sheet_names
    name = next(
        (name for name in names if name == role or (role == "Task" and "task" in name.lower())),
        None,
    )
    if name is None:
        raise SkippedError(f"there is no sheet {role}")
    written = attempt.sheet(name).column_widths()
    widths = [written.get(column, _DEFAULT_WIDTH) for column in range(1, len(_WIDTHS[role]) + 1)]
    if any(0 < width < _MIN_WIDTH for width in widths):
        raise SkippedError("the widths look like those that Gnumeric writes")
    for column, (actual, width) in enumerate(zip(widths, _WIDTHS[role], strict=True), start=1):
        if not width * (1 - _WIDTH_SHARE) <= actual <= width * (1 + _WIDTH_SHARE):
            return f"column {column} is {actual:g} wide in place of {width:g}"
    return ""


def _gdp_macros(attempt: Attempt) -> str:
    names = archive(attempt.output).names
    return next((name for name in names if "vbaProject" in name or name.endswith(".bin")), "")


def _gdp_extension(_: Attempt) -> str:
    return ""


def _gdp_tests() -> Mapping[str, Test]:
    def data(rows: Sequence[int], least: int = 1) -> Test:
        return Test(partial(_gdp_data, rows, least))

    def values(rows: Sequence[int]) -> Test:
        return Test(partial(_gdp_values, rows))

    return {
        "TestFileExists::test_excel_file_exists": Test(exists),
        "TestFileExists::test_excel_file_readable": Test(_gdp_opens),
        "TestFileExists::test_sheet_structure": Test(_gdp_readable),
        "TestStep1LookupFormulas::test_exports_have_data": data(EXPORTS),
        "TestStep1LookupFormulas::test_imports_have_data": data(IMPORTS),
        "TestStep1LookupFormulas::test_gdp_have_data": data(PRODUCTS),
        "TestStep1DataValues::test_exports_values": values(EXPORTS),
        "TestStep1DataValues::test_imports_values": values(IMPORTS),
        "TestStep1DataValues::test_gdp_values": values(PRODUCTS),
        "TestStep2NetExportsCalculation::test_net_exports_pct_have_data": data(SHARES, 25),
        "TestStep2NetExportsCalculation::test_net_exports_pct_values": values(SHARES),
        "TestStep2Statistics::test_statistics_have_data": data(STATISTICS, 25),
        "TestStep2Statistics::test_min_values": values((42,)),
        "TestStep2Statistics::test_max_values": values((43,)),
        "TestStep2Statistics::test_median_values": values((44,)),
        "TestStep2Statistics::test_mean_values": values((45,)),
        "TestStep2Statistics::test_percentile_values": values((46, 47)),
        "TestStep3WeightedMean::test_weighted_mean_has_data": data(WEIGHTED, 3),
        "TestStep3WeightedMean::test_weighted_mean_values_reasonable": Test(_gdp_reasonable),
        "TestStep3WeightedMean::test_weighted_mean_values": values(WEIGHTED),
        "TestNoExcelErrors::test_no_formula_errors": Test(_gdp_errors),
        "TestSheetStructure::test_no_extra_sheets_added": Test(_gdp_no_sheets_more),
        "TestSheetStructure::test_required_sheets_exist": Test(_gdp_no_sheets_less),
        "TestFormattingPreserved::test_task_sheet_column_widths": Test(
            partial(_gdp_widths, "Task")
        ),
        "TestFormattingPreserved::test_data_sheet_column_widths": Test(
            partial(_gdp_widths, "Data")
        ),
        "TestNoMacros::test_no_vba_macros": Test(_gdp_macros),
        "TestNoMacros::test_file_extension_xlsx": Test(_gdp_extension),
    }


def _gdp_opens(attempt: Attempt) -> str:
    opens(attempt)
    return ""


# -- xlsx-recover-data -----------------------------------------------------------------------------

_BUDGET, _YEARLY = "Budget by Directorate", "YoY Changes (%)"
_PARTS, _GROWTH = "Directorate Shares (%)", "Growth Analysis"

RECOVERED_CELLS: Sequence[tuple[str, str, str, float, str]] = (
    ("budget", _BUDGET, "F8", 4639, "FY2019 SpaceOps"),
    ("budget", _BUDGET, "K5", 19285, "FY2016 Total"),
    ("budget", _BUDGET, "B9", 7139, "FY2020 Science"),
    ("budget", _BUDGET, "C12", 936, "FY2023 Aeronautics"),
    ("budget", _BUDGET, "K10", 23285, "FY2021 Total"),
    ("budget", _BUDGET, "E10", 6555, "FY2021 Exploration"),
    ("yoy", _YEARLY, "D7", 21.97, "FY2019 SpaceTech YoY"),
    ("yoy", _YEARLY, "F9", -0.08, "FY2021 SpaceOps YoY"),
    ("yoy", _YEARLY, "B9", 2.27, "FY2021 Science YoY"),
    ("shares", _PARTS, "F5", 26.08, "FY2016 SpaceOps Share"),
    ("shares", _PARTS, "B10", 31.35, "FY2021 Science Share"),
    ("growth", _GROWTH, "B7", 1534, "Science 5yr Change"),
    ("growth", _GROWTH, "B8", 7444.4, "Science Avg Budget"),
    ("growth", _GROWTH, "E4", 8.58, "Exploration CAGR"),
    ("growth", _GROWTH, "E5", 5047, "FY2019 Exploration"),
)
"""Group, sheet, cell, value and name of each of the fifteen lost values, as tests are named."""

_MIN_DISTANCE: Mapping[str, float] = {"yoy": 0.1, "shares": 0.1, "growth": 0.5}


def _recovered_sheets(*names: str) -> Callable[[Attempt], object]:
    def prepare(attempt: Attempt) -> object:
        if attempt.output is None:
            raise SkippedError("there is no output")
        return [attempt.sheet(name, formulas=True) for name in names] or attempt.workbook

    return prepare


def _recovered(group: str, sheet: str, cell: str, expected: float, attempt: Attempt) -> str:
    actual = attempt.sheet(sheet, formulas=True).value(cell)
    if group not in {"shares", "yoy"} and isinstance(expected, int):
        return "" if actual == expected else f"{cell}: {actual!r} in place of {expected}"
    distance = abs(number(actual) - expected)
    near = distance < _MIN_DISTANCE[group]
    return "" if near else f"{cell}: {actual!r} in place of {expected}"


def _no_placeholders(attempt: Attempt) -> str:
    for name in attempt.sheet_names:
        if "???" in attempt.sheet(name, formulas=True).values.values():
            return f"{name} holds ???"
    return ""


def _row_sums(attempt: Attempt) -> str:
    sheet = attempt.sheet(_BUDGET, formulas=True)
    for row in (5, 10):
        total = sum(number(sheet.value(f"{column}{row}")) for column in "BCDEFGHIJ")
        if total != sheet.value(f"K{row}"):
            return f"K{row} is not {total:g}"
    return ""


def _across_sheets(attempt: Attempt) -> str:
    budget, growth = (attempt.sheet(name, formulas=True) for name in (_BUDGET, _GROWTH))
    start, end = number(budget.value("E8")), number(budget.value("E13"))
    rate = round(((end / start) ** 0.2 - 1) * 100, 2)
    if not abs(number(growth.value("E4")) - rate) < 0.1:
        return f"E4 is not {rate:g}"
    return "" if growth.value("E5") == budget.value("E8") else "E5 is not E8 of the budget"


def _recover_tests() -> Mapping[str, Test]:
    tests = {"test_file_exists": Test(exists)}
    for group, sheet, cell, expected, words in RECOVERED_CELLS:
        tests[f"test_{group}_values[{cell}-{expected}-{words}]"] = Test(
            partial(_recovered, group, sheet, cell, expected), _recovered_sheets(sheet)
        )
    return {
        **tests,
        "test_no_remaining_placeholders": Test(_no_placeholders, _recovered_sheets()),
        "test_row_sums_consistent": Test(_row_sums, _recovered_sheets(_BUDGET)),
        "test_cross_sheet_consistency": Test(_across_sheets, _recovered_sheets(_BUDGET, _GROWTH)),
    }


# -- protein-expression-analysis -------------------------------------------------------------------


def _protein_sheets(attempt: Attempt) -> str:
    names = attempt.sheet_names
    return ", ".join(name for name in ("Task", "Data") if name not in names)


def _filled(rows: range, columns: str, least: int, attempt: Attempt, *, numbers: bool) -> str:
    sheet = attempt.sheet("Task")
    values = [sheet.value(f"{column}{row}") for row in rows for column in columns]
    filled = sum(
        isinstance(value, int | float) if numbers else value is not None for value in values
    )
    return "" if filled >= least else f"{filled} cells are filled, of at least {least}"


def _fold_changes(attempt: Attempt) -> str:
    for column in "CD":
        wrong = _filled(range(32, 42), column, 8, attempt, numbers=True)
        if wrong:
            return f"column {column}: {wrong}"
    return ""


def _numeric(attempt: Attempt) -> str:
    sheet = attempt.sheet("Task")
    for row in range(11, 16):
        value = sheet.value(f"C{row}")
        if value is not None and not isinstance(value, int | float):
            return f"C{row} holds {value!r}"
    return ""


_PROTEIN_TESTS: Mapping[str, Test] = {
    "test_file_exists": Test(exists),
    "test_sheets_exist": Test(_protein_sheets, opens),
    "test_step1_expression_values_filled": Test(
        partial(_filled, range(11, 21), "CDEFGHIJKL", 80, numbers=False), opens
    ),
    "test_step2_statistics_calculated": Test(
        partial(_filled, range(24, 28), "BCDEFGHIJK", 32, numbers=True), opens
    ),
    "test_step3_fold_changes_calculated": Test(_fold_changes, opens),
    "test_values_are_numeric": Test(_numeric, opens),
}


# -- jpg-ocr-stat ----------------------------------------------------------------------------------

_RECEIPTS = "results"


def _texts(sheet: Sheet) -> list[list[str]]:
    return [["" if value is None else str(value) for value in row] for row in sheet.grid()]


def _receipts(attempt: Attempt) -> str:
    names = attempt.sheet_names
    if names != [_RECEIPTS]:
        return f"the sheets are {', '.join(names)}"
    actual = _texts(attempt.sheet(_RECEIPTS))
    expected = _texts(Sheet(opened(attempt.file("stat_oracle.xlsx")), _RECEIPTS))
    if len(actual) != len(expected):
        return f"{len(actual)} rows in place of {len(expected)}"
    for row, (texts, oracle) in enumerate(zip(actual, expected, strict=True), start=1):
        if texts != oracle:
            return f"row {row}: {texts} in place of {oracle}"
    return ""


VALUE_TESTS: Mapping[str, Mapping[str, Test]] = {
    "jpg-ocr-stat": {"test_outputs": Test(_receipts)},
    "protein-expression-analysis": _PROTEIN_TESTS,
    "weighted-gdp-calc": _gdp_tests(),
    "xlsx-recover-data": _recover_tests(),
}
"""Task -> name of a test -> the test."""
