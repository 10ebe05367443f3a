"""Tool episodes in reports, in comparisons and on pages."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from judge import api
from judge.cli.report import compare_runs
from judge.core.records.tool_episodes import ToolEpisodeEnd, ToolEpisodeHead, ToolTurn
from judge.errors import UsageError
from judge.grading.store import RunDirectory
from judge.report.build import build_report_data
from judge.report.html.pages import TaskPages
from judge.report.html.render import json_form
from judge.report.load import load_run
from judge.report.markdown import render_markdown
from judge.report.model import ReportData
from judge.report.pairing import comparison_markdown
from judge.report.shapes import inspect_files
from judge.tools.episodes import ToolEpisodeWriter, write_definitions
from tests.unit.report.runs import (
    CELL,
    SHEET,
    TABLE,
    Solution,
    TaskSpec,
    book,
    make_run,
    make_suite,
)
from tests.unit.tools.test_trajectories import DEFINITIONS, END, HEAD, line, turn

CHANGED = (*TABLE[:2], ("Bob", 99), TABLE[3])


def digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


@pytest.fixture
def suite(tmp_path: Path) -> Any:
    tasks = [TaskSpec("101", CELL, cases=1), TaskSpec("102", SHEET, cases=1)]
    return make_suite(tmp_path / "suite", tasks)


def tool_run(
    tmp_path: Path, suite: Any, name: str, *, second: str = "WA", asked: str = "native"
) -> Path:
    """A run of two tasks: one episode checks its change before it submits, the other does not."""
    solutions = [Solution("101", ["AC"]), Solution("102", [second])]
    inference = {
        "tools": {
            "asked": asked,
            "answer": "workbook",
            "names": ["bash"],
            "definitions": "0" * 64,
        }
    }
    run = make_run(
        tmp_path / name, suite, solutions, setting=f"tools/{asked}", inference=inference, model="m"
    )
    definitions = write_definitions(run, DEFINITIONS)
    with RunDirectory(run) as store:
        sheet = store.put_workbook(book(CHANGED))
    old = digest(book(TABLE))
    looks = [
        turn(1, line("a", "one", workbook=old)),
        turn(2, line("b", "\n".join(map(str, range(60))), workbook=sheet)),
        turn(3, line("c", "seen", workbook=sheet), line("d", "", tool="submit", workbook=sheet)),
    ]
    blind = [
        turn(1, line("a", "no", workbook=old, error="timeout")),
        turn(2, line("b", "", tool="python", workbook=sheet)),
        turn(3, line("c", "", tool="submit", workbook=sheet)),
    ]
    for task, turns in (("101", looks), ("102", blind)):
        write(run, {**HEAD, "id": task, "tools": definitions, "setting": f"tools/{asked}"}, turns)
    return run


def write(run: Path, head: ToolEpisodeHead, turns: list[ToolTurn]) -> None:
    tokens = {"prompt": 100 * len(turns), "completion": 7 * len(turns), "cached": None}
    end: ToolEpisodeEnd = {**END, "turns": len(turns), "tokens": tokens, "seconds": 10.0}  # type: ignore[typeddict-item]
    with ToolEpisodeWriter(run, head) as writer:
        for one in turns:
            writer.append(one)
        writer.append(end)


def data_of(run: Path) -> ReportData:
    loaded = load_run(run)
    return build_report_data(loaded, inspect_files(loaded))


def page_of(run: Path) -> dict[str, Any]:
    loaded = load_run(run)
    return TaskPages(loaded, json_form(data_of(run))).page(0)


def test_a_report_counts_calls_errors_tokens_and_time(tmp_path: Path, suite: Any) -> None:
    data = data_of(tool_run(tmp_path, suite, "a"))
    assert data.tools is not None
    every, *kinds = data.tools.groups
    assert [group.label for group in kinds] == [CELL, SHEET]
    assert (every.episodes, every.calls, every.errors) == (2, 7, {"timeout": 1})
    assert (every.calls_median, every.ended) == (3.5, {"submitted": 2})
    assert (every.prompt_tokens, every.completion_tokens) == (600, 42)
    assert every.definition_share is not None
    assert 0 < every.definition_share < 1
    assert every.cost == pytest.approx(0.12)
    assert (every.model_s, every.tools_s, every.waiting_s) == (9.0, 1.75, 9.25)
    assert (every.unseen, every.unseen_of) == (1, 2)
    uses = {use.tool: use for use in data.tools.by_tool}
    assert (uses["bash"].calls, uses["bash"].errors, uses["bash"].tasks) == (4, 1, 2)
    assert (uses["python"].score_with, uses["python"].score_without) == (0.0, 1.0)
    assert data.episodes is None
    text = render_markdown(data)
    assert "## Tools" in text
    assert "definitions about" in text
    assert any("submitted without a look" in note for note in data.notes)


def test_what_an_imported_trajectory_leaves_open_is_not_a_zero(tmp_path: Path, suite: Any) -> None:
    run = make_run(tmp_path / "run", suite, [Solution("101", ["AC"])], setting="tools/x 1")
    bare: Any = turn(
        1,
        line("a", "", tool="edit", seconds=None),
        tokens={"prompt": None, "completion": None, "cached": None},
        cost=None,
        latency_s=None,
        seconds=None,
    )
    head: Any = {**HEAD, "id": "101", "tools": write_definitions(run, []), "imported": "atif"}
    end: Any = {**END, "ended": "", "tokens": {}, "cost": None, "seconds": None}
    with ToolEpisodeWriter(run, head) as writer:
        for record in (bare, end):
            writer.append(record)
    data = data_of(run)
    assert data.tools is not None
    every = data.tools.overall
    assert (every.prompt_tokens, every.definition_tokens, every.cost) == (None, None, None)
    assert (every.model_s, every.tools_s, every.waiting_s) == (None, None, None)
    assert (every.unseen_of, every.ended) == (0, {"unknown": 1})
    assert "imported from atif" in data.notes[-2]


def test_runs_are_compared_by_their_tool_sets(tmp_path: Path, suite: Any) -> None:
    one = tool_run(tmp_path, suite, "a")
    two = tool_run(tmp_path, suite, "b", second="AC", asked="mcp:excel")
    shown = CliRunner().invoke(
        compare_runs, [str(one), str(two), "--by", "tools", "--resamples", "200"]
    )
    assert shown.exit_code == 0, shown.output
    comparison = api.compare_runs(one, two, resamples=200)
    text = comparison_markdown(comparison)
    assert "## By tool set" in text
    assert "| mcp:excel (workbook) | b | m | 100.00" in text
    assert "+50.00" in text
    assert comparison.to_json()["runs"][1]["tools"]["by_tool"][0]["tool"] == "bash"
    assert "By tool set" in api.render_comparison(comparison)


def test_runs_without_tools_have_no_table_by_tools(tmp_path: Path, suite: Any) -> None:
    runs = [str(make_run(tmp_path / name, suite, [Solution("101", ["AC"])])) for name in ("a", "b")]
    with pytest.raises(UsageError, match="none of the runs has episodes of tools"):
        CliRunner().invoke(compare_runs, [*runs, "--by", "tools"], catch_exceptions=False)
    assert "tools" not in api.compare_runs(*map(Path, runs)).to_json()["runs"][0]


def test_a_page_shows_each_turn_with_the_cells_that_changed(tmp_path: Path, suite: Any) -> None:
    page = page_of(tool_run(tmp_path, suite, "a"))
    episode = page["cases"][0]["episode"]
    assert episode["kind"] == "tools"
    assert [turn["changed"] is not None for turn in episode["turns"]] == [False, True, False]
    assert episode["turns"][1]["changed"]["cells"] == [("Sheet1!B3", "2", "99")]
    assert episode["turns"][2]["calls"][1]["tool"] == "submit"
    assert episode["ended"].startswith("submitted")
    assert "".join(text for _, text in episode["turns"][0]["calls"][0]["pieces"]) == "ls"
    json.dumps(page)


def test_a_cell_that_was_empty_is_shown_with_what_was_put_there(tmp_path: Path, suite: Any) -> None:
    run = make_run(tmp_path / "run", suite, [Solution("101", ["AC"])], setting="tools/native")
    filled = book((*TABLE[:3], ("Cyd", 3, "=B4*2"), (), (None, None, None, "end")))
    with RunDirectory(run) as store:
        digests = [store.put_workbook(data) for data in (book(TABLE), filled, book(TABLE))]
    turns = [turn(at, line("a", "", workbook=sha)) for at, sha in enumerate(digests, 1)]
    write(run, {**HEAD, "id": "101", "tools": write_definitions(run, [])}, turns)
    _, there, gone = page_of(run)["cases"][0]["episode"]["turns"]
    assert sorted(there["changed"]["cells"]) == [
        ("Sheet1!C4", "", "=B4*2"),
        ("Sheet1!D6", "", "end"),
    ]
    assert sorted(gone["changed"]["cells"]) == [
        ("Sheet1!C4", "=B4*2", ""),
        ("Sheet1!D6", "end", ""),
    ]


def test_a_workbook_that_is_not_kept_changed_all_the_same(tmp_path: Path, suite: Any) -> None:
    run = make_run(tmp_path / "run", suite, [Solution("101", ["AC"])], setting="tools/native")
    head: Any = {**HEAD, "id": "101", "tools": write_definitions(run, [])}
    write(run, head, [turn(1, line("a", "", workbook="5" * 64))])
    (only,) = page_of(run)["cases"][0]["episode"]["turns"]
    assert only["changed"]["words"] == "the workbook changed; the changed file was not kept"
