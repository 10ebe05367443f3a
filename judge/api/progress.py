"""Progress of a batch: a live line on a terminal, plain lines elsewhere, a bar in notebooks.

All three count every finished case but time only those that were judged: results reused from the
results directory cost nothing, and would make the estimate too optimistic.
"""

from __future__ import annotations

import sys
import time
from collections import Counter
from types import TracebackType
from typing import IO, Protocol, Self

from judge.console import SECONDS_BETWEEN_LINES, clock, make_console
from judge.grading.batch import Event


class Progress(Protocol):
    """A context manager that is notified of each case."""

    def __call__(self, event: Event) -> None:
        """Counts one case."""
        ...

    def __enter__(self) -> Self: ...

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None: ...


class Tally:
    """Progress of a run: finished items, rate, and an estimate of the remaining time.

    Attributes:
        done: number of finished cases, including reused ones.
        total: number of all cases.
        verdicts: counts by verdict code.
    """

    def __init__(self) -> None:
        self.done = 0
        self.total = 0
        self.verdicts: Counter[str] = Counter()
        self._judged = 0
        self._started_s: float | None = None

    def add(self, event: Event) -> None:
        """Counts one case."""
        self.done, self.total = event.done, event.total
        self.verdicts[event.result.verdict.value] += 1
        if not event.reused:
            self._judged += 1

    def start(self) -> None:
        """Starts the timer; called when the work begins."""
        self._started_s = time.monotonic()

    @property
    def rate(self) -> float | None:
        """Cases judged per second; None before the first case was judged."""
        if self._started_s is None or not self._judged:
            return None
        return self._judged / max(time.monotonic() - self._started_s, 1e-6)

    @property
    def remaining_s(self) -> float | None:
        """Estimated seconds to the end; None before the first case was judged."""
        rate = self.rate
        return None if rate is None else (self.total - self.done) / rate

    def line(self) -> str:
        """The whole progress in one line of text."""
        parts = [f"{self.done}/{self.total} cases"]
        if (rate := self.rate) is not None:
            parts.append(f"{rate:.1f}/s")
        if (remaining := self.remaining_s) is not None and self.done < self.total:
            parts.append(f"{clock(remaining)} left")
        parts.append(" ".join(f"{code} {count}" for code, count in sorted(self.verdicts.items())))
        return ", ".join(part for part in parts if part)


class Silent:
    """Shows nothing."""

    def __call__(self, event: Event) -> None:
        """Ignores the event."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        return None


class PlainLines:
    """Writes a line every few seconds, for logs and pipes.

    Args:
        stream: where to write.
    """

    def __init__(self, stream: IO[str]) -> None:
        self._stream = stream
        self._tally = Tally()
        self._next_s = 0.0

    def __call__(self, event: Event) -> None:
        """Counts the case, and writes a line if it is time for one."""
        self._tally.add(event)
        now = time.monotonic()
        if now >= self._next_s or event.done == event.total:
            self._next_s = now + SECONDS_BETWEEN_LINES
            print(self._tally.line(), file=self._stream, flush=True)

    def __enter__(self) -> Self:
        self._tally.start()
        self._next_s = time.monotonic() + SECONDS_BETWEEN_LINES
        return self

    def __exit__(self, *_: object) -> None:
        return None


class LiveBar:
    """A live line on a terminal: bar, counts, rate, time left, verdicts."""

    def __init__(self) -> None:
        from rich.progress import BarColumn, TextColumn  # noqa: PLC0415  only a live terminal needs it
        from rich.progress import Progress as RichProgress  # noqa: PLC0415

        self._tally = Tally()
        self._bar = RichProgress(
            BarColumn(bar_width=24),
            TextColumn("{task.description}"),
            console=make_console(err=True),
            transient=True,
        )
        self._task = self._bar.add_task("starting", total=None)

    def __call__(self, event: Event) -> None:
        """Counts the case and redraws."""
        self._tally.add(event)
        self._bar.update(
            self._task,
            total=event.total,
            completed=event.done,
            description=self._tally.line(),
        )

    def __enter__(self) -> Self:
        self._tally.start()
        self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.stop()


class NotebookBar(LiveBar):
    """A live line for library users, which ``rich`` draws on a terminal or in a notebook cell."""


def progress_for(*, quiet: bool = False) -> Progress:
    """The progress display that fits: live on a terminal, plain lines elsewhere."""
    if quiet:
        return Silent()
    return LiveBar() if sys.stderr.isatty() else PlainLines(sys.stderr)
