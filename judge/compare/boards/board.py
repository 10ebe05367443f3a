"""A check board: which properties of which sheets of a gold an answer has to share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from judge.core.option import check_names
from judge.errors import UsageError
from judge.files.documents import written

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

_MAX_SHEETS = 1000


@dataclass(frozen=True, slots=True)
class Asked:
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
    def asked(self) -> tuple[Asked, ...]:
        """All properties that the board asks for, by sheet, category and property."""
        listed = [
            (sheet, category, name)
            for sheet, categories in sorted(self.sheets.items())
            for category, names in categories.items()
            for name in names
        ]
        return tuple(Asked(number, *entry) for number, entry in enumerate(listed, start=1))

    @staticmethod
    def of(document: object) -> Board:
        """Reads a board: sheet number -> category -> property -> whether the board asks for it.

        A category or a property that is not mentioned is not asked for.

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
        asked = tuple(name for name in names if properties.get(name))
        if asked:
            properties_of[category] = asked
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
