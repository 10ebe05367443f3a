"""The one place that imports the ``openai`` SDK: chat completions of any compatible server.

The SDK makes the requests; what is done about failures is decided here, because its own retries
give up on a ``Retry-After`` of more than two minutes, know no limit on the whole of a reply, and
cannot be counted. Replies are read as bytes with a bound and taken apart here, so that a server
that sends nonsense, or never stops sending, costs one attempt and no memory.
"""

from __future__ import annotations

import asyncio
import contextlib
import email.utils
import json
import random
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit, urlunsplit

from judge.errors import InferenceError
from judge.inference.chat import CallError, ChatReply, ChatRequest, estimate_request_tokens
from judge.inference.pacing import Pacer

if TYPE_CHECKING:
    import openai

_MAX_BODY_BYTES = 8 * 1024 * 1024
_RETRIED_STATUS = frozenset({408, 409, 425, 429})
_ACCESS_STATUS = frozenset({401, 403, 404})
_CONTEXT_WORDS = ("context_length_exceeded", "context length", "maximum context", "context size")


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """What is done about a call that failed.

    Attributes:
        attempts: requests in all, the first included.
        first_wait_s: wait before the second attempt; doubled each time.
        longest_wait_s: bound on that, where the server names no time of its own.
        longest_retry_after_s: how long a ``Retry-After`` may be; with a longer one the call is
            given up, and the same command continues it later.
        call_timeout_s: how long one attempt may take, until the last byte.
        connect_timeout_s: how long a connection may take.
        timeouts: attempts that may run into ``call_timeout_s``; a reply that never ends once will
            not end the next time, and each costs the whole time.
    """

    attempts: int = 6
    first_wait_s: float = 1.0
    longest_wait_s: float = 60.0
    longest_retry_after_s: float = 900.0
    call_timeout_s: float = 600.0
    connect_timeout_s: float = 20.0
    timeouts: int = 2

    def wait_s(self, attempt: int) -> float:
        """Seconds to wait after an attempt (1-based) that failed, with jitter."""
        wait: float = min(self.first_wait_s * 2.0 ** (attempt - 1), self.longest_wait_s)
        return wait * random.uniform(0.75, 1.0)  # noqa: S311  spreads requests, hides nothing


class _AttemptError(Exception):
    """One attempt failed.

    Attributes:
        retry: whether another attempt may do better.
        retry_after_s: what the server asked for.
        kind: kind of the CallError where there is no other attempt.
        timed_out: the whole time of a call was used up.
    """

    def __init__(
        self,
        message: str,
        *,
        retry: bool = True,
        retry_after_s: float | None = None,
        kind: str = "gave-up",
        timed_out: bool = False,
    ) -> None:
        super().__init__(message)
        self.timed_out = timed_out
        self.message = message
        self.retry = retry
        self.retry_after_s = retry_after_s
        self.kind = kind


