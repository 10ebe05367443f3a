"""No role below author can fetch the golds or inputs of a hidden split, in any way."""

from __future__ import annotations

import itertools
import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import openpyxl
import pytest
import sqlalchemy as sa

from judge.serve.access.accounts import create_sign_in, sign_in
from judge.serve.api import results
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
from judge.serve.store.tables import Level, PhaseState
from tests.postgresql import new_database
from tests.serve_house import ACTOR, SAMPLE, House, make_suite
from tests.unit.serve.spine.test_rights import filled, routes

GOLD, INPUT = 918_273_645, 546_372_819
"""Values that occur only in the gold of the hidden task, and only in its input."""
HIDDEN = "1002"
WAYS = [
    (level, state)
    for level in (Level.NONE, Level.SCORE, Level.TASKS, Level.VERDICTS, Level.CELLS)
    for state in (PhaseState.OPEN, PhaseState.PUBLISHED)
]


@pytest.fixture(scope="module")
def planted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two tasks of the sample suite, the second of which has unique values."""
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


class Everything:
    """Everything that people can fetch: by token and session, from routes, streams and webhooks."""

    def __init__(self, house: House) -> None:
        self._house = house
        self._cookies = {}
        for who, account in house.accounts.items():
            with house.server.database.writing(ACTOR) as transaction:
                code = create_sign_in(transaction, account)
                self._cookies[who] = str(sign_in(transaction, code))

    def of(self, who: str, ids: dict[str, str]) -> str:
        """Returns everything that someone gets, headers included, as one string."""
        texts = []
        query = {"a": ids["submission"], "b": ids["submission"], "dataset": "a/b"}
        paths = [path for method, path in routes() if method == "GET"]
        for path, headers in itertools.product(paths, self._ways(who)):
            answer = self._house.client.get(filled(path, ids), headers=headers, params=query)
            assert answer.status_code < 500, path
            texts.append(answer.text + json.dumps(dict(answer.headers)))
        with self._house.server.database.reading() as connection:
            events = all_rows(connection, sa.select(t.event))
        texts += [body_of(event) + json.dumps(event["detail"]) for event in events]
        return "\n".join(texts)

    def _ways(self, who: str) -> list[dict[str, str]]:
        if who not in self._cookies:
            return [{"Accept": "text/html"}, {}]
        cookie = f"{self._house.server.cookie}={self._cookies[who]}"
        bearer = {"Authorization": f"Bearer {self._house.tokens[who]}"}
        return [{"Accept": "text/html", "Cookie": cookie}, bearer]


@pytest.fixture
def streams_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """Streams send what exists, and end."""
    monkeypatch.setattr(results, "_MAX_STREAM_S", 0.05)
    monkeypatch.setattr(results, "_KEEP_ALIVE_S", 0.02)


@pytest.mark.usefixtures("streams_end")
@pytest.mark.parametrize(("level", "state"), WAYS)
def test_no_value_of_a_hidden_split_leaves(
    house: House,
    tmp_path: Path,
    level: Level,
    state: PhaseState,
    capfd: pytest.CaptureFixture[str],
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
    judged = house.server.folder.results(house.scalar(sa.select(t.judging.c.id)))
    assert str(GOLD) in (judged / "cases.jsonl").read_text(), "the record has it, to be withheld"
    ids = {
        "submission": submission, "entry": submission, "suite": "hidden", "board": "autumn",
        "task": HIDDEN, "number": "1", "dispute": submission, "rejudging": submission,
        "webhook": submission, "token": submission, "account": house.accounts["one"],
    }  # fmt: skip
    asked = {"task": HIDDEN, "kind": "question", "claim": "x", "submission": submission}
    if (disputed := house.call("one", "POST", "/disputes", **asked).json().get("id")) is not None:
        ids["dispute"] = disputed
    fetched = Everything(house)
    for who in ("visitor", "one", "two", "first"):
        text = fetched.of(who, ids)
        assert submission in text or who != "one", "what is theirs is there"
        for value in (GOLD, INPUT):
            assert str(value) not in text, (who, value)
    logged = capfd.readouterr()
    assert str(GOLD) not in logged.out + logged.err


@pytest.mark.usefixtures("streams_end")
def test_a_public_split_tells_nothing_of_the_hidden_one_beside_it(
    house: House, tmp_path: Path
) -> None:
    """With cells and reports: no values, and not the questions of the other split's tasks."""
    with house.server.database.writing(ACTOR) as transaction:
        house.phase = add_phase(transaction, NewPhase("summer", "hidden"))
        row = transaction.one(sa.select(t.phase).where(t.phase.c.id == house.phase))
        assert row is not None
        house.conditions = current_conditions(transaction, row)
        house.cases = 3
        boards_of(house.server).add(transaction, NewBoard("summer", "summer"))
    answers = make_suite(tmp_path / "answers")
    for gold in answers.rglob(f"*{HIDDEN}_answer.xlsx"):
        gold.unlink()  # as the door takes no answers to tasks of another split
    submission = house.submit("one", answers, 3)
    with house.server.database.writing(ACTOR) as transaction:
        boards_of(house.server).renew(transaction, house.phase, "it was judged")
    ids = {
        "submission": submission, "entry": submission, "suite": "hidden", "board": "summer",
        "task": "1001", "number": "0", "dispute": submission, "rejudging": submission,
        "webhook": submission, "token": submission, "account": house.accounts["one"],
    }  # fmt: skip
    tasks = json.loads((SAMPLE / "dataset.json").read_text())[:2]
    question = next(task["instruction"] for task in tasks if str(task["id"]) == HIDDEN)[:40]
    fetched = Everything(house)
    for who in ("visitor", "one", "two"):
        text = fetched.of(who, ids)
        assert "4459.43" in text, "the public split shows its cells"
        for value in (str(GOLD), str(INPUT), question, json.dumps(question)[1:-1]):
            assert value not in text, (who, value)
