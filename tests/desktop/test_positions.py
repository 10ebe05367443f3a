"""Elements are where the tree says, before and after the mouse has been over a window."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Iterator, Sequence

import pytest
from openpyxl import load_workbook

from judge.desktop.contract import Action, DesktopOptions, DesktopTask, Element, WindowBounds
from judge.desktop.sandboxed import SandboxDesktop, SandboxDesktopHost
from tests.desktop.conftest import Shared
from tests.desktop.workbooks import PATH, crowded, task

pytestmark = [pytest.mark.desktop, pytest.mark.bubblewrap, pytest.mark.slow]

# Small screens have fewer cells to read before and after each action.
WHOLE = DesktopOptions(width=1024, height=600)
PLACED = DesktopOptions(width=1280, height=720, window=WindowBounds(240, 140, 1000, 560), clutter=1)


def to_the_left() -> bytes:
    """A sheet that runs from right to left."""
    book = load_workbook(io.BytesIO(crowded()))
    book.worksheets[0].sheet_view.rightToLeft = True
    data = io.BytesIO()
    book.save(data)
    return data.getvalue()


def elements_of(desktop: SandboxDesktop, *actions: str) -> tuple[Element, ...]:
    for code in actions:
        assert desktop.perform(Action(code=code)).error == ""
    elements = desktop.observe(screenshot=False).elements
    assert elements is not None
    return elements


def places(elements: Sequence[Element]) -> list[tuple[str, str, object]]:
    return [(each.role, each.name, (each.x, each.y, each.width, each.height)) for each in elements]


def above(elements: Sequence[Element], element: Element, role: str) -> Element:
    """Returns the nearest element of a role that contains another one."""
    while element.role != role:
        assert element.parent is not None
        element = elements[element.parent]
    return element


def cursor_of(elements: Sequence[Element]) -> str:
    return next(each.text for each in elements if each.role == "text" and each.text)


def formula_line(elements: Sequence[Element]) -> Element:
    """The text in the formula line of the uppermost window."""
    return next(
        each
        for each in elements
        if each.role == "paragraph" and above(elements, each, "panel").name == "Input line"
    )


@pytest.mark.parametrize(
    ("data", "options"),
    [(crowded(), WHOLE), (to_the_left(), WHOLE), (crowded(), PLACED)],
    ids=["whole-screen", "right-to-left", "placed"],
)
def test_marks_in_tool_bars_are_hit_before_any_mouse_action(
    host: SandboxDesktopHost, data: bytes, options: DesktopOptions
) -> None:
    with host.open(DesktopTask({PATH: data}, PATH, PATH), options) as desktop:
        elements = elements_of(desktop, "pyautogui.press('down')")
        assert (cursor_of(elements), formula_line(elements).text) == ("A2", "2")
        warning = next(each for each in elements if each.name == "dialog-warning")
        field = above(elements, warning, "text")
        assert warning.y is not None
        assert field.y is not None
        assert field.y <= warning.y <= field.y + (field.height or 0) - (warning.height or 0)
        spot = formula_line(elements).centre
        elements = elements_of(
            desktop, f"pyautogui.click{spot}\npyautogui.press('end')\npyautogui.write('7\\n')"
        )
        cell = next(each for each in elements if each.role == "table-cell" and each.name == "A2")
        assert cell.text == "27"
        before = cursor_of(elements)
        assert cursor_of(elements_of(desktop, f"pyautogui.click{warning.centre}")) == before


@pytest.fixture(scope="module")
def shared(host: SandboxDesktopHost) -> Iterator[Shared]:
    """A desktop whose mouse has not been moved before the first test that takes it."""
    with contextlib.closing(Shared(lambda: host.open(task(), WHOLE))) as desktops:
        yield desktops


def test_positions_are_the_same_before_and_after_the_mouse_was_there(shared: Shared) -> None:
    """For windows that the keyboard opened or changed, so the mouse has not been over them."""
    over = "pyautogui.moveTo(720, 420)\npyautogui.moveTo(725, 425)"
    desktop = shared.running()
    for keys in (
        "pyautogui.press('down')",
        "pyautogui.hotkey('ctrl', 'pagedown')",  # another sheet
        "pyautogui.hotkey('ctrl', 'pageup')",
        "pyautogui.hotkey('ctrl', 'shift', 'j')",  # full screen, with a tool bar that floats
        "pyautogui.hotkey('ctrl', 'shift', 'j')",  # the window, which is no longer the same
        "pyautogui.hotkey('ctrl', 'n')",
        "pyautogui.hotkey('ctrl', 'w')",
    ):
        before = elements_of(desktop, keys)
        assert any(each.x is not None for each in before if each.role == "root-pane"), keys
        assert any(each.x is not None for each in before if each.role == "table-cell"), keys
        after = elements_of(desktop, over)
        assert places(after) == places(before), keys


def test_elements_that_a_dialog_does_not_show_have_no_position(shared: Shared) -> None:
    elements = elements_of(shared.running(), "pyautogui.hotkey('ctrl', '1')")
    assert any(each.name == "Format Cells" for each in elements)
    placed = [each for each in elements if each.x is not None and each.y is not None]
    assert [each for each in placed if min(each.x or 0, each.y or 0) < 0] == []
