"""From a verdict to a corrected board in the browser; every page is checked, also by keyboard.

The server runs in this process, so that its webhooks can be sent to a receiver of the test: on its
own it sends none to this machine.
"""

from __future__ import annotations

import dataclasses
import socket
import threading
import time
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit

import openpyxl
import pytest
import sqlalchemy as sa
import uvicorn
from playwright.sync_api import Page, expect
from standardwebhooks.webhooks import Webhook

from judge.serve.access.accounts import create_sign_in
from judge.serve.app import make_app
from judge.serve.boards.results import verify_result
from judge.serve.boards.versions import boards_of
from judge.serve.catalog import set_phase_state
from judge.serve.operations.deliveries import deliver, plan
from judge.serve.operations.sending import DeliveryResult, Message, Outcome, signed_headers
from judge.serve.rejudging.service import advance
from judge.serve.store import tables as t
from judge.serve.store.tables import PhaseState, Role
from tests.browser.conftest import Axe, Watched
from tests.postgresql import new_database
from tests.serve_house import ACTOR, CELL, RIGHT, TASK, House, make_suite

pytestmark = [pytest.mark.browser, pytest.mark.slow]


class Receiver:
    """Receives webhooks in place of a sender, and posts nothing."""

    def __init__(self) -> None:
        self.messages: list[tuple[Message, Any]] = []

    def send(self, message: Message, at: Any) -> DeliveryResult:
        self.messages.append((message, at))
        return DeliveryResult(Outcome.DELIVERED, 204)


class Online:
    """A server with an address, a dispatcher that runs on request, and people with browsers."""

    def __init__(self, house: House, address: str, suite: Path) -> None:
        self.house, self.address, self.suite = house, address, suite
        self.receiver = Receiver()

    def as_(self, page: Page, who: str) -> None:
        """Signs one person in, with a link, and everyone else out."""
        page.context.clear_cookies()
        with self.house.server.database.writing(ACTOR) as transaction:
            code = create_sign_in(transaction, self.house.accounts[who])
        page.goto(f"{self.address}/sign-in?code={code}")
        page.get_by_role("button", name="Sign in").click()
        expect(page.get_by_role("heading", name="Suites and boards")).to_be_visible()

    def work(self) -> None:
        """Does the work of a dispatcher and the server's chores."""
        self.house.dispatch()
        with self.house.server.database.writing(ACTOR) as transaction:
            boards_of(self.house.server).renew(
                transaction, self.house.phase, "a submission was judged"
            )
        advance(self.house.server)
        plan(self.house.server.database)
        deliver(self.house.server.database, self.receiver)  # type: ignore[arg-type]

    def phase(self, state: PhaseState) -> None:
        with self.house.server.database.writing(ACTOR) as transaction:
            set_phase_state(transaction, "spring", state)


@pytest.fixture(scope="module")
def online(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Online]:
    folder = tmp_path_factory.mktemp("way")
    suite = make_suite(folder)
    with new_database("sqlite", folder, None) as database, socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        address = f"http://127.0.0.1:{listening.getsockname()[1]}"
        house = House(database, folder / "data", suite)
        house.server.options = dataclasses.replace(house.server.options, public_url=address)
        with database.writing(ACTOR) as transaction:
            transaction.execute(
                sa.insert(t.setting).values(name="webhook_hosts", value=["ci.example.org"])
            )
            transaction.execute(
                sa.update(t.account)
                .where(t.account.c.name == "author")
                .values(roles=[Role.AUTHOR, Role.OPERATOR])
            )
        config = uvicorn.Config(make_app(house.server), log_level="warning", lifespan="off")
        server = uvicorn.Server(config)
        thread = threading.Thread(target=server.run, args=([listening],), daemon=True)
        thread.start()
        while not server.started:
            assert thread.is_alive()
            time.sleep(0.02)
        yield Online(house, address, suite)
        server.should_exit = True
        thread.join(30)


def finished_workbooks(online: Online, place: Path, value: int) -> Path:
    """An archive of the golds in which one cell of one case has a different value."""
    file = place / f"outputs-{value}.zip"
    with zipfile.ZipFile(file, "w") as archive:
        for gold in sorted(online.suite.rglob("*_answer.xlsx")):
            output = gold.name.replace("_answer", "_output")
            path = gold
            if output == f"1_{TASK}_output.xlsx":
                path = place / output
                book = openpyxl.load_workbook(gold)
                book.worksheets[0][CELL] = value
                book.save(path)
            archive.write(path, output)
    return file


