"""The constructs allowed in code that may only use mouse and keyboard, as tables and a check.

Code with any unknown construct is refused before any of it is performed. This module uses only the
standard library, and is tested outside the sandbox.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from typing import Any

MAX_STEPS = 50_000
MAX_ITEMS = 10_000
MAX_CHARS = 100_000
MAX_CODE_CHARS = 50_000
MAX_NESTED = 60
MAX_BITS = 256
MAX_EXPONENT = 64
MAX_SLEEP_S = 60.0

EASINGS = """
    linear easeInQuad easeOutQuad easeInOutQuad easeInCubic easeOutCubic easeInOutCubic easeInQuart
    easeOutQuart easeInOutQuart easeInQuint easeOutQuint easeInOutQuint easeInSine easeOutSine
    easeInOutSine easeInExpo easeOutExpo easeInOutExpo easeInCirc easeOutCirc easeInOutCirc
    easeInElastic easeOutElastic easeInOutElastic easeInBack easeOutBack easeInOutBack easeInBounce
    easeOutBounce easeInOutBounce
""".split()
MOUSE = """
    mouseDown mouseUp click leftClick rightClick middleClick doubleClick tripleClick scroll hscroll
    vscroll moveTo moveRel move dragTo dragRel drag onScreen
""".split()
KEYBOARD = "keyDown keyUp press typewrite write hotkey hold".split()
ASKING = "position size sleep".split()
FUNCTIONS = frozenset([*MOUSE, *KEYBOARD, *ASKING])
PARAMETERS = {
    **dict.fromkeys(["mouseDown", "mouseUp"], "x y button duration tween".split()),
    "click": "x y clicks interval button duration tween".split(),
    **dict.fromkeys(
        ["leftClick", "rightClick", "middleClick"], "x y interval duration tween".split()
    ),
    **dict.fromkeys(["doubleClick", "tripleClick"], "x y interval button duration tween".split()),
    **dict.fromkeys(["scroll", "hscroll", "vscroll"], "clicks x y".split()),
    "moveTo": "x y duration tween".split(),
    **dict.fromkeys(["moveRel", "move"], "xOffset yOffset duration tween".split()),
    "dragTo": "x y duration tween button".split(),
    **dict.fromkeys(["dragRel", "drag"], "xOffset yOffset duration tween button".split()),
    **dict.fromkeys(["onScreen", "position"], "x y".split()),
    **dict.fromkeys(["keyDown", "keyUp"], "key".split()),
    "press": "keys presses interval".split(),
    **dict.fromkeys(["typewrite", "write"], "message interval".split()),
    "hold": ["keys"],
    "size": [],
}
"""The positional parameters; with further ones, PyAutoGUI would write a screenshot to a file."""
OPTIONS = frozenset(
    "x y xOffset yOffset clicks interval button duration tween presses keys key message"
    " mouseDownUp _pause seconds".split()
)
BUTTONS = frozenset(["left", "middle", "right", "primary", "secondary"])
SETTINGS = frozenset(["PAUSE", "FAILSAFE", "MINIMUM_DURATION", "MINIMUM_SLEEP"])
MODULES = {"pyautogui": "pyautogui", "time": "time"}

TEXT_METHODS = frozenset(
    "upper lower strip lstrip rstrip split join replace startswith endswith capitalize title find"
    " count isdigit isalpha splitlines swapcase index".split()
)
LIST_METHODS = frozenset("append extend insert pop index count reverse copy clear remove".split())
DICT_METHODS = frozenset("get keys values items copy".split())
POINT_FIELDS = frozenset(["x", "y", "width", "height"])
_SPEC = re.compile(r"[<>^=]?[+ ]?0?\d{0,3},?(\.\d{1,2})?[dfgeEsxXob%]?")
BUILT_IN: dict[str, Callable[..., Any]] = {
    "abs": abs, "bool": bool, "chr": chr, "divmod": divmod, "enumerate": enumerate,
    "float": float, "int": int, "len": len, "list": list, "max": max, "min": min, "ord": ord,
    "print": print, "range": range, "reversed": reversed, "round": round, "sorted": sorted,
    "str": str, "sum": sum, "tuple": tuple, "zip": zip,
}  # fmt: skip


class RefusedError(Exception):
    """The code is not permitted; none of it was performed."""


class FailedError(Exception):
    """The code failed while it was performed."""


def parse(code: str) -> ast.Module:
    """Parses and checks code.

    Raises:
        RefusedError: the code is too long, or contains something that is not permitted.
        FailedError: the code is not Python.
    """
    if len(code) > MAX_CODE_CHARS:
        raise RefusedError(f"the code has more than {MAX_CODE_CHARS} characters")
    try:
        tree = ast.parse(code)
    except (SyntaxError, ValueError, MemoryError, RecursionError) as error:
        where = f"line {error.lineno}: " if isinstance(error, SyntaxError) else ""
        why = error.msg if isinstance(error, SyntaxError) else str(error)
        raise FailedError(f"{where}SyntaxError: {why}") from None
    try:
        _Checker().visit(tree)
    except RecursionError:
        raise RefusedError("expressions are nested too deeply") from None
    return tree


class _Checker(ast.NodeVisitor):
    """Refuses every unknown kind of node."""

    _PLAIN = (
        ast.Module, ast.Expr, ast.Assign, ast.AugAssign, ast.AnnAssign, ast.If, ast.For, ast.While,
        ast.Pass, ast.Break, ast.Continue, ast.Constant, ast.List, ast.Tuple, ast.Dict, ast.BinOp,
        ast.BoolOp, ast.UnaryOp, ast.Compare, ast.IfExp, ast.Subscript, ast.Slice, ast.JoinedStr,
        ast.ListComp, ast.GeneratorExp, ast.comprehension, ast.Starred, ast.expr_context,
        ast.boolop, ast.operator, ast.unaryop, ast.cmpop, ast.keyword, ast.With, ast.withitem,
    )  # fmt: skip

    def __init__(self) -> None:
        self._depth = 0

    def visit(self, node: ast.AST) -> None:
        """Checks a node and those below it."""
        self._depth += 1
        if self._depth > MAX_NESTED:
            raise RefusedError("expressions are nested too deeply")
        special = getattr(self, f"visit_{type(node).__name__}", None)
        if special is not None:
            special(node)
        elif isinstance(node, self._PLAIN):
            self.generic_visit(node)
        else:
            raise self._refused(node, f"{type(node).__name__} is not permitted")
        self._depth -= 1

    @staticmethod
    def _refused(node: ast.AST, why: str) -> RefusedError:
        line = getattr(node, "lineno", None)
        where = f"line {line}: " if line is not None else ""
        return RefusedError(f"refused: {where}{why} with the mouse and keyboard alone")

    def visit_Constant(self, node: ast.Constant) -> None:
        """Allows plain values."""
        if node.value is not None and not isinstance(node.value, bool | int | float | str):
            raise self._refused(node, f"a value of type {type(node.value).__name__}")
        if isinstance(node.value, int) and node.value.bit_length() > MAX_BITS:
            raise self._refused(node, "a number as long as this")

    def visit_Name(self, node: ast.Name) -> None:
        """Allows names that do not begin with an underscore."""
        if node.id.startswith("_") and node.id != "_":
            raise self._refused(node, f"the name {node.id!r} is not permitted")
        if isinstance(node.ctx, ast.Load | ast.Store):
            return
        raise self._refused(node, "del is not permitted")

    def visit_Attribute(self, node: ast.Attribute) -> None:
        """Allows attributes that are in one of the tables."""
        allowed = (
            FUNCTIONS | SETTINGS | set(EASINGS) | TEXT_METHODS | LIST_METHODS | DICT_METHODS
        ) | POINT_FIELDS
        if node.attr not in allowed:
            raise self._refused(node, f".{node.attr} is not permitted")
        if isinstance(node.ctx, ast.Store) and node.attr not in SETTINGS:
            raise self._refused(node, f"setting .{node.attr} is not permitted")
        self.visit(node.value)

    def visit_Call(self, node: ast.Call) -> None:
        """Allows calls of functions by name, and of methods."""
        if not isinstance(node.func, ast.Name | ast.Attribute):
            raise self._refused(node, "a call of anything but a function's name is not permitted")
        # The name may be a function that `from … import` imported.
        if isinstance(node.func, ast.Name) and node.func.id not in FUNCTIONS | BUILT_IN.keys():
            raise self._refused(node, f"{node.func.id}() is not permitted")
        for option in node.keywords:
            if option.arg not in OPTIONS | {"end", "sep", "start", "default", "reverse"}:
                raise self._refused(node, f"the argument {option.arg or '**'} is not permitted")
        self.generic_visit(node)

    def visit_FormattedValue(self, node: ast.FormattedValue) -> None:
        """Allows values in f-strings with plain formats."""
        if node.format_spec is not None:
            spec = node.format_spec
            parts = spec.values if isinstance(spec, ast.JoinedStr) else []
            text = "".join(
                part.value
                for part in parts
                if isinstance(part, ast.Constant) and isinstance(part.value, str)
            )
            whole = all(isinstance(part, ast.Constant) for part in parts)
            if not whole or _SPEC.fullmatch(text) is None:
                raise self._refused(node, "this format of an f-string is not permitted")
        self.visit(node.value)

    def visit_Import(self, node: ast.Import) -> None:
        """Allows imports of the two modules that code can use anyway."""
        for alias in node.names:
            if alias.name not in MODULES or (alias.asname or "").startswith("_"):
                raise self._refused(node, f"import {alias.name} is not permitted")

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        """Allows imports of permitted functions from the two modules."""
        for alias in node.names:
            permitted = node.module == "time" and alias.name == "sleep"
            permitted = permitted or (node.module == "pyautogui" and alias.name in FUNCTIONS)
            if not permitted or node.level or alias.asname is not None:
                raise self._refused(
                    node, f"from {node.module} import {alias.name} is not permitted"
                )
