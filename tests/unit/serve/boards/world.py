"""A server with a suite, a phase and a board; its verdicts are recorded without judging."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from judge.serve.access.accounts import create_account, create_token
from judge.serve.access.rights import HIDDEN_SPLIT
from judge.serve.app import make_app
from judge.serve.boards.disclosure import record_shown
from judge.serve.boards.versions import Boards, NewBoard
from judge.serve.catalog import PUBLIC_SPLIT, NewPhase, add_phase
from judge.serve.context import Server
from judge.serve.queue.conditions import ENVIRONMENT, make_environment, set_setting
from judge.serve.store import tables as t
from judge.serve.store.database import Actor, Transaction
from judge.serve.store.folder import DataFolder
from judge.serve.store.tables import JudgingState, Kind, Lane, Level, Scope, Visibility, new_id
from tests.postgresql import new_sqlite
from tests.same_thread_client import SameThreadClient

ACTOR = Actor("test")
TASKS = 40
DIGEST = "d" * 64


class World:
    """One suite of 40 tasks with one case each; its split is public or hidden."""

    def __init__(
        self, folder: Path, level: Level, *, hidden: bool = False, rule: str = "best"
    ) -> None:
        self.server = Server(new_sqlite(folder), DataFolder(folder / "data"))
        self.server.folder.make()
        self.client = SameThreadClient(make_app(self.server))
        self.boards = Boards(self.server.folder, "https://judge.example")
        self.server.shared["boards"] = self.boards
        self.accounts: dict[str, str] = {}
        self.one = self.two = ""
        self.tokens: dict[str, str] = {}
        split = HIDDEN_SPLIT if hidden else PUBLIC_SPLIT
        with self.server.database.writing(ACTOR) as transaction:
            self.author = self.account(transaction, "author")
            self._add_suite(transaction, split, level)
            set_setting(transaction, ENVIRONMENT, make_environment("image", []))
            self.phase = add_phase(transaction, NewPhase("spring", "suite", split=split))
            self.board = self.boards.add(transaction, NewBoard("main", "spring", rule=rule))
            self.conditions = transaction.execute(sa.select(t.board.c.conditions)).scalar_one()

    def _add_suite(self, transaction: Transaction, split: str, level: Level) -> None:
        suite, revision = new_id("sui"), new_id("rev")
        transaction.execute(
            sa.insert(t.suite).values(
                id=suite, name="suite", title="Suite", owner=self.author, levels={split: level},
                visibility=Visibility.PUBLIC, options={}, current_revision=revision,
            )
        )  # fmt: skip
        transaction.execute(
            sa.insert(t.revision).values(
                id=revision, suite=suite, number=1, digest=DIGEST, folder="f" * 64, cases=TASKS
            )
        )
        tasks = [f"t{place:02}" for place in range(TASKS)]
        transaction.execute(
            sa.insert(t.split).values(
                id=new_id("spl"), revision=revision, name=split, tasks=tasks, cases=TASKS
            )
        )

    def account(self, transaction: Transaction, name: str) -> str:
        """An account with a token."""
        self.accounts[name] = create_account(transaction, name)
        scopes = (Scope.READ, Scope.SUBMIT, Scope.AUTHOR)
        self.tokens[name] = create_token(transaction, self.accounts[name], "t", scopes)[1]
        return self.accounts[name]

    def submit(
        self,
        name: str,
        solved: int,
        answers: dict[str, str] | None = None,
        figures: dict[str, Any] | None = None,
    ) -> str:
        """A submission that solves the first tasks; judged, announced and on the board.

        Args:
            name: of the team.
            solved: how many tasks are right.
            answers: of some tasks, the typed answer that the record has.
            figures: the two figures besides the score, if the conditions have them measured.
        """
        submission, judging = new_id("sub"), new_id("jdg")
        results = self.server.folder.results(judging)
        results.mkdir(parents=True)
        with self.server.database.writing(ACTOR) as transaction:
            account = self.accounts.get(name) or self.account(transaction, name)
            transaction.execute(
                sa.insert(t.submission).values(
                    id=submission, account=account, made_by=account, phase=self.phase,
                    kind=Kind.ANSWERS, sha256="5" * 64, bytes=1, current_judging=judging,
                    system=f"system of {name}",
                )
            )  # fmt: skip
            transaction.execute(
                sa.insert(t.judging).values(
                    id=judging, submission=submission, account=account, state=JudgingState.DONE,
                    conditions=self.conditions, lane=Lane.NORMAL, cases=TASKS, done=TASKS,
                    finished="2026-05-01T10:13:14Z",
                    scores={"hard": solved / TASKS, "tasks": TASKS} | (
                        {"figures": figures} if figures else {}
                    ),
                )
            )  # fmt: skip
            lines = []
            for place in range(TASKS):
                task = f"t{place:02}"
                verdict = "AC" if place < solved else "WA"
                transaction.execute(
                    sa.insert(t.verdict).values(
                        judging=judging, task=task, sample=0, case=1, verdict=verdict,
                        run_key="1" * 64, comparison_key="2" * 64, output_sha256=None,
                    )
                )  # fmt: skip
                run = {"answer": (answers or {}).get(task, verdict)}
                record: dict[str, Any] = {"task": task, "sample": 0, "case": 1, "run": run}
                lines.append(json.dumps({**record, "verdict": verdict}))
            (results / "cases.jsonl").write_text("".join(f"{line}\n" for line in lines))
            record_shown(transaction, judging, results)
            self.boards.renew(transaction, self.phase, "a submission was judged")
        return submission

    def get(self, path: str, who: str | None = None) -> Any:
        """Returns the answer to a request by the team or a visitor."""
        headers = {"Authorization": f"Bearer {self.tokens[who]}"} if who else {}
        return self.client.get(f"/v1{path}", headers=headers)

    def documents(self) -> list[dict[str, Any]]:
        """Returns the versions of the board, the first one first."""
        with self.server.database.reading() as connection:
            rows = connection.execute(
                sa.select(t.board_version).order_by(t.board_version.c.number)
            ).mappings()
            return [dict(row) for row in rows]
