"""Desktop episodes in a report: what is counted, in which formats, and what a page shows."""

from __future__ import annotations

import base64
import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from judge.api.runs import compare_runs
from judge.cli.main import judge as judge_command
from judge.desktop.contract import Action, ActionOutcome, DesktopOptions, WindowBounds
from judge.desktop.episodes import HUMAN
from judge.errors import UsageError
from judge.report.build import build_report_data
from judge.report.desktop.counts import _histogram, classes_of, differing
from judge.report.desktop.episodes import EpisodeEntry
from judge.report.desktop.marks import MAX_MARKS, marks_of
from judge.report.grid_window import GridBounds
from judge.report.html.pages import TaskPages
from judge.report.html.pictures import PictureShelf
from judge.report.html.render import json_form
from judge.report.html.runs import render_comparison
from judge.report.load import load_run
from judge.report.report import Report
from judge.report.shapes import inspect_files
from judge.suites import Suite, load_suite
from tests.episode_run import (
    DONE,
    FAILED,
    TABLE,
    MadeEpisode,
    MadeTurn,
    desktop_suite,
    make_episodes,
)
from tests.phrased_suite import DATA, write_phrased_suite
from tests.unit.report.runs import Solution, make_run

SIZES = {"a": 4, "b": 9, "c": 30}
EPISODES = (
    MadeEpisode("a", seconds=10),
    MadeEpisode(
        "b",
        "WA",
        (MadeTurn(), MadeTurn((FAILED,)), MadeTurn((), problem="no action"), MadeTurn((DONE,))),
        seconds=30,
    ),
    MadeEpisode("c", "WA", (MadeTurn(),) * 15, ended="turns", seconds=80),
)


@pytest.fixture(scope="module")
def suite(tmp_path_factory: pytest.TempPathFactory) -> Suite:
    return desktop_suite(tmp_path_factory.mktemp("suite"), SIZES)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory, suite: Suite) -> Path:
    return make_episodes(tmp_path_factory.mktemp("results") / "mine", suite, EPISODES)


@pytest.fixture(scope="module")
def report(run: Path) -> Report:
    return Report.of_run(run)


# -- marks -----------------------------------------------------------------------------------------


def kinds(events: list[list[object]]) -> list[tuple[str, int, str]]:
    return [(each.kind, each.times, each.text) for each in marks_of(events)]


def test_clicks_drags_and_keys_become_marks() -> None:
    def click(x: int, y: int, button: str = "left") -> list[list[object]]:
        return [["move", x, y, ""], ["press", x, y, button], ["release", x + 1, y, button]]

    assert kinds(click(5, 5)) == [("click", 1, "")]
    assert kinds(click(5, 5) * 2) == [("click", 2, "")]
    assert kinds(click(5, 5) + click(50, 5)) == [("click", 1, ""), ("click", 1, "")]
    assert kinds(click(5, 5, "right")) == [("click", 1, "right")]
    (drag,) = marks_of([["press", 1, 2, "left"], ["move", 9, 9, ""], ["release", 90, 80, "left"]])
    assert (drag.kind, drag.x, drag.y, drag.to_x, drag.to_y) == ("drag", 1, 2, 90, 80)
    chord: list[list[object]] = [
        ["key-press", 1, 1, "ctrl"],
        ["key-press", 1, 1, "s"],
        ["key-release", 1, 1, "s"],
        ["key-release", 1, 1, "ctrl"],
    ]
    assert kinds(chord * 2) == [("keys", 1, "ctrl+s")] * 2
    assert kinds([["type", 1, 1, "=A"], ["type", 1, 1, "1"]]) == [("type", 2, "=A1")]
    assert kinds([["scroll", 1, 1, "-3"]] * 3) == [("scroll", 3, "-3")]
    # With ctrl held down all the time.
    again = [*chord[:3], ["key-press", 1, 1, "z"], ["key-release", 1, 1, "z"], chord[3]]
    assert kinds(again) == [("keys", 1, "ctrl+s"), ("keys", 1, "ctrl+z")]
    held = [["key-press", 1, 1, "ctrl"], *click(5, 5), ["key-release", 1, 1, "ctrl"]]
    assert kinds(held) == [("click", 1, "ctrl")]
    # A button or a key that was never let go, and a mouse that only moved.
    assert kinds([["press", 1, 1, "left"]]) == [("click", 1, "")]
    assert kinds([["key-press", 1, 1, "shift"]]) == [("keys", 1, "shift")]
    assert kinds([["move", 1, 1, ""], ["move", 7, 8, ""]]) == [("move", 1, "")]


