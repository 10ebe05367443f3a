"""The one place that imports the ``openai`` SDK: chat completions of any compatible server.

The SDK makes the requests. Failures are handled here, because the SDK's own retries give up on a
``Retry-After`` of more than two minutes, set no limit on a reply as a whole, and cannot be
counted. What a server sends is read up to a limit (:mod:`judge.inference.bodies`) and parsed here,
so a server that sends nonsense, or never stops sending, costs one attempt and no memory. A key is
sent only to its own endpoint: redirects are not followed. If a server sends it back, in a reply or
anywhere else, it is masked before anything is read of what came.
"""

from __future__ import annotations

import asyncio
import importlib
import random
import re
import time
from collections.abc import Awaitable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import IO, TYPE_CHECKING, Any

from judge.errors import InferenceError
from judge.inference.address import (
    DEFAULT_BASE_URL,
    check_address,
    origin_of,
    public_url,
    secrets_of,
    split_credentials,
)
from judge.inference.answers import (
    NotACompletionError,
    read_model_names,
    read_reply,
)
from judge.inference.attempts import (
    AttemptError,
    RetryPolicy,
    error_of_connection,
    error_of_status,
    refuses_pictures,
)
from judge.inference.bodies import (
    ERROR_BODY_S,
    KEY_MASK,
    BodyError,
    KeyMask,
    keep_body,
    read_body,
    read_error_body,
)
from judge.inference.chat import CallError, ChatReply, ChatRequest, estimate_request_tokens
from judge.inference.pacing import Pacer

if TYPE_CHECKING:
    import httpx2
    import openai

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]+")
_TRANSPORT_PACKAGES = frozenset({"aiohttp", "httpx", "httpx2"})
_SENT_HEADERS = frozenset(
    {"host", "authorization", "content-type", "content-length", "accept", "accept-encoding"}
    | {"connection", "user-agent", "transfer-encoding"}
)
_SHOWN_CHARS = 200
_KEPT_IN: ContextVar[IO[bytes] | None] = ContextVar("_KEPT_IN", default=None)
"""Where the answer to the request under way is kept; None for memory."""


@dataclass(frozen=True, slots=True)
class Errand:
    """A request to the server of a chat model for something other than a reply.

    Attributes:
        path: below the address of the endpoint.
        body: what is posted; None for a request that only reads, or deletes.
        file: name and content of a file that is posted with it.
        keep_in: the file that takes the answer, which may be large; emptied before.
        deletes: whether what is at the path is deleted.
    """

    path: str
    body: Mapping[str, Any] | None = None
    file: tuple[str, IO[bytes]] | None = None
    keep_in: IO[bytes] | None = None
    deletes: bool = False


