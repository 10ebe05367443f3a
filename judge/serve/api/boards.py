"""``/v1/boards``: boards, their versions, evidence by task, comparisons; and signed results."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict
from typing import Annotated, Any

import sqlalchemy as sa
from fastapi import APIRouter, Header, Path, Query, Request, Response
from pydantic import BaseModel, ConfigDict, Field
from starlette.responses import JSONResponse

from judge.authoring.platforms import EVALUATION_FRAMEWORK
from judge.files.yaml_documents import dump_yaml
from judge.report.build import DEFAULT_METHOD
from judge.report.paired import compare_pair
from judge.serve.access.rights import Viewer, find, in_lists, require, visible_to
from judge.serve.api.limits import matches, rate
from judge.serve.api.results import SubmissionId, event_stream
from judge.serve.boards.disclosure import is_bounded, shown_rows
from judge.serve.boards.feedback import slot
from judge.serve.boards.results import result_of
from judge.serve.boards.signing import Signature, envelope_of
from judge.serve.boards.versions import (
    Setting,
    boards_of,
    entries_of,
    setting_of,
    suite_part,
    ties_among,
    version_shown,
)
from judge.serve.context import Caller, Server, ThisServer
from judge.serve.problems import Problem, not_found
from judge.serve.store import tables as t
from judge.serve.store.database import all_rows, first_row
from judge.serve.store.tables import JudgingState, Level, Scope, Visibility

router = APIRouter(tags=["boards"])


class YamlResponse(Response):
    """A document in YAML."""

    media_type = "application/yaml"


BoardName = Annotated[str, Path(max_length=80)]
VersionNumber = Annotated[int, Path(ge=1, le=2**31 - 1)]
RESULT_TYPE = "application/vnd.sheetjudge.result+json"
_ENVELOPE: dict[int | str, dict[str, Any]] = {
    200: {"content": {RESULT_TYPE: {"schema": {"type": "object"}}}}
}


@router.get("/boards", dependencies=[rate("read")])
def list_boards(caller: Caller, server: ThisServer) -> dict[str, Any]:
    """The boards that are public or belong to the caller's own suites."""
    with server.database.reading() as connection:
        rows = all_rows(
            connection,
            sa.select(
                t.board.c.id,
                t.board.c.name,
                t.board.c.title,
                t.board.c.metric,
                t.suite.c.name.label("suite"),
                t.phase.c.name.label("phase"),
            )
            .join(t.suite, t.suite.c.id == t.board.c.suite)
            .join(t.phase, t.phase.c.id == t.board.c.phase)
            .where(in_lists(caller, t.board))
            .order_by(t.board.c.name),
        )
    return {"boards": rows}


@router.get(
    "/boards/{board}",
    dependencies=[rate("read")],
    responses={304: {"description": "It has not changed."}},
)
def get_board(
    board: BoardName,
    caller: Caller,
    server: ThisServer,
    if_none_match: Annotated[str | None, Header(max_length=200)] = None,
) -> Response:
    """The current version of a board, or the one at which it is frozen."""
    with server.database.reading() as connection:
        row = find(connection, caller, t.board, board)
        version = shown_version(connection, caller, row)
    tag = f'"{version["number"]}-{version["sha256"][:16]}"'
    cached = "public, max-age=10" if caller.account is None else "private, max-age=10"
    headers = {"ETag": tag, "Cache-Control": cached, "Vary": "Authorization, Cookie"}
    if matches(if_none_match, tag):
        return Response(status_code=304, headers=headers)
    return JSONResponse(version_view(version), headers=headers)


