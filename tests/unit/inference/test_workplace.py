from __future__ import annotations

import json
import struct
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from judge.core.limits import Limits
from judge.errors import SandboxError
from judge.inference.execution import (
    INTERPRETER,
    OUTPUT_CHARS,
    Execution,
    FreshProcessRunner,
    SessionRunner,
    SessionSlots,
    execution_of_run,
)
from judge.sandbox import open_sandbox
from judge.sandbox.bundle import program_text
from judge.sandbox.contract import OutputStatus, RunResult, RunStatus, Sandbox
from judge.sandbox.scripted import ScriptedSandbox
from tests.inference.planning import write_workbook

PATHS = ("/tmp/data/input/1_7_input.xlsx", "/tmp/data/output/1_7_output.xlsx")
OK = RunResult(RunStatus.OK, OutputStatus.MISSING)
SAVE = f"workbook.save({PATHS[1]!r})"
LOAD = f"import openpyxl\nworkbook = openpyxl.load_workbook({PATHS[0]!r})\n"


@pytest.fixture
def workbook(tmp_path: Path) -> Path:
    return write_workbook(tmp_path / "w.xlsx", 1)


@pytest.mark.parametrize(
    ("result", "failed", "stopped", "words"),
    [
        (OK, False, None, ""),
        (RunResult(RunStatus.EXITED, OutputStatus.MISSING, exit_code=3), True, None, "exit code 3"),
        (RunResult(RunStatus.SIGNALED, OutputStatus.MISSING, signal=11), True, None, "signal 11"),
        (RunResult(RunStatus.COMPILE_ERROR, OutputStatus.MISSING, stderr=b"SyntaxError: x"),
         True, None, "SyntaxError"),
        (RunResult(RunStatus.WALL_LIMIT, OutputStatus.MISSING), False, "it ran longer", ""),
        (RunResult(RunStatus.MEMORY_LIMIT, OutputStatus.MISSING), False, "more memory", ""),
    ],
)  # fmt: skip
def test_facts_in_words(result: RunResult, failed: bool, stopped: str | None, words: str) -> None:
    found = execution_of_run(result)
    assert found.failed is failed
    assert (stopped or "") in (found.stopped or "")
    assert bool(found.stopped) is bool(stopped)
    assert words in found.error
    assert not found.solved


def test_long_output_is_cut() -> None:
    result = RunResult(
        RunStatus.OK, OutputStatus.COLLECTED, stdout=b"a" * 60_000 + b"z", output=b"x"
    )
    found = execution_of_run(result)
    assert found.solved
    assert len(found.printed) < OUTPUT_CHARS + 100
    assert found.printed.endswith("z")


def test_places_are_kept_within_bounds(workbook: Path) -> None:
    sandbox = ScriptedSandbox([OK] * 6)
    kept = SessionSlots(1)
    first = FreshProcessRunner(sandbox, workbook, *PATHS, Limits(), kept)
    second = FreshProcessRunner(sandbox, workbook, *PATHS, Limits(), kept)
    for place in (first, second, first, second):
        place.execute(f"print({sandbox.opened})")
    assert sandbox.opened == 3
    first.close()
    first.close()
    second.execute("x = 1")
    second.execute("x = 2")
    assert sandbox.opened == 4
    second.close()


def test_a_program_that_was_run_alone_is_not_run_again(workbook: Path) -> None:
    sandbox = ScriptedSandbox([OK, OK])
    place = FreshProcessRunner(sandbox, workbook, *PATHS, Limits())
    place.execute("x = 1")
    place.execute_alone("x = 1")
    assert len(sandbox.requests) == 1
    place.execute_alone("y = 1")
    assert len(sandbox.requests) == 2


def test_a_session_that_forges_its_answers_harms_nobody(workbook: Path) -> None:
    for forged in (b"[]", b"nonsense", b'"text"', b"[" * 100_000):
        sandbox = ScriptedSandbox(answers=[b'{"placed": true}', forged])
        place = SessionRunner(sandbox, workbook, *PATHS, Limits())
        found = place.execute("x = 1")
        assert "variables are lost" in (found.stopped or "")
        assert not found.solved
    odd = json.dumps({"stdout": 5, "seconds": "x", "output_exists": "yes"}).encode()
    sandbox = ScriptedSandbox(answers=[b'{"placed": true}', odd])
    found = SessionRunner(sandbox, workbook, *PATHS, Limits()).execute("x = 1")
    assert found == Execution(False, None, "5", "", output_exists=False, seconds=0.0)


def test_a_session_that_never_starts_is_our_failure(workbook: Path) -> None:
    sandbox = ScriptedSandbox(answers=[TimeoutError()])
    with pytest.raises(SandboxError, match="did not start"):
        SessionRunner(sandbox, workbook, *PATHS, Limits()).execute("x = 1")


