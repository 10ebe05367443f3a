"""The judge's conversations through a scripted version of Inspect's generate."""

from __future__ import annotations

import asyncio
import importlib
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import pytest

from judge.errors import JudgeError, UsageError
from judge.inference.chat import CallError, ChatRequest, Message
from judge.inference.inspect_logs import STORE_KEY
from judge.inference.pictures import PictureStore
from judge.suites import load_suite

if TYPE_CHECKING:
    from inspect_ai.model import (
        ChatMessageSystem,
        ChatMessageUser,
        ModelName,
        ModelOutput,
        ModelUsage,
    )
    from inspect_ai.solver import TaskState

    from sheetjudge.inspect.asking import asking_of
    from sheetjudge.inspect.generating import GeneratingModel
    from sheetjudge.inspect.kept_open import KEPT_OPEN, KeptOpen
    from sheetjudge.inspect.records import submission_of_state
    from sheetjudge.inspect.scorer import check_judging, options_of
    from sheetjudge.inspect.solver import judge_rounds

LOADED = {
    "inspect_ai.model": "ChatMessageSystem ChatMessageUser ModelName ModelOutput ModelUsage",
    "inspect_ai.solver": "TaskState",
    "sheetjudge.inspect.asking": "asking_of",
    "sheetjudge.inspect.generating": "GeneratingModel",
    "sheetjudge.inspect.kept_open": "KEPT_OPEN KeptOpen",
    "sheetjudge.inspect.records": "submission_of_state",
    "sheetjudge.inspect.scorer": "check_judging options_of",
    "sheetjudge.inspect.solver": "judge_rounds",
}


@pytest.fixture(scope="module", autouse=True)
def framework() -> None:
    """Every worker collects these tests, but only one runs them and loads the framework."""
    for module, names in LOADED.items():
        loaded = importlib.import_module(module)
        globals().update({name: getattr(loaded, name) for name in names.split()})


Line: TypeAlias = "str | ModelOutput"
PROGRAM = "```python\nprint(1)\n```"


def state_of(sample_id: str = "1001", epoch: int = 1, **more: Any) -> TaskState:
    messages = more.pop("messages", [ChatMessageUser(content="the prompt")])
    name = ModelName("mockllm/model")
    return TaskState(name, sample_id, epoch, "the prompt", messages, **more)


class Playing:
    """Replaces Inspect's generate: replies with one line after the other."""

    def __init__(self, *lines: Line) -> None:
        self._lines = iter(lines)
        self.heard: list[list[str]] = []

    async def __call__(self, state: TaskState, tool_calls: str = "loop", **_: Any) -> TaskState:
        assert tool_calls == "none"
        self.heard.append([each.text for each in state.messages])
        line = next(self._lines)
        state.output = output(line) if isinstance(line, str) else line
        if not state.output.empty:
            state.messages.append(state.output.message)
        return state


def output(text: str, stop: Any = "stop") -> ModelOutput:
    said = ModelOutput.from_content("mockllm/model", text, stop_reason=stop)
    said.usage = ModelUsage(input_tokens=7, output_tokens=3, input_tokens_cache_read=10)
    return said


def user(text: str) -> Message:
    return {"role": "user", "content": text}


def assistant(text: str) -> Message:
    return {"role": "assistant", "content": text}


def request(*messages: Message) -> ChatRequest:
    return ChatRequest("m", messages)


def test_messages_that_inspect_has_stay_the_objects_they_are(tmp_path: Path) -> None:
    state, said = state_of(), output("one")
    generate = Playing(said, "two")
    model = GeneratingModel(state, generate, PictureStore(tmp_path))

    async def talk() -> None:
        first = await model.complete(request(user("a")))
        assert (first.prompt_tokens, first.completion_tokens) == (17, 3)
        await model.complete(request(user("a"), assistant("one"), user("b")))

    asyncio.run(talk())
    assert generate.heard == [["a"], ["a", "one", "b"]]
    assert model.transcript[1] is said.message
    assert [each.text for each in model.transcript] == ["a", "one", "b", "two"]


def test_another_conversation_starts_again_and_is_kept(tmp_path: Path) -> None:
    state = state_of(messages=[ChatMessageSystem(content="be kind"), ChatMessageUser(content="x")])
    generate = Playing("one", "two")
    model = GeneratingModel(state, generate, PictureStore(tmp_path))

    async def talk() -> None:
        await model.complete(request(user("a")))
        await model.complete(request(user("b")))

    asyncio.run(talk())
    assert generate.heard == [["be kind", "a"], ["be kind", "b"]]
    assert [each.text for each in model.transcript] == ["be kind", "a", "one", "b", "two"]


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        (lambda: output("maximum context length is 8192", "model_length"), "context-length"),
        (lambda: ModelOutput(model="m", choices=[], error="blocked"), "gave-up"),
    ],
)
def test_what_is_not_a_reply(line: Callable[[], ModelOutput], kind: str, tmp_path: Path) -> None:
    model = GeneratingModel(state_of(), Playing(line()), PictureStore(tmp_path))
    with pytest.raises(CallError) as caught:
        asyncio.run(model.complete(request(user("a"))))
    assert caught.value.kind == kind


