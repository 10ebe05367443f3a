"""``judge sandbox``: build what solutions run in, and show what is available."""

from __future__ import annotations

import json

import click

from judge.cli.help import HelpGroup, OneOf
from judge.cli.options import json_option, option, sandbox_option
from judge.errors import SandboxError


def _what_to_build_for() -> list[str]:
    from judge.sandbox.select import AUTO, buildable_backends  # noqa: PLC0415  only for this command

    return [AUTO, *buildable_backends(), "all"]


@click.group(cls=HelpGroup)
def sandbox() -> None:
    """Build and inspect the sandbox."""


@sandbox.command()
@option(
    "--backend",
    type=OneOf(_what_to_build_for),
    default="auto",
    show_default=True,
    help="What to build for; auto: bubblewrap, and Docker if its daemon answers.",
)
@option(
    "--office/--no-office",
    default=None,
    help="With or without LibreOffice [with it if mmdebstrap is installed].",
)
@option("--desktop", is_flag=True, help="With LibreOffice Calc on a desktop [needs mmdebstrap].")
@option(
    "--verifier",
    is_flag=True,
    help="Only the Docker image that judges finished workbooks offline (docs/agents.md).",
)
@option("--base", metavar="IMAGE", help="Image to build the Docker image on.")
@json_option("what was built")
def build(
    backend: str,
    office: bool | None,
    desktop: bool,
    verifier: bool,
    base: str | None,
    as_json: bool,
) -> None:
    """Build what solutions run in: a root for bubblewrap, images for Docker.

    What already exists is left as it is.
    """
    from judge.sandbox.build import build_all  # noqa: PLC0415  `--help` needs none of it

    def report(line: str) -> None:
        click.echo(line, err=True)

    if verifier:
        from judge.sandbox.backends.verifier import build_verifier_image  # noqa: PLC0415  likewise

        built = {"verifier": build_verifier_image(report)}
    else:
        built = build_all(
            backend, with_office=office, with_desktop=desktop, base=base, report=report
        )
    if as_json:
        click.echo(json.dumps(built, ensure_ascii=False))


@sandbox.command()
@sandbox_option
@json_option("it")
def info(sandbox: str, as_json: bool) -> None:
    """Show which sandbox would be used, and what is in it."""
    from judge.sandbox import open_sandbox  # noqa: PLC0415  `--help` needs none of it
    from judge.sandbox.roots import ROOTS  # noqa: PLC0415  `--help` needs none of it

    opened = open_sandbox(sandbox)
    try:
        facts = opened.info
        services = [root for root in ROOTS if opened.has_root(root)]
    finally:
        opened.close()
    if as_json:
        document = {
            "backend": facts.backend,
            "image": facts.image,
            "python": facts.python,
            "runtime": facts.runtime,
            "packages": dict(facts.packages),
            "isolation": dict(facts.isolation),
            "services": services,
        }
        click.echo(json.dumps(document, ensure_ascii=False))
        return
    click.echo(f"{facts.backend}: {facts.image}")
    click.echo(f"  runtime: {facts.runtime}")
    click.echo(f"  python: {facts.python}")
    click.echo(f"  services: {', '.join(services)}")
    for title, entries in (("packages", facts.packages), ("isolation", facts.isolation)):
        click.echo(f"  {title}:")
        for name, value in sorted(entries.items()):
            click.echo(f"    {name}: {value}")


@sandbox.command()
@sandbox_option
@json_option("the outcomes")
def attack(sandbox: str, as_json: bool) -> None:
    """Run hostile programs against this machine's sandbox and show which attacks it withstood.

    Exits with 5 if it did not withstand one of them.
    """
    from judge.cli.attack import attack_backend, print_attacks  # noqa: PLC0415  needs the sandbox

    attacked = attack_backend(sandbox, show=not as_json)
    if as_json:
        click.echo(json.dumps(attacked.as_json(), ensure_ascii=False))
    else:
        print_attacks([attacked])
    if not attacked.held:
        click.get_current_context().exit(SandboxError.exit_code)
