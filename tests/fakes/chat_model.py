"""A chat model that plays a script: for tests of the code that uses one."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable

from judge.core.conversation import estimate_tokens
from judge.inference.chat import ChatReply, ChatRequest, estimate_request_tokens

Line = str | ChatReply | BaseException | Callable[[ChatRequest], str | ChatReply]


class ScriptedModel:
    """Answers each request with the next line of a script; running past its end is an error.

    Args:
        script: replies to give, exceptions to raise, or functions of the request.
        endpoint: the address that it claims to have.

    Attributes:
        requests: every request so far, in order.
    """

    def __init__(self, script: Iterable[Line], endpoint: str = "http://scripted/v1") -> None:
        self._script = iter(script)
        self._endpoint = endpoint
        self.requests: list[ChatRequest] = []

    @property
    def endpoint(self) -> str:
        """The endpoint that it was created with."""
        return self._endpoint

    async def complete(self, request: ChatRequest) -> ChatReply:
        """Plays the next line."""
        self.requests.append(request)
        try:
            line = next(self._script)
        except StopIteration:
            raise AssertionError(f"request {len(self.requests)} is past the script") from None
        await asyncio.sleep(0)
        if isinstance(line, BaseException):
            raise line
        if callable(line):
            line = line(request)
        if isinstance(line, ChatReply):
            return line
        return ChatReply(
            text=line,
            finish_reason="stop",
            prompt_tokens=estimate_request_tokens(request.messages),
            completion_tokens=estimate_tokens(line),
        )

    async def close(self) -> None:
        """Does nothing: nothing is open."""
