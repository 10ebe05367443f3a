"""Pages to submit, and to see one's own submissions with their progress."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import sqlalchemy as sa
from fastapi import APIRouter, Query, Request
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import UploadFile
from starlette.responses import Response

from judge.serve.access.rights import Viewer, find, visible_to
from judge.serve.api.accounts import open_phases
from judge.serve.api.boards import Choice, choose_submission
from judge.serve.api.limits import entity_tag, rate
from judge.serve.api.results import (
    cancel_submission,
    is_finished,
    own_results,
    submission_view,
    verdicts_view,
    visible_judging,
    withdraw_submission,
)
from judge.serve.api.submissions import Claims, accept_body, kind_of_file, receive_file
from judge.serve.boards.disclosure import is_bounded_for
from judge.serve.context import Server, ThisServer, session_of
from judge.serve.intake import LIMITS, LINES, PROGRAM, admit
from judge.serve.pages.boards import evidence_page, report_page, report_part
from judge.serve.pages.frame import (
    MAX_FORM_BYTES,
    Posted,
    SignedIn,
    check_origin,
    check_token,
    field,
    not_signed_in,
    read_form,
    redirect,
    render,
)
from judge.serve.problems import Problem, not_found
from judge.serve.store import tables as t
from judge.serve.store.database import all_rows, first_row
from judge.serve.store.tables import DisputeState, Level

router = APIRouter()

_MAX_LISTED = 100  # submissions on a page
_MAX_KEPT_CHARS = 1 << 20  # of a field that is shown again after a problem
_FIELDS = ("system", "model", "setting", "url", "cutoff", "note")


@router.get("/submit")
def submit_page(
    request: Request,
    server: ThisServer,
    viewer: SignedIn,
    phase: Annotated[str, Query(max_length=80)] = "",
) -> Response:
    """The form for a submission, with what is left of the quotas."""
    return _form(request, server, viewer, phase, None)


def _form(
    request: Request,
    server: Server,
    viewer: Viewer,
    phase: str,
    problem: Problem | None,
    typed: Mapping[str, str] | None = None,
) -> Response:
    request.state.page_viewer = viewer
    with server.database.reading() as connection:
        phases = open_phases(connection, viewer)
        teams = all_rows(
            connection,
            sa.select(t.account.c.id, t.account.c.name)
            .where(t.account.c.id.in_(viewer.teams - {viewer.account}))
            .order_by(t.account.c.name),
        )
    return render(
        request,
        viewer,
        "submit.html",
        "Submit",
        status=200 if problem is None else problem.kind.status,
        phases=phases,
        chosen=phase,
        teams=teams,
        problem=problem,
        typed=typed or {},
        limits={kind: most >> 20 for kind, most in LIMITS.items()},
        max_bytes=max(LIMITS.values()),
    )


@router.post("/submit", dependencies=[rate("submit")])
async def submit_posted(request: Request, server: ThisServer) -> Response:
    """Accepts a file or a pasted program, as the API does."""
    session = await session_of(request)
    if session is None:
        raise await not_signed_in(request)
    check_origin(request, server)
    form = await read_form(request, max(LIMITS.values()) + MAX_FORM_BYTES)
    try:
        check_token(server, session, form)
        answer = await _accepted(server, session.viewer, form)
    except Problem as problem:
        if problem.name in {"forbidden", "unauthorized"}:
            raise
        phase = str(form.get("phase", ""))[:80]
        typed = {
            name: text
            for name in ("program", "task", "team", *_FIELDS)
            if isinstance(text := form.get(name), str) and len(text) <= _MAX_KEPT_CHARS
        }
        return await run_in_threadpool(
            _form, request, server, session.viewer, phase, problem, typed
        )
    finally:
        await form.close()
    return redirect(server, f"/submissions/{answer['id']}")


async def _accepted(server: Server, viewer: Viewer, form: Any) -> dict[str, Any]:
    texts = {name: field(form, name) for name in _FIELDS}
    phase, team = field(form, "phase", 80), field(form, "team", 80) or None
    claims = _claims(texts)
    task = field(form, "task", 200) or None
    text, file = str(form.get("program", "")), form.get("file")
    admission = await run_in_threadpool(admit, server, viewer, phase, team)
    with server.folder.receiving() as received:
        if isinstance(file, UploadFile) and file.filename:
            kind = kind_of_file(file.filename, file.content_type or "")
            await receive_file(file, received, kind)
        elif text.strip():
            kind = LINES if text.lstrip().startswith("{") else PROGRAM
            received.write(text.replace("\r\n", "\n").encode("utf-8", "replace"))
        else:
            raise Problem("invalid", "Choose a file, or paste a program.")
        answer, _ = await run_in_threadpool(
            accept_body,
            server,
            viewer,
            admission,
            received,
            kind,
            claims.described(),
            None,
            task if kind == PROGRAM else None,
        )
    return answer


def _claims(texts: dict[str, str]) -> Claims:
    try:
        return Claims.model_validate({**texts, "cutoff": texts["cutoff"] or None})
    except ValueError as error:
        raise Problem(
            "invalid",
            "The address has to begin with https://, and a date is written as 2026-01-31.",
        ) from error


@router.get("/submissions")
def list_page(request: Request, server: ThisServer, viewer: SignedIn) -> Response:
    """The newest submissions of the viewer's teams."""
    with server.database.reading() as connection:
        rows = all_rows(
            connection,
            sa.select(t.submission)
            .where(visible_to(viewer, t.submission))
            .order_by(t.submission.c.seq.desc())
            .limit(_MAX_LISTED),
        )
        views = [submission_view(connection, viewer, row) for row in rows]
    return render(request, viewer, "submissions.html", "Submissions", submissions=views)


