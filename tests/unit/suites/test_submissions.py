from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from judge.errors import SubmissionError
from judge.suites import Suite, load_suite
from judge.suites.submissions import (
    SubmissionReader,
    load_submissions,
    submission_of_program,
    submission_record,
)
from tests.unit.suites.conftest import WriteSuite, task_record


@pytest.fixture
def suite(write_suite: WriteSuite) -> Suite:
    return load_suite(write_suite([task_record(101), task_record("7-1")]))


def write(tmp_path: Path, *records: Any) -> Path:
    path = tmp_path / "solutions.jsonl"
    lines = [record if isinstance(record, str) else json.dumps(record) for record in records]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def error_of(path: Path, suite: Suite) -> SubmissionError:
    with pytest.raises(SubmissionError) as caught:
        load_submissions(path, suite)
    assert caught.value.message.startswith(str(path))
    return caught.value


def test_a_plain_solution(tmp_path: Path, suite: Suite) -> None:
    path = write(tmp_path, {"id": 101, "solution": "x = 1\n"}, "", {"id": "7-1", "code": "y = 2"})
    first, second = load_submissions(path, suite)
    assert (first.task_id, first.sample, first.code) == ("101", 0, "x = 1\n")
    assert first.input_path == "/mnt/data/input/1_101_input.xlsx"
    assert first.output_path == "/mnt/data/output/1_101_output.xlsx"
    assert (second.task_id, second.code) == ("7-1", "y = 2")


def test_everything_that_a_record_can_say(tmp_path: Path, suite: Suite) -> None:
    record = {
        "id": "101",
        "solution": "x = 1",
        "sample": 3,
        "model": "m",
        "setting": "multi",
        "expected": ["AC", "WA"],
        "label": "half",
        "input_path": "/data/i.xlsx",
        "output_path": "/data/o.xlsx",
        "instruction_type": "Cell-Level Manipulation",
        "tokens": 12,
    }
    (submission,) = load_submissions(write(tmp_path, record), suite)
    assert submission.key == ("101", 3)
    assert (submission.model, submission.setting, submission.label) == ("m", "multi", "half")
    assert submission.expected == ("AC", "WA")
    assert (submission.input_path, submission.output_path) == ("/data/i.xlsx", "/data/o.xlsx")
    assert dict(submission.provenance) == {
        "instruction_type": "Cell-Level Manipulation",
        "tokens": 12,
    }


def test_a_log_of_the_benchmark(tmp_path: Path, suite: Suite) -> None:
    prompt = (
        "... The path of the spreadsheet is /mnt/data/spreadsheet/101/1_101_input.xlsx and the "
        "result goes to /mnt/data/outputs/single_m/1_101_output.xlsx ..."
    )
    record = {
        "id": 101,
        "instruction_type": "Cell-Level Manipulation",
        "conversation": [prompt, "Sure.\n```python\nx = 1\n```\nDone.", "ran"],
        "solution": "Sure.\n```python\nx = 1\n```\nDone.",
    }
    failed = {"id": "7-1", "instruction_type": "?", "conversation": "", "solution": ""}
    first, second = load_submissions(write(tmp_path, record, failed), suite)
    assert first.code == "x = 1\n"
    assert first.input_path == "/mnt/data/spreadsheet/101/1_101_input.xlsx"
    assert first.output_path == "/mnt/data/outputs/single_m/1_101_output.xlsx"
    assert first.provenance["reply"] == record["solution"]
    assert first.provenance["conversation"] == record["conversation"]
    assert second.code is None


def test_a_file_without_the_field_is_an_error_that_names_it(tmp_path: Path, suite: Suite) -> None:
    """Not zero per cent: it means that nobody answered in that way."""
    lines = [{"id": task, "program": "x = 1"} for task in (101, "7-1")]
    error = error_of(write(tmp_path, *lines), suite)
    assert error.exit_code == 4
    said = "field 'solution' is missing: the line has 'id', 'program'; is it 'program'?"
    assert f"2 lines that cannot be used:\n  line 1: {said}\n  line 2: {said}" in error.message
    assert error.hint is not None
    assert '"solution"' in error.hint


@pytest.mark.parametrize(
    "beside",
    [
        {"reply": "I cannot."},
        {"solution_time": 3.5},
        {"solutions": None},
        {"code": None},
        {"answer": "42"},
        {"response": "I cannot."},
        {"instruction_type": "Sheet-Level Manipulation"},
    ],
)
def test_an_empty_solution_beside_other_fields_is_not_a_reply(
    tmp_path: Path, suite: Suite, beside: dict[str, Any]
) -> None:
    (submission,) = load_submissions(write(tmp_path, {"id": 101, "solution": None} | beside), suite)
    assert submission.code is None


def test_an_alias_that_says_the_same_is_the_solution(tmp_path: Path, suite: Suite) -> None:
    record = {"id": 101, "solution": "x = 1", "code": "x = 1"}
    (submission,) = load_submissions(write(tmp_path, record), suite)
    assert submission.code == "x = 1"


