"""Finds copied values in an answer that are not in this case's input."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from judge.console import counted
from judge.suspects.books import Book, CellAddress, same_constant
from judge.suspects.contract import address_in, and_more, evidence, shown, suspect
from judge.suspects.material import CaseMaterial, TaskMaterial, trace
from judge.suspects.model import About, Certainty, Evidence, EvidenceFile, Suspect
from judge.workbook.address import COLUMN_BITS
from judge.workbook.cell import CellValue

MIN_COPIED = 4
"""How many values of a column must occur in the input for the column to count as copied."""

SHARE_COPIED = 0.9
"""Share of a column's values that must occur in the inputs, counted over all cases."""

MAX_CELLS = 100_000
"""How many cells of an answer are traced."""

Column = tuple[str, int]


@dataclass(frozen=True, slots=True)
class _Traced:
    """The constants of an answer that can be recognized.

    Attributes:
        columns: column -> cell -> trace of its value.
        input_traces: traces of all values of the input.
    """

    columns: Mapping[Column, Mapping[CellAddress, str]]
    input_traces: frozenset[str]


class Leftover:
    """Finds copied values in an answer that are not in this case's input.

    Many questions move values: they look up names, filter rows or sort. In such an answer, every
    value also occurs in the input. A value that does not is left over from another case, or was
    changed in only one of the two files.
    """

    name = "leftover"
    title = "the answer copies values from the input, but has one that this input does not have"
    about = About.GOLD
    blind_spots = (
        (
            "values that are computed, joined or cut cannot be traced; a column counts only if "
            "nine in ten of its values, over all cases, are in the inputs"
        ),
        (
            "whole numbers below 1,000, logical values and strings of fewer than three letters "
            "occur anywhere, so they are not traced"
        ),
        ("a leftover that also occurs elsewhere in this input is found only if whole rows move"),
    )

    def examine(self, material: TaskMaterial) -> Iterable[Suspect]:
        """Yields one suspect for each case whose answer has copied values that its input lacks."""
        traced = {case.number: _traced(case) for case in material.cases}
        copied = set(_copied(list(traced.values())))
        kept = kept_places(material.cases)
        own = _in_every_case(list(traced.values()))
        for case in material.cases:
            if case.number in kept:
                yield self._kept(material, case, kept[case.number])
                continue
            missing = [
                address
                for column in sorted(copied & traced[case.number].columns.keys())
                for address, traced_value in traced[case.number].columns[column].items()
                if traced_value not in traced[case.number].input_traces
                and (column, traced_value) not in own
            ]
            if missing:
                yield self._missing(material, case, missing)
            else:
                yield from self._mixed(material, case, copied)

    def _kept(
        self,
        material: TaskMaterial,
        case: CaseMaterial,
        kept: Mapping[CellAddress, CaseMaterial],
    ) -> Suspect:
        changed = [address for address in kept if case.input.value(address) is not None]
        first = (changed or list(kept))[0]
        other = kept[first]
        return suspect(
            material,
            case.number,
            self,
            # The question may want cells that are blank in the input to be filled in.
            Certainty.SURE if changed else Certainty.LIKELY,
            f"the gold's {address_in(case.gold, first)} is {shown(case.gold.value(first))} as in "
            f"case {other.number}, the input's is {shown(case.input.value(first))}"
            f"{and_more(len(kept))}",
            "the answer leaves the other cells of the column as the input has them",
            [
                evidence(
                    EvidenceFile.GOLD,
                    address,
                    expected=case.input.value(address),
                    found=case.gold.value(address),
                    note=f"as in the input and the gold of case {source.number}",
                )
                for address, source in kept.items()
            ],
        )

    def _missing(
        self,
        material: TaskMaterial,
        case: CaseMaterial,
        missing: Sequence[CellAddress],
    ) -> Suspect:
        where = _sources(material, case)
        sources = {
            address: where.get(traced_value)
            for address in missing
            if (traced_value := trace(case.answer.get(address))) is not None
        }
        left = [address for address in missing if sources.get(address) is not None]
        first = (left or list(missing))[0]
        source = sources.get(first)
        if source is not None:
            other, there = source
            why = (
                f"the input of case {other.number} has this value in "
                f"{address_in(other.input, there)}, where the input of this case has "
                f"{shown(case.input.value(there))}; no cell of this input has the value"
            )
            # A number may equal a value in another input by chance, a name may not.
            named = any(isinstance(case.answer.get(address), str) for address in left)
            certainty = Certainty.SURE if named else Certainty.LIKELY
        else:
            why = (
                "no cell of the input has this value, although the rest of the column is copied "
                "from the input"
            )
            certainty = Certainty.POSSIBLE
        return suspect(
            material,
            case.number,
            self,
            certainty,
            f"the gold's {address_in(case.gold, first)} is {shown(case.answer.get(first))}"
            f"{and_more(len(missing))}, which the input does not have",
            why,
            [
                copied
                for address in sorted(missing, key=lambda item: (item not in left, item))
                for copied in _of(case, address, sources.get(address))
            ],
        )

    def _mixed(
        self, material: TaskMaterial, case: CaseMaterial, copied: set[Column]
    ) -> Iterator[Suspect]:
        others = [_rows_apart(other, copied) for other in material.cases if other is not case]
        mine = _rows_apart(case, copied)
        total = mine.total + sum(column.total for column in others)
        differing = len(mine.differing) + sum(len(column.differing) for column in others)
        if (
            not mine.differing
            or total - differing < MIN_COPIED
            or differing > total * (1 - SHARE_COPIED)
        ):
            return
        first = mine.differing[0]
        values = ", ".join(shown(case.answer[address]) for address in first[:3])
        yield suspect(
            material,
            case.number,
            self,
            Certainty.POSSIBLE,
            f"no row of the input has what the gold's row {first[0].row} has "
            f"({values}){and_more(len(mine.differing))}",
            f"{counted(total - differing, 'row')} of the answers of all cases are rows of their "
            "input; this one mixes several",
            [
                evidence(EvidenceFile.GOLD, address, found=case.answer[address])
                for row in mine.differing
                for address in row
            ],
        )


