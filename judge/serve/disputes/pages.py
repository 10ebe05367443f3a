"""``/disputes`` and ``/review``: pages for people who dispute verdicts, and for reviewers."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Annotated, Any

import sqlalchemy as sa
from fastapi import APIRouter, Path, Query, Request
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response

from judge.compare.registry import checker_of
from judge.core.task import Task, TestCase
from judge.errors import JudgeError, UsageError
from judge.serve.access.rights import Viewer, find, require, visible_to
from judge.serve.catalog import revision_of
from judge.serve.context import Server, ThisServer, server_of
from judge.serve.disputes.correcting import decide_and_settle, source_suite
from judge.serve.disputes.review import (
    MAX_TEXT,
    STEPS_IF_ACCEPTED,
    Claim,
    DisputeKind,
    Group,
    Opinion,
    begin_review,
    group_of,
    groups,
    level_of_disputed,
    open_dispute,
    suspect_of,
    withdraw,
)
from judge.serve.disputes.review import require_reviewer as check_reviewer
from judge.serve.disputes.routes import get_dispute, group_view, settlement_view, visible_disputes
from judge.serve.pages.boards import evidence_of
from judge.serve.pages.frame import PageViewer, Posted, SignedIn, cell_text, field, redirect, render
from judge.serve.problems import Problem
from judge.serve.store import tables as t
from judge.serve.store.database import all_rows
from judge.serve.store.tables import DisputeState, Level, Scope
from judge.sessions.corrections import Typed
from judge.suspects.decisions import Finding
from judge.workbook.address import column_letters
from judge.workbook.cell import CellRange, CellRef
from judge.workbook.reader import Workbook, open_workbook

router = APIRouter()

KINDS = {
    DisputeKind.GOLD: "The expected answer is wrong.",
    DisputeKind.QUESTION: "The question can be read in more than one way.",
    DisputeKind.RULE: "The comparison counts what the question does not ask for.",
}
NEXT = {
    DisputeState.OPEN: "A reviewer of the suite has to open it; until then it can be taken back.",
    DisputeState.SUSPECT: "Reviewers have opened it. Their findings become public when they agree.",
    DisputeState.ACCEPTED: "The suite is corrected; an author has to start the rejudging.",
    DisputeState.REJECTED: "The suite stays as it is, for the reason below.",
    DisputeState.WITHDRAWN: "It was taken back.",
    DisputeState.CORRECTED: "All submissions were judged again, and the boards have new versions.",
}
"""State of a dispute -> what it means, shown on its page."""


def _steps(state: DisputeState) -> list[tuple[str, bool, bool]]:
    """The steps of a dispute: each with its name, whether it is done, and whether it is current."""
    steps = dict(STEPS_IF_ACCEPTED)
    if state is DisputeState.REJECTED:
        steps = {one: steps[one] for one in (DisputeState.OPEN, DisputeState.SUSPECT)}
    elif state is DisputeState.WITHDRAWN:
        steps = {DisputeState.OPEN: steps[DisputeState.OPEN]}
    steps.setdefault(state, state.value)
    at = list(steps).index(state)
    return [(words, number < at, number == at) for number, words in enumerate(steps.values())]


_Id = Annotated[str, Path(max_length=80)]
_Text = Annotated[str, Query(max_length=200)]
_FIELDS = ("finding", "reason", "evidence", "cells", "position", "style", "left_out")
_MAX_LISTED = 100  # disputes on a page
_MAX_AREAS, _MAX_TABLES = 50, 12  # of workbooks that reviewers see
_MAX_ROWS, _MAX_COLUMNS, _ROWS_ABOVE = 200, 40, 3  # of each table


@router.get("/disputes")
def disputes_page(request: Request, server: ThisServer, page_viewer: PageViewer) -> Response:
    """The viewer's own disputes, and the decided disputes of everybody."""
    rows = visible_disputes(server, page_viewer, state=None, limit=_MAX_LISTED)
    return render(request, page_viewer, "disputes.html", "Disputes", disputes=rows)


@router.get("/disputes/new")
def new_dispute_page(
    request: Request,
    server: ThisServer,
    viewer: SignedIn,
    task: _Text = "",
    case: Annotated[int, Query(ge=1, le=10**6)] = 1,
    suite: _Text = "",
    submission: _Text = "",
) -> Response:
    """The form to dispute one case; 404 for a verdict that the viewer may not see."""
    entered = {"task": task, "case": str(case), "suite": suite, "submission": submission}
    return _new_form(request, server, viewer, entered, None)


