"""Every route of the application, by every role, for whose object it is: one table.

The routes come from the application: one that is not in the table fails. A row says for each role
of ``ROLES``, in this order, what becomes of a request for an object of the public suite, and for
one of a suite that is hidden by then; what is nobody's suite's belongs to the contestant in both.

    +   it is answered, or refused for what it says: 200, 202, 303, 409, 412, 422 …
    a   401, sign in
    f   403, it is seen, and the act is not theirs
    n   404, it does not exist for them
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from typing import Any

import pytest
from fastapi.routing import APIRoute

from judge.serve.access.accounts import Session, create_sign_in, session_of_cookie, sign_in
from judge.serve.api import results
from judge.serve.app import API_ROUTES, PAGE_ROUTES
from tests.unit.serve.spine.world import ACTOR, ROLES, World, furnish

#                                                       public suite  hidden suite
#                                                       vcraoRO       vcraoRO
ALL, SIGNED, OWN = "+++++++", "a++++++", "a+nnnnn"
"""The order: visitor, contestant, rival, author, other author, reviewer, operator."""
PUBLIC = (ALL, "nnn+nnn")
EVERYBODY, EVERY_ACCOUNT, OWNER = (ALL, ALL), (SIGNED, SIGNED), (OWN, OWN)
TEAM, OPERATORS = ("a+n+nnn",) * 2, ("afffff+",) * 2
SHOWN = ("n+n+n+n", "n+n+nnn")
TABLE: dict[str, tuple[str, str]] = {
    "GET /v1/me": EVERY_ACCOUNT,
    "GET /v1/tokens": EVERY_ACCOUNT,
    "POST /v1/tokens": EVERY_ACCOUNT,
    "DELETE /v1/tokens/{token}": OWNER,
    "POST /v1/submissions": (SIGNED, "ann+nnn"),
    "POST /v1/submissions:batch": EVERYBODY,  # each of it has a status of its own
    "GET /v1/submissions": EVERY_ACCOUNT,
    "GET /v1/submissions/{submission}": TEAM,
    "GET /v1/submissions/{submission}/verdicts": TEAM,
    "GET /v1/submissions/{submission}/report": ("annnnnn", "afnfnnn"),  # nothing was really judged
    "GET /v1/submissions/{submission}/result": (ALL, "n+n+nnn"),
    "GET /v1/submissions/{submission}/events": TEAM,
    "POST /v1/submissions/{submission}:cancel": ("a+nfnnn",) * 2,
    "POST /v1/submissions/{submission}:withdraw": ("a+nfnnn",) * 2,
    "GET /v1/suites": EVERYBODY,
    "GET /v1/suites/{suite}": PUBLIC,
    "GET /v1/suites/{suite}/revisions": PUBLIC,
    "PUT /v1/suites/{suite}/revisions": ("aff+fff", "ann+nnn"),
    "GET /v1/suites/{suite}/tasks/{task}": (ALL, "nnnnnnn"),
    "GET /v1/status": EVERYBODY,
    "GET /v1/boards": EVERYBODY,
    "GET /v1/boards/{board}": PUBLIC,
    "GET /v1/boards/{board}/versions": PUBLIC,
    "GET /v1/boards/{board}/versions/{number}": PUBLIC,
    "GET /v1/boards/{board}/versions/{number}/result": PUBLIC,
    "GET /v1/boards/{board}/entries/{entry}/tasks": PUBLIC,
    "GET /v1/boards/{board}/compare": PUBLIC,
    "POST /v1/boards/{board}:choose": ("a+nfnnn", "annfnnn"),
    "GET /v1/boards/{board}/entries/{entry}/eval-results": PUBLIC,
    "GET /v1/boards/{board}/events": PUBLIC,
    "POST /v1/disputes": ("a+n+nnn", "ann+nnn"),
    "GET /v1/disputes": EVERYBODY,
    "GET /v1/disputes/{dispute}": SHOWN,
    "POST /v1/disputes/{dispute}:withdraw": ("a+nfnfn", "a+nfnnn"),
    "GET /v1/review": EVERY_ACCOUNT,
    "POST /v1/disputes/{dispute}:decide": ("annnn+n", "annnnnn"),
    "POST /v1/rejudgings": ("aff+fff", "ann+nnn"),
    "GET /v1/rejudgings": EVERYBODY,
    "GET /v1/rejudgings/{rejudging}": ("nnn+nnn",) * 2,
    "GET /v1/rejudgings/{rejudging}/diff": ("nnn+nnn",) * 2,
    "POST /v1/rejudgings/{rejudging}:start": ("nnn+nnn",) * 2,
    "POST /v1/rejudgings/{rejudging}:retry": ("nnn+nnn",) * 2,
    "POST /v1/rejudgings/{rejudging}:cancel": ("nnn+nnn",) * 2,
    "POST /v1/rejudgings/{rejudging}:apply": ("nnn+nnn",) * 2,
    "GET /v1/webhooks": EVERY_ACCOUNT,
    "POST /v1/webhooks": EVERY_ACCOUNT,
    "DELETE /v1/webhooks/{webhook}": OWNER,
    "POST /v1/webhooks/{webhook}:rotate": OWNER,
    "GET /v1/webhooks/{webhook}/deliveries": OWNER,
    "POST /v1/webhooks/{webhook}:redeliver": OWNER,
    "GET /v1/openapi.json": EVERYBODY,
    "GET /problems/{name}": EVERYBODY,
    "GET /healthz": EVERYBODY,
    "GET /readyz": EVERYBODY,
    "GET /.well-known/judge-keys.json": EVERYBODY,
    "GET /static/{name}": EVERYBODY,
    "GET /sign-in": EVERYBODY,
    "POST /sign-in": ("aaaaaaa",) * 2,  # no code, nobody
    "POST /sign-in/provider": ("nnnnnnn",) * 2,  # none is set
    "GET /sign-in/provider": ("nnnnnnn",) * 2,
    "POST /sign-out": EVERY_ACCOUNT,
    "GET /me": EVERY_ACCOUNT,
    "GET /me/tokens": EVERY_ACCOUNT,
    "POST /me/tokens": EVERY_ACCOUNT,
    "POST /me/tokens/{token}/end": OWNER,
    "GET /": EVERYBODY,
    "GET /suites/{suite}": PUBLIC,
    "GET /suites/{suite}/probing": ("aff+fff", "ann+nnn"),
    "GET /suites/{suite}/tasks/{task}": (ALL, "nnnnnnn"),
    "GET /boards/{board}": PUBLIC,
    "GET /boards/{board}/versions/{number}": PUBLIC,
    "GET /boards/{board}/compare": EVERYBODY,  # it needs two entries
    "GET /entries/{entry}": PUBLIC,
    "GET /entries/{entry}/tasks/{task}": PUBLIC,
    "GET /entries/{entry}/report": ("nnnnnnn", "nnnfnnn"),  # nothing was really judged
    "GET /entries/{entry}/report/pages/{number}": ("nnnnnnn", "nnnfnnn"),
    "GET /results/{entry}": EVERYBODY,  # it leads to the API
    "GET /submit": EVERY_ACCOUNT,
    "POST /submit": ("annnnnn",) * 2,  # it needs a phase
    "GET /submissions": EVERY_ACCOUNT,
    "GET /submissions/{submission}": TEAM,
    "GET /submissions/{submission}/tasks/{task}": ("annnnnn", "annnnnn"),  # no such verdict
    "GET /submissions/{submission}/report": ("annnnnn", "afnfnnn"),  # nothing was really judged
    "GET /submissions/{submission}/report/pages/{number}": ("annnnnn", "afnfnnn"),
    "POST /submissions/{submission}/{act}": ("a+nfnnn",) * 2,
    "GET /disputes": EVERYBODY,
    "GET /disputes/new": EVERY_ACCOUNT,
    "POST /disputes/new": EVERY_ACCOUNT,  # it needs a case
    "GET /disputes/{dispute}": SHOWN,
    "POST /disputes/{dispute}/withdraw": ("a+nfnfn", "a+nfnnn"),
    "GET /review": EVERY_ACCOUNT,
    "GET /review/{dispute}": ("annnn+n", "annnnnn"),
    "POST /review/{dispute}": ("annnn+n", "annnnnn"),
    "POST /review/{dispute}/decide": EVERY_ACCOUNT,  # it needs a finding
    "GET /rejudgings": EVERYBODY,
    "POST /rejudgings": EVERY_ACCOUNT,
    "GET /rejudgings/{rejudging}": ("nnn+nnn",) * 2,
    "POST /rejudgings/{rejudging}/apply": EVERY_ACCOUNT,  # it needs a number
    "POST /rejudgings/{rejudging}/{action}": ("ann+nnn",) * 2,
    "GET /admin": OPERATORS,
    "POST /admin/accounts/{account}": OPERATORS,
    "POST /admin/maintenance": OPERATORS,
    "GET /me/webhooks": EVERY_ACCOUNT,
    "POST /me/webhooks": EVERY_ACCOUNT,
    "POST /me/webhooks/{webhook}/{action}": OWNER,
}
ASKED: dict[str, Any] = {
    "POST /v1/tokens": {"name": "x", "scopes": ["read"]},
    "POST /v1/submissions": "?phase={board}",
    "POST /v1/submissions:batch": {"submissions": [{"phase": "open", "lines": "{}"}]},
    "GET /v1/boards/{board}/compare": "?a={entry}&b={entry}",
    "GET /v1/boards/{board}/entries/{entry}/eval-results": "?dataset=a/b",
    "POST /v1/boards/{board}:choose": {"submission": "{submission}"},
    "POST /v1/disputes": {
        "submission": "{submission}", "task": "task", "kind": "question", "claim": "x",
    },
    "POST /v1/disputes/{dispute}:decide": {"finding": "fine", "reason": " "},
    "POST /v1/rejudgings": {"suite": "{suite}", "reason": "x"},
    "POST /v1/rejudgings/{rejudging}:apply": {"changed": 0},
    "POST /v1/webhooks": {"url": "https://localhost/", "kinds": ["board.changed"]},
    "POST /v1/webhooks/{webhook}:redeliver": {"delivery": "{delivery}"},
}  # fmt: skip
"""Queries and bodies that are well-formed, so that only rights decide."""

LAST = (
    "POST /v1/disputes/{dispute}:withdraw",
    "POST /disputes/{dispute}/withdraw",
    "DELETE /v1/tokens/{token}",
    "POST /me/tokens/{token}/end",
    "DELETE /v1/webhooks/{webhook}",
    "POST /sign-out",
)
"""Routes that remove an object, in the order in which they are called, after all others."""

THE_SAME_FOR_ALL = {
    "GET /static/{name}",
    "GET /.well-known/judge-keys.json",
    "GET /v1/openapi.json",
}
"""Routes that shared caches may store; all other answers depend on who asks."""


def routes() -> Iterator[tuple[str, str]]:
    """Methods and paths of every route of the application."""
    for names, prefix in ((API_ROUTES, "/v1"), (PAGE_ROUTES, "")):
        for name in names:
            for route in importlib.import_module(name).router.routes:
                assert isinstance(route, APIRoute), route
                for method in sorted(route.methods or ()):
                    yield method, prefix + route.path


class Visitors:
    """A person of each role, with a token for the API and a session for the pages."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._client = world.client()
        self._client.follow_redirects = False
        self._sessions: dict[str, Session] = {}
        self._cookies: dict[str, str] = {}
        for role in ROLES[1:]:
            with world.server.database.writing(ACTOR) as transaction:
                code = create_sign_in(transaction, world.accounts[role])
                cookie = str(sign_in(transaction, code))
            session = session_of_cookie(world.server.database, cookie, address=None, request=None)
            assert session is not None
            self._sessions[role], self._cookies[role] = session, cookie

    def ask(self, role: str, method: str, path: str, body: Any) -> Any:
        """Returns the answer to a request as a program, or as a browser, would send it."""
        if path.startswith("/v1/"):
            headers = {**self._world.headers(role), "If-Match": '"0-x"'}
            return self._client.request(method, path, headers=headers, json=body)
        headers = {"Accept": "text/html", "Origin": "http://testserver"}
        data = {}
        if role in self._sessions:
            headers["Cookie"] = f"{self._world.server.cookie}={self._cookies[role]}"
            credential = str(self._sessions[role].viewer.credential)
            data["token"] = self._world.server.form_token(credential)
        if method == "POST":
            return self._client.post(path, headers=headers, data=data)
        return self._client.get(path, headers=headers)


