"""Rule lists that users write: how they are checked, and options that only they can have."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import openpyxl
import pytest
from click.testing import CliRunner
from openpyxl.chart import BarChart, Reference
from openpyxl.chart.label import DataLabelList
from openpyxl.chart.trendline import Trendline

from judge.authoring.proposals import propose
from judge.cli.main import judge
from judge.compare.cells.computing import NoEngines
from judge.compare.rules.options import CHART_PROPERTIES, faults_of
from judge.compare.rules.words import rule_in_words
from judge.core.finding import Finding
from judge.errors import UsageError
from tests.unit.compare.rules.judged import find

PAIR = {"sheet_idx0": 0, "sheet_idx1": "EI0"}


def drawn(
    *,
    name: str = "Sales",
    titled: bool = True,
    trend: Any = None,
    equation: bool = False,
    labels: bool = False,
    cells: Any = 1,
    formula: str | None = None,
    chart: bool = True,
) -> bytes:
    """A workbook with a column of numbers, and a chart of it."""
    book = openpyxl.Workbook()
    sheet: Any = book.active
    for row in ((name,), (cells,), (2,), (3,)):
        sheet.append(row)
    if formula is not None:
        sheet["C1"] = formula
    bars: Any = BarChart()
    first = 1 if titled else 2
    bars.add_data(Reference(sheet, min_col=1, min_row=first, max_row=4), titles_from_data=titled)
    if trend is not None:
        bars.series[0].trendline = Trendline(trendlineType=trend, dispEq=equation)
    if labels:
        bars.dataLabels = DataLabelList()
        bars.dataLabels.showVal = True
    if chart:
        sheet.add_chart(bars, "E2")
    buffer = io.BytesIO()
    book.save(buffer)
    return buffer.getvalue()


def judged(output: bytes, gold: bytes, folder: Path, *props: str, **more: Any) -> Finding:
    path = folder / "gold.xlsx"
    path.write_bytes(gold)
    return find([{"type": "chart", **PAIR, "chart_props": list(props)}], output, path, **more)


# -- series names, trend lines, labels ------------------------------------------------------------


@pytest.mark.parametrize(
    ("prop", "gold", "other"),
    [
        ("series_names", {}, {"name": "Costs"}),
        ("series_names", {}, {"titled": False}),
        ("trendlines", {"trend": "linear"}, {}),
        ("trendlines", {"trend": "linear"}, {"trend": "exp"}),
        ("trendlines", {"trend": "linear"}, {"trend": "linear", "equation": True}),
        ("labels", {"labels": True}, {}),
    ],
)
def test_a_rule_can_ask_for_it(
    prop: str, gold: dict[str, Any], other: dict[str, Any], tmp_path: Path
) -> None:
    right, wrong = drawn(**gold), drawn(**other)
    assert judged(right, right, tmp_path, prop).agrees
    assert not judged(wrong, right, tmp_path, prop).agrees
    assert judged(wrong, right, tmp_path, "type").agrees
    # No published function knows it: the published verdict is that without it.
    assert judged(wrong, right, tmp_path, prop, profile="official").agrees


def test_a_name_is_what_the_series_shows_and_not_how_the_file_says_it(tmp_path: Path) -> None:
    book = openpyxl.load_workbook(io.BytesIO(drawn()))
    sheet: Any = book.active
    sheet["A1"] = "Sales"
    literal: Any = BarChart()
    literal.add_data(Reference(sheet, min_col=1, min_row=2, max_row=4))
    from openpyxl.chart.series import SeriesLabel  # noqa: PLC0415  next to what it is for

    literal.series[0].tx = SeriesLabel(v="Sales")
    sheet._charts = []
    sheet.add_chart(literal, "E2")
    buffer = io.BytesIO()
    book.save(buffer)
    assert judged(buffer.getvalue(), drawn(), tmp_path, "series_names").agrees
    assert not judged(buffer.getvalue(), drawn(name="Costs"), tmp_path, "series_names").agrees


def test_the_catalogue_and_the_words_know_them() -> None:
    own = ["series_names", "trendlines", "labels"]
    assert set(own) <= set(CHART_PROPERTIES)
    rule = {"type": "chart", **PAIR, "chart_props": own}
    assert list(faults_of([rule])) == []
    said = rule_in_words(rule)
    assert "names of the series" in said
    assert "trend lines" in said
    assert "data labels" in said


def write(folder: Path, **books: bytes) -> dict[str, Path]:
    paths = {name: folder / f"{name}.xlsx" for name in books}
    for name, data in books.items():
        paths[name].write_bytes(data)
    return paths


def test_a_proposal_says_what_its_rule_checks_and_nothing_else(tmp_path: Path) -> None:
    gold = drawn(trend="linear", labels=True)
    paths = write(tmp_path, question=drawn(chart=False), gold=gold)
    (proposal,) = propose([(paths["question"], paths["gold"])]).listed
    (rule,) = proposal.rules
    assert rule["chart_props"] == ["type", "direction", "series_names", "trendlines", "labels"]
    assert "legend" not in proposal.words
    for said in ("barChart", "named 'Sheet'!A1", "trend line linear", "labels with value"):
        assert said in proposal.words, said
    for lost in ({"labels": True}, {"trend": "linear"}, {"labels": True, "trend": "power"}):
        assert not find([rule], drawn(**lost), paths["gold"]).agrees
    # A legend that the gold of an existing chart changed is said, and checked.
    before = openpyxl.load_workbook(io.BytesIO(drawn()))
    changed: Any = before.active
    changed._charts[0].legend = None
    buffer = io.BytesIO()
    before.save(buffer)
    paths = write(tmp_path, question=drawn(), gold=buffer.getvalue())
    (proposal,) = propose([(paths["question"], paths["gold"])]).listed
    assert proposal.rules[0]["chart_props"] == ["legend"]
    assert "without a legend" in proposal.words


# -- formulas without a stored value --------------------------------------------------------------


@pytest.mark.parametrize("before", [None, "=A2+1"])
def test_a_gold_that_differs_only_in_a_formula_without_a_value_can_be_added(
    before: str | None, tmp_path: Path
) -> None:
    paths = write(tmp_path, question=drawn(formula=before), gold=drawn(formula="=SUM(A2:A4)"))
    suite = str(tmp_path / "mine")
    assert CliRunner().invoke(judge, ["dataset", "new", suite, "--kind", "rules"]).exit_code == 0
    added = ["dataset", "add-task", suite, "t", "--instruction", "Add the sum.", "--yes"]
    files = ["--from", str(paths["gold"]), "--input", str(paths["question"])]
    run = CliRunner().invoke(judge, [*added, *files])
    assert run.exception is None, run.output
    # An input that is the gold asks for nothing, whatever nobody has computed.
    same = ["--from", str(paths["gold"]), "--input", str(paths["gold"]), "--rules"]
    own = tmp_path / "own.json"
    own.write_text(json.dumps([{"type": "sheet_data", **PAIR}]))
    command = [*added[:3], "u", *added[4:6], *same, str(own)]
    refused = CliRunner().invoke(judge, command)
    assert "the untouched input is accepted" in str(
        getattr(refused.exception, "faults", refused.output)
    )


def test_what_nothing_computed_is_not_taken_for_blank(tmp_path: Path) -> None:
    paths = write(tmp_path, gold=drawn(formula="=SUM(A2:A4)"))
    rule = {"type": "sheet_data", **PAIR}

    def said(output: bytes, compute: Any = None) -> tuple[bool, bool]:
        found = find([rule], output, paths["gold"], compute=compute or NoEngines())
        return found.agrees, found.undecided

    assert said(drawn()) == (False, True)
    assert said(drawn(formula="=A2+5")) == (False, True)
    assert said(drawn(formula="=SUM(A2:A4)")) == (True, False)
    assert said(drawn(formula="=SUM(A2:A4)", cells=9)) == (False, False)
    assert said(drawn(cells=9)) == (False, False)


# -- `judge compare --rules` ----------------------------------------------------------------------


def compare(folder: Path, text: str, *more: str) -> Any:
    paths = write(folder, gold=drawn())
    rules = folder / "rules.json"
    rules.write_text(text)
    book = str(paths["gold"])
    return CliRunner().invoke(judge, ["compare", book, book, "--rules", str(rules), *more])


@pytest.mark.parametrize(
    ("rule", "said"),
    [
        ({"type": "chart", **PAIR, "chart_props": ["colour"]}, "has no property 'colour'"),
        ({"type": "style", **PAIR, "props": ["colour"]}, "has no property 'colour'"),
        ({"type": "charts", **PAIR}, "there is no type 'charts'"),
        ({"type": "sheet_data", **PAIR, "precison": 2}, "option 'precison' is unknown"),
        ({"type": "sheet_data", "sheet_idx0": 0}, "option 'sheet_idx1' is missing"),
    ],
)
def test_a_list_of_ones_own_is_checked(rule: dict[str, Any], said: str, tmp_path: Path) -> None:
    refused = compare(tmp_path, json.dumps([rule]))
    assert isinstance(refused.exception, UsageError), refused.output
    assert "rules.json: option rules: rule 1" in refused.exception.message
    assert said in refused.exception.message
    assert "NotImplementedError" not in refused.exception.message


def test_a_published_list_is_named_as_such_and_judged_as_it_is(tmp_path: Path) -> None:
    rule = {"type": "chart", **PAIR, "chart_props": ["colour"]}
    named = json.dumps({"rules": [rule], "evaluator": "osworld"})
    assert compare(tmp_path, named).exception is None
    assert compare(tmp_path, json.dumps([rule]), "--evaluator", "spider2v").exception is None


def test_a_file_that_is_not_json_is_to_be_corrected_and_not_moved_away(tmp_path: Path) -> None:
    refused = compare(tmp_path, '[{"type": }]')
    assert isinstance(refused.exception, UsageError), refused.output
    assert "rules.json" in refused.exception.message
    assert refused.exception.hint == "Correct the file, and run the command again."
