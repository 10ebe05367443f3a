from __future__ import annotations

from dataclasses import replace

from judge.errors import SandboxError
from judge.sandbox.contract import OutputStatus, RunResult, RunStatus
from judge.sandbox.scripted import ScriptedSandbox, Step
from judge.sandbox.selftest import SELF_TESTS, attack

STILL_HERE = RunResult(RunStatus.OK, OutputStatus.MISSING, stdout=b"still here\n")


def steps() -> list[Step]:
    """Answers as a sandbox that withstands every attack."""
    said: list[Step] = []
    for test in SELF_TESTS:
        survivors = test.survivors or 0
        said += [RunResult(test.statuses[0], test.output, survivors=survivors), STILL_HERE]
    return [*said, STILL_HERE, STILL_HERE]


def test_a_sandbox_that_withstands_every_attack() -> None:
    outcomes = list(attack(ScriptedSandbox(steps())))
    assert len(outcomes) == len(SELF_TESTS) + 1
    assert all(outcome.held and not outcome.detail for outcome in outcomes)


def spoiled(position: int, **change: object) -> list[str]:
    script = steps()
    result = script[position]
    assert isinstance(result, RunResult)
    script[position] = replace(result, **change)  # type: ignore[arg-type]
    return [outcome.detail for outcome in attack(ScriptedSandbox(script)) if not outcome.held]


def test_every_failure_is_reported() -> None:
    assert spoiled(0, status=RunStatus.OK) == ["ended as ok, not as cpu_limit: "]
    assert spoiled(2, survivors=0) == ["0 processes had to be killed at the end, not 1"]
    assert spoiled(14, stdout=b"x\nREACHED the network\n") == ["REACHED the network"]
    assert spoiled(24, output_status=OutputStatus.COLLECTED) == [
        "the output was collected, not link"
    ]
    assert spoiled(1, stdout=b"") == ["the next run did not succeed"]
    assert spoiled(len(steps()) - 1, stdout=b"REACHED /tmp") == ["REACHED /tmp"]


def test_a_sandbox_that_breaks_did_not_withstand_the_attack() -> None:
    script = steps()
    script[6] = SandboxError("the warden failed")
    del script[7]  # the run after it never comes
    outcomes = list(attack(ScriptedSandbox(script)))
    assert [outcome.detail for outcome in outcomes if not outcome.held] == ["the warden failed"]
