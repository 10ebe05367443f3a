"""Reuse keys: the records of a run stay valid as long as nothing has changed."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from judge.compare.cells.options import range_spec
from judge.compare.profiles import get_profile
from judge.compare.registry import checker_of
from judge.core.limits import Limits
from judge.core.submission import Submission
from judge.core.task import FileKind, Gold, InputFile, Task, TestCase
from judge.grading.case import GradingRules
from judge.grading.keys import FileDigests, comparison_key, run_key
from judge.suites.spreadsheetbench import InstructionType

RUN_KEY = "c9378308055e45f94abeb48520df082774c340552d0ea67ad9363c13d0e183cb"
"""The key under which results directories store the run of :data:`SUBMISSION`."""

SUBMISSION = Submission(
    "59196",
    "print(1)",
    "/mnt/data/input/1_59196_input.xlsx",
    "/mnt/data/output/1_59196_output.xlsx",
)
LIMITS = Limits(cpu_s=10, wall_s=30, memory_bytes=1 << 30)
STANDARD = GradingRules(get_profile("standard"))


@pytest.fixture
def case(tmp_path: Path) -> TestCase:
    input_path, gold_path = tmp_path / "1_59196_input.xlsx", tmp_path / "1_59196_answer.xlsx"
    input_path.write_bytes(b"input workbook")
    gold_path.write_bytes(b"gold workbook")
    return TestCase.of_workbooks(1, input_path, gold_path)


def task_of(case: TestCase, sheet: str | None = None, **options: object) -> Task:
    return Task(
        id="59196",
        instruction="Sum up.",
        kind=InstructionType.CELL_LEVEL.value,
        cases=(case,),
        checker=range_spec("'Sheet1'!A1:B9", sheet, options),
    )


def run_key_of(case: TestCase, submission: Submission = SUBMISSION) -> str:
    return run_key(submission, FileDigests().of_inputs(case.question), LIMITS, "image-1")


def comparison_key_of(task: Task, rules: GradingRules = STANDARD) -> str:
    return comparison_key(RUN_KEY, task, task.cases[0], rules, FileDigests())


def test_the_key_of_a_run_is_that_of_results_on_record(case: TestCase) -> None:
    assert run_key_of(case) == RUN_KEY


@pytest.mark.parametrize(
    ("sheet", "options", "rules", "expected"),
    [
        (None, {}, STANDARD, "4d4e659fae84110761ddc86f3124dd863b1546d374be0a5c118aebcbcc5447c2"),
        ("Data", {}, STANDARD, "31a84d4122e7c2223b27dbb335ac3f422b0ccfc013bc62c8f5ca18c234285c5b"),
        (
            None,
            {"tolerance": 0.01, "style": ("fill", "font_color"), "untouched": True},
            GradingRules(
                get_profile("strict"),
                style=("bold",),
                recalc_mode="always",
                engines=("libreoffice 24.2",),
            ),
            "b4bd4d509d3a29e23b3350ceeb136c83523c5edab34b74a1a967fec3a5e43745",
        ),
        (
            None,
            {"left_out": "the gold is wrong"},
            GradingRules(get_profile("official"), recalc_mode="never"),
            "3d27b9c21d3edcbfeaca6026056b8aef78f682bcf87320a4ab42d9fca28a55f1",
        ),
    ],
)
def test_the_key_of_a_comparison_is_that_of_results_on_record(
    case: TestCase,
    sheet: str | None,
    options: dict[str, object],
    rules: GradingRules,
    expected: str,
) -> None:
    assert comparison_key_of(task_of(case, sheet, **options), rules) == expected


def test_what_changes_a_run_changes_its_key(case: TestCase, tmp_path: Path) -> None:
    second = tmp_path / "prices.csv"
    second.write_bytes(b"a,1\n")
    renamed = tmp_path / "costs.csv"
    renamed.write_bytes(b"a,1\n")
    keys = {
        run_key_of(case),
        run_key_of(case, replace(SUBMISSION, code="print(2)")),
        run_key_of(case, replace(SUBMISSION, answer="42")),
        run_key_of(replace(case, inputs=(*case.inputs, InputFile(second, FileKind.TABLE)))),
        run_key_of(replace(case, inputs=(*case.inputs, InputFile(renamed, FileKind.TABLE)))),
    }
    assert len(keys) == 5


def test_what_changes_a_verdict_changes_its_key(case: TestCase, tmp_path: Path) -> None:
    other = tmp_path / "other.xlsx"
    other.write_bytes(b"another gold")
    (gold,) = case.golds
    golds = [
        (gold,),
        (Gold(other),),
        (gold, Gold(other)),
        (Gold(gold.path, options={"tolerance": 1}),),
        (Gold(value="42"),),
        (Gold(value="43"),),
    ]
    keys = {comparison_key_of(task_of(replace(case, golds=each))) for each in golds}
    keys |= {comparison_key_of(task_of(case, None, ignore_case=True))}
    assert len(keys) == len(golds) + 1


def test_additional_output_changes_the_key_of_a_verdict_only_if_requested(
    case: TestCase,
) -> None:
    plain = task_of(case)
    other = replace(plain, instruction="Write a formula.")
    assert comparison_key_of(other) == comparison_key_of(plain)
    asked = [
        task_of(case, None, **options)
        for options in (
            {"keep": "note"},
            {"keep": "fail"},
            {"formula_asked": "note"},
            {"formula_asked": "fail"},
        )
    ]
    # The words of the question decide whether a formula is asked for, and for nothing else.
    asked += [replace(each, instruction=other.instruction) for each in asked[2:]]
    keys = {comparison_key_of(each) for each in [plain, *asked]}
    assert len(keys) == 7
    kept = replace(asked[0], instruction=other.instruction)
    assert comparison_key_of(kept) == comparison_key_of(asked[0])


def test_the_other_cases_count_where_their_values_are_put_into_answers(tmp_path: Path) -> None:
    cases = []
    for number in (1, 2):
        files = tmp_path / f"{number}_input.xlsx", tmp_path / f"{number}_gold.xlsx"
        for file in files:
            file.write_bytes(file.name.encode())
        cases.append(TestCase.of_workbooks(number, *files))

    def keys(**options: str) -> tuple[str, str]:
        task = replace(task_of(cases[0], None, **options), cases=tuple(cases))
        digests = FileDigests()
        first, second = (
            comparison_key(RUN_KEY, task, case, STANDARD, digests) for case in task.cases
        )
        return first, second

    plain, damage, dynamic = keys(), keys(collateral="note"), keys(dynamic="note")
    assert keys(collateral="off", dynamic="off")[0] != plain[0]
    (tmp_path / "2_input.xlsx").write_bytes(b"changed")
    assert keys() == plain
    assert keys(collateral="note")[0] == damage[0]
    assert keys(collateral="note")[1] != damage[1]
    assert keys(dynamic="note")[0] != dynamic[0]


def test_rules_that_changed_have_another_version() -> None:
    versions = {
        name: json.loads(get_profile(name).identity)["rules_version"]
        for name in ("standard", "official", "strict", "ssb2")
    }
    assert versions == {"standard": 2, "official": 2, "strict": 2, "ssb2": 3}
    assert json.loads(get_profile("standard", relative_tolerance=0.01).identity) != json.loads(
        get_profile("standard").identity
    )
    assert "formulas" not in json.loads(get_profile("standard").identity)
    assert json.loads(get_profile("standard", formulas=True).identity)["formulas"]


def test_a_task_with_a_relative_tolerance_is_judged_again(case: TestCase) -> None:
    checker = checker_of(task_of(case).checker)
    assert checker.key(task_of(case, relative_tolerance=0.01))["rules_version"] == 3
    assert "rules_version" not in checker.key(task_of(case))