@router.get("/boards/{board}/versions", dependencies=[rate("read")])
def list_versions(board: BoardName, caller: Caller, server: ThisServer) -> dict[str, Any]:
    """The last 200 versions of a board, newest first."""
    with server.database.reading() as connection:
        row = find(connection, caller, t.board, board)
        last = shown_version(connection, caller, row)
        rows = all_rows(
            connection,
            sa.select(
                t.board_version.c.number,
                t.board_version.c.created,
                t.board_version.c.why,
                t.board_version.c.sha256,
                t.board_version.c.previous,
            )
            .where(t.board_version.c.board == row["id"])
            .where(t.board_version.c.number <= last["number"])
            .order_by(t.board_version.c.number.desc())
            .limit(200),
        )
    level = json.loads(last["document"])["level"]
    return {"versions": [{**version, "created": _created(version, level)} for version in rows]}


@router.get("/boards/{board}/versions/{number}", dependencies=[rate("read")])
def get_version(
    board: BoardName, number: VersionNumber, caller: Caller, server: ThisServer
) -> dict[str, Any]:
    """A version of a board, under an address that never changes."""
    with server.database.reading() as connection:
        row = find(connection, caller, t.board, board)
        return version_view(shown_version(connection, caller, row, number))


@router.get(
    "/boards/{board}/versions/{number}/result", dependencies=[rate("read")], responses=_ENVELOPE
)
def get_signed_version(
    board: BoardName, number: VersionNumber, caller: Caller, server: ThisServer
) -> Response:
    """A version of a board as a signed envelope, which `judge verify-result` checks."""
    with server.database.reading() as connection:
        row = find(connection, caller, t.board, board)
        version = shown_version(connection, caller, row, number)
    signature = Signature(version["key_id"], version["signature"])
    return _attachment(
        envelope_of(version["document"].encode(), signature), f"{row['name']}-{number}.json"
    )


@router.get("/boards/{board}/entries/{entry}/tasks", dependencies=[rate("read")])
def get_entry_tasks(
    board: BoardName,
    entry: Annotated[str, Path(max_length=40)],
    caller: Caller,
    server: ThisServer,
) -> dict[str, Any]:
    """The evidence for an entry, task by task, limited by the feedback level."""
    with server.database.reading() as connection:
        row = find(connection, caller, t.board, board)
        return entry_tasks(connection, caller, row, entry)


@router.get("/boards/{board}/compare", dependencies=[rate("read")])
def get_comparison(
    board: BoardName,
    caller: Caller,
    server: ThisServer,
    a: Annotated[str, Query(max_length=40)],
    b: Annotated[str, Query(max_length=40)],
) -> dict[str, Any]:
    """A comparison of two entries, with the numbers of `judge compare-runs`."""
    with server.database.reading() as connection:
        row = find(connection, caller, t.board, board)
        return comparison(connection, caller, row, a, b)


class Choice(BaseModel):
    """The choice of the submission that a board shows."""

    model_config = ConfigDict(extra="forbid")

    submission: Annotated[str, Field(max_length=40)]


@router.post("/boards/{board}:choose", status_code=204, dependencies=[rate("change")])
def choose_submission(board: BoardName, choice: Choice, caller: Caller, server: ThisServer) -> None:
    """Chooses the submission of the caller's team that a board with the rule `chosen` shows."""
    require(caller, Scope.SUBMIT)
    with server.database.writing(caller.actor()) as transaction:
        row = find(transaction.connection, caller, t.board, board)
        submission = find(transaction.connection, caller, t.submission, choice.submission)
        if submission["account"] not in caller.teams:
            raise Problem("forbidden", "Only the team that submitted it may do this.")
        if row["rule"] != "chosen" or submission["phase"] != row["phase"]:
            raise Problem("conflict", "The board shows no chosen submissions of this phase.")
        boards_of(server).choose(transaction, row, submission)


