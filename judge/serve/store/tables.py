"""The tables of the server, on SQLite and PostgreSQL alike, and the values in their columns.

Identifiers are those of :func:`new_id`, with the prefix in the comment of their
table. Times are strings in UTC from the database's clock (:class:`Now`). They are only for people:
leases depend on heartbeats. States, kinds, lanes and levels are each declared
once, as enumerations.
"""

from __future__ import annotations

import re
import secrets
import time
from enum import StrEnum
from typing import Any, TypedDict

from sqlalchemy import (
    JSON,
    BigInteger,
    Boolean,
    Column,
    Float,
    ForeignKey,
    Index,
    Integer,
    MetaData,
    String,
    Table,
    Text,
    UniqueConstraint,
)
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.functions import FunctionElement


class AccountKind(StrEnum):
    """What an account represents."""

    PERSON = "person"
    TEAM = "team"
    SERVICE = "service"


class AccountState(StrEnum):
    """Whether an account may act."""

    PENDING = "pending"
    ACTIVE = "active"
    BLOCKED = "blocked"


class Role(StrEnum):
    """Roles of an account on the whole server; a suite names its own authors and reviewers."""

    OPERATOR = "operator"
    AUTHOR = "author"


class SuiteRole(StrEnum):
    """Roles that a suite gives to accounts."""

    AUTHOR = "author"
    REVIEWER = "reviewer"


class Scope(StrEnum):
    """Rights of a token, which never exceed those of its account."""

    SUBMIT = "submit"
    READ = "read"
    DISPUTE = "dispute"
    REVIEW = "review"
    AUTHOR = "author"
    OPERATE = "operate"


class Visibility(StrEnum):
    """Who sees a suite or a board: everybody, anyone who knows its name, or only its members."""

    PUBLIC = "public"
    LISTED = "listed"
    HIDDEN = "hidden"


class Level(StrEnum):
    """Feedback levels of a split, from the least to the most."""

    NONE = "none"
    SCORE = "score"
    TASKS = "tasks"
    VERDICTS = "verdicts"
    CELLS = "cells"

    def shows(self, level: Level) -> bool:
        """Whether this level shows at least as much as another one."""
        order = list(Level)
        return order.index(self) >= order.index(level)


class PhaseState(StrEnum):
    """States of a phase."""

    PLANNED = "planned"
    OPEN = "open"
    CLOSED = "closed"
    PUBLISHED = "published"


class Kind(StrEnum):
    """What a submission contains."""

    PROGRAMS = "programs"
    ANSWERS = "answers"
    WORKBOOKS = "workbooks"


class JudgingState(StrEnum):
    """States of a judging."""

    QUEUED = "queued"
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"
    CANCELLED = "cancelled"


FINISHED = (JudgingState.DONE, JudgingState.FAILED, JudgingState.CANCELLED)
"""Final states of a judging."""


class Lane(StrEnum):
    """Lanes of the queue, in the order in which they are served."""

    INTERACTIVE = "interactive"
    NORMAL = "normal"
    REJUDGE = "rejudge"


class RejudgingState(StrEnum):
    """States of a rejudging."""

    DRAFT = "draft"
    RUNNING = "running"
    READY = "ready"
    APPLIED = "applied"
    CANCELLED = "cancelled"


class DisputeState(StrEnum):
    """States of a dispute."""

    OPEN = "open"
    SUSPECT = "suspect"
    ACCEPTED = "accepted"
    REJECTED = "rejected"
    WITHDRAWN = "withdrawn"
    CORRECTED = "corrected"


_ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
"""Crockford's base 32: text sorts in the same order as the numbers."""

_ID_DIGITS = 26  # 128 bits in base 32
_TIME_BITS, _RANDOM_BITS = 48, 80

ID_PATTERN = re.compile(r"[a-z]{2,4}_[0-9A-HJKMNP-TV-Z]{26}", re.ASCII)
"""The form of an identifier; a path parameter of another form is not an id."""


def new_id(prefix: str) -> str:
    """Makes an identifier: the prefix, then milliseconds since 1970 and 80 random bits in base 32.

    Args:
        prefix: two to four small letters, such as ``sub``.
    """
    milliseconds = time.time_ns() // 1_000_000 % (1 << _TIME_BITS)
    number = milliseconds << _RANDOM_BITS | secrets.randbits(_RANDOM_BITS)
    digits = [_ALPHABET[number >> 5 * index & 31] for index in reversed(range(_ID_DIGITS))]
    return f"{prefix}_{''.join(digits)}"


