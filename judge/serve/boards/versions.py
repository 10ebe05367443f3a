"""Boards: their entries, and their versions as a permanent chain of signed documents.

A board shows only judgings under its conditions. A version is a canonical document with the hash of
the previous version; anybody who keeps a version can check whether later versions follow from it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import sqlalchemy as sa

from judge.errors import UsageError
from judge.report.build import DEFAULT_METHOD
from judge.serve.access.rights import HIDDEN_SPLIT, phase_state, split_level
from judge.serve.boards.disclosure import is_bounded, last_shown, shown_rows
from judge.serve.boards.feedback import slot
from judge.serve.boards.results import BOARD, SCHEMA_VERSION, Scored, scored, shown_score
from judge.serve.boards.signing import PublicKey, Signature, SigningKeys, canonical, sha256_of
from judge.serve.boards.ties import Metric, Ties, smallest_differences, ties_of, ties_of_shown
from judge.serve.catalog import check_name, current_conditions, revision_of, split_of
from judge.serve.context import Server
from judge.serve.queue.conditions import set_setting
from judge.serve.store import tables as t
from judge.serve.store.database import Actor, Transaction, all_rows, first_row, row_of
from judge.serve.store.folder import DataFolder
from judge.serve.store.tables import JudgingState, Level, PhaseState, Visibility, new_id

RULES = ("latest", "best", "chosen")
"""Rules for which submission of an account a board shows; ``best`` is by the board's metric."""

_DECLARED = ("system", "model", "setting", "url", "cost_usd", "tokens", "cutoff")


@dataclass(frozen=True, slots=True)
class NewBoard:
    """A board to add.

    Attributes:
        name: used in its address.
        phase: name of the phase whose submissions it shows.
        title: shown on pages; if empty, the name is shown.
        metric: the score by which it ranks.
        rule: one of :data:`RULES`.
        visibility: who can see it.
        frozen_at: when it is frozen; from this time on, the public sees the version of this time.
            None for never.
    """

    name: str
    phase: str
    title: str = ""
    metric: Metric = Metric.HARD
    rule: str = "best"
    visibility: Visibility = Visibility.PUBLIC
    frozen_at: str | None = None


@dataclass(frozen=True, slots=True)
class Setting:
    """The rows and settings that a board depends on, read once.

    Attributes:
        board: its row.
        phase: row of its phase.
        suite: row of its suite.
        revision: row of the revision of its conditions.
        conditions: the document of its conditions.
        tasks: ids of the split's tasks.
        level: the feedback level that applies now.
        signed_level: the level of the split, which decides what is readable in signed results.
        published: whether the phase is published.
        now: time of the database.
    """

    board: Mapping[str, Any]
    phase: Mapping[str, Any]
    suite: dict[str, Any]
    revision: Mapping[str, Any]
    conditions: Mapping[str, Any]
    tasks: tuple[str, ...]
    level: Level
    signed_level: Level
    published: bool
    now: str

    @property
    def metric(self) -> Metric:
        """The score by which the board ranks."""
        return Metric(self.board["metric"])


@dataclass(frozen=True, slots=True)
class Entry:
    """One account on a board.

    Attributes:
        row: the row of the submission, with the account's name and the judging.
        scored: its scores by task; None if the level shows at most a score.
        score: the score by which it is ranked; None if the level shows no score.
    """

    row: Mapping[str, Any]
    scored: Scored | None
    score: float | None


def suite_part(setting: Setting) -> dict[str, Any]:
    """The suite in a board's documents: name, revision, digest, corrections."""
    return {
        "name": setting.suite["name"],
        "revision": setting.revision["number"],
        "digest": setting.revision["digest"],
        "corrections": setting.revision["corrections"],
    }


