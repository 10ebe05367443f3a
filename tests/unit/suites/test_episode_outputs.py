"""Records of what episodes left are read, written again, and refused if they are invalid."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from judge.core.submission import KeptOutput
from judge.errors import SubmissionError
from judge.suites import Suite, load_suite
from judge.suites.submissions import load_submissions, submission_record
from tests.unit.suites.conftest import WriteSuite, task_record


@pytest.fixture
def suite(write_suite: WriteSuite) -> Suite:
    return load_suite(write_suite([task_record(101)]))


def test_records_are_read_and_written(tmp_path: Path, suite: Suite) -> None:
    task = suite.tasks[0]
    digest = "0" * 64
    output = {"sha256": digest, "name": "a.xlsx", "ended": "turns", "turns": 3, "gui_only": True}
    record = {"id": task.id, "sample": 1, "model": "m", "outputs": {"1": output}, "rounds": 3}
    path = tmp_path / "submissions.jsonl"
    path.write_text(json.dumps(record) + "\n")
    (submission,) = load_submissions(path, suite)
    assert submission.code is None
    assert submission.outputs == {
        1: KeptOutput(tmp_path, digest, "a.xlsx", ended="turns", gui_only=True)
    }
    written = submission_record(submission, suite)
    assert written == {**record, "id": written["id"]}


@pytest.mark.parametrize(
    ("outputs", "said"),
    [
        ([], "must be an object"),
        ({"9": {"sha256": None}}, "has no case '9'"),
        ({"1": {"sha256": "../../etc/passwd"}}, "outputs.1: field 'sha256' must be a SHA-256"),
        ({"1": {}}, "outputs.1: field 'sha256' is missing"),
        ({"1": {"sha256": None, "gui_only": "yes"}}, "must be true or false"),
    ],
)
def test_records_of_others_are_refused(
    tmp_path: Path, suite: Suite, outputs: object, said: str
) -> None:
    path = tmp_path / "submissions.jsonl"
    path.write_text(json.dumps({"id": suite.tasks[0].id, "outputs": outputs}) + "\n")
    with pytest.raises(SubmissionError) as caught:
        load_submissions(path, suite)
    assert said in caught.value.message
