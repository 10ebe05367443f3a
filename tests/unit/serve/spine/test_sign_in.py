"""Signing in with an OpenID Connect provider that runs in the test, on loopback."""

from __future__ import annotations

import base64
import hashlib
import json
import time
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs, parse_qsl, urlencode, urlsplit

import pytest
from fastapi.testclient import TestClient
from joserfc import jwt
from joserfc.jwk import RSAKey
from pytest_httpserver import HTTPServer
from werkzeug import Request, Response

from judge.serve.access.accounts import create_sign_in, sign_in
from judge.serve.context import OIDC
from judge.serve.queue.conditions import set_setting
from judge.serve.store import tables as t
from tests.unit.serve.spine.world import ACTOR, World

HTML = {"Accept": "text/html", "Origin": "http://testserver"}


@dataclass
class Provider:
    """An OpenID Connect provider.

    Attributes:
        issuer: its address.
        people: what it says of whom it is asked about next.
        key: with which it signs.
        changes: of the claims of the next token.
    """

    issuer: str
    people: dict[str, Any] = field(
        default_factory=lambda: {"sub": "7", "preferred_username": "kim"}
    )
    key: Any = field(default_factory=lambda: RSAKey.generate_key(2048, {"kid": "one"}))
    changes: dict[str, Any] = field(default_factory=dict)
    signing: Any = None
    asked: dict[str, Any] = field(default_factory=dict)

    def describe(self, _: Request) -> Response:
        addresses = {
            "issuer": self.issuer,
            "authorization_endpoint": f"{self.issuer}/authorize",
            "token_endpoint": f"{self.issuer}/token",
            "jwks_uri": f"{self.issuer}/keys",
        }
        return Response(json.dumps(addresses), content_type="application/json")

    def keys(self, _: Request) -> Response:
        document = {"keys": [self.key.as_dict(private=False)]}
        return Response(json.dumps(document), content_type="application/json")

    def token(self, request: Request) -> Response:
        form = request.form
        verifier = hashlib.sha256(form["code_verifier"].encode()).digest()
        challenge = base64.urlsafe_b64encode(verifier).rstrip(b"=").decode()
        if form["code"] != "the-code" or challenge != self.asked["code_challenge"]:
            return Response('{"error": "invalid_grant"}', 400, content_type="application/json")
        claims = {
            "iss": self.issuer, "aud": "judge", "nonce": self.asked["nonce"],
            "exp": int(time.time()) + 300, **self.people, **self.changes,
        }  # fmt: skip
        key = self.signing or self.key
        token = jwt.encode({"alg": "RS256", "kid": "one"}, claims, key)
        answer = {"access_token": "x", "token_type": "Bearer", "id_token": token}
        return Response(json.dumps(answer), content_type="application/json")


@pytest.fixture
def provider(httpserver: HTTPServer, small_world: World) -> Provider:
    made = Provider(httpserver.url_for("").rstrip("/"))
    paths = {
        "/.well-known/openid-configuration": made.describe, "/keys": made.keys,
        "/token": made.token,
    }  # fmt: skip
    for path, handler in paths.items():
        httpserver.expect_request(path).respond_with_handler(handler)
    value = {"issuer": made.issuer, "client": "judge", "secret": "s", "title": "University"}
    with small_world.server.database.writing(ACTOR) as transaction:
        set_setting(transaction, OIDC, value)
    return made


class Browser:
    """A browser that goes to the provider and comes back."""

    def __init__(self, world: World, provider: Provider, role: str = "") -> None:
        self.client: TestClient = world.client()
        self.client.follow_redirects = False
        self.world, self.provider, self.token = world, provider, ""
        if role:
            with world.server.database.writing(ACTOR) as transaction:
                code = create_sign_in(transaction, world.accounts[role])
                self.client.cookies.set(world.server.cookie, str(sign_in(transaction, code)))
            page = self.client.get("/me", headers=HTML).text
            self.token = page.split('name="token" value="')[1].split('"')[0]

    def leave(self) -> str:
        """Begins a flow; returns the address to which the provider would redirect the browser."""
        data = {"token": self.token}
        gone = self.client.post("/sign-in/provider", headers=HTML, data=data)
        assert gone.status_code == 303, gone.text
        parts = urlsplit(gone.headers["location"])
        assert gone.headers["location"].startswith(f"{self.provider.issuer}/authorize")
        self.provider.asked = dict(parse_qsl(parts.query))
        assert self.provider.asked["code_challenge_method"] == "S256"
        back = self.provider.asked["redirect_uri"]
        return f"{back}?" + urlencode({"code": "the-code", "state": self.provider.asked["state"]})

    def come(self, address: str) -> Any:
        return self.client.get(address, headers=HTML)


