"""Accepts submissions: stores and checks the body, then queues it and counts it in the quota.

JSON lines and programs become one file of solutions; archives of workbooks are unpacked next to it.
The library's readers read them. No message contains a path of the server.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import tempfile
import zipfile
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from judge.errors import JudgeError, StoreError, SubmissionError, SuiteError
from judge.files.json_lines import read_placed_json_lines
from judge.files.writing import folder_beside, naming_what_is_written, sync_folder
from judge.serve.access.rights import (
    HIDDEN_SPLIT,
    Viewer,
    find,
    phase_state,
    require,
    require_suite_role,
)
from judge.serve.catalog import (
    NewSuite,
    add_revision,
    check_name,
    check_suite,
    current_conditions,
    revision_of,
    split_of,
)
from judge.serve.context import Server
from judge.serve.problems import Problem, not_found
from judge.serve.queue.conditions import digest_of
from judge.serve.queue.dispatcher import MAINTENANCE
from judge.serve.queue.leases import enqueue, lock_account
from judge.serve.store import tables as t
from judge.serve.store.database import Transaction, all_rows, first_row, row_of
from judge.serve.store.folder import DataFolder, ReceivedBody, StoredBody
from judge.serve.store.tables import JudgingState, Kind, PhaseState, Role, Scope, SuiteRole, new_id
from judge.suites.archive import ZipRefusedError, extract_zip
from judge.suites.layouts import find_outputs
from judge.suites.submissions import SubmissionReader
from judge.suites.suite import Suite, load_suite

MAX_LINES_BYTES = 64 << 20
MAX_LINE_BYTES = 1 << 20
MAX_LINES = 10_000  # answers of one submission
MAX_PROGRAM_BYTES = 1 << 20
_MAX_SAMPLE = 2**31 - 1  # the largest number that the database column can store
MAX_ARCHIVE_BYTES = 512 << 20
MAX_UNPACKED_BYTES = 2 << 30
MAX_MEMBERS = 20_000  # files of an archive
_NESTED = (".zip", ".gz", ".bz2", ".xz", ".7z", ".rar", ".tar", ".tgz")
_MAX_DETAIL_CHARS = 2_000  # of a message to the submitter
_MAX_ERRORS = 20  # lines or details of one answer

LINES = "application/x-ndjson"
PROGRAM = "text/x-python"
ARCHIVE = "application/zip"
LIMITS = {LINES: MAX_LINES_BYTES, PROGRAM: MAX_PROGRAM_BYTES, ARCHIVE: MAX_ARCHIVE_BYTES}
"""Content type -> size of the largest accepted body, in bytes."""


@dataclass(frozen=True, slots=True)
class Checked:
    """A request body that can be judged.

    Attributes:
        kind: what it contains.
        body: the stored body.
        cases: how many cases there are to judge.
        samples: the largest number of answers to a single task.
    """

    kind: Kind
    body: StoredBody
    cases: int
    samples: int


def check_body(
    folder: DataFolder,
    received: ReceivedBody,
    content_type: str,
    suite: Suite,
    tasks: Collection[str],
    task: str | None,
) -> Checked:
    """Checks a body that was received, and stores it.

    Args:
        folder: the data folder.
        received: the body.
        content_type: one of :data:`LIMITS`.
        suite: the suite that it answers.
        tasks: ids of the tasks that may be answered.
        task: id of the task that a single program answers.

    Raises:
        Problem: 422, it cannot be judged; the errors name the lines.
        StoreError: it cannot be stored.
    """
    received.flush()
    if content_type == ARCHIVE:
        return _archive(folder, received, suite, tasks)
    if content_type == PROGRAM:
        line = _line_of_program(received.path.read_bytes(), suite, tasks, task)
        with folder.receiving() as lines:
            lines.write(line)
            lines.flush()
            return _lines(lines, suite, tasks)
    return _lines(received, suite, tasks)


def _lines(received: ReceivedBody, suite: Suite, tasks: Collection[str]) -> Checked:
    _check_lines(received.path)
    cases, samples, count = 0, 0, 0
    per_task: dict[str, int] = {}
    errors: list[dict[str, Any]] = []
    with _as_problems(received.path):
        for _, _, submission in SubmissionReader(received.path, suite):
            count += 1
            if submission.task_id not in tasks:
                errors.append({"detail": f"task {submission.task_id} is not in this phase"})
                continue
            cases += len(suite.task(submission.task_id).cases)
            number = per_task.get(submission.task_id, 0) + 1
            per_task[submission.task_id] = number
            samples = max(samples, number)
    if errors:
        raise Problem(
            "invalid", f"{len(errors)} lines answer tasks that are not in this phase", errors[:20]
        )
    if not count:
        raise Problem("invalid", "The file has no solution of a task of this suite.")
    is_typed = not any(suite.task(task).answer.is_file for task in per_task)
    kind = Kind.ANSWERS if is_typed else Kind.PROGRAMS
    return Checked(kind, received.keep(), cases, samples)


def _check_lines(path: Path) -> None:
    """Checks the limits on lines, and that no line refers to files of a results directory."""
    with _as_problems(path, hint='one JSON object on each line: {"id": …, "solution": "…"}'):
        for number, _, length, record in read_placed_json_lines(path, SubmissionError):
            if number > MAX_LINES:
                raise Problem("invalid", f"The file has more than {MAX_LINES:,} lines.")
            if length > MAX_LINE_BYTES:
                raise _at_line(number, f"the line is longer than {MAX_LINE_BYTES >> 20} MiB")
            if "outputs" in record:
                raise _at_line(number, "send finished workbooks as a ZIP archive")
            sample = record.get("sample")
            if isinstance(sample, int) and sample > _MAX_SAMPLE:
                raise _at_line(number, f"sample numbers go up to {_MAX_SAMPLE}")


def _at_line(number: int, detail: str) -> Problem:
    return Problem("invalid", f"Line {number}: {detail}.", [{"line": number, "detail": detail}])


def _line_of_program(data: bytes, suite: Suite, tasks: Collection[str], task: str | None) -> bytes:
    if task is None:
        raise Problem("invalid", "A program needs the id of its task, in the field task.")
    if task not in suite or task not in tasks:
        raise Problem("invalid", f"There is no task {task[:80]!r} in this phase.")
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise Problem("invalid", f"The program is not UTF-8 at byte {error.start}.") from error
    record = {"id": suite.task(task).written_id, "solution": text}
    return json.dumps(record).encode() + b"\n"


def _archive(
    folder: DataFolder, received: ReceivedBody, suite: Suite, tasks: Collection[str]
) -> Checked:
    with received.path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    target = folder.unpacked(digest)
    with naming_what_is_written(target, StoreError), folder_beside(target, ".new-") as scratch:
        inside = scratch / "files"
        inside.mkdir()
        _unpack(received, inside)
        with _as_problems(inside):
            outputs = find_outputs(inside, suite)
        others = sorted(outputs.attempted - set(tasks))
        if others:
            raise Problem("invalid", f"Task {others[0]} is not in this phase.")
        samples = max(len(outputs.samples_of(task) or [0]) for task in outputs.attempted)
        cases = sum(
            len(suite.task(task).cases) * len(outputs.samples_of(task) or [0])
            for task in outputs.attempted
        )
        body = received.keep()
        if target.exists():
            os.utime(target)  # so that no sweep removes it
        else:
            _put(inside, target)
    return Checked(Kind.WORKBOOKS, body, cases, samples)


def _unpack(received: ReceivedBody, inside: Path) -> None:
    """Unpacks an archive that was received into an empty folder, within limits.

    Raises:
        Problem: 422, it cannot be trusted.
    """
    try:
        with received.path.open("rb") as file:
            extract_zip(file, inside, max_bytes=MAX_UNPACKED_BYTES, max_members=MAX_MEMBERS)
    except (ZipRefusedError, zipfile.BadZipFile) as error:
        raise Problem("invalid", f"The archive is refused: {error}"[:_MAX_DETAIL_CHARS]) from error
    nested = next((p for p in inside.rglob("*") if p.suffix.lower() in _NESTED), None)
    if nested is not None:
        raise Problem("invalid", f"{nested.name[:100]!r} is an archive in the archive.")


def _put(inside: Path, target: Path) -> None:
    try:
        inside.rename(target)
    except OSError:
        if not target.is_dir():  # otherwise another request has just stored the same files
            raise
        shutil.rmtree(inside, ignore_errors=True)
    sync_folder(target.parent)


@contextmanager
def _as_problems(path: Path, name: str = "the submission", hint: str = "") -> Iterator[None]:
    """Turns the library's errors about a body into a problem, without the server's paths.

    Args:
        path: where the body is.
        name: what the submitter calls it.
        hint: takes the place of the library's hints.
    """
    try:
        yield
    except StoreError:
        raise
    except JudgeError as error:
        faults = error.faults if isinstance(error, SuiteError) else ()
        text, *details = (_without_places(one, path, name) for one in (error.message, *faults))
        advice = hint or error.hint or ""
        lines = re.findall(r"\bline (\d{1,6})\b(?:: ?([^\n]*))?", text)[:_MAX_ERRORS]
        errors: list[dict[str, Any]] = [
            {"line": int(line), "detail": (detail or text)[:300]} for line, detail in lines
        ]
        errors += [{"detail": detail[:300]} for detail in details[:_MAX_ERRORS]]
        if advice and "--" not in advice:  # options of the command line mean nothing here
            text = f"{text} ({advice})"
        raise Problem("invalid", text[:_MAX_DETAIL_CHARS], errors) from error


def _without_places(text: str, path: Path, name: str) -> str:
    for text_of_path in (str(path), str(path.resolve()), str(path.parent)):
        text = text.replace(text_of_path, name)
    return text


_J, _S, _I = t.judging.c, t.submission.c, t.idempotency.c


@dataclass(frozen=True, slots=True)
class SubmitterStatement:
    """What a submitter states about a submission; all of it is unchecked and optional.

    Attributes:
        system: the system that made it, as boards show it.
        model: the chat model.
        setting: how the model was used.
        url: address of more information.
        cost_usd: the cost in US dollars.
        tokens: how many tokens were used.
        cutoff: the last day of the model's training data, ``2026-01-31``.
        note: any other information.
    """

    system: str = ""
    model: str = ""
    setting: str = ""
    url: str = ""
    cost_usd: float | None = None
    tokens: int | None = None
    cutoff: str | None = None
    note: str = ""


@dataclass(frozen=True, slots=True)
class Admission:
    """Permission to submit to a phase now, with the rows that it depends on.

    Attributes:
        account: id of the team whose quota counts.
        phase: row of the phase.
        suite: row of the suite.
        revision: row of the suite's current revision.
        tasks: ids of the tasks of the phase's split.
    """

    account: str
    phase: dict[str, Any]
    suite: dict[str, Any]
    revision: dict[str, Any]
    tasks: frozenset[str]


def admit(
    server: Server, viewer: Viewer, phase_name: str, team: str | None, key: str | None = None
) -> Admission:
    """Checks whether a caller may submit, before a body is read.

    Args:
        server: the server.
        viewer: the submitter.
        phase_name: name of the phase.
        team: the team for which they submit; None if they have only one, or none.
        key: the idempotency key, if one was sent. A client that missed the answer and sends the
            key again gets that answer even if the phase has closed since, or the queue is full.

    Raises:
        Problem: the caller may not submit, the phase is not open, or the server accepts nothing.
    """
    require(viewer, Scope.SUBMIT)
    check_open(server)
    with server.database.reading() as connection:
        try:
            phase = find(connection, viewer, t.phase, phase_name)
        except Problem as problem:
            detail = f"There is no phase {phase_name[:80]!r}, or the account may not see it."
            raise Problem(problem.name, detail) from None
        now = str(connection.scalar(sa.select(t.Now())))
        state = phase_state(phase, now)
        account = _team(connection, viewer, team)
        is_known = key is not None and connection.scalar(_known_key(account, key)) is not None
        if state is not PhaseState.OPEN and not is_known:
            raise Problem("conflict", f"The phase {phase['name']} is {state}.")
        suite = row_of(connection, t.suite, phase["suite"])
        revision = revision_of(connection, suite["current_revision"])
        split = split_of(connection, revision["id"], phase["split"])
        waiting = connection.scalar(
            sa.select(sa.func.coalesce(sa.func.sum(t.account.c.waiting), 0))
        )
    if int(waiting or 0) >= server.options.max_queue and not is_known:
        raise Problem("unavailable", "The queue is full.", headers={"Retry-After": "60"})
    return Admission(account, phase, suite, revision, frozenset(split["tasks"]))


def check_open(server: Server) -> None:
    """Checks that the server accepts new content.

    Raises:
        Problem: 503 during maintenance, 507 if the disk is full.
    """
    notice = server.setting(MAINTENANCE)
    if notice is not None:
        message = str(notice.get("message") or "Maintenance.")
        raise Problem("unavailable", message, headers={"Retry-After": "300"})
    if not server.folder.has_space():
        raise Problem("no-space", headers={"Retry-After": "600"})


_INSERT = sa.insert(t.submission)


_COUNTS_FIRST = (
    sa.update(t.submission)
    .where(_S.id == sa.bindparam("submission"))
    .values(current_judging=sa.bindparam("judging"))
)


def submit(
    server: Server,
    viewer: Viewer,
    admission: Admission,
    checked: Checked,
    described: SubmitterStatement,
    key: str | None,
) -> tuple[dict[str, Any], bool]:
    """Records a submission and queues its judging.

    Args:
        server: the server.
        viewer: the submitter.
        admission: the result of :func:`admit`.
        checked: the body, which is already stored.
        described: what the submitter states about it.
        key: the idempotency key, if one was sent.

    Returns:
        The answer, and whether it repeats the answer to an earlier request.

    Raises:
        Problem: 429 if the quota is used up, 422 if the key was used for another request.
    """
    phase = admission.phase
    fingerprint = digest_of(
        [checked.body.sha256, checked.kind, phase["id"], admission.account, asdict(described)]
    )
    with server.database.writing(viewer.actor()) as transaction:
        lock_account(transaction, admission.account)
        if key is not None:
            before = _replayed(transaction, admission.account, key, fingerprint)
            if before is not None:
                return before, True
        _check_unchanged(transaction, admission)
        _check_quota(transaction, admission)
        conditions = _conditions_of(transaction, phase)
        submission = new_id("sub")
        row = _row_of(checked, described) | {
            "id": submission,
            "account": admission.account,
            "made_by": viewer.account,
            "phase": phase["id"],
            "idempotency_key": key,
        }
        transaction.execute(_INSERT, row)
        judging = enqueue(
            transaction,
            submission=submission,
            account=admission.account,
            conditions=conditions,
            cases=checked.cases,
        )
        transaction.execute(_COUNTS_FIRST, {"submission": submission, "judging": judging})
        transaction.event("submission.accepted", submission, after=JudgingState.QUEUED)
        answer = {
            "id": submission,
            "state": JudgingState.QUEUED.value,
            **place_in_queue(transaction.connection, judging),
            "cases": {"done": 0, "all": checked.cases},
            "links": {"self": f"/v1/submissions/{submission}"},
        }
        if key is not None:
            _keep_answer(transaction, admission.account, key, fingerprint, answer)
    return answer, False


def _conditions_of(transaction: Transaction, phase: dict[str, Any]) -> str:
    """The digest of the conditions under which the submissions of a phase are judged now."""
    conditions = current_conditions(transaction, phase)
    if conditions is None:
        raise Problem(
            "unavailable",
            "No dispatcher has started yet, so it is not known how this would be judged.",
            headers={"Retry-After": "15"},
        )
    return conditions


def _row_of(checked: Checked, described: SubmitterStatement) -> dict[str, Any]:
    """What the submitter sent, as columns of the table of submissions."""
    return {
        "kind": checked.kind,
        "sha256": checked.body.sha256,
        "bytes": checked.body.size,
        "samples": checked.samples,
        **asdict(described),
    }


def may_upload(server: Server, viewer: Viewer, name: str) -> None:
    """Checks that the caller may add a revision to a suite, before the archive is read.

    Raises:
        Problem: 404 if they cannot see the suite; 403 if they can only see it, or if the suite is
            new and they lack the role; 503 or 507 if the server accepts nothing.
    """
    with server.database.reading() as connection:
        row = first_row(connection, sa.select(t.suite.c.id).where(t.suite.c.name == name))
        if row is not None:
            find(connection, viewer, t.suite, name)
            require_suite_role(viewer, SuiteRole.AUTHOR, row["id"])
        else:
            if Role.AUTHOR not in viewer.roles:
                raise not_found()
            check_name(name, "suite")
    check_open(server)


def add_uploaded_revision(
    server: Server,
    viewer: Viewer,
    name: str,
    received: ReceivedBody,
    hidden: Collection[str] | None,
    note: str,
) -> tuple[dict[str, Any], bool]:
    """Makes a revision from an archive that was received, after a call of :func:`may_upload`.

    Returns:
        The revision's row, and whether it is new.

    Raises:
        Problem: 422, the archive or the suite in it cannot be used.
        StoreError: it cannot be stored.
    """
    assert viewer.account is not None
    received.flush()
    with tempfile.TemporaryDirectory(dir=server.folder.temporary()) as scratch:
        root = Path(scratch) / name
        root.mkdir()
        _unpack(received, root)
        inside = sorted(root.iterdir())
        if len(inside) == 1 and inside[0].is_dir():
            root = inside[0]
        with _as_problems(root, "the suite"):
            before = _last_revision(server, name)
            split = _hidden_of(server, before, root, hidden)
            check_suite(str(root), None, split, verify=True)
            with server.database.writing(viewer.actor()) as transaction:
                new = NewSuite(name, str(root), viewer.account, hidden=split, note=note)
                revision = add_revision(server, transaction, new)
    return revision, before is None or revision["number"] > before["number"]


def _last_revision(server: Server, name: str) -> dict[str, Any] | None:
    with server.database.reading() as connection:
        return first_row(
            connection,
            sa.select(t.revision)
            .join(t.suite, t.suite.c.id == t.revision.c.suite)
            .where(t.suite.c.name == name)
            .order_by(t.revision.c.number.desc()),
        )


def _hidden_of(
    server: Server, before: dict[str, Any] | None, root: Path, named: Collection[str] | None
) -> tuple[str, ...]:
    """The hidden tasks of a new revision: the named tasks, or those of the previous revision.

    Raises:
        Problem: 422, a suite with a hidden split has a new task, and no hidden tasks are named.
    """
    if named is not None or before is None:
        return tuple(named or ())
    with server.database.reading() as connection:
        splits = all_rows(connection, sa.select(t.split).where(t.split.c.revision == before["id"]))
    by_name = {split["name"]: set(split["tasks"]) for split in splits}
    hidden = by_name.get(HIDDEN_SPLIT, set())
    tasks = [task.id for task in load_suite(root).tasks]
    new = [task for task in tasks if task not in set().union(*by_name.values())]
    if hidden and new:
        raise Problem(
            "invalid",
            f"Task {new[0]} is new, and the suite has a hidden split: name all hidden tasks with "
            "`hidden`.",
        )
    return tuple(task for task in tasks if task in hidden)


def place_in_queue(connection: sa.Connection, judging: str) -> dict[str, int]:
    """The position of a judging in the queue, from 1, and how many cases wait before it."""
    row = connection.execute(
        sa.select(sa.func.count(), sa.func.coalesce(sa.func.sum(_J.cases), 0)).where(
            _J.state == JudgingState.QUEUED, _J.id < judging
        )
    ).one()
    return {"position": int(row[0]) + 1, "ahead_cases": int(row[1])}


def quota_left(connection: sa.Connection, phase: Mapping[str, Any], account: str) -> dict[str, int]:
    """How many more submissions a phase accepts from an account today, and in total."""
    used = connection.execute(_USED, {"phase": phase["id"], "account": account}).one()
    return {
        "today": max(0, phase["per_day"] - int(used.today)),
        "in_total": max(0, phase["in_total"] - int(used.in_total)),
    }


_TODAY = sa.func.substr(_S.created, 1, 10) == sa.func.substr(t.Now(), 1, 10)
_USED = sa.select(
    sa.func.count().label("in_total"),
    sa.func.coalesce(sa.func.sum(sa.case((_TODAY, 1), else_=0)), 0).label("today"),
).where(
    _S.phase == sa.bindparam("phase"), _S.account == sa.bindparam("account"), _S.counts.is_(True)
)


_PHASE_NOW = (
    sa.select(t.phase, t.suite.c.current_revision, t.Now().label("now"))
    .join(t.suite, t.suite.c.id == t.phase.c.suite)
    .where(t.phase.c.id == sa.bindparam("phase"))
)


def _check_unchanged(transaction: Transaction, admission: Admission) -> None:
    """Checks phase and revision again, as they may have changed while the body was uploaded.

    Raises:
        Problem: 409, the phase is not open any more, or the suite has a new revision.
    """
    row = transaction.execute(_PHASE_NOW, {"phase": admission.phase["id"]}).mappings().one()
    state = phase_state(dict(row), row["now"])
    if state is not PhaseState.OPEN:
        raise Problem("conflict", f"The phase {row['name']} is {state}.")
    if row["current_revision"] != admission.revision["id"]:
        raise Problem(
            "conflict",
            f"The suite {admission.suite['name']} has got a new revision meanwhile: submit again.",
        )


def _check_quota(transaction: Transaction, admission: Admission) -> None:
    left = quota_left(transaction.connection, admission.phase, admission.account)
    if min(left.values()) <= 0:
        which = "today" if left["in_total"] else "in total"
        raise Problem(
            "quota-exceeded",
            f"The phase {admission.phase['name']} accepts no more of this team's submissions "
            f"{which}.",
            headers={"Retry-After": "3600"},
        )
    most = admission.suite["per_day"]
    if most:
        # Shared by all teams: of two simultaneous submissions, only one may take the last turn.
        transaction.execute(
            sa.select(t.suite.c.id).where(t.suite.c.id == admission.suite["id"]).with_for_update()
        )
        phases = sa.select(t.phase.c.id).where(t.phase.c.suite == admission.suite["id"])
        count = transaction.execute(
            sa.select(sa.func.count())
            .select_from(t.submission)
            .where(_S.phase.in_(phases), _TODAY, _S.counts.is_(True))
        ).scalar_one()
        if count >= most:
            raise Problem(
                "quota-exceeded",
                "The suite accepts no more submissions today.",
                headers={"Retry-After": "3600"},
            )


def _replayed(
    transaction: Transaction, account: str, key: str, fingerprint: str
) -> dict[str, Any] | None:
    row = transaction.one(_known_key(account, key))
    if row is None:
        return None
    if row["sha256"] != fingerprint:
        raise Problem("key-reused")
    response: dict[str, Any] = row["response"]
    return response


def _keep_answer(
    transaction: Transaction, account: str, key: str, fingerprint: str, answer: Mapping[str, Any]
) -> None:
    """Keeps the answer to a request, for when it is repeated with the same key."""
    transaction.execute(
        sa.insert(t.idempotency).values(
            account=account,
            key=key,
            request="POST /v1/submissions",
            sha256=fingerprint,
            status=202,
            response=answer,
        )
    )


def _known_key(account: str, key: str) -> sa.Select[Any]:
    return sa.select(t.idempotency).where(_I.account == account, _I.key == key)


def _team(connection: sa.Connection, viewer: Viewer, team: str | None) -> str:
    """The account whose quota is used: the caller's team, if they have one."""
    assert viewer.account is not None
    others = sorted(viewer.teams - {viewer.account})
    if team is None:
        if len(others) > 1:
            raise Problem("invalid", "You are in several teams: name one with `team`.")
        return others[0] if others else viewer.account
    row = first_row(
        connection,
        sa.select(t.account.c.id).where(
            (t.account.c.id == team) | (t.account.c.name == team),
            t.account.c.id.in_(others or [viewer.account]),
        ),
    )
    if row is None:
        raise Problem(
            "invalid", "You are not a member of this team. Members of a team submit as that team."
        )
    return str(row["id"])
