"""``judge serve admin``, continued: backups, the log, keys, webhooks, and outvoted golds."""

from __future__ import annotations

import datetime as dt
import json
from pathlib import Path
from typing import Any

import click
import sqlalchemy as sa

from judge.cli.help import HelpCommand
from judge.cli.options import option, options_of
from judge.cli.serve_admin import acting, server_of
from judge.errors import UsageError
from judge.serve.boards.signing import SigningKeys
from judge.serve.catalog import set_reviewers
from judge.serve.operations.deliveries import HOSTS, hosts_of
from judge.serve.operations.sending import check_allowed_host
from judge.serve.operations.upkeep import back_up, dispute_outvoted, log_entries
from judge.serve.operations.upkeep import restore as restored
from judge.serve.operations.upkeep import sweep as swept
from judge.serve.options import StorageOptions
from judge.serve.queue.checking import changed_revisions, faults_of
from judge.serve.queue.conditions import set_setting
from judge.serve.store.database import Database, sqlite_url
from judge.serve.store.folder import DataFolder
from judge.serve.store.tables import Now

_PLACE = options_of(StorageOptions)


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
    folder = DataFolder(data.expanduser())
    if database is None and not folder.database.is_file():
        raise UsageError(f"{folder.database}: no such file", hint="Give --data or --database.")
    opened = Database(database or sqlite_url(folder.database))
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
