"""The checker of tasks about charts whose published judge is a vision model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from judge.compare.unjudged import UnjudgedChecker
from judge.core.records.cases import CaseComparison, ChartFact, ChartsRecord
from judge.core.submission import Answer
from judge.core.task import Gold, Task
from judge.errors import WorkbookError
from judge.workbook.facts.book import BookFacts
from judge.workbook.facts.charts import Chart, Series, Source
from judge.workbook.facts.references import read_reference
from judge.workbook.reader import Workbook, open_workbook

# -- the share of a gold's charts that another workbook has ----------------------------------------
# How much of a gold's charts another workbook has, as one figure from 0 to 1.

_MAX_CHARTS = 200  # of a workbook; each pair is compared
_DIGITS = 9  # significant digits of a number, beyond which programs round differently


@dataclass(frozen=True, slots=True)
class _Drawn:
    """The parts of a chart that are compared: kinds, data of the series, titles, legend."""

    sheet: str
    chart: Chart
    kinds: tuple[tuple[str, str | None], ...]
    series: tuple[tuple[object, ...], ...]
    title: str | None
    axes: tuple[tuple[str, str], ...]
    legend: bool


def compare_charts(gold: Workbook, output: Workbook) -> ChartsRecord:
    """Compares the charts of two workbooks by their properties, without rendering them.

    Each chart of the gold is paired with the most similar chart of the output. The similarity of a
    pair is the mean of the similarities of its parts: the kinds, the data of the series (as values,
    wherever the cells are), and, if the gold has them, the title, the titles of the axes and the
    legend. The figure is the mean over the charts of the workbook that has more charts. It is 1 if
    neither workbook has charts.

    Raises:
        WorkbookError: a workbook is broken or over a limit.
    """
    expected, actual = _drawn(gold), _drawn(output)
    pairs = sorted(
        (
            (_alike(one, two), -first, -second)
            for first, one in enumerate(expected)
            for second, two in enumerate(actual)
        ),
        reverse=True,
    )
    partner: dict[int, tuple[int, float]] = {}
    taken: set[int] = set()
    for share, first, second in pairs:
        if -first not in partner and -second not in taken and share > 0:
            partner[-first] = -second, share
            taken.add(-second)
    facts: list[ChartFact] = []
    for number, one in enumerate(expected):
        index, share = partner.get(number, (None, 0.0))
        two = None if index is None else actual[index]
        facts.append(
            {
                "sheet": one.sheet,
                "title": one.title or "",
                "share": round(share, 4),
                "lacking": ["a chart"] if two is None else _lacking(one, two),
            }
        )
    most = max(len(expected), len(actual))
    total = sum(share for _, share in partner.values())
    return {
        "gold": len(expected),
        "output": len(actual),
        "share": round(total / most, 4) if most else 1.0,
        "charts": facts,
    }


def _drawn(workbook: Workbook) -> list[_Drawn]:
    book = BookFacts(workbook)
    charts = []
    for tab in book.tabs:
        for chart in book.charts(tab)[:_MAX_CHARTS]:
            plots = chart.plots
            titles = [(axis.kind, axis.title.text) for axis in chart.axes if axis.title is not None]
            charts.append(
                _Drawn(
                    sheet=tab.name,
                    chart=chart,
                    kinds=tuple((plot.kind, plot.direction) for plot in plots),
                    series=tuple(
                        _data(workbook, series) for plot in plots for series in plot.series
                    ),
                    title=None if chart.title is None else _words(chart.title.text),
                    axes=tuple(sorted((kind, _words(text)) for kind, text in titles if text)),
                    legend=chart.legend is not None,
                )
            )
    return charts[:_MAX_CHARTS]


def _words(text: str) -> str:
    return " ".join(text.split()).casefold()


def _data(workbook: Workbook, series: Series) -> tuple[object, ...]:
    return tuple(_values(workbook, source) for source in (series.values, series.categories))


def _values(workbook: Workbook, source: Source | None) -> tuple[object, ...]:
    """Returns the values that a series shows, from its cells or from the chart's own cache."""
    if source is None:
        return ()
    values = read_reference(workbook, source.reference) if source.reference else None
    if values is None or all(value is None for value in values):
        return tuple(map(_plain, source.cached))
    return tuple(map(_plain, values))


def _plain(value: object) -> object:
    try:
        return float(f"{float(value):.{_DIGITS}g}")  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return None if value is None else _words(str(value))


def _alike(gold: _Drawn, output: _Drawn) -> float:
    parts = [float(gold.kinds == output.kinds), _common(gold.series, output.series)]
    if gold.title:
        parts.append(float(gold.title == output.title))
    if gold.axes:
        parts.append(float(gold.axes == output.axes))
    if gold.legend:
        parts.append(float(output.legend))
    return sum(parts) / len(parts)


def _common(expected: Sequence[object], actual: Sequence[object]) -> float:
    """Returns the number of items that both sides have, as a share of the longer side."""
    left = list(actual)
    both = 0
    for item in expected:
        if item in left:
            left.remove(item)
            both += 1
    most = max(len(expected), len(actual))
    return both / most if most else 1.0


def _lacking(gold: _Drawn, output: _Drawn) -> list[str]:
    properties = []
    if gold.kinds != output.kinds:
        properties.append("kind")
    if _common(gold.series, output.series) < 1:
        properties.append("series")
    if gold.title and gold.title != output.title:
        properties.append("title")
    if gold.axes and gold.axes != output.axes:
        properties.append("titles of axes")
    if gold.legend and not output.legend:
        properties.append("legend")
    return properties


# -- the checker -----------------------------------------------------------------------------------


class ChartsChecker(UnjudgedChecker):
    """Measures how much of the gold's charts an output has; gives no verdict."""

    name = "charts"

    def measure(self, task: Task, golds: Sequence[Gold], answer: Answer) -> CaseComparison:  # noqa: ARG002
        """Compares the answer with the first gold; an output that cannot be read has no charts.

        Raises:
            WorkbookError: the gold is not a readable workbook.
            GoldFaultError: the gold cannot be read.
        """
        if not golds or not answer.files:
            return {}
        gold = open_workbook(golds[0].read())
        try:
            output = open_workbook(answer.data)
            with output.package.budget.working():
                measured = compare_charts(gold, output)
        except WorkbookError as error:
            if error.culprit is gold.package:
                raise
            nothing: ChartsRecord = {"gold": 0, "output": 0, "share": 0.0, "charts": []}
            return {"charts": nothing, "notes": [f"the output cannot be read: {error.message}"]}
        return {"charts": measured}


CHECKER = ChartsChecker()
