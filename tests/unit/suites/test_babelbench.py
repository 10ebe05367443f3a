"""The published format of BabelBench, with a suite made here."""

from __future__ import annotations

import csv
import json
import shutil
from pathlib import Path
from typing import Any

import pytest

import judge
from judge.api.reporting import ScoredRun
from judge.core.task import FileKind
from judge.errors import SubmissionError, SuiteError
from judge.suites.corrections import corrected_suite
from judge.suites.validate import validate_suite

PNG = b"\x89PNG\r\n\x1a\n" + b"\0" * 20
WEBP = b"RIFF\x10\0\0\0WEBPVP8 "
JPEG = b"\xff\xd8\xff\xe0" + b"\0" * 20
SCHEMA = '\n```json\n{\n  "answer": your_answer\n}\n```'


def record(**changes: Any) -> dict[str, str]:
    info = {"answer": {"gt_answer": 3, "answer_type": "int", "eval_method": "exact"}}
    fields = {
        "tag": "Count",
        "prompt": "How many?" + SCHEMA,
        "imgs": "['a.png']",
        "imgs_src": "['https://example.org/three-apples.png']",
        "attachments": "['t.csv']",
        "attachments_src": "GPT",
        "prompt_type": "freeform",
        "eval_info": info,
        "difficulty": "Easy",
        **changes,
    }
    if not isinstance(fields["eval_info"], str):
        fields["eval_info"] = json.dumps(fields["eval_info"])
    return fields


def make(folder: Path, *records: dict[str, str]) -> Path:
    data = folder / "small" / "data"
    for name in ("000-csvs", "000-imgs"):
        (data / name).mkdir(parents=True)
    (data / "000-csvs" / "t.csv").write_text("n\n3\n")
    (data / "000-imgs" / "a.png").write_bytes(WEBP)
    with (data / "benchmark.csv").open("w", encoding="utf-8-sig", newline="") as file:
        writer = csv.DictWriter(file, list(records[0]))
        writer.writeheader()
        writer.writerows(records)
    return folder / "small"


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    kinds = {
        "total": {
            "gt_answer": 2.5,
            "answer_type": "float",
            "eval_method": "exact",
            "tolerance": 0.1,
        },
        "names": {"gt_answer": ["a", "b"], "answer_type": "str", "eval_method": "either_ok"},
        "rows": {"gt_answer": [[1, 2]], "answer_type": "np.ndarray", "eval_method": "exact"},
    }
    prompt = 'Say {"total": …, "names": …}'
    return make(
        tmp_path,
        record(),
        record(imgs="['b.png']", attachments="[]", difficulty="Extreme Hard"),
        record(imgs="[]", attachments="['book.xlsx']", prompt=prompt, eval_info=kinds),
    )


def test_questions_with_their_files_and_groups(suite: Path) -> None:
    (suite / "data/000-imgs/b.png").write_bytes(JPEG)
    (suite / "data/000-csvs/book.xlsx").write_bytes(b"PK\x03\x04rest")
    loaded = judge.load_suite(suite)
    assert (loaded.name, loaded.format) == ("small", "babelbench")
    assert [task.id for task in loaded.tasks] == ["0", "1", "2"]
    first, second, third = loaded.tasks
    kinds = [(each.kind, each.media_type) for each in first.cases[0].inputs]
    assert kinds == [(FileKind.TABLE, None), (FileKind.IMAGE, "image/webp")]
    assert [each.media_type for each in second.cases[0].inputs] == ["image/jpeg"]
    assert [each.kind for each in third.cases[0].inputs] == [FileKind.WORKBOOK]
    assert first.groups == {
        "tag": "Count",
        "difficulty": "Easy",
        "paper_difficulty": "Easy",
        "image": "yes",
        "table": "yes",
        "image_and_table": "yes",
        "prompt_type": "Freeform",
    }
    assert second.groups["difficulty"] == "Extreme Hard"
    assert second.groups["paper_difficulty"] == "Hard"
    assert third.checker.options["variables"] == {
        "total": {"type": "float", "match": "exact", "tolerance": 0.1},
        "names": {"type": "text", "match": "one_of"},
        "rows": {"type": "list", "match": "exact"},
    }


def test_no_question_says_where_its_files_come_from(suite: Path) -> None:
    question = judge.load_suite(suite).task("0").question
    assert "apples" not in str(question)
    assert "gt_answer" not in str(question)


@pytest.mark.parametrize("place", [".", "data", "data/benchmark.csv"])
def test_it_is_found_from_everywhere(suite: Path, place: str) -> None:
    assert len(judge.load_suite(suite / place).tasks) == 3


def test_it_is_found_in_the_archive_of_a_repository(suite: Path, tmp_path: Path) -> None:
    packed = tmp_path / "packed" / "suite-1234567"
    packed.mkdir(parents=True)
    shutil.move(suite / "data", packed / "data")
    (packed / "README.md").write_text("x")
    (packed / "agent").mkdir()
    found = judge.load_suite(tmp_path / "packed")
    assert (found.name, len(found.tasks)) == ("suite-1234567", 3)


