"""The values in columns of the tables: states, kinds, lanes, levels; each is declared once."""

from __future__ import annotations

from enum import StrEnum


class AccountKind(StrEnum):
    """What an account represents."""

    PERSON = "person"
    TEAM = "team"
    SERVICE = "service"


class AccountState(StrEnum):
    """Whether an account may act."""

    PENDING = "pending"
    ACTIVE = "active"
    BLOCKED = "blocked"


class Role(StrEnum):
    """Roles of an account on the whole server; a suite names its own authors and reviewers."""

    OPERATOR = "operator"
    AUTHOR = "author"


class SuiteRole(StrEnum):
    """Roles that a suite gives to accounts."""

    AUTHOR = "author"
    REVIEWER = "reviewer"


class Scope(StrEnum):
    """Rights of a token, which never exceed those of its account."""

    SUBMIT = "submit"
    READ = "read"
    DISPUTE = "dispute"
    REVIEW = "review"
    AUTHOR = "author"
    OPERATE = "operate"


class Visibility(StrEnum):
    """Who sees a suite or a board: everybody, anyone who knows its name, or only its members."""

    PUBLIC = "public"
    LISTED = "listed"
    HIDDEN = "hidden"


class Level(StrEnum):
    """Feedback levels of a split, from the least to the most."""

    NONE = "none"
    SCORE = "score"
    TASKS = "tasks"
    VERDICTS = "verdicts"
    CELLS = "cells"

    def shows(self, level: Level) -> bool:
        """Whether this level shows at least as much as another one."""
        order = list(Level)
        return order.index(self) >= order.index(level)


class PhaseState(StrEnum):
    """States of a phase."""

    PLANNED = "planned"
    OPEN = "open"
    CLOSED = "closed"
    PUBLISHED = "published"


class Kind(StrEnum):
    """What a submission contains."""

    PROGRAMS = "programs"
    ANSWERS = "answers"
    WORKBOOKS = "workbooks"


class JudgingState(StrEnum):
    """States of a judging."""

    QUEUED = "queued"
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"
    CANCELLED = "cancelled"


FINISHED = (JudgingState.DONE, JudgingState.FAILED, JudgingState.CANCELLED)
"""Final states of a judging."""


class Lane(StrEnum):
    """Lanes of the queue, in the order in which they are served."""

    INTERACTIVE = "interactive"
    NORMAL = "normal"
    REJUDGE = "rejudge"


class RejudgingState(StrEnum):
    """States of a rejudging."""

    DRAFT = "draft"
    RUNNING = "running"
    READY = "ready"
    APPLIED = "applied"
    CANCELLED = "cancelled"


class DisputeState(StrEnum):
    """States of a dispute."""

    OPEN = "open"
    SUSPECT = "suspect"
    ACCEPTED = "accepted"
    REJECTED = "rejected"
    WITHDRAWN = "withdrawn"
    CORRECTED = "corrected"
