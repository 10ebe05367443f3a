"""The case commands of ``judge annotate``: add, set, drafts, discard, remove, log."""

from __future__ import annotations

import getpass
import json
import os
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from judge.cli.help import HelpCommand, OneOf
from judge.cli.options import json_option, option, sandbox_option, together
from judge.core.option import Section
from judge.errors import JudgeError, UsageError

if TYPE_CHECKING:
    from judge.annotate.annotator import Annotator, Preview
    from judge.annotate.casebook import Draft, SavedCase
    from judge.annotate.edits import Edit
    from judge.annotate.gold import GoldSource

_Command = TypeVar("_Command", bound=Callable[..., Any])
SHOWN = 20


def author_option(command: _Command) -> _Command:
    """Adds ``--author``."""
    return option(
        "--author",
        envvar="JUDGE_AUTHOR",
        default=_user,
        section=Section.BY_HAND,
        help="Who annotates [JUDGE_AUTHOR, user].",
    )(command)


def reference_option(command: _Command) -> _Command:
    """Adds ``--reference``."""
    return option(
        "--reference",
        "references",
        multiple=True,
        type=click.Path(exists=True, dir_okay=False, path_type=Path),
        section=Section.JUDGED,
        help="A right solution: a program, or a .jsonl of solutions; may be repeated.",
    )(command)


def decide_option(command: _Command) -> _Command:
    """Adds ``--decide``."""
    return option(
        "--decide",
        default="",
        metavar="SOURCE",
        section=Section.BY_HAND,
        help="The source that is right if they disagree, or if there is only one: your decision.",
    )(command)


def submissions_option(*, required: bool, help: str) -> Callable[[_Command], _Command]:  # noqa: A002
    """Adds ``--submissions``."""
    return option(
        "--submissions",
        "files",
        multiple=True,
        required=required,
        type=click.Path(exists=True, path_type=Path),
        section=Section.JUDGED,
        help=help,
    )


_edit_options = together(
    reference_option,
    option("--gold", "gold", multiple=True, metavar="CELL=VALUE", help="Set the answer by hand."),
    option("--insert-rows", multiple=True, metavar="[SHEET!]ROW[:COUNT]", help="Insert rows."),
    option("--delete-rows", multiple=True, metavar="[SHEET!]ROW[:COUNT]", help="Delete rows."),
    decide_option,
    author_option,
    option("--draft", "only_draft", is_flag=True, help="Keep it as a draft."),
    option("--force", is_flag=True, help="Save in spite of doubts and broken rules."),
    sandbox_option,
    option("--json", "as_json", is_flag=True, help="Print as JSON on stdout."),
)
"""The options that change the cells of a case."""


def _user() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError):
        return f"user {os.getuid()}"


@click.command(cls=HelpCommand)
@click.argument("suite")
@click.argument("task")
@click.argument("assignments", nargs=-1, metavar="[CELL=VALUE]...")
@option("--from", "base", type=click.IntRange(min=1), help="Case to begin from [the first].")
@_edit_options
def add(
    suite: str, task: str, assignments: tuple[str, ...], base: int | None, **options: Any
) -> None:
    """Make a new case of TASK from an old one, with some cells of the input changed.

    The new gold comes from the formulas of the old gold if its answer has formulas, from
    --reference solutions run in the sandbox, or from you (--gold). The case is saved if two of
    these agree and no rule of the manual is broken. Otherwise it stays a draft, and the reasons are
    shown. Without any change, a draft is started. Exits with 1 if the case was not saved.
    """
    with _annotator(suite, task, options) as annotator:
        draft = annotator.book.begin(task, options["author"], base=base)
        _change(annotator, draft, assignments, options)


@click.command("set", cls=HelpCommand)
@click.argument("suite")
@click.argument("task")
@click.argument("case")
@click.argument("assignments", nargs=-1, metavar="[CELL=VALUE]...")
@option(
    "--onto",
    type=OneOf(["current", "new"]),
    help="Move a draft to its case as it is now, or to a new case.",
)
@_edit_options
def set_cells(
    suite: str,
    task: str,
    case: str,
    assignments: tuple[str, ...],
    onto: str | None,
    **options: Any,
) -> None:
    """Change cells of the input of CASE: the number of a case, or the id of a draft.

    A case that somebody else changes meanwhile is not overwritten: the draft is kept, and can be
    saved on the case as it is then (--onto current), or as a new case (--onto new).
    """
    with _annotator(suite, task, options) as annotator:
        draft = (
            annotator.book.begin(task, options["author"], replace=int(case))
            if _NUMBER.fullmatch(case)
            else annotator.book.draft(task, case)
        )
        if onto is not None:
            draft = annotator.book.rebase(draft, as_new=onto == "new")
        _change(annotator, draft, assignments, options)


