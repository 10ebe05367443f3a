"""``judge annotate suggest``: ideas for corner cases, with their golds, to be approved."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from judge.cli.annotate_cases import author_option, reference_option
from judge.cli.options import sandbox_option
from judge.errors import UsageError

if TYPE_CHECKING:
    from judge.annotate.annotator import Annotator
    from judge.annotate.suggest import Suggestion

SHOWN = 8


@click.command()
@click.argument("suite", type=click.Path(exists=True, path_type=Path))
@click.argument("task")
@reference_option
@click.option("--from", "base", type=click.IntRange(min=1), help="Case to change [the first].")
@click.option("--seed", type=int, default=0, show_default=True, help="Other seed, other ideas.")
@click.option("--mutator", "only", multiple=True, help="Only these mutators; may be repeated.")
@click.option("--accept", multiple=True, type=click.IntRange(min=1), help="Save suggestion N.")
@click.option("--all", "show_all", is_flag=True, help="Show the rejected ones too, and why.")
@author_option
@sandbox_option
@click.option("--json", "as_json", is_flag=True, help="Print the suggestions as JSON lines.")
def suggest(suite: Path, task: str, **options: Any) -> None:
    """Suggest corner cases for TASK of SUITE, each with its gold.

    The same --seed gives the same suggestions under the same numbers. What breaks the question is
    left out (--all shows it). Nothing is saved without --accept N.
    """
    from judge.annotate.annotator import Annotator  # noqa: PLC0415  `--help` needs none of it
    from judge.annotate.mutants import NAMES  # noqa: PLC0415

    unknown = sorted(set(options["only"]) - set(NAMES))
    if unknown:
        raise UsageError(
            f"there is no mutator {', '.join(unknown)}", hint=f"There are {', '.join(NAMES)}."
        )
    with Annotator(suite, sandbox=options["sandbox"]) as annotator:
        shown = 0
        for each in _suggestions(annotator, task, options):
            if options["accept"]:
                _accept(annotator, task, each, options)
            elif options["show_all"] or not each.rejected:
                shown += 1
                _show(each, as_json=options["as_json"])
        if not options["as_json"] and not options["accept"]:
            click.echo(f"{shown} suggestions; save one with --accept N", err=True)


def _suggestions(annotator: Annotator, task: str, options: dict[str, Any]) -> Any:
    from judge.annotate import suggest as suggestions  # noqa: PLC0415  `--help` needs none of it

    cases = annotator.cases(task)
    number = options["base"] or cases[0].number
    base = next((case for case in cases if case.number == number), None)
    if base is None:
        raise UsageError(f"task {task} has no case {number}")
    return suggestions.suggest(
        annotator.task(task),
        base,
        annotator.maker,
        references=annotator.references(task, options["references"]),
        others=[case for case in cases if case is not base],
        seed=options["seed"],
        only=options["only"],
        numbers=options["accept"],
    )


def _accept(annotator: Annotator, task: str, each: Suggestion, options: dict[str, Any]) -> None:
    if each.rejected:
        raise UsageError(f"suggestion {each.number} is not a case: {each.rejected}")
    draft = annotator.book.begin(task, options["author"], base=options["base"])
    draft = annotator.book.extend(draft, each.idea.edits)
    references = annotator.references(task, options["references"])
    preview = annotator.preview(draft, references)
    facts = {"mutator": each.idea.mutator, "seed": options["seed"], "suggestion": each.number}
    saved = annotator.save(draft, preview, kind="suggest", facts=facts)
    click.echo(f"suggestion {each.number} saved: {saved.input_path.name}, {saved.gold_path.name}")


def _show(each: Suggestion, *, as_json: bool) -> None:
    from judge.annotate.edits import (  # noqa: PLC0415  `--help` needs none of it
        address,
        content_text,
        content_to_json,
        describe,
        edit_to_json,
    )

    proposal = each.proposal
    moved = proposal.moved if proposal else ()
    if as_json:
        document = {
            "number": each.number,
            "mutator": each.idea.mutator,
            "title": each.idea.title,
            "edits": [edit_to_json(edit) for edit in each.idea.edits],
            "gold_by": list(proposal.agreeing) if proposal else [],
            "moved": [
                {
                    "cell": address(cell.ref),
                    "before": content_to_json(cell.before),
                    "after": content_to_json(cell.after),
                }
                for cell in moved
            ],
            "rejected": each.rejected,
            "doubts": list(each.doubts),
        }
        click.echo(json.dumps(document, ensure_ascii=False))
        return
    click.echo(f"{each.number}. {each.idea.mutator}: {each.idea.title}")
    for edit in each.idea.edits[:SHOWN]:
        click.echo(f"     {describe(edit)}")
    if len(each.idea.edits) > SHOWN:
        click.echo(f"     … {len(each.idea.edits)} changes in all")
    if each.rejected:
        click.echo(f"   rejected: {each.rejected}")
        return
    for cell in moved[:SHOWN]:
        before, after = content_text(cell.before), content_text(cell.after)
        click.echo(f"   {address(cell.ref)}: {before or '(blank)'} -> {after or '(blank)'}")
    if len(moved) > SHOWN:
        click.echo(f"   … {len(moved)} cells of the answer move in all")
    if proposal is not None:
        click.echo(f"   gold by: {', '.join(proposal.agreeing)}")
    for doubt in each.doubts:
        click.echo(f"   look: {doubt}")
