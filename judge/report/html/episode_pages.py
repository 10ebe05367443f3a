"""An episode as data for a page: on a desktop, or with tools.

A turn has what the model saw and wrote, its actions or calls with their results, and with tools the
cells that changed. How much of an episode is shown depends on the bounds of the page.
"""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from judge.compare.cells.collateral import find_collateral
from judge.core.records.tool_episodes import ToolCallLine, ToolEpisodeHead, ToolTurn
from judge.desktop.episodes import (
    ActionRecord,
    EpisodeFiles,
    EpisodeHead,
    SeenRecord,
    TurnRecord,
    episode_path,
    read_episode,
)
from judge.errors import StoreError, WorkbookError
from judge.files.documents import dump_json
from judge.grading.store import kept_workbook
from judge.report.desktop.episodes import ending_in_words
from judge.report.desktop.marks import marks_of
from judge.report.grid_window import GridBounds
from judge.report.html.page import highlight
from judge.report.html.pictures import PictureShelf
from judge.tools.episodes import read_tool_episode
from judge.workbook.address import Window, cell_key, parse_cell
from judge.workbook.position import same_sheet
from judge.workbook.reader import Workbook, open_workbook

_MAX_TURNS = 400
_MAX_ACTIONS = 60
_MAX_WINDOWS = 20
_MAX_COLUMNS = 16
_CELLS_PER_ROW = 48
"""A table of elements takes as much space per row as this many cells of a grid."""
_MIN_ROWS = 25
_CHARS_PER_CELL = 16
_TABLE_CHARS_PER_CELL = 40
"""How many characters of an episode's tables take as much space as one cell of a grid; for other
text, see above."""
_MAX_MARKS = 20_000
_MAX_TEXT_CHARS = 20_000
_MAX_CELL_CHARS = 300


class _TextSpace:
    """The space that is left for the text of an episode on its page.

    Args:
        bounds: how much to show.
        chars_per_cell: how many characters take as much space as one cell of a grid.
    """

    def __init__(self, bounds: GridBounds, chars_per_cell: int) -> None:
        self._longest = min(_MAX_TEXT_CHARS, bounds.text_chars * 5)
        self._chars = bounds.cells * chars_per_cell

    def text(self, text: str) -> str:
        """Cuts a string to the space that is left."""
        shown = _cut(text, min(self._longest, self._chars))
        self._chars = max(self._chars - len(shown), 0)
        return shown


