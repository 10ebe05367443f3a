"""The annotator's page in a real browser: what is typed, what is shown, what is saved to disk."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Literal

import pytest
from openpyxl.styles import Font, PatternFill
from playwright.sync_api import APIResponse, Browser, Page, Route, expect

from judge.annotate.web.server import check_grid
from judge.errors import UsageError
from judge.suites import load_suite
from tests.conftest import REPOSITORY
from tests.e2e.conftest import require_backend
from tests.forked_command import ForkedCommand
from tests.unit.annotate.books import make_book, table, values
from tests.unit.annotate.conftest import suite

__all__ = ["suite"]

pytestmark = pytest.mark.browser

SLOW_MS = 60_000

DOUBLES = """
import openpyxl
book = openpyxl.load_workbook("/mnt/data/input/1_7_input.xlsx")
sheet = book.active
for row in range(2, sheet.max_row + 1):
    value = sheet.cell(row, 1).value
    if isinstance(value, (int, float)):
        sheet.cell(row, 2).value = {}
book.save("/mnt/data/output/1_7_output.xlsx")
"""


class Server:
    """Runs ``judge annotate`` as a separate process."""

    def __init__(self, command: ForkedCommand, *arguments: object) -> None:
        self.process = command.start(
            ["annotate", *map(str, arguments), "--no-browser"],
            cwd=REPOSITORY,
            environment={**os.environ, "PYTHONUNBUFFERED": "1"},
            imports=["judge.cli.annotate", "judge.annotate.web.server"],
        )
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        found = re.search(r"http://127\.0\.0\.1:\d+/\?token=\S+", line)
        assert found, line + self.process.stdout.read()
        self.address = found[0]

    def crash(self) -> None:
        self.process.kill()
        self.process.wait(timeout=120)

    def end(self) -> str:
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)
        assert self.process.stdout is not None
        said = self.process.stdout.read()
        self.process.wait(timeout=120)
        return said


Start = Callable[..., Server]
Judge = Callable[..., subprocess.CompletedProcess[str]]
Scheme = Literal["light", "dark"]


@pytest.fixture(scope="module")
def able() -> None:
    """Skips the test if the machine lacks the page's grid, or a sandbox for the engines."""
    try:
        check_grid()
    except UsageError as error:
        pytest.skip(error.message)
    require_backend("auto")


@pytest.fixture
def start(able: None, forked_command: ForkedCommand) -> Iterator[Start]:
    started: list[Server] = []

    def begin(*arguments: object) -> Server:
        started.append(Server(forked_command, *arguments))
        return started[-1]

    yield begin
    for server in started:
        server.end()


@pytest.fixture
def open_page(browser: Browser) -> Iterator[Callable[[Server], Page]]:
    """Opens the page of a server; an error in its scripts fails the test."""
    errors: list[str] = []
    contexts = []

    def show(
        server: Server, width: int = 1500, height: int = 900, scheme: Scheme = "light"
    ) -> Page:
        context = browser.new_context(
            viewport={"width": width, "height": height}, color_scheme=scheme
        )
        contexts.append(context)
        page = context.new_page()
        page.on("pageerror", lambda error: errors.append(str(error)))
        # Waits end as soon as they can; a machine that is busy must not fail what is only slow.
        page.set_default_timeout(SLOW_MS)
        expect.set_options(timeout=SLOW_MS)
        page.goto(server.address)
        page.wait_for_selector("#gold-grid td[data-cell='A1']", state="attached")
        return page

    yield show
    for context in contexts:
        context.close()
    assert errors == []


OpenPage = Callable[..., Page]


def programs(folder: Path, **codes: str) -> list[object]:
    """Returns solutions for the small suite's task, as command-line options."""
    options: list[object] = []
    for name, code in codes.items():
        path = folder / f"{name}.py"
        path.write_text(DOUBLES.format(code))
        options += ["--reference", path]
    return options


@pytest.fixture
def references(tmp_path: Path) -> list[object]:
    """Returns two right solutions."""
    return programs(tmp_path, twice="value * 2", sum="value + value")


