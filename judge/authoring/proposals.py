"""Proposes the rules of a task from its inputs and golds, and describes them for a person.

Differences that no type of rule can express are listed as well.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from judge.authoring.proposed_changes import Change, Pair, Rule, changes_of, pair_rule
from judge.compare.rules.objects import shown_labels
from judge.errors import UsageError, WorkbookError
from judge.workbook.address import COLUMN_BITS, COLUMN_MASK, Window, column_letters
from judge.workbook.facts.charts import Chart, Plot, Series
from judge.workbook.facts.render import pivot_lines
from judge.workbook.facts.sheets import Line, SheetFacts, Validation
from judge.workbook.reader import open_workbook

_SHOWN = 6
"""Largest number of objects of one kind that a line names."""

_WORDS_OF_PROPERTIES = {
    "fgcolor": "fill",
    "font_color": "font colour",
    "font_bold": "bold",
    "font_italic": "italic",
    "font_underline": "underline",
    "font_name": "font",
    "font_size": "font size",
    "number_format": "number format",
    "merge": "merged cells",
    "hyperlink": "hyperlinks",
    "row_fields": "row fields",
    "col_fields": "column fields",
    "data_fields": "functions of values",
    "data_fields_name": "names of values",
    "series_names": "names of the series",
    "trendlines": "trend lines",
    "labels": "data labels",
    "xtitle": "title of the x axis",
    "ytitle": "title of the y axis",
    "outline_level": "outline",
}


def words_of(change: Change, facts: SheetFacts) -> str:
    """Describes a rule in one line.

    Args:
        change: the difference that the rule checks.
        facts: the sheet of the gold.
    """
    properties = ", ".join(_WORDS_OF_PROPERTIES.get(name, name) for name in change.props)
    sheet = f"sheet {facts.name!r}"
    if change.kind == "sheet_data":
        return f"{sheet} holds the values of the gold (changed: {_cells(change.cells)})"
    if change.kind == "style":
        where = _cells(change.cells)
        return f"cells of {sheet} look as in the gold: {properties} (changed: {where})"
    if change.kind == "chart":
        listed = [_chart(chart, change.props) for chart in facts.charts]
        return f"{sheet} has the charts of the gold, by data, {properties}: {_some(listed)}"
    if change.kind == "pivot_table":
        listed = [_joined(pivot_lines(pivot)) for pivot in facts.pivots]
        return f"{sheet} has the pivot tables of the gold, by source, {properties}: {_some(listed)}"
    if change.kind in {"row_props", "col_props"}:
        lines = facts.rows if change.kind == "row_props" else facts.columns
        noun = "rows" if change.kind == "row_props" else "columns"
        return f"{noun} of {sheet} are as in the gold: {properties}{_hidden(lines, change, noun)}"
    return f"{sheet} {_rest(change.kind, facts)}"


def _chart(chart: Chart, props: Sequence[str]) -> str:
    """Describes a chart by its data and the compared properties only."""
    parts = []
    if "title" in props:
        parts.append(f"titled {chart.title.text!r}" if chart.title else "without a title")
    if "legend" in props:
        parts.append(f"with its legend at {chart.legend}" if chart.legend else "without a legend")
    for plot in chart.plots:
        kind = plot.kind if "type" in props else "data"
        direction = plot.direction if "direction" in props else None
        series = [_series(one, plot, props) for one in plot.series]
        parts.append(f"{' '.join(filter(None, (kind, direction)))} of {_some(series)}")
    titles = {"xtitle": {"catAx", "dateAx"}, "ytitle": {"valAx"}, "ztitle": {"serAx"}}
    axis_kinds = {kind for name, kinds in titles.items() if name in props for kind in kinds}
    parts += [
        f"axis {axis.title.text!r}" for axis in chart.axes if axis.title and axis.kind in axis_kinds
    ]
    return f"chart {'; '.join(parts)}"


def _series(series: Series, plot: Plot, props: Sequence[str]) -> str:
    sources = [
        source.reference or "literals" for source in (series.values, series.categories) if source
    ]
    parts = [" by ".join(sources)]
    if "series_names" in props and series.name is not None:
        parts.append(f"named {series.name.reference or ' '.join(filter(None, series.name.cached))}")
    if "trendlines" in props and series.trendlines:
        parts.append(
            f"trend line {' and '.join(trendline.kind for trendline in series.trendlines)}"
        )
    if "labels" in props and (shown := shown_labels(series, plot)):
        parts.append(f"labels with {' and '.join(shown)}")
    return " ".join(parts)


def _rest(kind: str, facts: SheetFacts) -> str:
    if kind == "freeze":
        pane = facts.view.pane
        if pane is None or not pane.frozen:
            return "has no frozen panes"
        return f"is frozen: {pane.columns:g} columns, {pane.rows:g} rows"
    if kind == "zoom":
        return f"is zoomed to {facts.view.zoom} %"
    if kind == "filter":
        if facts.filter is None:
            return "has no filter"
        columns = [
            f"column {column.column + 1} {column.kind} {_some(' '.join(x) for x in column.values)}"
            for column in facts.filter.columns
        ]
        return f"has the filter of the gold at {facts.filter.place}: {_some(columns)}"
    if kind == "data_validation":
        listed = [
            f"{' '.join(validation.places)}: {validation.kind or 'anything'} "
            f"{', '.join(validation.formulas)}"
            for validation in facts.validations
        ]
        return f"has these validations and no others: {_some(listed)}"
    listed = [
        f"{sparkline.kind} at {sparkline.place} of {sparkline.reference}"
        for sparkline in facts.sparklines
    ]
    return f"has the sparklines of the gold: {_some(listed)}"


def _hidden(lines: Sequence[Line], change: Change, noun: str) -> str:
    if "hidden" not in change.props:
        return ""
    listed = [
        _span(line.first, line.last, letters=noun == "columns") for line in lines if line.hidden
    ]
    return f" (hidden: {_some(listed)})"


def _span(first: int, last: int, *, letters: bool) -> str:
    ends = [column_letters(index) if letters else str(index) for index in (first, last)]
    return ends[0] if first == last else "-".join(ends)


def _cells(keys: Sequence[int]) -> str:
    """Describes cells by the rectangles that they fill, and their number."""
    return f"{_some(map(str, rectangles(keys)))}; {len(keys)} cell{'s' if len(keys) > 1 else ''}"


def rectangles(keys: Sequence[int]) -> list[Window]:
    """Covers cells with few rectangles: runs of a row, joined with equal runs of the row above."""
    runs: list[Window] = []
    for key in sorted(keys):
        row, column = key >> COLUMN_BITS, key & COLUMN_MASK
        last = runs[-1] if runs else None
        if last is not None and (last.min_row, last.max_column + 1) == (row, column):
            runs[-1] = Window(row, last.min_column, row, column)
        else:
            runs.append(Window(row, column, row, column))
    joined: dict[tuple[int, int], Window] = {}
    done: list[Window] = []
    for run in runs:
        ends = run.min_column, run.max_column
        above = joined.get(ends)
        if above is not None and above.max_row + 1 == run.min_row:
            joined[ends] = Window(above.min_row, ends[0], run.max_row, ends[1])
            continue
        if above is not None:
            done.append(above)
        joined[ends] = run
    return sorted([*done, *joined.values()])


def _joined(lines: object) -> str:
    return "; ".join(str(line).strip() for line in lines)  # type: ignore[attr-defined]


def _some(listed: object) -> str:
    named = [" ".join(str(item).split()) for item in listed]  # type: ignore[attr-defined]
    more = f" and {len(named) - _SHOWN} more" if len(named) > _SHOWN else ""
    return ", ".join(named[:_SHOWN]) + more or "none"


_DRAWN = {"colorScale", "dataBar", "iconSet"}
_USUAL_GROUPINGS = {None, "clustered", "standard"}


def uncovered_by_rules(before: SheetFacts, gold: SheetFacts) -> Iterator[str]:
    """Differences of a sheet that no rule covers, one line each.

    Args:
        before: the sheet of the input, or a blank one.
        gold: the sheet of the gold.
    """
    sheet = f"sheet {gold.name!r}"
    for difference, first, second in (
        ("its state", before.state, gold.state),
        ("the colour of its tab", before.tab_colour, gold.tab_colour),
        ("whether grid lines show", before.view.gridlines, gold.view.gridlines),
        ("whether headings show", before.view.headings, gold.view.headings),
        ("its tables", before.tables, gold.tables),
        ("conditional formats that are drawn", _drawn(before), _drawn(gold)),
    ):
        if first != second:
            yield f"{sheet}: {difference}"
    earlier = [_beyond(chart) for chart in before.charts]
    for chart in gold.charts:
        details = _beyond(chart)
        if details and details not in earlier:
            yield f"{sheet}: {', '.join(details)} of a chart"


def _drawn(facts: SheetFacts) -> set[object]:
    return {(format_.places, format_.kind) for format_ in facts.formats if format_.kind in _DRAWN}


def _beyond(chart: Chart) -> tuple[str, ...]:
    """The details of a chart that rules do not compare."""
    wishes = []
    for plot in chart.plots:
        if plot.grouping not in _USUAL_GROUPINGS:
            wishes.append(f"grouping {plot.grouping}")
        if any(one.trendlines for one in plot.series):
            wishes.append("trend lines")
        labels = (plot.labels, *(one.labels for one in plot.series))
        if any(label is not None and label.shows for label in labels):
            wishes.append("data labels")
    if any(axis.minimum is not None or axis.maximum is not None for axis in chart.axes):
        wishes.append("limits of an axis")
    return tuple(dict.fromkeys(wishes))


_PROPERTIES = {
    "chart": "chart_props",
    "pivot_table": "pivot_props",
    "style": "props",
    "row_props": "props",
    "col_props": "props",
}


@dataclass(frozen=True, slots=True)
class Proposal:
    """A proposed rule, which a person keeps or drops.

    Attributes:
        words: what it requires, in one line.
        rules: the rule for each case; they differ only if a rule states values of the case's gold.
    """

    words: str
    rules: tuple[Rule, ...]


@dataclass(frozen=True, slots=True)
class Proposals:
    """The proposals for a task.

    Attributes:
        listed: the rules.
        uncovered: differences that no rule covers, one line each.
        noun: ``rules`` or ``items``; also the name of the option that reads them from a file.
    """

    listed: tuple[Proposal, ...]
    uncovered: tuple[str, ...] = ()
    noun: str = "rules"


def propose(cases: Sequence[tuple[Path, Path]]) -> Proposals:
    """Proposes a rule for every kind of difference between input and gold.

    Args:
        cases: input and gold of each case.

    Raises:
        WorkbookError: a workbook cannot be read.
        UsageError: the golds do not have the same sheets.
    """
    pairs = [Pair(open_workbook(question), open_workbook(gold)) for question, gold in cases]
    sheets = _sheets(pairs)
    listed: list[Proposal] = []
    uncovered: list[str] = []
    if any(pair.names_differ() for pair in pairs):
        names = ", ".join(tab.name for tab in pairs[0].gold.facts.tabs)
        rule: Rule = {"type": "sheet_name"}
        listed.append(
            Proposal(f"the sheets are those of the gold, in order: {names}", (rule,) * len(pairs))
        )
    for names_of_cases in sheets:
        facts = [_facts(pair, name) for pair, name in zip(pairs, names_of_cases, strict=True)]
        listed.extend(_of_sheet(pairs, names_of_cases, facts))
        for pair, name, gold in zip(pairs, names_of_cases, facts, strict=True):
            base = pair.base(name)
            tab = base.tab(name)
            if tab is not None:
                uncovered.extend(uncovered_by_rules(base.facts.sheet(tab), gold))
    if any(pair.question.facts.names != pair.gold.facts.names for pair in pairs):
        uncovered.append("defined names")
    return Proposals(tuple(listed), tuple(dict.fromkeys(uncovered)))


def _sheets(pairs: Sequence[Pair]) -> list[tuple[str, ...]]:
    """The names of each sheet in the golds of all cases.

    If golds name their sheets differently, sheets are matched by their position.
    """
    names = [pair.gold.names for pair in pairs]
    if all(set(group) == set(names[0]) for group in names):
        return [(name,) * len(pairs) for name in names[0]]
    if any(len(group) != len(names[0]) for group in names):
        counts = ", ".join(str(len(group)) for group in names)
        raise UsageError(
            f"the golds of the cases have different numbers of sheets: {counts}",
            hint="The cases of a task have workbooks of the same shape.",
        )
    return list(zip(*names, strict=True))


def _facts(pair: Pair, name: str) -> SheetFacts:
    tab = pair.gold.tab(name)
    if tab is None:
        raise WorkbookError(f"there is no sheet {name!r}")
    return pair.gold.facts.sheet(tab)


def _of_sheet(
    pairs: Sequence[Pair], names: Sequence[str], facts: Sequence[SheetFacts]
) -> Iterator[Proposal]:
    """The rules about a sheet; a type of difference in any case becomes a rule for all cases."""
    first: dict[str, tuple[Change, SheetFacts]] = {}
    props: dict[str, dict[str, None]] = {}
    for pair, name, gold in zip(pairs, names, facts, strict=True):
        for change in changes_of(pair, name):
            first.setdefault(change.kind, (change, gold))
            props.setdefault(change.kind, {}).update(dict.fromkeys(change.props))
    for kind, (change, gold) in first.items():
        properties = tuple(props[kind])
        words = words_of(Change(kind, properties, change.cells), gold)
        pairs_of_facts = zip(names, facts, strict=True)
        rules = tuple(_rule(kind, name, fact, properties) for name, fact in pairs_of_facts)
        if any(rule != rules[0] for rule in rules):
            words += " (other cases state their own)"
        yield Proposal(words, rules)


def _rule(kind: str, sheet: str, gold: SheetFacts, props: Sequence[str]) -> Rule:
    if kind == "zoom":
        return {"type": kind, "sheet_idx": f"RN{sheet}", "method": "eq", "ref": gold.view.zoom}
    if kind == "data_validation":
        entries = [_entry(validation) for validation in gold.validations]
        return {"type": kind, "sheet_idx": f"RN{sheet}", "dv_props": entries}
    options = {_PROPERTIES[kind]: list(props)} if kind in _PROPERTIES else {}
    return pair_rule(kind, sheet, **options)


def _entry(validation: Validation) -> Mapping[str, object]:
    """A data validation in the form in which a rule describes it."""
    ranges = [reference.replace("$", "") for reference in validation.places]
    entry: dict[str, object] = {
        "ranges": {"method": "spreadsheet_range", "ref": [ranges, ranges]},
        "type": {"method": "eq", "ref": validation.kind},
    }
    if validation.kind not in {None, "list", "custom"}:
        # Some programs leave out the format's default, and others write it.
        usual = validation.operator == "between"
        entry["operator"] = (
            {"method": "ne", "ref": "notBetween"}
            if usual
            else {"method": "eq", "ref": validation.operator}
        )
    for name, formula in zip(("formula1", "formula2"), validation.formulas, strict=False):
        text = formula.strip()
        if validation.kind == "list" and text.startswith('"'):
            items = [item.strip() for item in text.strip('"').split(",")]
            entry[name] = {"method": "str_set_eq", "ref": items}
        else:
            entry[name] = {"method": "eq", "ref": text}
    return entry


def rule_lists(kept: Sequence[Proposal], cases: int) -> list[list[Rule]]:
    """The list of rules for each case."""
    return [[proposal.rules[case] for proposal in kept] for case in range(cases)]


def text_of(proposals: Proposals, cases: int) -> str:
    """Proposals as a YAML file for ``--rules`` or ``--items``, each with its words as a comment."""
    lists = rule_lists(proposals.listed, cases)
    lines = ["# Proposed from what differs between input and gold: delete what should not count."]
    lines.extend(f"# No rule covers: {difference}" for difference in proposals.uncovered)
    lines.append(f"{proposals.noun}:")
    for number, (proposal, rule) in enumerate(
        zip(proposals.listed, lists[0], strict=True), start=1
    ):
        lines.extend([f"# {number}. {proposal.words}", f"- {_json(rule)}"])
    others = {n: rules for n, rules in enumerate(lists, start=1) if rules != lists[0]}
    if others:
        lines.append("# Cases with rules other than those above, each with its full list.")
        lines.append("cases:")
        for number, rules in others.items():
            lines.append(f'  "{number}":')
            lines.extend(f"  - {_json(rule)}" for rule in rules)
    return "\n".join(lines) + "\n"


def _json(rule: Rule) -> str:
    return json.dumps(rule, ensure_ascii=False)