def _named(value: Any, ids: dict[str, str]) -> Any:
    return filled(value, ids) if isinstance(value, str) else value


def _turn(route: tuple[str, str]) -> int:
    name = " ".join(route)
    return LAST.index(name) if name in LAST else -1


def outcome(status: int) -> str:
    return {401: "a", 403: "f", 404: "n"}.get(status, "+")


def filled(path: str, ids: dict[str, str]) -> str:
    path = path.replace("{action}", "start" if path.startswith("/rejudgings") else "rotate")
    path = path.replace("{act}", "cancel").replace("/static/{name}", "/static/serve.css")
    path = path.replace("/problems/{name}", "/problems/not-found")
    for name, value in ids.items():
        path = path.replace(f"{{{name}}}", value)
    assert "{" not in path, f"{path}: furnish() makes no such object"
    return path


@pytest.mark.parametrize("of", ["open", "secret"])
def test_every_route_answers_each_role_as_the_table_says(
    small_world: World, of: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(results, "_MAX_STREAM_S", 0)  # streams end at once, and not after an hour
    ids, visitors = furnish(small_world)[of], Visitors(small_world)
    expected = {name: row[of == "secret"] for name, row in TABLE.items()}
    got: dict[str, str] = {}
    for name in sorted(f"{method} {path}" for method, path in routes()):
        assert name in TABLE, f"{name}: say in TABLE who may do this"
    for method, path in sorted(routes(), key=_turn):
        name = f"{method} {path}"
        letters = dict.fromkeys(ROLES, "")
        # Those who may change something come last, when all others have been refused.
        for role in sorted(ROLES, key=lambda role: expected[name][ROLES.index(role)] == "+"):
            asked = ASKED.get(name, {})
            query = asked if isinstance(asked, str) else ""
            body = {} if query else {key: _named(value, ids) for key, value in asked.items()}
            answer = visitors.ask(role, method, filled(path + query, ids), body)
            assert answer.status_code < 500, (name, role, answer.text)
            kept = answer.headers["cache-control"]
            assert "public" not in kept or role == "visitor" or name in THE_SAME_FOR_ALL, name
            assert "public" in kept or "private" in kept or "no-store" in kept, name
            letters[role] = outcome(answer.status_code)
        got[name] = "".join(letters.values())
    assert got == expected
