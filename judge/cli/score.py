"""``judge score``: grade a run, a folder of runs, a .jsonl of solutions, or finished outputs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from judge.cli.help import HelpCommand
from judge.cli.options import (
    checker_options,
    cluster_options,
    comparison_options,
    corrections_options,
    limit_options,
    read_checker_options,
    read_corrections,
    read_limits,
    sandbox_option,
    suspects_option,
)
from judge.core.task_ids import split_ids
from judge.errors import JudgeError

if TYPE_CHECKING:
    from judge.api.options import ScoreOptions


@click.command(cls=HelpCommand)
@click.argument("results", type=click.Path(path_type=Path))
@click.option("--dataset", metavar="SUITE", help="Suite; default: the one that the run remembers.")
@click.option("--out", type=click.Path(path_type=Path), help="Results directory to write.")
@click.option("--jobs", "-j", type=click.IntRange(min=1), help="Submissions at a time [cores].")
@click.option("--ids", multiple=True, metavar="ID,…", help="Only these tasks; may be repeated.")
@click.option("--limit", type=click.IntRange(min=1), help="Only the first N tasks.")
@sandbox_option
@cluster_options
@comparison_options
@checker_options
@corrections_options
@suspects_option
@limit_options
@click.option(
    "--reference",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Solutions (.jsonl), one for a task: its time limits follow what they take here.",
)
@click.option(
    "--time-factor",
    type=click.FloatRange(min=1),
    default=10.0,
    show_default=True,
    help="With --reference: limit = max(--cpu or --wall, this x the reference's time).",
)
@click.option(
    "--best-of",
    is_flag=True,
    help="Of several samples of a task, the best one counts instead of their mean.",
)
@click.option(
    "--outputs",
    metavar="PATTERN",
    help="Where finished workbooks are, such as '{task}/{case}/*.xlsx' (docs/agents.md).",
)
@click.option(
    "--programs",
    metavar="PATTERN",
    help="Run the programs that are there on all cases, such as 'artifacts/**/solution.py'.",
)
@click.option("--every-task", is_flag=True, help="A task without any finished workbook counts.")
@click.option(
    "--trust-values",
    is_flag=True,
    help="Trust values of formulas in a run's finished workbooks and --gui-only episodes.",
)
@click.option(
    "--reward",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write soft, hard and the verdicts of one task as rewards from 0 to 1.",
)
@click.option(
    "--replay",
    is_flag=True,
    help="Perform the episodes of a desktop run again, and show what differs; write nothing.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the report as JSON on stdout.")
@click.option("--quiet", "-q", is_flag=True, help="No progress, and nothing after the table.")
def score(results: Path, replay: bool, as_json: bool, quiet: bool, **options: Any) -> None:
    """Grade RESULTS and write report.json next to the records.

    RESULTS is a run directory, a folder of runs, a .jsonl of solutions (fields id, solution, and
    optionally model, setting, conversation), or a folder of finished output workbooks named
    {n}_{id}_output.xlsx, which are compared without running anything. If the tasks ask for typed
    answers, each line has a response instead of a solution, and nothing is run either. A jobs
    folder of Harbor is a folder of finished workbooks as well.

    A run of `judge infer --mode desktop` holds the files that its episodes left, which are judged
    without running anything; --replay performs their actions again, and exits with 11 if a verdict
    differs.

    The same command again continues what was interrupted and judges nothing twice.
    """
    from judge import api  # noqa: PLC0415  `judge score --help` needs none of it
    from judge.api.options import cores  # noqa: PLC0415
    from judge.api.progress import progress_for  # noqa: PLC0415
    from judge.cli.tables import print_ending, print_run  # noqa: PLC0415

    limits = read_limits(options)
    options["jobs"] = options["jobs"] or cores()
    ids = split_ids(options.pop("ids"))
    checker, corrections = read_checker_options(options), read_corrections(options)
    chosen = api.ScoreOptions(
        limits=limits, ids=ids, checker=checker, corrections=corrections, **options
    )
    if replay:
        _replay(results, chosen, as_json=as_json, quiet=quiet)
        return
    failures: list[JudgeError] = []
    try:
        runs = api.score(
            results, chosen, progress=lambda _: progress_for(quiet=quiet), failures=failures
        )
    except KeyboardInterrupt:
        click.echo("verdicts so far are kept; the same command continues the run", err=True)
        raise
    if failures and not runs:
        raise failures[0]
    if as_json:
        reports = [run.report for run in runs]
        click.echo(
            json.dumps(
                reports[0] if len(reports) == 1 else reports, ensure_ascii=False, default=list
            )
        )
    else:
        for run in runs:
            print_run(run)
        if not quiet:
            print_ending(runs)
    for failure in failures[1:]:
        click.echo(f"error: {failure.message}", err=True)
    if failures:
        raise failures[0]
    api.check_complete(runs)
    if any(api.check_expectations(run)[1] for run in runs):
        click.get_current_context().exit(1)


def _replay(results: Path, options: ScoreOptions, *, as_json: bool, quiet: bool) -> None:
    from judge.cli.replay_view import check_replayed, replay_and_show  # noqa: PLC0415

    found = replay_and_show(results, options, quiet=quiet or as_json)
    if as_json:
        click.echo(json.dumps(found, ensure_ascii=False, default=str))
    check_replayed(results, found)
