"""Sends requests to the engines, limits their processor time, and keeps their answers."""

from __future__ import annotations

import functools
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import TYPE_CHECKING

from judge.errors import RecalcError
from judge.formulas.functions import RARE
from judge.formulas.traits import traits
from judge.recalc.agreement import INCAPABLE_ERRORS
from judge.recalc.contract import (
    NO_VALUE,
    CrashedError,
    Engine,
    EngineRequest,
    EngineResult,
    EngineUnavailableError,
    OutOfTimeError,
    RangeValues,
    TeamedEngine,
)
from judge.recalc.explaining import EngineAnswer
from judge.recalc.names import FORMULAS, IRONCALC, LIBREOFFICE
from judge.recalc.trust import PAIR_ENGINES
from judge.workbook.cell import CellRange, CellRef, CellValue, ErrorValue
from judge.workbook.sheets.sheet import DATA_TABLE

if TYPE_CHECKING:
    from judge.recalc.support import Support

SPARE_FACTOR = 6
SPARE_CELLS = 4_000
"""The cells of a sheet are requested as one rectangle if its area is within this limit."""


def covering(cells: Iterable[CellRef]) -> tuple[CellRange, ...]:
    """Rectangles that cover all the cells: a small number, even if they cover other cells too.

    A round trip for each rectangle costs more than reading a few cells that are not needed.
    """
    by_sheet: dict[str, list[CellRef]] = defaultdict(list)
    for cell in cells:
        by_sheet[cell.sheet].append(cell)
    boxes: list[CellRange] = []
    for sheet, members in by_sheet.items():
        rows = [cell.row for cell in members]
        columns = [cell.column for cell in members]
        box = CellRange(sheet, min(rows), min(columns), max(rows), max(columns))
        if box.size <= SPARE_FACTOR * len(members) + SPARE_CELLS:
            boxes.append(box)
        else:
            boxes.extend(_by_columns(sheet, members))
    return tuple(boxes)


def positions(
    ranges: Sequence[CellRange], cells: AbstractSet[CellRef]
) -> list[tuple[Sequence[CellRef], Sequence[int]]]:
    """For each range, the cells that it has, and their positions in it, row by row from 0.

    Args:
        ranges: rectangles, by :func:`covering`.
        cells: the cells that they cover.
    """
    by_sheet: dict[str, list[CellRef]] = defaultdict(list)
    for cell in cells:
        by_sheet[cell.sheet].append(cell)
    ranges_on = Counter(area.sheet for area in ranges)
    inside: list[tuple[Sequence[CellRef], Sequence[int]]] = []
    for area in ranges:
        if ranges_on[area.sheet] == 1:
            refs = by_sheet[area.sheet]
            width, first = area.columns, area.min_row * area.columns + area.min_column
            indexes = [row * width + column - first for _, row, column in refs]
        else:
            refs = [ref for ref in area.refs() if ref in cells]
            indexes = [index for index, ref in enumerate(area.refs()) if ref in cells]
        inside.append((refs, indexes))
    return inside


def _by_columns(sheet: str, members: list[CellRef]) -> Iterable[CellRange]:
    """Vertical runs of cells across gaps; neighbouring runs with the same rows are merged."""
    columns: dict[int, list[int]] = defaultdict(list)
    for cell in members:
        columns[cell.column].append(cell.row)
    open_runs: dict[tuple[int, int], tuple[int, int]] = {}
    for column in sorted(columns):
        for span in _runs(sorted(columns[column])):
            first, last = open_runs.get(span, (column, column - 1))
            if last == column - 1:
                open_runs[span] = (first, column)
                continue
            yield CellRange(sheet, span[0], first, span[1], last)
            open_runs[span] = (column, column)
    for span, (first, last) in open_runs.items():
        yield CellRange(sheet, span[0], first, span[1], last)


_BRIDGED_ROWS = 64


def _runs(rows: list[int]) -> Iterable[tuple[int, int]]:
    start = previous = rows[0]
    for row in rows[1:]:
        if row - previous > _BRIDGED_ROWS:
            yield start, previous
            start = row
        previous = row
    yield start, previous


SECOND_OPINION_S = 15.0
"""Processor seconds that an engine gets in addition to LibreOffice, to notice where they disagree.
If its answer turns out to matter, it gets the full limit."""

LATE_SHARE = 1 / 3
"""An answer that took more than this share of its processor time is late: the same work may take
longer on a busy machine, so another run might not get the answer. It counts, but is not cached on
disk."""


