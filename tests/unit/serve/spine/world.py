"""A server without a dispatcher: suites, phases, accounts of each role, a fake judge."""

from __future__ import annotations

import contextlib
import functools
import json
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import sqlalchemy as sa
from fastapi.testclient import TestClient

from judge.serve.access.accounts import add_member, create_account, create_token
from judge.serve.api.limits import Rates
from judge.serve.app import make_app
from judge.serve.boards.versions import Boards, NewBoard, boards_of
from judge.serve.catalog import (
    NewPhase,
    NewSuite,
    add_phase,
    add_revision,
    name_role,
    suite_named,
)
from judge.serve.context import Server
from judge.serve.queue.conditions import ENVIRONMENT, make_environment, set_setting
from judge.serve.queue.leases import Claim, claim, finish
from judge.serve.store import tables as t
from judge.serve.store.database import Actor, Database, all_rows
from judge.serve.store.folder import DataFolder
from judge.serve.store.tables import (
    AccountKind,
    Lane,
    Level,
    Role,
    Scope,
    SuiteRole,
    Visibility,
    new_id,
)
from tests.postgresql import new_database, template_of
from tests.same_thread_client import SameThreadClient

ACTOR = Actor("test")
ROLES = ("visitor", "contestant", "rival", "author", "other", "reviewer", "operator")
"""``author`` owns the suites; ``other`` is an author of none of them."""
TYPED = Path(__file__).parents[4] / "dataset" / "sample-typed" / "answers.jsonl"
LINES = {"content-type": "application/x-ndjson"}
FREE = dict.fromkeys(("submit", "read", "change", "sign-in"), 10**9)


def typed_lines(*tasks: str) -> bytes:
    """The first sample answer of some tasks."""
    lines: dict[str, str] = {}
    for text in TYPED.read_text().splitlines():
        record = json.loads(text)
        lines.setdefault(record["id"], json.dumps({"id": record["id"], "response": "1"}))
    return "".join(f"{lines[task]}\n" for task in tasks or lines).encode()


@dataclass
class World:
    """A server, its application, and a token of each role.

    Attributes:
        server: without dispatcher.
        accounts: role -> account's id.
        tokens: role -> token; a visitor has none.
    """

    server: Server
    accounts: dict[str, str] = field(default_factory=dict)
    tokens: dict[str, str] = field(default_factory=dict)

    def client(self) -> TestClient:
        return SameThreadClient(make_app(self.server), raise_server_exceptions=False)

    def headers(self, role: str) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.tokens[role]}"} if role in self.tokens else {}

    def claim(self, holder: str = "one", *, alone: bool = True) -> Claim | None:
        with self.server.database.writing(ACTOR) as transaction:
            return claim(transaction, holder, set(Lane), alone=alone)

    def finish(self, taken: Claim, verdict: str = "AC") -> None:
        """Records verdicts as a dispatcher would, without judging."""
        rows = verdicts_of(self.server.database, taken, verdict)
        scores = {"soft": 1.0, "hard": 1.0, "tasks": 1, "cases": len(rows), "verdicts": {}}
        results = self.server.folder.results(taken.id)
        results.mkdir(exist_ok=True)
        (results / "report.json").write_bytes(b"{}")
        digest = "44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a"
        with self.server.database.writing(ACTOR) as transaction:
            finish(transaction, taken, rows, report_sha256=digest, scores=scores)

    def rows(self, table: sa.Table) -> list[dict[str, object]]:
        with self.server.database.reading() as connection:
            return all_rows(connection, sa.select(table))


def verdicts_of(database: Database, taken: Claim, verdict: str) -> list[t.VerdictRow]:
    """As many verdicts as a judging has cases."""
    del database
    return [
        t.VerdictRow(
            task="task",
            sample=0,
            case=case + 1,
            verdict=verdict,
            run_key=None,
            comparison_key=None,
            output_sha256=None,
            earned=None,
        )
        for case in range(int(taken.judging["cases"]))
    ]


@contextlib.contextmanager
def new_world(kind: str, folder: Path, postgresql: str | None = None) -> Iterator[World]:
    """Copies the result of :func:`make_world`, made once for all tests, to a new database.

    Args:
        kind: ``sqlite`` or ``postgresql``.
        folder: where its data folder and a SQLite file may be.
        postgresql: what ``running_postgresql`` gave.
    """
    template = _world_template(kind, postgresql)
    with new_database(kind, folder, postgresql, template.database) as database:
        server = _server(database, folder)
        for path, content in template.files.items():
            (server.folder.path / path).parent.mkdir(parents=True, exist_ok=True)
            (server.folder.path / path).write_bytes(content)
        yield World(server, {**template.accounts}, {**template.tokens})


@dataclass(frozen=True)
class _Template:
    """A world to be copied.

    Attributes:
        database: the bytes of a SQLite file, or the name of a database on the server.
        files: of the data folder, by their paths in it.
        accounts: as of the world.
        tokens: as of the world.
    """

    database: bytes | str
    files: dict[Path, bytes]
    accounts: dict[str, str]
    tokens: dict[str, str]


