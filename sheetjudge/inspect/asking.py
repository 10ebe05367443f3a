"""How tasks are asked: the options of ``judge infer`` as a task of Inspect takes them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from functools import lru_cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from judge.api.infer_options import InferOptions
from judge.api.options import cores
from judge.api.planning import plan_of
from judge.core.limits import Limits
from judge.errors import UsageError
from judge.inference.config import ModelSpec
from judge.inference.pictures import PictureStore
from judge.inference.plan import Assignment, InferencePlan
from judge.inference.solver import Solver
from judge.sandbox import open_sandbox
from sheetjudge.inspect.kept_open import KEPT_OPEN

ASKING_OPTIONS = frozenset(
    {
        *("ids", "limit", "instruction", "rounds", "rows", "content", "notes", "prompt", "stop"),
        *("session", "execution_feedback", "oracle_plan", "documents", "pictures"),
        *("max_pictures", "picture_side", "picture_bytes", "picture_types"),
        *("sandbox", "jobs", "limits"),
    }
)
"""Options of ``judge infer`` that concern neither the model nor its server; Inspect has those."""

_MODES = ("single", "text", "multi")
"""Conversations of chat models; Inspect could not hold an episode on a desktop."""

_LISTS = ("ids", "picture_types")
_MODEL = ModelSpec(name="inspect", model="inspect")


def asking_of(suite: str, mode: str, options: Mapping[str, Any]) -> Asking:
    """The way of asking that options describe; the same object for the same options.

    Args:
        suite: a folder, an archive or a name.
        mode: ``single``, ``multi`` or ``text``; ``multi/row-exec`` says the feedback as well.
        options: some of :data:`ASKING_OPTIONS`.

    Raises:
        UsageError: an option is not known, or cannot have its value.
        SuiteError: the suite is missing or broken.
    """
    unknown = sorted(set(options) - ASKING_OPTIONS)
    if unknown:
        raise UsageError(
            f"no option of the task is called {', '.join(unknown)}",
            hint=f"Options: suite, mode, {', '.join(sorted(ASKING_OPTIONS))}, and those of the "
            "scorer judge_verdict.",
        )
    given = {name: value for name, value in options.items() if value is not None}
    return _asking_of(str(suite), str(mode), json.dumps(given, sort_keys=True, default=str))


@lru_cache(maxsize=32)
def _asking_of(suite: str, mode: str, options: str) -> Asking:
    given = json.loads(options)
    for name in _LISTS:
        if name in given:
            several = given[name] if isinstance(given[name], list) else [given[name]]
            given[name] = tuple(str(each) for each in several)
    given["limits"] = limits_of(given.get("limits"))
    name, _, feedback = mode.partition("/")
    if name not in _MODES:
        desktops = " Desktops are for `judge infer --mode desktop`." if name == "desktop" else ""
        raise UsageError(
            f"mode is {mode[:80]!r}: not one of {', '.join(_MODES)}",
            hint=f"multi/row-exec and its like say the feedback as well.{desktops}",
        )
    said = InferOptions(
        dataset=suite,
        mode=name,  # type: ignore[arg-type]  # checked where it is read
        feedback=feedback or None,  # type: ignore[arg-type]
        **given,
    )
    return Asking(plan_of(said.filled({}), _MODEL), said)


def limits_of(given: object) -> Limits:
    """Bounds of programs out of a mapping such as ``{"cpu_s": 20}``.

    Raises:
        UsageError: it is not such a mapping.
    """
    if given is None:
        return Limits()
    try:
        return Limits(**given)  # type: ignore[arg-type]
    except (TypeError, ValueError) as error:
        raise UsageError(
            f"limits is {str(given)[:200]!r}: {error}", hint='Write it as {"cpu_s": 20}.'
        ) from error


class Asking:
    """Tasks and the way in which they are asked.

    Args:
        plan: what is asked; its model is Inspect's affair.
        options: what the user said.

    Attributes:
        plan: likewise.
    """

    def __init__(self, plan: InferencePlan, options: InferOptions) -> None:
        self.plan = plan
        self._options = options
        self._by_id = {assignment.question.id: assignment for assignment in plan.assignments}

    def assignment(self, sample_id: int | str) -> Assignment:
        """The task of a sample.

        Raises:
            UsageError: there is none.
        """
        found = self._by_id.get(str(sample_id))
        if found is None:
            raise UsageError(
                f"sample {sample_id}: the suite {self.plan.suite.name} is not asked about such a "
                "task",
                hint="Give the solver the suite, ids and limit of the task.",
            )
        return found

    def room(self) -> Room:
        """Where its conversations are held, opened once; blocks while a sandbox is opened.

        Raises:
            SandboxError: programs are to be run, or pictures shrunk, and there is no sandbox.
        """
        return KEPT_OPEN.get(self, lambda: Room(self.plan, self._options))

    def room_for_prompts(self) -> Room:
        """A room in which prompts are made, to be closed; it has a sandbox only for pictures.

        Raises:
            SandboxError: pictures are to be shrunk, and there is no sandbox.
        """
        return Room(self.plan, self._options, asks=False)


class Room:
    """Threads, pictures and, where programs run, a sandbox, for all conversations of a task.

    Args:
        plan: what is asked.
        options: names the sandbox and how many programs run at a time.
        asks: whether conversations are held; prompts need no sandbox unless pictures are shrunk.

    Attributes:
        pictures: the pictures of messages.
        solver: holds the conversations.
    """

    def __init__(self, plan: InferencePlan, options: InferOptions, *, asks: bool = True) -> None:
        jobs = options.jobs or cores()
        with ExitStack() as stack:
            folder = stack.enter_context(TemporaryDirectory(prefix="judge-inspect-"))
            self.pictures = PictureStore(Path(folder))
            threads = ThreadPoolExecutor(jobs, thread_name_prefix="judge-inspect")
            stack.callback(threads.shutdown, wait=False, cancel_futures=True)
            sandbox = None
            if plan.fits_pictures or (asks and plan.executes):
                opened = open_sandbox(options.sandbox, jobs=jobs)
                sandbox = stack.enter_context(closing(opened))
            self.solver = Solver(plan, sandbox, threads, self.pictures)
            stack.callback(self.solver.close)
            self._stack = stack.pop_all()

    def close(self) -> None:
        """Closes it; safe to call twice."""
        self._stack.close()
