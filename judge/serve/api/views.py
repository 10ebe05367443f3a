"""What is shown of submissions: one place, by feedback level."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa

from judge.core.verdict import Verdict
from judge.serve.access.rights import Viewer, level_for, phase_state
from judge.serve.boards.results import scored
from judge.serve.boards.telling import shown_rows
from judge.serve.intake.submitting import place_in_queue
from judge.serve.store import tables as t
from judge.serve.store.database import first_row
from judge.serve.store.words import FINISHED, JudgingState, Level

_SLOT_MINUTES = 5
_DECLARED = ("system", "model", "setting", "url", "cost_usd", "tokens", "cutoff", "note")


def seen(
    connection: sa.Connection, viewer: Viewer, submission: dict[str, Any]
) -> tuple[dict[str, Any], Level, dict[str, Any]]:
    """The current judging of a submission, the level at which it is shown, and the phase."""
    phase = first_row(connection, sa.select(t.phase).where(t.phase.c.id == submission["phase"]))
    assert phase is not None
    suite = first_row(connection, sa.select(t.suite).where(t.suite.c.id == phase["suite"]))
    assert suite is not None
    now = str(connection.scalar(sa.select(t.Now())))
    level = level_for(viewer, suite, phase, phase_state(phase, now))
    judging = first_row(
        connection, sa.select(t.judging).where(t.judging.c.id == submission["current_judging"])
    )
    assert judging is not None, "each submission has a judging"
    return judging, level, phase


def submission_view(
    connection: sa.Connection, viewer: Viewer, submission: dict[str, Any]
) -> dict[str, Any]:
    """A submission as somebody sees it."""
    judging, level, phase = seen(connection, viewer, submission)
    state = JudgingState(judging["state"])
    detailed = level.shows(Level.VERDICTS)
    done = judging["done"] if detailed or state is JudgingState.DONE else None
    view: dict[str, Any] = {
        "id": submission["id"],
        "state": state.value,
        "version": submission["version"],
        "withdrawn": submission["withdrawn"] is not None,
        "phase": phase["name"],
        "account": connection.scalar(
            sa.select(t.account.c.name).where(t.account.c.id == submission["account"])
        ),
        "kind": submission["kind"],
        "sha256": submission["sha256"],
        "created": submission["created"],
        "level": level.value,
        "cases": {"done": done, "all": judging["cases"]},
        "judging": {
            "id": judging["id"],
            "conditions": f"sha256:{judging['conditions']}",
            "lost_leases": judging["lost"],
            "finished": _time(judging["finished"], exact=detailed),
            "cancelling": bool(judging["cancel"]) and state is JudgingState.RUNNING,
            "reason": judging["reason"] if state is JudgingState.FAILED else None,
        },
        "scores": shown_scores(connection, submission, judging, level),
        **{name: submission[name] for name in _DECLARED},
        "links": {
            "self": f"/v1/submissions/{submission['id']}",
            "events": f"/v1/submissions/{submission['id']}/events",
            "verdicts": f"/v1/submissions/{submission['id']}/verdicts",
            "report": f"/v1/submissions/{submission['id']}/report",
            "result": f"/v1/submissions/{submission['id']}/result",
        },
    }
    if state is JudgingState.QUEUED:
        view.update(place_in_queue(connection, judging["id"]))
    return view


def shown_scores(
    connection: sa.Connection,
    submission: dict[str, Any],
    judging: dict[str, Any],
    level: Level,
) -> dict[str, Any] | None:
    """The scores of a judging as far as a level tells them.

    At ``score`` the ladder decides: the score if it was better by a point, otherwise that it was
    not.
    """
    if judging["state"] != JudgingState.DONE or level is Level.NONE:
        return None
    scores: dict[str, Any] = judging["scores"]
    if level.shows(Level.VERDICTS):
        return scores
    if level is Level.TASKS:
        rows = shown_rows(connection, judging["id"], bounded=True)
        hard = scored(rows, ()).means.hard.values()
        return {"hard": sum(sorted(hard)) / len(hard) if hard else None, "tasks": len(hard)}
    row = first_row(
        connection,
        sa.select(t.shown_score).where(
            t.shown_score.c.account == submission["account"],
            t.shown_score.c.phase == submission["phase"],
            t.shown_score.c.conditions == judging["conditions"],
        ),
    )
    better = row is not None and row["submission"] == submission["id"]
    return {"better": better, "shown": None if row is None or not better else row["score"]}


def verdicts_view(
    connection: sa.Connection, judging: dict[str, Any], level: Level, *, bounded: bool
) -> list[dict[str, Any]]:
    """The verdicts of a finished judging as far as a level tells them; none below ``tasks``.

    Args:
        connection: a connection.
        judging: its row.
        level: the level of feedback.
        bounded: whether the budget of each gold is kept to.
    """
    if judging["state"] != JudgingState.DONE or not level.shows(Level.TASKS):
        return []
    shown = ("task", "sample", "case", "verdict")
    rows = [
        {name: row[name] for name in shown}
        for row in shown_rows(connection, judging["id"], bounded=bounded)
    ]
    if level.shows(Level.VERDICTS):
        return rows
    accepted: dict[tuple[str, int], bool] = {}
    for row in rows:
        key = row["task"], row["sample"]
        accepted[key] = accepted.get(key, True) and row["verdict"] == Verdict.AC
    return [
        {"task": task, "sample": sample, "accepted": right}
        for (task, sample), right in accepted.items()
    ]


def is_finished(view: dict[str, Any]) -> bool:
    """Whether a view is of a submission whose judging has ended."""
    return view["state"] in FINISHED


def _time(text: str | None, *, exact: bool) -> str | None:
    """A time; where times tell about hidden inputs, the end of its slot of five minutes."""
    if text is None or exact:
        return text
    minute = int(text[14:16])
    return f"{text[:14]}{minute - minute % _SLOT_MINUTES:02}:00Z"
