"""A single desktop: what it shows, what is done in it, what is saved, and how it ends."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from collections.abc import Iterator

import pytest

from judge.desktop.contract import (
    Action,
    ActionOutcome,
    DesktopOptions,
    Element,
    InputEvent,
    Signal,
)
from judge.desktop.sandboxed import SandboxDesktop, SandboxDesktopHost
from judge.errors import SandboxError
from tests.desktop.conftest import Shared
from tests.desktop.watching import (
    HOLDING,
    cells_of_frames,
    process_named,
    until,
    windows_of,
    within,
)
from tests.desktop.workbooks import PATH, column_of, task

pytestmark = [pytest.mark.desktop, pytest.mark.bubblewrap, pytest.mark.slow]

# A small screen has fewer cells to read before and after each action.
OPTIONS = DesktopOptions(width=1280, height=720, action_s=10.0)
BUSY_S = 5.0
TEXTS = ["a<b>c", "xéü中文€", '=IF(B2<F2,"<",">=")']


@pytest.fixture(scope="module")
def shared(host: SandboxDesktopHost) -> Iterator[Shared]:
    with contextlib.closing(Shared(lambda: host.open(task(), OPTIONS))) as desktops:
        yield desktops


@pytest.fixture
def desktop(shared: Shared) -> SandboxDesktop:
    return shared.running()


def elements_of(desktop: SandboxDesktop) -> tuple[Element, ...]:
    elements = desktop.observe(screenshot=False).elements
    assert elements is not None
    return elements


def cell_in(elements: tuple[Element, ...], name: str) -> Element:
    return next(each for each in elements if each.role == "table-cell" and each.name == name)


def run(desktop: SandboxDesktop, code: str) -> ActionOutcome:
    return desktop.perform(Action(code=code))


def cursor_of(elements: tuple[Element, ...]) -> str:
    """Returns the address in the name box."""
    texts = (each.text for each in elements if each.role == "text")
    return next(text for text in texts if text)


def test_it_starts_without_dialogs_and_reports_its_versions(desktop: SandboxDesktop) -> None:
    shown = desktop.observe()
    assert shown.windows == ("Book.xlsx - LibreOffice Calc",)
    assert shown.screenshot is not None
    assert shown.screenshot.startswith(b"\x89PNG")
    assert desktop.info.office.split(".")[0].isdigit()
    assert desktop.memory_bytes() < 600e6


def test_cells_are_where_the_tree_says(desktop: SandboxDesktop) -> None:
    elements = elements_of(desktop)
    for name in ("F12", "B2", "D15"):
        cell = cell_in(elements, name)
        assert cell.centre is not None
        x, y = cell.centre
        desktop.perform(Action(call={"action_type": "CLICK", "x": x, "y": y}))
        elements = elements_of(desktop)
        assert cursor_of(elements) == name
        assert "focused" in cell_in(elements, name).states


def test_the_settled_tree_matches_another_reading(desktop: SandboxDesktop) -> None:
    """The tree shown after an action is the one that another reading finds."""
    cell = cell_in(elements_of(desktop), "F12")
    run(desktop, f"pyautogui.click{cell.centre}")
    settled, again = desktop.observe(), desktop.observe()
    assert settled.elements is not None
    assert cursor_of(settled.elements) == "F12"
    assert again.elements == settled.elements
    run(desktop, "pass")
    desktop.feed([InputEvent(kind, 0, 0, "down") for kind in ("key-press", "key-release")])
    until(lambda: cursor_of(elements_of(desktop)) == "F13")


def test_hidden_rows_do_not_end_the_tree(desktop: SandboxDesktop) -> None:
    cells = {each.name: each.text for each in elements_of(desktop) if each.role == "table-cell"}
    assert cells["B20"] == "40"
    assert "B3" not in cells
    assert "C20" not in cells


def test_closed_menus_are_left_out_and_tabs_are_included(desktop: SandboxDesktop) -> None:
    elements = elements_of(desktop)
    assert [each.name for each in elements if each.role == "menu"].count("Insert") == 1
    assert not any(each.name == "Chart..." for each in elements)
    assert {"Sheet", "Second"} <= {each.name for each in elements if each.role == "page-tab"}
    menu = next(each for each in elements if each.role == "menu" and each.name == "Insert")
    assert menu.centre is not None
    run(desktop, f"pyautogui.click{menu.centre}")
    assert any(each.name == "Chart..." for each in elements_of(desktop))
    run(desktop, "pyautogui.press(['esc', 'esc'])")


def test_icons_of_a_dialog_are_within_it(desktop: SandboxDesktop) -> None:
    run(desktop, "pyautogui.hotkey('ctrl', 'home')")
    for role, name in (("menu", "Insert"), ("menu-item", "Chart...")):
        item = next(each for each in elements_of(desktop) if (each.role, each.name) == (role, name))
        assert item.centre is not None
        run(desktop, f"pyautogui.click{item.centre}")
    elements = elements_of(desktop)
    dialog = next(each for each in elements if each.name == "Chart Type")
    icon = next(each for each in elements if each.name == "Stacked")
    assert None not in {dialog.x, dialog.y, icon.x, icon.y}
    assert (dialog.x or 0) < (icon.x or 0)
    assert (dialog.y or 0) < (icon.y or 0)
    cancel = next(each for each in elements if each.name == "Cancel" and each.x is not None)
    run(desktop, f"pyautogui.click{cancel.centre}\npyautogui.press('esc')")


def test_text_is_typed_unchanged_and_saved(desktop: SandboxDesktop) -> None:
    cell = cell_in(elements_of(desktop), "K12")
    assert cell.centre is not None
    lines = [f"pyautogui.write({text!r})\npyautogui.press('enter')" for text in TEXTS]
    outcome = run(desktop, "\n".join([f"pyautogui.click{cell.centre}", *lines]))
    assert outcome.error == ""
    # A busy machine may not read two trees in the time that there is for that.
    assert outcome.settled or any(run(desktop, "pass").settled for _ in range(20))
    typed = [each.detail for each in outcome.events if each.kind == "type"]
    assert typed == TEXTS
    assert outcome.events[0] == InputEvent("move", *cell.centre)
    assert outcome.events[1] == InputEvent("press", *cell.centre, "left")
    saved = desktop.save()
    assert saved.changed
    assert saved.data is not None
    assert column_of(saved.data, "K", 12, 14) == TEXTS


def test_a_key_that_is_held_does_not_repeat(desktop: SandboxDesktop) -> None:
    cell = cell_in(elements_of(desktop), "K15")
    assert cell.centre is not None
    assert run(desktop, f"pyautogui.click{cell.centre}\n{HOLDING}").error == ""
    until(lambda: cell_in(elements_of(desktop), "K15").text != "")
    assert cell_in(elements_of(desktop), "K15").text == "q"


def test_saving_asks_nothing(desktop: SandboxDesktop) -> None:
    before = desktop.collect().data
    run(desktop, "pyautogui.write('5\\n')\npyautogui.hotkey('ctrl', 's')")
    until(lambda: desktop.collect().data != before)
    assert len(windows_of(desktop)) == 1


@contextlib.contextmanager
def busy_office() -> Iterator[threading.Event]:
    """Stops the office for a while; the event is set when it continues."""
    office, went_on = process_named("soffice.bin"), threading.Event()

    def go_on() -> None:
        went_on.set()
        os.kill(office, signal.SIGCONT)

    os.kill(office, signal.SIGSTOP)
    timer = threading.Timer(BUSY_S, go_on)
    timer.start()
    try:
        yield went_on
    finally:
        timer.join()


def test_an_action_ends_when_a_busy_office_has_performed_it(desktop: SandboxDesktop) -> None:
    with busy_office() as went_on:
        run(desktop, "pyautogui.write('8\\n')")
        assert went_on.is_set()


def test_saving_waits_for_a_busy_office(desktop: SandboxDesktop) -> None:
    before = desktop.collect().data
    run(desktop, "pyautogui.write('9\\n')")
    with busy_office():
        assert desktop.save().data != before


def test_the_uppermost_window_comes_first_and_hidden_elements_have_no_position(
    desktop: SandboxDesktop,
) -> None:
    run(desktop, "pyautogui.hotkey('ctrl', 'n')")
    until(lambda: len(windows_of(desktop)) > 1)
    (upper, above), (lower, below) = cells_of_frames(elements_of(desktop)).items()
    assert upper.startswith("Untitled")
    assert lower.startswith("Book")
    assert above
    assert within(above, below) == []
    run(desktop, "pyautogui.hotkey('ctrl', 'w')")
    until(lambda: len(windows_of(desktop)) == 1)


def test_the_output_and_the_traceback_of_code_are_returned(desktop: SandboxDesktop) -> None:
    outcome = run(desktop, "x = 1\nprint('before')\nx / 0")
    assert outcome.printed == "before\n"
    assert outcome.error.startswith("Traceback")
    assert "line 3, in <module>\n    x / 0" in outcome.error
    assert run(desktop, "import os\nos._exit(0)").error.startswith("the action's process ended")


def test_an_action_that_takes_too_long_is_ended_with_its_children(
    desktop: SandboxDesktop,
) -> None:
    outcome = run(
        desktop,
        "import subprocess, time\n"
        "subprocess.Popen(['sleep', '999'], start_new_session=True)\n"
        "print('started', flush=True)\n"
        "time.sleep(999)",
    )
    assert outcome.printed == "started\n"
    assert "longer than 10 s" in outcome.error
    names = "[open(f'/proc/{p}/comm').read() for p in os.listdir('/proc') if p.isdigit()]"
    assert "sleep" not in run(desktop, f"import os\nprint({names})").printed


def test_actions_reach_only_their_own_process(desktop: SandboxDesktop) -> None:
    outcome = run(
        desktop,
        """
