"""Without the corrections, published desktops have these faults; each correction fixes one."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Iterator

import pytest

from judge.desktop.contract import CORRECTIONS, Action, DesktopOptions, Element
from judge.desktop.sandboxed import SandboxDesktop, SandboxDesktopHost
from tests.desktop.conftest import Shared
from tests.desktop.watching import (
    HOLDING,
    cells_of_frames,
    process_named,
    until,
    windows_of,
    within,
)
from tests.desktop.workbooks import task

pytestmark = [pytest.mark.desktop, pytest.mark.bubblewrap, pytest.mark.slow]


@pytest.fixture(scope="module")
def shared(host: SandboxDesktopHost) -> Iterator[Shared]:
    options = DesktopOptions(width=1280, height=720, as_published=frozenset(CORRECTIONS))
    with contextlib.closing(Shared(lambda: host.open(task(), options))) as desktops:
        yield desktops


@pytest.fixture
def desktop(shared: Shared) -> SandboxDesktop:
    return shared.running()


@pytest.fixture
def elements(desktop: SandboxDesktop) -> tuple[Element, ...]:
    found = desktop.observe(screenshot=False).elements
    assert found is not None
    return found


def test_titles_contain_the_dash_of_the_office(desktop: SandboxDesktop) -> None:
    assert any(" — LibreOffice" in title for title in desktop.observe(tree=False).windows)


def test_closed_menus_are_read_and_there_is_a_second_menu_bar(
    elements: tuple[Element, ...],
) -> None:
    assert any(each.name == "Chart..." for each in elements)
    assert [each.role for each in elements].count("menu-bar") > 1


def test_hidden_rows_end_the_cells(elements: tuple[Element, ...]) -> None:
    cells = {each.name for each in elements if each.role == "table-cell"}
    assert "B2" in cells
    assert "B20" not in cells


def test_windows_are_in_the_order_of_their_start_including_hidden_elements(
    desktop: SandboxDesktop,
) -> None:
    desktop.perform(Action(code="pyautogui.hotkey('ctrl', 'n')"))
    until(lambda: windows_of(desktop)[0].startswith("Untitled"))
    elements = desktop.observe(screenshot=False).elements or ()
    (first, earlier), (_, later) = cells_of_frames(elements).items()
    assert first.startswith("Book")
    assert within(later, earlier)
    desktop.perform(Action(code="pyautogui.hotkey('ctrl', 'w')"))
    until(lambda: len(windows_of(desktop)) == 1)


def test_cells_are_not_where_the_tree_says_and_text_is_typed_wrongly(
    desktop: SandboxDesktop, elements: tuple[Element, ...]
) -> None:
    cell = next(each for each in elements if each.role == "table-cell" and each.name == "B2")
    assert cell.centre is not None
    typing = "pyautogui.write('a<bé')\npyautogui.press('enter')"
    desktop.perform(Action(code="pyautogui.press('esc')\npyautogui.press('esc')"))
    desktop.perform(Action(code=f"pyautogui.click{cell.centre}\n{typing}"))
    found = desktop.observe(screenshot=False).elements or ()
    texts = {each.name: each.text for each in found if each.role == "table-cell"}
    assert texts["B2"] == "4"
    assert "a>b" in texts.values()


def test_a_key_that_is_held_repeats(desktop: SandboxDesktop) -> None:
    desktop.perform(Action(code=HOLDING))

    def texts() -> list[str]:
        found = desktop.observe(screenshot=False).elements or ()
        return [each.text for each in found if each.role == "table-cell"]

    until(lambda: any(text.startswith("qq") for text in texts()))


def test_a_button_pressed_and_released_at_once_is_missed(
    desktop: SandboxDesktop, elements: tuple[Element, ...]
) -> None:
    add = next(each for each in elements if each.name == "Add" and each.role.endswith("button"))
    assert add.centre is not None
    x, y = add.centre
    for _ in range(3):  # 25 pixels lower is where it is
        desktop.perform(Action(code=f"pyautogui.click({x}, {y + 25})"))
    found = desktop.observe(screenshot=False).elements or ()
    assert not any(each.name == "Sheet3" for each in found if each.role == "page-tab")


def test_an_action_ends_before_a_busy_office_has_performed_it(desktop: SandboxDesktop) -> None:
    before = desktop.frame().digest
    office = process_named("soffice.bin")
    os.kill(office, signal.SIGSTOP)
    try:
        outcome = desktop.perform(Action(code="pyautogui.write('5')\npyautogui.press('enter')"))
        assert outcome.settled
        assert desktop.frame().digest == before
    finally:
        os.kill(office, signal.SIGCONT)
    until(lambda: desktop.frame().digest != before)


def test_the_question_about_the_format_when_saving_is_answered(desktop: SandboxDesktop) -> None:
    desktop.perform(Action(code="pyautogui.hotkey('ctrl', 's')"))
    until(lambda: not windows_of(desktop)[0].startswith("Book"))
    assert not desktop.collect().changed
    assert desktop.save().changed
    until(lambda: windows_of(desktop)[0].startswith("Book"))
