"""Desktops in a sandbox: the driver runs inside, and this module sends it requests."""

from __future__ import annotations

import contextlib
import hashlib
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ParamSpec, TypeVar

from judge.closable import Closable
from judge.console import visible
from judge.desktop.contract import (
    CORRECTIONS,
    HOME,
    Action,
    ActionOutcome,
    CollectedFile,
    DesktopHost,
    DesktopInfo,
    DesktopOptions,
    DesktopTask,
    Element,
    Frame,
    InputEvent,
    Observation,
    Signal,
)
from judge.desktop.driver import driver_digest, program_text
from judge.errors import SandboxError
from judge.sandbox import open_sandbox
from judge.sandbox.contract import Sandbox, ServiceChannel
from judge.sandbox.warden import frames

ROOT = "desktop"
_START_S = 150.0
_OBSERVE_S = 60.0
_SAVE_S = 60.0
_FEED_S = 120.0
_MAX_EVENTS = 500
_SETTLE_S = 60.0
_MAX_MESSAGE_CHARS = 600
_PROBLEMS = {
    "missing": "there is no file",
    "too_large": "the file is too long",
    "not_a_file": "it is a folder",
    "link": "it is a link",
    "special": "it is not a regular file",
}


class SandboxDesktopHost:
    """Opens desktops in the sandbox's root ``desktop``.

    Args:
        sandbox: the sandbox in which they run; the caller closes it.
    """

    def __init__(self, sandbox: Sandbox) -> None:
        self._sandbox = sandbox

    def open(self, task: DesktopTask, options: DesktopOptions) -> SandboxDesktop:
        """Opens a fresh desktop, and waits until it has settled with the file open.

        Raises:
            SandboxError: there is no such root, or the desktop does not start.
        """
        unknown = sorted(options.as_published - CORRECTIONS.keys())
        if unknown:
            raise SandboxError(
                f"no such correction of the desktop: {unknown[0]}",
                hint=f"known: {', '.join(CORRECTIONS)}",
            )
        for path in {*task.files, task.opened, task.collected}:
            if not path.startswith(f"{HOME}/"):
                raise SandboxError(f"{path} is not below {HOME}, where a desktop's files are")
        channel = self._sandbox.service(
            program_text(), root=ROOT, memory_bytes=options.memory_bytes
        )
        link = _Link(channel)
        try:
            started, _ = link.ask(_start_header(task, options), list(task.files.values()), _START_S)
            info = DesktopInfo(
                image=_image(self._sandbox.root_digest(ROOT)),
                office=str(started.get("office", "")),
                ready_s=_seconds(started.get("ready_s")),
            )
        except BaseException:
            link.close()
            raise
        return SandboxDesktop(link, info, options)


