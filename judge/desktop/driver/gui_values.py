"""Evaluates expressions and calls of the language for actions with only mouse and keyboard.

Attributes are looked up in tables, never in objects, and all sizes are limited. This module uses
only the standard library, and is tested outside the sandbox.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping
from typing import Any

from judge.desktop.driver.permitted import (
    BUILT_IN,
    BUTTONS,
    DICT_METHODS,
    EASINGS,
    FUNCTIONS,
    LIST_METHODS,
    MAX_BITS,
    MAX_CHARS,
    MAX_EXPONENT,
    MAX_ITEMS,
    MAX_SLEEP_S,
    MAX_STEPS,
    MOUSE,
    PARAMETERS,
    POINT_FIELDS,
    SETTINGS,
    TEXT_METHODS,
    FailedError,
)

_BINARY: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
}
_UNARY: dict[type[ast.unaryop], Callable[[Any], Any]] = {
    ast.UAdd: operator.pos,
    ast.USub: operator.neg,
    ast.Not: operator.not_,
}
_COMPARED: dict[type[ast.cmpop], Callable[[Any, Any], Any]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.In: lambda one, other: one in other,
    ast.NotIn: lambda one, other: one not in other,
    ast.Is: lambda one, other: one is other,
    ast.IsNot: lambda one, other: one is not other,
}


class Member:
    """A name of one of the two modules; it has no attributes that code could reach."""

    def __init__(self, module: str, name: str = "") -> None:
        self.module = module
        self.name = name


class Values:
    """Holds the names of a checked tree, and evaluates its expressions."""

    def __init__(
        self, gui: Any, sleep: Callable[[float], None], show: Callable[[str], None]
    ) -> None:
        self._gui = gui
        self._sleep = sleep
        self._show = show
        self.names: dict[str, Any] = {
            "pyautogui": Member("pyautogui"),
            "time": Member("time"),
        }
        self._steps = 0
        self.line = 0

    def step(self, node: ast.AST) -> None:
        """Counts a step; the number of steps is limited."""
        self.line = getattr(node, "lineno", self.line)
        self._steps += 1
        if self._steps > MAX_STEPS:
            raise FailedError(f"line {self.line}: more than {MAX_STEPS} steps")

    def assign(self, target: ast.expr, value: Any) -> None:
        """Assigns a value to a name, an item or a setting."""
        match target:
            case ast.Name():
                self.names[target.id] = value
            case ast.Tuple() | ast.List():
                values = list(self.items(value))
                if len(values) != len(target.elts):
                    raise ValueError(f"{len(values)} values for {len(target.elts)} names")
                for each, part in zip(target.elts, values, strict=True):
                    self.assign(each, part)
            case ast.Subscript():
                holder = self.value(target.value)
                if not isinstance(holder, list | dict):
                    raise TypeError("only items of lists and dictionaries can be set")
                holder[self.value(target.slice)] = value
                self._bounded(holder)
            case ast.Attribute():
                member = self.value(target.value)
                if not isinstance(member, Member) or member.module != "pyautogui":
                    raise TypeError("only settings of pyautogui can be set")
                if target.attr == "PAUSE" and isinstance(value, int | float):
                    self._gui.PAUSE = max(0.0, min(float(value), 10.0))
            case _:
                raise TypeError("this cannot be assigned to")

    # expressions

    def value(self, node: ast.expr) -> Any:
        """Returns the value of an expression."""
        self.step(node)
        match node:
            case ast.Constant():
                return node.value
            case ast.Name():
                return self._named(node.id)
            case ast.BinOp():
                return self.combine(node.op, self.value(node.left), self.value(node.right))
            case ast.UnaryOp():
                return _UNARY[type(node.op)](self.value(node.operand))
            case ast.IfExp():
                return self.value(node.body if self.value(node.test) else node.orelse)
            case ast.Attribute():
                return self._attribute(node)
            case ast.Call():
                return self._call(node)
        return self._larger_value(node)

    def _larger_value(self, node: ast.expr) -> Any:
        match node:
            case ast.List():
                return self._bounded([self._plain(each) for each in self._several(node.elts)])
            case ast.Tuple():
                return tuple(self._plain(each) for each in self._several(node.elts))
            case ast.Dict():
                return self._dictionary(node)
            case ast.BoolOp():
                return self._either(node)
            case ast.Compare():
                return self._compare(node)
            case ast.Subscript():
                return self._item(node)
            case ast.JoinedStr():
                return self._bounded("".join(self._part(part) for part in node.values))
            case ast.ListComp() | ast.GeneratorExp():
                found: list[Any] = []
                self._comprehend(node, 0, found)
                return found
        raise TypeError(f"{type(node).__name__} has no value here")

    def _named(self, name: str) -> Any:
        if name in self.names:
            return self.names[name]
        raise NameError(f"name {name!r} is not defined")

    def _several(self, nodes: list[ast.expr]) -> list[Any]:
        found: list[Any] = []
        for node in nodes:
            if isinstance(node, ast.Starred):
                found.extend(self.items(self.value(node.value)))
            else:
                found.append(self.value(node))
        return found

    def _dictionary(self, node: ast.Dict) -> dict[Any, Any]:
        found = {}
        for key, value in zip(node.keys, node.values, strict=True):
            if key is None:
                raise TypeError("** is not known here")
            found[self._plain(self.value(key))] = self._plain(self.value(value))
        return found

    def _either(self, node: ast.BoolOp) -> Any:
        stops_at = isinstance(node.op, ast.Or)
        value: Any = None
        for each in node.values:
            value = self.value(each)
            if bool(value) is stops_at:
                break
        return value

    def _compare(self, node: ast.Compare) -> bool:
        left = self.value(node.left)
        for symbol, right_node in zip(node.ops, node.comparators, strict=True):
            right = self.value(right_node)
            if not _COMPARED[type(symbol)](left, right):
                return False
            left = right
        return True

    def _item(self, node: ast.Subscript) -> Any:
        holder = self.value(node.value)
        if not isinstance(holder, str | list | tuple | dict | range):
            raise TypeError("this has no items")
        if isinstance(node.slice, ast.Slice):
            bounds = (node.slice.lower, node.slice.upper, node.slice.step)
            return holder[slice(*(None if each is None else self.value(each) for each in bounds))]
        return holder[self.value(node.slice)]

    def _part(self, node: ast.expr) -> str:
        if isinstance(node, ast.Constant):
            return str(node.value)
        assert isinstance(node, ast.FormattedValue)
        value = self._plain(self.value(node.value))
        if node.conversion in {ord("r"), ord("a")}:
            value = repr(value)
        spec = ""
        if isinstance(node.format_spec, ast.JoinedStr):
            spec = "".join(str(getattr(each, "value", "")) for each in node.format_spec.values)
        return format(value, spec)

    def _comprehend(
        self, node: ast.ListComp | ast.GeneratorExp, depth: int, found: list[Any]
    ) -> None:
        if depth == len(node.generators):
            found.append(self.value(node.elt))
            self._bounded(found)
            return
        clause = node.generators[depth]
        for item in self.items(self.value(clause.iter)):
            self.step(node)
            self.assign(clause.target, item)
            if all(self.value(test) for test in clause.ifs):
                self._comprehend(node, depth + 1, found)

    def combine(self, symbol: ast.operator, left: Any, right: Any) -> Any:
        """Applies an operator to two values."""
        if type(symbol) not in _BINARY:
            raise TypeError(f"the operator {type(symbol).__name__} is not known here")
        if isinstance(symbol, ast.Mod) and isinstance(left, str):
            raise TypeError("% is for numbers here; write an f-string")
        if isinstance(symbol, ast.Mult):
            for one, other in ((left, right), (right, left)):
                if isinstance(one, str | list | tuple) and isinstance(other, int):
                    most = MAX_CHARS if isinstance(one, str) else MAX_ITEMS
                    if len(one) * max(other, 0) > most:
                        raise ValueError("too long")
        if isinstance(symbol, ast.Pow) and not (
            isinstance(right, int | float) and abs(right) <= MAX_EXPONENT
        ):
            raise ValueError("the exponent is too large")
        return self._bounded(_BINARY[type(symbol)](left, right))

    def _attribute(self, node: ast.Attribute) -> Any:
        holder = self.value(node.value)
        if isinstance(holder, Member) and holder.module == "pyautogui" and not holder.name:
            if node.attr in EASINGS:
                return Member("pyautogui", node.attr)
            if node.attr == "PAUSE":
                return self._gui.PAUSE
            if node.attr in SETTINGS:
                return False
        if isinstance(holder, tuple) and node.attr in POINT_FIELDS and len(holder) == 2:
            return holder[0 if node.attr in {"x", "width"} else 1]
        raise AttributeError(f"{node.attr!r} can only be called here")

    # calls

    def _call(self, node: ast.Call) -> Any:
        arguments = self._several(node.args)
        options = {str(each.arg): self.value(each.value) for each in node.keywords}
        if isinstance(node.func, ast.Name):
            name = node.func.id
            found = self.names.get(name)
            if isinstance(found, Member):
                return self._member(found.module, found.name, arguments, options)
            if found is None and name in BUILT_IN:
                return self._built_in(name, arguments, options)
            raise TypeError(f"{name!r} is not a function")
        assert isinstance(node.func, ast.Attribute)
        holder = self.value(node.func.value)
        if isinstance(holder, Member):
            if holder.name:
                raise TypeError(f"{holder.name!r} has no functions")
            return self._member(holder.module, node.func.attr, arguments, options)
        return self._method(holder, node.func.attr, arguments, options)

    def _member(self, module: str, name: str, given: list[Any], options: Mapping[str, Any]) -> Any:
        if name == "sleep":
            seconds = float(given[0] if given else options.get("seconds", 0.0))
            self._sleep(max(0.0, min(seconds, MAX_SLEEP_S)))
            return None
        if module != "pyautogui" or name not in FUNCTIONS:
            raise TypeError(f"{module}.{name} is not a function that is known here")
        options = {key: self._passed(name, key, value) for key, value in options.items()}
        parameters = PARAMETERS.get(name, [""] * len(given))
        if len(given) > len(parameters):
            raise TypeError(f"{name}() takes {len(parameters)} arguments here, not {len(given)}")
        passed = [self._passed(name, *pair) for pair in zip(parameters, given, strict=False)]
        result = getattr(self._gui, name)(*passed, **options)
        if name == "hold":
            return result
        if isinstance(result, tuple):
            return tuple(int(coordinate) for coordinate in result)
        return result if isinstance(result, bool) else None

    def _passed(self, function: str, parameter: str, value: Any) -> Any:
        """Checks an argument for PyAutoGUI; names of picture files are refused."""
        if isinstance(value, Member):
            if value.name in EASINGS:
                return getattr(self._gui, value.name)
            raise TypeError("this cannot be an argument")
        if isinstance(value, list | tuple):
            return type(value)(self._passed(function, parameter, each) for each in value)
        is_button = parameter == "button" and isinstance(value, str) and value in BUTTONS
        if isinstance(value, str) and function in MOUSE and not is_button:
            raise TypeError(f"{function}() takes numbers and buttons, not {value[:40]!r}")
        if value is None or isinstance(value, bool | int | float | str):
            return value
        raise TypeError(f"a value of type {type(value).__name__} cannot be an argument")

    def _built_in(self, name: str, given: list[Any], options: Mapping[str, Any]) -> Any:
        if name == "print":
            text = str(options.get("sep", " ")).join(
                str(self._plain(argument)) for argument in given
            )
            self._show(text[:MAX_CHARS])
            return None
        accepted = {"sorted": {"reverse"}, "min": {"default"}, "max": {"default"}, "sum": {"start"}}
        if set(options) - accepted.get(name, set()) - ({"start"} if name == "enumerate" else set()):
            raise TypeError(f"{name}() has no such argument here")
        given = [self._plain(argument) for argument in given]
        if name == "range":
            return self._bounded(range(*given))
        if name == "int" and given and isinstance(given[0], str) and len(given[0]) > 80:
            raise ValueError("too long")
        result = BUILT_IN[name](*given, **options)
        if isinstance(result, enumerate | zip | reversed):
            result = list(result)
        return self._bounded(result)

    def _method(self, holder: Any, name: str, given: list[Any], options: Mapping[str, Any]) -> Any:
        tables = ((str, TEXT_METHODS), (list, LIST_METHODS), (dict, DICT_METHODS))
        methods = next((table for kind, table in tables if type(holder) is kind), frozenset[str]())
        if name not in methods or options:
            raise TypeError(f"{type(holder).__name__} has no {name}() here")
        longest = max(
            len(argument) if isinstance(argument, str) else 0 for argument in [*given, ""]
        )
        if name == "replace" and len(holder) * longest > MAX_CHARS * 10:
            raise ValueError("too long")
        if name == "join":
            given = [[str(self._plain(item)) for item in self.items(given[0])]] if given else []
        result = getattr(holder, name)(*(self._plain(argument) for argument in given))
        self._bounded(holder)
        return list(result) if name in {"keys", "values", "items"} else self._bounded(result)

    # bounds

    def _plain(self, value: Any) -> Any:
        if isinstance(value, Member):
            raise TypeError("functions are no values here")
        return value

    def items(self, value: Any) -> list[Any] | tuple[Any, ...] | str | range:
        """Returns the items that a loop iterates over."""
        if isinstance(value, dict):
            return list(value)
        if isinstance(value, list | tuple | str | range):
            return value
        raise TypeError(f"a value of type {type(value).__name__} has no items")

    def _bounded(self, value: Any) -> Any:
        if isinstance(value, str) and len(value) > MAX_CHARS:
            raise ValueError("the text is too long")
        if isinstance(value, list | tuple | dict | range) and len(value) > MAX_ITEMS:
            raise ValueError("too many items")
        if isinstance(value, int) and value.bit_length() > MAX_BITS:
            raise ValueError("the number is too long")
        if isinstance(value, complex):
            raise TypeError("complex numbers are not known here")
        return value