def solved(mode: str, *lines: Line, suite: str = "sample", **state: Any) -> TaskState:
    solve = judge_rounds(suite=suite, mode=mode)
    try:
        return asyncio.run(solve(state_of(**state), Playing(*lines)))
    finally:
        KEPT_OPEN.close()


def test_one_round_keeps_the_program() -> None:
    state = solved("single", f"Here:\n{PROGRAM}", epoch=3)
    kept = state.store.get(STORE_KEY)
    assert kept["solution"].strip() == "print(1)"
    assert (kept["sample"], kept["setting"], kept["finished"]) == (2, "single", True)
    assert kept["tokens"] == {"prompt": 17, "completion": 3}
    assert "1_1001_input.xlsx" in state.messages[0].text


def test_values_as_text_become_one_program_for_all_cases() -> None:
    state = solved("text", *["G3: 12"] * 3)
    kept = state.store.get(STORE_KEY)
    assert "ANSWERS" in kept["solution"]
    assert [each.role for each in state.messages] == ["user", "assistant"] * 3


def test_a_sample_that_is_ended_from_outside_keeps_what_there_is() -> None:
    class LimitError(Exception):
        pass

    class Ending(Playing):
        async def __call__(self, *arguments: Any, **more: Any) -> TaskState:
            raise LimitError

    state = state_of()
    with pytest.raises(LimitError):
        asyncio.run(judge_rounds()(state, Ending()))
    KEPT_OPEN.close()
    assert state.store.get(STORE_KEY)["finished"] is False
    assert state.store.get(STORE_KEY)["solution"] is None


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"modus": 1}, "no option of the task is called modus"),
        ({"rounds": 3}, "--rounds belongs to --mode multi"),
        ({"limits": {"cpus": 1}}, "limits is"),
        ({"limits": {"cpu_s": -1}}, "the limit cpu_s is -1"),
        ({"jobs": "all"}, "jobs is 'all'"),
        ({"ids": "no-such"}, "no-such"),
    ],
)
def test_options_are_checked(options: dict[str, Any], error: str) -> None:
    with pytest.raises(UsageError, match=error):
        asking_of("sample", "single", options)


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"checker": {"no_such": True}}, "no option 'no_such'"),
        ({"checker": 5}, "checker is '5': not a mapping"),
        ({"corrections": "no-such.yaml"}, "no-such.yaml"),
        ({"lenient_names": "perhaps"}, "not true or false"),
        ({"style": 5}, "style is '5'"),
    ],
)
def test_how_to_judge_is_checked_before_anything_is_asked(
    options: dict[str, Any], error: str
) -> None:
    with pytest.raises(JudgeError, match=error):
        check_judging(load_suite("sample"), options_of(options))


def test_desktops_are_not_inspects() -> None:
    """Options that no conversation supports are refused before the first request."""
    for mode in ("desktop", "", "multi-row"):
        with pytest.raises(UsageError, match="not one of single, text, multi"):
            asking_of("sample", mode, {})


def test_ids_come_as_inspect_reads_them() -> None:
    for given in (1001, "1001", [1001], ["1001"]):
        asked = asking_of("sample", "multi/react-exec", {"ids": given})
        assert [each.question.id for each in asked.plan.assignments] == ["1001"]
    assert asked.plan.setting.name == "multi/react-exec"


# -- what is judged --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "kept",
    [
        None,
        "text",
        {"solution": 5},
        {"solution": "print(2)", "input_path": "relative.xlsx"},
        {"solution": "print(2)", "output_path": "/proc/self/mem"},
    ],
)
def test_a_store_that_the_judge_did_not_write_is_left_aside(kept: object) -> None:
    suite = load_suite("sample")
    state = state_of(output=output(PROGRAM), store={STORE_KEY: kept})
    found = submission_of_state(state, suite, suite.task("1001"))
    assert (found.code or "").strip() == "print(1)"
    assert found.input_path == "/mnt/data/input/1_1001_input.xlsx"


def test_what_was_handed_in_counts_and_not_the_last_reply() -> None:
    suite = load_suite("sample")
    state = state_of(output=output("DONE"), store={STORE_KEY: {"solution": "print(2)\n"}}, epoch=2)
    found = submission_of_state(state, suite, suite.task("1001"))
    assert (found.code, found.sample) == ("print(2)\n", 1)


# -- what is kept open -----------------------------------------------------------------------------


def test_things_are_opened_once_and_closed_once() -> None:
    closed: list[str] = []

    class Thing:
        def __init__(self, name: str) -> None:
            self._name = name

        def close(self) -> None:
            closed.append(self._name)

    def make(name: str) -> Callable[[], Thing]:
        return lambda: Thing(name)

    kept = KeptOpen()
    first = kept.get(1, make("first"))
    assert kept.get(1, make("again")) is first
    kept.get(2, make("second"))
    kept.close()
    kept.close()
    assert closed == ["second", "first"]
    assert kept.get(1, make("new")) is not first
