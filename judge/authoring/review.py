"""Computes the state of a task from the log of its changes and reviews. Pure.

A task is a draft until somebody other than its authors has checked it, and it is accepted after a
third person has checked it too. A review applies to the content that the reviewer saw: it no longer
counts after the task has changed, and counts again if the change is undone.
"""

from __future__ import annotations

import enum
import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from judge.errors import UsageError


class State(enum.StrEnum):
    """The state of a task."""

    DRAFT = "draft"
    CHECKED = "checked"
    """One reviewer, who is not an author, has checked it."""
    ACCEPTED = "accepted"
    """A second reviewer has checked it too."""


@dataclass(frozen=True, slots=True)
class ReviewStatus:
    """The review status of a task.

    Attributes:
        state: draft, checked or accepted.
        authors: who wrote or changed it, in order; empty if the log names nobody.
        reviewers: up to two people whose reviews count, in order.
        changed_since: whether it has changed since it was reviewed.
        note: the remark made when it was last sent back to draft; None after the next check.
    """

    state: State
    authors: tuple[str, ...] = ()
    reviewers: tuple[str, ...] = ()
    changed_since: bool = False
    note: str | None = None


def review_status_of(events: Iterable[Mapping[str, Any]], digest: str) -> ReviewStatus:
    """Computes the review status of a task.

    Args:
        events: the log's records about the task, in order.
        digest: the digest of the task's current content.
    """
    authors: dict[str, None] = {}
    reviewers: list[str] = []
    reviewed = False
    note: str | None = None
    for event in events:
        by = str(event["by"])
        if event["event"] != "review":
            authors.setdefault(by)
        elif event["state"] == State.DRAFT:
            reviewers.clear()
            reviewed, note = False, str(event.get("note") or "") or None
        else:
            reviewed = True
            if event["digest"] != digest:
                continue
            note = None
            if event["state"] == State.CHECKED:
                reviewers = [by]
            elif reviewers:
                reviewers = [reviewers[0], by]
    state = (State.DRAFT, State.CHECKED, State.ACCEPTED)[len(reviewers)]
    return ReviewStatus(state, tuple(authors), tuple(reviewers), reviewed and not reviewers, note)


def check_review(status: ReviewStatus, state: State, by: str) -> None:
    """Checks that a person may put a task into a state.

    Raises:
        UsageError: the person wrote the task, has already checked it, or leaves out a step.
    """
    if state is State.DRAFT:
        return
    if any(_same(by, author) for author in status.authors):
        raise UsageError(
            f"{by} wrote or changed this task and cannot review it",
            hint="Two other people review a task: one checks it, another accepts it.",
        )
    if state is State.CHECKED:
        if status.state is State.ACCEPTED:
            raise UsageError("the task is already accepted; send it back to draft first")
        return
    if status.state is State.DRAFT:
        changed = "it has changed since it was checked" if status.changed_since else ""
        raise UsageError(
            f"the task has not been checked yet{f': {changed}' if changed else ''}",
            hint="The first reviewer sets --state checked, the second one --state accepted.",
        )
    if _same(by, status.reviewers[0]):
        raise UsageError(f"{by} checked this task; somebody else has to accept it")


def _same(one: str, other: str) -> bool:
    return " ".join(one.split()).casefold() == " ".join(other.split()).casefold()


def content_digest(
    record: Mapping[str, Any], notes: Mapping[str, Any], files: Mapping[str, str]
) -> str:
    """SHA-256 of everything that a reviewer checks.

    Args:
        record: the task's record in the definition of the suite.
        notes: the fields that the definition cannot hold.
        files: file names and the SHA-256 of their bytes.
    """
    document = [dict(record), dict(notes), dict(files)]
    text = json.dumps(document, sort_keys=True, ensure_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()
