"""A real model end to end: SmolLM2-135M replies, and `judge score` grades what it wrote."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Callable, Iterator
from operator import itemgetter
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest

from judge.errors import SandboxError
from judge.sandbox import open_sandbox
from tests.conftest import REPOSITORY, Figures
from tests.forked_command import ForkedCommand
from tests.inference.babel import png, write_suite
from tests.inference.scripted import ScriptedServer
from tests.inference.smollm2 import MISSING, SmolServer, is_installed

pytestmark = [pytest.mark.bubblewrap, pytest.mark.slow]

VERIFIERS = REPOSITORY / ".venv-verifiers" / "bin" / "python"
"""The library needs an older SDK than the one installed here, so it has its own environment."""

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


Judge = Callable[..., dict[str, Any]]


@pytest.fixture
def judge(forked_command: ForkedCommand) -> Judge:
    """Runs ``judge`` with arguments; returns its output as JSON."""

    def run(*arguments: str | Path) -> dict[str, Any]:
        done = forked_command.run([*map(str, arguments)])
        assert done.returncode == 0, done.stderr
        document: dict[str, Any] = json.loads(done.stdout)
        return document

    return run


@pytest.mark.parametrize("form", ["free", "grammar"])
def test_a_real_model_end_to_end(
    form: str, server: SmolServer, judge: Judge, tmp_path: Path, figures: Figures
) -> None:
    """In several rounds; the rollouts below cover a single round."""
    # Free-form it talks until it is stopped; what it says in 24 tokens proves as much.
    # With a grammar it writes programs, slowly: one task shows that they are run and graded.
    tasks = 1
    max_tokens = 24 if form == "free" else 120
    options = [
        "--mode",
        "multi",
        "--rounds",
        "2",
        "--limit",
        str(tasks),
        "--max-tokens",
        str(max_tokens),
    ]
    options += ["--seed", "7", "--rows", "1", "--no-cache", "-c", "2", "-q", "--json"]
    options += ["--sandbox", "bubblewrap"]
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
        f"SmolLM2 {form}: {summary['calls']} calls, "
        f"{summary['prompt_tokens']} + {summary['completion_tokens']} tokens, "
        f"{summary['seconds']:.1f} s, verdicts {overall['verdicts']}"
    )


def test_typed_answers(
    server: SmolServer,
    judge: Judge,
    forked_command: ForkedCommand,
    tmp_path: Path,
    figures: Figures,
) -> None:
    """Questions about tables leave complete records; the model takes no pictures and says so."""
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
    refused = forked_command.run(
        ["infer", *map(str, options), "--ids", "3", "--out", str(tmp_path / "refused")]
    )
    assert refused.returncode == 10
    assert "takes no pictures: the server says 500" in refused.stderr
    figures(f"SmolLM2, typed answers: {summary['calls']} calls, {summary['seconds']:.1f} s")


def test_rollouts_of_verifiers_get_what_judge_score_says(
    server: SmolServer, judge: Judge, tmp_path: Path, figures: Figures
) -> None:
    """The real model, scripted replies, and a task whose golds are faulty."""
    if not VERIFIERS.exists():
        pytest.skip("no verifiers: scripts/setup .venv-verifiers requirements-verifiers.lock")
    suite = tmp_path / "suite"
    shutil.copytree(REPOSITORY / "dataset" / "sample", suite)
    for gold in (suite / "spreadsheet" / "1004").glob("*_answer.xlsx"):
        gold.write_bytes(b"not a workbook")
    records = map(json.loads, (suite / "submissions.jsonl").read_text().splitlines())
    known = {(str(each["id"]), each["sample"]): each["solution"] for each in records}
    chosen = {"1001": 0, "1002": 4, "1003": 2, "1004": 0, "1005": 4}
    replies = {task: known[task, sample] for task, sample in chosen.items()}
    with ScriptedServer(lambda seen: replies[seen.task]) as scripted:
        clients: list[dict[str, Any]] = [
            {
                "url": server.url,
                "sampling": {"max_tokens": 120, "seed": 7, "grammar": GRAMMAR},
                "ids": ["1001"],
            },
            {"url": scripted.url, "sampling": {}, "ids": [*replies]},
        ]
        judging = {"suite": str(suite), "signal": "cell_accuracy", "sandbox": "bubblewrap"}
        taskset = {"id": "sheetjudge", "rows": 1, "task": judging | {"jobs": 2}}
        done = subprocess.run(
            [VERIFIERS, REPOSITORY / "tests" / "inference" / "rollouts.py"],
            input=json.dumps({"taskset": taskset, "clients": clients}),
            capture_output=True, text=True, timeout=900, check=False, cwd=tmp_path,
        )  # fmt: skip
    assert done.returncode == 0, done.stderr
    rollouts = json.loads(done.stdout)
    assert not any("_answer" in str(each["data"]) for each in rollouts), "golds stay behind"
    assert [each["task"] for each in rollouts] == [one for each in clients for one in each["ids"]]
    faulty = rollouts.pop(-2)
    assert (faulty["ok"], faulty["rewards"]) == (False, {"judged": None})
    assert "task 1004 has no reward (BT, BT, BT)" in faulty["errors"][0]

    solutions = tmp_path / "solutions.jsonl"
    with solutions.open("w") as file:
        for number, each in enumerate(rollouts):
            record = {"id": each["task"], "sample": number, "solution": each["reply"]}
            file.write(json.dumps(record) + "\n")
    run = tmp_path / "run"
    judge("score", solutions, "--dataset", suite, "--sandbox", "bubblewrap", "--out", run,
          "--json", "-q")  # fmt: skip
    cases: dict[int, list[dict[str, Any]]] = {number: [] for number in range(len(rollouts))}
    for line in (run / "cases.jsonl").read_text().splitlines():
        case = json.loads(line)
        cases[case["sample"]].append(case)
    for each, judged in zip(rollouts, cases.values(), strict=True):
        judged.sort(key=itemgetter("case"))
        assert (each["ok"], each["errors"]) == (True, [])
        assert each["verdicts"] == [case["verdict"] for case in judged]
        quoting = [case["cause"] for case in judged if case["verdict"] == "WA"]
        assert not set(quoting) & set(each["causes"]), "traces are shared, golds are not"
        soft = fmean(case["verdict"] == "AC" for case in judged)
        near = fmean(case.get("comparison", {}).get("cell_accuracy", 0.0) for case in judged)
        assert each["rewards"] == {"cell_accuracy": pytest.approx(near)}
        assert each["metrics"] == pytest.approx(
            {"soft_score": soft, "hard_score": float(soft == 1), "cell_accuracy_score": near}
        )
    soft_scores = [each["metrics"]["soft_score"] for each in rollouts]
    assert soft_scores[1:] == pytest.approx([1, 2 / 3, 2 / 3, 0])
    figures(f"verifiers with SmolLM2: verdicts {rollouts[0]['verdicts']}")


# The number has to follow from the text; that it is on the scale is the grammar's doing.
MARK = r"""
root ::= "{\"score\": " [01] ", \"why\": \"" [A-Za-z0-9 ,.]{1,60} "\"}"
"""


def test_a_real_model_marks_an_item_of_a_checklist(
    server: SmolServer, judge: Judge, forked_command: ForkedCommand, tmp_path: Path
) -> None:
    """Without a grammar, this model repeats the prompt, which does not count as a mark."""
    outputs, run = tmp_path / "outputs", tmp_path / "run"
    outputs.mkdir()
    gold = REPOSITORY / "dataset/sample-checklist/files/budget/1_budget_answer.xlsx"
    shutil.copy(gold, outputs / "1_budget_output.xlsx")
    judge("score", outputs, "--dataset", "sample-checklist", "--out", run, "--json")
    before = (run / "cases.jsonl").read_bytes()
    command = ["checklist", "ask", str(run), "--llm-judge", "smol"]
    command += ["--base-url", server.url, "--param", f"grammar={json.dumps(MARK)}"]
    asked = forked_command.run(command)
    assert asked.returncode == 0, asked.stderr
    assert "1 of 1 items marked" in asked.stdout
    (mark,) = map(json.loads, (run / "marks.jsonl").read_text().splitlines())
    assert mark["by"] == "model smol"
    assert set(mark["votes"]) <= {0.0, 1.0}
    assert len(mark["votes"]) == 1
    assert mark["prompt_tokens"] > 300
    marked = json.loads((run / "report.json").read_text())["points"]["with_marks"]
    assert marked["raters"] == {"model smol": 1}
    assert (run / "cases.jsonl").read_bytes() == before
