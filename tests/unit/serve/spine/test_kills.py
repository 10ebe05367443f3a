"""If a process is killed before a statement or a file of an act: all of it is done, or nothing.

Each act is done by forked processes. The first is killed by SIGKILL before the first thing that it
does to the database or to a file, the second before the second, and so on, until one of them comes
to the end. After each, what must always hold is checked, and at last the act is done again.
"""

from __future__ import annotations

import gc
import json
import os
import signal
import sys
import tarfile
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pytest
import sqlalchemy as sa

from judge.serve.access.rights import Viewer
from judge.serve.boards.signing import SigningKeys
from judge.serve.boards.versions import RENEWED, NewBoard, renew_judged
from judge.serve.context import Server
from judge.serve.intake import LINES, SubmitterStatement, admit, check_body, submit
from judge.serve.operations.deliveries import NewWebhook, add_webhook, deliver, plan
from judge.serve.operations.sending import Outcome, Sender
from judge.serve.operations.upkeep import back_up
from judge.serve.queue.dispatcher import Dispatcher, DispatchOptions
from judge.serve.queue.judging import Judged
from judge.serve.queue.leases import cancel, claim, fail, lose, release
from judge.serve.queue.watching import return_leases
from judge.serve.store import tables as t
from judge.serve.store.database import Database
from judge.serve.store.tables import JudgingState, Lane, Scope
from judge.suites import load_suite
from tests.postgresql import PostgreSQL, new_postgresql_name, opened_database
from tests.serve_house import has_current_schema
from tests.unit.serve.spine.test_queue import in_order, queued, row_of, taken
from tests.unit.serve.spine.world import (
    ACTOR,
    World,
    make_world,
    typed_lines,
    verdicts_of,
)
from tests.unit.serve.spine.world import (
    LINES as TEXT_LINES,
)

DONE = 5
_FILES = ("open", "os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.truncate")
_WRITES = os.O_WRONLY | os.O_RDWR


def killed_everywhere(
    database: Database,
    act: Callable[[Database], object],
    check: Callable[[], object],
    stride: int = 1,
) -> int:
    """Has an act killed before each of its steps.

    Args:
        database: closed meanwhile, so that no connection is shared with a forked process.
        act: what is done, on a database of its own.
        check: what must hold after each kill.
        stride: of the steps, every which one.

    Returns:
        How many steps there were.
    """
    url = database.url.render_as_string(hide_password=False).replace("+psycopg", "")
    step = 0
    while True:
        database.close()
        child = os.fork()
        if child == 0:
            _die_before(url, act, step)
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        check()
        if status == DONE:
            return step
        assert status == -signal.SIGKILL
        step += stride
        assert step < 400


def _die_before(url: str, act: Callable[[Database], object], step: int) -> None:
    left = step

    def on_step(*_: object) -> None:
        nonlocal left
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        left -= 1

    def on_audit(event: str, arguments: tuple[object, ...]) -> None:
        if event in _FILES and (event != "open" or int(cast(Any, arguments[2]) or 0) & _WRITES):
            on_step()

    gc.disable()  # to look through what the parent holds would copy its memory
    try:
        own = opened_database(url)
        for name in ("before_cursor_execute", "commit"):
            sa.event.listen(own._engine, name, on_step)
        sys.addaudithook(on_audit)
        act(own)
        os._exit(DONE)
    except BaseException:  # noqa: BLE001  a forked process must not go on with the tests
        traceback.print_exc()
    finally:
        os._exit(3)


@pytest.fixture
def open_suite(world: World) -> Any:
    revision = world.rows(t.revision)[0]
    return load_suite(world.server.folder.suite(str(revision["folder"])) / "suite" / "sample-typed")


def test_handing_in(world: World, open_suite: Any) -> None:
    """The answer was not read: the same key again returns the submission, if it exists."""
    viewer = Viewer(account=world.accounts["contestant"], scopes=frozenset(Scope))

    def act(database: Database) -> str:
        server = Server(database, world.server.folder)
        admission = admit(server, viewer, "open", None)
        with server.folder.receiving() as received:
            received.write(typed_lines())
            checked = check_body(server.folder, received, LINES, open_suite, admission.tasks, None)
        answer, _ = submit(server, viewer, admission, checked, SubmitterStatement(), "one key")
        return str(answer["id"])

    def check() -> None:
        in_order(world)
        assert len(world.rows(t.submission)) == len(world.rows(t.idempotency)) <= 1

    assert killed_everywhere(world.server.database, act, check) > 15
    (submission,) = world.rows(t.submission)
    assert act(world.server.database) == submission["id"]
    assert len(world.rows(t.judging)) == 1


