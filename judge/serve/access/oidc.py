"""Signing in with OpenID Connect: the code flow with PKCE, at the one configured provider.

An identity consists of the provider's address and the subject. It never contains a name or an
e-mail address, because these can belong to somebody else tomorrow. Anyone who signs in for the
first time gets an account that an operator has to approve; a person who signed in by a link can
connect the identity to that account. The state of the flow is in a cookie that only this server can
write, so beginning a flow adds no row to the database.
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
from judge.serve.store.tables import AccountState

HttpError: Any = oauth2_client.httpx2.HTTPError
"""Errors of the HTTP library: Authlib uses whichever library is installed."""

FLOW_S = 600  # from the first page of the provider to the return of the browser
_TIMEOUT_S = 10.0  # of one request to the provider
_MAX_BYTES = 1 << 20  # of one document of the provider
_LEEWAY_S = 60  # how far the clocks of provider and server may differ
_ALGORITHMS = ["RS256", "PS256", "ES256"]
_WRONG = "The provider's answer cannot be trusted: sign in again."


@dataclass(frozen=True, slots=True)
class Provider:
    """A provider of identities.

    Attributes:
        issuer: its address, as its tokens name it.
        client: id of this server at the provider.
        secret: the secret that belongs to this id.
    """

    issuer: str
    client: str
    secret: str


@dataclass(frozen=True, slots=True)
class Identity:
    """A person's identity: the provider's address, and the subject and name that it gives them."""

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
        server: the server.
        provider: the provider to sign in at.
        back: the address to which the provider sends the browser back.
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
    server: Server, provider: Provider, cookie: str, returned_to: str, back: str
) -> tuple[Identity, str | None]:
    """Ends a flow.

    Args:
        server: the server.
        provider: the provider with which the flow began.
        cookie: the cookie of the flow.
        returned_to: the address that the browser was sent back to, with its query.
        back: the same address without the query.

    Returns:
        The identity, and the account to connect it to.

    Raises:
        Problem: 403, this browser did not begin the flow; 503, the provider does not answer.
    """
    flow = _opened(server, cookie)
    try:
        with _client(provider, back) as client:
            described = _described(client, provider)
            token = client.fetch_token(
                described["token_endpoint"],
                authorization_response=returned_to,
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
    """Begins a session for an identity; makes its account if it does not exist.

    Args:
        transaction: the transaction in which everything happens.
        identity: the identity that the provider confirmed.
        account: the account to connect it to; None to sign in.

    Returns:
        The session's cookie; None if the account is blocked or not yet approved.

    Raises:
        Problem: 409, the identity belongs to another account.
    """
    row = transaction.one(sa.select(t.setting).where(t.setting.c.name == identity.setting))
    owner = None if row is None else str(row["value"]["account"])
    if account is not None and owner not in {None, account}:
        raise Problem("conflict", "This identity belongs to another account.")
    if owner is None:
        owner = account or create_account(
            transaction, _free_name(transaction, identity.name), state=AccountState.PENDING
        )
        value = {"account": owner, "issuer": identity.issuer, "subject": identity.subject}
        set_setting(transaction, identity.setting, value)
        transaction.event("account.identified", owner)
    state = transaction.one(sa.select(t.account.c.state).where(t.account.c.id == owner))
    assert state is not None, "an identity's account exists"
    return begin_session(transaction, owner) if state["state"] == AccountState.ACTIVE else None


def _free_name(transaction: Transaction, name: str) -> str:
    """An account name that is not taken, similar to the name of the account's owner."""
    plain = re.sub(r"[^A-Za-z0-9._-]+", "-", name).strip("-._")[:60] or "person"
    taken = transaction.one(sa.select(t.account.c.id).where(t.account.c.name == plain))
    return plain if taken is None else f"{plain}-{secrets.token_hex(4)}"


# -- requests and answers --------------------------------------------------------------------------


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
    """The provider's discovery document; its addresses must use the same scheme (HTTPS) as its own.

    Raises:
        Problem: 503, the document is missing, or describes another provider.
    """
    described = _read(client, f"{provider.issuer.rstrip('/')}/.well-known/openid-configuration")
    addresses = ("authorization_endpoint", "token_endpoint", "jwks_uri")
    scheme = urlsplit(provider.issuer).scheme
    if described.get("issuer") != provider.issuer or any(
        urlsplit(str(described.get(name))).scheme != scheme for name in addresses
    ):
        raise Problem("unavailable", "The provider of identities describes a different provider.")
    return described


def _read(client: Any, url: str) -> dict[str, Any]:
    try:
        answer = client.request("GET", url, withhold_token=True)
        document = answer.json() if len(answer.content) <= _MAX_BYTES else None
    except (HttpError, ValueError) as error:
        raise _unavailable() from error
    if answer.status_code != 200 or not isinstance(document, dict):
        raise _unavailable()
    return document


def _unavailable() -> Problem:
    headers = {"Retry-After": "30"}
    return Problem("unavailable", "The provider of identities does not answer.", headers=headers)


def _sealed(server: Server, flow: dict[str, Any]) -> str:
    text = base64.urlsafe_b64encode(json.dumps(flow).encode()).decode("ascii")
    return f"{text}.{_mac(server, text)}"


def _opened(server: Server, cookie: str) -> dict[str, Any]:
    text, _, mac = cookie.partition(".")
    if not cookie.isascii() or not hmac.compare_digest(mac, _mac(server, text)):
        raise Problem("forbidden", "This browser has not started to sign in: start again.")
    flow: dict[str, Any] = json.loads(base64.urlsafe_b64decode(text))
    if flow["until"] < time.time():
        raise Problem("forbidden", "Signing in took too long: start again.")
    return flow


def _mac(server: Server, text: str) -> str:
    secret = server.folder.secret("forms.key")
    return hmac.new(secret, b"oidc " + text.encode(), hashlib.sha256).hexdigest()
