"""The material that signs examine: workbooks of cases, computed formulas, traces of values.

Each workbook is opened once. A trace is a value that can be recognized elsewhere: a name, a date, a
large number.
"""

from __future__ import annotations

import datetime as dt
import functools
import itertools
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from types import MappingProxyType

from judge.compare.cells.sides import RangeSide
from judge.compare.cells.value import text_as_number
from judge.compare.profiles import get_profile
from judge.compare.registry import checker_of
from judge.core.submission import Origin
from judge.core.task import Task, TestCase
from judge.errors import JudgeError, SuiteError, WorkbookError
from judge.files.documents import read_regular
from judge.grading.case import CaseJudge, GradingRules, known_fault
from judge.grading.verify import CaseCheck, verify_case
from judge.recalc.policy import Recalculator
from judge.suspects.books import Book, CellAddress, agree, differing
from judge.workbook.address import COLUMN_BITS, COLUMN_MASK
from judge.workbook.budget import DEFAULT_LIMITS
from judge.workbook.cell import CellRange, CellRef, CellValue, ComputedValues, ErrorValue
from judge.workbook.reader import Workbook, open_workbook

EditCells = Callable[[bytes, Mapping[CellRef, CellValue], Mapping[CellRef, str]], bytes]
"""Makes a copy of a workbook with new contents in some cells.

Its parameters are the workbook, a mapping from cells to new constants (None empties the cell), and
a mapping from cells to new formulas without the leading ``=``. Values of formulas that depend on
the change are not updated. The function raises WorkbookError if a cell cannot be set.
"""


@dataclass(frozen=True)
class Output:
    """An output of a submission.

    Attributes:
        run: the run or folder of the output, as the user named it.
        path: the path of the workbook.
        origin: whether its stored values are trusted.
        program: hash of the program that wrote it; empty if it is not on record.
        strength: share of the run's scored cases that it passes; None if no verdict is recorded.
        verdict: the verdict on it; empty if none is on record.
    """

    run: str
    path: Path
    origin: Origin
    program: str = ""
    strength: float | None = None
    verdict: str = ""

    @functools.cached_property
    def digest(self) -> str:
        """The hash of the workbook; empty if it cannot be read."""
        try:
            data = read_regular(self.path, WorkbookError, max_bytes=DEFAULT_LIMITS.file_bytes)
        except WorkbookError:
            return ""
        return "" if data is None else sha256(data).hexdigest()

    def is_copy_of(self, other: Output) -> bool:
        """Returns whether this output repeats another one: same program or same file."""
        if self.program and self.program == other.program:
            return True
        return bool(self.digest) and self.digest == other.digest


Outputs = Mapping[tuple[str, int], Sequence[Output]]
"""(task id, case number) -> outputs of submissions."""


def without_copies(outputs: Outputs) -> tuple[dict[tuple[str, int], list[Output]], list[str]]:
    """Removes the runs that are copies of another run, and makes notes for people.

    A run is a copy of an earlier one if all outputs that both have are copies.

    Args:
        outputs: (task id, case number) -> outputs of submissions.

    Returns:
        The other outputs, and notes: which runs are copies, and that a single run cannot vote.
    """
    are_copies: dict[tuple[str, str], bool] = {}
    runs = {output.run for of_case in outputs.values() for output in of_case}
    for of_case in outputs.values():
        for earlier, later in itertools.combinations(of_case, 2):
            if earlier.run != later.run:
                pair = (earlier.run, later.run)
                are_copies[pair] = are_copies.get(pair, True) and later.is_copy_of(earlier)
    original: dict[str, str] = {}
    for (earlier_run, later_run), is_copy in are_copies.items():
        if is_copy and earlier_run not in original:
            original.setdefault(later_run, earlier_run)
    notes = [
        f"{copy} is a copy of {run} (equal programs or outputs), so they share one vote"
        for copy, run in original.items()
    ]
    if len(runs) - len(original) == 1:
        notes.append(
            "a single run cannot outvote a gold: the sign outvoted needs two independent runs, "
            "mixed-verdicts only one"
        )
    left = {
        key: [output for output in of_case if output.run not in original]
        for key, of_case in outputs.items()
    }
    return left, notes


