"""``judge serve admin``: accounts, suites, phases, boards, keys, backups and the audit log."""

from __future__ import annotations

import contextlib
import datetime as dt
import getpass
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import click
import sqlalchemy as sa

from judge.cli.help import HelpCommand
from judge.cli.options import option, options_of, together
from judge.cli.output import print_table, table
from judge.console import print_label
from judge.errors import UsageError
from judge.serve.access.accounts import (
    account_named,
    add_member,
    change_account,
    create_account,
    create_sign_in,
    create_token,
)
from judge.serve.boards.feedback import leak_lines
from judge.serve.boards.probing import probing_lines, probing_of
from judge.serve.boards.signing import SigningKeys
from judge.serve.boards.ties import Metric
from judge.serve.boards.versions import NewBoard
from judge.serve.catalog import (
    NewPhase,
    NewSuite,
    add_phase,
    add_revision,
    check_suite,
    check_time,
    name_role,
    set_phase_state,
    set_reviewers,
    suite_named,
)
from judge.serve.context import ADDRESS, OIDC, Server
from judge.serve.operations.deliveries import HOSTS, hosts_of
from judge.serve.operations.sending import check_allowed_host
from judge.serve.operations.upkeep import (
    back_up,
    changed_revisions,
    dispute_outvoted,
    faults_of,
    log_entries,
)
from judge.serve.operations.upkeep import restore as restored
from judge.serve.operations.upkeep import sweep as swept
from judge.serve.options import LOOPBACK, StorageOptions
from judge.serve.queue.conditions import set_setting
from judge.serve.queue.dispatcher import MAINTENANCE
from judge.serve.running import opened
from judge.serve.store import tables as t
from judge.serve.store.database import Actor, Database, all_rows, sqlite_url
from judge.serve.store.folder import DataFolder
from judge.serve.store.tables import (
    AccountKind,
    Level,
    Now,
    PhaseState,
    Role,
    Scope,
    SuiteRole,
    Visibility,
)

_PLACE = options_of(StorageOptions)
_PHASE_TIMES = together(
    option("--opens", metavar="TIME", help="In UTC: 2026-01-31T00:00:00Z [now]."),
    option("--closes", metavar="TIME", help="Likewise [never]."),
)


@contextlib.contextmanager
def server_of(options: dict[str, Any], *, begins: bool = False) -> Iterator[Server]:
    """Removes the options that name a server from ``options``, and opens that server.

    Args:
        options: the options of a command.
        begins: whether the command makes a data folder that does not exist.

    Raises:
        UsageError: there is no such server.
    """
    storage = StorageOptions(data=options.pop("data"), database=options.pop("database"))
    if not begins:
        _check_begun(storage)
    try:
        with opened(storage) as opening:
            yield opening.server
    except UnicodeEncodeError as error:
        raise UsageError("a name has characters that cannot be stored") from error


def _check_begun(storage: StorageOptions) -> None:
    """Checks that the data of a server exist, so that a wrong --data makes no second server."""
    folder = DataFolder(storage.data.expanduser())
    if storage.database is None and not folder.database.is_file():
        raise UsageError(
            f"{folder.path}: holds no data of a server: there is no {folder.database.name}",
            hint="Give --data or --database; `judge serve`, `account add` and `suite add` make a "
            "new data folder.",
        )


def acting() -> Actor:
    """The user who runs the command, for the audit log."""
    return Actor(f"admin:{getpass.getuser()}"[:80])


@click.command("add", cls=HelpCommand, examples=("serve admin account add ann --role author",))
@click.argument("name")
@option("--kind", type=click.Choice(["person", "team", "service"]), default="person")
@option(
    "--role",
    "roles",
    type=click.Choice(["author", "operator"]),
    multiple=True,
    help="Of the server.",
)
@option(
    "--member",
    "members",
    multiple=True,
    metavar="ACCOUNT",
    help="Member of a team; may be repeated.",
)
@_PLACE
def account_add(
    name: str, kind: str, roles: tuple[str, ...], members: tuple[str, ...], **options: Any
) -> None:
    """Make an account."""
    with (
        server_of(options, begins=True) as server,
        server.database.writing(acting()) as transaction,
    ):
        account_id = create_account(
            transaction, name, kind=AccountKind(kind), roles=[Role(role) for role in roles]
        )
        for member in members:
            person = account_named(transaction.connection, member)
            add_member(transaction, account_id, person["id"])
    click.echo(account_id)


