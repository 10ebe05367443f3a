"""Runs the programs of a conversation: isolated, on the first case's input, without golds.

Each program gets a fresh process (:class:`FreshProcessRunner`), or all programs of a conversation
share one interpreter (:class:`SessionRunner`, :class:`Interpreter`). Output and tracebacks are cut
to a length that is useful to a chat model.
"""

from __future__ import annotations

import base64
import contextlib
import json
import posixpath
import re
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Protocol

from judge.console import visible
from judge.core.limits import Limits
from judge.errors import SandboxError, SuiteError
from judge.files.documents import MIB, read_regular
from judge.inference.chat import writable
from judge.sandbox.bundle import program_text
from judge.sandbox.contract import (
    OutputStatus,
    RunRequest,
    RunResult,
    RunStatus,
    Sandbox,
    SandboxSession,
    ServiceChannel,
)

_PROGRAM_ERRORS = {RunStatus.EXITED, RunStatus.SIGNALED, RunStatus.COMPILE_ERROR}
_LIMIT_WORDS = {
    RunStatus.CPU_LIMIT: "it used more processor time than it may",
    RunStatus.WALL_LIMIT: "it ran longer than it may",
    RunStatus.MEMORY_LIMIT: "it used more memory than it may",
    RunStatus.DISK_LIMIT: "it wrote more to disk than it may",
}

OUTPUT_CHARS = 4_000
"""How many characters of a program's output the chat model is shown."""

ERROR_CHARS = 3_000
"""How many characters of a program's traceback the chat model is shown."""


@dataclass(frozen=True, slots=True)
class Execution:
    """The outcome of one program, as the conversation needs it.

    Attributes:
        failed: whether the program ended with an error.
        stopped: the limit because of which it was stopped; None if it was not stopped.
        printed: its output, shortened.
        error: its traceback, shortened; empty if there is none.
        output_exists: whether it left a workbook at the output path.
        seconds: how long it ran, in wall-clock time.
        pictures: names and bytes of the pictures that it made, if these are collected. The bytes
            are not checked, and may be anything.
    """

    failed: bool
    stopped: str | None
    printed: str
    error: str
    output_exists: bool
    seconds: float
    pictures: tuple[tuple[str, bytes], ...] = ()

    @property
    def solved(self) -> bool:
        """Whether the program ran without an error and left a workbook."""
        return self.output_exists and not self.failed and self.stopped is None


class ProgramRunner(Protocol):
    """Runs the programs of one conversation. Blocking; to be used by one thread at a time."""

    def execute(self, code: str) -> Execution:
        """Runs one program.

        Raises:
            SandboxError: the sandbox failed (not the program).
        """
        ...


class WorkbookRunner(ProgramRunner, Protocol):
    """Runs programs that write a workbook, as the judge runs solutions."""

    def execute_alone(self, code: str) -> Execution:
        """Runs a program without any state of earlier rounds.

        Raises:
            SandboxError: the sandbox failed (not the program).
        """
        ...

    def close(self) -> None:
        """Ends everything that was started; safe to call twice."""
        ...


class SessionSlots:
    """Limits the sandbox sessions that stay open while their conversations wait for the model.

    Opening a session costs a few hundred milliseconds of CPU time; keeping it open costs memory.

    Args:
        limit: the largest number of open sessions; any further conversation opens a session for
            every program.
    """

    def __init__(self, limit: int) -> None:
        self._free = threading.BoundedSemaphore(limit) if limit > 0 else None

    def acquire(self) -> bool:
        """Takes a slot if one is free; :meth:`release` it once the session is closed."""
        return self._free is not None and self._free.acquire(blocking=False)

    def release(self) -> None:
        """Releases the slot for another conversation."""
        assert self._free is not None
        self._free.release()