def _no_outputs() -> Outputs:
    return MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Tools:
    """The tools that the signs use, in addition to the workbooks.

    Attributes:
        recalculator: computes formulas.
        edit: makes changed copies of workbooks.
        outputs: (task id, case number) -> outputs of submissions.
    """

    recalculator: Recalculator
    edit: EditCells
    outputs: Outputs = field(default_factory=_no_outputs)

    def compute(self, data: bytes | Workbook, ranges: Sequence[CellRange]) -> ComputedValues:
        """Computes every formula of some ranges, and ignores the values stored in the file.

        Raises:
            WorkbookError: the ranges cannot be read.
            RecalcError: an engine cannot be started.
        """
        workbook = open_workbook(data) if isinstance(data, bytes) else data
        return self.recalculator.fill(workbook, ranges, origin=Origin.SOLUTION)


@dataclass(frozen=True, slots=True)
class Contradictions:
    """Cells outside the answer in which a gold and its input differ.

    Attributes:
        changed: both have a constant, but not the same one.
        added: the input's cell is blank, the gold's has a constant.
        emptied: the input's cell has a constant, the gold's is blank.
    """

    changed: tuple[CellAddress, ...]
    added: tuple[CellAddress, ...]
    emptied: tuple[CellAddress, ...]

    @property
    def cells(self) -> frozenset[CellAddress]:
        """All cells that differ."""
        return frozenset((*self.changed, *self.added, *self.emptied))