MIN_LEFT_ALONE = 5
MAX_KEPT_SHARE = 0.2


def kept_places(
    cases: Sequence[CaseMaterial],
) -> dict[int, dict[CellAddress, CaseMaterial]]:
    """Finds answer cells whose value is in another case's input there, but not in their own.

    Only columns in which answers otherwise keep the values of their inputs are examined: there, a
    right answer has the value of its own input.

    Returns:
        Case number -> cell -> the case that its value comes from.
    """
    alone: dict[Column, int] = defaultdict(int)
    differing: dict[Column, dict[int, list[CellAddress]]] = defaultdict(lambda: defaultdict(list))
    for case in cases:
        if case.ranges != case.input_ranges or len(case.answer) > MAX_CELLS:
            return {}
        for address in case.answer_addresses:
            if case.gold.formula(address) is not None or case.input.formula(address) is not None:
                continue
            column = (address.sheet, address.column)
            if same_constant(case.gold.value(address), case.input.value(address)):
                alone[column] += 1
            else:
                differing[column][case.number].append(address)
    cells: dict[int, dict[CellAddress, CaseMaterial]] = defaultdict(dict)
    for column, by_case in differing.items():
        changed = sum(map(len, by_case.values()))
        if alone[column] < MIN_LEFT_ALONE or changed > MAX_KEPT_SHARE * alone[column]:
            continue
        for case in cases:
            for address in by_case.get(case.number, ()):
                source = _kept_from(cases, case, address)
                if source is not None and not _is_held(case.input, case.gold.value(address)):
                    cells[case.number][address] = source
    return dict(cells)


def _kept_from(
    cases: Sequence[CaseMaterial], case: CaseMaterial, address: CellAddress
) -> CaseMaterial | None:
    value = case.gold.value(address)
    return next(
        (
            other
            for other in cases
            if other is not case
            and other.input.formula(address) is None
            and same_constant(other.input.value(address), value)
            and same_constant(other.gold.value(address), value)
        ),
        None,
    )


def _is_held(book: Book, value: CellValue) -> bool:
    """Returns whether some cell of a workbook holds this value, which may come from that cell."""
    return any(
        same_constant(value, cell_value)
        for sheet in book.sheet_names
        for cell_value in book.values(sheet).values()
    )


