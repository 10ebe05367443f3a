"""Suites on the server: revisions by content, splits, phases, authors and reviewers."""

from __future__ import annotations

import contextlib
import datetime as dt
import hashlib
import re
import shutil
from collections import OrderedDict
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import Any

import sqlalchemy as sa

from judge import api
from judge.console import print_label
from judge.errors import SandboxError, StoreError, SuiteError, UsageError
from judge.files.writing import folder_beside, naming_what_is_written, sync_folder, write_whole
from judge.grading.verify import CaseCheck
from judge.serve.access.rights import HIDDEN_SPLIT
from judge.serve.context import Server
from judge.serve.queue.conditions import (
    CORRECTIONS_FILE,
    SUITE_FOLDER,
    checked_options,
    corrections_path,
    ensure_conditions,
    environment_of,
    options_of,
    suite_path,
)
from judge.serve.store import tables as t
from judge.serve.store.database import Transaction, all_rows, first_row, row_of
from judge.serve.store.folder import DataFolder
from judge.serve.store.tables import Level, PhaseState, SuiteRole, Visibility, new_id
from judge.suites.corrections import corrected_suite
from judge.suites.folders import regular_files
from judge.suites.suite import Suite, load_suite

PUBLIC_SPLIT = "public"
_NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,79}", re.ASCII)
_MAX_LOADED = 4  # suites that stay in memory


@dataclass(frozen=True, slots=True)
class NewSuite:
    """A suite to be added, or a new revision of a suite.

    Attributes:
        name: used in addresses: small letters, digits, and ``. _ -``.
        source: a path or name that :func:`judge.load_suite` accepts.
        corrections: a file of corrections of known faults, or None.
        title: shown on pages; if empty, the name is shown.
        description: shown on pages.
        owner: id of the account that is its author.
        visibility: who can see it.
        hidden: ids of the tasks of the hidden split; all other tasks are public.
        levels: feedback level by name of split, if it is not the default.
        options: how it is judged: the options of ``judge score`` that decide verdicts.
        note: why there is a new revision.
    """

    name: str
    source: str
    owner: str
    corrections: Path | None = None
    title: str = ""
    description: str = ""
    visibility: Visibility = Visibility.PUBLIC
    hidden: tuple[str, ...] = ()
    levels: Mapping[str, Level] | None = None
    options: Mapping[str, Any] | None = None
    note: str = ""


@dataclass(frozen=True, slots=True)
class NewPhase:
    """A phase to add.

    Attributes:
        name: unique on the server, in the form of a suite's name.
        suite: name of the suite.
        split: name of the split that is judged.
        opens: time in UTC, ``2026-01-31T00:00:00Z``; None for now.
        closes: time in UTC; None for never.
        per_day: how many submissions a team may make on one day in UTC.
        in_total: how many submissions a team may make in the whole phase.
        options: options of judging that override those of the suite.
    """

    name: str
    suite: str
    split: str = PUBLIC_SPLIT
    opens: str | None = None
    closes: str | None = None
    per_day: int = 5
    in_total: int = 100
    options: Mapping[str, Any] | None = None


class LoadedSuites:
    """Loads the suites of revisions, and keeps the last few. Safe to use from several threads.

    Args:
        folder: the data folder.
    """

    def __init__(self, folder: DataFolder) -> None:
        self._folder = folder
        self._lock = Lock()
        self._suites: OrderedDict[str, Suite] = OrderedDict()

    def suite(self, revision: dict[str, Any]) -> Suite:
        """The suite of a revision, with its corrections.

        Raises:
            JudgeError: its files are missing or broken.
        """
        with self._lock:
            suite = self._suites.pop(revision["id"], None)
            if suite is None:
                path = suite_path(self._folder, revision)
                corrections = corrections_path(self._folder, revision)
                suite = _loaded(path, corrections)
            self._suites[revision["id"]] = suite
            while len(self._suites) > _MAX_LOADED:
                self._suites.popitem(last=False)
        return suite