@dataclass
class CaseMaterial:
    """One test case with an input workbook and a gold workbook.

    Attributes:
        number: number of the case.
        input: the input.
        gold: the first gold.
        ranges: rectangles of the answer in the gold.
        input_ranges: the same rectangles in the input; None if the input lacks the sheet.
        tools: computes formulas and edits workbooks.
    """

    number: int
    input: Book
    gold: Book
    ranges: tuple[CellRange, ...]
    input_ranges: tuple[CellRange | None, ...]
    tools: Tools

    def in_answer(self, address: CellAddress) -> bool:
        """Returns whether a cell of the gold belongs to the answer."""
        return holds(self.ranges, address)

    @functools.cached_property
    def answer_addresses(self) -> tuple[CellAddress, ...]:
        """The cells of the answer with a value or a formula, in reading order."""
        addresses: list[CellAddress] = []
        for area in self.ranges:
            for key in sorted(
                self.gold.values(area.sheet).keys() | self.gold.formulas(area.sheet).keys()
            ):
                address = CellAddress(area.sheet, key)
                if holds((area,), address):
                    addresses.append(address)
        return tuple(dict.fromkeys(addresses))

    @functools.cached_property
    def answer(self) -> Mapping[CellAddress, CellValue]:
        """The values of the answer as the judge compares them, without blank cells.

        Raises:
            WorkbookError, RecalcError: a value cannot be read or computed.
        """
        computed = self.tools.recalculator.fill(self.gold.workbook, self.ranges, origin=Origin.GOLD)
        values: dict[CellAddress, CellValue] = {}
        for area in self.ranges:
            side = RangeSide(self.gold.workbook, area, computed)
            unknown = side.uncomputed()
            values |= {
                CellAddress(area.sheet, key): value
                for key, value in side.values().items()
                if value is not None
                and value != ""
                and key not in unknown
                and holds((area,), CellAddress(area.sheet, key))
            }
        return values

    @functools.cached_property
    def recomputed(self) -> Mapping[CellAddress, CellValue]:
        """The values of the gold's own formulas, computed now.

        Raises:
            WorkbookError, RecalcError: nothing could be computed.
        """
        if not any(self.gold.formulas(area.sheet) for area in self.ranges):
            return {}
        computed = self.tools.compute(self.gold.workbook, self.ranges)
        return {CellAddress.of(ref): value for ref, value in computed.values.items()}

    @functools.cached_property
    def answer_formulas(self) -> Mapping[CellAddress, str]:
        """The formulas of the answer."""
        return {
            address: formula
            for address in self.answer_addresses
            if (formula := self.gold.formula(address)) is not None
        }

    @functools.cached_property
    def changing(self) -> frozenset[CellAddress]:
        """The formula cells of the answer that depend on a volatile function.

        Raises:
            WorkbookError: the cells cannot be read.
        """
        refs = [address.ref for address in self.answer_formulas]
        if not refs:
            return frozenset()
        changing = self.tools.recalculator.changing_cells(self.gold.workbook, refs)
        return frozenset(map(CellAddress.of, changing))

    def is_given(self, address: CellAddress) -> bool:
        """Returns whether a cell is data: its constant occurs in the same column of the input."""
        value = self.gold.value(address)
        if value is None or self.gold.formula(address) is not None:
            return False
        return _plain(value) in self._given.get((address.sheet, address.column), ())

    @functools.cached_property
    def _given(self) -> Mapping[tuple[str, int], set[str]]:
        """Returns the constants of each column of the input."""
        columns: dict[tuple[str, int], set[str]] = defaultdict(set)
        for sheet in self.input.sheet_names:
            formulas = self.input.formulas(sheet)
            for key, value in self.input.values(sheet).items():
                if key not in formulas:
                    columns[sheet, key & COLUMN_MASK].add(_plain(value))
        return columns

    @functools.cached_property
    def differences(self) -> Sequence[CellAddress]:
        """The cells outside the answer whose content differs between input and gold.

        Constants are compared by value, formulas by text. Sheets that only one of the two has are
        not compared.
        """
        addresses = []
        for sheet in self.gold.sheet_names:
            if sheet not in self.input:
                continue
            addresses += [
                address
                for address in differing(self.input, self.gold, sheet)
                if not self.in_answer(address)
            ]
        return addresses

    @functools.cached_property
    def contradictions(self) -> Contradictions:
        """The constants outside the answer in which the gold differs from the input."""
        changed, added, emptied = [], [], []
        for address in self.differences:
            if self.gold.formula(address) is not None or self.input.formula(address) is not None:
                continue
            if self.gold.value(address) is None:
                emptied.append(address)
            elif self.input.value(address) is None:
                added.append(address)
            else:
                changed.append(address)
        return Contradictions(tuple(changed), tuple(added), tuple(emptied))


@dataclass
class TaskMaterial:
    """A task, with only the cases whose answers are cells.

    Attributes:
        task: the task.
        cases: the cases that could be opened, in order; none if answers are not cells.
        tools: computes formulas and edits workbooks.
        same_question: other tasks of the suite with the same question.
    """

    task: Task
    cases: tuple[CaseMaterial, ...]
    tools: Tools
    same_question: tuple[Task, ...] = ()

    @property
    def judge(self) -> CaseJudge:
        """A judge of answers to the task, with the default rules."""
        return CaseJudge(self.tools.recalculator, GradingRules(get_profile("standard")))

    @functools.cached_property
    def checks(self) -> tuple[CaseCheck, ...]:
        """What `judge verify` finds in each case; empty for a task whose answers are cells."""
        if self.cases:
            return ()
        return tuple(
            verify_case(self.task, case, self.judge)
            for case in self.task.cases
            if known_fault(self.task, case.number) is None
        )

    def case(self, number: int) -> CaseMaterial | None:
        """Returns a case by its number."""
        return next((case for case in self.cases if case.number == number), None)

    @functools.cached_property
    def outputs(self) -> Mapping[int, Sequence[ReadOutput]]:
        """The readable outputs of submissions, by case number."""
        return {
            case.number: [
                read
                for output in self.tools.outputs.get((self.task.id, case.number), ())
                if (read := _read_output(self.task, case, output)) is not None
            ]
            for case in self.cases
        }


