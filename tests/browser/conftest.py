"""A real Chromium, and pages that report what went wrong in them."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from axe_playwright_python.base import AXE_SCRIPT  # type: ignore[import-untyped]
from playwright.sync_api import Browser, Page, expect, sync_playwright

from benchmarks.report import NO_CHROMIUM, find_chromium
from judge.report.html import report_html
from tests.browser.made_run import few_tasks, make_run, make_suite

WAIT_MS = 30_000


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """The machine's Chromium.

    Of a module, since an event loop runs in this thread for as long as Playwright does, and tests
    elsewhere run loops of their own.
    """
    path = find_chromium()
    if path is None:
        pytest.skip(NO_CHROMIUM)
    # Its own sandbox does not work for root, as whom tests run in CI.
    arguments = ["--disable-dev-shm-usage", *(["--no-sandbox"] if os.geteuid() == 0 else [])]
    with sync_playwright() as playwright:
        launched = playwright.chromium.launch(executable_path=path, args=arguments)
        yield launched
        launched.close()


@dataclass
class Watched:
    """A page with its complaints and its requests."""

    page: Page
    problems: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)


@pytest.fixture(scope="module")
def window(browser: Browser) -> Iterator[Page]:
    """The page that all tests of a module share; one for each test would start more processes."""
    context = browser.new_context()
    yield context.new_page()
    context.close()


FORGET = """() => {
    try {
        localStorage.clear();
        sessionStorage.clear();
    } catch (error) {
        // a page without an address has none
    }
}"""


@pytest.fixture
def watched(window: Page) -> Iterator[Watched]:
    """A page of 1280 by 900 in its initial state; fails at the end if anything went wrong in it."""
    page, watched = window, Watched(window)
    page.set_viewport_size({"width": 1280, "height": 900})
    page.emulate_media(media="null", color_scheme="null")
    listeners: dict[Any, Callable[[Any], None]] = {
        "console": lambda message: _note(watched, message.type, message.text),
        "pageerror": lambda error: watched.problems.append(str(error)),
        "dialog": lambda dialog: watched.problems.append(f"dialog: {dialog.message}"),
        "request": lambda request: watched.requests.append(request.url),
    }
    for event, listener in listeners.items():
        page.on(event, listener)
    # Waits end as soon as they can; a machine that is busy must not fail what is only slow.
    page.set_default_timeout(WAIT_MS)
    expect.set_options(timeout=WAIT_MS)
    yield watched
    for event, listener in listeners.items():
        page.remove_listener(event, listener)
    page.evaluate(FORGET)
    page.context.clear_cookies()
    page.goto("about:blank")
    assert watched.problems == []


def _note(watched: Watched, kind: str, text: str) -> None:
    if kind in {"error", "warning"}:
        watched.problems.append(f"{kind}: {text}")


DRAWN = "() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))"
"""Waits for the second animation frame: by then, what observes the size of the page has run."""
FAULTS = """async within => {
  const found = await axe.run(within ?? document, {resultTypes: ["violations"]});
  return found.violations.map(fault => `${fault.id}: ${fault.help}: ` +
    JSON.stringify(fault.nodes.slice(0, 2).map(node => node.html.slice(0, 120))));
}"""


class Axe:
    """Looks for faults of accessibility in views of a page that is open; it is loaded once."""

    def __init__(self, page: Page) -> None:
        self._page = page
        page.evaluate(AXE_SCRIPT)

    def faults(self, within: str | None = None) -> list[str]:
        """Lists the faults of the page as it is drawn now, or those within a CSS selector."""
        self._page.evaluate(DRAWN)
        faults: list[str] = self._page.evaluate(FAULTS, within)
        return faults


@pytest.fixture(scope="session")
def run_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of a few tasks, one of each kind that a filter looks for."""
    root = tmp_path_factory.mktemp("few")
    tasks = few_tasks()
    make_suite(root / "suite", tasks)
    return make_run(root / "results" / "few", root / "suite", tasks, profile="strict")


@pytest.fixture(scope="session")
def report_file(run_folder: Path) -> Path:
    """The report on that run."""
    path = run_folder / "report.html"
    path.write_text(report_html(run_folder), encoding="utf-8")
    return path
