"""What one process does with Inspect in an empty folder; run with the interpreter of a wheel.

    python program.py SUITE REPLIES

SUITE has tasks named for what is to become of them; REPLIES holds replies for the sample suite.
What is to be looked at is in the logs, and in ``seen.json``.
"""

# ruff: noqa: PLC0415  what is loaded when is one of the things to be seen
from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

SEEN: dict[str, Any] = {}


def modules() -> list[str]:
    """Returns which of the frameworks' modules are loaded."""
    names = {name.partition(".")[0] for name in sys.modules}
    return sorted(names & {"inspect_ai", "sheetjudge", "openai", "distributed"})


def main() -> None:
    """Evaluates three suites."""
    import judge

    judge.Judge  # noqa: B018  imported when it is asked for
    judge.infer  # noqa: B018
    SEEN["without"] = modules()
    suite, replies = Path(sys.argv[1]), json.loads(Path(sys.argv[2]).read_text())
    sample(replies)
    rounds()
    SEEN["open_after"] = how_many_are_open()
    scripted(suite)
    typed()
    Path("seen.json").write_text(json.dumps(SEEN))


def how_many_are_open() -> int:
    """Returns the judges and sandboxes of this process."""
    from sheetjudge.inspect.kept_open import KEPT_OPEN

    return len(KEPT_OPEN)


def evaluate(name: str, task: Any, reply: Any, **more: Any) -> None:
    """Runs one evaluation, whose log is in a folder with its name."""
    import inspect_ai
    from inspect_ai.model import ModelOutput, ModelUsage, get_model

    def answer(messages: list[Any], tools: Any, choice: Any, config: Any) -> ModelOutput:
        SEEN.setdefault(f"{name} config", [config.temperature, config.top_p])
        output = ModelOutput.from_content("mockllm/model", reply(messages))
        output.usage = ModelUsage(
            input_tokens=100, output_tokens=20, total_tokens=120, total_cost=0.5
        )
        return output

    model = get_model("mockllm/model", custom_outputs=answer, memoize=False)
    (log,) = inspect_ai.eval(task, model=model, log_dir=f"{name}-logs", display="none", **more)
    SEEN[name] = log.location


def sample(replies: dict[str, str]) -> None:
    """Replies with known verdicts, by the name of the task, in the real sandbox."""

    def reply(messages: list[Any]) -> str:
        text = messages[-1].text
        return next(said for name, said in replies.items() if f"1_{name}_input" in text)

    evaluate(
        "sample",
        "sheetjudge/spreadsheetbench",
        reply,
        task_args={"ids": list(replies), "sandbox": "bubblewrap", "jobs": 2},
    )


def rounds() -> None:
    """Two rounds: a program that fails, then one that leaves a workbook."""
    paths = "/mnt/data/input/1_1001_input.xlsx", "/mnt/data/output/1_1001_output.xlsx"
    saves = f"import shutil\nshutil.copy({paths[0]!r}, {paths[1]!r})"

    def reply(messages: list[Any]) -> str:
        program = "raise KeyError('region')" if len(messages) == 1 else saves
        return f"```python\n{program}\n```"

    evaluate(
        "rounds",
        "sheetjudge/spreadsheetbench",
        reply,
        task_args={"ids": 1001, "mode": "multi/row-exec", "sandbox": "bubblewrap", "jobs": 2},
    )


def scripted(folder: Path) -> None:
    """A scripted sandbox: failures of the judge, bad tests, replies without programs."""
    from judge.api.judging import Judge
    from judge.api.options import JudgingOptions
    from judge.errors import SandboxError
    from judge.sandbox.contract import OutputStatus, RunRequest, RunResult, RunStatus
    from judge.sandbox.scripted import ScriptedSandbox
    from sheetjudge.inspect.kept_open import KEPT_OPEN
    from sheetjudge.inspect.scorer import judge_key
    from sheetjudge.inspect.suites import loaded_suite

    suite = loaded_suite(str(folder))
    golds = {each.id: each.cases[0].gold_path.read_bytes() for each in suite.tasks}

    def play(request: RunRequest) -> RunResult:
        if "lost" in request.program:
            raise SandboxError("the daemon is gone")
        if "right" in request.program:
            data = golds["right"]
        elif "wrong" in request.program:
            (data,) = request.files.values()
        else:
            return RunResult(RunStatus.OK, OutputStatus.MISSING)
        return RunResult(RunStatus.OK, OutputStatus.COLLECTED, output=data, output_bytes=len(data))

    options = JudgingOptions(jobs=2, recalc="never")
    sandbox = ScriptedSandbox(iter(lambda: play, None))
    KEPT_OPEN.get(judge_key(suite, options), lambda: Judge(suite, options, sandbox=sandbox))
    said = {
        "right": "Here it is:\n```python\nprint('right')\n```",
        "wrong": "```python\nprint('wrong')\n```",
        "lost": "```python\nprint('lost')\n```",
        "bad": "```python\nprint('wrong')\n```",
        "words": "I would rather not write a program.",
        "silent": "",
    }

    def reply(messages: list[Any]) -> str:
        asked = messages[-1].text
        return next(text for name, text in said.items() if f"work of {name}." in asked)

    from sheetjudge.inspect.registry import spreadsheetbench

    evaluate(
        "scripted",
        spreadsheetbench(suite=str(folder), jobs=2, recalc="never"),
        reply,
        epochs=2,
    )


def typed() -> None:
    """Typed answers, with a picture in the question."""
    from sheetjudge.inspect.registry import typed as task

    evaluate(
        "typed", task(limit=6), lambda _: '```json\n{"long_trips": 5, "mean_guests": 15.25}```'
    )


if __name__ == "__main__":
    main()
