"""Positions in the tree, for an office whose positions are known."""

from __future__ import annotations

import random
import types
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest

from judge.desktop.contract import CORRECTIONS
from judge.desktop.driver.nodes import Box, Node, Window, state_names

ROOT = "/org/a11y/atspi/accessible/root"
MENU_BAR = 25
WINDOW = Window(7, "Book.xlsx — LibreOffice Calc", 0, 19, 1920, 1061)
NOWHERE = -(2**31)
SHOWN = sum(1 << n for n in range(42) if state_names([1 << n])[:1] in {("showing",), ("visible",)})


@dataclass
class Widget:
    """An object of the office, as the office describes it."""

    role: str
    box: Box
    children: list[Widget] = field(default_factory=list)
    gtk: bool = False
    name: str = ""


class Office:
    """Answers as an office does.

    Args:
        believed: how far above the menu bar's lower edge it believes its drawing to begin.
        moves: how far its drawing has moved each time that it is asked where it is.
    """

    def __init__(self, believed: int, moves: Iterable[int] = ()) -> None:
        self._moves: Iterator[int] = iter(moves)
        self._root = Widget("root-pane", (0, 44 - believed, 1920, 1036))
        self._root.children = [
            Widget("button", (92, 46 - believed, 44, 35), name="Save"),
            Widget("check-box", (NOWHERE, NOWHERE, 19, 107), name="on another page"),
            Widget(
                "panel", (250, 125, 1600, 34), gtk=True,
                children=[Widget("paragraph", (267, 133, 30, 16), name="formula line")],
            ),
            Widget(
                "text", (4, 85, 171, 34), gtk=True,
                children=[Widget("icon", (151, 94, 16, 16), name="warning")],
            ),
        ]  # fmt: skip
        room = Widget("panel", (0, 44, 1920, 1036), [self._root], gtk=True)
        bar = Widget("menu", (128, 19, 53, 25), gtk=True, name="Insert")
        frame = Widget("frame", (0, 0, 1920, 1080), [bar, room], gtk=True, name=WINDOW.title)
        self._objects: dict[str, Widget] = {}
        self._enter(Widget("application", (0, 0, 0, 0), [frame], name="soffice"))

    def _enter(self, widget: Widget) -> str:
        path = f"/{len(self._objects)}" if self._objects else "/root"
        self._objects[path] = widget
        for child in widget.children:
            self._enter(child)
        return path

    def _paths(self, widget: Widget) -> list[tuple[str, str]]:
        return [
            ("office", path)
            for child in widget.children
            for path, known in self._objects.items()
            if known is child
        ]

    def ask(self, questions: Iterable[Any]) -> list[Any]:
        return [self._answer(each) for each in questions]

    def _answer(self, question: Any) -> Any:
        if question.ref[1] == ROOT:
            return [("office", "/root")]
        widget = self._objects[question.ref[1]]
        match question.method:
            case "Get":
                what = question.arguments[1]
                return {"Name": widget.name, "ChildCount": len(widget.children)}.get(what, "")
            case "GetRoleName":
                return widget.role
            case "GetAttributes":
                return {"toolkit": "gtk"} if widget.gtk else {}
            case "GetInterfaces":
                return ["org.a11y.atspi.Component"]
            case "GetState":
                return [SHOWN & 0xFFFFFFFF, SHOWN >> 32]
            case "GetChildren":
                return self._paths(widget)
            case "GetExtents":
                x, y, width, height = widget.box
                moved = next(self._moves, 0) if widget is self._root else 0
                return x, y + moved, width, height
            case "GetChildAtIndex":
                return None
        raise AssertionError(question)


Read = Callable[..., dict[str, Node]]


@pytest.fixture
def read(driver: Callable[[str], types.ModuleType]) -> Read:
    """Returns what a reader finds: nodes by name, or by role."""

    def nodes_of(office: Office, *, window: Window = WINDOW, without: str = "") -> dict[str, Node]:
        corrections = frozenset(CORRECTIONS) - {without}
        reader = driver("tree").Reader(office, corrections)
        found = reader.read(lambda: ([window], window.number))
        return {node.name or node.role: node for node in found}

    return nodes_of


@pytest.mark.parametrize("believed", [MENU_BAR, 0])
def test_elements_of_tool_bars_are_where_they_are_drawn(read: Read, believed: int) -> None:
    """Whether the mouse has been over the window, which is when the office corrects positions."""
    nodes = read(Office(believed))
    assert nodes["root-pane"].box == (0, 44, 1920, 1036)
    assert nodes["Save"].box == (92, 46, 44, 35)
    assert nodes["Insert"].box == (128, 19, 53, 25)
    assert nodes["formula line"].box == (267, 133, 30, 16)
    assert nodes["warning"].box == (151, 94, 16, 16)


def test_as_published_positions_are_those_that_the_office_reports(read: Read) -> None:
    nodes = read(Office(MENU_BAR), without="positions")
    assert nodes["Save"].box == (92, 46 - MENU_BAR, 44, 35)
    assert nodes["on another page"].box == (NOWHERE, NOWHERE, 19, 107)


def test_elements_off_the_screen_have_no_position(read: Read) -> None:
    node = read(Office(0))["on another page"]
    assert node.box is None
    assert "showing" not in node.states


