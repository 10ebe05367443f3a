"""Asks a chat model for counterexamples to programs that readers found wrong, and examines them.

    python -m benchmarks.model_proposals SOLUTIONS.jsonl SUITE
    python -m benchmarks.model_proposals SOLUTIONS.jsonl SUITE --base-url URL --model NAME

The programs are those of benchmarks/wrong_programs.yaml for which a reader gave an input. Without
`--base-url`, a scripted model answers: each reply has the reader's input and three proposals that
cannot be used. Prints for each program what was proposed, and which proposals make it fail.
"""

from __future__ import annotations

import argparse
import json
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from benchmarks.command_line import existing, run_command
from benchmarks.corner_cases import LIMITS, WRONG, said_of
from judge.annotate.annotator import Annotator
from judge.annotate.casebook import CaseData
from judge.annotate.edits import describe
from judge.annotate.gold import GoldMaker
from judge.annotate.idea import FROM_MODEL
from judge.annotate.model_ideas import ModelAsked, ask_for_ideas
from judge.annotate.suggest import suggest
from judge.api.infer_options import InferOptions
from judge.api.inferring import ask_model
from judge.compare.profiles import get_profile
from judge.core.submission import Submission
from judge.core.task import Task
from judge.errors import SuiteError
from judge.files.yaml_documents import read_yaml
from judge.grading.case import GradingRules
from judge.suites.submissions import load_submissions
from judge.suites.suite import load_suite

UNUSABLE: list[dict[str, object]] = [
    {"why": "names no cells"},
    {"why": "no such sheet", "cells": {"'No such sheet'!A1": 1}},
    {"why": "no address", "cells": {"the first row": 1}},
]


def proposal_of(reading: Mapping[str, Any]) -> dict[str, object]:
    """The proposal of a model that found what the reader found."""
    cells = dict(text.split("=", 1) for text in reading["input"])
    return {"why": reading["why"], "cells": {cell: new or None for cell, new in cells.items()}}


@contextmanager
def scripted_model(readings: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    """Serves a chat model that answers with the readers' inputs.

    Args:
        readings: the question of a task -> what a reader found.

    Yields:
        The address, as for ``--base-url``.
    """

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            prompt = body["messages"][-1]["content"]
            found = [reading for question, reading in readings.items() if question in prompt]
            proposals = [*map(proposal_of, found), *UNUSABLE]
            text = f"These inputs break it:\n```json\n{json.dumps(proposals)}\n```"
            message = {"role": "assistant", "content": text}
            choice = {"index": 0, "message": message, "finish_reason": "stop"}
            reply = {"id": "1", "object": "chat.completion", "created": 0, "model": "scripted"}
            data = json.dumps({**reply, "choices": [choice]}).encode()
            self.send_response(200)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/v1"
    finally:
        server.shutdown()
        server.server_close()


def examine(task: Task, program: Submission, maker: GoldMaker, whom: InferOptions) -> bool:
    """Prints what a model proposes against a program; returns whether a proposal makes it fail."""
    first, *others = (
        CaseData(case.number, case.input_path.read_bytes(), case.gold_path.read_bytes())
        for case in task.cases
    )
    started = time.monotonic()
    ideas, problems = ask_model(
        whom,
        lambda chat, name, params: ask_for_ideas(
            ModelAsked(chat, name, params), task, first, program
        ),
    )
    seconds = time.monotonic() - started
    print(f"{task.id}: {len(ideas)} proposals, {len(problems)} not used, {seconds:.1f} s")
    for problem in problems:
        print(f"   not used: {problem[:100]}")
    suggestions = suggest(
        task,
        first,
        maker,
        others=others,
        only=(FROM_MODEL,),
        victims={"accepted": program},
        more=ideas,
    )
    kills = False
    for suggestion in suggestions:
        print(f"   {suggestion.state}: {'; '.join(map(describe, suggestion.idea.edits))[:110]}")
        print(f"      {(suggestion.rejected or suggestion.contested)[:150]}")
        for trial in suggestion.kills:
            print(f"      {said_of(trial)[:150]}")
        kills = kills or bool(suggestion.kills)
    return kills


def print_trial(pairs: Sequence[tuple[Task, Submission]], sandbox: str, whom: InferOptions) -> None:
    """Examines the proposals against each program, and prints how many of them fail."""
    with Annotator.engines(sandbox, jobs=1) as (opened, recalculator):
        rules = GradingRules(get_profile("standard"), engines=recalculator.identity)
        maker = GoldMaker(recalculator, opened, rules=rules, limits=LIMITS)
        failing = sum(examine(task, program, maker, whom) for task, program in pairs)
    print(f"programs that a proposal makes fail: {failing} of {len(pairs)}")


def main() -> None:
    """Runs the command."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("solutions", type=existing)
    parser.add_argument("suite", type=existing)
    parser.add_argument("--base-url", help="an endpoint; a scripted model if missing")
    parser.add_argument("--model", default="scripted")
    parser.add_argument("--max-tokens", type=int, default=800)
    parser.add_argument("--ids", default="", help="only these tasks, separated by commas")
    parser.add_argument("--sandbox", default="auto", help="docker or bubblewrap")
    options = parser.parse_args()
    chosen = set(filter(None, options.ids.split(",")))
    readings = {
        reading["task"]: reading
        for reading in read_yaml(WRONG, SuiteError)
        if "input" in reading and (not chosen or reading["task"] in chosen)
    }
    suite = load_suite(options.suite)
    submissions = load_submissions(options.solutions, suite, ids=list(readings))
    pairs = [(suite.task(submission.task_id), submission) for submission in submissions]
    questions = {task.instruction: readings[task.id] for task, _ in pairs}
    with scripted_model(questions) as scripted:
        whom = InferOptions(
            model=options.model,
            base_url=options.base_url or scripted,
            temperature=0.0,
            max_tokens=options.max_tokens,
            retries=0,
        )
        print_trial(pairs, options.sandbox, whom)


if __name__ == "__main__":
    run_command(main)
