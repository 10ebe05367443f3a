"""Asks a chat model what the rules could not decide about a post."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from judge.authoring.filters import QUESTIONS, Answer, Judgement
from judge.authoring.triage import TriagedPost
from judge.errors import InferenceError
from judge.inference.chat import CallError, ChatModel, ChatRequest
from judge.inference.prompt import Template

_MAX_POST_LENGTH = 6000
_MAX_WHY_LENGTH = 300


@dataclass(frozen=True, slots=True)
class ModelChoice:
    """Which chat model is asked, and how.

    Attributes:
        chat_model: answers.
        model: the server's name for it.
        params: further request parameters.
        template: the prompt, with the fields ``questions`` and ``post``.
        concurrency: requests at a time.
    """

    chat_model: ChatModel
    model: str
    params: Mapping[str, Any]
    template: Template
    concurrency: int = 4


async def ask_about(
    triaged: Sequence[TriagedPost],
    choice: ModelChoice,
    on_answer: Callable[[TriagedPost, dict[str, Judgement]], None],
) -> list[str]:
    """Asks about every post that has open questions.

    Args:
        triaged: the posts.
        choice: the model.
        on_answer: called with each post and its judgements, as soon as they are known.

    Returns:
        One line for each post that got no usable answer; the same call asks again.

    Raises:
        InferenceError: key, model name or address are wrong.
    """
    waiting = asyncio.Semaphore(choice.concurrency)
    failures: list[str] = []

    async def ask(each: TriagedPost) -> None:
        async with waiting:
            try:
                reply = await choice.chat_model.complete(_request(each, choice))
            except CallError as error:
                if error.kind == "access":
                    raise InferenceError(error.message) from error
                failures.append(f"{each.post.id}: {error.message}")
                return
        judgements = read_answer(reply.text, each.questions, choice.model)
        if judgements is None:
            failures.append(f"{each.post.id}: the reply is not the JSON that was requested")
        else:
            on_answer(each, judgements)

    try:
        async with asyncio.TaskGroup() as group:
            for each in triaged:
                if each.questions:
                    group.create_task(ask(each))
    except* InferenceError as errors:
        raise errors.exceptions[0] from None
    return failures


def _request(each: TriagedPost, choice: ModelChoice) -> ChatRequest:
    questions = "\n".join(f"- {name}: {QUESTIONS[name]}" for name in each.questions)
    text = each.post.text[:_MAX_POST_LENGTH]
    prompt = choice.template.fill({"questions": questions, "post": text})
    params = {"temperature": 0, **choice.params}
    return ChatRequest(choice.model, ({"role": "user", "content": prompt},), params)


def read_answer(text: str, questions: Sequence[str], model: str) -> dict[str, Judgement] | None:
    """The judgements of a reply, or None if it does not answer every question. Pure."""
    start, end = text.find("{"), text.rfind("}")
    try:
        document = json.loads(text[start : end + 1])
        return {
            name: Judgement(
                Answer(str(document[name]["answer"]).strip().lower()),
                " ".join(str(document[name].get("why") or "").split())[:_MAX_WHY_LENGTH],
                model,
            )
            for name in questions
        }
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None
