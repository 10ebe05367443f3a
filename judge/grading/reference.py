"""Time limits that follow reference solutions, measured on the machine that judges.

A task's limit is ``max(floor, factor x time of its reference solution)``: the floor is what
:class:`judge.core.limits.Limits` say, the time that of the slowest case. Times are measured once
for a run and kept with it, since a limit that moved would make every result on record stale.
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
    """Time that the reference solution of a task takes on its slowest case.

    Attributes:
        digest: the digest of the solution and its inputs; another one is measured again.
        cpu_s: processor seconds.
        wall_s: seconds by the clock.
    """

    digest: str
    cpu_s: Amount
    wall_s: Amount

    def limits(self, floor: Limits, factor: float) -> Limits:
        """The limits of a task with this reference.

        Args:
            floor: limits below which neither time goes; all others are taken as they are.
            factor: how many times the reference's own time a solution may take.
        """
        return replace(
            floor,
            cpu_s=max(floor.cpu_s, _rounded_up(factor * self.cpu_s)),
            wall_s=max(floor.wall_s, _rounded_up(factor * self.wall_s)),
        )


def _rounded_up(seconds: float) -> float:
    return round(math.ceil(seconds / _STEP_S) * _STEP_S, 1)


def reference_digest(task: Task, submission: Submission) -> str:
    """Changes with the reference solution, the paths that it was given, and the task's inputs."""
    digest = hashlib.sha256((submission.code or "").encode("utf-8", "surrogatepass"))
    for path in (submission.input_path, submission.output_path):
        digest.update(b"\0" + path.encode())
    for case in task.cases:
        digest.update(hashlib.sha256(case.input_path.read_bytes()).digest())
    return digest.hexdigest()


def measure(sandbox: Sandbox, task: Task, submission: Submission, limits: Limits) -> ReferenceTime:
    """Runs a reference solution on every case of its task, one after the other.

    Args:
        sandbox: where solutions are run; for a true time nothing else may run in it meanwhile.
        task: the task.
        submission: its reference solution.
        limits: bounds of these runs.

    Raises:
        SubmissionError: it fails, or leaves no output; a limit that follows it would mean nothing.
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
    """Reference times measured for a run: the document of reference.json.

    Attributes:
        host: the machine that it was measured on.
        image: what the solutions ran in.
        tasks: task id -> time.
    """

    host: str
    image: str
    tasks: Mapping[str, ReferenceTime]

    def as_json(self) -> dict[str, object]:
        """The document of reference.json."""
        return {
            **asdict(self),
            "tasks": {name: asdict(self.tasks[name]) for name in sorted(self.tasks)},
        }


def known_times(times: ReferenceTimes | None, *, host: str, image: str) -> dict[str, ReferenceTime]:
    """The times that a run has on record; none if another machine or image gave them."""
    if times is None or times.host != host or times.image != image:
        return {}
    return dict(times.tasks)


def measure_missing(
    sandbox: Sandbox,
    pairs: Iterable[tuple[Task, Submission]],
    known: Mapping[str, ReferenceTime],
    limits: Limits,
) -> dict[str, ReferenceTime]:
    """The times of all these references; those that are known are not measured again.

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
        time = known.get(task.id)
        if time is None or time.digest != reference_digest(task, submission):
            time = measure(sandbox, task, submission, limits)
        times[task.id] = time
    return times
