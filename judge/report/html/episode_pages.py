"""A desktop episode as data for a page, within limits: screenshots, replies, actions by turn."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from judge.desktop.episodes import (
    ActionRecord,
    EpisodeFiles,
    EpisodeHead,
    SeenRecord,
    TurnRecord,
    episode_path,
    read_episode,
)
from judge.errors import StoreError
from judge.files.documents import dump_json
from judge.report.desktop.episodes import ending_in_words
from judge.report.desktop.marks import marks_of
from judge.report.grid_window import GridBounds
from judge.report.html.page import highlight
from judge.report.html.pictures import PictureShelf

_MAX_TURNS = 400
_MAX_ACTIONS = 60
_MAX_WINDOWS = 20
_MAX_COLUMNS = 16
_CELLS_PER_ROW = 48
"""A table of elements takes as much space per row as this many cells of a grid."""
_MIN_ROWS = 25
_CHARS_PER_CELL = 16
_TABLE_CHARS_PER_CELL = 40
"""How many characters of an episode's tables take as much space as one cell of a grid. The limit
above is for its other text."""
_MAX_MARKS = 20_000
_MAX_TEXT_LENGTH = 20_000
_MAX_CELL_LENGTH = 300


class _Space:
    """The space that is left for an episode on its page.

    Args:
        bounds: how much to show.
    """

    def __init__(self, bounds: GridBounds) -> None:
        self._longest = min(_MAX_TEXT_LENGTH, bounds.text_chars * 5)
        self._chars = bounds.cells * _CHARS_PER_CELL
        self._table_chars = bounds.cells * _TABLE_CHARS_PER_CELL
        self._marks = _MAX_MARKS
        self.rows = max(bounds.cells // _CELLS_PER_ROW, _MIN_ROWS)
        """Greatest number of rows of one table."""

    def text(self, text: str) -> str:
        """Cuts a string to the space that is left."""
        shown = _cut(text, min(self._longest, self._chars))
        self._chars = max(self._chars - len(shown), 0)
        return shown

    def marks(self, events: Sequence[Sequence[object]]) -> list[dict[str, Any]]:
        """The marks of an action."""
        marks = marks_of(events)[: self._marks]
        self._marks -= len(marks)
        return [asdict(mark) for mark in marks]

    def row(self, cells: Sequence[str]) -> list[str] | None:
        """A row of a table; None if there is no space left for it."""
        shown = [_cut(cell, _MAX_CELL_LENGTH) for cell in cells]
        self._table_chars -= sum(map(len, shown))
        return shown if self._table_chars >= 0 else None


def episode_page(
    run: Path, key: tuple[str, int, int], pictures: PictureShelf, bounds: GridBounds, *, rank: int
) -> dict[str, Any] | None:
    """An episode as a page shows it.

    Args:
        run: the results directory.
        key: task id, sample, case.
        pictures: the shelf on which screenshots are registered.
        bounds: how much to show.
        rank: priority of its screenshots if not all fit into a page; lower comes first.

    Returns:
        A JSON object; None if there is no such episode. ``facts`` (name and text), ``turns``,
        ``more_turns``, ``tables`` (SHA-256 -> ``rows`` of strings, ``more`` rows, or a
        ``problem``), ``ended`` in words, ``seconds`` or null, ``problem``. A turn has ``number``,
        ``start_s``, ``seconds``, ``picture`` (see :meth:`PictureShelf.of_file`, or null),
        ``width`` and ``height`` of the screen, ``cursor``, ``windows``, ``table`` (SHA-256 or
        null), ``cut``, ``reply``, ``problem``, ``told`` and ``actions``; an action ``kind``,
        ``pieces`` (coloured), ``error``, ``refused``, ``printed``, ``settled``, ``seconds`` and
        ``marks`` (see :class:`judge.report.desktop.marks.Mark`).
    """
    path = episode_path(run, *key)
    if not path.exists():
        return None
    try:
        episode = read_episode(path)
    except StoreError as error:
        return {"problem": error.message, "turns": [], "facts": [], "tables": {}}
    space = _Space(bounds)
    turns = list(_turns(episode.turns[:_MAX_TURNS], pictures, space, rank))
    end = episode.end
    return {
        "facts": list(_facts(episode.head)),
        "turns": turns,
        "more_turns": len(episode.turns) - len(turns),
        "tables": _tables(EpisodeFiles(run), turns, space),
        "ended": ending_in_words(None if end is None else end["ended"]),
        "seconds": None if end is None else end["seconds"],
        "problem": "" if end is None else end["problem"],
    }


def _facts(head: EpisodeHead) -> Iterator[tuple[str, str]]:
    """The settings of the desktop, in words."""
    options: Mapping[str, object] = head["options"]
    yield "model", head["model"][:_MAX_CELL_LENGTH]
    yield "setting", head["setting"][:_MAX_CELL_LENGTH]
    yield "only mouse and keyboard", "yes" if options.get("gui_only") is True else "no"
    if "width" in options and "height" in options:
        yield "screen", f"{options['width']} × {options['height']}"[:40]  # noqa: RUF001 - a multiplication
    for name, words in (("window", "window"), ("clutter", "other windows")):
        if options.get(name):
            yield words, _cut(dump_json(options[name], spaced=True), _MAX_CELL_LENGTH)
    published = options.get("as_published")
    if isinstance(published, list) and published:
        yield "as published", ", ".join(map(str, published))[:_MAX_CELL_LENGTH]
    yield "spreadsheet program", head["office"][:_MAX_CELL_LENGTH]
    yield "desktop", head["image"][:_MAX_CELL_LENGTH]
    yield "started", head["started"][:40]
    yield "ready after", f"{head['ready_s']:.1f} s"


def _turns(
    turns: tuple[TurnRecord, ...], pictures: PictureShelf, space: _Space, rank: int
) -> Iterator[dict[str, Any]]:
    start_s = 0.0
    for turn in turns:
        seen = turn["seen"]
        actions = turn["actions"][:_MAX_ACTIONS]
        yield {
            "number": turn["number"],
            "start_s": round(start_s, 3),
            "seconds": turn["seconds"],
            "picture": _picture(seen, turn["number"], pictures, rank),
            "width": seen.get("width"),
            "height": seen.get("height"),
            "cursor": seen["cursor"][:2],
            "windows": [window[:_MAX_CELL_LENGTH] for window in seen["windows"][:_MAX_WINDOWS]],
            "table": seen["table"],
            "cut": seen["cut"],
            "reply": space.text(turn["reply"]),
            "problem": space.text(turn["problem"]),
            "told": space.text(turn.get("told", "")),
            "actions": [_action(action, space) for action in actions],
            "more_actions": len(turn["actions"]) - len(actions),
        }
        start_s += turn["seconds"]


def _picture(
    seen: SeenRecord, number: int, pictures: PictureShelf, rank: int
) -> dict[str, Any] | None:
    if seen["screenshot"] is None:
        return None
    return pictures.of_turn(seen["screenshot"], f"turn {number}", rank)


def _action(action: ActionRecord, space: _Space) -> dict[str, Any]:
    if "code" in action:
        kind, text = "code", action["code"]
    elif "call" in action:
        kind, text = "call", dump_json(action["call"], spaced=True)
    else:
        kind, text = "signal", action.get("signal", "")
    text = space.text(text)
    return {
        "kind": kind,
        "pieces": [("", text)] if kind == "signal" else highlight(text),
        "error": space.text(action["error"]),
        "refused": action["refused"],
        "printed": space.text(action["printed"]),
        "settled": action["settled"],
        "seconds": action["seconds"],
        "marks": space.marks(action["events"]),
    }


def _tables(
    files: EpisodeFiles, turns: list[dict[str, Any]], space: _Space
) -> dict[str, dict[str, Any]]:
    digests = dict.fromkeys(turn["table"] for turn in turns if turn["table"] is not None)
    return {digest: _table(files, digest, space) for digest in digests}


def _table(files: EpisodeFiles, digest: str, space: _Space) -> dict[str, Any]:
    try:
        text = files.table(digest)
    except StoreError as error:
        return {"problem": error.message, "rows": [], "more": 0}
    if text is None:
        return {"problem": "the table is no longer available", "rows": [], "more": 0}
    lines = [line for line in text.split("\n") if line]
    rows: list[list[str]] = []
    for line in lines[: space.rows]:
        row = space.row(line.split("\t", _MAX_COLUMNS - 1))
        if row is None:
            break
        rows.append(row)
    return {"rows": rows, "more": len(lines) - len(rows)}


def _cut(text: str, longest: int) -> str:
    return text if len(text) <= longest else text[:longest] + "…"
