from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from judge.core.conversation import Picture, plain_text
from judge.core.limits import Limits
from judge.errors import StoreError, SuiteError
from judge.inference.chat import PICTURE_TOKENS, ChatReply, ChatRequest, Message
from judge.inference.client import refuses_pictures
from judge.inference.config import load_typed_setting
from judge.inference.conversation import (
    AnswerEnvironment,
    Conversation,
    TypedRules,
    converse,
    read_turn,
)
from judge.inference.execution import Execution, Interpreter, PictureCapture
from judge.inference.pictures import PictureStore
from judge.inference.prompt import PictureTools, keep_drawn, load_feedback
from judge.sandbox.scripted import ScriptedSandbox
from tests.fakes.chat_model import Line, ScriptedModel
from tests.inference.babel import JPEG, png

MULTI = load_typed_setting("multi")
LOOK = "```python\nprint(1)\n```"
ANSWER = 'Final answer:\n```json\n{"answer": 5}\n```'


@pytest.mark.parametrize(
    ("reply", "answers", "runs"),
    [
        (ANSWER, True, False),
        ("The final answer is 5.", True, False),
        ('```json\n{"answer": 5}\n```', True, False),
        ("```python\n{'answer': (1, 2),}\n```", True, False),
        (f"{LOOK}\n{ANSWER}", True, True),
        (LOOK, False, True),
        # What a program holds, or announces, is not an answer yet.
        ("```python\nanswer = {'answer': 5}\nprint(answer)\n```", False, True),
        (f"This computes the final answer:\n{LOOK}", False, True),
        ("```python\nprint('final answer')\n```\nSomething like {\"answer\": 0}?", False, True),
        (f"<think>{ANSWER}</think>{LOOK}", False, True),
        ("I do not know.", False, False),
    ],
)
def test_an_answer_is_distinguished_from_an_exploration(
    reply: str, answers: bool, runs: bool
) -> None:
    turn = read_turn(reply, MULTI)
    assert turn.answers is answers
    assert (turn.program.code is not None) is runs


def execution(printed: str = "", error: str = "", **more: Any) -> Execution:
    known: dict[str, Any] = {"stopped": None, "output_exists": False, "seconds": 0.1}
    return Execution(failed=bool(error), printed=printed, error=error, **known | more)


class Runner:
    def __init__(self, script: Iterable[Execution]) -> None:
        self._script = iter(script)

    def execute(self, code: str) -> Execution:
        return next(self._script)


def hold(
    folder: Path, replies: Iterable[Line], executions: Iterable[Execution], **changes: Any
) -> Conversation:
    model, talk, store = ScriptedModel(replies), Conversation(), PictureStore(folder)
    setting = load_typed_setting("multi")
    for name, value in changes.items():
        object.__setattr__(setting, name, value)

    def keep(drawn: Sequence[tuple[str, bytes]]) -> list[Picture]:
        return keep_drawn(drawn, setting, PictureTools(store))

    async def ask(messages: tuple[Message, ...], _: int) -> ChatReply:
        return await model.complete(ChatRequest("m", messages))

    async def run() -> None:
        with ThreadPoolExecutor(1) as threads:
            rules = TypedRules(setting, load_feedback("typed_feedback"), keep)
            runner = Runner(executions)
            await converse(AnswerEnvironment(talk, "How many?", rules, runner, threads), ask)

    asyncio.run(run())
    return talk


def told(talk: Conversation) -> list[str]:
    return [plain_text(each["content"]) for each in talk.messages if each["role"] == "user"][1:]


def test_what_is_said_between_rounds(tmp_path: Path) -> None:
    replies: list[Line] = [LOOK, LOOK, LOOK, LOOK, "Hm.", ANSWER]
    executions = [
        execution("7 rows"),
        execution(error="KeyError: 'x'"),
        execution(stopped="it ran longer than it may"),
        execution(),
    ]
    talk = hold(tmp_path, replies, executions, rounds=7)
    texts = told(talk)
    assert "It printed:\n7 rows\nRounds left: 6." in texts[0]
    assert "KeyError: 'x'" in texts[1]
    assert "was stopped: it ran longer than it may. Rounds left: 4." in texts[2]
    assert "printed nothing" in texts[3]
    assert "neither a Python program in a fenced block nor an answer" in texts[4]
    assert (talk.ended, talk.response, talk.solution) == ("answer", ANSWER, None)


def test_rounds_end_and_the_last_one_is_announced(tmp_path: Path) -> None:
    talk = hold(tmp_path, [LOOK, LOOK], [execution("x"), execution("y")], rounds=2)
    assert "One round is left: give the final answer now." in told(talk)[0]
    assert (talk.ended, talk.response, len(talk.messages)) == ("rounds", LOOK, 4)


