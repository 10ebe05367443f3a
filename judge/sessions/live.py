"""A person's session on a desktop, and its page: frames and input, the record of the episode.

Each gesture is written to the episode's file as soon as it is complete. The page can be reloaded at
any time, because the session is on the server, not in the browser.
"""

from __future__ import annotations

import base64
import contextlib
import enum
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from starlette.requests import Request

from judge.desktop.contract import (
    ActionOutcome,
    CollectedFile,
    Desktop,
    DesktopOptions,
    Frame,
    InputEvent,
    Observation,
)
from judge.desktop.episodes import EpisodeEnd, EpisodeWriter
from judge.errors import SandboxError, UsageError
from judge.local_page import INLINE_POLICY, LocalPage, object_of
from judge.report.html.page import Assets, render_page
from judge.sessions.gestures import BrowserEvents, Gesture, Gestures

_IDLE_S = 2.0
"""A gesture is complete after this many seconds without an event."""

_HOLD_S = 0.05
"""Seconds between press and release of a button; LibreOffice's widgets miss shorter clicks."""

_PATIENCE_S = 1.0
"""Seconds that a request for a frame waits for a change."""

_BETWEEN_FRAMES_S = 0.2
_SOON_S = 0.03


class Ending(enum.StrEnum):
    """How a person ends an episode; values as in :class:`judge.desktop.episodes.EpisodeEnd`."""

    DONE = "done"
    FAIL = "fail"
    CLOSED = "closed"


class Phase(enum.StrEnum):
    """The phase of a session."""

    WORKING = "working"
    JUDGING = "judging"
    OVER = "over"
    BROKEN = "broken"


@dataclass(frozen=True, slots=True)
class SessionTask:
    """The task of a session.

    Attributes:
        suite: the suite's name.
        task: the task's id.
        case: number of the case.
        instruction: its instruction.
    """

    suite: str
    task: str
    case: int
    instruction: str


@dataclass(frozen=True, slots=True)
class Result:
    """The verdict on an episode, as the page shows it.

    Attributes:
        verdict: its code.
        description: the verdict in words.
        cause: the reason; empty if there is none.
        lines: the differences, one line each.
    """

    verdict: str
    description: str
    cause: str = ""
    lines: tuple[str, ...] = ()


class EpisodeJudge(Protocol):
    """Keeps and judges an episode that has ended."""

    def keep(self, collected: CollectedFile) -> None:
        """Keeps the file that the episode leaves, before its end is recorded."""
        ...

    def judge(self, end: EpisodeEnd) -> Result:
        """Judges the episode after its end has been recorded."""
        ...


