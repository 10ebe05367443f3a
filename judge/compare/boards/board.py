"""A check board: the properties in which the sheets of an answer must agree with the gold's.

The properties are also written as sentences, with the differences in each property.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from judge.compare.rules.words import ordinal
from judge.core.finding import (
    DifferenceLocation,
    FoundDifference,
    LocationKind,
    Subject,
    about,
    sheet_of,
)
from judge.core.option import check_names
from judge.core.records.cases import AboutRecord
from judge.errors import UsageError
from judge.files.documents import written
from judge.workbook.address import COLUMN_BITS, COLUMN_MASK, cell_name
from judge.workbook.cell import CellValue, json_value

NAME = "boards"
"""Name of the checker."""

CHECK_BOARD = "check_board"
"""The field of a published file that holds the board; other fields are not judged."""

CATEGORIES: Mapping[str, tuple[str, ...]] = {
    "cells": ("values", "formatting", "hyperlink"),
    "charts": (
        "name",
        "count",
        "chart_type",
        "title",
        "legend",
        "axes",
        "series",
        "trendlines",
        "data_labels",
    ),
    "pivot_tables": (
        "name",
        "count",
        "source",
        "filters",
        "rows",
        "columns",
        "values",
        "summary_type",
    ),
    "filters": ("name", "source", "filters"),
    "format_conditions": (
        "count",
        "type",
        "operator",
        "formula1",
        "color",
        "fill_color",
        "font",
        "bold",
        "italic",
        "underline",
    ),
    "view": ("freeze_pane",),
}
"""Category -> its properties."""

_MAX_SHEETS = 1000  # a board may be hostile


@dataclass(frozen=True, slots=True)
class RequestedProperty:
    """One property that a board asks for.

    Attributes:
        number: its position in the board, from 1.
        sheet: number of the sheet, from 1.
        category: ``cells``, ``charts`` …
        name: the property.
    """

    number: int
    sheet: int
    category: str
    name: str

    @property
    def kind(self) -> str:
        """Category and property, such as ``charts.title``."""
        return f"{self.category}.{self.name}"

    def __str__(self) -> str:
        return f"{self.number} ({self.kind} · sheet {self.sheet})"


@dataclass(frozen=True)
class Board:
    """A check board.

    Attributes:
        sheets: number of a sheet -> category -> the properties that the board asks for. It includes
            sheets for which the board asks for nothing.
    """

    sheets: Mapping[int, Mapping[str, tuple[str, ...]]]

    @property
    def required(self) -> tuple[RequestedProperty, ...]:
        """All properties that the board asks for, by sheet, category and property."""
        listed = [
            (sheet, category, name)
            for sheet, categories in sorted(self.sheets.items())
            for category, names in categories.items()
            for name in names
        ]
        return tuple(
            RequestedProperty(number, *entry) for number, entry in enumerate(listed, start=1)
        )

    @staticmethod
    def of(document: object) -> Board:
        """Reads a board: sheet number -> category -> property -> whether the board requires it.

        Categories and properties that are not mentioned are not required.

        Args:
            document: the board, or an object with the field ``check_board``.

        Raises:
            UsageError: the document is not a board.
        """
        if isinstance(document, Mapping) and CHECK_BOARD in document:
            document = document[CHECK_BOARD]
        if not isinstance(document, Mapping) or not document:
            raise UsageError(
                f"expected a board, found {written(document)}"[:200],
                hint="A board is {sheet number: {category: {property: true or false}}}.",
            )
        if len(document) > _MAX_SHEETS:
            raise UsageError(f"a board of more than {_MAX_SHEETS:,} sheets")
        return Board({_number(key): _sheet(key, given) for key, given in document.items()})


def _number(key: object) -> int:
    text = str(key).strip()
    if isinstance(key, bool) or not (text.isascii() and text.isdecimal()) or not int(text[:9]):
        raise UsageError(
            f"the keys of a board are sheet numbers from 1, found {written(key)}"[:200],
            hint="The first sheet is '1', whatever its name.",
        )
    return int(text[:9])


def _sheet(key: object, given: Any) -> dict[str, tuple[str, ...]]:
    if not isinstance(given, Mapping):
        raise UsageError(
            f"sheet {key} of a board: expected categories, found {written(given)}"[:200]
        )
    properties_of: dict[str, tuple[str, ...]] = {}
    for category in given:
        if category not in CATEGORIES:
            raise UsageError(
                f"sheet {key} of a board: there is no category {category!r}"[:200],
                hint=f"Categories: {', '.join(CATEGORIES)}.",
            )
    for category, names in CATEGORIES.items():
        properties = given.get(category, {})
        if not isinstance(properties, Mapping):
            raise UsageError(
                f"sheet {key} of a board, {category}: expected properties, "
                f"found {written(properties)}"
            )
        for name, value in properties.items():
            if name not in names:
                raise UsageError(
                    f"sheet {key} of a board, {category}: there is no property {name!r}"[:200],
                    hint=f"Properties: {', '.join(names)}.",
                )
            if not isinstance(value, bool):
                raise UsageError(
                    f"sheet {key} of a board, {category}.{name}: expected true or false, found "
                    f"{value!r}"[:200]
                )
        required = tuple(name for name in names if properties.get(name))
        if required:
            properties_of[category] = required
    return properties_of


@dataclass(frozen=True)
class BoardOptions:
    """The options of the checker: the board, which belongs to one gold.

    Attributes:
        board: the board; None if each gold of the task has a separate board.
    """

    board: Board | None

    @staticmethod
    def of(options: Mapping[str, object]) -> BoardOptions:
        """Reads the options as a suite or a command gives them.

        Raises:
            UsageError: an option is unknown, or its value does not fit.
        """
        check_names(NAME, options, ("board",))
        if "board" not in options:
            return BoardOptions(None)
        try:
            return BoardOptions(Board.of(options["board"]))
        except UsageError as error:
            raise UsageError(f"option board: {error.message}", hint=error.hint) from error


SUBJECTS: Mapping[str, Subject] = {
    "charts": Subject.CHARTS,
    "pivot_tables": Subject.PIVOTS,
    "filters": Subject.FILTER,
    "format_conditions": Subject.FORMATS,
    "view": Subject.PANES,
}
"""Category -> the objects that pages show for it. There are none for cells: their values and looks
are compared column by column, whatever the order of columns, and a grid cannot show this."""

_WHOLE = {
    "cells.values": "the table at A1 has the same values as in the gold",
    "cells.formatting": "the table at A1 has the gold's fonts, fills and number formats",
    "cells.hyperlink": "the table at A1 has the same hyperlinks as in the gold",
    "charts.count": "there are as many charts as in the gold",
    "charts.axes": "the charts have the same axes as in the gold, with and without titles",
    "pivot_tables.count": "there are as many pivot tables as in the gold",
    "filters.source": "the filter covers the same cells as in the gold",
    "filters.filters": "the filter shows the same rows as in the gold",
    "format_conditions.count": "there are as many conditional formats as in the gold",
    "view.freeze_pane": "the same rows and columns are frozen as in the gold",
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


def requirement_in_words(required: RequestedProperty) -> str:
    """Returns a property that a board asks for, as a sentence."""
    words = _WHOLE.get(required.kind)
    if words is None:
        objects = _OBJECTS.get(required.category, required.category)
        words = f"{objects} have the same {_NAMES.get(required.name, required.name)} as in the gold"
    return f"On the {ordinal(required.sheet)} sheet, {words}."


NOT_CALCULATED = "not_calculated"
MISSING_SHEET = "missing_sheet"
SHEET_COUNT = "sheet_count"


@dataclass(frozen=True, slots=True)
class Evidence:
    """The parts of a difference that are shown: gold, answer and position."""

    expected: object
    actual: object
    detail: str = ""


@dataclass
class Differences:
    """Collects differences, each with the property that the board asks for.

    Args:
        board: the board.
        golds: names of the gold's worksheets.

    Attributes:
        listed: the differences so far.
    """

    board: Board
    golds: Sequence[str]
    listed: list[FoundDifference] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._required = {(check.sheet, check.kind): check for check in self.board.required}

    def add(
        self,
        position: tuple[int, str, str],
        sheet: str,
        shown: Evidence,
        *,
        missing: str | None = None,
    ) -> None:
        """Adds a difference in a property that the board asks for.

        Args:
            position: number of the sheet, category, property.
            sheet: name of the sheet of the answer.
            shown: the values to show.
            missing: why a value could not be computed; empty if both values are known.
        """
        number, category, name = position
        required = self._required.get((number, f"{category}.{name}"))
        if required is None:
            required = RequestedProperty(len(self._required) + 1, number, category, name)
        detail = shown.detail if missing is None else f"{shown.detail}: {missing}"
        self.listed.append(
            FoundDifference(
                required.kind if missing is None else NOT_CALCULATED,
                DifferenceLocation(LocationKind.RULE, str(required), sheet),
                _plain(shown.expected),
                _plain(shown.actual),
                detail,
                required.number,
                requirement_in_words(required),
                self._about(required, sheet),
            )
        )

    def _about(self, required: RequestedProperty, sheet: str | None) -> AboutRecord | None:
        """Returns the sheets and objects that pages show next to a difference."""
        subject = SUBJECTS.get(required.category)
        if subject is None or not 1 <= required.sheet <= len(self.golds):
            return None
        gold = sheet_of(self.golds[required.sheet - 1], in_gold=True)
        output_sheet = None if sheet is None else sheet_of(sheet, in_gold=False)
        return about(subject, gold, output_sheet, (required.name,))

    def sheet_count(self, expected: int, actual: int) -> None:
        """Records that the answer does not have as many worksheets as the gold."""
        position = DifferenceLocation(LocationKind.RULE, "0 (number of worksheets)")
        words = "The output has as many worksheets as the gold."
        self.listed.append(
            FoundDifference(
                SHEET_COUNT,
                position,
                expected,
                actual,
                number=0,
                words=words,
                about=about(Subject.SHEETS),
            )
        )

    def missing_sheet(self, number: int, name: str) -> None:
        """Records that the answer lacks a sheet that the board checks."""
        required = next((check for check in self.board.required if check.sheet == number), None)
        position = DifferenceLocation(LocationKind.RULE, str(required or number))
        message = f"the answer has no sheet that corresponds to {name!r}"
        self.listed.append(
            FoundDifference(
                MISSING_SHEET,
                position,
                name,
                None,
                message,
                None if required is None else required.number,
                "" if required is None else requirement_in_words(required),
                None if required is None else self._about(required, None),
            )
        )


def shown(value: CellValue) -> object:
    """Returns a cell's value as JSON."""
    return json_value(value)


def where(key: int) -> str:
    """Returns the address of a cell."""
    return cell_name(key >> COLUMN_BITS, key & COLUMN_MASK)


_MAX_SHOWN = 20  # items of a list in a difference


def _plain(value: object) -> object:
    """Returns a value as JSON; long lists are cut."""
    if isinstance(value, tuple | list):
        kept = [_plain(item) for item in value[:_MAX_SHOWN]]
        return kept + ([f"… {len(value):,} in all"] if len(value) > _MAX_SHOWN else [])
    if isinstance(value, dt.datetime | dt.date | dt.time | dt.timedelta):
        return json_value(value)
    if isinstance(value, str | int | float | bool | dict) or value is None:
        return value
    return str(value)
