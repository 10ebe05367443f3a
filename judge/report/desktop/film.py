"""Shrinks screenshots, and animates an episode; pictures are decoded only in the sandbox."""

from __future__ import annotations

import base64
import contextlib
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from judge.desktop.episodes import (
    ActionRecord,
    Episode,
    EpisodeFiles,
    TurnRecord,
    episode_path,
    read_episode,
)
from judge.errors import JudgeError, SandboxError, StoreError
from judge.files.documents import MIB, dump_json
from judge.files.media import image_type
from judge.grading.case_records import case_records, result_of_record
from judge.grading.store import RunDirectory
from judge.report.desktop.episodes import ending_in_words
from judge.report.desktop.marks import Mark, marks_of
from judge.report.html.figures import with_named_characters
from judge.sandbox import open_sandbox
from judge.sandbox.bundle import program_text
from judge.sandbox.contract import Sandbox, ServiceChannel

FORMS = ("gif", "webp")
"""The formats of an animated picture."""

MAX_FILM_BYTES = 10 * MIB
"""Largest file, in bytes: Markdown pages accept pictures of this size."""

MAX_TURNS = 120
"""How many turns are shown; a longer episode is cut off."""

_PROGRAM = ("judge.inference.picture_worker", "judge.report.desktop.film_worker")
_WIDTH, _HEIGHT = 960, 540
_TURN_MS, _END_MS = 1_800, 3_000
_SIDE, _QUALITY = 1_280, 60
_MAX_PIXELS = 20_000_000
_MEMORY_BYTES = 2 * 1024**3
_TIMEOUT_S = 60.0
_FINISH_TIMEOUT_S = 300.0
_MAX_LINE_CHARS = 300
_MAX_MARKS = 40


def film_of_case(
    run: Path, task_id: str, case: int, *, sample: int = 0, form: str = "gif", sandbox: str = "auto"
) -> bytes:
    """The episode of a case as an animated picture, which every page can show.

    Args:
        run: the results directory.
        task_id: the task.
        case: the 1-based number of the case.
        sample: the 0-based number among several solutions of the task.
        form: one of :data:`FORMS`.
        sandbox: the sandbox that decodes the screenshots: ``docker``, ``bubblewrap`` or ``auto``.

    Raises:
        StoreError: the directory does not hold such an episode, or it cannot be shown.
        SandboxError: no sandbox is available.
    """
    path = episode_path(run, task_id, sample, case)
    if not path.is_file():
        raise StoreError(
            f"{run}: holds no desktop episode of task {task_id}, case {case}, sample {sample}",
            hint="`judge report RUN --format csv --table episodes` lists those that it holds.",
        )
    with RunDirectory(run) as store:
        record = case_records(store).get((task_id, sample, case))
    verdict = "" if record is None else result_of_record(record).verdict.description
    with contextlib.closing(FilmStudio(lambda: open_sandbox(sandbox))) as studio:
        return studio.film(read_episode(path), EpisodeFiles(run), form, verdict=verdict)


