"""``judge view``: what it shows to whom, and how much work one request can cause."""

from __future__ import annotations

import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from judge.local_page import LocalPage
from judge.report import pairing, view
from judge.report.load import load_run
from judge.report.paired import compare_pair
from judge.report.pairing import compare_loaded
from judge.report.view import MAX_COMPARED, ViewPage
from tests.browser.made_run import few_tasks, make_run, make_suite
from tests.unit.serving import answer_of, ask, begin, served

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two runs on one suite."""
    root = tmp_path_factory.mktemp("view")
    tasks = few_tasks()[:2]
    make_suite(root / "suite", tasks)
    make_run(root / "results" / "one", root / "suite", tasks)
    make_run(root / "results" / "two", root / "suite", tasks, profile="strict")
    return root / "results"


@pytest.fixture
def page(results: Path) -> Iterator[LocalPage]:
    with served(ViewPage(results)) as page:
        yield page


@pytest.mark.parametrize(
    "path",
    [
        "/",
        "/compare?run=one&run=two",
        "/runs/one/",
        "/runs/one/report.json",
        "/runs/one/pages/0",
        "/progress.json",
        "/runs/nothing/",
    ],
)
def test_nothing_is_given_to_one_without_the_token(page: LocalPage, path: str) -> None:
    """Neither to another user of the machine nor to a website whose page sends requests."""
    joined = f"{path}{'&' if '?' in path else '?'}token="
    for given in (path, f"{joined}guess"):
        status, _, body = answer_of(begin(page, "GET", given))
        assert status == 403
        assert b"one" not in body.replace(b"this server answers only to its own pages", b"")
        # A header is what scripts show, an address what people open: one is not the other.
    if path.endswith((".json", "0")):
        assert answer_of(begin(page, "GET", joined + page.token))[0] == 403
        assert ask(page, "GET", path)[0] == 200
    elif "nothing" not in path:
        assert ask(page, "GET", path)[0] == 403
        assert answer_of(begin(page, "GET", joined + page.token))[0] == 200


def test_every_link_and_request_of_a_page_shows_the_token(page: LocalPage) -> None:
    shown = 0
    for path in ("/?", "/compare?run=one&run=two&", "/runs/one/?"):
        html = ask(page, "GET", f"{path}token={page.token}")[2].decode()
        for given in re.findall(r'<a [^>]*href="(/[^"]*)"', html):
            shown += 1
            link = given.partition("#")[0]  # what follows it is never sent
            assert link.endswith(f"?token={page.token}")
            assert answer_of(begin(page, "GET", link))[0] == 200
        # No page of another server is linked from one that has the token in its address.
        assert not re.findall(r'(?:href|src|action)="(?:https?:)?//', html)
    assert shown >= 5


def count_loads(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    loaded: list[str] = []
    load = load_run

    def counted(path: Path, *given: Any, **named: Any) -> Any:
        loaded.append(path.name)
        return load(path, *given, **named)

    monkeypatch.setattr(view, "load_run", counted)
    return loaded


def test_a_run_that_is_named_often_is_one_run(
    page: LocalPage, monkeypatch: pytest.MonkeyPatch
) -> None:
    loaded = count_loads(monkeypatch)
    path = f"/compare?token={page.token}" + "&run=one" * 400
    status, _, body = ask(page, "GET", path)
    assert (status, b"give at least two runs" in body) == (400, True)
    assert loaded == ["one"]


def test_a_page_compares_so_many_runs_and_no_more(
    page: LocalPage, monkeypatch: pytest.MonkeyPatch
) -> None:
    loaded = count_loads(monkeypatch)
    names = "".join(f"&run={number}" for number in range(MAX_COMPARED + 1))
    status, _, body = ask(page, "GET", f"/compare?token={page.token}{names}")
    assert status == 400
    assert b"too many for one page" in body
    assert b"judge compare-runs" in body
    assert loaded == []


def test_a_comparison_is_made_once_as_long_as_nothing_changes(
    page: LocalPage, monkeypatch: pytest.MonkeyPatch
) -> None:
    loaded = count_loads(monkeypatch)
    path = f"/compare?token={page.token}&run=one&run=two"
    first, second = ask(page, "GET", path), ask(page, "GET", path)
    assert first[2] == second[2]
    assert loaded == ["one", "two"]


def test_a_comparison_ends_when_its_client_has_gone(
    results: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "many"
    for number in range(6):
        shutil.copytree(results / "one", folder / str(number))
    pairs: list[object] = []
    over: list[BaseException] = []

    with served(ViewPage(folder)) as page:
        names = "".join(f"&run={number}" for number in range(6))
        connection = begin(page, "GET", f"/compare?token={page.token}{names}")

        def counted(*given: Any) -> Any:
            pairs.append(given)
            if len(pairs) == 1:
                connection.close()
                while not all(job.given_up.is_set() for job in list(page._jobs.values())):
                    pass
            return compare_pair(*given)

        def noted(*given: Any, **named: Any) -> Any:
            try:
                return compare_loaded(*given, **named)
            except BaseException as error:
                over.append(error)
                raise

        monkeypatch.setattr(pairing, "compare_pair", counted)
        monkeypatch.setattr(view, "compare_loaded", noted)
        while not over:
            ask(page, "GET", "/progress.json")
    assert len(pairs) == 1  # of 15


_SLOW = """
import sys, threading
from judge.cli.main import main
from judge.report import view

def load_run(path, *given, **named):
    print("loading", flush=True)
    threading.Event().wait()

view.load_run = load_run
main(sys.argv[1:])
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_a_signal_ends_it_whatever_is_being_read(results: Path, number: signal.Signals) -> None:
    with subprocess.Popen(
        [sys.executable, "-u", "-c", _SLOW, "view", str(results), "--port", "0"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as child:
        assert child.stdout is not None
        found = re.search(r"http://127\.0\.0\.1:(\d+)/\?token=(\S+)", child.stdout.readline())
        assert found is not None
        page = ViewPage(results, port=int(found[1]))
        connection = begin(page, "GET", f"/runs/one/?token={found[2]}")
        while child.stdout.readline() != "loading\n":
            pass
        child.send_signal(number)
        _, said = child.communicate(timeout=240)
        connection.close()
    assert child.returncode == 128 + number
    assert "Traceback" not in said
