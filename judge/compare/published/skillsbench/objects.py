"""The tests of the tasks with pivot tables, whole tables and a presentation.

See :mod:`judge.compare.published.skillsbench.attempt`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from judge.compare.published.skillsbench.attempt import (
    Attempt,
    Sheet,
    SkippedError,
    Test,
    Value,
    archive,
    exists,
    number,
    opened,
    opens,
    polars_table,
)
from judge.compare.published_error import PublishedError, Side
from judge.errors import WorkbookError
from judge.workbook.address import cell_name
from judge.workbook.facts.book import BookFacts
from judge.workbook.facts.pivots import Pivot
from judge.workbook.reader import Workbook
from judge.workbook.tree import read_tree

# -- powerlifting-coef-calc ------------------------------------------------------------------------

LIFTS = ("Best3SquatKg", "Best3BenchKg", "Best3DeadliftKg")
_DOTS_COLUMNS = ("Name", "Sex", "BodyweightKg", *LIFTS, "TotalKg", "Dots")
_MEN = (-1.093e-06, 0.0007391293, -0.1918759221, 24.0900756, -307.75076)
_WOMEN = (-1.0706e-06, 0.0005158568, -0.1126655495, 13.6175032, -57.96288)
DOTS_TOLERANCE = 0.01  # absolute, of the published test
_TRUTH = "cleaned_with_coefficients.xlsx"


def dots(sex: Value, bodyweight: float, total: float) -> float:
    """Returns the Dots score of a total in kilograms, with three decimals."""
    factors, most = (_MEN, 210) if sex == "M" else (_WOMEN, 150)
    weight = max(40, min(most, bodyweight))
    divisor = sum(
        factor * weight**power for factor, power in zip(factors, (4, 3, 2, 1, 0), strict=True)
    )
    return round(total * 500 / divisor, 3)


def _dots_tables(*names: str) -> Callable[[Attempt], object]:
    def prepare(attempt: Attempt) -> object:
        return [polars_table(attempt.sheet(name)) for name in names]

    return prepare


def _data_not_empty(attempt: Attempt) -> str:
    return "" if polars_table(attempt.sheet("Data")).rows else "the sheet Data is empty"


def _dots_not_empty(attempt: Attempt) -> str:
    return "" if polars_table(attempt.sheet("Dots")).rows else "the sheet Dots is empty"


def _nothing_more(_: Attempt) -> str:
    return ""


def _dots_headings(attempt: Attempt) -> str:
    headings = polars_table(attempt.sheet("Dots")).headings
    return "" if headings == _DOTS_COLUMNS else f"the columns are {', '.join(headings)}"


def _dots_height(attempt: Attempt) -> str:
    rows = [len(polars_table(attempt.sheet(name)).rows) for name in ("Dots", "Data")]
    return "" if rows[0] == rows[1] else f"{rows[0]} rows in place of {rows[1]}"


def _dots_formula(cell: str, calls: Sequence[str], attempt: Attempt) -> str:
    value = attempt.sheet("Dots", formulas=True).value(cell)
    if not isinstance(value, str) or not value.startswith("="):
        return f"{cell} holds no formula"
    return next((f"{cell} does not call {call}" for call in calls if call not in value), "")


def _lifters(attempt: Attempt) -> tuple[list[Mapping[str, Value]], Mapping[Value, list[float]]]:
    """The rows of ``Data``, and the scores of the oracle by name."""
    truth: dict[Value, list[float]] = {}
    for row in polars_table(Sheet(opened(attempt.file(_TRUTH)), "Data")).records():
        truth.setdefault(row["Name"], []).append(number(row["Dots"]))
    return polars_table(attempt.sheet("Data")).records(), truth


def _dots_accuracy(sex: str | None, attempt: Attempt) -> str:
    """Checks the scores of the sheet ``Data``; those of ``Dots`` are not read (S10)."""
    lifters, truth = _lifters(attempt)
    chosen = [row for row in lifters if sex is None or row["Sex"] == sex]
    if sex is not None and not chosen:
        return f"there are no lifters of sex {sex}"
    for row in chosen:
        total = sum(number(row[lift]) for lift in LIFTS)
        score = dots(sex or row["Sex"], number(row["BodyweightKg"]), total)
        scores = truth.get(row["Name"], [])
        if (len(scores) != 1) if sex is None else not scores:
            return f"{row['Name']}: {len(scores)} rows of the oracle"
        distance = abs(score - scores[0])
        near = distance <= DOTS_TOLERANCE if sex is None else distance < DOTS_TOLERANCE
        if not near:
            return f"{row['Name']}: {score:g} in place of {scores[0]:g}"
    return ""


def _lifters_known(attempt: Attempt) -> str:
    lifters, truth = _lifters(attempt)
    return ", ".join(str(row["Name"]) for row in lifters if row["Name"] not in truth)


_LIFTER_TESTS: Mapping[str, Test] = {
    "TestSheetStructure::test_data_sheet_exists": Test(_data_not_empty, _dots_tables("Data")),
    "TestSheetStructure::test_dots_sheet_exists": Test(_nothing_more, _dots_tables("Dots")),
    "TestSheetStructure::test_dots_sheet_has_correct_columns": Test(
        _dots_headings, _dots_tables("Dots")
    ),
    "TestSheetStructure::test_row_count_matches": Test(_dots_height, _dots_tables("Data", "Dots")),
    "TestDotsSheetFormulas::test_dots_sheet_not_empty": Test(_dots_not_empty, _dots_tables("Dots")),
    "TestDotsSheetFormulas::test_total_column_is_formula": Test(partial(_dots_formula, "G2", ())),
    "TestDotsSheetFormulas::test_dots_column_is_formula": Test(
        partial(_dots_formula, "H2", ("ROUND(", "IF("))
    ),
    "TestDotsAccuracy::test_dots_values_match_ground_truth": Test(
        partial(_dots_accuracy, None), _dots_tables("Data")
    ),
    "TestDotsAccuracy::test_all_lifters_have_ground_truth": Test(
        _lifters_known, _dots_tables("Data")
    ),
    "TestDotsAccuracy::test_dots_formula_handles_male_lifters": Test(
        partial(_dots_accuracy, "M"), _dots_tables("Data")
    ),
    "TestDotsAccuracy::test_dots_formula_handles_female_lifters": Test(
        partial(_dots_accuracy, "F"), _dots_tables("Data")
    ),
}


# -- sales-pivot-analysis --------------------------------------------------------------------------

PIVOTS: Sequence[tuple[str, str, str | None]] = (
    ("Population by State", "sum", None),
    ("Earners by State", "sum", None),
    ("Regions by State", "count", None),
    ("State Income Quartile", "sum", "quarter"),
)
"""Sheet, function and field of the columns of each pivot table."""

_HEADINGS: Mapping[str, Callable[[str], bool]] = {
    "SA2_CODE": lambda heading: "sa2_code" in heading or "sa2code" in heading.replace("_", ""),
    "SA2_NAME": lambda heading: "sa2_name" in heading or "sa2name" in heading.replace("_", ""),
    "STATE": lambda heading: "state" in heading,
    "POPULATION_2023": lambda heading: "population" in heading,
    "EARNERS": lambda heading: "earners" in heading,
    "MEDIAN_INCOME": lambda heading: "median" in heading,
    "Quarter": lambda heading: "quarter" in heading,
    "Total": lambda heading: heading == "total",
}
_QUARTERS = frozenset({"Q1", "Q2", "Q3", "Q4"})
_STATES = frozenset(
    {
        "Australian Capital Territory",
        "New South Wales",
        "Northern Territory",
        "Queensland",
        "South Australia",
        "Tasmania",
        "Victoria",
        "Western Australia",
    }
)
_MIN_REGIONS, _MAX_REGIONS = 2000, 3000
_CHECKED_ROWS = 50  # the published test reads no more
_CODE_SHARE = 0.9  # of the income data's codes that the pivot data must have


def _pivot(attempt: Attempt, sheet: str) -> Pivot:
    if sheet not in attempt.sheet_names:
        raise KeyError(f"Worksheet {sheet} does not exist.")
    facts = BookFacts(attempt.workbook)
    tab = facts.tab(sheet)
    pivots = () if tab is None else facts.pivots(tab)
    if not pivots:
        raise IndexError(f"{sheet} has no pivot table")
    return pivots[0]


def _field(pivot: Pivot, fields: Sequence[int]) -> str:
    index = fields[0] if fields else -1
    return pivot.fields[index].name if 0 <= index < len(pivot.fields) else ""


def _pivot_rows(sheet: str, attempt: Attempt) -> str:
    pivot = _pivot(attempt, sheet)
    name = _field(pivot, pivot.rows)
    return "" if "state" in name.lower() else f"{sheet}: the rows are {name or 'nothing'}"


def _pivot_function(sheet: str, function: str, attempt: Attempt) -> str:
    actual = _pivot(attempt, sheet).data[0].function
    return "" if actual == function else f"{sheet}: {actual} in place of {function}"


def _pivot_columns(sheet: str, column: str | None, attempt: Attempt) -> str:
    if column is None:
        raise SkippedError(f"{sheet} has no columns")
    pivot = _pivot(attempt, sheet)
    name = _field(pivot, pivot.columns)
    return "" if column in name.lower() else f"{sheet}: the columns are {name or 'nothing'}"


def _pivot_cache(attempt: Attempt) -> str:
    fields = _pivot(attempt, PIVOTS[0][0]).fields
    return "" if any(field.name for field in fields) else "the cache has no fields"


def _source(attempt: Attempt) -> Sheet:
    """The first sheet whose name has ``source`` or ``data`` (S7)."""
    for name in attempt.sheet_names:
        if "source" in name.lower() or "data" in name.lower():
            return attempt.sheet(name, formulas=True)
    raise LookupError("no sheet is named source or data")


@dataclass(frozen=True, slots=True)
class _Records:
    """A sheet as rows by heading; formulas are strings."""

    headings: Sequence[str]
    rows: Sequence[Mapping[str | None, Value]]

    def heading(self, fits: Callable[[str], bool]) -> str | None:
        return next((heading for heading in self.headings if fits(heading.lower())), None)


def _records(sheet: Sheet) -> _Records:
    first, *rows = sheet.grid()
    headings = [
        str(heading).strip() if heading else f"col_{index}" for index, heading in enumerate(first)
    ]
    return _Records(
        headings,
        [
            dict(zip(headings, row, strict=True))
            for row in rows
            if any(value is not None for value in row)
        ],
    )


def _source_records(attempt: Attempt) -> _Records:
    return _records(_source(attempt))


def _has_column(name: str, attempt: Attempt) -> str:
    first = next(iter(_source(attempt).grid()), [])
    headings = [str(heading).strip().lower() if heading else "" for heading in first]
    return "" if any(map(_HEADINGS[name], headings)) else f"there is no column {name}"


def _regions(attempt: Attempt) -> str:
    rows = len(_source_records(attempt).rows)
    return "" if _MIN_REGIONS <= rows <= _MAX_REGIONS else f"{rows} regions"


def _only(heading: str, allowed: frozenset[str], attempt: Attempt) -> str:
    """Returns the column's forbidden values; empty if all are allowed or it is missing (S6)."""
    records = _source_records(attempt)
    column = records.heading(lambda name: heading in name)
    values = {value for row in records.rows if (value := row.get(column))}
    return ", ".join(sorted(str(value) for value in values - allowed)[:5])


