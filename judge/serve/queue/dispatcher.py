"""A dispatcher: slots that claim judgings, run them, and record the outcome.

Nothing is claimed before sandbox and engines are open. A dispatcher locks a file that has its name.
So when it starts, all leases under this name were left by a dead process, and it returns them
immediately. When it has to stop, it claims nothing more, stops judgings between two cases, and
returns their leases.

One slot at a time looks for work, on behalf of all slots. If the feedback level of a phase shows no
verdicts, the end of a judging is recorded at the next tick of a slow clock: the exact time would
reveal how long the programs ran, and programs could use that to leak hidden inputs.
"""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import shutil
import tempfile
import threading
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import sqlalchemy as sa

from judge.api.options import JudgingOptions
from judge.api.resources import JudgingResources
from judge.console import print_label
from judge.core.verdict import Verdict
from judge.errors import (
    ClusterError,
    JudgeError,
    SandboxError,
    StoreError,
    UsageError,
)
from judge.files.writing import FileLock, HeldError, naming_what_is_written, take_lock
from judge.grading.batch import Event
from judge.grading.store import HeldRunError
from judge.sandbox import open_sandbox
from judge.sandbox.contract import Sandbox
from judge.serve.access.rights import phase_state, split_level
from judge.serve.boards.disclosure import record_shown
from judge.serve.queue.conditions import (
    ENVIRONMENT,
    digest_of,
    document_of,
    ensure_conditions,
    make_environment,
    set_setting,
)
from judge.serve.queue.judging import (
    CaseCounter,
    Judged,
    KnownConditions,
    Scorers,
    StoppedError,
    Work,
    judge,
    work_of,
)
from judge.serve.queue.leases import (
    Claim,
    FencedError,
    beat,
    claim,
    end_cancelled,
    fail,
    finish,
    release,
)
from judge.serve.queue.watching import BEAT_S, LEASE_S, Watcher, return_leases
from judge.serve.store import tables as t
from judge.serve.store.database import (
    Actor,
    Database,
    DatabaseGoneError,
    Transaction,
)
from judge.serve.store.folder import MIN_FREE_BYTES, DataFolder
from judge.serve.store.tables import Lane, Level, PhaseState

MAINTENANCE = "maintenance"
"""Name of the setting with the notice shown during maintenance; its value is null otherwise."""

END_TICK_S = 30.0
"""Below the feedback level ``verdicts``, end times are rounded to this many seconds."""

_POLL_S = 0.1  # between two looks whether something was committed
_POLL_ANYWAY_S = 1.0  # between two queries without a commit
_RETRY_S = 2.0  # after an error of the database; doubles while machines refuse
_MAX_PAUSE_S = 60.0  # between two attempts after refusals
_STOP_S = 25.0  # for running cases to end; later, their leases are returned
_HELD_S = 10.0  # how long a judging with a locked results directory is left alone
_REJUDGE_EVERY = 20  # with one slot, one of this many claims prefers rejudgings
_MAX_CLAIMS = 100  # a judging that machines refuse this often is itself at fault
_OF_MACHINE = frozenset(
    {errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EIO}
)
_SPARE_DESCRIPTORS = 16  # that have to be free before a judging is started
MIN_FREE_TEMPORARY_BYTES = 32 << 20
"""No judging is started if less than this is free for temporary files, in bytes."""


class OnJudged(Protocol):
    """Called when a judging ends."""

    def __call__(
        self, transaction: Transaction, judging: str, results: Path, *, first: bool
    ) -> None:
        """Handles the end of a judging.

        Args:
            transaction: the transaction that ends the judging, with its verdicts already written.
            judging: id of the judging.
            results: results directory of the judging.
            first: whether it is the first judging of its submission, not one of a rejudging.
        """
        ...


