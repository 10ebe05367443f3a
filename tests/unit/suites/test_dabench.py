"""The published format of InfiAgent-DABench, with a suite made here."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import judge
from judge.core.replies.answers import named_answer
from judge.errors import SuiteError

QUESTIONS: list[dict[str, object]] = [
    {
        "id": 4,
        "question": "What is the mean?",
        "concepts": ["Summary Statistics"],
        "constraints": "Round it.",
        "format": "@mean[value], where value is a number.",
        "file_name": "t.csv",
        "level": "easy",
    },
    {
        "id": 9,
        "question": "Which one, and how many?",
        "concepts": ["Outlier Detection", "Summary Statistics"],
        "constraints": "",
        "format": "@name[text] @count[value]",
        "file_name": "gone.csv",
    },
]
LABELS: list[dict[str, object]] = [
    {"id": 4, "common_answers": [["mean", "34.65"]]},
    {"id": 9, "common_answers": [["name", "not normal"], ["count", "12"]]},
]


def write(path: Path, records: list[dict[str, object]]) -> None:
    path.write_text("".join(json.dumps(record) + "\n" for record in records))


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    root = tmp_path / "suite"
    (root / "da-dev-tables").mkdir(parents=True)
    (root / "da-dev-tables" / "t.csv").write_text("n\n3\n")
    write(root / "da-dev-questions.jsonl", QUESTIONS)
    write(root / "da-dev-labels.jsonl", LABELS)
    return root


def test_questions_with_their_tables_and_groups(suite: Path) -> None:
    first, second = judge.load_suite(suite).tasks
    assert first.instruction == (
        "What is the mean?\n\nRound it.\n\n@mean[value], where value is a number."
    )
    assert first.groups == {"concepts": "Summary Statistics", "level": "easy"}
    assert [each.path.name for each in first.cases[0].inputs] == ["t.csv"]
    assert [each.name for each in second.cases[0].absent] == ["da-dev-tables/gone.csv"]
    for profile in ("official", "standard", "strict"):
        checks = judge.verify(str(suite), profile=profile)
        assert [check.gold_forms for check in checks] == [{"values": True, "reply": True}] * 2


def test_labels_are_part_of_the_digest(suite: Path) -> None:
    before = judge.load_suite(suite).digest
    write(suite / "da-dev-labels.jsonl", [LABELS[0], {**LABELS[1], "common_answers": [["a", "b"]]}])
    assert judge.load_suite(suite).digest != before


@pytest.mark.parametrize(
    ("reply", "official", "standard"),
    [
        ("@mean[34.65]", "AC", "AC"),
        ("@mean[1] no, @mean[34.6500001]", "AC", "AC"),
        ("@mean[34.66]", "WA", "WA"),
        ("@mean[ 34.65 ]", "AC", "AC"),
        ("@mean[34.65 %]", "WA", "AC"),
        ("@mean[34\n.65]", "WA", "WA"),
        ("mean 34.65", "WA", "WA"),
    ],
)
def test_replies(suite: Path, reply: str, official: str, standard: str) -> None:
    answers = suite.parent / "answers.jsonl"
    write(answers, [{"id": 4, "response": reply}])
    found = []
    for profile in ("official", "standard"):
        options = judge.ScoreOptions(
            dataset=str(suite), out=suite.parent / profile, profile=profile
        )
        (run,) = judge.score(answers, options)
        found += [each.verdict.value for each in run.results]
    assert found == [official, standard]


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        ({"id": "4"}, "field 'id' must be an integer"),
        ({"id": 5}, "there is no label"),
        ({"file_name": "../t.csv"}, "is not a plain file name"),
        ({"format": None}, "field 'format' must be text"),
        ({"id": 9}, "is already used"),
    ],
)
def test_faults_name_line_and_field(suite: Path, change: dict[str, object], fault: str) -> None:
    write(suite / "da-dev-questions.jsonl", [QUESTIONS[1], {**QUESTIONS[0], **change}])
    with pytest.raises(SuiteError) as caught:
        judge.load_suite(suite)
    assert [fault in each and "line 2" in each for each in caught.value.faults] == [True]


def test_a_task_whose_id_occurs_twice_is_not_judged_by_its_id(suite: Path) -> None:
    """Faults of other tasks become notes; a fault of a requested task stays one."""
    write(suite / "da-dev-questions.jsonl", [*QUESTIONS, QUESTIONS[1]])
    assert len(judge.load_suite(suite, ids=("4",)).notes) == 1
    with pytest.raises(SuiteError):
        judge.load_suite(suite, ids=("9",))


def test_names_without_an_end() -> None:
    assert named_answer("@a[" * 1000 + "\n@b[1]").values == {"b": "1"}
    assert named_answer("@a[x]@b[]").values == {"a": "x", "b": ""}
    assert named_answer("@a[").values is None
