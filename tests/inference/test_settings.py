"""`judge infer` over published tasks in every setting, then `judge score`."""

from __future__ import annotations

import json
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from judge.errors import SandboxError
from judge.sandbox import open_sandbox
from judge.suites import Suite, load_suite
from judge.suites.spreadsheetbench import InstructionType
from tests.forked_command import ForkedCommand
from tests.inference.planning import check_declared
from tests.inference.scripted import Reply, ScriptedServer, Seen, program

pytestmark = [pytest.mark.data, pytest.mark.bubblewrap, pytest.mark.slow]

SUITE = "spreadsheetbench_912_dev300"
TASKS = 50
PANDAS = r"\n0 +\S"
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


@dataclass(frozen=True)
class Expected:
    """The expected properties of a setting.

    Attributes:
        options: of `judge infer`.
        rounds: that the scripted model takes.
        ended: how its conversations end.
        content: what a prompt of it holds; None where it holds no rows.
        stands_alone: of its submissions.
        verdicts: the only ones that its submissions may get, where that is known.
        asked: tasks that are asked about: 50 in a single round, where nothing runs until they are
            graded, fewer elsewhere.
        scored: tasks of them that are graded; none where the submissions are like those of
            another setting, since grading knows no setting.
    """

    options: tuple[str, ...]
    rounds: int
    ended: str
    content: str | None = PANDAS
    stands_alone: bool | None = True
    verdicts: frozenset[str] = frozenset({"WA", "AC", "NC"})
    asked: int = 4
    scored: int = 2


MULTI = ("--mode", "multi")
SETTINGS = {
    "single": Expected(
        ("--mode", "single"), 1, "replied", stands_alone=None, asked=TASKS, scored=10
    ),
    "markdown": Expected(("--content", "markdown"), 1, "replied", r"\n\| 1 \| ", None, scored=0),
    "csv": Expected(("--content", "csv"), 1, "replied", r"Sheet Name: .*\n[^ ].*,", None, scored=0),
    "addresses": Expected(
        ("--content", "addresses"), 1, "replied", r"\n[A-Z]+\d: ", None, scored=0
    ),
    "row-exec": Expected((*MULTI, "--feedback", "row-exec"), 3, "output", scored=0),
    "react-exec": Expected(
        (*MULTI, "--feedback", "react-exec"), 3, "output", content=None, scored=0
    ),
    "row-react-exec": Expected(MULTI, 3, "output"),
    "two rounds": Expected(
        (*MULTI, "--rounds", "2"), 2, "rounds", stands_alone=None, verdicts=frozenset({"RE"})
    ),
    "explicit": Expected((*MULTI, "--stop", "explicit"), 4, "explicit", scored=0),
    "session": Expected(
        (*MULTI, "--session"), 3, "output", stands_alone=False, verdicts=frozenset({"RE"})
    ),
    "text": Expected(("--mode", "text"), 1, "replied", r"\n[A-Z]+\d+: ", None),
}


@pytest.fixture(scope="module", autouse=True)
def bubblewrap() -> None:
    try:
        open_sandbox("bubblewrap", jobs=1).close()
    except SandboxError as error:
        pytest.skip(f"no bubblewrap here: {error.message}")


@pytest.fixture(scope="module")
def suite(judge_data: Path) -> Suite:
    return load_suite(str(judge_data / SUITE))


@pytest.fixture
def ids(suite: Suite, setting: str) -> list[str]:
    """Tasks of both types, half and half."""
    half = SETTINGS[setting].asked // 2
    return [
        task.id
        for kind in InstructionType
        for task in [each for each in suite.tasks if each.kind == kind.value][:half]
    ]


def script_of(setting: str) -> Any:
    base = "/tmp/data" if setting == "session" else "/mnt/data"

    def script(seen: Seen) -> Reply:
        if setting == "text":
            return "A1: 1\nA2: text"
        if SETTINGS[setting].rounds == 1:
            return program(seen.task)
        if seen.round == 1:
            return LOOK.format(base=base, task=seen.task)
        if seen.round == 2:
            return FAIL.format(base=base, task=seen.task)
        if setting == "session":
            return SAVE_ONLY.format(base=base, task=seen.task)
        return program(seen.task) if seen.round == 3 else "DONE"

    return script


