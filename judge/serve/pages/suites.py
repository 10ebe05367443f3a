"""``/``, ``/suites/S`` and ``/suites/S/tasks/T``: pages of suites and their public tasks."""

from __future__ import annotations

import datetime as dt
from typing import Any

import sqlalchemy as sa
from fastapi import APIRouter, Request
from starlette.responses import Response

from judge.console import counted
from judge.errors import JudgeError
from judge.serve.access.rights import Viewer, find, in_lists, require_suite_role
from judge.serve.api.boards import list_boards
from judge.serve.api.suites import SuiteName, get_suite, get_task, list_revisions, list_suites
from judge.serve.api.suites import status as server_status
from judge.serve.boards.probing import probing_of
from judge.serve.catalog import revision_of
from judge.serve.context import Server, ThisServer
from judge.serve.disputes.review import STEPS_IF_ACCEPTED, groups
from judge.serve.disputes.routes import group_view, visible_disputes
from judge.serve.pages.frame import PageViewer, SignedIn, cell_text, render
from judge.serve.rejudging.service import loaded_suites
from judge.serve.store import tables as t
from judge.serve.store.database import all_rows
from judge.serve.store.tables import AccountState, DisputeState, RejudgingState, SuiteRole
from judge.workbook.address import column_letters
from judge.workbook.cell import CellRange
from judge.workbook.reader import open_workbook

router = APIRouter()

GRID_ROWS, GRID_COLUMNS = 40, 16


@router.get("/")
def home(request: Request, server: ThisServer, page_viewer: PageViewer) -> Response:
    """Suites, boards, and how busy the server is."""
    return render(
        request,
        page_viewer,
        "home.html",
        "Suites and boards",
        suites=list_suites(page_viewer, server)["suites"],
        boards=list_boards(page_viewer, server)["boards"],
        load=server_status(server),
        waiting=_waiting(server, page_viewer),
        disputes=_own_disputes(server, page_viewer),
    )


_MAX_LISTED = 50  # disputes on the home page


_SHOWN_DAYS = 30  # how long after it was opened a settled dispute stays on the home page
_UNSETTLED = (DisputeState.OPEN, DisputeState.SUSPECT, DisputeState.ACCEPTED)
_NOW = {**STEPS_IF_ACCEPTED, DisputeState.REJECTED: "rejected"}


def _own_disputes(server: Server, viewer: Viewer) -> list[dict[str, Any]]:
    """The disputes of the viewer's teams that are not settled, or not old, with their state."""
    if viewer.account is None:
        return []
    since = (dt.datetime.now(dt.UTC) - dt.timedelta(days=_SHOWN_DAYS)).isoformat()
    rows = visible_disputes(server, viewer, state=None, limit=_MAX_LISTED)
    return [
        row | {"now": _NOW[state]}
        for row in rows
        if row["own"]
        and (state := DisputeState(row["state"])) in _NOW
        and (state in _UNSETTLED or row["created"] > since)
    ]


def _waiting(server: Server, viewer: Viewer) -> list[tuple[str, str]]:
    """Address and title of each page on which the viewer has something to do."""
    if viewer.account is None:
        return []
    waiting: list[tuple[str, str]] = []
    with server.database.reading() as connection:
        undecided = [
            group
            for group in groups(connection, viewer)
            if group_view(connection, group, viewer.account)["mine"] is None
        ]
        if undecided:
            waiting.append(("/review", f"{counted(len(undecided), 'disputed case')} to decide"))
        authored = [suite for suite in viewer.authored if viewer.authors(suite)]
        for row in all_rows(
            connection,
            sa.select(t.rejudging.c.id, t.rejudging.c.state, t.suite.c.title)
            .join(t.suite, t.suite.c.id == t.rejudging.c.suite)
            .where(
                t.suite.c.id.in_(authored),
                t.rejudging.c.state.in_((RejudgingState.DRAFT, RejudgingState.READY)),
            ),
        ):
            action = "start" if row["state"] == RejudgingState.DRAFT else "look at and apply"
            text = f"A rejudging of {row['title']} to {action}"
            waiting.append((f"/rejudgings/{row['id']}", text))
        if viewer.is_operator:
            pending = connection.scalar(
                sa.select(sa.func.count()).where(t.account.c.state == AccountState.PENDING)
            )
            if pending:
                waiting.append(("/admin", f"{counted(pending, 'account')} to approve"))
    return waiting


