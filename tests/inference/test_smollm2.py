"""A real model end to end: SmolLM2-135M answers, `judge score` grades what it wrote."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from judge.errors import SandboxError
from judge.sandbox import open_sandbox
from tests.conftest import Figures
from tests.inference.babel import png, write_suite
from tests.inference.smollm2 import MISSING, SmolServer, is_installed

pytestmark = [pytest.mark.bubblewrap, pytest.mark.slow]

LAUNCH = [sys.executable, "-c", "from judge.cli.main import main; main()"]

# Free-form this model writes no program that runs; a grammar lets it choose only the value.
GRAMMAR = r"""
root ::= opening input "\")\n" change "\nworkbook.save(\"" output "\")\n```"
opening ::= "```python\nimport openpyxl\nworkbook = openpyxl.load_workbook(\""
change ::= "workbook.worksheets[0][\"" cell "\"] = " value
input ::= "/mnt/data/input/1_" id "_input.xlsx"
output ::= "/mnt/data/output/1_" id "_output.xlsx"
id ::= [0-9a-z-]{1,20}
cell ::= [A-H] [1-9]
value ::= [0-9]{1,4}
"""


@pytest.fixture(scope="module")
def server() -> Iterator[SmolServer]:
    if not is_installed():
        pytest.skip(MISSING)
    try:
        open_sandbox("bubblewrap", jobs=1).close()
    except SandboxError as error:
        pytest.skip(f"no bubblewrap here: {error.message}")
    with SmolServer() as running:
        yield running


def judge(*arguments: str | Path) -> dict[str, object]:
    done = subprocess.run(
        [*LAUNCH, *map(str, arguments)], capture_output=True, text=True, timeout=900, check=False
    )
    assert done.returncode == 0, done.stderr
    document: dict[str, object] = json.loads(done.stdout)
    return document


@pytest.mark.parametrize(
    ("mode", "form"), [("multi", "free"), ("single", "grammar"), ("multi", "grammar")]
)
def test_a_real_model_end_to_end(
    mode: str, form: str, server: SmolServer, tmp_path: Path, figures: Figures
) -> None:
    # Free-form it talks until it is stopped; what it says in 24 tokens proves as much.
    # With a grammar it writes programs, slowly: one task shows that they are run and graded.
    tasks = 1 if form == "grammar" else 2
    max_tokens = 24 if form == "free" else 120
    options = ["--mode", mode, "--limit", str(tasks), "--max-tokens", str(max_tokens)]
    options += ["--seed", "7", "--rows", "1", "--no-cache", "-c", "2", "-q", "--json"]
    options += ["--sandbox", "bubblewrap"]
    if mode == "multi":
        options += ["--rounds", "2"]
    if form == "grammar":
        options += ["--param", f"grammar={json.dumps(GRAMMAR)}"]
    asked = judge("infer", "-m", "llama.cpp", "--base-url", server.url, "--out", tmp_path, *options)
    summary = asked["inference"]
    assert isinstance(summary, dict)
    assert (summary["finished"], summary["failed"]) == (tasks, 0)
    assert summary["prompt_tokens"] > 300 * tasks
    assert 0 < summary["completion_tokens"] <= max_tokens * summary["calls"]
    records = [
        json.loads(line) for line in (tmp_path / "submissions.jsonl").read_text().splitlines()
    ]
    for record in records:
        assert record["reply"]
        for call in record["calls"]:
            assert call["prompt_tokens"] > 0
            assert call["latency_s"] > 0
    if form == "grammar":
        assert all(record["solution"] for record in records)
    report = judge("score", tmp_path, "--sandbox", "bubblewrap", "--json", "-q")
    overall = report["overall"]
    assert isinstance(overall, dict)
    assert overall["tasks"] == tasks
    assert "JE" not in overall["verdicts"]
    usage = report["usage"]
    assert isinstance(usage, dict)
    for name in ("calls", "prompt_tokens", "completion_tokens"):
        assert usage[name] == summary[name]
    assert 0 < usage["latency_s"]["median"] <= usage["inference_s"]
    figures(
        f"SmolLM2 {mode} {form}: {summary['calls']} calls, "
        f"{summary['prompt_tokens']} + {summary['completion_tokens']} tokens, "
        f"{summary['seconds']:.1f} s, verdicts {overall['verdicts']}"
    )


def test_typed_answers(server: SmolServer, tmp_path: Path, figures: Figures) -> None:
    """Questions over tables leave whole records; this model takes no pictures, and says so."""
    tables = {f"000-csvs/{n}.csv": f"name,points\na,{n}\nb,2\n".encode() for n in range(3)}
    questions = [(f"How many points in {n}?", (), (f"{n}.csv",), n + 2) for n in range(3)]
    with_picture = ("How many?", ("grey.png",), (), 1)
    files = tables | {"000-imgs/grey.png": png(8, 8)}
    suite = write_suite(tmp_path / "suite", [*questions, with_picture], files)
    out = tmp_path / "run"
    options: list[str | Path] = ["-m", "llama.cpp", "--base-url", server.url, "--dataset", suite]
    options += ["--no-cache", "-q"]
    options += ["--mode", "multi", "--max-tokens", "16", "--seed", "7", "--sandbox", "bubblewrap"]
    asked = judge("infer", *options, "--ids", "0", "--rounds", "2", "--out", out, "--json")
    summary = asked["inference"]
    assert isinstance(summary, dict)
    assert (summary["finished"], summary["failed"], summary["no_code"]) == (1, 0, 0)
    record = json.loads((out / "submissions.jsonl").read_text())
    assert record["response"]
    assert record["setting"] == "typed/multi"
    conversation = json.loads((out / record["conversation"]).read_text())
    assert len(conversation["rounds"]) == record["rounds"] == len(record["calls"])
    assert all(call["prompt_tokens"] > 100 for call in record["calls"])
    report = judge("score", out, "--json", "-q")
    overall = report["overall"]
    assert isinstance(overall, dict)
    assert overall["verdicts"] == {"WA": 1}
    refused = subprocess.run(
        [*LAUNCH, "infer", *map(str, options), "--ids", "3", "--out", str(tmp_path / "refused")],
        capture_output=True, text=True, timeout=900, check=False,
    )  # fmt: skip
    assert refused.returncode == 10
    assert "takes no pictures: the server says 500" in refused.stderr
    figures(f"SmolLM2, typed answers: {summary['calls']} calls, {summary['seconds']:.1f} s")