def holds(ranges: Collection[CellRange | None], address: CellAddress) -> bool:
    """Returns whether a cell is in any of the rectangles."""
    row, column = address.row, address.column
    # A plain loop, since this is called for hundreds of thousands of cells.
    for area in ranges:
        if (
            area is not None
            and area.min_row <= row <= area.max_row
            and area.min_column <= column <= area.max_column
            and area.sheet == address.sheet
        ):
            return True
    return False


@dataclass(frozen=True, slots=True)
class ReadOutput:
    """An output whose answer could be read.

    Attributes:
        output: the output.
        values: the answer at the addresses of the gold, without blank cells.
        formulas: the formulas of the answer, also at the addresses of the gold.
    """

    output: Output
    values: Mapping[CellAddress, CellValue]
    formulas: Mapping[CellAddress, str]


def _read_output(task: Task, case: CaseMaterial, output: Output) -> ReadOutput | None:
    """Reads the answer in an output; None if it cannot be read."""
    try:
        data = read_regular(output.path, WorkbookError, max_bytes=DEFAULT_LIMITS.file_bytes)
        if data is None:
            return None
        book = Book(data)
        areas = checker_of(task.checker).areas(task, case.gold.workbook, book.workbook)
        pairs = list(zip(areas.gold, areas.output, strict=True))
        if any(there is None for _, there in pairs):
            return None
        book.workbook.preload(there for _, there in pairs if there is not None)
        computed = case.tools.recalculator.fill(
            book.workbook, [there for _, there in pairs if there is not None], origin=output.origin
        )
        values: dict[CellAddress, CellValue] = {}
        formulas: dict[CellAddress, str] = {}
        for gold, there in pairs:
            assert there is not None
            side = RangeSide(book.workbook, there, computed)
            unknown = side.uncomputed()
            for key, value in side.values().items():
                address = CellAddress(there.sheet, key)
                if value is None or value == "" or key in unknown or not holds((there,), address):
                    continue
                values[moved_address(address, there, gold)] = value
            for key, text in book.formulas(there.sheet).items():
                address = CellAddress(there.sheet, key)
                if holds((there,), address):
                    formulas[moved_address(address, there, gold)] = text
    except JudgeError:
        return None
    return ReadOutput(output, values, formulas)


def moved_address(address: CellAddress, there: CellRange, gold: CellRange) -> CellAddress:
    """Maps a cell of a rectangle in another workbook to the corresponding address in the gold."""
    row = address.row - there.min_row + gold.min_row
    column = address.column - there.min_column + gold.min_column
    return CellAddress(gold.sheet, row << COLUMN_BITS | column)


def _plain(value: CellValue) -> str:
    """Rounds a constant to remove the differences that saving adds to numbers."""
    return f"{value:.9g}" if isinstance(value, int | float) else repr(value)


def open_case(task: Task, case: TestCase, tools: Tools) -> CaseMaterial | None:
    """Opens the workbooks of a case; None if its answer is not a set of cells.

    Raises:
        JudgeError: a file cannot be read, or the answer position does not match the gold.
    """
    first = case.inputs[0] if case.inputs else None
    if first is None or not case.golds or first.kind.value != task.answer.value:
        return None
    gold_file = case.golds[0]
    if gold_file.path is None and gold_file.data is None:
        return None
    before = Book(_bytes(first.path))
    gold = Book(gold_file.data if gold_file.data is not None else _bytes(case.gold_path))
    for book in (before, gold):
        book.read_whole()
    areas = checker_of(task.checker).areas(task, gold.workbook, before.workbook)
    if not areas.gold:
        return None
    gold.workbook.preload(areas.gold)
    before.workbook.preload(area for area in areas.output if area is not None)
    return CaseMaterial(case.number, before, gold, areas.gold, areas.output, tools)


def digest_of_file(path: Path) -> str | None:
    """Returns the hash of a file; None if there is no file."""
    return sha256(path.read_bytes()).hexdigest() if path.is_file() else None


