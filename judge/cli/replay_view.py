"""What ``judge score --replay`` shows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from judge.api.options import ScoreOptions
from judge.api.replaying import ReplayedEpisode, replay
from judge.cli.listing import print_table, table
from judge.cli.tables import verdict_piece
from judge.console import styled, visible
from judge.errors import IncompleteRunError

_MAX_TURNS = 8


def replay_and_show(run: Path, options: ScoreOptions, *, quiet: bool) -> list[dict[str, Any]]:
    """Performs the episodes of a run again, and prints what differs.

    Args:
        run: the results directory.
        options: how to judge, and which tasks.
        quiet: no progress, and no table.

    Returns:
        The same as plain data.
    """
    done = 0

    def tell(episode: ReplayedEpisode, total: int) -> None:
        nonlocal done
        done += 1
        if not quiet:
            click.echo(f"{done}/{total} episodes: {visible(episode.task_id)}", err=True)

    found = replay(run, options, on_episode=tell)
    if not quiet:
        _show(found)
    return [_plain(each) for each in found]


def check_replayed(run: Path, found: Sequence[dict[str, Any]]) -> None:
    """Checks that all episodes were performed again, with the verdicts that they had.

    Raises:
        IncompleteRunError: some were not.
    """
    other = sum(not each["agrees"] for each in found)
    if other:
        raise IncompleteRunError(
            f"{run}: {other} of {len(found)} episodes came out otherwise, or could not be "
            "performed again",
            hint="Screens differ with load and time; perform them again to see which always do.",
        )


def _plain(episode: ReplayedEpisode) -> dict[str, Any]:
    return {**asdict(episode), "agrees": episode.agrees}


def _show(found: Sequence[ReplayedEpisode]) -> None:
    click.echo(f"{len(found)} episodes performed again")
    shown = table("!task", ">case", ">turns", "before", "now", "file", "what differs")
    for each in found:
        sample = f" #{each.sample}" if each.sample else ""
        shown.add_row(
            styled(f"{each.task_id}{sample}"),
            str(each.case),
            str(each.turns),
            *(
                styled(verdict_piece(None if x is None else str(x)))
                for x in (each.before, each.after)
            ),
            "same" if each.same_file else "other",
            styled(each.problem or _differing(each)),
        )
    print_table(shown)


def _differing(episode: ReplayedEpisode) -> str:
    said = []
    for turn in episode.differing[:_MAX_TURNS]:
        parts = [f"{turn.lines} lines of the tree"] if turn.lines else []
        parts += [f"action {number}" for number in turn.outcomes]
        said.append(f"turn {turn.number}: {', '.join(parts)}")
    if len(episode.differing) > _MAX_TURNS:
        said.append(f"and {len(episode.differing) - _MAX_TURNS} more turns")
    return "; ".join(said) or "nothing"
