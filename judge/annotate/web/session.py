"""The session of one annotator who works on a task: a draft, its case, and saving the case.

A change is written to the draft on the disk before the page is notified. Everything else is
computed from the draft when needed, so nothing is lost if the page or the server crashes.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import re
import threading
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from judge.annotate.annotator import Annotator, Preview
from judge.annotate.answers import judge_workbooks
from judge.annotate.casebook import CaseData, ConflictError, Draft
from judge.annotate.edit import Edited, apply_edits
from judge.annotate.edits import (
    CellContent,
    DeleteRows,
    Edit,
    Formula,
    InsertRows,
    SetCell,
    edit_to_json,
    parse_content,
)
from judge.annotate.gold import FORMULAS
from judge.annotate.web.view import ColourChange, colour_changes, show_window
from judge.compare.cells.answer_range import prepare
from judge.compare.profiles import get_profile
from judge.core.submission import Origin, Submission
from judge.core.task import Task
from judge.core.verdict import Verdict
from judge.errors import JudgeError, UsageError
from judge.grading.case import CaseJudge, GradingRules
from judge.workbook.address import MAX_COLUMN, MAX_ROW, Window, parse_cell
from judge.workbook.cell import Cell, CellRange, CellRef
from judge.workbook.editing.cells import set_cells
from judge.workbook.reader import Workbook, open_workbook


@dataclass(frozen=True, slots=True)
class DraftWorkbooks:
    """The workbooks of a draft, as the page shows them.

    Attributes:
        revision: the revision of the draft.
        input, gold: the workbooks.
        cells: cells of the input that were set.
        notes: lines about features that could not be kept.
        computed: whether the formulas and the gold have been computed since the last change.
    """

    revision: str
    input: Workbook
    gold: Workbook
    cells: Collection[CellRef]
    notes: tuple[str, ...] = ()
    computed: bool = False


def uncomputed(base: CaseData, edits: Sequence[Edit], revision: str) -> DraftWorkbooks:
    """Applies edits to the input without computing anything, which is quick.

    Args:
        base: the case that the edits begin from.
        edits: changes of its input.
        revision: the revision of the draft with these edits.

    Raises:
        WorkbookError: the edits do not fit.
    """
    cells = [edit for edit in edits if isinstance(edit, SetCell)]
    if len(cells) == len(edits):
        edited = Edited(set_cells(base.input, cells), tuple(cell.ref for cell in cells))
    else:
        edited = apply_edits(base.input, edits)
    shown, gold = open_workbook(edited.data), open_workbook(base.gold)
    return DraftWorkbooks(revision, shown, gold, edited.cells, edited.notes)


def wrong_references(
    annotator: Annotator, task: Task, base: CaseData, references: Sequence[Submission]
) -> tuple[str, ...]:
    """Runs each reference on a case whose gold is known.

    Args:
        annotator: provides the sandbox and the engines.
        task: the task.
        base: the case.
        references: solutions that are presumed to be right.

    Returns:
        A line for each reference that solves the case wrongly.

    Raises:
        SandboxError: the sandbox failed.
    """
    if not references:
        return ()
    proposal = annotator.maker.propose(task, base, (), references=references)
    judge = CaseJudge(annotator.recalculator, GradingRules(get_profile("standard")))
    wrong = []
    for source in proposal.sources:
        if source.name == FORMULAS or source.data is None:
            continue
        judgement = judge_workbooks(judge, task, base.gold, source.data, origin=Origin.SOLUTION)
        if judgement.error is not None:
            raise judgement.error
        if judgement.verdict is not Verdict.AC:
            wrong.append(
                f"{source.name} gets the unchanged case {base.number} wrong: {judgement.cause}"
            )
    return tuple(wrong)


class AnnotationSession:
    """A task for which somebody is making a case. Safe to use from several threads.

    An unfinished draft of the same author is resumed.

    Args:
        annotator: the suite with everything that is needed to add cases.
        task_id: the task.
        author: who works on it.
        references: solutions of the task that are known to be right.
        base: number of the case to begin from; None for the first case.

    Raises:
        UsageError: there is no such task or case.
    """

    def __init__(
        self,
        annotator: Annotator,
        task_id: str,
        author: str,
        *,
        references: Sequence[Submission] = (),
        base: int | None = None,
    ) -> None:
        self._annotator = annotator
        self._author = author
        self._references = tuple(references)
        self._lock = threading.RLock()
        self._computing = threading.Lock()
        self.task: Task = annotator.task(task_id)
        self._start = annotator.book.case(task_id, base or self.task.cases[0].number)
        self._draft = self._left_behind(base)
        if self._draft is not None:
            self._start = self._draft.base
        self.resumed = self._draft is not None
        self._books: DraftWorkbooks | None = None
        self._preview: tuple[str, Preview] | None = None
        self._saved: dict[str, Any] | None = None
        self._wrong_references: dict[str, tuple[str, ...]] = {}

    def _left_behind(self, base: int | None) -> Draft | None:
        drafts = self._annotator.book.drafts(self.task.id)
        mine = [
            draft
            for draft in drafts
            if draft.author == self._author and base in {None, draft.base.number}
        ]
        return mine[-1] if mine else None

    # -- what is there --------------------------------------------------------------------------

    @property
    def revision(self) -> str:
        """Digest of the draft's current state."""
        draft = self._draft
        state: list[Any] = [self._start.revision, draft.id if draft else None]
        if draft is not None:
            state += [
                [edit_to_json(step) for step in steps] for steps in (draft.edits, draft.answers)
            ]
        return hashlib.sha256(json.dumps(state).encode()).hexdigest()[:16]

    @property
    def draft(self) -> Draft | None:
        """The draft; None before anything was changed."""
        return self._draft

    @property
    def base(self) -> CaseData:
        """The case that the draft begins from."""
        return self._start

    @property
    def last_saved(self) -> Mapping[str, Any] | None:
        """Number, files and time of the case that was saved last in this session."""
        return self._saved

    @property
    def preview(self) -> Preview | None:
        """The case that would be saved; None if it was not computed from the current draft."""
        with self._lock:
            preview = self._preview
            return preview[1] if preview is not None and preview[0] == self.revision else None

    def case_numbers(self) -> list[int]:
        """Numbers of the task's current cases."""
        return [case.number for case in self._annotator.cases(self.task.id)]

    def books(self) -> DraftWorkbooks:
        """The current workbooks, whether they are computed or not.

        Until the case is computed, formulas of the input that depend on a change may still show
        their old value.

        Raises:
            WorkbookError: they cannot be read.
        """
        with self._lock:
            revision, preview = self.revision, self.preview
            books = self._books
            if books is None or books.revision != revision:
                books = self._books = uncomputed(
                    self._start, self._draft.edits if self._draft else (), revision
                )
            if preview is not None and not books.computed:
                proposal = preview.proposal
                gold = proposal.gold if proposal.gold is not None else self._start.gold
                books = self._books = replace(
                    books,
                    input=open_workbook(proposal.input),
                    gold=open_workbook(gold),
                    computed=True,
                )
            return books

    def answer_ranges(self) -> tuple[CellRange, ...]:
        """The rectangles of the answer, on the sheets of the gold.

        Raises:
            PositionError: no sheet fits the position.
        """
        return prepare(
            self.task.checker,
            gold=open_workbook(self._start.gold),
            output=None,
        ).gold_ranges

    def colour_changes(self) -> tuple[ColourChange, ...]:
        """Cells of the answer whose colours differ from those in the base case.

        Raises:
            WorkbookError: a gold cannot be read.
        """
        with self._lock:
            books = self.books()
            if not books.computed:
                return ()
            return colour_changes(open_workbook(self._start.gold), books.gold, self.answer_ranges())

    def window(self, book: str, sheet: str, first: tuple[int, int]) -> dict[str, Any]:
        """A part of a sheet for the page; see :func:`judge.annotate.web.view.show_window`.

        Args:
            book: ``input`` or ``gold``.
            sheet: the sheet's name.
            first: upper left cell, 1-based row and column.

        Raises:
            UsageError: there is no such workbook.
            WorkbookError: there is no such sheet, or it cannot be read.
        """
        with self._lock:
            books, preview = self.books(), self.preview
            ranges = self.answer_ranges()
            if book == INPUT:
                shown, other, marked = books.input, books.gold, set(books.cells)
            elif book == GOLD:
                shown, other = books.gold, books.input
                marked = {cell.ref for cell in self.colour_changes()}
                marked |= {change.ref for change in preview.proposal.moved} if preview else set()
            else:
                raise UsageError(f"there is no workbook {book!r}")
            window = show_window(
                shown,
                sheet,
                first,
                answer=ranges,
                marked=marked,
                least=_extent(other, sheet),
            )
            if book == GOLD and preview is not None:
                window["differs"] = [
                    str(difference["cell"])
                    for source in preview.proposal.disagreeing
                    for difference in source.comparison.get("differences", ())
                    if difference["sheet"] == sheet
                ]
            window["pending"] = not books.computed and self._draft is not None
            return {**window, "revision": self.revision}

    # -- changes ---------------------------------------------------------------------------------

    def change(self, revision: str, change: Mapping[str, Any]) -> None:
        """Changes the draft; it is on the disk when this returns.

        Args:
            revision: the state that the annotator saw.
            change: the change, in the format that :func:`judge.annotate.web.session.read_change`
                reads.

        Raises:
            ConflictError: the draft is in another state; nothing was changed.
            UsageError: the change is not valid.
            WorkbookError: it does not fit the workbook.
        """
        with self._lock:
            self._check(revision)
            books = self.books()
            book, edits = read_change(change, {INPUT: books.input, GOLD: books.gold})
            if not edits:
                return
            draft = self._draft
            if book == INPUT:
                fits = uncomputed(self._start, [*(draft.edits if draft else ()), *edits], "")
                self._extend(edits=edits)
                self._books = replace(fits, revision=self.revision)
            else:
                if not all(isinstance(edit, SetCell) for edit in edits):
                    raise UsageError("rows of the gold follow those of the input")
                answers = [edit for edit in edits if isinstance(edit, SetCell)]
                gold = open_workbook(set_cells(books.gold.data, answers))
                self._extend(answers=answers)
                self._books = replace(books, revision=self.revision, gold=gold, computed=False)

    def _extend(self, edits: Sequence[Edit] = (), answers: Sequence[Edit] = ()) -> None:
        book = self._annotator.book
        if self._draft is None:
            self._draft = book.begin(self.task.id, self._author, base=self._start.number)
        self._draft = book.extend(self._draft, edits, answers)
        self._saved = None

    def undo(self, revision: str) -> None:
        """Undoes the last change.

        Raises:
            ConflictError: the draft is in another state; nothing was changed.
        """
        with self._lock:
            self._check(revision)
            if self._draft is not None and (self._draft.edits or self._draft.answers):
                self._draft = self._annotator.book.undo(self._draft)

    def start_from(self, revision: str, number: int) -> None:
        """Begins from another case.

        Raises:
            ConflictError: the draft is in another state.
            UsageError: the draft already has changes, or there is no such case.
        """
        with self._lock:
            self._check(revision)
            draft = self._draft
            if draft is not None and (draft.edits or draft.answers):
                raise UsageError(
                    "the draft begins from another case",
                    hint="Save it, or undo its changes, before you begin from another one.",
                )
            self._start = self._annotator.book.case(self.task.id, number)
            self._end_draft()

    def _end_draft(self) -> None:
        if self._draft is not None:
            self._annotator.book.discard(self._draft)
            self._draft = None

    def _check(self, revision: str) -> None:
        """Reads the draft from the disk, and checks that its state is the one the annotator saw."""
        if self._draft is not None:
            try:
                self._draft = self._annotator.book.draft(self.task.id, self._draft.id)
            except UsageError:
                self._draft = None
                raise ConflictError(
                    "the draft was saved or discarded by another window",
                    hint="Load the page again.",
                ) from None
        if revision != self.revision:
            raise ConflictError(
                "the draft was changed in another window; nothing was overwritten",
                hint="The page now shows its current state: make your change again.",
            )

    # -- the gold, and saving ---------------------------------------------------------------------

    def warm_up(self) -> None:
        """Starts the engines, and tries the references on the unchanged case.

        LibreOffice takes a few seconds to start, while the annotator is still reading. A failure is
        not reported here, because it occurs again when the first change is computed.
        """
        with self._computing, contextlib.suppress(JudgeError):
            base = self._start
            if self._references:
                self._wrong_references[base.revision] = wrong_references(
                    self._annotator, self.task, base, self._references
                )
            else:
                self._annotator.maker.propose(self.task, base, ())

    def compute(self) -> Preview | None:
        """Makes the gold and checks the case against the rules; None if nothing was changed.

        Raises:
            JudgeError: an engine or the sandbox failed.
        """
        with self._computing:
            with self._lock:
                draft, revision, earlier = self._draft, self.revision, self.preview
            if earlier is not None or draft is None or not (draft.edits or draft.answers):
                return earlier
            preview = self._annotator.preview(draft, self._references)
            if draft.base.revision not in self._wrong_references:
                self._wrong_references[draft.base.revision] = wrong_references(
                    self._annotator, self.task, draft.base, self._references
                )
            with self._lock:
                self._preview = (revision, preview)
            return preview

    @property
    def distrusted(self) -> tuple[str, ...]:
        """Lines about reference solutions that are not trusted because they fail the base case."""
        return self._wrong_references.get(self._start.revision, ())

    def save(self, revision: str, *, note: str = "") -> Mapping[str, Any]:
        """Saves the draft as a case; it is on the disk when this returns.

        Args:
            revision: the state that the annotator saw.
            note: the annotator's note about the case, for the record.

        Returns:
            Number, files and time of the case.

        Raises:
            UsageError: the case has no gold, breaks a mandatory rule of the manual, or is not
                computed yet.
            ConflictError: the draft is in another state, or the case was saved by somebody else.
        """
        with self._lock:
            self._check(revision)
            draft, preview = self._draft, self.preview
            if draft is None or preview is None:
                raise UsageError("there is no computed case to save yet")
            if preview.problem:
                raise UsageError(preview.problem)
            broken = [finding.message for finding in preview.findings if finding.is_error]
            if broken:
                raise UsageError(f"the rules of the manual forbid it: {'; '.join(broken)}")
            saved = self._annotator.save(
                draft,
                preview,
                kind="page",
                facts={"note": note, "doubts": [*preview.doubts, *self.distrusted]},
            )
            self._annotator.book.reload()
            self.task = self._annotator.task(self.task.id)
            self._saved = {
                "number": saved.number,
                "input": saved.input_path.name,
                "gold": saved.gold_path.name,
                "time": saved.record.get("time"),
            }
            self._draft, self._preview = None, None
            return self._saved

    def leave(self) -> None:
        """Removes a draft without changes, so that its number is free again."""
        with self._lock:
            if self._draft is not None and not (self._draft.edits or self._draft.answers):
                self._end_draft()


