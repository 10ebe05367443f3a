"""Ids, names, values and file names of strangers cannot control the terminal."""

from __future__ import annotations

import contextlib
import io
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import pytest

import judge.api.resources
import judge.recalc.library
import judge.sandbox
from judge.api.rejudging import change_verdict
from judge.cli.main import COMMANDS, main
from judge.console import make_console, shown_streams, styled, visible
from judge.sandbox.contract import OutputStatus, RunResult, RunStatus
from judge.sandbox.scripted import ScriptedSandbox
from tests.episode_run import MadeEpisode, write_episode
from tests.unit.compare.cells.packages import Book, cell, sheet_data, simple
from tests.unit.recalc.test_cli import answers
from tests.unit.report.runs import TABLE, Solution, TaskSpec, book, make_run, make_suite

ATTACK = (
    "\x1b]0;owned\x07\x1b[2J\x9b31m\x7f\r\u202egnp\u2066\u200b\ufeff\u2028\U000e0041\udc9b[red]x[/]"
)
"""Title, clearing, C1, DEL, overwriting, bidi, zero width, line separator, tags, markup."""

FORBIDDEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\U000e0000-\U000e007f]"
)
NAME = ATTACK.replace("/", "").replace("\udc9b", "")


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder in which every name and text is hostile."""
    folder = tmp_path_factory.mktemp("hostile")
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setenv("JUDGE_CACHE", str(folder / "cache"))
        monkeypatch.chdir(folder)
        yield fill(folder / f"folder{NAME}")


def fill(hostile: Path) -> Path:
    hostile.mkdir()
    suite = make_suite(hostile / "suite", [TaskSpec("1", cases=1), TaskSpec("2", cases=1)])
    records = json.loads((hostile / "suite" / "dataset.json").read_text())
    for record in records:
        record["instruction"] = ATTACK.replace("\udc9b", "\\udc9b")
        record["category"] = ATTACK.replace("\udc9b", "")
    text = json.dumps(records)
    (hostile / "suite" / "dataset.json").write_text(text)
    suite = make_suite_again(hostile / "suite")
    difference = {"kind": "wrong_value", "sheet": ATTACK, "cell": "B2", "expected": ATTACK}
    compared = {
        "differences": [difference | {"actual": ATTACK, "detail": ATTACK}],
        "notes": [ATTACK],
        "engines": [ATTACK],
    }
    solutions = [
        Solution("1", (("WA", {"cause": ATTACK, "comparison": compared}),), output=book(TABLE)),
        Solution("2", (("BT", {"cause": ATTACK}),), record={"model": ATTACK, "label": ATTACK}),
    ]
    named: dict[str, Any] = {"model": ATTACK, "setting": ATTACK, "profile": "standard"}
    for name in ("one", "two"):
        make_run(hostile / name, suite, solutions, **named)
        change_verdict(hostile / name, "1", 0 + 1, "AC", by=ATTACK, why=ATTACK)
        write_episode(
            hostile / name, MadeEpisode("1", ended=NAME, setting=f"desktop/{NAME}", model=NAME)
        )
    (hostile / "gold.xlsx").write_bytes(simple({"A1": ATTACK.replace("\udc9b", "")[15:]}))
    (hostile / "output.xlsx").write_bytes(
        Book({"Sheet1": sheet_data(cell("A1", formula="CHAR(27)"))}).to_bytes()
    )
    (hostile / "text.xlsx").write_text(ATTACK.replace("\udc9b", ""))
    line = {"id": ATTACK, "solution": "pass"}
    (hostile / "solutions.jsonl").write_text(json.dumps(line) + "\n")
    (hostile / "right.jsonl").write_text(
        json.dumps({"id": "1", "solution": "pass", "model": ATTACK, "label": ATTACK}) + "\n"
    )
    (hostile / "broken.jsonl").write_text(f"{NAME}\n")
    (hostile / "posts.jsonl").write_text(json.dumps({"id": ATTACK, "body": ATTACK}) + "\n")
    (hostile / "program.py").write_text("raise SystemExit\n")
    return hostile


def make_suite_again(folder: Path) -> Any:
    from judge.suites import load_suite  # noqa: PLC0415

    return load_suite(str(folder))


@pytest.fixture(autouse=True)
def sandbox(monkeypatch: pytest.MonkeyPatch) -> ScriptedSandbox:
    """A sandbox in which programs print, and engines compute, text to control a terminal."""
    said = ATTACK.replace("\udc9b", "").encode()
    failed = RunResult(
        RunStatus.ERROR if hasattr(RunStatus, "ERROR") else RunStatus.OK,
        OutputStatus.MISSING,
        exit_code=1,
        stdout=said,
        stderr=said,
        detail=ATTACK,
    )
    scripted = ScriptedSandbox([failed] * 8, answers=answers({(1, 1): ATTACK}))  # type: ignore[arg-type]
    for module in (judge.api.resources, judge.recalc.library, judge.sandbox):
        monkeypatch.setattr(module, "open_sandbox", lambda *_, **__: scripted)
    return scripted


def said_by(
    arguments: list[str], capfdbinary: pytest.CaptureFixture[bytes]
) -> tuple[int, str, str]:
    capfdbinary.readouterr()
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    out, err = capfdbinary.readouterr()
    code = ended.value.code
    return (code if isinstance(code, int) else 1), out.decode(), err.decode()


CALLS = {
    "score": ["score {0}/one --recalc never -q", "score {0}/solutions.jsonl --dataset {0}/suite",
              "score {0}/right.jsonl --dataset {0}/suite --out {0}/out -q",
              "score {0}/broken.jsonl --dataset {0}/suite", "score {0}/nothing"],
    "run": ["run 1 {0}/program.py --dataset {0}/suite", "run {1} {0}/program.py"],
    "report": ["report {0}/one --format markdown", "report {0}/one --format csv --table cases",
               "report {0}/one --format json", "report {0}/one --format html --out -",
               "report {0}/one --format csv --table episodes",
               "report {0}/one --format gif --case {1}/1"],
    "compare-runs": ["compare-runs {0}/one {0}/two",
                     "compare-runs {0}/one {0}/two --format markdown",
                     "compare-runs {0}/one {0}/two --format html",
                     "compare-runs {0}/one {0}/suite"],
    "view": ["view {0}/nothing", "view {0}/text.xlsx"],
    "rejudge": ["rejudge {0}/one", "rejudge {0}/one --case {1}/1 --verdict AC --by a --why b"],
    "audit": ["audit {0}/one --sample 1", "audit {0}/one --read {0}/text.xlsx",
              "audit {0}/one --items 3"],
    "verify-result": ["verify-result {0}/text.xlsx --key {0}/nothing",
                      "verify-result {0}/nothing"],
    "checklist": ["checklist points {0}/one", "checklist sheet {0}/one --out {0}/marks.json",
                  "checklist take {0}/one {0}/text.xlsx --by {1}"],
    "verify": ["verify {0}/suite --recalc never", "verify {0}/nothing"],
    "compare": ["compare {0}/gold.xlsx {0}/output.xlsx --at A1",
                "compare {0}/gold.xlsx {0}/text.xlsx --at A1",
                "compare {0}/gold.xlsx {0}/gold.xlsx --at {1}",
                "compare {0}/gold.xlsx --checklist {0}/text.xlsx"],
    "facts": ["facts {0}/output.xlsx", "facts {0}/text.xlsx"],
    "recalc": ["recalc {0}/output.xlsx", "recalc {0}/text.xlsx",
               "recalc {0}/output.xlsx --explain A1"],
    "engines": ["engines"],
    "tools": ["tools check {1}", "tools check mcp:{1}"],
    "mcp": ["mcp --folder {0} --tools {1}", "mcp --folder {0}/nothing"],
    "infer": ["infer --dataset {0}/suite --model {1} --out {0}/infer", "infer --out {0}/one"],
    "dataset": ["dataset list {0}/suite", "dataset show {0}/suite 1",
                "dataset stats {0}/suite", "dataset validate {0}/suite", "dataset fetch {1}",
                "dataset review {0}/suite", "dataset triage {0}/posts.jsonl",
                "dataset export-rewardkit {0}/text.xlsx {0}/out",
                "dataset import-rewardkit {0}/suite"],
    "desktop": ["desktop {1} --dataset {0}/suite", "desktop 1 --dataset {0}/suite --case 7",
                "desktop 1 --dataset {0}/suite --steps {0}/text.xlsx",
                "desktop 1 --dataset {0}/suite --out {0}/one"],
    "annotate": ["annotate add {0}/suite 1 A2=9 --draft --author {1}", "annotate drafts {0}/suite",
                 "annotate log {0}/suite", "annotate check {0}/suite --author {1}",
                 "annotate check {0}/suite"],
    "hack": ["hack {0}/suite 1 {0}/text.xlsx", "hack {0}/suite {1} {0}/gold.xlsx"],
    "sandbox": ["sandbox {1}"],
    "cluster": ["cluster worker tcp://{1}", "cluster certificates {0}/text.xlsx",
                "score {0}/one --recalc never -q --cluster {1}"],
    "serve": ["serve --data {0}/text.xlsx", "serve {1}", "serve --listen {1}",
              "serve admin token {1} --data {0}/served",
              "serve admin suite add {1} {0}/suite --data {0}/served",
              "serve admin oidc {1} --data {0}/served",
              "serve admin oidc https://a.b --client {1} --secret-file {1} --data {0}/served",
              "serve admin probing {1} --data {0}/served"],
    "submit": ["submit {0}/text.xlsx --to {1} --phase {1}", "submit --to http://{1} --status {1}"],
    "doctor": ["doctor {1}"],
}  # fmt: skip

JSON_FORMS = (
    "score {0}/one --recalc never -q --json",
    "run 1 {0}/program.py --dataset {0}/suite --json",
    "compare-runs {0}/one {0}/two --json",
    "rejudge {0}/one --json",
    "verify {0}/suite --recalc never --json",
    "compare {0}/gold.xlsx {0}/output.xlsx --at A1 --json",
    "facts {0}/output.xlsx --json",
    "recalc {0}/output.xlsx --json",
    "recalc {0}/output.xlsx --explain A1 --json",
    "dataset list {0}/suite --json",
    "dataset show {0}/suite 1 --json",
    "report {0}/one --format json",
)


def words(call: str, place: Path) -> list[str]:
    return [word.format(place, ATTACK) for word in call.split()]


def test_every_command_is_tried() -> None:
    assert CALLS.keys() == COMMANDS.keys()


@pytest.mark.parametrize("call", [call for calls in CALLS.values() for call in calls])
def test_nothing_hostile_is_printed(
    call: str, place: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    _, out, err = said_by(words(call, place), capfdbinary)
    for said in (out, err):
        assert FORBIDDEN.findall(said) == []
    assert "Traceback" not in err


@pytest.mark.parametrize("call", JSON_FORMS)
def test_json_stays_json(call: str, place: Path, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    _, out, _ = said_by(words(call, place), capfdbinary)
    assert FORBIDDEN.findall(out) == []
    json.loads(out)


def test_what_json_says_is_what_was_there(capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    with contextlib.suppress(SystemExit), shown_streams():
        click.echo(json.dumps({ATTACK: ATTACK}, ensure_ascii=False))
        sys.exit(0)
    out = capfdbinary.readouterr().out.decode()
    assert FORBIDDEN.findall(out) == []
    assert json.loads(out) == {ATTACK: ATTACK}


class Terminal(io.StringIO):
    """A stream that claims to be a terminal."""

    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    "call",
    ["score {0}/one --recalc never -q", "compare-runs {0}/one {0}/two", "score {0}/nothing"],
)
def test_a_terminal_gets_our_colours_alone(
    call: str, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stdout", terminal)
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("NO_COLOR", raising=False)
    with pytest.raises(SystemExit):
        main(words(call, place))
    said = terminal.getvalue()
    assert "\x1b[" in said  # ours
    bare = re.sub(r"\x1b\[[0-9;]*m", "", said)
    assert FORBIDDEN.findall(bare) == []


def test_markup_is_text(capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    console = make_console()
    console.file = io.StringIO()
    console.print("[red]x[/] :smile:", styled(("[b]y", "bold"), ATTACK), soft_wrap=True)
    assert console.file.getvalue() == f"[red]x[/] :smile: [b]y{visible(ATTACK)}\n"