def test_missing_files_and_keys_are_warnings(suite: Path) -> None:
    loaded = judge.load_suite(suite)
    found = {(each.task, each.file): each.message for each in validate_suite(loaded)}
    assert "fetch data/000-imgs/b.png of" in found["1", "000-imgs/b.png"]
    assert "is missing" in found["2", "000-csvs/book.xlsx"]
    assert "does not name 'rows'" in found["2", "benchmark.csv"]
    assert {each.severity.value for each in validate_suite(loaded)} == {"warning"}
    checks = judge.verify(str(suite))
    assert [check.gold_forms for check in checks] == [{"values": True, "reply": True}] * 3


@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        ({"imgs": "['../a.png']"}, "'../a.png' is not a plain file name"),
        ({"imgs": "a.png"}, "field 'imgs' must be a list of file names"),
        ({"attachments": "[3]"}, "'3' is not a plain file name"),
        ({"eval_info": "{"}, "field 'eval_info' is not JSON"),
        ({"eval_info": {"a": {}}}, "'a' has no gt_answer"),
        ({"eval_info": {"a": {"gt_answer": 1, "answer_type": "date"}}}, "answer_type 'date'"),
        (
            {
                "eval_info": {
                    "a": {
                        "gt_answer": 1,
                        "answer_type": "float",
                        "eval_method": "exact",
                        "tolerance": -1,
                    }
                }
            },
            "tolerance must be 0 or a positive number",
        ),
    ],
)
def test_faults_name_record_and_field(tmp_path: Path, changes: Any, fault: str) -> None:
    root = make(tmp_path, record(), record(**changes))
    with pytest.raises(SuiteError) as caught:
        judge.load_suite(root)
    assert [fault in each and "record 1" in each for each in caught.value.faults] == [True]


def reply(value: object) -> str:
    return "```json\n" + json.dumps({"answer": value}) + "\n```"


def score(suite: Path, lines: list[dict[str, object]], **options: Any) -> ScoredRun:
    answers = suite.parent / "answers.jsonl"
    answers.write_text("".join(json.dumps(line) + "\n" for line in lines))
    chosen = judge.ScoreOptions(dataset=str(suite), out=suite.parent / "run", **options)
    (run,) = judge.score(answers, chosen)
    return run


def test_replies_are_scored_by_the_published_key_and_without_a_sandbox(suite: Path) -> None:
    key = {"prompt": "How many?" + SCHEMA, "imgs": "['a.png']"}
    lines: list[dict[str, object]] = [
        {**key, "response": reply(2)},
        {**key, "response": reply(3), "rounds": 4},
        {"id": "1", "response": None},
        {"id": 2, "response": '{"total": 2.55, "names": "b", "rows": [[1, 2]]}'},
    ]
    run = score(suite, lines)
    assert {(each.task_id, each.sample): each.verdict.value for each in run.results} == {
        ("0", 0): "WA",
        ("0", 1): "AC",
        ("1", 0): "NO",
        ("2", 0): "AC",
    }
    assert run.report["run"]["sandbox"] is None
    assert run.report["overall"]["hard_restriction"] == 0.5
    assert run.report["by_group"]["image"]["no"]["hard_restriction"] == 1
    assert run.report["repeated_runs"]["best_of"] == pytest.approx(2 / 3)
    (wrong,) = (each for each in run.results if each.verdict.value == "WA")
    assert wrong.comparison["differences"] == [
        {
            "kind": "wrong_value",
            "sheet": "",
            "cell": "",
            "expected": 3,
            "actual": 2,
            "place": {"kind": "key", "name": "answer"},
        }
    ]
    again = score(suite, lines, best_of=True)
    assert again.reused == 4
    assert again.report["overall"]["hard_restriction"] == pytest.approx(2 / 3)
    assert again.report["run"]["best_of"] is True
    assert "best_of" not in score(suite, lines).report["run"]
    assert judge.rejudge(suite.parent / "run", profile="official").cases[3].after.verdict == "WA"
    assert not judge.rejudge(suite.parent / "run", rerun=True).changed
    assert judge.report_data(suite.parent / "run").repeated is not None


def test_questions_without_a_reply_count_in_the_scores_of_the_suite(suite: Path) -> None:
    report = score(suite, [{"id": 0, "response": reply(3)}]).report
    assert report["overall"]["hard_restriction"] == 1
    whole = report["of_suite"]
    assert whole["overall"] == {
        "tasks": 3,
        "soft_restriction": pytest.approx(1 / 3),
        "hard_restriction": pytest.approx(1 / 3),
    }
    assert whole["by_group"]["image"]["yes"]["hard_restriction"] == 0.5
    assert whole["by_group"]["image"]["no"]["hard_restriction"] == 0


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ({"id": 0, "solution": "x"}, "field 'response' is missing"),
        ({"id": 0, "response": 3}, "field 'response' must be text"),
        ({"prompt": "Who?", "imgs": "[]", "response": "x"}, "no question with this prompt"),
        ({"id": 9, "response": "x"}, "has no task 9"),
    ],
)
def test_lines_that_cannot_be_used_are_named(
    suite: Path, line: dict[str, object], problem: str
) -> None:
    with pytest.raises(SubmissionError) as caught:
        score(suite, [line])
    assert problem in f"{caught.value.message} {caught.value.hint}"


def test_a_suite_of_questions_can_be_corrected(suite: Path) -> None:
    assert len(corrected_suite(judge.load_suite(suite), None).suite.tasks) == 3
