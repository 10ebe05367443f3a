"""What is kept of the accessibility tree, and what follows from it without another question."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

Box = tuple[int, int, int, int]

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
        if place is None or node.role != "table-cell" or not node.states:
            continue
        spot = _ADDRESS.fullmatch(node.name)
        if spot is None:
            continue
        ends = [(int(row), _column(column)) for column, row in _ADDRESS.findall(place[0])]
        (top, left), (bottom, right) = min(ends), max(ends)
        row, column = int(spot[2]), _column(spot[1])
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
