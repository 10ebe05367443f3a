"""A language for actions that can only use mouse and keyboard.

Code is not run but interpreted: the whole syntax tree of Python is first checked against a list of
known constructs, then walked. There are numbers, strings, lists, tuples and dictionaries, a few
built-in functions and methods, and the functions of PyAutoGUI that need no file. Code cannot reach
objects of the interpreter: attributes are looked up in tables, never in objects. This module uses
only the standard library, and is tested outside the sandbox.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

from judge.desktop.driver.gui_values import Member, Values
from judge.desktop.driver.permitted import FailedError, parse


class _BreakError(Exception):
    pass


class _ContinueError(Exception):
    pass


def run(code: str, gui: Any, sleep: Callable[[float], None], show: Callable[[str], None]) -> None:
    """Checks all of the code, then performs it.

    Args:
        code: Python code.
        gui: an object with PyAutoGUI's functions.
        sleep: waits for a number of seconds.
        show: receives the printed text.

    Raises:
        RefusedError: the code contains something that is not permitted; nothing was performed.
        FailedError: the code failed.
    """
    tree = parse(code)
    interpreter = _Interpreter(gui, sleep, show)
    try:
        interpreter.block(tree.body)
    except FailedError:
        raise
    except (_BreakError, _ContinueError):
        raise FailedError("'break' or 'continue' outside a loop") from None
    except RecursionError:
        raise FailedError("expressions are nested too deeply") from None
    except Exception as error:  # noqa: BLE001 - any exception is a failure of the code
        raise FailedError(f"line {interpreter.line}: {type(error).__name__}: {error}") from None


class _Interpreter(Values):
    """Walks the statements of a checked tree."""

    def block(self, body: list[ast.stmt]) -> None:
        """Performs statements."""
        for statement in body:
            self._statement(statement)

    def _statement(self, node: ast.stmt) -> None:
        self.step(node)
        match node:
            case ast.Expr():
                self.value(node.value)
            case ast.Assign() | ast.AnnAssign() | ast.AugAssign():
                self._assignment(node)
            case ast.If():
                self.block(node.body if self.value(node.test) else node.orelse)
            case ast.For() | ast.While():
                self._loop(node)
            case ast.With():
                self._with(node)
            case ast.Break():
                raise _BreakError
            case ast.Continue():
                raise _ContinueError
            case ast.Import() | ast.ImportFrom():
                self._import(node)
            case ast.Pass():
                pass
            case _:
                raise FailedError(f"line {self.line}: {type(node).__name__} cannot be performed")

    def _assignment(self, node: ast.Assign | ast.AnnAssign | ast.AugAssign) -> None:
        match node:
            case ast.Assign():
                value = self.value(node.value)
                for target in node.targets:
                    self.assign(target, value)
            case ast.AnnAssign():
                if node.value is not None:
                    self.assign(node.target, self.value(node.value))
            case ast.AugAssign():
                shown = ast.copy_location(_loaded(node.target), node.target)
                value = self.combine(node.op, self.value(shown), self.value(node.value))
                self.assign(node.target, value)

    def _import(self, node: ast.Import | ast.ImportFrom) -> None:
        for alias in node.names:
            if isinstance(node, ast.Import):
                self.names[alias.asname or alias.name] = Member(alias.name)
            else:
                self.names[alias.name] = Member(str(node.module), alias.name)

    def _loop(self, node: ast.For | ast.While) -> None:
        items = iter(self.items(self.value(node.iter))) if isinstance(node, ast.For) else None
        while True:
            self.step(node)
            if isinstance(node, ast.While):
                if not self.value(node.test):
                    break
            else:
                assert items is not None
                try:
                    self.assign(node.target, next(items))
                except StopIteration:
                    break
            try:
                self.block(node.body)
            except _ContinueError:
                continue
            except _BreakError:
                return
        self.block(node.orelse)

    def _with(self, node: ast.With) -> None:
        managers: list[AbstractContextManager[Any]] = []
        for item in node.items:
            call = item.context_expr
            named = isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute)
            name = call.func.attr if named else ""  # type: ignore[attr-defined]
            if name != "hold" or item.optional_vars is not None:
                raise FailedError(f"line {self.line}: only pyautogui.hold(…) can follow 'with'")
            managers.append(self.value(call))
        if len(managers) != 1:
            raise FailedError(f"line {self.line}: one pyautogui.hold(…) can follow 'with'")
        with managers[0]:
            self.block(node.body)


def _loaded(target: ast.expr) -> ast.expr:
    """Turns the target of an assignment into an expression."""
    match target:
        case ast.Name():
            return ast.Name(target.id, ast.Load())
        case ast.Subscript():
            return ast.Subscript(target.value, target.slice, ast.Load())
        case ast.Attribute():
            return ast.Attribute(target.value, target.attr, ast.Load())
    raise TypeError("this cannot be assigned to")
