"""The one place that imports the ``openai`` SDK: chat completions of any compatible server.

The SDK makes the requests; what is done about failures is decided here, because its own retries
give up on a ``Retry-After`` of more than two minutes, know no limit on the whole of a reply, and
cannot be counted. Replies are read as bytes with a bound and taken apart here, so that a server
that sends nonsense, or never stops sending, costs one attempt and no memory.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import random
import re
import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit, urlunsplit

from judge.errors import InferenceError
from judge.inference.answers import NotACompletionError, read_reply, read_retry_after
from judge.inference.chat import CallError, ChatReply, ChatRequest, estimate_request_tokens
from judge.inference.pacing import Pacer

if TYPE_CHECKING:
    import openai

_MAX_BODY_BYTES = 8 * 1024 * 1024
_RETRIED_STATUS = frozenset({408, 409, 425, 429})
_ACCESS_STATUS = frozenset({401, 403, 404})
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]+")
_TRANSPORT_PACKAGES = frozenset({"aiohttp", "httpx2"})
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
        first_contacts: attempts to reach a server that has never answered: an address that is
            wrong stays wrong.
    """

    attempts: int = 6
    first_wait_s: float = 1.0
    longest_wait_s: float = 60.0
    longest_retry_after_s: float = 900.0
    call_timeout_s: float = 600.0
    connect_timeout_s: float = 20.0
    timeouts: int = 2
    first_contacts: int = 3

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
        unreachable: no connection came about.
    """

    def __init__(
        self,
        message: str,
        *,
        retry: bool = True,
        retry_after_s: float | None = None,
        kind: str = "gave-up",
        timed_out: bool = False,
        unreachable: bool = False,
    ) -> None:
        super().__init__(message)
        self.timed_out = timed_out
        self.unreachable = unreachable
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
        self._was_answered = False

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
                if error.unreachable and not self._was_answered:
                    error.kind = "access"
                    error.retry = attempt < self.policy.first_contacts
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
            is_lost = isinstance(error, openai.APIConnectionError)
            reason = _of_connection(error).message if is_lost else str(error)
            reason = self._without_key(reason)
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
            self._was_answered = True
            raise _of_status(error) from None
        except openai.APIConnectionError as error:
            raise _of_connection(error) from None
        except (openai.OpenAIError, OSError, ValueError) as error:
            raise _AttemptError(f"the call failed: {type(error).__name__} {error}") from None
        except Exception as error:
            # Errors of the transport's own package while the body is read are not the SDK's.
            if type(error).__module__.split(".")[0] not in _TRANSPORT_PACKAGES:
                raise
            raise _AttemptError(f"the connection broke: {type(error).__name__} {error}") from None
        self._was_answered = True
        try:
            return read_reply(body, time.monotonic() - started)
        except NotACompletionError as error:
            raise _AttemptError(str(error)) from None

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

            # A sixth of the time of the SDK's own transport for a call that is answered at once.
            http_client = openai.DefaultAioHttpClient(
                timeout=openai.Timeout(
                    self.policy.call_timeout_s, connect=self.policy.connect_timeout_s
                ),
            )
            address, credentials = _split_credentials(self._base_url)
            self._client = openai.AsyncOpenAI(
                api_key=self._key or "none",
                base_url=address,
                max_retries=0,
                http_client=http_client,
                default_headers={"Authorization": credentials} if credentials else None,
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
        """What a server says, without the key and without what would steer a terminal."""
        text = text.replace(self._key, "[key]") if self._key else text
        return _CONTROL.sub(" ", text)


def public_url(url: str) -> str:
    """An address without user name, password, query and fragment."""
    parts = urlsplit(url)
    host = parts.netloc.rsplit("@", 1)[-1]
    return urlunsplit((parts.scheme, host, parts.path, "", ""))


def _split_credentials(url: str) -> tuple[str, str | None]:
    """An address without user name and password, and the header that says them instead."""
    parts = urlsplit(url)
    user_info, separator, host = parts.netloc.rpartition("@")
    if not separator:
        return url, None
    user, _, password = user_info.partition(":")
    plain = f"{unquote(user)}:{unquote(password)}".encode()
    return (
        urlunsplit(parts._replace(netloc=host)),
        f"Basic {base64.b64encode(plain).decode('ascii')}",
    )


def _of_connection(error: Exception) -> _AttemptError:
    import aiohttp  # noqa: PLC0415  the transport of the SDK, loaded with it

    # The SDK and its transport call most failures a timeout: what it was says the first cause.
    cause: BaseException = error
    unreachable = False
    while cause.__cause__ is not None:
        cause = cause.__cause__
        unreachable = unreachable or isinstance(cause, aiohttp.ClientConnectorError)
    if isinstance(cause, TimeoutError):
        return _AttemptError("the server did not answer in time")
    detail = "" if cause is error else f": {type(cause).__name__} {cause}".rstrip()
    return _AttemptError(f"the connection failed{detail}", unreachable=unreachable)


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
