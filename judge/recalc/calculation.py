"""Computes formula cells: by the judge itself, and by engines where it is not sure."""

from __future__ import annotations

import functools
import hashlib
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from pkgutil import resolve_name
from types import MappingProxyType
from typing import TYPE_CHECKING

import judge.formulas
import judge.recalc
import judge.sandbox
import judge.workbook
from judge.core.submission import Origin
from judge.files.writing import digest_of_modules
from judge.formulas.functions import WORKSHEET_PREFIXED
from judge.formulas.references import references
from judge.recalc.cache import ResultCache
from judge.recalc.contract import (
    CascadeResult,
    CellVotes,
    Dialect,
    Engine,
    EngineRequest,
)
from judge.recalc.corrections import corrected_values
from judge.recalc.engines import INSTALL_COMMAND
from judge.recalc.expansion import expanded
from judge.recalc.explaining import Explanation, address
from judge.recalc.functions.contents import Contents
from judge.recalc.functions.own import (
    followed_values,
    values_of_all,
    values_of_constants,
)
from judge.recalc.functions.regions import UNITED_STATES, Region
from judge.recalc.functions.tried import is_of_mixed_arrays
from judge.recalc.names import JUDGE
from judge.recalc.reduction import (
    is_ascii_only,
    last_rows,
    logical_constants,
    nameless_constants,
    of_cells,
    reduced,
    replaceable,
    slimmed,
    spills,
    text_beyond_ascii,
    with_bounded_columns,
    with_known,
    with_sheets,
)
from judge.recalc.region import Regional, region_of, regional_cells
from judge.recalc.support import cells_of_judge
from judge.recalc.tables import Tables
from judge.recalc.trust import TrustTable
from judge.recalc.wanted import (
    ChosenCells,
    WantedCell,
    calculates,
    fills_cells,
    finished,
    intersecting_cells,
    precedents,
    too_long_formulas,
    uncomputed_cells,
    untrusted_cells,
)
from judge.workbook.address import cell_key
from judge.workbook.cell import (
    NOTHING_COMPUTED,
    Cell,
    CellRange,
    CellRef,
    CellValue,
    ComputedValues,
    ErrorValue,
)
from judge.workbook.dependency import Dependencies, FormulaIndex, dependencies_or_doubt
from judge.workbook.reader import Workbook, sheet_formulas

if TYPE_CHECKING:
    from judge.recalc.cascade import Cascade

UNKNOWN_FUNCTION = "JUDGE.UNKNOWN"
"""A function name that no engine knows; it replaces names that Excel would not know either."""


@functools.cache
def code_digest() -> str:
    """A digest of all modules that can affect what is computed.

    These are the modules that ask the engines, those that read workbooks and formulas, and those
    that start the engines and so decide in which environment they run.
    """
    return digest_of_modules(judge.recalc, judge.formulas, judge.workbook, judge.sandbox)


MAX_REGIONS = 1_000
"""Largest number of workbooks of which the region is remembered."""

FOLLOWED_ALONE = 500
"""Largest number of cells whose dependencies are followed separately for each cell."""


class _Opened:
    """An open workbook, with everything that is read from it only once.

    Attributes:
        workbook: the workbook.
        tables: its tables.
        index: its formulas, with structured references written out.
        contents: its sheets, for the cells that are computed here.
    """

    def __init__(self, workbook: Workbook) -> None:
        self.workbook = workbook
        self.tables = Tables(workbook)
        self.index = FormulaIndex(workbook.sheet_names, self.tables.formulas_on)
        self.contents = Contents(workbook, self.index)

    def read_in(self, region: Region) -> None:
        """Determines the region in which formulas are computed."""
        self.contents = self.contents.in_region(region)

    @property
    def parts(self) -> dict[str, str]:
        """Worksheet -> name of its part."""
        return {tab.name: tab.part for tab in self.workbook.tabs if tab.is_worksheet}

    def written_out(self, cells: Sequence[WantedCell]) -> list[WantedCell]:
        """The cells with structured references replaced by the rectangles that they mean."""
        return [
            cell._replace(source=self.tables.cell(cell.source, cell.ref.sheet))
            if self.tables.may_name_one(cell.source.formula or "")
            else cell
            for cell in cells
        ]