def put(page: Page, cell: str, text: str, grid: str = "input") -> None:
    page.locator(f"#{grid}-grid td[data-cell='{cell}']").dblclick()
    expect(page.locator(f"#{grid}-grid td.editor input")).to_be_focused()
    page.keyboard.press("Control+A")
    page.keyboard.type(text)
    page.keyboard.press("Enter")


def shows(page: Page, cell: str, text: str, grid: str = "input") -> None:
    expect(page.locator(f"#{grid}-grid td[data-cell='{cell}']")).to_have_text(text)


def wait_kept(page: Page, said: str = r"draft of case \d+ kept") -> None:
    expect(page.locator("#saved")).to_have_text(re.compile(said), timeout=SLOW_MS)


def save(page: Page, note: str = "") -> None:
    expect(page.locator("#save")).to_be_enabled(timeout=SLOW_MS)
    page.click("#save")
    page.keyboard.type(note)  # the dialog has the keyboard, not the grid
    expect(page.locator("#note")).to_have_value(note)
    page.click("#really")
    wait_kept(page, r"saved as case \d+")


@pytest.fixture
def judge(forked_command: ForkedCommand) -> Judge:
    """Runs a command to its end."""
    return lambda *arguments: forked_command.run([*map(str, arguments)], cwd=REPOSITORY)


# -- a published task -----------------------------------------------------------------------------


@pytest.mark.data
@pytest.mark.slow
def test_two_cells_of_a_published_task_make_a_case_that_is_graded(
    judge_data: Path, tmp_path: Path, start: Start, open_page: OpenPage, judge: Judge
) -> None:
    published = judge_data / "spreadsheetbench_912_dev300"
    task_id = "289-3"
    root = tmp_path / "suite"
    shutil.copytree(published / "spreadsheet" / task_id, root / "spreadsheet" / task_id)
    records = json.loads((published / "dataset.json").read_text())
    (root / "dataset.json").write_text(json.dumps([x for x in records if x["id"] == task_id]))
    solution = tmp_path / "solution.jsonl"
    lines = (judge_data / "model_solutions" / "single_claude_dev100.jsonl").read_text().splitlines()
    solution.write_text("".join(f"{x}\n" for x in lines if json.loads(x)["id"] == task_id))
    before = {path.name: path.read_bytes() for path in (root / "spreadsheet" / task_id).iterdir()}

    page = open_page(start(root, task_id, "--author", "Ann", "--reference", solution))
    assert "remove leading and trailing spaces" in page.locator("#instruction").inner_text()
    put(page, "B3", "  AA   777 ")
    put(page, "C5", "x  y")
    wait_kept(page)
    expect(page.locator("#moved li")).to_have_text(["B3 AA-101 → AA 777", "C5 MM-FR1 → x y"])
    shows(page, "B3", "AA 777", "gold")
    save(page, "blanks within and around")

    cases = load_suite(root).task(task_id).cases
    assert [case.number for case in cases] == [1, 2, 3, 4]
    for path in (root / "spreadsheet" / task_id).iterdir():
        assert path.name in {cases[3].input_path.name, cases[3].gold_path.name} or (
            path.read_bytes() == before[path.name]
        )
    assert values(cases[3].input_path.read_bytes(), "MAIN")[3, 2] == "  AA   777 "
    verified = judge("verify", root)
    assert verified.returncode == 0, verified.stdout + verified.stderr
    assert "4 of 4 cases" in verified.stdout
    scored = judge("score", solution, "--dataset", root, "--out", tmp_path / "run")
    assert scored.returncode == 0, scored.stdout + scored.stderr
    report = json.loads((tmp_path / "run" / "report.json").read_text())
    assert report["tasks"][0]["test_case_results"] == ["AC"] * 4


# -- what is shown as kept is kept ----------------------------------------------------------------


