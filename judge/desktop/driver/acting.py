"""Lets an actor process perform actions within limits, and reads its reports."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from judge.desktop.driver.processes import BrokenError, Processes, stand_apart

MAX_EVENTS = 1_000
MAX_PRINTED = 10_000
_MAX_REPORT_BYTES = 4 << 20
_READY_S = 30.0
_AGAIN_S = 0.05
_NO_PROCESS = "no process for an action can be started: {}"
_MODULES = (
    "judge.desktop.driver.calls",
    "judge.desktop.driver.permitted",
    "judge.desktop.driver.gui_values",
    "judge.desktop.driver.gui_only",
    "judge.desktop.driver.keys",
    "judge.desktop.driver.actor",
)
_PROGRAM = """\
import json, os, sys, types
given = json.loads(os.read({descriptor}, 1 << 20))
os.close({descriptor})
for name, text in given["modules"].items():
    package = name.rpartition(".")[0]
    while package and package not in sys.modules:
        sys.modules[package] = types.ModuleType(package)
        sys.modules[package].__path__ = []
        package = package.rpartition(".")[0]
    module = sys.modules[name] = types.ModuleType(name)
    exec(compile(text, name, "exec", dont_inherit=True), module.__dict__)
    setattr(sys.modules[name.rpartition(".")[0]], name.rpartition(".")[2], module)
