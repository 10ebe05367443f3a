"""Rollouts of the environment for verifiers; runs in the virtual environment that has the library.

    .venv-verifiers/bin/python tests/inference/rollouts.py < asked.json

Standard input is ``{"taskset": …, "clients": [{"url": …, "sampling": …, "ids": […]}]}``, where
``taskset`` is the configuration as a file of the library would have it. Prints what came of it.
"""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any

import verifiers.v1 as vf


async def play(asked: dict[str, Any]) -> list[dict[str, Any]]:
    environment = vf.load_environment(vf.resolve_env_config({"taskset": asked["taskset"]}))
    tasks = {task.data.id: task for task in environment.taskset}
    rollouts = []
    async with environment.serving():
        for each in asked["clients"]:
            client = vf.EvalClientConfig(base_url=each["url"], api_key_var="NO_SUCH_KEY")
            sampling = vf.SamplingConfig(**each["sampling"])
            context = vf.ModelContext(model="model", client=client, sampling=sampling)
            slots = [environment.slots(tasks[one])[0] for one in each["ids"]]
            rollouts += [environment.run_slot(slot, context) for slot in slots]
        return [shown(episode) for episode in await asyncio.gather(*rollouts)]


def shown(episode: vf.Episode) -> dict[str, Any]:
    (trace,) = episode.traces
    return {
        "task": trace.task.data.id,
        "key": trace.task.key,
        "data": trace.task.data.model_dump(mode="json"),
        "reply": trace.last_reply,
        "ok": episode.ok,
        "rewards": {name: each and each.score for name, each in trace.rewards.items()},
        "metrics": trace.metrics,
        "verdicts": trace.info.get("verdicts"),
        "causes": trace.info.get("causes"),
        "errors": [f"{each.type}: {each.message}" for each in trace.errors],
    }


if __name__ == "__main__":
    print(json.dumps(asyncio.run(play(json.load(sys.stdin)))))  # noqa: T201
