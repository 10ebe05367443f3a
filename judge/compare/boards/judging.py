"""A workbook judged by a board: what is reported, and what goes on record."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from judge.compare.boards.board import Board
from judge.compare.boards.cells import BoardBook
from judge.compare.boards.differences import NOT_CALCULATED
from judge.compare.boards.standard import StandardJudge
from judge.compare.cells.computing import Compute
from judge.compare.published.sheetcopilot import OfficialJudge
from judge.compare.rules.book import Book
from judge.compare.rules.raised import PublishedError
from judge.core.finding import (
    DifferencePlace,
    Finding,
    FoundDifference,
    PlaceKind,
    finding_of,
)
from judge.core.submission import Origin

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
    """The finding under a board, with the published verdict on record.

    Args:
        answer: the workbook to judge.
        gold: the gold.
        board: the board of that gold.
        compute: computes formulas.
        origin: where the answer comes from.
        published: whether the published verdict counts, and not the judge's own.
        profile: name of the profile.

    Raises:
        UnusableBoardError: nothing of what the board asks is in the gold.
        WorkbookError: a workbook is broken or over a limit.
        RecalcError: an engine cannot be started.
    """
    owner = BoardBook(answer, compute, origin)
    expected = BoardBook(gold, compute, Origin.GOLD)
    units = max(1, len(board.asked))
    error: PublishedError | None = None
    try:
        official = OfficialJudge(owner, expected, board).differences()
    except PublishedError as raised:
        error = raised
        place = DifferencePlace(PlaceKind.RULE)
        official = [FoundDifference(PUBLISHED_ERROR, place, "a verdict", str(raised))]
    differences: Sequence[FoundDifference] = official
    notes: Sequence[str] = ()
    if not published:
        judge = StandardJudge(owner, expected, board)
        differences, notes = judge.differences(), judge.notes
    found = finding_of(differences, units=units, notes=notes)
    undecided = {difference.kind for difference in differences} == {NOT_CALCULATED}
    record = {**found.record, "profile": profile, "official_equal": not official}
    if error is not None:
        record["published_error"] = str(error)
    return replace(found, undecided=undecided, record=record)  # type: ignore[arg-type]