def _totals(attempt: Attempt) -> str:
    """Checks the totals wherever all three cells are numbers (S5)."""
    records = _source_records(attempt)
    columns = [
        records.heading(lambda name: "earners" in name),
        records.heading(lambda name: "median" in name),
        records.heading(lambda name: name == "total"),
    ]
    for row in records.rows[:_CHECKED_ROWS]:
        values = [row.get(column) for column in columns]
        try:
            earners, median, total = (float(value) for value in values)  # type: ignore[arg-type]
        except (TypeError, ValueError):
            continue
        if abs(earners * median - total) > 1:
            return f"{earners:g} times {median:g} is not {total:g}"
    return ""


def _codes(attempt: Attempt) -> str:
    income = opened(attempt.file("income.xlsx"))
    front = income.active_sheet
    if front is None:
        raise LookupError("the income data has no sheet in front")
    codes = []
    for records in (_source_records(attempt), _records(Sheet(income, front, formulas=True))):
        column = records.heading(lambda name: "sa2" in name and "code" in name)
        codes.append({str(value) for row in records.rows if (value := row.get(column))})
    common, least = len(codes[0] & codes[1]), len(codes[1]) * _CODE_SHARE
    return "" if common > least else f"{common} of {len(codes[1])} regions"


def _pivot_tests() -> Mapping[str, Test]:
    tests: dict[str, Test] = {}
    for sheet, function, column in PIVOTS:
        words = f"[{sheet}-{function}-{column}]"
        group = "TestPivotTableConfiguration::test_pivot"
        tests[f"{group}_row_is_state{words}"] = Test(partial(_pivot_rows, sheet), opens)
        tests[f"{group}_uses_correct_aggregation{words}"] = Test(
            partial(_pivot_function, sheet, function), opens
        )
        tests[f"{group}_col_field{words}"] = Test(partial(_pivot_columns, sheet, column), opens)
    for name in _HEADINGS:
        tests[f"TestSourceDataSheet::test_source_data_has_required_column[{name}-<lambda>]"] = Test(
            partial(_has_column, name), _source
        )
    content, right = "TestSourceDataContent::test", "TestDataTransformationCorrectness::test"
    return {
        **tests,
        f"{content}_source_data_has_reasonable_row_count": Test(_regions, _source_records),
        f"{content}_quarter_values_are_valid": Test(
            partial(_only, "quarter", _QUARTERS), _source_records
        ),
        f"{content}_state_values_are_valid": Test(
            partial(_only, "state", _STATES), _source_records
        ),
        f"{right}_pivot_cache_has_fields": Test(_pivot_cache, opens),
        f"{right}_total_equals_earners_times_median_income": Test(_totals, _source_records),
        f"{right}_sa2_codes_from_income_file_present": Test(_codes, _source_records),
    }


