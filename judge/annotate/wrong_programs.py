"""Wrong solutions made of right ones: the mistakes that people and models make. Pure.

A case is worth having if it distinguishes these from the right one. Each mutant changes one place.
"""

from __future__ import annotations

import ast
import copy
import re
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass

MAX_PER_MISTAKE = 3
"""Mutants of one kind that are made of one program."""


@dataclass(frozen=True, slots=True)
class WrongProgram:
    """A mutant.

    Attributes:
        mistake: what kind of mistake it makes.
        line: line of the program in which it differs.
        detail: what is there now.
        code: the program.
    """

    mistake: str
    line: int
    detail: str
    code: str


Change = Callable[[ast.AST], "ast.AST | None"]
"""Gives another node for one at which the mistake can be made; None elsewhere."""


def wrong_programs(code: str, *, last_row: int) -> list[WrongProgram]:
    """Mutants of a program that compile and read differently.

    Args:
        code: the program.
        last_row: what ``max_row`` is in the first case, for ranges that are written out.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(code)
    except (SyntaxError, ValueError, RecursionError):
        return []
    plain = ast.unparse(tree)
    found: list[WrongProgram] = []
    seen = {plain}
    places = [(index, n) for index, n in enumerate(_walk(tree)) if isinstance(n, _CHANGEABLE)]
    for mistake, change in _mistakes(tree, last_row):
        made = 0
        for index, node in places:
            if made == MAX_PER_MISTAKE:
                break
            mutant = _mutate(tree, index, node, change)
            if mutant is None:
                continue
            text = ast.unparse(mutant[0])
            if text not in seen and _compiles(text):
                seen.add(text)
                made += 1
                line = getattr(node, "lineno", 0)
                found.append(WrongProgram(mistake, line, mutant[1], text + "\n"))
    return found


def _walk(tree: ast.AST) -> Iterator[ast.AST]:
    """Nodes in the order in which they occur in the text."""
    for child in ast.iter_child_nodes(tree):
        yield child
        yield from _walk(child)


class _Replace(ast.NodeTransformer):
    """Changes the node of a certain number."""

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


def _mutate(
    tree: ast.Module, index: int, node: ast.AST, change: Change
) -> tuple[ast.Module, str] | None:
    if change(copy.deepcopy(node)) is None:
        return None
    fresh = copy.deepcopy(tree)
    target = next(each for number, each in enumerate(_walk(fresh)) if number == index)
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
    held = node.comparators[0]
    blank = isinstance(held, ast.Constant) and held.value is None
    blanks = isinstance(held, ast.Tuple | ast.List | ast.Set) and any(
        isinstance(elt, ast.Constant) and elt.value in {None, ""} for elt in held.elts
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
    """``cell.value`` that is read becomes ``cell.value or 0``."""
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
        held = ast.Subscript(call.func.value, call.args[0], ast.Store())
        return ast.Assign([held], call.args[1])
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


def _in_formula(
    node: ast.AST, pattern: re.Pattern[str], new: Callable[[str], str]
) -> ast.AST | None:
    """Text that is a formula, or a piece of one, with its first match written differently."""
    if not isinstance(node, ast.Constant) or not isinstance(node.value, str):
        return None
    text = node.value
    if not _FORMULA.search(text):
        return None
    changed = pattern.sub(lambda match: new(match[0]), text, count=1)
    return None if changed == text else ast.Constant(changed)


_FORMULA = re.compile(r"^=|[A-Z]{2,}\(|\$?[A-Z]{1,2}\$?\d+:\$?[A-Z]{1,2}\$?\d+|[,(]\s*$|^\s*[,)]")
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
