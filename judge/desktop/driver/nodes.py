"""Data about windows and the tree, and what follows from them without another query."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

Box = tuple[int, int, int, int]
CELL = "table-cell"

_ADDRESS = re.compile(r"([A-Z]{1,3})(\d{1,7})")
_RANGE = re.compile(r"[A-Z]{1,3}\d{1,7}(:[A-Z]{1,3}\d{1,7})?")
_STATES = """
    invalid active armed busy checked collapsed defunct editable enabled expandable expanded
    focusable focused has-tooltip horizontal iconified modal multi-line multiselectable opaque
    pressed resizable selectable selected sensitive showing single-line stale transient vertical
    visible manages-descendants indeterminate required truncated animated invalid-entry
    supports-autocompletion selectable-text is-default visited checkable has-popup read-only
""".split()
"""The names of states, in the order of their numbers."""
_DASHES = str.maketrans({"\u2012": "-", "\u2013": "-", "\u2014": "-", "\u2015": "-"})
_SPACES = str.maketrans({"\u00a0": " ", "\u202f": " "})


def plain_title(title: str) -> str:
    """Replaces all kinds of dashes in a title by the same dash."""
    return title.translate(_DASHES).translate(_SPACES)


@dataclass(frozen=True, slots=True)
class Window:
    """A window of a program.

    Attributes:
        number: its number in X.
        title: its title.
        x: the position of its left border, without decorations.
        y: the position of its upper border.
        width: its width in pixels.
        height: its height in pixels.
        kind: the window class of its program.
    """

    number: int
    title: str
    x: int
    y: int
    width: int
    height: int
    kind: str = ""

    def covers(self, x: int, y: int) -> bool:
        """Returns whether a point is in the window."""
        return self.x <= x < self.x + self.width and self.y <= y < self.y + self.height

    def ends_with(self, corner: tuple[int, int], size: tuple[int, int]) -> bool:
        """Returns whether an area with this corner and size ends where the window does."""
        end = corner[0] + size[0], corner[1] + size[1]
        return end == (self.x + self.width, self.y + self.height)


@dataclass(slots=True)
class Node:
    """A node; see ``judge.desktop.contract.Element``.

    ``hint`` is the description of a picture without a name, such as its tooltip.
    """

    role: str
    name: str
    text: str = ""
    box: Box | None = None
    states: tuple[str, ...] = ()
    parent: int | None = None
    value: str = ""
    image: bool = False
    hint: str = ""

    def row(self) -> list[Any]:
        """Returns the node as it is sent to the judge."""
        place = list(self.box) if self.box is not None else None
        return [self.role, self.name, self.text, place, self.states, self.parent, self.value]


class Shown(Protocol):
    """An element of a tree, inside or outside the sandbox."""

    @property
    def role(self) -> str:
        """The role of the element."""

    @property
    def name(self) -> str:
        """The name of the element; for a cell, its address."""

    @property
    def text(self) -> str:
        """The text of the element."""

    @property
    def states(self) -> Collection[str]:
        """The names of the element's states."""

    @property
    def parent(self) -> int | None:
        """The number of the element that contains it."""


def unused_cells(elements: Sequence[Shown]) -> set[int]:
    """Returns the numbers of empty cells that can be left out.

    Empty cells are needed if they are among the cells with text, in the first row below these or in
    the first column next to them (where the next value is written), or if they have the cursor.
    Only rows and columns on the screen count, so hidden ones are skipped.
    """
    places: dict[int | None, dict[int, tuple[int, int]]] = {}
    for number, element in enumerate(elements):
        place = address_of(element.name) if element.role == CELL else None
        if place is not None:
            places.setdefault(element.parent, {})[number] = place
    unused: set[int] = set()
    for cells in places.values():
        used = [place for number, place in cells.items() if elements[number].text]
        last_row = _one_more((row for row, _ in used), (row for row, _ in cells.values()))
        last_column = _one_more((column for _, column in used), (c for _, c in cells.values()))
        unused |= {
            number
            for number, (row, column) in cells.items()
            if (row > last_row or column > last_column)
            and not elements[number].text
            and "focused" not in elements[number].states
        }
    return unused


def _one_more(used: Iterable[int], shown: Iterable[int]) -> int:
    """Returns the number of the first row or column on the screen after the last one with text."""
    last = max(used, default=0)
    return min((number for number in shown if number > last), default=last)


def address_of(name: str) -> tuple[int, int] | None:
    """Returns row and column (from 1) of a cell address; None if it is not an address."""
    match = _ADDRESS.fullmatch(name)
    return None if match is None else (int(match[2]), _column(match[1]))


def state_names(bits: Any) -> tuple[str, ...]:
    """Returns the names of the states that are set."""
    if not bits:
        return ()
    number = bits[0] | (bits[1] << 32 if len(bits) > 1 else 0)
    return tuple(sorted(name for place, name in enumerate(_STATES) if number >> place & 1))


def mark_cursor(nodes: Sequence[Node]) -> None:
    """Sets the cursor's states from the name box, which saves a query for each cell."""
    place: re.Match[str] | None = None
    for node in nodes:
        if node.role == "document-spreadsheet":
            place = _name_box(nodes, node)
        if place is None or node.role != CELL or not node.states:
            continue
        spot = address_of(node.name)
        if spot is None:
            continue
        ends = [(int(row), _column(column)) for column, row in _ADDRESS.findall(place[0])]
        (top, left), (bottom, right) = min(ends), max(ends)
        row, column = spot
        if top <= row <= bottom and min(left, right) <= column <= max(left, right):
            focused = ("focused",) if len(ends) == 1 else ()
            node.states = tuple(sorted({*node.states, "selected", *focused}))


def _name_box(nodes: Sequence[Node], document: Node) -> re.Match[str] | None:
    """Returns the address in the name box of a document's window, if it shows one."""
    window = _frame_of(nodes, document)
    for node in nodes:
        match = _RANGE.fullmatch(node.text) if node.role == "text" else None
        if match is not None and _frame_of(nodes, node) is window:
            return match
    return None


def _frame_of(nodes: Sequence[Node], node: Node) -> Node:
    while node.parent is not None and node.role != "frame":
        node = nodes[node.parent]
    return node


def _column(letters: str) -> int:
    number = 0
    for letter in letters:
        number = 26 * number + ord(letter) - 64
    return number
