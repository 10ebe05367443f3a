"""What asking costs beside the model: single-round runs against a server that answers at once.

    python benchmarks/inference.py [SUITE] [--tasks 300] [--concurrency 32] [--repeat 3]

Prints the time of building the prompts alone, of the whole run (prompts, calls, records), and
their ratio; each is the best of the repeats, interleaved. The server runs in a process of its own.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import multiprocessing
import os
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from multiprocessing.connection import Connection
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from judge.cli.infer_options import make_plan
from judge.inference.client import OpenAIChatModel
from judge.inference.interview import Interviewer
from judge.inference.plan import InferencePlan
from judge.inference.run import Resources, run_inference
from judge.limits import Limits
from judge.store import RunDirectory

REPLY = "```python\nimport openpyxl\nprint('answered at once')\n```"


def serve(ready: Connection) -> None:
    """Answers every request with the same completion, as fast as this process can."""
    body = json.dumps(
        {
            "id": "1",
            "object": "chat.completion",
            "model": "instant",
            "choices": [
                {
                    "index": 0,
                    "finish_reason": "stop",
                    "message": {"role": "assistant", "content": REPLY},
                }
            ],
            "usage": {"prompt_tokens": 900, "completion_tokens": 20, "total_tokens": 920},
        }
    ).encode()
    head = (
        f"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n"
    )
    answer = head.encode() + body

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                request = await reader.readuntil(b"\r\n\r\n")
                (line,) = [
                    x for x in request.lower().split(b"\r\n") if x.startswith(b"content-length")
                ]
                await reader.readexactly(int(line.split(b":")[1]))
                writer.write(answer)
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    async def run() -> None:
        server = await asyncio.start_server(talk, "127.0.0.1", 0)
        ready.send(server.sockets[0].getsockname()[1])
        await server.serve_forever()

    asyncio.run(run())


def build_prompts(plan: InferencePlan) -> float:
    """Seconds to build every prompt and nothing else."""
    started = time.perf_counter()
    with ThreadPoolExecutor(1) as threads:
        interviewer = Interviewer(plan, None, threads)
        for assignment in plan.assignments:
            interviewer.prompt(assignment, assignment.question.inputs[0])
    return time.perf_counter() - started


def whole_run(plan: InferencePlan, concurrency: int) -> float:
    """Seconds of a whole run: prompts, calls, conversations, records."""

    async def run(folder: str) -> float:
        model = OpenAIChatModel(plan.model.base_url, None)
        with RunDirectory(Path(folder)) as store:
            started = time.perf_counter()
            summary = await run_inference(
                plan, store, Resources(chat_model=model, concurrency=concurrency)
            )
            seconds = time.perf_counter() - started
        await model.close()
        assert summary.finished == len(plan.assignments), summary
        return seconds

    with tempfile.TemporaryDirectory() as folder:
        return asyncio.run(run(folder))


def main() -> None:
    """Runs the comparison and prints it as JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    data = os.environ.get("JUDGE_DATA", "../shared/data")
    parser.add_argument("suite", nargs="?", default=f"{data}/spreadsheetbench_912_dev300")
    parser.add_argument("--tasks", type=int, default=300)
    parser.add_argument("--concurrency", type=int, default=32)
    parser.add_argument("--repeat", type=int, default=3)
    arguments = parser.parse_args()
    here, there = multiprocessing.Pipe()
    server = multiprocessing.get_context("spawn").Process(target=serve, args=(there,), daemon=True)
    server.start()
    options = {
        "model": "instant",
        "mode": "single",
        "dataset": arguments.suite,
        "limit": arguments.tasks,
        "base_url": f"http://127.0.0.1:{here.recv()}/v1",
    }
    plan = make_plan(options, Limits()).plan
    build_prompts(plan)  # reads every file once, so that both sides find them in memory
    prompts: list[float] = []
    runs: list[float] = []
    for _ in range(arguments.repeat):
        prompts.append(build_prompts(plan))
        runs.append(whole_run(plan, arguments.concurrency))
    server.terminate()
    result = {
        "tasks": len(plan.assignments),
        "concurrency": arguments.concurrency,
        "prompts_alone_s": round(min(prompts), 3),
        "whole_run_s": round(min(runs), 3),
        "ratio": round(min(runs) / min(prompts), 2),
        "all_prompts_s": [round(each, 3) for each in prompts],
        "all_runs_s": [round(each, 3) for each in runs],
    }
    print(json.dumps(result, indent=2))


if __name__ == "__main__":
    main()