@dataclass(frozen=True, slots=True)
class DispatchOptions:
    """Options of a dispatcher.

    Attributes:
        name: the name under which it holds leases; running dispatchers have different names.
        slots: how many judgings run at a time.
        jobs: how many submissions of one judging run at a time.
        sandbox: kind of sandbox.
        cluster: workers that judge in place of threads, as for ``judge score``.
        insecure_cluster: whether the workers may be reached without TLS.
        lease_s: a lease is lost after this many seconds without a heartbeat.
        beat_s: seconds between two heartbeats.
        end_tick_s: see :data:`END_TICK_S`.
    """

    name: str = "main"
    slots: int = 1
    jobs: int = 1
    sandbox: str = "auto"
    cluster: str | None = None
    insecure_cluster: bool = False
    lease_s: float = LEASE_S
    beat_s: float = BEAT_S
    end_tick_s: float = END_TICK_S


_WAITS = (  # and no maintenance; JSON's null is no SQL NULL
    sa.select(t.account.c.id)
    .where(
        t.account.c.waiting > 0,
        ~sa.exists().where(
            t.setting.c.name == MAINTENANCE, sa.cast(t.setting.c.value, sa.String) != "null"
        ),
    )
    .limit(1)
)


@dataclass(slots=True)
class _Running:
    claim: Claim
    count: CaseCounter
    fenced: bool = False
    cancelled: bool = False
    ended: Callable[[], None] | None = None  # records its end, once that may be seen


