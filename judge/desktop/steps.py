"""Step lists: instructions for a desktop, written by people, which are checked and performed.

A step names an element by its role and name in the accessibility tree. Just before the step is
performed, the element is looked up in the tree and the step becomes an action. So a list works on
every screen, and in every version of the program that has the same names (docs/desktop-people.md).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from judge.desktop.contract import (
    Action,
    ActionOutcome,
    Desktop,
    Element,
    Observation,
    Signal,
)
from judge.errors import UsageError
from judge.files.documents import written
from judge.files.yaml_documents import read_yaml

BUTTONS = ("left", "middle", "right")
_MAX_STEPS = 1000
_HINT = "docs/desktop-people.md says what a step list looks like."


@dataclass(frozen=True, slots=True)
class Target:
    """The target of a step.

    Attributes:
        role: the role of the element, or the end of the role: ``button`` matches ``push-button``.
        name: the name of the element; None for any.
        text: the text of the element; None for any.
        number: its number among several matches, from 0, in tree order; -1 is the last one.
        offset: distance from its centre, in pixels.
    """

    role: str
    name: str | None = None
    text: str | None = None
    number: int = 0
    offset: tuple[int, int] = (0, 0)

    def __str__(self) -> str:
        """Describes the target for messages."""
        named = f"{self.role} {self.name!r}" if self.name is not None else self.role
        return named if self.text is None else f"{named} with the text {self.text!r}"


@dataclass(frozen=True, slots=True)
class Click:
    """A click, with held-down keys if there are any."""

    target: Target
    times: int = 1
    button: str = "left"
    hold: tuple[str, ...] = ()

    def __str__(self) -> str:
        """Describes the step for messages."""
        return f"click on {self.target}"


@dataclass(frozen=True, slots=True)
class Type:
    """Text to type; a line end presses the enter key, a tab the tab key."""

    text: str

    def __str__(self) -> str:
        """Describes the step for messages."""
        return f"type {self.text!r}"


@dataclass(frozen=True, slots=True)
class Keys:
    """Keys that are pressed together, with their names in PyAutoGUI."""

    keys: tuple[str, ...]

    def __str__(self) -> str:
        """Describes the step for messages."""
        return f"keys {'+'.join(self.keys)}"


@dataclass(frozen=True, slots=True)
class GoTo:
    """Selects a cell or a range with the name box."""

    ref: str

    def __str__(self) -> str:
        """Describes the step for messages."""
        return f"go to {self.ref}"


@dataclass(frozen=True, slots=True)
class Drag:
    """A drag from one element to another with the left button."""

    start: Target
    end: Target
    seconds: float = 0.5
    hold: tuple[str, ...] = ()

    def __str__(self) -> str:
        """Describes the step for messages."""
        return f"drag from {self.start} to {self.end}"


@dataclass(frozen=True, slots=True)
class Scroll:
    """Turns of the mouse wheel over an element; a number above 0 scrolls up."""

    target: Target
    by: int

    def __str__(self) -> str:
        """Describes the step for messages."""
        return f"scroll by {self.by} on {self.target}"


@dataclass(frozen=True, slots=True)
class WaitFor:
    """Waits until an element exists."""

    target: Target

    def __str__(self) -> str:
        """Describes the step for messages."""
        return f"wait for {self.target}"


@dataclass(frozen=True, slots=True)
class Say:
    """Ends an episode: the task is done, or cannot be done."""

    signal: Signal

    def __str__(self) -> str:
        """Describes the step for messages."""
        return f"say {self.signal}"


Step = Click | Type | Keys | GoTo | Drag | Scroll | WaitFor | Say


def read_steps(path: Path) -> tuple[Step, ...]:
    """Reads a step list: a YAML or JSON file with a list of steps.

    Raises:
        UsageError: the file is missing, or is not a step list; the message names the step.
    """
    return steps_of(read_yaml(path, UsageError), str(path))


def steps_of(document: Any, source: str) -> tuple[Step, ...]:
    """Reads the steps of a document.

    Args:
        document: the list, as JSON.
        source: the file of the document, for messages.

    Raises:
        UsageError: it is not a list of steps; the message names the step.
    """
    if not isinstance(document, list) or not 0 < len(document) <= _MAX_STEPS:
        raise UsageError(f"{source}: must be a list of 1 to {_MAX_STEPS} steps", hint=_HINT)
    steps = []
    for number, record in enumerate(document, start=1):
        try:
            steps.append(_step(record))
        except ValueError as error:
            raise UsageError(f"{source}, step {number}: {error}", hint=_HINT) from error
    return tuple(steps)


def _step(record: Any) -> Step:
    if not isinstance(record, dict) or len(record) != 1:
        raise ValueError(f"must be an object with one of {', '.join(_KINDS)}")
    ((kind, value),) = record.items()
    if kind not in _KINDS:
        raise ValueError(f"{kind!r} is not a kind of step; the kinds are {', '.join(_KINDS)}")
    return _KINDS[kind](value)


_PLACE = ("cell", "role", "name", "text", "number", "offset")


def _click(value: Any) -> Click:
    fields = _object("click", value, *_PLACE, "times", "button", "hold")
    times, button = _whole("times", fields.get("times", 1)), fields.get("button", "left")
    if not 1 <= times <= 3:
        raise ValueError(f"field 'times' must be 1, 2 or 3, not {times}")
    if button not in BUTTONS:
        raise ValueError(
            f"field 'button' must be one of {', '.join(BUTTONS)}, not {written(button)}"
        )
    return Click(_target(fields), times, button, _keys(fields.get("hold", [])))


def _type(value: Any) -> Type:
    return Type(_text("type", value))


def _together(value: Any) -> Keys:
    keys = _keys(value)
    if not keys:
        raise ValueError("'keys' is empty")
    return Keys(keys)


def _go_to(value: Any) -> GoTo:
    return GoTo(_text("goto", value))


def _drag(value: Any) -> Drag:
    fields = _object("drag", value, "from", "to", "seconds", "hold")
    ends = [_target(_object(name, fields.get(name), *_PLACE)) for name in ("from", "to")]
    seconds = fields.get("seconds", 0.5)
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not 0 < seconds <= 10:
        raise ValueError(f"field 'seconds' must be a number from 0 to 10, not {written(seconds)}")
    return Drag(ends[0], ends[1], float(seconds), _keys(fields.get("hold", [])))


def _scroll(value: Any) -> Scroll:
    fields = _object("scroll", value, *_PLACE, "by")
    by = _whole("by", fields.get("by"))
    if not 0 < abs(by) <= 1000:
        raise ValueError(f"field 'by' must be between -1000 and 1000 and not 0, not {by}")
    return Scroll(_target(fields), by)


def _wait(value: Any) -> WaitFor:
    return WaitFor(_target(_object("wait", value, *_PLACE)))


def _say(value: Any) -> Say:
    if value not in (Signal.DONE, Signal.FAIL):  # a list has no hash
        raise ValueError(f"'say' must be {Signal.DONE} or {Signal.FAIL}, not {written(value)}")
    return Say(Signal(value))


_KINDS: Mapping[str, Callable[[Any], Step]] = {
    "click": _click,
    "type": _type,
    "keys": _together,
    "goto": _go_to,
    "drag": _drag,
    "scroll": _scroll,
    "wait": _wait,
    "say": _say,
}


def _target(fields: Mapping[str, Any]) -> Target:
    number, offset = _whole("number", fields.get("number", 0)), fields.get("offset", [0, 0])
    if not isinstance(offset, list) or len(offset) != 2:
        raise ValueError(f"field 'offset' must be two whole numbers, not {written(offset)}")
    across, down = (_whole("offset", distance) for distance in offset)
    if ("cell" in fields) == ("role" in fields):
        raise ValueError("either 'cell' or 'role' is needed, not both")
    text = _text("text", fields["text"]) if "text" in fields else None
    if "cell" in fields:
        if "name" in fields:
            raise ValueError("'cell' already gives the name")
        return Target("table-cell", _text("cell", fields["cell"]), text, number, (across, down))
    name = _text("name", fields["name"]) if "name" in fields else None
    return Target(_text("role", fields["role"]), name, text, number, (across, down))


def _object(name: str, value: Any, *fields: str) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise ValueError(f"{name!r} must be an object, not {written(value)}")  # noqa: TRY004  content of a file
    unknown = [field for field in value if field not in fields]
    if unknown:
        raise ValueError(f"field {unknown[0]!r} is unknown; the fields are {', '.join(fields)}")
    return value


def _text(name: str, value: Any) -> str:
    if not isinstance(value, str) or not value:
        raise ValueError(f"{name!r} must be text, not {written(value)}")
    return value


def _keys(value: Any) -> tuple[str, ...]:
    """Reads keys from a list of names, or from a string with ``+`` between them."""
    names: Sequence[Any] = value.split("+") if isinstance(value, str) else value
    if not isinstance(names, list) or not all(isinstance(name, str) and name for name in names):
        raise ValueError(f"keys must be names such as ctrl+s or [ctrl, s], not {written(value)}")
    return tuple(names)


def _whole(name: str, value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise ValueError(f"{name!r} must be a whole number, not {written(value)}")  # noqa: TRY004
    return value


_LOOKS = 20
"""How many times the tree is read at most before an element counts as missing."""

_BETWEEN_S = 0.25

_NAME_BOX_S = 1.0
"""Seconds that a busy office needs to focus the name box and select its content."""

_BUSY = ("button", "menu-item", "check-box")
"""Roles that a program disables while it is busy; such elements must be ``enabled``."""

_MAX_NAMED = 12


@dataclass(frozen=True, slots=True)
class PlayedStep:
    """A step that was performed.

    Attributes:
        step: the step.
        seen: what the desktop showed just before; empty if no element had to be looked up.
        action: the action of the step.
        outcome: the outcome of the action.
    """

    step: Step
    seen: Observation
    action: Action
    outcome: ActionOutcome


def play(
    desktop: Desktop,
    steps: Sequence[Step],
    *,
    screenshots: bool = False,
    pause: Callable[[float], None] = time.sleep,
) -> Iterator[PlayedStep]:
    """Performs steps one after the other; saves nothing.

    Args:
        desktop: the desktop.
        steps: the steps.
        screenshots: whether a screenshot is taken before each step.
        pause: waits for a number of seconds.

    Raises:
        UsageError: the element of a step is missing or disabled, or the action failed.
        SandboxError: the desktop broke.
    """
    for number, step in enumerate(steps, start=1):
        seen, action = _prepared(desktop, step, number, screenshots, pause)
        outcome = desktop.perform(action)
        yield PlayedStep(step, seen, action, outcome)
        if outcome.error:
            raise UsageError(f"step {number} ({step}) failed: {outcome.error.strip()}")


def _prepared(
    desktop: Desktop,
    step: Step,
    number: int,
    screenshots: bool,
    pause: Callable[[float], None],
) -> tuple[Observation, Action]:
    """Waits for the elements of a step; returns the observation, and the action of the step."""
    if not screenshots and isinstance(step, Type | Keys | GoTo | Say):
        return Observation(None, None), action_of(
            step, ()
        )  # the step has no element that must be looked up
    looks = _LOOKS
    while True:
        seen = desktop.observe(screenshot=screenshots, tree=True)
        elements = seen.elements or ()
        try:
            return seen, action_of(step, elements)
        except LookupError as missing:
            looks -= 1
            if not looks:
                raise UsageError(
                    f"step {number} ({step}): {missing.args[0]}",
                    hint=_hint(missing.args[1], elements, seen.windows),
                ) from missing
        pause(_BETWEEN_S)


def action_of(step: Step, elements: Sequence[Element]) -> Action:
    """Makes the action of a step.

    Args:
        step: the step.
        elements: the current tree.

    Raises:
        LookupError: an element of the step is missing; the arguments are the reason and the
            :class:`Target`.
    """
    match step:
        case Say():
            return Action(signal=step.signal)
        case WaitFor():
            find(step.target, elements)
            return Action(signal=Signal.WAIT)
        case Click():
            x, y = find(step.target, elements)
            click = f"pyautogui.click({x}, {y}, clicks={step.times}, button={step.button!r})"
            lines = _with_keys_down(step.hold, [click])
        case Type():
            lines = [f"pyautogui.write({step.text!r})"]
        case Keys():
            lines = [f"pyautogui.hotkey({', '.join(map(repr, step.keys))})"]
        case GoTo():
            lines = [
                "pyautogui.hotkey('ctrl', 'shift', 't')",  # Calc's shortcut for the name box
                f"pyautogui.sleep({_NAME_BOX_S})",
                f"pyautogui.write({step.ref + chr(10)!r})",
            ]
        case Drag():
            (x, y), (to_x, to_y) = find(step.start, elements), find(step.end, elements)
            moves = [
                f"pyautogui.moveTo({x}, {y})",
                "pyautogui.sleep(0.2)",
                f"pyautogui.dragTo({to_x}, {to_y}, duration={step.seconds}, button='left')",
            ]
            lines = _with_keys_down(step.hold, moves)
        case Scroll():
            x, y = find(step.target, elements)
            lines = [f"pyautogui.scroll({step.by}, {x}, {y})"]
    return Action(code="\n".join(["import pyautogui", *lines]))


def _with_keys_down(keys: Sequence[str], lines: Sequence[str]) -> list[str]:
    """Wraps lines of code so that keys are held down while they run."""
    down = [f"pyautogui.keyDown({key!r})" for key in keys]
    up = [f"pyautogui.keyUp({key!r})" for key in reversed(keys)]
    return [*down, *lines, *up]


def find(target: Target, elements: Sequence[Element]) -> tuple[int, int]:
    """Returns the position of an element on the screen.

    Args:
        target: the element to look up.
        elements: the tree.

    Raises:
        LookupError: the element is missing, has no position, or is disabled.
    """
    fitting = [element for element in _of_role(target.role, elements) if _fits(target, element)]
    visible = [element for element in fitting if element.centre is not None]
    try:
        element = visible[target.number]
    except IndexError:
        there = "there is none" if not fitting else f"there are {len(visible)} on the screen"
        raise LookupError(f"no {target} was found: {there}", target) from None
    if element.role.endswith(_BUSY) and "enabled" not in element.states:
        raise LookupError(f"{target} exists, but is disabled", target)
    x, y = element.centre or (0, 0)
    return x + target.offset[0], y + target.offset[1]


def _of_role(role: str, elements: Sequence[Element]) -> list[Element]:
    """Returns the elements with a role; if there are none, the elements whose role ends with it."""
    exact = [element for element in elements if element.role == role]
    return exact or [element for element in elements if element.role.endswith(f"-{role}")]


def _fits(target: Target, element: Element) -> bool:
    return (target.name is None or element.name == target.name) and (
        target.text is None or element.text == target.text
    )


def _hint(target: Target, elements: Sequence[Element], windows: Sequence[str]) -> str:
    """Lists similar elements of the tree, as a hint if an element is missing."""
    names = list(
        dict.fromkeys(element.name for element in _of_role(target.role, elements) if element.name)
    )
    shown = ", ".join(map(repr, names[:_MAX_NAMED])) + (" …" if names[_MAX_NAMED:] else "")
    window = f"The window {windows[0]!r} is open; " if windows else ""
    if names:
        return f"{window}of the role {target.role!r} there are {shown}."
    roles = sorted({element.role for element in elements})
    return f"{window}the tree has the roles {', '.join(roles) or 'none'}."
