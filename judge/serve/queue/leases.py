"""The queue as transactions: enqueue, claim, beat, finish, fail, release, lose, cancel.

Accounts take turns by cases: the one with the fewest cases served comes first. A running judging
has a lease, a random string; only the holder of the lease can end the judging and write its
outcome. Leases do not depend on the time of day: their holder increments a counter, and
:mod:`judge.serve.queue.watching` takes back leases whose counter does not change. Locks are taken
in the order account, then judging.
"""

from __future__ import annotations

import functools
import secrets
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from judge.errors import StoreError
from judge.serve.store import tables as t
from judge.serve.store.database import Database, Transaction, all_rows
from judge.serve.store.tables import JudgingState, Lane, new_id

INTERACTIVE_CASES = 30
"""Submissions with at most this many cases go into the interactive lane."""

MAX_LOST_LEASES = 3
"""A judging that has lost this many leases only runs on a dispatcher that runs no other."""

MAX_DISPATCHER_DEATHS = 3
"""A judging fails if this many dispatchers died while they ran only this judging."""

RETRIES = 2
"""How many times a judging that ended in judge errors is tried again."""

_J, _A, _S = t.judging.c, t.account.c, t.submission.c
_LOCK_ACCOUNT = sa.select(_A.id).where(_A.id == sa.bindparam("account")).with_for_update()
_LANE_ORDER = sa.case({lane.value: index for index, lane in enumerate(Lane)}, value=_J.lane)


class FencedError(Exception):
    """The lease is lost, or the judging was cancelled; nothing is written."""


@dataclass(frozen=True, slots=True)
class Claim:
    """A judging that a dispatcher has taken.

    Attributes:
        judging: its row, after the claim.
        lease: the lease with which it can be ended.
    """

    judging: Mapping[str, Any]
    lease: str

    @property
    def id(self) -> str:
        """The judging's id."""
        return str(self.judging["id"])


def lane_of(cases: int, rejudging: str | None) -> Lane:
    """The lane in which a judging waits."""
    if rejudging is not None:
        return Lane.REJUDGE
    return Lane.INTERACTIVE if cases <= INTERACTIVE_CASES else Lane.NORMAL


_INSERT = sa.insert(t.judging)


def enqueue(
    transaction: Transaction,
    *,
    submission: str,
    account: str,
    conditions: str,
    cases: int,
    rejudging: str | None = None,
) -> str:
    """Puts a judging of a submission into the queue.

    Args:
        transaction: the transaction that inserts the submission or opens the rejudging.
        submission: id of the submission to judge.
        account: id of the account whose turn is used.
        conditions: digest of the conditions.
        cases: how many cases it has.
        rejudging: id of the rejudging that it belongs to, if any.

    Returns:
        The judging's id.
    """
    judging = new_id("jdg")
    lock_account(transaction, account)
    transaction.execute(_WAITS_MORE, {"account": account})
    transaction.execute(
        _INSERT,
        {
            "id": judging,
            "submission": submission,
            "account": account,
            "conditions": conditions,
            "rejudging": rejudging,
            "state": JudgingState.QUEUED,
            "lane": lane_of(cases, rejudging),
            "cases": cases,
        },
    )
    _moved(transaction, judging, submission, None, JudgingState.QUEUED)
    return judging


def _waits_more() -> sa.Update:
    """Counts one more waiting judging of an account.

    An account that had no waiting judging starts with the smallest count of served cases of all
    busy accounts, so that it gains no advantage from having been idle.
    """
    account: sa.BindParameter[str] = sa.bindparam("account")
    least = (
        sa.select(sa.func.min(_A.vtime))
        .where((_A.waiting > 0) | (_A.running > 0), _A.id != account)
        .scalar_subquery()
    )
    came_back = sa.and_(_A.waiting == 0, _A.running == 0, _A.vtime < sa.func.coalesce(least, 0))
    return (
        sa.update(t.account)
        .where(_A.id == account)
        .values(waiting=_A.waiting + 1, vtime=sa.case((came_back, least), else_=_A.vtime))
    )


