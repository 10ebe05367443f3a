"""One submission on the test cases of its task: from facts to verdicts.

The sandbox gives facts, the recalculation gives values, the comparison gives differences; the one
place where they become a verdict is here.
"""

from __future__ import annotations

import hashlib
import json
import signal
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path

from judge.compare.cell import ComputedValues
from judge.compare.checker import Plan, check, needs_input, prepare, wanted_conditions
from judge.compare.comparison import Comparison
from judge.compare.conditions import NO_ANSWERS, ConditionAnswers
from judge.compare.profiles import Profile
from judge.compare.reader import Workbook, open_workbook
from judge.compare.remarks import tell_erased
from judge.compare.render import comparison_to_json, computed_to_json, first_difference
from judge.errors import JudgeError, PositionError, StoreError, WorkbookError
from judge.limits import Limits
from judge.recalc.conditions import answer_conditions
from judge.recalc.policy import Origin, Recalculator
from judge.sandbox.contract import (
    OutputStatus,
    RunRequest,
    RunResult,
    RunStatus,
    SandboxSession,
)
from judge.submission import Submission
from judge.task import Task, TestCase
from judge.verdict import CaseResult, Verdict
from judge.visible import visible

LEFT_OUT = "the task is left out"
"""How the cause begins where a task was left out on request, and is nobody's fault then."""

GRADER_VERSION = "1"
"""Part of every reuse key: raised whenever the same files could get another verdict."""


@dataclass(frozen=True, slots=True)
class GradingRules:
    """How outputs are held against golds.

    Attributes:
        profile: what "equal" means.
        style: style attributes to compare beside the values (``fill``, ``font_color`` …).
        recalc_mode: ``auto``, ``never`` or ``always``.
        engines: identity of the calculation engines, for reuse keys.
        max_differences: how many differences of a case are kept (all are counted).
    """

    profile: Profile
    style: tuple[str, ...] = ()
    recalc_mode: str = "auto"
    engines: tuple[str, ...] = ()
    max_differences: int = 50


@dataclass(frozen=True, slots=True)
class RunFacts:
    """What is kept of a run: enough to judge it again without running anything.

    Attributes:
        verdict: the verdict where the run alone decides it, else None.
        cause: one line for people.
        record: facts as they are written to cases.jsonl.
        output: the output workbook's bytes, where there is one to compare.
    """

    verdict: Verdict | None
    cause: str
    record: Mapping[str, object]
    output: bytes | None


@dataclass(frozen=True, slots=True)
class Judgement:
    """The verdict on an output workbook.

    Attributes:
        verdict: AC, WA, NC, IW or BT.
        cause: one line for people.
        comparison: what the comparison found, as it is written to cases.jsonl.
        timings_s: seconds spent on ``recalculation`` and ``comparison``.
    """

    verdict: Verdict
    cause: str
    comparison: Mapping[str, object] = field(default_factory=dict)
    timings_s: Mapping[str, float] = field(default_factory=dict)


# -- keys -----------------------------------------------------------------------------------------


def run_key(submission: Submission, input_sha256: str, limits: Limits, image: str) -> str:
    """Hash of everything that could change the outcome of a run."""
    return _hash(
        {
            "version": GRADER_VERSION,
            "code": submission.code,
            "input": input_sha256,
            "paths": [submission.input_path, submission.output_path],
            "limits": asdict(limits),
            "image": image,
        }
    )


def comparison_key(run: str, task: Task, gold_sha256: str, rules: GradingRules) -> str:
    """Hash of everything that could change the verdict on the outcome of a run."""
    return _hash(
        {
            "version": GRADER_VERSION,
            "run": run,
            "gold": gold_sha256,
            "position": [task.answer_position, task.answer_sheet],
            "checker": [task.checker.name, dict(task.checker.options)],
            "profile": rules.profile.identity,
            "style": list(rules.style),
            "recalc": [rules.recalc_mode, list(rules.engines)],
        }
    )


def _hash(parts: Mapping[str, object]) -> str:
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


# -- running --------------------------------------------------------------------------------------


