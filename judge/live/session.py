"""A person's session at a desktop: frames and input, what was done on record, the verdict.

Every gesture is in the episode's file as soon as it is over. The page may be loaded again at any
time: the session is here, not in the browser.
"""

from __future__ import annotations

import contextlib
import enum
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from judge.desktop.contract import (
    ActionOutcome,
    Collected,
    Desktop,
    DesktopOptions,
    Frame,
    InputEvent,
    Observation,
)
from judge.desktop.episodes import EpisodeEnd, EpisodeWriter
from judge.errors import SandboxError, UsageError
from judge.live.gestures import BrowserEvents, Gesture, Gestures

_IDLE_S = 2.0
"""After so long without an event, a gesture is over."""

_HOLD_S = 0.05
"""A button that is let go sooner is missed by the office's own widgets."""

_PATIENCE_S = 1.0
"""How long a request for a frame waits for a change."""

_BETWEEN_FRAMES_S = 0.2
_SOON_S = 0.03


class Ending(enum.StrEnum):
    """How a person ends an episode; the words of :class:`judge.desktop.episodes.EpisodeEnd`."""

    DONE = "done"
    FAIL = "fail"
    CLOSED = "closed"


class Phase(enum.StrEnum):
    """Where a session is."""

    WORKING = "working"
    JUDGING = "judging"
    OVER = "over"
    BROKEN = "broken"


@dataclass(frozen=True, slots=True)
class Asked:
    """What a person is asked.

    Attributes:
        suite: the suite's name.
        task: the task's id.
        case: number of the case.
        instruction: the question.
    """

    suite: str
    task: str
    case: int
    instruction: str


@dataclass(frozen=True, slots=True)
class Result:
    """What became of an episode.

    Attributes:
        verdict: its code.
        description: the verdict in words.
        cause: why; empty if there is nothing to say.
        lines: the differences.
    """

    verdict: str
    description: str
    cause: str = ""
    lines: tuple[str, ...] = ()


class Aftermath(Protocol):
    """What becomes of an episode that has ended."""

    def keep(self, collected: Collected) -> None:
        """Keeps the file that it left, before its end is on record."""
        ...

    def judge(self, end: EpisodeEnd) -> Result:
        """Judges the episode, whose end is on record."""
        ...


