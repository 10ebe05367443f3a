"""One interpreter for all rounds of a conversation: a service of the sandbox, with input files."""

from __future__ import annotations

import base64
import contextlib
import json
import posixpath
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from judge.console import visible
from judge.core.limits import Limits
from judge.errors import SandboxError, SuiteError
from judge.files.documents import MIB, read_regular
from judge.inference.answers import writable
from judge.inference.tracebacks import cut_middle, trim_traceback
from judge.inference.workplace import ERROR_CHARS, OUTPUT_CHARS, Execution, FreshWorkplace
from judge.sandbox.bundle import program_text
from judge.sandbox.contract import Sandbox, ServiceChannel

MAX_INPUT_BYTES = 256 * MIB
"""The longest input file that is placed in a sandbox."""

INTERPRETER = "judge.inference.interpreter"
"""The module that runs inside."""

_PLACE_S = 60.0
_NAME_CHARS = 100


@dataclass(frozen=True, slots=True)
class Drawing:
    """Which pictures that programs make are wanted.

    Attributes:
        folder: where programs work, and save pictures.
        most: how many after each program.
        most_bytes: the longest one.
        suffixes: how names of pictures end.
    """

    folder: str
    most: int
    most_bytes: int = 4 * MIB
    suffixes: tuple[str, ...] = (".png", ".jpg", ".jpeg", ".webp", ".gif")


class Interpreter:
    """An interpreter for one conversation, started with the first program.

    It is isolated like a solution, and belongs only to this conversation. A program that runs too
    long ends it; the next program gets a new one without variables.

    Args:
        sandbox: where to run.
        files: path inside, which must be below /tmp -> input file.
        limits: bounds of each program.
        folders: folders to make, likewise below /tmp.
        work_in: one of them, where programs work; None for their home.
        chars: characters of a printout that are kept; a traceback has at most as many.
        drawing: which pictures are wanted; None for none.
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
        drawing: Drawing | None = None,
    ) -> None:
        self._sandbox = sandbox
        self._files = dict(files)
        self._limits = limits
        self._folders = tuple(folders)
        self._work_in = work_in
        self._chars = chars
        self._drawing = drawing
        self._channel: ServiceChannel | None = None

    def execute(self, code: str, *, output_path: str | None = None) -> Execution:
        """Runs one program among the variables of those before it.

        Args:
            code: the program.
            output_path: a file that it may leave; None if none is wanted.

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
        if self._drawing is not None:
            frame["pictures"] = asdict(self._drawing)
        channel = self._open()
        try:
            answer = _ask(channel, frame, self._limits.wall_s)
        except TimeoutError:
            self.close()
            reason = f"it ran longer than {self._limits.wall_s:g} s; all variables are lost"
            return _ended(reason, self._limits.wall_s)
        except SandboxError as error:
            # The program ended the interpreter (os._exit, memory), which is its own doing.
            self.close()
            reason = f"the interpreter ended ({error.message}); all variables are lost"
            return _ended(reason, 0.0)
        chars = OUTPUT_CHARS if self._chars is None else self._chars
        error_chars = ERROR_CHARS if self._chars is None else self._chars
        return _execution_of_answer(answer, chars, error_chars, self._drawing)

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
                for frame in self._placing():
                    _ask(channel, frame, _PLACE_S)
            except TimeoutError as error:
                self.close()
                raise SandboxError("the session's interpreter did not start in time") from error
        return self._channel

    def _placing(self) -> Iterator[dict[str, object]]:
        """Frames that prepare the interpreter: one for each file, since files may be long."""
        frame: dict[str, object] = {"do": "place", "files": {}, "folders": list(self._folders)}
        if self._work_in is not None:
            frame["work_in"] = self._work_in
        if not self._files:
            yield frame
        for path, source in self._files.items():
            yield {**frame, "files": {path: _base64_of(source)}}


class SessionWorkplace:
    """One interpreter for all rounds of a task, started with the first program.

    It is a service of the sandbox, so it is isolated like a solution, and belongs only to this
    task. A program that runs too long ends it; the next program gets a new one without variables.

    Args:
        sandbox: where to run.
        input_workbook: the first case's input.
        input_path: where the prompt says that programs find it; must be below /tmp.
        output_path: where the prompt says that they leave theirs; likewise.
        limits: bounds of each program.
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
        self._alone = FreshWorkplace(sandbox, input_workbook, input_path, output_path, limits)

    def execute(self, code: str) -> Execution:
        """Runs one program among the variables of those before it."""
        return self._interpreter.execute(code, output_path=self._output_path)

    def execute_alone(self, code: str) -> Execution:
        """Runs a program in a fresh place, as the judge will."""
        return self._alone.execute(code)

    def close(self) -> None:
        """Ends the interpreter."""
        self._interpreter.close()


def _base64_of(path: Path) -> str:
    data = read_regular(path, SuiteError, most_bytes=MAX_INPUT_BYTES)
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
        raise SandboxError("what it sent is not an answer")
    return answer


def _execution_of_answer(
    answer: dict[str, object], chars: int, error_chars: int, drawing: Drawing | None
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
        pictures=() if drawing is None else _pictures_of(answer.get("pictures"), drawing),
    )


def _pictures_of(found: object, drawing: Drawing) -> tuple[tuple[str, bytes], ...]:
    """The pictures of an answer within the bounds; the program may have forged the answer."""
    pictures: list[tuple[str, bytes]] = []
    for each in found[: drawing.most] if isinstance(found, list) else ():
        name = each.get("name") if isinstance(each, dict) else None
        data = each.get("data") if isinstance(each, dict) else None
        if not isinstance(name, str) or not isinstance(data, str):
            continue
        if len(data) > drawing.most_bytes * 2:
            continue
        with contextlib.suppress(ValueError):
            pictures.append((visible(name[:_NAME_CHARS]), base64.b64decode(data, validate=True)))
    return tuple(pictures)
