"""Runs on desktops from the first request to the report: judged, rejudged, compared, replayed."""

from __future__ import annotations

import asyncio
import hashlib
import io
import json
import multiprocessing
import os
import re
import signal
import zipfile
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from judge.api.commands import score
from judge.api.infer_options import InferOptions
from judge.api.inferring import make_plan as plan_of_options
from judge.api.options import ScoreOptions
from judge.api.planning import resume
from judge.api.rejudging import rejudge
from judge.api.replaying import replay
from judge.api.runs import compare_runs
from judge.cli.infer import infer
from judge.cli.score import score as score_command
from judge.core.verdict import Verdict
from judge.desktop.contract import ActionOutcome, DesktopTask
from judge.desktop.episodes import EpisodeWriter, read_episodes
from judge.errors import IncompleteRunError, SandboxError, UsageError
from judge.grading.store import RunDirectory
from judge.inference.plan import InferencePlan
from judge.inference.run import Resources, run_inference
from judge.inference.started import StartedRuns
from judge.report.report import report_data
from judge.suites import load_suite
from tests.e2e.conftest import require_backend
from tests.fakes.chat_model import Line, ScriptedModel
from tests.fakes.desktop import DesktopScript, Opening, ScriptedDesktopHost
from tests.inference.desktops import CLICK, DONE, FAIL, desktop_plan, run_desktop, submissions
from tests.inference.planning import MakePlan
from tests.unit.report.runs import TaskSpec, book, make_suite

IDS = ("1001", "1002")


def _ask(
    out: Path,
    script: Iterable[Line],
    host: ScriptedDesktopHost,
    dataset: str = "sample",
    ids: tuple[str, ...] = IDS,
) -> InferencePlan:
    """Runs a scripted model on two tasks of the sample suite, or of another suite."""
    options = InferOptions(
        model="scripted",
        base_url="http://127.0.0.1:9/v1",
        mode="desktop",
        dataset=dataset,
        ids=ids,
        observation="tree",
        out=out,
    )
    plan = plan_of_options(resume(options)).plan
    with RunDirectory(out) as store:
        resources = Resources(ScriptedModel(script), desktops=host, jobs=1, concurrency=1)
        summary = asyncio.run(run_inference(plan, store, resources))
    assert summary.is_complete
    return plan


def _gold(task: DesktopTask) -> DesktopScript:
    """A desktop that leaves the gold of the case that it was opened for."""
    for each in load_suite("sample").tasks:
        for case in each.cases:
            if task.opened.endswith(f"/{case.input_path.name}"):
                return DesktopScript(left=case.gold_path.read_bytes())
    raise AssertionError(task.opened)


@pytest.mark.bubblewrap
def test_from_the_first_request_to_the_report(tmp_path: Path) -> None:
    cases = [len(load_suite("sample").task(each).cases) for each in IDS]
    replies = [*[CLICK, DONE] * cases[0], *[FAIL] * cases[1]]
    _ask(tmp_path / "run", replies, ScriptedDesktopHost([_gold] * sum(cases)))
    options = ScoreOptions(sandbox="bubblewrap", recalc="never", jobs=1)
    (run,) = score(tmp_path / "run", options)
    assert run.problem is None
    assert [each.verdict for each in run.results] == [
        *[Verdict.AC] * cases[0],
        *[Verdict.WA] * cases[1],
    ]
    assert run.results[-1].cause == "it was answered that the task cannot be done"
    assert run.report["run"].get("setting") == "desktop/tree/pyautogui"
    (again,) = score(tmp_path / "run", options)
    assert again.reused == sum(cases)
    rejudged = rejudge(tmp_path / "run", jobs=1, sandbox="bubblewrap", recalc="never")
    assert [each.changed for each in rejudged.cases] == [False] * sum(cases)
    assert [each.unproven for each in rejudged.cases] == [""] * sum(cases)
    assert report_data(tmp_path / "run").run["setting"] == "desktop/tree/pyautogui"
    assert compare_runs(tmp_path / "run", tmp_path / "run")
    # Its submissions are judged elsewhere as well, with the files.
    options = replace(options, out=tmp_path / "other", dataset="sample")
    (other,) = score(tmp_path / "run/submissions.jsonl", options)
    assert [each.verdict for each in other.results] == [each.verdict for each in run.results]


