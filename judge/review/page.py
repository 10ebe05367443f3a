"""The review page: its document, and the requests of its script."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from starlette.requests import Request

from judge.errors import UsageError
from judge.report.html.page import Assets, inline_json, render_page
from judge.report.html.pages import KINDS
from judge.review.corrections import Typed
from judge.review.session import ReviewSession
from judge.suspects.decisions import Finding
from judge.web.local_page import INLINE_POLICY, LocalPage, object_of

_ASSETS = Assets(
    scripts=("base.js", "ask.js", "grid.js", "review.js"), styles=("style.css", "review.css")
)
_COMMAND = "judge verify --review"


class ReviewPage(LocalPage):
    """The suspects of a session, one at a time.

    Args:
        session: the session.
        port: the port that requests must name.
    """

    def __init__(self, session: ReviewSession, port: int = 0) -> None:
        super().__init__(_COMMAND, INLINE_POLICY, port)
        self._session = session

    def index(self) -> str:
        """The page with its token."""
        kinds = {
            kind: {"letter": letter, "words": words} for kind, (letter, words) in KINDS.items()
        }
        context = {
            "token": self.token,
            "command": _COMMAND,
            "suite": self._session.suite.name,
            "by": self._session.by,
            "kinds_json": inline_json(kinds),
        }
        return render_page("review.html", context, _ASSETS, connects=True)

    def respond(
        self, method: str, path: str, request: Request, body: bytes
    ) -> dict[str, Any] | None:
        """The answers to the page's script."""
        match method, path:
            case "GET", "/api/overview":
                return self._session.overview()
            case "GET", "/api/suspect" | "/api/workbook":
                query = request.query_params
                index, case, output = (_number(query.get(n)) for n in ("place", "case", "output"))
                if index is None:
                    raise UsageError("which suspect?")
                if path == "/api/workbook":
                    role = query.get("file", "")
                    return self._session.workbook(index, case, output, role)
                return self._session.suspect(index, case, output)
            case "POST", "/api/decide":
                self._decide(object_of(body))
                return self._session.overview()
            case "POST", "/api/withdraw":
                self._session.withdraw(_place(object_of(body)))
                return self._session.overview()
        return None

    def _decide(self, body: Mapping[str, Any]) -> None:
        try:
            finding = Finding(_text(body, "finding"))
        except ValueError as error:
            raise UsageError(f"a decision needs a finding, one of {', '.join(Finding)}") from error
        self._session.decide(
            _place(body),
            finding,
            reason=_text(body, "reason"),
            evidence=_text(body, "evidence"),
            typed=_typed(body),
        )


def _typed(body: Mapping[str, Any]) -> Typed:
    cells, left_out = body.get("cells") or {}, body.get("left_out") or []
    if not isinstance(cells, dict) or not isinstance(left_out, list):
        raise UsageError("cells must be given by case, and left-out cases as a list")
    numbers = {_number(str(number)): str(text) for number, text in cells.items()}
    return Typed(
        cells={number: text for number, text in numbers.items() if number is not None},
        position=_text(body, "position"),
        style=_text(body, "style"),
        left_out=tuple(number for number in left_out if isinstance(number, int)),
        task_left_out=body.get("task_left_out") is True,
    )


def _text(body: Mapping[str, Any], name: str) -> str:
    return str(body.get(name) or "")


def _place(body: Mapping[str, Any]) -> int:
    index = body.get("place")
    if not isinstance(index, int) or isinstance(index, bool):
        raise UsageError("which suspect?")
    return index


def _number(text: str | None) -> int | None:
    if text is None or text == "":
        return None
    if not (text.isascii() and text.isdigit() and len(text) < 9):
        raise UsageError(f"{text!r} is not a number")
    return int(text)