@router.get("/submissions/{submission}")
def submission_page(
    request: Request, submission: str, server: ThisServer, viewer: SignedIn
) -> Response:
    """A submission: its state, and the scores and verdicts that the level shows."""
    request.state.page_viewer = viewer
    with server.database.reading() as connection:
        row = find(connection, viewer, t.submission, submission)
        view = submission_view(connection, viewer, row)
        judging, level, phase = visible_judging(connection, viewer, row)
        bounded = is_bounded_for(connection, viewer, phase)
        boards = all_rows(
            connection,
            sa.select(t.board.c.name, t.board.c.title).where(
                t.board.c.phase == phase["id"],
                t.board.c.rule == "chosen",
                visible_to(viewer, t.board),
            ),
        )
        verdicts = verdicts_view(connection, judging, level, bounded=bounded)
        all_boards = all_rows(
            connection,
            sa.select(t.board.c.name, t.board.c.title)
            .where(t.board.c.phase == phase["id"], visible_to(viewer, t.board))
            .order_by(t.board.c.name),
        )
        again = first_row(
            connection,
            sa.select(t.rejudging).where(
                t.rejudging.c.id == judging["rejudging"], visible_to(viewer, t.rejudging)
            ),
        )
        disputed = connection.execute(
            sa.select(t.dispute.c.task, t.dispute.c.case, t.dispute.c.id).where(
                t.dispute.c.suite == phase["suite"],
                t.dispute.c.account == row["account"],
                t.dispute.c.state != DisputeState.WITHDRAWN,
                visible_to(viewer, t.dispute),
            )
        ).all()
    return render(
        request,
        viewer,
        "submission.html",
        row["system"] or f"Submission to {phase['name']}",
        sub=view,
        boards=all_boards,
        again=again,
        disputed={(one.task, one.case): one.id for one in disputed},
        verdicts=verdicts,
        boards_of_choice=boards,
        is_own=row["account"] in viewer.teams,
        is_finished=is_finished(view),
        shows_verdicts=level.shows(Level.VERDICTS),
        shows_cells=level.shows(Level.CELLS),
        etag=entity_tag(view["version"], view["level"]),
    )


@router.get("/submissions/{submission}/tasks/{task}")
def submission_task_page(
    request: Request, submission: str, task: str, server: ThisServer, viewer: SignedIn
) -> Response:
    """A task of a submission: its verdicts, and program and cells if the level shows them."""
    with server.database.reading() as connection:
        row = find(connection, viewer, t.submission, submission)
        judging, level, phase = visible_judging(connection, viewer, row)
        bounded = is_bounded_for(connection, viewer, phase)
        verdicts = verdicts_view(connection, judging, level, bounded=bounded)
        suite = find(connection, viewer, t.suite, phase["suite"])
    cases = [one for one in verdicts if one["task"] == task]
    if not cases or not level.shows(Level.VERDICTS):
        raise not_found()
    crumbs = [
        ("/submissions", "Submissions"),
        (f"/submissions/{submission}", row["system"] or f"Submission to {phase['name']}"),
    ]
    about = {"submission": submission, "judging": judging["id"], "suite": suite["name"]}
    about["report"] = f"/submissions/{submission}/report"
    return evidence_page(request, viewer, about, {"task": task, "cases": cases}, level, crumbs)


@router.get("/submissions/{submission}/report")
def submission_report_page(
    request: Request, submission: str, server: ThisServer, viewer: SignedIn
) -> Response:
    """The report of a submission with its cells, if the level shows them."""
    with server.database.reading() as connection:
        where = own_results(connection, server, viewer, submission)
        row = find(connection, viewer, t.submission, submission)
    title = row["system"] or "The submission"
    return report_page(request, viewer, f"/submissions/{submission}", submission, title, *where)


@router.get("/submissions/{submission}/report/pages/{number}")
def submission_report_part(
    submission: str, number: str, server: ThisServer, viewer: SignedIn
) -> Response:
    """The page of one task in that report; the report's script loads it."""
    with server.database.reading() as connection:
        where = own_results(connection, server, viewer, submission)
    return report_part(server, number, *where)


@router.post("/submissions/{submission}/{act}")
async def act_posted(
    submission: str, act: str, server: ThisServer, viewer: SignedIn, form: Posted
) -> Response:
    """Chooses, cancels or withdraws a submission, unless it has changed since it was shown."""
    if act == "choose":
        choice = Choice(submission=submission)
        await run_in_threadpool(choose_submission, field(form, "board", 80), choice, viewer, server)
        return redirect(server, f"/submissions/{submission}")
    acts = {"cancel": cancel_submission, "withdraw": withdraw_submission}
    if act not in acts:
        raise Problem("not-found")
    etag = field(form, "etag", 100)
    await run_in_threadpool(acts[act], submission, viewer, server, etag)
    return redirect(server, f"/submissions/{submission}")
