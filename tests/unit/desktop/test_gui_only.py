"""Actions with mouse and keyboard alone: what they can do, and attempts to circumvent that."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import pytest

from judge.desktop.driver import gui_only, permitted


class Gui:
    """Records calls; a call of a function that is not permitted would be recorded as well."""

    PAUSE = 0.1

    def __init__(self) -> None:
        self.calls: list[tuple[Any, ...]] = []

    def __getattr__(self, name: str) -> Any:
        def called(*given: Any, **named: Any) -> Any:
            self.calls.append((name, *given, *named.items()))
            return {"position": (30, 40), "size": (1920, 1080), "onScreen": True}.get(name)

        return called

    @contextlib.contextmanager
    def hold(self, *keys: str) -> Iterator[None]:
        self.calls.append(("hold", *keys))
        yield
        self.calls.append(("unhold", *keys))

    @staticmethod
    def linear(part: float) -> float:
        return part


def done(code: str) -> tuple[list[tuple[Any, ...]], list[str]]:
    """Returns what code did, and what it printed."""
    gui, printed = Gui(), list[str]()
    gui_only.run(code, gui, lambda seconds: gui.calls.append(("sleep", seconds)), printed.append)
    return gui.calls, printed


def test_code_as_models_write_it_is_performed() -> None:
    code = """
import pyautogui
import time
pyautogui.FAILSAFE = False
x, y = 100, 200
pyautogui.moveTo(x, y, duration=0.5, tween=pyautogui.linear)
pyautogui.click(x + 10, y, clicks=2, button='left')
time.sleep(0.5)
for row, name in enumerate(["Total", "a;b"], start=1):
    pyautogui.write(f"{name.upper()} {row:03d}\\n", interval=0.02)
pyautogui.hotkey('ctrl', 's')
with pyautogui.hold('shift'):
    pyautogui.press(['left', 'left'])
print("done", x)
"""
    calls, printed = done(code)
    assert calls[0][:3] == ("moveTo", 100, 200)
    assert ("click", 110, 200, ("clicks", 2), ("button", "left")) in calls
    assert ("sleep", 0.5) in calls
    assert ("write", "TOTAL 001\n", ("interval", 0.02)) in calls
    assert ("write", "A;B 002\n", ("interval", 0.02)) in calls
    assert calls[-3:] == [("hold", "shift"), ("press", ["left", "left"]), ("unhold", "shift")]
    assert printed == ["done 100"]


def test_the_language_computes() -> None:
    calls, printed = done("""
from time import sleep
cells = [(10 * i, i ** 2) for i in range(5) if i % 2 == 0]
total = 0
while True:
    total += len(cells)
    if total > 8:
        break
