"""Which of the proposed rules a person keeps: on a terminal, by options, or in a file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from judge.cli.options import option, together
from judge.core.option import Section
from judge.errors import UsageError
from judge.files.writing import naming_what_is_written, write_whole

if TYPE_CHECKING:
    from judge.authoring.proposals.propose import Proposal, Proposals


proposal_options = together(
    option("--yes", is_flag=True, section=Section.FILES, help="Keep all proposals."),
    option("--keep", metavar="NUMBERS", section=Section.FILES, help="Keep these proposals: 1,3."),
    option(
        "--propose",
        type=click.Path(dir_okay=False, path_type=Path),
        metavar="FILE",
        section=Section.FILES,
        help="Write the proposed rules to FILE, and add nothing.",
    ),
)
"""The options that say what of the proposals is kept."""


@dataclass(frozen=True, slots=True)
class Choice:
    """What the options say.

    Attributes:
        yes: whether all proposals are kept.
        keep: the numbers of those that are kept.
        propose: where the proposals are written to, if nothing is to be added.
    """

    yes: bool
    keep: str | None
    propose: Path | None

    def refuse(self) -> None:
        """Refuses the options where nothing is proposed.

        Raises:
            UsageError: one was given.
        """
        if self.yes or self.keep is not None or self.propose is not None:
            raise UsageError(
                "--yes, --keep and --propose: nothing is proposed here",
                hint="Rules are proposed with --from GOLD --input INPUT, without --rules.",
            )

    def ask(self, proposals: Proposals, *, terminal: bool) -> tuple[Proposal, ...] | None:
        """Shows the proposals; returns the kept ones, or None if they were only written down.

        Args:
            proposals: what is proposed.
            terminal: whether a person is there to answer.

        Raises:
            UsageError: there are none, none is kept, or nobody says which.
        """
        listed = proposals.listed
        if not listed:
            unsaid = f" that a rule says ({', '.join(proposals.unsaid)})" * bool(proposals.unsaid)
            raise UsageError(
                f"nothing differs between input and gold{unsaid}, so there is no rule to propose",
                hint="State the rules with --rules FILE.",
            )
        if self.propose is not None:
            from judge.authoring.proposals.propose import text_of  # noqa: PLC0415  for --help

            text = text_of(proposals, len(listed[0].rules))
            with naming_what_is_written(self.propose):
                write_whole(self.propose, text.encode(), mode=0o644)
            click.echo(f"{self.propose}: {len(listed)} rules; edit it and give it as --rules")
            return None
        for line in proposals.unsaid:
            click.echo(f"no rule says: {line}")
        asks = terminal and not self.yes and self.keep is None
        kept = tuple(
            each
            for number, each in enumerate(listed, start=1)
            if _shown(f"{number}. {each.words}", asks=asks)
        )
        if not asks:
            kept = self._chosen(listed)
        if not kept:
            raise UsageError("no rule is kept, so nothing would be judged")
        return kept

    def _chosen(self, listed: Sequence[Proposal]) -> tuple[Proposal, ...]:
        """What the options keep."""
        if self.yes:
            return tuple(listed)
        if self.keep is None:
            raise UsageError(
                f"nobody says which of the {len(listed)} proposed rules to keep",
                hint="--yes keeps all, --keep 1,3 some; --propose FILE writes them down.",
            )
        words = [each.strip() for each in self.keep.split(",")]
        most = len(listed)
        if not all(word.isdecimal() and 1 <= int(word) <= most for word in words):
            raise UsageError(f"--keep {self.keep}: must be numbers from 1 to {most}, such as 1,2")
        return tuple(listed[number - 1] for number in sorted({int(word) for word in words}))


def _shown(line: str, *, asks: bool) -> bool:
    """Shows a proposal; whether it is kept, if somebody is asked."""
    click.echo(line)
    return asks and click.confirm("   Keep it?", default=True, err=True)