# -- exceltable-in-ppt -----------------------------------------------------------------------------

_EMBEDDED = "ppt/embeddings/Microsoft_Excel_Worksheet.xlsx"
_ESSENTIAL = ("[Content_Types].xml", "ppt/presentation.xml", "ppt/slides/slide1.xml")
_RATE_TOLERANCE, _INVERSE_TOLERANCE = 0.001, 0.01
_NEW_RATE = re.compile(r"([A-Z]{3}) to ([A-Z]{3})\s*=\s*(\d+(?:\.\d+)?)")
_TEXT = "a:t"


def _is_archive(attempt: Attempt) -> str:
    archive(attempt.output)
    return ""


def _has_parts(parts: Sequence[str], attempt: Attempt) -> str:
    names = archive(attempt.output).names
    return ", ".join(part for part in parts if part not in names)


def embedded(data: bytes | None) -> Workbook:
    """The workbook inside a presentation.

    Raises:
        PublishedError: there is none, or it cannot be opened.
    """
    try:
        return opened(archive(data).read(_EMBEDDED))
    except WorkbookError as error:
        raise PublishedError("KeyError", error.message, Side.ANSWER) from error


def _rates(data: bytes | None) -> Mapping[tuple[Value, Value], Value]:
    """The rates in the first sheet, from its stored values (S12)."""
    workbook = embedded(data)
    return rates_of(Sheet(workbook, workbook.sheet_names[0]))


