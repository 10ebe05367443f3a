"""``judge annotate``: make test cases, check them, and measure how strong they are.

``annotate suggest`` has a separate module, which is imported only when the command is called.
"""

from __future__ import annotations

import getpass
import json
import os
import re
import threading
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from judge import annotate as annotation
from judge import api
from judge.api.options import ScoreOptions, cores
from judge.cli.help import HelpCommand, OneOf
from judge.cli.options import (
    json_option,
    limit_options,
    option,
    options_of,
    page_options,
    read_limits,
    sandbox_option,
    together,
)
from judge.cli.output import print_table, table
from judge.cli.signals import EndSignal
from judge.cli.view import serve_page
from judge.console import counted, make_console
from judge.core.option import Section, split_ids
from judge.errors import JudgeError, SuiteError, UsageError

if TYPE_CHECKING:
    from judge.annotate.annotator import Annotator, Preview
    from judge.annotate.casebook import Draft, SavedCase
    from judge.annotate.edits import Edit
    from judge.annotate.gold import GoldSource
    from judge.annotate.rules import BrokenRule
    from judge.annotate.strength import TaskStrength
    from judge.core.submission import Submission
    from judge.core.task import Task

    Pairs = list[tuple[Task, Submission]]


_Command = TypeVar("_Command", bound=Callable[..., Any])
MAX_SHOWN = 20  # moved cells or differences


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
        help="A correct solution: a program, or a .jsonl of solutions; may be repeated.",
    )(command)


def decide_option(command: _Command) -> _Command:
    """Adds ``--decide``."""
    return option(
        "--decide",
        default="",
        metavar="SOURCE",
        section=Section.BY_HAND,
        help="The source that is right, if they disagree or there is only one: your decision.",
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
    option("--draft", "only_draft", is_flag=True, help="Only keep a draft; save no case."),
    option("--force", is_flag=True, help="Save in spite of doubts and broken rules."),
    sandbox_option,
    option("--json", "as_json", is_flag=True, help="Print as JSON on stdout."),
)
"""Adds the options that change the cells of a case."""


def _user() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError):
        return f"user {os.getuid()}"


@click.command(
    cls=HelpCommand, examples=("annotate add mysuite/ 1 B3=0 'C4=n/a' --reference right.py",)
)
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


_NUMBER = re.compile(r"[0-9]{1,9}")


