from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from click.testing import CliRunner, Result

import judge.sandbox
from judge.cli.sandbox import doctor
from judge.cli.sandbox import sandbox as sandbox_command
from judge.errors import SandboxError
from judge.sandbox import BackendFinding
from judge.sandbox.contract import OutputStatus, RunResult, RunStatus, Sandbox
from judge.sandbox.scripted import ScriptedSandbox, Step
from judge.sandbox.selftest import COUNT, SELF_TESTS

STILL_HERE = RunResult(RunStatus.OK, OutputStatus.MISSING, stdout=b"still here\n")
MISSING = BackendFinding("Docker daemon", False, "no Docker daemon answers", "start it")


def script(**first: object) -> list[Step]:
    """The outcomes of a sandbox that withstands all attacks, except for the first outcome."""
    said: list[Step] = []
    for test in SELF_TESTS:
        values: dict[str, object] = {"status": test.statuses[0], "output_status": test.output}
        values |= {"survivors": test.survivors or 0} | first
        said += [RunResult(**values), STILL_HERE]  # type: ignore[arg-type]
        first = {}
    return [*said, STILL_HERE, STILL_HERE]


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Makes a machine with backends: name -> the sandbox's outcomes, or why it cannot be opened."""

    def make(**backends: list[Step] | SandboxError) -> None:
        def open_one(kind: str, **_: object) -> Sandbox:
            said = backends[kind]
            if isinstance(said, SandboxError):
                raise said
            return ScriptedSandbox(said)

        findings = [
            MISSING,
            *(BackendFinding(name, True, "there", backend=name) for name in backends),
        ]
        monkeypatch.setattr(judge.sandbox, "probe_sandboxes", lambda: findings)
        monkeypatch.setattr(judge.sandbox, "open_sandbox", open_one)

    return make


def run(*arguments: str) -> Result:
    return CliRunner().invoke(doctor, arguments)


def test_without_attack_nothing_is_opened(machine: Callable[..., None]) -> None:
    machine(docker=SandboxError("must not be opened"))
    done = run()
    assert done.exit_code == 0
    assert "ok      docker: there" in done.stdout
    assert "missing Docker daemon: no Docker daemon answers" in done.stdout
    assert "start it" in done.stdout
    assert "attacked" not in json.loads(run("--json").stdout)


def test_every_backend_is_attacked(machine: Callable[..., None]) -> None:
    machine(docker=script(), bubblewrap=script())
    done = run("--attack")
    assert done.exit_code == 0
    assert done.stdout.count(f"scripted: withstood {COUNT} of {COUNT} attacks") == 2
    assert "fork bomb" in done.stdout
    assert "FAILED" not in done.stdout


def test_what_did_not_hold_is_shown_and_is_an_error(machine: Callable[..., None]) -> None:
    machine(docker=script(), bubblewrap=script(status=RunStatus.OK))
    done = run("--attack")
    assert done.exit_code == 5
    assert "FAILED" in done.stdout
    assert f"scripted: withstood {COUNT - 1} of {COUNT} attacks" in done.stdout
    assert "fork bomb: ended as ok, not as cpu_limit" in done.stdout


def test_as_json(machine: Callable[..., None]) -> None:
    machine(docker=script(), bubblewrap=script(stdout=b"REACHED the host\n"))
    done = run("--attack", "--json")
    assert done.exit_code == 5
    document = json.loads(done.stdout)
    assert (document["usable"], [each["held"] for each in document["attacked"]]) == (
        True,
        [True, False],
    )
    failed = [each for each in document["attacked"][1]["attacks"] if not each["held"]]
    assert [(each["name"], each["detail"]) for each in failed] == [
        ("fork bomb", "REACHED the host")
    ]


def test_a_backend_that_does_not_open_did_not_hold(machine: Callable[..., None]) -> None:
    machine(docker=SandboxError("the daemon went away"), bubblewrap=script())
    done = run("--attack")
    assert done.exit_code == 5
    assert "stopped before the end: the daemon went away" in done.stdout


def test_a_backend_that_breaks_did_not_hold(machine: Callable[..., None]) -> None:
    broken = script()
    broken[2] = SandboxError("the warden failed")
    del broken[3]  # the run after it never comes
    machine(docker=broken)
    done = run("--attack", "--json")
    assert done.exit_code == 5
    details = [each["detail"] for each in json.loads(done.stdout)["attacked"][0]["attacks"]]
    assert "the warden failed" in details


def test_no_sandbox_is_an_error(machine: Callable[..., None]) -> None:
    machine()
    assert run("--attack").exit_code == 5
    assert "No sandbox is available" in run().stdout


def test_one_backend_by_name(machine: Callable[..., None]) -> None:
    machine(docker=script(), bubblewrap=script(status=RunStatus.OK))
    good = CliRunner().invoke(sandbox_command, ["attack", "--sandbox", "docker", "--json"])
    assert (good.exit_code, json.loads(good.stdout)["held"]) == (0, True)
    bad = CliRunner().invoke(sandbox_command, ["attack", "--sandbox", "bubblewrap"])
    assert bad.exit_code == 5
    assert "FAILED" in bad.stdout