def setting_of(connection: sa.Connection, board: Mapping[str, Any]) -> Setting:
    """Reads the setting of a board."""
    phase = row_of(connection, t.phase, board["phase"])
    suite = row_of(connection, t.suite, board["suite"])
    conditions = row_of(connection, t.conditions, board["conditions"])
    now = connection.execute(sa.select(t.Now())).scalar_one()
    published = phase_state(phase, now) is PhaseState.PUBLISHED
    hidden = phase["split"] == HIDDEN_SPLIT
    everything = Level.VERDICTS if hidden else Level.CELLS
    return Setting(
        board=board,
        phase=phase,
        suite=suite,
        revision=revision_of(connection, conditions["revision"]),
        conditions=conditions["document"],
        tasks=tuple(split_of(connection, conditions["revision"], phase["split"])["tasks"]),
        level=everything if published else split_level(suite, phase["split"]),
        signed_level=split_level(suite, phase["split"]),
        published=published,
        now=now,
    )


def entries_of(
    connection: sa.Connection, setting: Setting, judgings: Mapping[str, str] | None = None
) -> list[Entry]:
    """The entries of a board, best first; ties are sorted by name.

    Args:
        connection: a connection that sees one state of the database.
        setting: the setting of the board.
        judgings: submission -> the judging that counts in place of the current one, under any
            conditions; used to preview a rejudging.
    """
    rows = _rows(connection, setting, judgings or {})
    if setting.level is Level.SCORE and judgings is None:
        entries = _by_ladder(connection, setting, rows)
    elif setting.level is Level.NONE:
        entries = [Entry(row, None, None) for row in _chosen_of(connection, setting, rows, {})]
    else:
        by_judging = {row["judging"]: _scored(connection, row["judging"], setting) for row in rows}
        scores = {
            row["submission"]: _mean(by_judging[row["judging"]], setting.metric) for row in rows
        }
        entries = [
            Entry(row, by_judging[row["judging"]], scores[row["submission"]])
            for row in _chosen_of(connection, setting, rows, scores)
        ]
    return sorted(entries, key=lambda entry: (-(entry.score or 0.0), entry.row["account_name"]))


def ties_among(entries: Sequence[Entry], setting: Setting) -> Ties | None:
    """The significance tests of all pairs of entries; None if the level does not show tasks."""
    means = [entry.scored.means for entry in entries if entry.scored is not None]
    return ties_of(means, setting.metric) if means and len(means) == len(entries) else None


def ranks_of(entries: Sequence[Entry], setting: Setting) -> Sequence[tuple[int, int]]:
    """The rank intervals of entries, from the data that the level may show."""
    ties = ties_among(entries, setting)
    if ties is not None:
        return ties.ranks
    if setting.level is Level.NONE:
        return [(1, len(entries))] * len(entries)
    return ties_of_shown([entry.score or 0.0 for entry in entries], len(setting.tasks))


def _rows(
    connection: sa.Connection, setting: Setting, judgings: Mapping[str, str]
) -> list[dict[str, Any]]:
    """Submissions of the phase with a judging that the board may show, oldest first."""
    current = t.submission.c.current_judging
    rows = all_rows(
        connection,
        sa.select(
            t.submission.c.id.label("submission"),
            t.submission.c.account,
            t.account.c.name.label("account_name"),
            t.submission.c.created,
            t.submission.c.sha256,
            *(t.submission.c[name] for name in _DECLARED),
            t.judging.c.id.label("judging"),
            t.judging.c.conditions,
            t.judging.c.state,
            t.judging.c.scores.label("judged"),
        )
        .join(t.account, t.account.c.id == t.submission.c.account)
        .join(t.judging, t.judging.c.id == current)
        .where(t.submission.c.phase == setting.phase["id"], t.submission.c.withdrawn.is_(None))
        .order_by(t.submission.c.seq),
    )
    for row in rows:
        if row["submission"] in judgings:
            row["judging"] = judgings[row["submission"]]
    return [
        row
        for row in rows
        if row["submission"] in judgings
        or (row["state"] == JudgingState.DONE and row["conditions"] == setting.board["conditions"])
    ]


