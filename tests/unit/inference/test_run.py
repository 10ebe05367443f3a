from __future__ import annotations

import asyncio
import gc
import json
import re
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from judge.api.infer_options import InferOptions
from judge.api.inferring import make_plan as plan_of_options
from judge.api.planning import resume
from judge.core.task import InputFile, TestCase
from judge.errors import InferenceError, SandboxError, StoreError
from judge.grading.store import SUBMISSIONS_FILE, RunDirectory
from judge.inference.calls import CALLS_FILE, ReplyCache
from judge.inference.chat import CallError, ChatReply, ChatRequest
from judge.inference.pacing import Budget
from judge.inference.plan import InferencePlan
from judge.inference.run import Resources, run_inference
from judge.inference.run_records import (
    FAILURES_FILE,
    InferenceEvent,
    InferenceRecords,
    InferenceSummary,
    Listeners,
)
from judge.sandbox.contract import OutputStatus, RunRequest, RunResult, RunStatus
from judge.sandbox.scripted import ScriptedSandbox
from judge.suites import load_suite
from tests.fakes.chat_model import Line, ScriptedModel
from tests.inference.planning import MakePlan, code

SOLVED = RunResult(RunStatus.OK, OutputStatus.COLLECTED, output=b"x")
PRINTED = RunResult(RunStatus.OK, OutputStatus.MISSING, stdout=b"['Data']\n")
FAILED = RunResult(
    RunStatus.EXITED, OutputStatus.MISSING, exit_code=1, stderr=b"Traceback\nKeyError: 'x'"
)


def run(
    plan: InferencePlan,
    path: Path,
    model: ScriptedModel,
    listeners: Listeners | None = None,
    **resources: Any,
) -> InferenceSummary:
    resources.setdefault("concurrency", 1)
    with RunDirectory(path) as store:
        return asyncio.run(run_inference(plan, store, Resources(model, **resources), listeners))


def always(text: Line, count: int = 100) -> ScriptedModel:
    return ScriptedModel([text] * count)


def records(path: Path, name: str = SUBMISSIONS_FILE) -> list[dict[str, Any]]:
    return list(RunDirectory(path).read_records(name))


def test_single(make_plan: MakePlan, tmp_path: Path) -> None:
    model = always(code("1"))
    events: list[InferenceEvent] = []
    submitted: list[dict[str, Any]] = []
    listeners = Listeners(on_event=events.append, on_submission=submitted.append)
    summary = run(make_plan(), tmp_path, model, listeners)
    assert (summary.finished, summary.total, summary.calls) == (5, 5, 5)
    assert summary.is_complete
    found = records(tmp_path)
    assert found == submitted
    first = found[0]
    assert (first["id"], first["sample"], first["setting"]) == (1, 0, "single")
    assert first["input_path"] == "/mnt/data/input/1_1_input.xlsx"
    assert first["solution"].startswith("workbook = 1\n")
    assert first["reply"] == code("1")
    assert first["tokens"]["prompt"] > 100
    assert first["cost"] == pytest.approx(
        (first["tokens"]["prompt"] + 2 * first["tokens"]["completion"]) / 1e6
    )
    conversation = json.loads((tmp_path / first["conversation"]).read_text())
    assert conversation["state"] == "finished"
    assert [each["role"] for each in conversation["messages"]] == ["user", "assistant"]
    prompt = conversation["messages"][0]["content"]
    assert "Sum up the amounts of task 1." in prompt
    assert "row 4" in prompt
    assert "row 5" not in prompt
    assert [event.done for event in events] == [1, 2, 3, 4, 5]
    document = RunDirectory(tmp_path).read_run()
    assert document is not None
    assert document["suite"]["digest"] == "0" * 64  # type: ignore[index]
    assert document["setting"] == "single"