class LiveSession:
    """A person at a desktop. Safe to use from several threads.

    Args:
        desktop: the desktop, which the session closes.
        options: its options.
        task: the task.
        writer: records the episode.
        aftermath: keeps and judges the episode.
        clock: a monotonic clock, in seconds.

    Attributes:
        task: the task.
        on_result: called with the verdict.
        failure: why the desktop broke, or why the episode could not be judged; None if nothing
            has failed.
    """

    def __init__(
        self,
        desktop: Desktop,
        options: DesktopOptions,
        task: SessionTask,
        writer: EpisodeWriter,
        aftermath: EpisodeJudge,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.task = task
        self.on_result: Callable[[Result], None] = lambda _: None
        self.failure: Exception | None = None
        self._desktop = desktop
        self._options = options
        self._writer = writer
        self._aftermath = aftermath
        self._clock = clock
        self._browser = BrowserEvents(options.width, options.height)
        self._gestures = Gestures()
        self._lock = threading.RLock()  # guards this object and the desktop
        self._fed = threading.Event()
        self._phase = Phase.WORKING
        self._started: float | None = None
        self._ended: float | None = None
        self._turned: float | None = None
        self._steps = 0
        self._last: bytes | None = None
        self._before: Observation | None = None
        self._result: Result | None = None

    # -- what the page shows ----------------------------------------------------------------------

    def begin(self) -> None:
        """Starts the clock when the person first sees the task."""
        with self._lock:
            if self._started is None:
                self._started = self._turned = self._clock()

    @property
    def result(self) -> Result | None:
        """The verdict; None until there is one."""
        return self._result

    def state(self) -> dict[str, Any]:
        """The state of the session, for the page."""
        phase = self._phase  # read before the result, which exists once the phase is over
        result, failure = self._result, self.failure
        if result is not None:
            phase = Phase.OVER
        return {
            "suite": self.task.suite,
            "task": self.task.task,
            "case": self.task.case,
            "instruction": self.task.instruction,
            "width": self._options.width,
            "height": self._options.height,
            "phase": phase.value,
            "seconds": round(self._seconds(), 1),
            "steps": self._steps,
            "failure": None if failure is None else str(failure),
            "result": None
            if result is None
            else {
                "verdict": result.verdict,
                "description": result.description,
                "cause": result.cause,
                "lines": list(result.lines),
            },
        }

    def frame(self, shown_digest: str) -> Frame | None:
        """Waits until the screen has changed.

        Args:
            shown_digest: digest of the frame that the page shows.

        Returns:
            A frame; None once the session is over. Its picture is missing if nothing has changed.
        """
        until = self._clock() + _PATIENCE_S
        while True:
            frame = self._look(shown_digest)
            left_s = until - self._clock()
            if frame is None or frame.png is not None or left_s <= 0:
                return frame
            # The effect of an input is visible soon; other changes may come at any time.
            if self._fed.wait(min(left_s, _BETWEEN_FRAMES_S)):
                time.sleep(_SOON_S)

    def _look(self, shown_digest: str) -> Frame | None:
        with self._lock:
            self._fed.clear()
            if self._phase is not Phase.WORKING:
                return None
            self._keep(self._gestures.end(before=self._clock() - _IDLE_S))
            try:
                frame = self._desktop.frame(shown_digest)
            except SandboxError as error:
                self._broke(error)
                return None
            if frame.png is not None:
                self._last = frame.png
            return frame

    # -- input from the person --------------------------------------------------------------------

    def feed(self, events: Any) -> None:
        """Performs on the desktop what the person did in the browser.

        Args:
            events: the events, for :meth:`judge.sessions.gestures.BrowserEvents.read`.

        Raises:
            UsageError: the events are not valid, or the session is over.
        """
        with self._lock:
            self._check_working()
            inputs = self._browser.read(events)
            try:
                for part in _apart(inputs):
                    self._desktop.feed(part)
            except SandboxError as error:
                self._broke(error)
            self._note(inputs)
        self._fed.set()

    def _note(self, events: Sequence[InputEvent]) -> None:
        now = self._clock()
        for event in events:
            self._keep(self._gestures.take(event, now))
            if self._gestures.under_way and self._before is None:
                self._before = self._seen()

    def _seen(self) -> Observation:
        """The last screen that the person saw."""
        return Observation(self._last, None, cursor=self._browser.cursor)

    def _keep(self, gestures: Sequence[Gesture]) -> None:
        """Records gestures, one turn each."""
        for gesture in gestures:
            seen, self._before = self._before or self._seen(), None
            seconds = gesture.ended - gesture.began
            actions = [(action, ActionOutcome()) for action in gesture.actions]
            # The events are recorded with the last action of the gesture.
            last = ActionOutcome(events=tuple(gesture.events), seconds=seconds)
            actions[-1] = actions[-1][0], last
            # A turn includes the time to think, so the times of all turns add up to the whole time.
            before = gesture.began if self._turned is None else self._turned
            self._turned = max(before, gesture.ended)
            kept = self._writer.files.keep(seen, None)
            self._writer.turn(kept, actions, seconds=self._turned - before)
            self._steps += len(actions)

    # -- the end of the session -------------------------------------------------------------------

    def finish(self, ending: Ending) -> None:
        """Ends the episode and judges it; returns once there is a verdict.

        Raises:
            UsageError: the session is over.
        """
        with self._lock:
            self._check_working()
            self._keep(self._gestures.end())
            self._ended = self._clock()
            try:
                self._desktop.feed(self._browser.let_go())
                done = ending is Ending.DONE
                collected = self._desktop.save() if done else self._desktop.collect()
            except SandboxError as error:
                self._broke(error)
                return
            finally:
                self._desktop.close()
            self._phase = Phase.JUDGING
            with self._failing():
                self._aftermath.keep(collected)
                end = self._writer.end(ending.value, collected, self._seconds())
        with self._failing():
            self._result = self._aftermath.judge(end)
        self._phase = Phase.OVER
        self.on_result(self._result)

    @contextlib.contextmanager
    def _failing(self) -> Iterator[None]:
        """Ends the session if the block fails; the page then shows why."""
        try:
            yield
        except Exception as error:
            self.failure, self._phase = error, Phase.BROKEN
            raise

    def close(self) -> None:
        """Closes the desktop; if the episode has not ended, its record is left without an end."""
        if self._phase is Phase.WORKING:
            # This comes first, so that interrupted work does not count as a failure.
            self._phase = Phase.BROKEN
        self._desktop.close()
        with self._lock:
            self._writer.close()

    def _seconds(self) -> float:
        if self._started is None:
            return 0.0
        return (self._clock() if self._ended is None else self._ended) - self._started

    def _check_working(self) -> None:
        if self._phase is not Phase.WORKING:
            raise UsageError("the session is over", hint="Load the page again to see how it ended.")

    def _broke(self, error: SandboxError) -> None:
        """Ends the session because the desktop broke; the page shows why."""
        if self._phase is Phase.WORKING:
            self.failure, self._phase = error, Phase.BROKEN


def _apart(events: Sequence[InputEvent]) -> Iterator[Sequence[InputEvent]]:
    """Splits events into batches, so that even a quick click holds the button for a moment."""
    start, is_down = 0, False
    for index, event in enumerate(events):
        if event.kind == "release" and is_down:
            yield events[start:index]
            start = index
            time.sleep(_HOLD_S)
        is_down = event.kind == "press" or (is_down and event.kind == "move")
    yield events[start:]


_ASSETS = Assets(scripts=("base.js", "ask.js", "live.js"), styles=("style.css", "live.css"))
_COMMAND = "judge desktop"


class LivePage(LocalPage):
    """A page with a desktop that a person works on.

    Args:
        session: the session.
        port: the port that requests must name.
    """

    def __init__(self, session: LiveSession, port: int = 0) -> None:
        super().__init__(_COMMAND, INLINE_POLICY, port)
        self._session = session

    def index(self) -> str:
        """The page with its token; the clock starts when it is first loaded."""
        self._session.begin()
        task = self._session.task
        context = {
            "token": self.token,
            "command": _COMMAND,
            "suite": task.suite,
            "task": task.task,
            "case": task.case,
            "instruction": task.instruction,
        }
        return render_page("live.html", context, _ASSETS, connects=True)

    def respond(
        self, method: str, path: str, request: Request, body: bytes
    ) -> dict[str, Any] | None:
        """The answers to the page's script."""
        match method, path:
            case "GET", "/api/state":
                return self._session.state()
            case "GET", "/api/frame":
                return self._frame(request.query_params.get("known", ""))
            case "POST", "/api/input":
                self._session.feed(object_of(body).get("events"))
                return {}
            case "POST", "/api/finish":
                self._session.finish(_ending(object_of(body).get("ending")))
                return self._session.state()
        return None

    def _frame(self, shown_digest: str) -> dict[str, Any]:
        frame = None if self.closing else self._session.frame(shown_digest)
        if frame is None:
            return {"state": self._session.state()}
        png = None if frame.png is None else base64.b64encode(frame.png).decode("ascii")
        return {"digest": frame.digest, "png": png, "state": self._session.state()}


def _ending(value: Any) -> Ending:
    try:
        return Ending(value)
    except ValueError as error:
        raise UsageError(f"the end of an episode must be one of {', '.join(Ending)}") from error
