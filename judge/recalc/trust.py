"""The table of how often each engine was right, by function and by shape of the arguments."""

from __future__ import annotations

import functools
import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from typing import Any

from judge.formulas.functions import PREFIX
from judge.formulas.shapes import OF_ARRAYS, Call
from judge.recalc.names import FORMUALIZER, IRONCALC

PAIR = "pair"
"""Name of the table's entries for the cells on which IronCalc and formualizer agree."""

PAIR_ENGINES = (FORMUALIZER, IRONCALC)

MIN_EVIDENCE = 3
"""How many cells with different formulas a record needs before its figures mean anything."""

SURE = 0.995
"""With this share of right cells, the pair's value is accepted without asking LibreOffice."""

MOSTLY_SURE = 0.95
"""The share of right cells that all shapes of a function need even if one shape is sure."""

RIGHT = 0.9
"""An engine counts as trusted with a function if at least this share of its cells is right."""

CELLS_OF_SHAPE = 2
CELLS_OF_FUNCTION = 5
FIRST_CHANCE = 0.95
FIRST_CHANCE_OF_ERROR = 0.8
"""This many assumed cells are added to a record. Cells added to a shape have the share of right
cells of its function; of the cells added to a function, 95 % are right, or 80 % if they are errors.
So six cells do not decide about thousands, and no engine is favoured where nothing was measured."""


@dataclass(frozen=True, slots=True)
class Record:
    """How often an engine was right about cells that call a function.

    Attributes:
        right: number of cells in which it had Excel's value or error.
        total: number of cells in which it had a value or an error.
        errors_right: how many of the right cells had an error.
        errors: how many of all cells had an error.
    """

    right: int
    total: int
    errors_right: int = 0
    errors: int = 0

    @property
    def share(self) -> float:
        """Share of right cells; 0 if there are no cells."""
        return self.right / self.total if self.total else 0.0

    def of(self, *, is_error: bool) -> tuple[int, int]:
        """How many cells are right, and how many there are, with an error or without."""
        if is_error:
            return self.errors_right, self.errors
        return self.right - self.errors_right, self.total - self.errors

    def __add__(self, other: Record) -> Record:
        return Record(
            self.right + other.right,
            self.total + other.total,
            self.errors_right + other.errors_right,
            self.errors + other.errors,
        )


_NO_RECORD = Record(0, 0)

_MAX_KEPT = 50_000
"""The number of formulas whose probabilities are kept in memory."""

Records = Mapping[str, Mapping[str, Record]]
"""Function or shape -> engine -> its record."""