@router.get("/suites/{suite}")
def suite_page(
    request: Request, suite: SuiteName, server: ThisServer, page_viewer: PageViewer
) -> Response:
    """A suite: revision, splits, phases, boards and its public tasks."""
    document = get_suite(suite, page_viewer, server)
    with server.database.reading() as connection:
        row = find(connection, page_viewer, t.suite, suite)
        boards = all_rows(
            connection,
            sa.select(t.board.c.name, t.board.c.title)
            .where(t.board.c.suite == row["id"], in_lists(page_viewer, t.board))
            .order_by(t.board.c.name),
        )
        tasks: list[str] = []
        for split in all_rows(
            connection,
            sa.select(t.split).where(
                t.split.c.revision == row["current_revision"], t.split.c.name != "hidden"
            ),
        ):
            tasks.extend(split["tasks"])
    revisions = list_revisions(suite, page_viewer, server)["revisions"]
    return render(
        request,
        page_viewer,
        "suite.html",
        document["title"],
        suite=document,
        revisions=list(reversed(revisions)),
        boards=boards,
        tasks=tasks,
        is_author=page_viewer.authors(row["id"]),
    )


@router.get("/suites/{suite}/probing")
def probing_page(
    request: Request, suite: SuiteName, server: ThisServer, viewer: SignedIn
) -> Response:
    """A page for authors of the suite: signs that somebody submits answers only to learn golds."""
    with server.database.reading() as connection:
        row = find(connection, viewer, t.suite, suite)
        require_suite_role(viewer, SuiteRole.AUTHOR, row["id"])
        variants, agreements = probing_of(connection, server.folder, row["id"])
    return render(
        request,
        viewer,
        "probing.html",
        "Signs of probing",
        suite=row,
        variants=variants,
        agreements=agreements,
    )


@router.get("/suites/{suite}/tasks/{task}")
def task_page(
    request: Request, suite: SuiteName, task: str, server: ThisServer, page_viewer: PageViewer
) -> Response:
    """A public task: its question, and its first input as a grid."""
    document = get_task(suite, task, page_viewer, server)
    return render(
        request,
        page_viewer,
        "task.html",
        f"Task {task}",
        suite=suite,
        task=document,
        grid=_grid(server, page_viewer, suite, task),
    )


def _grid(server: Server, page_viewer: PageViewer, suite: str, task: str) -> dict[str, Any] | None:
    """The top left corner of the first input's first sheet; None if there is no input."""
    with server.database.reading() as connection:
        row = find(connection, page_viewer, t.suite, suite)
        revision = revision_of(connection, row["current_revision"])
    try:
        case = loaded_suites(server).suite(revision).task(task).cases[0]
        workbook = open_workbook(case.inputs[0].path)
        sheet = workbook.sheet_names[0]
        used = workbook.used_range(sheet)
        if used is None:
            return None
        rows = min(used.max_row, GRID_ROWS)
        columns = min(used.max_column, GRID_COLUMNS)
        cells = workbook.cells(CellRange(sheet, 1, 1, rows, columns))
    except (JudgeError, IndexError):
        return None
    return {
        "name": case.inputs[0].path.name,
        "sheet": sheet,
        "columns": [column_letters(column) for column in range(1, columns + 1)],
        "rows": [
            (number, [cell_text(cells.get((number, column))) for column in range(1, columns + 1)])
            for number in range(1, rows + 1)
        ],
        "more": used.max_row > rows or used.max_column > columns,
    }
