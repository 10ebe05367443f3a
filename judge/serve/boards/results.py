"""Signed results of submissions: what they say, what they withhold, and what follows from it.

What the feedback level withholds is in the document as salted SHA-256 commitments, one for each
case and one for the scores: the server is bound, and nothing is shown. When the phase is published,
the salts are given next to the envelope, and everything follows from what was signed before.
"""

from __future__ import annotations

import hashlib
import hmac
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, TypedDict

from judge.core.score import score_verdicts, scores_by_task
from judge.core.statistics import mean_interval
from judge.core.verdict import Verdict
from judge.report.build import DEFAULT_METHOD
from judge.report.paired import TaskMeans
from judge.serve.boards.signing import canonical
from judge.serve.store.words import Level

SCHEMA_VERSION = 1
RESULT, BOARD = "submission", "board"
"""Values of ``type`` in a signed document."""


class CaseRow(TypedDict):
    """A verdict as the table ``verdict`` has it, without the judging."""

    task: str
    sample: int
    case: int
    verdict: str
    run_key: str | None
    comparison_key: str | None
    output_sha256: str | None
    earned: float | None


@dataclass(frozen=True, slots=True)
class Scored:
    """Scores of a submission on a split.

    Attributes:
        means: of each task, several samples averaged: 0 for a task without an answer, none for one
            whose cases are all set aside.
        answered: tasks with an answer.
        samples: the most samples that a task has.
        set_aside: cases that are not scored, by verdict.
    """

    means: TaskMeans
    answered: int
    samples: int
    set_aside: Mapping[str, int]

    def document(self, tasks: int) -> dict[str, Any]:
        """The scores with their intervals, as signed documents have them.

        Args:
            tasks: of the split.
        """
        return {
            "soft": interval_of(self.means.soft),
            "hard": interval_of(self.means.hard),
            "answered": self.answered,
            "tasks": tasks,
            "samples": self.samples,
            "set_aside": dict(sorted(self.set_aside.items())),
            "method": asdict(DEFAULT_METHOD),
        }


def scored(rows: Iterable[Mapping[str, Any]], tasks: Sequence[str] | int) -> Scored:
    """Scores from verdicts, as ``judge score`` gives them; tasks without an answer count as 0.

    Args:
        rows: with task, sample, case and verdict.
        tasks: the tasks of the split, or how many there are.
    """
    verdicts: dict[tuple[str, int], list[Verdict]] = {}
    earned: dict[tuple[str, int], list[float]] = {}
    for row in sorted(rows, key=lambda row: (row["task"], row["sample"], row["case"])):
        key, code = (row["task"], row["sample"]), Verdict(row["verdict"])
        verdicts.setdefault(key, []).append(code)
        share = 1.0 if code is Verdict.AC else row.get("earned") or 0.0
        earned.setdefault(key, []).append(share)
    by_task = scores_by_task(
        score_verdicts(*key, codes, earned[key]) for key, codes in verdicts.items()
    )
    means = TaskMeans.of(by_task)
    if isinstance(tasks, int):
        missing = [f"\0{place}" for place in range(tasks - len(by_task))]
    else:
        missing = [task for task in tasks if task not in by_task]
    zeros = dict.fromkeys(missing, 0.0)
    aside: dict[str, int] = {}
    for codes in verdicts.values():
        for code in codes:
            if not code.is_scored:
                aside[code.value] = aside.get(code.value, 0) + 1
    return Scored(
        means=TaskMeans({**means.soft, **zeros}, {**means.hard, **zeros}),
        answered=len(by_task),
        samples=max((len(scores.samples) for scores in by_task.values()), default=0),
        set_aside=aside,
    )


def interval_of(means: Mapping[str, float]) -> dict[str, Any]:
    """A mean score with its interval, from 0 to 1."""
    # In one order, and to the digits that say something: equal results have equal bytes.
    estimate = asdict(mean_interval(sorted(means.values())))
    return {
        name: round(value, 12) if isinstance(value, float) else value
        for name, value in estimate.items()
    }


def shown_score(score: float, tasks: int) -> dict[str, Any]:
    """A score that was rounded, with the interval that follows from it alone."""
    estimate = asdict(mean_interval([1.0] * round(score * tasks) + [0.0] * _rest(score, tasks)))
    return {**estimate, "value": round(score, 12)}


