"""Ten suspects are decided by keyboard in a real browser; the corrections change the score."""

from __future__ import annotations

import hashlib
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from playwright.sync_api import Page, expect

from judge.api.rejudging import rejudge
from judge.errors import SuiteError
from judge.suites.corrections import load_corrections
from judge.suspects.decisions import read_decisions
from judge.suspects.model import (
    Audit,
    CaseFiles,
    Certainty,
    Evidence,
    EvidenceFile,
    Suspect,
    write_suspects,
)
from tests.browser.conftest import Watched
from tests.conftest import REPOSITORY
from tests.forked_command import ForkedCommand
from tests.unit.report.runs import TABLE, Solution, TaskSpec, book, make_run, make_suite

pytestmark = pytest.mark.browser

GOLD = book((("Name", "Amount"), ("Ann", 1), ("Bob", 7), ("Cyd", 3)))
"""B3 is 7 in the gold and 2 in the input: every output that keeps the input's value fails."""
TASKS = tuple(TaskSpec(str(number), cases=1, gold=GOLD) for number in range(1, 11))
JUDGE = (sys.executable, "-c", "from judge.cli.main import main; main()")


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A suite with ten faulty golds, a run of ten right answers, and the suspects."""
    root = tmp_path_factory.mktemp("review")
    suite = make_suite(root / "suite", TASKS)
    right = book(TABLE)
    solutions = [Solution(each.id, ("WA",), output=right) for each in TASKS]
    make_run(root / "run", suite, solutions)
    suspects = tuple(
        Suspect(
            each.id,
            1,
            "contradicted-input",
            Certainty.SURE,
            "the gold's B3 is 7, the input's is 2",
            "B3 is in the answer",
            (
                Evidence(EvidenceFile.GOLD, "Sheet1", "B3", expected=2, found=7),
                Evidence(EvidenceFile.INPUT, "Sheet1", "B3", expected=2, found=2),
            ),
        )
        for each in TASKS
    )
    files = tuple(CaseFiles(each.id, 1, sha256(each.input), sha256(each.gold)) for each in TASKS)
    audit = Audit("suite", suite.format, suite.digest, 10, 10, suspects, files, ())
    write_suspects(root / "suspects.json", audit)
    return root


@pytest.fixture(scope="module")
def address(folder: Path) -> Iterator[str]:
    arguments = ["verify", "suite", "--review", "--suspects", "suspects.json"]
    server = subprocess.Popen(
        [*JUDGE, *arguments, "--submissions", "run", "--by", "Ann", "--no-browser"],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        cwd=folder,
        env={**os.environ, "PYTHONUNBUFFERED": "1", "PYTHONPATH": str(REPOSITORY)},
    )
    assert server.stdout is not None
    line = server.stdout.readline()
    found = re.search(r"http://127\.0\.0\.1:\d+/\?token=\S+", line)
    assert found, line + server.stdout.read()
    yield found[0]
    server.send_signal(signal.SIGINT)
    assert "corrections in suspects.corrections.yaml: 6" in server.stdout.read()
    server.wait(timeout=120)


def decide(page: Page, key: str, reason: str, evidence: str = "", right: str = "") -> None:
    """Decides one suspect with the keyboard alone."""
    page.keyboard.press(key)
    if right:  # f leads to the cells
        page.keyboard.type(right)
        for _ in range(5):
            page.keyboard.press("Tab")
    page.keyboard.type(reason)
    page.keyboard.press("Tab")
    page.keyboard.type(evidence)
    page.keyboard.press("Control+Enter")


def test_ten_suspects_are_decided_by_keyboard(
    folder: Path, address: str, watched: Watched, forked_command: ForkedCommand
) -> None:
    page = watched.page
    page.goto(address)
    heading, progress = page.locator("h1"), page.locator("#progress")
    expect(heading).to_have_text("Task 1, case 1")
    expect(page.locator(".cause")).to_have_text("the gold's B3 is 7, the input's is 2")
    expect(page.locator("[data-pane=gold] .cell.evidence")).to_contain_text("7")
    expect(page.locator("[data-pane=input] .cell.evidence")).to_have_text("2")
    expect(page.locator("[data-pane=output] .cell.differs")).to_have_text(re.compile("2"))
    _pictures(page)
    for file, data in (("input", TASKS[0].input), ("gold", TASKS[0].gold)):
        with page.expect_download() as download:
            page.locator(f"[data-file={file}]").click()
        assert download.value.path().read_bytes() == data

    page.keyboard.press("j")
    expect(heading).to_have_text("Task 2, case 1")
    page.keyboard.press("k")
    expect(heading).to_have_text("Task 1, case 1")

    page.keyboard.press("e")
    expect(page.locator("textarea[name=cells]")).to_have_value("'Sheet1'!B3=2")
    page.locator("textarea[name=cells]").fill("")
    page.keyboard.press("Escape")

    # A value that the gold holds already is refused, and nothing is kept.
    with page.expect_console_message():  # the browser notes the status of the refusal
        decide(page, "f", "amounts are kept", "B3 is 7", right="B3=7")
    expect(page.locator("#alarm")).to_contain_text("already holds this value")
    assert read_decisions(folder / "suspects.decisions.jsonl") == ()
    assert len(watched.problems) == 1
    watched.problems.clear()
    page.locator("textarea[name=cells]").fill("")
    page.keyboard.press("Escape")
    page.locator("textarea[name=reason]").fill("")
    page.locator("textarea[name=evidence]").fill("")
    page.keyboard.press("Escape")

    for number in range(1, 6):
        expect(heading).to_have_text(f"Task {number}, case 1")
        decide(page, "f", "amounts are kept", "B3 is 7, of the input 2", right="Sheet1!B3=2")
        expect(progress).to_contain_text(f"{number} of 10 decided, {number} correction")
        # What the page calls decided is on the disk.
        assert len(read_decisions(folder / "suspects.decisions.jsonl")) == number
    for number, (key, reason) in enumerate(
        [("g", "seven is meant"), ("g", "seven is meant"), ("u", "two readings")], start=6
    ):
        expect(heading).to_have_text(f"Task {number}, case 1")
        decide(page, key, reason)
    expect(heading).to_have_text("Task 9, case 1")
    page.keyboard.press("f")
    page.locator("input[name=task_left_out]").focus()
    page.keyboard.press("Space")
    page.keyboard.press("Tab")
    page.keyboard.type("there is no question")
    page.keyboard.press("Tab")
    page.keyboard.type("all golds are alike")
    page.keyboard.press("Control+Enter")
    expect(heading).to_have_text("Task 10, case 1")
    decide(page, "u", "two readings")
    expect(progress).to_have_text("Ann: 10 of 10 decided, 6 corrections")

    _applied(folder, forked_command)

    # Another start of the page has everything: a decision can be changed, or taken back.
    page.reload()
    expect(progress).to_have_text("Ann: 10 of 10 decided, 6 corrections")
    page.locator("#jump").select_option("0")
    expect(page.locator("textarea[name=cells]")).to_have_value("'Sheet1'!B3=2")
    page.locator("#withdraw").click()
    expect(progress).to_have_text("Ann: 9 of 10 decided, 5 corrections")
    expect(page.locator("#withdraw")).to_be_hidden()
    decide(page, "f", "amounts are kept", "B3 is 7, of the input 2", right="B3=2")
    expect(progress).to_have_text("Ann: 10 of 10 decided, 6 corrections")


def _applied(folder: Path, forked_command: ForkedCommand) -> None:
    """The written corrections change the score as announced."""
    path = folder / "suspects.corrections.yaml"
    corrections = load_corrections(path)
    assert [(each.task, each.field) for each in corrections] == [
        *((str(number), "gold") for number in range(1, 6)),
        ("9", "exclude"),
    ]
    assert {each.by for each in corrections} == {"Ann"}
    suspects = folder / "suspects.json"
    found = rejudge(folder / "run", corrections=path, suspects=suspects, recalc="never")
    assert found.before["overall"]["hard_restriction"] == 0
    assert found.after["overall"]["hard_restriction"] == 5 / 9
    assert found.after["overall"]["verdicts"] == {"AC": 5, "WA": 4, "BT": 1}
    # Set aside are what is undecided; what is fine, corrected or left out is not.
    without = found.after["suspects"]["without"]["sure"]
    assert (without["set_aside"], without["tasks"], without["hard_restriction"]) == (2, 7, 5 / 7)
    # A file that has changed since is refused, with both hashes.
    gold = folder / "suite" / "spreadsheet" / "1" / "1_1_answer.xlsx"
    gold.write_bytes(book(TABLE))
    document = yaml.safe_load(path.read_text())
    document["corrections"][0]["cells"][0]["now"] = 5
    changed = folder / "changed.yaml"
    changed.write_text(yaml.safe_dump(document))
    try:
        done = forked_command.run(
            ["verify", "suite", "--corrections-from", "changed.yaml", "--recalc", "never"],
            cwd=folder,
        )
    finally:
        gold.write_bytes(GOLD)
    assert done.returncode == SuiteError("").exit_code
    for part in (str(gold), sha256(book(TABLE)), sha256(GOLD), "review"):
        assert part in done.stderr.replace("\n", " ")


def _pictures(page: Page) -> None:
    """Nothing is wider than the page, even a narrow one; pictures are taken if requested."""
    wanted = os.environ.get("JUDGE_PICTURES")
    for width in (390, 1280):
        page.set_viewport_size({"width": width, "height": 900})
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        for scheme in ("light", "dark") if wanted else ():
            page.emulate_media(color_scheme=scheme)
            page.screenshot(
                path=Path(wanted or "") / f"review-{width}-{scheme}.png", full_page=True
            )