def _annotator(suite: str, task: str, options: dict[str, Any]) -> Annotator:
    from judge.annotate.annotator import Annotator  # noqa: PLC0415  `--help` needs none of it

    return Annotator(suite, sandbox=options.pop("sandbox", "auto"), ids=[task])


def _change(
    annotator: Annotator, draft: Draft, assignments: Sequence[str], options: dict[str, Any]
) -> None:
    from judge.annotate.annotator import refusals  # noqa: PLC0415  `--help` needs none of it
    from judge.annotate.edit import losses  # noqa: PLC0415  likewise

    try:
        edits, answers = _read_edits(draft, assignments, options)
        kept_back = losses(draft.base.input, edits)
        draft = annotator.book.extend(draft, edits, answers)
        wants_draft = options["only_draft"] or not (draft.edits or draft.answers)
        references = annotator.references(draft.task_id, options["references"])
        preview = (
            None if wants_draft else annotator.preview(draft, references, decide=options["decide"])
        )
    except JudgeError:
        if not draft.edits and not draft.answers:
            annotator.book.discard(draft)
        raise
    for line in kept_back:
        click.echo(f"not kept: {line}", err=True)
    if preview is None:
        _say_draft(draft, options["as_json"])
        return
    refused = refusals(preview)
    saved = None
    if not preview.problem and (options["force"] or not refused):
        saved = annotator.save(draft, preview)
    _show(draft, preview, saved, refused, as_json=options["as_json"])
    if saved is None:
        click.get_current_context().exit(1)


def _read_edits(
    draft: Draft, assignments: Sequence[str], options: dict[str, Any]
) -> tuple[list[Edit], list[Edit]]:
    from judge.annotate.edits import DeleteRows, InsertRows, parse_assignment  # noqa: PLC0415
    from judge.workbook.reader import open_workbook  # noqa: PLC0415

    home = open_workbook(draft.base.input).sheet_names[0]
    edits: list[Edit] = [
        InsertRows(*_rows(text, home)) for text in options["insert_rows"]
    ]  # the rows first: cells are named as they stand afterwards
    edits += [DeleteRows(*_rows(text, home)) for text in options["delete_rows"]]
    edits += [parse_assignment(text, home) for text in assignments]
    gold_home = open_workbook(draft.base.gold).sheet_names[0]
    return edits, [parse_assignment(text, gold_home) for text in options["gold"]]


_NUMBER = re.compile(r"[0-9]{1,9}")


def _rows(text: str, home: str) -> tuple[str, int, int]:
    sheet, _, place = text.rpartition("!")
    row, _, count = place.partition(":")
    if not _NUMBER.fullmatch(row) or not _NUMBER.fullmatch(count or "1"):
        raise UsageError(f"{text!r} is not ROW:COUNT", hint="Write for instance 5:2 or Data!5:2.")
    return sheet.strip("'") or home, int(row), int(count or "1")


def _say_draft(draft: Draft, as_json: bool) -> None:
    if as_json:
        click.echo(json.dumps({"draft": draft.id, "task": draft.task_id, "case": draft.number}))
        return
    click.echo(f"draft {draft.id} of task {draft.task_id}, to become case {draft.number}")


def _show(
    draft: Draft, preview: Preview, saved: SavedCase | None, refused: list[str], *, as_json: bool
) -> None:
    from judge.annotate.annotator import record_facts  # noqa: PLC0415
    from judge.annotate.edits import address, content_text  # noqa: PLC0415

    if as_json:
        document = {
            "draft": None if saved else draft.id,
            "task": draft.task_id,
            "case": draft.number,
            "saved": [str(saved.input_path), str(saved.gold_path)] if saved else None,
            "problem": preview.problem,
            "doubts": refused,
            **record_facts(draft, preview.proposal),
        }
        click.echo(json.dumps(document, ensure_ascii=False))
        return
    for moved in preview.proposal.moved[:SHOWN]:
        before, after = content_text(moved.before), content_text(moved.after)
        click.echo(f"{address(moved.ref)}: {before or '(blank)'} -> {after or '(blank)'}")
    more = len(preview.proposal.moved) - SHOWN
    if more > 0:
        click.echo(f"… and {more} more cells of the answer")
    for source in preview.proposal.sources:
        _show_source(source)
    for note in preview.proposal.notes:
        click.echo(f"note: {note}", err=True)
    for finding in preview.findings:
        if not finding.is_error:
            click.echo(f"note: rule {finding.rule}: {finding.message}", err=True)
    if saved is not None:
        click.echo(f"saved: {saved.input_path.name}, {saved.gold_path.name}")
        return
    for line in [preview.problem] if preview.problem else refused:
        click.echo(f"not saved: {line}", err=True)
    click.echo(
        f"draft {draft.id} is kept; continue with `judge annotate set SUITE {draft.task_id} "
        f"{draft.id} …`" + ("" if preview.problem else ", or save it as it is with --force"),
        err=True,
    )


