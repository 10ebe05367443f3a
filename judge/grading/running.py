"""The outcome of a case before anything is compared: a verdict, or an answer to check.

An answer is the output of a program that is run in the sandbox, a file that was made elsewhere, the
file from a desktop episode, or typed text.

The file of an episode is kept in the results directory; no program is run to judge it. If only
mouse and keyboard were used, the spreadsheet program wrote the values in the file. But only the
record says so, and anybody can write a record, so every formula is computed. The values are trusted
like those of a gold only if the command says so (decision 0035).
"""

from __future__ import annotations

import hashlib
import json
import posixpath
import signal
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from judge.console import clipped, visible
from judge.core.limits import Limits
from judge.core.records.cases import CaseRun
from judge.core.replies.extract import bounded_reply
from judge.core.submission import Answer, AnswerForm, KeptOutput, Origin, Submission
from judge.core.task import CaseInput, Task, TestCase
from judge.core.verdict import CaseResult, Verdict
from judge.errors import SandboxError, WorkbookError
from judge.files.documents import MalformedError
from judge.files.packed_folder import packed, unpacked
from judge.grading.store import MAX_WORKBOOK_BYTES, RunDirectory, kept_workbook
from judge.sandbox.contract import (
    OutputStatus,
    RunRequest,
    RunResult,
    RunStatus,
    SandboxSession,
)
from judge.suites.folders import read_answer

NO_CODE = "the reply holds no code"
_TYPED = "typed"


@dataclass(frozen=True, slots=True)
class RunOutcome:
    """The outcome of a run: enough to judge it again without running anything.

    Attributes:
        verdict: the verdict, if the run alone decides it; otherwise None.
        cause: one line for people.
        record: the facts that are written to cases.jsonl.
        answer: the answer that was submitted; None if there is nothing to compare.
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
        submission: the program, with the paths that it expects.
        case_input: the case's input files; this function never sees a gold.
        limits: limits on the run.
        form: the form of answer that the task expects.

    Raises:
        SandboxError: the sandbox failed, not the program.
        OSError: an input file cannot be read.
    """
    if not case_input.files:
        return run_program(session, submission, {}, limits, form)
    first, *others = case_input.files
    files = {submission.input_path: first.path.read_bytes()}
    inside = submission.input_path.endswith(f"/{first.name}")
    folder = (
        submission.input_path.removesuffix(f"/{first.name}")
        if inside
        else posixpath.dirname(submission.input_path)
    )
    # Further input files are in the folder of the first one, under their own names.
    files |= {posixpath.join(folder, file.name): file.path.read_bytes() for file in others}
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
        submission: the program, with the paths that it expects.
        files: absolute path inside the sandbox -> content.
        limits: limits on the run.
        form: the form of answer that the task expects.

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
        answer = _answer_of(result.output, submission.output_path)
    return RunOutcome(verdict, cause, _run_record(result), answer)


def _answer_of(output: bytes, path: str) -> Answer:
    """Makes the answer from a program's output: a file, or a folder, which is stored as one zip."""
    if not path.endswith("/"):
        return Answer.of_workbook(output, Origin.SOLUTION, posixpath.basename(path))
    try:
        kept = packed(unpacked(output))
    except MalformedError as error:
        raise SandboxError(f"the folder {path} came back broken: {error}") from error
    return Answer.of_workbook(kept, Origin.SOLUTION, posixpath.basename(path.rstrip("/")))


def typed_outcome(text: str) -> RunOutcome:
    """Makes the outcome of a typed answer; only its last part is read."""
    read = bounded_reply(text)
    answer = Answer(Origin.SOLUTION, text=read)
    return RunOutcome(record={"status": _TYPED, "answer": read}, answer=answer, verdict=None)


def typed_answer(record: CaseRun) -> Answer | None:
    """Returns the typed answer in the record of a run; None if the answer was not typed."""
    text = record.get("answer")
    if record.get("status") != _TYPED or text is None:
        return None
    return Answer(Origin.SOLUTION, text=text)