def _bytes(path: Path) -> bytes:
    data = read_regular(path, WorkbookError, max_bytes=DEFAULT_LIMITS.file_bytes)
    if data is None:
        raise SuiteError(f"{path}: cannot be read: no such file")
    return data


MAX_REWRITTEN = 5_000
"""The largest number of formulas that are replaced in one workbook."""


def formula_values(
    case: CaseMaterial, formulas: Mapping[CellAddress, str]
) -> dict[CellAddress, CellValue]:
    """Computes formulas in a case's gold; those that cannot be computed are left out."""
    if not formulas or len(formulas) > MAX_REWRITTEN:
        return {}
    try:
        filled = case.tools.edit(
            case.gold.workbook.data,
            {},
            {address.ref: text.removeprefix("=") for address, text in formulas.items()},
        )
        computed = case.tools.compute(filled, case.ranges)
    except JudgeError:
        return {}
    return {
        address: value
        for ref, value in computed.values.items()
        if (address := CellAddress.of(ref)) in formulas
    }


def changed_by_formulas(
    case: CaseMaterial, formulas: Mapping[CellAddress, str]
) -> dict[CellAddress, CellValue]:
    """Finds the cells of the answer that other formulas would change, and their new values.

    A cell counts only if the engines compute the gold's value for its present formula; otherwise, a
    fault of an engine could be taken for a fault of the gold. Error values do not count, because a
    formula may not suit every cell. Array formulas are not replaced: in a single cell, the same
    text gives another result.
    """
    if not formulas:
        return {}
    baseline = case.recomputed
    trusted = {
        address: text
        for address, text in formulas.items()
        if not case.gold.is_array(address)
        and (
            case.gold.formula(address) is None
            or (address in baseline and agree(case.answer.get(address), baseline[address]))
        )
    }
    values = formula_values(case, trusted)
    return {
        address: value
        for address, value in sorted(values.items())
        if not isinstance(value, ErrorValue) and not _alike(case.answer.get(address), value)
    }


def _alike(stored: CellValue, value: CellValue) -> bool:
    first, second = (
        None if isinstance(item, str) and not item.strip() else item for item in (stored, value)
    )
    return agree(first, second)


MIN_LETTERS = 3
MIN_NUMBER = 1000
"""Whole numbers below this may occur by chance, as sums and counts do."""
LONGEST = 200
DIGITS = 9


def trace(value: CellValue) -> str | None:
    """Returns a value in a form that can be recognized; None if it could occur by chance.

    Small whole numbers, logical values, errors and very short strings occur anywhere.
    """
    if isinstance(value, str):
        text = " ".join(value.split()).casefold()
        number = text_as_number(text) if text else None
        if number is not None:
            return trace(number)
        return text[:LONGEST] if len(text) >= MIN_LETTERS else None
    if value is None or isinstance(value, bool | ErrorValue):
        return None
    if isinstance(value, int | float):
        if float(value).is_integer() and abs(value) < MIN_NUMBER:
            return None
        return f"{float(value):.{DIGITS}g}"
    if isinstance(value, dt.datetime) and value.time() == dt.time():
        return value.date().isoformat()
    if isinstance(value, dt.datetime | dt.date | dt.time):
        return value.isoformat()
    return str(value)


@dataclass(frozen=True, slots=True)
class Traces:
    """The recognizable values of some cells.

    Attributes:
        whole: values of whole cells.
        text: all strings joined, to find values that are part of a string.
    """

    whole: Collection[str]
    text: str

    def holds(self, value: CellValue) -> bool:
        """Returns whether a value occurs, as a whole cell or within a string."""
        traced = trace(value)
        if traced is None:
            return False
        return traced in self.whole or (isinstance(value, str) and traced in self.text)


def traces_of(values: Iterable[CellValue]) -> Traces:
    """Collects the recognizable values of some cells."""
    listed = list(values)
    whole = {traced for value in listed if (traced := trace(value)) is not None}
    texts = (" ".join(value.split()).casefold() for value in listed if isinstance(value, str))
    return Traces(frozenset(whole), "\n".join(texts))