def test_a_server_that_dies_takes_nothing_with_it(
    suite: Path, start: Start, open_page: OpenPage, references: list[object]
) -> None:
    server = start(suite, "7", "--author", "Ann", *references)
    page = open_page(server)
    put(page, "A3", "50")
    expect(page.locator("#saved")).to_have_text(re.compile("draft.* kept"))
    server.crash()
    put(page, "A4", "60")
    # The page does not claim what it cannot know.
    expect(page.locator("#saved")).to_have_text("not kept: the server is gone")
    expect(page.locator("#save")).to_be_disabled()

    again = open_page(start(suite, "7", "--author", "Ann", *references))
    expect(again.locator("#alert")).to_contain_text("was resumed; number of changes: 1")
    expect(again.locator("#edits li")).to_have_text(["'Sheet'!A3 = 50"])
    shows(again, "A3", "50")
    shows(again, "A4", "3")
    wait_kept(again)
    shows(again, "B3", "100", "gold")
    save(again)
    assert values((suite / "spreadsheet/7/4_7_input.xlsx").read_bytes())[3, 1] == 50


def test_a_page_that_is_closed_takes_nothing_with_it(
    suite: Path, start: Start, open_page: OpenPage
) -> None:
    server = start(suite, "7", "--author", "Ann")
    page = open_page(server)
    put(page, "A3", "50")
    put(page, "A4", "=A2+A3")
    wait_kept(page)
    page.close()
    again = open_page(server)
    expect(again.locator("#edits li")).to_have_text(["'Sheet'!A3 = 50", "'Sheet'!A4 = =A2+A3"])
    wait_kept(again)
    shows(again, "A4", "51")


def test_two_annotators_on_one_task_keep_both_their_works(
    suite: Path, start: Start, open_page: OpenPage, references: list[object]
) -> None:
    ann = open_page(start(suite, "7", "--author", "Ann", *references))
    bob = open_page(start(suite, "7", "--author", "Bob", *references))
    put(ann, "A3", "50")
    put(bob, "A4", "60")
    wait_kept(ann)
    wait_kept(bob)
    save(bob)
    save(ann)
    made = [values(case.input_path.read_bytes()) for case in load_suite(suite).task(7).cases[3:]]
    assert [(each[3, 1], each[4, 1]) for each in made] == [(50, 3), (2, 60)]
    log = [json.loads(x) for x in (suite / "annotations/records.jsonl").read_text().splitlines()]
    assert {x["author"]: x["case"] for x in log if x["state"] == "saving"} == {"Ann": 4, "Bob": 5}


def test_two_windows_of_one_annotator(suite: Path, start: Start, open_page: OpenPage) -> None:
    server = start(suite, "7", "--author", "Ann")
    first, second = open_page(server), open_page(server)
    put(first, "A3", "50")
    wait_kept(first)
    put(second, "A3", "51")
    expect(second.locator("#alert")).to_contain_text("changed in another window")
    # It sees what the other window did, and nothing was overwritten.
    expect(second.locator("#edits li")).to_have_text(["'Sheet'!A3 = 50"])
    shows(second, "A3", "50")


# -- the grid -------------------------------------------------------------------------------------


def test_the_ways_to_change_cells(suite: Path, start: Start, open_page: OpenPage) -> None:
    page = open_page(start(suite, "7", "--author", "Ann"))
    edits = page.locator("#edits li")
    # the formula bar
    page.locator("#input-grid td[data-cell='A2']").click()
    expect(page.locator("#formula")).to_have_value("1")
    page.click("#formula")
    page.keyboard.press("Control+A")
    page.keyboard.type("'007")
    page.keyboard.press("Enter")
    expect(edits).to_have_text(["'Sheet'!A2 = '007"])
    shows(page, "A2", "007")
    # an editor that is opened and closed changes nothing
    page.locator("#input-grid td[data-cell='A2']").dblclick()
    expect(page.locator("#input-grid td.editor input")).to_have_value("'007")
    page.keyboard.press("Enter")
    shows(page, "A2", "007")
    # typing over a cell, and Delete
    page.locator("#input-grid td[data-cell='A3']").click()
    page.keyboard.type("8")
    page.keyboard.press("Enter")
    expect(edits).to_have_count(2)
    page.locator("#input-grid td[data-cell='A4']").click()
    page.keyboard.press("Delete")
    expect(edits).to_have_text(["'Sheet'!A2 = '007", "'Sheet'!A3 = 8", "'Sheet'!A4 = (blank)"])
    # undo
    page.keyboard.press("Control+z")
    expect(edits).to_have_count(2)
    shows(page, "A4", "3")
    # rows
    page.locator("#input-grid td[data-cell='A3']").click()
    page.click("#insert-row")
    expect(edits).to_have_count(3)
    expect(page.locator("#input-grid td[data-cell='A4']")).to_have_text("8")
    page.locator("#input-grid td[data-cell='A3']").click()
    page.click("#delete-row")
    expect(page.locator("#input-grid td[data-cell='A3']")).to_have_text("8")
    # a background
    page.locator("#input-grid td[data-cell='A5']").click()
    page.click("#apply-fill")
    expect(page.locator("#input-grid td[data-cell='A5']")).to_have_css(
        "background-color", "rgb(255, 255, 0)"
    )
    expect(page.locator("#alert")).to_be_hidden()