class Exchange:
    """Sends one request to the engines, to each only when it is needed, and keeps their answers.

    Args:
        engines: the available engines by name.
        request: the request.

    Attributes:
        answers: engine -> what it computed.
        silent: engine -> why it gave no answer.
        out_of_time: engines that gave no answer because they used up their processor time.
        ended: engines that gave no answer because their process ended.
        given_s: engine -> the most processor seconds that it was allowed for this request.
    """

    def __init__(self, engines: Mapping[str, Engine], request: EngineRequest) -> None:
        self._engines = engines
        self._request = request
        self._ranges: tuple[CellRange, ...] = covering(request.formulas)
        self.answers: dict[str, EngineResult] = {}
        self.silent: dict[str, str] = {}
        self.out_of_time: set[str] = set()
        self.ended: set[str] = set()
        self.given_s: dict[str, float] = {}

    @property
    def quick_s(self) -> float:
        """Time limit, in processor seconds, of a quick engine if LibreOffice can take over."""
        return self._request.quick_s

    @functools.cached_property
    def _positions(self) -> list[tuple[Sequence[CellRef], Sequence[int]]]:
        return positions(self._ranges, self._request.formulas.keys())

    def _of_cells(self, result: EngineResult) -> EngineResult:
        """A result with only the values of the requested cells."""
        if not isinstance(result.values, RangeValues):
            return result
        return replace(result, values=result.values.at(self._positions))

    @property
    def timely(self) -> dict[str, EngineResult]:
        """The answers that any run would get, however busy the machine is."""
        return {
            name: answer
            for name, answer in self.answers.items()
            if answer.seconds <= LATE_SHARE * self.given_s[name]
        }

    @property
    def is_settled(self) -> bool:
        """Whether all answers are timely, and engines without one had only the quick limit."""
        quick_s, full_s = self._request.quick_s, self._request.timeout_s
        return self.timely.keys() == self.answers.keys() and all(
            self.given_s[name] <= quick_s < full_s for name in self.silent
        )

    @property
    def missing(self) -> frozenset[str]:
        """The engines that may still give values: not asked yet, out of time, or ended."""
        failed = self.silent.keys() - self.out_of_time - self.ended
        return frozenset(self._engines.keys() - self.answers.keys() - failed)

    def answer_for(self, name: str, cell: CellRef) -> EngineAnswer:
        """An engine's value for a cell, or why it has none."""
        answer = self.answers.get(name)
        if answer is None:
            unasked = "not asked: its answer could not change the value"
            return EngineAnswer(why_not=self.silent.get(name, unasked))
        if cell in answer.values:
            return EngineAnswer(answer.values[cell])
        return EngineAnswer(why_not=answer.failed.get(cell, NO_VALUE))

    def may_answer(self, name: str) -> bool:
        """Whether an engine was not asked yet, or used up a limit below the full limit."""
        return name not in self.given_s or (
            name in self.out_of_time and self.given_s[name] < self._request.timeout_s
        )

    def out_of_time_of(self, limit_s: float) -> bool:
        """Whether some engine ran out of time although it was allowed at least this much."""
        return any(self.given_s[name] >= limit_s for name in self.out_of_time)

    def ask_pair(self, limit_s: float, *, second_alone: bool = True) -> None:
        """Asks both quick engines, in a single call if possible.

        Args:
            limit_s: processor seconds for each engine.
            second_alone: whether the second engine is asked even if the first cannot compute the
                workbook. If the first is out of time, the second is asked in any case, since
                LibreOffice and the second may be enough.
        """
        first, second = PAIR_ENGINES
        engine, other = self._engines.get(first), self._engines.get(second)
        unasked = not self.given_s.keys() & {first, second}
        if (
            unasked
            and other is not None
            and isinstance(engine, TeamedEngine)
            and engine.is_teamed_with(other)
        ):
            self._ask_together(engine, other, limit_s)
        else:
            self.ask(first, limit_s)
        if first not in self.silent or first in self.out_of_time or second_alone:
            self.ask(second, limit_s)

    def _ask_together(self, engine: TeamedEngine, other: Engine, limit_s: float) -> None:
        first, second = PAIR_ENGINES
        self.given_s[first] = limit_s
        try:
            answer, then = engine.compute_both(
                other,
                self._request.package_for(first),
                self._ranges,
                timeout_s=limit_s,
                dialect=self._request.dialect,
            )
            self.answers[first] = self._of_cells(answer)
        except RecalcError as error:
            self._note(first, error)
            return
        self.given_s[second] = limit_s
        if isinstance(then, RecalcError):
            self._note(second, then)
        else:
            self.answers[second] = self._of_cells(then)

    def ask(self, name: str, limit_s: float) -> None:
        """Asks one engine, unless it is not available or already had this much time.

        Args:
            name: the engine.
            limit_s: the processor seconds that it may take.
        """
        before_s = self.given_s.get(name, 0.0)
        if name not in self._engines or before_s >= limit_s:
            return
        self.given_s[name] = limit_s
        if name in self.answers or (before_s and name not in self.out_of_time):
            return
        try:
            answer = self._engines[name].compute(
                self._request.package_for(name),
                self._ranges,
                timeout_s=limit_s,
                dialect=self._request.dialect,
            )
            self.answers[name] = self._of_cells(answer)
        except RecalcError as error:
            self._note(name, error)
        else:
            self.silent.pop(name, None)
            self.out_of_time.discard(name)
            self.ended.discard(name)

    def _note(self, name: str, error: RecalcError) -> None:
        """Notes why an engine has no answer; raises the error if the engine cannot be started."""
        if isinstance(error, EngineUnavailableError):
            raise error
        self.silent[name] = error.message
        self.out_of_time.discard(name)
        if isinstance(error, OutOfTimeError):
            self.out_of_time.add(name)
        if isinstance(error, CrashedError):
            self.ended.add(name)