class _Space(_TextSpace):
    """The space that is left for a desktop episode: for its text, its tables and its marks."""

    def __init__(self, bounds: GridBounds) -> None:
        super().__init__(bounds, _CHARS_PER_CELL)
        self._table_chars = bounds.cells * _TABLE_CHARS_PER_CELL
        self._marks = _MAX_MARKS
        self.rows = max(bounds.cells // _CELLS_PER_ROW, _MIN_ROWS)
        """Largest number of rows of one table."""

    def marks(self, events: Sequence[Sequence[object]]) -> list[dict[str, Any]]:
        """The marks of an action."""
        marks = marks_of(events)[: self._marks]
        self._marks -= len(marks)
        return [asdict(mark) for mark in marks]

    def row(self, cells: Sequence[str]) -> list[str] | None:
        """A row of a table; None if there is no space left for it."""
        shown = [_cut(cell, _MAX_CELL_CHARS) for cell in cells]
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
    yield "model", head["model"][:_MAX_CELL_CHARS]
    yield "setting", head["setting"][:_MAX_CELL_CHARS]
    yield "only mouse and keyboard", "yes" if options.get("gui_only") is True else "no"
    if "width" in options and "height" in options:
        yield "screen", f"{options['width']} × {options['height']}"[:40]  # noqa: RUF001 - a multiplication
    for name, words in (("window", "window"), ("clutter", "other windows")):
        if options.get(name):
            yield words, _cut(dump_json(options[name], spaced=True), _MAX_CELL_CHARS)
    published = options.get("as_published")
    if isinstance(published, list) and published:
        yield "as published", ", ".join(map(str, published))[:_MAX_CELL_CHARS]
    yield "spreadsheet program", head["office"][:_MAX_CELL_CHARS]
    yield "desktop", head["image"][:_MAX_CELL_CHARS]
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
            "windows": [window[:_MAX_CELL_CHARS] for window in seen["windows"][:_MAX_WINDOWS]],
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


_MAX_CALLS = 60
_MAX_VALUE_CHARS = 120
_TOOL_CHARS_PER_CELL = 24
"""How many characters of an episode take as much space as one cell of a grid."""

_MAX_COMPARED = 30
_MAX_WORKBOOK_BYTES = 4 * 2**20
"""Limits on the comparison of an episode's successive workbooks: their number, and their size."""

_END_WORDS = {
    "submitted": "submitted: the agent called submit",
    "turns": "turns: all replies were used",
    "tokens": "tokens: the limit of tokens was reached",
    "cost": "cost: the limit of dollars was reached",
    "time": "time: the limit of time was reached",
    "no-call": "no-call: several replies in a row called no tool",
    "format": "format: several replies in a row could not be used",
    "timeouts": "timeouts: several calls in a row took too long",
    "context-length": "context-length: the conversation was too long for the model",
    "tool-set-died": "tool-set-died: a server of the tools ended, and did not start again",
    "refused": "refused: the server of the model refused the conversation",
}


def tool_episode_page(
    run: Path,
    key: tuple[str, int, int],
    input_path: Path | None,
    pictures: PictureShelf,
    bounds: GridBounds,
    *,
    rank: int,
) -> dict[str, Any] | None:
    """An episode with tools as a page shows it.

    Args:
        run: the results directory.
        key: task id, sample, case.
        input_path: the input of the case, which the workbook of the first turn is compared with;
            None if it is not available.
        pictures: the shelf on which pictures are registered.
        bounds: how much to show.
        rank: priority of its pictures if not all fit into a page; lower comes first.

    Returns:
        A JSON object; None if there is no such episode. ``kind`` is ``tools``; then ``facts`` (name
        and text), ``turns``, ``more_turns``, ``ended`` in words, ``seconds`` or null, ``problem``.
        A turn has ``number``, ``reply``, ``reasoning``, ``cut``, ``told``, ``facts``, ``calls`` and
        ``changed`` (``cells``: where, before, after; ``more``; ``words``; or null). A call has
        ``tool``, ``pieces`` (coloured), ``fault``, ``repairs``, ``ok``, ``error``, ``text``,
        ``left_out`` characters, ``pictures`` and ``seconds`` or null.
    """
    path = episode_path(run, *key)
    if not path.exists():
        return None
    try:
        episode = read_tool_episode(path)
    except StoreError as error:
        return {"kind": "tools", "problem": error.message, "turns": [], "facts": [], "ended": ""}
    space = _TextSpace(bounds, _TOOL_CHARS_PER_CELL)
    changes = _Changes(run, input_path)
    turns = [_turn(turn, pictures, space, changes, rank) for turn in episode.turns[:_MAX_TURNS]]
    end = episode.end
    word = "" if end is None else end["ended"]
    return {
        "kind": "tools",
        "facts": list(_tool_facts(episode.head)),
        "turns": turns,
        "more_turns": len(episode.turns) - len(turns),
        "ended": _END_WORDS.get(word, word or "not on record"),
        "seconds": None if end is None else end["seconds"],
        "problem": "" if end is None else end["problem"],
    }


def _tool_facts(head: ToolEpisodeHead) -> Iterator[tuple[str, str]]:
    """The settings of the episode, in words; fields that are not on record are left out."""
    rows = [
        ("model", head["model"]),
        ("tools", head["setting"].partition("/")[2]),
        ("answer", head["answer"]),
        ("imported from", head.get("imported", "")),
        ("tools ran in", head["image"]),
        ("started", head["started"]),
        ("ready after", "" if head["start_s"] is None else f"{head['start_s']:.1f} s"),
        ("limits", dump_json(head["limits"], spaced=True) if head["limits"] else ""),
        *(
            (
                f"server {server['name']}",
                " ".join(
                    (
                        server.get("server_name", ""),
                        server.get("server_version", ""),
                        server.get("era", ""),
                        server.get("problem", ""),
                    )
                ).strip(),
            )
            for server in head["servers"][:20]
        ),
    ]
    for name, text in rows:
        if text:
            yield name, text[: 4 * _MAX_VALUE_CHARS]


def _turn(
    turn: ToolTurn, pictures: PictureShelf, space: _TextSpace, changes: _Changes, rank: int
) -> dict[str, Any]:
    calls = turn["calls"][:_MAX_CALLS]
    tokens = turn.get("tokens") or {}
    counts = [
        f"{tokens[name]:,} {words}"  # type: ignore[literal-required]
        for name, words in (("prompt", "tokens sent"), ("completion", "in the reply"))
        if tokens.get(name) is not None
    ]
    if (latency := turn.get("latency_s")) is not None:
        counts.append(f"model {latency:.1f} s")
    return {
        "number": turn["number"],
        # The page of a desktop episode needs a picture for each turn.
        "picture": None,
        "reply": space.text(turn["reply"]["text"]),
        "reasoning": space.text(turn["reply"].get("reasoning", "")),
        "cut": turn["cut"],
        "told": space.text(turn.get("told", "")),
        "facts": ", ".join(counts),
        "calls": [_call(call, turn["number"], pictures, space, rank) for call in calls],
        "more_calls": len(turn["calls"]) - len(calls),
        "changed": changes.of(turn),
    }


def _call(
    call: ToolCallLine, number: int, pictures: PictureShelf, space: _TextSpace, rank: int
) -> dict[str, Any]:
    shown = call["text"]["shown"]
    return {
        "tool": call["tool"][:_MAX_VALUE_CHARS],
        "pieces": highlight(space.text(_arguments(call))),
        "fault": space.text(call.get("fault", "")),
        "repairs": [repair[:_MAX_VALUE_CHARS] for repair in call.get("repairs", ())[:20]],
        "ok": call["ok"],
        "error": call.get("error", ""),
        "text": space.text(shown),
        "left_out": max(call["text"]["chars"] - len(shown), 0),
        "pictures": [
            pictures.of_turn(sha256, f"turn {number}", rank)
            for sha256 in call.get("pictures", ())[:_MAX_CALLS]
        ],
        "seconds": call["seconds"],
    }


def _arguments(call: ToolCallLine) -> str:
    """The arguments as code: a program or a command unchanged, anything else as JSON."""
    if "raw" in call:
        return call["raw"]
    arguments = call.get("arguments", {})
    if len(arguments) == 1:
        (name, value), *_ = arguments.items()
        if name in {"code", "command"} and isinstance(value, str):
            return value
    return dump_json(arguments, spaced=True) if arguments else ""


class _Changes:
    """Finds the cells that changed from turn to turn, in the workbooks that the run keeps."""

    def __init__(self, run: Path, input_path: Path | None) -> None:
        self._run = run
        self._left = _MAX_COMPARED
        self._before: bytes | None = None
        with contextlib.suppress(OSError):
            self._before = None if input_path is None else input_path.read_bytes()
        # A copy of the input is not a change.
        content = self._before
        self._digest = None if content is None else hashlib.sha256(content).hexdigest()

    def of(self, turn: ToolTurn) -> Mapping[str, Any] | None:
        """The changes of a turn; None if the workbook did not change, or is not on record."""
        digests = [call["workbook"] for call in turn["calls"] if call["workbook"] is not None]
        if not digests or digests[-1] == self._digest:
            return None
        self._digest = digests[-1]
        before, self._before = self._before, kept_workbook(self._run, digests[-1])
        after = self._before
        problem = None
        if after is None:
            problem = "the changed file was not kept"
        elif before is None:
            problem = "the previous one is not available"
        elif len(after) > _MAX_WORKBOOK_BYTES or self._left == 0:
            problem = "its cells are not compared here"
        nothing: dict[str, Any] = {"cells": [], "more": 0}
        if after is None or before is None or problem is not None:
            return {**nothing, "words": f"the workbook changed; {problem}"}
        self._left -= 1
        try:
            return _changed_cells(open_workbook(before), open_workbook(after))
        except WorkbookError as error:
            return {**nothing, "words": f"the workbook cannot be read: {error.message}"}


def _changed_cells(before: Workbook, after: Workbook) -> dict[str, Any]:
    changes = find_collateral(before, before, after, (), ())
    total = sum(changes.counts.values())
    cells = [
        (
            f"{cell.sheet}!{cell.cell}",
            _content(before, cell.sheet, cell.cell),
            _content(after, cell.sheet, cell.cell),
        )
        for cell in changes.cells
    ]
    words = []
    if changes.moved:
        words.append(f"rows or columns were shifted {changes.moved:,} times")
    if changes.style:
        words.append(f"{changes.style:,} cells look different")
    if changes.features:
        words.append(f"{changes.features:,} features were lost")
    if not total and not words:
        words.append("no cell changed")
    return {"cells": cells, "more": total - len(cells), "words": "; ".join(words)}


def _content(workbook: Workbook, sheet: str, cell: str) -> str:
    """The content of a cell as text: its formula, or its value."""
    name, position = same_sheet(sheet, workbook.sheet_names), parse_cell(cell)
    if name is None or position is None:
        return ""
    read = workbook.sheet(name)
    value = read.values(Window(*position, *position)).get(cell_key(*position))
    text = read.formula(cell_key(*position)) or ("" if value is None else str(value))
    return _cut(text, _MAX_VALUE_CHARS)