def test_a_block_is_pasted_in_one_change(suite: Path, start: Start, open_page: OpenPage) -> None:
    page = open_page(start(suite, "7", "--author", "Ann"))
    page.locator("#input-grid td[data-cell='A2']").click()
    lines = "\n".join(f"{number}\tx" for number in range(11, 41))
    page.evaluate(
        """(lines) => {
          const data = new DataTransfer();
          data.setData("text/plain", lines);
          document.activeElement.dispatchEvent(
            new ClipboardEvent("paste", { clipboardData: data, bubbles: true, cancelable: true }));
        }""",
        lines,
    )
    # More lines than the grid had rows.
    expect(page.locator("#edits li")).to_have_count(60)
    shows(page, "A31", "40")
    page.click("#undo")
    expect(page.locator("#edits li")).to_have_text(["none yet: type into a cell of the input"])


def test_a_long_sheet_is_looked_at_in_parts(suite: Path, start: Start, open_page: OpenPage) -> None:
    folder = suite / "spreadsheet" / "7"
    rows = [("number", "double"), *((number, None) for number in range(2, 601))]
    (folder / "1_7_input.xlsx").write_bytes(table(*rows))
    page = open_page(start(suite, "7", "--author", "Ann"))
    expect(page.locator("#input-grid .pager")).to_contain_text("200 of 605")
    page.fill("#cell-name", "a512")
    page.press("#cell-name", "Enter")
    shows(page, "A512", "512")
    expect(page.locator("#formula")).to_have_value("512")
    put(page, "A513", "7")
    expect(page.locator("#edits li")).to_have_text(["'Sheet'!A513 = 7"])
    page.locator("#input-grid .pager button").first.click()
    shows(page, "A310", "310")


def test_the_gold_by_hand(suite: Path, start: Start, open_page: OpenPage) -> None:
    page = open_page(start(suite, "7", "--author", "Ann"))
    put(page, "A3", "50")
    wait_kept(page)
    expect(page.locator("#rules li.error")).to_contain_text("no source gives the answer")
    expect(page.locator("#save")).to_be_disabled()
    page.check("#by-hand")
    put(page, "B3", "100", grid="gold")
    wait_kept(page)
    expect(page.locator("#moved li")).to_have_text(["B3 4 → 100"])
    save(page, "a larger number")
    assert values((suite / "spreadsheet/7/4_7_answer.xlsx").read_bytes())[3, 2] == 100
    log = (suite / "annotations/records.jsonl").read_text().splitlines()
    assert json.loads(log[0])["note"] == "a larger number"


def test_what_is_being_typed_stays_when_an_answer_comes(
    suite: Path, start: Start, open_page: OpenPage, references: list[object]
) -> None:
    page = open_page(start(suite, "7", "--author", "Ann", *references))
    put(page, "A3", "50")
    page.locator("#input-grid td[data-cell='A4']").dblclick()
    page.keyboard.press("Control+A")
    page.keyboard.type("6")
    # The gold is computed meanwhile, and both grids would be drawn anew.
    wait_kept(page)
    page.keyboard.type("0")
    page.keyboard.press("Enter")
    shows(page, "A4", "60")
    wait_kept(page)
    expect(page.locator("#moved li")).to_have_text(["B3 4 → 100", "B4 6 → 120"])
    # What a cell is called changes with a row that is taken back, so that its editor closes.
    page.locator("#input-grid td[data-cell='A2']").click()
    page.click("#insert-row")
    expect(page.locator("#edits li")).to_have_count(3)
    page.locator("#input-grid td[data-cell='A3']").dblclick()
    page.evaluate("document.querySelector('#undo').click()")
    expect(page.locator("#edits li")).to_have_count(2)
    expect(page.locator("#input-grid .jss_input, #input-grid td.editor")).to_have_count(0)
    shows(page, "A3", "50")
    # in the formula bar
    page.locator("#input-grid td[data-cell='A4']").click()
    page.click("#formula")
    page.keyboard.press("Control+A")
    page.keyboard.type("7")
    wait_kept(page)
    page.keyboard.type("0")
    page.keyboard.press("Enter")
    shows(page, "A4", "70")