metadata = MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "fk": "fk_%(table_name)s_%(column_0_N_name)s",
        "pk": "pk_%(table_name)s",
    }
)

_ID = String(31)
_SHA256 = String(64)
_WORD = String(20)
_NAME = String(80)
_TIME = String(20)
_COUNTER = BigInteger().with_variant(Integer, "sqlite")  # SQLite auto-increments only INTEGER


class Now(FunctionElement[str]):
    """The database's time in UTC, as ``2026-01-31T23:59:59Z``."""

    type = _TIME
    inherit_cache = True


@compiles(Now, "sqlite")
def _now_sqlite(*_: object, **__: object) -> str:
    return "(strftime('%Y-%m-%dT%H:%M:%SZ', 'now'))"


@compiles(Now, "postgresql")
def _now_postgresql(*_: object, **__: object) -> str:
    return "to_char(clock_timestamp() AT TIME ZONE 'utc', 'YYYY-MM-DD\"T\"HH24:MI:SS\"Z\"')"


def _created() -> Column[str]:
    return Column("created", _TIME, nullable=False, server_default=Now())


def _reference(name: str, target: str, **options: Any) -> Column[str]:
    options.setdefault("nullable", False)
    return Column(name, _ID, ForeignKey(target), **options)


account = Table(  # acc
    "account",
    metadata,
    Column("id", _ID, primary_key=True),
    _created(),
    Column("name", _NAME, nullable=False, unique=True),
    Column("kind", _WORD, nullable=False),
    Column("state", _WORD, nullable=False),
    Column("roles", JSON, nullable=False),  # of the server: operator, author
    Column("vtime", _COUNTER, nullable=False, server_default="0"),  # cases served
    Column("waiting", Integer, nullable=False, server_default="0"),
    Column("running", Integer, nullable=False, server_default="0"),
    Column("concurrency", Integer, nullable=False, server_default="2"),
    Column("invited_by", _ID),
)
Index(None, account.c.waiting, account.c.vtime)

membership = Table(
    "membership",
    metadata,
    _reference("team", "account.id", primary_key=True),
    _reference("person", "account.id", primary_key=True, index=True),
    _created(),
    Column("role", _WORD, nullable=False),  # owner, member
)

token = Table(  # tok
    "token",
    metadata,
    Column("id", _ID, primary_key=True),
    _created(),
    _reference("account", "account.id", index=True),
    Column("name", _NAME, nullable=False),
    Column("sha256", _SHA256, nullable=False, unique=True),
    Column("prefix", String(12), nullable=False),
    Column("scopes", JSON, nullable=False),
    Column("expires", _TIME, nullable=False),
    Column("revoked", _TIME),
    Column("last_used", String(10)),  # the day
    Column(
        "maker", _ID
    ),  # id of the token that made it; None: made by a person or an administrator
)
Index(None, token.c.maker)

sign_in = Table(  # one-time links; sin
    "sign_in",
    metadata,
    Column("id", _ID, primary_key=True),
    _created(),
    _reference("account", "account.id"),
    Column("sha256", _SHA256, nullable=False, unique=True),
    Column("expires", _TIME, nullable=False),
    Column("used", _TIME),
)

session = Table(  # of pages; ses
    "session",
    metadata,
    Column("id", _ID, primary_key=True),
    _created(),
    _reference("account", "account.id", index=True),
    Column("sha256", _SHA256, nullable=False, unique=True),
    Column("expires", _TIME, nullable=False),
    Column("ended", _TIME),
)

suite = Table(  # sui
    "suite",
    metadata,
    Column("id", _ID, primary_key=True),
    _created(),
    Column("name", _NAME, nullable=False, unique=True),
    Column("title", String(200), nullable=False),
    Column("description", Text, nullable=False, server_default=""),
    _reference("owner", "account.id", index=True),
    Column("visibility", _WORD, nullable=False),
    Column("levels", JSON, nullable=False),  # feedback level by name of split
    Column("options", JSON, nullable=False),  # of JudgingOptions, for future conditions
    Column("two_reviewers", Boolean, nullable=False, server_default="0"),
    Column("per_day", Integer, nullable=False, server_default="0"),  # of all teams; 0: no limit
    Column("current_revision", _ID),
)

