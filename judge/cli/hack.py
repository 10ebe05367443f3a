"""``judge hack``: tries to break accepted solutions with a workbook."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from judge import annotate as annotation
from judge.cli.annotate import author_option, reference_option, submissions_option
from judge.cli.help import HelpCommand
from judge.cli.options import json_option, option, sandbox_option
from judge.errors import WorkbookError
from judge.files.documents import read_regular
from judge.workbook.budget import DEFAULT_LIMITS


@click.command(
    cls=HelpCommand,
    examples=(
        "hack mysuite/ 1 case.xlsx --submissions results/a --reference right.py",
        "hack sample 1001 case.xlsx --submissions results/mine --dry-run",
    ),
)
@click.argument("suite")
@click.argument("task")
@click.argument("workbook", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@reference_option
@submissions_option(
    required=True,
    help="Solutions (.jsonl) or a run, of which the accepted ones are judged again; may be "
    "repeated.",
)
@option(
    "--from", "base", type=click.IntRange(min=1), help="Case that WORKBOOK was made from [first]."
)
@option("--dry-run", is_flag=True, help="Save nothing.")
@author_option
@sandbox_option
@json_option("the outcome")
def hack(suite: str, task: str, workbook: Path, **options: Any) -> None:
    """Try to break accepted solutions of TASK with the input WORKBOOK.

    The workbook is validated, and its gold computed from at least two references that agree and
    do not repeat each other. The formulas of the gold count as one reference, together with every
    reference that writes the same formulas. Every solution that all cases accept so far is judged
    on the workbook. The workbook becomes a case if at least one of them fails on it; otherwise the
    command exits with 1. SUITE is the folder that the case is saved in; with --dry-run, a name such
    as `sample` will do.
    """
    data = _workbook(workbook)
    with annotation.Annotator(suite, sandbox=options["sandbox"], ids=[task]) as annotator:
        if not options["dry_run"]:
            annotator.book.check_writable()
        outcome = annotation.try_hack(
            annotator,
            task,
            data,
            references=annotator.references(task, options["references"]),
            accepted=annotation.accepted_solutions(annotator, task, options["files"]),
            base=options["base"],
        )
        saved = None
        if outcome.admitted and not options["dry_run"]:
            saved = annotation.save_hack(
                annotator, task, options["author"], outcome
            ).input_path.name
    _show(outcome, saved, as_json=options["as_json"])
    if not outcome.admitted:
        click.get_current_context().exit(1)


def _workbook(path: Path) -> bytes:
    data = read_regular(path, WorkbookError, max_bytes=DEFAULT_LIMITS.file_bytes)
    if data is None:
        raise WorkbookError(f"{path}: there is no such file any more")
    return data


def _show(outcome: annotation.Hack, saved: str | None, *, as_json: bool) -> None:
    if as_json:
        document = {
            "admitted": outcome.admitted,
            "saved": saved,
            "refused": outcome.refused,
            "gold_by": list(outcome.proposal.agreeing),
            "trials": [
                {"solution": trial.name, "verdict": trial.verdict.value, "cause": trial.cause}
                for trial in outcome.trials
            ],
        }
        click.echo(json.dumps(document, ensure_ascii=False))
        return
    if outcome.refused:
        click.echo(f"no case: {outcome.refused}", err=True)
        return
    click.echo(f"gold by: {', '.join(outcome.proposal.agreeing)}")
    for trial in outcome.trials:
        click.echo(f"{trial.verdict.value}\t{trial.name}\t{trial.cause}")
    if not outcome.kills:
        click.echo("it kills none of the accepted solutions, and adds nothing", err=True)
    elif saved:
        click.echo(f"saved: {saved}")