here = pyautogui.position()
names = {"a": 1}
names["b"] = cells[-1][0] if total else 0
print(total, here.x, max(names.values()), "-".join(["p", "q"]), cells[1:])
sleep(1)
pyautogui.click(*cells[1])
""")
    assert printed == ["9 30 40 p-q [(20, 4), (40, 16)]"]
    assert calls == [("position",), ("sleep", 1.0), ("click", 20, 4)]


TRIES = {
    "import": "import os\nos.system('id')",
    "import by name": "__import__('os').system('id')",
    "import of a part": "from pyautogui import os",
    "built-ins": "__builtins__['open']('/etc/passwd')",
    "open": "print(open('/etc/passwd').read())",
    "exec": "exec('import os')",
    "eval": "eval('1')",
    "getattr": "getattr(pyautogui, 'os').system('id')",
    "a module's module": "pyautogui.os.system('id')",
    "a module's private module": "pyautogui._pyautogui_x11.subprocess.run(['id'])",
    "walk of classes": "().__class__.__base__.__subclasses__()",
    "walk from text": "''.__class__.__mro__[1]",
    "walk from a function": "pyautogui.click.__globals__['os']",
    "format of text": "print('{0.__class__}'.format(pyautogui))",
    "format in an f-string": "x = 10\nprint(f'{x:{x}}')",
    "attribute in an f-string": "print(f'{pyautogui.__dict__}')",
    "lambda": "(lambda: 1)()",
    "function": "def f():\n    return 1\nf()",
    "class": "class A:\n    pass",
    "comprehension's scope": "[x.gi_frame for x in [1]]",
    "screenshot to a file": "pyautogui.screenshot('/home/user/a.png')",
    "picture from a file": "pyautogui.locateOnScreen('/etc/passwd')",
    "log of screenshots": "pyautogui.click(1, 2, logScreenshot='/tmp/x')",
    "PyAutoGUI's own language": "pyautogui.run('g10,10')",
    "unpacked names": "pyautogui.click(**{'logScreenshot': 'x'})",
    "decorator": "@print\ndef f(): pass",
    "exception's frame": "try:\n    1/0\nexcept Exception as e:\n    e.__traceback__",
    "walrus": "(x := open)",
    "assertion": "assert open",
    "delete": "del pyautogui",
    "global": "global x",
    "await": "async def f():\n    await f()",
    "bytes": "b'a'.decode()",
    "long number": "x = 1" + "0" * 90,
    "setting": "pyautogui.platformModule = 1",
}


@pytest.mark.parametrize("code", TRIES.values(), ids=TRIES.keys())
def test_attempts_to_circumvent_are_refused_before_anything_is_performed(code: str) -> None:
    with pytest.raises(permitted.RefusedError):
        done("pyautogui.click(1, 1)\n" + code)
    gui = Gui()
    with contextlib.suppress(permitted.RefusedError):
        gui_only.run("pyautogui.click(1, 1)\n" + code, gui, lambda _: None, lambda _: None)
    assert gui.calls == []


FAILING = {
    "picture as a place": "pyautogui.click('/etc/passwd')",
    "picture named like a button": "pyautogui.click('left')",
    "picture by name": "pyautogui.moveTo(x='right', y=1)",
    "screenshot by position": "pyautogui.press('a', 1, 0.0, True)",
    "screenshot of a click": "pyautogui.click(1, 2, 1, 0, 'left', 0, pyautogui.linear, True)",
    "picture in a list": "pyautogui.moveTo(['/etc/passwd', 1])",
    "easing called": "pyautogui.linear(1)",
    "function as a value": "x = [pyautogui]\nprint(x)",
    "function as an argument": "pyautogui.write(pyautogui)",
    "module of time": "time.time()",
    "name taken": "print = 1\nprint('a')",
    "long text": "x = 'a' * 1000000",
    "growing text": "x = 'aaaaaaaaaa'\nwhile True:\n    x = x + x",
    "growing list": "x = [1]\nwhile True:\n    x.extend(x)",
    "large power": "9 ** 99",
    "large product": "x = 9\nwhile True:\n    x = x * x",
    "endless": "while True:\n    pass",
    "long range": "for i in range(10 ** 9):\n    pass",
    "text by percent": "'%s' % 1",
    "shift": "1 << 9",
    "item of a module": "pyautogui['os']",
    "with of nothing known": "with pyautogui.click():\n    pass",
    "no Python": "pyautogui.click(",
    "no such name": "pyautogui.click(x)",
    "outside a loop": "break",
}


@pytest.mark.parametrize("code", FAILING.values(), ids=FAILING.keys())
def test_a_failure_names_its_line(code: str) -> None:
    with pytest.raises((permitted.FailedError, permitted.RefusedError)) as failure:
        done(code)
    assert str(failure.value)


def test_code_that_is_nested_too_deeply_is_refused() -> None:
    with pytest.raises((permitted.RefusedError, permitted.FailedError)):
        done("x = " + "-" * 5_000 + "1")
    with pytest.raises((permitted.RefusedError, permitted.FailedError)):
        done("x = " + "[" * 90 + "]" * 90)


def test_a_wait_is_bounded() -> None:
    calls, _ = done("pyautogui.sleep(1e9)\ntime.sleep(-5)")
    assert calls == [("sleep", 60.0), ("sleep", 0.0)]
