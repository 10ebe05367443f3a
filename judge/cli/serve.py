"""``judge serve``: runs the online judge, as one process or as separate parts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from judge.cli.groups import admin
from judge.cli.help import HelpGroup
from judge.cli.options import option, options_of
from judge.core.option import Section, options_in
from judge.serve.options import ListenOptions, SlotOptions, StorageOptions, check_installed

if TYPE_CHECKING:
    from judge.serve.context import Server


def of_kind(kind: type[Any], options: dict[str, Any]) -> Any:
    """Makes an instance of an options dataclass from the options of a command."""
    return kind(**{name: options[name] for name in options_in(kind)})


@click.group(
    cls=HelpGroup,
    invoke_without_command=True,
    examples=(
        "serve --data judge-data",
        "serve --demo",
        "serve admin suite add budget ./my-suite --data judge-data",
    ),
    first="data listen slots demo",
)
@options_of(ListenOptions)
@options_of(SlotOptions)
@option(
    "--demo",
    is_flag=True,
    section=Section.FILES,
    help="Add the sample suites and a board of sample submissions.",
)
@click.pass_context
def serve(context: click.Context, /, demo: bool, **options: Any) -> None:
    """Run the online judge: submissions over HTTP, a queue, boards, disputes and rejudgings.

    The first start makes the data folder and prints a link to sign in as its operator. Server and
    dispatcher run in this process; `serve api` and `serve dispatch` run them separately and, with
    PostgreSQL, on several machines (docs/serve.md).
    """
    if context.invoked_subcommand is not None:
        return
    check_installed()
    from judge.serve.running import add_demo  # noqa: PLC0415  `--help` needs none of it
    from judge.serve.running import serve as run  # noqa: PLC0415

    listen, slots = of_kind(ListenOptions, options), of_kind(SlotOptions, options)

    def prepare(server: Server) -> None:
        click.echo("The dispatcher is ready.")
        if demo:
            for line in add_demo(server):
                click.echo(line)

    run(listen, slots, on_listening=_tell, after_opening=prepare)
    raise KeyboardInterrupt


@serve.command(examples=("serve api --database postgresql://judge@db/judge --data /srv/judge",))
@options_of(ListenOptions)
def api(**options: Any) -> None:
    """Run only the server; other processes judge (`serve dispatch`)."""
    check_installed()
    from judge.serve.running import serve as run  # noqa: PLC0415  as above

    run(of_kind(ListenOptions, options), None, on_listening=_tell)
    raise KeyboardInterrupt


@serve.command(examples=("serve dispatch --name node1 --slots 8 --data /srv/judge",))
@options_of(StorageOptions)
@options_of(SlotOptions)
def dispatch(**options: Any) -> None:
    """Run only a dispatcher, which needs access to the database and the data folder."""
    check_installed()
    from judge.serve.running import dispatch as run  # noqa: PLC0415  as above

    storage, slots = of_kind(StorageOptions, options), of_kind(SlotOptions, options)
    run(storage, slots, on_ready=lambda: click.echo(f"dispatcher {slots.name} is ready"))
    raise KeyboardInterrupt


def _tell(server: Server, code: str | None, address: str) -> None:
    click.echo(f"judge serve: {address}\nCtrl-C ends it.")
    if code is not None:
        click.echo(f"Sign in as operator, once, within 30 minutes: {address}/sign-in?code={code}")
    click.echo(f"A link to sign in: {server.program} serve admin link ACCOUNT {server.where}")


serve.add_command(admin)