_WAITS_MORE = _waits_more()


def lock_account(transaction: Transaction, account: str) -> None:
    """Locks an account's row until the transaction ends; must be the first lock."""
    if transaction.connection.dialect.name != "sqlite":  # it locks the whole database
        transaction.execute(_LOCK_ACCOUNT, {"account": account})


_TAKE = (
    sa.update(t.judging)
    .where(_J.id == sa.bindparam("judging"), _J.state == JudgingState.QUEUED)
    .values(
        state=JudgingState.RUNNING,
        lease=sa.bindparam("new_lease"),
        holder=sa.bindparam("by"),
        beat=_J.beat + 1,
        claims=_J.claims + 1,
        front=0,
        started=sa.func.coalesce(_J.started, t.Now()),
    )
    .returning(t.judging)
)


_SERVE = (
    sa.update(t.account)
    .where(_A.id == sa.bindparam("account"))
    .values(
        waiting=_A.waiting - 1,
        running=_A.running + 1,
        vtime=_A.vtime + sa.bindparam("cases"),
    )
)


def claim(
    transaction: Transaction,
    holder: str,
    lanes: Collection[Lane],
    *,
    alone: bool,
    without: Collection[str] = (),
    waiting: Collection[str] = (),
) -> Claim | None:
    """Takes the next judging, if there is one.

    Args:
        transaction: a transaction that contains nothing else.
        holder: name of the dispatcher.
        lanes: the lanes from which it may take a judging now.
        alone: whether the dispatcher runs no other judging; only then may it take one that has to
            run alone.
        without: ids of judgings that it cannot run now.
        waiting: ids of accounts that get no turn now.
    """
    statements = _claiming(frozenset(lanes), alone, bool(without), bool(waiting))
    parameters = {"without": sorted(without)} if without else {}
    if waiting:
        parameters["waiting"] = sorted(waiting)
    account = transaction.execute(statements.account, parameters).scalar()
    if account is None:
        return None
    chosen = transaction.execute(statements.judging, {"account": account, **parameters}).first()
    if chosen is None:
        return None
    lease = secrets.token_hex(16)
    row = (
        transaction.execute(_TAKE, {"judging": chosen.id, "new_lease": lease, "by": holder})
        .mappings()
        .one()
    )
    transaction.execute(_SERVE, {"account": account, "cases": chosen.cases})
    _moved(transaction, row["id"], row["submission"], JudgingState.QUEUED, JudgingState.RUNNING)
    return Claim(dict(row), lease)


@dataclass(frozen=True, slots=True)
class _Claiming:
    """The SQL statements of a claim: they choose the next account, and one of its judgings."""

    account: sa.Select[Any]
    judging: sa.Select[Any]


@functools.cache
def _claiming(lanes: frozenset[Lane], alone: bool, without: bool, waiting: bool) -> _Claiming:
    waits = sa.and_(
        _J.account == _A.id, _J.state == JudgingState.QUEUED, _J.lane.in_(sorted(lanes))
    )
    if not alone:
        waits = sa.and_(waits, _J.alone.is_(False))
    if without:
        waits = sa.and_(waits, _J.id.not_in(sa.bindparam("without", expanding=True)))
    if waiting:
        waits = sa.and_(waits, _A.id.not_in(sa.bindparam("waiting", expanding=True)))
    account = (
        sa.select(_A.id)
        .where(
            _A.waiting > 0,
            _A.running < _A.concurrency,
            sa.exists(sa.select(sa.literal(1)).select_from(t.judging).where(waits)),
        )
        .order_by(_A.vtime, _A.id)
        .limit(1)
        .with_for_update(skip_locked=True)
    )
    judging = (
        sa.select(_J.id, _J.cases)
        .select_from(t.judging.join(t.account, _A.id == _J.account))
        .where(waits, _A.id == sa.bindparam("account"))
        .order_by(_J.front.desc(), _LANE_ORDER, _J.id)
        .limit(1)
        .with_for_update(of=t.judging, skip_locked=True)
    )
    return _Claiming(account, judging)


