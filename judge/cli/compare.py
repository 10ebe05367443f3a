"""``judge compare``: two workbooks at a position, by rules or a board; ``judge facts``: one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from judge import api
from judge.cli.help import HelpCommand, OneOf
from judge.cli.options import (
    checker_options,
    grading_options,
    json_option,
    option,
    read_checker_options,
)
from judge.console import clipped
from judge.core.finding import in_words
from judge.core.option import Section
from judge.errors import UsageError, WorkbookError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from judge.core.finding import Finding
    from judge.core.records.cases import DifferenceRecord


_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)
_FILE_OR_FOLDER = click.Path(exists=True, path_type=Path)


@click.command(
    cls=HelpCommand,
    examples=(
        "compare gold.xlsx output.xlsx --at \"'Sheet 1'!B2:B9\"",
        "compare gold.xlsx output.xlsx --rules rules.json",
        "compare output.xlsx --checklist checklist.json",
    ),
    first="position rules_path board_path checklist_path profile tolerance ignore_case recalc"
    " input_path as_json",
)
@click.argument("gold", type=_FILE_OR_FOLDER)
@click.argument("output", type=_FILE_OR_FOLDER, required=False)
@option("--at", "position", section=Section.ANSWER, help="Answer position: `'Sheet1'!A1:B9,C3`.")
@option(
    "--rules",
    "rules_path",
    type=_FILE,
    metavar="FILE",
    section=Section.ANSWER,
    help="A JSON list of rules over whole workbooks, in place of a position.",
)
@option(
    "--evaluator",
    type=OneOf(["spider2v", "osworld"]),
    section=Section.ANSWER,
    help="The evaluator that the rules were written for [named in FILE, or spider2v].",
)
@option(
    "--board",
    "board_path",
    type=_FILE,
    metavar="FILE",
    section=Section.ANSWER,
    help="A check board (YAML) for the sheets of GOLD, in place of a position.",
)
@option(
    "--checklist",
    "checklist_path",
    type=_FILE,
    metavar="FILE",
    section=Section.ANSWER,
    help="A checklist (JSON or YAML) for OUTPUT, a workbook or a folder; no GOLD is needed.",
)
@option("--answer-sheet", section=Section.ANSWER, help="Sheet of a position that names none.")
@option(
    "--input",
    "input_path",
    type=_FILE,
    metavar="FILE",
    section=Section.ANSWER,
    help="The workbook that OUTPUT was made from; separates cells to change from cells to keep.",
)
@option(
    "--change",
    "changes",
    multiple=True,
    metavar="CELL=VALUE",
    section=Section.ANSWER,
    help="Set a cell in both workbooks, and compute the answer again before comparing: "
    "`'Sheet1'!B2=8`; repeatable.",
)
@grading_options
@checker_options
@option(
    "--show",
    type=click.IntRange(min=0),
    default=20,
    section=Section.SHOWN,
    help="Differences to show [20].",
)
@json_option("the comparison")
def compare(gold: Path, output: Path | None, show: int, as_json: bool, **options: Any) -> None:
    """Compare the workbook OUTPUT with the workbook GOLD at an answer position, or by rules.

    Rules are a rule list (--rules), or a check board (--board). A checklist (--checklist) has items
    with points, and OUTPUT may be a folder; it needs no GOLD, unless an item names one.

    Exits with 0 if they are equal and with 1 if they are not.
    """
    rules_path, evaluator = options.pop("rules_path"), options.pop("evaluator")
    board_path, checklist_path = options.pop("board_path"), options.pop("checklist_path")
    methods = (options["position"], rules_path, board_path, checklist_path)
    if sum(method is not None for method in methods) != 1:
        given = "several were given" if any(methods) else "none was given"
        raise UsageError(
            f"give an answer position, a rule list, a board or a checklist: {given}",
            hint="Use --at POSITION, --rules FILE, --board FILE or --checklist FILE; only one.",
        )
    if checklist_path is not None:
        _compare_by_checklist(gold, output, checklist_path, options, as_json=as_json)
        return
    if output is None or gold.is_dir() or output.is_dir():
        raise UsageError(
            "GOLD and OUTPUT must be two workbooks",
            hint="Only with --checklist FILE can GOLD be left out, or OUTPUT be a folder.",
        )
    if evaluator is not None and rules_path is None:
        raise UsageError(
            "--evaluator can only be used with --rules", hint="Leave it out, or add --rules."
        )
    if options["position"] is None:
        _refuse_options_of_positions(options)
    if board_path is not None:
        finding = api.compare_by_board(gold, output, board_path, options)
        print_finding(finding, show=show, as_json=as_json, nouns=("property", "properties"))
        if not finding.agrees:
            click.get_current_context().exit(1)
        return
    if rules_path is not None:
        finding = api.compare_by_rules(gold, output, rules_path, evaluator, options)
        print_finding(finding, show=show, as_json=as_json)
        if not finding.agrees:
            click.get_current_context().exit(1)
        return
    checker = read_checker_options(options)
    comparison = api.compare_at_position(gold, output, options["position"], checker, options)
    if as_json:
        click.echo(json.dumps(api.comparison_to_json(comparison), ensure_ascii=False))
    else:
        click.echo(api.render_text(comparison, limit=show))
    if not comparison.equal:
        click.get_current_context().exit(1)


def _compare_by_checklist(
    gold: Path, output: Path | None, path: Path, options: dict[str, Any], *, as_json: bool
) -> None:
    """Judges OUTPUT by a checklist; if there is no gold, OUTPUT is the only argument, ``gold``."""
    _refuse_options_of_positions(options)
    golds = [] if output is None else [gold]
    finding = api.compare_by_checklist(output or gold, path, golds, options)
    record = finding.record
    if as_json:
        click.echo(json.dumps({**record, "cause": finding.cause}, ensure_ascii=False))
    else:
        from judge.report.checklists import (  # noqa: PLC0415  few comparisons are of checklists
            checklist_lines,
            item_lines,
        )

        outcome = "accepted" if finding.agrees else "not accepted"
        equal = record["cells"] - record["differing_cells"]
        click.echo(
            f"{outcome}: {equal} of {record['cells']} deterministic items hold, "
            f"profile {record['profile']}"
        )
        for line in checklist_lines(record["checklist"]):
            click.echo(line)
        for item in record["items"]:
            for line in item_lines(item):
                click.echo(line)
    if not finding.agrees:
        click.get_current_context().exit(1)


def _refuse_options_of_positions(options: dict[str, Any]) -> None:
    """Refuses options that have no effect on rules, boards and checklists."""
    names = [name for name, value in read_checker_options(dict(options)).items() if value]
    names += [name for name in ("style", "answer_sheet") if options[name]]
    names += ["input"] if options["input_path"] is not None else []
    names += ["change"] if options["changes"] else []
    if names:
        raise UsageError(
            f"--{names[0].replace('_', '-')} can only be used with --at",
            hint="Rules and boards define what is compared; leave it out.",
        )


_MAX_VALUE_CHARS = 200


def print_finding(
    finding: Finding, *, show: int, as_json: bool, nouns: tuple[str, str] = ("rule", "rules")
) -> None:
    """Prints what differs, or the record as JSON.

    Args:
        finding: the outcome of the comparison.
        show: how many differences to show.
        as_json: whether to print the record as JSON.
        nouns: singular and plural of what is checked, such as ``rule`` and ``rules``.
    """
    if as_json:
        click.echo(json.dumps({**finding.record, "cause": finding.cause}, ensure_ascii=False))
        return
    record = finding.record
    differences = record.get("differences", [])
    click.echo(
        f"{'equal' if finding.agrees else 'different'}: "
        f"{record.get('cells', 0)} {nouns[1]}, "
        f"profile {record.get('profile')}"
    )
    for difference in differences[:show]:
        for line in _lines_of(difference, nouns[0]):
            click.echo(line)
    if len(differences) > show:
        click.echo(f"  … and {len(differences) - show} more (all with --json)")
    if (error := record.get("published_error")) and record.get("profile") != "official":
        click.echo(f"the published evaluator raises {error}")
    elif record.get("official_equal") not in {None, finding.agrees}:
        outcome = "accepts" if record.get("official_equal") else "does not accept"
        click.echo(f"the published evaluator {outcome} it")
    for note in record.get("notes", []):
        click.echo(f"note: {note}")


def _lines_of(difference: DifferenceRecord, noun: str = "rule") -> Iterator[str]:
    """Yields lines that show a difference: the requirement, and the expected and the found value.

    Args:
        difference: the record of the difference.
        noun: what is checked, such as ``rule``.
    """
    where = f" ({difference['sheet']})" if difference.get("sheet") else ""
    values = (difference.get("expected"), difference.get("actual"))
    detail = difference.get("detail")
    if not (words := difference.get("words")):
        location = difference.get("place", {"name": ""})["name"]
        text = f"expected {_short(values[0])}, found {_short(values[1])}"
        yield f"  {noun} {location}{where}: {text}{f'; {detail}' if detail else ''}"
        return
    yield f"  {noun} {difference.get('rule')}{where}: {words}"
    if values != (None, None):
        yield f"    expected {_short(values[0])}"
        yield f"    found {_short(values[1])}"
    if detail:
        yield f"    {detail}"


def _short(value: object) -> str:
    """A value on one line, shortened if it is long; ``--json`` shows all of it."""
    text = json.dumps(value, ensure_ascii=False) if isinstance(value, str) else in_words(value)
    return clipped(text, _MAX_VALUE_CHARS)


@click.command(cls=HelpCommand, examples=("facts output.xlsx",))
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@json_option("all facts")
def facts(file: Path, as_json: bool) -> None:
    """Show what the workbook FILE contains besides the values of its cells.

    Charts, pivot tables, tables, filters, frozen panes, validations, conditional formats,
    hyperlinks, sparklines, hidden rows and columns, merged cells, names. Exits with 6 if the file
    is not a readable workbook.
    """
    book = api.open_workbook(file)
    try:
        with book.package.budget.working():
            facts = api.BookFacts(book)
            if as_json:
                text = json.dumps(api.facts_to_json(facts), ensure_ascii=False)
            else:
                text = "\n".join(api.facts_to_lines(facts))
    except WorkbookError as error:
        raise WorkbookError(f"{file}: {error.message}", hint=error.hint) from error
    click.echo(text)
