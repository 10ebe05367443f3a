"""``judge compare-runs``: several runs on the same tasks."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from judge.core.statistics import Estimate, PairedDifference
    from judge.report.pair_model import RunPair
    from judge.report.pairing import RunComparison

_MOST_TASKS = 12


@click.command("compare-runs")
@click.argument("first", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.argument(
    "others", nargs=-1, required=True, type=click.Path(exists=True, file_okay=False, path_type=Path)
)
@click.option("--seed", type=int, help="Seed of the bootstrap. [20240624]")
@click.option("--resamples", type=click.IntRange(min=100), help="Of the bootstrap. [10000]")
@click.option("--json", "as_json", is_flag=True, help="Print the comparison as JSON on stdout.")
def compare_runs(
    first: Path, others: tuple[Path, ...], seed: int | None, resamples: int | None, as_json: bool
) -> None:
    """Compare runs on the tasks that all of them have.

    Hard scores by McNemar's exact test, soft scores by the paired bootstrap with tasks as clusters;
    with several pairs, p is adjusted by Holm's method. A positive difference favours the run that
    is named second.
    """
    from judge.api.comparing import compare_runs as compare  # noqa: PLC0415  for a quick --help

    comparison = compare(first, *others, seed=seed, resamples=resamples)
    if as_json:
        click.echo(json.dumps(comparison.to_json(), ensure_ascii=False))
    else:
        _print(comparison)


def _print(comparison: RunComparison) -> None:
    from rich.table import Table  # noqa: PLC0415

    from judge.console.terminal import make_console, styled  # noqa: PLC0415

    console = make_console()
    table = Table(title=f"{comparison.tasks} tasks in common", title_justify="left")
    for heading in ("run", "profile", "recalc", "soft % [interval]", "hard % [interval]"):
        table.add_column(heading)
    for run in comparison.runs:
        table.add_row(
            run.name,
            run.profile,
            run.recalc,
            _estimate(run.soft_restriction),
            _estimate(run.hard_restriction),
        )
    console.print(table)
    for pair in comparison.pairs:
        for line in _pair_lines(pair, several=len(comparison.pairs) > 1):
            console.print(line, soft_wrap=True)
    for line in _closing_lines(comparison):
        console.print(styled((line, "dim")), soft_wrap=True)


def _pair_lines(pair: RunPair, *, several: bool) -> list[str]:
    hard = f"p = {_p(pair.p_hard)} (McNemar, exact)"
    soft = f"p = {_p(pair.soft_difference.p)} (paired cluster bootstrap)"
    if several:
        hard += f", {_p(pair.p_hard_holm)} after Holm"
        soft += f", {_p(pair.p_soft_holm)} after Holm"
    smallest = f"hard {_points(pair.smallest_hard)}, soft {_points(pair.smallest_soft)}"
    return [
        f"{pair.second} against {pair.first}, {pair.tasks} tasks",
        f"  hard {_difference(pair.hard_difference)}, {hard}",
        f"  soft {_difference(pair.soft_difference)}, {soft}",
        f"  solved by {pair.second} alone: {_tasks(pair.won)}",
        f"  solved by {pair.first} alone: {_tasks(pair.lost)}",
        f"  soft score higher on {len(pair.better)}, lower on {len(pair.worse)}",
        f"  smallest difference that would be found: {smallest}",
    ]


def _closing_lines(comparison: RunComparison) -> list[str]:
    method = comparison.method
    how = (
        f"{method.confidence:.0%} intervals, {method.resamples:,} resamples, seed {method.seed}; "
        f"smallest differences at a power of {comparison.power:.0%}, as many tasks differing as "
        f"here. McNemar's test cannot find a difference below {comparison.fewest_one_sided} tasks "
        "that only one run solved."
    )
    lines = [how]
    if comparison.left_out:
        lines.append(f"{comparison.left_out} tasks are left out: not every run has a score there.")
    return [*lines, *comparison.notes]


def _estimate(estimate: Estimate) -> str:
    from judge.report.markdown import with_interval  # noqa: PLC0415

    return with_interval(estimate)


def _difference(paired: PairedDifference) -> str:
    from judge.report.markdown import points  # noqa: PLC0415

    return points(paired)


def _points(share: float | None) -> str:
    return "none" if share is None else f"{100 * share:.1f} points"


def _p(p: float) -> str:
    return f"{p:.2g}" if p < 0.001 else f"{p:.3f}"


def _tasks(tasks: tuple[str, ...]) -> str:
    if not tasks:
        return "none"
    shown = ", ".join(tasks[:_MOST_TASKS])
    more = f" and {len(tasks) - _MOST_TASKS} more" if len(tasks) > _MOST_TASKS else ""
    return f"{len(tasks)} ({shown}{more})"