def _chosen_of(
    connection: sa.Connection,
    setting: Setting,
    rows: Iterable[dict[str, Any]],
    scores: Mapping[str, float],
) -> list[dict[str, Any]]:
    """One submission of each account, chosen by the board's rule."""
    rule: str = setting.board["rule"]
    chosen: dict[str, dict[str, Any]] = {}
    choices = {
        choice["account"]: choice["submission"]
        for choice in all_rows(
            connection,
            sa.select(t.board_choice).where(t.board_choice.c.board == setting.board["id"]),
        )
    }
    for row in rows:
        other = chosen.get(row["account"])
        if rule == "chosen" and choices.get(row["account"]) != row["submission"]:
            continue
        if rule == "best" and other is not None:
            before, now = scores.get(other["submission"], 0), scores.get(row["submission"], 0)
            if now <= before:
                continue
        chosen[row["account"]] = row
    return list(chosen.values())


def _by_ladder(
    connection: sa.Connection, setting: Setting, rows: Sequence[dict[str, Any]]
) -> list[Entry]:
    """The entries of a board at the level ``score``, with the scores that the ladders show."""
    by_submission = {row["submission"]: row for row in rows}
    entries = []
    for account in dict.fromkeys(row["account"] for row in rows):
        rung = last_shown(connection, account, setting.phase, setting.board["conditions"])
        if rung is not None and rung["submission"] in by_submission:
            entries.append(Entry(by_submission[rung["submission"]], None, rung["score"]))
    return entries


_MAX_CACHED = 1_000  # judgings whose scores stay in memory


_CACHE: dict[tuple[str, str, bool, tuple[str, ...]], Scored] = {}
"""Cache: scores of finished judgings, which never change."""


def _scored(connection: sa.Connection, judging: str, setting: Setting) -> Scored:
    """Scores of a judging, from the verdicts that may be shown."""
    bounded = is_bounded(setting.suite, setting.phase) and not setting.published
    # The key names the database: a copy that judged on its own has other verdicts for the same id.
    key = (str(connection.engine.url.database), judging, bounded, setting.tasks)
    cached = _CACHE.get(key)
    if cached is None:
        while len(_CACHE) >= _MAX_CACHED:
            _CACHE.pop(next(iter(_CACHE)), None)
        rows = shown_rows(connection, judging, bounded=bounded)
        cached = _CACHE[key] = scored(rows, setting.tasks)
    return cached


def _mean(scores: Scored, metric: Metric) -> float:
    values = (scores.means.hard if metric is Metric.HARD else scores.means.soft).values()
    return round(sum(sorted(values)) / len(values), 12) if values else 0.0


# -- versions -------------------------------------------------------------------------------------


