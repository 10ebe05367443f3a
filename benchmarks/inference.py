"""Measures the overhead of inference: single-round runs on a server that answers immediately.

    python benchmarks/inference.py [SUITE] [--tasks 300] [--concurrency 32] [--repeat 7]

Prints the time for building the prompts alone, the time of the whole run (prompts, calls,
conversations, records), and their ratio: medians of interleaved repeats, in wall-clock time and in
processor time of this process, which is more stable on a busy machine. The server runs in a
separate process; results are written below ``results/`` in the current directory, as by ``judge
infer``. The time for just creating as many files there (one conversation file for each task) is
also printed: the file system takes this part of the whole run.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import multiprocessing
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path

from benchmarks.command_line import run_command

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from judge.api.infer_options import InferOptions
from judge.api.inferring import make_plan
from judge.api.planning import resume
from judge.files.media import PICTURES_FOLDER
from judge.grading.store import RunDirectory
from judge.inference.client import OpenAIChatModel
from judge.inference.pictures import PictureStore
from judge.inference.plan import InferencePlan
from judge.inference.run import Resources, run_inference
from judge.inference.solver import Solver

RESULTS = Path("results")
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


@dataclass(frozen=True)
class Seconds:
    """Measures how long something takes.

    Attributes:
        wall_s: wall-clock seconds.
        cpu_s: processor seconds of this process.
    """

    wall_s: float
    cpu_s: float


class Stopwatch:
    """Starts the clock."""

    def __init__(self) -> None:
        self._wall_s = time.perf_counter()
        self._cpu_s = time.process_time()

    def read(self) -> Seconds:
        """Returns the time since the start."""
        return Seconds(time.perf_counter() - self._wall_s, time.process_time() - self._cpu_s)


def build_prompts(plan: InferencePlan) -> Seconds:
    """Builds every prompt and nothing else."""
    watch = Stopwatch()
    with ThreadPoolExecutor(1) as threads:
        solver = Solver(plan, None, threads, PictureStore(Path(PICTURES_FOLDER)))
        for assignment in plan.assignments:
            solver.prompt(assignment, assignment.question.inputs[0])
    return watch.read()


def whole_run(plan: InferencePlan, concurrency: int) -> Seconds:
    """Makes a whole run: prompts, calls, conversations, records."""

    async def run(folder: str) -> Seconds:
        model = OpenAIChatModel(plan.model.base_url, None)
        with RunDirectory(Path(folder)) as store:
            watch = Stopwatch()
            summary = await run_inference(
                plan, store, Resources(chat_model=model, concurrency=concurrency)
            )
            seconds = watch.read()
        await model.close()
        assert summary.finished == len(plan.assignments), summary
        return seconds

    with tempfile.TemporaryDirectory(dir=RESULTS) as folder:
        return asyncio.run(run(folder))


def make_files(count: int) -> Seconds:
    """Creates a number of small files."""
    with tempfile.TemporaryDirectory(dir=RESULTS) as folder:
        watch = Stopwatch()
        for number in range(count):
            Path(folder, str(number)).write_bytes(b"x" * 5_000)
        return watch.read()


def main() -> None:
    """Runs the comparison and prints it as JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    data = os.environ.get("JUDGE_DATA", "../shared/data")
    parser.add_argument("suite", nargs="?", default=f"{data}/spreadsheetbench_912_dev300")
    parser.add_argument("--tasks", type=int, default=300)
    parser.add_argument("--concurrency", type=int, default=32)
    parser.add_argument("--repeat", type=int, default=7)
    arguments = parser.parse_args()
    RESULTS.mkdir(exist_ok=True)
    here, there = multiprocessing.Pipe()
    server = multiprocessing.get_context("spawn").Process(target=serve, args=(there,), daemon=True)
    server.start()
    options = InferOptions(
        model="instant",
        mode="single",
        dataset=arguments.suite,
        limit=arguments.tasks,
        base_url=f"http://127.0.0.1:{here.recv()}/v1",
    )
    plan = make_plan(resume(options)).plan
    kinds: dict[str, Callable[[], Seconds]] = {
        "prompts_alone": lambda: build_prompts(plan),
        "whole_run": lambda: whole_run(plan, arguments.concurrency),
        "files_alone": lambda: make_files(len(plan.assignments)),
    }
    for measure in kinds.values():
        measure()  # finish the imports, and load every workbook into memory for both sides
    taken: dict[str, list[Seconds]] = {name: [] for name in kinds}
    for _ in range(arguments.repeat):
        for name, measure in kinds.items():
            taken[name].append(measure())
    server.terminate()
    wall = {name: statistics.median(time_.wall_s for time_ in all_) for name, all_ in taken.items()}
    cpu = {name: statistics.median(time_.cpu_s for time_ in all_) for name, all_ in taken.items()}
    result = {
        "tasks": len(plan.assignments),
        "concurrency": arguments.concurrency,
        "repeats": arguments.repeat,
        "median_wall_s": {name: round(seconds, 3) for name, seconds in wall.items()},
        "median_cpu_s": {name: round(seconds, 3) for name, seconds in cpu.items()},
        "ratio_wall": round(wall["whole_run"] / wall["prompts_alone"], 2),
        "ratio_cpu": round(cpu["whole_run"] / cpu["prompts_alone"], 2),
    }
    print(json.dumps(result, indent=2))


if __name__ == "__main__":
    run_command(main)