def test_a_person_waits_for_an_operator_and_comes_in(
    small_world: World, provider: Provider
) -> None:
    browser = Browser(small_world, provider)
    page = browser.client.get("/sign-in", headers=HTML)
    assert "Sign in with University" in page.text
    assert "form-action 'self' http:" in page.headers["content-security-policy"]
    first = browser.come(browser.leave())
    assert first.status_code == 403
    assert "has to approve your account" in first.text
    account = next(row for row in small_world.rows(t.account) if row["name"] == "kim")
    assert account["state"] == "pending"
    assert browser.client.get("/me", headers=HTML).status_code == 401
    operator = Browser(small_world, provider, "operator")
    assert "1 account to approve" in operator.client.get("/", headers=HTML).text
    data = {"token": operator.token, "state": "active"}
    operator.client.post(f"/admin/accounts/{account['id']}", headers=HTML, data=data)
    assert browser.come(browser.leave()).status_code == 303
    assert "kim" in browser.client.get("/me", headers=HTML).text
    assert len([row for row in small_world.rows(t.account) if row["name"] == "kim"]) == 1


def test_an_identity_is_connected_to_an_account_and_belongs_to_it(
    small_world: World, provider: Provider
) -> None:
    contestant = Browser(small_world, provider, "contestant")
    assert contestant.come(contestant.leave()).status_code == 303
    other = Browser(small_world, provider)
    assert other.come(other.leave()).status_code == 303
    assert "contestant" in other.client.get("/me", headers=HTML).text
    rival = Browser(small_world, provider, "rival")
    assert rival.come(rival.leave()).status_code == 409


def test_a_name_that_is_taken_gives_nobody_an_account(
    small_world: World, provider: Provider
) -> None:
    provider.people = {"sub": "8", "preferred_username": "operator", "email": "operator@x"}
    browser = Browser(small_world, provider)
    assert browser.come(browser.leave()).status_code == 403
    names = [str(row["name"]) for row in small_world.rows(t.account)]
    assert len([name for name in names if name.startswith("operator-")]) == 1


@pytest.mark.parametrize(
    "changes",
    [
        {"aud": "another"}, {"iss": "https://evil.example"}, {"nonce": "another"},
        {"exp": 1_000_000_000}, {"sub": None},
    ],
    ids=str,
)  # fmt: skip
def test_tokens_for_others_are_refused(
    small_world: World, provider: Provider, changes: dict[str, Any]
) -> None:
    browser = Browser(small_world, provider, "contestant")
    provider.changes = changes
    assert browser.come(browser.leave()).status_code == 403
    assert not [row for row in small_world.rows(t.setting) if "identity" in str(row["name"])]


def test_nobody_connects_an_identity_to_the_account_of_another(
    small_world: World, provider: Provider
) -> None:
    """If a browser was given the cookie of a stranger's flow, the stranger gets no identity."""
    stranger = Browser(small_world, provider, "rival")
    address = stranger.leave()
    for role in ("contestant", ""):
        victim = Browser(small_world, provider, role)
        name = f"{small_world.server.cookie}-flow"
        victim.client.cookies.set(name, stranger.client.cookies[name].strip('"'))
        assert victim.come(address).status_code == 403
    assert not [row for row in small_world.rows(t.setting) if "identity" in str(row["name"])]


def test_keys_of_others_states_of_others_and_old_flows_are_refused(
    small_world: World, provider: Provider
) -> None:
    provider.signing = RSAKey.generate_key(2048, {"kid": "one"})
    browser = Browser(small_world, provider)
    assert browser.come(browser.leave()).status_code == 403
    provider.signing = None
    address = browser.leave()
    assert browser.come(address.replace("state=", "state=x")).status_code == 403
    address = browser.leave()
    assert Browser(small_world, provider).come(address).status_code == 403, "another browser"
    query = parse_qs(urlsplit(address).query)
    assert query["code"] == ["the-code"]
    assert browser.come(address.replace("the-code", "a-code")).status_code == 403
    assert browser.come("/sign-in/provider?error=access_denied").status_code == 403


def test_a_connection_needs_the_token_of_the_form(small_world: World, provider: Provider) -> None:
    browser = Browser(small_world, provider, "contestant")
    browser.token = "x"
    data = {"token": "x"}
    answer = browser.client.post("/sign-in/provider", headers=HTML, data=data)
    assert answer.status_code == 403


def test_a_provider_that_is_away_is_said_to_be(
    small_world: World, provider: Provider, httpserver: HTTPServer
) -> None:
    httpserver.clear()
    httpserver.expect_request("/.well-known/openid-configuration").respond_with_data("", 500)
    answer = Browser(small_world, provider).client.post(
        "/sign-in/provider", headers=HTML, data={"token": ""}
    )
    assert answer.status_code == 503
    assert answer.headers["retry-after"]
