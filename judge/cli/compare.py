"""``judge compare``: compare one workbook with another at an answer position."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import click

from judge.cli.help import HelpCommand, OneOf
from judge.cli.options import (
    checker_options,
    grading_options,
    json_option,
    option,
    read_checker_options,
)
from judge.core.option import Section
from judge.errors import UsageError, WorkbookError

if TYPE_CHECKING:
    from judge.compare.cells.comparison import Comparison
    from judge.workbook.reader import Workbook

_COMPUTING = ("recalc", "engine", "lenient_names", "sandbox")
_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)


@click.command(cls=HelpCommand)
@click.argument("gold", type=_FILE)
@click.argument("output", type=_FILE)
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
    help="Whose evaluator the rules were written for [what FILE says, or spider2v].",
)
@option(
    "--board",
    "board_path",
    type=_FILE,
    metavar="FILE",
    section=Section.ANSWER,
    help="A check board (YAML) for the sheets of GOLD, in place of a position.",
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
def compare(gold: Path, output: Path, show: int, as_json: bool, **options: Any) -> None:
    """Compare the workbook OUTPUT with the workbook GOLD at an answer position, or by rules.

    Rules are a rule list (--rules), or a check board (--board).

    Exits with 0 if they are equal and with 1 if they are not.
    """
    rules_path, evaluator = options.pop("rules_path"), options.pop("evaluator")
    board_path = options.pop("board_path")
    if sum(each is not None for each in (options["position"], rules_path, board_path)) != 1:
        raise UsageError(
            "give an answer position, a rule list or a board",
            hint="Add --at POSITION, --rules FILE or --board FILE; only one of them.",
        )
    if evaluator is not None and rules_path is None:
        raise UsageError("--evaluator belongs to --rules", hint="Leave it out, or add --rules.")
    if options["position"] is None:
        _refuse_options_of_positions(options)
    if board_path is not None:
        from judge.cli.compare_boards import compare_by_board  # noqa: PLC0415
        from judge.cli.compare_rules import print_finding  # noqa: PLC0415

        found = compare_by_board(gold, output, board_path, options)
        print_finding(found, show=show, as_json=as_json, nouns=("property", "properties"))
        if not found.agrees:
            click.get_current_context().exit(1)
        return
    if rules_path is not None:
        from judge.cli.compare_rules import compare_by_rules, print_finding  # noqa: PLC0415

        found = compare_by_rules(gold, output, rules_path, evaluator, options)
        print_finding(found, show=show, as_json=as_json)
        if not found.agrees:
            click.get_current_context().exit(1)
        return
    from judge.compare.cells.render import comparison_to_json, render_text  # noqa: PLC0415

    comparison = _compare(gold, output, options)
    if as_json:
        click.echo(json.dumps(comparison_to_json(comparison), ensure_ascii=False))
    else:
        click.echo(render_text(comparison, limit=show))
    if not comparison.equal:
        click.get_current_context().exit(1)


def _refuse_options_of_positions(options: dict[str, Any]) -> None:
    """Rules and boards say themselves what is compared: an option would change nothing."""
    given = [name for name, value in read_checker_options(dict(options)).items() if value]
    given += [name for name in ("style", "answer_sheet") if options[name]]
    given += ["input"] if options["input_path"] is not None else []
    if given:
        raise UsageError(
            f"--{given[0].replace('_', '-')} belongs to --at",
            hint="Rules and boards say themselves what is compared; leave it out.",
        )


def _compare(gold_path: Path, output_path: Path, options: dict[str, Any]) -> Comparison:
    from judge.api.workbooks import Engines  # noqa: PLC0415
    from judge.compare.cells.answer_range import prepare  # noqa: PLC0415
    from judge.compare.cells.computing import compute_and_check  # noqa: PLC0415
    from judge.compare.cells.options import check_contradictions, range_spec  # noqa: PLC0415
    from judge.compare.profiles import get_profile  # noqa: PLC0415
    from judge.core.submission import Origin  # noqa: PLC0415

    input_path: Path | None = options["input_path"]
    chosen = read_checker_options(options)
    needing = [
        name
        for name in ("untouched", "keep", "accept")
        if chosen.get(name) not in {None, False, "off", "cells"}
    ]
    if needing and input_path is None:
        raise UsageError(
            f"--{needing[0]} compares with the workbook that OUTPUT was made from",
            hint="Add --input FILE.",
        )
    profile = get_profile(options["profile"])
    check_contradictions(profile, chosen, style=options["style"], recalc=options["recalc"])
    spec = range_spec(options["position"], options["answer_sheet"], chosen)
    computing = {name: options[name] for name in _COMPUTING}
    with _Files() as files, Engines(**computing) as engines:
        gold = files.open("the gold", gold_path)
        prepare(spec, gold=gold, output=None, typed=True)
        output = files.open("the output", output_path)
        before = None if input_path is None else files.open("the input", input_path)
        plan = prepare(spec, gold=gold, output=output, typed=True)
        return compute_and_check(
            plan,
            gold,
            output,
            compute=engines,
            origin=Origin.FINISHED,
            profile=profile,
            style=options["style"],
            before=before,
        ).comparison


class _Files:
    """The workbooks that are read side by side; an error of reading one says which it is."""

    def __init__(self) -> None:
        self._opened: list[tuple[str, Path, Workbook]] = []

    def open(self, role: str, path: Path) -> Workbook:
        from judge.workbook.reader import open_workbook  # noqa: PLC0415

        for _, known_path, workbook in self._opened:
            if known_path == path:
                return workbook
        try:
            workbook = open_workbook(path)
        except WorkbookError as error:
            # The message begins with the path.
            raise _unreadable(f"{role}, {error.message}", role, error) from error
        self._opened.append((role, path, workbook))
        return workbook

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, WorkbookError):
            for role, path, workbook in self._opened:
                if error.culprit is workbook.package:
                    raise _unreadable(f"{role}, {path}: {error.message}", role, error) from error


def _unreadable(message: str, role: str, error: WorkbookError) -> WorkbookError:
    hint = error.hint or (
        f"Open {role} in a spreadsheet program and save it as .xlsx, or make it again; "
        "`judge score` gives such an output the verdict IW."
    )
    return WorkbookError(message, hint=hint)
