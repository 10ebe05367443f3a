"""Golds and inputs of a hidden split in nothing that any role below author can fetch."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import openpyxl
import pytest
import sqlalchemy as sa

from judge.serve.boards.versions import NewBoard, boards_of
from judge.serve.catalog import (
    NewPhase,
    NewSuite,
    add_phase,
    add_revision,
    current_conditions,
    set_phase_state,
)
from judge.serve.operations.deliveries import body_of
from judge.serve.store import tables as t
from judge.serve.store.database import all_rows
from judge.serve.store.words import Level, PhaseState
from tests.postgresql import new_database
from tests.serve_house import ACTOR, SAMPLE, House, make_suite
from tests.unit.serve.spine.test_rights import filled, routes

GOLD, INPUT = 918_273_645, 546_372_819
"""Values that occur nowhere else: in the gold of the hidden task, and in its input."""
HIDDEN = "1002"
WAYS = [
    (level, state)
    for level in (Level.NONE, Level.SCORE, Level.TASKS, Level.VERDICTS, Level.CELLS)
    for state in (PhaseState.OPEN, PhaseState.PUBLISHED)
]


@pytest.fixture(scope="module")
def planted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two tasks of the sample suite, of which the second one has values of its own."""
    folder = tmp_path_factory.mktemp("planted") / "small"
    tasks = json.loads((SAMPLE / "dataset.json").read_text())[:2]
    for task in tasks:
        shutil.copytree(SAMPLE / task["spreadsheet_path"], folder / task["spreadsheet_path"])
    (folder / "dataset.json").write_text(json.dumps(tasks))
    for path in folder.rglob(f"*{HIDDEN}_*.xlsx"):
        book = openpyxl.load_workbook(path)
        sheet = book["Bob's Q1 Plan"]
        sheet["B4"] = INPUT
        if "_answer" in path.name:
            sheet["D4"] = GOLD
        book.save(path)
    return folder


@pytest.fixture
def house(tmp_path: Path, planted: Path) -> Iterator[House]:
    with new_database("sqlite", tmp_path, None) as database:
        house = House(database, tmp_path / "data", planted)
        with database.writing(ACTOR) as transaction:
            new = NewSuite(
                "hidden", str(planted), house.accounts["author"], hidden=(HIDDEN,),
                options={"recalc": "never"},
            )  # fmt: skip
            add_revision(house.server, transaction, new)
            house.phase = add_phase(transaction, NewPhase("autumn", "hidden", split="hidden"))
        yield house


def everything(house: House, who: str, ids: dict[str, str]) -> str:
    """All that somebody can fetch, by every route that reads, and what webhooks are sent."""
    texts = []
    headers = {"Authorization": f"Bearer {house.tokens[who]}"} if who in house.tokens else {}
    for method, path in routes():
        if method != "GET" or path.endswith("/events"):
            continue
        query = {"a": ids["submission"], "b": ids["submission"], "dataset": "a/b"}
        answer = house.client.get(filled(path, ids), headers=headers, params=query)
        assert answer.status_code < 500, path
        texts.append(answer.text + json.dumps(dict(answer.headers)))
    with house.server.database.reading() as connection:
        events = all_rows(connection, sa.select(t.event))
    texts += [body_of(event) + json.dumps(event["detail"]) for event in events]
    return "\n".join(texts)


@pytest.mark.parametrize(("level", "state"), WAYS)
def test_no_value_of_a_hidden_split_leaves(
    house: House, tmp_path: Path, level: Level, state: PhaseState
) -> None:
    database = house.server.database
    with database.writing(ACTOR) as transaction:
        hidden = sa.update(t.suite).where(t.suite.c.name == "hidden")
        transaction.execute(hidden.values(levels={"hidden": level}))
        row = transaction.one(sa.select(t.phase).where(t.phase.c.id == house.phase))
        assert row is not None
        house.conditions = current_conditions(transaction, row)
        boards_of(house.server).add(transaction, NewBoard("autumn", "autumn"))
    submission = house.submit("one", make_suite(tmp_path / "answers"), 3)
    with database.writing(ACTOR) as transaction:
        set_phase_state(transaction, "autumn", state)
        boards_of(house.server).renew(transaction, house.phase, "it was judged")
    results = house.server.folder.results(house.scalar(sa.select(t.judging.c.id)))
    assert str(GOLD) in (results / "cases.jsonl").read_text(), "the record has it, to be withheld"
    ids = {
        "submission": submission, "entry": submission, "suite": "hidden", "board": "autumn",
        "task": HIDDEN, "number": "1", "dispute": submission, "rejudging": submission,
        "webhook": submission, "token": submission, "account": house.accounts["one"],
    }  # fmt: skip
    for who in ("visitor", "one", "two", "first"):
        text = everything(house, who, ids)
        assert submission in text or who != "one", "what is theirs is there"
        for value in (GOLD, INPUT):
            assert str(value) not in text, (who, value)
