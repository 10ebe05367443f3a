"""Actions are found in replies of every shape; code is taken completely."""

import re

import pytest

from judge.desktop.choices import ActionSpace
from judge.desktop.contract import Action, Signal
from judge.inference.desktop.replies import MAX_ACTIONS, parse_reply, with_marks

CODE, CALLS = ActionSpace.PYAUTOGUI, ActionSpace.COMPUTER_13
WAIT, FAIL, DONE = (Action(signal=each) for each in Signal)


def _click(x: int) -> Action:
    return Action(call={"action_type": "CLICK", "x": x, "y": 2})


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        ("```python\npyautogui.click(1, 2)\n```", [Action(code="pyautogui.click(1, 2)")]),
        ("First:\n```\na()\n```\n2.\n~~~py\nb()\nc()\n~~~", [Action("a()"), Action("b()\nc()")]),
        ("```python\nwrite('=SUM(A1;B1)')\n```", [Action("write('=SUM(A1;B1)')")]),
        ("```python\nfor i in a:\n    b(i); c()\n```", [Action("for i in a:\n    b(i); c()")]),
        ("Now I am sure.\n```DONE```", [DONE]),
        ("DONE", [DONE]),
        ("`WAIT`", [WAIT]),
        ("**FAIL**", [FAIL]),
        ("```\nFAIL\n```", [FAIL]),
        ("```python\na()\nDONE\n```\n```python\nb()\n```", [Action(code="a()"), DONE]),
        ("```text\nDONE\n```", [DONE]),
        ("```python pyautogui.press('a')```", [Action(code="pyautogui.press('a')")]),
        ("```pyautogui.click(tag_1)```", [Action(code="pyautogui.click(tag_1)")]),
        ("```python\nWAIT\n```\n```python\na()\n```", [WAIT, Action(code="a()")]),
        ("<think>```python\nno()\n```</think>```python\nyes()\n```", [Action(code="yes()")]),
        ("```json\n{}\n```\n```python\na()\n```", [Action(code="a()")]),
    ],
)  # fmt: skip
def test_code(reply: str, expected: list[Action]) -> None:
    found = parse_reply(reply, CODE)
    assert list(found.actions) == expected
    assert found.problem == ""


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        ('```json\n{"action_type": "click", "x": 1, "y": 2}\n```', [_click(1)]),
        ('{"action_type": "CLICK", "x": 1, "y": 2}', [_click(1)]),
        ('I click: {"action_type": "CLICK", "x": 1, "y": 2}, {so}.', [_click(1)]),
        (
            '```\n[{"action_type": "CLICK", "x": 1, "y": 2}, {"action_type": "DONE"}]\n```',
            [_click(1), DONE],
        ),
        (
            "\n".join(
                f'```json\n{{"action_type": "CLICK", "x": {x}, "y": 2}}\n```' for x in (1, 3)
            ),
            [_click(1), _click(3)],
        ),
        ("```WAIT```", [WAIT]),
        ('```json\n{"action_type": "FAIL"}\n```', [FAIL]),
    ],
)
def test_calls(reply: str, expected: list[Action]) -> None:
    found = parse_reply(reply, CALLS)
    assert list(found.actions) == expected
    assert found.problem == ""


@pytest.mark.parametrize(
    ("space", "reply", "said"),
    [
        (CODE, "I would click on the cell.", "no fenced block"),
        (CODE, "", "no fenced block"),
        (CODE, "```python\npyautogui.click(1,", "has no end"),
        (CALLS, "```json\n{'action_type': 'CLICK'}\n```", "not JSON"),
        (CALLS, '```json\n{"action": "CLICK"}\n```', "without an action_type"),
        (CALLS, '```json\n{"action_type": "CL', "has no end"),
        (CALLS, "pyautogui.click()", "no JSON object"),
        (CALLS, "{" * 100_000, "no JSON object"),
        (CALLS, "```json\n" + '{"a":' * 5_000 + "\n```", "nested|not JSON"),
    ],
)
def test_a_reply_without_an_action_says_why(space: ActionSpace, reply: str, said: str) -> None:
    found = parse_reply(reply, space)
    assert found.actions == ()
    assert re.search(said, found.problem), found.problem


def test_only_the_complete_actions_of_a_cut_off_reply_are_performed() -> None:
    reply = "```python\na()\n```\n```python\nb("
    assert parse_reply(reply, CODE, is_truncated=True).actions == (Action(code="a()"),)
    assert "cut off" in parse_reply(reply[16:], CODE, is_truncated=True).problem
    many = "```python\na()\n```\n" * 200
    assert len(parse_reply(many, CODE).actions) == MAX_ACTIONS


def test_as_published_every_semicolon_ends_a_line() -> None:
    reply = "```python\npyautogui.write('=SUM(A1; B1)')\nDONE\n```"
    found = parse_reply(reply, CODE, as_published=True)
    assert found.actions == (Action(code="pyautogui.write('=SUM(A1\nB1)')"), DONE)
    assert parse_reply("FAIL", CODE, as_published=True).actions == (FAIL,)


def test_marks_are_names_in_code() -> None:
    action = Action(code="pyautogui.click(tag_2)\npyautogui.dragTo(index_1, tag_2)\nx = tag_9")
    named = with_marks(action, {1: (10, 20), 2: (30, 40)})
    assert named.code == f"tag_2 = (30, 40)\nindex_1 = (10, 20)\n{action.code}"
    assert with_marks(DONE, {1: (1, 1)}) == DONE
    assert with_marks(Action(code="a()"), {1: (1, 1)}) == Action(code="a()")
