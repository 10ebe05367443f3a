"""A real model with native tools: five tasks, with whole records and figures; none is solved."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from judge.api.commands import score
from judge.api.infer_options import InferOptions
from judge.api.inferring import infer
from judge.api.options import ScoreOptions
from judge.tools.episodes import read_definitions, read_tool_episodes
from tests.conftest import Figures
from tests.inference.smollm2 import MISSING, SmolServer, is_installed
from tests.unit.report.runs import TaskSpec, make_suite

pytestmark = [pytest.mark.bubblewrap, pytest.mark.office, pytest.mark.slow]

# Free-form this model writes no calls that parse; a grammar lets it choose which ones.
GRAMMAR = r"""
root ::= "<tool_call>{\"name\": \"" call "}</tool_call>"
call ::= looks | views | shell
looks ::= "list_sheets\", \"arguments\": {}"
views ::= "view_range\", \"arguments\": {\"range\": \"A1:" [A-C] [1-9] "\"}"
shell ::= "bash\", \"arguments\": {\"command\": \"" ("ls" | "pwd" | "date +%Y") "\"}"
"""


def test_five_tasks_with_native_tools(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, agent_root: None, figures: Figures
) -> None:
    if not is_installed():
        pytest.skip(MISSING)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    out = tmp_path / "run"
    tasks = [TaskSpec(str(number), cases=1) for number in range(1, 6)]
    with SmolServer() as server:
        options = InferOptions(
            model="llama.cpp",
            base_url=server.url,
            mode="tools",
            tools="list_sheets,view_range,bash",
            text_calls=True,
            dataset=str(make_suite(tmp_path / "suite", tasks).root),
            rounds=2,
            max_tokens=48,
            seed=7,
            param=(f"grammar={json.dumps(GRAMMAR)}",),
            cache=False,
            sandbox="bubblewrap",
            jobs=1,
            out=out,
        )
        summary = infer(options).summary
    assert summary.is_complete
    episodes = list(read_tool_episodes(out))
    assert len(episodes) == 5
    for episode in episodes:
        assert episode.end is not None
        assert episode.end["ended"] == "turns"
        assert episode.end["calls"] == 2
        assert read_definitions(out, episode.head["tools"])
        for turn in episode.turns:
            assert turn["tokens"]["prompt"]
            assert [line["ok"] for line in turn["calls"]] == [True]
    (run,) = score(out, ScoreOptions(sandbox="bubblewrap", jobs=1))
    assert len(run.results) == 5
    seconds = sum(episode.end["seconds"] for episode in episodes if episode.end is not None)
    figures(f"SmolLM2 with native tools: five tasks, {seconds:.1f} s")
