"""The checker of SheetCopilot: check boards for whole workbooks, one for each gold.

The published verdict is recorded next to the judge's own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from judge.compare.boards.board import (
    CATEGORIES,
    NAME,
    NOT_CALCULATED,
    Board,
    BoardOptions,
    requirement_in_words,
)
from judge.compare.boards.cells import BoardBook
from judge.compare.boards.standard import StandardJudge, UnusableBoardError, check_board
from judge.compare.cells.computing import Compute, NoEngines
from judge.compare.contract import (
    AnswerFaultError,
    Checker,
    Examination,
    GoldFaultError,
    Requirements,
    Rules,
)
from judge.compare.published.sheetcopilot import OfficialJudge
from judge.compare.published_error import PublishedError, Side
from judge.compare.rules.book import Book
from judge.core.finding import (
    DifferenceLocation,
    Finding,
    FoundDifference,
    LocationKind,
    finding_of,
    nearest,
)
from judge.core.submission import Answer, Origin
from judge.core.task import CheckerSpec, Gold, Task, TestCase
from judge.errors import UsageError, WorkbookError
from judge.workbook.reader import open_workbook

PUBLISHED_ERROR = "published_error"


def finding_by_board(
    answer: Book,
    gold: Book,
    board: Board,
    compute: Compute,
    origin: Origin,
    *,
    published: bool,
    profile: str,
) -> Finding:
    """Returns the finding under a board, including the published verdict.

    Args:
        answer: the workbook to judge.
        gold: the gold.
        board: the board of that gold.
        compute: computes formulas.
        origin: where the answer comes from.
        published: whether the published verdict counts instead of the judge's own.
        profile: name of the profile.

    Raises:
        UnusableBoardError: the gold has nothing that the board asks for.
        WorkbookError: a workbook is broken or over a limit.
        RecalcError: an engine cannot be started.
    """
    owner = BoardBook(answer, compute, origin)
    expected = BoardBook(gold, compute, Origin.GOLD)
    units = max(1, len(board.required))
    error: PublishedError | None = None
    try:
        official = OfficialJudge(owner, expected, board).differences()
    except PublishedError as raised:
        error = raised
        position = DifferenceLocation(LocationKind.RULE)
        official = [FoundDifference(PUBLISHED_ERROR, position, "a verdict", str(raised))]
    differences: Sequence[FoundDifference] = official
    notes: Sequence[str] = ()
    if not published:
        judge = StandardJudge(owner, expected, board)
        differences, notes = judge.differences(), judge.notes
    finding = finding_of(differences, units=units, notes=notes)
    undecided = {difference.kind for difference in differences} == {NOT_CALCULATED}
    record = {**finding.record, "profile": profile, "official_equal": not official}
    if error is not None:
        record["published_error"] = str(error)
    return replace(finding, undecided=undecided, record=record)  # type: ignore[arg-type]


class BoardsChecker(Checker):
    """Compares an answer with golds; the board of each gold says which properties count."""

    name = NAME

    def check_options(self, options: Mapping[str, object]) -> None:
        """Checks the options; see :class:`judge.compare.boards.board.BoardOptions`."""
        BoardOptions.of(options)

    def describe(self, spec: CheckerSpec) -> str:
        """Returns the name and, if the task has a board, the categories that it asks for."""
        board = BoardOptions.of(spec.own_options).board
        required = {check.category for check in board.required} if board is not None else set()
        named = [category for category in CATEGORIES if category in required]
        return f"{self.name}: {', '.join(named)}" if named else self.name

    def key(self, task: Task) -> Mapping[str, object]:
        """Returns the task's options, with the boards of its golds."""
        golds = [[dict(gold.options) for gold in case.golds] for case in task.cases]
        return {"checker": [task.checker.name, dict(task.checker.options), golds]}

    def check(
        self,
        task: Task,
        case: TestCase,  # noqa: ARG002
        golds: Sequence[Gold],
        answer: Answer,
        compute: Compute,
        rules: Rules,
    ) -> Finding:
        """Compares the answer with each gold, by its board; one of the golds has to agree."""
        if not golds:
            raise GoldFaultError("the task has no gold")
        try:
            book = Book(open_workbook(answer.data), Side.ANSWER)
        except WorkbookError as error:
            raise AnswerFaultError(error.message) from error

        def judged(gold: Gold, *, published: bool) -> Finding:
            return _check(task, gold, book, answer.origin, compute, rules, published=published)

        findings: list[tuple[str, Finding]] = []
        unusable: list[str] = []
        published = False
        left = list(golds)
        while left and not (findings and findings[-1][1].agrees):
            gold = left.pop(0)
            try:
                finding = judged(gold, published=rules.profile.published)
            except UnusableBoardError as problem:
                unusable.append(f"{gold.name}: {problem}")
                left_out = judged(gold, published=True)
                published = published or left_out.agrees
                continue
            findings.append((gold.name, finding))
            published = published or bool(finding.record.get("official_equal"))
        if not findings:
            raise GoldFaultError("; ".join(unusable))
        # The published verdict takes all golds into account, too.
        published = published or any(judged(gold, published=True).agrees for gold in left)
        finding = nearest(findings)
        record = {**finding.record, "official_equal": published}
        return replace(finding, record=record)  # type: ignore[arg-type]

    def examine(
        self,
        task: Task,
        case: TestCase,
        compute: Compute | None,
    ) -> Examination:
        """Opens the golds, counts the first board's properties, rejects boards without effect."""
        doubts = []
        units = uncached = not_calculated = 0
        for gold in case.golds:
            board = board_of(task, gold)
            units = units or len(board.required)
            book = BoardBook(_open_gold(gold), compute or NoEngines(), Origin.GOLD)
            try:
                check_board(book, board)
                sheets = {check.sheet for check in board.required if check.category == "cells"}
                for cells in (book.sheet(book.tabs[n - 1]) for n in sheets if n <= len(book.tabs)):
                    uncached += cells.uncached_formulas
                    not_calculated += len(cells.not_calculated)
            except UnusableBoardError as problem:
                doubts.append(f"{gold.name}: {problem}")
            except WorkbookError as error:
                raise GoldFaultError(f"{gold.name}: {error.message}") from error
        if not case.golds:
            doubts.append("the task has no gold")
        return Examination(units, uncached, not_calculated, doubts=tuple(doubts))

    def requirements(self, task: Task, gold: Gold | None) -> Requirements:
        """Returns the properties that the board of a gold asks for, as sentences."""
        if gold is None:
            return Requirements()
        required = board_of(task, gold).required
        return Requirements(
            tuple(map(requirement_in_words, required)), "SheetCopilot", complete=False
        )


