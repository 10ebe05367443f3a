"""Pages of boards, their versions, comparisons of two entries, and entries with their evidence."""

from __future__ import annotations

import json
import pathlib
from collections.abc import Mapping, Sequence
from typing import Annotated, Any
from urllib.parse import quote

import sqlalchemy as sa
from fastapi import APIRouter, Query, Request
from starlette.responses import HTMLResponse, JSONResponse, Response

from judge.core.replies.extract import recorded_program
from judge.errors import JudgeError
from judge.report.html.page import highlight
from judge.report.html.render import PageLinks, render_served, task_anchor
from judge.report.html.runs import comparison_parts, numbers_of
from judge.report.load import LoadedSubmission
from judge.report.pairing import FIGURES, MAX_TASKS, MatrixCase, MatrixRow, wrong_cells
from judge.report.view import KeptRuns, OpenRun
from judge.serve.access.rights import Viewer, find, visible_to
from judge.serve.api.boards import (
    BoardName,
    VersionNumber,
    comparison,
    entry_of,
    entry_tasks,
    level_of,
    list_versions,
    shown_version,
    version_view,
)
from judge.serve.api.results import results_of
from judge.serve.context import Server, ThisServer, server_of
from judge.serve.pages.frame import PRIVATE, PageViewer, prefix_of, redirect, render
from judge.serve.problems import Problem, not_found
from judge.serve.store import tables as t
from judge.serve.store.database import all_rows
from judge.serve.store.tables import Level

router = APIRouter()

SORTS = ("rank", "system", "account", "soft", "hard", "cost", "date")
MAX_CELLS = 200  # wrong cells shown for a case


@router.get("/boards/{board}")
def board_page(
    request: Request,
    board: BoardName,
    server: ThisServer,
    page_viewer: PageViewer,
    q: Annotated[str, Query(max_length=100)] = "",
    sort: Annotated[str, Query(max_length=10)] = "rank",
) -> Response:
    """The current version of a board."""
    return _page(request, board, server, page_viewer, None, q, sort)


@router.get("/boards/{board}/versions/{number}")
def version_page(
    request: Request,
    board: BoardName,
    number: VersionNumber,
    server: ThisServer,
    page_viewer: PageViewer,
    q: Annotated[str, Query(max_length=100)] = "",
    sort: Annotated[str, Query(max_length=10)] = "rank",
) -> Response:
    """One version of a board."""
    return _page(request, board, server, page_viewer, number, q, sort)


def _page(
    request: Request,
    board: str,
    server: ThisServer,
    page_viewer: Viewer,
    number: int | None,
    q: str,
    sort: str,
) -> Response:
    with server.database.reading() as connection:
        row = find(connection, page_viewer, t.board, board)
        version = shown_version(connection, page_viewer, row, number)
        last = shown_version(connection, page_viewer, row)
        before = None
        if version["number"] > 1:
            before = shown_version(connection, page_viewer, row, version["number"] - 1)
    document = version_view(version)
    entries = [
        (index, entry) for index, entry in enumerate(document["entries"]) if _holds(entry, q)
    ]
    entries.sort(key=lambda placed: _sort_key(placed[1], sort))
    return render(
        request,
        page_viewer,
        "board.html",
        document["board"]["title"],
        board=row,
        doc=document,
        entries=entries,
        changes=[] if before is None else _changes(json.loads(before["document"]), document),
        is_last=version["number"] == last["number"],
        versions=list_versions(board, page_viewer, server)["versions"][:50],
        q=q,
        sort=sort,
        sorts=SORTS,
        figures={
            name: heading
            for name, heading in FIGURES.items()
            if any(name in entry.get("figures", {}) for entry in document["entries"])
        },
        shows_tasks=Level(document["level"]).shows(Level.TASKS),
        **numbers_of(document),
    )


def _holds(entry: Mapping[str, Any], q: str) -> bool:
    texts = (str(entry[name]) for name in ("system", "model", "setting", "account"))
    return all(word in " ".join(texts).lower() for word in q.lower().split())


