"""``judge compare``: hold one workbook against another at an answer position."""

from __future__ import annotations

import contextlib
import functools
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import click

from judge.cli.options import (
    checker_options,
    comparison_options,
    read_checker_options,
    sandbox_option,
)
from judge.errors import UsageError, WorkbookError

if TYPE_CHECKING:
    from judge.compare.cell import ComputedValues
    from judge.compare.checker import Plan
    from judge.compare.comparison import Comparison
    from judge.compare.conditions import ConditionAnswers, ConditionQuestions
    from judge.compare.reader import Workbook
    from judge.recalc.policy import Recalculator

_WORKBOOK = click.Path(exists=True, dir_okay=False, path_type=Path)


@click.command()
@click.argument("gold", type=_WORKBOOK)
@click.argument("output", type=_WORKBOOK)
@click.option("--at", "position", required=True, help="Answer position: `'Sheet1'!A1:B9,C3`.")
@click.option("--answer-sheet", help="Sheet of a position that names none.")
@comparison_options
@checker_options
@click.option(
    "--input",
    "input_path",
    type=_WORKBOOK,
    metavar="FILE",
    help="The workbook that OUTPUT was made from; counts cells to change and to keep apart.",
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
    from judge.compare.checker import check, prepare, wanted_conditions  # noqa: PLC0415
    from judge.compare.conditions import NO_ANSWERS  # noqa: PLC0415
    from judge.compare.profiles import get_profile  # noqa: PLC0415
    from judge.task import CheckerSpec  # noqa: PLC0415

    input_path: Path | None = options["input_path"]
    chosen = read_checker_options(options)
    if chosen.get("untouched") and input_path is None:
        raise UsageError(
            "--untouched compares with the workbook that OUTPUT was made from",
            hint="Add --input FILE.",
        )
    profile = get_profile(options["profile"])
    spec = CheckerSpec(options=chosen)
    asked = {"answer_position": options["position"], "answer_sheet": options["answer_sheet"]}
    with _Files() as files, _Engines(options) as engines:
        gold = files.open("the gold", gold_path)
        prepare(spec, gold=gold, output=None, **asked)
        output = files.open("the output", output_path)
        before = None if input_path is None else files.open("the input", input_path)
        plan = prepare(spec, gold=gold, output=output, **asked)
        gold_computed, output_computed = _compute(plan, gold, output, engines)
        asked_of_check: dict[str, Any] = {
            "profile": profile,
            "style": options["style"],
            "gold_computed": gold_computed,
            "output_computed": output_computed,
        }
        questions = wanted_conditions(plan, gold, output, **asked_of_check)
        conditions = NO_ANSWERS
        if not questions.is_empty and engines.mode != "never":
            conditions = engines.answer(questions, gold, output)
        return check(plan, gold, output, conditions=conditions, before=before, **asked_of_check)


class _Files:
    """The workbooks that are read side by side; an error of reading one says which it is."""

    def __init__(self) -> None:
        self._opened: list[tuple[str, Path, Workbook]] = []

    def open(self, role: str, path: Path) -> Workbook:
        from judge.compare.reader import open_workbook  # noqa: PLC0415

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


class _Engines:
    """The calculation engines, opened when the first formula needs one."""

    def __init__(self, options: dict[str, Any]) -> None:
        self.mode: str = options["recalc"]
        self._options = options
        self._stack = contextlib.ExitStack()

    @functools.cached_property
    def recalculator(self) -> Recalculator:
        from judge.recalc.select import open_recalculator, recalc_cache_folder  # noqa: PLC0415
        from judge.sandbox import open_sandbox  # noqa: PLC0415

        options = self._options
        sandbox = self._stack.enter_context(contextlib.closing(open_sandbox(options["sandbox"])))
        opened = open_recalculator(
            sandbox,
            mode=options["recalc"],
            engine=options["engine"],
            lenient_names=options["lenient_names"],
            cache_dir=recalc_cache_folder(),
        )
        return self._stack.enter_context(contextlib.closing(opened))

    def answer(
        self, questions: ConditionQuestions, gold: Workbook, output: Workbook
    ) -> ConditionAnswers:
        from judge.recalc.conditions import answer_conditions  # noqa: PLC0415
        from judge.recalc.policy import Origin  # noqa: PLC0415

        return answer_conditions(self.recalculator, questions, gold, output, origin=Origin.FINISHED)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()


def _compute(
    plan: Plan, gold: Workbook, output: Workbook, engines: _Engines
) -> tuple[ComputedValues, ComputedValues]:
    """Has the formulas computed whose values cannot be trusted, if there are any."""
    from judge.compare.cell import NOTHING_COMPUTED  # noqa: PLC0415

    output_ranges = [each for each in plan.output_ranges if each is not None]
    always = engines.mode == "always"
    needed = engines.mode != "never" and any(
        _needs_engine(workbook, ranges, always=always)
        for workbook, ranges in ((gold, plan.gold_ranges), (output, output_ranges))
    )
    if not needed:
        return NOTHING_COMPUTED, NOTHING_COMPUTED
    from judge.recalc.policy import Origin  # noqa: PLC0415

    return (
        engines.recalculator.fill(gold, plan.gold_ranges, origin=Origin.GOLD),
        engines.recalculator.fill(output, output_ranges, origin=Origin.FINISHED),
    )


def _needs_engine(workbook: Workbook, ranges: Any, *, always: bool) -> bool:
    from judge.recalc.policy import calculates  # noqa: PLC0415

    cells = [cell for each in ranges for cell in workbook.formula_cells(each)]
    if not cells:
        return False
    return (
        always or not all(cell.has_cached_value for cell in cells) or not calculates(workbook.facts)
    )
