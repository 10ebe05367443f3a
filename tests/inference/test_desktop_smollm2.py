"""A real model on a real desktop: three turns on the accessibility tree, with a full record."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from judge.api.commands import score
from judge.api.infer_options import InferOptions
from judge.api.inferring import infer
from judge.api.options import ScoreOptions
from judge.core.verdict import Verdict
from judge.desktop.episodes import EpisodeFiles, read_episodes
from judge.grading.store import SUBMISSIONS_FILE, RunDirectory
from tests.conftest import Figures
from tests.desktops import require_desktop
from tests.inference.smollm2 import MISSING, SmolServer, is_installed
from tests.unit.report.runs import TaskSpec, make_suite

pytestmark = [pytest.mark.bubblewrap, pytest.mark.office, pytest.mark.slow]

# Free-form this model writes no code that runs; a grammar lets it choose only where to click.
GRAMMAR = r"""
root ::= "```python\npyautogui.click(" x ", " y ")\n```"
x ::= [1-9] [0-9] [0-9]
y ::= [1-5] [0-9] [0-9]
"""


@pytest.fixture
def server() -> Iterator[SmolServer]:
    if not is_installed():
        pytest.skip(MISSING)
    require_desktop("bubblewrap")
    with SmolServer() as running:
        yield running


def test_three_turns_on_the_tree(
    server: SmolServer,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    figures: Figures,
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    out = tmp_path / "run"
    options = InferOptions(
        model="llama.cpp",
        base_url=server.url,
        mode="desktop",
        dataset=str(make_suite(tmp_path / "suite", [TaskSpec("1", cases=1)]).root),
        observation="tree",
        history=0,
        tree_tokens=200,
        screen="1024x640",  # fewer cells to read before each turn
        rounds=3,
        max_tokens=40,
        seed=7,
        param=(f"grammar={json.dumps(GRAMMAR)}",),
        cache=False,
        sandbox="bubblewrap",
        jobs=1,
        out=out,
    )
    asked = infer(options)
    assert asked.summary.is_complete, asked.summary.failures
    with RunDirectory(out) as store:
        (record,) = store.read_records(SUBMISSIONS_FILE)
    (episode,) = read_episodes(out)
    files = EpisodeFiles(out)
    assert episode.end is not None
    assert (episode.end["ended"], episode.end["turns"], episode.end["steps"]) == ("turns", 3, 3)
    for turn in episode.turns:
        seen = turn["seen"]
        assert seen["screenshot"] is not None
        assert (files.screenshot(seen["screenshot"]) or b"").startswith(b"\x89PNG")
        assert seen["table"] is not None
        assert "table-cell\tA1" in (files.table(seen["table"]) or "")
        (action,) = turn["actions"]
        assert action["code"].startswith("pyautogui.click(")
        assert not action["refused"]
        assert {"press", "release"} <= {str(kind) for kind, *_ in action["events"]}
    conversation = json.loads((out / str(record["conversation"])).read_text())
    for turn, noted in zip(episode.turns, conversation["rounds"], strict=True):
        system, shown = (conversation["messages"][number] for number in noted["sent"])
        assert (system["role"], shown["role"]) == ("system", "user")
        assert (files.table(turn["seen"]["table"] or "") or "?") in shown["content"]
    (run,) = score(out, ScoreOptions(sandbox="bubblewrap", jobs=1))
    assert run.problem is None
    assert {each.verdict for each in run.results} <= {Verdict.WA, Verdict.AC}
    figures(
        f"SmolLM2 on a desktop: 3 turns, {asked.summary.prompt_tokens} + "
        f"{asked.summary.completion_tokens} tokens, {asked.summary.seconds:.1f} s, "
        f"ready after {episode.head['ready_s']:.1f} s"
    )