suite_role = Table(  # accounts that a suite names in addition to its owner
    "suite_role",
    metadata,
    _reference("suite", "suite.id", primary_key=True),
    _reference("account", "account.id", primary_key=True, index=True),
    Column("role", _WORD, primary_key=True),  # author, reviewer
    _created(),
)

revision = Table(  # rev
    "revision",
    metadata,
    Column("id", _ID, primary_key=True),
    _created(),
    _reference("suite", "suite.id"),
    Column("number", Integer, nullable=False),
    Column("digest", _SHA256, nullable=False),  # of the suite as judged, corrections applied
    Column("corrections", _SHA256),  # of the corrections' file
    Column("folder", _SHA256, nullable=False),  # suites/FOLDER: hash of source and corrections
    Column("cases", Integer, nullable=False),
    Column("published", Boolean, nullable=False, server_default="0"),
    Column("note", Text, nullable=False, server_default=""),
    UniqueConstraint("suite", "number"),
    UniqueConstraint("suite", "folder"),
)

split = Table(  # spl
    "split",
    metadata,
    Column("id", _ID, primary_key=True),
    _created(),
    _reference("revision", "revision.id"),
    Column("name", _WORD, nullable=False),
    Column("tasks", JSON, nullable=False),  # ids
    Column("cases", Integer, nullable=False),
    UniqueConstraint("revision", "name"),
)

phase = Table(  # pha
    "phase",
    metadata,
    Column("id", _ID, primary_key=True),
    _created(),
    Column("name", _NAME, nullable=False, unique=True),
    _reference("suite", "suite.id", index=True),
    Column("split", _WORD, nullable=False),  # name of the split
    Column("state", _WORD),  # set by hand; None: derived from the times
    Column("opens", _TIME),
    Column("closes", _TIME),
    Column("published", _TIME),
    Column("per_day", Integer, nullable=False),
    Column("in_total", Integer, nullable=False),
    Column("options", JSON, nullable=False, server_default="{}"),  # overrides those of the suite
)

conditions = Table(
    "conditions",
    metadata,
    Column("digest", _SHA256, primary_key=True),
    _created(),
    _reference("revision", "revision.id"),
    Column("document", JSON, nullable=False),
)

submission = Table(  # sub
    "submission",
    metadata,
    Column("seq", _COUNTER, primary_key=True, autoincrement=True),
    Column("id", _ID, nullable=False, unique=True),
    _created(),
    _reference("account", "account.id"),
    _reference("made_by", "account.id"),
    _reference("phase", "phase.id"),
    Column("kind", _WORD, nullable=False),
    Column("sha256", _SHA256, nullable=False),
    Column("bytes", _COUNTER, nullable=False),
    Column("samples", Integer, nullable=False, server_default="1"),
    Column("idempotency_key", String(80)),
    Column("system", String(200), nullable=False, server_default=""),
    Column("model", String(200), nullable=False, server_default=""),
    Column("setting", String(200), nullable=False, server_default=""),
    Column("url", String(500), nullable=False, server_default=""),
    Column("cost_usd", Float),
    Column("tokens", _COUNTER),
    Column("cutoff", String(10)),  # of the training data
    Column("note", Text, nullable=False, server_default=""),
    Column("current_judging", _ID),
    Column("version", Integer, nullable=False, server_default="1"),  # of what is shown
    Column("withdrawn", _TIME),
    Column("counts", Boolean, nullable=False, server_default="1"),  # for the quota
)
Index(None, submission.c.account, submission.c.seq)
Index(None, submission.c.phase, submission.c.account, submission.c.created)

judging = Table(  # jdg
    "judging",
    metadata,
    Column("id", _ID, primary_key=True),
    _created(),
    _reference("submission", "submission.id", index=True),
    _reference("account", "account.id"),  # the account whose turn it takes
    Column("conditions", _SHA256, ForeignKey("conditions.digest"), nullable=False),
    _reference("rejudging", "rejudging.id", nullable=True, index=True),
    Column("state", _WORD, nullable=False),
    Column("lane", _WORD, nullable=False),
    Column("front", Integer, nullable=False, server_default="0"),  # 1: returned after a lost lease
    Column("lease", String(32)),
    Column("holder", _NAME),
    Column("beat", _COUNTER, nullable=False, server_default="0"),
    Column("claims", Integer, nullable=False, server_default="0"),
    Column("lost", Integer, nullable=False, server_default="0"),
    Column("deaths_alone", Integer, nullable=False, server_default="0"),
    Column("alone", Boolean, nullable=False, server_default="0"),
    Column("errors", Integer, nullable=False, server_default="0"),  # how many times it ended in JE
    Column("cancel", Boolean, nullable=False, server_default="0"),
    Column("cases", Integer, nullable=False),
    Column("done", Integer, nullable=False, server_default="0"),
    Column("started", _TIME),
    Column("finished", _TIME),
    Column("report_sha256", _SHA256),
    Column("scores", JSON),  # of report.json, for lists and boards
    Column("reason", Text),  # of a failure
)
Index(None, judging.c.account, judging.c.state, judging.c.lane)
Index(None, judging.c.state, judging.c.holder)

