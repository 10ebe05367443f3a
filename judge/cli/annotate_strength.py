"""``judge annotate strength``: which wrong solutions each case kills, and what it adds."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from judge.api.options import ScoreOptions, cores
from judge.cli.help import HelpCommand
from judge.cli.options import (
    json_option,
    limit_options,
    option,
    options_of,
    read_limits,
    sandbox_option,
)
from judge.core.option import Section
from judge.core.task import split_ids
from judge.errors import UsageError

if TYPE_CHECKING:
    from judge.annotate.strength import TaskStrength
    from judge.core.submission import Submission
    from judge.core.task import Task

    Pairs = list[tuple[Task, Submission]]


@click.command(cls=HelpCommand)
@click.argument("suite")
@option(
    "--submissions",
    "files",
    multiple=True,
    required=True,
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    section=Section.JUDGED,
    help="Solutions (.jsonl); may be repeated.",
)
@option(
    "--out", type=click.Path(path_type=Path), default="results/strength", show_default=True,
    section=Section.JUDGED, help="Folder for the verdicts; what it holds is not judged again.",
)  # fmt: skip
@option(
    "--mutants/--no-mutants",
    default=True,
    section=Section.JUDGED,
    help="Make wrong solutions of right ones.",
)
@options_of(ScoreOptions, "ids jobs", jobs="Solutions at a time [cores].")
@limit_options
@sandbox_option
@json_option("the matrix")
def strength(suite: str, as_json: bool, **options: Any) -> None:
    """Show how strong the cases of SUITE are.

    Judges the solutions on all cases, and wrong solutions that are made from the accepted ones.
    Shows for each task how many solutions each case kills, how many of them no other case kills,
    the fewest cases that keep all kills, and the solutions that no case kills.
    """
    from judge.annotate.annotator import Annotator  # noqa: PLC0415  `--help` needs none of it
    from judge.suites.load import load_suite  # noqa: PLC0415

    limits = read_limits(options)
    jobs = options["jobs"] or cores()
    wanted = split_ids(options["ids"])
    loaded = load_suite(suite, ids=wanted).select(wanted)
    pairs = _read(options["files"], loaded, wanted)
    if not pairs:
        raise UsageError("none of the chosen tasks has a solution", hint="Check --ids.")
    with Annotator.engines(options["sandbox"], jobs=jobs) as (sandbox, recalculator):
        from judge.annotate.strength import measure  # noqa: PLC0415  `--help` needs none of it
        from judge.compare.profiles import get_profile  # noqa: PLC0415
        from judge.grading.batch import Settings  # noqa: PLC0415
        from judge.grading.case import GradingRules  # noqa: PLC0415

        rules = GradingRules(get_profile("standard"), engines=recalculator.identity)
        settings = Settings(sandbox, recalculator, rules, limits, jobs=jobs)
        found = measure(pairs, settings, options["out"], mutants=options["mutants"])
    if as_json:
        click.echo(json.dumps([_as_json(each) for each in found], ensure_ascii=False))
    else:
        _print(found)


def _read(files: Sequence[Path], suite: Any, ids: Sequence[str]) -> Pairs:
    from dataclasses import replace  # noqa: PLC0415  `--help` needs none of it

    from judge.suites.submissions import load_submissions  # noqa: PLC0415

    pairs: Pairs = []
    samples: dict[str, int] = {}
    for file in files:
        for submission in load_submissions(file, suite, ids=ids or None):
            # Several files may number their samples alike.
            sample = samples.get(submission.task_id, 0)
            samples[submission.task_id] = sample + 1
            label = submission.label or f"{submission.model or file.stem} #{submission.sample}"
            pairs.append(
                (suite.task(submission.task_id), replace(submission, sample=sample, label=label))
            )
    return pairs


def _as_json(each: TaskStrength) -> dict[str, object]:
    return {
        "task": each.task_id,
        "cases": list(each.cases),
        "solutions": list(each.solutions),
        "kills": {str(number): sorted(names) for number, names in each.kills.items()},
        "adds": {str(number): sorted(names) for number, names in each.adds.items()},
        "smallest": list(each.smallest),
        "survivors": sorted(each.survivors),
        "unprotected": each.unprotected,
    }


def _print(found: Sequence[TaskStrength]) -> None:
    from judge.cli.listing import print_table, table  # noqa: PLC0415  `--json` needs none of it
    from judge.console import make_console  # noqa: PLC0415

    shown = table("!task", ">solutions", "killed by case (alone)", "fewest", ">never killed", "")
    for each in found:
        kills = ", ".join(
            f"{number}: {len(each.kills[number])} ({len(each.adds[number])})"
            for number in each.cases
        )
        fewest = ", ".join(map(str, each.smallest)) or "none"
        shown.add_row(
            each.task_id,
            str(len(each.solutions)),
            kills,
            fewest,
            str(len(each.survivors)),
            each.unprotected,
        )
    print_table(shown)
    console = make_console()
    solutions = sum(len(each.solutions) for each in found)
    survivors = sum(len(each.survivors) for each in found)
    console.print(
        f"{len(found)} tasks, {solutions} solutions, {solutions - survivors} killed by some case; "
        f"{sum(bool(each.unprotected) for each in found)} tasks that no case protects"
    )