main = sys.modules["judge.desktop.driver.actor"].main
main(given["corrections"])
"""


@dataclass(slots=True)
class Performed:
    """The outcome of an action; see ``judge.desktop.contract.ActionOutcome``."""

    error: str = ""
    refused: bool = False
    printed: str = ""
    events: list[list[Any]] = field(default_factory=list)


class _Ready:
    """An actor that waits for its request."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        self.process = process
        self.to = process.stdin
        self.reports = process.stdout.fileno()
        self.printed = process.stderr.fileno()
        for descriptor in (self.reports, self.printed):
            os.set_blocking(descriptor, False)

    def close(self) -> None:
        """Ends the process and its process group."""
        with contextlib.suppress(OSError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.kill()
        self.process.wait()
        for stream in (self.process.stdin, self.process.stdout, self.process.stderr):
            assert stream is not None
            with contextlib.suppress(OSError):
                stream.close()


class ActorPool:
    """Performs actions, each in a new actor process; the next process is always ready.

    Args:
        processes: the processes of the desktop.
        modules: source text of the driver's modules, by name.
        corrections: names of the corrections that apply.
    """

    def __init__(
        self, processes: Processes, modules: Mapping[str, str], corrections: frozenset[str]
    ) -> None:
        self._processes = processes
        self._modules = {name: modules[name] for name in _MODULES}
        self._corrections = corrections
        self._ready: _Ready | None = None

    def prepare(self) -> None:
        """Starts the next actor, unless one is ready."""
        if self._ready is not None:
            return
        end = time.monotonic() + _READY_S
        while self._ready is None:
            try:
                self._ready = self._started()
            except BlockingIOError as error:  # what an action started has not quite ended yet
                if time.monotonic() > end:
                    raise BrokenError(_NO_PROCESS.format(error)) from None
                self._processes.end_others()
                time.sleep(_AGAIN_S)
            except (OSError, subprocess.SubprocessError) as error:
                raise BrokenError(_NO_PROCESS.format(error)) from None

    def _started(self) -> _Ready:
        given = json.dumps(
            {"modules": self._modules, "corrections": sorted(self._corrections)}
        ).encode()
        passed = _filled_file(given)
        try:
            return _Ready(
                subprocess.Popen(
                    [sys.executable, "-s", "-P", "-c", _PROGRAM.format(descriptor=passed)],
                    env=self._processes.environment,
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE,
                    pass_fds=(passed,),
                    start_new_session=True,
                    preexec_fn=stand_apart,  # noqa: PLW1509 - see `stand_apart`
                    cwd="/",
                )
            )
        finally:
            os.close(passed)

    def perform(self, kind: str, what: Any, limit_s: float) -> Performed:
        """Performs one action.

        Args:
            kind: ``code``, ``gui-only`` or ``call``.
            what: the code, or the action of computer_13.
            limit_s: how long it may take, in seconds.

        Raises:
            BrokenError: no actor gets ready.
        """
        self.prepare()
        actor, self._ready = self._ready, None
        assert actor is not None
        reports = _ActorReports(actor)
        try:
            if not reports.until("ready", time.monotonic() + _READY_S):
                self._processes.check()
                raise BrokenError(f"no process for an action gets ready: {reports.shown()[-300:]}")
            request = json.dumps({"kind": kind, "what": what}).encode() + b"\n"
            ended = reports.send(request, time.monotonic() + limit_s)
        finally:
            actor.close()
        self._processes.end_others()
        done = Performed(printed=reports.shown(), events=reports.events)
        if reports.end is not None:
            done.error = str(reports.end.get("error", ""))[:8_000]
            done.refused = reports.end.get("refused") is True
        elif ended:
            done.error = "the action's process ended before it was done"
        else:
            done.error = f"the action took longer than {limit_s:g} s and was ended"
        return done

    def close(self) -> None:
        """Ends the waiting actor."""
        if self._ready is not None:
            self._ready.close()
            self._ready = None


class _ActorReports:
    """Reads the reports of an actor, and what it prints."""

    def __init__(self, actor: _Ready) -> None:
        self._actor = actor
        self._line = b""
        self._report_bytes = 0
        self._printed = bytearray()
        self._open = {actor.reports, actor.printed}
        self.ready = False
        self.end: dict[str, Any] | None = None
        self.events: list[list[Any]] = []

    def shown(self) -> str:
        """Returns the beginning of the printed text."""
        return self._printed[:MAX_PRINTED].decode("utf-8", "replace")

    def until(self, wanted: str, deadline: float) -> bool:
        """Reads until the actor is ready, or has reported its end; False if not in time."""
        while True:
            if (wanted == "ready" and self.ready) or self.end is not None:
                return True
            if self._actor.reports not in self._open:
                return False
            left = deadline - time.monotonic()
            if left <= 0:
                return False
            self._listen(left)

    def send(self, request: bytes, deadline: float) -> bool:
        """Sends the request and reads until the action ends; returns whether it ended in time."""
        with contextlib.suppress(OSError):
            os.set_blocking(self._actor.to.fileno(), True)
            self._actor.to.write(request)
            self._actor.to.flush()
        self.until("end", deadline)
        return time.monotonic() < deadline

    def _listen(self, left: float) -> None:
        for descriptor in select.select(list(self._open), [], [], left)[0]:
            try:
                chunk = os.read(descriptor, 1 << 16)
            except BlockingIOError:
                continue
            except OSError:
                chunk = b""
            if not chunk:
                self._open.discard(descriptor)
            elif descriptor == self._actor.reports:
                self._take_chunk(chunk)
            elif len(self._printed) < MAX_PRINTED:
                self._printed += chunk

    def _take_chunk(self, chunk: bytes) -> None:
        self._report_bytes += len(chunk)
        if self._report_bytes > _MAX_REPORT_BYTES:
            self.end = {"error": "the action reported more than there can be"}
            return
        *lines, self._line = (self._line + chunk).split(b"\n")
        for line in lines:
            try:
                report = json.loads(line)
            except (ValueError, RecursionError):
                continue
            if isinstance(report, dict):
                self._take(report)

    def _take(self, report: dict[str, Any]) -> None:
        if report.get("ready") is True:
            self.ready = True
        if isinstance(report.get("end"), dict):
            self.end = report["end"]
        event = report.get("event")
        if isinstance(event, list) and len(event) == 4 and len(self.events) < MAX_EVENTS:
            kind, x, y, detail = event
            if isinstance(x, int) and isinstance(y, int) and isinstance(detail, str):
                self.events.append([str(kind)[:20], x, y, detail[:2_000]])


def _filled_file(data: bytes) -> int:
    """Returns a descriptor from which a child process that inherits it can read the data."""
    reader, writer = os.pipe()
    try:
        fcntl.fcntl(writer, fcntl.F_SETPIPE_SZ, 1 << 20)
        os.write(writer, data)
    except OSError as error:
        os.close(reader)
        raise BrokenError(_NO_PROCESS.format(error)) from None
    finally:
        os.close(writer)
    return reader
