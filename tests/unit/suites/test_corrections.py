"""Known faults of published suites: read, applied where they fit, remembered by a run."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from judge.comparison.options import CheckOptions, position_of
from judge.core.results import RunDocument
from judge.errors import SuiteError
from judge.suites import Suite, load_suite
from judge.suites.corrections import (
    FIELDS,
    Correction,
    apply_corrections,
    as_recorded,
    corrected_suite,
    describe_corrections,
    known_faults_folder,
    load_corrections,
)
from judge.suites.validate import Severity, findings_of_corrections
from tests.unit.suites.conftest import WriteSuite, task_record

FORMAT = "spreadsheetbench-v0.1"


@pytest.fixture
def suite(write_suite: WriteSuite) -> Suite:
    records = [task_record("7-5", answer_position="A1"), task_record(9, answer_position="B2")]
    return load_suite(write_suite(records))


def write(folder: Path, *entries: dict[str, object], **document: object) -> Path:
    path = folder / "corrections.yaml"
    path.write_text(yaml.safe_dump({"format": FORMAT, "corrections": [*entries]} | document))
    return path


def entry(**changes: object) -> dict[str, object]:
    return {
        "task": "7-5",
        "field": "answer_position",
        "was": "A1",
        "now": "A1:A4",
        "reason": "row 1 is no answer",
        "source": "seen in the golds",
    } | changes


def test_a_position_is_corrected_and_the_digest_stays(suite: Suite, tmp_path: Path) -> None:
    corrected = corrected_suite(suite, write(tmp_path, entry()))
    assert [position_of(task.checker)[0] for task in corrected.suite.tasks] == ["A1:A4", "B2"]
    assert corrected.suite.digest == suite.digest
    assert [str(each) for each in corrected.applied] == [
        "answer_position is read as 'A1:A4': row 1 is no answer"
    ]
    assert not corrected.unfit


def test_nothing_is_corrected_unless_it_is_asked_for(suite: Suite) -> None:
    assert corrected_suite(suite, None).suite is suite


def test_a_value_that_is_not_the_published_one_is_left(suite: Suite, tmp_path: Path) -> None:
    corrected = corrected_suite(suite, write(tmp_path, entry(was="A2"), entry(task=77)))
    assert corrected.suite.tasks == suite.tasks
    assert [each.task for each in corrected.unfit] == ["7-5"]
    (finding,) = findings_of_corrections(corrected)
    assert (finding.severity, finding.task) == (Severity.WARNING, "7-5")


def test_corrections_of_another_format_are_passed_over(suite: Suite, tmp_path: Path) -> None:
    path = write(tmp_path, entry(), format="spreadsheetbench-verified")
    assert not corrected_suite(suite, path).applied


def test_styles_and_tasks_that_are_left_out_become_options(suite: Suite, tmp_path: Path) -> None:
    left_out = {"task": 9, "field": "exclude", "reason": "no question", "source": "its text"}
    path = write(tmp_path, entry(field="style", now=["fill"], was=None), left_out)
    first, second = corrected_suite(suite, path).suite.tasks
    assert CheckOptions.of(first.checker.options).style == ("fill",)
    assert CheckOptions.of(second.checker.options).left_out == "no question"


def test_a_run_remembers_what_was_corrected(suite: Suite, tmp_path: Path) -> None:
    left_out = {"task": 9, "field": "exclude", "reason": "no question", "source": "its text"}
    corrected = corrected_suite(suite, write(tmp_path, entry(), left_out))
    run: RunDocument = {
        "suite": {"name": "made", "corrections": describe_corrections(corrected.applied)},
        "checker": {"ignore_case": True},
    }
    again = as_recorded(suite, run)
    assert again.tasks == corrected.suite.with_checker_options({"ignore_case": True}).tasks
    assert as_recorded(suite, {}).tasks == suite.tasks


@pytest.mark.parametrize(
    ("wrong", "fault"),
    [
        ({"field": "gold"}, "field 'field' must be one of"),
        ({"reason": ""}, "field 'reason' must be text"),
        ({"source": None}, "field 'source' must be text"),
        ({"now": "nowhere"}, "cannot be read: 'nowhere' is not a range of cells"),
        ({"now": 7}, "field 'now' must be text"),
        ({"field": "style", "now": ["glitter"]}, "no style attribute 'glitter'"),
        ({"was": 5}, "field 'was' must be text"),
        ({"why": "x"}, "unknown fields why"),
    ],
)
def test_each_fault_of_a_file_is_named(
    wrong: dict[str, object], fault: str, tmp_path: Path
) -> None:
    with pytest.raises(SuiteError) as raised:
        load_corrections(write(tmp_path, entry(task="1"), entry(**wrong)))
    (found,) = raised.value.faults
    assert "correction 2" in found
    assert fault in found


def test_a_field_is_corrected_once(tmp_path: Path) -> None:
    with pytest.raises(SuiteError) as raised:
        load_corrections(write(tmp_path, entry(), entry(now="C1")))
    assert raised.value.faults == ("task 7-5: field 'answer_position' is corrected twice",)


@pytest.mark.parametrize("text", ["- 1", "{", "format: x", "\x00"])
def test_a_file_that_is_none(text: str, tmp_path: Path) -> None:
    path = tmp_path / "corrections.yaml"
    path.write_text(text)
    with pytest.raises(SuiteError, match="corrections"):
        load_corrections(path)


def test_the_corrections_that_ship_say_what_is_wrong_and_where_it_is_seen() -> None:
    shipped = load_corrections(known_faults_folder())
    assert {each.format for each in shipped} == {FORMAT, "spreadsheetbench-verified"}
    assert len(shipped) > 20
    for each in shipped:
        assert each.field in FIELDS
        assert len(each.reason) > 20
        assert each.source
        assert each.was != each.now


def test_options_of_a_command_count_more_than_those_of_a_task(suite: Suite) -> None:
    corrected = apply_corrections(
        suite, [Correction(FORMAT, "9", "style", None, ("fill",), "colour", "golds")]
    ).suite
    chosen = corrected.with_checker_options({"style": ["bold"], "tolerance": 0.5})
    assert CheckOptions.of(chosen.task(9).checker.options).style == ("bold",)
    assert CheckOptions.of(chosen.task("7-5").checker.options).tolerance == 0.5
    assert suite.with_checker_options({}) is suite