class Boards:
    """Writes versions of boards.

    Args:
        folder: the data folder, which has the signing keys.
        server: the server's address, which is written into the documents.
    """

    def __init__(self, folder: DataFolder, server: str = "") -> None:
        self._keys = SigningKeys(folder.path / "keys")
        self._server = server

    def add(self, transaction: Transaction, new: NewBoard) -> str:
        """Adds a board, with its first version.

        Returns:
            Its id.

        Raises:
            UsageError: there is no such phase, the name is taken, or no dispatcher has started.
        """
        check_name(new.name, "board")
        if new.rule not in RULES:
            raise UsageError(f"{new.rule!r} is not a rule", hint=f"There are {', '.join(RULES)}.")
        if transaction.one(sa.select(t.board).where(t.board.c.name == new.name)) is not None:
            raise UsageError(f"there is a board {new.name!r} already")
        phase = transaction.one(sa.select(t.phase).where(t.phase.c.name == new.phase))
        if phase is None:
            raise UsageError(f"there is no phase {new.phase!r}")
        suite = transaction.one(sa.select(t.suite).where(t.suite.c.id == phase["suite"]))
        assert suite is not None
        level = split_level(suite, phase["split"])
        if not level.shows(Level.VERDICTS) and new.metric is not Metric.HARD:
            raise UsageError(
                f"at the level '{level}', a board ranks by the hard score",
                hint="A soft score would reveal verdicts of cases, which this level withholds.",
            )
        conditions = current_conditions(transaction, phase)
        if conditions is None:
            raise UsageError(
                "a board has fixed conditions, but no dispatcher has reported yet with which "
                "sandbox and engines it judges",
                hint="Start `judge serve` once, and add the board then.",
            )
        board = {
            "id": new_id("brd"),
            "name": new.name,
            "title": new.title or new.name,
            "suite": phase["suite"],
            "phase": phase["id"],
            "conditions": conditions,
            "metric": new.metric,
            "rule": new.rule,
            "visibility": new.visibility,
            "frozen_at": new.frozen_at,
            "columns": [],
        }
        transaction.execute(sa.insert(t.board).values(**board))
        transaction.event("board.added", str(board["id"]), after=new.name)
        self.new_version(transaction, board, "the board was opened")
        return str(board["id"])

    def public_keys(self, now: str) -> list[PublicKey]:
        """The server's keys: the current key, and the keys that it replaced."""
        return self._keys.public(now)

    def sign(self, body: Mapping[str, Any], now: str) -> tuple[bytes, Signature]:
        """Signs a document; returns its canonical bytes and the signature.

        Args:
            body: the document without ``signed``; this method sets it to ``now``, or to the start
                of the key's validity if that is later.
            now: the time of the document.
        """
        first = self._keys.public(now)[-1]["valid_from"]
        data = canonical({**body, "signed": max(now, first)})
        return data, self._keys.sign(data, now)

    def choose(
        self, transaction: Transaction, board: Mapping[str, Any], submission: Mapping[str, Any]
    ) -> None:
        """Makes a board with the rule ``chosen`` show this submission of its account.

        Args:
            transaction: the transaction of the choice and the board's new version.
            board: row of the board.
            submission: row of the submission, which belongs to the board's phase.
        """
        of_account = sa.and_(
            t.board_choice.c.board == board["id"],
            t.board_choice.c.account == submission["account"],
        )
        transaction.execute(sa.delete(t.board_choice).where(of_account))
        transaction.execute(
            sa.insert(t.board_choice).values(
                board=board["id"], account=submission["account"], submission=submission["id"]
            )
        )
        transaction.event("board.chosen", board["id"], after=submission["id"])
        self.new_version(
            transaction, board, "a team chose another submission", only_if_changed=True
        )

    def renew(self, transaction: Transaction, phase: str, why: str) -> list[str]:
        """Makes a new version of each board of a phase whose entries have changed.

        Returns:
            The ids of these boards.
        """
        boards = all_rows(
            transaction.connection,
            sa.select(t.board).where(t.board.c.phase == phase).order_by(t.board.c.id),
        )
        return [
            board["id"]
            for board in boards
            if self.new_version(transaction, board, why, only_if_changed=True)
        ]

    def new_version(
        self,
        transaction: Transaction,
        board: Mapping[str, Any],
        why: str,
        *,
        only_if_changed: bool = False,
    ) -> bool:
        """Makes a new version of a board in this transaction.

        Args:
            transaction: the transaction that has set the judgings that count.
            board: its row, with the conditions that it has from now on.
            why: the reason, shown on its page.
            only_if_changed: whether to make a version only if the entries have changed.

        Returns:
            Whether there is a new version.
        """
        connection = transaction.connection
        connection.execute(
            sa.select(t.board.c.id).where(t.board.c.id == board["id"]).with_for_update()
        )
        setting = setting_of(connection, board)
        last = latest(connection, board["id"])
        entries = entries_of(connection, setting)
        outline = _outline(entries, setting)
        if only_if_changed and last is not None and _same(json.loads(last["document"]), outline):
            return False  # most submissions change nothing, and tests of all pairs take time
        body = _with_ties(outline, entries, setting)
        number = 1 if last is None else last["number"] + 1
        body |= {
            "server": self._server,
            "number": number,
            "previous": None if last is None else last["sha256"],
            "why": why,
        }
        exact = setting.level.shows(Level.VERDICTS)
        data, signature = self.sign(body, setting.now if exact else slot(setting.now))
        transaction.execute(
            sa.insert(t.board_version).values(
                board=board["id"],
                number=number,
                conditions=board["conditions"],
                document=data.decode(),
                previous=body["previous"],
                sha256=sha256_of(data),
                signature=signature.text,
                key_id=signature.key_id,
                why=why,
            )
        )
        transaction.execute(
            sa.update(t.board).where(t.board.c.id == board["id"]).values(latest=number)
        )
        transaction.event("board.changed", board["id"], after=str(number))
        return True


