"""What follows a failed attempt at a call: whether to try again, and when."""

from __future__ import annotations

import contextlib
import random
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import urljoin

from judge.inference.address import public_url
from judge.inference.answers import read_retry_after

if TYPE_CHECKING:
    import openai

_RETRIED_STATUS = frozenset({408, 409, 425, 429})
_ACCESS_STATUS = frozenset({401, 403, 404})
_CONTEXT_WORDS = ("context_length_exceeded", "context length", "maximum context", "context size")
_SHOWN_CHARS = 200
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


class AttemptError(Exception):
    """One attempt failed.

    Attributes:
        retry: whether another attempt may do better.
        retry_after_s: what the server asked for.
        kind: kind of the CallError where there is no other attempt.
        timed_out: the time limit of the call was reached.
        unreachable: no connection could be made.
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


def error_of_connection(error: Exception) -> AttemptError:
    """A connection that could not be made, or that broke."""
    import aiohttp  # noqa: PLC0415  the transport of the SDK, loaded with it

    # The SDK and its transport call most failures a timeout: what it was says the first cause.
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
    """A status other than success."""
    if 300 <= error.status_code < 400:
        return AttemptError(_of_redirect(error), retry=False, kind="access")
    wait_s = read_retry_after(error.response.headers)
    return error_of_answer(error.status_code, _detail(error), wait_s)


def error_of_answer(status: int, detail: str, retry_after_s: float | None) -> AttemptError:
    """A status other than success, with what the server says about it.

    Args:
        status: the status.
        detail: code and message of the error; empty if there are none.
        retry_after_s: seconds that the server asks to wait, if it does.
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
    """Whether an error says that the model takes no pictures, rather than not this one.

    Servers agree on neither status nor words: llama.cpp answers 500 ("image input is not
    supported"), vLLM 400 ("is not a multimodal model", "At most 0 image(s)"), others that content
    must be a string.

    Args:
        message: the error of a request that shows pictures.
    """
    of_this_one = _THIS_PICTURE.search(message) is not None
    return not of_this_one and _NO_PICTURES.search(message) is not None


def _of_redirect(error: openai.APIStatusError) -> str:
    """The message for a redirect: the key belongs to this server, not to the target."""
    target = error.response.headers.get("location", "")
    with contextlib.suppress(ValueError):
        target = public_url(urljoin(str(error.request.url), target))
    return (
        f"the server says {error.status_code} and points to {target[:_SHOWN_CHARS]!r}: redirects "
        "are not followed. If that is the right server, give its address"
    )


def detail_of(body: object) -> str | None:
    """Code and message of an error as servers of this kind send it, or None."""
    inner = body.get("error", body) if isinstance(body, dict) else None
    if not isinstance(inner, dict):
        return None
    return ": ".join(str(inner[name]) for name in ("code", "message") if inner.get(name))[:500]


def _detail(error: openai.APIStatusError) -> str:
    if (detail := detail_of(error.body)) is not None:
        return detail
    with contextlib.suppress(Exception):  # an unread or broken body has no detail to give
        return error.response.text.strip()[:200]
    return ""