def test_a_window_that_comes_late_is_not_drawn_over_a_newer_one(
    suite: Path, start: Start, open_page: OpenPage
) -> None:
    page = open_page(start(suite, "7", "--author", "Ann"))
    computed: list[Route] = []
    late: list[tuple[Route, APIResponse]] = []

    def hold_window(route: Route) -> None:
        if computed and len(late) < 2:
            late.append((route, route.fetch()))
        else:
            route.continue_()

    def compute(route: Route) -> None:
        computed.append(route)
        if len(computed) == 1:  # the others are not answered, since they would draw once more
            route.continue_()

    page.route("**/api/window?*", hold_window)
    page.route("**/api/compute", compute)
    put(page, "A3", "50")
    while len(late) < 2:
        page.wait_for_timeout(20)
    page.locator("#input-grid td[data-cell='A3']").click()
    page.click("#insert-row")
    shows(page, "A4", "50")
    for route, response in late:
        route.fulfill(response=response)
    page.evaluate("fetch('/static/app.css').then((answer) => answer.text())")
    shows(page, "A3", "")
    shows(page, "A4", "50")


def test_where_references_disagree(
    suite: Path, tmp_path: Path, start: Start, open_page: OpenPage
) -> None:
    sources = programs(tmp_path, right="value * 2", wrong="min(value * 2, 60)")
    page = open_page(start(suite, "7", "--author", "Ann", *sources))
    put(page, "A3", "50")
    wait_kept(page)
    expect(page.locator("#gold-how")).to_have_text("by right.py")
    expect(page.locator("#gold-grid td.differs")).to_have_text(["100"])
    expect(page.locator("#rules")).to_contain_text("the sources disagree")
    expect(page.locator("#save")).to_be_disabled()
    page.check("#by-hand")  # a cell that a person changes decides
    for text in ("101", "100"):
        put(page, "B3", text, grid="gold")
        shows(page, "B3", text, grid="gold")
        wait_kept(page)
    save(page)
    record = json.loads((suite / "annotations/records.jsonl").read_text().splitlines()[0])
    assert (record["gold_by"], record["gold_disagreeing"]) == (["right.py"], ["wrong.py"])


# -- how it looks ---------------------------------------------------------------------------------

CONTRAST = """(selector) => {
  const canvas = Object.assign(document.createElement("canvas"), { width: 1, height: 1 });
  const brush = canvas.getContext("2d", { willReadFrequently: true });
  const shown = (colour) => {
    brush.clearRect(0, 0, 1, 1);
    brush.fillStyle = colour;
    brush.fillRect(0, 0, 1, 1);
    return [...brush.getImageData(0, 0, 1, 1).data];
  };
  const light = (colour) => colour.slice(0, 3)
    .map((part) => (part /= 255) <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4)
    .reduce((sum, part, index) => sum + part * [0.2126, 0.7152, 0.0722][index], 0);
  const element = document.querySelector(selector);
  let behind = element;
  while (shown(getComputedStyle(behind).backgroundColor)[3] < 255) behind = behind.parentElement;
  const ground = shown(getComputedStyle(behind).backgroundColor);
  const [low, high] = [light(ground), light(shown(getComputedStyle(element).color))]
    .sort((a, b) => a - b);
  return { ratio: (high + 0.05) / (low + 0.05), ground: ground.slice(0, 3) };
}"""
"""The contrast between text and its background (WCAG 2.1, 1.4.3), and the two colours."""


