"""Signing in with OpenID Connect: the code flow with PKCE, at the one provider that is set.

An identity is the provider's address and its subject, never a name or an e-mail address: those can
be somebody else's tomorrow. Anyone who comes for the first time gets an account that waits for an
operator, or connects the identity to the account in which they have signed in by a link. The flow
is kept in a cookie that only this server can write, so that no request leaves a row behind.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import re
import secrets
import time
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import sqlalchemy as sa
from authlib.common.errors import AuthlibBaseError
from authlib.integrations.httpx_client import OAuth2Client, oauth2_client
from joserfc import jwt
from joserfc.errors import JoseError
from joserfc.jwk import KeySet

from judge.serve.access.accounts import begin_session, create_account
from judge.serve.context import Server
from judge.serve.problems import Problem
from judge.serve.queue.conditions import set_setting
from judge.serve.store import tables as t
from judge.serve.store.database import Transaction
from judge.serve.store.words import AccountState

HttpError: Any = oauth2_client.httpx2.HTTPError
"""What the HTTP library raises; which one it is, Authlib decides by what is installed."""

FLOW_S = 600
_TIMEOUT_S = 10.0
_MAX_BYTES = 1 << 20
_LEEWAY_S = 60
_ALGORITHMS = ["RS256", "PS256", "ES256"]
_WRONG = "The provider's answer cannot be trusted: sign in again."


@dataclass(frozen=True, slots=True)
class Provider:
    """Where people have identities.

    Attributes:
        issuer: its address, as its tokens name it.
        client: id of this server there.
        secret: that goes with it.
    """

    issuer: str
    client: str
    secret: str


@dataclass(frozen=True, slots=True)
class Identity:
    """Who somebody is to a provider: its address, their subject, and the name that they have."""

    issuer: str
    subject: str
    name: str

    @property
    def setting(self) -> str:
        """Name of the setting that has the account's id."""
        text = json.dumps([self.issuer, self.subject])
        return f"identity:{hashlib.sha256(text.encode()).hexdigest()[:60]}"


def begin(server: Server, provider: Provider, back: str, account: str | None) -> tuple[str, str]:
    """Begins a flow.

    Args:
        server: this one.
        provider: where to.
        back: the address to which the provider sends the browser.
        account: id of the account to which the identity is connected; None to sign in.

    Returns:
        The address at the provider, and the cookie of the flow.

    Raises:
        Problem: 503, the provider does not answer.
    """
    flow = {
        "state": secrets.token_urlsafe(24),
        "nonce": secrets.token_urlsafe(24),
        "verifier": secrets.token_urlsafe(48),
        "account": account,
        "until": int(time.time()) + FLOW_S,
    }
    with _client(provider, back) as client:
        described = _described(client, provider)
        url, _ = client.create_authorization_url(
            described["authorization_endpoint"],
            state=flow["state"],
            nonce=flow["nonce"],
            code_verifier=flow["verifier"],
        )
    return url, _sealed(server, flow)


def finish(
    server: Server, provider: Provider, cookie: str, asked: str, back: str
) -> tuple[Identity, str | None]:
    """Ends a flow.

    Args:
        server: this one.
        provider: where it began.
        cookie: the cookie of the flow.
        asked: the address that the browser was sent back to, with its query.
        back: the same without it.

    Returns:
        Who came back, and the account to connect the identity to.

    Raises:
        Problem: 403, the answer is of no flow that this browser began; 503.
    """
    flow = _opened(server, cookie)
    try:
        with _client(provider, back) as client:
            described = _described(client, provider)
            token = client.fetch_token(
                described["token_endpoint"],
                authorization_response=asked,
                state=flow["state"],
                code_verifier=flow["verifier"],
            )
            listed: Any = _read(client, described["jwks_uri"])
            keys = KeySet.import_key_set(listed)
        claims = jwt.decode(token["id_token"], keys, algorithms=_ALGORITHMS).claims
        jwt.JWTClaimsRegistry(
            leeway=_LEEWAY_S,
            iss={"essential": True, "value": provider.issuer},
            aud={"essential": True, "value": provider.client},
            nonce={"essential": True, "value": flow["nonce"]},
            sub={"essential": True},
            exp={"essential": True},
        ).validate(claims)
    except (AuthlibBaseError, HttpError, JoseError, KeyError, TypeError, ValueError) as error:
        raise Problem("forbidden", _WRONG) from error
    subject = str(claims["sub"])[:255]
    name = str(claims.get("preferred_username") or claims.get("name") or subject)
    return Identity(provider.issuer, subject, name), flow["account"]


