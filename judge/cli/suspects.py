"""``judge verify --audit``: golds that may be at fault."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from judge.cli.listing import print_table, table
from judge.cli.options import judging_options
from judge.console import stream_behind, visible
from judge.core.option import options_in
from judge.errors import UsageError
from judge.grading.options import GradingOptions

if TYPE_CHECKING:
    from judge.suspects.audit import TaskFindings
    from judge.suspects.model import Audit

UNUSED = ("profile", "style", "lenient_names")
"""Options of `judge verify` that an audit does not have."""


def audit_suite(
    suite: str,
    submissions: tuple[Path, ...],
    out: Path | None,
    options: Mapping[str, Any],
    *,
    as_json: bool,
) -> None:
    """Audits a suite and prints, or writes, what was found."""
    from judge.api.suspecting import suspects  # noqa: PLC0415
    from judge.files.documents import dump_json  # noqa: PLC0415
    from judge.suspects.records import document_of, write_suspects  # noqa: PLC0415

    given = judging_options(options)
    usual = options_in(GradingOptions)
    if given.pop("checker") or any(given.pop(name) != usual[name].default for name in UNUSED):
        raise UsageError(
            "--audit compares by the default rules",
            hint="Leave --profile, --style, --lenient-names and the comparison options out.",
        )
    live = sys.stderr.isatty()
    with click.progressbar(
        length=0, label="auditing", file=stream_behind(sys.stderr), hidden=not live, show_pos=True
    ) as bar:

        def on_task(_: TaskFindings, total: int) -> None:
            bar.length = total
            bar.update(1)

        audit = suspects(
            suite,
            submissions=submissions,
            on_task=on_task,
            **given,
        )
    if out is not None:
        write_suspects(out, audit)
    if as_json:
        click.echo(dump_json(document_of(audit)))
    else:
        _print(audit, out)


def _print(audit: Audit, out: Path | None) -> None:
    from judge.suspects.model import Certainty  # noqa: PLC0415

    certainties = list(Certainty)
    counts = Counter((suspect.sign, suspect.certainty) for suspect in audit.suspects)
    overview = table("!sign", *(f">{certainty.value}" for certainty in certainties), "what it says")
    for sign in audit.signs:
        numbers = [counts[sign.name, certainty] for certainty in certainties]
        overview.add_row(
            sign.name, *(str(number) if number else "-" for number in numbers), sign.title
        )
    print_table(overview)
    if audit.suspects:
        listed = table("certainty", "!task", ">case", "sign", "what is where, and why it matters")
        for suspect in audit.suspects:
            listed.add_row(
                suspect.certainty.value,
                visible(suspect.task),
                "all" if suspect.case is None else str(suspect.case),
                suspect.sign,
                f"{visible(suspect.summary)}: {visible(suspect.why)}",
            )
        print_table(listed)
    cases = {(suspect.task, suspect.case) for suspect in audit.suspects}
    tasks = {suspect.task for suspect in audit.suspects}
    click.echo(
        f"{len(audit.suspects)} suspects in {len(cases)} cases of {len(tasks)} tasks; "
        f"{audit.cases} cases of {audit.tasks} tasks were examined"
    )
    for task, why in audit.not_examined.items():
        click.echo(f"not examined: task {visible(task)}: {visible(why)}")
    for problem in audit.problems:
        where = "" if problem.case is None else f", case {problem.case}"
        by = f" ({problem.sign})" if problem.sign else ""
        click.echo(f"problem: task {visible(problem.task)}{where}{by}: {visible(problem.message)}")
    if out is not None:
        click.echo(f"written to {out}")