def run_case(
    session: SandboxSession, submission: Submission, case_input: bytes, limits: Limits
) -> RunFacts:
    """Runs a submission on one input workbook.

    Args:
        session: the sealed place of this submission.
        submission: the program, with the paths that it was told.
        case_input: bytes of the case's input workbook; no gold comes near this function.
        limits: bounds of the run.

    Raises:
        SandboxError: the sandbox failed, not the program.
    """
    if submission.code is None:
        return RunFacts(Verdict.CE, "the reply holds no code", {}, None)
    result = session.run(
        RunRequest(
            program=submission.code,
            files={submission.input_path: case_input},
            collect=submission.output_path,
            limits=limits,
        )
    )
    verdict, cause = verdict_of_run(result)
    return RunFacts(
        verdict=verdict,
        cause=cause,
        record=_run_record(result),
        output=result.output if verdict is None else None,
    )


def verdict_of_run(result: RunResult) -> tuple[Verdict | None, str]:
    """Maps the facts of a run to a verdict, or to None where the output must be looked at.

    A link or a special file at the output path is positive evidence of an attack and comes first;
    then what ended the program; then what is missing or wrong about the output file itself.
    """
    if result.output_status in {OutputStatus.LINK, OutputStatus.SPECIAL}:
        return Verdict.SV, result.detail or f"the output path holds a {result.output_status}"
    if (ended := _how_it_ended(result)) is not None:
        return ended
    match result.output_status:
        case OutputStatus.MISSING:
            return Verdict.NO, "the program ended without writing the output workbook"
        case OutputStatus.NOT_A_FILE:
            return Verdict.NO, "a folder stands at the output path"
        case OutputStatus.TOO_LARGE:
            return Verdict.OLE, f"the output has {result.output_bytes:,} bytes"
        case _:
            return None, ""


def _how_it_ended(result: RunResult) -> tuple[Verdict, str] | None:
    match result.status:
        case RunStatus.OK:
            return None
        case RunStatus.COMPILE_ERROR:
            return Verdict.CE, last_error_line(result.stderr) or "the program does not compile"
        case RunStatus.CPU_LIMIT:
            return Verdict.TLE, f"processor time limit after {result.cpu_s:.1f} s"
        case RunStatus.WALL_LIMIT:
            return Verdict.TLE, f"wall time limit after {result.wall_s:.1f} s"
        case RunStatus.MEMORY_LIMIT:
            return Verdict.MLE, result.detail or "memory limit"
        case RunStatus.DISK_LIMIT:
            return Verdict.OLE, result.detail or "the program filled its disk"
        case RunStatus.SIGNALED:
            return Verdict.RE, f"ended by {_signal_name(result.signal)}"
        case RunStatus.EXITED:
            error = last_error_line(result.stderr)
            if error.startswith(("MemoryError", "numpy._core._exceptions._ArrayMemoryError")):
                return Verdict.MLE, error
            return Verdict.RE, error or f"exit code {result.exit_code}"


def last_error_line(stderr: bytes, max_length: int = 300) -> str:
    """The exception line at the end of a traceback; empty where there is none."""
    text = stderr.decode("utf-8", "replace")
    start = text.rfind("Traceback (most recent call last)")
    lines = text[max(start, 0) :].rstrip().splitlines()
    for line in lines[1:] if start >= 0 else reversed(lines):
        # The first line that is not indented ends the stack and names the exception.
        if line and not line[0].isspace():
            return line if len(line) <= max_length else line[: max_length - 1] + "…"
    return ""


def _signal_name(number: int | None) -> str:
    try:
        return signal.Signals(number or 0).name
    except ValueError:
        return f"signal {number}"


_COMPUTED_KEPT = 2000
"""Computed values kept of each workbook, for people who look at the verdict."""

_CONSOLE_KEPT_CHARACTERS = 4000


def _run_record(result: RunResult) -> dict[str, object]:
    stdout = visible(result.stdout.decode("utf-8", "replace"))
    stderr = visible(result.stderr.decode("utf-8", "replace"))
    return {
        "status": result.status.value,
        "output_status": result.output_status.value,
        "exit_code": result.exit_code,
        "signal": result.signal,
        "cpu_s": round(result.cpu_s, 4),
        "wall_s": round(result.wall_s, 4),
        "peak_memory_bytes": result.peak_memory_bytes,
        "stdout": stdout[:_CONSOLE_KEPT_CHARACTERS],
        "stderr": stderr[-_CONSOLE_KEPT_CHARACTERS:],
        "stdout_bytes": result.stdout_bytes,
        "stderr_bytes": result.stderr_bytes,
        "output_bytes": result.output_bytes,
        "survivors": result.survivors,
        "detail": result.detail,
    }


