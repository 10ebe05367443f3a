"""Accounts, tokens, links to sign in, and sessions of the pages.

There are no passwords. A token is ``jdg_``, 32 random bytes and a CRC-32, both in base64url; it is
shown once. Only its SHA-256 is stored, and a token is looked up by this hash. The same applies to
links and session cookies.
"""

from __future__ import annotations

import base64
import hashlib
import re
import secrets
import zlib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.functions import FunctionElement

from judge.errors import UsageError
from judge.serve.access.rights import Viewer
from judge.serve.store import tables as t
from judge.serve.store.database import Database, Transaction, all_rows, first_row
from judge.serve.store.tables import AccountKind, AccountState, Role, Scope, SuiteRole, new_id

_PREFIX = "jdg_"
_SECRET_BYTES = 32  # cannot be guessed
_SECRET_LENGTH = 43  # of 32 bytes in base64url
_TOKEN = re.compile(r"jdg_[A-Za-z0-9_-]{49}", re.ASCII)
_LINK = re.compile(r"[A-Za-z0-9_-]{43}", re.ASCII)
_ACCOUNT_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9 ._@-]{0,79}", re.ASCII)
TOKEN_DAYS = 90  # by default
SESSION_HOURS = 12  # a working day, then people sign in again
LINK_MINUTES = 30  # long enough to pass a link to its owner


class Later(FunctionElement[str]):
    """The database's time in UTC, some seconds from now, in the format of ``Now``."""

    type = sa.String(20)
    inherit_cache = True

    def __init__(self, seconds: int) -> None:
        super().__init__(sa.literal(seconds, sa.Integer))


@compiles(Later, "sqlite")
def _later_sqlite(element: Later, compiler: Any, **options: Any) -> str:
    seconds = compiler.process(element.clauses, **options)
    return f"strftime('%Y-%m-%dT%H:%M:%SZ', 'now', {seconds} || ' seconds')"


@compiles(Later, "postgresql")
def _later_postgresql(element: Later, compiler: Any, **options: Any) -> str:
    seconds = compiler.process(element.clauses, **options)
    form = '\'YYYY-MM-DD"T"HH24:MI:SS"Z"\''
    time = f"(clock_timestamp() + make_interval(secs => {seconds}))"
    return f"to_char({time} AT TIME ZONE 'utc', {form})"


@dataclass(frozen=True, slots=True)
class Session:
    """A session of the pages: the signed-in viewer, and the session's id."""

    viewer: Viewer
    id: str


def _encoded(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode("ascii").rstrip("=")


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode("ascii")).hexdigest()


def make_token_text() -> str:
    """Makes the text of a new token."""
    secret = _encoded(secrets.token_bytes(_SECRET_BYTES))
    return _PREFIX + secret + _checksum(secret)


def is_token(text: str) -> bool:
    """Whether a string has the form and checksum of a token; needs no query."""
    if _TOKEN.fullmatch(text) is None:
        return False
    body = text.removeprefix(_PREFIX)
    return _checksum(body[:_SECRET_LENGTH]) == body[_SECRET_LENGTH:]


def _checksum(secret: str) -> str:
    return _encoded(zlib.crc32(secret.encode("ascii")).to_bytes(4, "big"))


def create_account(
    transaction: Transaction,
    name: str,
    *,
    kind: AccountKind = AccountKind.PERSON,
    state: AccountState = AccountState.ACTIVE,
    roles: Iterable[Role] = (),
) -> str:
    """Makes an account.

    Returns:
        Its id.

    Raises:
        UsageError: the name is taken or not valid.
    """
    if _ACCOUNT_NAME.fullmatch(name) is None:
        raise UsageError(
            f"{name[:100]!r} cannot be the name of an account",
            hint="Use 1 to 80 letters, digits, spaces and . _ @ -, with a letter or digit first.",
        )
    taken = UsageError(f"there is an account {name!r} already")
    if transaction.one(sa.select(t.account.c.id).where(t.account.c.name == name)) is not None:
        raise taken
    account = new_id("acc")
    try:
        transaction.execute(
            sa.insert(t.account).values(
                id=account, name=name, kind=kind, state=state, roles=sorted(set(roles))
            )
        )
    except sa.exc.IntegrityError as error:  # another transaction made it in the meantime
        raise taken from error
    transaction.event("account.created", account, after=state)
    return account


