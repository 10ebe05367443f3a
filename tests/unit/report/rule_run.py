"""A run of tasks that are judged by rules over whole workbooks, none of which holds."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

import openpyxl
from openpyxl.chart import (
    AreaChart,
    BarChart,
    BubbleChart,
    DoughnutChart,
    LineChart,
    PieChart,
    RadarChart,
    Reference,
    ScatterChart,
    Series,
)
from openpyxl.styles import Font, PatternFill

from judge.api import ScoreOptions, score
from tests.unit.workbook.test_facts import CACHES, package, pivot_parts

CORPUS = Path(__file__).parents[2] / "workbook_rules" / "corpus"
PAIR = {"sheet_idx0": 0, "sheet_idx1": "EI0"}
ALWAYS = {"type": "zoom", "sheet_idx": 0, "method": "ge", "ref": 1}
LIST = {
    "ranges": {"method": "spreadsheet_range", "ref": ["D2:D4", "D1:D99"]},
    "type": {"method": "eq", "ref": "list"},
    "formula1": {"method": "str_set_eq", "ref": ["Pass", "Fail"]},
}
CHECKED = {"value": {"method": "eq", "ref": 9}}
TEXTS = [{"range": ["A1:B2"], "type": "exact_match"}]

Pair = tuple[dict[str, Any], Path | bytes, Path | bytes]
"""A rule, the output and the gold."""


def charts(*, title: str = "Sales", last: int = 6, lying: bool = False) -> bytes:
    """A workbook with a chart of each kind.

    Args:
        title: of every chart.
        last: last row of the data of every chart.
        lying: whether the first chart has bars in place of columns.
    """
    book = openpyxl.Workbook()
    sheet: Any = book.active
    sheet.append(["week", "sales", "costs"])
    for number in range(1, 6):
        sheet.append([f"w{number}", 3 * number, 20 - number * number])
    kinds = [BarChart, LineChart, AreaChart, PieChart, DoughnutChart, RadarChart]
    for place, kind in enumerate(kinds):
        chart = kind()
        chart.title = title
        chart.add_data(
            Reference(sheet, min_col=2, max_col=3, min_row=1, max_row=last), titles_from_data=True
        )
        chart.set_categories(Reference(sheet, min_col=1, min_row=2, max_row=last))
        sheet.add_chart(chart, f"F{1 + 16 * place}")
        if place == 0:
            chart.type = "bar" if lying else "col"
            chart.grouping = "stacked"
            chart.overlap = 100
            chart.y_axis.title = "money"
    for place, kind in enumerate([ScatterChart, BubbleChart]):
        points = kind()
        points.title = title
        xs = Reference(sheet, min_col=2, min_row=2, max_row=last)
        ys = Reference(sheet, min_col=3, min_row=2, max_row=last)
        points.series.append(
            Series(values=ys, xvalues=xs, zvalues=xs if place else None, title="t")
        )
        sheet.add_chart(points, f"P{1 + 16 * place}")
    return _saved(book)


def pivot_table(*, function: str = "average", field: str = "Town") -> bytes:
    """A workbook with a pivot table.

    Args:
        function: of its values.
        field: name of the field in its rows.
    """
    parts = {
        name: text.replace("average", function).replace("Town", escape(field))
        for name, text in pivot_parts().items()
    }
    return package("", parts, CACHES)


def looks(*, red: bool) -> bytes:
    """A workbook with a title that is red, white and bold, or is not."""
    book = openpyxl.Workbook()
    sheet = book.active
    assert sheet is not None
    sheet["A1"], sheet["A2"] = "Total", 3
    if red:
        sheet["A1"].fill = PatternFill("solid", start_color="FFC00000")
        sheet["A1"].font = Font(bold=True, color="FFFFFFFF")
    return _saved(book)


def _saved(book: openpyxl.Workbook) -> bytes:
    stream = io.BytesIO()
    book.save(stream)
    return stream.getvalue()


def rule(kind: str, **options: Any) -> dict[str, Any]:
    """A rule about the first sheets."""
    return {"type": kind, **PAIR, **options}


def few_rules() -> dict[str, Pair]:
    """A task for each kind of part that a page shows."""
    base = CORPUS / "base.xlsx"
    asked = {"chart_props": ["type", "title", "direction", "ytitle"]}
    return {
        "charts": (rule("chart", **asked), charts(title="Sale", lying=True), charts()),
        "data": (rule("chart"), charts(last=5), charts()),
        "pivots": (
            rule("pivot_table", pivot_props=["row_fields", "data_fields", "selection"]),
            pivot_table(function="max", field="City"), pivot_table(),
        ),
        "values": (rule("sheet_data"), CORPUS / "val5.xlsx", base),
        "texts": (rule("sheet_fuzzy", rules=TEXTS), CORPUS / "header_text.xlsx", base),
        "looks": (rule("style", props=["bgcolor", "font_bold"]), looks(red=False), looks(red=True)),
        "freeze": (rule("freeze"), CORPUS / "freeze_A2.xlsx", CORPUS / "freeze_B2.xlsx"),
        "filter": (rule("filter"), CORPUS / "flt_top.xlsx", CORPUS / "flt_sort.xlsx"),
        "sparkline": (rule("sparkline"), CORPUS / "sp_rng.xlsx", CORPUS / "sp.xlsx"),
        "rows": (rule("row_props", props=["hidden"]), base, CORPUS / "row_hidden.xlsx"),
        "columns": (rule("col_props", props=["width"]), base, CORPUS / "col_width.xlsx"),
        "names": ({"type": "sheet_name"}, CORPUS / "renamed.xlsx", base),
        "zoom": (
            {"type": "zoom", "sheet_idx": 0, "method": "gt", "ref": 260},
            CORPUS / "zoom50.xlsx", base,
        ),
        "validations": (
            {"type": "data_validation", "sheet_idx": 0, "dv_props": [LIST]},
            CORPUS / "dv.xlsx", base,
        ),
        "cell": (
            {"type": "check_cell", "sheet_idx": 0, "coordinate": "B2", "props": CHECKED},
            base, base,
        ),
        "missing": (
            rule("chart", sheet_idx0="RNNowhere"), CORPUS / "ch_line.xlsx", CORPUS / "ch_line.xlsx"
        ),
    }  # fmt: skip


def make_rule_run(root: Path, tasks: Mapping[str, Pair], profile: str = "standard") -> Path:
    """Judges outputs by one rule each, in a suite that is laid out as OSWorld's.

    Returns:
        The results directory.
    """
    for name, (asked, output, gold) in tasks.items():
        record = {
            "id": name,
            "instruction": f"Do {name}.",
            "config": [
                {
                    "type": "download",
                    "parameters": {"files": [{"url": "https://x/in.xlsx", "path": "/x/in.xlsx"}]},
                }
            ],
            "evaluator": {
                "func": "compare_table",
                "options": {"rules": [ALWAYS]},
                "expected": {"type": "cloud_file", "path": "https://x/gold.xlsx"},
            },
        }
        record["evaluator"]["options"]["rules"].append(asked)  # type: ignore[index]
        place = root / "suite" / "evaluation_examples" / "examples" / "libreoffice_calc"
        _write(place / f"{name}.json", json.dumps(record).encode())
        cache = root / "suite" / "cache" / name
        _write(cache / "in.xlsx", (CORPUS / "base.xlsx").read_bytes())
        _write(cache / "gold.xlsx", gold if isinstance(gold, bytes) else gold.read_bytes())
        left = output if isinstance(output, bytes) else output.read_bytes()
        _write(root / "outputs" / f"{name}_output.xlsx", left)
    out = root / "run"
    options = ScoreOptions(dataset=str(root / "suite"), out=out, profile=profile, recalc="never")
    score(root / "outputs", options)
    return out


def _write(path: Path, data: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