def _traced(case: CaseMaterial) -> _Traced:
    columns: dict[Column, dict[CellAddress, str]] = defaultdict(dict)
    if len(case.answer) <= MAX_CELLS:
        for address, value in sorted(case.answer.items(), key=lambda item: item[0]):
            traced_value = trace(value)
            if traced_value is not None and case.gold.formula(address) is None:
                columns[address.sheet, address.column][address] = traced_value
    if not columns:
        return _Traced({}, frozenset())
    return _Traced(columns, _traces(case.input))


def _traces(book: Book) -> frozenset[str]:
    return frozenset(
        traced
        for sheet in book.sheet_names
        for value in book.values(sheet).values()
        if (traced := trace(value)) is not None
    )


def _copied(traced: Sequence[_Traced]) -> Iterator[Column]:
    """Finds columns whose values come from the inputs."""
    for column in {column for case in traced for column in case.columns}:
        pairs = [
            (value, value in case.input_traces)
            for case in traced
            for value in case.columns.get(column, {}).values()
        ]
        hits = sum(hit for _, hit in pairs)
        distinct = len({value for value, hit in pairs if hit})
        if distinct >= MIN_COPIED and hits >= SHARE_COPIED * len(pairs):
            yield column


def _in_every_case(traced: Sequence[_Traced]) -> frozenset[tuple[Column, str]]:
    """Finds values that every answer but no input has in a column, such as headings."""
    sets = [
        {
            (column, value)
            for column, addresses in case.columns.items()
            for value in addresses.values()
            if value not in case.input_traces
        }
        for case in traced
    ]
    return frozenset(set.intersection(*sets)) if len(sets) > 1 else frozenset()


def _sources(
    material: TaskMaterial, case: CaseMaterial
) -> dict[str, tuple[CaseMaterial, CellAddress]]:
    """Locates recognizable values in the inputs of other cases."""
    sources: dict[str, tuple[CaseMaterial, CellAddress]] = {}
    for other in material.cases:
        if other is case:
            continue
        for sheet in other.input.sheet_names:
            for key, value in other.input.values(sheet).items():
                traced = trace(value)
                if traced is not None:
                    sources.setdefault(traced, (other, CellAddress(sheet, key)))
    return sources


def _of(
    case: CaseMaterial, address: CellAddress, source: tuple[CaseMaterial, CellAddress] | None
) -> Iterator[Evidence]:
    yield evidence(
        EvidenceFile.GOLD, address, found=case.answer.get(address), note="not in the input"
    )
    if source is not None:
        other, where = source
        yield evidence(
            EvidenceFile.OTHER_CASE,
            where,
            expected=case.input.value(where),
            found=other.input.value(where),
            note="expected as in this case's input",
            case=other.number,
        )


@dataclass(frozen=True, slots=True)
class _Rows:
    """The rows of an answer, compared with those of its input.

    Attributes:
        total: how many rows have at least two recognizable values.
        differing: the cells of such rows that the input does not have.
    """

    total: int
    differing: tuple[tuple[CellAddress, ...], ...]


def _rows_apart(case: CaseMaterial, copied: set[Column]) -> _Rows:
    rows: dict[tuple[str, int], list[CellAddress]] = defaultdict(list)
    if len(case.answer) > MAX_CELLS:
        return _Rows(0, ())
    for address, value in case.answer.items():
        is_copied = (address.sheet, address.column) in copied and case.gold.formula(address) is None
        if is_copied and trace(value) is not None:
            rows[address.sheet, address.row].append(address)
    several = {row: addresses for row, addresses in rows.items() if len(addresses) > 1}
    if not several:
        return _Rows(0, ())
    where: dict[str, set[tuple[str, int]]] = defaultdict(set)
    for sheet in case.input.sheet_names:
        for key, value in case.input.values(sheet).items():
            traced = trace(value)
            if traced is not None:
                where[traced].add((sheet, key >> COLUMN_BITS))
    differing = []
    for addresses in several.values():
        row_sets = sorted(
            (where.get(trace(case.answer[address]) or "", set()) for address in addresses), key=len
        )
        if not set.intersection(*row_sets):
            differing.append(tuple(sorted(addresses)))
    return _Rows(len(several), tuple(sorted(differing)))


LEFTOVER = Leftover()