@click.command(
    "set", cls=HelpCommand, examples=("annotate set mysuite/ 1 2 B3=0 --reference right.py",)
)
@click.argument("suite")
@click.argument("task")
@click.argument("case")
@click.argument("assignments", nargs=-1, metavar="[CELL=VALUE]...")
@option(
    "--onto",
    type=OneOf(["current", "new"]),
    help="Base the draft on the current version of its case, or make it a new case.",
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

    A case that somebody else changes in the meantime is not overwritten: the draft is kept, and
    can be saved on top of the changed case (--onto current), or as a new case (--onto new).
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


def _annotator(suite: str, task: str, options: dict[str, Any]) -> annotation.Annotator:

    return annotation.Annotator(suite, sandbox=options.pop("sandbox", "auto"), ids=[task])


def _change(
    annotator: Annotator, draft: Draft, assignments: Sequence[str], options: dict[str, Any]
) -> None:

    try:
        edits, answers = _read_edits(draft, assignments, options)
        kept_back = annotation.losses(draft.base.input, edits)
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
    refused = annotation.refusals(preview)
    saved = None
    if not preview.problem and (options["force"] or not refused):
        saved = annotator.save(draft, preview)
    _show(draft, preview, saved, refused, as_json=options["as_json"])
    if saved is None:
        click.get_current_context().exit(1)


def _read_edits(
    draft: Draft, assignments: Sequence[str], options: dict[str, Any]
) -> tuple[list[Edit], list[Edit]]:

    home = api.open_workbook(draft.base.input).sheet_names[0]
    edits: list[Edit] = [
        annotation.InsertRows(*_rows(text, home)) for text in options["insert_rows"]
    ]  # rows first: cells are named by their addresses after the insertion
    edits += [annotation.DeleteRows(*_rows(text, home)) for text in options["delete_rows"]]
    edits += [annotation.parse_assignment(text, home) for text in assignments]
    gold_home = api.open_workbook(draft.base.gold).sheet_names[0]
    return edits, [annotation.parse_assignment(text, gold_home) for text in options["gold"]]


def _rows(text: str, home: str) -> tuple[str, int, int]:
    sheet, _, cell = text.rpartition("!")
    row, _, count = cell.partition(":")
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

    if as_json:
        document = {
            "draft": None if saved else draft.id,
            "task": draft.task_id,
            "case": draft.number,
            "saved": [str(saved.input_path), str(saved.gold_path)] if saved else None,
            "problem": preview.problem,
            "doubts": refused,
            **annotation.record_facts(draft, preview.proposal),
        }
        click.echo(json.dumps(document, ensure_ascii=False))
        return
    for moved in preview.proposal.moved[:MAX_SHOWN]:
        before, after = annotation.content_text(moved.before), annotation.content_text(moved.after)
        click.echo(
            f"{annotation.address(moved.ref)}: {before or '(blank)'} -> {after or '(blank)'}"
        )
    more = len(preview.proposal.moved) - MAX_SHOWN
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

    if source.agrees:
        click.echo(f"{source.name}: agrees with the gold")
    elif source.agrees is None:
        click.echo(f"{source.name}: gives no answer ({source.problem})")
    else:
        click.echo(f"{source.name}: disagrees with the gold")
        for line in api.difference_lines(source.comparison, MAX_SHOWN):
            click.echo(f"    {line}")


@click.command(cls=HelpCommand, examples=("annotate drafts mysuite/",))
@click.argument("suite")
@click.argument("task", required=False)
def drafts(suite: str, task: str | None) -> None:
    """List the drafts of SUITE, or of one of its tasks, TASK."""
    for draft in annotation.Casebook(suite, ids=[task] if task else ()).drafts(task):
        aim = "replaces case" if draft.replaces else "becomes case"
        click.echo(f"{draft.task_id}\t{draft.id}\t{draft.author}\t{aim} {draft.number}")
        for edit in (*draft.edits, *draft.answers):
            click.echo(f"    {annotation.describe(edit)}")


@click.command(cls=HelpCommand, examples=("annotate discard mysuite/ 1 d1",))
@click.argument("suite")
@click.argument("task")
@click.argument("draft")
def discard(suite: str, task: str, draft: str) -> None:
    """End a DRAFT without saving it; its number becomes free."""
    book = annotation.Casebook(suite, ids=[task])
    book.discard(book.draft(task, draft))


@click.command(
    cls=HelpCommand, examples=("annotate remove mysuite/ 1 4 --why 'no such data in practice'",)
)
@click.argument("suite")
@click.argument("task")
@click.argument("case", type=click.IntRange(min=1))
@option("--why", default="", help="The reason, for the record.")
@author_option
def remove(suite: str, task: str, case: int, why: str, author: str) -> None:
    """Undo the last save of CASE.

    A case that was added is removed; a case that was changed is restored. Only what
    `judge annotate` saved can be undone. The record says who did it, and both workbooks stay in
    the suite's folder annotations/versions.
    """
    book = annotation.Casebook(suite, ids=[task])
    taken = book.take_back(task, case, author, why=why)
    if taken.record["restores"] is None:
        click.echo(f"case {case} of task {task} is removed: {taken.input_path.name}")
    else:
        click.echo(f"case {case} of task {task} is restored to what it was before the last save")


@click.command(cls=HelpCommand, examples=("annotate log mysuite/",))
@click.argument("suite")
@click.argument("task", required=False)
@json_option("the records")
def log(suite: str, task: str | None, as_json: bool) -> None:
    """Show who saved what in SUITE, and which cells of the answer changed."""
    records = annotation.Casebook(suite, ids=[task] if task else ()).history(task)
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
            f"{record.get('kind', '')}\t{counted(len(changed), 'cell')} changed, "
            f"{len(moved)} of the answer moved; gold: {', '.join(record.get('gold_by', ()))}"
        )
        for cell in changed[:MAX_SHOWN]:
            click.echo(f"    {cell}")