class LiveSession:
    """A person at a desktop. Safe to use from several threads.

    Args:
        desktop: the desktop, which belongs to the session from now on.
        options: what it is like.
        asked: what the person is asked.
        writer: where the episode goes.
        aftermath: what becomes of the episode.
        clock: seconds that only grow.

    Attributes:
        asked: as given.
        on_result: called with the verdict.
        failure: why the desktop broke, or what it left could not be judged; None as long as
            nothing failed.
    """

    def __init__(
        self,
        desktop: Desktop,
        options: DesktopOptions,
        asked: Asked,
        writer: EpisodeWriter,
        aftermath: Aftermath,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.asked = asked
        self.on_result: Callable[[Result], None] = lambda _: None
        self.failure: Exception | None = None
        self._desktop = desktop
        self._options = options
        self._writer = writer
        self._aftermath = aftermath
        self._clock = clock
        self._browser = BrowserEvents(options.width, options.height)
        self._gestures = Gestures()
        self._lock = threading.RLock()  # of everything here, and of the desktop
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
        """The person sees the task: the clock starts, if it does not run yet."""
        with self._lock:
            if self._started is None:
                self._started = self._turned = self._clock()

    @property
    def result(self) -> Result | None:
        """The verdict; None before there is one."""
        return self._result

    def state(self) -> dict[str, Any]:
        """Where the session is, for the page."""
        phase = self._phase  # first: where it says that all is over, there is a result
        result, failure = self._result, self.failure
        if result is not None:
            phase = Phase.OVER
        return {
            "suite": self.asked.suite,
            "task": self.asked.task,
            "case": self.asked.case,
            "instruction": self.asked.instruction,
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

    def frame(self, known: str) -> Frame | None:
        """What the screen shows, as soon as it is something else.

        Args:
            known: digest of the frame that the page shows.

        Returns:
            A frame; None once the session is over. Its picture is missing if nothing has changed.
        """
        until = self._clock() + _PATIENCE_S
        while True:
            frame = self._look(known)
            left = until - self._clock()
            if frame is None or frame.png is not None or left <= 0:
                return frame
            # Something that was just done shows soon, everything else whenever it likes.
            if self._fed.wait(min(left, _BETWEEN_FRAMES_S)):
                time.sleep(_SOON_S)

    def _look(self, known: str) -> Frame | None:
        with self._lock:
            self._fed.clear()
            if self._phase is not Phase.WORKING:
                return None
            self._keep(self._gestures.end(before=self._clock() - _IDLE_S))
            try:
                frame = self._desktop.frame(known)
            except SandboxError as error:
                self._broke(error)
                return None
            if frame.png is not None:
                self._last = frame.png
            return frame

    # -- what a person does -----------------------------------------------------------------------

    def feed(self, given: Any) -> None:
        """Does in the desktop what was done in the browser.

        Args:
            given: the events, as :meth:`judge.live.gestures.BrowserEvents.read` reads them.

        Raises:
            UsageError: they are something else, or the session is over.
        """
        with self._lock:
            self._check_working()
            events = self._browser.read(given)
            try:
                for part in _apart(events):
                    self._desktop.feed(part)
            except SandboxError as error:
                self._broke(error)
            self._note(events)
        self._fed.set()

    def _note(self, events: Sequence[InputEvent]) -> None:
        now = self._clock()
        for event in events:
            self._keep(self._gestures.take(event, now))
            if self._gestures.under_way and self._before is None:
                self._before = self._seen()

    def _seen(self) -> Observation:
        """What the person saw last."""
        return Observation(self._last, None, cursor=self._browser.cursor)

    def _keep(self, gestures: Sequence[Gesture]) -> None:
        """Puts gestures on record, a turn each."""
        for gesture in gestures:
            seen, self._before = self._before or self._seen(), None
            seconds = gesture.ended - gesture.began
            actions = [(action, ActionOutcome()) for action in gesture.actions]
            # What mouse and keyboard did is on record with the action that ends the gesture.
            last = ActionOutcome(events=tuple(gesture.events), seconds=seconds)
            actions[-1] = actions[-1][0], last
            # A turn is what a person thought before, too: turns add up to the time that passed.
            before = gesture.began if self._turned is None else self._turned
            self._turned = max(before, gesture.ended)
            kept = self._writer.files.keep(seen, None)
            self._writer.turn(kept, actions, seconds=self._turned - before)
            self._steps += len(actions)

    # -- how it ends ------------------------------------------------------------------------------

    def finish(self, ending: Ending) -> None:
        """Ends the episode, and judges it: returns with the verdict.

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
        """What fails ends the session; the page says why."""
        try:
            yield
        except Exception as error:
            self.failure, self._phase = error, Phase.BROKEN
            raise

    def close(self) -> None:
        """Ends the desktop; the record of an episode that has not ended stays without its end."""
        if self._phase is Phase.WORKING:
            self._phase = Phase.BROKEN  # first, or what is cut off would count as a failure
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
        """A desktop that breaks ends the session; the page says why."""
        if self._phase is Phase.WORKING:
            self.failure, self._phase = error, Phase.BROKEN


def _apart(events: Sequence[InputEvent]) -> Iterator[Sequence[InputEvent]]:
    """Events in parts: a button that is pressed and let go at once is held for a moment."""
    start, is_down = 0, False
    for place, event in enumerate(events):
        if event.kind == "release" and is_down:
            yield events[start:place]
            start = place
            time.sleep(_HOLD_S)
        is_down = event.kind == "press" or (is_down and event.kind == "move")
    yield events[start:]