def test_fail_is_right_where_nothing_can_be_done(tmp_path: Path) -> None:
    """Of two tasks that cannot be done, the one without its workbook is not run."""
    suite = tmp_path / "suite"
    folder = suite / "evaluation_examples/examples/libreoffice_calc"
    for task_id in ("there", "absent"):
        upload = {"url": "https://example.org/book.xlsx", "path": "/home/user/book.xlsx"}
        folder.mkdir(parents=True, exist_ok=True)
        record = {
            "id": task_id,
            "instruction": "Make the sheet sing.",
            "config": [{"type": "download", "parameters": {"files": [upload]}}],
            "evaluator": {"func": "infeasible"},
        }
        (folder / f"{task_id}.json").write_text(json.dumps(record))
    (folder / "there").mkdir()
    (folder / "there/book.xlsx").write_bytes(book(((1,),)))
    for name, reply, verdict in (("right", FAIL, Verdict.AC), ("wrong", DONE, Verdict.WA)):
        out = tmp_path / name
        plan = _ask(out, [reply], ScriptedDesktopHost([DesktopScript(left=b"x")]), str(suite), ())
        assert plan.desktop is not None
        assert [task for task, _ in plan.desktop.left_out] == ["absent"]
        assert "book.xlsx" in plan.desktop.left_out[0][1]
        (run,) = score(out, ScoreOptions(recalc="never", jobs=1))
        assert [each.verdict for each in run.results] == [verdict]
        left_out = json.loads((out / "run.json").read_text())["inference"]["left_out"]
        assert left_out.keys() == {"absent"}


def test_replay_says_what_differs(tmp_path: Path) -> None:
    cases = len(load_suite("sample").task("1001").cases)
    all_cases = sum(len(load_suite("sample").task(each).cases) for each in IDS)
    _ask(tmp_path, [CLICK, DONE] * all_cases, ScriptedDesktopHost([_gold] * all_cases))
    options = ScoreOptions(recalc="never", jobs=1, ids=("1001",))
    same = replay(tmp_path, options, desktops=ScriptedDesktopHost([_gold] * cases))
    assert [(each.before, each.after, each.same_file) for each in same] == [
        (Verdict.AC, Verdict.AC, True)
    ] * cases
    assert all(each.agrees and not each.differing for each in same)
    assert all(each.turns == 2 for each in same)

    def other(task: DesktopTask) -> DesktopScript:
        looks = ScriptedDesktopHost([DesktopScript()]).open(task, _options()).observe()
        assert looks.elements is not None
        fewer = replace(looks, elements=looks.elements[:-1])
        return DesktopScript(
            observations=(looks, fewer),
            outcomes=(ActionOutcome(error="it is not there"),),
            left=task.files[task.opened],
        )

    scripts: list[Opening] = [other, SandboxError("it ended"), *[_gold] * (cases - 2)]
    first, second, *_ = replay(tmp_path, options, desktops=ScriptedDesktopHost(scripts))
    assert (first.before, first.after, first.same_file) == (Verdict.AC, Verdict.WA, False)
    assert [(each.number, each.lines, each.outcomes) for each in first.differing] == [
        (1, 0, (1,)),
        (2, 1, ()),
    ]
    assert not first.agrees
    assert (second.problem, second.agrees) == ("it ended", False)
    with pytest.raises(UsageError, match="no episodes"):
        replay(tmp_path / "nothing", replace(options, dataset="sample"))


def test_the_command_that_replays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cases = len(load_suite("sample").task("1001").cases)
    _ask(tmp_path, [DONE] * cases, ScriptedDesktopHost([_gold] * cases), ids=("1001",))

    def said(*scripts: Opening) -> Result:
        host = ScriptedDesktopHost(scripts, always=DesktopScript())
        monkeypatch.setattr("judge.api.replaying.open_desktops", lambda *_: host)
        arguments = [str(tmp_path), "--replay", "--recalc", "never", "--jobs", "1"]
        return CliRunner().invoke(score_command, [*arguments, *(() if scripts else ("--json",))])

    before = sorted(tmp_path.rglob("*"))
    same = said(*[_gold] * cases)
    assert same.exit_code == 0, same.output
    assert f"{cases} episodes performed again" in same.output
    other = said()
    assert isinstance(other.exception, IncompleteRunError)
    assert [each["after"] for each in json.loads(other.stdout)] == ["NO"] * cases
    for option in ("--cluster=local:2", f"--out={tmp_path}/other", "--best-of"):
        refused = CliRunner().invoke(score_command, [str(tmp_path), "--replay", option])
        assert isinstance(refused.exception, UsageError)
        assert option.partition("=")[0] in refused.exception.message
    assert sorted(tmp_path.rglob("*")) == before


def _options() -> Any:
    from judge.desktop.contract import DesktopOptions  # noqa: PLC0415

    return DesktopOptions()