@click.command(cls=HelpCommand, examples=("annotate check mysuite/", "annotate check mysuite/ 1"))
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
    with annotation.Annotator(suite, sandbox=sandbox, ids=[task] if task else ()) as annotator:
        ids = [task] if task else [entry.id for entry in annotator.book.suite.tasks]
        findings = [finding for task_id in ids for finding in annotator.check(task_id)]
    if as_json:
        click.echo(
            json.dumps([_finding_as_json(finding) for finding in findings], ensure_ascii=False)
        )
    else:
        if not summary:
            _list(findings)
        _summarise(findings, len(ids))
    broken = [finding for finding in findings if finding.is_error]
    if broken:
        tasks = len({finding.task_id for finding in broken})
        raise SuiteError(f"{tasks} of {len(ids)} tasks break a rule of the manual")


def _finding_as_json(finding: BrokenRule) -> dict[str, object]:
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

    cases = Counter(finding.rule for finding in findings)
    tasks = Counter(rule for rule, _ in {(finding.rule, finding.task_id) for finding in findings})
    shown = table("!rule", "asks that", "tasks that break it", "findings")
    for rule, asks in annotation.RULES.items():
        shown.add_row(rule, asks, str(tasks[rule]), str(cases[rule]))
    console = make_console()
    print_table(shown, console)
    whole = total - len({finding.task_id for finding in findings})
    console.print(f"{counted(total, 'task')}, {whole} without any finding")


@click.command(cls=HelpCommand, examples=("annotate mysuite/ 1 --reference right.py",))
@click.argument("suite")
@click.argument("task_id", metavar="TASK")
@reference_option
@option("--from", "base", type=click.IntRange(min=1), help="Case to begin from [the first].")
@page_options
@author_option
@sandbox_option
def page(
    suite: str,
    task_id: str,
    references: tuple[Path, ...],
    base: int | None,
    port: int,
    no_browser: bool,
    author: str,
    sandbox: str,
) -> None:
    """Open the annotator's page for TASK of SUITE, only on 127.0.0.1.

    Change cells of the input, watch the gold change with them, and save both as a new case. Every
    change is kept in a draft immediately; the same command resumes an unsaved draft. Ctrl-C stops
    the server.
    """
    annotation.check_grid()
    with annotation.Annotator(suite, sandbox=sandbox, ids=[task_id]) as annotator:
        annotator.book.check_writable()
        solutions = annotator.references(task_id, references) if references else []
        session = annotation.AnnotationSession(
            annotator, task_id, author, references=solutions, base=base
        )
        warming = threading.Thread(target=session.warm_up)
        try:
            serve_page(
                annotation.Page(session, annotator.book.suite.name, author),
                "judge annotate",
                message=f"task {task_id} for {author}",
                port=port,
                no_browser=no_browser,
                on_listening=warming.start,
            )
            warming.join()
        except EndSignal:
            annotator.close()  # without waiting for computations that are still running
            raise
        finally:
            session.leave()
        click.echo("ended; drafts are kept")


