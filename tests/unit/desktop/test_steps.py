"""Step lists: their syntax, and the actions that they become."""

from __future__ import annotations

from pathlib import Path

import pytest

from judge.desktop.contract import Action, Element, Signal
from judge.desktop.steps import Click, Target, action_of, find, read_steps, steps_of
from judge.errors import UsageError

IN_USE = frozenset({"enabled", "showing"})

TREE = (
    Element("frame", "Sales.xlsx - LibreOffice Calc", x=0, y=0, width=1920, height=1080),
    Element("push-button", "Add", x=10, y=1000, width=20, height=20, states=IN_USE),
    Element("push-button", "Merge Cells", x=300, y=90, width=20, height=20),
    Element("menu", "Insert", x=100, y=0, width=60, height=25),
    Element("menu-item", "Chart...", x=100, y=25, width=200, height=25, states=IN_USE),
    Element("table-cell", "B1", text="Jan", x=100, y=200, width=80, height=18),
    Element("table-cell", "G1", text="Jun", x=500, y=200, width=80, height=18),
    Element("label", "Row Fields:", x=700, y=300, width=100, height=20),
    Element("label", "Far away"),
    Element("button", "OK", x=0, y=0, width=10, height=10, states=IN_USE),
    Element("button", "OK", x=100, y=100, width=10, height=10, states=IN_USE),
)


def code_of(record: object, tree: tuple[Element, ...] = TREE) -> str:
    (step,) = steps_of([record], "list")
    code = action_of(step, tree).code
    assert code is not None
    first, *lines = code.split("\n")
    assert first == "import pyautogui"
    compile(code, "step", "exec")
    return "\n".join(lines)


def test_a_list_is_read_from_yaml_and_from_json(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text("- click: {role: button, name: Add}\n- keys: ctrl+s\n")
    (tmp_path / "a.json").write_text(
        '[{"click": {"role": "button", "name": "Add"}}, {"keys": ["ctrl", "s"]}]'
    )
    steps = read_steps(tmp_path / "a.yaml")
    assert steps == read_steps(tmp_path / "a.json")
    assert steps[0] == Click(Target("button", "Add"))
    assert [str(each) for each in steps] == ["click on button 'Add'", "keys ctrl+s"]


@pytest.mark.parametrize(
    ("record", "code"),
    [
        (
            {"click": {"role": "menu", "name": "Insert"}},
            "pyautogui.click(130, 12, clicks=1, button='left')",
        ),
        (
            {"click": {"cell": "B1", "times": 2, "button": "right", "offset": [5, -3]}},
            "pyautogui.click(145, 206, clicks=2, button='right')",
        ),
        (
            {"click": {"cell": "G1", "hold": "ctrl"}},
            (
                "pyautogui.keyDown('ctrl')\npyautogui.click(540, 209, clicks=1, button='left')\n"
                "pyautogui.keyUp('ctrl')"
            ),
        ),
        ({"type": "=IF(A1<2,\"a\",'b')\n"}, "pyautogui.write('=IF(A1<2,\"a\",\\'b\\')\\n')"),
        ({"keys": "alt+enter"}, "pyautogui.hotkey('alt', 'enter')"),
        ({"keys": ["ctrl", "+"]}, "pyautogui.hotkey('ctrl', '+')"),
        (
            {"goto": "A1:C1"},
            (
                "pyautogui.hotkey('ctrl', 'shift', 't')\npyautogui.sleep(1.0)\n"
                "pyautogui.write('A1:C1\\n')"
            ),
        ),
        (
            {
                "drag": {
                    "from": {"cell": "B1"},
                    "to": {"role": "label", "name": "Row Fields:", "offset": [0, 60]},
                    "seconds": 1,
                }
            },
            (
                "pyautogui.moveTo(140, 209)\npyautogui.sleep(0.2)\n"
                "pyautogui.dragTo(750, 370, duration=1.0, button='left')"
            ),
        ),
        ({"scroll": {"cell": "B1", "by": -3}}, "pyautogui.scroll(-3, 140, 209)"),
    ],
)
def test_a_step_becomes_the_action_that_it_says(record: object, code: str) -> None:
    assert code_of(record) == code


def test_signals_and_waiting_are_not_code() -> None:
    steps = steps_of([{"say": "FAIL"}, {"wait": {"cell": "B1"}}], "list")
    assert [action_of(each, TREE) for each in steps] == [
        Action(signal=Signal.FAIL),
        Action(signal=Signal.WAIT),
    ]


def test_a_role_is_found_by_its_ending_if_no_other_has_it() -> None:
    assert find(Target("button", "Add"), TREE[:9]) == (20, 1010)
    with pytest.raises(LookupError, match="there is none"):
        find(Target("button", "Add"), TREE)  # here the role is `button` itself


def test_the_number_chooses_one_of_several() -> None:
    assert find(Target("button", "OK"), TREE) == (5, 5)
    assert find(Target("button", "OK", number=-1), TREE) == (105, 105)
    with pytest.raises(LookupError, match="there are 2"):
        find(Target("button", "OK", number=2), TREE)


def test_an_element_is_found_by_its_text() -> None:
    assert find(Target("table-cell", text="Jun"), TREE) == (540, 209)


def test_disabled_elements_and_those_without_a_position_are_not_found() -> None:
    with pytest.raises(LookupError, match="push-button 'Merge Cells' exists, but is disabled"):
        find(Target("push-button", "Merge Cells"), TREE)
    with pytest.raises(LookupError, match="there are 0 on the screen"):
        find(Target("label", "Far away"), TREE)


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ({"click": {}}, "must be a list"),
        ([], "must be a list"),
        (["FAIL"], "step 1: must be an object with one of click"),
        ([{"say": "DONE"}, {"press": "a"}], "step 2: 'press' is not a kind of step"),
        ([{"click": {"name": "OK"}}], "either 'cell' or 'role'"),
        ([{"click": {"cell": "A1", "role": "button"}}], "either 'cell' or 'role'"),
        ([{"click": {"cell": "A1", "name": "A1"}}], "'cell' already gives the name"),
        ([{"click": {"cell": "A1", "at": 3}}], "field 'at' is unknown"),
        ([{"click": {"cell": "A1", "times": 4}}], "must be 1, 2 or 3, not 4"),
        ([{"click": {"cell": "A1", "times": True}}], "'times' must be a whole number"),
        ([{"click": {"cell": "A1", "button": "x1"}}], "one of left, middle, right"),
        ([{"click": {"cell": "A1", "offset": [1]}}], "two whole numbers"),
        ([{"type": 12}], "'type' must be text, not 12"),
        ([{"keys": []}], "'keys' is empty"),
        ([{"keys": "ctrl++"}], "must be names"),
        ([{"keys": {"ctrl": "s"}}], "must be names"),
        ([{"drag": {"from": {"cell": "A1"}}}], "'to' must be an object"),
        ([{"drag": {"from": {"cell": "A1"}, "to": {"cell": "A2"}, "seconds": 11}}], "0 to 10"),
        ([{"scroll": {"cell": "A1"}}], "'by' must be a whole number"),
        ([{"scroll": {"cell": "A1", "by": 0}}], "not 0"),
        ([{"say": "WAIT"}], "'say' must be DONE or FAIL"),
        ([{"say": ["DONE"]}], "'say' must be DONE or FAIL"),
    ],
)
def test_what_is_not_a_list_of_steps_is_refused(document: object, message: str) -> None:
    with pytest.raises(UsageError, match=message) as caught:
        steps_of(document, "steps.yaml")
    assert caught.value.message.startswith("steps.yaml")