def test_positions_that_do_not_fit_the_window_are_left_out(read: Read) -> None:
    """The window has just moved, and the office has not noticed."""
    elsewhere = Window(WINDOW.number, WINDOW.title, 10, 49, WINDOW.width, WINDOW.height)
    nodes = read(Office(0), window=elsewhere)
    assert nodes["Save"].box is None
    assert nodes["root-pane"].box is None
    assert nodes["Insert"].box == (128, 19, 53, 25)
    assert nodes["formula line"].box == (267, 133, 30, 16)


def test_a_tree_that_was_read_while_the_window_moved_is_read_again(read: Read) -> None:
    """If a window moves while the tree is read, nothing of that reading is kept."""
    asked: list[int] = []

    def moves() -> Iterator[int]:
        for moved in (-MENU_BAR, 0, 0, 0):
            asked.append(moved)
            yield moved

    nodes = read(Office(0, moves()))
    assert asked == [-MENU_BAR, 0, 0, 0]  # at the beginning and at the end of two readings
    assert nodes["Save"].box == (92, 46, 44, 35)


# -- an office that was taken over ----------------------------------------------------------------

FAR = 2**31 - 1
HOSTILE: dict[str, tuple[Any, ...]] = {
    "s": ("", "table", "root-pane", "document-spreadsheet", "menu", "A1", "x" * 100_000, "\ud800"),
    "i": (0, -1, 5_000, FAR, -FAR),
    "d": (0.0, float("nan"), float("inf")),
    "au": ([], [0], [FAR, FAR], [SHOWN & 0xFFFFFFFF, SHOWN >> 32], [1] * 10),
    "as": ([], ["Text", "Value", "Image"], ["org.a11y.atspi.Component"] * 3),
    "a{ss}": ({}, {"toolkit": "gtk"}),
    "(so)": (("office", "/1"), ("office", "/nowhere"), ("", "")),
    "a(so)": ([], [("office", "/root")], [("office", "/2")] * 2_000),
    "(iiii)": ((0, 0, 0, 0), (-FAR, FAR, FAR, FAR), (FAR, FAR, -5, -5), (0, 0, FAR, FAR)),
}
"""Answers of the right type, by type."""


class TakenOver(Office):
    """Gives arbitrary answers, and counts the queries."""

    def __init__(self, chance: random.Random) -> None:
        super().__init__(MENU_BAR)
        self._chance = chance
        self._share = chance.choice([0.02, 0.2, 1.0])
        self.asked = 0

    def _answer(self, question: Any) -> Any:
        self.asked += 1
        if self._chance.random() >= self._share:
            try:
                return super()._answer(question)
            except (KeyError, AssertionError):
                return None
        return self._chance.choice(HOSTILE[question.answer_type])


@pytest.mark.parametrize("seed", range(12))
def test_whatever_an_office_answers_a_tree_is_read(
    seed: int, driver: Callable[[str], types.ModuleType], monkeypatch: pytest.MonkeyPatch
) -> None:
    tree = driver("tree")
    monkeypatch.setattr(tree, "MAX_NODES", 300)
    monkeypatch.setattr(driver("cells"), "MAX_CELLS", 200)
    office = TakenOver(random.Random(seed))
    nodes = tree.Reader(office, frozenset(CORRECTIONS)).read(lambda: ([WINDOW], WINDOW.number))
    assert nodes[0].role == "desktop-frame"
    assert len(nodes) <= 300 + 10 * 200  # a sheet for each document that it claims to have
    assert all(len(node.name) + len(node.text) + len(node.role) <= 10_000 for node in nodes)
    assert office.asked < 1_000_000


@dataclass(frozen=True)
class Variant:
    """Returns a value as the bus sends it, with its type."""

    kind: str
    value: Any

    def n_children(self) -> int:
        return len(self.value)

    def get_child_value(self, number: int) -> Variant:
        child: Variant = self.value[number]
        return child

    def get_type_string(self) -> str:
        return self.kind

    def get_variant(self) -> Variant:
        inner: Variant = self.value
        return inner

    def get_string(self) -> str:
        return str(self.value)

    def unpack(self) -> Any:
        return self.value


@pytest.mark.parametrize(
    ("method", "answer", "value"),
    [
        ("GetExtents", Variant("(iiii)", (1, 2, 3, 4)), (1, 2, 3, 4)),
        ("GetExtents", Variant("s", "here"), None),
        ("GetExtents", Variant("(iii)", (1, 2, 3)), None),
        ("GetRoleName", Variant("s", "menu"), "menu"),
        ("GetRoleName", Variant("i", 5), None),
        ("GetState", Variant("s", "showing"), None),
        ("GetChildren", Variant("as", ["/1"]), None),
    ],
)
def test_an_answer_of_another_type_is_ignored(
    method: str, answer: Variant, value: Any, driver: Callable[[str], types.ModuleType]
) -> None:
    bus = driver("bus")
    expected = bus.Question(("office", "/1"), "Component", method).answer_type
    assert bus._value(Variant("()", (answer,)), expected) == value
    assert bus._value(Variant("()", ()), expected) is None
    name = bus.Question.about(("office", "/1"), "Accessible", "Name").answer_type
    assert bus._value(Variant("()", (Variant("v", Variant("s", "Book")),)), name) == "Book"
    assert bus._value(Variant("()", (Variant("v", Variant("d", 1.0)),)), name) is None
