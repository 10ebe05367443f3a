"""Errors of the server as RFC 9457 problem details: each kind is declared once, with its page.

An answer shows only these titles and the details that routes give: never a stack trace or a message
of the database.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from starlette.responses import JSONResponse

MEDIA_TYPE = "application/problem+json"


@dataclass(frozen=True, slots=True)
class ProblemKind:
    """A kind of problem.

    Attributes:
        status: the HTTP status of the answer.
        title: the same for every problem of this kind.
        explanation: shown on its page, ``/problems/NAME``.
    """

    status: int
    title: str
    explanation: str


KINDS: dict[str, ProblemKind] = {
    "malformed": ProblemKind(
        400, "The request cannot be read", "A header, a parameter or the body is not well formed."
    ),
    "unauthorized": ProblemKind(
        401,
        "A valid token is needed",
        "Send `Authorization: Bearer TOKEN`. A token can be unknown, expired or revoked; "
        "the server does not say which.",
    ),
    "forbidden": ProblemKind(
        403, "This is not permitted", "The token lacks the scope, or the account lacks the role."
    ),
    "not-found": ProblemKind(
        404, "There is nothing here", "It does not exist, or you may not see it."
    ),
    "method-not-allowed": ProblemKind(
        405, "This address has no such method", "The header `Allow` lists the methods."
    ),
    "not-acceptable": ProblemKind(
        406, "There is no such representation", "Request one of the documented media types."
    ),
    "conflict": ProblemKind(
        409,
        "The state does not permit this",
        "It has changed, or another request is still running.",
    ),
    "precondition-failed": ProblemKind(
        412, "It has changed meanwhile", "Read it again, and send its new ETag as `If-Match`."
    ),
    "too-large": ProblemKind(
        413, "The body is too large", "Limits are listed in docs/serve.md and at `/v1/status`."
    ),
    "unsupported-type": ProblemKind(
        415, "This content type is not supported", "Send one of the documented content types."
    ),
    "invalid": ProblemKind(
        422, "The content is not valid", "`errors` says in which line or field, and why."
    ),
    "key-reused": ProblemKind(
        422,
        "The idempotency key belongs to another request",
        "The same key was sent with another body or to another address. Use a new key.",
    ),
    "precondition-required": ProblemKind(
        428, "If-Match is needed", "Read the object first, and send its ETag as `If-Match`."
    ),
    "quota-exceeded": ProblemKind(
        429,
        "The quota of the phase is used up",
        "A phase accepts a limited number of submissions from each team per day and in total; the "
        "day begins at 00:00 UTC.",
    ),
    "too-many-requests": ProblemKind(
        429, "Too many requests", "`Retry-After` says when the next one is accepted."
    ),
    "headers-too-large": ProblemKind(
        431, "The headers are too large", "Send fewer or shorter headers."
    ),
    "internal": ProblemKind(
        500, "The server failed", "The error is logged under the id in `instance`."
    ),
    "unavailable": ProblemKind(
        503,
        "The server does not accept this now",
        "Maintenance, a full queue, or no database; `Retry-After` says when to try again.",
    ),
    "no-space": ProblemKind(
        507, "The server has no space for this", "Its operator has to free some space."
    ),
}


@dataclass
class Problem(Exception):  # noqa: N818  the RFC's word
    """Ends a request with a problem of one of the :data:`KINDS`.

    Attributes:
        name: the name of its kind.
        detail: what happened, and what to do.
        errors: one for each fault: ``detail`` with ``pointer`` or ``line``.
        headers: additional headers of the answer, such as ``Retry-After``.
    """

    name: str
    detail: str | None = None
    errors: Sequence[Mapping[str, Any]] = ()
    headers: Mapping[str, str] = field(default_factory=dict)

    @property
    def kind(self) -> ProblemKind:
        """The kind: status, title and explanation."""
        return KINDS[self.name]

    @property
    def further(self) -> list[object]:
        """The faults that ``detail`` does not already name."""
        return [
            error
            for error in self.errors
            if str(error.get("detail", "")) not in (self.detail or "") or "pointer" in error
        ]

    def document(self, instance: str, prefix: str = "") -> dict[str, Any]:
        """The body of the answer; ``prefix`` is the path under which the server is reached."""
        document: dict[str, Any] = {
            "type": f"{prefix}/problems/{self.name}",
            "title": self.kind.title,
            "status": self.kind.status,
            "instance": instance,
        }
        if self.detail is not None:
            document["detail"] = self.detail
        if self.errors:
            document["errors"] = [dict(error) for error in self.errors]
        return document

    def response(self, instance: str, prefix: str = "") -> JSONResponse:
        """The answer."""
        headers = dict(self.headers)
        if self.kind.status == 401:
            headers.setdefault("WWW-Authenticate", 'Bearer realm="judge"')
        return JSONResponse(
            self.document(instance, prefix),
            status_code=self.kind.status,
            headers={**headers, "Cache-Control": "no-store"},
            media_type=MEDIA_TYPE,
        )


def not_found() -> Problem:
    """The problem for an object that does not exist or that the caller may not see."""
    return Problem("not-found")


def for_status(status: int) -> str:
    """The kind of problem for a bare status code."""
    return next((name for name, kind in KINDS.items() if kind.status == status), "internal")