class SandboxDesktop(Closable):
    """An open desktop; see :class:`judge.desktop.contract.Desktop`."""

    def __init__(self, link: _Link, info: DesktopInfo, options: DesktopOptions) -> None:
        self._link = link
        self._info = info
        self._options = options

    @property
    def info(self) -> DesktopInfo:
        """Description of the backend."""
        return self._info

    def observe(
        self, *, screenshot: bool = True, tree: bool = True, marks: bool = False
    ) -> Observation:
        """Observes the present state of the desktop."""
        header = {"op": "observe", "screenshot": screenshot, "tree": tree, "marks": marks}
        return _answered(_observation, *self._link.ask(header, [], _OBSERVE_S))

    def perform(self, action: Action) -> ActionOutcome:
        """Performs an action, and waits until the desktop has settled."""
        kind, content = _request_of(action, gui_only=self._options.gui_only)
        header = {"op": "perform", "kind": kind, "what": content}
        done, _ = self._link.ask(header, [], self._options.action_s + _SETTLE_S)
        return _answered(_outcome, done)

    def feed(self, events: Sequence[InputEvent]) -> None:
        """Repeats the mouse and keyboard events of a person, in order, without waiting."""
        rows = [
            (event.kind, event.x, event.y, event.detail.encode("utf-8", "replace").decode("utf-8"))
            for event in events
        ]
        for start in range(0, len(rows), _MAX_EVENTS):
            batch = rows[start : start + _MAX_EVENTS]
            self._link.ask({"op": "feed", "events": batch}, [], _FEED_S)

    def frame(self, digest: str = "") -> Frame:
        """Returns the screen immediately, without the tree."""
        answer, blobs = self._link.ask({"op": "frame", "known": digest}, [], _OBSERVE_S)
        return _answered(_frame, answer, blobs)

    def save(self) -> CollectedFile:
        """Saves with ctrl+s as a user would, and collects the file."""
        return _answered(_collected, *self._link.ask({"op": "save"}, [], _SAVE_S))

    def collect(self) -> CollectedFile:
        """Collects the file without saving it first."""
        return _answered(_collected, *self._link.ask({"op": "collect"}, [], _SAVE_S))

    def memory_bytes(self) -> int:
        """Returns the memory of everything on the desktop; shared memory counts proportionally."""
        answer, _ = self._link.ask({"op": "memory"}, [], _OBSERVE_S)
        return int(answer["memory_bytes"])

    def close(self) -> None:
        """Ends the desktop and everything in it; safe to call twice, and from another thread."""
        self._link.close()


class _Link:
    """The connection to a driver."""

    def __init__(self, channel: ServiceChannel) -> None:
        self._channel = channel
        self._lock = threading.Lock()
        self._closed = False

    def ask(
        self, header: Mapping[str, Any], blobs: list[bytes], timeout_s: float
    ) -> tuple[dict[str, Any], list[bytes]]:
        """Sends a request and returns the answer.

        Raises:
            SandboxError: the desktop broke.
        """
        if self._closed:
            raise SandboxError("the desktop was closed")
        try:
            payload = frames.pack(dict(header), blobs)[4:]
            answer, parts = frames.unpack(self._channel.call(payload, timeout_s))
        except TimeoutError as error:
            raise SandboxError(
                f"the desktop broke: no answer in {timeout_s:g} s ({header['op']})"
            ) from error
        except (frames.ProtocolError, RecursionError) as error:
            self.close()
            raise SandboxError(f"the desktop broke: {error}") from error
        except SandboxError as error:
            self.close()
            raise SandboxError(f"the desktop broke: {error.message}", hint=error.hint) from error
        if "broke" in answer:
            self.close()
            why = visible(str(answer["broke"])[:_MAX_MESSAGE_CHARS])
            raise SandboxError(f"the desktop broke: {why}")
        return answer, parts

    def close(self) -> None:
        """Ends the driver and everything inside."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
        self._channel.close()


P = ParamSpec("P")
T = TypeVar("T")


def _answered(read: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Reads the answer of a driver, which is untrusted because the model's actions run next to it.

    Raises:
        SandboxError: it is not a valid answer.
    """
    try:
        return read(*args, **kwargs)
    except (KeyError, IndexError, TypeError, ValueError) as error:
        raise SandboxError(
            f"the desktop broke: its driver's answer cannot be read ({error!r:.200})"
        ) from error


def _start_header(task: DesktopTask, options: DesktopOptions) -> dict[str, Any]:
    window = options.window
    return {
        "op": "start",
        "files": list(task.files),
        "opened": task.opened,
        "collected": task.collected,
        "width": options.width,
        "height": options.height,
        "corrections": sorted(CORRECTIONS.keys() - options.as_published),
        "gui_only": options.gui_only,
        "window": None if window is None else [window.x, window.y, window.width, window.height],
        "clutter": options.clutter,
        "action_s": options.action_s,
    }


def _image(root: str | None) -> str:
    return hashlib.sha256(f"{root}\0{driver_digest()}".encode()).hexdigest()[:16]