def _new_form(
    request: Request,
    server: Server,
    viewer: Viewer,
    entered: Mapping[str, str],
    problem: Problem | None,
) -> Response:
    kinds = dict(KINDS)
    cells: list[tuple[str, str, str]] = []
    if entered["task"] and (entered["submission"] or entered["suite"]):
        with server.database.reading() as connection:
            level = level_of_disputed(connection, viewer, _claim(entered, DisputeKind.QUESTION))
        if not level.shows(Level.CELLS):
            del kinds[DisputeKind.GOLD]
        elif entered["submission"]:
            cells = cells_of(server, entered["submission"], entered["task"], int(entered["case"]))
    return render(
        request,
        viewer,
        "dispute_new.html",
        "Dispute a verdict",
        status=200 if problem is None else problem.kind.status,
        kinds=kinds,
        cells=cells,
        asked={"kind": "", "claim": "", "evidence": "", **entered},
        problem="" if problem is None else problem.detail or problem.kind.title,
    )


def _claim(entered: Mapping[str, str], kind: DisputeKind) -> Claim:
    return Claim(
        entered["task"],
        int(entered["case"]),
        kind,
        entered.get("claim", ""),
        entered.get("evidence", ""),
        entered["submission"] or None,
        entered["suite"] or None,
    )


def _whole(entered: Mapping[str, str]) -> Claim:
    if not entered["claim"] or entered["kind"] not in set(DisputeKind):
        raise Problem("invalid", "Say what is wrong, and what is right instead.")
    return _claim(entered, DisputeKind(entered["kind"]))


_ASKED = {"task": 200, "case": 7, "kind": 20, "claim": MAX_TEXT, "evidence": MAX_TEXT}
_ABOUT = {"submission": 31, "suite": 80}


@router.post("/disputes/new")
async def dispute_posted(
    request: Request, server: ThisServer, viewer: SignedIn, form: Posted
) -> Response:
    """Opens a dispute; if that fails, the form is shown again with the text."""
    account = require(viewer, Scope.DISPUTE)
    entered = {name: field(form, name, most) for name, most in {**_ASKED, **_ABOUT}.items()}
    if not re.fullmatch("[0-9]{1,6}", entered["case"]):
        raise Problem("invalid", "The case has to be a number.")

    def act() -> Response:
        try:
            return redirect(server, f"/disputes/{_open(server, viewer, account, _whole(entered))}")
        except Problem as problem:
            if problem.kind.status in {401, 403, 404}:
                raise
            return _new_form(request, server, viewer, entered, problem)

    return await run_in_threadpool(act)


def _open(server: Server, viewer: Viewer, account: str, claim: Claim) -> str:
    with server.database.writing(viewer.actor()) as transaction:
        return open_dispute(transaction, viewer, account, claim)


@router.get("/disputes/{dispute}")
def dispute_page(
    request: Request, dispute: _Id, server: ThisServer, page_viewer: PageViewer
) -> Response:
    """One dispute, with the decision and its reason."""
    row = get_dispute(dispute, page_viewer, server)
    leads_to = _seen_rejudging(server, page_viewer, row["rejudging"])
    return render(
        request,
        page_viewer,
        "dispute.html",
        f"Dispute of task {row['task']}",
        dispute=row,
        kind=KINDS[DisputeKind(row["kind"])],
        steps=_steps(DisputeState(row["state"])),
        next=NEXT[DisputeState(row["state"])],
        leads_to=leads_to,
        may_decide=_may_decide(server, page_viewer, dispute),
        boards=_boards_of(server, page_viewer, row["suite"]) if row["state"] == "corrected" else [],
    )


def _boards_of(server: Server, viewer: Viewer, suite: str) -> list[dict[str, Any]]:
    """Name and title of the boards of a suite that the viewer may see."""
    with server.database.reading() as connection:
        return all_rows(
            connection,
            sa.select(t.board.c.name, t.board.c.title)
            .join(t.suite, t.suite.c.id == t.board.c.suite)
            .where(t.suite.c.name == suite, visible_to(viewer, t.board))
            .order_by(t.board.c.name),
        )


def _may_decide(server: Server, viewer: Viewer, dispute: str) -> bool:
    """Whether a dispute waits for a decision that the viewer may make."""
    if not viewer.reviewed:
        return False
    with server.database.reading() as connection:
        try:
            check_reviewer(connection, viewer, group_of(connection, dispute))
        except Problem:
            return False
    return True


def _seen_rejudging(server: Server, viewer: Viewer, rejudging: str | None) -> str | None:
    """The id of a rejudging if the viewer may open its page; before it is applied, authors may."""
    seen = sa.select(t.rejudging.c.id).where(
        t.rejudging.c.id == rejudging, visible_to(viewer, t.rejudging)
    )
    with server.database.reading() as connection:
        return connection.scalar(seen)