def verdict_of_run(
    result: RunResult, form: AnswerForm = AnswerForm.WORKBOOK
) -> tuple[Verdict | None, str]:
    """Maps the facts of a run to a verdict, or to None if the output has to be checked.

    A link or a special file at the output path is evidence of an attack and decides first; then
    whatever ended the program; then a missing or wrong output file.
    """
    if result.output_status in {OutputStatus.LINK, OutputStatus.SPECIAL}:
        kind = "link" if result.output_status is OutputStatus.LINK else "special file"
        return Verdict.SV, result.detail or f"the output path is a {kind}"
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


_ERROR_LINE_CHARS = 300


def last_error_line(stderr: bytes) -> str:
    """Returns the exception line at the end of a traceback; empty if there is no traceback."""
    text = stderr.decode("utf-8", "replace")
    start = text.rfind("Traceback (most recent call last)")
    lines = text[max(start, 0) :].rstrip().splitlines()
    for line in lines[1:] if start >= 0 else reversed(lines):
        # The first line that is not indented ends the stack and names the exception.
        if line and not line[0].isspace():
            return clipped(line, _ERROR_LINE_CHARS)
    return ""


def _signal_name(number: int | None) -> str:
    try:
        return signal.Signals(number or 0).name
    except ValueError:
        return f"signal {number}"


_CONSOLE_KEPT_CHARS = 4000


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
        "stdout": stdout[:_CONSOLE_KEPT_CHARS],
        "stderr": stderr[-_CONSOLE_KEPT_CHARS:],
        "stdout_bytes": result.stdout_bytes,
        "stderr_bytes": result.stderr_bytes,
        "output_bytes": result.output_bytes,
        "survivors": result.survivors,
        "detail": result.detail,
    }


FINISHED = "finished"
"""The status in the record of an output that was made elsewhere."""

NO_OUTPUT = hashlib.sha256(b"").hexdigest()
"""Used instead of the digest of an output that is missing or cannot be read."""


@dataclass(frozen=True, slots=True)
class FinishedOutput:
    """An output that was made elsewhere, with the case that it answers."""

    task: Task
    case: TestCase
    path: Path | None
    sample: int = 0


def read_output(
    path: Path | None, missing: str, *, trusts_values: bool = True
) -> tuple[str, RunOutcome]:
    """Reads a finished output; returns its digest, and its outcome before the comparison.

    Args:
        path: the file or folder; None if it does not exist.
        missing: the cause to report in that case.
        trusts_values: whether the values in it are trusted like those of a gold: true if the user
            named the file or its folder, false if a results directory did.
    """
    if path is None:
        return NO_OUTPUT, RunOutcome(Verdict.NO, missing)
    try:
        data = read_answer(path, WorkbookError, max_bytes=MAX_WORKBOOK_BYTES)
    except WorkbookError as error:
        return NO_OUTPUT, RunOutcome(Verdict.IW, error.message.removeprefix(f"{path.parent}/"))
    if data is None:
        return NO_OUTPUT, RunOutcome(Verdict.NO, missing)
    return outcome_of_output(data, path.name, trusts_values=trusts_values)


def outcome_of_output(
    data: bytes, name: str, *, trusts_values: bool = True
) -> tuple[str, RunOutcome]:
    """Returns the digest and the outcome of an output whose bytes have been read.

    Args:
        data: the content.
        name: the file's name, for messages.
        trusts_values: as for :func:`read_output`.
    """
    digest = hashlib.sha256(data).hexdigest()
    origin = Origin.FINISHED if trusts_values else Origin.SOLUTION
    record: CaseRun = {"status": FINISHED, "output_sha256": digest}
    if not trusts_values:
        record["origin"] = origin.value
    return digest, RunOutcome(None, "", record, Answer.of_workbook(data, origin, name))


EPISODE = "episode"
"""The status in the record of an episode."""

