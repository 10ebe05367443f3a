"""Judges stored solutions with Inspect and with `judge score`: verdicts, time, secrets in the log.

    python benchmarks/inspect_solutions.py SUITE SOLUTIONS [--out FOLDER]

Inspect's mock model replies with the solutions, so prompt, extraction, sandbox and comparison are
those of `inspect eval sheetjudge/spreadsheetbench`. Then the log is judged again under the
published rules, imported as a run, and compared with the run of `judge score`; and it is searched
for the bytes of every gold.
"""

from __future__ import annotations

import argparse
import base64
import re
import tempfile
import time
import zipfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import inspect_ai
import zipfile_zstd  # type: ignore[import-untyped]  # noqa: F401  as Inspect packs its logs
from inspect_ai.dataset import Sample
from inspect_ai.log import EvalLog
from inspect_ai.model import ChatMessage, Model, ModelOutput, ModelUsage, get_model
from openpyxl import load_workbook

import judge
from benchmarks.command_line import existing, run_command
from judge.core.submission import Submission
from judge.core.verdict import CaseResult
from judge.grading.store import RunDirectory
from judge.inference.inspect_logs import import_inspect_log
from judge.suites import Suite
from judge.suites.submissions import load_submissions
from sheetjudge.inspect.registry import judge_verdict, spreadsheetbench

LONG_ENOUGH = 7
"""How many characters a value must have not to occur by chance."""


def mock_model(samples: Iterable[Sample], submissions: dict[str, Submission]) -> Model:
    """Makes the mock model, which answers each prompt with the solution of its task."""
    by_prompt = {str(sample.input): submissions[str(sample.id)] for sample in samples}

    def answer(messages: list[ChatMessage], *_: Any) -> ModelOutput:
        code = by_prompt[messages[-1].text].code or ""
        output = ModelOutput.from_content("mockllm/model", f"```python\n{code}\n```")
        # If no usage is given, Inspect counts tokens with a tokenizer from the network.
        output.usage = ModelUsage(input_tokens=1000, output_tokens=300, total_tokens=1300)
        return output

    return get_model("mockllm/model", custom_outputs=answer)


def verdicts_of_log(log: EvalLog) -> dict[tuple[str, int], str]:
    """Reads the verdict on each case."""
    verdicts = {}
    for sample in log.samples or []:
        assert sample.scores is not None
        metadata = sample.scores["judge_verdict"].metadata
        assert metadata is not None
        for number, verdict in enumerate(metadata["verdicts"], start=1):
            verdicts[str(sample.id), number] = verdict
    return verdicts


def print_scores(log: EvalLog) -> None:
    """Reads soft and hard score, with means and standard errors."""
    assert log.results is not None
    for score in log.results.scores:
        figures = {name: round(100 * metric.value, 2) for name, metric in score.metrics.items()}
        unscored = score.unscored_samples
        print(f"  {score.name}: {score.scored_samples} scored, {unscored} not, {figures}")


def verdicts_of_run(results: Iterable[CaseResult]) -> dict[tuple[str, int], str]:
    """Returns the same figures for a scored run."""
    return {(result.task_id, result.case): str(result.verdict) for result in results}


def text_of(log: Path) -> str:
    """Returns the whole unpacked content of a log."""
    with zipfile.ZipFile(log) as members:
        return "\n".join(
            members.read(name).decode("utf-8", "replace") for name in members.namelist()
        )


def values_of(workbook: Path) -> set[str]:
    """Returns the values of a workbook that are too long to occur in text by chance."""
    cells = (
        str(cell.value)
        for sheet in load_workbook(workbook, data_only=True).worksheets
        for row in sheet.iter_rows()
        for cell in row
        if isinstance(cell.value, str | int | float)
    )
    return {value for value in cells if len(value) >= LONG_ENOUGH}


def told_golds(text: str, suite: Suite, transcript: str) -> tuple[int, list[str]]:
    """Searches a log for values and bytes of golds.

    Args:
        text: the content of the log.
        suite: the suite.
        transcript: prompts and replies, which are not secret.

    Returns:
        How many values were searched for, and those that were found, with their tasks.
    """
    words, leaked, searched = set(re.findall(r"[^\s\"\\]+", text)), [], 0
    for task in suite.tasks:
        for case in task.cases:
            data = case.gold_path.read_bytes()
            middle = base64.b64encode(data)[: len(data) // 2][-200:].decode()
            if middle in text:
                leaked.append(f"{task.id}/{case.number}: bytes of the gold")
            own = values_of(case.gold_path) - values_of(case.input_path)
            for value in own:
                if value in transcript:
                    continue
                searched += 1
                if value in (text if " " in value else words):
                    leaked.append(f"{task.id}/{case.number}: {value[:60]}")
    return searched, leaked


def main() -> None:
    """Judges, compares and imports the solutions, and prints the results."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("suite", type=existing)
    parser.add_argument("solutions", type=existing)
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    out = arguments.out or Path(tempfile.mkdtemp(prefix="inspect-solutions-"))
    loaded = judge.load_suite(arguments.suite)
    submissions = {
        submission.task_id: submission
        for submission in load_submissions(arguments.solutions, loaded)
    }
    suite = loaded.select(list(submissions))

    started = time.monotonic()
    task = spreadsheetbench(suite=str(arguments.suite), ids=list(submissions))
    print(f"{len(task.dataset)} prompts: {time.monotonic() - started:.1f} s")
    started = time.monotonic()
    (log,) = inspect_ai.eval(
        task,
        model=mock_model(task.dataset, submissions),
        log_dir=str(out / "logs"),
        display="none",
    )
    print(f"inspect eval: {log.status}, {time.monotonic() - started:.1f} s")
    print_scores(log)
    started = time.monotonic()
    options = judge.ScoreOptions(dataset=str(arguments.suite), out=out / "scored")
    (scored,) = judge.score(arguments.solutions, options)
    overall = scored.report["overall"]
    print(f"judge score: {time.monotonic() - started:.1f} s, {overall}")
    mine, of_judge = verdicts_of_log(log), verdicts_of_run(scored.results)
    differing = [
        f"{key}: {mine.get(key)} {of_judge[key]}"
        for key in of_judge
        if mine.get(key) != of_judge[key]
    ]
    print(f"{len(of_judge)} cases, {len(differing)} differ {differing[:5]}")

    path = Path(log.location)
    transcript = "\n".join(
        message.text for sample in log.samples or [] for message in sample.messages
    )
    searched, leaked = told_golds(text_of(path), suite, transcript)
    print(f"golds in the log: {len(leaked)} of {searched} values {leaked[:5]}")

    rescored = inspect_ai.score(log, judge_verdict(profile="official"), action="overwrite")
    print("inspect score, profile official:")
    print_scores(rescored)

    with RunDirectory(out / "imported") as store:
        done = import_inspect_log(path, loaded, str(arguments.suite), store)
    print(f"{done.submissions} submissions imported")
    judge.score(out / "imported", judge.ScoreOptions())
    pair = judge.compare_runs(out / "imported", out / "scored").pairs[0]
    print(
        f"import compared with judge score: {pair.tasks} tasks, won {pair.won}, lost {pair.lost}, ",
        end="",
    )
    print(f"hard {pair.hard_difference.difference}, better {pair.better}, worse {pair.worse}")


if __name__ == "__main__":
    run_command(main)
