"""Marks of models and people for checklist items: requested, received, counted, compared."""

from __future__ import annotations

import asyncio
import json
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from judge import api
from judge.api import ScoreOptions, score
from judge.cli.main import judge
from judge.core.statistics import cohens_kappa
from judge.files.packed_folder import packed
from judge.grading.marks import MarkRecord, read_marks
from judge.grading.store import RunDirectory
from judge.inference.prompt import load_template
from judge.report.load import load_run
from judge.report.markers import (
    ChatJudge,
    ask_about,
    material_of,
    normalised,
    read_score,
    score_of,
)
from judge.report.marks import marked_points, open_items
from judge.sandbox.contract import OutputStatus, RunResult, RunStatus
from judge.sandbox.scripted import ScriptedSandbox
from tests.conftest import REPOSITORY
from tests.fakes.chat_model import ScriptedModel

FILES = REPOSITORY / "dataset" / "sample-checklist" / "files" / "budget"


@pytest.fixture(scope="module")
def scored(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run whose only output is the gold."""
    home = tmp_path_factory.mktemp("marks")
    outputs = home / "outputs"
    outputs.mkdir()
    shutil.copy(FILES / "1_budget_answer.xlsx", outputs / "1_budget_output.xlsx")
    score(outputs, ScoreOptions(dataset="sample-checklist", out=home / "run", recalc="never"))
    return home / "run"


@pytest.fixture
def run(scored: Path, tmp_path: Path) -> Path:
    """Returns a copy of this run."""
    return shutil.copytree(scored, tmp_path / "run")


def asked(run: Path, model: ScriptedModel, votes: int = 1) -> tuple[list[MarkRecord], list[str]]:
    items = [
        (item, material_of(item, (FILES / "1_budget_answer.xlsx").read_bytes()))
        for item in open_items(load_run(run), "llm")
    ]
    chat = ChatJudge(model, "small", {"temperature": 0}, load_template("checklist_item"), votes)
    marks: list[MarkRecord] = []
    return marks, asyncio.run(ask_about(items, chat, "model small", marks.append))


def test_votes_give_a_median_and_their_agreement(run: Path) -> None:
    model = ScriptedModel(['{"score": 1, "why": "Staff"}', '{"score": 0}', '{"score": 1}'])
    (mark,), failures = asked(run, model, votes=3)
    assert (mark["score"], mark["votes"], mark["why"]) == (1.0, [1.0, 0.0, 1.0], "Staff")
    assert mark["agreement"] == pytest.approx(2 / 3)
    assert mark["prompt_tokens"] > 0
    assert failures == []
    prompt = str(model.requests[0].messages[0]["content"])
    assert "names Staff as the item that grew most" in prompt
    assert "Staff grew most, by 540." in prompt
    assert "Budget!B6 =SUM(B2:B5)" in prompt


def test_a_reply_without_a_score_is_asked_for_once_more(run: Path) -> None:
    marks, failures = asked(run, ScriptedModel(["I cannot say", '{"score": 1}']))
    assert len(marks) == 1
    marks, failures = asked(run, ScriptedModel(["no", '{"score": "many"}']))
    assert (marks, failures) == ([], ["task budget, item driver: no reply has a score"])


@pytest.mark.parametrize(
    ("fields", "value", "score"),
    [
        ({}, True, 1.0),
        ({"scale": "likert", "steps": 5}, 4, 0.75),
        ({"scale": "numeric", "min": 0, "max": 10}, 7, 0.7),
        ({"scale": "numeric"}, 3, 1.0),
        ({"scale": "rubric", "levels": ["a", "b", "c"]}, 1, 0.5),
        ({"negate": True}, 1, 0.0),
        ({}, "yes", None),
        ({}, float("nan"), None),
    ],
)
def test_a_score_is_brought_to_0_to_1(
    fields: Mapping[str, Any], value: object, score: float | None
) -> None:
    assert normalised(value, fields) == score


def test_a_reply_that_is_made_to_break_the_reader_has_no_score() -> None:
    for text in ("", "}{", '{"score": ' + "[" * 100_000 + "}", "[1]", '{"score": null}'):
        assert read_score(text, {}) is None


def test_marks_count_in_the_points_and_change_no_verdict(run: Path) -> None:
    loaded, store = load_run(run), RunDirectory(run)
    before = (run / "cases.jsonl").read_bytes()
    points = marked_points(loaded, read_marks(store))
    assert (points.by_judge["llm"]["judged_items"], *points.shares()) == (0, 0.95, 1.0)
    (mark,), _ = asked(run, ScriptedModel(['{"score": 0}']))
    store.append("marks.jsonl", mark)
    points = marked_points(loaded, read_marks(store))
    assert (points.by_judge["llm"]["judged_items"], *points.shares()) == (1, 0.95, 0.95)
    assert (run / "cases.jsonl").read_bytes() == before


def test_two_people_fill_in_a_sheet_and_their_agreement_is_shown(run: Path, tmp_path: Path) -> None:
    sheet = tmp_path / "marks.json"
    call = CliRunner().invoke
    made = call(judge, ["checklist", "sheet", str(run), "--all", "--out", str(sheet)])
    assert "1 items" in made.output
    for name, value in (("ann", 1), ("ben", 0.5)):
        rows = json.loads(sheet.read_text())
        rows[0]["score"] = value
        sheet.write_text(json.dumps(rows))
        taken = call(judge, ["checklist", "take", str(run), str(sheet), "--by", name])
        assert f"1 marks by {name}" in taken.output
    shown = call(judge, ["checklist", "points", str(run)])
    assert "LLM 3.75 of 5 (1 of 1 judged)" in shown.output
    assert "ann and ben: agree on 0.0 % of 1 items" in shown.output
    marked = json.loads((run / "report.json").read_text())["points"]["with_marks"]
    assert marked["raters"] == {"ann": 1, "ben": 1}
    assert marked["by_judge"]["llm"]["earned"] == 3.75
    assert [pair["raters"] for pair in marked["agreement"]] == [["ann", "ben"]]
    page = call(
        judge, ["report", str(run), "--format", "markdown", "--out", str(tmp_path / "r.md")]
    )
    assert page.exit_code == 0, page.exception
    assert "with marks (ann 1, ben 1)" in (tmp_path / "r.md").read_text()
    rows[0]["score"] = 2
    sheet.write_text(json.dumps(rows))
    refused = call(judge, ["checklist", "take", str(run), str(sheet), "--by", "ann"])
    assert f"{sheet}, row 1" in str(refused.exception)
    assert "not a number from 0 to 1" in str(refused.exception)
    again = call(judge, ["checklist", "sheet", str(run), "--all", "--out", str(sheet)])
    assert "already exists, and may hold scores" in str(again.exception)
    assert json.loads(sheet.read_text()) == rows


def test_a_sheet_without_items_or_scores(run: Path, tmp_path: Path) -> None:
    sheet, call = tmp_path / "marks.json", CliRunner().invoke
    made = call(judge, ["checklist", "sheet", str(run), "--out", str(sheet)])
    assert f"no item of {run} waits for a person; --all includes" in made.output
    assert not sheet.exists()
    made = call(judge, ["checklist", "sheet", str(run), "--all", "--out", str(sheet)])
    assert f"then judge checklist take {run} {sheet}" in made.output
    taken = call(judge, ["checklist", "take", str(run), str(sheet)])
    assert f"no mark was taken: {sheet} has no score" in taken.output
    sheet.write_text("{}")
    refused = call(judge, ["checklist", "take", str(run), str(sheet)])
    assert str(refused.exception).startswith(f"{sheet}: is not a list of items")
    missing = call(judge, ["checklist", "take", str(run), str(tmp_path / "none.json")])
    assert (missing.exit_code, "does not exist" in missing.output) == (2, True)
    nowhere = call(
        judge, ["checklist", "sheet", str(run), "--all", "--out", str(tmp_path / "no" / "x.json")]
    )
    assert "cannot be written: there is no folder" in str(nowhere.exception)


def test_nothing_is_paid_twice(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = ScriptedModel(['{"score": 1}'])

    def ask_model(_: object, question: Callable[..., Any]) -> Any:
        return asyncio.run(question(model, "small", {"temperature": 0}))

    monkeypatch.setattr(api, "ask_model", ask_model)
    command = ["checklist", "ask", str(run), "--llm-judge", "small"]
    command += ["--base-url", "http://127.0.0.1:9/v1"]
    first, second = (CliRunner().invoke(judge, command) for _ in range(2))
    assert "1 of 1 items marked, 0 known before" in first.output, first.exception
    assert "0 of 0 items marked, 1 known before" in second.output
    assert "Budget!B6 =SUM(B2:B5)" in str(model.requests[0].messages[0]["content"])
    assert len(model.requests) == 1


def test_kappa_is_what_is_left_after_chance() -> None:
    pairs = [(True, True)] * 20 + [(True, False)] * 5 + [(False, True)] * 10 + [(False, False)] * 15
    kappa = cohens_kappa(pairs)
    assert kappa.value == pytest.approx(0.4)
    assert kappa.low is not None
    assert kappa.high is not None
    assert kappa.low < 0.4 < kappa.high
    assert cohens_kappa([(True, True)] * 3).value is None
    assert cohens_kappa([]).n == 0


def test_a_person_audits_items_that_the_judge_decided(run: Path, tmp_path: Path) -> None:
    sheet = tmp_path / "items.json"
    call = CliRunner().invoke
    drawn = call(judge, ["audit", str(run), "--items", "50", "--seed", "1", "--out", str(sheet)])
    assert "items, seed 1" in drawn.output, drawn.exception
    rows = json.loads(sheet.read_text())
    assert len(rows) > 5
    assert "state" not in rows[0]
    for row in rows:
        row["score"] = float(row["item"] != "total-2023")
    sheet.write_text(json.dumps(rows))
    taken = call(judge, ["checklist", "take", str(run), str(sheet), "--by", "ann"])
    assert "ann and the judge: agree on" in taken.output, taken.exception
    assert f"of {len(rows) - 1} items," in taken.output  # one item waits for a model
    assert "items of kind cell" in taken.output
    before = call(judge, ["checklist", "points", str(run), "--json"])
    assert json.loads(before.output)["by_judge"]["deterministic"]["earned"] == 95


def published(folder: Path, **changes: object) -> Path:
    criteria = [
        {"id": "driver", "type": "llm_judge", "actual": "0.85", "details": "Names Staff"},
        {"id": "total-2023", "type": "programmatic", "actual": "7750"},
        {"id": "driver", "type": "llm_judge", "actual": "[SKIPPED - gated]"},
        {"id": "other", "type": "human_judge", "actual": "1.00"},
    ]
    record = {"task_id": "budget", "judge": "vp-1", "criteria": criteria, **changes}
    folder.mkdir()
    (folder / "budget.json").write_text(json.dumps(record))
    (folder / "summary.json").write_text("{}")
    return folder


def test_published_scores_are_a_rater_of_their_own(run: Path, tmp_path: Path) -> None:
    scores = published(tmp_path / "scores")
    taken = CliRunner().invoke(judge, ["checklist", "take", str(run), str(scores)])
    assert "1 marks by published vp-1" in taken.output, taken.exception
    assert "summary.json: has no score for a task of this run" in taken.output
    (mark,) = read_marks(RunDirectory(run))
    assert (mark["item"], mark["score"], mark["why"]) == ("driver", 0.85, "Names Staff")


LOGS = OutputStatus.COLLECTED


@pytest.mark.parametrize(
    ("status", "left", "score"),
    [
        (RunStatus.OK, {}, 1.0),
        (RunStatus.EXITED, {}, 0.0),
        (RunStatus.OK, {"reward.txt": b"0.25\n"}, 0.25),
        (RunStatus.EXITED, {"reward.json": b'{"reward": 1}'}, 1.0),
        (RunStatus.OK, {"reward.txt": b"7"}, "/logs/verifier/reward.txt does not hold a number"),
        (
            RunStatus.OK,
            {"reward.json": b"[" * 9999},
            "/logs/verifier/reward.json does not hold a number",
        ),
        (RunStatus.WALL_LIMIT, {"reward.txt": b"1"}, "the program was stopped: wall_limit"),
    ],
)
def test_a_program_says_its_score_as_harbor_s_verifiers_do(
    status: RunStatus, left: Mapping[str, bytes], score: float | str
) -> None:
    result = RunResult(status, OutputStatus.COLLECTED, output=packed(left))
    said = score_of(result)
    assert said == score if isinstance(score, float) else str(said).startswith(score)


def test_a_suite_s_program_is_run_once_and_marks_its_item(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    suite = tmp_path / "suite"
    shutil.copytree(REPOSITORY / "dataset" / "sample-checklist", suite)
    document = json.loads((suite / "suite.json").read_text())
    items = document["tasks"][0]["checker"]["options"]["items"]
    own = {"id": "own", "kind": "program", "group": "values", "points": 5, "code": "check()"}
    items += [own, {**own, "id": "elsewhere", "code": 1}]
    del items[-1]["code"]
    (suite / "suite.json").write_text(json.dumps(document))
    outputs = tmp_path / "outputs"
    outputs.mkdir()
    shutil.copy(FILES / "1_budget_answer.xlsx", outputs / "1_budget_output.xlsx")
    score(outputs, ScoreOptions(dataset=suite, out=tmp_path / "run", recalc="never"))
    sandbox = ScriptedSandbox(
        [RunResult(RunStatus.OK, LOGS, output=packed({"reward.txt": b"0.5"}))]
    )
    monkeypatch.setattr(api, "open_sandbox", lambda _: sandbox)
    first, second = (
        CliRunner().invoke(judge, ["checklist", "run", str(tmp_path / "run")]) for _ in range(2)
    )
    assert "1 items marked, 0 known before; 1 have no program" in first.output, first.exception
    assert "program 2.5 of 10 (1 of 2 judged)" in first.output
    assert "0 items marked, 1 known before" in second.output
    (request,) = sandbox.requests
    assert request.program == "check()"
    assert request.collect == "/logs/verifier/"
    assert {"/mnt/data/answer/output.xlsx", "/mnt/data/gold/1_budget_answer.xlsx"} <= set(
        request.files
    )
