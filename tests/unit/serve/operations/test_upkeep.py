"""Backups, clean-up, the log, and golds that teams outvote; on SQLite and PostgreSQL."""

from __future__ import annotations

import contextlib
import os
import socket
import stat
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
import sqlalchemy as sa
from click.testing import CliRunner

from judge.cli.serve import serve
from judge.errors import StoreError, UsageError
from judge.serve.operations import upkeep
from judge.serve.operations.upkeep import (
    back_up,
    changed_revisions,
    dispute_outvoted,
    log_entries,
    restore,
    sweep,
)
from judge.serve.queue.leases import claim, enqueue
from judge.serve.running import notify_service_manager
from judge.serve.store import tables as t
from judge.serve.store.database import Database, sqlite_url
from judge.serve.store.folder import DataFolder
from judge.serve.store.tables import JudgingState, Lane
from tests.postgresql import new_database, new_postgresql_name
from tests.serve_house import ACTOR, RIGHT, TASK, House, has_current_schema, make_suite, store_body


@pytest.fixture(scope="module")
def small_suite(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_suite(tmp_path_factory.mktemp("suite"))


@pytest.fixture(params=["sqlite", "postgresql"])
def house(request: pytest.FixtureRequest, tmp_path: Path, small_suite: Path) -> Iterator[House]:
    url = request.getfixturevalue("postgresql_url") if request.param == "postgresql" else None
    with new_database(request.param, tmp_path, url) as database:
        yield House(database, tmp_path / "data", small_suite)


def empty_database(house: House, request: pytest.FixtureRequest) -> str | None:
    """The database to which a server's backup is restored; None for a SQLite file."""
    if house.server.database.is_sqlite:
        return None
    pattern = str(request.getfixturevalue("postgresql_url"))
    return pattern.format(name=new_postgresql_name(pattern))


def rows_of(database: Database) -> dict[str, list[tuple[object, ...]]]:
    """Returns all rows of all tables, except what restoring changes."""
    with database.reading() as connection:
        return {
            table.name: sorted(map(tuple, connection.execute(sa.select(table))), key=repr)
            for table in t.metadata.sorted_tables
        }


def test_a_backup_is_restored_with_all_that_its_rows_name(
    house: House, small_suite: Path, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    submission = house.submit("one", small_suite, RIGHT)
    database, folder = house.server.database, house.server.folder
    archive = tmp_path / "backup.tar"
    made = back_up(database, folder, archive)
    assert stat.S_IMODE(archive.stat().st_mode) == 0o600
    assert made.files > 10
    url = empty_database(house, request)
    other = DataFolder(tmp_path / "restored")
    copy = restore(archive, other, url)
    assert rows_of(copy) == rows_of(database)
    with copy.reading() as connection:
        judging = connection.scalar(
            sa.select(t.submission.c.current_judging).where(t.submission.c.id == submission)
        )
    for path in (f"results/{judging}/report.json", f"results/{judging}/cases.jsonl"):
        assert (other.path / path).read_bytes() == (folder.path / path).read_bytes()
    copy.close()
    with pytest.raises(UsageError, match="not empty"):
        restore(archive, other, url)
    with pytest.raises(UsageError, match="already"):
        back_up(database, folder, archive)


def test_leases_of_a_restored_database_go_back(
    house: House, small_suite: Path, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    submission = house.submit("one", small_suite, RIGHT)
    database = house.server.database
    with database.writing(ACTOR) as transaction:
        enqueue(
            transaction, submission=submission, account=house.accounts["one"],
            conditions=str(house.conditions), cases=6,
        )  # fmt: skip
        assert claim(transaction, "dead", list(Lane), alone=True) is not None
    back_up(database, house.server.folder, tmp_path / "backup.tar")
    copy = restore(
        tmp_path / "backup.tar", DataFolder(tmp_path / "restored"), empty_database(house, request)
    )
    with copy.reading() as connection:
        states = connection.scalars(sa.select(t.judging.c.state)).all()
        counts = connection.execute(
            sa.select(t.account.c.waiting, t.account.c.running).where(t.account.c.name == "one")
        ).one()
    copy.close()
    assert sorted(states) == [JudgingState.DONE, JudgingState.QUEUED]
    assert tuple(counts) == (1, 0)


def test_the_password_of_a_database_is_neither_an_argument_nor_masked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """PostgreSQL's programs get the password in the environment; the URL contains none."""
    seen = tmp_path / "seen"
    for name in ("pg_dump", "pg_restore"):
        (tmp_path / name).write_text(f'#!/bin/sh\necho "$2 $PGPASSWORD" >> {seen}\nexit 1\n')
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    folder = DataFolder(tmp_path / "data")
    folder.make()
    database = Database("postgresql://judge:s3cret@localhost:5/judge?application_name=x")
    with pytest.raises(StoreError, match="pg_dump failed"):
        back_up(database, folder, tmp_path / "b.tar")
    assert seen.read_text().split() == [
        "postgresql://judge@localhost:5/judge?application_name=x",
        "s3cret",
    ]


def test_what_is_not_a_backup_is_refused(tmp_path: Path) -> None:
    (tmp_path / "x.tar").write_bytes(b"x" * 2000)
    with pytest.raises(StoreError):
        restore(tmp_path / "x.tar", DataFolder(tmp_path / "new"), None)


def test_files_that_no_row_names_are_swept_when_they_are_old(
    house: House, small_suite: Path
) -> None:
    house.submit("one", small_suite, RIGHT)
    folder = house.server.folder
    kept = sorted(path for path in folder.path.rglob("*") if path.is_file())
    for name in ("bodies/unnamed", "results/jdg_unnamed/cases.jsonl", "tmp/body-1"):
        place = folder.path / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text("x")
    assert sweep(house.server.database, folder) == 0
    old = 1_000_000_000
    for path in folder.path.rglob("*"):
        os.utime(path, (old, old))
    assert sweep(house.server.database, folder) == 3
    assert sorted(path for path in folder.path.rglob("*") if path.is_file()) == kept


def test_a_clock_that_jumps_a_day_forward_sweeps_nothing_that_is_on_its_way(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On its own, the server removes only what it saw an hour before, by its own clock."""
    folder, clock = house.server.folder, [1000.0]
    wall = time.time() + 90_000
    clocks = SimpleNamespace(monotonic=lambda: clock[0], time=lambda: wall)
    monkeypatch.setattr("judge.serve.operations.upkeep.time", clocks)
    body = store_body(folder, b"its row is about to be written")
    upkeep.sweep_hourly(house.server)
    assert folder.body(body.sha256).exists()
    clock[0] += 3000
    upkeep.sweep_hourly(house.server)
    assert folder.body(body.sha256).exists()
    clock[0] += 700  # an hour after the first time
    upkeep.sweep_hourly(house.server)
    assert not folder.body(body.sha256).exists()


def test_what_is_handed_in_again_while_it_is_swept_stays(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between the check of a file and its removal, someone stores the same body again."""
    folder = house.server.folder
    body = store_body(folder, b"x")
    path = folder.body(body.sha256)
    os.utime(path, (1_000_000_000, 1_000_000_000))
    database = house.server.database
    reading = database.reading

    @contextlib.contextmanager
    def reading_then_kept() -> Iterator[sa.Connection]:
        with reading() as connection:
            yield connection
        store_body(folder, b"x")

    monkeypatch.setattr(database, "reading", reading_then_kept)
    assert sweep(database, folder) == 0
    assert path.exists()


def test_finished_workbooks_leave_nothing_in_the_state_folder_of_the_user(
    tmp_path: Path, small_suite: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A server judges without end, and nothing else would remove what it left there."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    with new_database("sqlite", tmp_path, None) as database:
        House(database, tmp_path / "data", small_suite).submit("one", small_suite, RIGHT)
    assert list(tmp_path.glob("state/judge/runs/*")) == []


def test_the_service_manager_is_notified(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(str(tmp_path / "notify"))
        monkeypatch.setenv("NOTIFY_SOCKET", str(tmp_path / "notify"))
        notify_service_manager("READY=1")
        assert manager.recv(100) == b"READY=1"
    notify_service_manager("WATCHDOG=1")  # nobody listens any more
    monkeypatch.delenv("NOTIFY_SOCKET")
    notify_service_manager("WATCHDOG=1")


def test_a_changed_revision_is_listed(house: House) -> None:
    database, folder = house.server.database, house.server.folder
    assert changed_revisions(database, folder) == []
    gold = next(folder.path.glob("suites/**/*_answer.xlsx"))
    content = gold.read_bytes()
    gold.write_bytes(content + b"x")
    (fault,) = changed_revisions(database, folder)
    assert "were changed" in fault
    gold.unlink()
    assert len(changed_revisions(database, folder)) == 1
    gold.write_bytes(content)
    assert changed_revisions(database, folder) == []


def test_the_log_says_who_did_what(house: House) -> None:
    entries = list(log_entries(house.server.database, "2000-01-01"))
    assert [entry["seq"] for entry in entries] == sorted(entry["seq"] for entry in entries)
    kinds = {entry["kind"] for entry in entries}
    assert {"account.created", "suite.added", "phase.added"} <= kinds
    only = list(log_entries(house.server.database, "2000-01-01", "account"))
    assert {entry["kind"] for entry in only} == {"account.created"}
    assert list(log_entries(house.server.database, "2999-01-01")) == []


def test_golds_that_teams_outvote_are_disputed_once_and_without_values(
    house: House, small_suite: Path
) -> None:
    for who in ("one", "two", "first"):
        house.submit(who, small_suite, RIGHT)
    house.submit("one", small_suite, RIGHT)  # the same account again is no further vote
    (dispute,) = dispute_outvoted(house.server, "small", ACTOR)
    with house.server.database.reading() as connection:
        row = connection.execute(sa.select(t.dispute)).one()
    assert (row.id, row.task, row.case) == (dispute, TASK, 1)
    assert str(RIGHT) not in row.claim
    assert dispute_outvoted(house.server, "small", ACTOR) == []
    shown = house.call("second", "GET", "/review").json()["suspects"]
    assert [group["task"] for group in shown] == [TASK]


def test_one_team_alone_outvotes_nothing(house: House, small_suite: Path) -> None:
    for value in (RIGHT, RIGHT):
        house.submit("one", small_suite, value)
    assert dispute_outvoted(house.server, "small", ACTOR) == []


def test_an_empty_server_is_backed_up_and_restored_from_the_command_line(tmp_path: Path) -> None:
    def call(*arguments: str) -> str:
        done = CliRunner().invoke(serve, ["admin", *arguments], catch_exceptions=False)
        assert done.exit_code == 0, done.output
        return done.output

    data, other, archive = (str(tmp_path / name) for name in ("data", "other", "backup.tar"))
    call("account", "add", "ann", "--data", data)
    call("backup", archive, "--data", data)
    assert "all in order" in call("restore", archive, "--data", other)
    assert "account.created" in call("log", "--json", "--data", other)
    call("webhooks", "--allow", "CI.example.org", "--data", other)
    assert call("webhooks", "--data", other) == "ci.example.org\n"
    assert call("webhooks", "--deny", "ci.example.org", "--data", other) == ""
    key = call("keys", "rotate", "--data", other).strip()
    assert key in call("keys", "list", "--data", other)
    assert "0 files" in call("sweep", "--data", other)
    call("migrate", "--data", other)


def test_tokens_stay_through_a_step_back_and_forwards(house: House) -> None:
    database = house.server.database
    columns = [column for column in t.token.c if column.name != "maker"]

    def tokens() -> list[tuple[object, ...]]:
        with database.reading() as connection:
            return sorted(map(tuple, connection.execute(sa.select(*columns))), key=repr)

    before = tokens()
    assert before
    database.step_back()
    assert tokens() == before
    assert not has_current_schema(database)
    database.migrate()
    assert has_current_schema(database)
    assert tokens() == before
    assert house.call("second", "GET", "/review").status_code == 200


def test_a_newer_schema_is_refused(tmp_path: Path) -> None:
    """Exit code 9, and nothing has changed."""
    folder = DataFolder(tmp_path)
    folder.make()
    database = Database(sqlite_url(folder.database))
    database.migrate()
    with database.writing(ACTOR) as transaction:
        transaction.execute(sa.text("UPDATE alembic_version SET version_num = '9999'"))
    database.close()
    with pytest.raises(StoreError, match="newer judge") as error:
        CliRunner().invoke(
            serve, ["admin", "migrate", "--data", str(tmp_path)], catch_exceptions=False
        )
    assert error.value.exit_code == 9