class FreshProcessRunner:
    """Runs every program in a fresh process, in a session that only this conversation uses.

    Args:
        sandbox: the sandbox.
        input_workbook: the first case's input.
        input_path: the path of the input, as named in the prompt.
        output_path: the path of the output, as named in the prompt.
        limits: limits of each run.
        slots: limits how many conversations keep their session open between programs.
    """

    def __init__(
        self,
        sandbox: Sandbox,
        input_workbook: Path,
        input_path: str,
        output_path: str,
        limits: Limits,
        slots: SessionSlots | None = None,
    ) -> None:
        self._sandbox = sandbox
        self._workbook = input_workbook
        self._input_path = input_path
        self._output_path = output_path
        self._limits = limits
        self._slots = slots or SessionSlots(0)
        self._session: SandboxSession | None = None
        self._executions: dict[str, Execution] = {}

    def execute(self, code: str) -> Execution:
        """Runs one program, which finds nothing of earlier programs."""
        request = RunRequest(
            program=code,
            files={self._input_path: self._workbook.read_bytes()},
            collect=self._output_path,
            limits=self._limits,
        )
        if self._session is None and self._slots.acquire():
            try:
                self._session = self._sandbox.session()
            except BaseException:
                self._slots.release()
                raise
        if self._session is not None:
            execution = execution_of_run(self._session.run(request))
        else:
            with self._sandbox.session() as session:
                execution = execution_of_run(session.run(request))
        self._executions[code] = execution
        return execution

    def execute_alone(self, code: str) -> Execution:
        """Runs a program, or returns its earlier outcome: without shared state, it is the same."""
        return self._executions.get(code) or self.execute(code)

    def close(self) -> None:
        """Closes the session."""
        session, self._session = self._session, None
        if session is not None:
            try:
                session.close()
            finally:
                self._slots.release()


def execution_of_run(result: RunResult) -> Execution:
    """Converts the result of a run to an execution of the conversation."""
    stderr = result.stderr.decode("utf-8", "replace")
    stdout = result.stdout.decode("utf-8", "replace")
    failed = result.status in _PROGRAM_ERRORS
    stopped = None
    if result.status not in {RunStatus.OK, *_PROGRAM_ERRORS}:
        stopped = _LIMIT_WORDS.get(result.status, result.status.value)
    error = ""
    if failed:
        error = trim_traceback(stderr or result.detail, ERROR_CHARS) or _unexplained(result)
    return Execution(
        failed=failed,
        stopped=stopped,
        printed=cut_middle(stdout.strip("\n"), OUTPUT_CHARS),
        error=error,
        output_exists=result.output_status is OutputStatus.COLLECTED,
        seconds=result.wall_s,
    )


def _unexplained(result: RunResult) -> str:
    if result.signal is not None:
        return f"The program was ended by signal {result.signal}."
    return f"The program ended with exit code {result.exit_code} and no message."


MAX_INPUT_BYTES = 256 * MIB
"""Largest input file that is written into a sandbox, in bytes."""

INTERPRETER = "judge.tools.driver.interpreter"
"""The module that runs inside the sandbox."""

_PREPARE_S = 60.0
_NAME_CHARS = 100


@dataclass(frozen=True, slots=True)
class PictureCapture:
    """The pictures of programs that are collected.

    Attributes:
        folder: the folder in which programs work and save pictures.
        max_pictures: how many pictures are kept after each program.
        max_bytes: largest picture, in bytes.
        suffixes: suffixes of the names of pictures.
    """

    folder: str
    max_pictures: int
    max_bytes: int = 4 * MIB
    suffixes: tuple[str, ...] = (".png", ".jpg", ".jpeg", ".webp", ".gif")