GIVEN_UP = "fail"
"""The end of an episode in which the agent says that the task cannot be done."""

GAVE_UP = "it was answered that the task cannot be done"


def has_episode_files(task: Task, submission: Submission) -> bool:
    """Returns whether a submission consists of files from episodes, so that no program is run."""
    return submission.outputs is not None and task.answer.is_file


def output_for(submission: Submission, case: TestCase) -> KeptOutput | None:
    """Returns the output of the episode for a case; None if the case had no episode."""
    return (submission.outputs or {}).get(case.number)


def kept_key(output: KeptOutput | None) -> str:
    """Computes the reuse key of an episode's output from its file and the way the episode ended.

    Args:
        output: the output of the episode; None if the case had no episode.
    """
    parts = None
    if output is not None:
        parts = [output.sha256, output.ended, output.gui_only, output.name, output.problem]
    return hashlib.sha256(json.dumps(["episode", parts]).encode("utf-8", "replace")).hexdigest()


def episode_outcome(
    output: KeptOutput | None, data: bytes | None = None, *, trusts_values: bool = False
) -> RunOutcome:
    """Returns the outcome of an episode before its file is compared.

    Args:
        output: the output of the episode; None if the case had no episode.
        data: the content of the file, if it has been read already.
        trusts_values: whether the command trusts the values in a file that, according to its
            record, was made with only mouse and keyboard.
    """
    if output is None:
        return RunOutcome(Verdict.NO, "no episode was held on this case", {"status": EPISODE})
    record: CaseRun = {"status": EPISODE, "ended": output.ended}
    if output.ended == GIVEN_UP:
        return RunOutcome(Verdict.WA, GAVE_UP, record)
    if output.sha256 is None:
        problem = visible(output.problem)[:300] or "it is missing"
        return RunOutcome(Verdict.NO, f"no file was left: {problem}", record)
    data = data or kept_workbook(output.folder, output.sha256)
    if data is None:
        where = f"workbooks/{output.sha256[:2]}/{output.sha256}.xlsx"
        cause = f"{where}: the file that was left is missing, or was changed"
        return RunOutcome(Verdict.JE, cause, record)
    trusted = trusts_values and output.gui_only
    origin = Origin.FINISHED if trusted else Origin.SOLUTION
    record = {
        **record,
        "gui_only": output.gui_only,
        "origin": origin.value,
        "output_sha256": output.sha256,
        "output_bytes": len(data),
    }
    answer = Answer.of_workbook(data, origin, output.name)
    return RunOutcome(None, "", record, answer)


def copy_files(store: RunDirectory, submission: Submission) -> Submission:
    """Copies the files of a submission from another results directory into this one.

    Files that are missing there stay missing.

    Returns:
        The submission, unchanged.
    """
    for output in (submission.outputs or {}).values():
        if output.sha256 is not None and (data := kept_workbook(output.folder, output.sha256)):
            store.put_workbook(data)
    return submission


def origin_on_record(record: CaseRun, *, trusts_values: bool) -> Origin:
    """Returns the origin of a recorded output; the command decides whether its record is believed.

    Args:
        record: the record of the run, which anybody may have written.
        trusts_values: whether the command trusts the values in outputs that, according to their
            records, were made elsewhere or with only mouse and keyboard.
    """
    trusted = trusts_values and holds_values(record)
    return Origin.FINISHED if trusted else Origin.SOLUTION


def holds_values(record: CaseRun) -> bool:
    """Returns whether, according to its record, a program that calculates wrote the output."""
    if record.get("status") == EPISODE:
        return record.get("gui_only", record.get("origin") == Origin.FINISHED.value)
    return record.get("status") == FINISHED


def has_given_up(result: CaseResult) -> bool:
    """Returns whether the agent wrongly gave up, so that no file was compared."""
    gave_up = result.run.get("status") == EPISODE and result.run.get("ended") == GIVEN_UP
    return gave_up and result.verdict is Verdict.WA