class FilmStudio:
    """Processes screenshots in a service of the sandbox, which is opened when first needed.

    Args:
        open_sandbox: opens the sandbox; called once.
    """

    def __init__(self, open_sandbox: Callable[[], Sandbox]) -> None:
        self._open = open_sandbox
        self._sandbox: Sandbox | None = None
        self._channel: ServiceChannel | None = None
        self._is_broken = False

    def shrink(self, picture: bytes) -> bytes | None:
        """A smaller version of a picture; None if it cannot be made, or no sandbox is available."""
        if self._is_broken:
            return None
        frame = {
            "do": "shrink",
            "picture": base64.b64encode(picture).decode("ascii"),
            "side": _SIDE,
            "quality": _QUALITY,
            "max_pixels": _MAX_PIXELS,
        }
        try:
            image = self._call(frame, _TIMEOUT_S)
        except StoreError:
            return None
        except JudgeError:
            # Without a sandbox, pictures keep their size.
            self._is_broken = True
            return None
        return image if image and image_type(image) == "image/webp" else None

    def film(self, episode: Episode, files: EpisodeFiles, form: str, *, verdict: str) -> bytes:
        """An episode as an animated picture, turn by turn.

        Args:
            episode: the episode.
            files: its screenshots.
            form: one of :data:`FORMS`.
            verdict: the verdict in words, shown with the last turn.

        Raises:
            StoreError: the episode has no turn, or a screenshot cannot be decoded.
            SandboxError: no sandbox is available.
        """
        if not episode.turns:
            raise StoreError(f"{episode.path}: has no turn, so there is nothing to show")
        for frame in _frames(episode, files, verdict):
            self._call({"do": "turn", **frame}, _TIMEOUT_S)
        end = {"do": "finish", "form": form, "max_bytes": MAX_FILM_BYTES}
        image = self._call(end, _FINISH_TIMEOUT_S)
        if image_type(image) != f"image/{form}":
            raise StoreError(f"{episode.path}: the result is not a {form.upper()} picture")
        return image

    def close(self) -> None:
        """Ends the service and the sandbox; safe to call twice."""
        channel, self._channel = self._channel, None
        sandbox, self._sandbox = self._sandbox, None
        if channel is not None:
            channel.close()
        if sandbox is not None:
            sandbox.close()

    def _call(self, frame: Mapping[str, object], timeout_s: float) -> bytes:
        if self._channel is None:
            self._sandbox = self._sandbox or self._open()
            self._channel = self._sandbox.service(
                program_text(*_PROGRAM), root="python", memory_bytes=_MEMORY_BYTES
            )
        try:
            answer = json.loads(self._channel.call(json.dumps(frame).encode(), timeout_s))
            error, image = answer.get("error"), base64.b64decode(answer.get("made") or "")
        except (TimeoutError, SandboxError) as failure:
            # The picture crashed the service (memory, a decoder's bug); the next gets a new one.
            self._channel.close()
            self._channel = None
            raise StoreError(f"a screenshot could not be read: {failure}") from failure
        except (ValueError, AttributeError, TypeError, RecursionError) as failure:
            raise StoreError("a screenshot could not be read: no answer came") from failure
        if error is not None:
            raise StoreError(f"a screenshot could not be read: {str(error)[:300]}")
        return image


def _frames(episode: Episode, files: EpisodeFiles, verdict: str) -> Iterator[dict[str, Any]]:
    """The frames of the film, one for each turn."""
    turns = episode.turns[:MAX_TURNS]
    elapsed_s = 0.0
    for turn in turns:
        picture = None
        if (digest := turn["seen"]["screenshot"]) is not None:
            with contextlib.suppress(StoreError):
                picture = files.screenshot(digest)
        marks = [mark for action in turn["actions"] for mark in marks_of(action["events"])]
        head = f"Turn {turn['number']} of {len(episode.turns)} · {elapsed_s:.0f} s"
        is_last = turn is turns[-1]
        lines = [head, *_lines(turn, marks)]
        if is_last:
            end = ending_in_words(None if episode.end is None else episode.end["ended"])
            lines[0] += f" · end: {end}" + (f" · {verdict}" if verdict else "")
        yield {
            "picture": None if picture is None else base64.b64encode(picture).decode("ascii"),
            "width": _WIDTH,
            "height": _HEIGHT,
            "max_pixels": _MAX_PIXELS,
            "marks": [asdict(mark) for mark in marks[:_MAX_MARKS]],
            "lines": [_line(line) for line in lines],
            "ms": _END_MS if is_last else _TURN_MS,
        }
        elapsed_s += turn["seconds"]


def _lines(turn: TurnRecord, marks: list[Mark]) -> Iterator[str]:
    """The actions of a turn, and the failures among them."""
    performed = " ".join(_done(action) for action in turn["actions"])
    typed = " ".join(
        f"{'types' if mark.kind == 'type' else 'presses'} {mark.text}"
        for mark in marks
        if mark.kind in {"type", "keys"}
    )
    yield performed or typed or turn["problem"]
    failed = [action["error"].strip().rpartition("\n")[2] for action in turn["actions"]]
    yield next((f"failed: {error}" for error in failed if error), typed if performed else "")


def _done(action: ActionRecord) -> str:
    if "code" in action:
        return action["code"].strip().replace("\n", " ⏎ ")
    if "call" in action:
        return dump_json(action["call"], spaced=True)
    return action.get("signal", "")


def _line(text: str) -> str:
    return with_named_characters(" ".join(text[:_MAX_LINE_CHARS].split()))