# -- the interpreter by itself, without a sandbox -----------------------------------------------


class Interpreter:
    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-c", program_text(INTERPRETER)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )

    def ask(self, **frame: object) -> dict[str, object]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        data = json.dumps(frame).encode()
        self._process.stdin.write(struct.pack(">I", len(data)) + data)
        self._process.stdin.flush()
        (length,) = struct.unpack(">I", self._process.stdout.read(4))
        answer: dict[str, object] = json.loads(self._process.stdout.read(length))
        return answer

    def close(self) -> int:
        assert self._process.stdin is not None
        self._process.stdin.close()
        return self._process.wait(120)


@pytest.fixture
def interpreter() -> Iterator[Interpreter]:
    interpreter = Interpreter()
    yield interpreter
    assert interpreter.close() == 0


def test_interpreter(interpreter: Interpreter, tmp_path: Path) -> None:
    output = tmp_path / "out" / "o.txt"
    placed = interpreter.ask(
        do="place", files={str(tmp_path / "in" / "i.txt"): "aGk="}, folders=[str(output.parent)]
    )
    assert placed == {"placed": True}
    assert (tmp_path / "in" / "i.txt").read_bytes() == b"hi"

    def execute(code: str, console_bytes: int = 1000) -> dict[str, object]:
        return interpreter.ask(
            do="execute", code=code, output_path=str(output), console_bytes=console_bytes
        )

    assert execute("x = 1\nprint('one')")["stdout"] == "one\n"
    assert execute("print(x + 1)")["stdout"] == "2\n"
    child = execute("import subprocess, sys\nsubprocess.run([sys.executable, '-c', 'print(3)'])")
    assert child["stdout"] == "3\n"
    failed = execute("def f():\n    return {}['key']\nf()")
    assert "    return {}['key']" in str(failed["error"])
    assert "KeyError: 'key'" in str(failed["error"])
    assert "driver.interpreter" not in str(failed["error"])
    assert "SyntaxError" in str(execute("x = (")["error"])
    assert execute("import sys; sys.exit(2)")["error"] == "SystemExit: 2"
    assert execute("import sys; sys.exit()")["error"] is None
    assert execute("print('y' * 100_000)", 50)["stdout"] == "y" * 50
    assert execute(f"open({str(output)!r}, 'w').write('x')")["output_exists"] is True
    # The workbook of an earlier round is still there, but this program did not leave it.
    assert execute("pass")["output_exists"] is False
    assert execute("print(input())")["error"] is not None
    loaded = execute("import sys\nprint([name for name in sys.modules if 'judge' in name])")
    assert loaded["stdout"] == "[]\n"
    assert execute("print(__name__)")["stdout"] == "__main__\n"


# -- in real sandboxes ---------------------------------------------------------------------------


@pytest.fixture(
    scope="module",
    params=[
        pytest.param("bubblewrap", marks=pytest.mark.bubblewrap),
        pytest.param("docker", marks=pytest.mark.docker),
    ],
)
def sandbox(request: pytest.FixtureRequest) -> Iterator[Sandbox]:
    try:
        opened = open_sandbox(request.param, jobs=1)
    except SandboxError as error:
        pytest.skip(f"no {request.param} here: {error.message}")
    yield opened
    opened.close()


def test_fresh_in_a_sandbox(sandbox: Sandbox, workbook: Path) -> None:
    place = FreshProcessRunner(sandbox, workbook, *PATHS, Limits(wall_s=20), SessionSlots(1))
    found = place.execute(f"{LOAD}print(workbook.sheetnames)")
    assert (found.printed, found.failed, found.output_exists) == ("['Data']", False, False)
    assert "NameError" in place.execute(SAVE).error
    assert place.execute(LOAD + SAVE).solved
    # Nothing of an earlier program is there.
    assert not place.execute("print(1)").output_exists
    place.close()


def test_session_in_a_sandbox(sandbox: Sandbox, workbook: Path) -> None:
    place = SessionRunner(sandbox, workbook, *PATHS, Limits(wall_s=30))
    other = SessionRunner(sandbox, workbook, *PATHS, Limits(wall_s=6))
    assert place.execute(LOAD).error == ""
    assert place.execute("print(workbook.sheetnames)").printed == "['Data']"
    assert "NameError" in other.execute("workbook").error
    assert place.execute(SAVE).solved
    assert not place.execute_alone(SAVE).solved
    assert place.execute_alone(LOAD + SAVE).solved
    assert other.execute("kept = 1").error == ""
    assert "longer than 6 s" in (other.execute("import time; time.sleep(1000)").stopped or "")
    assert "NameError" in other.execute("kept").error
    assert "ended" in (place.execute("import os; os._exit(1)").stopped or "")
    place.close()
    other.close()
