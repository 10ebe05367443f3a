"""The client of OpenAI-compatible servers, and the only module that imports the ``openai`` SDK.

The SDK sends the requests, but retries, time limits and the reading of bodies are done here,
because the SDK gives up on a ``Retry-After`` of more than two minutes, puts no time limit on a
whole reply, and reads bodies of any size. With this client, a server that sends nonsense, or never
stops sending, costs one attempt and little memory. A key is sent only to its own endpoint, as no
redirect is followed. If a server sends the key back, it is masked before the answer is parsed,
shown or stored.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import random
import re
import time
import zlib
from collections.abc import AsyncIterable, Awaitable, Callable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import IO, TYPE_CHECKING, Any, TypeVar
from urllib.parse import urljoin

from judge.errors import InferenceError
from judge.files.documents import MAX_FILE_BYTES
from judge.inference.chat import (
    CallError,
    ChatReply,
    ChatRequest,
    NotACompletionError,
    estimate_request_tokens,
    read_model_names,
    read_reply,
    read_retry_after,
)
from judge.inference.config import (
    DEFAULT_BASE_URL,
    KEY_MASK,
    KeyMask,
    check_address,
    origin_of,
    public_url,
    secrets_of,
    split_credentials,
)
from judge.inference.pacing import Pacer

if TYPE_CHECKING:
    import httpx2
    import openai


_RETRIED_STATUS = frozenset({408, 409, 425, 429})
_ACCESS_STATUS = frozenset({401, 403, 404})
_CONTEXT_WORDS = ("context_length_exceeded", "context length", "maximum context", "context size")
_MAX_TARGET_CHARS = 200
_PICTURES = r"(?:image|picture|vision|multi-?modal)"
_NO_PICTURES = re.compile(
    rf"{_PICTURES}[^.]{{0,60}}(?:not|n't|un)[ -]?(?:be )?(?:support|enabl|allow)"
    rf"|(?:not|n't) (?:support|accept|allow|have)[^.]{{0,60}}{_PICTURES}"
    r"|not a (?:multi-?modal|vision)|unknown variant.{0,3}image_url|at most 0 image"
    r"|content[^.]{0,60}(?:must be|should be|expected) a (?:valid )?string"
    r"|sequence, expected a string",
    re.IGNORECASE,
)
_THIS_PICTURE = re.compile(
    r"format|mime|media type|too (?:large|big|many|small)|decode|corrupt", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """How failed calls are retried.

    Attributes:
        attempts: the largest number of attempts, including the first one.
        first_wait_s: wait before the second attempt; doubled before each further one.
        longest_wait_s: upper limit of these waits, unless the server names a time.
        longest_retry_after_s: upper limit of ``Retry-After``; if the server asks for more, the
            call is given up, and the same command continues it later.
        call_timeout_s: time limit of one attempt, until the last byte.
        connect_timeout_s: time limit for connecting.
        timeouts: how many attempts may run into ``call_timeout_s``: a reply that does not end in
            time once hardly ever ends in time the next time, and each attempt takes the whole time.
        first_contacts: how many attempts are made to reach a server that has never answered; its
            address is probably wrong.
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
        """Returns the seconds to wait, with jitter, after a failed attempt (numbered from 1)."""
        wait: float = min(self.first_wait_s * 2.0 ** (attempt - 1), self.longest_wait_s)
        return wait * random.uniform(0.75, 1.0)  # noqa: S311  spreads requests, hides nothing


@dataclass(eq=False)
class AttemptError(Exception):
    """One attempt failed.

    Attributes:
        message: what happened.
        retry: whether another attempt may succeed.
        retry_after_s: seconds that the server asks to wait; None if it does not ask.
        kind: kind of the CallError if there is no other attempt.
        timed_out: whether the time limit of the call was reached.
        unreachable: whether no connection could be made.
    """

    message: str
    retry: bool = True
    retry_after_s: float | None = None
    kind: str = "gave-up"
    timed_out: bool = False
    unreachable: bool = False