def test_what_is_not_an_event_makes_no_mark() -> None:
    broken: list[list[Any]] = [
        [], ["press"], ["press", "x", 1], [3, 1, 1, ""], ["press", True, 1, ""],
        ["press", float("nan"), 1, ""], ["press", 1e9, 1, ""], ["type", 1, 1, {"a": 1}],
    ]  # fmt: skip
    assert kinds(broken) == [("type", 1, "{'a': 1}")]
    many = [[kind, n, n, "left"] for n in range(900) for kind in ("press", "release")]
    assert len(marks_of(many)) == MAX_MARKS
    assert len(marks_of([["type", 1, 1, "x" * 100_000]])[0].text) < 1_000


# -- what is counted -------------------------------------------------------------------------------


def test_success_by_setting_and_class_of_tasks(report: Report) -> None:
    summary = report.data.episodes
    assert summary is not None
    (row,) = summary.settings
    assert (row.model, row.observation, row.action_space) == (
        "made-up", "screenshot+tree", "pyautogui",
    )  # fmt: skip
    solved = {each.label: (each.tasks, each.solved.value) for each in row.cells}
    assert solved == {"Overall": (3, 1 / 3), "Easy": (1, 1.0), "Medium": (1, 0.0), "Hard": (1, 0.0)}
    assert (row.mean_turns, row.mean_s) == (7.0, 40.0)
    assert [(each.ended, each.episodes, each.accepted) for each in summary.endings] == [
        ("done", 2, 1), ("turns", 1, 0),
    ]  # fmt: skip
    bars = {each.low: (each.episodes, each.accepted) for each in summary.turns if each.episodes}
    assert bars == {2: (1, 1), 4: (1, 0), 15: (1, 0)}
    measures = {each.key: each for each in report.data.measures}
    assert measures["episode_s"].median == 30
    assert measures["episode_turns"].total == 21


def test_a_suite_without_tables_has_its_groups_as_classes(suite: Suite) -> None:
    found = [(each.heading, each.label) for each in classes_of(load_suite("sample-desktop"))]
    assert found == [("feasible", "yes"), ("feasible", "no")]
    assert [each.label for each in classes_of(suite)] == ["Easy", "Medium", "Hard"]
    assert classes_of(None) == ()


def test_a_person_is_a_setting_of_its_own(tmp_path: Path, suite: Suite) -> None:
    mixed = [EPISODES[0], MadeEpisode("b", model=HUMAN, setting="desktop/screenshot/person")]
    summary = Report.of_run(make_episodes(tmp_path / "mixed", suite, mixed)).data.episodes
    assert summary is not None
    named = [
        (row.model, row.observation, row.action_space, row.episodes) for row in summary.settings
    ]
    assert named == [
        ("made-up", "screenshot+tree", "pyautogui", 1), ("human", "screenshot", "person", 1),
    ]  # fmt: skip


@pytest.mark.parametrize(("highest", "width"), [(15, 1), (16, 2), (400, 50), (10**9, 10**9 + 1)])
def test_bars_of_a_histogram(highest: int, width: int) -> None:
    def entry(steps: int) -> EpisodeEntry:
        return EpisodeEntry("", "", "", False, (), "done", 1, steps, 0, 0, 1.0, 1.0, True, "")

    bars = _histogram([(entry(0), True), (entry(highest), False)], lambda each: each.steps)
    assert bars[0].high - bars[0].low + 1 == width
    assert len(bars) <= 16
    assert sum(each.episodes for each in bars) == 2
    assert sum(each.accepted for each in bars) == 1