@pytest.mark.parametrize(
    ("feedback", "has_rows", "may_look"),
    [("row-exec", True, False), ("react-exec", False, True), ("row-react-exec", True, True)],
)
def test_multi(
    make_plan: MakePlan, tmp_path: Path, feedback: str, has_rows: bool, may_look: bool
) -> None:
    plan = make_plan("multi", feedback)
    plan = replace(plan, assignments=plan.assignments[:1])
    model = always(code("1"))
    sandbox = ScriptedSandbox([PRINTED, FAILED, SOLVED])
    run(plan, tmp_path, model, sandbox=sandbox)
    assert len(model.requests) == 3
    prompt = model.requests[0].messages[0]["content"]
    assert ("row 3" in prompt) is has_rows
    assert ("Look: read the workbook" in prompt) is may_look
    assert "5 rounds" in prompt
    assert "['Data']" in model.requests[1].messages[-1]["content"]
    assert "KeyError: 'x'" in model.requests[2].messages[-1]["content"]
    (record,) = records(tmp_path)
    assert (record["ended"], record["rounds"], record["stands_alone"]) == ("output", 3, True)
    # Only the first case's input is in the sandbox.
    for request in sandbox.requests:
        (placed,) = request.files.values()
        assert placed == plan.assignments[0].question.inputs[0].path.read_bytes()
        assert list(request.files) == ["/mnt/data/input/1_1_input.xlsx"]
        assert request.collect == "/mnt/data/output/1_1_output.xlsx"


def test_text_asks_once_per_distinct_case(make_plan: MakePlan, tmp_path: Path) -> None:
    plan = make_plan("text")
    plan = replace(plan, assignments=plan.assignments[:1])
    model = ScriptedModel(["B12: 1", "B12: 2", "I cannot say"])
    summary = run(plan, tmp_path, model)
    assert summary.finished == 1
    prompts = [request.messages[0]["content"] for request in model.requests]
    assert ["1100" in prompt for prompt in prompts] == [True, False, False]
    assert ["1300" in prompt for prompt in prompts] == [False, False, True]
    (record,) = records(tmp_path)
    assert record["solution"].count("'B12', ") == 2
    assert [call["case"] for call in record["calls"]] == [1, 2, 3]


def test_a_finished_task_is_never_asked_again(make_plan: MakePlan, tmp_path: Path) -> None:
    plan = make_plan()
    failing = ScriptedModel(
        [code("1"), code("2"), CallError("gave-up", "no"), code("4"), code("5")]
    )
    first = run(plan, tmp_path, failing)
    assert (first.finished, first.failed) == (4, 1)
    assert not first.is_complete
    assert first.failures == {"3": "no"}
    (failure,) = records(tmp_path, FAILURES_FILE)
    assert (failure["id"], failure["problem"]) == (3, "no")
    conversation = InferenceRecords(RunDirectory(tmp_path)).read_conversation("3", 0)
    assert conversation is not None
    assert conversation["state"] == "failed"
    assert conversation["messages"][0]["role"] == "user"
    again = always(code("3"))
    second = run(plan, tmp_path, again)
    assert len(again.requests) == 1
    assert "task 3" in again.requests[0].messages[0]["content"]
    assert (second.finished, second.reused) == (5, 4)
    third = run(plan, tmp_path, ScriptedModel([]))
    assert third.reused == 5
    assert third.tokens == second.tokens


def test_a_conversation_that_was_cut_off_is_played_again(
    make_plan: MakePlan, tmp_path: Path
) -> None:
    plan = make_plan("multi")
    plan = replace(plan, assignments=plan.assignments[:1])
    first = ScriptedModel([code("1"), CallError("gave-up", "no")])
    run(plan, tmp_path, first, sandbox=ScriptedSandbox([PRINTED]))
    second = ScriptedModel([code("1", "second = 2")])
    summary = run(plan, tmp_path, second, sandbox=ScriptedSandbox([PRINTED, SOLVED]))
    assert summary.is_complete
    assert len(second.requests) == 1
    assert len(second.requests[0].messages) == 3
    (record,) = records(tmp_path)
    assert record["rounds"] == 2
    assert len(record["calls"]) == 2


