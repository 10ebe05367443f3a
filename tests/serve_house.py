"""A server with a small suite, accounts and a board, for tests of whole processes."""

from __future__ import annotations

import contextlib
import hashlib
import shutil
from pathlib import Path
from typing import Any

import openpyxl
import sqlalchemy as sa

from judge.serve.access.accounts import create_account, create_token
from judge.serve.app import make_app
from judge.serve.boards.versions import NewBoard, boards_of
from judge.serve.catalog import (
    NewPhase,
    NewSuite,
    add_phase,
    add_revision,
    current_conditions,
    name_role,
    set_reviewers,
)
from judge.serve.context import Server
from judge.serve.queue.conditions import ENVIRONMENT, make_environment, set_setting
from judge.serve.queue.judging import CaseCounter, Scorers, judge, work_of
from judge.serve.queue.leases import claim, enqueue, finish
from judge.serve.store import tables as t
from judge.serve.store.database import Actor, Database, _head
from judge.serve.store.folder import DataFolder, StoredBody
from judge.serve.store.tables import Kind, Lane, Scope, SuiteRole, new_id
from tests.same_thread_client import SameThreadClient

ACTOR = Actor("test")
SAMPLE = Path(__file__).parents[1] / "dataset" / "sample"
TASK, CELL, RIGHT = "1001", "G3", 4711
SCOPES = (Scope.READ, Scope.DISPUTE, Scope.REVIEW, Scope.AUTHOR)


def store_body(folder: DataFolder, data: bytes) -> StoredBody:
    """Stores a body as if it had been sent in one piece."""
    with folder.receiving() as body:
        body.write(data)
        return body.keep()


def has_current_schema(database: Database) -> bool:
    """Whether a database has the schema of this version of the judge."""
    with database.reading() as connection:
        return database._schema(connection) == _head()


def make_suite(place: Path) -> Path:
    """Two tasks of the sample suite."""
    import json  # noqa: PLC0415

    folder = place / "small"
    tasks = json.loads((SAMPLE / "dataset.json").read_text())[:2]
    for task in tasks:
        shutil.copytree(SAMPLE / task["spreadsheet_path"], folder / task["spreadsheet_path"])
    (folder / "dataset.json").write_text(json.dumps(tasks))
    return folder


class House:
    """A server with a suite, a phase, a board and accounts with tokens."""

    def __init__(self, database: Database, folder: Path, suite: Path) -> None:
        self.server = Server(database, DataFolder(folder))
        self.server.folder.make()
        self.client = SameThreadClient(make_app(self.server))
        self.tokens: dict[str, str] = {}
        self.accounts: dict[str, str] = {}
        with database.writing(ACTOR) as transaction:
            for name in ("author", "first", "second", "one", "two"):
                self.accounts[name] = create_account(transaction, name)
                self.tokens[name] = create_token(transaction, self.accounts[name], "test", SCOPES)[
                    1
                ]
            set_setting(transaction, ENVIRONMENT, make_environment(None, []))
            new = NewSuite(
                "small", str(suite), self.accounts["author"], options={"recalc": "never"}
            )
            add_revision(self.server, transaction, new)
            for name in ("first", "second"):
                name_role(transaction, "small", self.accounts[name], SuiteRole.REVIEWER)
            set_reviewers(transaction, "small", 2)
            self.phase = add_phase(transaction, NewPhase("spring", "small"))
            row = transaction.one(sa.select(t.phase))
            assert row is not None
            self.conditions = current_conditions(transaction, row)
            self.cases = int(transaction.execute(sa.select(t.revision.c.cases)).scalar_one())
            boards_of(self.server).add(transaction, NewBoard("main", "spring"))

    def call(self, who: str, method: str, path: str, **body: Any) -> Any:
        headers = {"Authorization": f"Bearer {self.tokens[who]}"}
        return self.client.request(method, f"/v1{path}", headers=headers, json=body or None)

    def submit(self, who: str, suite: Path, value: int) -> str:
        """Submits finished workbooks and judges them: golds with one cell of one case changed."""
        submission = new_id("sub")
        sha256 = hashlib.sha256(f"{who}{value}".encode()).hexdigest()
        outputs = self.server.folder.unpacked(sha256)
        outputs.mkdir(parents=True, exist_ok=True)
        for gold in suite.rglob("*_answer.xlsx"):
            shutil.copyfile(gold, outputs / gold.name.replace("_answer", "_output"))
        changed = outputs / f"1_{TASK}_output.xlsx"
        book = openpyxl.load_workbook(changed)
        book.worksheets[0][CELL] = value
        book.properties.creator = who  # the same file would be a copy, and no vote of its own
        book.save(changed)
        account = self.accounts[who]
        with self.server.database.writing(ACTOR) as transaction:
            transaction.execute(
                sa.insert(t.submission).values(
                    id=submission, account=account, made_by=account, phase=self.phase,
                    kind=Kind.WORKBOOKS, sha256=sha256, bytes=1,
                )
            )  # fmt: skip
            judging = enqueue(
                transaction, submission=submission, account=account,
                conditions=str(self.conditions), cases=self.cases,
            )  # fmt: skip
            transaction.execute(
                sa.update(t.submission)
                .where(t.submission.c.id == submission)
                .values(current_judging=judging)
            )
        self.dispatch()
        return submission

    def dispatch(self) -> int:
        """Judges everything that waits, as a dispatcher does."""
        count = 0
        with contextlib.ExitStack() as stack:
            scorers = Scorers(self.server.folder, stack, None, {"jobs": 1})
            while True:
                with self.server.database.writing(ACTOR) as transaction:
                    taken = claim(transaction, "test", list(Lane), alone=True)
                if taken is None:
                    return count
                work = work_of(self.server.database, taken)
                judged = judge(self.server.folder, scorers, taken, work, lambda _: CaseCounter())
                with self.server.database.writing(ACTOR) as transaction:
                    finish(
                        transaction, taken, judged.verdicts,
                        report_sha256=judged.report_sha256, scores=judged.scores,
                    )  # fmt: skip
                count += 1

    def scalar(self, statement: sa.Select[Any]) -> Any:
        with self.server.database.reading() as connection:
            return connection.scalar(statement)