class Interpreter:
    """A Python interpreter for one conversation, started with the first program.

    It is isolated like a solution, and belongs only to this conversation. If a program runs too
    long, the interpreter is ended; the next program gets a new one without variables.

    Args:
        sandbox: the sandbox.
        files: path inside the sandbox, which must be below /tmp -> input file.
        limits: limits of each program.
        folders: folders to make, also below /tmp.
        work_in: the one of these folders in which programs work; None for their home folder.
        chars: how many characters of a program's output, and of its traceback, are kept; None for
            the usual numbers.
        capture: which pictures are collected; None for none.
    """

    def __init__(
        self,
        sandbox: Sandbox,
        files: Mapping[str, Path],
        limits: Limits,
        *,
        folders: Sequence[str] = (),
        work_in: str | None = None,
        chars: int | None = None,
        capture: PictureCapture | None = None,
    ) -> None:
        self._sandbox = sandbox
        self._files = dict(files)
        self._limits = limits
        self._folders = tuple(folders)
        self._work_in = work_in
        self._chars = chars
        self._capture = capture
        self._channel: ServiceChannel | None = None

    def execute(self, code: str, *, output_path: str | None = None) -> Execution:
        """Runs one program, which sees the variables of earlier programs.

        Args:
            code: the program.
            output_path: a file that the program may write; None for none.

        Raises:
            SandboxError: the sandbox failed (not the program).
            SuiteError: an input file is missing or too long.
        """
        frame: dict[str, object] = {
            "do": "execute",
            "code": code,
            "output_path": output_path,
            "console_bytes": self._limits.console_bytes,
        }
        if self._capture is not None:
            frame["pictures"] = asdict(self._capture)
        channel = self._open()
        try:
            answer = _ask(channel, frame, self._limits.wall_s)
        except TimeoutError:
            self.close()
            reason = f"it ran longer than {self._limits.wall_s:g} s; all variables are lost"
            return _ended(reason, self._limits.wall_s)
        except SandboxError as error:
            # The program itself ended the interpreter (os._exit, memory); that is not our fault.
            self.close()
            reason = f"the interpreter ended ({error.message}); all variables are lost"
            return _ended(reason, 0.0)
        chars = OUTPUT_CHARS if self._chars is None else self._chars
        error_chars = ERROR_CHARS if self._chars is None else self._chars
        return _execution_of_answer(answer, chars, error_chars, self._capture)

    def close(self) -> None:
        """Ends the interpreter; safe to call twice."""
        channel, self._channel = self._channel, None
        if channel is not None:
            channel.close()

    def _open(self) -> ServiceChannel:
        if self._channel is None:
            channel = self._sandbox.service(
                program_text(INTERPRETER), root="python", memory_bytes=self._limits.memory_bytes
            )
            self._channel = channel
            try:
                for frame in self._preparing():
                    _ask(channel, frame, _PREPARE_S)
            except TimeoutError as error:
                self.close()
                raise SandboxError("the session's interpreter did not start in time") from error
        return self._channel

    def _preparing(self) -> Iterator[dict[str, object]]:
        """Yields frames that prepare the interpreter, one per file, since files may be long."""
        frame: dict[str, object] = {"do": "place", "files": {}, "folders": list(self._folders)}
        if self._work_in is not None:
            frame["work_in"] = self._work_in
        if not self._files:
            yield frame
        for path, source in self._files.items():
            yield {**frame, "files": {path: _base64_of(source)}}


class SessionRunner:
    """Runs the programs of all rounds of a task in one interpreter; see :class:`Interpreter`.

    Args:
        sandbox: the sandbox.
        input_workbook: the first case's input.
        input_path: the path of the input, as named in the prompt; must be below /tmp.
        output_path: the path of the output, as named in the prompt; must be below /tmp.
        limits: limits of each program.
    """

    def __init__(
        self,
        sandbox: Sandbox,
        input_workbook: Path,
        input_path: str,
        output_path: str,
        limits: Limits,
    ) -> None:
        self._output_path = output_path
        self._interpreter = Interpreter(
            sandbox,
            {input_path: input_workbook},
            limits,
            folders=(posixpath.dirname(output_path),),
        )
        self._alone = FreshProcessRunner(sandbox, input_workbook, input_path, output_path, limits)

    def execute(self, code: str) -> Execution:
        """Runs one program, which sees the variables of earlier programs."""
        return self._interpreter.execute(code, output_path=self._output_path)

    def execute_alone(self, code: str) -> Execution:
        """Runs a program in a fresh session, as the judge does."""
        return self._alone.execute(code)

    def close(self) -> None:
        """Ends the interpreter."""
        self._interpreter.close()


def _base64_of(path: Path) -> str:
    data = read_regular(path, SuiteError, max_bytes=MAX_INPUT_BYTES)
    if data is None:
        raise SuiteError(
            f"{path}: the input file is missing",
            hint="`judge dataset validate` lists missing files.",
        )
    return base64.b64encode(data).decode("ascii")


def _ended(reason: str, seconds: float) -> Execution:
    return Execution(
        failed=False, stopped=reason, printed="", error="", output_exists=False, seconds=seconds
    )