@router.get(
    "/boards/{board}/entries/{entry}/eval-results",
    dependencies=[rate("read")],
    response_class=YamlResponse,
    responses={200: {"content": {"application/yaml": {"schema": {"type": "array"}}}}},
)
def get_eval_results(
    board: BoardName,
    entry: Annotated[str, Path(max_length=40)],
    caller: Caller,
    server: ThisServer,
    dataset: Annotated[str, Query(max_length=200, pattern=r"^[A-Za-z0-9._-]+/[A-Za-z0-9._-]+$")],
) -> Response:
    """`.eval_results/sheetjudge.yaml` of a model on Hugging Face, from an entry of a board.

    `dataset` is the id of the data set there; `judge dataset export` writes its `eval.yaml`.
    """
    with server.database.reading() as connection:
        row = find(connection, caller, t.board, board)
        setting, document = entry_of(connection, caller, row, entry)
    figures = {"soft_score": "soft", "hard_score": "hard"}
    # A source needs an address that others can open.
    url = f"{server.options.public_url}/entries/{entry}"
    source = {"source": {"url": url, "name": row["title"]}} if server.options.public_url else {}
    results = []
    for task, name in figures.items():
        estimate = document.get("scores", {}).get(name)
        if estimate is None and name == row["metric"]:
            estimate = document.get("shown_score")
        if estimate is None or estimate["value"] is None:
            continue
        low, high = (100 * (estimate[end] or 0.0) for end in ("low", "high"))
        results.append(
            {
                "dataset": {"id": dataset, "task_id": task},
                "value": round(100 * estimate["value"], 2),
                "date": document["date"],
                **source,
                "evaluation_framework": EVALUATION_FRAMEWORK,
                "notes": f"conditions sha256:{setting.board['conditions']}; "
                f"95 % interval {low:.1f} to {high:.1f}",
            }
        )
    if not results:
        raise Problem("forbidden", f"The feedback level of this phase is {setting.level}.")
    return YamlResponse(dump_yaml(results))


@router.get(
    "/boards/{board}/events",
    dependencies=[rate("read")],
    responses={200: {"content": {"text/event-stream": {"schema": {"type": "string"}}}}},
)
def stream_board(
    request: Request,
    board: BoardName,
    caller: Caller,
    server: ThisServer,
    last_event_id: Annotated[str | None, Header(max_length=20)] = None,
) -> Response:
    """The new versions of a board as server-sent events."""
    with server.database.reading() as connection:
        row = find(connection, caller, t.board, board)
        shown_version(connection, caller, row)

    def is_shown(viewer: Viewer, event: Mapping[str, Any]) -> bool:
        """Whether an event is shown; events after the board was frozen are not."""
        if event["kind"] != "board.changed":
            return True
        with server.database.reading() as connection:
            last = shown_version(connection, viewer, find(connection, viewer, t.board, row["id"]))
        return int(event["after"]) <= int(last["number"])

    about = t.board, row["id"]
    return event_stream(request, server, caller, about, last_event_id, is_shown=is_shown)


@router.get("/submissions/{submission}/result", dependencies=[rate("read")], responses=_ENVELOPE)
def get_result(submission: SubmissionId, caller: Caller, server: ThisServer) -> Response:
    """The signed result of one's own submission, or of a submission that a board shows."""
    with server.database.reading() as connection:
        row = _with_result(connection, caller, submission)
        data = signed_result(server, connection, row)
    return _attachment(data, f"{row['id']}.json")


def _attachment(data: bytes, name: str) -> Response:
    headers = {"Content-Disposition": f'attachment; filename="{name}"'}
    return Response(data, media_type=RESULT_TYPE, headers=headers)


# -- shared by routes and pages -------------------------------------------------------------------


def shown_version(
    connection: sa.Connection, viewer: Viewer, board: Mapping[str, Any], number: int | None = None
) -> dict[str, Any]:
    """A version of a board that the viewer may see.

    Raises:
        Problem: 404, the version does not exist, or the viewer may not see it.
    """
    author = viewer.authors(board["suite"])
    version = version_shown(connection, board, author=author, number=number)
    if version is None:
        raise not_found()
    return version


def version_view(version: Mapping[str, Any]) -> dict[str, Any]:
    """A version: the document that was signed, its hash, and when it was made."""
    document = json.loads(version["document"])
    return {
        **document,
        "sha256": version["sha256"],
        "created": _created(version, document["level"]),
    }