def beat(
    database: Database, actor: Any, holder: str, done: Mapping[str, int]
) -> tuple[set[str], set[str]]:
    """Increments the counters of a dispatcher's leases, and records their progress.

    Args:
        database: the server's database.
        actor: the dispatcher.
        holder: the dispatcher's name.
        done: lease -> number of finished cases.

    Returns:
        The leases that it still holds, and those of them that have to be cancelled.
    """
    with database.writing(actor) as transaction:
        transaction.execute(
            sa.update(t.dispatcher)
            .where(t.dispatcher.c.name == holder)
            .values(beat=t.dispatcher.c.beat + 1)
        )
        if not done:
            return set(), set()
        progress = sa.case(dict(done), value=_J.lease, else_=_J.done)
        rows = transaction.execute(
            sa.update(t.judging)
            .where(_J.lease.in_(done), _J.state == JudgingState.RUNNING)
            .values(beat=_J.beat + 1, done=progress)
            .returning(_J.lease, _J.cancel)
        ).all()
    return {row.lease for row in rows}, {row.lease for row in rows if row.cancel}


def finish(
    transaction: Transaction,
    taken: Claim,
    verdicts: Sequence[t.VerdictRow],
    *,
    report_sha256: str,
    scores: Mapping[str, Any],
) -> None:
    """Ends a judging with its verdicts, all in this transaction.

    The verdicts of a rejudging cover the cases that the suite has now, which may be more or fewer.

    Raises:
        FencedError: the lease is lost; nothing is written.
        StoreError: the verdicts do not cover all cases of the submission.
    """
    cases = len({(row["task"], row["sample"], row["case"]) for row in verdicts})
    if taken.judging["rejudging"] is None and cases != taken.judging["cases"]:
        raise StoreError(
            f"judging {taken.id}: there are verdicts for {cases} cases, but it has "
            f"{taken.judging['cases']}"
        )
    _end(
        transaction,
        taken,
        JudgingState.DONE,
        done=cases,
        cases=cases,
        report_sha256=report_sha256,
        scores=dict(scores),
    )
    if verdicts:
        rows = [{"judging": taken.id, **row} for row in verdicts]
        transaction.execute(sa.insert(t.verdict), rows)


def fail(transaction: Transaction, taken: Claim, reason: str, *, retry: bool) -> JudgingState:
    """Ends a judging that has no verdicts, or queues it again.

    Args:
        transaction: a transaction that contains nothing else.
        taken: the claimed judging.
        reason: the reason, shown to people.
        retry: whether another attempt may help; there are at most :data:`RETRIES`.

    Raises:
        FencedError: the lease is lost.
    """
    again = retry and taken.judging["errors"] < RETRIES
    state = JudgingState.QUEUED if again else JudgingState.FAILED
    _end(transaction, taken, state, errors=_J.errors + 1, reason=reason[:2000])
    if state is JudgingState.FAILED:
        _free_quota(transaction, taken.judging)
    return state


def release(transaction: Transaction, taken: Claim, *, counts: bool = True) -> None:
    """Puts a judging that cannot be run now back at the front of its account's queue.

    Args:
        transaction: a transaction that contains nothing else.
        taken: the claimed judging.
        counts: whether this claim counts as an attempt; it does not if the judging could not start.

    Raises:
        FencedError: the lease is lost.
    """
    _end(transaction, taken, JudgingState.QUEUED, front=1, claims=_J.claims - int(not counts))


def end_cancelled(transaction: Transaction, taken: Claim) -> None:
    """Ends a judging that was cancelled while it was running.

    Raises:
        FencedError: the lease is lost.
    """
    _end(transaction, taken, JudgingState.CANCELLED)


