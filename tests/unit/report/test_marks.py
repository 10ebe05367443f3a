"""Marks of models and people for items of checklists: asked for, taken, counted, compared."""

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
from judge.grading.store import RunDirectory
from judge.inference.prompt import load_template
from judge.report.llm_judge import ChatJudge, ask_about, material_of, normalised, read_score
from judge.report.load import load_run
from judge.report.marks import MarkRecord, open_items, points_with_marks, read_marks
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
    """A copy of it."""
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
    sums, of_all, of_judged = points_with_marks(loaded, read_marks(store))
    assert (sums["llm"]["judged_items"], of_all, of_judged) == (0, 0.95, 1.0)
    (mark,), _ = asked(run, ScriptedModel(['{"score": 0}']))
    store.append("marks.jsonl", mark)
    sums, of_all, of_judged = points_with_marks(loaded, read_marks(store))
    assert (sums["llm"]["judged_items"], of_all, of_judged) == (1, 0.95, 0.95)
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
    rows[0]["score"] = 2
    sheet.write_text(json.dumps(rows))
    refused = call(judge, ["checklist", "take", str(run), str(sheet), "--by", "ann"])
    assert "not a number from 0 to 1" in str(refused.exception)


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
