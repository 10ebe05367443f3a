"""The root `desktop` for tests: runs programs in it as a model's actions are run."""

from __future__ import annotations

import base64
import contextlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

import pytest

from judge.core.limits import MIB
from judge.sandbox.contract import Sandbox, ServiceChannel

_INSIDE = Path(__file__).with_name("desktop_inside.py")
_BEFORE = """\
import sys, types
for _name in ("judge", "judge.sandbox", "judge.sandbox.warden"):
    sys.modules[_name] = types.ModuleType(_name)
    sys.modules[_name].__path__ = []
_module = sys.modules["judge.sandbox.warden.files"] = types.ModuleType("files")
exec({files!r}, _module.__dict__)
sys.modules["judge.sandbox.warden"].files = _module
"""
ANSWER_S = 300


@dataclass(frozen=True)
class Ran:
    """What a program printed and how it ended."""

    said: str
    code: int
    late: bool


class Place:
    """A running instance of the root."""

    def __init__(self, sandbox: Sandbox, memory_bytes: int | None = None) -> None:
        text = resources.files("judge.sandbox.warden").joinpath("files.py").read_text("utf-8")
        program = _BEFORE.format(files=text) + _INSIDE.read_text(encoding="utf-8")
        self.channel: ServiceChannel = sandbox.service(
            program, root="desktop", memory_bytes=memory_bytes
        )

    def ask(self, do: str, **request: Any) -> dict[str, Any]:
        answer = json.loads(self.channel.call(json.dumps({"do": do, **request}).encode(), ANSWER_S))
        assert isinstance(answer, dict)
        return answer

    def run(self, program: str, seconds: float = 100, *, screen: bool = False) -> Ran:
        return Ran(**self.ask("run", program=program, seconds=seconds, screen=screen))

    def place(self, path: str, content: bytes) -> None:
        assert self.ask("place", path=path, data=base64.b64encode(content).decode()) == {}

    def collect(self, path: str, limit_bytes: int = MIB) -> tuple[str, bytes]:
        answer = self.ask("collect", path=path, limit=limit_bytes)
        return answer["status"], base64.b64decode(answer["data"])

    def sweep(self) -> None:
        assert self.ask("sweep")["left"] == 0

    def close(self) -> None:
        self.channel.close()


@contextlib.contextmanager
def opened_place(sandbox: Sandbox, memory_bytes: int | None = None) -> Iterator[Place]:
    """Opens an instance and closes it at the end; skips the test if the root is not built."""
    if not sandbox.has_root("desktop"):
        pytest.skip("no desktop root: judge sandbox build --desktop")
    with contextlib.closing(Place(sandbox, memory_bytes)) as place:
        yield place
