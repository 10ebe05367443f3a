"""From a dispute to a new version of a board with the pages' forms, without scripts."""

from __future__ import annotations

import html
import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import openpyxl
import pytest
import sqlalchemy as sa

from judge.serve.access.accounts import create_sign_in, sign_in
from judge.serve.app import make_app
from judge.serve.boards.versions import boards_of
from judge.serve.catalog import set_phase_state
from judge.serve.disputes.pages import sides_of
from judge.serve.rejudging.service import advance
from judge.serve.store import tables as t
from judge.serve.store.tables import PhaseState, Role
from judge.suites.suite import load_suite
from tests.postgresql import new_database
from tests.same_thread_client import SameThreadClient
from tests.serve_house import ACTOR, CELL, RIGHT, TASK, House, make_suite

HTML = {"Accept": "text/html"}


@pytest.fixture(scope="module")
def small_suite(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_suite(tmp_path_factory.mktemp("suite"))


@pytest.fixture
def house(tmp_path: Path, small_suite: Path) -> Iterator[House]:
    with new_database("sqlite", tmp_path, None) as database:
        yield House(database, tmp_path / "data", small_suite)


class Browser:
    """A signed-in person who fills in forms."""

    def __init__(self, house: House, who: str) -> None:
        with house.server.database.writing(ACTOR) as transaction:
            code = create_sign_in(transaction, house.accounts[who])
            cookie = sign_in(transaction, code)
        assert cookie is not None
        self._client = SameThreadClient(make_app(house.server))
        self._client.cookies.set(house.server.cookie, cookie)
        self.page = self.address = ""

    def open(self, path: str, status: int = 200) -> str:
        self.address = f"http://testserver{path}"
        answer = self._client.get(path, headers={"Accept": "text/html"})
        assert answer.status_code == status, answer.text
        self.page = answer.text
        return self.page

    def send(self, path: str, status: int = 200, **fields: Any) -> str:
        """Submits a form of the page that was opened last."""
        assert f'action="{path}"' in self.page, self.page
        token = re.search(r'name="token" value="([0-9a-f]+)"', self.page)
        assert token is not None
        answer = self._client.post(
            path,
            data={"token": token[1], **fields},
            headers={**HTML, "Origin": "http://testserver", "Referer": self.address},
        )
        assert answer.status_code == status, answer.text
        self.page = answer.text
        return self.page


def test_from_a_verdict_to_a_new_version_by_forms(house: House, small_suite: Path) -> None:
    submission = house.submit("one", small_suite, RIGHT)
    with house.server.database.writing(ACTOR) as transaction:
        set_phase_state(transaction, "spring", PhaseState.CLOSED)
    one = Browser(house, "one")
    one.open(f"/disputes/new?task={TASK}&case=1&suite=small&submission={submission}")
    claim = f"<b>{CELL}</b> is {RIGHT}"
    shown = one.send(
        "/disputes/new", task=TASK, case="1", kind="gold", claim=claim, submission=submission
    )
    assert "&lt;b&gt;" in shown
    assert "<b>" not in shown
    assert "Take it back" in shown
    with house.server.database.reading() as connection:
        dispute = connection.scalar(sa.select(t.dispute.c.id))

    assert "/review/" not in one.open(f"/disputes/{dispute}")
    for who in ("first", "second"):
        reviewer = Browser(house, who)
        assert f'href="/review/{dispute}"' in reviewer.open(f"/disputes/{dispute}")
        assert f"/review/{dispute}" in reviewer.open("/review")
        closed = reviewer.open(f"/review/{dispute}")
        assert 'class="rows"' not in closed
        opened = reviewer.send(f"/review/{dispute}")
        assert opened.count('class="rows"') == 2, "input and gold of one sheet"
        assert opened.count("120.06") == 2, "the last order, far below the answer"
        assert "not a fault" not in opened
        wrong = reviewer.send(
            f"/review/{dispute}/decide", 422, finding="fault", reason="a typed reason",
            evidence="the orders", cells=f"Nowhere!{CELL}=1",
        )  # fmt: skip
        assert "no sheet" in wrong
        assert "a typed reason" in wrong
        decided = reviewer.send(
            f"/review/{dispute}/decide", finding="fault", reason="returns count",
            evidence="the orders", cells=f"{CELL}={RIGHT}",
        )  # fmt: skip
        assert "on record" in decided
    with house.server.database.reading() as connection:
        rejudging = connection.scalar(sa.select(t.rejudging.c.id))
        views = connection.scalar(sa.select(sa.func.count()).where(t.event.c.kind == "gold.viewed"))
    assert views == 4  # each time that golds were shown

    author = Browser(house, "author")
    page = author.open(f"/rejudgings/{rejudging}")
    assert "0 cases have to be run, 1 compared again" in page
    author.send(f"/rejudgings/{rejudging}/start")
    house.dispatch()
    assert advance(house.server) == 1
    page = author.open(f"/rejudgings/{rejudging}")
    assert page.index("Unexpected changes") < page.index("What changes")
    assert "WA → AC (1)" in page
    refused = author.send(f"/rejudgings/{rejudging}/apply", 409, changed="7")
    assert f'<a href="/rejudgings/{rejudging}">Back to the page with the form</a>' in refused
    author.open(f"/rejudgings/{rejudging}")
    assert "Applied." in author.send(f"/rejudgings/{rejudging}/apply", changed="1")
    assert "Corrected" in Browser(house, "two").open(f"/disputes/{dispute}")
    assert "all judged again" in Browser(house, "one").open("/"), "its outcome, on the first page"
    assert "all judged again" not in Browser(house, "two").open("/")
    assert "/review/" not in Browser(house, "first").open(f"/disputes/{dispute}"), "it is decided"
    visitor = SameThreadClient(make_app(house.server))
    public = visitor.get(f"/rejudgings/{rejudging}", headers={"Accept": "text/html"})
    assert public.status_code == 200
    assert "What changes" not in public.text


def test_reviewers_see_all_sheets_of_the_input_and_the_surroundings_of_distant_answers(
    tmp_path: Path, small_suite: Path
) -> None:
    """The sheet of the answer comes first, and long sheets are cut."""
    suite = shutil.copytree(small_suite, tmp_path / "suite")
    tasks = json.loads((suite / "dataset.json").read_text())
    tasks[0]["answer_position"] = "G3:G6,B880,B884"
    (suite / "dataset.json").write_text(json.dumps(tasks))
    for path in suite.rglob(f"1_{TASK}_*.xlsx"):
        book = openpyxl.load_workbook(path)
        book["Orders"]["B884"] = "the last"
        book.create_sheet("Rates")["B2"] = "a rate"
        book.save(path)
    sides = sides_of(load_suite(suite).task(TASK), 1)
    shown = [(side["name"], side["sheet"], side["rows"][0][0], side["more"]) for side in sides]
    assert shown == [
        ("input", "Orders", 1, True), ("gold", "Orders", 1, True),
        ("input", "Orders", 877, False), ("gold", "Orders", 877, False),
        ("input", "Rates", 1, False),
    ]  # fmt: skip
    assert len(sides[0]["rows"]) == 200
    answers = [text for _, cells in sides[1]["rows"] for text, asked in cells if asked]
    assert len(answers) == 4


def test_nobody_is_sent_where_they_may_not_go(house: House, small_suite: Path) -> None:
    """Follows every link of the pages about a dispute, for everyone involved, at each stage."""
    submission = house.submit("one", small_suite, 1)
    renewed(house)
    claim = {"submission": submission, "task": TASK, "case": 1, "kind": "gold", "claim": "other"}
    dispute = house.call("one", "POST", "/disputes", **claim).json()["id"]
    opinion = {
        "finding": "fault",
        "reason": "as asked",
        "evidence": "seen",
        "cells": {"1": f"{CELL}=1"},
    }
    for reviewer in ("first", "second"):
        decided = house.call(reviewer, "POST", f"/disputes/{dispute}:decide", **opinion).json()
    rejudging, people = decided["rejudging"], {who: Browser(house, who) for who in WHO}
    pages = (
        "/",
        f"/disputes/{dispute}",
        f"/submissions/{submission}",
        "/boards/main",
        "/suites/small",
    )
    follow(people, pages)
    one = people["one"]
    assert "suite corrected" in one.open("/")
    assert rejudging not in one.open(f"/disputes/{dispute}"), "it is the authors' until applied"
    house.call("author", "POST", f"/rejudgings/{rejudging}:start")
    house.dispatch()
    advance(house.server)
    changed = house.call("author", "GET", f"/rejudgings/{rejudging}/diff").json()["changed"]
    applied = house.call("author", "POST", f"/rejudgings/{rejudging}:apply", changed=changed)
    assert applied.status_code == 200, applied.text
    follow(people, pages)
    for path in (f"/disputes/{dispute}", f"/submissions/{submission}", "/boards/main"):
        assert f'href="/rejudgings/{rejudging}"' in one.open(path), path
    assert "Judged again" in one.open(f"/submissions/{submission}")
    assert "score 50.00, now 100.00" in one.open("/boards/main")


WHO = ("one", "first", "author")


def follow(people: dict[str, Browser], pages: tuple[str, ...]) -> None:
    for who, browser in people.items():
        for path in pages:
            if not (path.startswith("/submissions/") and who == "first"):
                links = re.findall(r'href="(/[^"#]*)', browser.open(path))
                for link in set(links) - {"/v1/openapi.json"}:
                    browser.open(html.unescape(link))


def renewed(house: House) -> None:
    with house.server.database.writing(ACTOR) as transaction:
        boards_of(house.server).renew(transaction, house.phase, "a submission was judged")


def test_forms_from_elsewhere_do_nothing(house: House) -> None:
    author = Browser(house, "author")
    author.open("/rejudgings")
    client = author._client
    body = {"suite": "small", "reason": "x"}
    assert client.post("/rejudgings", data=body).status_code == 403
    headers = {"Origin": "https://evil.example"}
    assert client.post("/rejudgings", data=body, headers=headers).status_code == 403
    assert client.post("/v1/rejudgings", json=body).status_code == 401
    with house.server.database.reading() as connection:
        assert connection.scalar(sa.select(sa.func.count()).select_from(t.rejudging)) == 0


def test_the_pages_of_an_operator_are_for_operators(house: House) -> None:
    one = Browser(house, "one")
    one.open("/admin", 403)
    with house.server.database.writing(ACTOR) as transaction:
        transaction.execute(
            sa.update(t.account).where(t.account.c.name == "two").values(roles=[Role.OPERATOR])
        )
    two = Browser(house, "two")
    assert "account.created" in two.open("/admin")
    account = house.accounts["one"]
    two.send(f"/admin/accounts/{account}", state="blocked")
    one.open("/me", 401)
    assert "back at noon" in (
        two.open("/admin") and two.send("/admin/maintenance", state="on", message="back at noon")
    )
    two.send("/admin/maintenance", state="off")


def test_a_webhook_of_a_host_that_is_not_allowed_is_refused(house: House) -> None:
    one = Browser(house, "one")
    assert "None yet" in one.open("/me/webhooks")
    fields: dict[str, Any] = {"url": "https://ci.example.org/", "kind-dispute.decided": "1"}
    assert "not allowed" in one.send("/me/webhooks", 422, **fields)
    with house.server.database.writing(ACTOR) as transaction:
        transaction.execute(
            sa.insert(t.setting).values(name="webhook_hosts", value=["ci.example.org"])
        )
    one.open("/me/webhooks")
    assert "whsec_" in one.send("/me/webhooks", **fields)
    assert "whsec_" not in one.open("/me/webhooks")


def test_results_are_shown_by_the_pages_of_judge_view(house: House, small_suite: Path) -> None:
    """The report of an entry, its task pages as data, and the link to a dispute from there."""
    submission = house.submit("one", small_suite, RIGHT)
    with house.server.database.writing(ACTOR) as transaction:
        boards_of(house.server).renew(transaction, house.phase, "it was judged")
    evidence = house.client.get(f"/entries/{submission}/tasks/{TASK}", headers=HTML).text
    path = f"/entries/{submission}/report"
    assert f'href="{path}#/task/{TASK}?case=1"' in evidence
    page = house.client.get(path, headers=HTML)
    assert f'data-pages="{path}/pages/"' in page.text
    assert "<style" not in page.text, "style and script come from the server, by its policy"
    assert 'data-disputes=""' in page.text
    part = house.client.get(f"{path}/pages/0").json()
    assert part["entry"]["task_id"] == TASK
    assert {"private", "no-cache"} == set(page.headers["cache-control"].split(", "))
    for number in ("2", "-1", "x", "9" * 9, "٣"):
        assert house.client.get(f"{path}/pages/{number}").status_code == 404
    owner = Browser(house, "one").open(f"/submissions/{submission}/report")
    assert f'data-disputes="/disputes/new?submission={submission}"' in owner
    Browser(house, "two").open(f"/submissions/{submission}/report", 404)
    with house.server.database.writing(ACTOR) as transaction:
        transaction.execute(sa.update(t.suite).values(levels={"public": "verdicts"}))
    assert house.client.get(path).status_code == 403
    assert house.client.get(f"{path}/pages/0").status_code == 403
    evidence = house.client.get(f"/entries/{submission}/tasks/{TASK}", headers=HTML).text
    assert "Cells that differ" not in evidence
    assert "/report" not in evidence