def submit(page: Page, online: Online, file: Path, system: str) -> str:
    """Submits a file on the page, has it judged, and waits until the page shows that."""
    page.get_by_role("link", name="Submit", exact=True).click()
    page.get_by_label("File:").set_input_files(file)
    page.get_by_label("System").fill(system)
    page.get_by_role("button", name="Submit").click()
    expect(page.locator(".state")).to_contain_text("queued")
    online.work()
    expect(page.locator(".state")).to_have_text("done")  # without a reload
    return urlsplit(page.url).path.rsplit("/", 1)[1]


def decide(page: Page, online: Online, who: str) -> None:
    """A reviewer finds the waiting dispute on the first page, examines the case, fixes the gold."""
    online.as_(page, who)
    page.get_by_role("link", name="1 disputed case to decide").click()
    page.get_by_role("link", name=TASK).click()
    page.get_by_role("button", name="Show question, input and gold").click()
    expect(page.get_by_text("Cells in which the disputed answer differs")).to_be_visible()
    page.get_by_label("A fault").check()
    page.get_by_label("Why?").fill("The question counts the returns as well.")
    page.get_by_label("What do the cells show?").fill("The orders add up to another sum.")
    page.get_by_label("Cells of the gold").fill(f"{CELL}={RIGHT}")
    page.get_by_role("button", name="Decide").click()
    expect(page.get_by_role("heading", name="Your decision is on record")).to_be_visible()


def test_from_a_verdict_to_a_corrected_board(
    watched: Watched, online: Online, tmp_path: Path
) -> None:
    page = watched.page
    online.as_(page, "two")
    submit(page, online, finished_workbooks(online, tmp_path, 3), "Plain")
    online.as_(page, "one")
    submission = submit(page, online, finished_workbooks(online, tmp_path, RIGHT), "Careful")

    # A webhook, and the verdict that is not right.
    page.get_by_role("link", name="one", exact=True).click()
    page.get_by_role("link", name="Webhooks").click()
    page.get_by_label("Address").fill("https://ci.example.org/hook")
    for kind in ("dispute.decided", "rejudging.applied", "board.changed"):
        page.get_by_label(kind).check()
    page.get_by_role("button", name="Make a webhook").click()
    secret = page.locator("code.secret").inner_text()
    page.get_by_role("link", name="Submissions").click()
    page.get_by_role("link", name="Careful").click()
    page.get_by_role("link", name=f"Dispute task {TASK}, case 1").click()
    page.get_by_label("What is right instead?").fill(f"{CELL} is {RIGHT}.")
    page.get_by_role("button", name="Dispute").click()
    expect(page.get_by_text("A reviewer of the suite has to open it")).to_be_visible()
    dispute = page.url
    online.phase(PhaseState.CLOSED)

    # Two reviewers, who do not see each other's decision.
    decide(page, online, "first")
    expect(page.get_by_text("1 reviewer of 2 decided so far")).to_be_visible()
    decide(page, online, "second")
    expect(page.get_by_text("they agree: the dispute is accepted")).to_be_visible()

    # The author looks at what would change, and applies it.
    online.as_(page, "author")
    page.get_by_role("link", name="A rejudging of small to start").click()
    expect(
        page.get_by_text("2 submissions: 0 cases have to be run, 2 compared again")
    ).to_be_visible()
    page.get_by_role("button", name="Judge them again").click()
    expect(page.get_by_text("0 of 2 submissions are judged")).to_be_visible()
    online.work()
    expect(page.get_by_text("No verdict changes outside the cases")).to_be_visible()
    expect(page.get_by_text("WA → AC (1)")).to_be_visible()
    page.get_by_label("Type the number of verdicts that change").fill("1")
    page.get_by_role("button", name="Apply").click()
    expect(page.get_by_text("Its judgings count")).to_be_visible()
    rejudging = page.url
    page.get_by_role("link", name="main, version").click()
    why = page.get_by_text(f"Case 1 of task {TASK} was corrected after a dispute by one")
    expect(why.first).to_be_visible()
    number = int(page.locator("caption").first.inner_text().split()[1].strip(","))
    expect(page.get_by_role("row", name="Careful").get_by_text("100.0").first).to_be_visible()

    # Everybody sees why, and the version before is where it was.
    page.context.clear_cookies()
    page.goto(dispute)
    expect(page.get_by_text("the boards have new versions")).to_be_visible()
    page.get_by_role("link", name="The rejudging that it led to").click()
    expect(page).to_have_url(rejudging)
    page.goto(f"{online.address}/boards/main/versions/{number - 1}")
    expect(page.get_by_text(f"This is version {number - 1}.")).to_be_visible()
    expect(page.get_by_role("row", name="Careful").get_by_text("50.0").first).to_be_visible()

    # What was signed holds without the server, and says the new score.
    (tmp_path / "judge-keys.json").write_bytes(
        page.request.get(f"{online.address}/.well-known/judge-keys.json").body()
    )
    for of in (f"submissions/{submission}/result", f"boards/main/versions/{number}/result"):
        file = tmp_path / "result.json"
        file.write_bytes(page.request.get(f"{online.address}/v1/{of}").body())
        checked = verify_result(file)
        assert checked.broken is None, checked.why
        file.write_bytes(file.read_bytes().replace(b"payload", b"paylaod", 1))
        assert verify_result(file).broken == 1
    assert verify_result_of(page, online, submission, tmp_path)["scores"]["hard"]["value"] == 1.0

    # The webhook has told about it, signed, and without a verdict.
    online.work()
    kinds = []
    for message, at in online.receiver.messages:
        assert message.url == "https://ci.example.org/hook"
        body = Webhook(secret).verify(message.body, signed_headers(message, at))
        kinds.append(body["type"])
        assert set(body["data"]) == {"id", "state"}
        assert body["data"]["state"] not in {"AC", "WA"}
    assert {"dispute.decided", "rejudging.applied", "board.changed"} <= set(kinds)
    hosts = {urlsplit(url).netloc for url in watched.requests if not url.startswith("data:")}
    assert hosts == {urlsplit(online.address).netloc}