def test_every_form_has_them(report: Report) -> None:
    (first, second, _) = report.rows("episodes")
    assert (first["task_id"], first["verdict"], first["turns"]) == ("a", "AC", 2)
    assert (second["failed_steps"], second["empty_turns"]) == (1, 1)
    assert [row["label"] for row in report.rows("settings")][1] == "Easy"
    assert sum(row["episodes"] for row in report.rows("histogram") if row["of"] == "steps") == 3  # type: ignore[misc]
    assert report.rows("endings")[0]["description"] == "said to be done"
    text = report.to_markdown()
    assert "## Desktop episodes" in text
    assert "| all turns used | 1 | 33.33 | 0 |" in text
    assert json.loads(report.to_json())["tasks"][0]["cases"][0]["episode"]["ended"] == "done"


def test_runs_without_episodes_say_nothing_of_them(tmp_path: Path, suite: Suite) -> None:
    run = make_episodes(tmp_path / "run", suite, EPISODES[:1])
    (run / "episodes" / "a.0.1.jsonl").unlink()
    report = Report.of_run(run)
    assert report.data.episodes is None
    document = report.data.to_json()
    assert "episodes" not in document
    assert "episode" not in document["tasks"][0]["cases"][0]
    assert "Desktop" not in report.to_markdown()


def test_an_episode_that_no_judge_wrote_is_a_note(tmp_path: Path, suite: Suite) -> None:
    run = make_episodes(tmp_path / "run", suite, EPISODES[:2])
    (run / "episodes" / "a.0.1.jsonl").write_text('{"line": "head", "id": []}\n')
    loaded = load_run(run)
    data = build_report_data(loaded, inspect_files(loaded))
    assert any("1 episodes cannot be shown" in note for note in data.notes)
    pages = TaskPages(loaded, json_form(data))
    assert "line 1" in pages.page(0)["cases"][0]["episode"]["problem"]
    assert len(pages.page(1)["cases"][0]["episode"]["turns"]) == 4


# -- pages -----------------------------------------------------------------------------------------


def page_of(run: Path, number: int, bounds: GridBounds | None = None) -> dict[str, Any]:
    loaded = load_run(run)
    pages = TaskPages(loaded, json_form(build_report_data(loaded, inspect_files(loaded))))
    episode: dict[str, Any] = pages.page(number, bounds)["cases"][0]["episode"]
    return episode


def test_a_page_has_turn_by_turn_what_was_seen_said_and_done(run: Path) -> None:
    episode = page_of(run, 1)
    first, second, third, last = episode["turns"]
    assert (first["picture"]["width"], first["reply"]) == (960, "I click on the button.")
    assert [each["kind"] for each in first["actions"][0]["marks"]] == ["click"]
    assert ("k", "import ") in [tuple(piece) for piece in first["actions"][0]["pieces"]]
    assert "no clik" in second["actions"][0]["error"]
    assert (third["problem"], third["actions"]) == ("no action", [])
    assert last["actions"][0]["pieces"] == [("", "DONE")]
    assert [each["start_s"] for each in episode["turns"]] == [0, 2.5, 5.0, 7.5]
    # The same table is in a page once.
    (table,) = episode["tables"].values()
    assert table["rows"] == [line.split("\t") for line in TABLE.splitlines()]
    assert (episode["ended"], episode["seconds"]) == ("said to be done", 30)


def test_what_a_stranger_wrote_is_bounded(tmp_path: Path, suite: Suite) -> None:
    long = "x" * 25_000
    action = (Action(code=long), ActionOutcome(error=long, printed=long))
    turns = [
        MadeTurn((action,) * 80, reply=long, table=f"tag\tname\n{number}\t{long[:4_000]}\n" * 2_000)
        for number in range(3)
    ]
    run = make_episodes(tmp_path / "run", suite, [MadeEpisode("a", turns=turns)])
    sizes = [
        len(json.dumps(page_of(run, 0, bounds)))
        for bounds in (GridBounds(), GridBounds(cells=1_200, text_chars=120))
    ]
    assert sizes[0] < 9_000_000
    assert sizes[1] < 200_000