@pytest.mark.parametrize("setting", SETTINGS)
def test_conversations_have_the_shape_that_the_setting_promises(
    setting: str,
    ids: list[str],
    judge_data: Path,
    tmp_path: Path,
    forked_command: ForkedCommand,
) -> None:
    def judge(*arguments: object) -> subprocess.CompletedProcess[str]:
        return forked_command.run([*map(str, arguments)])

    expected = SETTINGS[setting]
    out = tmp_path / "run"
    with ScriptedServer(script_of(setting)) as server:
        asked = judge(
            "infer", "-m", "scripted-1", "--base-url", server.url, "--dataset", judge_data / SUITE,
            "--ids", ",".join(ids), "--out", out, "-c", 1, "--sandbox", "bubblewrap", "--json",
            "-q", *expected.options,
        )  # fmt: skip
        assert asked.returncode == 0, asked.stderr
        seen = list(server.seen)
    summary = json.loads(asked.stdout)["inference"]
    assert (summary["finished"], summary["failed"]) == (expected.asked, 0)
    records = [json.loads(line) for line in (out / "submissions.jsonl").read_text().splitlines()]
    assert {str(record["id"]) for record in records} == set(ids)
    assert len(records) == expected.asked
    prompts = []
    for record in records:
        check_declared(record)
        assert record["ended"] == expected.ended
        assert record["stands_alone"] is expected.stands_alone
        assert record["tokens"]["prompt"] > 100
        messages = json.loads((out / record["conversation"]).read_text())["messages"]
        prompts.append(messages[0]["content"])
        _check_conversation(setting, record, messages)
    _check_prompts(expected, prompts)
    _check_no_gold(seen, set(ids))
    if not expected.scored:
        return
    scored = judge(
        "score", out, "--sandbox", "bubblewrap", "--recalc", "never", "--json", "-q",
        "--ids", ",".join(ids[:: expected.asked // expected.scored]),
    )  # fmt: skip
    assert scored.returncode == 0, scored.stderr
    report = json.loads(scored.stdout)
    assert report["overall"]["tasks"] >= expected.scored
    assert report["overall"]["cases"] >= 2.8 * expected.scored
    assert set(report["overall"]["verdicts"]) <= expected.verdicts
    assert report["usage"]["prompt_tokens"] > 0


def _check_conversation(
    setting: str, record: dict[str, Any], messages: list[dict[str, str]]
) -> None:
    """Prompt, reply, feedback, reply …: tracebacks and printed output reach the model."""
    rounds = SETTINGS[setting].rounds
    roles = "".join(message["role"][0] for message in messages)
    if setting == "text":  # one question for each test case
        assert roles == "ua" * len(record["calls"])
        return
    assert roles == "ua" * rounds
    assert record["rounds"] == len(record["calls"]) == rounds
    if rounds >= 2:
        assert "SHEETS [" in messages[2]["content"]
    if rounds >= 3:
        assert "Traceback" in messages[4]["content"]
        assert "no such sheet" in messages[4]["content"]
    if setting == "explicit":
        assert "saved a workbook" in messages[6]["content"]


def _check_prompts(expected: Expected, prompts: list[str]) -> None:
    """The rows are shown in the requested form; a few workbooks begin with blank rows."""
    if expected.content is None:
        assert not any("Sheet Name: " in prompt for prompt in prompts)
        return
    assert all("Sheet Name: " in prompt for prompt in prompts)
    shown = [prompt for prompt in prompts if re.search(expected.content, prompt)]
    assert len(shown) >= 0.8 * expected.asked


def _check_no_gold(seen: list[Seen], tasks: set[str]) -> None:
    """No message names a gold; a second case is mentioned only if the setting asks about it."""
    assert {each.task for each in seen} - {""} <= tasks
    for each in seen:
        text = json.dumps(each.body)
        assert "_answer" not in text
        assert "2_" + each.task + "_" not in text
