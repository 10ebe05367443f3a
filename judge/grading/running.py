"""Running a submission: from the facts of the sandbox to a verdict, or to an output to check."""

from __future__ import annotations

import posixpath
import signal
from collections.abc import Mapping
from dataclasses import dataclass, field

from judge.console.visible import visible
from judge.core.answer import Answer, AnswerForm, Origin
from judge.core.limits import Limits
from judge.core.records.cases import CaseRun
from judge.core.submission import Submission
from judge.core.task import CaseInput
from judge.core.verdict import Verdict
from judge.replies.answers import bounded_reply
from judge.sandbox.contract import (
    OutputStatus,
    RunRequest,
    RunResult,
    RunStatus,
    SandboxSession,
)

NO_CODE = "the reply holds no code"
_TYPED = "typed"


@dataclass(frozen=True, slots=True)
class RunOutcome:
    """The outcome of a run: enough to judge it again without running anything.

    Attributes:
        verdict: the verdict where the run alone decides it, else None.
        cause: one line for people.
        record: facts as they are written to cases.jsonl.
        answer: what was handed in, where there is something to compare.
    """

    verdict: Verdict | None
    cause: str = ""
    record: CaseRun = field(default_factory=CaseRun)
    answer: Answer | None = None


def run_case(
    session: SandboxSession,
    submission: Submission,
    case_input: CaseInput,
    limits: Limits,
    form: AnswerForm = AnswerForm.WORKBOOK,
) -> RunOutcome:
    """Runs a submission on the inputs of one case.

    Args:
        session: the isolated environment of this submission.
        submission: the program, with the paths that it was given.
        case_input: the case's input files; no gold comes near this function.
        limits: bounds of the run.
        form: what the task asks to be handed in.

    Raises:
        SandboxError: the sandbox failed, not the program.
        OSError: an input file cannot be read.
    """
    first, *others = case_input.files
    files = {submission.input_path: first.path.read_bytes()}
    folder = posixpath.dirname(submission.input_path)
    # What else a task hands out lies beside the first file, under its own name.
    files |= {posixpath.join(folder, each.path.name): each.path.read_bytes() for each in others}
    return run_program(session, submission, files, limits, form)


def run_program(
    session: SandboxSession,
    submission: Submission,
    files: Mapping[str, bytes],
    limits: Limits,
    form: AnswerForm = AnswerForm.WORKBOOK,
) -> RunOutcome:
    """Runs a submission on files that are given as bytes.

    Args:
        session: the isolated environment of this submission.
        submission: the program, with the paths that it was given.
        files: absolute path inside the sandbox -> content.
        limits: bounds of the run.
        form: what the task asks to be handed in.

    Raises:
        SandboxError: the sandbox failed, not the program.
    """
    if submission.code is None:
        return RunOutcome(Verdict.CE, NO_CODE, {})
    result = session.run(
        RunRequest(
            program=submission.code,
            files=dict(files),
            collect=submission.output_path,
            limits=limits,
        )
    )
    verdict, cause = verdict_of_run(result, form)
    answer = None
    if verdict is None and result.output is not None:
        name = posixpath.basename(submission.output_path)
        answer = Answer.of_workbook(result.output, Origin.SOLUTION, name)
    return RunOutcome(verdict, cause, _run_record(result), answer)


def typed_outcome(text: str) -> RunOutcome:
    """The outcome of a submission that is a typed answer, as far as answers are read."""
    read = bounded_reply(text)
    answer = Answer(Origin.SOLUTION, text=read)
    return RunOutcome(record={"status": _TYPED, "answer": read}, answer=answer, verdict=None)


def typed_answer(record: CaseRun) -> Answer | None:
    """The typed answer that the record of a run holds, if it was one."""
    text = record.get("answer")
    if record.get("status") != _TYPED or text is None:
        return None
    return Answer(Origin.SOLUTION, text=text)


def verdict_of_run(
    result: RunResult, form: AnswerForm = AnswerForm.WORKBOOK
) -> tuple[Verdict | None, str]:
    """Maps the facts of a run to a verdict, or to None if the output has to be checked.

    A link or a special file at the output path is positive evidence of an attack and comes first;
    then what ended the program; then what is missing or wrong about the output file itself.
    """
    if result.output_status in {OutputStatus.LINK, OutputStatus.SPECIAL}:
        found = "link" if result.output_status is OutputStatus.LINK else "special file"
        return Verdict.SV, result.detail or f"the output path is a {found}"
    if (ended := _how_it_ended(result)) is not None:
        return ended
    match result.output_status:
        case OutputStatus.MISSING:
            return Verdict.NO, form.missing
        case OutputStatus.NOT_A_FILE:
            return Verdict.NO, "the output path is a folder"
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


_CONSOLE_KEPT_CHARACTERS = 4000


def _run_record(result: RunResult) -> CaseRun:
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
