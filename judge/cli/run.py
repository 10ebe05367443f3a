"""``judge run``: grades one program on one task and shows each case."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from judge import api
from judge.cli.help import HelpCommand
from judge.cli.options import (
    checker_options,
    corrections_options,
    grading_options,
    json_option,
    judging_options,
    limit_options,
    option,
)
from judge.console import make_console, styled
from judge.core.option import Section

if TYPE_CHECKING:
    from judge.core.verdict import CaseResult


@click.command(
    cls=HelpCommand,
    examples=("run 1001 solution.py --dataset sample",),
    first="dataset show profile recalc sandbox as_json",
)
@click.argument("task")
@click.argument("solution", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@option(
    "--dataset",
    default="sample",
    metavar="SUITE",
    section=Section.JUDGED,
    help="Suite; default: the sample suite.",
)
@grading_options
@checker_options
@corrections_options
@limit_options
@json_option("the results")
@option(
    "--show",
    type=click.IntRange(min=0),
    default=10,
    section=Section.SHOWN,
    help="Differences to show [10].",
)
def run(task: str, solution: Path, as_json: bool, show: int, **options: Any) -> None:
    """Grade the program SOLUTION on TASK (an id of the suite).

    Exits with 0 if every case is accepted, otherwise with 1.
    """
    results = api.run(task, solution, **judging_options(options))
    if as_json:
        click.echo(json.dumps([_as_json(result) for result in results], ensure_ascii=False))
    else:
        _print(results, show)
    if any(result.verdict.value != "AC" for result in results):
        click.get_current_context().exit(1)


def _as_json(result: CaseResult) -> dict[str, object]:
    return {
        "case": result.case,
        "verdict": result.verdict.value,
        "phase": result.verdict.phase.value,
        "cause": result.cause,
        "run": dict(result.run),
        "comparison": dict(result.comparison),
        "timings_s": dict(result.timings_s),
    }


def _print(results: Sequence[CaseResult], show: int) -> None:
    from judge.cli.tables import verdict_piece  # noqa: PLC0415  `--json` needs none of it

    console = make_console()
    for result in results:
        facts = [f"{phase} {seconds:.3f} s" for phase, seconds in result.timings_s.items()]
        if (memory := result.run.get("peak_memory_bytes")) is not None:
            facts.append(f"memory {memory / 2**20:.0f} MiB")
        console.print(
            styled(
                f"case {result.case}: ",
                verdict_piece(result.verdict.value),
                f" {result.verdict.description}  ",
                (", ".join(facts), "dim"),
            )
        )
        if result.cause:
            console.print(f"  {result.cause}")
        for line in api.difference_overview(result.comparison, show):
            console.print(f"    {line}")
        stderr = result.run.get("stderr", "").rstrip()
        if stderr and result.verdict.value in {"RE", "CE", "MLE"}:
            for line in stderr.splitlines()[-show:]:
                console.print(styled((f"    {line}", "dim")))
