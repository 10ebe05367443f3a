"""Measures the strength of a suite's cases: which wrong solutions each case kills.

Wrong solutions are made from right ones, by adding mistakes that people and models make. Each
mutant differs in one place; a case is useful if it distinguishes mutants from the right solution.
"""

from __future__ import annotations

import ast
import copy
import itertools
import re
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from judge.annotate.answers import ProgramRuns, judge_workbooks
from judge.annotate.casebook import CaseData
from judge.core.records.cases import CaseComparison
from judge.core.submission import Origin, Submission
from judge.core.task import Task
from judge.core.verdict import CaseResult, Verdict
from judge.errors import WorkbookError
from judge.grading.batch import Event, Settings, grade
from judge.grading.case import CaseJudge, GradingRules
from judge.grading.store import RunDirectory
from judge.grading.verify import verify_case
from judge.recalc.policy import Recalculator
from judge.workbook.address import MAX_ROW
from judge.workbook.reader import open_workbook

MAX_PER_MISTAKE = 3
"""How many mutants of one kind are made from one program."""


@dataclass(frozen=True, slots=True)
class WrongProgram:
    """A mutant.

    Attributes:
        mistake: the kind of mistake.
        line: the line of the original program that the mutant changes.
        detail: the changed code.
        code: the mutant program.
    """

    mistake: str
    line: int
    detail: str
    code: str


Change = Callable[[ast.AST], "ast.AST | None"]
"""Returns the changed node if the mistake can be made at a node; otherwise None."""


_CHANGEABLE = (
    ast.Assign,
    ast.Attribute,
    ast.Break,
    ast.Call,
    ast.Compare,
    ast.Constant,
    ast.Expr,
)
"""Kinds of nodes at which a mistake can be made; none of them holds a whole block."""