@click.command(
    cls=HelpCommand,
    examples=("annotate strength mysuite/ --submissions solutions.jsonl --mutants",),
    first="files mutants out ids jobs as_json",
)
@click.argument("suite")
@submissions_option(required=True, help="Solutions (.jsonl) or a run; may be repeated.")
@option(
    "--out", type=click.Path(path_type=Path), default="results/strength", show_default=True,
    section=Section.JUDGED, help="Folder for the verdicts; those that it holds are reused.",
)  # fmt: skip
@option(
    "--mutants/--no-mutants",
    default=True,
    section=Section.JUDGED,
    help="Make wrong solutions out of the accepted ones.",
)
@options_of(ScoreOptions, "ids jobs", jobs="Solutions at a time [cores].")
@limit_options
@sandbox_option
@json_option("the matrix")
def strength(suite: str, as_json: bool, **options: Any) -> None:
    """Show how strong the cases of SUITE are.

    Judges the solutions on all cases, together with wrong solutions made from the accepted ones.
    A case kills a solution that fails on it. For each task, shows how many solutions each case
    kills, how many of them no other case kills, the smallest set of cases that kills all of them,
    and the mistakes that no case notices.
    """
    limits = read_limits(options)
    jobs = options["jobs"] or cores()
    chosen = split_ids(options["ids"])
    loaded = api.load_suite(suite, ids=chosen).select(chosen)
    pairs = _read_solutions(options["files"], loaded, chosen)
    if not pairs:
        raise UsageError("none of the chosen tasks has a solution", hint="Check --ids.")
    with annotation.Annotator.engines(options["sandbox"], jobs=jobs) as (sandbox, recalculator):
        rules = api.GradingRules(api.get_profile("standard"), engines=recalculator.identity)
        settings = api.Settings(sandbox, recalculator, rules, limits, jobs=jobs)
        measured = annotation.measure(pairs, settings, options["out"], mutants=options["mutants"])
    if as_json:
        click.echo(
            json.dumps([_strength_as_json(strength) for strength in measured], ensure_ascii=False)
        )
    else:
        _print_strength(measured)


def _read_solutions(files: Sequence[Path], suite: Any, ids: Sequence[str]) -> Pairs:
    from dataclasses import replace  # noqa: PLC0415  `--help` needs none of it

    pairs: Pairs = []
    samples: dict[str, int] = {}
    for given in files:
        file = annotation.solutions_file(given)
        for submission in api.load_submissions(file, suite, ids=ids or None):
            # Several files may use the same sample numbers.
            sample = samples.get(submission.task_id, 0)
            samples[submission.task_id] = sample + 1
            label = submission.label or f"{submission.model or given.stem} #{submission.sample}"
            pairs.append(
                (suite.task(submission.task_id), replace(submission, sample=sample, label=label))
            )
    return pairs


def _strength_as_json(strength: TaskStrength) -> dict[str, object]:
    return {
        "task": strength.task_id,
        "cases": list(strength.cases),
        "solutions": list(strength.solutions),
        "kills": {str(number): sorted(names) for number, names in strength.kills.items()},
        "adds": {str(number): sorted(names) for number, names in strength.adds.items()},
        "smallest": list(strength.smallest),
        "survivors": sorted(strength.survivors),
        "mistakes_left": list(strength.mistakes_left),
        "unprotected": strength.unprotected,
    }


def _print_strength(measured: Sequence[TaskStrength]) -> None:

    shown = table("!task", ">solutions", "killed by case (alone)", "fewest", ">never killed", "")
    for strength in measured:
        kills = ", ".join(
            f"{number}: {len(strength.kills[number])} ({len(strength.adds[number])})"
            for number in strength.cases
        )
        fewest = ", ".join(map(str, strength.smallest)) or "none"
        shown.add_row(
            strength.task_id,
            str(len(strength.solutions)),
            kills,
            fewest,
            str(len(strength.survivors)),
            strength.unprotected,
        )
    print_table(shown)
    console = make_console()
    _print_mistakes(measured)
    solutions = sum(len(strength.solutions) for strength in measured)
    survivors = sum(len(strength.survivors) for strength in measured)
    unprotected = sum(bool(strength.unprotected) for strength in measured)
    console.print(
        f"{counted(len(measured), 'task')}, {counted(solutions, 'solution')}, "
        f"{solutions - survivors} killed by some case; "
        f"{counted(unprotected, 'task')} that no case protects"
    )


def _print_mistakes(measured: Sequence[TaskStrength]) -> None:
    """Prints, task by task, the mistakes of wrong programs that every case accepts."""
    mistakes_left = [(strength.task_id, strength.mistakes_left) for strength in measured]
    if not any(mistakes for _, mistakes in mistakes_left):
        return
    shown = table("!task", "a mistake that no case notices")
    for task_id, mistakes in mistakes_left:
        for mistake in mistakes[:MAX_SHOWN]:
            shown.add_row(task_id, mistake)
        if len(mistakes) > MAX_SHOWN:
            shown.add_row(task_id, f"… {len(mistakes) - MAX_SHOWN} more: see --json")
    print_table(shown)
