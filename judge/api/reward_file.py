"""The scores of one task as a file of rewards, as Harbor's verifiers leave them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from judge.api.reporting import ScoredRun
from judge.core.verdict import Verdict
from judge.errors import IncompleteRunError, UsageError
from judge.files.documents import dump_json
from judge.files.writing import naming_what_is_written, write_whole


def write_reward(path: Path, runs: Sequence[ScoredRun]) -> None:
    """Writes ``reward`` (the soft score), ``soft``, ``hard``, and ``case_1`` and so on.

    All of them are numbers from 0 to 1; verdicts and causes are in the results directory.

    Args:
        path: the file.
        runs: what was scored: one submission of one task.

    Raises:
        UsageError: it was more than one.
        IncompleteRunError: it has no score, since the judge or the test is at fault; nothing is
            written.
        StoreError: the file cannot be written.
    """
    submissions = {(each.task_id, each.sample) for run in runs for each in run.results}
    if len(runs) != 1 or len(submissions) != 1:
        raise UsageError(
            f"--reward is about one answer to one task, and {len(submissions)} were scored",
            hint="Name one task with --ids, or leave --reward out.",
        )
    failed = [each for each in runs[0].results if each.verdict is Verdict.JE]
    if failed:
        raise IncompleteRunError(f"the judge failed, so there is no reward: {failed[0].cause}")
    overall = runs[0].report["overall"]
    soft, hard = overall["soft_restriction"], overall["hard_restriction"]
    if soft is None or hard is None:
        raise IncompleteRunError("no case of the task could be scored, so there is no reward")
    rewards: dict[str, float] = {"reward": soft, "soft": soft, "hard": hard}
    for each in sorted(runs[0].results, key=lambda result: result.case):
        if each.verdict.is_scored:
            rewards[f"case_{each.case}"] = float(each.verdict is Verdict.AC)
    with naming_what_is_written(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, dump_json(rewards, indent=2).encode(), mode=0o644)