def _sort_key(entry: Mapping[str, Any], sort: str) -> tuple[Any, ...]:
    """Sorts entries by a column; entries without a value come last, ties stay sorted by score."""
    if sort in {"system", "account"}:
        return (str(entry[sort] or "\uffff").lower(),)
    if sort in {"soft", "hard"}:
        value = entry.get("scores", {}).get(sort, {}).get("value")
        return (-(value if value is not None else -1),)
    if sort == "cost":
        return (entry["cost_usd"] is None, entry["cost_usd"] or 0)
    if sort == "date":
        return (tuple(-ord(letter) for letter in entry["date"]),)
    return ()


def _changes(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[str]:
    """Sentences that describe how a version differs from the one before."""
    old = {entry["account"]: entry for entry in before["entries"]}
    new = {entry["account"]: entry for entry in after["entries"]}
    changes = [f"{name} joined." for name in new if name not in old]
    changes += [f"{name} left." for name in old if name not in new]
    metric, again = after["board"]["metric"], 0
    for name in [name for name in new if name in old]:
        one, two = old[name], new[name]
        if one["submission"] != two["submission"]:
            changes.append(f"{name} shows another submission.")
        again += one["submission"] == two["submission"] and one["judging"] != two["judging"]
        scores = [_score_text(entry, metric) for entry in (one, two)]
        if scores[0] != scores[1]:
            changes.append(f"{name}: {metric} score {scores[0]}, now {scores[1]}.")
        if one["ranks"] != two["ranks"]:
            changes.append(f"{name}: rank {_ranks(one['ranks'])}, now {_ranks(two['ranks'])}.")
    if again:
        changes.append(f"{again} {'entry was' if again == 1 else 'entries were'} judged again.")
    if before["conditions"]["digest"] != after["conditions"]["digest"]:
        changes.append("The conditions changed.")
    return changes[:100]


def _score_text(entry: Mapping[str, Any], metric: str) -> str:
    """The score by which a board ranks, as its table shows it."""
    score = entry.get("scores", {}).get(metric) or entry.get("shown_score") or {}
    value = score.get("value")
    return "none" if value is None else f"{100 * value:.2f}"


def _ranks(ranks: list[int]) -> str:
    low, high = ranks
    return str(low) if low == high else f"{low} to {high}"


@router.get("/boards/{board}/compare")
def compare_page(
    request: Request,
    board: BoardName,
    server: ThisServer,
    page_viewer: PageViewer,
    x: Annotated[list[str] | None, Query(max_length=40)] = None,
) -> Response:
    """Two entries compared."""
    if x is None or len(x) != 2:
        raise Problem("invalid", "First mark two entries of the board, then compare them.")
    with server.database.reading() as connection:
        row = find(connection, page_viewer, t.board, board)
        setting, one = entry_of(connection, page_viewer, row, x[0])
        _, two = entry_of(connection, page_viewer, row, x[1])
        document = comparison(connection, page_viewer, row, x[1], x[0])  # one against two
        level = level_of(page_viewer, setting)
        matrix: list[MatrixRow] = []
        if level.shows(Level.VERDICTS):
            tasks = [entry_tasks(connection, page_viewer, row, entry)["tasks"] for entry in x]
            matrix = _matrix(tasks)
    prefix = prefix_of(server)

    def evidence_url(entry: str, task: str, sample: int = 0, case: int | None = None) -> str:
        anchor = "" if case is None else f"#case-{case}-{sample}"
        return f"{prefix}/entries/{entry}/tasks/{quote(task, safe='')}{anchor}"

    labels = {entry["submission"]: entry["system"] or entry["account"] for entry in (one, two)}
    shown = {**document, "pairs": [document["pair"]], "pairs_of_board": document["pairs"]}
    return render(
        request,
        page_viewer,
        "compare.html",
        "Two entries",
        board=row,
        entries=(one, two),
        doc=shown,
        matrix=matrix,
        runs=[{"name": entry} for entry in x],
        **comparison_parts(shown, labels, evidence_url if matrix else None),
    )


def _matrix(tasks: Sequence[Sequence[Mapping[str, Any]]]) -> list[MatrixRow]:
    """The verdicts of two entries on each task, disagreements first."""
    rows = []
    for one, two in zip(*tasks, strict=True):
        of_entries = [
            {(case["sample"], case["case"]): case["verdict"] for case in entry["cases"]}
            for entry in (one, two)
        ]
        cases = tuple(
            MatrixCase(*key, tuple(of_entry.get(key) for of_entry in of_entries))
            for key in sorted({key for of_entry in of_entries for key in of_entry})
        )
        disagree = any(len(set(case.verdicts)) > 1 for case in cases)
        rows.append(MatrixRow(one["task"], disagree, cases))
    return sorted(rows, key=lambda row: not row.disagree)[:MAX_TASKS]


# -- entries --------------------------------------------------------------------------------------


@router.get("/entries/{entry}")
def entry_page(
    request: Request, entry: str, server: ThisServer, page_viewer: PageViewer
) -> Response:
    """An entry, from the first board that shows it; with its tasks if the level shows them."""
    with server.database.reading() as connection:
        board = _board_of(connection, page_viewer, entry)
        setting, document = entry_of(connection, page_viewer, board, entry)
        level = level_of(page_viewer, setting)
        tasks = None
        if level.shows(Level.TASKS):
            tasks = entry_tasks(connection, page_viewer, board, entry)["tasks"]
    return render(
        request,
        page_viewer,
        "entry.html",
        document["system"] or document["account"],
        board=board,
        entry=document,
        level=level.value,
        tasks=tasks,
        shows_verdicts=level.shows(Level.VERDICTS),
        shows_cells=level.shows(Level.CELLS),
        **numbers_of({"entry": document}),
    )


@router.get("/entries/{entry}/report")
def entry_report_page(
    request: Request, entry: str, server: ThisServer, page_viewer: PageViewer
) -> Response:
    """The report of an entry; it has the cells if the feedback level shows them."""
    document, *where = _results(server, page_viewer, entry)
    title = document["system"] or document["account"]
    return report_page(request, page_viewer, f"/entries/{entry}", entry, title, *where)


@router.get("/entries/{entry}/report/pages/{number}")
def entry_report_part(
    entry: str, number: str, server: ThisServer, page_viewer: PageViewer
) -> Response:
    """The page of one task in the report of an entry; the report's script loads it."""
    _, *where = _results(server, page_viewer, entry)
    return report_part(server, number, *where)


def _results(
    server: Server, page_viewer: Viewer, entry: str
) -> tuple[Mapping[str, Any], pathlib.Path, pathlib.Path]:
    """An entry, its results directory and its suite, for a viewer who may see cells."""
    with server.database.reading() as connection:
        board = _board_of(connection, page_viewer, entry)
        setting, document = entry_of(connection, page_viewer, board, entry)
        level = level_of(page_viewer, setting)
        return document, *results_of(connection, server, document["judging"], level)


def report_page(
    request: Request,
    viewer: Viewer,
    path: str,
    submission: str,
    title: str,
    results: pathlib.Path,
    suite: pathlib.Path,
) -> Response:
    """The page of ``judge view`` about a results directory.

    Args:
        request: the request.
        viewer: the viewer, who may see its cells.
        path: the path of the page of the entry or submission.
        submission: the submission with these results.
        title: the title of that page.
        results: the results directory.
        suite: the suite of the results.
    """
    server = server_of(request)
    prefix = prefix_of(server)
    disputes = f"{prefix}/disputes/new?submission={submission}"
    served = PageLinks(
        pages_url=f"{prefix}{path}/report/pages/",
        home_url=f"{prefix}/",
        up_url=prefix + path,
        title=title,
        linked=f"{prefix}/static/report",
        disputes_url=disputes if viewer.account else "",
    )
    opened = _opened(server, results, suite)
    return HTMLResponse(render_served(opened.data, opened.document, served), headers=PRIVATE)


def report_part(
    server: Server, number: str, results: pathlib.Path, suite: pathlib.Path
) -> Response:
    """The page of one task in a results directory's report; the report's script loads it.

    Raises:
        Problem: 404.
    """
    page = _opened(server, results, suite).page(number)
    if page is None:
        raise not_found()
    return JSONResponse(page, headers=PRIVATE)


def _opened(server: Server, results: pathlib.Path, suite: pathlib.Path) -> OpenRun:
    try:
        return _kept_runs(server).open(results, suite)
    except JudgeError as error:  # its files are missing
        raise not_found() from error


def _kept_runs(server: Server) -> KeptRuns:
    kept: KeptRuns = server.shared.setdefault("runs", KeptRuns())
    return kept


@router.get("/entries/{entry}/tasks/{task}")
def entry_task_page(
    request: Request, entry: str, task: str, server: ThisServer, page_viewer: PageViewer
) -> Response:
    """A task of an entry: its verdicts, and its program and cells if the level shows them."""
    with server.database.reading() as connection:
        board = _board_of(connection, page_viewer, entry)
        setting, document = entry_of(connection, page_viewer, board, entry)
        level = level_of(page_viewer, setting)
        tasks = entry_tasks(connection, page_viewer, board, entry)["tasks"]
    mine = next((one for one in tasks if one["task"] == task), None)
    if mine is None or not level.shows(Level.VERDICTS):
        raise not_found()
    crumbs = [
        (f"/boards/{board['name']}", board["title"]),
        (f"/entries/{entry}", document["system"] or document["account"]),
    ]
    about = {"submission": entry, "judging": document["judging"], "suite": setting.suite["name"]}
    about["report"] = f"/entries/{entry}/report"
    return evidence_page(request, page_viewer, about, mine, level, crumbs)


def evidence_page(
    request: Request,
    viewer: Viewer,
    about: Mapping[str, str],
    task: Mapping[str, Any],
    level: Level,
    crumbs: Sequence[tuple[str, str]],
) -> Response:
    """The verdicts of a task of a submission, with program and cells if the level shows them.

    Args:
        request: the request.
        viewer: the viewer, who may see the verdicts.
        about: ``submission``, ``judging``, ``suite`` and ``report`` (the path of its report).
        task: the task: ``task`` (its id) and ``cases``.
        level: the feedback level.
        crumbs: addresses and titles of the parent pages.
    """
    evidence: Evidence = {}
    if level.shows(Level.CELLS):
        evidence = evidence_of(server_of(request), about["judging"], task["task"])
    return render(
        request,
        viewer,
        "evidence.html",
        f"Task {task['task']}",
        crumbs=crumbs,
        about=about,
        task=task,
        evidence=evidence,
        anchor=task_anchor,
    )


@router.get("/results/{entry}")
def result_file(entry: str, server: ThisServer) -> Response:
    """Redirects the browser to the signed result."""
    if not entry.replace("_", "").isalnum():
        raise not_found()
    return redirect(server, f"/v1/submissions/{entry}/result")


def _board_of(connection: sa.Connection, viewer: Viewer, entry: str) -> dict[str, Any]:
    """The first board that shows an entry."""
    phase = connection.scalar(sa.select(t.submission.c.phase).where(t.submission.c.id == entry))
    for board in all_rows(
        connection,
        sa.select(t.board)
        .where(t.board.c.phase == phase, visible_to(viewer, t.board))
        .order_by(t.board.c.name),
    ):
        document = json.loads(shown_version(connection, viewer, board)["document"])
        if any(row["submission"] == entry for row in document["entries"]):
            return board
    raise not_found()


Evidence = dict[int, dict[str, Any]]
"""Sample -> ``code`` (coloured pieces, or None), ``reply``, and ``cases`` by number.

A case has ``cause``, ``cells`` (see :class:`judge.report.pairing.MatrixCell`) and ``more``.
"""


def evidence_of(server: Server, judging: str, task: str) -> Evidence:
    """What a judging recorded about a task, by sample; empty if its files are missing."""
    try:
        with server.database.reading() as connection:
            where = results_of(connection, server, judging, Level.CELLS)
        run = _kept_runs(server).load(*where)
    except (JudgeError, Problem):
        return {}
    return {one.sample: _evidence(one) for one in run.submissions if one.task_id == task}


def _evidence(submission: LoadedSubmission) -> dict[str, Any]:
    cases = {}
    for number, result in submission.results.items():
        cells, more = wrong_cells([result], MAX_CELLS)
        cases[number] = {"cause": result.cause, "cells": cells, "more": more}
    record: Mapping[str, Any] = submission.record or {}
    program = recorded_program(record)
    reply = record.get("answer") or record.get("response")
    return {
        "code": None if program is None else highlight(program),
        "reply": None if reply is None else str(reply)[:100_000],
        "cases": cases,
    }
