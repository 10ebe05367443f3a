"""``judge compare``: hold one workbook against another at an answer position."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from judge.cli.options import comparison_options, sandbox_option

if TYPE_CHECKING:
    from judge.compare.cell import ComputedValues
    from judge.compare.checker import Plan
    from judge.compare.comparison import Comparison
    from judge.compare.reader import Workbook

_WORKBOOK = click.Path(exists=True, dir_okay=False, path_type=Path)


def _options_of_the_checker(command: Any) -> Any:
    options = [
        click.option("--tolerance", type=click.FloatRange(min=0), help="Numbers may be this far."),
        click.option(
            "--relative-tolerance", type=click.FloatRange(min=0), help="The same as a share."
        ),
        click.option("--ignore-case", is_flag=True, help="Upper and lower case are the same."),
        click.option("--ignore-whitespace", is_flag=True, help="White space does not matter."),
        click.option("--unordered-rows", is_flag=True, help="Rows may stand in any order."),
        click.option("--ignore-extra", is_flag=True, help="Let values pass where GOLD is blank."),
        click.option(
            "--ignore", multiple=True, metavar="RANGE", help="Cells that do not count; repeatable."
        ),
    ]
    for option in reversed(options):
        command = option(command)
    return command


@click.command()
@click.argument("gold", type=_WORKBOOK)
@click.argument("output", type=_WORKBOOK)
@click.option("--at", "position", required=True, help="Answer position: `'Sheet1'!A1:B9,C3`.")
@click.option("--answer-sheet", help="Sheet of a position that names none.")
@comparison_options
@_options_of_the_checker
@click.option(
    "--untouched",
    "before",
    type=_WORKBOOK,
    metavar="INPUT",
    help="Cells outside the position must be as in this workbook.",
)
@sandbox_option
@click.option("--show", type=click.IntRange(min=0), default=20, help="Differences to show [20].")
@click.option("--json", "as_json", is_flag=True, help="Print the comparison as JSON on stdout.")
def compare(gold: Path, output: Path, show: int, as_json: bool, **options: Any) -> None:
    """Compare the workbook OUTPUT with the workbook GOLD at an answer position.

    Exits with 0 where they are equal and with 1 where they are not.
    """
    from judge.compare.render import comparison_to_json, render_text  # noqa: PLC0415

    comparison = _compare(gold, output, options)
    if as_json:
        click.echo(json.dumps(comparison_to_json(comparison), ensure_ascii=False))
    else:
        click.echo(render_text(comparison, limit=show))
    if not comparison.equal:
        click.get_current_context().exit(1)


def _compare(gold_path: Path, output_path: Path, options: dict[str, Any]) -> Comparison:
    from judge.compare.checker import check, prepare  # noqa: PLC0415
    from judge.compare.profiles import get_profile  # noqa: PLC0415
    from judge.compare.reader import open_workbook  # noqa: PLC0415
    from judge.task import CheckerSpec  # noqa: PLC0415

    before = options["before"]
    profile = get_profile(options["profile"])
    gold, output = open_workbook(gold_path), open_workbook(output_path)
    plan = prepare(
        CheckerSpec(options=_checker_options(options)),
        answer_position=options["position"],
        answer_sheet=options["answer_sheet"],
        gold=gold,
        output=output,
    )
    gold_computed, output_computed = _compute(plan, gold, output, options)
    return check(
        plan,
        gold,
        output,
        profile=profile,
        style=options["style"],
        gold_computed=gold_computed,
        output_computed=output_computed,
        before=None if before is None else open_workbook(before),
    )


def _checker_options(options: dict[str, Any]) -> dict[str, object]:
    names = ["tolerance", "relative_tolerance", "ignore_case", "ignore_whitespace"]
    names += ["unordered_rows", "ignore_extra", "ignore"]
    given: dict[str, object] = {name: options[name] for name in names if options[name]}
    if options["tolerance"] is not None:
        given["tolerance"] = options["tolerance"]
    if options["before"] is not None:
        given["untouched"] = True
    return given


def _compute(
    plan: Plan, gold: Workbook, output: Workbook, options: dict[str, Any]
) -> tuple[ComputedValues, ComputedValues]:
    """Has the formulas computed whose values cannot be trusted, if there are any."""
    from judge.compare.cell import NOTHING_COMPUTED  # noqa: PLC0415

    output_ranges = [each for each in plan.output_ranges if each is not None]
    always = options["recalc"] == "always"
    needed = options["recalc"] != "never" and any(
        _needs_engine(workbook, ranges, always=always)
        for workbook, ranges in ((gold, plan.gold_ranges), (output, output_ranges))
    )
    if not needed:
        return NOTHING_COMPUTED, NOTHING_COMPUTED
    from judge.recalc.policy import Origin  # noqa: PLC0415
    from judge.recalc.select import open_recalculator  # noqa: PLC0415
    from judge.sandbox import open_sandbox  # noqa: PLC0415

    with contextlib.ExitStack() as stack:
        sandbox = stack.enter_context(contextlib.closing(open_sandbox(options["sandbox"])))
        recalculator = stack.enter_context(
            contextlib.closing(
                open_recalculator(sandbox, mode=options["recalc"], engine=options["engine"])
            )
        )
        return (
            recalculator.fill(gold, plan.gold_ranges, origin=Origin.GOLD),
            recalculator.fill(output, output_ranges, origin=Origin.FINISHED),
        )


def _needs_engine(workbook: Workbook, ranges: Any, *, always: bool) -> bool:
    from judge.recalc.policy import calculates  # noqa: PLC0415

    cells = [cell for each in ranges for cell in workbook.formula_cells(each)]
    if not cells:
        return False
    return (
        always or not all(cell.has_cached_value for cell in cells) or not calculates(workbook.facts)
    )
