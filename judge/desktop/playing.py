"""Plays step lists on a desktop: looks up the place of each step, and performs it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from judge.desktop.contract import (
    Action,
    ActionOutcome,
    Desktop,
    Element,
    Observation,
    Signal,
)
from judge.desktop.steps import Click, Drag, GoTo, Keys, Place, Say, Scroll, Step, Type, WaitFor
from judge.errors import UsageError

_LOOKS = 20
"""How often the tree is read until a place is there."""

_BETWEEN_S = 0.25

_NAME_BOX_S = 1.0
"""What a busy office needs to get into the name box, and to select what is there."""

_BUSY = ("button", "menu-item", "check-box")
"""Roles that a program takes out of use while it is busy: they have to be ``enabled``."""

_MAX_NAMED = 12


@dataclass(frozen=True, slots=True)
class Played:
    """A step that was played.

    Attributes:
        step: the step.
        seen: what the desktop showed just before; nothing if nobody had to look.
        action: what was done.
        outcome: what became of it.
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
) -> Iterator[Played]:
    """Plays steps one after the other; nothing is saved.

    Args:
        desktop: where.
        steps: what.
        screenshots: whether a screenshot is taken before each step.
        pause: waits for that many seconds.

    Raises:
        UsageError: what a step is about is not there, or not in use; or the action failed.
        SandboxError: the desktop broke.
    """
    for number, step in enumerate(steps, start=1):
        seen, action = _prepared(desktop, step, number, screenshots, pause)
        outcome = desktop.perform(action)
        yield Played(step, seen, action, outcome)
        if outcome.error:
            raise UsageError(f"step {number} ({step}) failed: {outcome.error.strip()}")


def _prepared(
    desktop: Desktop,
    step: Step,
    number: int,
    screenshots: bool,
    pause: Callable[[float], None],
) -> tuple[Observation, Action]:
    """What the desktop shows once everything that the step is about is there, and its action."""
    if not screenshots and isinstance(step, Type | Keys | GoTo | Say):
        return Observation(None, None), action_of(step, ())  # about no place: nothing is looked up
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
    """The action of a step.

    Args:
        step: the step.
        elements: the tree as it is now.

    Raises:
        LookupError: what the step is about is not there; its arguments are why, and the
            :class:`judge.desktop.steps.Place`.
    """
    match step:
        case Say():
            return Action(signal=step.signal)
        case WaitFor():
            find(step.place, elements)
            return Action(signal=Signal.WAIT)
        case Click():
            x, y = find(step.place, elements)
            click = f"pyautogui.click({x}, {y}, clicks={step.times}, button={step.button!r})"
            lines = _held(step.hold, [click])
        case Type():
            lines = [f"pyautogui.write({step.text!r})"]
        case Keys():
            lines = [f"pyautogui.hotkey({', '.join(map(repr, step.keys))})"]
        case GoTo():
            lines = [
                "pyautogui.hotkey('ctrl', 'shift', 't')",  # Calc's way into the name box
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
            lines = _held(step.hold, moves)
        case Scroll():
            x, y = find(step.place, elements)
            lines = [f"pyautogui.scroll({step.by}, {x}, {y})"]
    return Action(code="\n".join(["import pyautogui", *lines]))


def _held(keys: Sequence[str], lines: Sequence[str]) -> list[str]:
    """Lines with keys held down around them."""
    down = [f"pyautogui.keyDown({key!r})" for key in keys]
    up = [f"pyautogui.keyUp({key!r})" for key in reversed(keys)]
    return [*down, *lines, *up]


def find(place: Place, elements: Sequence[Element]) -> tuple[int, int]:
    """Where something is on the screen.

    Args:
        place: what to find.
        elements: the tree.

    Raises:
        LookupError: it is not there, has no place, or is not in use.
    """
    fitting = [each for each in _of_role(place.role, elements) if _fits(place, each)]
    placed = [each for each in fitting if each.centre is not None]
    try:
        found = placed[place.number]
    except IndexError:
        there = "there is none" if not fitting else f"there are {len(placed)} on the screen"
        raise LookupError(f"no {place} was found: {there}", place) from None
    if found.role.endswith(_BUSY) and "enabled" not in found.states:
        raise LookupError(f"{place} is there, but not in use", place)
    x, y = found.centre or (0, 0)
    return x + place.offset[0], y + place.offset[1]


def _of_role(role: str, elements: Sequence[Element]) -> list[Element]:
    """Elements of a role; of roles that end like it if no other has it."""
    exact = [element for element in elements if element.role == role]
    return exact or [element for element in elements if element.role.endswith(f"-{role}")]


def _fits(place: Place, element: Element) -> bool:
    return (place.name is None or element.name == place.name) and (
        place.text is None or element.text == place.text
    )


def _hint(place: Place, elements: Sequence[Element], windows: Sequence[str]) -> str:
    """What there is instead of a place."""
    names = list(dict.fromkeys(each.name for each in _of_role(place.role, elements) if each.name))
    shown = ", ".join(map(repr, names[:_MAX_NAMED])) + (" …" if names[_MAX_NAMED:] else "")
    window = f"The window {windows[0]!r} is open; " if windows else ""
    if names:
        return f"{window}of the role {place.role!r} there are {shown}."
    roles = sorted({element.role for element in elements})
    return f"{window}the tree has the roles {', '.join(roles) or 'none'}."
