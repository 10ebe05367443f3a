"""Phrasings, an expert's plan, quoted documents, no execution feedback: as sent and as recorded."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from judge.cli.infer import infer
from judge.errors import JudgeError, SandboxError, StoreError, UsageError
from judge.sandbox import open_sandbox
from tests.inference.scripted import Reply, ScriptedServer, Seen
from tests.phrased_suite import DATA, write_phrased_suite

PLAN = "An expert wrote down these steps"
QUOTED = "These excerpts of documents were found"
ANSWER = (
    "```python\nimport shutil\nshutil.copy('/mnt/data/in.xlsx', '/mnt/data/in_output.xlsx')\n```"
)


def run(*arguments: str | Path | float) -> Result:
    return CliRunner().invoke(infer, [str(each) for each in arguments])


def error_of(result: Result) -> JudgeError:
    assert isinstance(result.exception, JudgeError), result.output
    return result.exception


def answer(_: Seen) -> Reply:
    return ANSWER


def records(out: Path) -> dict[str, dict[str, Any]]:
    lines = (out / "submissions.jsonl").read_text().splitlines()
    return {record["id"]: record for record in map(json.loads, lines)}


def messages(out: Path, record: dict[str, Any]) -> list[dict[str, str]]:
    conversation = json.loads((out / record["conversation"]).read_text())
    held: list[dict[str, str]] = conversation["messages"]
    return held


@pytest.fixture(scope="module")
def suite(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_phrased_suite(tmp_path_factory.mktemp("phrased"), {"p1": [DATA], "p2": [DATA]})


@pytest.fixture
def texts(tmp_path: Path) -> Path:
    folder = tmp_path / "texts"
    folder.mkdir()
    for name in ("p1", "p2", "both p1 and p2", "unrelated"):
        (folder / f"{name.split()[0]}-{len(name)}.txt").write_text(f"About {name}.")
    return folder


def test_plan_and_documents_stand_beside_the_instruction(
    suite: Path, texts: Path, tmp_path: Path
) -> None:
    out = tmp_path / "run"
    with ScriptedServer(answer) as server:
        asked = run("-m", "scripted-1", "--base-url", server.url, "--dataset", suite, "--out", out,
                    "--oracle-plan", "--documents", texts, "-c", 1, "--no-cache", "-q")  # fmt: skip
        assert asked.exit_code == 0, asked.output
        sent = [seen.messages for seen in server.seen]
        again = run("--out", out, "-q")
        assert again.exit_code == 0, again.output
        assert len(server.seen) == 4
    found = records(out)
    assert set(found) == {"p1", "p1-verbose", "p2", "p2-verbose"}
    assert [messages(out, record)[:1] for record in found.values()] == sent
    prompts = {task: messages(out, record)[0]["content"] for task, record in found.items()}
    for task, prompt in prompts.items():
        abstract = task.removesuffix("-verbose")
        assert prompt.count("1. Open it;") == 1  # the verbose instruction holds the plan itself
        assert (PLAN in prompt) is (task == abstract)
        assert f"[1] {abstract}-2.txt, part 1:\nAbout {abstract}." in prompt
        assert "[2] both-14.txt, part 1:\nAbout both p1 and p2." in prompt
        assert "[3]" not in prompt
        quoted = found[task]["documents"]
        assert [(each["file"], each["part"]) for each in quoted] == [
            (f"{abstract}-2.txt", 1),
            ("both-14.txt", 1),
        ]
        assert all(len(each["sha256"]) == 64 for each in quoted)
    before = prompts["p1"].partition("### instruction")[2].partition("### spreadsheet_path")[0]
    assert before.index("Do p1.") < before.index(PLAN) < before.index(QUOTED)
    identity = json.loads((out / "run.json").read_text())["inference"]
    assert identity["oracle_plan"] is True
    assert identity["documents"].startswith("4 chunks of 4 documents")
    assert {"plans_sha256", "documents_sha256", "background_sha256"} <= identity.keys()


def test_a_run_notices_that_its_documents_changed(suite: Path, texts: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    with ScriptedServer(answer) as server:
        run("-m", "scripted-1", "--base-url", server.url, "--dataset", suite, "--out", out,
            "--documents", texts, "--limit", 1, "--no-cache", "-q")  # fmt: skip
        assert len(records(out)) == 1
        (texts / "p1-2.txt").write_text("About p1 otherwise.")
        changed = error_of(run("--out", out, "--limit", 2, "-q"))
        assert isinstance(changed, StoreError)
        assert "documents_sha256: " in changed.message
        (texts / "p1-2.txt").write_text("About p1.")
        assert run("--out", out, "--limit", 2, "-q").exit_code == 0
        other = run("--out", out, "--limit", 3, "--oracle-plan", "-q")
        assert "oracle_plan: None before, True now" in error_of(other).message
        assert len(server.seen) == 2


def test_one_phrasing_is_asked_about(suite: Path, tmp_path: Path) -> None:
    template = tmp_path / "mine.txt"
    template.write_text("{plan}\n---\n{instruction}")
    out = tmp_path / "run"
    with ScriptedServer(answer) as server:
        where = ("-m", "scripted-1", "--base-url", server.url, "--dataset", suite, "-q")
        asked = run(*where, "--out", out, "--instruction", "abstract", "--oracle-plan",
                    "--prompt", template, "--no-cache")  # fmt: skip
        assert asked.exit_code == 0, asked.output
        prompts = sorted(seen.prompt for seen in server.seen)
        unknown = error_of(run(*where, "--instruction", "terse"))
        assert isinstance(unknown, UsageError)
        assert unknown.hint == "Phrasings: abstract, verbose."
        nowhere = error_of(run("-m", "scripted-1", "--base-url", server.url, "--instruction",
                               "verbose", "-q"))  # fmt: skip
        assert nowhere.hint == "It has only one phrasing of each task."
        no_plan = error_of(run("-m", "x", "--base-url", server.url, "--oracle-plan"))
        assert "has an expert's steps" in no_plan.message
        single = error_of(run(*where, "--no-execution-feedback"))
        assert "belongs to --mode multi" in single.message
    assert sorted(records(out)) == ["p1", "p2"]
    assert [prompt.partition("\n---\n")[2] for prompt in prompts] == ["Do p1.", "Do p2."]
    assert all(prompt.startswith(PLAN) for prompt in prompts)
    assert json.loads((out / "run.json").read_text())["inference"]["options"]["instruction"] == (
        "abstract"
    )


@pytest.mark.bubblewrap
def test_rounds_without_execution_feedback(suite: Path, tmp_path: Path) -> None:
    try:
        open_sandbox("bubblewrap", jobs=1).close()
    except SandboxError as error:
        pytest.skip(f"no bubblewrap here: {error.message}")

    def script(seen: Seen) -> Reply:
        return (
            "```python\nprint('seen')\nraise ValueError('told')\n```" if seen.round == 1 else ANSWER
        )

    out = tmp_path / "run"
    with ScriptedServer(script) as server:
        asked = run("-m", "scripted-1", "--base-url", server.url, "--dataset", suite, "--out", out,
                    "--ids", "p1", "--mode", "multi", "--no-execution-feedback",
                    "--sandbox", "bubblewrap", "--no-cache", "-q")  # fmt: skip
        assert asked.exit_code == 0, asked.output
        last = server.seen[-1].messages
    (record,) = records(out).values()
    assert (record["ended"], record["rounds"], record["stands_alone"]) == ("output", 2, True)
    said = messages(out, record)[2]["content"]
    assert said.startswith("The program was run. No workbook was found at /mnt/data/in_output.xlsx")
    assert last == messages(out, record)[:3]
    assert "told" not in said
    identity = json.loads((out / "run.json").read_text())["inference"]
    assert identity["execution_feedback"] is False
