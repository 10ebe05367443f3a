"""Signals and clocks: a command that is ended closes what it opened, whatever the time is."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import importlib
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
import uvicorn

import judge
import judge.errors
from judge.cli.main import main
from judge.cli.signals import EndSignal, ending_by_signals
from judge.cli.view import serve_page
from judge.report import view
from judge.report.view import ViewPage
from judge.workbook import reader
from tests.unit.report.runs import Solution, TaskSpec, make_run, make_suite

pytestmark = pytest.mark.slow

SIGNALS = {signal.SIGINT: 130, signal.SIGTERM: 143, signal.SIGHUP: 129}


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_unwinds_the_command(number: signal.Signals) -> None:
    closed: list[str] = []

    def command() -> None:
        with ending_by_signals(), contextlib.ExitStack() as stack:
            stack.callback(closed.append, "sandbox")
            os.kill(os.getpid(), number)

    with pytest.raises(EndSignal) as ended:
        command()
    assert closed == ["sandbox"]
    assert ended.value.exit_code == SIGNALS[number]
    assert signal.getsignal(number) == signal.SIG_DFL


def test_a_signal_that_is_ignored_stays_ignored() -> None:
    """As with `nohup`."""
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with ending_by_signals():
            os.kill(os.getpid(), signal.SIGHUP)
    finally:
        signal.signal(signal.SIGHUP, before)


@pytest.mark.parametrize("number", SIGNALS)
@pytest.mark.parametrize("command", ["verify", "rejudge", "report", "score"])
def test_the_exit_code_names_the_signal(
    command: str,
    number: signal.Signals,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """In the middle of the work, while workers compare."""
    suite = make_suite(tmp_path / "suite", [TaskSpec("1", cases=2)])
    output = suite.tasks[0].cases[0].gold_path.read_bytes()
    run = make_run(tmp_path / "run", suite, [Solution("1", ("WA", "WA"), output=output)])
    outputs = tmp_path / "outputs"
    outputs.mkdir()
    (outputs / "1_1_output.xlsx").write_bytes(output)
    before = {each: each.read_bytes() for each in run.rglob("*") if each.is_file()}
    calls = {
        "verify": ["verify", str(suite.root), "--recalc", "never"],
        "rejudge": ["rejudge", str(run), "--apply"],
        "report": ["report", str(run)],
        "score": ["score", str(outputs), "--dataset", str(suite.root), "--recalc", "never",
                  "--out", str(tmp_path / "scored")],
    }  # fmt: skip
    sent: list[int] = []
    sending = threading.Lock()

    def ended() -> None:
        """Sends it once: what two workers sent could come as late as in the next test."""
        with sending:
            is_first = not sent
            sent.append(number)
        if is_first:
            os.kill(os.getpid(), number)

    opened = reader.Workbook.__init__

    def open_and_end(self: reader.Workbook, *arguments: object, **named: object) -> None:
        ended()
        opened(self, *arguments, **named)  # type: ignore[arg-type]

    monkeypatch.setattr(reader.Workbook, "__init__", open_and_end)
    gc.disable()  # an exception within a callback of the collector is lost, and hypothesis has one
    try:
        with pytest.raises(SystemExit) as raised:
            main(calls[command])
    finally:
        gc.enable()
    assert sent
    assert raised.value.code == SIGNALS[number]
    assert "Traceback" not in capsys.readouterr().err
    assert {each: each.read_bytes() for each in before} == before
    assert not list(tmp_path.rglob(".*.xlsx.*"))


class SendsWhenNamed:
    """Python raises a RuntimeError of its own if a class cannot be created."""

    def __init__(self, number: int) -> None:
        self.number = number

    def __set_name__(self, owner: type, name: str) -> None:
        os.kill(os.getpid(), self.number)


class SendsWhenDestroyed:
    """Python prints exceptions that are raised here, and continues."""

    def __init__(self, number: int) -> None:
        self.number = number

    def __del__(self) -> None:
        os.kill(os.getpid(), self.number)


def import_while_it_comes(number: int) -> None:
    type("Imported", (), {"field": SendsWhenNamed(number)})


def destroy_while_it_comes(number: int) -> None:
    SendsWhenDestroyed(number)
    ended = time.monotonic() + 240
    while time.monotonic() < ended:
        time.sleep(0.01)


def fail_while_it_comes(number: int) -> None:
    try:
        os.kill(os.getpid(), number)
        time.sleep(0.1)
    finally:
        raise judge.errors.JudgeError("the scheduler cannot be reached any more")


@pytest.mark.parametrize("number", SIGNALS)
@pytest.mark.parametrize(
    "command", [import_while_it_comes, destroy_while_it_comes, fail_while_it_comes]
)
def test_a_signal_ends_the_command_wherever_it_comes(
    command: Callable[[int], None],
    number: signal.Signals,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    group = importlib.import_module("judge.cli.main").judge
    monkeypatch.setattr(group, "main", lambda *_, **__: command(number))
    with pytest.raises(SystemExit) as raised:
        main(["score"])
    assert raised.value.code == SIGNALS[number]
    said = capsys.readouterr().err
    assert said.strip() == ("interrupted" if number == signal.SIGINT else f"ended by {number.name}")


@pytest.mark.parametrize("number", SIGNALS)
def test_view_ends(number: signal.Signals, tmp_path: Path) -> None:
    (tmp_path / "results").mkdir()
    code = "import sys; from judge.cli.main import main; main(sys.argv[1:])"
    with subprocess.Popen(
        [sys.executable, "-u", "-c", code, "view", str(tmp_path / "results"), "--port", "0"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as child:
        assert child.stdout is not None
        assert "http://127.0.0.1:" in child.stdout.readline()
        child.send_signal(number)
        _, said = child.communicate(timeout=240)
    assert child.returncode == SIGNALS[number]
    assert "Traceback" not in said


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_raises_nothing_in_the_code_that_starts_the_server(
    number: signal.Signals, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between the printed address and the running event loop, which would print a traceback."""
    before = {each: signal.getsignal(each) for each in SIGNALS}
    steps: list[str] = []
    loop_factory = uvicorn.Config.get_loop_factory

    def make_loop(config: uvicorn.Config) -> Callable[[], asyncio.AbstractEventLoop] | None:
        steps.append("signal")
        os.kill(os.getpid(), number)
        steps.append("loop")
        return loop_factory(config)

    monkeypatch.setattr(uvicorn.Config, "get_loop_factory", make_loop)
    page = ViewPage(tmp_path)
    with ending_by_signals(), pytest.raises(EndSignal) as ended:
        serve_page(page, "title", message="runs", port=0, no_browser=True)
    assert steps == ["signal", "loop"]
    assert ended.value.exit_code == SIGNALS[number]
    assert {each: signal.getsignal(each) for each in SIGNALS} == before


def test_durations_are_not_of_the_wall_clock() -> None:
    """The wall clock can be set, so it is only used for a date or the age of a file."""
    folder = Path(judge.__file__).parent
    asked = {
        str(path.relative_to(folder))
        for path in folder.rglob("*.py")
        if re.search(r"\btime\.time\(\)", path.read_text(encoding="utf-8"))
    }
    assert asked <= {
        "inference/batches/log.py",  # batches are waited for over commands and days
        "inference/batches/server.py",  # and given up after days
        "recalc/cache.py",  # the age of an abandoned file
        "serve/operations/upkeep.py",  # the age of a file that no row names
        "serve/access/oidc.py",  # the dates in tokens of other providers
        "report/view.py",  # the age of a record, where locks cannot be seen
        "sandbox/backends/docker.py",  # events of a daemon that are asked for by date
        "sandbox/backends/daemon.py",
    }


@pytest.mark.parametrize("shift_s", [-86_400, 0, 86_400])
def test_a_clock_that_was_set_does_not_keep_a_run_going(
    shift_s: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "cases.jsonl"
    path.write_text("")
    now = path.stat().st_mtime
    monkeypatch.setattr(time, "time", lambda: now + shift_s)
    assert view._moved_lately(path) is (shift_s == 0)
