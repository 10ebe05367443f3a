"""A sandbox backend in one file: runs nothing, and returns each program's input as its output."""

from __future__ import annotations

import itertools
from dataclasses import replace

from judge.sandbox.contract import (
    Backend,
    BackendFinding,
    OutputStatus,
    RunRequest,
    RunResult,
    RunStatus,
    SandboxInfo,
)
from judge.sandbox.scripted import ScriptedSandbox


def _return_input(request: RunRequest) -> RunResult:
    data = next(iter(request.files.values()))
    return RunResult(RunStatus.OK, OutputStatus.COLLECTED, output=data, output_bytes=len(data))


class ToySandbox(ScriptedSandbox):
    """Returns inputs as outputs."""

    def __init__(self, jobs: int) -> None:
        super().__init__(itertools.repeat(_return_input), roots=())
        self.jobs = jobs

    @property
    def info(self) -> SandboxInfo:
        """Reports the name under which it is registered."""
        return replace(super().info, backend="toy")


def _probe() -> list[BackendFinding]:
    return [BackendFinding("toy", ok=True, detail="always there", backend="toy")]


BACKEND = Backend("Toy", ToySandbox, _probe)