@dataclass(frozen=True)
class _Prepared:
    """The values and facts about some cells that are known before an engine is asked.

    Attributes:
        dependencies: what the cells depend on.
        computed: cell that is computed without any engine, requested or not -> its value.
        recorded: the computed cells that engines can also compute, but the judge is always right.
        regional: the cells that depend on the region; None if it is the United States.
        notes: what a person should know about the request.
        make_request: makes the request to the engines.
    """

    dependencies: Dependencies
    computed: Mapping[CellRef, CellValue]
    recorded: AbstractSet[CellRef]
    regional: Regional | None
    notes: tuple[str, ...]
    make_request: Callable[[], EngineRequest]

    @functools.cached_property
    def request(self) -> EngineRequest:
        """The request to the engines, made when the first of them is asked."""
        return self.make_request()


_NO_VALUE = ErrorValue("#VALUE!")
"""Represents a missing value, which is treated like an error."""

_NO_ENGINE = "no calculation engine is available"


class Calculation:
    """Computes the formula cells that :class:`judge.recalc.policy.Recalculator` chooses.

    Args:
        engines: the available engines; none is started before a formula needs it.
        identity: returns what describes the engines; see :attr:`Recalculator.identity`.
        cache: keeps results by content.
        records: how often each engine is right.
        timeout_s: processor seconds that one engine may take for one workbook.
        lenient_names: whether newer functions without their prefix are computed.
        missing: engines that are not installed, for messages.
    """

    def __init__(
        self,
        engines: tuple[Engine, ...],
        identity: Callable[[], tuple[str, ...]],
        cache: ResultCache,
        records: TrustTable,
        *,
        timeout_s: float,
        lenient_names: bool,
        missing: Sequence[str],
    ) -> None:
        self._engines = engines
        self._identity = identity
        self._cache = cache
        self._records = records
        self._timeout_s = timeout_s
        self._lenient = lenient_names
        self._missing = missing
        self._regions: dict[str, Region] = {}
        """Digest of a workbook -> the region of the machine that saved it."""

    @functools.cached_property
    def _cascade(self) -> Cascade:
        """The cascade; imported and made when the first cell needs an engine."""
        make: type[Cascade] = resolve_name("judge.recalc.cascade:Cascade")
        return make(self._engines, self._records)

    def fill(
        self,
        workbook: Workbook,
        chosen: ChosenCells,
        *,
        origin: Origin,
        like: Workbook | None,
    ) -> ComputedValues:
        """Computes the chosen cells; see :meth:`judge.recalc.policy.Recalculator.fill`."""
        opened = _Opened(workbook)
        cells, refused = _computable(opened, chosen, origin)
        if cells and self._computes_itself:
            opened.read_in(self._region(workbook if origin is Origin.GOLD else like))
        computed = (
            self._cached_or_computed(opened, cells, chosen.notes) if cells else NOTHING_COMPUTED
        )
        if refused:
            return replace(computed, not_calculated={**computed.not_calculated, **refused})
        return computed

    def _cached_or_computed(
        self, opened: _Opened, cells: Sequence[WantedCell], unseen: Sequence[str]
    ) -> ComputedValues:
        """Takes the values from the cache, or computes them."""
        started = time.perf_counter()
        key = self._key(opened, cells)
        result = self._cache.get(key)
        if result is None:
            result, lasting = self._compute(opened, cells)
            result = replace(result, notes=(*unseen, *result.notes))
            self._cache.put(key, result, lasting=lasting)
        return replace(result, seconds=time.perf_counter() - started)

    def _region(self, like: Workbook | None) -> Region:
        """The region of the machine that saved a workbook."""
        if like is None or not calculates(like.facts):
            return UNITED_STATES
        digest = like.digest
        region = self._regions.get(digest)
        if region is None:
            if len(self._regions) >= MAX_REGIONS:
                self._regions.clear()
            region = self._regions[digest] = region_of(_Opened(like).contents)
        return region

    def _key(self, opened: _Opened, cells: Sequence[WantedCell]) -> str:
        # This version of the package does not reuse values that another version kept.
        region = repr(opened.contents.region)
        refs = sorted(cell.ref for cell in cells)
        content = repr((opened.workbook.digest, region, self._identity(), code_digest(), refs))
        return hashlib.sha256(content.encode()).hexdigest()

    def explain(
        self, workbook: Workbook, ref: CellRef, chosen: ChosenCells, *, origin: Origin
    ) -> Explanation:
        """Computes one cell; see :meth:`judge.recalc.policy.Recalculator.explain`."""
        opened = _Opened(workbook)
        cells, refused = _computable(opened, chosen, origin)
        if not cells:
            area = CellRange(ref.sheet, ref.row, ref.column, ref.row, ref.column)
            stored = workbook.cells(area).get((ref.row, ref.column))
            formula, value = (stored.formula, stored.value) if stored else (None, None)
            if ref in refused:
                return Explanation(ref, formula, None, (), refused[ref])
            why = "the value in the file counts, since no formula of the cell is computed"
            return Explanation(ref, formula, value, (), why)
        (cell,) = cells
        if not self._engines:
            why = _NO_ENGINE + self._install_hint()
            return Explanation(ref, cell.source.formula, None, (), why)
        prepared = self._prepared(opened, cells)
        answer = self._cascade.explain(prepared.request, ref)
        corrected = dict(prepared.computed)
        outcome = CascadeResult(values={ref: answer.value})
        corrected |= self._corrected(opened, cells, prepared, {}, outcome)[0]
        if ref in corrected:
            why = "conversions and criteria are computed by the judge itself"
            if ref in prepared.recorded:
                why = (
                    "no engine is needed: the judge was always right when it computed the "
                    "functions that the cell depends on"
                )
            answer = replace(answer, value=corrected[ref], believed=(JUDGE,), why=why)
        value = finished(answer.value, cell, date_1904=workbook.facts.date_1904)
        return replace(answer, value=value, notes=(*prepared.notes, *answer.notes))

    def changing_cells(self, workbook: Workbook, cells: Sequence[CellRef]) -> set[CellRef]:
        """Those of some cells that may change; see :meth:`Recalculator.changing_cells`."""
        index = FormulaIndex(workbook.sheet_names, functools.partial(sheet_formulas, workbook))
        sources = {
            ref: (ref.sheet, workbook.sheet(ref.sheet).cell(cell_key(ref.row, ref.column)))
            for ref in cells
        }
        if not dependencies_or_doubt(list(sources.values()), index).volatile:
            return set()
        if len(sources) > FOLLOWED_ALONE:
            return set(sources)
        return {
            ref for ref, cell in sources.items() if dependencies_or_doubt([cell], index).volatile
        }

    def votes(
        self, workbook: Workbook, ranges: Sequence[CellRange], like: Workbook | None
    ) -> dict[CellRef, CellVotes]:
        """The answers for formula cells; see :meth:`judge.recalc.policy.Recalculator.votes`."""
        every, _ = untrusted_cells(workbook, ranges, "always", Origin.SOLUTION)
        opened = _Opened(workbook)
        cells = opened.written_out(every)
        refused = too_long_formulas(cells)
        cells = [cell for cell in cells if cell.ref not in refused]
        if not cells:
            return {}
        request = self._prepared(opened, cells).request
        opened.read_in(self._region(like))
        own = values_of_all(opened.contents, {cell.ref: cell.source for cell in cells}, {})
        by_ref = {cell.ref: cell for cell in cells}
        answers = {}
        for ref, ballot in self._cascade.all_votes(request).items():
            votes = {**ballot.votes, **({JUDGE: own[ref]} if ref in own else {})}
            typed = {
                name: finished(vote, by_ref[ref], date_1904=workbook.facts.date_1904)
                for name, vote in votes.items()
            }
            answers[ref] = replace(ballot, votes=votes, typed=typed)
        return answers

    def _compute(self, opened: _Opened, cells: Sequence[WantedCell]) -> tuple[ComputedValues, bool]:
        """Computes values; also returns whether another run would compute the same."""
        prepared = self._prepared(opened, cells)
        left = {cell.ref for cell in cells} - prepared.computed.keys()
        outcome = CascadeResult()
        if left:
            outcome = CascadeResult(failed=dict.fromkeys(left, _NO_ENGINE))
            if self._engines:
                outcome = self._cascade.compute(replace(prepared.request, wanted=left))
        by_ref = {cell.ref: cell for cell in cells}
        own = {ref: value for ref, value in prepared.computed.items() if ref in by_ref}
        corrected, stale = self._corrected(opened, cells, prepared, own, outcome)
        own |= corrected
        if stale:
            constants = replaceable(corrected, prepared.dependencies)
            with_constants = functools.partial(with_known, parts=opened.parts, values=constants)
            outcome = outcome.updated(self._asked_again(opened, prepared, with_constants, stale))
        outcome = replace(
            outcome,
            values=outcome.values | own,
            failed={ref: why for ref, why in outcome.failed.items() if ref not in own},
            used=outcome.used | ({JUDGE} if own else set()),
        )
        if prepared.regional is not None:
            sources = {cell.ref: cell.source for cell in cells if cell.ref not in prepared.computed}
            asked_again = functools.partial(self._asked_again, opened, prepared)
            outcome = prepared.regional.settled(opened.contents, sources, outcome, asked_again)
        values, failed = outcome.values, outcome.failed
        date_1904 = opened.workbook.facts.date_1904
        hint = self._install_hint() if failed else ""
        computed = ComputedValues(
            values=MappingProxyType(
                {
                    ref: finished(values[ref], by_ref[ref], date_1904=date_1904)
                    for ref in sorted(values)
                }
            ),
            not_calculated=MappingProxyType({ref: why + hint for ref, why in failed.items()}),
            engines=self._used(outcome.used),
            notes=(*prepared.notes, *outcome.notes),
        )
        return computed, outcome.complete and not prepared.dependencies.volatile

    def _corrected(
        self,
        opened: _Opened,
        cells: Sequence[WantedCell],
        prepared: _Prepared,
        own: Mapping[CellRef, CellValue],
        outcome: CascadeResult,
    ) -> tuple[dict[CellRef, CellValue], frozenset[CellRef]]:
        """Corrects cells here, computing from the values that were taken so far.

        Returns:
            Cell -> the right value, and the cells that read one of these and have to be computed
            again.
        """
        left = {cell.ref: cell.source for cell in cells if cell.ref not in prepared.computed}
        if not self._computes_itself or not left:
            return {}, frozenset()
        results = {**own, **outcome.values}
        taken = {ref: value for ref, value in results.items() if value is not None}

        reads_logical = prepared.request.reads_logical

        def is_suspect(ref: CellRef) -> bool:
            if isinstance(taken.get(ref, _NO_VALUE), ErrorValue):
                return True
            formula = left[ref].formula or ""
            return is_of_mixed_arrays(formula) or (
                reads_logical is not None
                and any(
                    reads_logical(ref.sheet if read.sheet is None else read.sheet, read)
                    for read in references(formula)
                )
            )

        if prepared.regional is not None:
            regional = prepared.regional.among(left)
            left = {ref: source for ref, source in left.items() if ref not in regional}
            taken = {ref: value for ref, value in taken.items() if ref not in regional}
        return corrected_values(
            opened.contents,
            left,
            taken,
            prepared.dependencies.walk,
            suspects=is_suspect,
            rounded={ref for ref in outcome.office_alone if isinstance(taken.get(ref), float)},
        )

    def _asked_again(
        self,
        opened: _Opened,
        prepared: _Prepared,
        change: Callable[[bytes], bytes],
        cells: AbstractSet[CellRef],
    ) -> CascadeResult:
        """Asks the engines again about some cells, with a changed workbook."""
        request = prepared.request
        slim = None if request.slim is None else change(request.slim)
        again = replace(
            request,
            workbook=change(request.workbook),
            slim=slim,
            narrowed=None if slim is None else functools.partial(of_cells, slim, opened.parts),
            wanted=cells,
        )
        return self._cascade.compute(again)

    @property
    def _computes_itself(self) -> bool:
        # A single engine was requested by name, so its values are not corrected.
        return len(self._engines) > 1

    def _prepared(self, opened: _Opened, cells: Sequence[WantedCell]) -> _Prepared:
        """Computes what needs no engine, and prepares the request about the other cells."""
        sources = {cell.ref: cell.source for cell in cells}
        # All cells that an array formula fills have the same source.
        followed = {id(source): (ref.sheet, source) for ref, source in sources.items()}
        rests_on = dependencies_or_doubt([*followed.values()], opened.index)
        notes = self._notes(rests_on)
        intersecting = intersecting_cells(sources)
        if intersecting:
            notes.append(
                f"{len(intersecting)} formulas take a range where Excel expects one value and are "
                "not array formulas, so Excel takes the cell in their own row or column: "
                f"{address(min(intersecting))}"
            )
        computed: dict[CellRef, CellValue] = {}
        recorded: dict[CellRef, CellValue] = {}
        region, regional = opened.contents.region, None
        if region != UNITED_STATES:
            regional = regional_cells(opened.workbook, rests_on.walk, region)
        replaced: Mapping[CellRef, CellValue] = {}
        if self._computes_itself:
            alone = {cell.ref: cell.source for cell in cells if cell.is_alone}
            computed, is_read = followed_values(opened.contents, alone, rests_on.walk, regional)
            replaced = computed if is_read else {}
            if regional is None:
                left = {ref: source for ref, source in sources.items() if ref not in computed}
                settled = values_of_constants(opened.contents, left)
                if left and not settled:
                    settled = recorded = self._recorded(opened, left, computed, rests_on)
                computed = {**computed, **settled}
        make = functools.partial(self._request, opened, sources, rests_on, replaced)
        return _Prepared(rests_on, computed, recorded.keys(), regional, tuple(notes), make)

    def _recorded(
        self,
        opened: _Opened,
        left: Mapping[CellRef, Cell],
        computed: Mapping[CellRef, CellValue],
        rests_on: Dependencies,
    ) -> dict[CellRef, CellValue]:
        """The values of those other cells in which the judge is right by its own records."""
        states_spills = calculates(opened.workbook.facts)
        sure = cells_of_judge(rests_on.walk, self._records, states_spills=states_spills)
        cells = {
            ref: cell
            for ref, cell in left.items()
            if CellRef(ref.sheet, cell.row, cell.column) in sure
        }
        return values_of_all(opened.contents, cells, computed) if cells else {}

    def _request(
        self,
        opened: _Opened,
        sources: Mapping[CellRef, Cell],
        rests_on: Dependencies,
        computed: Mapping[CellRef, CellValue],
    ) -> EngineRequest:
        """The request to the engines about some cells.

        Args:
            opened: the workbook.
            sources: the cells.
            rests_on: what they depend on.
            computed: cell -> the value that replaces its formula in the workbook.
        """
        workbook, tables, index = opened.workbook, opened.tables, opened.index
        involved = {**precedents(rests_on, index), **sources}
        parts = opened.parts
        package = reduced(workbook, rests_on, index)
        named: frozenset[str] = frozenset()
        if rests_on.unknown or "ANCHORARRAY" in rests_on.functions:
            package, named = expanded(package, parts, index)
        if computed:
            package = with_known(package, parts, replaceable(computed, rests_on))
        last_row = last_rows(workbook, index)

        def rewritten(xml: bytes, sheet: str) -> bytes:
            written = tables.sheet_written_out(xml, sheet)
            return with_bounded_columns(written, functools.partial(last_row, sheet))

        slim = with_sheets(slimmed(package), parts, rewritten)
        return EngineRequest(
            workbook=package,
            formulas={ref: source.formula or "" for ref, source in involved.items()},
            dependencies=rests_on,
            dialect=Dialect(self._renaming(rests_on), workbook.facts.date_1904),
            timeout_s=self._timeout_s,
            intersecting=intersecting_cells(involved),
            arrays={ref for ref, source in involved.items() if fills_cells(source)},
            wanted=sources.keys(),
            reads_text=None if is_ascii_only(slim) else text_beyond_ascii(workbook),
            reads_logical=logical_constants(workbook, slim),
            # A program that calculates writes the range that each formula fills.
            reads_spilled=None if calculates(workbook.facts) else spills(slim, parts),
            reads_nameless=nameless_constants(workbook, slim),
            slim=slim,
            narrowed=lambda sure: of_cells(slim, parts, sure),
            lambdas=named,
        )

    def _used(self, names: Iterable[str]) -> tuple[str, ...]:
        versions = {described.split()[0]: described for described in self._identity()}
        return tuple(versions.get(name, name) for name in sorted(names))

    def _renaming(self, rests_on: Dependencies) -> dict[str, str]:
        """Function name -> the name to write instead, so that engines read it as Excel would."""
        return {
            name: _prefixed(name) if self._lenient else UNKNOWN_FUNCTION
            for name in rests_on.unprefixed
        }

    def _notes(self, rests_on: Dependencies) -> list[str]:
        notes = []
        if rests_on.volatile:
            names = ", ".join(sorted(rests_on.volatile))
            notes.append(f"volatile functions, computed for now: {names}")
        if rests_on.unprefixed:
            names = ", ".join(sorted(rests_on.unprefixed))
            consequence = "computed anyway (lenient names)" if self._lenient else "#NAME? in Excel"
            notes.append(f"written without the _xlfn. prefix, {consequence}: {names}")
        return notes

    def _install_hint(self) -> str:
        if not self._missing:
            return ""
        return f"; not installed: {', '.join(self._missing)} (`{INSTALL_COMMAND}`)"


def _computable(
    opened: _Opened, chosen: ChosenCells, origin: Origin
) -> tuple[list[WantedCell], dict[CellRef, str]]:
    """The cells to compute, and the cells that cannot be computed with the reason."""
    cells = opened.written_out(chosen.cells)
    refused = {**chosen.refused, **too_long_formulas(cells)}
    if origin is not Origin.GOLD:
        refused |= uncomputed_cells(cells)
    return [cell for cell in cells if cell.ref not in refused], refused


def _prefixed(name: str) -> str:
    return f"_xlfn._xlws.{name}" if name in WORKSHEET_PREFIXED else f"_xlfn.{name}"