CHECKER = BoardsChecker()


def board_of(task: Task, gold: Gold) -> Board:
    """Returns the board of a gold or, if the gold has none, the board of the task.

    Raises:
        GoldFaultError: there is no board, or it cannot be read.
    """
    try:
        board = BoardOptions.of(task.checker.with_options(gold.options).own_options).board
    except UsageError as error:
        raise GoldFaultError(f"{gold.name}: {error.message}") from error
    if board is None:
        raise GoldFaultError(f"{gold.name} has no board")
    return board


def _open_gold(gold: Gold) -> Book:
    try:
        return Book(open_workbook(gold.read()), Side.GOLD)
    except WorkbookError as error:
        raise GoldFaultError(f"{gold.name}: {error.message}") from error


def _check(
    task: Task,
    gold: Gold,
    answer: Book,
    origin: Origin,
    compute: Compute,
    rules: Rules,
    *,
    published: bool,
) -> Finding:
    board = board_of(task, gold)
    expected = _open_gold(gold)
    try:
        with answer.workbook.package.budget.working():
            return finding_by_board(
                answer,
                expected,
                board,
                compute,
                origin,
                published=published,
                profile=rules.profile.name,
            )
    except WorkbookError as error:
        if error.culprit is expected.workbook.package:
            raise GoldFaultError(f"{gold.name}: {error.message}") from error
        raise AnswerFaultError(error.message) from error
