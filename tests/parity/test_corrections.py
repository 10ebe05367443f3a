"""The shipped corrections, applied to the suites for which they were made."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.pairs import SUITE, VERIFIED
from judge.compare.cells.computing import compare_files
from judge.compare.cells.options import position_of
from judge.core.task import Task
from judge.grading.case import known_fault
from judge.suites import load_suite
from judge.suites.corrections import CorrectedSuite, corrected_suite, known_faults_folder

pytestmark = pytest.mark.data

NOTHING_TO_DO = {("248-48", 3)}
"""Cases whose right answer is the input, in tasks whose position is corrected."""


@pytest.fixture(scope="module")
def corrected(judge_data: Path) -> CorrectedSuite:
    return corrected_suite(load_suite(judge_data / SUITE), known_faults_folder())


def accepted(task: Task, *, untouched: bool, profile: str = "standard") -> list[bool]:
    """Returns which golds, and which inputs of cases with something to do, are accepted."""
    position, answer_sheet = position_of(task.checker)
    return [
        compare_files(
            case.gold_path,
            case.input_path if untouched else case.gold_path,
            position,
            answer_sheet=answer_sheet,
            options=task.checker.options,
            profile=profile,
        ).equal
        for case in task.cases
        if known_fault(task, case.number) is None
        if not untouched or (task.id, case.number) not in NOTHING_TO_DO
    ]


def test_every_correction_fits(corrected: CorrectedSuite, judge_data: Path) -> None:
    verified = corrected_suite(load_suite(judge_data / VERIFIED), known_faults_folder())
    assert not corrected.unfit
    assert not verified.unfit
    assert len(corrected.applied) > 20
    assert len(verified.applied) == 2


def test_a_corrected_task_accepts_its_golds_and_no_untouched_input(
    corrected: CorrectedSuite,
) -> None:
    for correction in corrected.applied:
        task = corrected.suite.task(correction.task)
        if correction.field == "exclude":
            continue
        assert all(accepted(task, untouched=False)), correction
        assert not any(accepted(task, untouched=True)), correction


def test_corrected_positions_are_read_by_the_published_script_too(
    corrected: CorrectedSuite,
) -> None:
    for correction in corrected.applied:
        if correction.field == "answer_position":
            task = corrected.suite.task(correction.task)
            assert all(accepted(task, untouched=False, profile="official")), correction
            assert not any(accepted(task, untouched=True, profile="official")), correction


def test_cases_left_out_distinguish_no_programs(
    corrected: CorrectedSuite, judge_data: Path
) -> None:
    published = load_suite(judge_data / SUITE)
    told_apart = [
        correction.task
        for correction in corrected.applied
        if correction.field == "exclude"
        and not correction.evidence  # a reviewed fault has its reason there
        and not any(accepted(published.task(correction.task), untouched=True))
    ]
    assert told_apart == ["55457"]  # there is no question