@router.post("/disputes/{dispute}/withdraw")
async def withdrawal_posted(
    dispute: _Id, server: ThisServer, viewer: SignedIn, form: Posted
) -> Response:
    """Withdraws one's own dispute."""
    del form

    def act() -> None:
        with server.database.writing(viewer.actor()) as transaction:
            withdraw(transaction, viewer, dispute)

    await run_in_threadpool(act)
    return redirect(server, f"/disputes/{dispute}")


# -- reviewers -------------------------------------------------------------------------------------


@router.get("/review")
def review_page(request: Request, server: ThisServer, viewer: SignedIn) -> Response:
    """The cases that wait for a reviewer's decision, most certain first."""
    reviewer = require(viewer, Scope.REVIEW)
    with server.database.reading() as connection:
        rows = [group_view(connection, group, reviewer) for group in groups(connection, viewer)]
    return render(request, viewer, "reviews.html", "Review", suspects=rows)


@router.get("/review/{dispute}")
def suspect_page(request: Request, dispute: _Id, server: ThisServer, viewer: SignedIn) -> Response:
    """The disputes of a case. The gold is on the next page; each view of it is recorded."""
    with server.database.reading() as connection:
        find(connection, viewer, t.dispute, dispute)
        group = group_of(connection, dispute)
        check_reviewer(connection, viewer, group)
    return _suspect(request, viewer, group, None)


@router.post("/review/{dispute}")
async def suspect_opened(
    request: Request, dispute: _Id, server: ThisServer, viewer: SignedIn, form: Posted
) -> Response:
    """The case with its input and gold, and the form for a decision."""
    del form
    return await run_in_threadpool(_opened, request, server, viewer, dispute)


def _opened(
    request: Request,
    server: Server,
    viewer: Viewer,
    dispute: str,
    filled: dict[str, str] | None = None,
    problem: str = "",
) -> Response:
    with server.database.reading() as connection:
        find(connection, viewer, t.dispute, dispute)
    with server.database.writing(viewer.actor()) as transaction:
        group = begin_review(transaction, viewer, dispute)
        revision = revision_of(transaction.connection, group.suite["current_revision"])
    task = source_suite(server, revision).task(group.task)
    return _suspect(request, viewer, group, task, filled, problem)


def _suspect(
    request: Request,
    viewer: Viewer,
    group: Group,
    task: Task | None,
    filled: dict[str, str] | None = None,
    problem: str = "",
) -> Response:
    return render(
        request,
        viewer,
        "review.html",
        f"Task {group.task}, case {group.case}",
        status=422 if problem else 200,
        headers={"Cache-Control": "no-store"},
        group=group,
        suspect=suspect_of(group.disputes),
        kinds=KINDS,
        task=task,
        sides=[] if task is None else sides_of(task, group.case),
        cells=[] if task is None else _disputed_cells(server_of(request), group),
        position="" if task is None else task.details.get("answer_position", ""),
        filled={**dict.fromkeys(_FIELDS, ""), **(filled or {})},
        problem=problem,
    )


def _disputed_cells(server: Server, group: Group) -> list[tuple[str, str, str]]:
    """The cells in which the first disputed answer that has such cells differs from the gold."""
    differing = (
        cells_of(server, row["submission"], group.task, group.case) for row in group.disputes
    )
    return next(filter(None, differing), [])


def cells_of(
    server: Server, submission: str | None, task: str, case: int
) -> list[tuple[str, str, str]]:
    """Cell, gold and answer of each cell that differs, for a viewer who may see cells."""
    with server.database.reading() as connection:
        judging = connection.scalar(
            sa.select(t.submission.c.current_judging).where(t.submission.c.id == submission)
        )
    if judging is None:
        return []
    for sample in evidence_of(server, judging, task).values():
        if cells := sample["cases"].get(case, {}).get("cells"):
            return [(cell.where, cell.expected, cell.outputs[0] or "") for cell in cells]
    return []


