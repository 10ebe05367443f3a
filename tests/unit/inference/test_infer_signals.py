"""`judge infer` is ended by a signal: its records are complete, and the same command continues."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from click.testing import CliRunner

from judge.cli.infer import infer
from tests.inference.raw_server import Exchange, raw_server

pytestmark = pytest.mark.slow

LAUNCH = [sys.executable, "-c", "from judge.cli.main import main; main()", "infer", "--no-cache"]
REPLY = json.dumps({"choices": [{"message": {"content": "```python\nx = 1\n```"}}]}).encode()
AT_ONCE = 3


def lines(path: Path) -> list[bytes]:
    return path.read_bytes().splitlines(keepends=True) if path.exists() else []


@pytest.mark.parametrize(
    ("number", "code", "word"),
    [
        (signal.SIGINT, 130, "interrupted"),
        (signal.SIGTERM, 143, "ended by SIGTERM"),
    ],
)
def test_ended_by_a_signal(number: signal.Signals, code: int, word: str, tmp_path: Path) -> None:
    asked, go_on = threading.Semaphore(0), threading.Event()

    def send(exchange: Exchange) -> None:
        if len(server.exchanges) > AT_ONCE:
            asked.release()
            go_on.wait(120)
        exchange.answer(200, REPLY)

    out = tmp_path / "run"
    with raw_server(send) as server:
        options = ["-m", "x", "--base-url", server.url, "--out", str(out), "-c", "2"]
        process = subprocess.Popen([*LAUNCH, *options], stderr=subprocess.PIPE, text=True)
        for _ in range(2):
            assert asked.acquire(timeout=120), "both workers wait for an answer"
        done = lines(out / "submissions.jsonl")
        assert len(done) >= AT_ONCE - 1
        process.send_signal(number)
        _, said = process.communicate(timeout=120)
        assert process.returncode == code, said
        assert word in said
        assert f"to continue: judge infer --out {out}" in said
        assert "Traceback" not in said
        assert lines(out / "submissions.jsonl")[: len(done)] == done
        for path in out.rglob("*.json*"):
            whole = lines(path) if path.suffix == ".jsonl" else [path.read_bytes()]
            assert all(json.loads(each) and each.endswith(b"\n") for each in whole)
        states = [json.loads(path.read_bytes())["state"] for path in out.glob("conversations/*")]
        assert states.count("stopped") == 2, "those under way are kept as far as they came"
        go_on.set()
        count = len(server.exchanges)
        options = ["--no-cache", "-q", "--out", str(out), "--limit", str(AT_ONCE + 2)]
        again = CliRunner().invoke(infer, options)
        assert again.exit_code == 0, again.output
        finished = len(lines(out / "submissions.jsonl"))
        assert finished == AT_ONCE + 2
        assert len(server.exchanges) - count == finished - len(done), "nothing is asked twice"