def add_revision(server: Server, transaction: Transaction, new: NewSuite) -> dict[str, Any]:
    """Adds a suite, or a new revision of a suite; content that exists already adds no revision.

    The files are in the data folder before the transaction is committed.

    Returns:
        The revision's row.

    Raises:
        UsageError: a name, a task id or an option is not valid.
        SuiteError: the suite is missing or broken.
        StoreError: the files cannot be copied.
    """
    check_name(new.name, "suite")
    suite = _loaded(new.source, new.corrections)
    unknown = [task for task in new.hidden if task not in suite]
    if unknown:
        raise UsageError(f"the suite has no task {unknown[0]!r}, which --hidden names")
    folder, corrections = _copy(server.folder, suite, new.corrections)
    row = _suite_row(transaction, new)
    existing = transaction.one(
        sa.select(t.revision).where(t.revision.c.suite == row["id"], t.revision.c.folder == folder)
    )
    if existing is not None:
        return existing
    number = transaction.execute(
        sa.select(sa.func.coalesce(sa.func.max(t.revision.c.number), 0) + 1).where(
            t.revision.c.suite == row["id"]
        )
    ).scalar_one()
    revision = new_id("rev")
    transaction.execute(
        sa.insert(t.revision).values(
            id=revision,
            suite=row["id"],
            number=number,
            digest=suite.digest,
            corrections=corrections,
            folder=folder,
            cases=suite.case_count,
            published=True,
            note=new.note,
        )
    )
    _add_splits(transaction, revision, suite, new.hidden)
    if row["current_revision"] is None:
        transaction.execute(
            sa.update(t.suite).where(t.suite.c.id == row["id"]).values(current_revision=revision)
        )
    transaction.event("revision.added", revision, after=str(number), detail={"suite": row["id"]})
    added = transaction.one(sa.select(t.revision).where(t.revision.c.id == revision))
    assert added is not None
    return added


def check_time(text: str, *, or_day: bool = False) -> None:
    """Checks that ``text`` is a time in UTC, such as ``2026-01-31T23:59:59Z``.

    Args:
        text: what was given.
        or_day: whether it may also be a day, such as ``2026-01-31``.

    Raises:
        UsageError: it is not.
    """
    for form in ("%Y-%m-%dT%H:%M:%SZ", *(["%Y-%m-%d"] if or_day else [])):
        with contextlib.suppress(ValueError):
            if dt.datetime.strptime(text, form).strftime(form) == text:  # noqa: DTZ007  UTC
                return
    day = ", or as 2026-01-31" if or_day else ""
    raise UsageError(f"{text!r} is not a time", hint=f"Write it as 2026-01-31T00:00:00Z{day}.")


def add_phase(transaction: Transaction, new: NewPhase) -> str:
    """Adds a phase.

    Returns:
        Its id.

    Raises:
        UsageError: the suite or the split does not exist, or the name is taken.
    """
    check_name(new.name, "phase")
    suite = suite_named(transaction.connection, new.suite)
    if transaction.one(sa.select(t.phase).where(t.phase.c.name == new.name)) is not None:
        raise UsageError(f"there is a phase {new.name!r} already")
    split_of(transaction.connection, suite["current_revision"], new.split)
    for time in (new.opens, new.closes):
        if time is not None:
            check_time(time)
    if new.per_day < 1 or new.in_total < 1:
        raise UsageError("a phase has to accept at least one submission per day and in total")
    phase = new_id("pha")
    transaction.execute(
        sa.insert(t.phase).values(
            id=phase,
            name=new.name,
            suite=suite["id"],
            split=new.split,
            opens=new.opens,
            closes=new.closes,
            per_day=new.per_day,
            in_total=new.in_total,
            options=checked_options(dict(new.options or {})),
        )
    )
    transaction.event("phase.added", phase, detail={"suite": suite["id"]})
    return phase


def set_phase_state(transaction: Transaction, name: str, state: PhaseState | None) -> None:
    """Opens, closes or publishes a phase by hand. With None, its opening and closing times decide.

    Raises:
        UsageError: the phase does not exist.
    """
    phase = transaction.one(sa.select(t.phase).where(t.phase.c.name == name))
    if phase is None:
        raise UsageError(f"there is no phase {name!r}")
    transaction.execute(sa.update(t.phase).where(t.phase.c.id == phase["id"]).values(state=state))
    transaction.event(
        f"phase.{state or 'by-time'}", phase["id"], before=phase["state"], after=state
    )


