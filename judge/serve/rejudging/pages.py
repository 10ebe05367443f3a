"""``/rejudgings``: pages that show a rejudging's cost and changes, and apply it."""

from __future__ import annotations

from typing import Annotated, Any

import sqlalchemy as sa
from fastapi import APIRouter, Path, Request
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response

from judge.serve.access.rights import Viewer, find, in_lists
from judge.serve.context import Server, ThisServer
from judge.serve.pages.frame import PageViewer, Posted, SignedIn, field, redirect, render
from judge.serve.problems import Problem
from judge.serve.rejudging.routes import (
    NewRejudging,
    ScopeRequest,
    act,
    apply,
    post_rejudging,
    rejudging_view,
    visible_rejudgings,
)
from judge.serve.store import tables as t
from judge.serve.store.database import all_rows
from judge.serve.store.tables import RejudgingState

router = APIRouter()

_Id = Annotated[str, Path(max_length=80)]
NEXT = {
    RejudgingState.DRAFT: "Nothing is judged yet; an author of the suite starts it.",
    RejudgingState.RUNNING: "Its submissions are being judged again; no result changes yet.",
    RejudgingState.READY: "Look at what would change, and apply it, or cancel it.",
    RejudgingState.APPLIED: "Its judgings count now, and the boards have new versions.",
    RejudgingState.CANCELLED: "Nothing was changed; its judgings are kept.",
}
"""State of a rejudging -> what it means, shown on its page."""

_MAX_LISTED = 100  # rejudgings on a page
_SHOWN = 300
"""How many changed verdicts a page shows; the API returns up to 5,000."""


@router.get("/rejudgings")
def rejudgings_page(request: Request, server: ThisServer, page_viewer: PageViewer) -> Response:
    """The applied rejudgings; for authors, all rejudgings of their suites."""
    return render(
        request,
        page_viewer,
        "rejudgings.html",
        "Rejudgings",
        rejudgings=visible_rejudgings(server, page_viewer, limit=_MAX_LISTED),
        suites=_authored(server, page_viewer),
    )


def _authored(server: Server, viewer: Viewer) -> list[dict[str, Any]]:
    with server.database.reading() as connection:
        return all_rows(
            connection,
            sa.select(t.suite.c.name, t.suite.c.title)
            .where(t.suite.c.id.in_([one for one in viewer.authored if viewer.authors(one)]))
            .order_by(t.suite.c.name),
        )


@router.post("/rejudgings")
async def rejudging_posted(server: ThisServer, viewer: SignedIn, form: Posted) -> Response:
    """Opens the draft of a rejudging of all submissions to a suite."""
    revision = field(form, "revision", 7)
    try:
        draft = NewRejudging(
            suite=field(form, "suite", 80),
            reason=field(form, "reason", 1_000),
            revision=int(revision) if revision else None,
            scope=ScopeRequest(afresh=bool(form.get("afresh"))),
        )
    except ValueError as error:
        raise Problem("invalid", "A rejudging needs a suite, a reason, and a number.") from error
    created = await run_in_threadpool(post_rejudging, draft, viewer, server)
    return redirect(server, f"/rejudgings/{created['id']}")


@router.get("/rejudgings/{rejudging}")
def rejudging_page(
    request: Request, rejudging: _Id, server: ThisServer, page_viewer: PageViewer
) -> Response:
    """A rejudging: its state, its cost, and its changes, those outside the correction first."""
    with server.database.reading() as connection:
        row = find(connection, page_viewer, t.rejudging, rejudging)
        document = rejudging_view(connection, page_viewer, row)
        names = _accounts(connection, rejudging)
        boards = all_rows(
            connection,
            sa.select(t.board.c.name, t.board.c.title, t.board.c.latest)
            .where(t.board.c.suite == row["suite"], in_lists(page_viewer, t.board))
            .order_by(t.board.c.name),
        )
    is_author = page_viewer.authors(row["suite"])
    diff = row["diff"] if is_author and row["diff"] and "verdicts" in row["diff"] else None
    return render(
        request,
        page_viewer,
        "rejudging.html",
        f"Rejudging of {document['suite']}",
        rejudging=document,
        is_author=is_author,
        diff=diff,
        outside=_verdicts(diff, outside=True),
        inside=_verdicts(diff, outside=False),
        accounts=names,
        most=_SHOWN,
        next=NEXT[RejudgingState(row["state"])],
        boards=boards,
    )


def _verdicts(diff: dict[str, Any] | None, *, outside: bool) -> list[dict[str, Any]]:
    rows = [] if diff is None else diff["verdicts"]
    return [row for row in rows if row["outside"] is outside][:_SHOWN]


def _accounts(connection: sa.Connection, rejudging: str) -> dict[str, str]:
    rows = connection.execute(
        sa.select(t.submission.c.id, t.account.c.name)
        .join(t.account, t.account.c.id == t.submission.c.account)
        .join(t.rejudging_member, t.rejudging_member.c.submission == t.submission.c.id)
        .where(t.rejudging_member.c.rejudging == rejudging)
    )
    return {row.id: row.name for row in rows}


@router.post("/rejudgings/{rejudging}/apply")
async def application_posted(
    rejudging: _Id, server: ThisServer, viewer: SignedIn, form: Posted
) -> Response:
    """Applies a rejudging, if the number of changed verdicts was typed correctly."""
    typed = field(form, "changed", 15).replace(",", "")
    if not typed.isdecimal():
        raise Problem("invalid", "Type the number of verdicts that change.")
    await run_in_threadpool(apply, server, viewer, rejudging, int(typed))
    return redirect(server, f"/rejudgings/{rejudging}")


@router.post("/rejudgings/{rejudging}/{action}")
async def action_posted(
    rejudging: _Id, action: _Id, server: ThisServer, viewer: SignedIn, form: Posted
) -> Response:
    """Starts, retries or cancels a rejudging."""
    del form
    if action not in {"start", "retry", "cancel"}:
        raise Problem("not-found")
    await run_in_threadpool(act, server, viewer, rejudging, action)
    return redirect(server, f"/rejudgings/{rejudging}")
