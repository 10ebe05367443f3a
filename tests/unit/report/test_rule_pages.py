"""The pages of tasks that are judged by rules over whole workbooks, as data."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from judge.compare.cells.computing import NoEngines
from judge.compare.contract import Requirements
from judge.compare.published_error import Side
from judge.compare.rules.book import Book
from judge.compare.rules.checker import finding_of_standard
from judge.compare.rules.options import RuleOptions
from judge.core.finding import (
    DifferenceLocation,
    FoundDifference,
    LocationKind,
    Subject,
    about,
    sheet_of,
)
from judge.core.finding import (
    finding_of as made_of,
)
from judge.core.submission import Origin
from judge.report.build import build_report_data
from judge.report.grid import GridRules
from judge.report.grid_window import GridBounds
from judge.report.html.charts import show_charts
from judge.report.html.findings import CaseFiles, rules_of_case
from judge.report.html.pages import TaskPages
from judge.report.html.render import GRID_BOUNDS, json_form
from judge.report.load import load_run
from judge.report.shapes import inspect_files
from judge.workbook.facts.book import BookFacts
from judge.workbook.reader import open_workbook
from tests.unit.annotate.books import with_part
from tests.unit.compare.rules.hostile_packages import SMALL
from tests.unit.report.rule_run import CORPUS, charts, few_rules, make_rule_run, rule
from tests.unit.workbook.test_facts import package


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    tasks = few_rules()
    base = CORPUS / "base.xlsx"
    tasks["right"] = (rule("sheet_data"), base, base)
    return make_rule_run(tmp_path_factory.mktemp("rules"), tasks)


@pytest.fixture(scope="module")
def pages(run: Path) -> dict[str, dict[str, Any]]:
    return pages_of(run)


def pages_of(run: Path) -> dict[str, dict[str, Any]]:
    loaded = load_run(run)
    document = json_form(build_report_data(loaded, inspect_files(loaded)))
    made = TaskPages(loaded, document)
    return {each["task_id"]: made.page(at) for at, each in enumerate(document["tasks"])}


def second_rule(page: dict[str, Any]) -> dict[str, Any]:
    (case,) = page["cases"]
    found: dict[str, Any] = case["rules"]["rules"][1]
    return found


def finding_of(page: dict[str, Any]) -> dict[str, Any]:
    (found,) = second_rule(page)["findings"]
    assert isinstance(found, dict)
    return found


def part(page: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = finding_of(page)["part"]
    return found


def marked(rows: list[dict[str, Any]]) -> list[tuple[str, str, str]]:
    return [
        (each["name"], each["expected"], each["found"])
        for each in rows
        if each["state"] == "differs"
    ]


def test_all_rules_are_listed_in_words(pages: dict[str, dict[str, Any]]) -> None:
    (case,) = pages["zoom"]["cases"]
    assert [(each["number"], each["state"]) for each in case["rules"]["rules"]] == [
        (1, "holds"),
        (2, "fails"),
    ]
    words = case["rules"]["rules"][1]["words"]
    assert words == "The zoom of the first sheet, in percent, is more than 260."
    assert case["rules"]["published"] == {"name": "OSWorld", "equal": False, "error": None}
    assert (pages["zoom"]["unit"], case["outside"], case["grid"]["blocks"]) == ("rules", [], [])
    (right,) = pages["right"]["cases"]
    assert [each["state"] for each in right["rules"]["rules"]] == ["holds", "holds"]


def test_charts_are_drawn_in_pairs(pages: dict[str, dict[str, Any]]) -> None:
    found = part(pages["charts"])
    assert (found["kind"], found["agreeing"], found["more"], len(found["pairs"])) == (
        *("charts", 0, 0),
        8,
    )
    first = found["pairs"][0]
    assert marked(first["rows"]) == [("direction", "columns", "bars"), ("title", "Sales", "Sale")]
    labels = [
        pair["gold"]["drawing"] and pair["gold"]["drawing"]["label"] for pair in found["pairs"]
    ]
    assert labels[0] == "column chart, stacked, Sales; series: sales, costs"
    assert [label is None for label in labels] == [False] * 5 + [True] + [False] * 2
    assert found["pairs"][5]["gold"]["notes"] == [
        "radar chart, Sales: charts of this kind are not drawn"
    ]
    shapes = first["output"]["drawing"]["shapes"]
    assert ["t", "ct bad", 260, 20, "Sale"] in shapes
    assert sum(shape[0] == "r" and shape[1] in {"s0", "s1"} for shape in shapes) == 10 + 2
    published = pages["charts"]["cases"][0]["rules"]["published"]
    assert published["error"].startswith("AttributeError: 'LineChart'")


def test_series_with_other_data_are_marked(pages: dict[str, dict[str, Any]]) -> None:
    first = part(pages["data"])["pairs"][0]
    assert marked(first["rows"])[0] == (
        "series 1: values", "'Sheet'!$B$2:$B$6", "'Sheet'!$B$2:$B$5"
    )  # fmt: skip
    for side, bars in (("gold", 10), ("output", 8)):
        shapes = first[side]["drawing"]["shapes"]
        assert sum(shape[:2] in (["r", "s0 bad"], ["r", "s1 bad"]) for shape in shapes) == bars


def test_a_chart_on_a_sheet_that_is_not_there(pages: dict[str, dict[str, Any]]) -> None:
    finding = finding_of(pages["missing"])
    assert finding["note"] == "the output has no such sheet"
    (pair,) = finding["part"]["pairs"]
    assert pair["gold"]["drawing"] is not None
    assert pair["output"] is None


def test_pivot_tables_are_lists_of_fields(pages: dict[str, dict[str, Any]]) -> None:
    found = part(pages["pivots"])
    (pair,) = found["pairs"]
    sides = [
        {area["name"]: [tuple(each.values()) for each in area["fields"]] for area in pair[side]}
        for side in ("gold", "output")
    ]
    assert sides[0] == {
        "filters": [],
        "columns": [("Values", "agrees")],
        "rows": [("Town", "differs")],
        "values": [("average of Sum", "differs")],
    }
    assert sides[1]["values"] == [("max of Sum", "differs")]
    hidden = next(each for each in pair["rows"] if each["name"] == "hidden items")
    assert (hidden["expected"], hidden["found"]) == ("Town: Hof", "City: Hof")


def test_values_are_shown_in_a_grid(pages: dict[str, dict[str, Any]]) -> None:
    found = part(pages["values"])
    assert (found["kind"], found["block"]["answer"]) == ("grid", ["A1:C4"])
    differing = [cell for row in found["block"]["cells"] for cell in row if cell[1] >> 4 > 1]
    assert [(cell[0], *cell[2:4]) for cell in differing] == [(1, 1, 5)]


def test_looks_are_swatches(pages: dict[str, dict[str, Any]]) -> None:
    (cell,) = part(pages["looks"])["cells"]
    assert (cell["cell"], cell["gold"]["fill"], cell["output"]["fill"]) == ("A1", "C00000", None)
    assert (cell["gold"]["ink"], cell["gold"]["bold"], cell["output"]["bold"]) == (
        *("FFFFFF", True),
        False,
    )
    assert cell["gold"]["text"] == "Total"
    (checked,) = part(pages["cell"])["cells"]
    assert (checked["gold"], checked["how"]) == (None, "value is 9; found 1")


@pytest.mark.parametrize(
    ("task", "rows"),
    [
        ("texts", [("A1", "Name", "a")]),
        ("freeze", [("frozen columns", "1", "0")]),
        ("filter", [("column B", "", "top10; val 1"), ("sorted by", "B2:B4", "")]),
        ("rows", [("row 3: hidden or not", "yes", "default")]),
        ("names", [("sheet 1", "Sheet1", "Data")]),
        ("zoom", [("zoom", "gt 260", "50 %")]),
    ],
)
def test_short_tables(
    pages: dict[str, dict[str, Any]], task: str, rows: list[tuple[str, str, str]]
) -> None:
    found = part(pages[task])
    assert found["kind"] == "rows"
    if task == "texts":
        assert len(marked(found["rows"])) >= 1
    else:
        assert marked(found["rows"]) == rows


@pytest.mark.parametrize("task", ["sparkline", "columns", "validations"])
def test_other_tables_have_both_sides(pages: dict[str, dict[str, Any]], task: str) -> None:
    rows = part(pages[task])["rows"]
    assert any(each["expected"] for each in rows)
    assert any(each["found"] for each in rows)


def test_under_the_published_rules_the_same_is_shown(tmp_path: Path) -> None:
    tasks = few_rules()
    chosen = {name: tasks[name] for name in ("data", "values", "looks", "freeze")}
    chosen["raised"] = tasks["charts"]
    found = pages_of(make_rule_run(tmp_path, chosen, "official"))
    assert part(found["data"])["kind"] == "charts"
    assert part(found["freeze"])["kind"] == "rows"
    assert [cell["cell"] for cell in part(found["looks"])["cells"]] == ["A1"]
    cells = part(found["values"])["block"]["cells"]
    assert [cell[2:4] for row in cells for cell in row if cell[1] >> 4 > 1] == [[1, 5]]
    finding = finding_of(found["raised"])
    assert finding["kind"] == "published_error"
    assert finding["part"]["kind"] == "charts"


def test_files_are_read_only_where_a_rule_does_not_hold(tmp_path: Path) -> None:
    base = CORPUS / "base.xlsx"
    tasks = {"right": (rule("sheet_data"), base, base), "data": few_rules()["data"]}
    run = make_rule_run(tmp_path, tasks)
    before = pages_of(run)
    for name in tasks:
        (tmp_path / "outputs" / f"{name}_output.xlsx").unlink()
    after = pages_of(run)
    assert after["right"]["cases"][0]["rules"] == before["right"]["cases"][0]["rules"]
    finding = finding_of(after["data"])
    assert [pair["output"] for pair in finding["part"]["pairs"]] == [None] * 8
    assert after["data"]["cases"][0]["grid"]["notes"] == [
        "the output workbook is no longer available"
    ]


def test_closer_bounds_show_fewer_charts(run: Path) -> None:
    loaded = load_run(run)
    document = json_form(build_report_data(loaded, inspect_files(loaded)))
    at = next(at for at, each in enumerate(document["tasks"]) if each["task_id"] == "charts")
    page = TaskPages(loaded, document).page(at, GRID_BOUNDS[-1])
    assert (len(part(page)["pairs"]), part(page)["more"]) == (3, 5)


def test_two_rules_about_the_same_charts_show_them_once(run: Path) -> None:
    outputs = run.parent / "outputs"
    asked = [rule("chart", chart_props=["title"]), rule("chart", chart_props=["direction"])]
    answer = Book(open_workbook(outputs / "charts_output.xlsx"), Side.ANSWER)
    path = run.parent / "suite" / "cache" / "charts" / "gold.xlsx"
    options = RuleOptions.of({"rules": asked})
    found = finding_of_standard(
        answer,
        Book(open_workbook(path), Side.GOLD),
        options,
        NoEngines(),
        Origin.FINISHED,
        "standard",
    )
    files = CaseFiles(path, (outputs / "charts_output.xlsx").read_bytes(), None)
    shown = rules_of_case(found.record, Requirements(), files, GridRules(), GridBounds())
    assert shown is not None
    parts = [each["findings"][0]["part"] for each in shown["rules"]]
    assert marked(parts[0]["pairs"][0]["rows"]) == [
        ("direction", "columns", "bars"), ("title", "Sales", "Sale")
    ]  # fmt: skip
    assert parts[1] == {"kind": "elsewhere", "rule": 1}


@pytest.mark.parametrize("value", ["1e308", "-1e400", "NaN", "INF", "9" * 400, "x", ""])
def test_no_value_of_a_cell_breaks_a_drawing(value: str) -> None:
    stored = f"<v>{value}</v>".encode()
    data = with_part(
        charts(), "xl/worksheets/sheet1.xml", lambda part: part.replace(b"<v>3</v>", stored)
    )
    book = BookFacts(open_workbook(data))
    found = book.charts(book.tabs[0])
    shown = show_charts(
        (book.workbook, found), (book.workbook, ()), (), max_pairs=12, max_points=40
    )
    assert len(shown["pairs"]) == 8
    json.dumps(shown, allow_nan=False)


@pytest.mark.parametrize("name", SMALL)
def test_hostile_outputs_and_golds_leave_a_page(name: str) -> None:
    plain = package()
    for subject in Subject:
        shows = about(
            subject, sheet_of("S", in_gold=True), sheet_of("S", in_gold=False), ("hidden",), 4
        )
        difference = FoundDifference(
            "x", DifferenceLocation(LocationKind.RULE), number=1, words="?", about=shows
        )
        record = made_of([difference], units=1).record
        for gold, output in ((SMALL[name], plain), (plain, SMALL[name])):
            files = CaseFiles(gold, output, None)
            shown = rules_of_case(record, Requirements(), files, GridRules(), GridBounds())
            json.dumps(shown, allow_nan=False)


def test_another_suite_is_not_shown_beside_the_spreadsheetbench_paper(run: Path) -> None:
    loaded = load_run(run)
    data = build_report_data(loaded, inspect_files(loaded))
    assert {"rows", "columns", "tables", "layout"} <= {each.key for each in data.breakdowns}
    assert not any(each.from_paper for each in data.breakdowns)