def coloured(book: object) -> None:
    """Returns the cells whose text or background has its own colour."""
    sheet = book.active  # type: ignore[attr-defined]
    sheet.title = "Sheet"
    sheet["A1"], sheet["A2"], sheet["A3"], sheet["A4"] = "plain", "ink", "fill", "both"
    sheet["A2"].font = Font(color="000080")
    sheet["A3"].fill = PatternFill("solid", fgColor="FFFF00")
    sheet["A4"].font = Font(color="FFFFFF")
    sheet["A4"].fill = PatternFill("solid", fgColor="1F4E78")


@pytest.mark.parametrize(("scheme", "paper"), [("light", [253, 253, 252]), ("dark", [22, 24, 27])])
def test_the_page_has_the_colours_of_the_reports_and_all_of_it_can_be_read(
    suite: Path, start: Start, open_page: OpenPage, scheme: Scheme, paper: list[int]
) -> None:
    folder = suite / "spreadsheet" / "7"
    for name in ("1_7_input.xlsx", "1_7_answer.xlsx"):
        (folder / name).write_bytes(make_book(coloured))
    page = open_page(start(suite, "7", "--author", "Ann"), scheme=scheme)
    cell = "#input-grid td[data-cell='{}']".format
    for selector, ground in (
        ("#instruction", paper),
        ("#saved", paper),
        (cell("A1"), paper),
        (cell("A2"), paper),
        # A background is shown as it is, with the letters that a spreadsheet program shows on it.
        (cell("A3"), [255, 255, 0]),
        (cell("A4"), [31, 78, 120]),
        ("#input-grid thead td:nth-child(3)", None),
        ("#input-tabs button", paper),
        ("#edits li", paper),
    ):
        expect(page.locator(selector).first).to_be_visible()
        found = page.evaluate(CONTRAST, selector)
        assert found["ratio"] >= 4.5, (selector, found)
        assert ground is None or found["ground"] == ground, selector


def test_a_case_is_made_on_a_telephone(
    suite: Path, start: Start, open_page: OpenPage, references: list[object]
) -> None:
    page = open_page(start(suite, "7", "--author", "Ann", *references), width=390, height=844)

    def nothing_stands_out() -> bool:
        return bool(page.evaluate("document.documentElement.scrollWidth <= window.innerWidth"))

    assert nothing_stands_out()
    expect(page.locator("#gold-grid")).to_be_hidden()
    page.locator("#input-grid td[data-cell='A3']").click()
    page.fill("#formula", "50")
    page.press("#formula", "Enter")
    wait_kept(page)
    page.click("#panes [data-pane='changes']")
    expect(page.locator("#input-grid")).to_be_hidden()
    expect(page.locator("#edits li")).to_have_text(["'Sheet'!A3 = 50"])
    assert nothing_stands_out()
    page.click("#panes [data-pane='gold']")
    expect(page.locator("#gold-grid td[data-cell='B3']")).to_be_in_viewport()
    shows(page, "B3", "100", "gold")
    assert nothing_stands_out()
    expect(page.locator("#save")).to_be_in_viewport(ratio=1)
    save(page, "a larger number")
    assert values((suite / "spreadsheet/7/4_7_input.xlsx").read_bytes())[3, 1] == 50


def test_the_content_of_a_workbook_is_shown_as_text(
    suite: Path, start: Start, open_page: OpenPage
) -> None:
    hostile = '<img src=x onerror="document.title=1"><script>document.title=1</script>'

    def fill(book: object) -> None:
        sheet = book.active  # type: ignore[attr-defined]
        sheet.title = "Sheet"
        sheet["A1"], sheet["A2"], sheet["B2"] = hostile, 1, 2

    folder = suite / "spreadsheet" / "7"
    for name in ("1_7_input.xlsx", "1_7_answer.xlsx"):
        (folder / name).write_bytes(make_book(fill))
    records = json.loads((suite / "dataset.json").read_text())
    records[0]["instruction"] = hostile
    (suite / "dataset.json").write_text(json.dumps(records))
    page = open_page(start(suite, "7", "--author", hostile))
    shows(page, "A1", hostile)
    put(page, "A2", hostile)
    wait_kept(page)
    assert page.locator("#instruction").inner_text() == hostile
    expect(page.locator("#edits li")).to_contain_text(hostile)
    assert page.locator("img, main script").count() == 0
    assert page.title().startswith("task 7")
