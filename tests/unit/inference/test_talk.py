from __future__ import annotations

import asyncio
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor

import pytest

from judge.inference.chat import CallError, ChatReply, ChatRequest, Message
from judge.inference.conversation import (
    Conversation,
    ProgramEnvironment,
    RoundRules,
    SingleReply,
    converse,
)
from judge.inference.execution import Execution, cut_middle, trim_traceback
from judge.inference.prompt import load_feedback
from tests.fakes.chat_model import Line, ScriptedModel

LOOK = "```python\nprint(1)\n```"
SOLVE = "```python\nsolve()\n```"


def execution(
    printed: str = "", error: str = "", *, stopped: str | None = None, output: bool = False
) -> Execution:
    return Execution(bool(error), stopped, printed, error, output_exists=output, seconds=0.1)


class ScriptedWorkplace:
    def __init__(self, script: Iterable[Execution], alone: Execution | None = None) -> None:
        self._script = iter(script)
        self._alone = alone
        self.programs: list[str] = []

    def execute(self, code: str) -> Execution:
        self.programs.append(code)
        return next(self._script)

    def execute_alone(self, code: str) -> Execution:
        return self._alone or execution(output=True)

    def close(self) -> None:
        pass


def hold(
    replies: Iterable[Line],
    executions: Iterable[Execution] = (),
    *,
    rounds: int = 5,
    explicit: bool = False,
    alone: Execution | None = None,
    unseen: bool = False,
) -> tuple[Conversation, ScriptedModel, ScriptedWorkplace]:
    model = ScriptedModel(replies)
    workplace = ScriptedWorkplace(executions, alone)
    talk = Conversation()

    async def ask(messages: tuple[Message, ...], _: int) -> ChatReply:
        return await model.complete(ChatRequest("m", messages))

    async def run() -> None:
        with ThreadPoolExecutor(1) as threads:
            words = load_feedback("background") if unseen else None
            rules = RoundRules(rounds, explicit, load_feedback(), "/o.xlsx", words)
            await converse(ProgramEnvironment(talk, "solve it", rules, workplace, threads), ask)

    asyncio.run(run())
    return talk, model, workplace


def roles(talk: Conversation) -> str:
    return "".join(message["role"][0] for message in talk.messages)


def test_ends_with_the_output_workbook() -> None:
    talk, model, _ = hold(
        [LOOK, SOLVE], [execution("sheet names"), execution(output=True), execution()]
    )
    assert roles(talk) == "uaua"
    assert "sheet names" in talk.messages[2]["content"]
    assert "Rounds left: 4" in talk.messages[2]["content"]
    assert (talk.ended, talk.solution, talk.reply) == ("output", "solve()\n", SOLVE)
    assert talk.stands_alone
    assert len(model.requests) == 2


def test_a_traceback_reaches_the_model_and_an_output_beside_it_does_not_end_the_talk() -> None:
    talk, _, _ = hold(
        [SOLVE, SOLVE.replace("solve", "mend")],
        [execution("before", "KeyError: 'Data'", output=True), execution(output=True)],
    )
    assert "KeyError: 'Data'" in talk.messages[2]["content"]
    assert "before" in talk.messages[2]["content"]
    assert talk.solution == "mend()\n"


def test_without_execution_feedback_only_the_workbook_is_mentioned() -> None:
    talk, _, _ = hold(
        [LOOK, SOLVE, SOLVE, "no program", "DONE"],
        [
            execution("the sheet names"),
            execution("before", "KeyError: 'Data'"),
            execution("after", output=True),
            execution(output=True),
        ],
        explicit=True,
        unseen=True,
    )
    texts = [message["content"] for message in talk.messages if message["role"] == "user"][1:]
    assert texts[0] == (
        "The program was run. No workbook was found at /o.xlsx yet. Rounds left: 4."
    )
    assert texts[1] == texts[0].replace("4", "3")
    assert texts[2] == "The program was run. There is a workbook at /o.xlsx. Rounds left: 2."
    assert "No Python program was found" in texts[3]
    assert talk.rounds[1]["execution"]["error"] == "KeyError: 'Data'"  # on record all the same
    assert talk.ended == "explicit"


