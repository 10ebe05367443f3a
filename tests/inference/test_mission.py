"""The two commands as people type them, with only the required arguments."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from judge.errors import SandboxError
from judge.sandbox import open_sandbox
from tests.inference.scripted import Reply, ScriptedServer, Seen, program

LAUNCH = [sys.executable, "-c", "from judge.cli.main import main; main()"]
ALIASES = """\
deepseek-coder-here: {{base_url: "{url}", model: deepseek-coder, key_env: HERE_API_KEY,
  price: {{input: 1, output: 2, date: 2026-01-01, source: made up}}}}
"""


def judge(folder: Path, *arguments: str, key: str | None) -> subprocess.CompletedProcess[str]:
    names = ("DEEPSEEK_API_KEY", "HERE_API_KEY")
    environment = {name: value for name, value in os.environ.items() if name not in names}
    if key is not None:
        environment["HERE_API_KEY"] = key
    return subprocess.run(
        [*LAUNCH, *arguments],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def test_without_a_key(tmp_path: Path) -> None:
    done = judge(tmp_path, "infer", "--model", "deepseek-coder", "--mode", "multi", key=None)
    assert done.returncode == 10
    assert "DEEPSEEK_API_KEY" in done.stderr
    assert "hint: export DEEPSEEK_API_KEY=" in done.stderr
    assert "Traceback" not in done.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.bubblewrap
def test_ask_walk_away_and_score(tmp_path: Path) -> None:
    try:
        open_sandbox("bubblewrap", jobs=1).close()
    except SandboxError as error:
        pytest.skip(f"no bubblewrap here: {error.message}")

    def script(seen: Seen) -> Reply:
        if seen.round == 1:
            return "```python\nraise ValueError('not yet')\n```"
        return program(seen.task) if seen.task != "1001" else "I give up."

    with ScriptedServer(script) as server:
        aliases = tmp_path / "mine.yaml"
        aliases.write_text(ALIASES.format(url=server.url))
        asked = judge(
            tmp_path, "infer", "--model", "deepseek-coder-here", "--mode", "multi",
            "--models", "mine.yaml", "--limit", "2", "--sandbox", "bubblewrap", key="sk-x",
        )  # fmt: skip
        # A second attempt that never got an answer does not stand in the way of the score.
        unreachable = judge(
            tmp_path, "infer", "--model", "x", "--base-url", "http://127.0.0.1:9/v1", key=None
        )
    assert asked.returncode == 0, asked.stderr
    assert "asking deepseek-coder-here (deepseek-coder) at http://" in asked.stderr
    assert "2/2 tasks" in asked.stderr
    assert "2 of 2 finished, 0 failed, 0 truncated, 0 without a program or answer" in asked.stdout
    assert "cost: $" in asked.stdout
    assert unreachable.returncode == 10
    assert "connection failed" in unreachable.stderr
    runs = sorted(path.name for path in (tmp_path / "results").iterdir())
    assert len(runs) == 2
    assert runs[0].startswith("deepseek-coder-here-multi-")
    assert f"to grade: judge score results/{runs[0]}" in asked.stdout
    scored = judge(tmp_path, "score", "results/", "--sandbox", "bubblewrap", key=None)
    assert scored.returncode == 0, scored.stderr
    report = json.loads((tmp_path / "results" / runs[0] / "report.json").read_text())
    assert report["run"]["model"] == "deepseek-coder-here"
    assert report["run"]["setting"] == "multi/row-react-exec"
    assert report["overall"]["tasks"] == 2
    assert report["overall"]["tasks_without_submission"] == 12
    assert report["usage"]["calls"] == 7
    assert report["usage"]["cost_usd"] > 0
    alone = judge(tmp_path, "score", f"results/{runs[1]}", key=None)
    assert alone.returncode == 9
    assert "the chat model has not answered" in alone.stderr
