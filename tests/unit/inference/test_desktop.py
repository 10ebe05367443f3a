"""Episodes with a scripted model on a scripted desktop: turns, messages, records, resume."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any, cast

import pytest

from judge.api.infer_options import InferOptions
from judge.api.inferring import dry_run
from judge.core.conversation import pictures_in
from judge.core.option import options_in
from judge.core.submission import AnswerForm
from judge.desktop.choices import OBSERVATION_FORMS
from judge.desktop.contract import ActionOutcome, DesktopOptions, Observation, Signal
from judge.desktop.episodes import EpisodeFiles, EpisodeWriter, read_episode, read_episodes
from judge.errors import InferenceError, SandboxError, StoreError
from judge.grading.store import RunDirectory
from judge.inference.calls import CALLS_FILE
from judge.inference.chat import CallError, ChatReply, ChatRequest
from judge.inference.pacing import Budget
from judge.inference.plan import Assignment
from judge.inference.run_records import FAILURES_FILE, InferenceRecords
from tests.fakes.chat_model import ScriptedModel
from tests.fakes.desktop import ELEMENTS, DesktopScript, Opening, tiny_png
from tests.inference.desktops import CLICK, DONE, FAIL, desktop_plan, run_desktop, submissions
from tests.inference.planning import MakePlan
from tests.unit.inference.toy_observation import WindowList

BROKEN = SandboxError("the desktop ended")


def _conversation(path: Path, task: str = "1", sample: int = 0) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((path / f"conversations/{task}.{sample}.json").read_text())
    return found


def test_a_task_is_done_in_turns(make_plan: MakePlan, tmp_path: Path) -> None:
    summary, model, host = run_desktop(desktop_plan(make_plan), tmp_path, [CLICK, CLICK, DONE])
    assert (summary.finished, summary.no_code, summary.failed) == (1, 0, 0)
    (desktop,) = host.desktops
    assert [each.code for each in desktop.performed] == ["pyautogui.click(1, 2)"] * 2
    assert desktop.closed
    assert desktop.saved == 1
    (name,) = desktop.task.files
    assert name == desktop.task.opened == desktop.task.collected == "/home/user/1_1_input.xlsx"
    (record,) = submissions(tmp_path)
    output = record["outputs"]["1"]
    assert record["setting"] == "desktop/screenshot/pyautogui"
    assert "solution" not in record
    assert (output["ended"], output["turns"], output["steps"], output["name"]) == (
        *("done", 3, 3, "1_1_input.xlsx"),
    )
    assert RunDirectory(tmp_path).get_workbook(output["sha256"]) == b"a workbook"
    episode = read_episode(tmp_path / output["episode"])
    assert [each["reply"] for each in episode.turns] == [CLICK, CLICK, DONE]
    assert [each["actions"][0].get("signal") for each in episode.turns] == [None, None, "DONE"]
    assert episode.turns[0]["actions"][0]["events"][0] == ["press", 48, 27, "left"]
    assert len({each["seen"]["screenshot"] for each in episode.turns}) == 3
    assert record["tokens"]["prompt"] > 0
    assert record["rounds"] == len(model.requests) == 3


@pytest.mark.parametrize("history", [0, 1, 3])
@pytest.mark.parametrize(
    ("observation", "space"),
    [
        *((form, "pyautogui") for form in ("screenshot", "tree", "screenshot+tree", "som")),
        *((form, "computer_13") for form in ("screenshot", "tree", "screenshot+tree")),
    ],
)
def test_messages_are_recorded_as_they_were_sent(
    make_plan: MakePlan, tmp_path: Path, observation: str, space: str, history: int
) -> None:
    plan = desktop_plan(
        make_plan, observation=observation, action_space=space, history=history, rounds=5
    )
    action = CLICK if space == "pyautogui" else '{"action_type": "CLICK", "x": 1, "y": 2}'
    _, model, host = run_desktop(plan, tmp_path, [action] * 5)
    conversation = _conversation(tmp_path)
    messages = conversation["messages"]
    assert [each["role"] for each in messages] == ["system", *["user", "assistant"] * 5]
    for number, (request, turn) in enumerate(
        zip(model.requests, conversation["rounds"], strict=True)
    ):
        assert [messages[each] for each in turn["sent"]] == list(request.messages)
        assert len(request.messages) == 2 + 2 * min(history, number)
        assert request.messages[-1]["role"] == "user"
    shown = [pictures_in(each["content"]) for each in messages if each["role"] == "user"]
    pictures = 0 if observation == "tree" else 1
    assert all(len(each) == pictures for each in shown)
    for number, parts in enumerate(shown):
        for part in parts:
            assert part["sha256"] == hashlib.sha256(tiny_png(number)).hexdigest()
            assert (tmp_path / "pictures" / f"{part['sha256']}.png").read_bytes() == tiny_png(
                number
            )
    texts = json.dumps(messages)
    assert ("table-cell" in texts) == (observation != "screenshot")
    assert ("tag_7" in texts) == (observation == "som")
    assert ("HOTKEY" in texts) == (space == "computer_13")
    assert all(marks == (observation == "som") for _, _, marks in host.desktops[0].looks)
    encoded = base64.b64encode(tiny_png(0))[:40]
    assert not [
        path for path in tmp_path.rglob("*") if path.is_file() and encoded in path.read_bytes()
    ]


def test_what_is_not_shown_is_recorded_all_the_same(make_plan: MakePlan, tmp_path: Path) -> None:
    run_desktop(desktop_plan(make_plan, observation="tree"), tmp_path, [DONE])
    (episode,) = read_episodes(tmp_path)
    seen = episode.turns[0]["seen"]
    files = EpisodeFiles(tmp_path)
    assert seen["screenshot"] is not None
    assert files.screenshot(seen["screenshot"]) == tiny_png(0)
    assert seen["table"] is not None
    assert (files.table(seen["table"]) or "").endswith("table-cell\tA1\tTotal\t(0, 8)\t(20, 6)")


def test_the_table_is_cut(make_plan: MakePlan, tmp_path: Path) -> None:
    plan = desktop_plan(make_plan, observation="tree", tree_tokens=40)
    run_desktop(plan, tmp_path, [DONE])
    (episode,) = read_episodes(tmp_path)
    assert episode.turns[0]["seen"]["cut"]
    assert "[…]" in _conversation(tmp_path)["messages"][1]["content"]


def test_an_observation_form_is_one_file_and_one_line(
    make_plan: MakePlan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(OBSERVATION_FORMS, "windows", f"{__name__}:WindowList")
    look = Observation(tiny_png(0), ELEMENTS, windows=("a.xlsx - LibreOffice Calc", "Format Cells"))
    plan = desktop_plan(make_plan, observation="windows")
    script = DesktopScript(observations=(look,), left=b"a workbook")
    _, model, _ = run_desktop(plan, tmp_path, [DONE], scripts=[script])
    first, shown = (str(message["content"]) for message in model.requests[0].messages)
    assert "The titles of the open windows, one on each line." in first
    assert shown == "Open windows:\na.xlsx - LibreOffice Calc\nFormat Cells\nTurns left: 15."
    assert submissions(tmp_path)[0]["setting"] == "desktop/windows/pyautogui"
    (episode,) = read_episodes(tmp_path)
    assert episode.turns[0]["seen"]["screenshot"] == hashlib.sha256(tiny_png(0)).hexdigest()
    assert "windows" in options_in(InferOptions)["observation"].choices()
    assert dry_run(plan).prompt_tokens[1] > 0
    reworded = cast("dict[str, Any]", plan.identity["desktop"])["observation_wording"]
    assert reworded == dict(WindowList.wording)  # another wording is another experiment


def test_marks_are_positions(make_plan: MakePlan, tmp_path: Path) -> None:
    reply = "```python\npyautogui.click(tag_1)\npyautogui.click(tag_99)\n```"
    _, _, host = run_desktop(desktop_plan(make_plan, observation="som"), tmp_path, [reply, DONE])
    assert ELEMENTS[1].centre == (5, 3)
    assert host.desktops[0].performed[0].code == (
        "tag_1 = (5, 3)\npyautogui.click(tag_1)\npyautogui.click(tag_99)"
    )


def test_several_actions_of_a_reply_end_with_done(make_plan: MakePlan, tmp_path: Path) -> None:
    reply = "```python\na()\n```\n```WAIT```\n```python\nb()\nDONE\n```\n```python\nc()\n```"
    _, _, host = run_desktop(desktop_plan(make_plan), tmp_path, [reply])
    performed = host.desktops[0].performed
    assert [each.code or each.signal for each in performed] == ["a()", Signal.WAIT, "b()"]
    (episode,) = read_episodes(tmp_path)
    assert len(episode.turns[0]["actions"]) == 4
    assert episode.end is not None
    assert episode.end["ended"] == "done"


def test_a_reply_without_an_action_costs_a_turn(make_plan: MakePlan, tmp_path: Path) -> None:
    plan = desktop_plan(make_plan, rounds=2)
    run_desktop(plan, tmp_path, ["I do not know.", "Still not."])
    (episode,) = read_episodes(tmp_path)
    assert "no fenced block" in episode.turns[0]["problem"]
    assert "Your last reply held no action" in str(_conversation(tmp_path)["messages"][3])
    assert episode.end is not None
    assert (episode.end["ended"], episode.end["turns"], episode.end["steps"]) == ("turns", 2, 0)


@pytest.mark.parametrize("feedback", [True, False])
def test_the_outcomes_of_actions_are_reported(
    make_plan: MakePlan, tmp_path: Path, feedback: bool
) -> None:
    outcomes = (
        ActionOutcome(error="Traceback\nNameError: x", printed="7\n"),
        ActionOutcome(error="import of os", refused=True),
        ActionOutcome(),
    )
    plan = desktop_plan(make_plan, execution_feedback=feedback)
    reply = "```python\na()\n```\n```python\nimport os\n```"
    run_desktop(plan, tmp_path, [reply, CLICK, DONE], scripts=[DesktopScript(outcomes=outcomes)])
    second, third = (str(_conversation(tmp_path)["messages"][number]) for number in (3, 5))
    for said in ("Action 1 failed", "NameError: x", "Action 1 printed", "Action 2 was not perf"):
        assert (said in second) == feedback
    assert "What became of" not in third
    (episode,) = read_episodes(tmp_path)
    assert bool(episode.turns[0]["told"]) == feedback
    assert episode.end is not None
    assert episode.end["steps"] == 3  # DONE is one, what was refused is not


def test_no_turn_begins_after_the_time_limit(make_plan: MakePlan, tmp_path: Path) -> None:
    plan = desktop_plan(make_plan, minutes=0.0)
    summary, model, _ = run_desktop(plan, tmp_path, [])
    (record,) = submissions(tmp_path)
    assert record["outputs"]["1"]["ended"] == record["ended"] == "time"
    assert model.requests == []
    assert summary.finished == 1


def test_a_conversation_that_is_too_long_ends_the_episode(
    make_plan: MakePlan, tmp_path: Path
) -> None:
    run_desktop(desktop_plan(make_plan), tmp_path, [CLICK, CallError("context-length", "long")])
    (record,) = submissions(tmp_path)
    assert record["ended"] == "context-length"
    assert record["outputs"]["1"]["sha256"]


def test_fail_is_the_answer_where_one_is_typed(make_plan: MakePlan, tmp_path: Path) -> None:
    plan = desktop_plan(make_plan, tasks=3)
    typed = tuple(
        Assignment(replace(each.question, answer=AnswerForm.TEXT), each.raw_id)
        for each in plan.assignments[:2]
    )
    plan = replace(plan, assignments=(*typed, plan.assignments[2]))
    run_desktop(plan, tmp_path, [FAIL, DONE, FAIL])
    first, second, third = submissions(tmp_path)
    assert (first["response"], second["response"]) == ("FAIL", "DONE")
    assert "response" not in third
    assert third["outputs"]["1"]["ended"] == "fail"


def test_every_case_has_its_episode(make_plan: MakePlan, tmp_path: Path) -> None:
    plan = desktop_plan(make_plan, cases=3)
    _, _, host = run_desktop(plan, tmp_path, [CLICK, DONE, DONE, CLICK, CLICK, DONE])
    assert [len(each.performed) for each in host.desktops] == [1, 0, 2]
    (record,) = submissions(tmp_path)
    assert [each["turns"] for each in record["outputs"].values()] == [2, 1, 3]
    conversation = _conversation(tmp_path)
    assert conversation["parts"] == [[1, 0], [2, 5], [3, 8]]
    assert [each["case"] for each in record["calls"]] == [1, 1, 2, 3, 3, 3]


# -- resume, and desktops that break ------------------------------------------------------------


class _KilledError(BaseException):
    """Stands for the end of the process."""


def _killing(monkeypatch: pytest.MonkeyPatch, owner: type, name: str, at: int) -> None:
    """Ends the process at the nth call of a method that writes."""
    real = getattr(owner, name)
    calls = 0

    def killed(*args: Any, **kwargs: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls == at:
            raise _KilledError
        return real(*args, **kwargs)

    monkeypatch.setattr(owner, name, killed)


@pytest.mark.parametrize(
    ("owner", "name", "at", "opened"),
    [
        (EpisodeWriter, "turn", 1, 2),
        (EpisodeWriter, "turn", 5, 1),
        (RunDirectory, "put_workbook", 2, 1),
        (InferenceRecords, "write_conversation", 2, 1),
        (EpisodeWriter, "end", 2, 1),
        (InferenceRecords, "append_submission", 1, 0),
    ],
)
def test_a_killed_run_continues_at_the_episode(
    make_plan: MakePlan,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    owner: type,
    name: str,
    at: int,
    opened: int,
) -> None:
    plan = desktop_plan(make_plan, cases=2)
    script = [CLICK, CLICK, DONE, CLICK, DONE]
    model = ScriptedModel(script)
    with monkeypatch.context() as patched:
        _killing(patched, owner, name, at)
        with pytest.raises((_KilledError, BaseExceptionGroup)):
            run_desktop(plan, tmp_path, model)
    asked = len(model.requests)
    summary, again, host = run_desktop(plan, tmp_path, ScriptedModel(script[asked:]))
    assert summary.finished == 1
    # The same is shown again, so that every reply so far is on record.
    assert asked + len(again.requests) == len(script)
    assert len(host.desktops) == opened
    (record,) = submissions(tmp_path)
    assert [each["turns"] for each in record["outputs"].values()] == [3, 2]
    conversation = _conversation(tmp_path)
    assert conversation["state"] == "finished"
    assert conversation["parts"] == [[1, 0], [2, 7]]
    assert [each["role"] for each in conversation["messages"]].count("assistant") == 5
    for turn in conversation["rounds"]:
        assert conversation["messages"][turn["sent"][0]]["role"] == "system"
        assert all(first < second for first, second in pairwise(turn["sent"]))
    assert len(record["calls"]) == 5
    assert all(each.end is not None for each in read_episodes(tmp_path))
    third, _, untouched = run_desktop(plan, tmp_path, [])
    assert (third.reused, untouched.desktops) == (1, [])


def test_an_episode_that_differs_is_run_again(
    make_plan: MakePlan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("judge.inference.episodes.PAUSE_S", 0.0)
    plan = desktop_plan(make_plan)
    first = DesktopScript(outcomes=(ActionOutcome(), BROKEN), left=b"never")
    second = DesktopScript(outcomes=(ActionOutcome(error="slow"),), left=b"in the end")
    other = "```python\nother()\n```"
    script = [
        ChatReply(text, prompt_tokens=10**place, completion_tokens=place, seconds=1.0)
        for place, text in enumerate([CLICK, CLICK, other, DONE], start=1)
    ]
    summary, model, host = run_desktop(plan, tmp_path, script, scripts=[first, second])
    # The first request is equal, and answered from the record; the second one is another.
    assert len(model.requests) == 4
    assert [each.code for each in host.desktops[1].performed] == [
        *("pyautogui.click(1, 2)", "other()"),
    ]
    (episode,) = read_episodes(tmp_path)
    assert episode.head["attempt"] == 1
    assert all(each.closed for each in host.desktops)
    calls = list(RunDirectory(tmp_path).read_records(CALLS_FILE))
    assert len(calls) == 4
    # What the lost turn took is the task's as well, so that tasks add up to the run.
    (record,) = submissions(tmp_path)
    said = [(each["prompt_tokens"], each.get("lost", False)) for each in record["calls"]]
    assert said == [(10, False), (1_000, False), (10_000, False), (100, True)]
    assert record["tokens"] == {"prompt": 11_110, "completion": 10}
    assert record["cost"] == pytest.approx(sum(float(str(each["cost"])) for each in calls))
    assert summary.tokens == 11_120
    assert (summary.calls, record["rounds"], record["seconds"]) == (4, 3, 4.0)
    assert "lost" not in str(_conversation(tmp_path)["calls"])


def test_desktops_that_break_are_a_failure_that_is_asked_again(
    make_plan: MakePlan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("judge.inference.episodes.PAUSE_S", 0.0)
    plan = desktop_plan(make_plan, tasks=2)
    scripts: list[Opening] = [
        DesktopScript(outcomes=(BROKEN,)),
        BROKEN,
        DesktopScript(left=BROKEN),
    ]
    script = [CLICK, DONE, DONE]
    summary, _, host = run_desktop(plan, tmp_path, script, scripts=scripts)
    assert (summary.failed, summary.finished) == (1, 1)
    (failure,) = RunDirectory(tmp_path).read_records(FAILURES_FILE)
    assert failure["problem"] == "desktop: the desktop ended"
    assert len(host.desktops) == 4  # two that opened, one to see whether any opens, one task
    assert _conversation(tmp_path)["state"] == "failed"
    again, _, _ = run_desktop(plan, tmp_path, [])
    assert (again.finished, again.reused) == (2, 1)


def test_a_run_ends_where_no_desktop_opens(
    make_plan: MakePlan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("judge.inference.episodes.PAUSE_S", 0.0)
    plan = desktop_plan(make_plan, tasks=3)
    with pytest.raises(SandboxError, match="ended"):
        run_desktop(plan, tmp_path, [], scripts=[BROKEN] * 4)
    with RunDirectory(tmp_path) as store:
        assert len(list(store.read_records(FAILURES_FILE))) == 1


def test_tampered_episodes_are_run_again(make_plan: MakePlan, tmp_path: Path) -> None:
    plan = desktop_plan(make_plan)
    run_desktop(plan, tmp_path, [DONE])
    (tmp_path / "submissions.jsonl").unlink()
    (output,) = (tmp_path / "workbooks").rglob("*.xlsx")
    output.write_bytes(b"forged")
    _, model, host = run_desktop(plan, tmp_path, [])
    assert len(host.desktops) == 1
    assert model.requests == []
    assert output.read_bytes() == b"a workbook"


def test_other_settings_do_not_continue_a_run(make_plan: MakePlan, tmp_path: Path) -> None:
    run_desktop(desktop_plan(make_plan), tmp_path, [DONE])
    for changes, named in (
        ({"history": 1}, "history: 3 before, 1 now"),
        ({"observation": "tree"}, "'screenshot' before, 'tree' now"),
        ({"desktop": DesktopOptions(clutter=2)}, "clutter: 0 before, 2 now"),
        ({"desktop": DesktopOptions(as_published=frozenset({"typing"}))}, "typing"),
        ({"desktop": DesktopOptions(gui_only=True)}, "gui_only: False before, True now"),
    ):
        with pytest.raises(StoreError, match="other settings") as failure:
            run_desktop(desktop_plan(make_plan, **changes), tmp_path, [])
        assert named in failure.value.message
    identity = (RunDirectory(tmp_path).read_run() or {})["inference"]
    assert identity is not None
    assert identity["desktop"] is not None
    assert identity["params"] == {"temperature": 1.0, "top_p": 0.9, "max_tokens": 1500}


def test_the_budget_holds(make_plan: MakePlan, tmp_path: Path) -> None:
    plan = desktop_plan(make_plan, tasks=3)
    summary, _, host = run_desktop(plan, tmp_path, [CLICK] * 9, budget=Budget(max_tokens=20_000))
    assert summary.stopped is not None
    assert summary.finished < 3
    assert all(each.closed for each in host.desktops)
    unfinished = [each for each in read_episodes(tmp_path) if each.end is None]
    assert len(unfinished) == 1


def test_a_model_that_takes_no_pictures(make_plan: MakePlan, tmp_path: Path) -> None:
    with pytest.raises(InferenceError, match="takes no pictures") as caught:
        run_desktop(desktop_plan(make_plan), tmp_path, [CallError("pictures", "no vision")])
    assert "--observation tree" in (caught.value.hint or "")


def test_several_episodes_at_a_time_do_not_mix(make_plan: MakePlan, tmp_path: Path) -> None:
    turns = 3

    def reply(request: ChatRequest) -> ChatReply:
        """Says which task was requested, and uses tokens that no other task uses."""
        (task,) = set(re.findall(r"/home/user/1_(\d+)_input", str(request.messages[0])))
        said = [each["content"] for each in request.messages if each["role"] == "assistant"]
        assert all(f"task {task}" in str(each) for each in said)
        number = len(said) + 1
        action = DONE if number == turns else CLICK
        text = f"task {task}, turn {number}: {action}"
        return ChatReply(text, prompt_tokens=1_000 * int(task), completion_tokens=number)

    plan = desktop_plan(make_plan, tasks=5, history=turns)
    summary, _, host = run_desktop(plan, tmp_path, [reply] * 5 * turns, concurrency=5, jobs=2)
    assert summary.finished == len(host.desktops) == 5
    assert all(each.closed for each in host.desktops)
    assert summary.prompt_tokens == turns * 1_000 * sum(range(1, 6))
    for record in submissions(tmp_path):
        task = str(record["id"])
        assert [(each["prompt_tokens"], each["completion_tokens"]) for each in record["calls"]] == [
            (1_000 * int(task), number) for number in range(1, turns + 1)
        ]
        episode = read_episode(tmp_path / record["outputs"]["1"]["episode"])
        opening = f"task {task}, turn "
        assert [turn["reply"].partition(":")[0] for turn in episode.turns] == [
            f"{opening}{number}" for number in range(1, turns + 1)
        ]
        conversation = str(_conversation(tmp_path, task))
        assert set(re.findall(r"task \d+, turn ", conversation)) == {opening}


def test_gui_only_is_stated_and_passed_on(make_plan: MakePlan, tmp_path: Path) -> None:
    plan = desktop_plan(make_plan, desktop=DesktopOptions(gui_only=True))
    _, _, host = run_desktop(plan, tmp_path, [DONE])
    assert (
        "Only mouse and keyboard may be used" in _conversation(tmp_path)["messages"][0]["content"]
    )
    assert host.desktops[0].options.gui_only
    assert submissions(tmp_path)[0]["outputs"]["1"]["gui_only"] is True


def test_a_dry_run_shows_the_first_message(make_plan: MakePlan) -> None:
    plan = desktop_plan(make_plan, tasks=2, observation="som", history=1, tree_tokens=500)
    found = dry_run(plan)
    assert found.calls == (2, 30)
    first = sum(each.tokens for each in found.prompts)
    # A picture of 1,000 tokens and the table each turn, and from the second on those of the last.
    shown, reply = 2 * 1_500, 2 * 700
    assert found.prompt_tokens == (first + shown, 15 * first + 29 * shown + 14 * reply)
    assert "/home/user/1_1_input.xlsx" in (found.prompts[0].text or "")