# -- judging --------------------------------------------------------------------------------------


def judge_case(
    task: Task,
    case: TestCase,
    output_data: bytes,
    *,
    recalculator: Recalculator,
    rules: GradingRules,
    origin: Origin,
) -> Judgement:
    """Holds an output workbook against the gold of its case; a fault of ours is JE for it alone.

    Args:
        task: whose answer position and checker count.
        case: whose gold and input count.
        output_data: the output workbook.
        recalculator: computes formulas of the range that have no value to trust.
        rules: profile and options.
        origin: where the output came from.

    Raises:
        StoreError: records cannot be written, which no other case will survive either.
    """
    try:
        return judge_output(
            task,
            case.gold_path.read_bytes(),
            output_data,
            recalculator=recalculator,
            rules=rules,
            origin=origin,
            gold_name=case.gold_path.name,
            input_path=case.input_path,
        )
    except StoreError:
        raise
    except JudgeError as error:
        return Judgement(Verdict.JE, error.message)


def judge_output(
    task: Task,
    gold_data: bytes,
    output_data: bytes,
    *,
    recalculator: Recalculator,
    rules: GradingRules,
    origin: Origin,
    gold_name: str = "gold",
    input_path: Path | None = None,
) -> Judgement:
    """Holds an output workbook against the gold of its case.

    Args:
        task: whose answer position and checker count.
        gold_data: the gold workbook.
        output_data: the output workbook; read as the hostile file that it may be.
        recalculator: computes formulas of the range that have no value to trust.
        rules: profile and options.
        origin: where the output came from, which decides whether its cached values count.
        gold_name: how the gold is called where it is at fault.
        input_path: the input workbook of the case; read only where cells outside the answer range
            count, or where cells to change and cells to keep are told apart.

    Raises:
        JudgeError: our own fault; a fault of the gold or of the input is the verdict BT, one of
            the output IW.
    """
    started = time.perf_counter()
    before: Workbook | None = None
    if (fault := known_fault(task)) is not None:
        return Judgement(Verdict.BT, fault)
    try:
        gold = open_workbook(gold_data)
        plan = _prepare(task, gold, None)
        if input_path is not None and needs_input(plan.options, rules.profile):
            before = open_workbook(input_path)
    except (WorkbookError, PositionError) as error:
        # The error of a file that is opened by its path names it already.
        named = "" if error.message.startswith(str(input_path)) else f"{gold_name}: "
        return Judgement(Verdict.BT, f"{named}{error.message}")
    try:
        # A file that is held against itself, as when a suite is verified, is read once.
        output = gold if output_data == gold_data else open_workbook(output_data)
        given = _Input(input_path, before)
        with output.package.budget.working():
            plan = _prepare(task, gold, output)
            return _compare(plan, gold, output, recalculator, rules, origin, started, given)
    except WorkbookError as error:
        # Much is read only while comparing, where the files are read side by side.
        if error.culprit is gold.package:
            return Judgement(Verdict.BT, f"{gold_name}: {error.message}")
        if before is not None and error.culprit is before.package:
            return Judgement(Verdict.BT, f"{input_path}: {error.message}")
        seconds = time.perf_counter() - started
        return Judgement(Verdict.IW, error.message, timings_s={"comparison": seconds})


def _prepare(task: Task, gold: Workbook, output: Workbook | None) -> Plan:
    return prepare(
        task.checker,
        answer_position=task.answer_position,
        answer_sheet=task.answer_sheet,
        gold=gold,
        output=output,
    )


@dataclass(frozen=True, slots=True)
class _Input:
    """The input workbook of a case.

    Attributes:
        path: where it is, if that is known.
        workbook: the workbook, where the rules look at it.
    """

    path: Path | None
    workbook: Workbook | None


