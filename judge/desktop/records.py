"""Episodes on record: one file each, a line for its head, for each turn, and for its end.

``RUN/episodes/{task id, quoted}.{sample}.{case}.jsonl``; a file without the line of the end belongs
to an episode that was interrupted, and is started again. Screenshots are in ``RUN/pictures`` and
tables of the tree in ``RUN/tables``, both under their SHA-256; the file that an episode leaves is
kept among the run's outputs.
"""

from typing import NotRequired, TypedDict

from judge.files.forms import Amount, Count, Sha256, TaskId

EPISODES_FOLDER = "episodes"
TABLES_FOLDER = "tables"


class PlaceRecord(TypedDict):
    """A place on the screen, pixels."""

    x: Count
    y: Count
    width: Count
    height: Count


class OptionsRecord(TypedDict):
    """Those of :class:`judge.desktop.contract.DesktopOptions`, of a run that is replayed."""

    width: Count
    height: Count
    as_published: list[str]
    gui_only: bool
    window: PlaceRecord | None
    clutter: Count
    action_s: Amount
    memory_bytes: Count


class EpisodeHead(TypedDict):
    """The first line."""

    line: str
    """``head``"""
    id: TaskId
    sample: Count
    case: Count
    model: str
    """The chat model; ``human`` for a person."""
    setting: str
    """``desktop/`` with observation and action space, such as ``desktop/screenshot/pyautogui``."""
    instruction: str
    options: dict[str, object]
    """Those of :class:`judge.desktop.contract.DesktopOptions`, as JSON."""
    image: str
    office: str
    ready_s: Amount
    started: str
    """ISO 8601, UTC."""
    files: NotRequired[dict[str, Sha256]]
    """Path inside -> SHA-256 of what the desktop was opened with."""
    opened: NotRequired[str]
    """Path of the file that the spreadsheet program opened."""
    collected: NotRequired[str]
    """Path of the file that is brought back."""
    attempt: NotRequired[Count]
    """How many desktops broke in this episode before."""


class SeenRecord(TypedDict):
    """What there was to see in a turn: what the setting shows, and the rest for those who watch."""

    screenshot: Sha256 | None
    """SHA-256 of the PNG, with the marks if the setting has them; None where there was none."""
    width: NotRequired[Count]
    height: NotRequired[Count]
    table: Sha256 | None
    """SHA-256 of the table of the tree, cut as for the model; None where there was none."""
    cut: bool
    """Whether the table was cut to its limit."""
    cursor: list[int]
    windows: list[str]
    tree_s: Amount
    screenshot_s: Amount


class ActionRecord(TypedDict):
    """An action and what became of it."""

    code: NotRequired[str]
    call: NotRequired[dict[str, object]]
    signal: NotRequired[str]
    error: str
    refused: bool
    printed: str
    events: list[list[object]]
    """``[kind, x, y, detail]`` each."""
    settled: bool
    seconds: Amount


class TurnRecord(TypedDict):
    """A line for each turn: what was shown, what was replied, what was done."""

    line: str
    """``turn``"""
    number: Count
    """From 1."""
    seen: SeenRecord
    reply: str
    """The reply as it came; empty for a person."""
    problem: str
    """Why the reply holds no action; empty if it does."""
    told: NotRequired[str]
    """What the next message says of the actions; empty for nothing."""
    actions: list[ActionRecord]
    seconds: Amount
    """From the observation to the last outcome."""


class EpisodeEnd(TypedDict):
    """The last line."""

    line: str
    """``end``"""
    ended: str
    """``done``, ``fail``, ``turns`` (all used), ``time`` (the limit), ``context-length``, or
    ``closed`` (a person closed the page)."""
    seconds: Amount
    turns: Count
    steps: Count
    """Actions that were performed."""
    output: Sha256 | None
    """SHA-256 of the file that was collected; None where there is none."""
    output_bytes: Count
    changed: bool
    problem: str
    """Why there is no file."""