verdict = Table(
    "verdict",
    metadata,
    _reference("judging", "judging.id", primary_key=True),
    Column("task", String(200), primary_key=True),
    Column("sample", Integer, primary_key=True),
    Column("case", Integer, primary_key=True),
    Column("verdict", String(4), nullable=False),
    Column("run_key", _SHA256),
    Column("comparison_key", _SHA256),
    Column("output_sha256", _SHA256),
    Column("earned", Float),  # partial credit of a case that is not accepted
)


class VerdictRow(TypedDict):
    """A row of the table of verdicts, without the judging."""

    task: str
    sample: int
    case: int
    verdict: str
    run_key: str | None
    comparison_key: str | None
    output_sha256: str | None
    earned: float | None


OF_VERDICT = tuple(verdict.c[name] for name in VerdictRow.__annotations__)
"""The columns of a verdict's row."""

rejudging = Table(  # rej
    "rejudging",
    metadata,
    Column("id", _ID, primary_key=True),
    _created(),
    _reference("suite", "suite.id", index=True),
    Column("reason", Text, nullable=False),
    Column("scope", JSON, nullable=False),
    Column("conditions", _SHA256, ForeignKey("conditions.digest"), nullable=False),
    Column("state", _WORD, nullable=False),
    _reference("opened_by", "account.id"),
    _reference("decided_by", "account.id", nullable=True),
    Column("decided", _TIME),
    Column("diff", JSON),
)

rejudging_member = Table(
    "rejudging_member",
    metadata,
    _reference("rejudging", "rejudging.id", primary_key=True),
    _reference("submission", "submission.id", primary_key=True, index=True),
    _reference("judging", "judging.id", nullable=True),
    Column("before", _ID),  # its current judging when it was applied
)

dispute = Table(  # dis
    "dispute",
    metadata,
    Column("id", _ID, primary_key=True),
    _created(),
    _reference("suite", "suite.id"),
    _reference("account", "account.id", index=True),
    _reference("submission", "submission.id", nullable=True),
    Column("task", String(200), nullable=False),
    Column("case", Integer, nullable=False),
    Column("kind", _WORD, nullable=False),
    Column("claim", Text, nullable=False),
    Column("evidence", Text, nullable=False, server_default=""),
    Column("state", _WORD, nullable=False),
    Column("suspect", String(80)),
    Column("correction", JSON),
    _reference("rejudging", "rejudging.id", nullable=True),
    Column("reason", Text),  # of the reviewers
)
Index(None, dispute.c.suite, dispute.c.task, dispute.c.case)

decision = Table(  # one reviewer about one dispute; dec
    "decision",
    metadata,
    Column("id", _ID, primary_key=True),
    _created(),
    _reference("dispute", "dispute.id"),
    _reference("reviewer", "account.id"),
    Column("decision", _WORD, nullable=False),
    Column("reason", Text, nullable=False),
    Column("correction", JSON),
    UniqueConstraint("dispute", "reviewer"),
)

board = Table(  # brd
    "board",
    metadata,
    Column("id", _ID, primary_key=True),
    _created(),
    Column("name", _NAME, nullable=False, unique=True),
    Column("title", String(200), nullable=False),
    _reference("suite", "suite.id", index=True),
    _reference("phase", "phase.id", index=True),
    Column("conditions", _SHA256, ForeignKey("conditions.digest"), nullable=False),
    Column("metric", _WORD, nullable=False),
    Column("rule", _WORD, nullable=False),
    Column("visibility", _WORD, nullable=False),
    Column("frozen_at", _TIME),
    Column("columns", JSON, nullable=False),
    Column("latest", Integer, nullable=False, server_default="0"),  # number of the last version
)

