"""Step lists and people on scripted desktops: the records and the verdict."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from judge.api.desktop_trials import PERSON, TrialOptions, live_session, opened_trial
from judge.cli.desktop import desktop
from judge.desktop import sandboxed
from judge.desktop.contract import Signal
from judge.desktop.episodes import HUMAN, read_episodes
from judge.errors import JudgeError, SandboxError, StoreError, UsageError
from judge.sessions.live import Ending
from judge.suites import load_suite
from tests.conftest import REPOSITORY
from tests.fakes.desktop import DesktopScript, ScriptedDesktopHost

STEPS = REPOSITORY / "dataset" / "sample-desktop" / "steps"
PROFIT, IMPOSSIBLE = STEPS / "profit.yaml", STEPS / "impossible.yaml"


def gold(task: str = "profit") -> bytes:
    return load_suite("sample-desktop").task(task).cases[0].gold_path.read_bytes()


def untouched(task: str = "profit") -> bytes:
    return load_suite("sample-desktop").task(task).cases[0].input_path.read_bytes()


def judged(
    monkeypatch: pytest.MonkeyPatch, host: ScriptedDesktopHost, *arguments: object
) -> Result:
    monkeypatch.setattr(sandboxed, "open_desktops", lambda *_: host)
    given = [*map(str, arguments), "--sandbox", "bubblewrap"]
    return CliRunner().invoke(desktop, given)


def records(run: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (run / "submissions.jsonl").read_text().splitlines()]


def test_a_step_list_is_played_kept_and_judged(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    broken = SandboxError("the desktop broke")  # and another one is opened
    scripts = DesktopScript(left=gold()), DesktopScript(left=untouched())
    host = ScriptedDesktopHost([broken, *scripts])
    run = tmp_path / "run"
    done = judged(monkeypatch, host, "profit", "--steps", PROFIT, "--out", run)
    assert (done.exit_code, done.stdout) == (0, "AC accepted\n"), done.output
    assert "5/5 keys alt+enter" in done.stderr
    first, second = host.desktops[0], None
    assert first.task.opened == "/home/user/1_profit_input.xlsx"
    assert [each.code is not None for each in first.performed] == [True] * 5
    assert first.saved == 1
    assert first.closed

    done = judged(monkeypatch, host, "profit", "--steps", PROFIT, "--out", run)
    assert done.exit_code == 1
    assert done.stdout.startswith("WA ")
    assert "D2" in done.stdout
    second = host.desktops[1]
    assert second.closed
    found = [
        (each["sample"], each["model"], each["outputs"]["1"]["steps"]) for each in records(run)
    ]
    assert found == [(0, "step-list", 5), (1, "step-list", 5)]
    for number, episode in enumerate(read_episodes(run)):
        assert episode.head["sample"] == number
        assert episode.end is not None
        assert [turn["seen"]["table"] is not None for turn in episode.turns] == [True] * 5
    report = json.loads((run / "report.json").read_text())
    assert report["overall"]["verdicts"] == {"AC": 1, "WA": 1}


def test_saying_that_it_cannot_be_done_saves_nothing(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    script = DesktopScript(left=untouched())
    host = ScriptedDesktopHost([script, script])
    run = tmp_path / "run"
    done = judged(monkeypatch, host, "impossible", "--steps", IMPOSSIBLE, "--out", run)
    assert (done.exit_code, done.stdout) == (0, "AC accepted\n"), done.output
    assert [each.signal for each in host.desktops[0].performed] == [Signal.FAIL]
    assert host.desktops[0].saved == 0
    done = judged(monkeypatch, host, "profit", "--steps", IMPOSSIBLE, "--out", run)
    assert (done.exit_code, done.stdout[:2]) == (1, "WA")


def test_desktops_that_do_not_start_are_an_error_of_the_sandbox(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    host = ScriptedDesktopHost([SandboxError("the desktop broke")] * 3)
    done = judged(monkeypatch, host, "profit", "--steps", PROFIT, "--out", tmp_path / "run")
    assert isinstance(done.exception, SandboxError)
    assert not (tmp_path / "run").exists()


def test_nothing_is_kept_without_out(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    host = ScriptedDesktopHost([DesktopScript(left=gold())])
    done = judged(monkeypatch, host, "profit", "--steps", PROFIT)
    assert done.exit_code == 0, done.output
    assert list(tmp_path.iterdir()) == []


def test_a_step_that_cannot_be_played_leaves_an_episode_without_an_end(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("judge.desktop.steps._BETWEEN_S", 0)
    steps = tmp_path / "steps.yaml"
    steps.write_text("- click: {cell: A1}\n- click: {role: button, name: Away}\n")
    host = ScriptedDesktopHost([DesktopScript(left=gold())])
    done = judged(monkeypatch, host, "profit", "--steps", steps, "--out", tmp_path / "run")
    assert isinstance(done.exception, UsageError)
    assert host.desktops[0].closed
    (episode,) = read_episodes(tmp_path / "run")
    assert (len(episode.turns), episode.end) == (1, None)
    assert not (tmp_path / "run" / "submissions.jsonl").exists()


def options(run: Path, task: str = "profit", **more: Any) -> TrialOptions:
    return TrialOptions(task_id=task, out=run, sandbox="bubblewrap", **more)


@pytest.mark.parametrize(
    ("task", "ending", "left", "verdict"),
    [
        ("profit", Ending.DONE, gold, "AC"),
        ("profit", Ending.FAIL, gold, "WA"),
        ("profit", Ending.CLOSED, untouched, "WA"),
        ("impossible", Ending.FAIL, None, "AC"),
        ("impossible", Ending.DONE, None, "WA"),
        ("impossible", Ending.CLOSED, None, "WA"),
    ],
)
def test_a_person_gets_the_verdict_of_a_chat_model(
    task: str, ending: Ending, left: Any, verdict: str, tmp_path: Path
) -> None:
    chosen = options(tmp_path / "run", task)
    host = ScriptedDesktopHost([DesktopScript(left=left and left())])
    with (
        opened_trial(chosen, model=HUMAN, setting=PERSON) as trial,
        live_session(trial, host, chosen) as session,
    ):
        session.begin()
        session.feed([{"kind": "text", "detail": "x"}])
        session.finish(ending)
    assert session.result is not None
    assert session.result.verdict == verdict
    (record,) = records(tmp_path / "run")
    assert (record["model"], record["setting"], record["ended"]) == (HUMAN, PERSON, ending.value)
    assert record["outputs"]["1"]["steps"] == 1


def test_a_run_is_of_one_kind_and_a_task_has_its_cases(tmp_path: Path) -> None:
    chosen = options(tmp_path / "run", "impossible")
    host = ScriptedDesktopHost([DesktopScript()])
    with (
        opened_trial(chosen, model=HUMAN, setting=PERSON) as trial,
        live_session(trial, host, chosen) as session,
    ):
        session.finish(Ending.FAIL)
    with (
        pytest.raises(StoreError, match="holds the run of 'human'"),
        opened_trial(chosen, model="step-list", setting=PERSON),
    ):
        pass
    for task, case in (("profit", 2), ("nothing", None)):
        with (
            pytest.raises(JudgeError),
            opened_trial(options(tmp_path, task, case=case), model=HUMAN, setting=PERSON),
        ):
            pass


def test_cases_of_a_task_are_solved_one_after_the_other_for_one_sample(tmp_path: Path) -> None:
    suite = load_suite("sample-rules")
    run = tmp_path / "run"
    for number in (2, 1, 2):
        chosen = options(run, "chart", dataset="sample-rules", case=number)
        left = suite.task("chart").cases[number - 1].gold_path.read_bytes()
        host = ScriptedDesktopHost([DesktopScript(left=left)])
        with (
            opened_trial(chosen, model=HUMAN, setting=PERSON) as trial,
            live_session(trial, host, chosen) as session,
        ):
            session.finish(Ending.DONE)
        assert session.result is not None
        assert session.result.verdict == "AC"
    assert [(each["sample"], sorted(each["outputs"])) for each in records(run)] == [
        (0, ["1", "2"]),
        (1, ["2"]),
    ]
