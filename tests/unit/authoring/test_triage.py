from __future__ import annotations

import asyncio
import contextlib
import csv
import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from judge.authoring.triage import (
    Answer,
    Judgement,
    ModelChoice,
    Post,
    Proposal,
    TriageState,
    apply_rules,
    ask_about,
    propose,
    read_answer,
    read_posts,
    read_sheet,
    write_sheet,
)
from judge.cli.main import judge
from judge.errors import InferenceError, UsageError
from judge.files.json_lines import read_lines
from judge.inference.chat import CallError
from judge.inference.prompt import load_template
from judge.suites import load_suite
from tests.fakes.chat_model import Line, ScriptedModel
from tests.inference.scripted import ScriptedServer

GOOD: dict[str, Any] = {
    "id": 1,
    "title": "Sum by month",
    "body": "Dates stand in column A. Which formula gives the sums in C2:C13?",
    "solved": True,
    "attachments": ["book.xlsx"],
}
HINTED = GOOD | {"id": 2, "body": GOOD["body"] + " I get the data by e-mail."}


def post(**changes: Any) -> Post:
    (read,) = posts(GOOD | changes)
    return read


def posts(*records: dict[str, Any]) -> tuple[Post, ...]:
    lines = [json.dumps(record).encode() for record in records]
    return read_posts(enumerate(lines, start=1), "posts.jsonl")


@pytest.fixture
def state(tmp_path: Path) -> Iterator[TriageState]:
    with contextlib.closing(TriageState(tmp_path / "state")) as opened:
        yield opened


@pytest.mark.parametrize(
    ("changes", "name", "answer"),
    [
        ({"solved": True}, "solved", "yes"),
        ({"solved": False}, "solved", "no"),
        ({"solved": None, "status": "Answered"}, "solved", "yes"),
        ({"solved": None, "status": "open"}, "solved", "no"),
        ({"solved": None, "accepted_answer": None}, "solved", "no"),
        ({"solved": None, "title": "[SOLVED] Sum"}, "solved", "yes"),
        ({"solved": None}, "solved", "unsure"),
        ({"attachments": [{"filename": "a.XLS", "url": "u"}]}, "attachment", "yes"),
        ({"attachments": "a.png, b.csv"}, "attachment", "yes"),
        ({"attachments": ["a.png"]}, "attachment", "no"),
        ({"attachments": []}, "attachment", "no"),
        ({"attachments": None}, "attachment", "no"),
        ({"attachments": [], "body": "See the attached file"}, "attachment", "unsure"),
        ({"attachments": [], "body": "https://x.test/book.xlsx"}, "attachment", "unsure"),
        ({}, "spreadsheets_only", "yes"),
        ({"body": "Fill a Word document from a cell"}, "spreadsheets_only", "no"),
        ({"body": "An Access database and a sheet"}, "spreadsheets_only", "no"),
        ({"body": "Find the word access in a cell of the column"}, "spreadsheets_only", "yes"),
        ({"title": "", "body": "How do I do that?"}, "spreadsheets_only", "unsure"),
        ({}, "no_software_parts", "yes"),
        ({"body": "My UserForm closes"}, "no_software_parts", "no"),
        ({"body": "Excel crashes on the sheet"}, "no_software_parts", "no"),
        ({"body": "a button that sorts the rows"}, "no_software_parts", "unsure"),
        ({"body": "put the sums in the format 0.00"}, "no_software_parts", "yes"),
    ],
)
def test_rules(changes: dict[str, Any], name: str, answer: str) -> None:
    assert apply_rules(post(**changes))[name].answer.value == answer


def test_one_no_drops_and_all_yes_keep() -> None:
    assert propose(apply_rules(post())) is Proposal.KEEP
    assert propose(apply_rules(post(body="A button in an Access database"))) is Proposal.DROP
    assert (
        propose(apply_rules(post(body="sort the rows of a table by a button"))) is Proposal.UNSURE
    )


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("{", "line 1: not JSON"),
        ("[1]", "must be an object"),
        ('{"body": "x"}', "'id' is missing"),
        ('{"id": 1}', "has no text"),
        ("", "holds no post"),
        ('{"id": 1, "body": "x"}\n{"id": "1", "body": "y"}', "line 2: the id 1 is already used"),
    ],
)
def test_what_is_not_a_post_is_named(line: str, said: str, tmp_path: Path) -> None:
    path = tmp_path / "posts.jsonl"
    path.write_text(line)
    with pytest.raises(UsageError, match=said):
        read_posts(read_lines(path, UsageError), path.name)


def test_decisions_are_kept_and_belong_to_what_was_read(state: TriageState) -> None:
    read = posts(GOOD, HINTED)
    assert state.decide(state.triage(read), {"1": ("keep", "nice"), "2": ("drop", "")}, by="A") == 2
    assert state.decide(state.triage(read), {"1": ("keep", "nice")}, by="B") == 0
    first, second = state.triage(read)
    assert (first.decision, first.decided_by, first.note) == ("keep", "A", "nice")
    assert second.decision == "drop"
    state.decide(state.triage(read), {"2": ("keep", "")}, by="B")
    assert state.triage(read)[1].decision == "keep"
    assert state.triage(posts(GOOD | {"body": "Another one."}))[0].decision is None
    with pytest.raises(UsageError, match="no post with the id 9"):
        state.decide(state.triage(read), {"1": ("drop", ""), "9": ("keep", "")}, by="A")
    assert state.triage(read)[0].decision == "keep"


