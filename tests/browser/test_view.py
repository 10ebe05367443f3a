"""``judge view`` in a real browser; also plain HTTP requests that no browser would send."""

from __future__ import annotations

import http.client
import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, expect

from judge.grading.store import CASES_FILE, RunDirectory
from judge.report.html.render import json_form
from judge.report.load import load_run
from judge.report.pairing import compare_loaded
from judge.report.report import report_data
from tests.browser.conftest import Watched
from tests.browser.made_run import few_tasks, make_run
from tests.browser.numbers import check_numbers

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def results(run_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with two runs, and files that are not runs."""
    folder = tmp_path_factory.mktemp("view") / "results"
    shutil.copytree(run_folder, folder / "strict run")
    suite = run_folder.parent.parent / "suite"
    make_run(folder / "standard", suite, few_tasks())
    (folder / "notes").mkdir()
    (folder / "notes" / "secret.json").write_text('{"secret": 1}', encoding="utf-8")
    return folder


@dataclass(frozen=True)
class Server:
    """A server that runs.

    Attributes:
        base: its address without a path.
        token: what it printed behind that.
    """

    base: str
    token: str

    def at(self, path: str, fragment: str = "") -> str:
        """Returns the address of a document."""
        return f"{self.base}{path}?token={self.token}{fragment}"


@pytest.fixture(scope="module")
def server(results: Path) -> Iterator[Server]:
    """A server on that folder."""
    command = "import sys; from judge.cli.main import main; main(sys.argv[1:])"
    process = subprocess.Popen(
        [sys.executable, "-c", command, "view", str(results), "--port", "0"],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    line = process.stdout.readline()
    found = re.search(r"(http://127\.0\.0\.1:\d+)/\?token=(\S+)", line)
    assert found is not None
    yield Server(found[1], found[2])
    process.terminate()
    process.wait(timeout=120)
    process.stdout.close()


def get(
    server: Server, path: str, *, host: str | None = None, method: str = "GET"
) -> tuple[int, str]:
    """Sends a raw request with the token in both ways; the path is sent unchanged."""
    place = urlsplit(server.base)
    connection = http.client.HTTPConnection("127.0.0.1", place.port, timeout=60)
    try:
        joined = f"{path}{'&' if '?' in path else '?'}token={server.token}"
        connection.putrequest(method, joined, skip_host=True)
        connection.putheader("Host", host or place.netloc)
        connection.putheader("X-Judge-Token", server.token)
        connection.endheaders()
        answer = connection.getresponse()
        return answer.status, answer.read().decode("utf-8")
    finally:
        connection.close()


def test_list_of_runs(watched: Watched, server: Server, results: Path) -> None:
    page = watched.page
    page.goto(server.at("/"))
    rows = page.locator("tr[data-run]")
    expect(rows).to_have_count(2)
    # The best one comes first.
    scores = {each: report_data(results / each).overall for each in ("standard", "strict run")}
    best = max(scores, key=lambda name: scores[name].soft_restriction.value or 0)
    expect(rows.first).to_have_attribute("data-run", best)
    shown = rows.first.locator("data").nth(1).get_attribute("value")
    assert float(shown or "nan") == scores[best].soft_restriction.value
    assert all(url.startswith(server.base) for url in watched.requests)


def test_report_of_a_run(watched: Watched, server: Server, results: Path) -> None:
    page = watched.page
    page.goto(server.at("/"))
    page.get_by_role("link", name="strict run").click()
    document = json_form(report_data(results / "strict run"))
    expect(page.locator("h1").first).to_have_text("strict run")
    assert check_numbers(page, document) > 150
    page.goto(server.at("/runs/strict%20run/", "#/task/10-2?case=2"))
    expect(page.locator(".pane[data-pane=output] .differs")).to_have_text("W5")
    assert check_numbers(page, document) > 14
    assert json.loads(get(server, "/runs/strict%20run/report.json")[1]) == document


def test_runs_compared_with_each_other(watched: Watched, server: Server, results: Path) -> None:
    page = watched.page
    page.goto(server.at("/"))
    compare = page.get_by_role("button", name="Compare the chosen runs")
    expect(compare).to_be_disabled()
    for box in page.locator("input[type=checkbox]").all():
        box.check()
    expect(page.locator("input:checked")).to_have_count(2)
    names = [box.get_attribute("value") for box in page.locator("input:checked").all()]
    compare.click()
    expect(page.locator("h2").first).to_have_text("Scores on the common tasks")
    comparison = compare_loaded([load_run(results / str(name)) for name in names])
    assert check_numbers(page, json.loads(json.dumps(comparison.to_json()))) > 20
    page.set_viewport_size({"width": 390, "height": 800})
    assert page.evaluate("document.documentElement.scrollWidth") <= 390


def test_matrix_of_tasks_and_runs(watched: Watched, server: Server) -> None:
    page = watched.page
    page.goto(f"{server.base}/compare?run=standard&run=strict%20run&token={server.token}")
    # What a difference is drawn on ends where its intervals end, not at a hundred points.
    assert "100" not in page.locator("table.pair .axisrow").first.inner_text()
    rows = page.locator("#matrix > tbody > tr:visible")
    # Only strict minds a number as text.
    expect(rows).to_have_count(1)
    expect(rows.first).to_contain_text("10-3")
    rows.first.locator("summary").click()
    cells = rows.first.locator(".cells tbody tr")
    expect(cells.locator("th, td")).to_have_text(["Data!B4", "6", "agrees", "'6'"])
    page.get_by_label("only tasks on which the runs disagree").uncheck()
    expect(rows).to_have_count(8)
    page.get_by_placeholder("Filter by id").fill("10-2")
    expect(rows).to_have_count(1)
    rows.first.locator("td").nth(1).get_by_role("link").nth(1).click()
    expect(page.locator("#task h1")).to_have_text("Task 10-2")
    expect(page.locator("#task [aria-selected=true]")).to_contain_text("Case 2")
    assert "/runs/strict%20run/" in page.url


def test_progress_of_a_run_that_is_going(
    watched: Watched, server: Server, results: Path, run_folder: Path
) -> None:
    page = watched.page
    records = list(RunDirectory(run_folder).read_records(CASES_FILE))
    going = results / "going"
    shutil.copytree(run_folder, going, ignore=shutil.ignore_patterns(CASES_FILE, "report.*"))
    try:
        with RunDirectory(going) as store:
            store.lock()
            store.append(CASES_FILE, records[0])
            page.goto(server.at("/"))
            row = page.locator("tr[data-run=going]")
            expect(row).to_contain_text(re.compile(rf"\b1 of {len(records)}\s*going"))
            expect(row.locator("progress")).to_be_visible()
            store.append(CASES_FILE, records[1])
            expect(row.locator("progress")).to_have_js_property("value", 2)
            expect(row.locator(".progress data").first).to_have_text("2")
        # The lock is free again: the list shows the run as it was left.
        expect(row.locator("progress")).to_be_hidden()
        expect(row).to_contain_text(f"2 of {len(records)}")
    finally:
        page.goto("about:blank")
        shutil.rmtree(going)


@pytest.mark.parametrize("host", ["attacker.example", "127.0.0.1.attacker.example", "0.0.0.0", ""])
def test_other_hosts_get_nothing(server: Server, host: str) -> None:
    """A foreign website whose name is made to point at this machine reads nothing."""
    status, text = get(server, "/", host=host or "localhost.attacker.example:80")
    assert status == 421
    assert "strict run" not in text


@pytest.mark.parametrize(
    "path",
    [
        "/runs/../../etc/passwd",
        "/runs/..%2f..%2fetc%2fpasswd/",
        "/runs/%2e%2e/",
        "/runs/./",
        "/runs/notes/",
        "/runs/notes/report.json",
        "/runs/strict%20run/../notes/secret.json",
        "/runs/strict%20run/pages/-1",
        "/runs/strict%20run/pages/999",
        "/runs/strict%20run/pages/1%2f..",
        "/runs/strict%20run/run.json",
        "//etc/passwd",
        "/runs/\x00/",
    ],
)
def test_nothing_else_on_the_disk_is_served(server: Server, path: str) -> None:
    status, text = get(server, path.replace("\x00", "%00"))
    assert status == 404
    assert "secret" not in text
    assert "root:" not in text


def test_nothing_can_be_changed(server: Server) -> None:
    assert get(server, "/", method="POST")[0] == 405
    assert get(server, "/compare?run=standard")[0] == 400


def test_headers(server: Server) -> None:
    place = urlsplit(server.base)
    connection = http.client.HTTPConnection("127.0.0.1", place.port, timeout=60)
    connection.request("GET", f"/?token={server.token}")
    headers = connection.getresponse().headers
    connection.close()
    policy = headers["Content-Security-Policy"]
    assert policy == "frame-ancestors 'none'; base-uri 'none'; form-action 'self'"
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert headers["Cross-Origin-Resource-Policy"] == "same-origin"


def test_a_website_gets_nothing_out_of_a_browser(
    browser: Browser, server: Server, tmp_path: Path
) -> None:
    """A foreign page sends requests in every way that it can, with the token or without."""
    website = tmp_path / "website.html"
    website.write_text("<title>a website</title>", encoding="utf-8")
    context = browser.new_context()  # not a watched page: what is refused is complained of
    page = context.new_page()
    page.goto(website.as_uri())
    statuses: list[int] = []
    page.on("response", lambda answer: statuses.append(answer.status))
    script = """async ([plain, secret]) => {
      const tried = [];
      for (const url of [plain, secret])
        for (const mode of ["cors", "no-cors"])
          tried.push(await fetch(url, { mode }).then((a) => a.text(), () => ""));
      const frame = document.createElement("iframe");
      const framed = new Promise((done) => { frame.onload = done; });
      frame.src = secret;
      document.body.append(frame);
      await framed;
      return tried.join("");
    }"""
    told = page.evaluate(script, [f"{server.base}/", server.at("/")])
    assert told == ""
    assert statuses
    assert set(statuses) == {403}
    # A link that a person follows leads in, wherever it is.
    page.evaluate("url => { location.href = url; }", server.at("/"))
    expect(page.locator("tr[data-run]")).to_have_count(2)
    context.close()
