"""Boards, their versions, comparisons of two entries, and entries with their evidence."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import sqlalchemy as sa
from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from judge.compare.cells.render import has_values, shown
from judge.core.verdict import Verdict
from judge.grading.store import CASES_FILE, SUBMISSIONS_FILE, RunDirectory
from judge.report.pairing import FIGURES
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
from judge.serve.context import ThisServer, server_of
from judge.serve.pages.frame import Looker, go, show
from judge.serve.problems import Problem, not_found
from judge.serve.store import tables as t
from judge.serve.store.database import all_rows
from judge.serve.store.folder import DataFolder
from judge.serve.store.words import Level

router = APIRouter()

SORTS = ("rank", "system", "account", "soft", "hard", "cost", "date")
MAX_CELLS = 200
VERDICT_WORDS = {verdict.value: verdict.description for verdict in Verdict}


@router.get("/boards/{board}")
def board_page(
    request: Request,
    board: BoardName,
    server: ThisServer,
    looker: Looker,
    q: Annotated[str, Query(max_length=100)] = "",
    sort: Annotated[str, Query(max_length=10)] = "rank",
) -> Response:
    """The current version of a board."""
    return _page(request, board, server, looker, None, q, sort)


@router.get("/boards/{board}/versions/{number}")
def version_page(
    request: Request,
    board: BoardName,
    number: VersionNumber,
    server: ThisServer,
    looker: Looker,
    q: Annotated[str, Query(max_length=100)] = "",
    sort: Annotated[str, Query(max_length=10)] = "rank",
) -> Response:
    """One version of a board."""
    return _page(request, board, server, looker, number, q, sort)


def _page(
    request: Request,
    board: str,
    server: ThisServer,
    looker: Viewer,
    number: int | None,
    q: str,
    sort: str,
) -> Response:
    with server.database.reading() as connection:
        row = find(connection, looker, t.board, board)
        version = shown_version(connection, looker, row, number)
        last = shown_version(connection, looker, row)
        before = None
        if version["number"] > 1:
            before = shown_version(connection, looker, row, version["number"] - 1)
    document = version_view(version)
    entries = [entry for entry in document["entries"] if _holds(entry, q)]
    entries.sort(key=lambda entry: _sort_key(entry, sort))
    return show(
        request,
        looker,
        "board.html",
        document["board"]["title"],
        board=row,
        doc=document,
        entries=entries,
        changes=[] if before is None else _changes(json.loads(before["document"]), document),
        is_last=version["number"] == last["number"],
        versions=list_versions(board, looker, server)["versions"][:50],
        q=q,
        sort=sort,
        sorts=SORTS,
        figures={
            name: heading
            for name, heading in FIGURES.items()
            if any(name in entry.get("figures", {}) for entry in document["entries"])
        },
        shows_tasks=Level(document["level"]).shows(Level.TASKS),
    )


def _holds(entry: Mapping[str, Any], q: str) -> bool:
    texts = (str(entry[name]) for name in ("system", "model", "setting", "account"))
    return all(word in " ".join(texts).lower() for word in q.lower().split())


def _sort_key(entry: Mapping[str, Any], sort: str) -> tuple[Any, ...]:
    """By a column; what an entry does not state comes last. The document is sorted by score."""
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
    """How a version differs from the one before, in sentences."""
    old = {entry["account"]: entry for entry in before["entries"]}
    new = {entry["account"]: entry for entry in after["entries"]}
    said = [f"{name} joined." for name in new if name not in old]
    said += [f"{name} left." for name in old if name not in new]
    for name in new.keys() & old.keys():
        one, two = old[name], new[name]
        if one["submission"] != two["submission"]:
            said.append(f"{name} shows another submission.")
        elif one["judging"] != two["judging"]:
            said.append(f"{name} was judged again.")
        if one["ranks"] != two["ranks"]:
            said.append(f"{name}: rank {_ranks(one['ranks'])}, now {_ranks(two['ranks'])}.")
    if before["conditions"]["digest"] != after["conditions"]["digest"]:
        said.append("The conditions changed.")
    return said[:100]


def _ranks(ranks: list[int]) -> str:
    low, high = ranks
    return str(low) if low == high else f"{low} to {high}"


@router.get("/boards/{board}/compare")
def compare_page(
    request: Request,
    board: BoardName,
    server: ThisServer,
    looker: Looker,
    x: Annotated[list[str] | None, Query(max_length=40)] = None,
) -> Response:
    """Two entries compared."""
    if x is None or len(x) != 2:
        raise Problem("invalid", "Mark two entries of the board, and compare them then.")
    with server.database.reading() as connection:
        row = find(connection, looker, t.board, board)
        _, one = entry_of(connection, looker, row, x[0])
        _, two = entry_of(connection, looker, row, x[1])
        document = comparison(connection, looker, row, x[0], x[1])
    return show(
        request,
        looker,
        "compare.html",
        "Two entries",
        board=row,
        one=one,
        two=two,
        doc=document,
    )


# -- entries --------------------------------------------------------------------------------------


@router.get("/entries/{entry}")
def entry_page(request: Request, entry: str, server: ThisServer, looker: Looker) -> Response:
    """An entry of the first board that shows it, with its tasks as far as the level allows."""
    with server.database.reading() as connection:
        board = _board_of(connection, looker, entry)
        setting, document = entry_of(connection, looker, board, entry)
        level = level_of(looker, setting)
        tasks = None
        if level.shows(Level.TASKS):
            tasks = entry_tasks(connection, looker, board, entry)["tasks"]
    return show(
        request,
        looker,
        "entry.html",
        document["system"] or document["account"],
        board=board,
        entry=document,
        level=level.value,
        tasks=tasks,
        words=VERDICT_WORDS,
        shows_verdicts=level.shows(Level.VERDICTS),
    )


@router.get("/entries/{entry}/tasks/{task}")
def entry_task_page(
    request: Request, entry: str, task: str, server: ThisServer, looker: Looker
) -> Response:
    """A task of an entry: its verdicts, and program and cells where the level shows them."""
    with server.database.reading() as connection:
        board = _board_of(connection, looker, entry)
        setting, document = entry_of(connection, looker, board, entry)
        level = level_of(looker, setting)
        tasks = entry_tasks(connection, looker, board, entry)["tasks"]
    mine = next((one for one in tasks if one["task"] == task), None)
    if mine is None or not level.shows(Level.VERDICTS):
        raise not_found()
    crumbs = [
        (f"/boards/{board['name']}", board["title"]),
        (f"/entries/{entry}", document["system"] or document["account"]),
    ]
    about = {"submission": entry, "judging": document["judging"], "suite": setting.suite["name"]}
    return evidence_page(request, looker, about, mine, level, crumbs)


def evidence_page(
    request: Request,
    viewer: Viewer,
    about: Mapping[str, str],
    task: Mapping[str, Any],
    level: Level,
    crumbs: Sequence[tuple[str, str]],
) -> Response:
    """The verdicts of a task of a submission, with program and cells where the level shows them.

    Args:
        request: which asks for it.
        viewer: who may see the verdicts.
        about: ``submission``, ``judging`` and ``suite``.
        task: its ``task`` and ``cases``.
        level: of feedback.
        crumbs: addresses and titles of the pages above.
    """
    details: dict[tuple[int, int], dict[str, Any]] = {}
    programs: list[tuple[int, str]] = []
    if level.shows(Level.CELLS):
        folder = server_of(request).folder
        details = details_of(folder, about["judging"], task["task"])
        programs = _programs(folder, about["judging"], task["task"])
    return show(
        request,
        viewer,
        "evidence.html",
        f"Task {task['task']}",
        crumbs=crumbs,
        about=about,
        task=task,
        details=details,
        programs=programs,
        words=VERDICT_WORDS,
    )


@router.get("/results/{entry}")
def result_file(entry: str, server: ThisServer) -> Response:
    """Sends the browser to the signed result."""
    if not entry.replace("_", "").isalnum():
        raise not_found()
    return go(server, f"/v1/submissions/{entry}/result")


def _board_of(connection: sa.Connection, viewer: Viewer, entry: str) -> dict[str, Any]:
    """The board that shows an entry."""
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


def details_of(
    folder: DataFolder, judging: str, task: str
) -> dict[tuple[int, int], dict[str, Any]]:
    """Cause and differing cells of the cases of a task, from the records."""
    details = {}
    with RunDirectory(folder.results(judging)) as store:
        for record in store.read_records(CASES_FILE):
            case: Any = record
            if str(case["task"]) != task:
                continue
            differences = case.get("comparison", {}).get("differences", ())
            cells = [
                (
                    f"{one['sheet']}!{one['cell']}",
                    shown(one["expected"], width=80),
                    shown(one["actual"], width=80),
                )
                for one in differences[:MAX_CELLS]
                if one["cell"] and has_values(one)
            ]
            details[int(case["sample"]), int(case["case"])] = {
                "cause": case.get("cause", ""),
                "cells": cells,
                "more": max(0, (case["comparison"].get("differing_cells") or 0) - len(cells))
                if "comparison" in case
                else 0,
            }
    return details


def _programs(folder: DataFolder, judging: str, task: str) -> list[tuple[int, str]]:
    """The programs, or typed answers, of a task, by sample."""
    programs = []
    with RunDirectory(folder.results(judging)) as store:
        for record in store.read_records(SUBMISSIONS_FILE):
            one: Any = record
            if str(one.get("id")) == task:
                text = one.get("solution") or one.get("answer") or one.get("response") or ""
                if text:
                    programs.append((int(one.get("sample", 0)), str(text)[:100_000]))
    return programs
