"""What a board asks, as sentences, and what pages of reports show of it."""

from __future__ import annotations

from collections.abc import Mapping

from judge.compare.boards.board import Asked
from judge.compare.rules.words import ordinal
from judge.core.finding import Subject

SUBJECTS: Mapping[str, Subject] = {
    "charts": Subject.CHARTS,
    "pivot_tables": Subject.PIVOTS,
    "filters": Subject.FILTER,
    "format_conditions": Subject.FORMATS,
    "view": Subject.PANES,
}
"""Category -> what it is about; values and looks of cells are compared column by column, in any
order, which no grid shows."""

_WHOLE = {
    "cells.values": "the table at A1 has the values of the gold's",
    "cells.formatting": "the table at A1 has the fonts, fills and number formats of the gold's",
    "cells.hyperlink": "the table at A1 has the hyperlinks of the gold's",
    "charts.count": "there are as many charts as in the gold",
    "charts.axes": "the charts have the axes of the gold's, with or without titles alike",
    "pivot_tables.count": "there are as many pivot tables as in the gold",
    "filters.source": "the filter covers the cells of the gold's",
    "filters.filters": "the filter shows the rows of the gold's",
    "format_conditions.count": "there are as many conditional formats as in the gold",
    "view.freeze_pane": "the rows and columns of the gold's are frozen",
}
_OBJECTS = {
    "charts": "the charts",
    "pivot_tables": "the pivot tables",
    "filters": "the filter",
    "format_conditions": "the conditional formats",
}
_NAMES = {
    "chart_type": "kinds",
    "title": "titles",
    "legend": "legends",
    "series": "series",
    "trendlines": "trend lines",
    "data_labels": "data labels",
    "name": "names",
    "source": "sources",
    "filters": "filter fields",
    "rows": "row fields",
    "columns": "column fields",
    "values": "values with their functions",
    "summary_type": "functions of the values",
    "type": "types",
    "operator": "operators",
    "formula1": "formulas",
    "color": "font colours",
    "fill_color": "fill colours",
    "font": "fonts",
    "bold": "bold type",
    "italic": "italic type",
    "underline": "underlining",
}


def asked_in_words(asked: Asked) -> str:
    """One thing that a board asks, as a sentence."""
    said = _WHOLE.get(asked.kind)
    if said is None:
        objects = _OBJECTS.get(asked.category, asked.category)
        said = f"{objects} have the {_NAMES.get(asked.name, asked.name)} of the gold's"
    return f"On the {ordinal(asked.sheet)} sheet, {said}."
