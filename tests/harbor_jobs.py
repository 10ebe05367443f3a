"""Makes Harbor's jobs folders for tests, as Harbor 0.25 writes them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class MadeTrial:
    """A trial: its task, when it began (in minutes), and the files that it left."""

    task: str
    name: str
    minute: int = 0
    artifacts: Mapping[str, bytes] = field(default_factory=dict)
    result: Mapping[str, Any] = field(default_factory=dict)
    ended: bool = True


def made_result(trial: MadeTrial) -> dict[str, Any]:
    """The fields of ``result.json`` that readers use."""
    begun = f"2026-11-22T12:{trial.minute:02}:00.611295Z"
    return {
        "task_name": f"sheetjudge/{trial.task}",
        "trial_name": trial.name,
        "task_id": {"path": f"/data/tasks/{trial.task}"},
        "agent_info": {
            "name": "some-agent",
            "version": "1.2",
            "model_info": {"name": "model-x", "provider": "maker"},
        },
        "agent_result": {"n_input_tokens": 1000, "n_output_tokens": 50, "cost_usd": 0.25},
        "verifier_result": {"rewards": {"reward": 1.0}},
        "exception_info": None,
        "started_at": begun,
        "agent_execution": {
            "started_at": begun,
            "finished_at": f"2026-11-22T12:{trial.minute:02}:30.611295Z",
        },
        **trial.result,
    }


def make_job(folder: Path, *trials: MadeTrial) -> Path:
    """Writes a job."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps({"job_name": folder.name, "n_attempts": 2}))
    for trial in trials:
        place = folder / trial.name
        place.mkdir()
        task = {"path": f"/data/tasks/{trial.task}"}
        (place / "config.json").write_text(json.dumps({"trial_name": trial.name, "task": task}))
        if trial.ended:
            (place / "result.json").write_text(json.dumps(made_result(trial)))
        for name, content in trial.artifacts.items():
            path = place / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
    return folder