class Dispatcher:
    """Claims and runs judgings; see the docstring of this module.

    Args:
        database: an open database with the current schema.
        folder: the data folder.
        options: the options of the dispatcher.
        on_judged: called in the transaction that ends a judging, see :class:`OnJudged`.
        on_case: called with each case that is judged or copied from earlier records.
        on_fenced: called when a judging ends whose lease was lost.

    Raises:
        UsageError: another dispatcher with this name is running.
    """

    def __init__(
        self,
        database: Database,
        folder: DataFolder,
        options: DispatchOptions,
        *,
        on_judged: OnJudged = record_shown,
        on_case: Callable[[Event], None] = lambda _: None,
        on_fenced: Callable[[], None] = lambda: None,
    ) -> None:
        self._database = database
        self._on_judged, self._on_case, self._on_fenced = on_judged, on_case, on_fenced
        self._folder = folder
        self._options = options
        self._actor = Actor(f"dispatcher:{options.name}"[:80])
        self._lock = self._take_name()
        self._changes = database.changes()
        self._watcher = Watcher(database, folder, options.name, patience_s=options.lease_s)
        self._stopping = threading.Event()
        self._claiming = threading.Lock()  # held by the slot that looks for work
        self._ended = threading.Event()  # set when a slot has become free
        self._work = threading.Lock()  # never held during a database query: heartbeats need it
        self._running: dict[str, _Running] = {}
        self._claims = 0
        self._refusals = 0
        self._lacks: str | None = None
        self._checked = float("-inf")
        self._held: dict[str, float] = {}
        self._threads: list[threading.Thread] = []
        self._environment: dict[str, Any] = {}
        self._known: dict[str, KnownConditions] = {}
        self._own: dict[str, str] = {}  # conditions -> those of the same options on this dispatcher
        self.failure: JudgeError | None = None

    def run(self, *, on_ready: Callable[[], None] = lambda: None) -> None:
        """Works until :meth:`stop`.

        Args:
            on_ready: called when sandbox and engines are open.

        Raises:
            SandboxError: there is no sandbox.
        """
        with contextlib.ExitStack() as stack:
            stack.callback(self._lock.close)
            self._enter("opening")
            return_leases(self._database, self._folder, self._options.name)
            sandbox = self._open_sandbox(stack)
            scorers = Scorers(self._folder, stack, sandbox, self._shared())
            self._register(sandbox, stack)
            self._watcher.start()
            stack.callback(self._watcher.stop)
            stack.callback(self._changes.close)
            on_ready()
            self._threads = [
                threading.Thread(target=self._slot, args=(scorers,), name=f"judge-slot-{number}")
                for number in range(self._options.slots)
            ]
            self._threads.append(threading.Thread(target=self._record_ends, name="judge-ends"))
            for thread in self._threads:
                thread.daemon = True
                thread.start()
            self._beat_until_stopped()
            self._end()

    def stop(self) -> None:
        """Makes :meth:`run` return: nothing more is claimed, and leases are returned."""
        self._stopping.set()
        self._ended.set()

    # -- starting and ending --------------------------------------------------------------------

    def _take_name(self) -> FileLock:
        path = self._folder.lock(f"dispatcher-{self._options.name}")
        try:
            with naming_what_is_written(path, StoreError):
                return take_lock(path)
        except HeldError as error:
            raise UsageError(
                f"a dispatcher with the name {self._options.name!r} is running",
                hint="Give another --name.",
            ) from error

    def _shared(self) -> dict[str, Any]:
        options = self._options
        return {
            "jobs": options.jobs,
            "sandbox": options.sandbox,
            "cluster": options.cluster,
            "insecure_cluster": options.insecure_cluster,
        }

    def _open_sandbox(self, stack: contextlib.ExitStack) -> Sandbox:
        workers = self._options.slots * self._options.jobs
        sandbox = open_sandbox(self._options.sandbox, jobs=workers)
        return stack.enter_context(contextlib.closing(sandbox))

    def _register(self, sandbox: Sandbox, stack: contextlib.ExitStack) -> None:
        """Records which sandbox and engines judge from now on."""
        options = JudgingOptions(**self._shared())
        resources = JudgingResources(options, stack, sandbox=sandbox)
        settings = resources.settings(needs_sandbox=True)
        self._environment = make_environment(sandbox.info.image, list(settings.rules.engines))
        with self._database.writing(self._actor) as transaction:
            set_setting(transaction, ENVIRONMENT, self._environment)
            self._set_state(transaction, "ready")

    def _enter(self, state: str) -> None:
        values = {"life": secrets.token_hex(16), "slots": self._options.slots, "beat": 0}
        with self._database.writing(self._actor) as transaction:
            changed = transaction.execute(
                sa.update(t.dispatcher)
                .where(t.dispatcher.c.name == self._options.name)
                .values(state=state, **values)
            )
            if not changed.rowcount:
                transaction.execute(
                    sa.insert(t.dispatcher).values(
                        name=self._options.name, state=state, detail={}, **values
                    )
                )
            transaction.event(f"dispatcher.{state}", self._options.name, after=state)

    def _set_state(self, transaction: Transaction, state: str) -> None:
        transaction.execute(
            sa.update(t.dispatcher)
            .where(t.dispatcher.c.name == self._options.name)
            .values(state=state, detail=self._environment)
        )
        transaction.event(f"dispatcher.{state}", self._options.name, after=state)

    def _end(self) -> None:
        """Stops running judgings and waits; returns the leases of those that do not end in time."""
        deadline = time.monotonic() + _STOP_S
        with self._work:
            running = list(self._running.values())
        for one in running:
            one.count.stop()
        for thread in self._threads:
            thread.join(max(0.0, deadline - time.monotonic()))
        with contextlib.suppress(DatabaseGoneError):
            for one in list(self._running.values()):
                if one.ended is not None:
                    one.ended()
                elif not one.fenced:
                    self._release(one.claim)
            with self._database.writing(self._actor) as transaction:
                self._set_state(transaction, "stopped")

    # -- beats ----------------------------------------------------------------------------------

    def _beat_until_stopped(self) -> None:
        while not self._stopping.wait(self._options.beat_s):
            with self._work:
                running = dict(self._running)
            done = {lease: one.count.done for lease, one in running.items()}
            try:
                own, cancelled = beat(self._database, self._actor, self._options.name, done)
            except DatabaseGoneError:
                continue  # a judging that another dispatcher takes meanwhile is fenced at its end
            except Exception as error:  # noqa: BLE001  without heartbeats all leases would be lost
                self._report(error)
                continue
            for lease, one in running.items():
                if lease not in own or lease in cancelled:
                    one.fenced = lease not in own
                    one.cancelled = lease in cancelled
                    one.count.stop()

    # -- slots ----------------------------------------------------------------------------------

    def _slot(self, scorers: Scorers) -> None:
        while (taken := self._next()) is not None:
            try:
                self._do(scorers, taken)
            except Exception as error:  # noqa: BLE001  the lease expires; others take the judging
                self._report(error)
            finally:
                with self._work:
                    one = self._running.get(taken.lease)
                    if one is not None and one.ended is None:
                        del self._running[taken.lease]
                self._ended.set()

    def _next(self) -> Claim | None:
        """Waits for the next judging; returns None when the dispatcher stops.

        One slot at a time looks for work, so that the rules about lanes hold. It queries the
        database after a commit or when a slot has become free, and otherwise once in a while.
        """
        with self._claiming:
            pause = 0.0
            while not self._wait_for_news(pause):
                try:
                    taken = self._claim()
                except Exception as error:  # noqa: BLE001  a slot survives errors of the machine
                    self._report(error)
                    self._stopping.wait(_RETRY_S)
                    continue
                if taken is not None:
                    return taken
                pause = _POLL_ANYWAY_S
        return None

    def _wait_for_news(self, seconds: float) -> bool:
        """Waits at most this long for a commit or a free slot; returns whether to stop."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline and not self._stopping.is_set():
            with contextlib.suppress(DatabaseGoneError):  # the next query reports it
                if self._changes.happened():
                    break
            if self._ended.wait(_POLL_S):
                break
        self._ended.clear()
        return self._stopping.is_set()

    def _claim(self) -> Claim | None:
        """Claims the next judging that may be started, if there is one."""
        if not self._may_begin():
            return None
        with self._work:
            running = [one.claim.judging for one in self._running.values() if one.ended is None]
            # Starting their next judging would reveal when this one ended, which is still hidden.
            hidden = {
                one.claim.judging["account"]
                for one in self._running.values()
                if one.ended is not None
            }
        if any(judging["alone"] for judging in running):
            return None
        for lanes in self._lanes(sum(one["lane"] == Lane.REJUDGE for one in running)):
            with self._database.writing(self._actor) as transaction:
                taken = claim(
                    transaction,
                    self._options.name,
                    lanes,
                    alone=not running,
                    without=self._held_elsewhere(),
                    waiting=hidden,
                )
            if taken is not None:
                self._claims += 1
                with self._work:
                    self._running[taken.lease] = _Running(taken, CaseCounter(self._on_case))
                return taken
        return None

    def _held_elsewhere(self) -> list[str]:
        """The judgings whose results directory was locked a moment ago; they are tried later."""
        now = time.monotonic()
        self._held = {judging: until for judging, until in self._held.items() if until > now}
        return list(self._held)

    def _may_begin(self) -> bool:
        with self._database.reading() as connection:
            if connection.scalar(_WAITS) is None:
                return False
        if time.monotonic() - self._checked < _POLL_ANYWAY_S:
            return self._lacks is None
        return not self._lacks_resources()

    def _lacks_resources(self) -> bool:
        """Whether this machine lacks disk space or file descriptors, which every judging needs."""
        lacks = _lack_of(self._folder)
        self._checked = time.monotonic()
        if lacks is not None and lacks != self._lacks:
            self._warn(SandboxError(f"no judging is started: {lacks}"))
        self._lacks = lacks
        return lacks is not None

    def _lanes(self, rejudges: int) -> list[set[Lane]]:
        """The sets of lanes from which a judging may be claimed now, in order of preference."""
        every, first = set(Lane), {Lane.INTERACTIVE, Lane.NORMAL}
        if self._options.slots > 1:
            return [every] if rejudges < self._options.slots - 1 else [first]
        if self._claims % _REJUDGE_EVERY == _REJUDGE_EVERY - 1:
            return [{Lane.REJUDGE}, first]
        return [first, {Lane.REJUDGE}]

    def _do(self, scorers: Scorers, taken: Claim) -> None:
        running = self._running[taken.lease]
        work: Work | None = None
        try:
            work = work_of(self._database, taken, self._known)
            if not self._adopt(taken, work):
                return
            judged = judge(self._folder, scorers, taken, work, lambda _: running.count)
        except StoppedError:
            if running.cancelled:
                self._end_one(taken, work, lambda transaction: end_cancelled(transaction, taken))
            elif not running.fenced:
                self._release(taken)
        except (
            HeldRunError
        ) as error:  # the process that lost the lease still uses it, and will notice
            self._warn(error)
            self._held[taken.id] = time.monotonic() + _HELD_S
            self._record(lambda transaction: release(transaction, taken, counts=False))
        except (DatabaseGoneError, SandboxError, ClusterError, StoreError) as error:
            self._postpone(taken, error)
        except JudgeError as error:
            reason = _for_people(error)
            self._end_one(
                taken, work, lambda transaction: fail(transaction, taken, reason, retry=False)
            )
        except Exception as error:  # noqa: BLE001  a slot survives errors of a judging
            self._fail(taken, error)
        else:
            self._conclude(taken, work, judged)

    def _fail(self, taken: Claim, error: Exception) -> None:
        """Ends a judging that stopped with an error of the judge or of the machine."""
        if _is_of_machine(error) or self._lacks_resources():
            self._postpone(taken, SandboxError(f"judging {taken.id}: {error}"))
            return
        self._report(error)
        self._record(lambda transaction: fail(transaction, taken, "the judge failed", retry=True))

    def _conclude(self, taken: Claim, work: Work | None, judged: Judged) -> None:
        errors = sum(row["verdict"] == Verdict.JE.value for row in judged.verdicts)
        if judged.problem is not None or errors:
            reason = judged.problem or f"{errors} cases have judge errors (JE)"
            if self._lacks_resources():  # which explains the errors
                self._postpone(taken, SandboxError(f"judging {taken.id}: {reason}"))
                return
            self._end_one(
                taken, work, lambda transaction: fail(transaction, taken, reason, retry=True)
            )
            return
        self._end_one(taken, work, lambda transaction: self._finish(transaction, taken, judged))

    def _end_one(
        self, taken: Claim, work: Work | None, act: Callable[[Transaction], object]
    ) -> None:
        """Records the end of a judging: now, or at the next tick if the time must stay hidden."""
        running = self._running[taken.lease]

        def end() -> None:
            try:
                if running.cancelled:
                    self._record(lambda transaction: end_cancelled(transaction, taken))
                else:
                    self._record(act)
            except Exception as error:  # noqa: BLE001  nothing was written
                self._fail(taken, error)
            else:
                self._refusals = 0

        if work is None or _shows_times(work):
            end()
        else:
            running.ended = end

    def _record_ends(self) -> None:
        """Records at each tick the judgings that have ended since the last tick."""
        every = self._options.end_tick_s
        while not self._stopping.wait(every - time.monotonic() % every):
            with self._work:
                ended = [one for one in self._running.values() if one.ended is not None]
            for one in ended:
                assert one.ended is not None
                one.ended()
                with self._work:
                    self._running.pop(one.claim.lease, None)
            if ended:
                self._ended.set()

    def _finish(self, transaction: Transaction, taken: Claim, judged: Judged) -> None:
        """Ends a judging and records what it shows to its team, in one transaction."""
        finish(
            transaction,
            taken,
            judged.verdicts,
            report_sha256=judged.report_sha256,
            scores=judged.scores,
        )
        first = taken.judging["rejudging"] is None
        self._on_judged(transaction, taken.id, self._folder.results(taken.id), first=first)

    def _adopt(self, taken: Claim, work: Work) -> bool:
        """Records the actual conditions of a judging, if the environment has changed.

        The conditions of a rejudging are fixed: if this dispatcher does not meet them, its judging
        fails. Returns whether the judging can be run.
        """
        conditions, revision = taken.judging["conditions"], work.revision
        if conditions not in self._own:
            name = work.conditions["suite"].get("name", "")
            document = document_of(name, revision, work.options, self._environment)
            self._own[conditions] = digest_of(document)
        if self._own[conditions] == conditions:
            return True
        with self._database.writing(self._actor) as transaction:
            digest = ensure_conditions(transaction, revision, work.options, self._environment)
            if taken.judging["rejudging"] is None:
                transaction.execute(
                    sa.update(t.judging)
                    .where(t.judging.c.id == taken.id, t.judging.c.lease == taken.lease)
                    .values(conditions=digest)
                )
                return True
            with contextlib.suppress(FencedError):
                reason = "this dispatcher has another sandbox, other engines or another version"
                fail(transaction, taken, reason, retry=False)
        return False

    def _postpone(self, taken: Claim, error: JudgeError) -> None:
        """Puts back a judging that this machine cannot run now, so that it is tried again later."""
        self._warn(error)
        if taken.judging["claims"] >= _MAX_CLAIMS:
            reason = _for_people(error)
            self._record(lambda transaction: fail(transaction, taken, reason, retry=False))
            return
        self._release(taken)
        self._stopping.wait(min(_MAX_PAUSE_S, _RETRY_S * 2 ** min(self._refusals, 10)))
        self._refusals += 1

    def _release(self, taken: Claim) -> None:
        self._record(lambda transaction: release(transaction, taken))

    def _record(self, act: Callable[[Transaction], object]) -> None:
        """Records how a judging ended, once the database is available, unless the lease is lost."""
        while True:
            try:
                with self._database.writing(self._actor) as transaction:
                    act(transaction)
            except FencedError:
                with contextlib.suppress(DatabaseGoneError):
                    self._note_fenced()
                return
            except DatabaseGoneError as error:
                self._warn(error)
                if self._stopping.wait(_RETRY_S):
                    return
            else:
                return

    def _note_fenced(self) -> None:
        self._on_fenced()
        with self._database.writing(self._actor) as transaction:
            transaction.event("lease.fenced", self._options.name)

    def _warn(self, error: JudgeError) -> None:
        print_label("warning:", "yellow", f"dispatcher {self._options.name}: {error.message}")

    def _report(self, error: Exception) -> None:
        """Reports an error; an unexpected one with its traceback."""
        if isinstance(error, JudgeError):
            self._warn(error)
            return
        text = "".join(traceback.format_exception(error))
        print_label("error:", "red", f"dispatcher {self._options.name}: {text}")


def _shows_times(work: Work) -> bool:
    """Whether the exact end time may be shown.

    For a rejudging it may, because only authors see it.
    """
    if work.is_rejudging:
        return True
    level = split_level(work.suite, work.phase["split"])
    published = phase_state(work.phase, work.now) is PhaseState.PUBLISHED
    return published or level.shows(Level.VERDICTS)


def _lack_of(folder: DataFolder) -> str | None:
    """The resource that the machine lacks: disk space, temporary space or file descriptors."""
    try:
        if not folder.has_space():
            return f"less than {MIN_FREE_BYTES >> 20} MiB are free in {folder.path}"
        temporary = tempfile.gettempdir()
        if shutil.disk_usage(temporary).free < MIN_FREE_TEMPORARY_BYTES:
            return f"less than {MIN_FREE_TEMPORARY_BYTES >> 20} MiB are free in {temporary}"
        with (
            tempfile.TemporaryFile(dir=folder.temporary()) as file,
            contextlib.ExitStack() as stack,
        ):
            for _ in range(_SPARE_DESCRIPTORS):
                stack.callback(os.close, os.dup(file.fileno()))
    except OSError as error:
        return f"{folder.path}: {error.strerror or error}"
    return None


def _is_of_machine(error: BaseException | None) -> bool:
    """Whether an error means that the system refused a resource, which it may grant later."""
    while error is not None:
        if isinstance(error, OSError) and error.errno in _OF_MACHINE:
            return True
        error = error.__cause__ or error.__context__
    return False


def _for_people(error: JudgeError) -> str:
    """The reason for a failure, for pages: the first line of the message, without server paths."""
    words = error.message.splitlines()[0].split(" ") if error.message else [type(error).__name__]
    return " ".join("…" if word.startswith("/") else word for word in words)
