"""Every attack gets its verdict on every backend, reaches nothing, and leaves nothing."""

from __future__ import annotations

import io
from pathlib import Path

import openpyxl
import pytest

from judge.comparison.profiles import get_profile
from judge.core.answer import Origin
from judge.core.submission import Submission
from judge.core.task import Task, TestCase
from judge.suites.spreadsheetbench.records import InstructionType
from judge.core.verdict import Verdict
from judge.grading.case import GradingRules, judge_output
from judge.grading.running import run_case
from judge.recalc.policy import Recalculator
from judge.sandbox.contract import Sandbox, SandboxSession
from tests.conformance.attack_corpus import FOLDER, LIMITS, Attack, load_attack, load_attacks

INPUT, OUTPUT = "/mnt/data/input/1_1_input.xlsx", "/mnt/data/output/1_1_output.xlsx"
CONTROL = f"""
import openpyxl
book = openpyxl.load_workbook({INPUT!r})
book.active["A1"] = 42
book.save({OUTPUT!r})
"""
ATTACKS = load_attacks()


def workbook(value: int) -> bytes:
    book = openpyxl.Workbook()
    assert book.active is not None
    book.active["A1"] = value
    buffer = io.BytesIO()
    book.save(buffer)
    return buffer.getvalue()


def task() -> Task:
    case = TestCase(1, Path("input.xlsx"), Path("gold.xlsx"))
    return Task(
        id="1",
        instruction="Write 42 into A1.",
        instruction_type=InstructionType.CELL_LEVEL,
        answer_position="A1",
        cases=(case,),
    )


def grade(session: SandboxSession, attack: Attack) -> tuple[Verdict, str, dict[str, object]]:
    submission = Submission("1", attack.program, INPUT, OUTPUT)
    facts = run_case(session, submission, workbook(1), attack.limits)
    record = dict(facts.record)
    if facts.verdict is not None:
        return facts.verdict, facts.cause, record
    assert facts.output is not None
    judgement = judge_output(
        task(),
        workbook(42),
        facts.output,
        recalculator=Recalculator([], mode="never"),
        rules=GradingRules(get_profile("standard")),
        origin=Origin.SOLUTION,
    )
    return judgement.verdict, judgement.cause, record


def control() -> Attack:
    return Attack("control", "", Verdict.AC, CONTROL, LIMITS, None, None, None, None)


def must_get_its_verdict(session: SandboxSession, attack: Attack) -> None:
    verdict, cause, record = grade(session, attack)
    shown = f"{attack.name}: {verdict} ({cause})\n{record['stdout']}\n{record['stderr']}"
    assert "REACHED" not in str(record["stdout"]) + str(record["stderr"]), shown
    assert verdict is attack.verdict, shown
    if attack.survivors is not None:
        assert record["survivors"] == attack.survivors, shown
    if attack.within_s is not None:
        assert float(str(record["wall_s"])) < attack.within_s, shown


def test_the_corpus_is_large() -> None:
    assert len(ATTACKS) >= 40


def is_on_the_reader(attack: Attack) -> bool:
    """Whether only whoever reads the output is attacked; the program does nothing but write it."""
    return attack.name.startswith("workbook_")


@pytest.mark.parametrize(
    "attack",
    [each for each in ATTACKS if not is_on_the_reader(each)],
    ids=lambda attack: attack.name,
)
def test_attack(sandbox: Sandbox, attack: Attack) -> None:
    withstand(sandbox, attack)


@pytest.mark.parametrize(
    "attack", [each for each in ATTACKS if is_on_the_reader(each)], ids=lambda attack: attack.name
)
def test_attack_on_the_reader(usual_sandbox: Sandbox, attack: Attack) -> None:
    """How a backend is set up makes no difference to these: each engine has one way of its own."""
    withstand(usual_sandbox, attack)


def withstand(sandbox: Sandbox, attack: Attack) -> None:
    with sandbox.session() as session:
        must_get_its_verdict(session, attack)
        if attack.next:
            must_get_its_verdict(session, load_attack(FOLDER / attack.next))
        must_get_its_verdict(session, control())  # the place still works, and is as before
    if attack.other:
        with sandbox.session() as session:
            must_get_its_verdict(session, load_attack(FOLDER / attack.other))
