"""Which engine is right for which function: a table measured by the benchmark."""

from __future__ import annotations

import functools
import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from importlib import resources
from typing import Any

from judge.recalc.names import FORMUALIZER, IRONCALC

PAIR = "pair"
"""Name under which the table counts the cells on which IronCalc and formualizer agree."""

PAIR_ENGINES = (FORMUALIZER, IRONCALC)

MIN_EVIDENCE = 3
"""Cells of different formulas that a function needs before its figures are meaningful."""

SURE = 0.995
"""Share of right cells from which an agreement of the pair is accepted without LibreOffice."""

RIGHT = 0.9
"""Share of right cells below which an engine is not believed."""


@dataclass(frozen=True, slots=True)
class Record:
    """How often an engine was right where a function was called."""

    right: int
    total: int

    @property
    def share(self) -> float:
        """Share of right cells; 0 without any."""
        return self.right / self.total if self.total else 0.0


@dataclass(frozen=True, slots=True)
class TrustTable:
    """Function -> engine -> how often it was right.

    Attributes:
        functions: the measured figures.
        measured_with: engine -> version that they were measured with.
    """

    functions: Mapping[str, Mapping[str, Record]]
    measured_with: Mapping[str, str]

    def pair_is_sure(self, functions: Iterable[str]) -> bool:
        """Whether an agreement of IronCalc and formualizer can be accepted as it is.

        Args:
            functions: every function that the value depends on.
        """
        return all(
            record.total >= MIN_EVIDENCE and record.share >= SURE
            for record in (self._record(name, PAIR) for name in functions)
        )

    def weak(self, engine: str, functions: Iterable[str]) -> frozenset[str]:
        """The functions, out of some, for which an engine was measured to be wrong too often."""
        found = ((name, self._record(name, engine)) for name in functions)
        return frozenset(
            name for name, record in found if record.total >= 1 and record.share < RIGHT
        )

    def is_good(self, engine: str, functions: Iterable[str]) -> bool:
        """Whether an engine was measured often enough for each of some functions, and was right."""
        records = [self._record(name, engine) for name in functions]
        return all(record.total >= MIN_EVIDENCE and record.share >= RIGHT for record in records)

    def share(self, engine: str, functions: Iterable[str]) -> float:
        """How far an engine can be trusted if these functions are called.

        Returns:
            The smallest share of right cells over the functions, 1.0 without any function, 0.0
            where a function was never measured with this engine.
        """
        return min(
            (self._record(name, engine).share for name in functions),
            default=1.0,
        )

    def coverage(self, engine: str) -> dict[str, int]:
        """How many functions were measured with an engine, and how many it can be trusted with."""
        records = [function[engine] for function in self.functions.values() if engine in function]
        return {
            "measured": len(records),
            "trusted": sum(1 for record in records if record.share >= RIGHT),
        }

    def _record(self, function: str, engine: str) -> Record:
        return self.functions.get(function, {}).get(engine, _NO_RECORD)


_NO_RECORD = Record(0, 0)


@functools.cache
def trust_table() -> TrustTable:
    """The table that ships with the package (``judge/recalc/trust.json``)."""
    return read_table(json.loads(_table_text()))


def table_digest() -> str:
    """Changes whenever the table of the package changes."""
    return hashlib.sha256(_table_text().encode()).hexdigest()


def _table_text() -> str:
    return resources.files("judge.recalc").joinpath("trust.json").read_text(encoding="utf-8")


def read_table(data: Mapping[str, Any]) -> TrustTable:
    """Builds the table from its JSON form: function -> engine -> [right, total]."""
    return TrustTable(
        functions={
            function: {engine: Record(*counts) for engine, counts in engines.items()}
            for function, engines in data["functions"].items()
        },
        measured_with={str(k): str(v) for k, v in data["measured_with"].items()},
    )
