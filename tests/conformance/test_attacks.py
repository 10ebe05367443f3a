"""Every attack gets its verdict on every backend, reaches nothing, and leaves nothing behind.

Which ways of the backends run it stands in ``tests/conformance/ways.py``.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import replace

import openpyxl
import pytest

from judge.compare.cells.options import range_spec
from judge.compare.profiles import get_profile
from judge.core.submission import Submission
from judge.core.task import Gold, Task, TestCase
from judge.core.verdict import Verdict
from judge.grading.case import CaseJudge, GradingRules
from judge.grading.running import run_program
from judge.recalc.policy import Recalculator
from judge.sandbox.contract import Sandbox, SandboxSession
from judge.suites.spreadsheetbench import InstructionType
from tests.conformance import ways
from tests.conformance.attack_corpus import FOLDER, LIMITS, Attack, load_attack, load_attacks
from tests.conformance.conftest import BACKENDS

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
    case = TestCase(1, (), (Gold(data=workbook(42)),))
    return Task(
        id="1",
        instruction="Write 42 into A1.",
        kind=InstructionType.CELL_LEVEL.value,
        checker=range_spec("A1"),
        cases=(case,),
    )


def grade(session: SandboxSession, attack: Attack) -> tuple[Verdict, str, dict[str, object]]:
    submission = Submission("1", attack.program, INPUT, OUTPUT)
    outcome = run_program(session, submission, {INPUT: workbook(1)}, attack.limits)
    record = dict(outcome.record)
    if outcome.verdict is not None:
        return outcome.verdict, outcome.cause, record
    assert outcome.answer is not None
    asked = task()
    judge = CaseJudge(Recalculator([], mode="never"), GradingRules(get_profile("standard")))
    judgement = judge.judge(asked, asked.cases[0], outcome.answer)
    return judgement.verdict, judgement.cause, record


def control(after: Attack) -> Attack:
    """A right solution in the same place as an attack, with ample time limits of its own."""
    limits = replace(after.limits, cpu_s=LIMITS.cpu_s, wall_s=LIMITS.wall_s)
    return Attack("control", "", Verdict.AC, CONTROL, limits, None, None, None, None)


def must_get_its_verdict(session: SandboxSession, attack: Attack) -> None:
    verdict, cause, record = grade(session, attack)
    shown = f"{attack.name}: {verdict} ({cause})\n{record['stdout']}\n{record['stderr']}"
    assert "REACHED" not in str(record["stdout"]) + str(record["stderr"]), shown
    assert verdict is attack.verdict, shown
    if attack.survivors is not None:
        assert record["survivors"] == attack.survivors, shown
    if attack.cause is not None:
        assert attack.cause in cause, shown


def runs() -> list[tuple[str, Attack]]:
    """Yields each attack with a way in which it is run, way by way."""
    return [
        (way, attack) for way in ways.WAYS for attack in ATTACKS if way in ways.ways_of(attack.name)
    ]


def test_the_corpus_is_large() -> None:
    assert len(ATTACKS) >= 40


@pytest.mark.parametrize("way", ["docker", "bubblewrap"])
def test_no_attack_is_left_out_of_either_backend(way: str) -> None:
    assert {attack.name for each, attack in runs() if each == way} == {
        path.stem for path in FOLDER.glob("*.py")
    }


def test_every_way_belongs_to_a_backend_and_its_attacks_to_the_corpus() -> None:
    assert set(ways.WAYS) == set(BACKENDS) == {*ways.USUAL, *ways.FURTHER}
    for way in ways.FURTHER:
        assert ways.attacks_of(way) < {attack.name for attack in ATTACKS}, way


@pytest.mark.parametrize(
    ("sandbox", "attack"),
    [
        pytest.param(way, attack, id=f"{way}-{attack.name}", marks=ways.marks(way))
        for way, attack in runs()
        if way != ways.SINGLE_USE
    ],
    indirect=["sandbox"],
)
def test_attack(sandbox: Sandbox, attack: Attack) -> None:
    must_be_withstood(sandbox, [attack])


@pytest.mark.parametrize(
    "sandbox", [pytest.param(ways.SINGLE_USE, marks=ways.marks("docker"))], indirect=True
)
@pytest.mark.parametrize("reason", ways.FURTHER[ways.SINGLE_USE])
def test_attacks_that_share_a_container(sandbox: Sandbox, reason: str) -> None:
    """Attacks that are run for the same reason share a container."""
    names = ways.FURTHER[ways.SINGLE_USE][reason].split()
    chosen = [attack for attack in ATTACKS if attack.name in names]
    must_be_withstood(sandbox, sorted(chosen, key=lambda each: each.limits.memory_bytes))


def must_be_withstood(sandbox: Sandbox, attacks: Sequence[Attack]) -> None:
    """Runs attacks as cases of one submission; after each, the sandbox still works, unchanged."""
    with sandbox.session() as session:
        for attack in attacks:
            must_get_its_verdict(session, attack)
            if attack.next:
                must_get_its_verdict(session, load_attack(FOLDER / attack.next))
            must_get_its_verdict(session, control(attack))
    for other in filter(None, (attack.other for attack in attacks)):
        with sandbox.session() as session:
            must_get_its_verdict(session, load_attack(FOLDER / other))
