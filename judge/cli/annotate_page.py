"""``judge annotate SUITE TASK``: the annotator's page."""

from __future__ import annotations

import threading
from pathlib import Path

import click

from judge.cli.annotate_cases import author_option, reference_option
from judge.cli.help import HelpCommand
from judge.cli.local_page import serve_page
from judge.cli.options import option, page_options, sandbox_option
from judge.cli.signals import Ended


@click.command(cls=HelpCommand)
@click.argument("suite")
@click.argument("task_id", metavar="TASK")
@reference_option
@option("--from", "base", type=click.IntRange(min=1), help="Case to begin from [the first].")
@page_options
@author_option
@sandbox_option
def page(
    suite: str,
    task_id: str,
    references: tuple[Path, ...],
    base: int | None,
    port: int,
    no_browser: bool,
    author: str,
    sandbox: str,
) -> None:
    """Open the annotator's page for TASK of SUITE, only on 127.0.0.1.

    Change cells of the input, watch the gold change with them, and save both as a new case. Every
    change is kept in a draft at once; the same command resumes an unsaved draft. Ctrl-C ends the
    server.
    """
    from judge.annotate.annotator import Annotator  # noqa: PLC0415  `--help` needs none of it
    from judge.annotate.web.server import Page, check_grid  # noqa: PLC0415  likewise
    from judge.annotate.web.session import AnnotationSession  # noqa: PLC0415  likewise

    check_grid()
    with Annotator(suite, sandbox=sandbox, ids=[task_id]) as annotator:
        annotator.book.check_writable()
        solutions = annotator.references(task_id, references) if references else []
        session = AnnotationSession(annotator, task_id, author, references=solutions, base=base)
        warming = threading.Thread(target=session.warm_up)
        try:
            serve_page(
                Page(session, annotator.book.suite.name, author),
                "judge annotate",
                said=f"task {task_id} for {author}",
                port=port,
                no_browser=no_browser,
                on_listening=warming.start,
            )
            warming.join()
        except Ended:
            annotator.close()  # what is being computed is not waited for
            raise
        finally:
            session.leave()
        click.echo("ended; drafts are kept")