def rates_of(sheet: Sheet) -> Mapping[tuple[Value, Value], Value]:
    """(from, to) -> rate."""
    headings, *rows = sheet.grid()
    rates: dict[tuple[Value, Value], Value] = {}
    for row in rows:
        for heading, value in zip(headings[1:], row[1:], strict=True):
            rates.setdefault((row[0], heading), value)
    return {key: value for key, value in rates.items() if key[0] is not None}


def new_rate(attempt: Attempt) -> tuple[str, str, float]:
    """The currencies and the rate that the text box of the given presentation announces.

    The published tests have the same values as constants.

    Raises:
        PublishedError: the folder of the task has no presentation, or none that announces a rate.
    """
    try:
        slide = read_tree(archive(attempt.file("input.pptx")), _ESSENTIAL[-1], text=True)
    except WorkbookError as error:
        raise PublishedError("KeyError", error.message, Side.RULES) from error
    announced = _NEW_RATE.search("".join(node.text for node in slide.walk() if node.name == _TEXT))
    if announced is None:
        raise PublishedError("ValueError", "the slide announces no rate", Side.RULES)
    return announced[1], announced[2], float(announced[3])


def _rate(attempt: Attempt, *, inverse: bool) -> str:
    return wrong_rate(_rates(attempt.output), attempt, inverse=inverse)


