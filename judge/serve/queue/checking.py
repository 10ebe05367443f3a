"""Checks the invariants of the database and lists violations: ``admin check``."""

from __future__ import annotations

import hashlib
import json

import sqlalchemy as sa

from judge.errors import JudgeError
from judge.grading.store import REPORT_FILE
from judge.serve.catalog import LoadedSuites
from judge.serve.store import tables as t
from judge.serve.store.database import Database, all_rows
from judge.serve.store.folder import DataFolder
from judge.serve.store.words import JudgingState, Kind

_J, _S, _A, _V = t.judging.c, t.submission.c, t.account.c, t.verdict.c


def faults_of(database: Database, folder: DataFolder) -> list[str]:
    """Lists the invariants that do not hold, one line for each; see docs/serve.md.

    Args:
        database: the server's database.
        folder: its data folder, which must contain bodies and reports.
    """
    with database.reading() as connection:
        return [
            *_counts(connection),
            *_verdicts(connection),
            *_current(connection),
            *_boards(connection),
            *_events(connection),
            *_files(connection, folder),
        ]


def changed_revisions(database: Database, folder: DataFolder) -> list[str]:
    """Lists the revisions whose files are missing or changed, which cannot be used for judging.

    Args:
        database: the server's database.
        folder: its data folder.
    """
    faults = []
    with database.reading() as connection:
        rows = all_rows(connection, sa.select(t.revision).order_by(t.revision.c.id))
    for row in rows:
        name = f"revision {row['id']}"
        try:
            digest = LoadedSuites(folder).suite(row).digest
        except JudgeError as error:
            faults.append(f"{name}: {error.message}")
        else:
            if digest != row["digest"]:
                faults.append(f"{name}: its files were changed")
    return faults


def _counts(connection: sa.Connection) -> list[str]:
    faults = []
    for column, state in (("waiting", JudgingState.QUEUED), ("running", JudgingState.RUNNING)):
        counted = (
            sa.select(_J.account, sa.func.count().label("number"))
            .where(_J.state == state)
            .group_by(_J.account)
            .subquery()
        )
        number = sa.func.coalesce(counted.c.number, 0)
        query = (
            sa.select(_A.name, _A[column].label("kept"), number.label("counted"))
            .select_from(t.account.outerjoin(counted, counted.c.account == _A.id))
            .where(_A[column] != number)
        )
        faults += [
            f"account {row['name']}: {column} is {row['kept']}, and {row['counted']} are {state}"
            for row in all_rows(connection, query)
        ]
    query = sa.select(_J.id).where((_J.state == JudgingState.RUNNING) != _J.lease.is_not(None))
    faults += [
        f"judging {row['id']}: lease and state differ" for row in all_rows(connection, query)
    ]
    return faults


def _verdicts(connection: sa.Connection) -> list[str]:
    counted = sa.select(_V.judging, sa.func.count().label("number")).group_by(_V.judging).subquery()
    number = sa.func.coalesce(counted.c.number, 0)
    expected = sa.case((_J.state == JudgingState.DONE, _J.cases), else_=0)
    query = (
        sa.select(_J.id, _J.state, number.label("number"), expected.label("expected"))
        .select_from(t.judging.outerjoin(counted, counted.c.judging == _J.id))
        .where(number != expected)
    )
    faults = [
        f"judging {row['id']} ({row['state']}): {row['number']} verdicts in place of "
        f"{row['expected']}"
        for row in all_rows(connection, query)
    ]
    query = sa.select(_J.id).where(_J.state == JudgingState.DONE, _J.report_sha256.is_(None))
    faults += [f"judging {row['id']}: done without a report" for row in all_rows(connection, query)]
    return faults


def _current(connection: sa.Connection) -> list[str]:
    other = t.judging.alias()
    # Ids follow the clock, which can be set back. The first judging is the only one without a
    # rejudging.
    first = (
        sa.select(sa.func.min(other.c.id))
        .where(other.c.submission == _S.id, other.c.rejudging.is_(None))
        .scalar_subquery()
    )
    query = (
        sa.select(_S.id)
        .select_from(t.submission.outerjoin(t.judging, _J.id == _S.current_judging))
        .where(
            sa.or_(
                _J.id.is_(None),
                _J.submission != _S.id,
                sa.and_(_J.state != JudgingState.DONE, _J.id != first),
            )
        )
    )
    return [
        f"submission {row['id']}: its current judging is neither done nor the first one"
        for row in all_rows(connection, query)
    ]


def _boards(connection: sa.Connection) -> list[str]:
    faults = []
    query = sa.select(_J.id, _J.conditions)
    conditions = {row.id: row.conditions for row in connection.execute(query)}
    versions = sa.select(t.board_version).order_by(
        t.board_version.c.board, t.board_version.c.number
    )
    before: dict[str, str] = {}
    for row in all_rows(connection, versions):
        name = f"board {row['board']}, version {row['number']}"
        if row["previous"] != before.get(row["board"]):
            faults.append(f"{name}: does not name the previous version")
        if hashlib.sha256(row["document"].encode()).hexdigest() != row["sha256"]:
            faults.append(f"{name}: its document was changed")
        faults += [
            f"{name}: judging {judging} was made under other conditions"
            for judging in _judgings_in(row["document"])
            if conditions.get(judging) != row["conditions"]
        ]
        before[row["board"]] = row["sha256"]
    return faults


def _judgings_in(document: str) -> list[str]:
    try:
        return [str(entry["judging"]) for entry in json.loads(document).get("entries", ())]
    except (ValueError, TypeError, AttributeError, KeyError):
        return []  # it was changed, which is already listed


def _events(connection: sa.Connection) -> list[str]:
    """Lists judgings whose state differs from that of their last event."""
    event = t.event.c
    moved = event.kind.in_([f"judging.{state}" for state in JudgingState])
    newest = (
        sa.select(event.object, sa.func.max(event.seq).label("seq"))
        .where(moved)
        .group_by(event.object)
        .subquery()
    )
    query = (
        sa.select(_J.id, _J.state, event.after)
        .select_from(
            t.judging.join(newest, newest.c.object == _J.id).join(
                t.event, event.seq == newest.c.seq
            )
        )
        .where(event.after != _J.state)
    )
    return [
        f"judging {row['id']}: is {row['state']}, and its last event says {row['after']}"
        for row in all_rows(connection, query)
    ]


def _files(connection: sa.Connection, folder: DataFolder) -> list[str]:
    faults = []
    for row in all_rows(connection, sa.select(_S.id, _S.sha256, _S.kind)):
        body = folder.body(row["sha256"])
        if not body.is_file():
            faults.append(f"submission {row['id']}: its body is missing")
        elif row["kind"] == Kind.WORKBOOKS and not folder.unpacked(row["sha256"]).is_dir():
            faults.append(f"submission {row['id']}: its workbooks are missing")
    for row in all_rows(connection, sa.select(_J.id, _J.report_sha256).where(_J.state == "done")):
        report = folder.results(row["id"]) / REPORT_FILE
        if not report.is_file():
            faults.append(f"judging {row['id']}: its report is missing")
        elif hashlib.sha256(report.read_bytes()).hexdigest() != row["report_sha256"]:
            faults.append(f"judging {row['id']}: its report was changed")
    return faults
