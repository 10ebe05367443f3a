"""``judge score``: grades a run, a folder of runs, a .jsonl of solutions, or finished outputs."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from judge import api
from judge.api.options import ScoreOptions
from judge.cli.help import HelpCommand
from judge.cli.options import (
    checker_options,
    corrections_options,
    grading_options,
    json_option,
    judging_options,
    limit_options,
    option,
    options_of,
)
from judge.console import visible
from judge.core.option import Section
from judge.errors import IncompleteRunError, JudgeError
from judge.grading.options import GradingOptions

if TYPE_CHECKING:
    from judge.api.replaying import ReplayedEpisode


@click.command(
    cls=HelpCommand,
    examples=(
        "score solutions.jsonl --dataset sample --out results/mine",
        "score results/mine --profile strict",
        "score jobs/ --dataset sample --outputs '{task}/{case}/*.xlsx'",
    ),
    first="dataset out ids limit jobs profile recalc outputs sandbox as_json",
)
@click.argument("results", type=click.Path(path_type=Path))
@grading_options
@checker_options
@corrections_options
@limit_options
@options_of(ScoreOptions, beyond=GradingOptions)
@option(
    "--replay",
    is_flag=True,
    section=Section.JUDGED,
    help="Perform the episodes of a run again and show the differences; write nothing.",
)
@json_option("the report")
@option(
    "--quiet",
    "-q",
    is_flag=True,
    section=Section.SHOWN,
    help="Show no progress, and nothing after the table.",
)
def score(results: Path, replay: bool, as_json: bool, quiet: bool, **options: Any) -> None:
    """Grade RESULTS and write report.json next to the records.

    RESULTS is a run directory, a folder of runs, a .jsonl of solutions (fields id, solution, and
    optionally model, setting, conversation), or a folder of finished output workbooks named
    {n}_{id}_output.xlsx, which are compared without running anything. If the tasks ask for typed
    answers, each line has a response instead of a solution, and nothing is run either. A jobs
    folder of Harbor also counts as a folder of finished workbooks.

    A run of `judge infer --mode desktop` or --mode tools holds the files that its episodes left,
    which are judged without running anything; --replay performs their actions or calls again, and
    exits with 11 if a verdict differs.

    After an interruption, the same command continues and judges nothing twice.
    """
    from judge.cli import tables  # noqa: PLC0415  `judge score --help` needs none of it

    chosen = ScoreOptions(**judging_options(options))
    if replay:
        _replay(results, chosen, as_json=as_json, quiet=quiet)
        return
    failures: list[JudgeError] = []
    try:
        runs = api.score(
            results, chosen, progress=lambda _: api.progress_for(quiet=quiet), failures=failures
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
            tables.print_run(run)
        if not quiet:
            tables.print_ending(runs)
    for failure in failures[1:]:
        click.echo(f"error: {failure.message}", err=True)
    if failures:
        raise failures[0]
    api.check_complete(runs)
    if any(api.check_expectations(run)[1] for run in runs):
        click.get_current_context().exit(1)


def _replay(results: Path, options: ScoreOptions, *, as_json: bool, quiet: bool) -> None:
    episodes = replay_and_show(results, options, quiet=quiet or as_json)
    if as_json:
        click.echo(json.dumps(episodes, ensure_ascii=False, default=str))
    check_replayed(results, episodes)


def replay_and_show(run: Path, options: ScoreOptions, *, quiet: bool) -> list[dict[str, Any]]:
    """Performs the episodes of a run again, and prints what differs.

    Args:
        run: the results directory.
        options: how to judge, and which tasks.
        quiet: no progress, and no table.

    Returns:
        The outcome of each episode, as dictionaries for JSON.
    """
    from judge.cli import tables  # noqa: PLC0415  as above

    replayed = 0

    def tell(episode: ReplayedEpisode, total: int) -> None:
        nonlocal replayed
        replayed += 1
        if not quiet:
            click.echo(f"{replayed}/{total} episodes: {visible(episode.task_id)}", err=True)

    episodes = api.replay(run, options, on_episode=tell)
    if not quiet:
        tables.print_replayed(episodes)
    return [_plain(episode) for episode in episodes]


def check_replayed(run: Path, episodes: Sequence[dict[str, Any]]) -> None:
    """Checks that all episodes were performed again, with the verdicts that they had.

    Raises:
        IncompleteRunError: an episode has another verdict, or was not performed again.
    """
    differing = sum(not episode["agrees"] for episode in episodes)
    if differing:
        raise IncompleteRunError(
            f"{run}: {differing} of {len(episodes)} episodes ended differently, or could not be "
            "performed again",
            hint="Screens differ with load and time; perform them again to see which always do.",
        )


def _plain(episode: ReplayedEpisode) -> dict[str, Any]:
    return {**asdict(episode), "agrees": episode.agrees}