def name_role(transaction: Transaction, suite: str, account: str, role: SuiteRole) -> None:
    """Names an account as an author or a reviewer of a suite."""
    row = suite_named(transaction.connection, suite)
    values = {"suite": row["id"], "account": account, "role": role}
    same = [getattr(t.suite_role.c, name) == value for name, value in values.items()]
    if transaction.one(sa.select(t.suite_role).where(*same)) is None:
        transaction.execute(sa.insert(t.suite_role).values(**values))
        detail = {"account": account, "role": role}
        transaction.event("suite.role-named", row["id"], detail=detail)


def set_reviewers(transaction: Transaction, name: str, reviewers: int) -> None:
    """Sets how many reviewers, one or two, have to agree about a dispute of a suite."""
    row = suite_named(transaction.connection, name)
    transaction.execute(
        sa.update(t.suite).where(t.suite.c.id == row["id"]).values(two_reviewers=reviewers > 1)
    )
    transaction.event("suite.reviewers-set", row["id"], after=str(reviewers))


def suite_named(connection: sa.Connection, name: str) -> dict[str, Any]:
    """Finds a suite by its name or id, for commands of the administrator.

    Raises:
        UsageError: there is no such suite.
    """
    row = first_row(
        connection, sa.select(t.suite).where((t.suite.c.name == name) | (t.suite.c.id == name))
    )
    if row is None:
        raise UsageError(f"there is no suite {name!r}", hint="judge serve admin suite list")
    return row


def split_of(connection: sa.Connection, revision: str, name: str) -> dict[str, Any]:
    """The row of a split of a revision.

    Raises:
        UsageError: there is no such split.
    """
    row = first_row(
        connection,
        sa.select(t.split).where(t.split.c.revision == revision, t.split.c.name == name),
    )
    if row is None:
        raise UsageError(f"the suite has no split {name!r}")
    return row


def revision_of(connection: sa.Connection, revision: str) -> dict[str, Any]:
    """A revision's row."""
    return row_of(connection, t.revision, revision)


_SHARED_SUITE = (
    sa.select(t.suite).where(t.suite.c.id == sa.bindparam("suite")).with_for_update(read=True)
)


def current_conditions(transaction: Transaction, phase: dict[str, Any]) -> str | None:
    """The digest of the current conditions of a phase; None if no dispatcher has started yet."""
    environment = environment_of(transaction.connection)
    if environment is None:
        return None
    # Applying a rejudging changes this row, so the lock puts a submission before or after it.
    suite = dict(transaction.execute(_SHARED_SUITE, {"suite": phase["suite"]}).mappings().one())
    revision = revision_of(transaction.connection, suite["current_revision"])
    return ensure_conditions(transaction, revision, options_of(suite, phase), environment)


def revisions_of(connection: sa.Connection, suite: str) -> list[dict[str, Any]]:
    """The revisions of a suite, oldest first."""
    return all_rows(
        connection,
        sa.select(t.revision).where(t.revision.c.suite == suite).order_by(t.revision.c.number),
    )


def check_name(name: str, kind: str) -> None:
    """Checks that a name can be used in addresses.

    Raises:
        UsageError: it cannot.
    """
    if _NAME.fullmatch(name) is None:
        raise UsageError(
            f"{name[:100]!r} cannot be the name of a {kind}",
            hint="Use 1 to 80 small letters, digits and . _ -, with a letter or digit first.",
        )


def _loaded(source: str | Path, corrections: Path | None) -> Suite:
    suite = load_suite(source)
    return suite if corrections is None else corrected_suite(suite, corrections).suite