RENEWED = "boards_renewed"
"""Name of the setting with the number of the last event that boards have taken into account."""


_IS_RENEWED = t.setting.c.name == RENEWED


_LAST_EVENT = sa.select(sa.func.max(t.event.c.seq))


_JUDGED_IN = (
    sa.select(t.submission.c.phase)
    .distinct()
    .join(t.event, t.event.c.object == t.submission.c.id)
    .where(
        t.event.c.seq > sa.bindparam("seen"),
        t.event.c.seq <= sa.bindparam("last"),
        t.event.c.kind == "submission.judged",
    )
    .order_by(t.submission.c.phase)
)


def renew_judged(server: Server) -> None:
    """Renews the boards of the phases in which something was judged since the last call.

    A burst of submissions renews a board only once, as a board is computed from all of its
    submissions. The number of the last event processed is stored in the same transaction, so that
    no board is missed after a crash.
    """
    seen = server.shared.get(RENEWED)
    with server.database.reading() as connection:
        if seen is None:
            seen = connection.scalar(sa.select(t.setting.c.value).where(_IS_RENEWED)) or 0
        last = int(connection.scalar(_LAST_EVENT) or 0)
        phases = list(connection.scalars(_JUDGED_IN, {"seen": seen, "last": last}))
    if phases:
        with server.database.writing(Actor("boards")) as transaction:
            for phase in phases:
                boards_of(server).renew(transaction, phase, "submissions were judged")
            set_setting(transaction, RENEWED, last)
    server.shared[RENEWED] = last


_OF_VERSION = ("server", "number", "previous", "why", "signed")
_OF_TIES = ("smallest", "ranks")
"""Fields of a document and of its entries that are computed from the other fields."""


def _same(document: Mapping[str, Any], outline: Mapping[str, Any]) -> bool:
    left_out = {*_OF_VERSION, *_OF_TIES}
    rest = {name: value for name, value in document.items() if name not in left_out}
    rest["entries"] = [
        {name: value for name, value in entry.items() if name not in _OF_TIES}
        for entry in document["entries"]
    ]
    return canonical(rest) == canonical(outline)


def document_of(connection: sa.Connection, setting: Setting) -> dict[str, Any]:
    """The current document of a board, without the fields that only its versions have."""
    entries = entries_of(connection, setting)
    return _with_ties(_outline(entries, setting), entries, setting)


def _outline(entries: Sequence[Entry], setting: Setting) -> dict[str, Any]:
    """The document without the tests of pairs, which are computed from it."""
    return {
        "schema_version": SCHEMA_VERSION,
        "type": BOARD,
        "board": {name: setting.board[name] for name in ("name", "title", "metric", "rule")},
        "suite": suite_part(setting),
        "phase": setting.phase["name"],
        "split": {"name": setting.phase["split"], "tasks": len(setting.tasks)},
        "level": setting.level,
        "conditions": {"digest": setting.board["conditions"], "document": setting.conditions},
        "method": asdict(DEFAULT_METHOD),
        "entries": [_entry(entry, setting) for entry in entries],
    }