def test_a_filled_sheet_comes_back(state: TriageState) -> None:
    hostile = GOOD | {"id": "=1+1", "title": '=HYPERLINK("x")', "body": 'a "b";\u2028c\ncell row'}
    triaged = state.triage(posts(GOOD, hostile))
    rows = list(csv.reader(io.StringIO(write_sheet(triaged))))
    # Nothing that a stranger wrote begins like a formula.
    assert not [value for row in rows for value in row if value.startswith("=")]
    rows[1][2], rows[2][2], rows[2][3] = "Keep", "d", "too short"
    for delimiter in ",;":
        text = io.StringIO()
        csv.writer(text, delimiter=delimiter).writerows(rows)
        decisions = read_sheet(f"\ufeff{text.getvalue()}", "d.csv")
        assert decisions == {"1": ("keep", ""), "=1+1": ("drop", "too short")}
    assert state.decide(triaged, decisions, by="A") == 2


def test_a_sheet_that_cannot_be_taken_is_explained() -> None:
    with pytest.raises(UsageError, match="columns id and decision"):
        read_sheet("a,b\n1,2\n", "d.csv")
    with pytest.raises(UsageError, match="row 3: 'maybe'"):
        read_sheet("id,decision\n1,keep\n2,maybe\n", "d.csv")


def ask(state: TriageState, script: list[Line], *records: dict[str, Any]) -> list[str]:
    read = posts(*records)
    choice = ModelChoice(ScriptedModel(script), "m", {}, load_template("triage"), 1)
    return asyncio.run(
        ask_about(
            state.triage(read), choice, lambda each, found: state.keep_judgements(each.post, found)
        )
    )


REPLY = 'Sure: {"spreadsheets_only": {"answer": "Yes", "why": "only   cells"}}'


def test_a_model_is_asked_once_and_only_what_the_rules_leave_open(state: TriageState) -> None:
    dropped = HINTED | {"id": 3, "solved": False}
    assert ask(state, [REPLY], GOOD, HINTED, dropped) == []
    triaged = state.triage(posts(GOOD, HINTED, dropped))
    assert [each.proposal.value for each in triaged] == ["keep", "keep", "drop"]
    assert triaged[1].judgements["spreadsheets_only"] == Judgement(Answer.YES, "only cells", "m")
    assert ask(state, [], GOOD, HINTED, dropped) == []
    # A post that has changed is asked about again.
    assert ask(state, [REPLY], HINTED | {"title": "x"}) == []


def test_the_prompt_holds_the_open_questions_and_the_post(state: TriageState) -> None:
    seen: list[str] = []

    def answer(request: Any) -> str:
        seen.append(request.messages[0]["content"])
        assert request.params["temperature"] == 0
        return REPLY

    ask(state, [answer], HINTED | {"body": HINTED["body"] + " {questions}"})
    assert "- spreadsheets_only:" in seen[0]
    assert "- attachment:" not in seen[0]
    assert "e-mail. {questions}" in seen[0]


def test_what_is_not_an_answer_leaves_the_post_open(state: TriageState) -> None:
    gave_up = CallError("gave-up", "no whole reply")
    other = HINTED | {"id": 3}
    failures = ask(state, ["I cannot tell", gave_up], HINTED, other)
    assert failures == ["2: the reply is not the JSON that was requested", "3: no whole reply"]
    assert {each.proposal for each in state.triage(posts(HINTED, other))} == {Proposal.UNSURE}
    with pytest.raises(InferenceError, match="wrong key"):
        ask(state, [CallError("access", "wrong key")], HINTED)


@pytest.mark.parametrize(
    "text", ["", "{}", "[]", '{"a": "yes"}', '{"a": {"answer": "perhaps"}}', '{"a": 1}', "}{"]
)
def test_replies_that_answer_nothing(text: str) -> None:
    assert read_answer(text, ["a"], "m") is None


def test_from_the_command_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")

    def run(*arguments: object) -> Result:
        command = ["dataset", "triage", str(file), *map(str, arguments)]
        return CliRunner().invoke(judge, command, standalone_mode=False)

    file, sheet = tmp_path / "posts.jsonl", tmp_path / "d.csv"
    file.write_text("\n".join(json.dumps(each) for each in (GOOD, HINTED)))
    assert "1 keep, 0 drop, 1 unsure; decided: 0 keep" in run("--sheet", sheet).stdout
    assert isinstance(run("--sheet", sheet).exception, UsageError)
    with ScriptedServer(lambda _: REPLY) as server:
        asked = run("--model", "any", "--base-url", server.url)
        assert "any: 1 of 1 open posts answered" in asked.stdout, asked.exception
        assert "any: 0 of 0" in run("--model", "any", "--base-url", server.url).stdout
        assert len(server.seen) == 1
    sheet.write_text(sheet.read_text().replace("\n2,unsure,", "\n2,unsure,keep"))
    done = run("--decide", sheet, "--by", "Ann", "--kept", tmp_path / "kept.jsonl")
    assert "2 keep, 0 drop, 0 unsure; decided: 1 keep, 0 drop" in done.stdout, done.exception
    assert json.loads((tmp_path / "kept.jsonl").read_text()) == HINTED


@pytest.mark.data
def test_the_rules_turn_down_no_question_that_was_published(judge_data: Path) -> None:
    """People selected every published question; the rules may be unsure about some of them."""
    tasks = load_suite(judge_data / "spreadsheetbench_912_dev300").tasks
    proposals = [
        propose(apply_rules(post(title="", body=task.instruction)))
        for task in tasks
        if task.instruction.strip()
    ]
    assert Proposal.DROP not in proposals
    assert proposals.count(Proposal.KEEP) > 0.8 * len(proposals)
