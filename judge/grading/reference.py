"""Time limits derived from reference solutions, measured on the machine that judges.

A task's limit is ``max(floor, factor x time of its reference solution)``. The floor comes from
:class:`judge.core.limits.Limits`; the slowest case gives the time. Times are measured once for a
run and stored with it, because every result on record would become stale if a limit changed.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace

from judge.core.limits import Limits
from judge.core.submission import Submission
from judge.core.task import Task
from judge.errors import SubmissionError
from judge.files.forms import Amount
from judge.sandbox.contract import RunRequest, RunStatus, Sandbox

REFERENCE_FILE = "reference.json"
_STEP_S = 0.1


@dataclass(frozen=True, slots=True)
class ReferenceTime:
    """The time that the reference solution of a task takes on its slowest case.

    Attributes:
        digest: the digest of the solution and its inputs; if it changes, the time is measured
            again.
        cpu_s: processor seconds.
        wall_s: wall-clock seconds.
    """

    digest: str
    cpu_s: Amount
    wall_s: Amount

    def limits(self, floor: Limits, factor: float) -> Limits:
        """Computes the limits of the task.

        Args:
            floor: lower bounds of both time limits; its other limits are used unchanged.
            factor: a solution may take this many times as long as the reference.
        """
        return replace(
            floor,
            cpu_s=max(floor.cpu_s, _rounded_up(factor * self.cpu_s)),
            wall_s=max(floor.wall_s, _rounded_up(factor * self.wall_s)),
        )


def _rounded_up(seconds: float) -> float:
    return round(math.ceil(seconds / _STEP_S) * _STEP_S, 1)


def reference_digest(task: Task, submission: Submission) -> str:
    """Hashes the reference solution, the paths that it expects, and the inputs of the task."""
    digest = hashlib.sha256((submission.code or "").encode("utf-8", "surrogatepass"))
    for path in (submission.input_path, submission.output_path):
        digest.update(b"\0" + path.encode())
    for case in task.cases:
        digest.update(hashlib.sha256(case.input_path.read_bytes()).digest())
    return digest.hexdigest()


def measure(sandbox: Sandbox, task: Task, submission: Submission, limits: Limits) -> ReferenceTime:
    """Runs a reference solution on every case of its task, one after the other.

    Args:
        sandbox: runs the solutions; nothing else may run in it during the measurement.
        task: the task.
        submission: the reference solution of the task.
        limits: limits on these runs.

    Raises:
        SubmissionError: the solution fails or writes no output, so its time would be meaningless.
        SandboxError: the sandbox failed.
    """
    cpu_s = wall_s = 0.0
    with sandbox.session() as session:
        for case in task.cases:
            request = RunRequest(
                program=submission.code or "",
                files={submission.input_path: case.input_path.read_bytes()},
                collect=submission.output_path,
                limits=limits,
            )
            result = session.run(request)
            if result.status is not RunStatus.OK or result.output is None:
                how = result.detail or f"it left no output: {result.output_status}"
                raise SubmissionError(
                    f"the reference solution of task {task.id} fails on case {case.number}: {how}",
                    hint="Fix it, or remove it from the file: its task keeps the plain limits.",
                )
            cpu_s, wall_s = max(cpu_s, result.cpu_s), max(wall_s, result.wall_s)
    return ReferenceTime(reference_digest(task, submission), cpu_s, wall_s)


@dataclass(frozen=True, slots=True)
class ReferenceTimes:
    """The reference times that were measured for a run: the document of reference.json.

    Attributes:
        host: the machine on which they were measured.
        image: the image of the sandbox that the solutions ran in.
        tasks: task id -> time.
    """

    host: str
    image: str
    tasks: Mapping[str, ReferenceTime]

    def as_json(self) -> dict[str, object]:
        """The content of reference.json."""
        return {
            **asdict(self),
            "tasks": {name: asdict(self.tasks[name]) for name in sorted(self.tasks)},
        }


def known_times(times: ReferenceTimes | None, *, host: str, image: str) -> dict[str, ReferenceTime]:
    """Reads the recorded times of a run; empty if they come from another machine or image."""
    if times is None or times.host != host or times.image != image:
        return {}
    return dict(times.tasks)


def measure_missing(
    sandbox: Sandbox,
    pairs: Iterable[tuple[Task, Submission]],
    measured: Mapping[str, ReferenceTime],
    limits: Limits,
) -> dict[str, ReferenceTime]:
    """Measures the times of all references that were not measured before.

    Raises:
        SubmissionError: a task has two references, or one of them fails.
        SandboxError: the sandbox failed.
    """
    times: dict[str, ReferenceTime] = {}
    for task, submission in pairs:
        if task.id in times:
            raise SubmissionError(
                f"task {task.id} has more than one reference solution",
                hint="Leave one in the file, so that it is clear which one sets the limit.",
            )
        time = measured.get(task.id)
        if time is None or time.digest != reference_digest(task, submission):
            time = measure(sandbox, task, submission, limits)
        times[task.id] = time
    return times