class OpenAIChatModel:
    """A chat model behind an OpenAI-compatible endpoint.

    Belongs to the event loop in which it is first used.

    Args:
        base_url: the endpoint, up to and including ``/v1``.
        key: the key, or None if the server needs none.
        policy: retries and timeouts.
        pacer: limits of requests and tokens per minute, shared by all calls.

    Attributes:
        mask: takes the key out of what the server sends.
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
        self._base_url = check_address(base_url)
        self._key = key
        self.mask = KeyMask(key, *secrets_of(base_url))
        self._client: openai.AsyncOpenAI | None = None
        self._was_answered = False

    @property
    def endpoint(self) -> str:
        """Address of the server, without credentials."""
        return public_url(self._base_url)

    async def complete(self, request: ChatRequest) -> ChatReply:
        """Asks once, retries included.

        Raises:
            CallError: no reply could be obtained.
        """
        started = time.monotonic()
        faults: list[str] = []
        timeouts = 0
        estimate = estimate_request_tokens(request.messages) if self.pacer.is_limited else 0
        for attempt in range(1, self.policy.attempts + 1):
            await self.pacer.admit(estimate)
            try:
                reply = await self._attempt(request)
            except AttemptError as error:
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

    async def call(self, errand: Errand, *, once: bool = False) -> bytes:
        """Asks the same server for something other than a reply, retries included.

        Args:
            errand: what is asked.
            once: whether it is tried only once, since it must not happen twice.

        Returns:
            The body of the answer; nothing where the errand keeps it in a file.

        Raises:
            CallError: the server refused (``refused``, ``access``), or could not be reached or
                understood (``gave-up``), in which case it may have done what was asked.
        """
        faults: list[str] = []
        for attempt in range(1, self.policy.attempts + 1):
            try:
                return await self._exchange(self._run(errand))
            except AttemptError as error:
                faults.append(self._without_key(error.message))
                wait_s = self._wait_after(error, attempt)
                if once:
                    raise CallError(error.kind, faults[0], attempts=1, faults=faults) from None
                if wait_s is None:
                    raise self._give_up(error, attempt, faults) from None
            await asyncio.sleep(wait_s)
        raise AssertionError("the last attempt either returns or raises")

    async def only_model(self) -> str:
        """The name of the one model that the server has.

        Raises:
            InferenceError: it has none or several, or cannot be asked.
        """
        try:
            names = read_model_names(await self._exchange(self._get_models()))
        except (AttemptError, NotACompletionError) as error:
            reason = self._without_key(str(error))
            raise InferenceError(
                f"{self.endpoint} does not say which models it has: {reason}",
                hint="Is the server running? Name the model with --model NAME --base-url URL.",
            ) from None
        if len(names) != 1:
            shown = ", ".join(self._without_key(name[:_SHOWN_CHARS]) for name in names[:20])
            raise InferenceError(
                f"{self.endpoint} has {len(names)} models: {shown}",
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
        started = time.monotonic()
        self.requests_sent += 1
        try:
            body = await self._exchange(self._post(request))
        except AttemptError as error:
            if request.has_pictures and refuses_pictures(error.message):
                error.kind, error.retry = "pictures", False
            raise
        try:
            return read_reply(body, time.monotonic() - started)
        except NotACompletionError as error:
            raise AttemptError(str(error)) from None

    async def _exchange(self, sending: Awaitable[httpx2.Response]) -> bytes:
        """The response to a request, within the allowed time and size.

        Raises:
            AttemptError: no response came, or an error.
        """
        import openai  # noqa: PLC0415  loaded when a model is asked, 0.5 s

        try:
            async with asyncio.timeout(self.policy.call_timeout_s):
                response = await sending
                return await response.aread()
        except TimeoutError:
            message = f"no whole reply within {self.policy.call_timeout_s:g} s"
            raise AttemptError(message, timed_out=True) from None
        except openai.APIStatusError as error:
            raise error_of_status(error) from None
        except openai.APIConnectionError as error:
            raise error_of_connection(error) from None
        except BodyError as error:
            raise AttemptError(str(error)) from None
        except (openai.OpenAIError, OSError, ValueError) as error:
            raise AttemptError(f"the call failed: {type(error).__name__} {error}") from None
        except Exception as error:
            # Errors of the transport's own package while the body is read are not the SDK's.
            if type(error).__module__.split(".")[0] not in _TRANSPORT_PACKAGES:
                raise
            raise AttemptError(f"the connection broke: {type(error).__name__} {error}") from None

    async def _post(self, request: ChatRequest) -> httpx2.Response:
        # The SDK's own create() builds and checks objects that nobody needs here, 2 ms a call,
        # and drops what it does not know (top_k, grammar …) unless that is wrapped.
        response: httpx2.Response = await self._sdk().post(
            "/chat/completions", cast_to=_http().Response, body=request.body()
        )
        self.pacer.note_headers(response.headers)
        return response

    async def _get_models(self) -> httpx2.Response:
        # The SDK's own list() makes an object of every entry, as many as a server may send.
        return await self._sdk().get("/models", cast_to=_http().Response)

    async def _run(self, errand: Errand) -> httpx2.Response:
        sdk, path, response = self._sdk(), errand.path, _http().Response
        kept = _KEPT_IN.set(errand.keep_in)
        try:
            if errand.file is not None:
                name, content = errand.file
                content.seek(0)
                return await sdk.post(
                    path,
                    cast_to=response,
                    body=errand.body,
                    files=[("file", (name, content, "application/jsonl"))],
                    options={"headers": {"Content-Type": "multipart/form-data"}},
                )
            if errand.body is not None:
                return await sdk.post(path, cast_to=response, body=errand.body)
            if errand.deletes:
                return await sdk.delete(path, cast_to=response)
            return await sdk.get(path, cast_to=response)
        finally:
            _KEPT_IN.reset(kept)

    async def _bound(self, response: httpx2.Response) -> None:
        """Reads a response of any status before the SDK does, up to a limit."""
        http = _http()
        self._was_answered = True
        assert isinstance(response.stream, http.AsyncByteStream)
        stream, encoding = response.stream, response.headers.pop("content-encoding", None)
        try:
            if response.is_success and (file := _KEPT_IN.get()) is not None:
                await keep_body(stream, encoding, file)
                body = b""
            elif response.is_success:
                body = self.mask.masked(await read_body(stream, encoding))
            else:
                # Its status is known already: that is worth more than its last byte.
                within_s = min(ERROR_BODY_S, self.policy.call_timeout_s / 4)
                body = self.mask.masked(await read_error_body(stream, encoding, within_s))
            response.stream = http.ByteStream(body)
        finally:
            await stream.aclose()

    async def _leave_out(self, request: httpx2.Request) -> None:
        """Removes what the SDK adds from ``OPENAI_…`` variables: it is only for OpenAI."""
        if origin_of(self._base_url) != origin_of(DEFAULT_BASE_URL):
            for name in set(request.headers) - _SENT_HEADERS:
                del request.headers[name]

    def _sdk(self) -> openai.AsyncOpenAI:
        if self._client is None:
            import openai  # noqa: PLC0415  loaded when a model is asked, 0.5 s

            # A sixth of the time of the SDK's own transport for a call that is answered at once.
            http_client = openai.DefaultAioHttpClient(
                timeout=openai.Timeout(
                    self.policy.call_timeout_s, connect=self.policy.connect_timeout_s
                ),
                follow_redirects=False,
                event_hooks={"request": [self._leave_out], "response": [self._bound]},
            )
            address, credentials = split_credentials(self._base_url)
            self._client = openai.AsyncOpenAI(
                api_key=self._key or "none",
                base_url=address,
                max_retries=0,
                http_client=http_client,
                default_headers={
                    "Accept-Encoding": "identity",
                    # Said here, or OPENAI_CUSTOM_HEADERS could say another.
                    "Authorization": credentials or f"Bearer {self._key or 'none'}",
                },
            )
        return self._client

    # -- what is done about a failure ------------------------------------------------------------

    def _wait_after(self, error: AttemptError, attempt: int) -> float | None:
        """Seconds to wait before the next attempt; None if there is none."""
        if error.unreachable and not self._was_answered:
            error.kind = "access"
            error.retry = attempt < self.policy.first_contacts
        if not error.retry or attempt >= self.policy.attempts:
            return None
        if error.retry_after_s is None:
            return self.policy.wait_s(attempt)
        if error.retry_after_s > self.policy.longest_retry_after_s:
            return None
        # A little later than asked, and not all at the same moment.
        return error.retry_after_s + random.uniform(0, min(1.0, error.retry_after_s / 10))  # noqa: S311

    def _give_up(self, error: AttemptError, attempt: int, faults: list[str]) -> CallError:
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
        """What a server says, without the key and without terminal control characters."""
        text = text.replace(self._key, KEY_MASK.decode()) if self._key else text
        shown = self.mask.masked(text.encode("utf-8", "replace")).decode("utf-8", "replace")
        return _CONTROL.sub(" ", shown)


def _http() -> Any:
    """The package that carries the SDK's calls; version 3 has another, with the same names."""
    import openai  # noqa: PLC0415  loaded when a model is asked, 0.5 s

    major = int(openai.__version__.partition(".")[0])
    return importlib.import_module("httpx2" if major >= 3 else "httpx")