def _ask(
    channel: ServiceChannel, frame: Mapping[str, object], timeout_s: float
) -> dict[str, object]:
    data = channel.call(json.dumps(frame).encode("utf-8"), timeout_s)
    try:
        answer = json.loads(data)
    except (ValueError, RecursionError):
        answer = None
    if not isinstance(answer, dict):
        raise SandboxError("the interpreter's answer cannot be read")
    return answer


def _execution_of_answer(
    answer: dict[str, object], chars: int, error_chars: int, capture: PictureCapture | None
) -> Execution:
    error = answer.get("error")
    seconds = answer.get("seconds")
    return Execution(
        failed=error is not None,
        stopped=None,
        printed=cut_middle(writable(str(answer.get("stdout", ""))).strip("\n"), chars),
        error="" if error is None else trim_traceback(writable(str(error)), error_chars),
        output_exists=answer.get("output_exists") is True,
        seconds=float(seconds) if isinstance(seconds, int | float) else 0.0,
        pictures=() if capture is None else _pictures_of(answer.get("pictures"), capture),
    )


def _pictures_of(listed: object, capture: PictureCapture) -> tuple[tuple[str, bytes], ...]:
    """Returns the pictures in an answer, within limits; a program may have forged the answer."""
    pictures: list[tuple[str, bytes]] = []
    for entry in listed[: capture.max_pictures] if isinstance(listed, list) else ():
        name = entry.get("name") if isinstance(entry, dict) else None
        data = entry.get("data") if isinstance(entry, dict) else None
        if not isinstance(name, str) or not isinstance(data, str):
            continue
        if len(data) > capture.max_bytes * 2:
            continue
        with contextlib.suppress(ValueError):
            pictures.append((visible(name[:_NAME_CHARS]), base64.b64decode(data, validate=True)))
    return tuple(pictures)


_FRAME = re.compile(r'^  File "(?P<path>[^"]*)", line \d+')
_OWN = re.compile(r"(?:^|/)solution\.py$|^<string>$|^<stdin>$")


def cut_middle(text: str, limit: int) -> str:
    """Returns the beginning and the end of a string, with a note on the omitted part.

    Args:
        text: the output of a program.
        limit: how many characters to keep.
    """
    if len(text) <= limit:
        return text
    head = text[: limit * 2 // 3]
    tail = text[-(limit - len(head)) :]
    return f"{head}\n[… {len(text) - limit} characters left out …]\n{tail}"


def trim_traceback(text: str, limit: int = 3_000) -> str:
    """Returns a traceback without the internals of libraries.

    Frames of the program are kept; of consecutive library frames, only the last one is kept. The
    message at the end is never lost.

    Args:
        text: standard error of a program.
        limit: how many characters to keep; more of them from the end than from the beginning.
    """
    kept: list[str] = []
    run: list[list[str]] = []
    for block in _blocks(text.splitlines()):
        match = _FRAME.match(block[0])
        if match and not _OWN.search(match["path"]):
            run.append(block)
            continue
        kept += _folded(run)
        run = []
        kept += block
    kept += _folded(run)
    lines = [line if len(line) <= 1_000 else f"{line[:1_000]} …" for line in kept]
    trimmed = "\n".join(lines).strip("\n")
    if len(trimmed) <= limit:
        return trimmed
    head = trimmed[: limit // 4]
    tail = trimmed[-(limit - len(head)) :]
    return f"{head}\n[… {len(trimmed) - limit} characters left out …]\n{tail}"


def _blocks(lines: list[str]) -> list[list[str]]:
    """Yields each frame together with the source lines below it, and every other line alone."""
    blocks: list[list[str]] = []
    in_frame = False
    for line in lines:
        if _FRAME.match(line):
            blocks.append([line])
            in_frame = True
        elif in_frame and line.startswith("    "):
            blocks[-1].append(line)
        else:
            blocks.append([line])
            in_frame = False
    return blocks


def _folded(run: list[list[str]]) -> list[str]:
    if len(run) <= 1:
        return [line for block in run for line in block]
    count = len(run) - 1
    return [f"  [{count} frame{'s' if count > 1 else ''} inside libraries]", *run[-1]]
