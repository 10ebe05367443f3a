"""The page for a person who works on a desktop: its document, and the requests of its script."""

from __future__ import annotations

import base64
from typing import Any

from starlette.requests import Request

from judge.errors import UsageError
from judge.live.session import Ending, LiveSession
from judge.report.html.page import Assets, render_page
from judge.web.local_page import INLINE_POLICY, LocalPage, object_of

_ASSETS = Assets(scripts=("base.js", "ask.js", "live.js"), styles=("style.css", "live.css"))
_COMMAND = "judge desktop"


class LivePage(LocalPage):
    """A page with a desktop that a person works on.

    Args:
        session: the session.
        port: the port that requests must name.
    """

    def __init__(self, session: LiveSession, port: int = 0) -> None:
        super().__init__(_COMMAND, INLINE_POLICY, port)
        self._session = session

    def index(self) -> str:
        """The page with its token; the clock starts when it is first loaded."""
        self._session.begin()
        task = self._session.task
        context = {
            "token": self.token,
            "command": _COMMAND,
            "suite": task.suite,
            "task": task.task,
            "case": task.case,
            "instruction": task.instruction,
        }
        return render_page("live.html", context, _ASSETS, connects=True)

    def respond(
        self, method: str, path: str, request: Request, body: bytes
    ) -> dict[str, Any] | None:
        """The answers to the page's script."""
        match method, path:
            case "GET", "/api/state":
                return self._session.state()
            case "GET", "/api/frame":
                return self._frame(request.query_params.get("known", ""))
            case "POST", "/api/input":
                self._session.feed(object_of(body).get("events"))
                return {}
            case "POST", "/api/finish":
                self._session.finish(_ending(object_of(body).get("ending")))
                return self._session.state()
        return None

    def _frame(self, shown_digest: str) -> dict[str, Any]:
        frame = None if self.closing else self._session.frame(shown_digest)
        if frame is None:
            return {"state": self._session.state()}
        png = None if frame.png is None else base64.b64encode(frame.png).decode("ascii")
        return {"digest": frame.digest, "png": png, "state": self._session.state()}


def _ending(value: Any) -> Ending:
    try:
        return Ending(value)
    except ValueError as error:
        raise UsageError(f"the end of an episode must be one of {', '.join(Ending)}") from error
