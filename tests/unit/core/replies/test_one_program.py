"""Inference, scoring, logs and reports find the same program in a reply."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from judge.core.replies.extract import recorded_program
from judge.grading.store import SUBMISSIONS_FILE, RunDirectory
from judge.inference.chat import ChatReply, ChatRequest, Message
from judge.inference.conversation import Conversation, SingleReply, converse
from judge.inference.logs import import_log
from judge.report.html.pages import TaskPages
from judge.report.load import load_run
from judge.suites import Suite
from judge.suites.submissions import load_submissions, submission_record
from tests.fakes.chat_model import ScriptedModel
from tests.unit.core.replies.corpus import CORPUS
from tests.unit.report.runs import Solution, TaskSpec, make_run, make_suite

BROKEN_WITH_A_FENCE = "import os\nTEXT = '''\n```python\nprint(1)\n```\n'''\nf(\n"


@pytest.fixture
def suite(tmp_path: Path) -> Suite:
    return make_suite(tmp_path / "suite", [TaskSpec("7", cases=1)])


def inferred(reply: str) -> str | None:
    """Returns the program that ``judge infer`` submits for a reply."""
    model, talk = ScriptedModel([reply]), Conversation()

    async def ask(messages: tuple[Message, ...], _: int) -> ChatReply:
        return await model.complete(ChatRequest("m", messages))

    asyncio.run(converse(SingleReply(talk, "solve it"), ask))
    return talk.solution


def write(path: Path, records: list[dict[str, object]]) -> Path:
    lines = [json.dumps({"id": "7", "sample": n, **each}) for n, each in enumerate(records)]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def test_inference_finds_what_the_corpus_says() -> None:
    assert [inferred(each.text) for each in CORPUS] == [each.code for each in CORPUS]


def test_scoring_finds_what_inference_finds(suite: Suite, tmp_path: Path) -> None:
    path = write(tmp_path / "solutions.jsonl", [{"solution": each.text} for each in CORPUS])
    loaded = load_submissions(path, suite)
    assert [each.code for each in loaded] == [inferred(each.text) for each in CORPUS]
    # What was found is found again in the record that the run keeps.
    records = [submission_record(each, suite) for each in loaded]
    again = load_submissions(write(tmp_path / "again.jsonl", records), suite)
    assert [each.code for each in again] == [each.code for each in loaded]
    assert [recorded_program(each) for each in records] == [each.code for each in loaded]


def test_scoring_runs_the_program_that_inference_recorded(suite: Suite, tmp_path: Path) -> None:
    records: list[dict[str, object]] = [
        {"solution": each.code, "reply": each.text} for each in CORPUS
    ]
    loaded = load_submissions(write(tmp_path / "solutions.jsonl", records), suite)
    assert [each.code for each in loaded] == [each.code for each in CORPUS]


def test_a_log_gives_what_inference_finds(suite: Suite, tmp_path: Path) -> None:
    log = write(
        tmp_path / "conv_single_m.jsonl",
        [{"solution": each.text, "conversation": ["solve it", each.text]} for each in CORPUS],
    )
    with RunDirectory(tmp_path / "run") as store:
        import_log(log, suite, str(suite.root), store)
        records = list(store.read_records(SUBMISSIONS_FILE))
    assert [each["solution"] for each in records] == [each.code for each in CORPUS]


def test_a_report_shows_what_inference_finds(suite: Suite, tmp_path: Path) -> None:
    folder = make_run(
        tmp_path / "run",
        suite,
        [
            Solution("7", ["RE"], sample=number, record={"solution": each.text})
            for number, each in enumerate(CORPUS)
        ],
    )
    entries = [{"task_id": "7", "sample": number, "cases": []} for number in range(len(CORPUS))]
    pages = TaskPages(load_run(folder), {"tasks": entries})
    shown = [pages.page(number)["code"] for number in range(len(CORPUS))]
    assert [
        None if pieces is None else "".join(text for _, text in pieces) for pieces in shown
    ] == [each.code for each in CORPUS]


@pytest.mark.data
def test_solutions_in_two_blocks_behind_reasoning(
    suite: Suite, tmp_path: Path, judge_data: Path
) -> None:
    path = judge_data / "model_solutions" / "single_claude_dev100.jsonl"
    replies, programs = [], []
    for line in path.read_text("utf-8").splitlines():
        lines = str(json.loads(line)["solution"]).strip("\n").splitlines()
        # Between the first run of imports and all else.
        at = next(n for n, each in enumerate(lines) if not each.startswith(("import", "from")))
        first, second = "\n".join(lines[:at]), "\n".join(lines[at:]).strip("\n")
        thought = "<think>\nPerhaps\n```python\nimport nothing\n```\n</think>\n"
        replies.append(f"{thought}```python\n{first}\n```\nand\n```python\n{second}\n```\n")
        programs.append(f"{first}\n\n{second}".rstrip() + "\n")
    assert len(programs) == 100
    solutions = write(tmp_path / "solutions.jsonl", [{"solution": each} for each in replies])
    scored = [each.code for each in load_submissions(solutions, suite)]
    assert scored == [inferred(each) for each in replies]
    found = sum(code == program for code, program in zip(scored, programs, strict=True))
    assert found == 100


def test_a_program_that_was_found_is_not_searched_for_another(suite: Suite, tmp_path: Path) -> None:
    reply = f"````python\n{BROKEN_WITH_A_FENCE}````"
    found = inferred(reply)
    assert found == BROKEN_WITH_A_FENCE
    record: dict[str, object] = {"solution": found, "reply": reply}
    (loaded,) = load_submissions(write(tmp_path / "solutions.jsonl", [record]), suite)
    assert loaded.code == found


def test_a_bare_program_is_run_byte_for_byte(suite: Suite, tmp_path: Path) -> None:
    programs = ["\n\nx = 1  \r\n", "s = '''\n```python\nx\n```\n'''\nprint(s)", "print(1)\n\n\n"]
    path = write(tmp_path / "solutions.jsonl", [{"solution": each} for each in programs])
    assert [each.code for each in load_submissions(path, suite)] == programs