@click.command("list", cls=HelpCommand, examples=("serve admin account list",))
@_PLACE
def account_list(**options: Any) -> None:
    """List the accounts."""
    _list(options, "account", ("name", "kind", "state", "waiting", "running", "concurrency", "id"))


@click.command("set", cls=HelpCommand, examples=("serve admin account set ann --state blocked",))
@click.argument("name")
@option("--state", type=click.Choice(["pending", "active", "blocked"]))
@option("--concurrency", type=click.IntRange(0, 1000), help="Judgings of the account at a time.")
@_PLACE
def account_set(name: str, state: str | None, concurrency: int | None, **options: Any) -> None:
    """Block or activate an account, or change how many judgings it may have at a time."""
    if state is None and concurrency is None:
        raise UsageError("nothing to set", hint="Give --state or --concurrency.")
    with server_of(options) as server, server.database.writing(acting()) as transaction:
        row = account_named(transaction.connection, name)
        change_account(transaction, row, state=state, concurrency=concurrency)


@click.command(cls=HelpCommand, examples=("serve admin token ann --scope submit --scope read",))
@click.argument("account")
@option(
    "--scope",
    "scopes",
    type=click.Choice(["submit", "read", "dispute", "review", "author", "operate"]),
    multiple=True,
    default=("submit", "read"),
    show_default=True,
    help="What the token may be used for; may be repeated.",
)
@option("--days", type=click.IntRange(1, 366), default=90, show_default=True)
@option("--name", default="command line", show_default=True)
@_PLACE
def token(account: str, scopes: tuple[str, ...], days: int, name: str, **options: Any) -> None:
    """Make a token for ACCOUNT, and print it; it is not stored."""
    with server_of(options) as server, server.database.writing(acting()) as transaction:
        row = account_named(transaction.connection, account)
        chosen = [Scope(scope) for scope in scopes]
        _, text = create_token(transaction, row["id"], name, chosen, days=days)
    click.echo(text)


@click.command(cls=HelpCommand, examples=("serve admin link operator",))
@click.argument("account")
@_PLACE
def link(account: str, **options: Any) -> None:
    """Print a link that signs ACCOUNT in once, within 30 minutes.

    The link has the address at which the server was last started.
    """
    with server_of(options) as server:
        with server.database.writing(acting()) as transaction:
            row = account_named(transaction.connection, account)
            code = create_sign_in(transaction, row["id"])
        address = server.setting(ADDRESS)
    if address is None:
        print_label(
            "note:", "cyan", "the server has not been started: put its address before the link"
        )
    click.echo(f"{address or ''}/sign-in?code={code}")


