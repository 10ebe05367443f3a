"""The self-test of sandboxes, as ``judge doctor --attack`` and ``judge sandbox attack`` show it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

import click

from judge.errors import SandboxError

if TYPE_CHECKING:
    from rich.text import Text

    from judge.sandbox.selftest import AttackOutcome


@dataclass(frozen=True, slots=True)
class AttackedBackend:
    """The outcome on one backend.

    Attributes:
        backend: ``docker`` or ``bubblewrap``.
        runtime: what it runs on, for people.
        outcomes: one for each attack; those that were never tried are left out.
        isolation: what isolates a run there: ``user`` -> ``without capabilities, …`` and so on.
        problem: why the self-test could not be finished; empty if it was.
    """

    backend: str
    runtime: str
    outcomes: tuple[AttackOutcome, ...]
    problem: str = ""
    isolation: Mapping[str, str] = field(default_factory=dict)

    @property
    def held(self) -> bool:
        """Whether every attack was tried and withstood."""
        return not self.problem and all(outcome.held for outcome in self.outcomes)

    def as_json(self) -> dict[str, Any]:
        """As plain data."""
        return {
            "backend": self.backend,
            "runtime": self.runtime,
            "held": self.held,
            "problem": self.problem,
            "isolation": dict(self.isolation),
            "attacks": [asdict(outcome) for outcome in self.outcomes],
        }


def attack_backend(kind: str, *, show: bool) -> AttackedBackend:
    """Runs the self-test against one backend of this machine.

    Args:
        kind: ``auto``, ``docker`` or ``bubblewrap``.
        show: report progress on standard error.

    Raises:
        SandboxError: this sandbox is not available here.
    """
    from judge.sandbox import open_sandbox, selftest  # noqa: PLC0415  `--help` needs none of it

    opened = open_sandbox(kind)
    outcomes: list[AttackOutcome] = []
    problem = ""
    try:
        info = opened.info
        if show:
            click.echo(f"{info.backend} ({info.runtime}): {selftest.COUNT} attacks …", err=True)
        try:
            outcomes.extend(selftest.attack(opened))
        except SandboxError as error:
            problem = error.message
        isolation = opened.info.isolation  # what it really was shows after the first run
    finally:
        opened.close()
    return AttackedBackend(info.backend, info.runtime, tuple(outcomes), problem, isolation)


def print_attacks(attacked: Sequence[AttackedBackend]) -> None:
    """Prints a table: a line for each attack, a column for each backend."""
    from judge.cli.listing import print_table, table  # noqa: PLC0415  `--json` needs none of it
    from judge.console import make_console, styled  # noqa: PLC0415

    console = make_console()
    shown = table("!attack", "what must hold", *(each.backend for each in attacked))
    found = [{outcome.name: outcome for outcome in each.outcomes} for each in attacked]
    properties = {name: one.attacked for outcomes in found for name, one in outcomes.items()}
    for name, attacked_property in properties.items():
        cells = [_cell(outcomes.get(name)) for outcomes in found]
        shown.add_row(name, attacked_property, *cells)
    print_table(shown, console)
    for each in attacked:
        count = sum(outcome.held for outcome in each.outcomes)
        console.print(f"{each.backend}: withstood {count} of {len(each.outcomes)} attacks")
        for name, value in each.isolation.items():
            console.print(styled((f"  {name}: {value}", "dim")))
        if each.problem:
            console.print(styled(("  stopped before the end:", "red"), f" {each.problem}"))
        for outcome in each.outcomes:
            if not outcome.held:
                console.print(styled((f"  {outcome.name}:", "red"), f" {outcome.detail}"))


def _cell(outcome: AttackOutcome | None) -> Text:
    from judge.console import styled  # noqa: PLC0415

    if outcome is None:
        return styled(("not tried", "dim"))
    return styled(("held", "green") if outcome.held else ("FAILED", "bold red"))
