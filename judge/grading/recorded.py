"""Results on record as a sequence that reads each when it is needed."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import overload

from judge.core.verdict import CaseResult
from judge.grading.known_cases import KnownCases
from judge.grading.overrides import Overrides
from judge.grading.store import RunDirectory


class RecordedResults(Sequence[CaseResult]):
    """Results of a run, changes by hand in place; eight bytes for each, with a shared index.

    Args:
        path: the results directory.
        known: the index of its records.
        slots: the numbers of the records in the index.
        overrides: verdicts that a person changed.
    """

    def __init__(
        self, path: Path, known: KnownCases, slots: Sequence[int], overrides: Overrides
    ) -> None:
        self._known = known.reopened(RunDirectory(path))
        self._slots = slots
        self._overrides = overrides

    def __len__(self) -> int:
        return len(self._slots)

    @overload
    def __getitem__(self, index: int) -> CaseResult: ...

    @overload
    def __getitem__(self, index: slice) -> list[CaseResult]: ...

    def __getitem__(self, index: int | slice) -> CaseResult | list[CaseResult]:
        if isinstance(index, slice):
            return [self[each] for each in range(len(self))[index]]
        (result,) = self._overrides.apply([self._known.result(self._slots[index])])
        return result