def lose(
    transaction: Transaction, judging: str, lease: str, *, beat_seen: int | None, progress: int
) -> bool:
    """Takes a lease from a holder that is dead or silent.

    A judging that lost its lease three times runs alone on a dispatcher. If three dispatchers then
    die without recording a case, the judging fails, because nothing else can have caused this.

    Args:
        transaction: a transaction that contains nothing else.
        judging: id of the judging.
        lease: the lease to take.
        beat_seen: the counter that did not change; None if the holder is known to be dead.
        progress: how many cases are recorded.

    Returns:
        Whether it was taken; False if its holder has ended the judging or sent a heartbeat
        meanwhile.
    """
    row = transaction.one(sa.select(t.judging).where(_J.id == judging, _J.lease == lease))
    if row is None:
        return False
    lock_account(transaction, row["account"])
    row = transaction.one(
        sa.select(t.judging).where(_J.id == judging, _J.lease == lease).with_for_update()
    )
    if row is None or row["state"] != JudgingState.RUNNING:
        return False
    if beat_seen is not None and row["beat"] != beat_seen:
        return False
    others = transaction.execute(
        sa.select(sa.func.count())
        .select_from(t.judging)
        .where(_J.holder == row["holder"], _J.state == JudgingState.RUNNING)
    ).scalar_one()
    lost = row["lost"] + 1
    at_fault = row["alone"] and others == 1 and progress <= row["done"]
    deaths = row["deaths_alone"] + at_fault
    failed = deaths >= MAX_DISPATCHER_DEATHS
    state = JudgingState.FAILED if failed else JudgingState.QUEUED
    if row["cancel"]:
        state = JudgingState.CANCELLED
    reason = (
        f"{deaths} dispatchers died while they judged nothing else" if failed else row["reason"]
    )
    _end(
        transaction,
        Claim(row, lease),
        state,
        lost=lost,
        deaths_alone=deaths,
        alone=lost >= MAX_LOST_LEASES,
        done=max(progress, row["done"]),
        front=1,
        reason=reason,
    )
    transaction.event("lease.lost", judging, detail={"holder": row["holder"], "lost": lost})
    if state is JudgingState.FAILED:
        _free_quota(transaction, row)
    return True


def cancel(transaction: Transaction, judging: str) -> JudgingState:
    """Cancels a judging: immediately if it waits, at its holder's next heartbeat if it runs.

    Returns:
        Its previous state; if it had ended, nothing is changed.
    """
    row = transaction.one(sa.select(t.judging).where(_J.id == judging))
    assert row is not None, "the caller has seen it"
    lock_account(transaction, row["account"])
    row = transaction.one(sa.select(t.judging).where(_J.id == judging).with_for_update())
    assert row is not None
    state = JudgingState(row["state"])
    if state is JudgingState.RUNNING:
        transaction.execute(sa.update(t.judging).where(_J.id == judging).values(cancel=True))
        _touch(transaction, row["submission"])
        transaction.event("judging.cancelling", judging, before=state, after=state)
    elif state is JudgingState.QUEUED:
        transaction.execute(
            sa.update(t.judging)
            .where(_J.id == judging)
            .values(state=JudgingState.CANCELLED, finished=t.Now())
        )
        transaction.execute(
            sa.update(t.account).where(_A.id == row["account"]).values(waiting=_A.waiting - 1)
        )
        _moved(transaction, judging, row["submission"], state, JudgingState.CANCELLED)
        if row["claims"] == 0:
            _free_quota(transaction, row)
    return state