def error_of_connection(error: Exception) -> AttemptError:
    """Returns the error for a connection that failed or broke."""
    import aiohttp  # noqa: PLC0415  the transport of the SDK, loaded with it

    # The SDK and its transport report most failures as timeouts; the first cause is the real one.
    cause: BaseException = error
    unreachable = False
    while cause.__cause__ is not None:
        cause = cause.__cause__
        unreachable = unreachable or isinstance(cause, aiohttp.ClientConnectorError)
    if isinstance(cause, TimeoutError):
        return AttemptError("the server did not answer in time")
    detail = "" if cause is error else f": {type(cause).__name__} {cause}".rstrip()
    return AttemptError(f"the connection failed{detail}", unreachable=unreachable)


def error_of_status(error: openai.APIStatusError) -> AttemptError:
    """Returns the error for an unsuccessful response."""
    if 300 <= error.status_code < 400:
        return AttemptError(_of_redirect(error), retry=False, kind="access")
    wait_s = read_retry_after(error.response.headers)
    return error_of_answer(error.status_code, _detail(error), wait_s)


def error_of_answer(status: int, detail: str, retry_after_s: float | None) -> AttemptError:
    """Returns the error for an unsuccessful status, with the server's details.

    Args:
        status: the status.
        detail: code and message of the error; empty if there are none.
        retry_after_s: seconds that the server asks to wait; None if it does not ask.
    """
    message = f"the server says {status}{f': {detail}' if detail else ''}"
    lowered = detail.lower()
    if status in {400, 413, 422} and any(words in lowered for words in _CONTEXT_WORDS):
        return AttemptError(message, retry=False, kind="context-length")
    if status in _RETRIED_STATUS or status >= 500:
        if "insufficient_quota" in lowered or "insufficient balance" in lowered:
            return AttemptError(message, retry=False, kind="access")
        return AttemptError(message, retry_after_s=retry_after_s)
    if status == 402 or status in _ACCESS_STATUS:
        return AttemptError(message, retry=False, kind="access")
    return AttemptError(message, retry=False, kind="refused")


def refuses_pictures(message: str) -> bool:
    """Whether an error means that the model accepts no pictures at all, and not only this picture.

    Servers agree on neither the status nor the words: llama.cpp answers 500 ("image input is not
    supported"), vLLM 400 ("is not a multimodal model", "At most 0 image(s)"), others say that
    content must be a string.

    Args:
        message: the error of a request that shows pictures.
    """
    is_about_this_one = _THIS_PICTURE.search(message) is not None
    return not is_about_this_one and _NO_PICTURES.search(message) is not None


def _of_redirect(error: openai.APIStatusError) -> str:
    """Returns the message for a redirect, which is refused: the key must not reach its target."""
    target = error.response.headers.get("location", "")
    with contextlib.suppress(ValueError):
        target = public_url(urljoin(str(error.request.url), target))
    return (
        f"the server says {error.status_code} and points to {target[:_MAX_TARGET_CHARS]!r}: "
        "redirects are not followed. If that is the right server, give its address"
    )


def detail_of(body: object) -> str | None:
    """Returns the code and message of an OpenAI-style error; None if the body is something else."""
    inner = body.get("error", body) if isinstance(body, dict) else None
    if not isinstance(inner, dict):
        return None
    return ": ".join(str(inner[name]) for name in ("code", "message") if inner.get(name))[:500]


def _detail(error: openai.APIStatusError) -> str:
    if (detail := detail_of(error.body)) is not None:
        return detail
    with contextlib.suppress(
        Exception
    ):  # the body was not read or is broken, so it gives no details
        text = error.response.text.strip()
        title = _HTML_TITLE.match(text)  # the page of a proxy says no more than its title
        return (title[1] if title else text)[:200]
    return ""


_HTML_TITLE = re.compile(
    r"<(?:!doctype|html).{,2000}?<title>\s*([^<]*[^<\s])", re.DOTALL | re.IGNORECASE
)


MAX_BODY_BYTES = 8 * 1024 * 1024
"""Largest reply or list of models that is read, in bytes, both compressed and decompressed."""