@pytest.mark.parametrize("solution", [None, "", "  \n", "I cannot help with that."])
def test_no_code(tmp_path: Path, suite: Suite, solution: str | None) -> None:
    (submission,) = load_submissions(write(tmp_path, {"id": 101, "solution": solution}), suite)
    assert submission.code is None


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ('{"id": 101,}', "line 2: not JSON at column"),
        ("[1]", "line 2: must be an object with id and solution, not list"),
        ('{"solution": "x"}', "line 2: field 'id' is missing"),
        ('{"id": 1.5, "solution": "x"}', "line 2: field 'id' must be an integer or text"),
        (
            f'{{"id": 101, "solution": "x", "tokens": {{"prompt": {10**400}}}}}',
            "line 2: field 'tokens.prompt' must be a number below 2^63",
        ),
        (
            '{"id": 101, "solution": "x", "calls": [{}, {"latency_s": -1e300}]}',
            "line 2: field 'calls[1].latency_s' must be a number below 2^63",
        ),
        ('{"id": 101}', "line 2: field 'solution' is missing"),
        ('{"id": 101, "solution": 5}', "line 2: field 'solution' must be text, not int"),
        (
            '{"id": 101, "Solution": "x = 1"}',
            "field 'solution' is missing: the line has 'id', 'Solution'; is it 'Solution'?",
        ),
        ('{"id": 101, "solutoin": "x = 1"}', "is it 'solutoin'?"),
        ('{"id": 101, "program": "x = 1", "model": "m"}', "is it 'program'?"),
        ('{"id": 101, "response": "x = 1"}', "the line has 'id', 'response'; is it 'response'?"),
        (
            '{"id": 101, "notes": "x = 1"}',
            "field 'solution' is missing: the line has 'id', 'notes'",
        ),
        ('{"task_id": 101, "solution": "x"}', "field 'id' is missing: the line has 'task_id', "),
        ('{"task_id": 101, "solution": "x"}', "is it 'task_id'?"),
        (
            '{"id": 101, "solution": null, "solutions": "x = 1"}',
            "field 'solution' is empty, but 'solutions' is not: is it the answer?",
        ),
        ('{"id": 101, "solution": " ", "Program": "x = 1"}', "'Program' is not: is it the answer?"),
        ('{"id": 101, "solution": "x = 1", "code": "y = 1"}', "has both 'solution' and 'code'"),
        ('{"id": 101, "solution": null, "code": "y = 1"}', "has both 'solution' and 'code'"),
        (
            '{"id": 101, "code": "\u2026"}',
            "field 'code' holds no program; a whole reply goes into 'solution'",
        ),
        ('{"id": 101, "code": 5}', "field 'code' must be text, not int"),
        (
            '{"id": 101, "outputs": null}',
            "field 'solution' is missing: the line has 'id', 'outputs'",
        ),
        ('{"id": 101, "outputs": {}, "solution": "x = 1"}', "has both 'outputs' and 'solution'"),
        ('{"id": 101, "solution": "x", "sample": -1}', "field 'sample' must be 0 or a positive"),
        ('{"id": 101, "solution": "x", "sample": true}', "field 'sample' must be 0"),
        ('{"id": 101, "solution": "x", "model": 5}', "field 'model' must be text, not int"),
        ('{"id": 101, "solution": "x", "expected": "OK"}', "field 'expected' must be verdict"),
        (
            '{"id": 101, "solution": "x", "expected": ["AC", "AC", "AC"]}',
            "field 'expected' has 3 codes, the task 2 cases",
        ),
        ('{"id": 101, "solution": "x", "input_path": "in.xlsx"}', "must be an absolute path"),
        ('{"id": 101, "solution": "x", "output_path": "/a/../b"}', "no file can be placed at"),
        ("[" * 100_000, "line 2: nested more than 100 levels deep"),
    ],
)
def test_a_line_at_fault(tmp_path: Path, suite: Suite, line: str, problem: str) -> None:
    path = write(tmp_path, {"id": "7-1", "solution": "x = 1"}, line)
    assert problem in error_of(path, suite).message


def test_all_lines_at_fault_are_named(tmp_path: Path, suite: Suite) -> None:
    path = write(tmp_path, "{", {"id": 101, "solution": "x"}, {"id": 101}, {"solution": ""})
    message = error_of(path, suite).message
    assert "3 lines that cannot be used" in message
    assert [f"line {number}:" in message for number in (1, 2, 3, 4)] == [True, False, True, True]


def test_all_unknown_ids_are_named(tmp_path: Path, suite: Suite) -> None:
    records = [{"id": i, "solution": "x = 1"} for i in (101, 55, "9-9", 55)]
    error = error_of(write(tmp_path, *records), suite)
    assert "no task 55 (line 2), 9-9 (line 3)" in error.message
    assert error.hint is not None
    assert "--dataset" in error.hint