board_choice = Table(  # rule "chosen": the submission that an account has chosen
    "board_choice",
    metadata,
    _reference("board", "board.id", primary_key=True),
    _reference("account", "account.id", primary_key=True),
    _reference("submission", "submission.id"),
    _created(),
)

board_version = Table(
    "board_version",
    metadata,
    _reference("board", "board.id", primary_key=True),
    Column("number", Integer, primary_key=True),
    _created(),
    Column("conditions", _SHA256, nullable=False),
    Column("document", Text, nullable=False),  # as signed: JSON with sorted keys
    Column("previous", _SHA256),
    Column("sha256", _SHA256, nullable=False),
    Column("signature", Text, nullable=False),
    Column("key_id", _NAME, nullable=False),
    Column("why", Text, nullable=False),
)

shown_score = Table(  # the ladder: what an account was shown in a phase
    "shown_score",
    metadata,
    _reference("account", "account.id", primary_key=True),
    _reference("phase", "phase.id", primary_key=True),
    Column("conditions", _SHA256, primary_key=True),
    _reference("submission", "submission.id"),
    Column("score", Float, nullable=False),
    Column("steps", Integer, nullable=False, server_default="1"),
)

answer_seen = Table(  # the answer budget of each gold: different answers of an account to one case
    "answer_seen",
    metadata,
    _reference("account", "account.id", primary_key=True),
    _reference("phase", "phase.id", primary_key=True),
    Column("task", String(200), primary_key=True),
    Column("case", Integer, primary_key=True),
    Column("answer", _SHA256, primary_key=True),
    Column("place", Integer, nullable=False),  # 1 for the first answer
)

beyond_budget = Table(  # accepted cases that count only once the phase is published
    "beyond_budget",
    metadata,
    _reference("judging", "judging.id", primary_key=True),
    Column("task", String(200), primary_key=True),
    Column("sample", Integer, primary_key=True),
    Column("case", Integer, primary_key=True),
)

event = Table(
    "event",
    metadata,
    Column("seq", _COUNTER, primary_key=True, autoincrement=True),
    _created(),
    Column("kind", String(40), nullable=False),
    Column("object", _NAME, nullable=False, index=True),
    Column("actor", _NAME, nullable=False),  # an account, or the name of a part of the server
    Column("before", String(80)),
    Column("after", String(80)),
    Column("detail", JSON),
    Column("request", String(40)),
    Column("address", String(64)),
    sqlite_autoincrement=True,
)

webhook = Table(  # whk
    "webhook",
    metadata,
    Column("id", _ID, primary_key=True),
    _created(),
    _reference("account", "account.id", index=True),
    Column("url", String(500), nullable=False),
    Column("secret", String(100), nullable=False),
    Column("old_secret", String(100)),
    Column("kinds", JSON, nullable=False),
    Column("state", _WORD, nullable=False),
    Column("since", _COUNTER, nullable=False),  # events after this one get deliveries
)

delivery = Table(  # dlv
    "delivery",
    metadata,
    Column("id", _ID, primary_key=True),
    _created(),
    _reference("webhook", "webhook.id"),
    Column("event", _COUNTER, ForeignKey("event.seq"), nullable=False),
    Column("tries", Integer, nullable=False, server_default="0"),
    Column("next", _TIME),
    Column("status", Integer),
    Column("state", _WORD, nullable=False),
    UniqueConstraint("webhook", "event"),
)

idempotency = Table(
    "idempotency",
    metadata,
    _reference("account", "account.id", primary_key=True),
    Column("key", String(80), primary_key=True),
    _created(),
    Column("request", String(200), nullable=False),  # method and path
    Column("sha256", _SHA256, nullable=False),  # of the request body
    Column("status", Integer),  # None while the first request runs
    Column("response", JSON),
)

dispatcher = Table(
    "dispatcher",
    metadata,
    Column("name", _NAME, primary_key=True),
    _created(),
    Column("life", String(32), nullable=False),  # new at each start
    Column("beat", _COUNTER, nullable=False, server_default="0"),
    Column("slots", Integer, nullable=False),
    Column("state", _WORD, nullable=False),  # opening, ready, stopping, stopped
    Column("claims", _COUNTER, nullable=False, server_default="0"),
    Column("detail", JSON, nullable=False, server_default="{}"),  # sandbox, engines, versions
)

setting = Table(  # of the whole server: maintenance with its message …
    "setting",
    metadata,
    Column("name", _NAME, primary_key=True),
    Column("value", JSON, nullable=False),
)
