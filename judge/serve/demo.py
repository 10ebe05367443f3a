"""``judge serve --demo``: the sample suites, and a board of the sample submissions."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator
from pathlib import Path

import sqlalchemy as sa

from judge.serve.access.accounts import create_account
from judge.serve.access.rights import Viewer
from judge.serve.api.submissions import accept_body
from judge.serve.boards.versions import NewBoard
from judge.serve.catalog import NewPhase, NewSuite, add_phase, add_revision
from judge.serve.context import ADDRESS, Server
from judge.serve.intake import LINES, Described, admit
from judge.serve.store import tables as t
from judge.serve.store.database import Actor
from judge.serve.store.words import AccountKind, Role, Scope
from judge.suites.submissions import load_submissions, submission_record
from judge.suites.suite import data_folder, load_suite

_SUITES = {
    "sample": "Programs: fourteen tasks of everyday spreadsheet work",
    "sample-typed": "Typed answers about workbooks",
    "sample-rules": "Finished workbooks, judged by rules",
}
_TEAMS = ("Aster", "Birch", "Cedar", "Dahlia", "Elder")
_ACTOR = Actor("demo")
_BOARD = "sample"
_FIELDS = ("id", "solution", "input_path", "output_path")


def add_demo(server: Server) -> Iterator[str]:
    """Adds the sample suites, unless they exist; yields lines that say where they are.

    Args:
        server: the server; its dispatcher is ready, so that the conditions of a board are known.
    """
    with server.database.reading() as connection:
        existing = connection.scalar(sa.select(t.board.c.id).where(t.board.c.name == _BOARD))
        operator = connection.scalar(
            sa.select(t.account.c.id).where(
                sa.cast(t.account.c.roles, sa.Text).contains(Role.OPERATOR.value)
            )
        )
    if existing is None:
        with server.database.writing(_ACTOR) as transaction:
            for name, title in _SUITES.items():
                add_revision(server, transaction, NewSuite(name, name, str(operator), title=title))
                phase = NewPhase(f"{name}-open", name, per_day=100, in_total=1000)
                add_phase(transaction, phase)
            board = NewBoard(_BOARD, f"{_BOARD}-open", title="The sample suite")
            server.shared["boards"].add(transaction, board)
        for number, team in enumerate(_TEAMS):
            _submit(server, team, number)
    address = server.setting(ADDRESS)
    yield f"A board of {len(_TEAMS)} sample submissions: {address}/boards/{_BOARD}"
    program = server.program
    yield f"A token: export JUDGE_TOKEN=$({program} serve admin token operator {server.where})"
    answers = shlex.quote(str(_short(data_folder() / "sample-typed" / "answers.jsonl")))
    yield f"Submit: {program} submit {answers} --to {address} --phase sample-typed-open --wait"


def _short(path: Path) -> Path:
    """A path relative to the working folder, if it is inside; otherwise, the path itself."""
    here = Path.cwd()
    return path.relative_to(here) if path.is_relative_to(here) else path


def _submit(server: Server, team: str, number: int) -> None:
    """One answer to each task of the sample suite; different teams get different answers."""
    by_task: dict[str, list[dict[str, object]]] = {}
    path = data_folder() / _BOARD / "submissions.jsonl"
    suite = load_suite(_BOARD)
    for submission in load_submissions(path, suite):
        record = submission_record(submission, suite)
        by_task.setdefault(submission.task_id, []).append(record)
    lines = []
    for answers in by_task.values():
        record = dict(answers[number % len(answers)] if number else answers[0])
        record = {name: record[name] for name in _FIELDS if name in record}
        lines.append(json.dumps(record))
    with server.database.writing(_ACTOR) as transaction:
        account = create_account(transaction, f"demo-{team}", kind=AccountKind.SERVICE)
    viewer = Viewer(
        account=account, name=team, scopes=frozenset({Scope.SUBMIT}), teams=frozenset({account})
    )
    admission = admit(server, viewer, f"{_BOARD}-open", None)
    with server.folder.receiving() as received:
        received.write("".join(f"{line}\n" for line in lines).encode())
        described = Described(system=f"{team} (sample)", note="made by judge serve --demo")
        accept_body(server, viewer, admission, received, LINES, described, f"demo-{team}", None)
