"""CONVERT between units of one kind, with the prefixes that they take. Pure.

Source: Microsoft's page on CONVERT. Only units are here that engines do not know by all their
names, or with all their prefixes; other ones are left to the engines.
"""

from __future__ import annotations

from collections.abc import Sequence

from judge.formulas.tree import Node
from judge.recalc.conversions import UnsureError
from judge.recalc.criteria import Scalar
from judge.recalc.scalars import VALUE, Evaluation, Function
from judge.workbook.cell import ErrorValue

_TIME = {"s": 1, "sec": 1, "mn": 60, "min": 60, "hr": 3600, "d": 86_400, "day": 86_400}
_LENGTH = {"m": 1}
_MASS = {"g": 1}
_FORCE = {"N": 1}
_ENERGY = {"J": 1}
_POWER = {"W": 1, "w": 1}

_WITH_PREFIXES = frozenset(("s", "sec", "m", "g", "N", "J", "W", "w"))

_PREFIXES = {
    "Y": 24, "Z": 21, "E": 18, "P": 15, "T": 12, "G": 9, "M": 6, "k": 3, "h": 2, "e": 1, "da": 1,
    "d": -1, "c": -2, "m": -3, "u": -6, "n": -9, "p": -12, "f": -15, "a": -18, "z": -21, "y": -24,
}  # fmt: skip


def _unit(name: str) -> tuple[int, float, int]:
    """The kind of a unit, how many of the first one of its kind it is, and its power of ten."""
    for number, units in enumerate((_TIME, _LENGTH, _MASS, _FORCE, _ENERGY, _POWER)):
        if name in units:
            return number, units[name], 0
        for unit in units.keys() & _WITH_PREFIXES:
            prefix = name.removesuffix(unit)
            if prefix != name and prefix in _PREFIXES:
                return number, units[unit], _PREFIXES[prefix]
    raise UnsureError


def _convert(evaluation: Evaluation, arguments: Sequence[Node]) -> Scalar:
    if len(arguments) != 3:
        raise UnsureError
    value = evaluation.scalar(arguments[0])
    if isinstance(value, bool):
        evaluation.converted = True
        return VALUE
    names = [evaluation.scalar(argument) for argument in arguments[1:]]
    one, other = (name if isinstance(name, str) else "" for name in names)
    if isinstance(value, (str, ErrorValue)) or value is None:
        raise UnsureError
    (kind, factor, power), (other_kind, other_factor, other_power) = _unit(one), _unit(other)
    if kind != other_kind:
        raise UnsureError
    evaluation.converted = True
    ten = power - other_power
    amount = value * 10.0**ten if ten >= 0 else value / 10.0**-ten
    return amount * factor / other_factor


UNIT_FUNCTIONS: dict[str, Function] = {"CONVERT": _convert}