class OpenAIChatModel:
    """A chat model behind an OpenAI-compatible endpoint.

    Belongs to the event loop in which it is first used.

    Args:
        base_url: the endpoint, up to and including ``/v1``.
        key: the key, or None where the server wants none.
        policy: retries and timeouts.
        pacer: limits of requests and tokens per minute, shared by all calls.
    """

    def __init__(
        self,
        base_url: str,
        key: str | None,
        *,
        policy: RetryPolicy | None = None,
        pacer: Pacer | None = None,
    ) -> None:
        self.policy = policy or RetryPolicy()
        self.pacer = pacer or Pacer()
        self.requests_sent = 0
        self._base_url = base_url
        self._key = key
        self._client: openai.AsyncOpenAI | None = None

    @property
    def endpoint(self) -> str:
        """Address of the server, without credentials."""
        return public_url(self._base_url)

    async def complete(self, request: ChatRequest) -> ChatReply:
        """Asks once, retries included.

        Raises:
            CallError: no reply is to be had.
        """
        started = time.monotonic()
        faults: list[str] = []
        timeouts = 0
        estimate = estimate_request_tokens(request.messages) if self.pacer.is_limited else 0
        for attempt in range(1, self.policy.attempts + 1):
            await self.pacer.admit(estimate)
            try:
                reply = await self._attempt(request)
            except _AttemptError as error:
                faults.append(self._without_key(error.message))
                timeouts += error.timed_out
                if timeouts >= self.policy.timeouts:
                    error.retry = False
                wait_s = self._wait_after(error, attempt)
                if wait_s is None:
                    raise self._give_up(error, attempt, faults) from None
                if error.retry_after_s is not None:
                    self.pacer.pause(error.retry_after_s)
                await asyncio.sleep(wait_s)
                continue
            self.pacer.settle(estimate, reply.prompt_tokens, reply.completion_tokens)
            if (
                not reply.text
                and reply.finish_reason != "length"
                and attempt < self.policy.attempts
            ):
                faults.append("the reply was empty")
                await asyncio.sleep(self.policy.wait_s(attempt))
                continue
            seconds = time.monotonic() - started
            return replace(reply, seconds=seconds, attempts=attempt, faults=tuple(faults))
        raise AssertionError("the last attempt either returns or raises")

    async def only_model(self) -> str:
        """The name of the one model that the server has.

        Raises:
            InferenceError: it has none or several, or cannot be asked.
        """
        import openai  # noqa: PLC0415  loaded when a model is asked, 0.5 s

        try:
            listed = await self._sdk().models.list()
        except (openai.OpenAIError, TimeoutError) as error:
            reason = self._without_key(str(error))
            raise InferenceError(
                f"{self.endpoint} does not say which models it has: {reason}",
                hint="Is the server running? Name the model with --model NAME --base-url URL.",
            ) from None
        names = [model.id for model in listed.data]
        if len(names) != 1:
            raise InferenceError(
                f"{self.endpoint} has {len(names)} models: {', '.join(names[:20])}",
                hint="Name one with --model NAME --base-url URL.",
            )
        return names[0]

    async def close(self) -> None:
        """Closes connections; safe to call twice."""
        if self._client is not None:
            client, self._client = self._client, None
            await client.close()

    # -- one attempt -----------------------------------------------------------------------------

    async def _attempt(self, request: ChatRequest) -> ChatReply:
        import openai  # noqa: PLC0415  loaded when a model is asked, 0.5 s

        started = time.monotonic()
        self.requests_sent += 1
        try:
            async with asyncio.timeout(self.policy.call_timeout_s):
                body = await self._post(request)
        except TimeoutError:
            message = f"no whole reply within {self.policy.call_timeout_s:g} s"
            raise _AttemptError(message, timed_out=True) from None
        except openai.APIStatusError as error:
            raise _of_status(error) from None
        except openai.APITimeoutError:
            raise _AttemptError("the server did not answer in time") from None
        except openai.APIConnectionError as error:
            cause = error.__cause__
            detail = f": {type(cause).__name__} {cause}" if cause else ""
            raise _AttemptError(f"the connection failed{detail}") from None
        except (openai.OpenAIError, OSError, ValueError) as error:
            raise _AttemptError(f"the call failed: {type(error).__name__} {error}") from None
        except Exception as error:
            # Errors of the transport's own package while the body is read are not the SDK's.
            if type(error).__module__.split(".")[0] not in {
                "httpx",
                "httpx2",
                "httpcore",
                "httpcore2",
            }:
                raise
            raise _AttemptError(f"the connection broke: {type(error).__name__} {error}") from None
        return _read_reply(body, time.monotonic() - started)

    async def _post(self, request: ChatRequest) -> bytes:
        import httpx2  # noqa: PLC0415  the transport of the SDK, loaded with it
        import openai  # noqa: PLC0415  loaded when a model is asked, 0.5 s

        # The SDK's own create() builds and checks objects that nobody needs here, 2 ms a call,
        # and drops what it does not know (top_k, grammar …) unless that is wrapped.
        params = dict(request.params)
        extra = params.pop("extra_body", None) or {}
        body = {"model": request.model, "messages": list(request.messages), **params, **extra}
        response: Any = await self._sdk().post(
            "/chat/completions",
            cast_to=httpx2.Response,
            body=body,
            stream=True,  # unread, so that it can be read with a bound
            stream_cls=openai.AsyncStream[Any],
        )
        try:
            self.pacer.note_headers(response.headers)
            received = bytearray()
            async for chunk in response.aiter_bytes():
                received += chunk
                if len(received) > _MAX_BODY_BYTES:
                    raise _AttemptError(f"the reply is longer than {_MAX_BODY_BYTES} bytes")
            return bytes(received)
        finally:
            await response.aclose()

    def _sdk(self) -> openai.AsyncOpenAI:
        if self._client is None:
            import openai  # noqa: PLC0415  loaded when a model is asked, 0.5 s

            http_client = openai.DefaultAsyncHttpxClient(
                timeout=openai.Timeout(
                    self.policy.call_timeout_s, connect=self.policy.connect_timeout_s
                ),
            )
            self._client = openai.AsyncOpenAI(
                api_key=self._key or "none",
                base_url=self._base_url,
                max_retries=0,
                http_client=http_client,
            )
        return self._client

    # -- what is done about a failure ------------------------------------------------------------

    def _wait_after(self, error: _AttemptError, attempt: int) -> float | None:
        """Seconds to wait before the next attempt; None where there is no next one."""
        if not error.retry or attempt >= self.policy.attempts:
            return None
        if error.retry_after_s is None:
            return self.policy.wait_s(attempt)
        if error.retry_after_s > self.policy.longest_retry_after_s:
            return None
        # A little later than asked, and not all at the same moment.
        return error.retry_after_s + random.uniform(0, min(1.0, error.retry_after_s / 10))  # noqa: S311

    def _give_up(self, error: _AttemptError, attempt: int, faults: list[str]) -> CallError:
        message = self._without_key(error.message)
        if error.retry and attempt < self.policy.attempts:
            message += (
                f"; the server asks to wait {error.retry_after_s:g} s, more than the "
                f"{self.policy.longest_retry_after_s:g} s that are allowed"
            )
        elif error.retry:
            message += f" ({attempt} attempts)"
        return CallError(error.kind, message, attempts=attempt, faults=faults)

    def _without_key(self, text: str) -> str:
        return text.replace(self._key, "[key]") if self._key else text