def _request_of(action: Action, *, gui_only: bool) -> tuple[str, Any]:
    """Returns the kind and content of an action, as the driver expects them."""
    parts = [part for part in (action.code, action.call, action.signal) if part is not None]
    if len(parts) != 1:
        raise ValueError("exactly one of code, call and signal is given")
    if action.signal is not None:
        return ("wait" if action.signal is Signal.WAIT else "nothing"), None
    if action.code is not None:
        # A lone surrogate cannot be sent, and has no meaning in Python code.
        code = action.code.encode("utf-8", "replace").decode("utf-8")
        return ("gui-only" if gui_only else "code"), code
    assert action.call is not None
    kind = action.call.get("action_type")
    if kind == Signal.WAIT:
        return "wait", None
    return ("nothing" if kind in {Signal.FAIL, Signal.DONE} else "call"), dict(action.call)


def _seconds(value: object) -> float:
    return float(value) if isinstance(value, int | float) else 0.0


def _observation(facts: dict[str, Any], blobs: list[bytes]) -> Observation:
    rows, numbers = facts["elements"], facts.get("marks")
    x, y = facts["cursor"]
    return Observation(
        screenshot=blobs[0] if blobs else None,
        elements=None if rows is None else tuple(_element(row) for row in rows),
        marks=None if numbers is None else {int(mark): int(element) for mark, element in numbers},
        cursor=(x, y),
        windows=tuple(facts["windows"]),
        tree_s=_seconds(facts["tree_s"]),
        screenshot_s=_seconds(facts["screenshot_s"]),
    )


def _element(row: list[Any]) -> Element:
    role, name, text, box, states, parent, value = row
    x, y, width, height = box if box is not None else (None,) * 4
    return Element(
        role=role,
        name=name,
        text=text,
        x=x,
        y=y,
        width=width,
        height=height,
        states=frozenset(states),
        parent=parent,
        value=value,
    )


def _outcome(done: dict[str, Any]) -> ActionOutcome:
    return ActionOutcome(
        error=str(done["error"]),
        refused=done["refused"] is True,
        printed=str(done["printed"]),
        events=tuple(InputEvent(*event) for event in done["events"]),
        settled=done["settled"] is True,
        seconds=_seconds(done["seconds"]),
    )


def _frame(answer: dict[str, Any], blobs: list[bytes]) -> Frame:
    return Frame(digest=str(answer["digest"]), png=blobs[0] if blobs else None)


def _collected(answer: dict[str, Any], blobs: list[bytes]) -> CollectedFile:
    status = str(answer["status"])
    if status == "collected" and blobs:
        return CollectedFile(data=blobs[0], changed=answer["changed"] is True)
    problem = _PROBLEMS.get(status, status)
    return CollectedFile(data=None, changed=True, problem=problem)


def open_desktops(
    kind: str, jobs: int, stack: contextlib.ExitStack | contextlib.AsyncExitStack
) -> DesktopHost:
    """Opens a sandbox for desktops.

    Args:
        kind: ``docker``, ``bubblewrap``, or ``auto``: the sandbox that solutions would get or, if
            it has no desktops, the other one.
        jobs: how many desktops may be open at a time.
        stack: closes the sandbox.

    Raises:
        SandboxError: there is no such sandbox.
    """
    sandbox = stack.enter_context(contextlib.closing(open_sandbox(kind, jobs=jobs)))
    if kind == "auto" and not sandbox.has_root(ROOT):
        with contextlib.suppress(SandboxError):
            sandbox = _embedded(jobs, stack) or sandbox
    return SandboxDesktopHost(sandbox)


def _embedded(jobs: int, stack: contextlib.ExitStack | contextlib.AsyncExitStack) -> Sandbox | None:
    """Returns the embedded sandbox if it has desktops."""
    sandbox = stack.enter_context(contextlib.closing(open_sandbox("bubblewrap", jobs=jobs)))
    return sandbox if sandbox.has_root(ROOT) else None