def _created(version: Mapping[str, Any], level: str) -> str:
    """When a version was made; rounded down if the exact time would reveal when a judging ended."""
    return str(
        version["created"] if Level(level).shows(Level.VERDICTS) else slot(version["created"])
    )


def entry_of(
    connection: sa.Connection, viewer: Viewer, board: Mapping[str, Any], submission: str
) -> tuple[Setting, dict[str, Any]]:
    """An entry of a board's current version, and the setting of the board.

    Raises:
        Problem: 404, the version that the viewer sees has no such entry.
    """
    document = json.loads(shown_version(connection, viewer, board)["document"])
    entry = next((e for e in document["entries"] if e["submission"] == submission), None)
    if entry is None:
        raise not_found()
    return setting_of(connection, board), entry


def level_of(viewer: Viewer, setting: Setting) -> Level:
    """The level at which the viewer sees an entry: the board's; authors see at least verdicts."""
    if viewer.authors(setting.suite["id"]):
        return max(Level.VERDICTS, setting.level, key=list(Level).index)
    return setting.level


def entry_tasks(
    connection: sa.Connection, viewer: Viewer, board: Mapping[str, Any], submission: str
) -> dict[str, Any]:
    """The tasks of an entry: soft and hard score, and verdicts if the level shows them.

    Raises:
        Problem: 404 if there is no such entry, 403 if the level shows no tasks.
    """
    setting, entry = entry_of(connection, viewer, board, submission)
    level = level_of(viewer, setting)
    if not level.shows(Level.TASKS):
        raise Problem("forbidden", f"The feedback level of this phase is {level}.")
    bounded = not setting.published and not viewer.authors(setting.suite["id"])
    rows = shown_rows(connection, entry["judging"], bounded=bounded)
    tasks: dict[str, list[t.VerdictRow]] = {task: [] for task in setting.tasks}
    for row in rows:
        tasks.setdefault(row["task"], []).append(row)
    return {
        "entry": entry,
        "level": level,
        "tasks": [_task(name, tasks[name], level) for name in tasks],
    }


def _task(name: str, rows: list[t.VerdictRow], level: Level) -> dict[str, Any]:
    accepted = sum(row["verdict"] == "AC" for row in rows)
    view: dict[str, Any] = {"task": name, "solved": bool(rows) and accepted == len(rows)}
    if level.shows(Level.VERDICTS):
        view["cases"] = [
            {"sample": row["sample"], "case": row["case"], "verdict": row["verdict"]}
            for row in rows
        ]
    return view


def comparison(
    connection: sa.Connection, viewer: Viewer, board: Mapping[str, Any], a: str, b: str
) -> dict[str, Any]:
    """Compares two entries of a board, ``a`` and ``b``.

    Raises:
        Problem: 404 if one does not exist, 403 if the level shows no tasks, 422 if both are the
            same.
    """
    setting, _ = entry_of(connection, viewer, board, a)
    entry_of(connection, viewer, board, b)
    if a == b:
        raise Problem("invalid", "`a` and `b` name the same entry.")
    if not setting.level.shows(Level.TASKS):
        raise Problem("forbidden", f"The feedback level of this phase is {setting.level}.")
    entries = entries_of(connection, setting)
    indices = {entry.row["submission"]: number for number, entry in enumerate(entries)}
    if a not in indices or b not in indices:
        raise not_found()
    one, two = entries[indices[a]].scored, entries[indices[b]].scored
    assert one is not None
    assert two is not None
    common = sorted(one.means.soft.keys() & two.means.soft.keys())
    if not common:
        raise Problem("conflict", "The entries have no scored task in common.")
    pair = compare_pair(a, b, common, one.means, two.means, DEFAULT_METHOD)
    ties = ties_among(entries, setting)
    assert ties is not None
    key = (min(indices[a], indices[b]), max(indices[a], indices[b]))
    document = asdict(pair)
    # Holm's adjustment covers all pairs of the board, for the score that ranks.
    document.pop("p_hard_holm")
    document.pop("p_soft_holm")
    if not setting.level.shows(Level.VERDICTS):
        document = {name: value for name, value in document.items() if "soft" not in name}
    return {
        "metric": setting.metric,
        "pairs": ties.smallest.pairs,
        "p_holm": ties.p_holm[key],
        "pair": document,
    }