def wrong_rate(
    rates: Mapping[tuple[Value, Value], Value], attempt: Attempt, *, inverse: bool
) -> str:
    """Returns what is wrong with the required rate or its inverse; empty if both are right."""
    start, end, expected = new_rate(attempt)
    tolerance = _RATE_TOLERANCE
    if inverse:
        start, end, expected, tolerance = end, start, round(1 / expected, 3), _INVERSE_TOLERANCE
    value = rates[start, end]
    near = abs(number(value) - expected) < tolerance
    return "" if near else f"{start} to {end}: {value} in place of {expected:g}"


def _other_rates(attempt: Attempt) -> str:
    return changed_rate(_rates(attempt.file("input.pptx")), _rates(attempt.output), attempt)


def changed_rate(
    before: Mapping[tuple[Value, Value], Value],
    after: Mapping[tuple[Value, Value], Value],
    attempt: Attempt,
) -> str:
    """Returns a changed rate other than the required one; empty if no other rate changed."""
    required = set(new_rate(attempt)[:2])
    for key, value in before.items():
        if set(key) == required:
            continue
        if not abs(number(value) - number(after[key])) < _RATE_TOLERANCE:
            return f"{key[0]} to {key[1]}: {after[key]} in place of {value}"
    return ""


def _formulas_of(data: bytes | None) -> set[tuple[int, int]]:
    workbook = embedded(data)
    front = workbook.active_sheet
    values = {} if front is None else Sheet(workbook, front, formulas=True).values
    return {key for key, value in values.items() if isinstance(value, str) and value[:1] == "="}


def _formulas_there(attempt: Attempt) -> str:
    lost = _formulas_of(attempt.file("input.pptx")) - _formulas_of(attempt.output)
    return ", ".join(cell_name(*key) for key in sorted(lost))


_PRESENTATION_TESTS: Mapping[str, Test] = {
    "test_output_file_exists": Test(exists),
    "test_output_is_valid_pptx": Test(_is_archive),
    "test_embedded_excel_preserved": Test(partial(_has_parts, (_EMBEDDED,))),
    "test_exchange_rate_updated": Test(partial(_rate, inverse=False)),
    "test_inverse_rate_updated": Test(partial(_rate, inverse=True)),
    "test_other_cells_unchanged": Test(_other_rates),
    "test_formulas_preserved": Test(_formulas_there),
    "test_slide_structure_preserved": Test(partial(_has_parts, _ESSENTIAL)),
}

OBJECT_TESTS: Mapping[str, Mapping[str, Test]] = {
    "exceltable-in-ppt": _PRESENTATION_TESTS,
    "powerlifting-coef-calc": _LIFTER_TESTS,
    "sales-pivot-analysis": _pivot_tests(),
}
"""Task -> name of a test -> the test."""
