"""`judge infer` over 50 published tasks in every setting, then `judge score`."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from judge.errors import SandboxError
from judge.sandbox import open_sandbox
from tests.inference.scripted import Reply, ScriptedServer, Seen, program

pytestmark = [pytest.mark.data, pytest.mark.bubblewrap, pytest.mark.slow]

TASKS = 50
LOOK = """I look first.
```python
import openpyxl
workbook = openpyxl.load_workbook('{base}/input/1_{task}_input.xlsx')
print('SHEETS', workbook.sheetnames)
```"""
FAIL = """```python
import openpyxl
workbook = openpyxl.load_workbook('{base}/input/1_{task}_input.xlsx')
workbook['no such sheet']
```"""
SAVE_ONLY = """```python
workbook.save('{base}/output/1_{task}_output.xlsx')
```"""

# setting: options; rows in the prompt; rounds that the scripted model takes; how it ends
SETTINGS: dict[str, tuple[list[str], bool, int, str]] = {
    "single": (["--mode", "single"], True, 1, "replied"),
    "row-exec": (["--mode", "multi", "--feedback", "row-exec"], True, 3, "output"),
    "react-exec": (["--mode", "multi", "--feedback", "react-exec"], False, 3, "output"),
    "row-react-exec": (["--mode", "multi"], True, 3, "output"),
    "two rounds": (["--mode", "multi", "--rounds", "2"], True, 2, "rounds"),
    "explicit": (["--mode", "multi", "--stop", "explicit"], True, 4, "explicit"),
    "session": (["--mode", "multi", "--session"], True, 3, "output"),
    "text": (["--mode", "text"], True, 1, "replied"),
}


@pytest.fixture(scope="module", autouse=True)
def bubblewrap() -> None:
    try:
        open_sandbox("bubblewrap", jobs=1).close()
    except SandboxError as error:
        pytest.skip(f"no bubblewrap here: {error.message}")


def script_of(setting: str) -> Any:
    base = "/tmp/data" if setting == "session" else "/mnt/data"

    def script(seen: Seen) -> Reply:
        if setting == "single":
            return program(seen.task)
        if setting == "text":
            return "A1: 1\nA2: text"
        if seen.round == 1:
            return LOOK.format(base=base, task=seen.task)
        if seen.round == 2:
            return FAIL.format(base=base, task=seen.task)
        if setting == "session":
            return SAVE_ONLY.format(base=base, task=seen.task)
        return program(seen.task) if seen.round == 3 else "DONE"

    return script


def judge(*arguments: str | Path | int) -> subprocess.CompletedProcess[str]:
    launch = "from judge.cli.main import main; main()"
    return subprocess.run(
        [sys.executable, "-c", launch, *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )


@pytest.mark.parametrize("setting", SETTINGS)
def test_conversations_have_the_shape_that_the_setting_promises(
    setting: str, judge_data: Path, tmp_path: Path
) -> None:
    options, has_rows, rounds, ended = SETTINGS[setting]
    suite = judge_data / "spreadsheetbench_912_dev300"
    out = tmp_path / "run"
    with ScriptedServer(script_of(setting)) as server:
        asked = judge(
            "infer", "-m", "scripted-1", "--base-url", server.url, "--dataset", suite, "--out", out,
            "--limit", TASKS, "-c", 8, "--sandbox", "bubblewrap", "--json", "-q", *options,
        )  # fmt: skip
        assert asked.returncode == 0, asked.stderr
        seen = list(server.seen)
    summary = json.loads(asked.stdout)["inference"]
    assert (summary["finished"], summary["failed"]) == (TASKS, 0)
    records = [json.loads(line) for line in (out / "submissions.jsonl").read_text().splitlines()]
    assert len(records) == TASKS
    tasks = {str(record["id"]) for record in records}
    for record in records:
        assert record["ended"] == ended
        if setting != "text":
            assert record["rounds"] == rounds
            assert len(record["calls"]) == rounds
        assert record["stands_alone"] is {
            "single": None, "two rounds": None, "text": None, "session": False,
        }.get(setting, True)  # fmt: skip
        assert record["tokens"]["prompt"] > 100
        conversation = json.loads((out / record["conversation"]).read_text())
        messages = conversation["messages"]
        roles = "".join(message["role"][0] for message in messages)
        assert roles == "ua" * (len(roles) // 2)
        if setting != "text":
            assert len(roles) == 2 * rounds
        assert ("Sheet Name: " in messages[0]["content"]) is has_rows
        if rounds >= 2:
            assert "SHEETS [" in messages[2]["content"]
        if rounds >= 3:
            assert "Traceback" in messages[4]["content"]
            assert "no such sheet" in messages[4]["content"]
        if setting == "explicit":
            assert "saved a workbook" in messages[6]["content"]
    _check_no_gold(seen, tasks)
    scored = judge("score", out, "--sandbox", "bubblewrap", "--recalc", "never", "--json", "-q")
    assert scored.returncode == 0, scored.stderr
    report = json.loads(scored.stdout)
    assert report["overall"]["tasks"] == TASKS
    assert report["overall"]["cases"] >= 140
    verdicts = report["overall"]["verdicts"]
    assert "JE" not in verdicts
    if setting == "session" or setting == "two rounds":
        assert set(verdicts) == {"RE"}
    else:
        assert verdicts.get("WA", 0) > 100


def _check_no_gold(seen: list[Seen], tasks: set[str]) -> None:
    """No message names a gold; nothing is told of a second case but where it is asked about."""
    assert {each.task for each in seen} - {""} <= tasks
    for each in seen:
        text = json.dumps(each.body)
        assert "_answer" not in text
        assert "2_" + each.task + "_" not in text
