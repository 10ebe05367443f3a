"""The driver's main program: answers the requests of the judge, one frame each.

A request is a message of ``judge.sandbox.warden.frames`` with ``op`` in its header. If the desktop
broke, the answer has ``broke`` in it, and no more requests can be answered.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

from judge.desktop.driver import settings
from judge.desktop.driver.desk import DrivenDesktop, Options
from judge.desktop.driver.processes import BrokenError
from judge.sandbox.warden import frames

Answer = tuple[dict[str, Any], list[bytes]]


class Service:
    """Answers requests about one desktop.

    Args:
        modules: source of the driver's modules by name.
    """

    def __init__(self, modules: Mapping[str, str]) -> None:
        self._modules = modules
        self._desktop: DrivenDesktop | None = None

    def answer(self, header: dict[str, Any], blobs: list[bytes]) -> Answer:
        """Answers a request."""
        if header["op"] == "start":
            return self._start(header, blobs)
        assert self._desktop is not None
        if header["op"] == "observe":
            facts, picture = self._desktop.observe(
                picture=header["screenshot"], nodes=header["tree"], numbered=header["marks"]
            )
            return facts, [] if picture is None else [picture]
        if header["op"] == "perform":
            done, settled, seconds = self._desktop.perform(header["kind"], header["what"])
            return {
                "error": done.error,
                "refused": done.refused,
                "printed": done.printed,
                "events": done.events,
                "settled": settled,
                "seconds": seconds,
            }, []
        if header["op"] == "feed":
            self._desktop.feed([tuple(event) for event in header["events"]])
            return {}, []
        if header["op"] == "frame":
            digest, picture = self._desktop.frame(header["known"])
            return {"digest": digest}, [] if picture is None else [picture]
        if header["op"] == "memory":
            return {"memory_bytes": self._desktop.memory_bytes()}, []
        status, changed, content = (
            self._desktop.save() if header["op"] == "save" else self._desktop.collect()
        )
        return {"status": status, "changed": changed}, [] if content is None else [content]

    def _start(self, header: dict[str, Any], blobs: list[bytes]) -> Answer:
        window = header["window"]
        options = Options(
            width=header["width"],
            height=header["height"],
            corrections=frozenset(header["corrections"]),
            gui_only=header["gui_only"],
            window=None if window is None else tuple(window),
            clutter=header["clutter"],
            action_s=header["action_s"],
        )
        self._desktop = DrivenDesktop(options, self._modules)
        placed = dict(zip(header["files"], blobs, strict=True))
        ready_s = self._desktop.start(placed, header["opened"], header["collected"])
        return {"ready_s": ready_s, "office": settings.office_version()}, []


def main(modules: Mapping[str, str]) -> None:
    """Serves until standard input ends.

    Args:
        modules: source of the driver's modules by name.
    """
    requests, answers = sys.stdin.fileno(), sys.stdout.fileno()
    service = Service(modules)
    while True:
        try:
            header, blobs = frames.unpack(frames.read_frame(requests))
        except frames.ClosedError:
            return
        try:
            answer = service.answer(header, blobs)
        except BrokenError as error:
            answer = {"broke": str(error)}, []
        frames.write_all(answers, frames.pack(*answer))