def _with_ties(
    outline: Mapping[str, Any], entries: Sequence[Entry], setting: Setting
) -> dict[str, Any]:
    ties = ties_among(entries, setting)
    ranks = ties.ranks if ties is not None else ranks_of(entries, setting)
    smallest = (
        ties.smallest
        if ties is not None
        else smallest_differences(len(setting.tasks), len(entries), ())
    )
    shows_cases = setting.level.shows(Level.VERDICTS)
    shown = zip(outline["entries"], ranks, strict=True)
    return {
        **outline,
        "smallest": {**asdict(smallest), **({} if shows_cases else {"soft": None})},
        "entries": [{**entry, "ranks": list(rank)} for entry, rank in shown],
    }


def _entry(entry: Entry, setting: Setting) -> dict[str, Any]:
    row = entry.row
    document: dict[str, Any] = {
        "submission": row["submission"],
        "judging": row["judging"],
        "account": row["account_name"],
        "sha256": row["sha256"],
        "date": row["created"][:10],
        **{name: row[name] for name in _DECLARED},
    }
    if entry.scored is not None:
        document["scores"] = entry.scored.document(len(setting.tasks), setting.level)
        # If a level shows no verdicts, shares of accepted outputs would reveal them.
        if setting.level.shows(Level.VERDICTS) and (figures := _figures(row, setting)):
            document["figures"] = figures
    elif entry.score is not None:
        document["shown_score"] = shown_score(entry.score, len(setting.tasks))
    return document


def _figures(row: Mapping[str, Any], setting: Setting) -> Mapping[str, Any]:
    """The figures ``collateral`` and ``dynamic``, from the report of a judging of these tasks.

    The figures cover all tasks, so they are withheld while the budget limits the shown verdicts.
    """
    judged = row["judged"] or {}
    if is_bounded(setting.suite, setting.phase) and not setting.published:
        return {}
    if judged.get("tasks") != len(setting.tasks):
        return {}
    figures: Mapping[str, Any] = judged.get("figures") or {}
    return figures


def latest(connection: sa.Connection, board: str) -> dict[str, Any] | None:
    """The last version of a board."""
    return first_row(
        connection,
        sa.select(t.board_version)
        .where(t.board_version.c.board == board)
        .order_by(t.board_version.c.number.desc()),
    )


def version_shown(
    connection: sa.Connection, board: Mapping[str, Any], *, author: bool, number: int | None = None
) -> dict[str, Any] | None:
    """A version of a board, or the last one, if the caller may see it; otherwise None.

    Args:
        connection: a connection.
        board: row of the board.
        author: whether the caller is an author of the board's suite; authors also see the versions
            after the freeze.
        number: the number of the version; None for the last one.
    """
    statement = (
        sa.select(t.board_version)
        .where(t.board_version.c.board == board["id"])
        .order_by(t.board_version.c.number.desc())
    )
    if number is not None:
        statement = statement.where(t.board_version.c.number == number)
    frozen = board["frozen_at"]
    if frozen is not None and not author and not _is_published(connection, board):
        first = sa.select(sa.func.min(t.board_version.c.number)).where(
            t.board_version.c.board == board["id"]
        )
        statement = statement.where(
            sa.or_(
                t.board_version.c.created <= frozen,
                t.board_version.c.number == first.scalar_subquery(),
            )
        )
    return first_row(connection, statement)


def boards_of(server: Server) -> Boards:
    """The boards of a server."""
    boards: Boards = server.shared.setdefault(
        "boards", Boards(server.folder, server.options.public_url)
    )
    return boards


def _is_published(connection: sa.Connection, board: Mapping[str, Any]) -> bool:
    phase = row_of(connection, t.phase, board["phase"])
    now = connection.execute(sa.select(t.Now())).scalar_one()
    return phase_state(phase, now) is PhaseState.PUBLISHED