def test_missing_files_are_named(tmp_path: Path, suite: Suite) -> None:
    run = make_episodes(tmp_path / "run", suite, EPISODES[:1])
    for folder in ("pictures", "tables"):
        for path in (run / folder).iterdir():
            path.write_bytes(b"another")
    episode = page_of(run, 0)
    assert "no picture" not in str(episode["turns"][0]["picture"].get("sha256"))
    assert episode["turns"][0]["picture"]["problem"]
    assert next(iter(episode["tables"].values()))["problem"] == "the table is no longer available"


def test_screenshots_of_failed_episodes_come_first(run: Path) -> None:
    shelf = PictureShelf(run)
    digests = [path.stem for path in sorted((run / "pictures").iterdir())[:3]]
    for rank, digest in zip((7, 1, 4), digests, strict=True):
        shelf.of_turn(digest, "turn", rank)
    size = len(shelf.text_of(digests[0]) or "")
    assert list(shelf.within(size * 10)) == sorted(digests)
    assert set(shelf.within(size * 2 + 8)) == {digests[1], digests[2]}
    # What fits as it is stays as it is; otherwise all screenshots are shrunk.
    assert (
        shelf.within(size * 10, lambda _: b"small")[digests[0]]
        != base64.b64encode(b"small").decode()
    )
    assert set(shelf.within(size, lambda _: b"small").values()) == {
        base64.b64encode(b"small").decode()
    }
    assert set(shelf.within(size * 2 + 8, lambda _: None)) == {digests[1], digests[2]}


# -- several runs ----------------------------------------------------------------------------------


def test_compared_runs_say_what_episodes_took(tmp_path: Path, run: Path, suite: Suite) -> None:
    other = [
        MadeEpisode(
            each.task,
            "AC",
            each.turns[:2],
            seconds=each.seconds / 2,
            setting="desktop/tree/computer_13",
            options=DesktopOptions(gui_only=True),
        )
        for each in EPISODES
    ]
    comparison = compare_runs(run, make_episodes(tmp_path / "tree", suite, other))
    assert [(row.name, row.observation, row.gui_only) for row in comparison.settings] == [
        ("mine", "screenshot+tree", False), ("tree", "tree", True),
    ]  # fmt: skip
    assert [row.cells[0].solved.value for row in comparison.settings] == [1 / 3, 1.0]
    (pair,) = comparison.episodes
    means = {each.key: each for each in pair.means}
    assert (means["turns"].first, means["turns"].second) == (7, 2)
    assert means["seconds"].difference == -20
    low, high = means["seconds"].low, means["seconds"].high
    assert low is not None
    assert high is not None
    assert low < -20 < high < 0
    page = render_comparison(comparison)
    assert "turns, actions and time of episodes" in page
    assert "computer_13" in page
    assert comparison.to_json()["episodes"][0]["means"][0]["tasks"] == 3


def asked(history: int, **more: Any) -> dict[str, Any]:
    """The entries in run.json about running a model on a desktop."""
    setting = {"history": history, "rounds": 15, "minutes": 30.0, "tree_tokens": 10_000}
    return {"params": {"temperature": 1.0}, "desktop": {"setting": setting}, **more}


@pytest.fixture(scope="module")
def phrased(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, ...]:
    """Runs on tasks in two phrasings: with a plan, in both phrasings, by a person, by programs."""
    root = tmp_path_factory.mktemp("phrased")
    suite = load_suite(write_phrased_suite(root / "suite", {"p1": [DATA], "p2": [DATA]}))
    turns = (MadeTurn((DONE,)),)
    options = DesktopOptions(width=1280, height=720, window=WindowBounds(10, 20, 800, 600))
    planned = [MadeEpisode("p1", "AC", turns), MadeEpisode("p2", "WA", turns)]
    tree = "desktop/tree/computer_13"
    both = [
        MadeEpisode(task, verdict, turns, setting=tree, options=options)
        for task, verdict in (("p1", "AC"), ("p2", "AC"), ("p1-verbose", "WA"))
    ]
    person = [
        MadeEpisode(each.task, "AC", turns, model=HUMAN, setting="desktop/screenshot/person")
        for each in planned
    ]
    programs = [Solution("p1", ("WA",)), Solution("p2", ("WA",))]
    return (
        make_episodes(root / "plan", suite, planned, inference=asked(3, oracle_plan=True)),
        make_episodes(root / "both", suite, both, inference=asked(0, execution_feedback=False)),
        make_episodes(root / "person", suite, person),
        make_run(root / "programs", suite, programs, model="made-up", setting="multi"),
    )