def signed_in(transaction: Transaction, identity: Identity, account: str | None) -> str | None:
    """The session of an identity's account, which is made if there is none.

    Args:
        transaction: in which everything happens.
        identity: who came back from the provider.
        account: the account to which it is connected now; None to sign in.

    Returns:
        The session's cookie; None for an account that waits for an operator, or is blocked.

    Raises:
        Problem: 409, the identity belongs to another account.
    """
    row = transaction.one(sa.select(t.setting).where(t.setting.c.name == identity.setting))
    known = None if row is None else str(row["value"]["account"])
    if account is not None and known not in {None, account}:
        raise Problem("conflict", "This identity belongs to another account.")
    if known is None:
        known = account or create_account(
            transaction, _free_name(transaction, identity.name), state=AccountState.PENDING
        )
        value = {"account": known, "issuer": identity.issuer, "subject": identity.subject}
        set_setting(transaction, identity.setting, value)
        transaction.event("account.identified", known)
    state = transaction.one(sa.select(t.account.c.state).where(t.account.c.id == known))
    assert state is not None, "identities are of accounts that there are"
    return begin_session(transaction, known) if state["state"] == AccountState.ACTIVE else None


def _free_name(transaction: Transaction, name: str) -> str:
    """A name for an account like that of its owner, and of nobody else."""
    plain = re.sub(r"[^A-Za-z0-9._-]+", "-", name).strip("-._")[:60] or "person"
    taken = transaction.one(sa.select(t.account.c.id).where(t.account.c.name == plain))
    return plain if taken is None else f"{plain}-{secrets.token_hex(4)}"


# -- what is sent, and what comes back -------------------------------------------------------------


def _client(provider: Provider, back: str) -> Any:
    return OAuth2Client(
        provider.client,
        provider.secret,
        scope="openid profile",
        redirect_uri=back,
        code_challenge_method="S256",
        timeout=_TIMEOUT_S,
        follow_redirects=False,
    )


def _described(client: Any, provider: Provider) -> dict[str, Any]:
    """The provider's description of itself, whose addresses are as safe as its own."""
    described = _read(client, f"{provider.issuer.rstrip('/')}/.well-known/openid-configuration")
    addresses = ("authorization_endpoint", "token_endpoint", "jwks_uri")
    scheme = urlsplit(provider.issuer).scheme
    if described.get("issuer") != provider.issuer or any(
        urlsplit(str(described.get(name))).scheme != scheme for name in addresses
    ):
        raise Problem("unavailable", "The provider of identities describes another one.")
    return described


def _read(client: Any, url: str) -> dict[str, Any]:
    try:
        answer = client.request("GET", url, withhold_token=True)
        document = answer.json() if len(answer.content) <= _MAX_BYTES else None
    except (HttpError, ValueError) as error:
        raise _away() from error
    if answer.status_code != 200 or not isinstance(document, dict):
        raise _away()
    return document


def _away() -> Problem:
    headers = {"Retry-After": "30"}
    return Problem("unavailable", "The provider of identities does not answer.", headers=headers)


def _sealed(server: Server, flow: dict[str, Any]) -> str:
    text = base64.urlsafe_b64encode(json.dumps(flow).encode()).decode("ascii")
    return f"{text}.{_mac(server, text)}"


def _opened(server: Server, cookie: str) -> dict[str, Any]:
    text, _, mac = cookie.partition(".")
    if not cookie.isascii() or not hmac.compare_digest(mac, _mac(server, text)):
        raise Problem("forbidden", "This browser has not begun to sign in: begin again.")
    flow: dict[str, Any] = json.loads(base64.urlsafe_b64decode(text))
    if flow["until"] < time.time():
        raise Problem("forbidden", "Signing in took too long: begin again.")
    return flow


def _mac(server: Server, text: str) -> str:
    secret = server.folder.secret("forms.key")
    return hmac.new(secret, b"oidc " + text.encode(), hashlib.sha256).hexdigest()