def _suite_row(transaction: Transaction, new: NewSuite) -> dict[str, Any]:
    row = transaction.one(sa.select(t.suite).where(t.suite.c.name == new.name))
    if row is not None:
        return row
    suite = new_id("sui")
    levels = {name: Level(level) for name, level in (new.levels or {}).items()}
    transaction.execute(
        sa.insert(t.suite).values(
            id=suite,
            name=new.name,
            title=new.title or new.name,
            description=new.description,
            owner=new.owner,
            visibility=new.visibility,
            levels=levels,
            options=checked_options(dict(new.options or {})),
        )
    )
    transaction.event("suite.added", suite, after=new.visibility)
    added = transaction.one(sa.select(t.suite).where(t.suite.c.id == suite))
    assert added is not None
    return added


def _add_splits(
    transaction: Transaction, revision: str, suite: Suite, hidden: Collection[str]
) -> None:
    tasks: dict[str, list[str]] = {PUBLIC_SPLIT: [], HIDDEN_SPLIT: []}
    for task in suite.tasks:
        tasks[HIDDEN_SPLIT if task.id in hidden else PUBLIC_SPLIT].append(task.id)
    for name, ids in tasks.items():
        if ids:
            cases = sum(len(suite.task(task).cases) for task in ids)
            transaction.execute(
                sa.insert(t.split).values(
                    id=new_id("spl"), revision=revision, name=name, tasks=ids, cases=cases
                )
            )


def _copy(folder: DataFolder, suite: Suite, corrections: Path | None) -> tuple[str, str | None]:
    """Copies a suite and its corrections under the hash of their content.

    Returns:
        The hash of the suite and its corrections, and the hash of the corrections.
    """
    text = None if corrections is None else corrections.read_bytes()
    digest = None if text is None else hashlib.sha256(text).hexdigest()
    files = sorted(regular_files(suite.root))
    content = hashlib.sha256(repr((suite.name, digest)).encode())
    for path in files:
        with path.open("rb") as file:
            hashed = hashlib.file_digest(file, "sha256").hexdigest()
        content.update(f"{path.relative_to(suite.root)}\0{hashed}\n".encode())
    name = content.hexdigest()
    target = folder.suite(name)
    if target.exists():
        return name, digest
    with (
        naming_what_is_written(target, StoreError),
        folder_beside(target, ".new-") as scratch,
    ):
        root = scratch / SUITE_FOLDER / suite.root.name
        for path in files:
            copy = root / path.relative_to(suite.root)
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, copy)
        if text is not None:
            write_whole(scratch / CORRECTIONS_FILE, text, durable=True)
        scratch.rename(target)
        sync_folder(target.parent)
    return name, digest


def _verified(source: str, corrections: Path | None) -> list[CaseCheck]:
    """Verifies a suite as ``judge verify`` does; without a sandbox, uses values saved in files.

    A server in a container runs no programs and so has no sandbox. A gold that contains a formula
    without a saved value then counts as unreadable.
    """
    try:
        return api.verify(source, corrections=corrections)
    except SandboxError:
        print_label(
            "note:", "cyan", f"no sandbox here: formulas of {source} have their saved values"
        )
        return api.verify(source, corrections=corrections, recalc="never")


def check_suite(
    source: str, corrections: Path | None, hidden: Collection[str], *, verify: bool
) -> tuple[str, ...]:
    """Checks a suite before it is added.

    Args:
        source: anything that :func:`judge.load_suite` loads.
        corrections: a file of corrections of known faults, or None.
        hidden: ids of hidden tasks; ``all`` means every task.
        verify: whether golds, inputs and formulas are checked, as ``judge verify`` does.

    Returns:
        The ids of the hidden tasks.

    Raises:
        SuiteError: the suite is broken, or a gold does not pass when compared with itself.
    """
    suite = _loaded(source, corrections)
    if verify:
        checks = _verified(source, corrections)
        faults = tuple(
            f"task {check.task_id}, case {check.case}: {check.gold_problem or check.input_problem}"
            for check in checks
            if not check.gold_accepted or check.input_problem
        )
        if faults:
            raise SuiteError(
                f"{source}: {len(faults)} cases cannot be judged",
                faults=faults[:20],
                hint="`judge verify` gives details; --unchecked adds the suite without checks.",
            )
    return tuple(task.id for task in suite.tasks) if "all" in hidden else tuple(hidden)
