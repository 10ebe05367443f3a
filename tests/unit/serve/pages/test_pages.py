"""Pages: who can open which, what they show, and forms that no other website can submit."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from judge.serve.access.accounts import create_sign_in
from judge.serve.boards.versions import NewBoard
from judge.serve.context import ServeOptions
from judge.serve.store.tables import Level
from tests.unit.serve.boards.world import ACTOR, TASKS, World

HTML = {"Accept": "text/html"}
ORIGIN = {"Origin": "http://testserver"}


@pytest.fixture
def world(tmp_path: Path) -> World:
    made = World(tmp_path, Level.CELLS)
    made.one, made.two = made.submit("one", 10), made.submit("two", 30)
    return made


def page(world: World, path: str, status: int = 200) -> str:
    answer = world.client.get(path, headers=HTML)
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"].startswith("text/html")
    Balanced().check(answer.text)
    return answer.text


def sign_in(world: World, name: str, lands_on: str = "/") -> None:
    with world.server.database.writing(ACTOR) as transaction:
        code = create_sign_in(transaction, world.accounts[name])
    assert f'value="{code}"' in page(world, f"/sign-in?code={code}")
    answer = world.client.post(
        "/sign-in", data={"code": code}, headers=ORIGIN, follow_redirects=False
    )
    assert (answer.status_code, answer.headers["location"]) == (303, lands_on)
    cookie = answer.headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=lax" in cookie


def test_who_signs_in_lands_on_the_page_that_was_wanted_once(world: World) -> None:
    """Over the page that asks to sign in, and over the link of every other page."""
    page(world, "/submissions?limit=5", 401)
    sign_in(world, "one", lands_on="/submissions?limit=5")
    world.client.cookies.clear()
    page(world, "/me/tokens?note=50%25", 401)
    sign_in(world, "one", lands_on="/me/tokens?note=50%25")
    world.client.cookies.clear()
    page(world, "/submissions/50%25%20%C3%A4", 401)
    sign_in(world, "one", lands_on="/submissions/50%25%20%C3%A4")
    world.client.cookies.clear()
    came_from = {"Referer": "http://testserver/boards/main"}
    world.client.get("/sign-in", headers={**HTML, **came_from})
    sign_in(world, "one", lands_on="/boards/main")
    world.client.cookies.delete(world.server.cookie)
    sign_in(world, "one", lands_on="/")


def test_a_lost_session_leads_back_to_the_page_of_the_form(world: World) -> None:
    headers = {**HTML, **ORIGIN, "Referer": "http://testserver/submissions/x"}
    answer = world.client.post("/submissions/x/withdraw", data={}, headers=headers)
    assert answer.status_code == 401
    sign_in(world, "one", lands_on="/submissions/x")


@pytest.mark.parametrize(
    "address",
    [
        "https://evil.example/boards/main", "//evil.example/", "http://testserver//evil.example",
        "http://testserver.evil.example/boards/main", "http://testserver@evil.example/boards/main",
        "http://testserver:81/boards/main", "javascript:alert(1)", "http://testserver/sign-in?code=x",
        "http://testserver/sign-out", "http://[", "http://testserver:x/", "",
    ],
)  # fmt: skip
def test_no_other_address_is_kept(world: World, address: str) -> None:
    world.client.get("/sign-in", headers={**HTML, "Referer": address})
    sign_in(world, "one", lands_on="/")


@pytest.mark.parametrize(
    "kept",
    [
        "https://evil.example", "//evil.example", "%2F%2Fevil.example", "/%5Cevil.example",
        "/%09/evil.example", "%0A//evil.example", "/sign-out", "/%C3%A9", "", "%", "x" * 3000,
    ],
)  # fmt: skip
def test_a_planted_cookie_leads_nowhere_else(world: World, kept: str) -> None:
    world.client.cookies.set("judge-return", kept)
    sign_in(world, "one", lands_on="/")


def test_behind_a_prefix_one_comes_back_to_the_same_page(world: World) -> None:
    world.server.options = ServeOptions(public_url="https://example.org/judge", secure=True)
    client = world.client
    client.base_url = "https://example.org"
    answer = client.get("/submissions", headers=HTML)
    assert answer.status_code == 401
    assert "__Host-judge-return=%2Fsubmissions; HttpOnly" in answer.headers["set-cookie"]
    with world.server.database.writing(ACTOR) as transaction:
        code = create_sign_in(transaction, world.accounts["one"])
    headers = {"Origin": "https://example.org", "Cookie": "__Host-judge-return=%2Fsubmissions"}
    answer = client.post("/sign-in", data={"code": code}, headers=headers, follow_redirects=False)
    assert answer.headers["location"] == "/judge/submissions"


def form_token(text: str) -> str:
    found = re.search(r'name="token" value="([0-9a-f]{64})"', text)
    assert found is not None
    return found[1]


class Balanced(HTMLParser):
    """Checks what every page must have."""

    def __init__(self) -> None:
        super().__init__()
        self.tables = self.captions = self.mains = 0
        self.labelled: set[str] = set()
        self.problems: list[str] = []
        self.lang = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = dict(attrs)
        self.tables += tag == "table"
        self.captions += tag == "caption"
        self.mains += tag == "main"
        if tag == "html":
            self.lang = found.get("lang") or ""
        for name in found:
            if name == "style" or name.startswith("on"):
                self.problems.append(f"{tag} has {name}")
        address = found.get("href") or found.get("src") or found.get("action") or ""
        outside = "external" in (found.get("rel") or "")
        if "//" in address and not outside:
            self.problems.append(f"{tag} names another host: {address}")
        if tag in {"script", "style"} and not found.get("src"):
            self.problems.append(f"{tag} in the page")

    def check(self, text: str) -> None:
        self.feed(text)
        assert self.problems == []
        assert self.tables == self.captions
        assert (self.mains, self.lang) == (1, "en")


VISITOR = ("/", "/suites/suite", "/boards/main", "/boards/main/versions/1", "/sign-in")
MEMBER = ("/submit", "/submissions", "/me", "/me/tokens")


def test_pages_of_visitors_and_members(world: World) -> None:
    for path in VISITOR:
        page(world, path)
    for path in MEMBER:
        assert "Sign in" in page(world, path, 401)
    sign_in(world, "one", lands_on=MEMBER[-1])
    for path in (*VISITOR, *MEMBER):
        page(world, path)
    assert "system of one" in page(world, f"/submissions/{world.one}")
    page(world, f"/submissions/{world.two}", 404)


def test_what_was_typed_is_still_in_the_form_after_a_problem(world: World) -> None:
    sign_in(world, "one")
    typed = {"program": "\nprint('<b>')\n", "system": 'a "system"', "note": "n", "task": "none"}
    data = {"token": form_token(page(world, "/submit")), "phase": "open", **typed}
    answer = world.client.post("/submit", data=data, headers=ORIGIN | HTML)
    assert answer.status_code in {404, 422}
    shown = Values()
    shown.feed(answer.text)
    assert {name: shown.values[name] for name in typed} == typed


class Values(HTMLParser):
    """Collects the values of text fields."""

    def __init__(self) -> None:
        super().__init__()
        self.values: dict[str, str] = {}
        self._inside: str | None = None

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = dict(attrs)
        if tag in {"input", "textarea"} and found.get("name"):
            self.values[str(found["name"])] = found.get("value") or ""
            self._inside = str(found["name"]) if tag == "textarea" else None

    def handle_data(self, data: str) -> None:
        if self._inside is not None:
            # A browser drops the line break after the start of the element.
            self.values[self._inside] = data.removeprefix("\n")
            self._inside = None


def test_nothing_runs_but_what_the_server_serves(world: World) -> None:
    policy = world.client.get("/", headers=HTML).headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "frame-ancestors 'none'" in policy
    for name, kind in (("serve.css", "text/css"), ("serve.js", "text/javascript")):
        assert world.client.get(f"/static/{name}").headers["content-type"].startswith(kind)
    assert world.client.get("/static/base.html").status_code == 404


class TestBoard:
    def test_ranks_scores_and_evidence(self, world: World) -> None:
        text = page(world, "/boards/main")
        assert text.index("system of two") < text.index("system of one")
        assert "two joined." in text
        entry = page(world, f"/entries/{world.one}")
        assert "t39" in entry
        task = page(world, f"/entries/{world.one}/tasks/t39")
        assert "Wrong answer" in task
        page(world, f"/entries/{world.one}/tasks/none", 404)

    def test_filter_and_order(self, world: World) -> None:
        text = page(world, "/boards/main?q=ONE")
        assert "system of one" in text
        assert 'aria-label="compare system of two"' not in text
        assert "No entry matches" in page(world, "/boards/main?q=nobody")
        text = page(world, "/boards/main?sort=system")
        assert text.index("compare system of one") < text.index("compare system of two")

    def test_comparison(self, world: World) -> None:
        one, two = world.one, world.two
        assert "The two differ" in page(world, f"/boards/main/compare?x={one}&x={two}")
        assert "First mark two entries" in page(world, f"/boards/main/compare?x={one}", 422)

    @pytest.mark.parametrize("level", [Level.NONE, Level.SCORE])
    def test_what_the_level_withholds(self, tmp_path: Path, level: Level) -> None:
        world = World(tmp_path, level, hidden=True)
        one, two = world.submit("one", 10), world.submit("two", 30)
        board = page(world, "/boards/main")
        assert "compare system of" not in board
        assert ("75.0" in board) == (level is Level.SCORE)
        entry = page(world, f"/entries/{one}")
        assert "t00" not in entry
        page(world, f"/entries/{one}/tasks/t00", 403)
        page(world, f"/boards/main/compare?x={one}&x={two}", 403)
        page(world, "/suites/suite/tasks/t00", 404)
        assert "t00" not in page(world, "/suites/suite")

    def test_names_are_escaped(self, tmp_path: Path) -> None:
        world = World(tmp_path, Level.CELLS)
        with world.server.database.writing(ACTOR) as transaction:
            world.boards.add(transaction, NewBoard("evil", "spring", title="<script>alert(1)"))
        assert "&lt;script&gt;alert(1)" in page(world, "/boards/evil")


class TestForms:
    def post(self, world: World, path: str, data: dict[str, Any], **headers: str) -> int:
        answer = world.client.post(
            path, data=data, headers={**HTML, **headers}, follow_redirects=False
        )
        return answer.status_code

    def test_a_token_of_another_session_or_origin_is_refused(self, world: World) -> None:
        sign_in(world, "one")
        text = page(world, "/me/tokens")
        data = {"token": form_token(text), "name": "laptop", "scope-read": "1"}
        assert self.post(world, "/me/tokens", data) == 403  # without an origin
        assert self.post(world, "/me/tokens", data, Origin="https://evil.example") == 403
        wrong = {**data, "token": "0" * 64}
        assert self.post(world, "/me/tokens", wrong, **ORIGIN) == 403
        answer = world.client.post("/me/tokens", data=data, headers={**HTML, **ORIGIN})
        shown = re.search(r"jdg_[A-Za-z0-9_-]{49}", answer.text)
        assert shown is not None
        assert shown[0] not in page(world, "/me/tokens")  # shown once
        headers = {"Authorization": f"Bearer {shown[0]}"}
        assert world.client.get("/v1/me", headers=headers).json()["scopes"] == ["read"]

    def test_a_link_is_used_once_and_every_failure_says_the_same(self, world: World) -> None:
        with world.server.database.writing(ACTOR) as transaction:
            code = create_sign_in(transaction, world.accounts["one"])
        answers = [
            world.client.post("/sign-in", data={"code": text}, headers={**HTML, **ORIGIN})
            for text in (code, code, "x" * 43, "")
        ]
        assert [answer.status_code for answer in answers] == [200, 401, 401, 401]
        assert len({answer.text.replace("one", "") for answer in answers[1:]}) == 1

    def test_a_session_is_new_at_each_sign_in_and_the_former_one_ends(self, world: World) -> None:
        """Nobody can set a cookie in a browser and later be signed in with it."""
        sign_in(world, "one")
        first = world.client.cookies.get(world.server.cookie)
        sign_in(world, "two")
        second = world.client.cookies.get(world.server.cookie)
        world.client.cookies.clear()
        for cookie, status in ((first, 401), (second, 200), ("x" * 43, 401)):
            headers = {**HTML, "Cookie": f"{world.server.cookie}={cookie}"}
            assert world.client.get("/me", headers=headers).status_code == status

    def test_signing_out(self, world: World) -> None:
        sign_in(world, "one")
        token = form_token(page(world, "/me"))
        assert self.post(world, "/sign-out", {"token": token}, **ORIGIN) == 303
        page(world, "/me", 401)

    def test_what_was_typed_is_shown_if_the_session_has_ended(self, world: World) -> None:
        sign_in(world, "one")
        token = form_token(page(world, "/me"))
        cookie = world.client.cookies.get(world.server.cookie)
        self.post(world, "/sign-out", {"token": token}, **ORIGIN)
        headers = {**HTML, **ORIGIN, "Cookie": f"{world.server.cookie}={cookie}"}
        typed = {"token": token, "claim": "B2 is <b>7</b>", "case": "1"}
        for path in ("/disputes/new", "/submit"):
            answer = world.client.post(path, data=typed, headers=headers)
            assert answer.status_code == 401
            assert "<h1>You are not signed in</h1>" in answer.text
            assert "Your session has ended" in answer.text
            assert "B2 is &lt;b&gt;7&lt;/b&gt;</textarea>" in answer.text
            assert token not in answer.text
        elsewhere = {**headers, "Origin": "https://evil.example"}
        refused = world.client.post("/disputes/new", data=typed, headers=elsewhere)
        assert refused.status_code == 403
        assert "B2 is" not in refused.text
        long = world.client.post("/submit", data={"program": "x" * 300_000}, headers=headers)
        assert long.status_code == 401
        assert "<textarea" not in long.text

    def test_withdrawing(self, world: World) -> None:
        sign_in(world, "two")
        text = page(world, f"/submissions/{world.two}")
        etag = re.search(r'name="etag" value="([^"]*)"', text)
        assert etag is not None
        data = {"token": form_token(text), "etag": etag[1].replace("&#34;", '"')}
        path = f"/submissions/{world.two}/withdraw"
        assert self.post(world, path, {**data, "etag": '"9-0"'}, **ORIGIN) == 412
        assert self.post(world, path, data, **ORIGIN) == 303
        assert "compare system of two" not in page(world, "/boards/main")

    def test_a_form_that_is_too_long(self, world: World) -> None:
        sign_in(world, "one")
        assert self.post(world, "/me/tokens", {"name": "x" * 300_000}, **ORIGIN) == 413


def test_problems_are_pages_for_browsers_and_documents_for_programs(world: World) -> None:
    assert "There is nothing here" in page(world, "/boards/none", 404)
    assert "<h1>The quota of the phase is used up</h1>" in page(world, "/problems/quota-exceeded")
    assert world.client.get("/problems/quota-exceeded").text.startswith("The quota of the phase")
    answer = world.client.get("/v1/boards/none", headers=HTML)
    assert answer.headers["content-type"] == "application/problem+json"


def test_a_path_prefix(tmp_path: Path) -> None:
    world = World(tmp_path, Level.CELLS)
    world.server.options = ServeOptions(public_url="https://example.org/judge", secure=True)
    text = page(world, "/")
    assert 'href="/judge/static/serve.css"' in text
    assert not re.search(r'(href|src|action)="/(?!judge)', text)


def test_the_whole_board_is_on_the_page(world: World) -> None:
    assert page(world, f"/entries/{world.two}").count('class="chip') == TASKS