def public_url(url: str) -> str:
    """An address without user name, password, query and fragment."""
    parts = urlsplit(url)
    host = parts.netloc.rsplit("@", 1)[-1]
    return urlunsplit((parts.scheme, host, parts.path, "", ""))


def _of_status(error: openai.APIStatusError) -> _AttemptError:
    status = error.status_code
    detail = _detail(error)
    message = f"the server says {status}{f': {detail}' if detail else ''}"
    lowered = detail.lower()
    if status in {400, 413, 422} and any(words in lowered for words in _CONTEXT_WORDS):
        return _AttemptError(message, retry=False, kind="context-length")
    if status in _RETRIED_STATUS or status >= 500:
        if "insufficient_quota" in lowered or "insufficient balance" in lowered:
            return _AttemptError(message, retry=False, kind="access")
        return _AttemptError(message, retry_after_s=read_retry_after(error.response.headers))
    if status == 402 or status in _ACCESS_STATUS:
        return _AttemptError(message, retry=False, kind="access")
    return _AttemptError(message, retry=False, kind="refused")


def _detail(error: openai.APIStatusError) -> str:
    body = error.body
    if isinstance(body, dict):
        inner = body.get("error", body)
        if isinstance(inner, dict):
            parts = [str(inner[name]) for name in ("code", "message") if inner.get(name)]
            return ": ".join(parts)[:500]
    with contextlib.suppress(Exception):  # an unread or broken body has no detail to give
        return error.response.text.strip()[:200]
    return ""


def read_retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds that the server asks to wait, from ``Retry-After-Ms`` or ``Retry-After``."""
    with contextlib.suppress(KeyError, ValueError):
        return max(float(headers["retry-after-ms"]) / 1000, 0.0)
    value = headers.get("retry-after")
    if value is None:
        return None
    with contextlib.suppress(ValueError):
        seconds = float(value)
        return max(seconds, 0.0) if seconds < float("inf") else None
    with contextlib.suppress(TypeError, ValueError):
        moment = email.utils.parsedate_to_datetime(value)
        return max(moment.timestamp() - time.time(), 0.0)
    return None


def _read_reply(body: bytes, latency_s: float) -> ChatReply:
    """Takes a chat completion apart.

    Raises:
        _AttemptError: it is none.
    """
    try:
        document = json.loads(body)
        choice = document["choices"][0]
        message = choice["message"]
        text = _text_of(message)
    except (ValueError, KeyError, IndexError, TypeError, AttributeError, RecursionError):
        if isinstance(detail := _error_in(body), str):
            raise _AttemptError(f"the server answers with an error: {detail}") from None
        shown = body[:80].decode("utf-8", "replace")
        raise _AttemptError(f"the reply is no chat completion: {shown!r}") from None
    usage = document.get("usage")
    usage = usage if isinstance(usage, dict) else {}
    reasoning = message.get("reasoning_content") or message.get("reasoning")
    return ChatReply(
        text=text,
        finish_reason=_text_or_none(choice.get("finish_reason")),
        prompt_tokens=_count(usage.get("prompt_tokens")),
        completion_tokens=_count(usage.get("completion_tokens")),
        latency_s=latency_s,
        reasoning=_text_or_none(reasoning),
        model=_text_or_none(document.get("model")),
    )


def _text_of(message: Mapping[str, Any]) -> str:
    content = message.get("content")
    if isinstance(content, list):  # parts, as some servers send them
        content = "".join(str(part.get("text", "")) for part in content if isinstance(part, dict))
    if content is not None and not isinstance(content, str):
        raise TypeError
    calls = message.get("tool_calls")
    if not content and isinstance(calls, list) and calls:
        # Some servers turn what looks like a call of a tool into one, though none was offered.
        return "\n".join(
            f"<tool_call>{json.dumps(call.get('function', {}), ensure_ascii=False)}</tool_call>"
            for call in calls
        )
    return content or ""


def _error_in(body: bytes) -> str | None:
    """The message of an error that came with a status of success, as some gateways do."""
    with contextlib.suppress(ValueError, RecursionError):
        document = json.loads(body)
        if isinstance(document, dict) and document.get("error"):
            error = document["error"]
            return str(error.get("message", error) if isinstance(error, dict) else error)[:200]
    return None


def _count(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def _text_or_none(value: object) -> str | None:
    return value if isinstance(value, str) else None
