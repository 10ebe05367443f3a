"""``judge verify --review``: suspect golds one by one in the browser."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from judge.cli.local_page import serve_page
from judge.cli.options import who
from judge.core.task import split_ids
from judge.errors import UsageError

DEFAULT_SUSPECTS = Path("suspects.json")


@dataclass(frozen=True, slots=True)
class Served:
    """How the page is served.

    Attributes:
        by: the reviewer; None for the user's own name.
        port: 0 for any free one.
        no_browser: whether the address is only printed.
    """

    by: str | None
    port: int
    no_browser: bool


def review_suite(
    suite: str,
    suspects: Path | None,
    submissions: tuple[Path, ...],
    out: Path | None,
    options: dict[str, Any],
    served: Served,
) -> None:
    """Opens the review page; audits the suite first if there are no suspects yet.

    Args:
        suite: the suite.
        suspects: the file of suspects; None for ``suspects.json`` here.
        submissions: runs and folders of outputs to show.
        out: the file of corrections to write; None for one next to the suspects.
        options: the other options of ``judge verify``.
        served: who reviews, and where.
    """
    from judge.api import suspecting  # noqa: PLC0415  `judge verify --help` needs none of it
    from judge.review.page import ReviewPage  # noqa: PLC0415  likewise
    from judge.review.session import ReviewSession  # noqa: PLC0415  likewise
    from judge.suites import load_suite  # noqa: PLC0415  likewise
    from judge.suspects.records import read_suspects, write_suspects  # noqa: PLC0415  likewise

    if options["corrections"] or options["corrections_from"] is not None:
        raise UsageError(
            "a review is of the published golds, without corrections",
            hint="Leave --corrections out; `judge verify --audit --corrections` audits what is "
            "left of the suspects.",
        )
    path, ids = suspects or DEFAULT_SUSPECTS, set(split_ids(options["ids"]))
    if not path.exists():
        if suspects is not None:
            raise UsageError(
                f"{path}: no such file",
                hint=f"`judge verify {suite} --audit --out {path}` writes it.",
            )
        click.echo(f"auditing {suite}", err=True)
        write_suspects(path, suspecting.suspects(suite, submissions=submissions))
    loaded, audit = load_suite(suite), read_suspects(path)
    outputs, _ = suspecting.outputs_of(submissions, loaded)
    session = ReviewSession(
        loaded,
        audit,
        path,
        out or path.with_suffix(".corrections.yaml"),
        by=who(served.by),
        outputs=outputs,
        ids=ids,
    )
    if session.left_out:
        click.echo(f"{session.left_out} suspects are of other files, and are left out", err=True)
    serve_page(
        ReviewPage(session),
        "judge review",
        said=f"{len(session.suspects)} suspects for {session.by}",
        port=served.port,
        no_browser=served.no_browser,
    )
    click.echo(
        f"ended; corrections in {session.corrections_path}: {len(session.merged().corrections)}"
    )