def _run_and_die(plan: Any, path: Path, replies: list[str], at: int) -> None:
    real, calls = EpisodeWriter.turn, 0

    def turn(self: EpisodeWriter, *args: Any, **kwargs: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls == at:
            os.kill(os.getpid(), signal.SIGKILL)
        return real(self, *args, **kwargs)

    EpisodeWriter.turn = turn  # type: ignore[method-assign]
    run_desktop(plan, path, replies)


def test_the_process_killed_in_the_middle_of_an_episode(
    make_plan: MakePlan, tmp_path: Path
) -> None:
    plan = desktop_plan(make_plan, tasks=2)
    replies: list[Line] = [CLICK, DONE, CLICK, CLICK, DONE]
    process = multiprocessing.get_context("fork").Process(
        target=_run_and_die, args=(plan, tmp_path, replies, 4)
    )
    process.start()
    process.join(120)
    assert process.exitcode == -signal.SIGKILL
    unfinished = [each.key for each in read_episodes(tmp_path) if each.end is None]
    assert unfinished == [("2", 0, 1)]
    summary, model, host = run_desktop(plan, tmp_path, replies[4:])
    assert (summary.finished, summary.reused, len(host.desktops)) == (2, 1, 1)
    assert len(model.requests) == 1
    assert [each["rounds"] for each in submissions(tmp_path)] == [2, 3]


def test_options_that_do_not_go_together(tmp_path: Path) -> None:
    def said(*arguments: str) -> str:
        common = ["--model", "m", "--base-url", "http://127.0.0.1:9/v1", "--out", str(tmp_path)]
        done = CliRunner().invoke(infer, [*common, *arguments])
        assert isinstance(done.exception, UsageError), done.output
        return done.exception.message

    desktop = ("--mode", "desktop")
    assert "som with --action-space computer_13" in said(
        *desktop, "--observation", "som", "--action-space", "computer_13"
    )
    assert "--clutter belongs to --mode desktop" in said("--clutter", "2")
    assert "--gui-only belongs to" in said("--mode", "multi", "--gui-only")
    assert "--rows does not belong to" in said(*desktop, "--rows", "3")
    assert "--batch does not belong to" in said(*desktop, "--batch")
    assert "--screen 12" in said(*desktop, "--screen", "12")
    assert "does not fit into the screen" in said(*desktop, "--window", "1800,0,400x400")
    refused = CliRunner().invoke(infer, [*desktop, "--model", "m", "--as-published", "nothing"])
    assert refused.exit_code == 2
    assert "'--as-published': 'nothing' is not one of" in refused.output
    assert "can be asked on a desktop" in said(*desktop, "--dataset", "sample-typed")


def test_the_properties_of_a_desktop_are_recorded(tmp_path: Path) -> None:
    options = InferOptions(
        model="m",
        base_url="http://127.0.0.1:9/v1",
        mode="desktop",
        out=tmp_path,
        screen="1280x720",
        window="10,20,800x600",
        clutter=3,
        as_published=("typing", "menus"),
        gui_only=True,
        minutes=5,
        history=0,
    )
    plan = plan_of_options(resume(options)).plan
    identity = json.loads(json.dumps(plan.identity))["desktop"]
    assert identity["options"] == {
        "width": 1280,
        "height": 720,
        "as_published": ["menus", "typing"],
        "gui_only": True,
        "window": {"x": 10, "y": 20, "width": 800, "height": 600},
        "clutter": 3,
        "action_s": 60.0,
        "memory_bytes": 1610612736,
    }
    assert (identity["setting"]["minutes"], identity["setting"]["history"]) == (5, 0)
    assert identity["setting"]["temperature"] == 1.0


def _forged() -> bytes:
    """B2 is `=1+1`, stored with the gold's value 1. "LibreOffice" wrote the file."""
    rows = (("Name", "Amount"), ("Ann", "=1+1"), ("Bob", 2), ("Cyd", 3))
    buffer = io.BytesIO()
    with (
        zipfile.ZipFile(io.BytesIO(book(rows))) as source,
        zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as target,
    ):
        for name in source.namelist():
            data = source.read(name)
            data = data.replace(b"<f>1+1</f><v></v>", b"<f>1+1</f><v>1</v>")
            data = data.replace(b"<f>1+1</f><v />", b"<f>1+1</f><v>1</v>")
            data = data.replace(b' fullCalcOnLoad="1"', b"")
            if name == "docProps/app.xml":
                data = re.sub(b"<Application>[^<]*<", b"<Application>LibreOffice/7.4<", data)
            target.writestr(name, data)
    return buffer.getvalue()


@pytest.fixture
def forged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, str]:
    """A folder for a stranger's run, and a suite with one task."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    suite = make_suite(tmp_path / "suite", [TaskSpec("1", cases=1)])
    return tmp_path / "theirs", str(suite.root)


def _verdicts(run: Path, suite: str, **more: Any) -> list[str]:
    """The verdicts after scoring a run, rejudging it, and rejudging a run that it names."""
    options = ScoreOptions(dataset=suite, sandbox="bubblewrap", jobs=1, **more)
    (scored,) = score(run, options)
    found = [each.verdict.value for each in scored.results]
    chosen = {"dataset": suite, "sandbox": "bubblewrap", "jobs": 1, **more}
    found += [each.after.verdict.value for each in rejudge(run, **chosen).cases]
    if (run / "submissions.jsonl").is_file():
        again = rejudge(run, rerun=True, **chosen)
        found += [each.after.verdict.value for each in again.cases]
    return found


@pytest.mark.bubblewrap
def test_that_only_the_mouse_was_used_is_not_evidence_in_a_folder(forged: tuple[Path, str]) -> None:
    """`=1+1` stored with the gold's value, which used to be trusted if the record said so."""
    require_backend("bubblewrap")
    run, suite = forged
    with RunDirectory(run) as store:
        digest = store.put_workbook(_forged())
        outputs = {"1": {"sha256": digest, "name": "a.xlsx", "gui_only": True}}
        store.append("submissions.jsonl", {"id": "1", "outputs": outputs})
        inference = {"desktop": {"gui_only": True}, "options": {"gui_only": True}}
        store.write_run({"inference": inference, "values": "stored"})
    assert _verdicts(run, suite) == ["WA"] * 3
    # Asked for by name it counts, and the head says so.
    assert _verdicts(run, suite, trust_values=True) == ["AC"] * 3
    found = rejudge(run, dataset=suite, trust_values=True, sandbox="bubblewrap")
    assert "values stored in outputs were trusted" in found.after["departures"]
    assert [each.changed for each in found.cases] == [False]
    # The record that was made by it is none of these rules.
    back = rejudge(run, dataset=suite, sandbox="bubblewrap")
    assert [(each.changed, each.contradicted) for each in back.cases] == [(True, False)]
    assert back.not_taken == ("values stored in outputs were trusted",)