@click.command(
    "add",
    cls=HelpCommand,
    examples=("serve admin suite add budget ./my-suite --hidden 17 --hidden 18",),
)
@click.argument("name")
@click.argument("source")
@option("--corrections", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@option("--owner", default="operator", show_default=True, metavar="ACCOUNT", help="Its author.")
@option("--title", default="", help="For people [NAME].")
@option(
    "--visibility",
    type=click.Choice(["public", "listed", "hidden"]),
    default="public",
    show_default=True,
)
@option("--hidden", multiple=True, metavar="ID", help="Task of the hidden split; or `all`.")
@option("--level", multiple=True, metavar="SPLIT=LEVEL", help="Feedback level, as hidden=tasks.")
@option(
    "--options",
    metavar="JSON",
    default="{}",
    help='How the suite is judged, such as {"profile": "strict"}.',
)
@option("--note", default="", help="Why there is a new revision.")
@option("--unchecked", is_flag=True, help="Skip `judge verify` of the suite.")
@_PLACE
def suite_add(name: str, source: str, unchecked: bool, **options: Any) -> None:
    """Add the suite SOURCE under NAME, or make it the newest revision of that suite.

    The files are copied into the data folder, and never changed there.
    """
    with server_of(options, begins=True) as server:
        corrections = options.pop("corrections")
        hidden = check_suite(source, corrections, options.pop("hidden"), verify=not unchecked)
        levels = dict(_pair(text) for text in options.pop("level"))
        owner, visibility = options.pop("owner"), Visibility(options.pop("visibility"))
        rules = _json_object(options.pop("options"))
        with server.database.writing(acting()) as transaction:
            owner = account_named(transaction.connection, owner)["id"]
            row = add_revision(
                server,
                transaction,
                NewSuite(
                    name,
                    source,
                    owner,
                    corrections=corrections,
                    visibility=visibility,
                    hidden=hidden,
                    levels={split: Level(level) for split, level in levels.items()},
                    options=rules,
                    **options,
                ),
            )
    click.echo(f"{name}: revision {row['number']}, {row['cases']} cases, {row['digest']}")


@click.command("list", cls=HelpCommand, examples=("serve admin suite list",))
@_PLACE
def suite_list(**options: Any) -> None:
    """List the suites."""
    _list(options, "suite", ("name", "title", "visibility", "levels", "id"))


@click.command("name", cls=HelpCommand, examples=("serve admin suite name budget ann reviewer",))
@click.argument("suite")
@click.argument("account")
@click.argument("role", type=click.Choice(["author", "reviewer"]))
@_PLACE
def suite_name(suite: str, account: str, role: str, **options: Any) -> None:
    """Name ACCOUNT as an author or a reviewer of SUITE."""
    with server_of(options) as server, server.database.writing(acting()) as transaction:
        row = account_named(transaction.connection, account)
        name_role(transaction, suite, row["id"], SuiteRole(role))


@click.command(
    "add", cls=HelpCommand, examples=("serve admin phase add budget-open budget --per-day 3",)
)
@click.argument("name")
@click.argument("suite")
@option("--split", default="public", show_default=True)
@_PHASE_TIMES
@option("--per-day", type=click.IntRange(1, 10**6), default=5, show_default=True)
@option("--in-total", type=click.IntRange(1, 10**6), default=100, show_default=True)
@_PLACE
def phase_add(name: str, suite: str, **options: Any) -> None:
    """Add the phase NAME to SUITE."""
    with server_of(options) as server, server.database.writing(acting()) as transaction:
        click.echo(add_phase(transaction, NewPhase(name, suite, **options)))


@click.command("set", cls=HelpCommand, examples=("serve admin phase set budget-open published",))
@click.argument("name")
@click.argument("state", type=click.Choice(["planned", "open", "closed", "published", "by-time"]))
@_PLACE
def phase_set(name: str, state: str, **options: Any) -> None:
    """Open, close or publish a phase by hand, or let its times decide again."""
    with server_of(options) as server:
        chosen = None if state == "by-time" else PhaseState(state)
        with server.database.writing(acting()) as transaction:
            set_phase_state(transaction, name, chosen)
            row = transaction.one(sa.select(t.phase.c.id).where(t.phase.c.name == name))
            assert row is not None, "its state was set"
            server.shared["boards"].renew(transaction, row["id"], f"the phase is {state}")


@click.command("list", cls=HelpCommand, examples=("serve admin phase list",))
@_PLACE
def phase_list(**options: Any) -> None:
    """List the phases."""
    _list(options, "phase", ("name", "split", "state", "opens", "closes", "per_day", "in_total"))


@click.command(
    "add", cls=HelpCommand, examples=("serve admin board add budget budget-open --metric soft",)
)
@click.argument("name")
@click.argument("phase")
@option("--title", default="", help="For people [NAME].")
@option("--metric", type=click.Choice(["hard", "soft"]), default="hard", show_default=True)
@option(
    "--rule",
    type=click.Choice(["latest", "best", "chosen"]),
    default="best",
    show_default=True,
    help="Which submission of an account counts.",
)
@option(
    "--frozen-at",
    metavar="TIME",
    help="From this time on, the public sees the board as it was at this time.",
)
@_PLACE
def board_add(name: str, phase: str, metric: str, **options: Any) -> None:
    """Add the board NAME to PHASE; its conditions are the current ones."""
    with server_of(options) as server:
        new = NewBoard(name, phase, metric=Metric(metric), **options)
        with server.database.writing(acting()) as transaction:
            click.echo(server.shared["boards"].add(transaction, new))


@click.command(
    cls=HelpCommand,
    examples=(
        "serve admin oidc https://id.example.org --client judge --secret-file key",
        "serve admin oidc off",
    ),
)
@click.argument("issuer")
@option("--client", default="", metavar="ID", help="Client ID of this server at the provider.")
@option(
    "--secret-file",
    type=click.Path(dir_okay=False, path_type=Path),
    help="File with the client's secret.",
)
@option("--title", default="", help="Name of the provider on the sign-in page [its host].")
@_PLACE
def oidc(issuer: str, client: str, secret_file: Path | None, title: str, **options: Any) -> None:
    """Let people sign in at the OpenID Connect provider ISSUER; `off` ends it.

    An operator has to activate people who sign in for the first time (`account set NAME --state
    active`). The provider sends browsers back to /sign-in/provider.
    """
    value = None
    if issuer != "off":
        host = _provider_host(issuer)
        if not client or secret_file is None:
            raise UsageError("a provider needs --client and --secret-file")
        try:
            secret = secret_file.read_text(encoding="utf-8").strip()
        except (OSError, UnicodeDecodeError) as error:
            raise UsageError(f"{secret_file}: cannot be read as text") from error
        value = {"issuer": issuer, "client": client, "secret": secret, "title": title or host}
    with server_of(options) as server, server.database.writing(acting()) as transaction:
        set_setting(transaction, OIDC, value)
        transaction.event("oidc", OIDC, after="off" if value is None else "on")


@click.command(cls=HelpCommand, examples=("serve admin leak budget --submissions 150",))
@click.argument("suite")
@option(
    "--submissions",
    type=click.IntRange(1, 1_000_000),
    default=150,
    show_default=True,
    help="Submissions that a team can make in a phase.",
)
@_PLACE
def leak(suite: str, submissions: int, **options: Any) -> None:
    """Show how much each feedback level can give away of a suite's splits.

    The figures are upper bounds in bits, for one submission and for all submissions of a team in a
    phase, and the number of golds that can be guessed (docs/leaderboards.md).
    """
    with server_of(options) as server:
        for line in leak_lines(server, suite, submissions):
            click.echo(line)


@click.command(cls=HelpCommand, examples=("serve admin probing budget",))
@click.argument("suite")
@_PLACE
def probing(suite: str, **options: Any) -> None:
    """List signs that submissions to SUITE are used to find out its golds.

    The signs are answers of one account that differ only in literals, and wrong answers that
    several accounts have in common. Authors see the same list at /suites/NAME/probing.
    """
    with server_of(options) as server, server.database.reading() as connection:
        row = suite_named(connection, suite)
        signs = probing_of(connection, server.folder, row["id"])
    for line in probing_lines(signs):
        click.echo(line)


@click.command(cls=HelpCommand, examples=("serve admin maintenance on --message 'back at noon'",))
@click.argument("state", type=click.Choice(["on", "off"]))
@option(
    "--message", default="Maintenance.", show_default=True, help="Message to people who submit."
)
@_PLACE
def maintenance(state: str, message: str, **options: Any) -> None:
    """Stop accepting submissions and starting judgings (running ones finish), or resume."""
    with server_of(options) as server:
        value = {"message": message} if state == "on" else None
        with server.database.writing(acting()) as transaction:
            set_setting(transaction, MAINTENANCE, value)
            transaction.event("maintenance", MAINTENANCE, after=state)


@click.command(cls=HelpCommand, examples=("serve admin check",))
@_PLACE
def check(**options: Any) -> None:
    """Check the data for inconsistencies and list them; exits with 1 if there are any."""
    with server_of(options) as server:
        faults = faults_of(server.database, server.folder)
        faults += changed_revisions(server.database, server.folder)
    for fault in faults:
        click.echo(fault)
    click.echo("all in order" if not faults else f"{len(faults)} faults")
    if faults:
        click.get_current_context().exit(1)


def _list(options: dict[str, Any], name: str, columns: tuple[str, ...]) -> None:
    with server_of(options) as server:
        source = t.metadata.tables[name]
        with server.database.reading() as connection:
            rows = all_rows(connection, sa.select(source).order_by(source.c.name))
    shown = table(*columns)
    for row in rows:
        shown.add_row(*(str(row[column]) for column in columns))
    print_table(shown)


def _provider_host(issuer: str) -> str:
    """Returns the host of a provider's address."""
    try:
        parts = urlsplit(issuer)
        host = parts.hostname or ""
    except ValueError as error:
        raise UsageError(f"{issuer[:200]}: cannot be read as an address") from error
    if not host or (parts.scheme != "https" and host not in LOOPBACK):
        raise UsageError(f"{issuer[:200]}: a provider needs an https address")
    return host


def _pair(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals:
        raise UsageError(f"--level: {text!r} is not SPLIT=LEVEL")
    if value not in {"none", "score", "tasks", "verdicts", "cells"}:
        raise UsageError(f"--level: there is no level {value!r}")
    return name, value


def _json_object(text: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except ValueError as error:
        raise UsageError(f"--options: not JSON: {error}") from error
    if not isinstance(value, dict):
        raise UsageError("--options: not a JSON object")
    return value


@click.command(cls=HelpCommand, examples=("serve admin backup judge.tar --data judge-data",))
@click.argument("file", type=click.Path(path_type=Path))
@_PLACE
def backup(file: Path, **options: Any) -> None:
    """Write a backup to FILE while the server runs: database, bodies, suites, results, keys."""
    with server_of(options) as server:
        result = back_up(server.database, server.folder, file)
    click.echo(f"{file}: {result.database} and {result.files} files, {result.bytes:,} bytes")


@click.command(cls=HelpCommand, examples=("serve admin restore judge.tar --data new-data",))
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@_PLACE
def restore(file: Path, data: Path, database: str | None) -> None:
    """Make a new data folder from the backup FILE, and check it.

    A backup of PostgreSQL goes into the empty database that --database names.
    """
    folder = DataFolder(data.expanduser())
    restored_database = restored(file, folder, database)
    faults = [*faults_of(restored_database, folder), *changed_revisions(restored_database, folder)]
    restored_database.close()
    for fault in faults:
        click.echo(fault)
    click.echo(f"{data}: restored; {f'{len(faults)} faults' if faults else 'all in order'}")
    if faults:
        click.get_current_context().exit(1)


@click.command(cls=HelpCommand, examples=("serve admin migrate --data judge-data",))
@option("--back", is_flag=True, help="Undo the last migration, before an older judge is started.")
@_PLACE
def migrate(back: bool, data: Path, database: str | None) -> None:
    """Bring the database to the schema of this version, or one step back."""
    _check_begun(StorageOptions(data=data, database=database))
    opened = Database(database or sqlite_url(DataFolder(data.expanduser()).database))
    if back:
        opened.step_back()
    else:
        opened.migrate()
    opened.close()
    click.echo("one step back" if back else "the schema is that of this version")


@click.command(
    cls=HelpCommand,
    examples=("serve admin log --since 2026-01-31", "serve admin log --kind dispute"),
)
@option("--since", metavar="TIME", help="In UTC: 2026-01-31, or 2026-01-31T12:00:00Z [1 day ago].")
@option(
    "--kind",
    metavar="KIND",
    help="Kind of the events, or the beginning of a kind, such as `dispute`.",
)
@option("--json", "as_json", is_flag=True, help="Print one JSON object per line.")
@_PLACE
def log(since: str | None, kind: str | None, as_json: bool, **options: Any) -> None:
    """Print the audit log: who did what, from where."""
    if since is not None:
        check_time(since, or_day=True)
    with server_of(options) as server:
        start = since or f"{dt.datetime.now(dt.UTC) - dt.timedelta(days=1):%Y-%m-%dT%H:%M:%SZ}"
        for entry in log_entries(server.database, start, kind):
            if as_json:
                click.echo(json.dumps(dict(entry)))
                continue
            change = " → ".join(str(entry[name]) for name in ("before", "after") if entry[name])
            parts = (entry["created"], entry["kind"], entry["object"], change, entry["actor"])
            click.echo(" ".join(str(part) for part in (*parts, entry["address"] or "") if part))


@click.command("list", cls=HelpCommand, examples=("serve admin keys list",))
@_PLACE
def keys_list(**options: Any) -> None:
    """List the public keys, with the times that they are valid."""
    with server_of(options) as server:
        now, signing = _signing(server)
        for key in signing.public(now):
            click.echo(json.dumps(dict(key)))


@click.command("rotate", cls=HelpCommand, examples=("serve admin keys rotate",))
@_PLACE
def keys_rotate(**options: Any) -> None:
    """Sign with a new key from now on; the earlier ones stay listed."""
    with server_of(options) as server:
        now, signing = _signing(server)
        key_id = signing.rotate(now)
        with server.database.writing(acting()) as transaction:
            transaction.event("key.rotated", key_id[:31])
    click.echo(key_id)


@click.command(
    "revoke",
    cls=HelpCommand,
    examples=("serve admin keys revoke KEY --since 2026-01-31T00:00:00Z",),
)
@click.argument("key")
@option(
    "--since",
    metavar="TIME",
    required=True,
    help="In UTC; signatures that the key made later are not valid.",
)
@_PLACE
def keys_revoke(key: str, since: str, **options: Any) -> None:
    """Declare KEY untrusted from a given time on."""
    check_time(since)
    with server_of(options) as server:
        _, signing = _signing(server)
        signing.revoke(key, since)
        with server.database.writing(acting()) as transaction:
            transaction.event("key.revoked", key[:31], after=since)


def _signing(server: Any) -> tuple[str, Any]:
    with server.database.reading() as connection:
        now = str(connection.scalar(sa.select(Now())))
    return now, SigningKeys(server.folder.path / "keys")


@click.command(
    cls=HelpCommand,
    examples=("serve admin webhooks --allow ci.example.org --allow '*.example.net:8443'",),
)
@option(
    "--allow", "allowed", multiple=True, metavar="HOST", help="A host to allow; may be repeated."
)
@option(
    "--deny",
    "denied",
    multiple=True,
    metavar="HOST",
    help="An allowed host to remove; may be repeated.",
)
@_PLACE
def webhooks(allowed: tuple[str, ...], denied: tuple[str, ...], **options: Any) -> None:
    """Allow hosts for webhooks, and list them; at first, no host is allowed."""
    with server_of(options) as server:
        for host in allowed:
            check_allowed_host(host)
        with server.database.writing(acting()) as transaction:
            before = hosts_of(transaction.connection)
            hosts = sorted({host.lower() for host in (*before, *allowed)} - {*denied})
            if hosts != before:
                set_setting(transaction, HOSTS, hosts)
                transaction.event("webhooks.allowed", HOSTS, after=" ".join(hosts))
    for host in hosts:
        click.echo(host)


@click.command(cls=HelpCommand, examples=("serve admin outvoted budget",))
@click.argument("name", metavar="SUITE")
@_PLACE
def outvoted(name: str, **options: Any) -> None:
    """Open disputes over golds of SUITE that several accounts' submissions outvote; run it nightly.

    Reviewers decide the disputes. Only the values stored in the workbooks are compared; nothing is
    run or computed.
    """
    with server_of(options) as server:
        disputes = dispute_outvoted(server, name, acting())
    for dispute in disputes:
        click.echo(dispute)
    click.echo(f"{len(disputes)} new disputes")


@click.command("set", cls=HelpCommand, examples=("serve admin suite set budget --reviewers 2",))
@click.argument("name")
@option(
    "--reviewers",
    type=click.IntRange(1, 2),
    required=True,
    help="How many reviewers have to agree.",
)
@_PLACE
def suite_set(name: str, reviewers: int, **options: Any) -> None:
    """Set how many reviewers have to agree before a gold of suite NAME is corrected.

    With 2, neither of the two may apply the rejudging that follows.
    """
    with server_of(options) as server, server.database.writing(acting()) as transaction:
        set_reviewers(transaction, name, reviewers)


@click.command(cls=HelpCommand, examples=("serve admin sweep",))
@_PLACE
def sweep(**options: Any) -> None:
    """Remove files that no row of the database names and that are older than a day."""
    with server_of(options) as server:
        removed = swept(server.database, server.folder)
    click.echo(f"{removed} files and folders removed")