def _extent(workbook: Workbook, sheet: str) -> Window | None:
    if sheet not in workbook.sheet_names:
        return None
    used = workbook.used_range(sheet)
    return None if used is None else Window(1, 1, used.max_row, used.max_column)


INPUT, GOLD = "input", "gold"

# -- input on the page -----------------------------------------------------------------------------

MAX_CELLS = 20_000
"""How many cells one change may set."""

_COLOUR = re.compile(r"#?[0-9A-Fa-f]{6}")
_TEXT_FORMAT = "@"


def read_change(change: Mapping[str, Any], books: Mapping[str, Workbook]) -> tuple[str, list[Edit]]:
    """Reads a change from the page.

    Args:
        change: ``book`` and ``sheet``, and one of these: ``cells`` (objects with ``cell`` and the
            typed ``text``); ``fill`` (a colour) with ``range``; ``insert_rows`` or ``delete_rows``
            (the first row, 1-based) with ``count``.
        books: the workbooks that the page shows.

    Returns:
        The workbook's name, and the edits.

    Raises:
        UsageError: the change does not have this form.
        WorkbookError: there is no such sheet.
    """
    book, sheet = change.get("book"), change.get("sheet")
    if not isinstance(book, str) or book not in books or not isinstance(sheet, str):
        raise UsageError("a change must name a workbook and a sheet")
    workbook = books[book]
    workbook.sheet(sheet)
    if "cells" in change:
        return book, _cells(change["cells"], sheet, workbook)
    if "fill" in change:
        return book, _fill(change, sheet, workbook)
    for name, kind in (("insert_rows", InsertRows), ("delete_rows", DeleteRows)):
        if name in change:
            row, count = change[name], change.get("count", 1)
            if not _is_row(row) or not _is_row(count):
                raise UsageError("rows must be whole numbers, 1 or more")
            return book, [kind(sheet, row, count)]
    raise UsageError("a change must have one of cells, fill, insert_rows or delete_rows")