def account_named(connection: sa.Connection, name: str) -> dict[str, Any]:
    """Finds an account by its name or id, for the administrator's commands.

    Raises:
        UsageError: there is no such account.
    """
    row = first_row(
        connection,
        sa.select(t.account).where((t.account.c.name == name) | (t.account.c.id == name)),
    )
    if row is None:
        raise UsageError(f"there is no account {name!r}", hint="judge serve admin account list")
    return row


def create_token(
    transaction: Transaction,
    account: str,
    name: str,
    scopes: Iterable[Scope],
    *,
    days: int = TOKEN_DAYS,
    maker: str | None = None,
) -> tuple[str, str]:
    """Makes a token for an account.

    Args:
        transaction: the transaction in which it is made.
        account: id of the account.
        name: name of the token, shown in lists.
        scopes: the scopes of the token.
        days: for how many days it is valid.
        maker: id of the token with which the request was made, if any; revoking it also revokes the
            new token.

    Returns:
        Its id, and its text, which is not stored.
    """
    text, token = make_token_text(), new_id("tok")
    expires: sa.ColumnElement[str] = Later(days * 86_400)
    if maker is not None:
        until = sa.select(t.token.c.expires).where(t.token.c.id == maker).scalar_subquery()
        expires = sa.case((until < expires, until), else_=expires)
    transaction.execute(
        sa.insert(t.token).values(
            id=token,
            account=account,
            name=name,
            sha256=_sha256(text),
            prefix=text[:8],
            scopes=sorted(set(scopes)),
            expires=expires,
            maker=maker,
        )
    )
    transaction.event("token.created", token, after="active", detail={"account": account})
    return token, text


def revoke_token(transaction: Transaction, token: str) -> None:
    """Revokes a token, and all tokens made with it, directly or indirectly."""
    descendants = sa.select(t.token.c.id).where(t.token.c.id == token).cte("made", recursive=True)
    descendants = descendants.union(
        sa.select(t.token.c.id).where(t.token.c.maker == descendants.c.id)
    )
    ended = transaction.execute(
        sa.update(t.token)
        .where(t.token.c.id.in_(sa.select(descendants.c.id)), t.token.c.revoked.is_(None))
        .values(revoked=t.Now())
        .returning(t.token.c.id)
    )
    for one in sorted(ended.scalars()):
        transaction.event("token.revoked", one, before="active", after="revoked")


def create_sign_in(transaction: Transaction, account: str) -> str:
    """Makes a one-time link to sign in to an account.

    Returns:
        The code that follows ``/sign-in?code=``.
    """
    code, link = _encoded(secrets.token_bytes(_SECRET_BYTES)), new_id("sin")
    transaction.execute(
        sa.insert(t.sign_in).values(
            id=link, account=account, sha256=_sha256(code), expires=Later(LINK_MINUTES * 60)
        )
    )
    transaction.event("sign-in.offered", link, detail={"account": account})
    return code


def sign_in(transaction: Transaction, code: str) -> str | None:
    """Uses a one-time link, and begins a session.

    Returns:
        The session's cookie; None if the link is unknown, used or too old.
    """
    if _LINK.fullmatch(code) is None:
        return None
    row = transaction.one(
        sa.select(t.sign_in)
        .join(t.account, t.account.c.id == t.sign_in.c.account)
        .where(
            t.sign_in.c.sha256 == _sha256(code),
            t.sign_in.c.used.is_(None),
            t.sign_in.c.expires > t.Now(),
            t.account.c.state == AccountState.ACTIVE,
        )
        .with_for_update(of=t.sign_in)
    )
    if row is None:
        return None
    transaction.execute(
        sa.update(t.sign_in).where(t.sign_in.c.id == row["id"]).values(used=t.Now())
    )
    return begin_session(transaction, row["account"])


def begin_session(transaction: Transaction, account: str) -> str:
    """Begins a session of the pages for an account.

    Returns:
        Its cookie.
    """
    cookie, session = _encoded(secrets.token_bytes(_SECRET_BYTES)), new_id("ses")
    transaction.execute(
        sa.insert(t.session).values(
            id=session,
            account=account,
            sha256=_sha256(cookie),
            expires=Later(SESSION_HOURS * 3600),
        )
    )
    transaction.event("session.begun", session, after="active", detail={"account": account})
    return cookie


def sign_out(transaction: Transaction, session: str) -> None:
    """Ends a session."""
    transaction.execute(
        sa.update(t.session)
        .where(t.session.c.id == session, t.session.c.ended.is_(None))
        .values(ended=t.Now())
    )
    transaction.event("session.ended", session, before="active", after="ended")