def test_an_answer_beside_code_may_be_left_open(tmp_path: Path) -> None:
    both = f"{LOOK}\n{ANSWER}"
    talk = hold(tmp_path, [both, ANSWER], [execution("1")], beside_code="run")
    assert (len(talk.rounds), talk.response) == (2, ANSWER)


def test_pictures_of_programs_are_kept_and_shown(tmp_path: Path) -> None:
    drawn = (("a.png", png(2, 2)), ("b.png", b"not a picture"), ("c.png", JPEG))
    talk = hold(tmp_path, [LOOK, ANSWER], [execution(pictures=drawn)])
    content = talk.messages[2]["content"]
    assert isinstance(content, list)
    assert [part.get("media_type") for part in content] == [None, "image/png", "image/jpeg"]
    assert "follow in this order: a.png, c.png." in told(talk)[0]
    assert len(list(tmp_path.iterdir())) == 2
    talk = hold(tmp_path, [LOOK, ANSWER], [execution(pictures=drawn)], pictures="none")
    assert talk.messages[2]["content"] == told(talk)[0]
    assert "cannot be shown here: a.png, c.png." in told(talk)[0]


def test_pictures_leave_only_as_they_came(tmp_path: Path) -> None:
    store = PictureStore(tmp_path / "kept")
    source = tmp_path / "named.png"
    source.write_bytes(JPEG)
    shown = store.add_input(source)
    made = store.add_made(png(3, 3), "figure 1")
    assert made is not None
    content = [{"type": "text", "text": "look"}, shown.part, made.part]
    request = ChatRequest("m", ({"role": "user", "content": content},), pictures=store)  # type: ignore[typeddict-item]
    assert len(request.digest("")) == 64
    assert "base64" not in json.dumps(request.messages)
    (message,) = request.sent_messages()
    url = message["content"][1]["image_url"]["url"]
    assert url == f"data:image/jpeg;base64,{base64.b64encode(JPEG).decode()}"
    assert not (tmp_path / "kept" / f"{shown.sha256}.jpg").exists()
    # A file that was cut off is written again; one that says something else is not sent.
    kept = tmp_path / "kept" / f"{made.sha256}.png"
    kept.write_bytes(b"half")
    store.add_made(png(3, 3), "figure 1")
    source.write_bytes(JPEG + b"!")
    with pytest.raises(StoreError, match="was changed"):
        request.sent_messages()
    with pytest.raises(StoreError, match="is not a picture of this run"):
        store.read("../../etc/passwd", "image/png")
    with pytest.raises(SuiteError, match="is not a PNG"):
        store.add_input(Path(__file__))


def test_forged_pictures_of_a_session_are_bounded() -> None:
    data = base64.b64encode(png(2, 2)).decode()
    forged = [{"name": "a\x1b.png", "data": data}, {"name": "b", "data": "?"}, {"name": 1}, 5]
    answer = {"stdout": "", "pictures": [*forged, *[{"name": "z", "data": data}] * 9]}
    for pictures, count in (
        (answer["pictures"], 1), ({"a": 1}, 0), ([{"name": "x", "data": "A" * 3_000}], 0),
    ):  # fmt: skip
        sandbox = ScriptedSandbox(
            answers=[b'{"placed": true}', json.dumps({"pictures": pictures}).encode()]
        )
        capture = PictureCapture("/tmp/data", max_pictures=4, max_bytes=1_000)
        interpreter = Interpreter(sandbox, {}, Limits(), work_in="/tmp/data", capture=capture)
        found = interpreter.execute("x").pictures
        assert len(found) == count
        assert all("\x1b" not in name for name, _ in found)


@pytest.mark.parametrize(
    ("message", "refuses"),
    [
        ("the server says 500: 500: image input is not supported - hint: provide the mmproj", True),
        ("the server says 400: x is not a multimodal model", True),
        ("the server says 400: At most 0 image(s) may be provided in one request", True),
        ("the server says 422: unknown variant `image_url`, expected `text`", True),
        ("the server says 404: No endpoints found that support image input", False),
        ("the server says 400: This model does not support image inputs", True),
        ("the server says 400: messages[0].content must be a string", True),
        ("the server says 400: unsupported image format: bmp", False),
        ("the server says 400: image is too large", False),
        ("the server says 500: out of memory", False),
    ],
)
def test_a_refusal_of_all_pictures_is_distinguished_from_that_of_one(
    message: str, refuses: bool
) -> None:
    assert refuses_pictures(message) is refuses


def test_pictures_count_in_estimates_and_are_named_for_people() -> None:
    picture = Picture("0" * 64, "image/png", 12, "a.png")
    content = [{"type": "text", "text": "one"}, picture.part]
    assert plain_text(content) == "one\n[picture a.png, image/png, 12 bytes]"
    assert plain_text([5, {"type": "odd"}]) == "5\n[odd]"
    from judge.inference.chat import estimate_content_tokens  # noqa: PLC0415

    assert estimate_content_tokens(content) > PICTURE_TOKENS  # type: ignore[arg-type]