MAX_ERROR_BYTES = 64 * 1024
"""How many bytes are read of the body of an error; the rest is ignored."""

ERROR_BODY_S = 10.0
"""Longest time to wait for the body of an error, in seconds."""

_PACKED = frozenset({"gzip", "x-gzip", "deflate"})


class BodyError(ValueError):
    """The body of an answer cannot be accepted; the message says why."""


async def read_body(chunks: AsyncIterable[bytes], encoding: str | None) -> bytes:
    """Reads the body of an answer and decompresses it.

    Args:
        chunks: the raw bytes as they arrive.
        encoding: the header ``Content-Encoding``.

    Raises:
        BodyError: it is longer than :data:`MAX_BODY_BYTES`, or cannot be decompressed.
    """
    received = bytearray()
    async for chunk in chunks:
        received += chunk
        if len(received) > MAX_BODY_BYTES:
            raise BodyError(f"the reply is longer than {MAX_BODY_BYTES} bytes")
    body = _unpack(bytes(received), encoding, MAX_BODY_BYTES)
    if len(body) > MAX_BODY_BYTES:
        raise BodyError(f"the reply is longer than {MAX_BODY_BYTES} bytes once unpacked")
    return body


async def keep_body(chunks: AsyncIterable[bytes], encoding: str | None, file: IO[bytes]) -> None:
    """Writes the body of an answer to a file, whose old content is replaced.

    Args:
        chunks: the raw bytes as they arrive.
        encoding: the header ``Content-Encoding``; files must not be compressed.
        file: the file.

    Raises:
        BodyError: the body is longer than :data:`MAX_FILE_BYTES`, or compressed.
        OSError: the file cannot be written.
    """
    if (encoding or "identity").strip().lower() != "identity":
        raise BodyError(
            f"the file is compressed with {str(encoding)[:40]!r}, which was not requested"
        )
    file.seek(0)
    file.truncate()
    received = 0
    async for chunk in chunks:
        received += len(chunk)
        if received > MAX_FILE_BYTES:
            raise BodyError(f"the file is longer than {MAX_FILE_BYTES} bytes")
        file.write(chunk)
    file.seek(0)


async def read_error_body(
    chunks: AsyncIterable[bytes], encoding: str | None, within_s: float
) -> bytes:
    """Reads enough of the body of an error for a message; never fails because of its content.

    Args:
        chunks: the raw bytes as they arrive.
        encoding: the header ``Content-Encoding``.
        within_s: seconds after which the rest of the body is ignored.
    """
    received = bytearray()
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(within_s):
            async for chunk in chunks:
                received += chunk
                if len(received) >= MAX_ERROR_BYTES:
                    break
    try:
        packed = bytes(received[:MAX_ERROR_BYTES])
        return _unpack(packed, encoding, MAX_ERROR_BYTES, whole=False)
    except BodyError:
        return b""


def _unpack(body: bytes, encoding: str | None, limit: int, *, whole: bool = True) -> bytes:
    """Returns the decompressed body, cut off one byte after the limit."""
    name = (encoding or "identity").strip().lower()
    if name in {"identity", ""} or not body:
        return body
    if name not in _PACKED:
        raise BodyError(f"the reply is compressed with {name[:40]!r}, which was not requested")
    for window in (zlib.MAX_WBITS | 32, -zlib.MAX_WBITS):  # with or without a header
        unpacker = zlib.decompressobj(window)
        with contextlib.suppress(zlib.error):
            unpacked = unpacker.decompress(body, limit + 1)
            if unpacker.eof or len(unpacked) > limit or not whole:
                return unpacked
    raise BodyError("the reply cannot be unpacked")


_T = TypeVar("_T")
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]+")
_TRANSPORT_PACKAGES = frozenset({"aiohttp", "httpx", "httpx2"})
_SENT_HEADERS = frozenset(
    {"host", "authorization", "content-type", "content-length", "accept", "accept-encoding"}
    | {"connection", "user-agent", "transfer-encoding"}
)
_SHOWN_CHARS = 200
_KEPT_IN: ContextVar[IO[bytes] | None] = ContextVar("_KEPT_IN", default=None)
"""The file to write the answer to the current request to; None to keep it in memory."""