def cancel_all(transaction: Transaction, rejudging: str, account: str) -> None:
    """Cancels all judgings of a rejudging as :func:`cancel` cancels one judging.

    Args:
        transaction: the transaction in which the rejudging is locked.
        rejudging: id of the rejudging.
        account: id of the account in whose name the judgings are queued.
    """
    lock_account(transaction, account)
    of_it = _J.rejudging == rejudging
    waiting = transaction.execute(
        sa.update(t.judging)
        .where(of_it, _J.state == JudgingState.QUEUED)
        .values(state=JudgingState.CANCELLED, finished=t.Now())
        .returning(_J.id, _J.submission)
    ).all()
    for row in waiting:
        _moved(transaction, row.id, row.submission, JudgingState.QUEUED, JudgingState.CANCELLED)
    transaction.execute(
        sa.update(t.account).where(_A.id == account).values(waiting=_A.waiting - len(waiting))
    )
    running = transaction.execute(
        sa.update(t.judging)
        .where(of_it, _J.state == JudgingState.RUNNING)
        .values(cancel=True)
        .returning(_J.id, _J.state)
    ).all()
    for row in running:
        transaction.event("judging.cancelling", row.id, before=row.state, after=row.state)


def held_by(connection: sa.Connection, holder: str) -> list[dict[str, Any]]:
    """The running judgings of a dispatcher."""
    return all_rows(
        connection,
        sa.select(_J.id, _J.lease, _J.beat).where(
            _J.holder == holder, _J.state == JudgingState.RUNNING
        ),
    )


def _end(transaction: Transaction, taken: Claim, state: JudgingState, **values: Any) -> None:
    """Ends the state ``running``; only this function does, and it needs the lease."""
    account = taken.judging["account"]
    lock_account(transaction, account)
    waits_again = state is JudgingState.QUEUED
    parameters = {"of": taken.id, "its_lease": taken.lease, "state": state}
    computed = {
        name: value for name, value in values.items() if isinstance(value, sa.ClauseElement)
    }
    plain = {name: value for name, value in values.items() if name not in computed}
    ending = _REQUEUE if waits_again else _FINISH
    if computed:
        ending = ending.values(**computed)
    if transaction.execute(ending, parameters | plain).rowcount != 1:  # these set columns as well
        raise FencedError
    served = {"account": account, "cases": taken.judging["cases"]}
    transaction.execute(_WAITS_AGAIN if waits_again else _ENDED, served)
    _moved(transaction, taken.id, taken.judging["submission"], JudgingState.RUNNING, state)


_HELD = sa.update(t.judging).where(
    _J.id == sa.bindparam("of"),
    _J.lease == sa.bindparam("its_lease"),
    _J.state == JudgingState.RUNNING,
)
_FINISH = _HELD.values(lease=None, finished=t.Now())
_REQUEUE = _HELD.values(lease=None, holder=None)
_OF_ACCOUNT = sa.update(t.account).where(_A.id == sa.bindparam("account"))
_ENDED = _OF_ACCOUNT.values(running=_A.running - 1)
_WAITS_AGAIN = _OF_ACCOUNT.values(
    running=_A.running - 1, waiting=_A.waiting + 1, vtime=_A.vtime - sa.bindparam("cases")
)


def _moved(
    transaction: Transaction,
    judging: str,
    submission: str,
    before: JudgingState | None,
    after: JudgingState,
) -> None:
    """Records the event of a state change, and raises the version of the submission."""
    if before is not None:
        _touch(transaction, submission)
    transaction.event(
        f"judging.{after}",
        judging,
        before=before,
        after=after,
        detail={"submission": submission},
    )
    if after in {JudgingState.DONE, JudgingState.FAILED, JudgingState.CANCELLED}:
        transaction.event("submission.judged", submission, after=after, detail={"judging": judging})


_NEXT_VERSION = (
    sa.update(t.submission)
    .where(_S.id == sa.bindparam("submission"))
    .values(version=_S.version + 1)
)


def _touch(transaction: Transaction, submission: str) -> None:
    transaction.execute(_NEXT_VERSION, {"submission": submission})


def _free_quota(transaction: Transaction, judging: Mapping[str, Any]) -> None:
    """Returns a submission to the quota if the judge failed on it or never started it."""
    if judging["rejudging"] is None:
        transaction.execute(
            sa.update(t.submission).where(_S.id == judging["submission"]).values(counts=False)
        )