def verify_result_of(page: Page, online: Online, submission: str, place: Path) -> dict[str, Any]:
    """Returns the content of a submission's signed result."""
    file = place / "again.json"
    answer = page.request.get(f"{online.address}/v1/submissions/{submission}/result")
    file.write_bytes(answer.body())
    checked = verify_result(file)
    assert checked.level == 2, checked.why
    return dict(checked.document)


# -- every page -----------------------------------------------------------------------------------

PAGES = {
    "visitor": (
        "/", "/suites/small", f"/suites/small/tasks/{TASK}", "/boards/main",
        "/boards/main/versions/1", "/entries/{one}", f"/entries/{{one}}/tasks/{TASK}",
        "/boards/main/compare?x={one}&x={two}", "/disputes", "/rejudgings", "/sign-in",
        "/problems/quota-exceeded",
    ),
    "one": (
        "/", "/submit", "/submissions", "/submissions/{one}", f"/submissions/{{one}}/tasks/{TASK}",
        f"/disputes/new?task={TASK}&case=2&submission={{one}}", "/me", "/me/tokens", "/me/webhooks",
    ),
    "first": ("/", "/review", "/review/{dispute}", "/disputes/{dispute}"),
    "author": ("/", "/rejudgings", "/rejudgings/{rejudging}", "/admin", "/suites/small",
        "/suites/small/probing",
    ),
}  # fmt: skip


VIEWS: tuple[tuple[Literal["light", "dark"], int], ...] = (("light", 320), ("dark", 1280))
"""Variants in which every page is checked: colours, and width in pixels."""


@pytest.fixture(scope="module")
def furnished(online: Online) -> dict[str, str]:
    """Two submissions on the board, a dispute that waits, and a draft of a rejudging."""
    house = online.house
    online.phase(PhaseState.OPEN)
    for who, value in (("one", 5), ("two", 6)):
        house.submit(who, online.suite, value)
    online.work()
    shown = house.client.get("/v1/boards/main").json()["entries"]
    ids = {entry["account"]: entry["submission"] for entry in shown}
    asked = {"task": "1002", "case": 2, "kind": "question", "claim": "It can be read in two ways"}
    made = house.call("two", "POST", "/disputes", submission=ids["two"], **asked)
    ids["dispute"] = made.json()["id"]
    drafted = house.call("author", "POST", "/rejudgings", suite="small", reason="to be sure")
    ids["rejudging"] = drafted.json()["id"]
    return ids