import os
for process in [-1, *map(int, filter(str.isdigit, os.listdir('/proc')))]:
    try:
        threads = os.listdir(f'/proc/{process}/task') if process > 0 else [process]
    except FileNotFoundError:  # it has ended since
        continue
    for thread in threads:
        if process != os.getpid():
            try:
                os.kill(int(thread), 9)
                print('killed', process)
            except (PermissionError, ProcessLookupError):
                pass
try:
    print('open', os.listdir('/proc/1/fd'))
except PermissionError:
    pass
print('descriptors', sorted(os.listdir('/proc/self/fd'))[:3])
""",
    )
    assert outcome.error == ""
    assert outcome.printed.startswith("descriptors")


def test_gui_only_permits_nothing_but_mouse_and_keyboard(desktop: SandboxDesktop) -> None:
    gui_only = SandboxDesktop(desktop._link, desktop.info, DesktopOptions(gui_only=True))
    refused = gui_only.perform(Action(code="import os\nos.remove('/home/user/Book.xlsx')"))
    assert refused.refused
    assert "import os" in refused.error
    cell = cell_in(elements_of(desktop), "F15")
    assert cell.centre is not None
    done = gui_only.perform(
        Action(code=f"import pyautogui\nx, y = {cell.centre}\npyautogui.click(x, y)\nprint(x)")
    )
    assert (done.error, done.printed) == ("", f"{cell.centre[0]}\n")
    assert cursor_of(elements_of(desktop)) == "F15"


def test_what_is_not_an_action_is_refused(desktop: SandboxDesktop) -> None:
    outcome = desktop.perform(Action(call={"action_type": "CLICK", "x": "a", "y": 1}))
    assert outcome.refused
    assert "needs numbers" in outcome.error
    said = desktop.perform(Action(signal=Signal.DONE))
    assert (said.error, said.refused, said.events) == ("", False, ())


def test_a_person_works_live(desktop: SandboxDesktop) -> None:
    before = desktop.frame()
    assert before.png is not None
    cell = cell_in(elements_of(desktop), "K17")
    assert cell.centre is not None
    x, y = cell.centre
    keys = ["shift", "H", "i"]
    desktop.feed([InputEvent("move", x, y), InputEvent("press", x, y, "left")])
    desktop.feed([InputEvent("release", x, y, "left")])
    until(lambda: cursor_of(elements_of(desktop)) == "K17")
    desktop.feed(
        [
            *(InputEvent("key-press", x, y, key) for key in keys[:2]),
            *(InputEvent("key-release", x, y, key) for key in reversed(keys[:2])),
            InputEvent("key-press", x, y, "i"),
            InputEvent("key-release", x, y, "i"),
            InputEvent("type", x, y, " ü"),
            InputEvent("key-press", x, y, "enter"),
            InputEvent("key-release", x, y, "enter"),
            InputEvent("key-press", x, y, "no such key"),
        ]
    )
    until(lambda: cell_in(elements_of(desktop), "K17").text == "Hi ü")
    after = desktop.frame(before.digest)
    assert after.digest != before.digest
    for _ in range(100):  # a busy office may be drawing still
        seen = desktop.frame(after.digest)
        if seen.png is None:
            break
        after = seen
    assert seen.png is None


def test_marks_are_numbers_of_elements(desktop: SandboxDesktop) -> None:
    shown = desktop.observe(marks=True)
    assert shown.marks is not None
    assert shown.elements is not None
    marked = [shown.elements[number] for number in shown.marks.values()]
    assert list(shown.marks) == list(range(1, len(marked) + 1))
    names = {each.name for each in marked}
    assert {"B20", "Second", "Insert"} <= names
    assert {"Close Document", "Navigator"} <= names  # pictures that have no name of their own
    assert all(each.name for each in marked if each.role.endswith("button"))
    assert "P20" not in names  # an empty cell far from all content


def test_what_is_not_a_file_is_not_collected(desktop: SandboxDesktop) -> None:
    code = f"import os\nos.rename('{PATH}', '{PATH}.old')\nos.symlink('/etc/passwd', '{PATH}')"
    assert run(desktop, code).error == ""
    collected = desktop.collect()
    assert collected.data is None
    assert collected.problem == "it is a link"


def test_a_killed_office_is_the_desktop_s_fault(desktop: SandboxDesktop) -> None:
    os.kill(process_named("soffice.bin"), signal.SIGKILL)
    with pytest.raises(SandboxError, match=r"the desktop broke: office ended by signal 9"):
        observe_often(desktop)
    with pytest.raises(SandboxError, match="closed"):
        desktop.collect()


def observe_often(desktop: SandboxDesktop) -> None:
    """The time until the end of the office is noticed."""
    for _ in range(50):
        desktop.observe(screenshot=False)