def _cells(cells: Any, sheet: str, workbook: Workbook) -> list[Edit]:
    if not isinstance(cells, list) or len(cells) > MAX_CELLS:
        raise UsageError(f"at most {MAX_CELLS:,} cells are changed in one go")
    edits: list[Edit] = []
    for cell in cells:
        name, text = (cell.get("cell"), cell.get("text")) if isinstance(cell, dict) else (None, "")
        if not isinstance(name, str) or not isinstance(text, str):
            raise UsageError("a cell must have an address and text")
        ref = _ref(name, sheet)
        edits.append(SetCell(ref, _content(text, _cell(workbook, ref))))
    return edits


def _content(text: str, cell: Cell | None) -> CellContent:
    """Converts typed text to content; in a cell formatted as text, only a formula is converted."""
    is_text = cell is not None and cell.number_format == _TEXT_FORMAT
    if is_text and text and not text.startswith(("=", "'")):
        return text
    return parse_content(text)


def _fill(change: Mapping[str, Any], sheet: str, workbook: Workbook) -> list[Edit]:
    colour, corners = change["fill"], str(change.get("range", "")).split(":")
    if not isinstance(colour, str) or not _COLOUR.fullmatch(colour):
        raise UsageError(f"{colour!r} is not a colour; write it as RRGGBB")
    first, last = _ref(corners[0], sheet), _ref(corners[-1], sheet)
    area = CellRange(sheet, first.row, first.column, last.row, last.column)
    if not 0 < area.size <= MAX_CELLS:
        raise UsageError(f"at most {MAX_CELLS:,} cells are changed in one go")
    stored = workbook.cells(area)
    return [
        SetCell(
            CellRef(sheet, row, column),
            _cell_content(stored.get((row, column))),
            fill=colour.removeprefix("#").upper(),
        )
        for row in range(first.row, last.row + 1)
        for column in range(first.column, last.column + 1)
    ]


def _cell_content(cell: Cell | None) -> CellContent:
    if cell is None:
        return None
    return cell.value if cell.formula is None else Formula(cell.formula.removeprefix("="))


def _cell(workbook: Workbook, ref: CellRef) -> Cell | None:
    area = CellRange(ref.sheet, ref.row, ref.column, ref.row, ref.column)
    return workbook.cells(area).get((ref.row, ref.column))


def _ref(name: str, sheet: str) -> CellRef:
    ref = parse_cell(name)
    if ref is None or not (1 <= ref[0] <= MAX_ROW and 1 <= ref[1] <= MAX_COLUMN):
        raise UsageError(f"{name!r} is not a cell")
    return CellRef(sheet, *ref)


def _is_row(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= MAX_ROW