def _compare(
    plan: Plan,
    gold: Workbook,
    output: Workbook,
    recalculator: Recalculator,
    rules: GradingRules,
    origin: Origin,
    started: float,
    before: _Input,
) -> Judgement:
    recalc_started = time.perf_counter()
    gold_computed = recalculator.fill(gold, plan.gold_ranges, origin=Origin.GOLD)
    wanted = [cell_range for cell_range in plan.output_ranges if cell_range is not None]
    output_computed = recalculator.fill(output, wanted, origin=origin)
    questions = wanted_conditions(
        plan,
        gold,
        output,
        profile=rules.profile,
        style=rules.style,
        gold_computed=gold_computed,
        output_computed=output_computed,
    )
    conditions = NO_ANSWERS
    if not questions.is_empty:
        conditions = answer_conditions(recalculator, questions, gold, output, origin=origin)
    recalc_s = time.perf_counter() - recalc_started
    comparison = check(
        plan,
        gold,
        output,
        profile=rules.profile,
        style=rules.style,
        gold_computed=gold_computed,
        output_computed=output_computed,
        conditions=conditions,
        before=before.workbook,
        max_differences=rules.max_differences,
    )
    if before.workbook is None and before.path is not None:
        comparison = tell_erased(comparison, before.path)
    verdict, cause = verdict_of_comparison(comparison)
    record = _comparison_record(comparison, gold_computed, output_computed, conditions)
    total_s = time.perf_counter() - started
    return Judgement(
        verdict,
        cause,
        comparison=record,
        timings_s={"recalculation": recalc_s, "comparison": total_s - recalc_s},
    )


def _comparison_record(
    comparison: Comparison,
    gold_computed: ComputedValues,
    output_computed: ComputedValues,
    conditions: ConditionAnswers,
) -> dict[str, object]:
    """A comparison as it is written to cases.jsonl, with what was computed for it."""
    record = comparison_to_json(comparison)
    asked = (gold_computed, output_computed, conditions.gold, conditions.output)
    record["engines"] = sorted({engine for each in asked for engine in each.engines})
    record["computed_cells"] = {
        "gold": len(gold_computed.values),
        "output": len(output_computed.values),
    }
    record["computed_values"] = {
        "gold": computed_to_json(gold_computed, _COMPUTED_KEPT),
        "output": computed_to_json(output_computed, _COMPUTED_KEPT),
    }
    return record


def verdict_of_comparison(comparison: Comparison) -> tuple[Verdict, str]:
    """AC, WA or NC, with the first difference as the cause.

    NC is for outputs whose only fault is that nothing could compute them: with a single wrong
    value among them, the answer is wrong whatever the rest would have been.
    """
    if comparison.equal:
        return Verdict.AC, ""
    kinds = {kind.value for kind, count in comparison.difference_counts.items() if count}
    verdict = Verdict.NC if kinds == {"not_calculated"} else Verdict.WA
    return verdict, first_difference(comparison)


def known_fault(task: Task) -> str | None:
    """Why a task is known to be a bad test, or None where nothing is held against it."""
    reason = task.checker.options.get("left_out")
    return f"{LEFT_OUT}: {reason}" if isinstance(reason, str) else None


def problem_of_input(case: TestCase) -> str | None:
    """Why the input workbook of a case cannot be read, or None where it can."""
    try:
        open_workbook(case.input_path)
    except WorkbookError as error:
        return f"{case.input_path.name}: {error.message}"
    return None


# -- a case as a whole ----------------------------------------------------------------------------


def case_result(
    submission: Submission, case: TestCase, facts: RunFacts, judgement: Judgement | None
) -> CaseResult:
    """Puts facts and judgement together."""
    verdict, cause = facts.verdict, facts.cause
    comparison: Mapping[str, object] = {}
    timings_s: dict[str, float] = {}
    wall_s = facts.record.get("wall_s")
    if isinstance(wall_s, int | float):  # a record of somebody else's may say null
        timings_s["run"] = float(wall_s)
    if judgement is not None:
        verdict, cause, comparison = judgement.verdict, judgement.cause, judgement.comparison
        timings_s.update(judgement.timings_s)
    if verdict is None:
        raise JudgeError(f"case {case.number} of task {submission.task_id} was not judged")
    return CaseResult(
        task_id=submission.task_id,
        sample=submission.sample,
        case=case.number,
        verdict=verdict,
        cause=visible(cause),
        run=facts.record,
        comparison=comparison,
        timings_s=timings_s,
    )
