"""Marks for mouse and keyboard events of a turn, drawn on its screenshot. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

MAX_MARKS = 200
_MAX_TEXT_CHARS = 400
_MAX_COORDINATE = 20_000
_MAX_CLICK_DISTANCE = 4
"""Largest distance between press and release of a click, in pixels; a drag moves farther."""


@dataclass(frozen=True, slots=True)
class Mark:
    """One mark on a screenshot.

    Attributes:
        kind: ``click``, ``drag``, ``scroll``, ``type``, ``keys`` or ``move``.
        x: horizontal position on the screenshot, in pixels.
        y: vertical position on the screenshot, in pixels.
        to_x: horizontal position where a drag ends; otherwise the same as ``x``.
        to_y: vertical position where a drag ends; otherwise the same as ``y``.
        times: number of successive clicks at the same point.
        text: for the mouse, the keys that are held down, the button unless it is the left one, and
            how far it scrolled; otherwise the text that was typed, or the keys.
    """

    kind: str
    x: int
    y: int
    to_x: int
    to_y: int
    times: int = 1
    text: str = ""


@dataclass(frozen=True, slots=True)
class _Event:
    kind: str
    x: int
    y: int
    detail: str


def marks_of(events: Iterable[Sequence[object]]) -> list[Mark]:
    """The marks of an action's events; events of unknown kinds are left out.

    Args:
        events: the recorded events, each ``[kind, x, y, detail]``.

    Returns:
        At most :data:`MAX_MARKS` marks, in order. Moves are marked only if nothing else was done.
    """
    read = list(_read(events))
    marks: list[Mark] = []
    for mark in _marks(read):
        previous = marks[-1] if marks else None
        if previous is not None and _continues(previous, mark):
            text = previous.text + mark.text if mark.kind == "type" else previous.text
            marks[-1] = replace(previous, times=previous.times + 1, text=text[:_MAX_TEXT_CHARS])
        elif len(marks) < MAX_MARKS:
            marks.append(mark)
    if not marks and read:
        return [_mark("move", read[-1])]
    return marks


def _continues(previous: Mark, mark: Mark) -> bool:
    """Whether a mark continues the previous one: a double click, more text, more scrolling."""
    same_point = (previous.x, previous.y) == (mark.x, mark.y)
    if mark.kind == "type":
        return previous.kind == "type" and same_point
    return (
        mark.kind in {"click", "scroll"}
        and same_point
        and (previous.kind, previous.text) == (mark.kind, mark.text)
    )


def _marks(events: Iterable[_Event]) -> Iterator[Mark]:
    pressed: _Event | None = None
    held: dict[str, None] = {}
    is_chord = False
    for event in events:
        match event.kind:
            case "press":
                # Keys that are held down belong to the mouse action.
                pressed, is_chord = event, False
            case "release" if pressed is not None:
                yield _pressed(pressed, event, held)
                pressed = None
            case "scroll":
                is_chord = False
                yield _mark("scroll", event, " ".join((*held, event.detail)))
            case "type":
                yield _mark("type", event, event.detail)
            case "key-press":
                held[event.detail] = None
                is_chord = True
            case "key-release":
                if is_chord:
                    yield _mark("keys", event, "+".join(held))
                held.pop(event.detail, None)
                is_chord = False
        last = event
    if pressed is not None:
        yield _pressed(pressed, pressed, held)
    if is_chord:
        yield _mark("keys", last, "+".join(held))


def _pressed(start: _Event, end: _Event, held: Iterable[str]) -> Mark:
    """A click, or a drag if the mouse moved in between; with the keys that are held down."""
    button = () if start.detail in {"", "left", "1"} else (start.detail,)
    text = " ".join((*held, *button))
    if math.dist((start.x, start.y), (end.x, end.y)) <= _MAX_CLICK_DISTANCE:
        return _mark("click", start, text)
    return Mark("drag", start.x, start.y, end.x, end.y, text=text[:_MAX_TEXT_CHARS])


def _mark(kind: str, event: _Event, text: str = "") -> Mark:
    return Mark(kind, event.x, event.y, event.x, event.y, text=text[:_MAX_TEXT_CHARS])


def _read(events: Iterable[Sequence[object]]) -> Iterator[_Event]:
    for event in events:
        kind, x, y, *rest = (*event[:4], None, None, None)
        pixel = _pixel(x), _pixel(y)
        if isinstance(kind, str) and pixel[0] is not None and pixel[1] is not None:
            detail = "" if rest[0] is None else str(rest[0])[:_MAX_TEXT_CHARS]
            yield _Event(kind, pixel[0], pixel[1], detail)


def _pixel(value: object) -> int | None:
    """A coordinate in pixels; None for anything else."""
    if not isinstance(value, int | float) or isinstance(value, bool):
        return None
    return int(value) if abs(value) <= _MAX_COORDINATE else None