@pytest.mark.parametrize("who", PAGES)
def test_every_page_is_accessible_wide_narrow_dark_and_by_key(
    watched: Watched, online: Online, furnished: dict[str, str], who: str
) -> None:
    """No axe findings, light at 320 px and dark at 1280; no sideways scrolling; visible focus."""
    page = watched.page
    if who != "visitor":
        online.as_(page, who)
    faults: list[str] = []
    for pattern in PAGES[who]:
        path = pattern.format(**furnished)
        answer = page.goto(online.address + path)
        assert answer is not None
        assert answer.status == 200, path
        axe = Axe(page)
        for scheme, width in VIEWS:
            page.emulate_media(color_scheme=scheme)
            page.set_viewport_size({"width": width, "height": 700})
            faults += [f"{path} ({scheme}): {fault}" for fault in axe.faults()]
            reached = page.evaluate("document.documentElement.scrollWidth")
            if reached > width:
                faults.append(f"{path}: {reached} pixels wide at {width}")
        page.emulate_media(color_scheme="light")
        page.set_viewport_size({"width": 1280, "height": 900})
        faults += [f"{path}: {fault}" for fault in focus_faults(page)]
        assert page.title().endswith("· judge")
    assert faults == []


FOCUS = """() => {
  const at = document.activeElement;
  if (!at || at === document.body) return null;
  const box = at.getBoundingClientRect(), style = getComputedStyle(at);
  return {name: at.outerHTML.slice(0, 80), outline: style.outlineStyle !== "none",
          seen: box.width > 0 && box.height > 0, top: box.top + scrollY, left: box.left};
}"""


def focus_faults(page: Page) -> list[str]:
    """Lists faults of tabbing through a page: the skip link comes first, every stop is visible."""
    faults = []
    page.evaluate("document.activeElement.blur(); scrollTo(0, 0)")
    for step in range(12):
        page.keyboard.press("Tab")
        focused = page.evaluate(FOCUS)
        if focused is None:
            break
        if step == 0 and "skip" not in focused["name"]:
            faults.append(f"the first Tab goes to {focused['name']}")
        if not focused["seen"] or not focused["outline"]:
            faults.append(f"focus is not visible: {focused['name']}")
    return faults


def test_without_script_the_way_is_the_same(
    watched: Watched, online: Online, furnished: dict[str, str], tmp_path: Path
) -> None:
    """Submitting, watching, disputing and withdrawing work with forms alone, without scripts."""
    browser = watched.page.context.browser
    assert browser is not None
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    online.as_(page, "one")
    page.get_by_role("link", name="Submit", exact=True).click()
    page.get_by_label("File:").set_input_files(finished_workbooks(online, tmp_path, 8))
    page.get_by_role("button", name="Submit").click()
    expect(page.locator(".state")).to_contain_text("queued")
    online.work()
    page.reload()
    expect(page.locator(".state")).to_have_text("done")
    # This account has disputed the case in the first test, and is led there. If it disputes the
    # case again all the same, what was written is still there.
    expect(page.get_by_role("link", name=f"Disputed task {TASK}, case 1")).to_be_visible()
    submission = page.url.rpartition("/")[2]
    page.goto(f"{online.address}/disputes/new?task={TASK}&case=1&submission={submission}")
    page.get_by_label("What is right instead?").fill("x")
    page.get_by_role("button", name="Dispute").click()
    expect(page.get_by_role("alert")).to_contain_text("has disputed the case already")
    expect(page.get_by_label("What is right instead?")).to_have_value("x")
    page.get_by_role("link", name="Submissions").click()
    page.get_by_role("link", name="Submission to spring").first.click()
    page.get_by_role("button", name="Withdraw").click()
    expect(page.get_by_text("Withdrawn from the boards.")).to_be_visible()
    context.close()