def test_several_settings_are_a_table_as_the_papers_have_it(phrased: tuple[Path, ...]) -> None:
    comparison = compare_runs(*phrased, resamples=100)
    plan, both, person, programs = comparison.settings
    assert (plan.history, plan.instruction, plan.oracle_plan) == (3, "abstract", True)
    assert (both.history, both.instruction, both.oracle_plan) == (0, "abstract", False)
    assert (person.model, person.action_space, person.history) == ("human", "person", None)
    assert (programs.observation, programs.action_space, programs.episodes) == ("", "multi", 0)
    # The verbose phrasing of one run alone is not among the tasks that are compared.
    solved = [(row.cells[0].tasks, row.cells[0].solved.value) for row in comparison.settings]
    assert solved == [(2, 0.5), (2, 1.0), (2, 1.0), (2, 0.0)]
    assert differing(comparison.settings) == ("execution feedback", "screen", "window")
    assert both.details["window"] == "10,20,800x600"
    (row,) = Report.of_run(phrased[1]).data.episodes.settings  # type: ignore[union-attr]
    assert (row.instruction, row.episodes) == ("both", 3)
    by_label = {each.label: each.solved.value for each in row.cells}
    assert by_label == {"Overall": 2 / 3, "Abstract": 1.0, "Verbose": 0.0}


def test_the_table_of_several_settings_in_every_form(phrased: tuple[Path, ...]) -> None:
    def said(*options: str) -> str:
        call = ["compare-runs", *map(str, phrased), "--resamples", "100", *options]
        result = CliRunner().invoke(judge_command, call)
        assert result.exit_code == 0, result.output
        return result.stdout

    text = said("--format", "markdown")
    (line,) = [line for line in text.splitlines() if line.startswith("| plan |")][1:]
    assert line.startswith("| plan | made-up | screenshot+tree | pyautogui | 3 | abstract + plan |")
    assert "| programs | made-up | - | multi | - | abstract | no |" in text
    assert "## both against plan, 2 tasks\n\n- hard +50.00 points" in text
    page = said("--format", "html")
    assert page.startswith("<!doctype html>")
    assert "<td>abstract + plan</td>" in page
    document = json.loads(said("--json"))
    assert document == json.loads(said("--format", "json"))
    assert [row["history"] for row in document["settings"]] == [3, 0, None, None]
    shown = said()
    assert "gui only" in shown
    assert "abstract + plan" in shown


def test_the_table_of_settings_names_runs_whole(
    phrased: tuple[Path, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    runs = [
        Path(shutil.copytree(path, tmp_path / f"{path.name} with a long name of its own"))
        for path in phrased
    ]
    call = ["compare-runs", *map(str, runs), "--resamples", "100"]
    lines = CliRunner().invoke(judge_command, call).stdout.splitlines()
    title = lines.index("desktop episodes; solved tasks in %")
    heading = next(line for line in lines[title + 1 :] if line.strip())
    assert [path.name for path in runs if path.name not in heading] == []


def test_forms_of_a_comparison_that_do_not_go_together(
    phrased: tuple[Path, ...], tmp_path: Path
) -> None:
    def said(*options: str) -> Result:
        return CliRunner().invoke(judge_command, ["compare-runs", *map(str, phrased), *options])

    assert isinstance(said("--json", "--format", "html").exception, UsageError)
    assert isinstance(said("--out", str(tmp_path / "a")).exception, UsageError)
    out = tmp_path / "table.md"
    done = said("--format", "markdown", "--out", str(out), "--resamples", "100")
    assert (done.exit_code, done.stdout, out.read_text().splitlines()[0]) == (
        0, "", "# plan and both and person and programs",
    )  # fmt: skip