ACTS: dict[str, Callable[[Any, Any], object]] = {
    "release": release,
    "fail": lambda transaction, claimed: fail(transaction, claimed, "x", retry=True),
    "lose": lambda transaction, claimed: lose(
        transaction, claimed.id, claimed.lease, beat_seen=None, progress=0
    ),
    "cancel": lambda transaction, claimed: cancel(transaction, claimed.id),
}


@pytest.mark.parametrize("name", ACTS)
def test_ways_out_of_a_lease(world: World, name: str) -> None:
    queued(world)
    claimed = taken(world)

    def act(database: Database) -> None:
        with database.writing(ACTOR) as transaction:
            ACTS[name](transaction, claimed)

    assert killed_everywhere(world.server.database, act, lambda: in_order(world)) > 4


def test_claiming(world: World) -> None:
    judging = queued(world)

    def act(database: Database) -> None:
        with database.writing(ACTOR) as transaction:
            assert claim(transaction, "dead", set(Lane), alone=True) is not None

    assert killed_everywhere(world.server.database, act, lambda: in_order(world)) > 4
    assert row_of(world, judging)["state"] == JudgingState.RUNNING
    assert return_leases(world.server.database, world.server.folder, "dead") == 1
    in_order(world)


def test_finishing_with_a_board(world: World) -> None:
    """Verdicts and announcements: all or nothing; the board follows, whoever was killed."""
    with world.server.database.writing(ACTOR) as transaction:
        world.server.shared["boards"].add(transaction, NewBoard("board", "open"))
        conditions = transaction.execute(sa.select(t.board.c.conditions)).scalar_one()
    queued(world, cases=1)
    with world.server.database.writing(ACTOR) as transaction:
        transaction.execute(sa.update(t.judging).values(conditions=conditions))
        phase = sa.select(t.phase.c.id).where(t.phase.c.name == "open").scalar_subquery()
        transaction.execute(sa.update(t.submission).values(phase=phase))
    claimed = taken(world)
    results = world.server.folder.results(claimed.id)
    results.mkdir()
    (results / "report.json").write_bytes(b"{}")
    digest = "44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a"
    scores = {"soft": 1.0, "hard": 1.0, "tasks": 1, "cases": 1, "verdicts": {}}
    judged = Judged(verdicts_of(world.server.database, claimed, "AC"), digest, scores, None)

    def act(database: Database) -> None:
        # The name is locked by files, which a kill releases.
        dispatcher = Dispatcher(database, world.server.folder, DispatchOptions())
        dispatcher._record(lambda transaction: dispatcher._finish(transaction, claimed, judged))
        renew_judged(Server(database, world.server.folder))

    def check() -> None:
        in_order(world)
        done = row_of(world, claimed.id)["state"] == JudgingState.DONE
        assert len(world.rows(t.verdict)) == done
        versions = len(world.rows(t.board_version)) - 1
        assert versions <= done
        assert versions == any(row["name"] == RENEWED for row in world.rows(t.setting))

    assert killed_everywhere(world.server.database, act, check) > 12
    check()
    assert len(world.rows(t.board_version)) == 2
    assert row_of(world, claimed.id)["state"] == JudgingState.DONE


