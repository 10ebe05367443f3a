"""Finding outputs: by a pattern, and in Harbor's jobs folders."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from judge.core.records.runs import LayoutRecord
from judge.errors import SubmissionError, UsageError
from judge.suites import Suite, folders, load_suite
from judge.suites.harbor import find_tasks, folder_name, is_job, read_job
from judge.suites.layouts import Layout, attempts_in, layout_of, outputs_in, programs_in
from tests.harbor_jobs import MadeTrial, make_job
from tests.unit.suites.conftest import WriteSuite, task_record
from tests.unit.suites.test_outputs import put

HARBOR: LayoutRecord = {"kind": "harbor"}


@pytest.fixture
def suite(write_suite: WriteSuite) -> Suite:
    return load_suite(write_suite([task_record(101), task_record("7-1")]))


def by(pattern: str) -> LayoutRecord:
    return {"kind": "pattern", "pattern": pattern}


# -- patterns -------------------------------------------------------------------------------------


def test_outputs_by_a_pattern(tmp_path: Path, suite: Suite) -> None:
    folder = put(tmp_path / "out", "7-1/2/any.xlsx", "101/1/x.xlsx", "101/1/~$x.xlsx", "notes.txt")
    found = outputs_in(folder, suite, by("{task}/{case}/*.xlsx"))
    assert dict(found) == {
        ("101", 1): folder / "101/1/x.xlsx",
        ("7-1", 2): folder / "7-1/2/any.xlsx",
    }


def test_samples_by_a_pattern(tmp_path: Path, suite: Suite) -> None:
    folder = put(tmp_path / "out", "run1/101_1.xlsx", "run2/101_1.xlsx")
    found = outputs_in(folder, suite, by("run{sample}/{task}_{case}.xlsx"))
    assert found.samples_of("101") == [1, 2]
    assert found.of_sample("101", 2, 1) == folder / "run2/101_1.xlsx"


def test_two_files_for_a_case_are_named(tmp_path: Path, suite: Suite) -> None:
    folder = put(tmp_path / "out", "101/1/a.xlsx", "101/1/b.xlsx")
    with pytest.raises(SubmissionError) as caught:
        outputs_in(folder, suite, by("{task}/{case}/*.xlsx"))
    assert "101/1/a.xlsx and 101/1/b.xlsx" in caught.value.message


def test_files_of_other_tasks_and_cases_are_named(tmp_path: Path, suite: Suite) -> None:
    folder = put(tmp_path / "out", "55/1/a.xlsx")
    with pytest.raises(SubmissionError, match="no task 55"):
        outputs_in(folder, suite, by("{task}/{case}/*.xlsx"))
    folder = put(tmp_path / "more", "101/9/a.xlsx")
    with pytest.raises(SubmissionError, match="no case 9 of task 101"):
        outputs_in(folder, suite, by("{task}/{case}/*.xlsx"))


@pytest.mark.parametrize(
    ("pattern", "said"), [("{task}/*", "which case"), ("{case}", "which task")]
)
def test_a_pattern_that_does_not_say_enough(
    tmp_path: Path, suite: Suite, pattern: str, said: str
) -> None:
    folder = put(tmp_path / "out", "101/1", "1")
    with pytest.raises(UsageError, match=said):
        outputs_in(folder, suite, by(pattern))


def test_links_are_not_followed(tmp_path: Path, suite: Suite) -> None:
    secret = put(tmp_path / "secret", "1.xlsx")
    folder = put(tmp_path / "out", "101/2.xlsx")
    (folder / "101/1.xlsx").symlink_to(secret / "1.xlsx")
    (folder / "7-1").symlink_to(secret)
    assert list(outputs_in(folder, suite, by("{task}/{case}.xlsx"))) == [("101", 2)]


def test_the_number_of_files_is_bounded(
    tmp_path: Path, suite: Suite, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(folders, "MAX_ENTRIES", 3)
    folder = put(tmp_path / "out", "a", "b", "c", "101/1.xlsx")
    with pytest.raises(SubmissionError, match="more than 3 files"):
        outputs_in(folder, suite, by("{task}/{case}.xlsx"))


def test_programs_by_a_pattern(tmp_path: Path, suite: Suite) -> None:
    folder = put(tmp_path / "out", "101/solution.py")
    (folder / "101/solution.py").write_text("path = '/app/input/1_101_input.xlsx'")
    record = layout_of(folder, None, "{task}/solution.py").record()
    (found,) = programs_in(folder, suite, record)
    assert (found.task_id, found.input_path) == ("101", "/app/input/1_101_input.xlsx")
    with pytest.raises(SubmissionError, match="no program that matches"):
        list(programs_in(folder, suite, {**record, "pattern": "{task}/main.py"}))


# -- jobs of Harbor -------------------------------------------------------------------------------


def output(task: str, case: int, folder: str = "app/output") -> str:
    return f"artifacts/{folder}/{case}_{task}_output.xlsx"


def test_trials_are_samples_by_the_time_at_which_they_began(tmp_path: Path, suite: Suite) -> None:
    job = make_job(
        tmp_path / "job",
        MadeTrial("101", "101__b", 1, {output("101", 1): b"second"}),
        MadeTrial("101", "101__c", 0, {output("101", 1): b"first", output("101", 2): b"x"}),
        MadeTrial("7-1", "7-1__a", 2),
        MadeTrial("7-1", "7-1__d", 3, {output("7-1", 1): b""}, ended=False),
    )
    assert is_job(job)
    assert layout_of(job, None, None) == Layout("harbor")
    found = outputs_in(job, suite, HARBOR)
    first = found.of_sample("101", 0, 1)
    assert first is not None
    assert first.read_bytes() == b"first"
    assert found.samples_of("101") == [0, 1]
    assert (found.of_sample("101", 1, 2), found.samples_of("7-1")) == (None, [0])
    assert found.attempted == {"101", "7-1"}
    assert read_job(job).unfinished == ("7-1__d",)


def test_times_tokens_and_costs(tmp_path: Path, suite: Suite) -> None:
    steps = [{"agent_result": {"n_input_tokens": 1, "cost_usd": 0.5}}, {"agent_result": None}]
    job = make_job(
        tmp_path / "job",
        MadeTrial("101", "a"),
        MadeTrial("101", "b", 1, result={"agent_result": None, "step_results": steps}),
        MadeTrial("101", "c", 2, result={"agent_result": {"cost_usd": -1, "n_input_tokens": "x"}}),
    )
    first, second, third = attempts_in(job, suite, HARBOR)
    assert (first["id"], first["sample"], first["trial"]) == (101, 0, "a")
    assert (first["agent"], first["model"]) == ("some-agent 1.2", "maker/model-x")
    assert first["tokens"] == {"prompt": 1000, "completion": 50}
    assert (first["cost"], first["seconds"], first["rewards"]) == (0.25, 30.0, {"reward": 1.0})
    assert (second["tokens"], second["cost"]) == ({"prompt": 1, "completion": None}, 0.5)
    assert (third["tokens"], third["cost"]) == (None, None)


def test_of_several_workbooks_the_one_in_the_fewest_folders_counts(
    tmp_path: Path, suite: Suite
) -> None:
    job = make_job(
        tmp_path / "job",
        MadeTrial(
            "101",
            "a",
            artifacts={
                output("101", 1): b"it",
                output("101", 1, "app/output/backup"): b"",
                output("101", 1, "logs/artifacts"): b"",
                output("7-1", 1): b"of another task",
                output("101", 9): b"of no case",
            },
        ),
    )
    found = outputs_in(job, suite, HARBOR)
    assert {key: path.read_bytes() for key, path in found.items()} == {("101", 1): b"it"}


def test_two_workbooks_of_the_same_rank_are_named(tmp_path: Path, suite: Suite) -> None:
    both = {output("101", 1, "a"): b"", output("101", 1, "b"): b""}
    job = make_job(tmp_path / "job", MadeTrial("101", "t", artifacts=both))
    with pytest.raises(SubmissionError, match=r"t/artifacts/a/1_101.* and t/artifacts/b/1_101"):
        outputs_in(job, suite, HARBOR)
    chosen = outputs_in(job, suite, {**HARBOR, "pattern": "artifacts/b/{case}_*.xlsx"})
    assert chosen["101", 1].parent.name == "b"


def test_workbooks_with_other_names_take_a_pattern(tmp_path: Path, suite: Suite) -> None:
    job = make_job(tmp_path / "job", MadeTrial("101", "t", artifacts={"artifacts/w/2.xlsx": b""}))
    with pytest.raises(SubmissionError, match=r"there are t/artifacts/w/2\.xlsx"):
        outputs_in(job, suite, HARBOR)
    layout = layout_of(job, "artifacts/**/{case}.xlsx", None)
    assert layout.kind == "harbor"
    assert list(outputs_in(job, suite, layout.record())) == [("101", 2)]
    with pytest.raises(SubmissionError, match="does not say which case"):
        outputs_in(job, suite, {**HARBOR, "pattern": "artifacts/**/*.xlsx"})


def test_links_in_a_job_are_not_followed(tmp_path: Path, suite: Suite) -> None:
    secret = put(tmp_path / "secret", "1_101_output.xlsx", "result.json")
    job = make_job(tmp_path / "job", MadeTrial("101", "t", artifacts={output("101", 2): b""}))
    (job / "t" / output("101", 1)).symlink_to(secret / "1_101_output.xlsx")
    (job / "t/artifacts/more").symlink_to(secret)
    (job / "linked").symlink_to(secret)
    assert list(outputs_in(job, suite, HARBOR)) == [("101", 2)]


def test_a_program_of_each_trial(tmp_path: Path, suite: Suite) -> None:
    program = b"open('/app/input/1_101_input.xlsx')"
    job = make_job(
        tmp_path / "job",
        MadeTrial("101", "a", artifacts={"artifacts/app/solution.py": program}),
        MadeTrial("101", "b", 1),
        MadeTrial("101", "c", 2, {"artifacts/app/solution.py": b"\xff"}),
    )
    record = layout_of(job, None, "artifacts/**/solution.py").record()
    first, second, third = programs_in(job, suite, record)
    assert (first.code, first.sample, first.model) == (program.decode(), 0, "maker/model-x")
    assert (second.code, second.sample) == (None, 1)
    assert third.code is None
    assert "not UTF-8" in str(third.provenance["problem"])
    assert (first.provenance["trial"], first.provenance["cost"]) == ("a", 0.25)
    with pytest.raises(SubmissionError, match="no trial holds a program"):
        list(programs_in(job, suite, {**record, "pattern": "artifacts/main.py"}))
    with pytest.raises(UsageError, match="--outputs names workbooks"):
        layout_of(job, "a", "b")


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"{", "result.json: not JSON"),
        (b"\xff", "not UTF-8"),
        (b"[1]", "is not the result of a trial"),
        (b"[" * 100_000, "nested"),
    ],
)
def test_a_result_that_cannot_be_read_is_named(
    tmp_path: Path, suite: Suite, content: bytes, said: str
) -> None:
    job = make_job(tmp_path / "job", MadeTrial("101", "t"))
    (job / "t/result.json").write_bytes(content)
    assert is_job(job)
    with pytest.raises(SubmissionError, match=said):
        outputs_in(job, suite, HARBOR)


def test_fields_of_other_types_count_as_unknown(tmp_path: Path, suite: Suite) -> None:
    odd = {"agent_info": 1, "agent_result": [], "started_at": None, "agent_execution": "x"}
    odd |= {"verifier_result": {"rewards": {"reward": "NaN"}}, "exception_info": {"x": 1}}
    job = make_job(tmp_path / "job", MadeTrial("101", "t", result=odd))
    (record,) = attempts_in(job, suite, HARBOR)
    assert (record["agent"], record["model"], record["seconds"]) == (None, None, None)
    assert record["rewards"] == {}


def test_trials_of_other_tasks_are_named(tmp_path: Path, suite: Suite) -> None:
    job = make_job(tmp_path / "job", MadeTrial("101", "a"), MadeTrial("55", "b"))
    with pytest.raises(SubmissionError, match=r"b \(task 55\)"):
        outputs_in(job, suite, HARBOR)
    unfinished = make_job(tmp_path / "begun", MadeTrial("101", "a", ended=False))
    with pytest.raises(SubmissionError, match="no trial of this job has ended"):
        outputs_in(unfinished, suite, HARBOR)


def test_a_layout_that_there_is_not(tmp_path: Path, suite: Suite) -> None:
    with pytest.raises(SubmissionError, match="no layout 'other'"):
        outputs_in(tmp_path, suite, {"kind": "other"})
    assert Layout.of_record(Layout("pattern", "x").record()) == Layout("pattern", "x")
    assert json.dumps(Layout().record()) == '{"kind": "names"}'


# -- names ----------------------------------------------------------------------------------------


def test_names_of_adapters_have_one_prefix() -> None:
    ids = ["1", "13-1", "59196"]
    names = [("spreadsheetbench-13-1",), ("spreadsheetbench-59196", "x"), ("spreadsheetbench-2",)]
    assert find_tasks(names, ids) == ["13-1", "59196", None]
    assert find_tasks([("13-1",), ("1",)], ids) == ["13-1", "1"]
    assert find_tasks([()], ids) == [None]


def test_names_of_folders_are_their_own() -> None:
    assert folder_name("13-1") == "13-1"
    odd = ["a b", "a/b", "../x", "ümlaut", "-", "a..b"]
    names = [folder_name(each) for each in odd]
    assert len(set(names)) == len(odd)
    assert all(each[0].isalnum() and "/" not in each and ".." not in each for each in names)