IN_ORDER = (LIBREOFFICE, *PAIR_ENGINES, FORMULAS)
"""The engines in the order in which they are asked, and in which their answers are listed."""

_MAY_BE_EMPTY = frozenset(("FILTER", "TAKE", "DROP"))
"""Functions whose resulting array may be empty. Excel then shows ``#CALC!``, which it stores in
files as ``#VALUE!``."""


class Answers:
    """Asks the engines about all cells of a request, and keeps each engine's value for each cell.

    The pair of quick engines computes the sure cells in a workbook of their own, so that nothing
    else in the original can make it fail.

    Args:
        engines: the available engines by name.
        request: the request.
        support: the properties of its cells.

    Attributes:
        agreeing: the sure cells: their value is that of the pair if the two agree.
        sure: the sure cells if both engines of the pair are available; otherwise none.
        main: the exchange about the whole workbook.
        apart: the exchange of the pair about the sure cells; the same as ``main`` if they need none
            of their own.
    """

    def __init__(
        self, engines: Mapping[str, Engine], request: EngineRequest, support: Support
    ) -> None:
        self._engines = engines
        self._request = request
        self._support = support
        self._pair = tuple(name for name in PAIR_ENGINES if name in engines)
        all_sure = self._sure_cells()
        self.agreeing = all_sure & request.formulas.keys()
        self.sure = self.agreeing if self._pair == PAIR_ENGINES else frozenset()
        self.main = self.apart = Exchange(engines, request)
        if self.sure & request.requested and request.narrowed is not None:
            self.apart = Exchange(engines, request.narrowed_to(all_sure))
        self._has_tables = DATA_TABLE in request.formulas.values()
        self._votes: dict[CellRef, dict[str, CellValue]] = {}
        self._given: dict[bool, list[tuple[str, Mapping[CellRef, CellValue]]]] = {}
        self._missing: dict[bool, frozenset[str]] = {}

    def _sure_cells(self) -> AbstractSet[CellRef]:
        """The cells, requested or not, in which the pair's value is taken if the two agree."""
        # The quick engines only count days from 1900.
        if not self._pair or self._request.dialect.date_1904:
            return frozenset()
        return self._support.sure()

    @property
    def is_settled(self) -> bool:
        """Whether any run would get the same answers; see :attr:`Exchange.is_settled`."""
        return self.main.is_settled and self.apart.is_settled

    def exchange(self, name: str, cell: CellRef) -> Exchange:
        """The exchange to which a cell belongs if this engine is asked."""
        return self._exchange(name, sure=cell in self.sure)

    def _exchange(self, name: str, *, sure: bool) -> Exchange:
        return self.apart if sure and name in self._pair else self.main

    def ask_first(self) -> None:
        """Asks the engines that will be needed in any case."""
        request, main, apart = self._request, self.main, self.apart
        any_sure = bool(self.sure & request.requested)
        all_sure = self.sure >= request.requested
        if LIBREOFFICE not in self._engines:
            if any_sure:
                apart.ask_pair(request.timeout_s)
            if not all_sure:
                main.ask_pair(request.timeout_s)
        elif all_sure:
            apart.ask_pair(apart.quick_s, second_alone=False)
        else:
            # LibreOffice is needed in any case, so it runs in parallel with the others.
            with ThreadPoolExecutor(max_workers=1) as executor:
                pending = executor.submit(main.ask, LIBREOFFICE, request.timeout_s)
                if any_sure:
                    apart.ask_pair(apart.quick_s, second_alone=False)
                if self._pair and apart is not (main if any_sure else None):
                    # The second engine of the pair is asked later, if it could change a value.
                    main.ask(self._pair[0], min(SECOND_OPINION_S, request.timeout_s))
                pending.result()
        self._forget()

    def may_answer(self, name: str, *, sure: bool) -> bool:
        """Whether an engine may still answer about the sure cells, or about the others."""
        if not self._exchange(name, sure=sure).may_answer(name):
            return False
        # ``formulas`` takes a hundred times as long as the others: if they run out of time, so
        # does it.
        limit_s = self._request.timeout_s
        return name != FORMULAS or not (
            self.main.out_of_time_of(limit_s) or self.apart.out_of_time_of(limit_s)
        )

    def ask(self, name: str, *, sure: bool) -> None:
        """Asks an engine about the sure cells, or about the others, with the full time limit."""
        self._exchange(name, sure=sure).ask(name, self._request.timeout_s)
        self._forget()

    def _forget(self) -> None:
        self._votes.clear()
        self._given.clear()
        self._missing.clear()

    def missing(self, cell: CellRef) -> frozenset[str]:
        """The engines that may still give a value for a cell.

        They are the same for all sure cells, and for all others, until the next engine is asked.
        """
        sure = cell in self.sure
        if sure not in self._missing:
            self._missing[sure] = frozenset(
                name for name in self._engines if name in self.exchange(name, cell).missing
            )
        return self._missing[sure]

    def votes(self, cell: CellRef) -> dict[str, CellValue]:
        """Engine -> its value for a cell, if that value is usable; in a fixed order.

        The result is kept until an engine is asked again.
        """
        votes = self._votes.get(cell)
        if votes is not None:
            return votes
        votes = self._votes[cell] = {}
        is_table = self._has_tables and self._request.formulas[cell] == DATA_TABLE
        for name, values in self.given(cell):
            value = values.get(cell)
            if is_table or type(value) is ErrorValue:
                value = self._usable(name, cell, value)
            if value is not None:
                votes[name] = value
        if IRONCALC in votes:
            formula = traits(self._request.formulas[cell])
            if formula.spans_sheets or formula.intersects:
                # IronCalc supports neither; it reads only the first range, or nothing.
                del votes[IRONCALC]
        return votes

    def given(self, cell: CellRef) -> list[tuple[str, Mapping[CellRef, CellValue]]]:
        """The engines that answered about a cell, in a fixed order, with all their values."""
        sure = cell in self.sure
        if sure not in self._given:
            answers = [(name, self.exchange(name, cell).answers.get(name)) for name in IN_ORDER]
            self._given[sure] = [
                (name, answer.values) for name, answer in answers if answer is not None
            ]
        return self._given[sure]

    def _usable(self, name: str, cell: CellRef, value: CellValue) -> CellValue:
        """The value of an engine; None if it only shows that the engine lacks a feature."""
        if name != LIBREOFFICE and self._request.formulas[cell] == DATA_TABLE:
            return None  # the others do not support data tables, and repeat the stored value
        if isinstance(value, ErrorValue):
            if value.code == "#NAME?" and (
                not self._support.is_nameless(cell) or self._is_rare(cell)
            ):
                return ErrorValue("#REF!") if self._support.is_broken(cell) else None
            if name != LIBREOFFICE and value.code in INCAPABLE_ERRORS:
                return self._empty_array_error(cell, value)
        return value

    def _empty_array_error(self, cell: CellRef, value: ErrorValue) -> CellValue:
        """The error of an empty array, which files store as ``#VALUE!``; None for other errors."""
        functions = traits(self._request.formulas[cell]).functions
        if value.code == "#CALC!" and not functions.isdisjoint(_MAY_BE_EMPTY):
            return ErrorValue("#VALUE!")
        return None

    def _is_rare(self, cell: CellRef) -> bool:
        """Whether a formula calls a function that Excel supports but some engines do not."""
        rare = RARE | self._request.lambdas
        return not rare.isdisjoint(traits(self._request.formulas[cell]).functions)