def test_migrating(world: World, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    url = f"sqlite:///{tmp_path / 'new.db'}"
    if not world.server.database.is_sqlite:
        pattern = str(request.getfixturevalue("postgresql_url"))
        url = pattern.format(name=new_postgresql_name(pattern))
    database = opened_database(url)

    def check() -> None:
        with database.reading() as connection:
            names = set(sa.inspect(connection).get_table_names())
        assert not names or names >= set(t.metadata.tables)  # all of them, or none

    steps = killed_everywhere(database, lambda own: own.migrate(), check, stride=11)
    assert steps > len(t.metadata.tables)
    assert has_current_schema(database)
    back = killed_everywhere(database, lambda own: own.step_back(), check, stride=2)
    assert back > 2
    database.migrate()
    assert has_current_schema(database)
    database.close()


def test_backing_up(small_world: World, tmp_path: Path) -> None:
    """A backup exists completely or not at all, and the running server is not affected."""
    queued(small_world)
    target = tmp_path / "backup.tar"

    def act(database: Database) -> None:
        if not target.exists():  # the one before was killed when it was whole already
            back_up(database, small_world.server.folder, target)

    def check() -> None:
        in_order(small_world)
        if target.exists():
            with tarfile.open(target) as archive:
                assert "backup.json" in archive.getnames()

    assert killed_everywhere(small_world.server.database, act, check) > 5
    assert target.exists()


def test_rotating_a_key(tmp_path: Path, small_world: World) -> None:
    """The keys are the old or the new ones, and earlier signatures can be verified."""
    keys = SigningKeys(tmp_path)
    first = keys.public("2026-01-01T00:00:00Z")[0]["kid"]

    def check() -> None:
        listed = [key["kid"] for key in keys.public("2026-01-02T00:00:00Z")]
        assert listed[0] == first
        assert len(listed) <= 2
        assert json.loads((tmp_path / "signing.json").read_text())

    steps = killed_everywhere(
        small_world.server.database, lambda _: keys.rotate("2026-01-02T00:00:00Z"), check
    )
    assert steps >= 3
    assert len(keys.public("2026-01-02T00:00:00Z")) == 2


class Receiver:
    """Records in a file what it was sent."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def send(self, message: Any, _: object) -> Any:
        with self.path.open("a") as file:
            file.write(f"{message.id}\n")
        return type("Sent", (), {"outcome": Outcome.DELIVERED, "status": 200})()


def test_telling_a_webhook(world: World, tmp_path: Path) -> None:
    """What was not confirmed is sent again with the same id; nothing is lost."""
    received = tmp_path / "received"
    with world.server.database.writing(ACTOR) as transaction:
        transaction.execute(
            sa.insert(t.setting).values(name="webhook_hosts", value=["ci.example.org"])
        )
        url = "https://ci.example.org/hook"
        add_webhook(
            transaction, NewWebhook(world.accounts["contestant"], url, ["submission.judged"])
        )
    queued(world)
    world.finish(taken(world))

    def act(database: Database) -> None:
        plan(database)
        deliver(database, cast(Sender, Receiver(received)))

    def check() -> None:
        assert len(world.rows(t.delivery)) <= 1
        with world.server.database.writing(ACTOR) as transaction:  # two minutes later
            transaction.execute(
                sa.update(t.delivery).where(t.delivery.c.state == "waiting").values(next=t.Now())
            )

    assert killed_everywhere(world.server.database, act, check) > 6
    (delivery,) = world.rows(t.delivery)
    assert delivery["state"] == "delivered"
    assert set(received.read_text().split()) == {delivery["id"]}


def test_the_database_is_gone_for_a_while(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every request is answered with 503, the dispatcher waits, and both continue afterwards."""
    with PostgreSQL.running() as postgresql:
        database = Database(postgresql.new_database())
        database.migrate()
        world = make_world(database, tmp_path)
        dispatcher = Dispatcher(database, world.server.folder, DispatchOptions())
        queued(world)
        claimed = dispatcher._claim()
        assert claimed is not None
        client, headers = world.client(), {**world.headers("contestant"), **TEXT_LINES}
        where = "/v1/submissions?phase=open"
        postgresql.kill()
        for answer in (
            client.post(where, headers=headers, content=typed_lines()),
            client.get("/v1/submissions", headers=headers),
            client.get("/readyz"),
        ):
            assert answer.status_code == 503
        assert client.get("/healthz").status_code == 200
        waits = iter([False, False])

        def wait(_: float) -> bool:
            if next(waits, None) is None:
                raise AssertionError
            postgresql.start()
            return False

        monkeypatch.setattr(dispatcher._stopping, "wait", wait)
        dispatcher._release(claimed)  # tried again until the database is there
        assert row_of(world, claimed.id)["state"] == JudgingState.QUEUED
        assert client.post(where, headers=headers, content=typed_lines()).status_code == 202
        in_order(world)
        database.close()
