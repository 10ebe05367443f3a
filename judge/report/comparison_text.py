"""A comparison of runs as lines for people, and as Markdown. Pure."""

from __future__ import annotations

from judge.report.episode_model import EpisodePair
from judge.report.identity import DEPARTS
from judge.report.markdown import (
    escape,
    markdown_list,
    markdown_table,
    points,
    settings_table,
    with_interval,
)
from judge.report.pair_model import RunPair
from judge.report.pairing import RunComparison

_MAX_TASKS = 12


def comparison_markdown(comparison: RunComparison) -> str:
    """The comparison as Markdown: scores, desktop episodes by setting, a list for each pair."""
    named = " and ".join(escape(run.name) for run in comparison.runs)
    scores = markdown_table(
        ("run", "model", "profile", "recalc", "soft % [interval]", "hard % [interval]"),
        [
            (
                *(escape(each or "-") for each in (run.name, run.model, run.profile, run.recalc)),
                with_interval(run.soft_restriction),
                with_interval(run.hard_restriction),
            )
            for run in comparison.runs
        ],
    )
    head = markdown_list(map(escape, head_lines(comparison)))
    parts = [
        f"# {named}",
        *([head] if head else []),
        f"## Scores on {comparison.tasks} common tasks",
        scores,
    ]
    if comparison.settings:
        how = (
            "Solved tasks, % [interval]; turns, actions and seconds are means of the episodes that "
            "ended."
        )
        parts += ["## Desktop episodes", settings_table(comparison.settings), how]
    for pair in comparison.pairs:
        heading, *lines = pair_lines(comparison, pair)
        parts += [f"## {escape(heading)}", markdown_list(escape(line) for line in lines)]
    parts += ["## Method", markdown_list(escape(line) for line in closing_lines(comparison))]
    return "\n\n".join(parts) + "\n"


def pair_lines(comparison: RunComparison, pair: RunPair) -> list[str]:
    """What a comparison says of two runs: a heading, then a line for each number or two.

    Args:
        comparison: all of it.
        pair: one of its pairs.
    """
    hard = f"p = {_p(pair.p_hard)} (McNemar, exact)"
    soft = f"p = {_p(pair.soft_difference.p)} (paired cluster bootstrap)"
    if len(comparison.pairs) > 1:
        hard += f", {_p(pair.p_hard_holm)} after Holm"
        soft += f", {_p(pair.p_soft_holm)} after Holm"
    smallest = f"hard {_points(pair.smallest_hard)}, soft {_points(pair.smallest_soft)}"
    return [
        f"{pair.second} against {pair.first}, {pair.tasks} tasks",
        f"hard {points(pair.hard_difference)}, {hard}",
        f"soft {points(pair.soft_difference)}, {soft}",
        f"solved by {pair.second} alone: {_tasks(pair.won)}",
        f"solved by {pair.first} alone: {_tasks(pair.lost)}",
        f"soft score higher on {len(pair.better)}, lower on {len(pair.worse)}",
        f"smallest difference that would be found: {smallest}",
        *(
            line
            for episode in comparison.episodes
            if (episode.first, episode.second) == (pair.first, pair.second)
            for line in _episode_lines(episode)
        ),
    ]


def head_lines(comparison: RunComparison) -> list[str]:
    """What decided verdicts of the runs and is not in the suite as published; often nothing."""
    return [
        f"{run.name} {DEPARTS}: {departure}"
        for run in comparison.runs
        for departure in run.departures
    ]


def closing_lines(comparison: RunComparison) -> list[str]:
    """How a comparison was made, and what a reader has to know."""
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


def _episode_lines(pair: EpisodePair) -> list[str]:
    lines = []
    for mean in pair.means:
        interval = ""
        if mean.low is not None and mean.high is not None:
            interval = f" [{mean.low:+.2f}, {mean.high:+.2f}]"
        what = {"steps": "actions"}.get(mean.key, mean.key)
        lines.append(
            f"{what} of an episode: {mean.second:.2f} against {mean.first:.2f}, "
            f"{mean.difference:+.2f}{interval}, {mean.tasks} tasks"
        )
    return lines


def _points(share: float | None) -> str:
    return "none" if share is None else f"{100 * share:.1f} points"


def _p(p: float) -> str:
    return f"{p:.2g}" if p < 0.001 else f"{p:.3f}"


def _tasks(tasks: tuple[str, ...]) -> str:
    if not tasks:
        return "none"
    shown = ", ".join(tasks[:_MAX_TASKS])
    more = f" and {len(tasks) - _MAX_TASKS} more" if len(tasks) > _MAX_TASKS else ""
    return f"{len(tasks)} ({shown}{more})"