@dataclass(frozen=True, slots=True)
class ServerRequest:
    """A request to a chat model's server that is not for a chat completion.

    Attributes:
        path: the path below the address of the endpoint.
        body: fields that are posted; None for a request that reads or deletes.
        file: name and content of a file that is posted with the fields.
        keep_in: a file to write the answer to, which may be large; its old content is replaced.
        deletes: whether the request deletes the resource at the path.
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
        key: the key; None if the server needs no key.
        policy: retries and timeouts.
        pacer: limits of requests and tokens per minute, shared by all calls.

    Attributes:
        mask: removes the key from everything that the server sends.
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
        """Sends a request, with retries, and returns the reply.

        Raises:
            CallError: no reply could be obtained.
        """
        started = time.monotonic()
        estimate = estimate_request_tokens(request.messages) if self.pacer.is_limited else 0

        async def ask_once(attempt: int) -> ChatReply:
            await self.pacer.admit(estimate)
            reply = await self._attempt(request)
            self.pacer.settle(estimate, reply.prompt_tokens, reply.completion_tokens)
            is_empty = not reply.text and reply.finish_reason != "length"
            if is_empty and attempt < self.policy.attempts:
                raise AttemptError("the reply was empty")
            return reply

        reply, attempt, faults = await self._retry(ask_once, timeouts=self.policy.timeouts)
        seconds = time.monotonic() - started
        return replace(reply, seconds=seconds, attempts=attempt, faults=tuple(faults))

    async def call(self, request: ServerRequest, *, once: bool = False) -> bytes:
        """Sends a request that is not for a chat completion to the server, with retries.

        Args:
            request: the request.
            once: whether to try only once, because the server must not perform it twice.

        Returns:
            The body of the answer; empty if it was written to a file.

        Raises:
            CallError: the server refused (``refused``, ``access``), or could not be reached or
                understood (``gave-up``); in that case it may have performed the request.
        """
        if once:
            try:
                return await self._exchange(self._run(request))
            except AttemptError as error:
                self._wait_after(
                    error, 1
                )  # a server that was never reached: the address is probably wrong
                message = self._without_key(error.message)
                raise CallError(error.kind, message, attempts=1, faults=[message]) from None

        async def run_once(_: int) -> bytes:
            return await self._exchange(self._run(request))

        body, _, _ = await self._retry(run_once, timeouts=self.policy.attempts + 1)
        return body

    async def only_model(self) -> str:
        """Returns the name of the only model that the server has.

        Raises:
            InferenceError: the server has no model or several, or does not answer.
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
        """Returns the body of the response to a request, within the limits of time and size.

        Raises:
            AttemptError: there was no response, or an error.
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
            # While the body is read, errors come from the transport and not from the SDK.
            if type(error).__module__.split(".")[0] not in _TRANSPORT_PACKAGES:
                raise
            raise AttemptError(f"the connection broke: {type(error).__name__} {error}") from None

    async def _post(self, request: ChatRequest) -> httpx2.Response:
        # The SDK's create() takes 2 ms to build objects that are not needed here, and drops fields
        # that it does not know (top_k, grammar …).
        response: httpx2.Response = await self._sdk().post(
            "/chat/completions", cast_to=_http().Response, body=request.body()
        )
        self.pacer.note_headers(response.headers)
        return response

    async def _get_models(self) -> httpx2.Response:
        # The SDK's list() builds an object for every entry, however many a server sends.
        return await self._sdk().get("/models", cast_to=_http().Response)

    async def _run(self, request: ServerRequest) -> httpx2.Response:
        sdk, path, response = self._sdk(), request.path, _http().Response
        kept = _KEPT_IN.set(request.keep_in)
        try:
            if request.file is not None:
                name, content = request.file
                content.seek(0)
                return await sdk.post(
                    path,
                    cast_to=response,
                    body=request.body,
                    files=[("file", (name, content, "application/jsonl"))],
                    options={"headers": {"Content-Type": "multipart/form-data"}},
                )
            if request.body is not None:
                return await sdk.post(path, cast_to=response, body=request.body)
            if request.deletes:
                return await sdk.delete(path, cast_to=response)
            return await sdk.get(path, cast_to=response)
        finally:
            _KEPT_IN.reset(kept)

    async def _bound(self, response: httpx2.Response) -> None:
        """Reads a response of any status, up to a limit, before the SDK can read it."""
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
                # The status has arrived already, and matters more than the rest of the body.
                within_s = min(ERROR_BODY_S, self.policy.call_timeout_s / 4)
                body = self.mask.masked(await read_error_body(stream, encoding, within_s))
            response.stream = http.ByteStream(body)
        finally:
            await stream.aclose()

    async def _leave_out(self, request: httpx2.Request) -> None:
        """Removes headers from ``OPENAI_…`` variables, unless the request goes to OpenAI."""
        if origin_of(self._base_url) != origin_of(DEFAULT_BASE_URL):
            for name in set(request.headers) - _SENT_HEADERS:
                del request.headers[name]

    def _sdk(self) -> openai.AsyncOpenAI:
        if self._client is None:
            import openai  # noqa: PLC0415  loaded when a model is asked, 0.5 s

            # If the server answers immediately, a call takes a sixth of the time that it takes with
            # the default transport.
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
                    # Set explicitly, since OPENAI_CUSTOM_HEADERS could set another one.
                    "Authorization": credentials or f"Bearer {self._key or 'none'}",
                },
            )
        return self._client

    # -- retries ---------------------------------------------------------------------------------

    async def _retry(
        self, once: Callable[[int], Awaitable[_T]], *, timeouts: int
    ) -> tuple[_T, int, list[str]]:
        """Tries until an attempt succeeds, or no further attempt is allowed.

        Neither the SDK's retries nor a retry library suffice. The wait depends on the error, and on
        the time that the server asks to wait, which applies to all other calls too. The number of
        attempts depends on the error (time limits, servers that never answered). The message
        reports the outcome of each attempt.

        Args:
            once: makes one attempt; called with its number, from 1.
            timeouts: maximum number of attempts that may run into the time limit.

        Returns:
            The result of the attempt that succeeded, its number, and the errors of those before.

        Raises:
            CallError: all attempts failed.
        """
        faults: list[str] = []
        timed_out = 0
        for attempt in range(1, self.policy.attempts + 1):
            try:
                return await once(attempt), attempt, faults
            except AttemptError as error:
                faults.append(self._without_key(error.message))
                timed_out += error.timed_out
                error.retry = error.retry and timed_out < timeouts
                wait_s = self._wait_after(error, attempt)
                if wait_s is None:
                    raise self._give_up(error, attempt, faults) from None
                if error.retry_after_s is not None:
                    self.pacer.pause(error.retry_after_s)
            await asyncio.sleep(wait_s)
        raise AssertionError("the last attempt either returns or raises")

    def _wait_after(self, error: AttemptError, attempt: int) -> float | None:
        """Returns the seconds to wait before the next attempt; None if there is no next attempt."""
        if error.unreachable and not self._was_answered:
            error.kind = "access"
            error.retry = attempt < self.policy.first_contacts
        if not error.retry or attempt >= self.policy.attempts:
            return None
        if error.retry_after_s is None:
            return self.policy.wait_s(attempt)
        if error.retry_after_s > self.policy.longest_retry_after_s:
            return None
        # Wait a little longer than the server asks, and not all calls equally long.
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
        """Returns a server's text without the key and without terminal control characters."""
        text = text.replace(self._key, KEY_MASK.decode()) if self._key else text
        shown = self.mask.masked(text.encode("utf-8", "replace")).decode("utf-8", "replace")
        return _CONTROL.sub(" ", shown)


def _http() -> Any:
    """Imports the SDK's transport: version 3 uses another package, with the same names."""
    import openai  # noqa: PLC0415  loaded when a model is asked, 0.5 s

    major = int(openai.__version__.partition(".")[0])
    return importlib.import_module("httpx2" if major >= 3 else "httpx")