def wrong_programs(code: str, *, last_row: int) -> list[WrongProgram]:
    """Mutants of a program that compile and differ in their code.

    Args:
        code: the program.
        last_row: the value of ``max_row`` in the first case, for hard-coded ranges.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(code)
    except (SyntaxError, ValueError, RecursionError):
        return []
    plain = ast.unparse(tree)
    programs: list[WrongProgram] = []
    seen = {plain}
    nodes = [(index, n) for index, n in enumerate(_walk(tree)) if isinstance(n, _CHANGEABLE)]
    for mistake, change in _mistakes(tree, last_row):
        count = 0
        for index, node in nodes:
            if count == MAX_PER_MISTAKE:
                break
            mutant = _mutate(tree, index, node, change)
            if mutant is None:
                continue
            text = ast.unparse(mutant[0])
            if text not in seen and _compiles(text):
                seen.add(text)
                count += 1
                line = getattr(node, "lineno", 0)
                programs.append(WrongProgram(mistake, line, mutant[1], text + "\n"))
    return programs


def _walk(tree: ast.AST) -> Iterator[ast.AST]:
    """Yields the nodes below a node, parents before children."""
    for child in ast.iter_child_nodes(tree):
        yield child
        yield from _walk(child)


class _Replace(ast.NodeTransformer):
    """Changes one node of a tree."""

    def __init__(self, target: ast.AST, change: Change) -> None:
        self._target = target
        self._change = change
        self.detail = ""

    def visit(self, node: ast.AST) -> ast.AST:
        if node is self._target:
            new = self._change(copy.deepcopy(node))
            if new is None:
                return node
            new = ast.copy_location(new, node)
            self.detail = ast.unparse(ast.fix_missing_locations(new))[:200]
            return new
        return self.generic_visit(node)


def _mutate(
    tree: ast.Module, index: int, node: ast.AST, change: Change
) -> tuple[ast.Module, str] | None:
    if change(copy.deepcopy(node)) is None:
        return None
    fresh = copy.deepcopy(tree)
    target = next(node for number, node in enumerate(_walk(fresh)) if number == index)
    replace = _Replace(target, change)
    replace.visit(fresh)
    return ast.fix_missing_locations(fresh), replace.detail


def _compiles(text: str) -> bool:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            compile(text, "mutant", "exec")
    except (SyntaxError, ValueError):
        return False
    return True


# -- mistakes -------------------------------------------------------------------------------------


def _mistakes(tree: ast.Module, last_row: int) -> list[tuple[str, Change]]:
    dictionaries = {
        target.id
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign | ast.AnnAssign)
        for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
        if isinstance(target, ast.Name) and _is_dictionary(node.value)
    }
    return [
        ("hard-coded range", lambda node: _hard_coded(node, last_row)),
        ("off by one at the end", _short_at_end),
        ("off by one at the start", _late_at_start),
        ("boundary taken in or left out", _boundary),
        ("blank cells not looked for", _blanks_not_seen),
        ("blank as zero", _blank_as_zero),
        ("first match instead of last", lambda node: _first_match(node, dictionaries)),
        ("last match instead of first", _last_match),
        ("spaces not stripped", lambda node: _without_method(node, {"strip", "lstrip", "rstrip"})),
        ("case not folded", lambda node: _without_method(node, {"lower", "upper", "casefold"})),
        ("decimals forgotten", _only_integers),
        ("not rounded", _not_rounded),
        ("formula boundary", _formula_boundary),
        ("formula range one row short", _formula_short),
        ("formula lookup not exact", _formula_not_exact),
    ]


def _is_dictionary(node: ast.expr | None) -> bool:
    if isinstance(node, ast.Dict):
        return True
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "dict"


def _hard_coded(node: ast.AST, last_row: int) -> ast.AST | None:
    if isinstance(node, ast.Attribute) and node.attr == "max_row":
        return ast.Constant(last_row)
    return None


def _is_range(node: ast.AST) -> bool:
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id == "range"
        and len(node.args) in {1, 2}
    )


def _short_at_end(node: ast.AST) -> ast.AST | None:
    if isinstance(node, ast.Call) and _is_range(node):
        node.args[-1] = ast.BinOp(node.args[-1], ast.Sub(), ast.Constant(1))
        return node
    return None


def _late_at_start(node: ast.AST) -> ast.AST | None:
    if isinstance(node, ast.Call) and _is_range(node) and len(node.args) == 2:
        node.args[0] = ast.BinOp(node.args[0], ast.Add(), ast.Constant(1))
        return node
    return None


_TURNED: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
}


def _boundary(node: ast.AST) -> ast.AST | None:
    if isinstance(node, ast.Compare) and len(node.ops) == 1 and type(node.ops[0]) in _TURNED:
        node.ops = [_TURNED[type(node.ops[0])]()]
        return node
    return None


def _blanks_not_seen(node: ast.AST) -> ast.AST | None:
    if not isinstance(node, ast.Compare) or len(node.ops) != 1:
        return None
    operand = node.comparators[0]
    blank = isinstance(operand, ast.Constant) and operand.value is None
    blanks = isinstance(operand, ast.Tuple | ast.List | ast.Set) and any(
        isinstance(elt, ast.Constant) and elt.value in {None, ""} for elt in operand.elts
    )
    match node.ops[0]:
        case ast.Is() if blank:
            return ast.Constant(False)
        case ast.IsNot() if blank:
            return ast.Constant(True)
        case ast.In() if blanks:
            return ast.Constant(False)
        case ast.NotIn() if blanks:
            return ast.Constant(True)
    return None


def _blank_as_zero(node: ast.AST) -> ast.AST | None:
    """Replaces ``cell.value``, where it is read, with ``cell.value or 0``."""
    if (
        isinstance(node, ast.Attribute)
        and node.attr == "value"
        and isinstance(node.ctx, ast.Load)
        and isinstance(node.value, ast.Call | ast.Subscript | ast.Name)
    ):
        return ast.BoolOp(ast.Or(), [node, ast.Constant(0)])
    return None


def _first_match(node: ast.AST, dictionaries: set[str]) -> ast.AST | None:
    if not isinstance(node, ast.Assign) or len(node.targets) != 1:
        return None
    target = node.targets[0]
    if (
        isinstance(target, ast.Subscript)
        and isinstance(target.value, ast.Name)
        and target.value.id in dictionaries
    ):
        method = ast.Attribute(ast.Name(target.value.id, ast.Load()), "setdefault", ast.Load())
        return ast.Expr(ast.Call(method, [target.slice, node.value], []))
    return None


def _last_match(node: ast.AST) -> ast.AST | None:
    if isinstance(node, ast.Break):
        return ast.Pass()
    if (
        isinstance(node, ast.Expr)
        and isinstance(call := node.value, ast.Call)
        and isinstance(call.func, ast.Attribute)
        and call.func.attr == "setdefault"
        and len(call.args) == 2
    ):
        entry = ast.Subscript(call.func.value, call.args[0], ast.Store())
        return ast.Assign([entry], call.args[1])
    return None


def _without_method(node: ast.AST, names: set[str]) -> ast.AST | None:
    if (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in names
        and not node.args
    ):
        return node.func.value
    return None


def _only_integers(node: ast.AST) -> ast.AST | None:
    if (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id == "isinstance"
        and len(node.args) == 2
        and isinstance(kinds := node.args[1], ast.Tuple)
        and {"int", "float"} <= {elt.id for elt in kinds.elts if isinstance(elt, ast.Name)}
    ):
        node.args[1] = ast.Name("int", ast.Load())
        return node
    return None


def _not_rounded(node: ast.AST) -> ast.AST | None:
    if (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id == "round"
        and node.args
    ):
        return node.args[0]
    return None


# -- formulas that a program writes -------------------------------------------------------------


_FORMULA = re.compile(r"^=|[A-Z]{2,}\(|\$?[A-Z]{1,2}\$?\d+:\$?[A-Z]{1,2}\$?\d+|[,(]\s*$|^\s*[,)]")


def _in_formula(
    node: ast.AST, pattern: re.Pattern[str], new: Callable[[str], str]
) -> ast.AST | None:
    """Replaces the first match of a pattern in a string that is a formula or a part of one."""
    if not isinstance(node, ast.Constant) or not isinstance(node.value, str):
        return None
    text = node.value
    if not _FORMULA.search(text):
        return None
    changed = pattern.sub(lambda match: new(match[0]), text, count=1)
    return None if changed == text else ast.Constant(changed)


_COMPARISON = re.compile(r"<=|>=|<(?!>)|(?<!<)>")
_FORMULA_RANGE = re.compile(r"\$?[A-Z]{1,3}\$?\d+:\$?[A-Z]{1,3}\$?\d+")
_EXACT = re.compile(r",\s*(?:FALSE|0)\s*\)")


def _formula_boundary(node: ast.AST) -> ast.AST | None:
    turned = {"<": "<=", "<=": "<", ">": ">=", ">=": ">"}
    return _in_formula(node, _COMPARISON, lambda text: turned[text])


def _formula_short(node: ast.AST) -> ast.AST | None:
    def shorter(text: str) -> str:
        match = re.search(r"\d+$", text)
        if match is None or int(match[0]) < 2:
            return text
        return f"{text[: match.start()]}{int(match[0]) - 1}"

    return _in_formula(node, _FORMULA_RANGE, shorter)


def _formula_not_exact(node: ast.AST) -> ast.AST | None:
    return _in_formula(node, _EXACT, lambda text: text.replace("FALSE", "TRUE").replace("0", "1"))


MAX_EXACT = 12
"""Up to this many cases of a task, the smallest set is found exactly."""


@dataclass(frozen=True, slots=True)
class TaskStrength:
    """The strength of one task's cases.

    Attributes:
        task_id: the task.
        cases: numbers of its cases.
        solutions: names of the solutions that were judged on all cases.
        kills: case -> the solutions that it does not accept.
        adds: case -> the solutions that only this case does not accept.
        smallest: the smallest set of cases that kills every solution that some case kills.
        survivors: solutions that every case accepts.
        untouched_passes: whether the unchanged input passes a case.
        programs: how many different programs there are among the solutions.
    """

    task_id: str
    cases: tuple[int, ...]
    solutions: tuple[str, ...]
    kills: Mapping[int, frozenset[str]]
    adds: Mapping[int, frozenset[str]]
    smallest: tuple[int, ...]
    survivors: frozenset[str]
    untouched_passes: bool
    programs: int

    @property
    def mistakes_left(self) -> tuple[str, ...]:
        """The mistakes, with line and code, of the mutants that every case accepts.

        Some of these mutants may be as correct as the original, which cannot be determined.
        """
        mutants = [name for name in self.solutions if name in self.survivors and _is_mutant(name)]
        return tuple(name.partition(": ")[2] for name in mutants)

    @property
    def unprotected(self) -> str:
        """Why no case protects the task from wrong solutions; empty if some case does."""
        if self.untouched_passes:
            return "an untouched input passes"
        if self.programs > 1 and not any(self.kills.values()):
            return f"all {self.programs} different solutions pass every case"
        return ""


def strength_of(
    task: Task,
    solutions: Mapping[str, Submission],
    verdicts: Mapping[str, Mapping[int, Verdict]],
    *,
    untouched_passes: bool = False,
) -> TaskStrength:
    """Measures the strength of a task's cases.

    Args:
        task: the task.
        solutions: name -> solution.
        verdicts: name -> case -> verdict. Solutions without a scored verdict on every case are
            left out.
        untouched_passes: whether the unchanged input passes a case.
    """
    cases = tuple(case.number for case in task.cases)
    judged = {
        name: verdict
        for name, verdict in verdicts.items()
        if all(number in verdict and verdict[number].is_scored for number in cases)
    }
    kills = {
        number: frozenset(name for name, verdict in judged.items() if verdict[number] != Verdict.AC)
        for number in cases
    }
    return TaskStrength(
        task_id=task.id,
        cases=cases,
        solutions=tuple(judged),
        kills=kills,
        adds={
            number: frozenset(
                name
                for name in kills[number]
                if not any(name in kills[other] for other in cases if other != number)
            )
            for number in cases
        },
        smallest=smallest_cover(kills),
        survivors=frozenset(judged) - frozenset().union(*kills.values()),
        untouched_passes=untouched_passes,
        programs=len({solutions[name].code for name in judged}),
    )


def smallest_cover(kills: Mapping[int, frozenset[str]]) -> tuple[int, ...]:
    """The smallest set of cases that kills every solution that some case kills.

    Exact for up to :data:`MAX_EXACT` cases. For more, a greedy choice: repeatedly adds the case
    that kills most of the remaining solutions.
    """
    everything = frozenset().union(*kills.values()) if kills else frozenset()
    if len(kills) <= MAX_EXACT:
        for size in range(len(kills) + 1):
            for chosen in itertools.combinations(kills, size):
                if frozenset().union(*(kills[case] for case in chosen)) == everything:
                    return chosen
    left, chosen_so_far = set(everything), []
    while left:
        best = max(kills, key=lambda number: len(kills[number] & left))
        chosen_so_far.append(best)
        left -= kills[best]
    return tuple(sorted(chosen_so_far))


# -- wrong solutions ------------------------------------------------------------------------------


def wrong_solutions(task: Task, right: Submission, *, first_sample: int = 1) -> list[Submission]:
    """Mutants of a right solution, as solutions whose label names the mistake.

    Args:
        task: the task, whose first input gives the number of rows.
        right: a solution that all cases accept.
        first_sample: sample number of the first mutant.
    """
    if right.code is None:
        return []
    programs = wrong_programs(right.code, last_row=_last_row(task))
    return [
        replace(
            right,
            code=program.code,
            sample=first_sample + index,
            label=f"{program.mistake}, line {program.line}: {program.detail}",
            expected=(),
            provenance={},
        )
        for index, program in enumerate(programs)
    ]


def _last_row(task: Task) -> int:
    try:
        workbook = open_workbook(task.cases[0].input_path)
        used = [workbook.used_range(sheet) for sheet in workbook.sheet_names]
    except WorkbookError:
        return MAX_ROW
    return max((area.max_row for area in used if area is not None), default=1)


# -- judging --------------------------------------------------------------------------------------


def judge_solutions(
    out: Path,
    pairs: Sequence[tuple[Task, Submission]],
    settings: Settings,
    *,
    on_event: Callable[[Event], None] = lambda _: None,
) -> list[CaseResult]:
    """Judges solutions on all cases of their tasks; results in the folder are reused.

    Raises:
        JudgeError: a case could not be judged because the judge failed, or the batch was stopped.
    """
    with RunDirectory(out) as store:
        store.lock()
        outcome = grade(store, pairs, settings, on_event=on_event)
    if outcome.stopped is not None:
        raise outcome.stopped
    return list(outcome.results.values())


def verdicts_by_name(
    results: Iterable[CaseResult], names: Mapping[tuple[str, int], str]
) -> dict[str, dict[str, dict[int, Verdict]]]:
    """Task -> solution -> case -> verdict.

    Args:
        results: the results of the cases.
        names: (task, sample) -> name of the solution.
    """
    verdicts: dict[str, dict[str, dict[int, Verdict]]] = {}
    for result in results:
        name = names.get((result.task_id, result.sample))
        if name is not None:
            verdicts.setdefault(result.task_id, {}).setdefault(name, {})[result.case] = (
                result.verdict
            )
    return verdicts


@dataclass(frozen=True, slots=True)
class Trial:
    """The outcome of a solution on a case that is not in the suite yet.

    Attributes:
        name: the solution.
        verdict: its verdict.
        cause: the reason for the verdict, in one line.
        comparison: the cells that differ, as the comparison records them.
    """

    name: str
    verdict: Verdict
    cause: str
    comparison: CaseComparison = field(default_factory=CaseComparison)


def try_case(
    task: Task,
    case: CaseData,
    solutions: Mapping[str, Submission],
    runs: ProgramRuns,
    recalculator: Recalculator,
    rules: GradingRules,
) -> list[Trial]:
    """Judges solutions on one case, without storing anything.

    Raises:
        SandboxError: the sandbox failed.
    """
    judge = CaseJudge(recalculator, rules)
    results = []
    runs.start(solutions.values(), case.input)
    for name, submission in solutions.items():
        outcome = runs.outcome(submission, case.input)
        verdict, cause = outcome.verdict, outcome.cause
        comparison = CaseComparison()
        if verdict is None:
            assert outcome.answer is not None
            judgement = judge_workbooks(
                judge, task, case.gold, outcome.answer.data, origin=Origin.SOLUTION
            )
            verdict, cause = judgement.verdict, judgement.cause
            comparison = judgement.comparison
        results.append(Trial(name, verdict, cause, comparison))
    return results


def killed(trials: Iterable[Trial]) -> list[Trial]:
    """The trials in which the solution failed and was itself at fault."""
    return [
        trial for trial in trials if trial.verdict.is_scored and trial.verdict is not Verdict.AC
    ]


# -- a whole suite --------------------------------------------------------------------------------


FIRST_MUTANT = 1_000
"""Sample number of the first mutant of sample 0; mutants of sample 1 begin at twice this number."""


def measure(
    pairs: Sequence[tuple[Task, Submission]],
    settings: Settings,
    out: Path,
    *,
    mutants: bool = True,
    on_event: Callable[[Event], None] = lambda _: None,
) -> list[TaskStrength]:
    """Measures the strength of the cases of each task that has solutions.

    Args:
        pairs: solutions with their tasks; those of one task have different sample numbers.
        settings: how to judge.
        out: folder for the verdicts; verdicts that it already holds are reused.
        mutants: whether to judge wrong solutions too, which are made from the accepted ones.
        on_event: called after each case.

    Raises:
        JudgeError: the batch was stopped.
    """
    results = judge_solutions(out / "solutions", pairs, settings, on_event=on_event)
    mutant_pairs: list[tuple[Task, Submission]] = []
    if mutants:
        lost = {
            (result.task_id, result.sample)
            for result in results
            if result.verdict is not Verdict.AC
        }
        for task, right in pairs:
            if right.key not in lost:
                first = FIRST_MUTANT * (right.sample + 1)
                mutant_pairs += [
                    (task, solution)
                    for solution in wrong_solutions(task, right, first_sample=first)
                ]
        if mutant_pairs:
            results += judge_solutions(out / "mutants", mutant_pairs, settings, on_event=on_event)
    everything = [*pairs, *mutant_pairs]
    names = {submission.key: solution_name(submission) for _, submission in everything}
    verdicts = verdicts_by_name(results, names)
    measured = []
    for task in {task.id: task for task, _ in pairs}.values():
        solutions = {
            solution_name(other_verdicts): other_verdicts
            for other, other_verdicts in everything
            if other.id == task.id
        }
        untouched = _untouched_passes(task, settings)
        measured.append(
            strength_of(task, solutions, verdicts.get(task.id, {}), untouched_passes=untouched)
        )
    return measured


def solution_name(submission: Submission) -> str:
    """The name of a solution in a kill matrix; unique within its task."""
    return f"{submission.sample}: {submission.label or submission.model or 'solution'}"


def _is_mutant(name: str) -> bool:
    """Whether a name from :func:`solution_name` names a mutant."""
    return int(name.partition(":")[0]) >= FIRST_MUTANT


def _untouched_passes(task: Task, settings: Settings) -> bool:
    judge = CaseJudge(settings.recalculator, settings.rules)
    checks = (verify_case(task, case, judge) for case in task.cases)
    return any(bool(check.untouched_accepted) for check in checks)