@pytest.mark.bubblewrap
def test_a_users_own_gui_only_episodes_keep_their_values(forged: tuple[Path, str]) -> None:
    """What this user requested on this machine is recorded in the user's state folder."""
    require_backend("bubblewrap")
    run, suite = forged
    with RunDirectory(run) as store:
        digest = store.put_workbook(_forged())
        outputs = {"1": {"sha256": digest, "name": "a.xlsx", "gui_only": True}}
        store.append("submissions.jsonl", {"id": "1", "outputs": outputs})
    StartedRuns().note(run, {"gui_only": True})
    assert _verdicts(run, suite) == ["AC"] * 3


@pytest.mark.bubblewrap
@pytest.mark.parametrize("claim", ["a folder of finished workbooks", "a finished record"])
def test_that_an_output_was_finished_elsewhere_is_not_evidence_in_a_folder(
    forged: tuple[Path, str], claim: str
) -> None:
    require_backend("bubblewrap")
    run, suite = forged
    output = _forged()  # once: a workbook made a second later holds another time
    digest = hashlib.sha256(output).hexdigest()
    with RunDirectory(run) as store:
        store.put_workbook(output)
        record = {"task": "1", "sample": 0, "case": 1, "verdict": "AC", "cause": ""}
        ran = {"status": "finished", "origin": "finished", "output_sha256": digest}
        store.append("cases.jsonl", {**record, "run": ran})
        run_document: dict[str, Any] = {"suite": {"name": "s", "digest": load_suite(suite).digest}}
        if claim == "a finished record":
            store.append("submissions.jsonl", {"id": "1", "solution": "pass"})
        else:
            (run / "outputs").mkdir()
            (run / "outputs/1_1_output.xlsx").write_bytes(output)
            run_document |= {"outputs": str(run / "outputs"), "values": "stored"}
        store.write_run(run_document)
    chosen: dict[str, Any] = {"dataset": suite, "sandbox": "bubblewrap", "jobs": 1}
    (again,) = rejudge(run, **chosen).cases
    assert (again.before.verdict, again.after.verdict) == (Verdict.AC, Verdict.WA)
    if claim == "a folder of finished workbooks":
        assert _verdicts(run, suite) == ["WA"] * 2
        assert _verdicts(run, suite, trust_values=True) == ["AC"] * 2
        # Whoever names the folder says that the workbooks are finished, and may go on so.
        mine = run.parent / "mine"
        (scored,) = score(run / "outputs", ScoreOptions(**chosen, out=mine))
        assert [each.verdict for each in scored.results] == [Verdict.AC]
        (scored,) = score(mine, ScoreOptions(**chosen))
        assert scored.reused == 1
        assert not rejudge(mine, **chosen).changed