@router.post("/review/{dispute}/decide")
async def decision_posted(
    request: Request, dispute: _Id, server: ThisServer, viewer: SignedIn, form: Posted
) -> Response:
    """Records a decision, and shows its outcome."""
    filled = {name: field(form, name, 20_000) for name in _FIELDS}
    if filled["finding"] not in set(Finding):
        raise Problem("invalid", "Say what you found: a fault, fine, or unclear.")

    def act() -> Response:
        with server.database.reading() as connection:
            find(connection, viewer, t.dispute, dispute)
            case = group_of(connection, dispute).case
        opinion = Opinion(
            Finding(filled["finding"]),
            filled["reason"][:MAX_TEXT],
            filled["evidence"][:MAX_TEXT],
            Typed(
                {case: filled["cells"]},
                filled["position"],
                filled["style"],
                (case,) if filled["left_out"] == "case" else (),
                filled["left_out"] == "task",
            ),
        )
        try:
            settled = decide_and_settle(server, viewer, dispute, opinion)
        except UsageError as error:
            text = f"{error.message} {error.hint or ''}".strip()
            return _opened(request, server, viewer, dispute, filled, text)
        return render(
            request,
            viewer,
            "reviewed.html",
            "Decided",
            dispute=dispute,
            settled=settlement_view(settled),
            leads_to=_seen_rejudging(server, viewer, settled.rejudging),
        )

    return await run_in_threadpool(act)


def sides_of(task: Task, number: int) -> list[dict[str, Any]]:
    """Input and gold of a case, as tables; unreadable workbooks are left out.

    Each sheet with a part of the answer is shown from the input and from the gold, then the other
    sheets of the input, from which a reviewer sees what the answer should be.

    Returns:
        For each table: ``name``, ``sheet``, ``columns``, ``rows`` (number, and for each cell its
        text and whether it is part of the answer) and ``more``, whether the sheet has cells below
        the last row or behind the last column.
    """
    case = next((one for one in task.cases if one.number == number), None)
    if case is None:
        return []
    try:
        gold = open_workbook(case.gold_path)
        answer_areas = checker_of(task.checker).areas(task, gold, gold).gold
        areas = [area for area in answer_areas if area][:_MAX_AREAS]
        gold.preload(areas)
    except JudgeError:
        return []
    source = _input(case)
    books = {"gold": gold} if source is None else {"input": source, "gold": gold}
    sides: list[dict[str, Any]] = []
    answered = {area.sheet for area in areas}
    with contextlib.suppress(JudgeError):  # a sheet that cannot be read: those before it are shown
        for window in _windows(areas, books):
            for name, workbook in books.items():
                is_wanted = name == "input" or window.sheet in answered
                if is_wanted and window.sheet in workbook.sheet_names:
                    sides.append(_side(name, workbook, window, areas))
                if len(sides) == _MAX_TABLES:  # the sheets behind them are not even read
                    return sides
    return sides


def _windows(areas: list[CellRange], books: Mapping[str, Workbook]) -> Iterator[CellRange]:
    """The cells to show: those of sheets with a part of the answer, then the input's others."""
    shown: list[CellRange] = []
    for area in areas:
        if not any(window.has(CellRef(area.sheet, *area.first)) for window in shown):
            shown.append(_window(area, books.values()))
            yield shown[-1]
    answered = {area.sheet for area in areas}
    for sheet in books["input"].sheet_names if "input" in books else ():
        if sheet not in answered:
            yield _window(CellRange(sheet, 1, 1, 1, 1), [books["input"]])


def _window(area: CellRange, workbooks: Iterable[Workbook]) -> CellRange:
    """The cells to show of a sheet: from its start, or from shortly before a distant answer."""
    last_row, last_column = area.first
    for workbook in workbooks:
        used = workbook.used_range(area.sheet) if area.sheet in workbook.sheet_names else None
        if used is not None:
            last_row, last_column = max(last_row, used.max_row), max(last_column, used.max_column)
    top = 1 if area.min_row <= _MAX_ROWS else area.min_row - _ROWS_ABOVE
    left = 1 if area.min_column <= _MAX_COLUMNS else area.min_column - 1
    bottom, right = min(last_row, top + _MAX_ROWS - 1), min(last_column, left + _MAX_COLUMNS - 1)
    return CellRange(area.sheet, top, left, bottom, right)


def _input(case: TestCase) -> Workbook | None:
    try:
        return open_workbook(case.inputs[0].path) if case.inputs else None
    except JudgeError:
        return None


def _side(
    name: str, workbook: Workbook, window: CellRange, areas: Sequence[CellRange]
) -> dict[str, Any]:
    on_sheet = [area for area in areas if area.sheet == window.sheet]
    used = workbook.used_range(window.sheet)
    cells = workbook.cells(window)
    columns = range(window.min_column, window.max_column + 1)
    return {
        "name": name,
        "sheet": window.sheet,
        "columns": [column_letters(column) for column in columns],
        "rows": [
            (
                row,
                [
                    (
                        cell_text(cells.get((row, column))),
                        any(area.holds(row, column) for area in on_sheet),
                    )
                    for column in columns
                ],
            )
            for row in range(window.min_row, window.max_row + 1)
        ],
        "more": used is not None
        and (window.max_row < used.max_row or window.max_column < used.max_column),
    }