def test_one_bad_task_never_ends_a_run(
    make_plan: MakePlan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = make_plan()
    broken = tmp_path / "broken.xlsx"
    broken.write_bytes(b"no workbook")
    second = plan.assignments[1]
    inputs = (replace(second.question.inputs[0], files=(InputFile(broken),)),)
    bad = replace(second, question=replace(second.question, inputs=inputs))
    plan = replace(plan, assignments=(plan.assignments[0], bad, *plan.assignments[2:]))

    def fall_over(_: ChatRequest) -> str:
        raise RuntimeError("a fault of ours")

    model = ScriptedModel([code("1"), fall_over, code("4"), code("5")])
    summary = run(plan, tmp_path / "out", model)
    assert (summary.finished, summary.failed) == (3, 2)
    assert "broken.xlsx" in summary.failures["2"]
    assert summary.failures["3"] == "RuntimeError: a fault of ours"


def test_access_denied_stops_the_run(make_plan: MakePlan, tmp_path: Path) -> None:
    model = ScriptedModel([code("1"), CallError("access", "wrong key")])
    with pytest.raises(InferenceError, match="wrong key"):
        run(make_plan(), tmp_path, model)
    assert len(model.requests) == 2
    assert run(make_plan(), tmp_path, always(code("1"))).reused == 1


def test_the_budget_stops_cleanly_and_can_be_raised(make_plan: MakePlan, tmp_path: Path) -> None:
    model = always(code("1"))
    one = run(replace(make_plan(), assignments=make_plan().assignments[:1]), tmp_path, model)
    budget = Budget(max_tokens=int(one.tokens * 4.5) + 800)
    stopped = run(make_plan(), tmp_path, model, budget=budget)
    assert stopped.stopped == "the budget is used up"
    assert stopped.finished == 4
    assert stopped.unasked == 1
    assert stopped.tokens <= (budget.max_tokens or 0)
    rest = run(make_plan(), tmp_path, model, budget=Budget(max_cost=10.0))
    assert rest.is_complete
    assert len(model.requests) == 5


def test_samples_are_distinct_submissions(make_plan: MakePlan, tmp_path: Path) -> None:
    plan = replace(make_plan(samples=3), params={"seed": 7})
    model = always(code("1"))
    summary = run(plan, tmp_path, model)
    assert summary.total == summary.finished == 15
    assert {(each["id"], each["sample"]) for each in records(tmp_path)} == {
        (task, sample) for task in range(1, 6) for sample in range(3)
    }
    seeds = sorted({request.params["seed"] for request in model.requests})
    assert seeds == [7, 8, 9]


def test_repeatable_requests_are_paid_once(make_plan: MakePlan, tmp_path: Path) -> None:
    cache = ReplyCache(tmp_path / "cache")
    plan = replace(make_plan(), params={"temperature": 0})
    run(plan, tmp_path / "a", always(code("1")), cache=cache)
    nobody = ScriptedModel([])
    summary = run(plan, tmp_path / "b", nobody, cache=cache)
    assert summary.is_complete
    assert (summary.tokens, summary.cost) == (0, 0.0)
    assert records(tmp_path / "b")[0]["solution"] == records(tmp_path / "a")[0]["solution"]
    elsewhere = ScriptedModel([code("1")] * 5, endpoint="http://elsewhere/v1")
    run(plan, tmp_path / "c", elsewhere, cache=cache)
    assert len(elsewhere.requests) == 5
    hot = replace(make_plan(), params={"temperature": 0.5})
    asked = always(code("1"))
    run(hot, tmp_path / "d", asked, cache=cache)
    run(hot, tmp_path / "e", asked, cache=cache)
    assert len(asked.requests) == 10


def test_counts_of_what_went_wrong(make_plan: MakePlan, tmp_path: Path) -> None:
    model = ScriptedModel(
        [
            code("1"),
            "I cannot",
            ChatReply("```python\nx = (", "length", 10, 10),
            ChatReply(code("4"), "stop", 10, 10, attempts=3, faults=("a", "b")),
            CallError("context-length", "too long"),
        ]
    )
    summary = run(make_plan(), tmp_path, model)
    assert (summary.finished, summary.no_code, summary.truncated, summary.retries) == (5, 2, 1, 2)
    assert summary.over_length == 1
    last = records(tmp_path)[-1]
    assert (last["ended"], last["solution"]) == ("context-length", None)


def test_servers_that_do_not_count_are_held_to_the_budget(
    make_plan: MakePlan, tmp_path: Path
) -> None:
    summary = run(make_plan(), tmp_path, always(ChatReply(code("1"))))
    assert summary.tokens > 1000
    assert summary.prompt_tokens == 0
    assert all(call["estimated"] for call in records(tmp_path, CALLS_FILE))


def test_another_run_in_the_same_directory_is_refused(make_plan: MakePlan, tmp_path: Path) -> None:
    run(make_plan(), tmp_path, always(code("1")))
    hotter = replace(make_plan(), params={"temperature": 0.2})
    with pytest.raises(StoreError, match=r"params\.temperature: 1\.0 before, 0\.2 now"):
        run(hotter, tmp_path, ScriptedModel([]))
    other = replace(make_plan(), suite=replace(make_plan().suite, digest="1" * 64))
    with pytest.raises(StoreError, match="belongs to the suite"):
        run(other, tmp_path, ScriptedModel([]))


def test_two_at_once_are_refused(make_plan: MakePlan, tmp_path: Path) -> None:
    first = InferenceRecords(RunDirectory(tmp_path))
    first.lock()
    try:
        with pytest.raises(StoreError, match="another `judge infer`"):
            run(make_plan(), tmp_path, ScriptedModel([]))
    finally:
        first.close()


def test_a_sandbox_that_stumbles_costs_no_second_question(
    make_plan: MakePlan, tmp_path: Path
) -> None:
    plan = make_plan("multi")
    plan = replace(plan, assignments=plan.assignments[:1])
    model = ScriptedModel([code("1"), code("1")])
    sandbox = ScriptedSandbox(
        [SandboxError("gone"), PRINTED, SandboxError("gone"), PRINTED, SOLVED]
    )
    summary = run(plan, tmp_path, model, sandbox=sandbox)
    assert summary.is_complete
    assert len(model.requests) == 2
    (record,) = records(tmp_path)
    assert len(record["calls"]) == 2


def test_a_sandbox_that_is_gone_stops_the_run(make_plan: MakePlan, tmp_path: Path) -> None:
    model = always(code("1"))
    sandbox = ScriptedSandbox([SandboxError("daemon gone")] * 4)
    with pytest.raises(SandboxError, match="daemon gone"):
        run(make_plan("multi"), tmp_path, model, sandbox=sandbox)
    assert len(model.requests) == 1
    with pytest.raises(SandboxError, match="there is no sandbox"):
        run(make_plan("multi"), tmp_path / "b", model)


def test_interrupted_in_the_middle(make_plan: MakePlan, tmp_path: Path) -> None:
    def interrupt(_: ChatRequest) -> str:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(make_plan(), tmp_path, ScriptedModel([code("1"), interrupt]))
    conversation = InferenceRecords(RunDirectory(tmp_path)).read_conversation("2", 0)
    assert conversation is not None
    assert conversation["state"] == "stopped"
    rest = always(code("2"))
    assert run(make_plan(), tmp_path, rest).is_complete
    assert len(rest.requests) == 4


def reachable_golds(golds: set[str], *roots: object) -> list[object]:
    """Yields test cases and names of golds that are reachable from these objects."""
    name = re.compile("|".join(map(re.escape, sorted(golds))))
    waiting = list(roots)
    known = {id(each) for each in roots}
    found: list[object] = []
    while waiting:
        each = waiting.pop()
        named = isinstance(each, Path | str) and name.search(str(each))
        if named or isinstance(each, TestCase):
            found.append(each)
        for inner in gc.get_referents(each):
            if id(inner) in known:
                continue
            known.add(id(inner))
            # Modules and classes lead to everything in the process; data does not.
            plain = not isinstance(inner, type) and not hasattr(inner, "__globals__")
            if plain and not hasattr(inner, "__file__"):
                waiting.append(inner)
    return found


def objects_of_inference() -> list[object]:
    return [
        one for one in gc.get_objects() if str(type(one).__module__).startswith("judge.inference")
    ]


@pytest.mark.slow
def test_no_gold_is_reachable_from_what_the_loop_holds(tmp_path: Path) -> None:
    # What other tests left leads to their own test cases.
    earlier = objects_of_inference()
    options = InferOptions(model="x", base_url="http://x/v1", mode="multi", limit=3)
    planned = plan_of_options(resume(options))
    suite = load_suite("sample")
    cases = [case for task in suite.tasks for case in task.cases]
    golds = {gold.path.name for case in cases for gold in case.golds if gold.path}
    assert len(reachable_golds(golds, suite)) >= len(golds) > 10  # the search finds them
    seen: list[list[object]] = []

    def look_around(request: RunRequest) -> RunResult:
        others = {id(one) for one in earlier}
        loop = [one for one in objects_of_inference() if id(one) not in others]
        assert {"_Runner", "Solver", "TaskClient", "InferencePlan"} <= {
            type(each).__name__ for each in loop
        }
        seen.append(reachable_golds(golds, request, *loop))
        return SOLVED

    sandbox = ScriptedSandbox([look_around] * 3)
    run(planned.plan, tmp_path, always(code("1")), sandbox=sandbox)
    assert seen == [[], [], []]


def test_a_session_is_one_interpreter_per_task(make_plan: MakePlan, tmp_path: Path) -> None:
    plan = replace(make_plan("multi"), session=True)
    plan = replace(plan, assignments=plan.assignments[:2])
    placed = json.dumps({"placed": True}).encode()
    printed = {"error": None, "stdout": "x = 1", "seconds": 0.1, "output_exists": False}
    solved = printed | {"output_exists": True}
    answers = [json.dumps(each).encode() for each in (printed, solved)]
    sandbox = ScriptedSandbox([FAILED, SOLVED], answers=[placed, *answers, placed, *answers])
    summary = run(plan, tmp_path, always(code("1")), sandbox=sandbox)
    assert summary.not_alone == 1
    assert [each["stands_alone"] for each in records(tmp_path)] == [False, True]
    asked = [json.loads(call)["do"] for call in sandbox.calls]
    assert asked == ["place", "execute", "execute"] * 2
    assert records(tmp_path)[0]["output_path"] == "/tmp/data/output/1_1_output.xlsx"


def _replaced(path: Path) -> None:
    """Replaced by a copy, so that every file has the right name and content."""
    shutil.copytree(path, path.parent / "copy")
    shutil.rmtree(path)
    (path.parent / "copy").rename(path)


def _cut(path: Path) -> None:
    (path / SUBMISSIONS_FILE).write_bytes(b"")


@pytest.mark.parametrize("at", [1, 5])
@pytest.mark.parametrize("loss", [shutil.rmtree, _replaced, _cut])
def test_a_folder_that_is_taken_away_ends_the_run(
    make_plan: MakePlan, tmp_path: Path, loss: Callable[[Path], None], at: int
) -> None:
    """Also at the end: otherwise the answers would be lost although the command had succeeded."""
    seen: list[Any] = []

    def on_submission(record: Any) -> None:
        seen.append(record)
        if len(seen) == at:
            loss(tmp_path / "run")

    listeners = Listeners(on_submission=on_submission)
    with pytest.raises(StoreError, match=r"this command was using it|cannot be written") as caught:
        run(make_plan(), tmp_path / "run", always(code("1")), listeners)
    assert caught.value.exit_code == 9
    assert len(seen) <= at + 1