@functools.cache
def _world_template(kind: str, postgresql: str | None) -> _Template:
    with tempfile.TemporaryDirectory(prefix="judge-world-") as name:
        folder = Path(name)
        with new_database(kind, folder, postgresql) as database:
            world = make_world(database, folder)
        data = world.server.folder.path
        files = {
            path.relative_to(data): path.read_bytes() for path in data.rglob("*") if path.is_file()
        }
        made = template_of(database, folder)
        return _Template(made, files, world.accounts, world.tokens)


def _server(database: Database, folder: Path) -> Server:
    data = DataFolder(folder / "data")
    data.make()
    server = Server(database, data)
    server.shared["boards"] = Boards(data)
    server.shared["rates"] = Rates(FREE)
    return server


def make_world(database: Database, folder: Path) -> World:
    """A server with two suites: one public, one with a hidden split."""
    server = _server(database, folder)
    world = World(server)
    with database.writing(ACTOR) as transaction:
        set_setting(transaction, ENVIRONMENT, make_environment("image", ["engine 1"]))
        for role in ROLES[1:]:
            roles = {"operator": (Role.OPERATOR,)}.get(role, ())
            if role in {"author", "other"}:
                roles = (Role.AUTHOR,)
            account = create_account(transaction, role, roles=roles)
            _, token = create_token(transaction, account, "test", list(Scope))
            world.accounts[role], world.tokens[role] = account, token
        author = world.accounts["author"]
        add_revision(server, transaction, NewSuite("open", "sample-typed", author))
        hidden = ("bars", "cards")
        suite = NewSuite(
            "secret", "sample-typed", author, hidden=hidden, levels={"hidden": Level.SCORE}
        )
        add_revision(server, transaction, suite)
        name_role(transaction, "open", world.accounts["reviewer"], SuiteRole.REVIEWER)
        for name, split in (("open", "public"), ("secret", "hidden")):
            add_phase(transaction, NewPhase(name, name, split, per_day=10**6, in_total=10**6))
    return world


def furnish(world: World) -> dict[str, dict[str, str]]:
    """One object of each kind for the public suite, and one for a suite that is hidden by then.

    Returns:
        For ``open`` and ``secret``: the ids and names that fill the parameters of all paths. What
        belongs to an account belongs to the contestant.
    """
    server, client, made = world.server, world.client(), {}
    contestant = world.accounts["contestant"]
    with server.database.writing(ACTOR) as transaction:
        for name in ("open", "secret"):
            boards_of(server).add(transaction, NewBoard(name, name))
    for name, tasks in (("open", ()), ("secret", ("bars", "cards"))):
        answer = client.post(
            f"/v1/submissions?phase={name}",
            headers={**world.headers("contestant"), **LINES},
            content=typed_lines(*tasks),
        )
        submission = answer.json()["id"]
        taken = world.claim()
        assert taken is not None
        world.finish(taken)
        with server.database.writing(ACTOR) as transaction:
            suite = suite_named(transaction.connection, name)
            phase = transaction.one(sa.select(t.phase).where(t.phase.c.name == name))
            assert phase is not None
            boards_of(server).renew(transaction, phase["id"], "a submission was judged")
            ids = {"dispute": new_id("dis")}
            transaction.execute(
                sa.insert(t.dispute).values(
                    id=ids["dispute"], suite=suite["id"], account=contestant, task="bars", case=1,
                    kind="question", claim="claimed", state="open",
                )
            )  # fmt: skip
        asked = {"suite": name, "reason": "a reason"}
        drafted = client.post("/v1/rejudgings", headers=world.headers("author"), json=asked)
        ids["rejudging"] = drafted.json()["id"]
        made[name] = ids | {
            "account": contestant,
            "submission": submission, "entry": submission, "suite": name, "board": name,
            "task": "trips" if name == "open" else "bars", "number": "1",
        }  # fmt: skip
    with server.database.writing(ACTOR) as transaction:
        hidden = sa.update(t.suite).where(t.suite.c.name == "secret")
        transaction.execute(hidden.values(visibility=Visibility.HIDDEN))
        event = transaction.execute(sa.select(sa.func.max(t.event.c.seq))).scalar_one()
        for name in made:
            webhook, delivery = new_id("whk"), new_id("dlv")
            transaction.execute(
                sa.insert(t.webhook).values(
                    id=webhook, account=contestant, url="https://ci.example.org/", secret="whsec_A",
                    kinds=["board.changed"], state="active", since=0,
                )
            )  # fmt: skip
            transaction.execute(
                sa.insert(t.delivery).values(
                    id=delivery, webhook=webhook, event=event, state="waiting"
                )
            )
            token, _ = create_token(transaction, contestant, "spare", [Scope.READ])
            made[name] |= {"webhook": webhook, "delivery": delivery, "token": token}
    return made


def add_team(world: World, name: str, *roles: str) -> str:
    """A team with the accounts of some roles."""
    with world.server.database.writing(ACTOR) as transaction:
        team = create_account(transaction, name, kind=AccountKind.TEAM)
        for role in roles:
            add_member(transaction, team, world.accounts[role])
    return team


def state_events(world: World) -> dict[str, list[tuple[object, object]]]:
    """Returns the changes of state of each judging, in order, according to events."""
    changes: dict[str, list[tuple[object, object]]] = {}
    for row in sorted(world.rows(t.event), key=lambda row: int(str(row["seq"]))):
        if str(row["kind"]).startswith("judging.") and row["before"] != row["after"]:
            changes.setdefault(str(row["object"]), []).append((row["before"], row["after"]))
    return changes
