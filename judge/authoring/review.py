"""In which state a task is, from what people did to it. Pure.

A task is a draft until somebody other than its authors has checked it, and accepted once a third
person has. A review applies to the content that the reviewer saw: when the task changes, it no
longer counts, and it counts again when the change is undone.
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
    """How far a task has come."""

    DRAFT = "draft"
    CHECKED = "checked"
    """One reviewer, who is not an author, agrees."""
    ACCEPTED = "accepted"
    """A second reviewer agrees as well."""


@dataclass(frozen=True, slots=True)
class ReviewStatus:
    """Where a task stands.

    Attributes:
        state: draft, checked or accepted.
        authors: who wrote or changed it, in order; empty if nobody is on record.
        reviewers: whose reviews count, in order: none, one or two.
        changed_since: it had been reviewed, and has changed since.
        note: the remark with which it was last sent back to draft, until it is checked again.
    """

    state: State
    authors: tuple[str, ...] = ()
    reviewers: tuple[str, ...] = ()
    changed_since: bool = False
    note: str | None = None


def review_status_of(events: Iterable[Mapping[str, Any]], digest: str) -> ReviewStatus:
    """Where a task stands.

    Args:
        events: what was recorded of the task, in order.
        digest: the digest of the task's present content.
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
    """Checks that somebody may bring a task into a state.

    Raises:
        UsageError: they wrote the task, they have checked it already, or a step is left out.
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
    """SHA-256 of everything that a reviewer looks at.

    Args:
        record: the task's record in the definition of the suite.
        notes: the fields outside it.
        files: file names and the SHA-256 of their bytes.
    """
    document = [dict(record), dict(notes), dict(files)]
    text = json.dumps(document, sort_keys=True, ensure_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()
