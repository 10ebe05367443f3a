"""SkillsBench's tests as checks: the published results on odd answers, faults included."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Mapping
from typing import Any

import openpyxl
import pytest

from judge.compare.published.skillsbench.attempt import (
    ERROR,
    FAILURE,
    PASSED,
    SKIPPED,
    Attempt,
    Sheet,
    opened,
    polars_table,
)
from judge.compare.published.skillsbench.items import OUTPUTS, TESTS, judge_test
from judge.compare.published.skillsbench.values import RECOVERED_CELLS, gdp_answers
from judge.compare.published_error import PublishedError


def book(sheets: Mapping[str, Mapping[str, object]]) -> bytes:
    workbook: Any = openpyxl.Workbook()
    workbook.remove(workbook.active)
    for name, cells in sheets.items():
        sheet = workbook.create_sheet(name)
        for address, value in cells.items():
            sheet[address] = value
    stream = io.BytesIO()
    workbook.save(stream)
    return stream.getvalue()


def results(task: str, attempt: Attempt) -> dict[str, str]:
    return {name: judge_test(task, name, attempt).result for name in TESTS[task]}


def test_each_task_has_its_tests_and_an_output() -> None:
    assert {task: len(tests) for task, tests in TESTS.items()} == {
        "exceltable-in-ppt": 8,
        "jpg-ocr-stat": 1,
        "powerlifting-coef-calc": 11,
        "protein-expression-analysis": 6,
        "sales-pivot-analysis": 26,
        "weighted-gdp-calc": 27,
        "xlsx-recover-data": 19,
    }
    assert set(OUTPUTS) == set(TESTS)
    with pytest.raises(PublishedError, match="not found"):
        judge_test("jpg-ocr-stat", "test_nothing", Attempt(None))


@pytest.mark.parametrize("task", sorted(TESTS))
@pytest.mark.parametrize("output", [None, b"no archive"])
def test_no_output_and_a_broken_one_are_outcomes(task: str, output: bytes | None) -> None:
    assert set(results(task, Attempt(output))) == set(TESTS[task])


def test_a_missing_file_skips_the_tests_of_recovered_values() -> None:
    outcomes = results("xlsx-recover-data", Attempt(None))
    assert outcomes.pop("test_file_exists") == FAILURE
    assert set(outcomes.values()) == {SKIPPED}


def recovered(changes: Mapping[tuple[str, str], object] | None = None) -> Attempt:
    budget: dict[str, object] = {f"{column}{row}": 0 for column in "BCDEFGHIJ" for row in (5, 10)}
    sheets: dict[str, dict[str, object]] = {"Budget by Directorate": budget}
    for _, sheet, cell, lost, _ in RECOVERED_CELLS:
        sheets.setdefault(sheet, {})[cell] = lost
    budget.update({"B5": 19285, "E8": 5047, "E13": 7616, "B10": 23285 - 6555})
    for (sheet, cell), value in (changes or {}).items():
        sheets[sheet][cell] = value
    return Attempt(book(sheets))


def test_recovered_values_are_compared_as_they_are_stored() -> None:
    assert set(results("xlsx-recover-data", recovered()).values()) == {PASSED}
    formula = recovered({("Directorate Shares (%)", "F5"): "=26.08"})
    outcomes = results("xlsx-recover-data", formula)
    assert outcomes["test_shares_values[F5-26.08-FY2016 SpaceOps Share]"] == FAILURE
    assert sum(result != PASSED for result in outcomes.values()) == 1
    near = recovered({("YoY Changes (%)", "D7"): 22.06, ("Growth Analysis", "E5"): "???"})
    outcomes = results("xlsx-recover-data", near)
    assert outcomes["test_yoy_values[D7-21.97-FY2019 SpaceTech YoY]"] == PASSED
    assert outcomes["test_no_remaining_placeholders"] == FAILURE
    assert outcomes["test_cross_sheet_consistency"] == FAILURE


def test_a_sheet_that_is_missing_is_an_error_before_the_test() -> None:
    outcomes = results("xlsx-recover-data", Attempt(book({"Growth Analysis": {"B7": 1534}})))
    assert outcomes["test_row_sums_consistent"] == ERROR
    assert outcomes["test_growth_values[B7-1534-Science 5yr Change]"] == PASSED


YEARS = (2019, 2020, 2021, 2022, 2023)
EXPORTS = (10, 20, 30, 40, 50, 60)
"""Exports of six countries; imports are 10 and the product is 100 in each year."""


def gulf() -> bytes:
    """The workbook of ``weighted-gdp-calc``, with flat data."""
    task: dict[str, object] = dict(zip(("H9", "I9", "J9", "K9", "L9"), YEARS, strict=True))
    data: dict[str, object] = {"B4": "Series_code"}
    data |= dict(zip(("D4", "E4", "F4", "G4", "H4"), YEARS, strict=True))
    row = 5
    for first, values in ((12, EXPORTS), (19, (10,) * 6), (26, (100,) * 6)):
        for at, value in enumerate(values):
            task[f"D{first + at}"] = data[f"B{row}"] = f"series {row}"
            data |= {f"{column}{row}": value for column in "DEFGH"}
            row += 1
    return book({"Task": task, "Data": data})


def test_the_right_values_are_worked_out_from_the_data_of_the_task() -> None:
    answers = gdp_answers(Attempt(None, {"gdp.xlsx": gulf()}))
    assert [answers[row][0] for row in range(12, 18)] == [10, 20, 30, 40, 50, 60]
    assert [answers[row][4] for row in range(35, 41)] == [0, 10, 20, 30, 40, 50]
    assert [answers[row][2] for row in range(42, 48)] == [0, 50, 25, 25, 12.5, 37.5]
    assert answers[50] == [25] * 5


def test_nothing_counts_as_zero_and_one_cell_as_data() -> None:
    files = {"gdp.xlsx": gulf()}
    shares = "TestStep2NetExportsCalculation::test_net_exports_pct_values"
    exports = "TestStep1LookupFormulas::test_exports_have_data"
    outcomes = results(
        "weighted-gdp-calc", Attempt(book({"Task": {"H12": "x"}, "Data": {}}), files)
    )
    assert outcomes[exports] == PASSED
    assert outcomes[shares] == FAILURE
    cells: dict[str, object] = {
        f"{column}{row}": (row - 35) * 10 or None for row in range(35, 41) for column in "HIJKL"
    }
    assert results("weighted-gdp-calc", Attempt(book({"Task": cells}), files))[shares] == PASSED


def test_values_of_the_sheet_dots_are_not_read() -> None:
    headings = ["Name", "Sex", "BodyweightKg", "Best3SquatKg", "Best3BenchKg", "Best3DeadliftKg"]
    rows = [["Ann", "F", 60.0, 100.0, 60.0, 120.0], ["Bob", "M", 80.0, 200.0, 120.0, 220.0]]
    data = {f"{'ABCDEF'[at]}1": heading for at, heading in enumerate(headings)}
    for number, row in enumerate(rows, start=2):
        data |= {f"{'ABCDEF'[at]}{number}": value for at, value in enumerate(row)}  # type: ignore[misc]
    truth = {**data, "G1": "Dots", "G2": 310.393, "G3": 372.355}
    scored = {
        **data,
        "G1": "TotalKg",
        "H1": "Dots",
        "G2": "=1",
        "G3": "wrong",
        "H2": "=IF(ROUND(1,1),2)",
    }
    files = {"cleaned_with_coefficients.xlsx": book({"Data": truth})}
    right = results("powerlifting-coef-calc", Attempt(book({"Data": data, "Dots": scored}), files))
    accuracy = "TestDotsAccuracy::test_dots_values_match_ground_truth"
    assert set(right.values()) == {PASSED}
    wrong: dict[str, Mapping[str, object]] = {"Data": {**data, "C2": 70.0}, "Dots": scored}
    assert results("powerlifting-coef-calc", Attempt(book(wrong), files))[accuracy] == FAILURE


def test_a_table_starts_at_its_first_cell_and_has_no_blank_rows() -> None:
    data = book({"T": {"C3": "a", "D3": "b", "C5": 1, "D6": 2}})
    table = polars_table(Sheet(opened(data), "T"))
    assert table.headings == ("a", "b")
    assert table.rows == [[1, None], [None, 2]]
    mixed = book({"T": {"A1": "a", "B1": "b", "A2": 1, "B2": 2, "A3": "x", "B3": 3}})
    assert polars_table(Sheet(opened(mixed), "T")).rows == [["1", 2], ["x", 3]]
    with pytest.raises(PublishedError, match="NoDataError"):
        polars_table(Sheet(opened(book({"T": {}})), "T"))


def test_receipts_are_compared_as_texts() -> None:
    oracle = {"A1": "filename", "A2": "1.jpg", "B2": "47.70"}
    files = {"stat_oracle.xlsx": book({"results": oracle})}

    def result(cells: Mapping[str, object], *more: str) -> str:
        sheets = {"results": cells, **{name: {} for name in more}}
        return judge_test("jpg-ocr-stat", "test_outputs", Attempt(book(sheets), files)).result

    assert result(oracle) == PASSED
    assert result({**oracle, "B2": 47.7}) == FAILURE
    assert result({**oracle, "A3": ""}) == FAILURE
    assert result(oracle, "Notes") == FAILURE


def test_filled_cells_of_the_protein_task_are_counted_and_not_compared() -> None:
    cells: dict[str, object] = {
        f"{column}{row}": 0 for column in "CDEFGHIJKL" for row in range(11, 21)
    }
    cells |= {f"{column}{row}": 0 for column in "BCDEFGHIJK" for row in range(24, 28)}
    cells |= {f"{column}{row}": 0 for column in "CD" for row in range(32, 42)}
    attempt = Attempt(book({"Task": cells, "Data": {}}))
    assert set(results("protein-expression-analysis", attempt).values()) == {PASSED}
    attempt = Attempt(book({"Task": {**cells, "C11": "x"}, "Data": {}}))
    outcomes = results("protein-expression-analysis", attempt)
    assert [name for name, result in outcomes.items() if result != PASSED] == [
        "test_values_are_numeric"
    ]


def test_a_source_without_totals_has_right_totals() -> None:
    cells = {"A1": "SA2_CODE", "B1": "EARNERS", "C1": "MEDIAN_INCOME", "D1": "Total"}
    right = "TestDataTransformationCorrectness::test_total_equals_earners_times_median_income"

    def result(total: object) -> str:
        rows: dict[str, object] = {"A2": 1, "B2": 10, "C2": 5, "D2": total}
        attempt = Attempt(book({"Data": {**cells, **rows}}))
        return judge_test("sales-pivot-analysis", right, attempt).result

    assert [result(50), result(60), result("=B2*C2"), result(None)] == [
        PASSED,
        FAILURE,
        PASSED,
        PASSED,
    ]


SLIDE = (
    '<p:sld xmlns:p="http://schemas.openxmlformats.org/presentationml/2006/main" '
    'xmlns:a="http://schemas.openxmlformats.org/drawingml/2006/main">'
    "<a:t>Updated rate: </a:t><a:t>USD to CNY=7.02</a:t></p:sld>"
)


def presentation(cells: Mapping[str, object]) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        for name in ("[Content_Types].xml", "ppt/presentation.xml"):
            archive.writestr(name, "<x/>")
        archive.writestr("ppt/slides/slide1.xml", SLIDE)
        archive.writestr("ppt/embeddings/Microsoft_Excel_Worksheet.xlsx", book({"S": cells}))
    return stream.getvalue()


def test_rates_need_stored_values() -> None:
    table = {"A1": "Rate", "B1": "CNY", "C1": "USD", "A2": "CNY", "B2": 1, "A3": "USD", "C3": 1}
    files = {"input.pptx": presentation({**table, "C2": 0.138, "B3": 7.25})}
    right = Attempt(presentation({**table, "C2": 0.142, "B3": 7.02}), files)
    assert set(results("exceltable-in-ppt", right).values()) == {PASSED}
    formula = Attempt(presentation({**table, "C2": "=ROUND(1/B3,3)", "B3": 7.02}), files)
    outcomes = results("exceltable-in-ppt", formula)
    assert [name for name, result in outcomes.items() if result != PASSED] == [
        "test_inverse_rate_updated"
    ]
