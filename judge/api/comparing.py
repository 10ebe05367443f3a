"""Compares two files as ``judge compare`` does: at a position, by a rule list, by a board."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Self, Unpack

from judge.annotate.edits import parse_assignment
from judge.api.judging import ComputeOnDemand, Judge
from judge.api.options import ComputingChanges, with_changes
from judge.compare.boards.board import Board
from judge.compare.boards.checker import finding_by_board
from judge.compare.boards.standard import UnusableBoardError
from judge.compare.cells.answer_range import prepare
from judge.compare.cells.changes import Change
from judge.compare.cells.comparison import Comparison
from judge.compare.cells.computing import compute_and_check
from judge.compare.cells.options import check_contradictions, range_spec
from judge.compare.checklists.items import NAME as CHECKLIST
from judge.compare.checklists.items import read_items
from judge.compare.checklists.workspace import answer_of_folder
from judge.compare.contract import AnswerFaultError, GoldFaultError, Rules
from judge.compare.profiles import Profile, get_profile
from judge.compare.published_error import Side
from judge.compare.registry import checker_of
from judge.compare.rules.book import Book, prints_beside
from judge.compare.rules.checker import judge_rules
from judge.compare.rules.options import RuleOptions
from judge.core.finding import Finding
from judge.core.submission import AnswerForm, Origin
from judge.core.task import CheckerSpec, Gold, Task, TestCase
from judge.errors import UsageError, WorkbookError
from judge.files.documents import read_json
from judge.files.packed_folder import files_below
from judge.files.paths import GivenPath, as_path
from judge.files.yaml_documents import read_yaml
from judge.workbook.budget import DEFAULT_LIMITS, ReadLimits
from judge.workbook.reader import Workbook, open_workbook


def compare_workbooks(
    gold: bytes | str | Path,
    output: bytes | str | Path,
    position: str,
    *,
    answer_sheet: str | None = None,
    profile: str | Profile = "standard",
    style: Sequence[str] = (),
    before: bytes | str | Path | None = None,
    options: Mapping[str, object] | None = None,
    max_differences: int = 200,
    limits: ReadLimits = DEFAULT_LIMITS,
    **computing: Unpack[ComputingChanges],
) -> Comparison:
    """Compares the answer range of an output workbook with the same range of its gold.

    The defaults are those of ``judge compare``: if, and only if, the range holds formulas without a
    trusted value, they are computed in the sandbox.

    Args:
        gold: the gold workbook, as a path or as bytes.
        output: the output workbook, as a path or as bytes; it may be hostile.
        position: the answer position, such as ``'Sheet1'!A1:B9``; a sheet that does not exist is an
            error (:meth:`judge.Judge.compare` also reads positions of published suites).
        answer_sheet: the sheet that the suite names with the position, if any.
        profile: what "equal" means, by name or as rules.
        style: names of style attributes to compare in addition to the values.
        before: the input workbook, for the option ``untouched`` and for the groups of cells.
        options: options of the checker, such as ``{"tolerance": 0.01}``.
        max_differences: how many differences are kept; all are counted.
        limits: limits on the cost of reading a workbook.
        computing: how formulas are computed: the fields ``recalc``, ``engine``, ``lenient_names``
            and ``sandbox`` of :class:`JudgingOptions`; the sandbox is opened only if something has
            to be computed.

    Raises:
        PositionError: the position cannot be read, or the gold has no such sheet.
        WorkbookError: a workbook cannot be read.
        UsageError: there is no such profile, style attribute, option or engine.
        SandboxError: something has to be computed, and there is no sandbox.
    """
    with Judge(options=with_changes(None, {**computing, "jobs": 1})) as judge:
        return judge.compare(
            gold,
            output,
            position,
            answer_sheet=answer_sheet,
            profile=profile,
            style=style,
            before=before,
            checker=options,
            max_differences=max_differences,
            limits=limits,
        )


class Engines(ComputeOnDemand):
    """The calculation engines of one comparison, opened when the first formula needs one.

    Args:
        computing: how formulas are computed, as fields of :class:`JudgingOptions`.
    """

    def __init__(self, **computing: Unpack[ComputingChanges]) -> None:
        options = with_changes(None, {**computing, "jobs": 1})
        self._judge = Judge(options=options)
        super().__init__(options.recalc, self._judge.recalculator)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._judge.close()


_COMPUTING = ("recalc", "engine", "lenient_names", "sandbox")


def compare_at_position(
    gold_path: GivenPath,
    output_path: GivenPath,
    position: str,
    checker: Mapping[str, object],
    options: Mapping[str, Any],
) -> Comparison:
    """Compares two workbooks at an answer position; an error about a workbook says which one.

    Args:
        gold_path: the gold workbook.
        output_path: the output workbook.
        position: the answer position.
        checker: options of the comparison.
        options: options of ``judge compare``: ``answer_sheet``, ``profile``, ``style``,
            ``input_path``, ``changes`` to make in both workbooks first (``CELL=VALUE``), and how
            formulas are computed.

    Raises:
        PositionError: the position cannot be read, or the gold has no such sheet.
        WorkbookError: a workbook cannot be read.
        UsageError: options contradict each other, or need the input workbook.
    """
    input_path: Path | None = options["input_path"]
    needing = [
        name
        for name in ("untouched", "keep", "accept", "collateral", "dynamic")
        if checker.get(name) not in {None, False, "off", "cells"}
    ]
    if needing and input_path is None:
        raise UsageError(
            f"--{needing[0]} compares with the workbook that OUTPUT was made from",
            hint="Add --input FILE.",
        )
    profile = get_profile(options["profile"])
    check_contradictions(profile, checker, style=options["style"], recalc=options["recalc"])
    spec = range_spec(position, options["answer_sheet"], checker)
    with _Files() as files, _engines(options) as engines:
        gold = files.open("the gold", as_path(gold_path))
        prepare(spec, gold=gold, output=None, typed=True)
        output = files.open("the output", as_path(output_path))
        changed = changes_of(options["changes"], gold)
        if changed is not None:
            gold, output = changed.made_in(gold), changed.made_in(output)
        before = None if input_path is None else files.open("the input", input_path)
        plan = prepare(spec, gold=gold, output=output, typed=True)
        return compute_and_check(
            plan,
            gold,
            output,
            compute=engines,
            # In a changed workbook, the values stored with formulas do not count.
            origin=Origin.FINISHED if changed is None else Origin.SOLUTION,
            gold_origin=Origin.GOLD if changed is None else Origin.SOLUTION,
            profile=profile,
            style=options["style"],
            before=before,
        ).comparison


def changes_of(typed: Sequence[str], gold: Workbook) -> Change | None:
    """Cells to set in two workbooks before they are compared; None if no cells are to be set.

    Args:
        typed: strings ``CELL=VALUE``; a cell without a sheet is on the first sheet of the gold.
        gold: the gold workbook.

    Raises:
        UsageError: a string does not have this form.
    """
    if not typed:
        return None
    first = gold.sheet_names[0]
    return Change(tuple(parse_assignment(text, first) for text in typed))


class _Files:
    """Keeps several workbooks open; an error about a workbook says which one it is."""

    def __init__(self) -> None:
        self._opened: list[tuple[str, Path, Workbook]] = []

    def open(self, role: str, path: Path) -> Workbook:
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
        f"Open {role} in a spreadsheet program and save it as .xlsx, or create it again; "
        "`judge score` gives such an output the verdict IW."
    )
    return WorkbookError(message, hint=hint)


def compare_by_board(
    gold: GivenPath, output: GivenPath, path: GivenPath, options: Mapping[str, Any]
) -> Finding:
    """Compares two workbooks by the board in a file.

    Args:
        gold: the gold workbook.
        output: the output workbook.
        path: the board, YAML or JSON: as published, or only its part below ``check_board``.
        options: the command's options: profile, engines.

    Raises:
        UsageError: the file is not a board.
        WorkbookError: a workbook cannot be read.
        GoldFaultError: the gold has none of the properties that the board asks for.
    """
    gold, output = as_path(gold), as_path(output)
    board = _read_board(as_path(path))
    golden = Book(open_workbook(gold), Side.GOLD)
    answer = Book(open_workbook(output), Side.ANSWER)
    profile = get_profile(options["profile"])
    try:
        with (
            _engines(options) as engines,
            answer.workbook.package.budget.working(),
        ):
            return finding_by_board(
                answer,
                golden,
                board,
                engines,
                Origin.FINISHED,
                published=profile.published,
                profile=profile.name,
            )
    except UnusableBoardError as error:
        raise GoldFaultError(f"{path}: {error}") from error
    except WorkbookError as error:
        named = gold if error.culprit is golden.workbook.package else output
        raise WorkbookError(f"{named}: {error.message}", hint=error.hint) from error


def _read_board(path: Path) -> Board:
    document = read_yaml(path, UsageError)
    try:
        return Board.of(document)
    except UsageError as error:
        raise UsageError(f"{path}: {error.message}", hint=error.hint) from error


def compare_by_rules(
    gold: GivenPath,
    output: GivenPath,
    rules_path: GivenPath,
    evaluator: str | None,
    options: Mapping[str, Any],
) -> Finding:
    """Compares two workbooks by the rules in a file.

    Args:
        gold: the gold workbook.
        output: the output workbook.
        rules_path: the rule list.
        evaluator: the evaluator that the rules were written for; None for the one in the file.
        options: the command's options: profile, engines.

    Raises:
        UsageError: the file is not a rule list.
        WorkbookError: a workbook cannot be read.
        GoldFaultError: the rules cannot be checked with this gold.
    """
    gold, output = as_path(gold), as_path(output)
    chosen = _read_rules(as_path(rules_path), evaluator)
    golden = Book(open_workbook(gold), Side.GOLD, prints_beside(gold))
    answer = Book(open_workbook(output), Side.ANSWER, prints_beside(output))
    rules = Rules(get_profile(options["profile"]), options["style"], max_differences=200)
    try:
        with (
            _engines(options) as engines,
            answer.workbook.package.budget.working(),
        ):
            return judge_rules(chosen, answer, golden, Origin.FINISHED, engines, rules)
    except WorkbookError as error:
        path = gold if error.culprit is golden.workbook.package else output
        raise WorkbookError(f"{path}: {error.message}", hint=error.hint) from error


def _read_rules(path: Path, evaluator: str | None) -> RuleOptions:
    document = read_json(path, UsageError)
    options = {"rules": document} if isinstance(document, list) else document
    if not isinstance(options, dict) or "rules" not in options:
        raise UsageError(
            f"{path}: expected a list of rules, or an object with the field 'rules'",
            hint="docs/rules.md lists the types of rules.",
        )
    chosen = {name: options[name] for name in ("rules", "evaluator") if name in options}
    if evaluator is not None:
        chosen["evaluator"] = evaluator
    # A list that names its evaluator was published: it is judged as published, without checks.
    # Any other list is the user's own, and is checked.
    try:
        return RuleOptions.of(chosen)
    except UsageError as error:
        raise UsageError(f"{path}: {error.message}", hint=error.hint) from error


def compare_by_checklist(
    output: GivenPath,
    path: GivenPath,
    golds: Sequence[GivenPath],
    options: Mapping[str, Any],
) -> Finding:
    """Judges an output by the checklist in a file.

    Args:
        output: a workbook or any other file, or a folder of files.
        path: the checklist, JSON or YAML: its items, or the options of the checker.
        golds: files that its items name as golds.
        options: the command's options: profile, engines.

    Raises:
        UsageError: the file is not a checklist.
        WorkbookError: the output cannot be read.
        GoldFaultError: a gold is missing or cannot be read.
    """
    output = as_path(output)
    checklist = _read_checklist(as_path(path))
    spec = CheckerSpec(CHECKLIST, checklist)
    case = TestCase(1, (), tuple(Gold(as_path(gold)) for gold in golds))
    files = files_below(output) if output.is_dir() else {output.name: output.read_bytes()}
    form = AnswerForm.FILES if output.is_dir() else AnswerForm.WORKBOOK
    task = Task(output.name, "", "", (case,), spec, form)
    rules = Rules(get_profile(options["profile"]), max_differences=200)
    try:
        with _engines(options) as engines:
            answer = answer_of_folder(files, Origin.FINISHED)
            return checker_of(spec).check(task, case, case.golds, answer, engines, rules)
    except AnswerFaultError as error:
        raise WorkbookError(f"{output}: {error.message}") from error


def _read_checklist(path: Path) -> Mapping[str, object]:
    checklist = read_items(path)
    try:
        checker_of(CheckerSpec(CHECKLIST)).check_options(checklist)
    except UsageError as error:
        raise UsageError(f"{path}: {error.message}", hint=error.hint) from error
    return checklist


def _engines(options: Mapping[str, Any]) -> Engines:
    return Engines(**{name: options[name] for name in _COMPUTING})
