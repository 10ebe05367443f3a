"""``judge annotate check``: check the cases of a suite against the rules of the manual."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from judge.cli.help import HelpCommand
from judge.cli.options import json_option, option, sandbox_option
from judge.errors import SuiteError

if TYPE_CHECKING:
    from judge.annotate.rules import BrokenRule


@click.command(cls=HelpCommand)
@click.argument("suite")
@click.argument("task", required=False)
@json_option("the findings")
@option("--summary", is_flag=True, help="Print only how many tasks break which rule.")
@sandbox_option
def check(suite: str, task: str | None, as_json: bool, summary: bool, sandbox: str) -> None:
    """Check the cases of SUITE, or of one TASK, against the rules of the annotation manual.

    Exits with 3 if a rule is broken. Findings that only need a look (structure, leftover answers,
    data far from A1) do not change the exit code.
    """
    from judge.annotate.annotator import Annotator  # noqa: PLC0415  `--help` needs none of it

    with Annotator(suite, sandbox=sandbox, ids=[task] if task else ()) as annotator:
        ids = [task] if task else [each.id for each in annotator.book.suite.tasks]
        findings = [finding for each in ids for finding in annotator.check(each)]
    if as_json:
        click.echo(json.dumps([_as_json(each) for each in findings], ensure_ascii=False))
    else:
        if not summary:
            _list(findings)
        _summarise(findings, len(ids))
    broken = [each for each in findings if each.is_error]
    if broken:
        tasks = len({each.task_id for each in broken})
        raise SuiteError(f"{tasks} of {len(ids)} tasks break a rule of the manual")


def _as_json(finding: BrokenRule) -> dict[str, object]:
    return {
        "task": finding.task_id,
        "case": finding.case,
        "rule": finding.rule,
        "error": finding.is_error,
        "message": finding.message,
    }


def _list(findings: Sequence[BrokenRule]) -> None:
    for finding in findings:
        mark = "error" if finding.is_error else "look"
        click.echo(
            f"{mark}\ttask {finding.task_id}, case {finding.case}\t{finding.rule}"
            f"\t{finding.message}"
        )


def _summarise(findings: Sequence[BrokenRule], total: int) -> None:
    from judge.annotate.rules import RULES  # noqa: PLC0415  `--json` needs none of it
    from judge.cli.listing import print_table, table  # noqa: PLC0415
    from judge.console import make_console  # noqa: PLC0415

    cases = Counter(finding.rule for finding in findings)
    tasks = Counter(rule for rule, _ in {(finding.rule, finding.task_id) for finding in findings})
    shown = table("!rule", "asks that", "tasks that break it", "findings")
    for rule, asks in RULES.items():
        shown.add_row(rule, asks, str(tasks[rule]), str(cases[rule]))
    console = make_console()
    print_table(shown, console)
    whole = total - len({finding.task_id for finding in findings})
    console.print(f"{total} tasks, {whole} without any finding")
