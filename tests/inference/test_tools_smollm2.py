"""A real model with native tools: five tasks with full records and figures, none of them solved."""

from __future__ import annotations

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
            dataset=str(make_suite(tmp_path / "suite", tasks).root),
            rounds=2,
            max_tokens=32,
            seed=7,
            text_calls=True,
            cache=False,
            sandbox="bubblewrap",
            jobs=1,
            out=out,
        )
        summary = infer(options).summary
    assert summary.is_complete, summary.failures
    episodes = list(read_tool_episodes(out))
    assert len(episodes) == 5
    for episode in episodes:
        assert episode.end is not None
        assert episode.end["ended"] in {"turns", "submitted", "no-call"}
        assert episode.end["calls"] == sum(len(turn["calls"]) for turn in episode.turns)
        assert read_definitions(out, episode.head["tools"])
        for turn in episode.turns:
            assert turn["tokens"]["prompt"]
            for line in turn["calls"]:
                assert line["ok"] is ("error" not in line)
                assert line["text"]["shown"]
    (run,) = score(out, ScoreOptions(sandbox="bubblewrap", jobs=1))
    assert len(run.results) == 5
    seconds = sum(episode.end["seconds"] or 0.0 for episode in episodes if episode.end is not None)
    figures(f"SmolLM2 with native tools: five tasks, {seconds:.1f} s")