def _with_result(connection: sa.Connection, viewer: Viewer, submission: str) -> dict[str, Any]:
    row = first_row(
        connection,
        sa.select(t.submission).where(
            t.submission.c.id == submission, visible_to(viewer, t.submission)
        ),
    )
    if row is not None:
        return row
    row = first_row(connection, sa.select(t.submission).where(t.submission.c.id == submission))
    if row is None:
        raise not_found()
    boards = all_rows(
        connection,
        sa.select(t.board).where(t.board.c.phase == row["phase"], visible_to(viewer, t.board)),
    )
    for board in boards:
        document = json.loads(shown_version(connection, viewer, board)["document"])
        if any(entry["submission"] == submission for entry in document["entries"]):
            return row
    raise not_found()


def signed_result(
    server: Server, connection: sa.Connection, submission: Mapping[str, Any]
) -> bytes:
    """The signed envelope of a submission's result, the same for everyone who may see it.

    Raises:
        Problem: 409, it has not been judged.
    """
    judging = first_row(
        connection, sa.select(t.judging).where(t.judging.c.id == submission["current_judging"])
    )
    if judging is None or judging["state"] != JudgingState.DONE:
        raise Problem("conflict", "The submission has not been judged.")
    setting = setting_of(
        connection,
        {
            "suite": _suite_of(connection, submission["phase"]),
            "phase": submission["phase"],
            "conditions": judging["conditions"],
        },
    )
    level = setting.signed_level
    account = connection.scalar(
        sa.select(t.account.c.name).where(t.account.c.id == submission["account"])
    )
    finished = judging["finished"] if level.shows(Level.VERDICTS) else slot(judging["finished"])
    head = {
        "server": server.options.public_url,
        "submission": {
            "id": submission["id"],
            "account": account,
            "created": submission["created"],
            **{name: submission[name] for name in ("sha256", "kind", "system", "model", "setting")},
        },
        "judging": judging["id"],
        "judged": finished,
        "suite": suite_part(setting),
        "phase": setting.phase["name"],
        "split": {"name": setting.phase["split"]},
        "conditions": {"digest": judging["conditions"], "document": setting.conditions},
        "boards": _boards_before(connection, submission, judging),
    }
    rows = shown_rows(connection, judging["id"], bounded=False)
    shown = shown_rows(connection, judging["id"], bounded=is_bounded(setting.suite, setting.phase))
    secret = hashlib.sha256(server.folder.secret("commitments.key")).digest()
    body, openings = result_of(head, rows, shown, setting.tasks, level, secret)
    data, signature = boards_of(server).sign(body, finished)
    return envelope_of(data, signature, openings if setting.published else None)


def _suite_of(connection: sa.Connection, phase: str) -> str:
    return str(connection.scalar(sa.select(t.phase.c.suite).where(t.phase.c.id == phase)))


def _boards_before(
    connection: sa.Connection, submission: Mapping[str, Any], judging: Mapping[str, Any]
) -> list[dict[str, Any]]:
    """For each board that is not hidden, the last version that does not depend on this judging."""
    boards = []
    for board in all_rows(
        connection,
        sa.select(t.board)
        .where(t.board.c.phase == submission["phase"], t.board.c.visibility != Visibility.HIDDEN)
        .order_by(t.board.c.name),
    ):
        version = first_row(
            connection,
            sa.select(t.board_version.c.number, t.board_version.c.sha256)
            .where(t.board_version.c.board == board["id"])
            .where(t.board_version.c.created <= judging["finished"])
            .where(~t.board_version.c.document.contains(judging["id"], autoescape=True))
            .order_by(t.board_version.c.number.desc()),
        )
        if version is not None:
            boards.append({"name": board["name"], **version})
    return boards