def _rest(score: float, tasks: int) -> int:
    return max(0, tasks - round(score * tasks))


@dataclass(frozen=True, slots=True)
class Sealed:
    """Cases and scores behind commitments.

    Attributes:
        commitments: for the signed document.
        openings: salts and values, for later.
    """

    commitments: dict[str, Any]
    openings: dict[str, Any]


def sealed(rows: Sequence[CaseRow], scores: Mapping[str, Any], secret: bytes, of: str) -> Sealed:
    """Commits to cases and scores.

    Args:
        rows: all cases.
        scores: those that follow from them.
        secret: of the server, from which the salts are made.
        of: id of the judging.
    """
    values: list[object] = [scores, *_ordered(rows)]
    salts = [
        hmac.new(secret, f"{of}/{place}".encode(), hashlib.sha256).hexdigest()
        for place in range(len(values))
    ]
    hashes = [_commitment(salt, value) for salt, value in zip(salts, values, strict=True)]
    pairs = [{"salt": salt, "value": value} for salt, value in zip(salts, values, strict=True)]
    return Sealed(
        {"scores": hashes[0], "cases": hashes[1:]}, {"scores": pairs[0], "cases": pairs[1:]}
    )


def _ordered(rows: Iterable[CaseRow]) -> list[CaseRow]:
    return sorted(rows, key=lambda row: (row["task"], row["sample"], row["case"]))


def _commitment(salt: str, value: object) -> str:
    return hashlib.sha256(bytes.fromhex(salt) + canonical(value)).hexdigest()


def opens(openings: Mapping[str, Any], commitments: Mapping[str, Any]) -> bool:
    """Whether openings are those of the commitments, all of them and in their order."""
    try:
        pairs = [openings["scores"], *openings["cases"]]
        hashes = [commitments["scores"], *commitments["cases"]]
        return len(pairs) == len(hashes) and all(
            set(pair) == {"salt", "value"} and _commitment(pair["salt"], pair["value"]) == digest
            for pair, digest in zip(pairs, hashes, strict=True)
        )
    except (KeyError, TypeError, ValueError):
        return False


def result_of(
    head: Mapping[str, Any],
    rows: Sequence[CaseRow],
    tasks: Sequence[str],
    level: Level,
    secret: bytes,
) -> tuple[dict[str, Any], dict[str, Any] | None]:
    """The body of a result, and the openings of what it withholds, if it withholds something.

    Args:
        head: server, submission, suite, phase and conditions.
        rows: all cases of the judging.
        tasks: of the split.
        level: the feedback level of the split, which decides what is signed in clear. It must not
            be the level of the one who asks: a result has one form.
        secret: of the server.
    """
    scores = scored(rows, tasks).document(len(tasks))
    body = {
        **head,
        "schema_version": SCHEMA_VERSION,
        "type": RESULT,
        "level": level,
        "split": {**head["split"], "tasks": len(tasks)},
    }
    if level.shows(Level.VERDICTS):
        return {**body, "scores": scores, "cases": _ordered(rows)}, None
    closed = sealed(rows, scores, secret, str(head["judging"]))
    body["commitments"] = closed.commitments
    if level is Level.TASKS:
        solved = scored(rows, tasks)
        body["scores"] = scores
        body["solved"] = sorted(task for task, score in solved.means.hard.items() if score == 1.0)
    return body, closed.openings


def follows(scores: Mapping[str, Any], rows: Sequence[Mapping[str, Any]]) -> bool:
    """Whether scores are those that follow from cases."""
    try:
        again = scored(rows, int(scores["tasks"])).document(int(scores["tasks"]))
        return _close(again, scores)
    except (KeyError, TypeError, ValueError):
        return False


def _close(one: object, two: object) -> bool:
    """Equal but for the last digits, in which two machines may differ."""
    if isinstance(one, Mapping) and isinstance(two, Mapping):
        return one.keys() == two.keys() and all(_close(one[name], two[name]) for name in one)
    if isinstance(one, float) and isinstance(two, float | int):
        return math.isclose(one, two, abs_tol=1e-9)
    return one == two