class TrustTable:
    """How often each engine was right, by function and by shape.

    Args:
        functions: the records of functions.
        shapes: the records of shapes, such as ``ROMAN(c,1)``.
        measured_with: engine -> the version with which the records were measured.
    """

    def __init__(
        self, functions: Records, shapes: Records, measured_with: Mapping[str, str]
    ) -> None:
        self.functions = functions
        self.shapes = shapes
        self.measured_with = measured_with
        self._chances: dict[tuple[str, Call, bool], float] = {}
        self._least: dict[tuple[str, tuple[Call, ...], bool], float] = {}

    def is_sure(self, witness: str, calls: Iterable[Call]) -> bool:
        """Whether the value of a witness is taken without asking anyone else.

        Args:
            witness: the pair, where it agrees, or the judge itself.
            calls: all calls in a formula.
        """
        return all(self._is_sure(witness, call) for call in calls)

    def _is_sure(self, witness: str, call: Call) -> bool:
        shape, function = self._shape(call, witness), self.record(call.function, witness)
        if shape.total >= MIN_EVIDENCE:
            return shape.share >= SURE and function.share >= MOSTLY_SURE
        if call.omits:
            return False  # other shapes say nothing about an argument that is left out
        if function.total >= MIN_EVIDENCE:
            return function.share >= SURE
        # The judge has records of operators too.
        return witness == PAIR and not _is_function(call.function)

    def chance(self, engine: str, calls: Iterable[Call], *, is_error: bool) -> float:
        """The probability that an engine's value for a formula is right.

        Args:
            engine: its name.
            calls: all calls in the formula; the weakest call counts.
            is_error: whether the value is an error; errors are counted separately.
        """
        key = engine, tuple(calls), is_error
        chance = self._least.get(key)
        if chance is None:
            chance = min(self._chance(engine, call, is_error) for call in key[1])
            if len(self._least) >= _MAX_KEPT:
                self._least.clear()
            self._least[key] = chance
        return chance

    def is_measured(self, engine: str, calls: Iterable[Call]) -> bool:
        """Whether an engine has a record for every function that a formula calls."""
        return all(
            self.record(call.function, engine).total
            or self.record(call.function.removesuffix(OF_ARRAYS), engine).total
            for call in calls
            if _is_function(call.function)
        )

    def is_shaped(self, engine: str, calls: Iterable[Call]) -> bool:
        """Whether an engine has a record for the shape of every given call."""
        return all(self._shape(call, engine).total for call in calls)

    def coverage(self, engine: str) -> dict[str, int]:
        """For how many functions an engine was measured, and for how many it is trusted."""
        records = [
            function[engine]
            for name, function in self.functions.items()
            if engine in function and _is_function(name)
        ]
        return {
            "measured": len(records),
            "trusted": sum(1 for record in records if record.share >= RIGHT),
        }

    def record(self, function: str, engine: str) -> Record:
        """The record of an engine with a function."""
        return self.functions.get(function, {}).get(engine, _NO_RECORD)

    def records_of(self, function: str) -> dict[str, Mapping[str, Record]]:
        """All records of a function: overall, and by the shapes of its arguments; may be empty.

        Args:
            function: its name, with or without the prefix that it has in files.
        """
        name = PREFIX.sub("", function).upper()
        of_arrays = f"{name}{OF_ARRAYS}"
        shapes = (shape for shape in self.shapes if shape.startswith((f"{name}(", f"{of_arrays}(")))
        records = {
            form: self.functions[form] for form in (name, of_arrays) if form in self.functions
        }
        return {**records, **{shape: self.shapes[shape] for shape in shapes}}

    def _shape(self, call: Call, engine: str) -> Record:
        return self.shapes.get(call.shape, {}).get(engine, _NO_RECORD)

    def _chance(self, engine: str, call: Call, is_error: bool) -> float:
        key = engine, call, is_error
        if key not in self._chances:
            chance = FIRST_CHANCE_OF_ERROR if is_error else FIRST_CHANCE
            for record, more in (
                (self.record(call.function, engine), CELLS_OF_FUNCTION),
                (self._shape(call, engine), CELLS_OF_SHAPE),
            ):
                right, total = record.of(is_error=is_error)
                chance = (right + more * chance) / (total + more)
            self._chances[key] = chance
        return self._chances[key]


def _is_function(name: str) -> bool:
    """Whether a record belongs to a function; operators have records as well."""
    return name[0].isalpha()


@functools.cache
def trust_table() -> TrustTable:
    """The table that ships with the package (``judge/recalc/trust.json``)."""
    return read_table(json.loads(_table_text()))


def table_digest() -> str:
    """A digest of the table that ships with the package."""
    return hashlib.sha256(_table_text().encode()).hexdigest()


def _table_text() -> str:
    return resources.files("judge.recalc").joinpath("trust.json").read_text(encoding="utf-8")


def read_table(data: Mapping[str, Any]) -> TrustTable:
    """Builds the table from its JSON form.

    It maps function or shape -> engine -> [right, total], followed by the numbers of right errors
    and of all errors if there are any.
    """
    return TrustTable(
        _read_records(data["functions"]),
        _read_records(data.get("shapes", {})),
        {str(k): str(v) for k, v in data["measured_with"].items()},
    )


def _read_records(data: Mapping[str, Mapping[str, Sequence[int]]]) -> Records:
    return {
        name: {engine: Record(*counts) for engine, counts in engines.items()}
        for name, engines in data.items()
    }
