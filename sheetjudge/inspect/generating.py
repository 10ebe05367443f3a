"""A chat model of the judge whose replies Inspect generates."""

from __future__ import annotations

import time

from inspect_ai.model import ChatMessage, ModelOutput
from inspect_ai.solver import Generate, TaskState

from judge.inference.chat import CallError, ChatReply, ChatRequest, Message
from judge.inference.inspect_logs import prompt_tokens_of
from judge.inference.pictures import PictureStore
from sheetjudge.inspect.messages import inspect_message


class GeneratingModel:
    """Asks through ``generate``, so that Inspect's limits, retries, cache and log hold.

    Args:
        state: the sample; its messages are those of the conversation that is being held.
        generate: Inspect's own.
        pictures: the pictures of messages.
    """

    endpoint = "inspect"

    def __init__(self, state: TaskState, generate: Generate, pictures: PictureStore) -> None:
        self._state = state
        self._generate = generate
        self._pictures = pictures
        self._lead = [message for message in state.messages if message.role == "system"]
        self._known: list[tuple[Message, ChatMessage]] = []
        self._before: list[ChatMessage] = []

    @property
    def transcript(self) -> list[ChatMessage]:
        """All conversations about the sample, one after the other."""
        return [*self._lead, *self._before, *(message for _, message in self._known)]

    async def complete(self, request: ChatRequest) -> ChatReply:
        """Asks once.

        Raises:
            CallError: the conversation is too long for the model, or there was no reply.
        """
        self._say(request.messages)
        self._state.messages = [*self._lead, *(message for _, message in self._known)]
        started = time.monotonic()
        state = await self._generate(self._state, tool_calls="none")
        output = state.output
        if output.empty:
            raise CallError("gave-up", output.error or "the model gave no reply", attempts=1)
        if output.stop_reason == "model_length":  # the completion is the provider's error message
            raise CallError("context-length", output.completion, attempts=1)
        text = output.completion
        self._known.append(({"role": "assistant", "content": text}, output.message))
        return _reply(output, text, time.monotonic() - started)

    async def close(self) -> None:
        """Nothing to close: the model is Inspect's."""

    def _say(self, messages: tuple[Message, ...]) -> None:
        """Takes the next messages; those that Inspect has already stay the objects they are."""
        same = 0
        for (known, _), message in zip(self._known, messages, strict=False):
            if known != message:
                break
            same += 1
        if same == 0:  # another conversation about the same sample
            self._before += [message for _, message in self._known]
        del self._known[same:]
        for message in messages[same:]:
            self._known.append((message, inspect_message(message, self._pictures)))


def _reply(output: ModelOutput, text: str, seconds: float) -> ChatReply:
    usage = output.usage
    prompt_tokens = completion_tokens = None
    if usage is not None:
        prompt_tokens, completion_tokens = prompt_tokens_of(usage), usage.output_tokens
    return ChatReply(
        text=text,
        finish_reason=output.stop_reason,
        prompt_tokens=prompt_tokens,
        completion_tokens=completion_tokens,
        seconds=seconds,
        latency_s=seconds if output.time is None else output.time,
        model=output.model or None,
    )