def test_records_of_other_tasks_are_passed_over_on_request(tmp_path: Path, suite: Suite) -> None:
    path = write(tmp_path, {"id": 55, "solution": "x"}, {"id": 101, "solution": "x = 1"})
    assert [one.task_id for one in load_submissions(path, suite, ids=["101"])] == ["101"]


def test_tasks_that_the_suite_lacks_are_left_out_if_the_caller_takes_them(
    tmp_path: Path, suite: Suite
) -> None:
    records = [{"id": i, "solution": "x = 1"} for i in (55, 101, "9-9", 55)]
    reader = SubmissionReader(write(tmp_path, *records), suite, leaves_out=True)
    assert [one.task_id for _, _, one in reader] == ["101"]
    assert reader.left_out == ["55", "9-9"]


def test_a_file_whose_lines_all_answer_another_suite_is_refused_even_so(
    tmp_path: Path, suite: Suite
) -> None:
    path = write(tmp_path, {"id": 55, "solution": "x = 1"})
    with pytest.raises(SubmissionError, match=r"no task 55 \(line 1\)"):
        list(SubmissionReader(path, suite, leaves_out=True))


def test_the_same_solution_twice(tmp_path: Path, suite: Suite) -> None:
    records = [{"id": i, "solution": "x = 1"} for i in (101, "101")]
    error = error_of(write(tmp_path, *records), suite)
    assert "line 2: task 101, sample 0 is on line 1 already" in error.message
    assert error.hint is not None
    assert "'sample'" in error.hint
    for number, record in enumerate(records):
        record["sample"] = number
    assert len(load_submissions(write(tmp_path, *records), suite)) == 2


@pytest.mark.parametrize("content", [b"", b"\n \n", b"\xef\xbb\xbf\n"])
def test_an_empty_file(tmp_path: Path, suite: Suite, content: bytes) -> None:
    path = tmp_path / "empty.jsonl"
    path.write_bytes(content)
    assert "empty" in error_of(path, suite).message


def test_files_that_cannot_be_read(tmp_path: Path, suite: Suite) -> None:
    assert "cannot be read" in error_of(tmp_path / "nowhere.jsonl", suite).message
    path = tmp_path / "latin.jsonl"
    path.write_bytes(b'{"id": 101, "solution": "x"}\n{"id": "7-1", "solution": "\xe9"}\n')
    assert "line 2: not UTF-8 at byte 27" in error_of(path, suite).message


def test_a_byte_order_mark_is_not_a_fault(tmp_path: Path, suite: Suite) -> None:
    path = tmp_path / "bom.jsonl"
    path.write_bytes(b'\xef\xbb\xbf{"id": 101, "solution": "x = 1"}\r\n')
    assert len(load_submissions(path, suite)) == 1


def test_a_record_reads_back_as_it_was(tmp_path: Path, suite: Suite) -> None:
    records = [
        {"id": 101, "solution": "x = 1", "model": "m", "expected": "AC", "tokens": {"in": 5}},
        {"id": "7-1", "solution": "Prose only.", "sample": 2, "label": "none"},
    ]
    before = load_submissions(write(tmp_path, *records), suite)
    again = write(tmp_path, *(submission_record(one, suite) for one in before))
    after = load_submissions(again, suite)
    assert after == before
    assert json.loads(again.read_text().splitlines()[0])["id"] == 101


def test_a_program_file(tmp_path: Path, suite: Suite) -> None:
    program = tmp_path / "solution.py"
    program.write_text("open('/elsewhere/1_7-1_output.xlsx', 'w')\n", encoding="utf-8")
    submission = submission_of_program(program, suite.task("7-1"), suite.suite_format)
    assert submission.code == program.read_text()
    assert submission.label == "solution.py"
    assert submission.input_path == "/mnt/data/input/1_7-1_input.xlsx"
    assert submission.output_path == "/elsewhere/1_7-1_output.xlsx"
    with pytest.raises(SubmissionError, match=r"nothing\.py: cannot be read"):
        submission_of_program(tmp_path / "nothing.py", suite.task("7-1"), suite.suite_format)


@pytest.mark.data
def test_real_solutions(judge_data: Path) -> None:
    suite = load_suite(judge_data / "spreadsheetbench_912_dev300")
    path = judge_data / "model_solutions" / "single_claude_dev100.jsonl"
    submissions = load_submissions(path, suite)
    assert len(submissions) == 100
    assert all(one.code is not None for one in submissions)
    assert {one.input_path.replace(one.task_id, "{id}") for one in submissions} == {
        "/mnt/data/input/1_{id}_input.xlsx"
    }
    assert {one.output_path.replace(one.task_id, "{id}") for one in submissions} == {
        "/mnt/data/output/1_{id}_output.xlsx"
    }