def test_every_kind_of_feedback() -> None:
    talk, _, workplace = hold(
        [
            "no idea",
            ChatReply("```python\nx = (", finish_reason="length"),
            LOOK,
            LOOK,
            SOLVE,
        ],
        [execution(), execution("loop", stopped="it ran longer than it may"), execution("x")],
    )
    texts = [message["content"] for message in talk.messages if message["role"] == "user"][1:]
    assert "No Python program was found" in texts[0]
    assert "cut off before the program was complete" in texts[1]
    assert "printed nothing" in texts[2]
    assert "stopped: it ran longer than it may" in texts[3]
    assert len(texts) == 4
    assert roles(talk) == "uauauauaua"
    assert "Rounds left: 0" in talk.rounds[-1]["feedback"]
    assert talk.ended == "rounds"
    assert talk.stands_alone is None
    assert talk.solution == "solve()\n"
    assert len(workplace.programs) == 3


def test_explicit_stop_goes_on_after_the_output() -> None:
    talk, _, _ = hold(
        [SOLVE, LOOK, "All is well.\n\nDONE\n"],
        [execution(output=True), execution("checked")],
        explicit=True,
    )
    assert roles(talk) == "uauaua"
    assert "saved a workbook at /o.xlsx" in talk.messages[2]["content"]
    assert talk.ended == "explicit"
    # The look around came later, but the program that left the workbook is handed in.
    assert (talk.solution, talk.reply) == ("solve()\n", SOLVE)


def test_done_inside_a_program_is_not_the_end() -> None:
    inside = "```python\nprint('''\nDONE\n''')\n```"
    talk, _, _ = hold(
        [inside, f"{SOLVE}\n**DONE**"], [execution("x"), execution(output=True)], explicit=True
    )
    assert len(talk.rounds) == 2
    assert talk.ended == "explicit"


def test_done_means_nothing_where_the_output_ends_the_talk() -> None:
    talk, _, _ = hold(["DONE", SOLVE], [execution(output=True)])
    assert len(talk.rounds) == 2


def test_a_solution_that_leans_on_earlier_rounds_is_marked() -> None:
    talk, _, _ = hold(
        [LOOK, SOLVE],
        [execution("x"), execution(output=True)],
        alone=execution(error="NameError: wb"),
    )
    assert talk.solution == "solve()\n"
    assert talk.stands_alone is False


def test_a_conversation_that_grows_too_long_ends_with_what_there_is() -> None:
    talk, _, _ = hold(
        [LOOK, CallError("context-length", "maximum context length")], [execution("x")]
    )
    assert talk.ended == "context-length"
    assert talk.solution == "print(1)\n"
    assert talk.finish_reason == "context_length"


def test_other_failures_get_out_and_leave_what_was_said() -> None:
    with pytest.raises(CallError, match="gone"):
        hold([LOOK, CallError("gave-up", "gone")], [execution("x")])


def test_a_single_round() -> None:
    model = ScriptedModel([ChatReply("```python\nx = (1", finish_reason="length")])
    talk = Conversation()

    async def ask(messages: tuple[Message, ...], _: int) -> ChatReply:
        return await model.complete(ChatRequest("m", messages))

    asyncio.run(converse(SingleReply(talk, "solve it"), ask))
    assert roles(talk) == "ua"
    assert (talk.ended, talk.truncated, talk.solution) == ("replied", True, "x = (1\n")


def test_tracebacks_lose_the_inner_life_of_libraries() -> None:
    text = """\
Traceback (most recent call last):
  File "/mnt/data/solution.py", line 2, in <module>
    solve()
  File "/opt/site/openpyxl/a.py", line 346, in load_workbook
    reader = x
             ^
  File "/opt/site/openpyxl/b.py", line 1, in y
  File "/usr/lib/python3.11/zipfile.py", line 1284, in __init__
    self.fp = io.open(file)
KeyError: 'Data'
"""
    trimmed = trim_traceback(text)
    assert trimmed.splitlines() == [
        "Traceback (most recent call last):",
        '  File "/mnt/data/solution.py", line 2, in <module>',
        "    solve()",
        "  [2 frames inside libraries]",
        '  File "/usr/lib/python3.11/zipfile.py", line 1284, in __init__',
        "    self.fp = io.open(file)",
        "KeyError: 'Data'",
    ]


def test_long_texts_keep_their_ends() -> None:
    text = "start" + "x" * 10_000 + "ValueError: the end"
    for cut in (trim_traceback(text), cut_middle(text, 3_000)):
        assert len(cut) < 3_200
        assert cut.startswith("start")
    lines = trim_traceback(
        "\n".join(f"warning {number}" for number in range(5_000)) + "\nKeyError: 1"
    )
    assert lines.endswith("KeyError: 1")
    assert "characters left out" in lines
    assert cut_middle("short", 10) == "short"