_OF_TOKEN = (
    sa.select(
        t.token.c.id,
        t.token.c.account,
        t.token.c.scopes,
        t.account.c.name,
        t.account.c.roles,
        (t.token.c.last_used == sa.func.substr(t.Now(), 1, 10)).label("used_today"),
    )
    .join(t.account, t.account.c.id == t.token.c.account)
    .where(
        t.token.c.sha256 == sa.bindparam("its_sha256"),
        t.token.c.revoked.is_(None),
        t.token.c.expires > t.Now(),
        t.account.c.state == AccountState.ACTIVE,
    )
)


def viewer_of_token(
    database: Database, text: str, *, address: str | None, request: str | None
) -> Viewer | None:
    """The viewer to whom a token belongs; None if the token is not valid now."""
    if not is_token(text):
        return None
    with database.reading() as connection:
        match = connection.execute(_OF_TOKEN, {"its_sha256": _sha256(text)}).mappings().first()
        row = None if match is None else dict(match)
        viewer = None if row is None else _viewer(connection, row, address, request)
    if row is not None and not row["used_today"]:
        with database.writing(Viewer().actor()) as transaction:
            transaction.execute(
                sa.update(t.token)
                .where(t.token.c.id == row["id"])
                .values(last_used=sa.func.substr(t.Now(), 1, 10))
            )
    return viewer


_TEAMS = sa.select(t.membership.c.team).where(t.membership.c.person == sa.bindparam("account"))
_ROLES = sa.union(
    sa.select(t.suite.c.id, sa.literal(SuiteRole.AUTHOR.value)).where(
        t.suite.c.owner == sa.bindparam("account")
    ),
    sa.select(t.suite_role.c.suite, t.suite_role.c.role).where(
        t.suite_role.c.account == sa.bindparam("account")
    ),
)


def session_of_cookie(
    database: Database, cookie: str, *, address: str | None, request: str | None
) -> Session | None:
    """The session of the pages that a cookie belongs to; None if it has ended."""
    if _LINK.fullmatch(cookie) is None:
        return None
    with database.reading() as connection:
        row = first_row(
            connection,
            sa.select(t.session.c.id, t.session.c.account, t.account.c.name, t.account.c.roles)
            .join(t.account, t.account.c.id == t.session.c.account)
            .where(
                t.session.c.sha256 == _sha256(cookie),
                t.session.c.ended.is_(None),
                t.session.c.expires > t.Now(),
                t.account.c.state == AccountState.ACTIVE,
            ),
        )
        if row is None:
            return None
        row["scopes"] = list(Scope)
        return Session(_viewer(connection, row, address, request), row["id"])


def _viewer(
    connection: sa.Connection, row: dict[str, Any], address: str | None, request: str | None
) -> Viewer:
    account = row["account"]
    teams = connection.scalars(_TEAMS, {"account": account}).all()
    roles = connection.execute(_ROLES, {"account": account}).all()
    return Viewer(
        account=account,
        name=row["name"],
        roles=frozenset(Role(role) for role in row["roles"]),
        scopes=frozenset(Scope(scope) for scope in row["scopes"]),
        teams=frozenset({account, *teams}),
        authored=frozenset(suite for suite, role in roles if role == SuiteRole.AUTHOR),
        reviewed=frozenset(suite for suite, role in roles if role == SuiteRole.REVIEWER),
        credential=row["id"],
        address=address,
        request=request,
    )


def add_member(transaction: Transaction, team: str, person: str) -> None:
    """Makes a person a member of a team.

    Raises:
        UsageError: the team's account is not a team, or the member's account is not a person.
    """
    kinds = {
        row["id"]: row["kind"]
        for row in all_rows(
            transaction.connection, sa.select(t.account).where(t.account.c.id.in_((team, person)))
        )
    }
    if kinds.get(team) != AccountKind.TEAM or kinds.get(person) != AccountKind.PERSON:
        raise UsageError("only people can be members, and only of teams")
    transaction.execute(sa.insert(t.membership).values(team=team, person=person, role="member"))
    transaction.event("team.member-added", team, detail={"person": person})


def change_account(
    transaction: Transaction,
    row: dict[str, Any],
    *,
    state: str | None = None,
    concurrency: int | None = None,
) -> None:
    """Sets the state of an account, or how many of its judgings may run at a time."""
    values: dict[str, Any] = {}
    if state is not None:
        values["state"] = AccountState(state)
    if concurrency is not None:
        values["concurrency"] = concurrency
    transaction.execute(sa.update(t.account).where(t.account.c.id == row["id"]).values(**values))
    after = values.get("state", row["state"])
    transaction.event("account.changed", row["id"], before=row["state"], after=after)
