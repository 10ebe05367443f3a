"""Makes golds of SheetCopilot with one change each, and says whether a board should notice it."""

from __future__ import annotations

import io
import re
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from judge.compare.boards.board import Board
from judge.workbook.facts.book import BookFacts
from judge.workbook.facts.sheets import filter_of
from judge.workbook.reader import open_workbook
from judge.workbook.workbook_parts import Tab

NOTICED: dict[str, tuple[frozenset[str], frozenset[str]]] = {
    "letter of a title": (frozenset({"charts.title"}),) * 2,
    "bar for column": (frozenset({"charts.chart_type"}),) * 2,
    "series one row further": (
        frozenset({"charts.series", "charts.trendlines", "charts.data_labels"}),
        frozenset({"charts.series", "charts.trendlines"}),
    ),
    "function of a pivot table": (
        frozenset({"pivot_tables.values", "pivot_tables.summary_type"}),
        frozenset({"pivot_tables.values"}),
    ),
    "frozen row": (frozenset({"view.freeze_pane"}),) * 2,
    "row unhidden": (frozenset({"filters.filters"}),) * 2,
}
"""Kind of change -> the properties that notice it, for the judge and for the published code."""


@dataclass(frozen=True)
class Mutant:
    """A changed gold: what was changed, on which sheet (from 1), and the file.

    ``pivots`` counts the pivot tables of the sheet.
    """

    kind: str
    sheet: int
    data: bytes
    pivots: int

    def is_noticed(self, board: Board, *, published: bool) -> bool:
        """Whether the board checks the changed property."""
        kinds = NOTICED[self.kind][published]
        checks = {(check.sheet, check.kind) for check in board.required}
        if published and self.kind == "function of a pivot table" and self.pivots > 1:
            return False  # a single pair of pivot tables that agrees is enough
        if self.kind != "frozen row" or not published:
            return any((self.sheet, kind) in checks for kind in kinds)
        checked = sorted(board.sheets)
        if not all("view" in board.sheets[number] for number in checked):
            return False
        # The n-th checked sheet is judged by the pane of the n-th sheet.
        return self.sheet <= len(checked)


def mutants(data: bytes) -> Iterator[Mutant]:
    """Yields the possible changes of a gold, one for each sheet and kind."""
    workbook = open_workbook(data)
    facts = BookFacts(workbook)
    worksheets = [tab for tab in workbook.tabs if tab.is_worksheet]
    for number, tab in enumerate(worksheets, start=1):
        for kind, part, edit in _edits(facts, tab):
            changed = _edited(data, part, edit)
            if changed is not None:
                yield Mutant(kind, number, changed, len(facts.pivots(tab)))


Edit = Callable[[str], str]


def _edits(facts: BookFacts, tab: Tab) -> Iterator[tuple[str, str, Edit]]:
    charts = facts.charts(tab)
    if charts:
        part = charts[0].part
        if charts[0].title is not None and charts[0].title.runs:
            yield "letter of a title", part, _title
        yield "bar for column", part, _direction
        yield "series one row further", part, _series
    for link in facts.links(tab).values():
        if link.kind == "pivotTable":
            yield "function of a pivot table", link.target, _function
            break
    yield "frozen row", tab.part, _frozen
    filter_ = filter_of(facts.tree(tab).child("autoFilter"))
    hidden = [line.first for line in facts.sheet(tab).rows if line.hidden]
    if filter_ is not None and hidden:
        yield "row unhidden", tab.part, lambda text: _unhidden(text, hidden[0])


def _title(text: str) -> str:
    def other(match: re.Match[str]) -> str:
        return match[1] + ("Q" if match[2] != "Q" else "X")

    return re.sub(r"(<(?:\w+:)?title>(?:(?!</(?:\w+:)?title>).)*?<a:t>)(\w)", other, text, count=1)


def _direction(text: str) -> str:
    turned = {"col": "bar", "bar": "col"}
    return re.sub(
        r'(barDir val=")(col|bar)"', lambda match: f'{match[1]}{turned[match[2]]}"', text, count=1
    )


def _series(text: str) -> str:
    def moved(match: re.Match[str]) -> str:
        rows = re.sub(r"\$(\d+)", lambda row: f"${int(row[1]) + 1}", match[2])
        return match[1] + rows

    return re.sub(r"(<c:(?:val|yVal)>.*?<c:f>)([^<]+)", moved, text, count=1, flags=re.DOTALL)


def _function(text: str) -> str:
    def other(match: re.Match[str]) -> str:
        inner = match[1]
        if "subtotal=" in inner:
            return "<dataField" + re.sub(r'subtotal="\w+"', 'subtotal="stdDevp"', inner)
        return f'<dataField subtotal="stdDevp"{inner}'

    return re.sub(r"<dataField(\s[^>]*)", other, text, count=1)


def _frozen(text: str) -> str:
    return re.sub(
        r'(<pane [^>]*ySplit=")(\d+)"', lambda match: f'{match[1]}{int(match[2]) + 1}"', text
    )


def _unhidden(text: str, row: int) -> str:
    return re.sub(rf'(<row r="{row}"[^>]*?) hidden="1"', lambda match: str(match[1]), text, count=1)


def _edited(data: bytes, part: str, edit: Edit) -> bytes | None:
    """Returns the package with a changed part; None if the change does not apply."""
    buffer = io.BytesIO()
    with (
        zipfile.ZipFile(io.BytesIO(data)) as old,
        zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as new,
    ):
        text = old.read(part).decode()
        changed = edit(text)
        if changed == text:
            return None
        for name in old.namelist():
            new.writestr(name, changed.encode() if name == part else old.read(name))
    return buffer.getvalue()
