"""The only module that decides who may see what, and who may do what.

Every query of routes and pages filters by :func:`visible_to`, mostly through :func:`find`; every
action calls :func:`require`, :func:`require_suite_role` or :func:`require_role`. For an object that
the caller may not see, the answer is 404, as if it did not exist. If they may see it but not change
it, the answer is 403.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from judge.serve.problems import Problem, not_found
from judge.serve.store import tables as t
from judge.serve.store.database import Actor, first_row
from judge.serve.store.tables import (
    ID_PATTERN,
    DisputeState,
    Level,
    PhaseState,
    RejudgingState,
    Role,
    Scope,
    SuiteRole,
    Visibility,
)

HIDDEN_SPLIT = "hidden"
"""Name of the split whose golds and inputs never leave the server; other splits are public."""


@dataclass(frozen=True, slots=True)
class Viewer:
    """The account or visitor that makes a request.

    Attributes:
        account: their account's id; None for a visitor.
        name: their account's name.
        roles: their roles on the whole server.
        scopes: the scopes of the token; all scopes in a session of the pages.
        teams: ids of the accounts that they act for, including their own.
        authored: ids of the suites of which they are an author.
        reviewed: ids of the suites that name them as a reviewer.
        credential: id of the token or session.
        address: the network address that the request came from.
        request: id of the request.
    """

    account: str | None = None
    name: str = ""
    roles: frozenset[Role] = frozenset()
    scopes: frozenset[Scope] = frozenset()
    teams: frozenset[str] = frozenset()
    authored: frozenset[str] = frozenset()
    reviewed: frozenset[str] = frozenset()
    credential: str | None = None
    address: str | None = None
    request: str | None = None

    @property
    def is_operator(self) -> bool:
        """Whether the viewer is an operator, and the token has the scope ``operate``."""
        return Role.OPERATOR in self.roles and Scope.OPERATE in self.scopes

    @property
    def uses_token(self) -> bool:
        """Whether the request was made with a token, not in a session of the pages."""
        return (self.credential or "").startswith("tok_")

    def actor(self) -> Actor:
        """The caller as the audit log names them."""
        return Actor(self.account or "visitor", self.request, self.address)

    def authors(self, suite: str) -> bool:
        """Whether the viewer is an author of a suite, and the token has the scope ``author``."""
        return suite in self.authored and Scope.AUTHOR in self.scopes

    def reviews(self, suite: str) -> bool:
        """Whether the viewer is a reviewer of a suite, and the token has the scope ``review``."""
        return suite in self.reviewed and Scope.REVIEW in self.scopes


def _own(viewer: Viewer, column: sa.ColumnElement[Any]) -> sa.ColumnElement[bool]:
    return column.in_(viewer.teams if Scope.READ in viewer.scopes else ())


def _authored(viewer: Viewer, column: sa.ColumnElement[Any]) -> sa.ColumnElement[bool]:
    return column.in_(viewer.authored if Scope.AUTHOR in viewer.scopes else ())


def _reviewed(viewer: Viewer, column: sa.ColumnElement[Any]) -> sa.ColumnElement[bool]:
    return column.in_(viewer.reviewed if Scope.REVIEW in viewer.scopes else ())


def _suite(viewer: Viewer) -> sa.ColumnElement[bool]:
    return sa.or_(
        t.suite.c.visibility.in_((Visibility.PUBLIC, Visibility.LISTED)),
        _authored(viewer, t.suite.c.id),
        _reviewed(viewer, t.suite.c.id),
    )


def _of_suite(viewer: Viewer, column: sa.ColumnElement[Any]) -> sa.ColumnElement[bool]:
    return column.in_(sa.select(t.suite.c.id).where(_suite(viewer)))


def _submission(viewer: Viewer) -> sa.ColumnElement[bool]:
    phases = sa.select(t.phase.c.id).where(_authored(viewer, t.phase.c.suite))
    return sa.or_(_own(viewer, t.submission.c.account), t.submission.c.phase.in_(phases))


def _judging(viewer: Viewer) -> sa.ColumnElement[bool]:
    """Judgings of visible submissions; only authors see those of an unapplied rejudging."""
    visible = sa.select(t.submission.c.id).where(_submission(viewer))
    current = sa.select(t.submission.c.current_judging)
    phases = sa.select(t.phase.c.id).where(_authored(viewer, t.phase.c.suite))
    authored = sa.select(t.submission.c.id).where(t.submission.c.phase.in_(phases))
    return sa.and_(
        t.judging.c.submission.in_(visible),
        sa.or_(
            t.judging.c.rejudging.is_(None),
            t.judging.c.id.in_(current),
            t.judging.c.submission.in_(authored),
        ),
    )


def _board(viewer: Viewer) -> sa.ColumnElement[bool]:
    return sa.or_(
        sa.and_(
            t.board.c.visibility.in_((Visibility.PUBLIC, Visibility.LISTED)),
            _of_suite(viewer, t.board.c.suite),
        ),
        _authored(viewer, t.board.c.suite),
    )


def _dispute(viewer: Viewer) -> sa.ColumnElement[bool]:
    decided = (DisputeState.ACCEPTED, DisputeState.REJECTED, DisputeState.CORRECTED)
    return sa.or_(
        _own(viewer, t.dispute.c.account),
        _authored(viewer, t.dispute.c.suite),
        _reviewed(viewer, t.dispute.c.suite),
        sa.and_(t.dispute.c.state.in_(decided), _of_suite(viewer, t.dispute.c.suite)),
    )


def _rejudging(viewer: Viewer) -> sa.ColumnElement[bool]:
    return sa.or_(
        _authored(viewer, t.rejudging.c.suite),
        sa.and_(
            t.rejudging.c.state == RejudgingState.APPLIED,
            _of_suite(viewer, t.rejudging.c.suite),
        ),
    )


def _account(viewer: Viewer) -> sa.ColumnElement[bool]:
    return sa.true() if viewer.is_operator else _own(viewer, t.account.c.id)


_VISIBLE: dict[str, Callable[[Viewer], sa.ColumnElement[bool]]] = {
    "suite": _suite,
    "phase": lambda viewer: _of_suite(viewer, t.phase.c.suite),
    "revision": lambda viewer: _of_suite(viewer, t.revision.c.suite),
    "submission": _submission,
    "judging": _judging,
    "board": _board,
    "dispute": _dispute,
    "rejudging": _rejudging,
    "account": _account,
    "token": lambda viewer: t.token.c.account == viewer.account,
    "webhook": lambda viewer: t.webhook.c.account == viewer.account,
    "event": lambda viewer: sa.true() if viewer.is_operator else sa.false(),
}

_NAMED = frozenset({"suite", "phase", "board", "account"})
"""Tables whose rows can also be addressed by name."""


def visible_to(viewer: Viewer, table: sa.Table) -> sa.ColumnElement[bool]:
    """The SQL condition for the rows that the viewer may see.

    Raises:
        KeyError: the table has no such condition.
    """
    return _VISIBLE[table.name](viewer)


def in_lists(viewer: Viewer, table: sa.Table) -> sa.ColumnElement[bool]:
    """The SQL condition for lists: they omit suites and boards that are not public.

    Authors and reviewers see those of their own suites nevertheless.
    """
    if table.name not in {"suite", "board"}:
        return visible_to(viewer, table)
    suite = table.c.id if table.name == "suite" else table.c.suite
    return sa.and_(
        visible_to(viewer, table),
        sa.or_(
            table.c.visibility == Visibility.PUBLIC,
            _authored(viewer, suite),
            _reviewed(viewer, suite),
        ),
    )


def find(connection: sa.Connection, viewer: Viewer, table: sa.Table, name: str) -> dict[str, Any]:
    """Finds a row by its id, or by its name if the rows of the table have names.

    Raises:
        Problem: 404, there is no such row that the viewer may see.
    """
    if ID_PATTERN.fullmatch(name):
        row_is = table.c.id == name
    elif table.name in _NAMED:
        row_is = table.c.name == name
    else:
        raise not_found()
    row = first_row(connection, sa.select(table).where(row_is, visible_to(viewer, table)))
    if row is None:
        raise not_found()
    return row


def require(viewer: Viewer, scope: Scope) -> str:
    """Returns the account's id, if the viewer has signed in with this scope.

    Raises:
        Problem: 401 for a visitor, 403 without the scope.
    """
    if viewer.account is None:
        raise Problem("unauthorized")
    if scope not in viewer.scopes:
        raise Problem("forbidden", f"This needs a token with the scope {scope}.")
    return viewer.account


def require_role(viewer: Viewer, role: Role) -> str:
    """Returns the account's id, if it has a role on the server, and the token has its scope.

    Raises:
        Problem: 401 or 403.
    """
    account = require(viewer, Scope.OPERATE if role is Role.OPERATOR else Scope.AUTHOR)
    if role not in viewer.roles:
        raise Problem("forbidden", f"This needs an account with the role {role}.")
    return account


def require_suite_role(viewer: Viewer, role: SuiteRole, suite: str) -> str:
    """Returns the account's id if it may see the suite and is an author (or a reviewer) of it.

    Raises:
        Problem: 401 or 403.
    """
    is_author = role is SuiteRole.AUTHOR
    account = require(viewer, Scope.AUTHOR if is_author else Scope.REVIEW)
    if suite not in (viewer.authored if is_author else viewer.reviewed):
        raise Problem("forbidden", f"This is only for {role}s of the suite.")
    return account


def phase_state(phase: dict[str, Any], now: str) -> PhaseState:
    """The state of a phase, which is set by hand or follows from its opening and closing times.

    Args:
        phase: its row.
        now: the database's time (:class:`judge.serve.store.tables.Now`).
    """
    if phase["state"] is not None:
        return PhaseState(phase["state"])
    if phase["published"] is not None and phase["published"] <= now:
        return PhaseState.PUBLISHED
    if phase["closes"] is not None and phase["closes"] <= now:
        return PhaseState.CLOSED
    if phase["opens"] is not None and phase["opens"] > now:
        return PhaseState.PLANNED
    return PhaseState.OPEN


def split_level(suite: dict[str, Any], split: str) -> Level:
    """The feedback level of a split: the suite's or the default.

    Cells of a hidden split stay hidden.
    """
    hidden = split == HIDDEN_SPLIT
    level = Level(suite["levels"].get(split, Level.SCORE if hidden else Level.CELLS))
    return Level.VERDICTS if hidden and level is Level.CELLS else level


def level_for(
    viewer: Viewer, suite: dict[str, Any], phase: dict[str, Any], state: PhaseState
) -> Level:
    """How much of the verdicts the viewer sees in a phase.

    Authors see all verdicts of submissions to their suites. Once the phase is published, so does
    everyone who can see the submission. The cells of a hidden split are never shown.
    """
    level = split_level(suite, phase["split"])
    if viewer.authors(suite["id"]) or state is PhaseState.PUBLISHED:
        return Level.VERDICTS if phase["split"] == HIDDEN_SPLIT else Level.CELLS
    return level