def _show_source(source: GoldSource) -> None:
    from judge.compare.cells.render import difference_lines  # noqa: PLC0415  `--help` needs none of it

    if source.agrees:
        click.echo(f"{source.name}: agrees with the gold")
    elif source.agrees is None:
        click.echo(f"{source.name}: says nothing ({source.problem})")
    else:
        click.echo(f"{source.name}: says something else")
        for line in difference_lines(source.comparison, SHOWN):
            click.echo(f"    {line}")


@click.command(cls=HelpCommand)
@click.argument("suite")
@click.argument("task", required=False)
def drafts(suite: str, task: str | None) -> None:
    """Show what is being worked on in SUITE, or in one TASK of it."""
    from judge.annotate.casebook import Casebook  # noqa: PLC0415  `--help` needs none of it
    from judge.annotate.edits import describe  # noqa: PLC0415

    for draft in Casebook(suite, ids=[task] if task else ()).drafts(task):
        aim = "replaces case" if draft.replaces else "becomes case"
        click.echo(f"{draft.task_id}\t{draft.id}\t{draft.author}\t{aim} {draft.number}")
        for edit in (*draft.edits, *draft.answers):
            click.echo(f"    {describe(edit)}")


@click.command(cls=HelpCommand)
@click.argument("suite")
@click.argument("task")
@click.argument("draft")
def discard(suite: str, task: str, draft: str) -> None:
    """End a DRAFT without saving it; its number becomes free."""
    from judge.annotate.casebook import Casebook  # noqa: PLC0415  `--help` needs none of it

    book = Casebook(suite, ids=[task])
    book.discard(book.draft(task, draft))


@click.command(cls=HelpCommand)
@click.argument("suite")
@click.argument("task")
@click.argument("case", type=click.IntRange(min=1))
@option("--why", default="", help="The reason, for the record.")
@author_option
def remove(suite: str, task: str, case: int, why: str, author: str) -> None:
    """Take back the last save of CASE.

    A case that was added is removed, one that was changed is again what it was before. Only what
    `judge annotate` saved can be taken back. The record says who did it, and both workbooks stay in
    the suite's folder annotations/versions.
    """
    from judge.annotate.casebook import Casebook  # noqa: PLC0415  `--help` needs none of it

    book = Casebook(suite, ids=[task])
    taken = book.take_back(task, case, author, why=why)
    if taken.record["restores"] is None:
        click.echo(f"case {case} of task {task} is removed: {taken.input_path.name}")
    else:
        click.echo(f"case {case} of task {task} is again what it was before the last save")


@click.command(cls=HelpCommand)
@click.argument("suite")
@click.argument("task", required=False)
@json_option("the records")
def log(suite: str, task: str | None, as_json: bool) -> None:
    """Show who saved what in SUITE, and which cells of the answer moved."""
    from judge.annotate.casebook import Casebook  # noqa: PLC0415  `--help` needs none of it

    records = Casebook(suite, ids=[task] if task else ()).history(task)
    if as_json:
        click.echo(json.dumps(records, ensure_ascii=False))
        return
    for record in records:
        if record["state"] == "removing":
            why = f": {record['why']}" if record.get("why") else ""
            click.echo(
                f"{record['time']}\t{record['author']}\ttask {record['task']}, case "
                f"{record['case']}\ttaken back{why}"
            )
            continue
        changed, moved = record.get("changed", ()), record.get("moved", ())
        click.echo(
            f"{record['time']}\t{record['author']}\ttask {record['task']}, case {record['case']}\t"
            f"{record.get('kind', '')}\t{len(changed)} cells changed, {len(moved)} of the answer "
            f"moved; gold: {', '.join(record.get('gold_by', ()))}"
        )
        for cell in changed[:SHOWN]:
            click.echo(f"    {cell}")
