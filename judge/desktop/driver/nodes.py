"""What is kept of windows and of the tree, and what follows from it without another question."""

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
"""In the order of their numbers."""
_DASHES = str.maketrans({"\u2012": "-", "\u2013": "-", "\u2014": "-", "\u2015": "-"})
_SPACES = str.maketrans({"\u00a0": " ", "\u202f": " "})


def plain_title(title: str) -> str:
    """A title in which all dashes are one."""
    return title.translate(_DASHES).translate(_SPACES)


@dataclass(frozen=True, slots=True)
class Window:
    """A window of a program.

    Attributes:
        number: of X.
        title: of the window.
        x: of its left border, decorations not counted.
        y: of its upper border.
        width: pixels.
        height: pixels.
        kind: the program's class.
    """

    number: int
    title: str
    x: int
    y: int
    width: int
    height: int
    kind: str = ""

    def covers(self, x: int, y: int) -> bool:
        """Whether a point is in it."""
        return self.x <= x < self.x + self.width and self.y <= y < self.y + self.height

    def ends_with(self, corner: tuple[int, int], size: tuple[int, int]) -> bool:
        """Whether an area with this upper left corner and this size ends where the window does."""
        end = corner[0] + size[0], corner[1] + size[1]
        return end == (self.x + self.width, self.y + self.height)


@dataclass(slots=True)
class Node:
    """A node; see ``judge.desktop.contract.Element``.

    ``hint`` is what a picture without a name is described as, such as its tooltip.
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
        """As it is sent."""
        place = list(self.box) if self.box is not None else None
        return [self.role, self.name, self.text, place, self.states, self.parent, self.value]


class Shown(Protocol):
    """An element of a tree, on either side of the sandbox's wall."""

    @property
    def role(self) -> str:
        """Its kind."""

    @property
    def name(self) -> str:
        """What it is called; of a cell, its address."""

    @property
    def text(self) -> str:
        """What it says."""

    @property
    def states(self) -> Collection[str]:
        """The names of its states."""

    @property
    def parent(self) -> int | None:
        """Number of the element that it is in."""


def unused_cells(elements: Sequence[Shown]) -> set[int]:
    """Numbers of empty cells that nobody needs.

    Needed are those among the cells with text, and those of the first row below and of the first
    column next to them, where the next value goes; also the one with the cursor. Rows and columns
    are those on the screen, so that hidden ones are passed over.
    """
    places: dict[int | None, dict[int, tuple[int, int]]] = {}
    for number, each in enumerate(elements):
        place = address_of(each.name) if each.role == CELL else None
        if place is not None:
            places.setdefault(each.parent, {})[number] = place
    found: set[int] = set()
    for cells in places.values():
        used = [place for number, place in cells.items() if elements[number].text]
        last_row = _one_more((row for row, _ in used), (row for row, _ in cells.values()))
        last_column = _one_more((column for _, column in used), (c for _, c in cells.values()))
        found |= {
            number
            for number, (row, column) in cells.items()
            if (row > last_row or column > last_column)
            and not elements[number].text
            and "focused" not in elements[number].states
        }
    return found


def _one_more(used: Iterable[int], shown: Iterable[int]) -> int:
    """The number of the first row or column on the screen after the last one with text."""
    last = max(used, default=0)
    return min((number for number in shown if number > last), default=last)


def address_of(name: str) -> tuple[int, int] | None:
    """Row and column of a cell by its address, from 1; None if it is not one."""
    match = _ADDRESS.fullmatch(name)
    return None if match is None else (int(match[2]), _column(match[1]))


def state_names(bits: Any) -> tuple[str, ...]:
    """The names of states that are set."""
    if not bits:
        return ()
    number = bits[0] | (bits[1] << 32 if len(bits) > 1 else 0)
    return tuple(sorted(name for place, name in enumerate(_STATES) if number >> place & 1))


def mark_cursor(nodes: Sequence[Node]) -> None:
    """Gives cells the states of the cursor, which the name box tells: a question less for each."""
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
    """The address in the name box of a document's window: the first text that is one."""
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
