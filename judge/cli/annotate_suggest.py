"""``judge annotate suggest``: proposes corner cases, with their golds, for a person to approve."""

from __future__ import annotations

import contextlib
import json
import sys
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self

import click

from judge import annotate as annotation
from judge import api
from judge.annotate import suggest as suggestions
from judge.annotate.suggest import Progress, Suggestion
from judge.api.infer_options import InferOptions
from judge.cli.annotate import (
    author_option,
    decide_option,
    reference_option,
    submissions_option,
)
from judge.cli.help import HelpCommand
from judge.cli.options import option, options_of, sandbox_option
from judge.console import make_console
from judge.core.option import Section
from judge.errors import JudgeError, UsageError, did_you_mean

if TYPE_CHECKING:
    from judge.annotate.annotator import Annotator, Preview
    from judge.annotate.casebook import CaseData
    from judge.annotate.idea import Idea
    from judge.core.submission import Submission
    from judge.inference.chat import ChatModel

MAX_SHOWN_EDITS = 8  # of a suggestion
MAX_SHOWN_REASONS = 6  # why ideas were rejected, the most frequent first
_MODEL_OPTIONS = (
    *("base_url", "api_key_env", "models", "temperature", "top_p", "max_tokens"),
    *("param", "timeout", "retries"),
)


@click.command(
    cls=HelpCommand,
    examples=(
        "annotate suggest mysuite/ 1 --reference right.py",
        "annotate suggest mysuite/ 1 --reference right.py --accept 2",
    ),
    first="references files base accept decide only time_limit_s model show_all as_json",
)
@click.argument("suite")
@click.argument("task")
@reference_option
@submissions_option(
    required=False,
    help="Solutions (.jsonl) or a run: suggest only cases that break solutions which all cases "
    "accept so far; may be repeated.",
)
@option(
    "--from",
    "base",
    type=click.IntRange(min=1),
    section=Section.JUDGED,
    help="Case to change [the first].",
)
@option(
    "--seed",
    type=int,
    default=0,
    show_default=True,
    section=Section.MODEL,
    help="Seed of the search: another seed gives other ideas.",
)
@option(
    "--mutator",
    "only",
    multiple=True,
    section=Section.ASKING,
    help="Only these mutators; may be repeated.",
)
@option(
    "--accept",
    multiple=True,
    type=click.IntRange(min=1),
    section=Section.JUDGED,
    help="Save suggestion N.",
)
@decide_option
@option(
    "--all",
    "show_all",
    is_flag=True,
    section=Section.SHOWN,
    help="Show the rejected suggestions too, and why.",
)
@option(
    "--time-limit",
    "time_limit_s",
    type=click.FloatRange(min=1),
    metavar="SECONDS",
    section=Section.ASKING,
    help="Stop the search after this time, and show the suggestions so far [no limit].",
)
@option(
    "--proposals",
    type=click.IntRange(1, 20),
    default=10,
    show_default=True,
    section=Section.ASKING,
    help="Counterexamples of --model for each program, at most.",
)
@options_of(
    InferOptions,
    "model base_url api_key_env models temperature top_p max_tokens param timeout retries",
    temperature="Temperature of a request to --model.",
    top_p="Nucleus (top-p) of a request to --model.",
)
@author_option
@sandbox_option
@option(
    "--json",
    "as_json",
    is_flag=True,
    section=Section.SHOWN,
    help="Print the suggestions as JSON lines.",
)
def suggest(suite: str, task: str, **options: Any) -> None:
    """Suggest corner cases for TASK of SUITE, each with its gold.

    A suggestion is sound if independent sources agree on its answer, and contested if only a
    person can decide. The same options give the same suggestions under the same numbers. Ideas that
    break the question are rejected (--all shows them). Nothing is saved without --accept N; a
    contested suggestion also needs --decide SOURCE.

    The suggestions most worth a look come first, grouped by reason; those that follow a doubtful
    formula of the gold are marked. After Ctrl-C or --time-limit, the suggestions found so far are
    shown, with the numbers that they have in a complete search.

    With --submissions, only cases that make an accepted program fail are suggested. With --model, a
    chat model also proposes counterexamples to these programs; they are examined like all others.
    """
    _check_options(options)
    suggestions: list[Suggestion] = []
    ended: BaseException | None = None
    with (
        annotation.Annotator(suite, sandbox=options["sandbox"], ids=[task]) as annotator,
        _Search(options["time_limit_s"]) as search,
    ):
        try:
            for suggestion in _suggestions(annotator, task, options, search):
                suggestions.append(suggestion)
                if suggestion.number in options["accept"]:
                    _accept(annotator, task, suggestion, options)
        except (KeyboardInterrupt, JudgeError) as error:
            ended = error
    if not options["accept"]:
        _show_all(suggestions, options, search)
        if ended is not None and search.last is not None:
            click.echo(
                f"interrupted after {search.last.examined} of {search.last.ideas} ideas; the same "
                "command starts from the beginning, and gives these the same numbers",
                err=True,
            )
    if ended is not None:
        raise ended
    missing = sorted(set(options["accept"]) - {suggestion.number for suggestion in suggestions})
    if missing:
        raise UsageError(
            f"there is no suggestion {', '.join(map(str, missing))}",
            hint="The numbers are those that the same command shows without --accept.",
        )


def _check_options(options: Mapping[str, Any]) -> None:
    """Refuses options that are unknown or cannot be used together.

    Raises:
        UsageError: the message names the option.
    """
    unknown = sorted(set(options["only"]) - set(annotation.NAMES))
    if unknown:
        raise UsageError(
            f"there is no mutator {', '.join(unknown)}"
            + did_you_mean(unknown[0], annotation.NAMES, before=". "),
            hint=f"There are {', '.join(annotation.NAMES)}.",
        )
    if options["model"] and not options["files"]:
        raise UsageError(
            "--model proposes counterexamples to a program, and none is given",
            hint="Give the programs with --submissions.",
        )
    if options["model"] and options["accept"]:
        raise UsageError(
            "--accept cannot be used with --model, which may make other proposals when asked again",
            hint="Save the cells that were shown: judge annotate add SUITE TASK CELL=VALUE … "
            "--decide SOURCE, or the workbook with judge hack.",
        )


class _Search:
    """Compares the time of a search with its limit, and shows its progress.

    Args:
        limit_s: seconds after which no further idea is examined; None for no limit.
    """

    def __init__(self, limit_s: float | None) -> None:
        self._limit_s = limit_s
        self._started = time.monotonic()
        self._stack = contextlib.ExitStack()
        self._update: Callable[[Progress], None] = lambda _: None
        self.contradictions: tuple[str, ...] = ()
        self.last: Progress | None = None

    def __enter__(self) -> Self:
        """Shows a progress bar, with rate and remaining time, if standard error is a terminal."""
        if sys.stderr.isatty():
            from rich import progress  # noqa: PLC0415  no bar, no import

            bar = self._stack.enter_context(
                progress.Progress(
                    progress.TextColumn("{task.description}"),
                    progress.BarColumn(),
                    progress.MofNCompleteColumn(),
                    progress.TextColumn("ideas, {task.fields[rate]}, {task.fields[shown]} shown"),
                    progress.TimeRemainingColumn(),
                    console=make_console(err=True),
                    transient=True,
                )
            )
            job = bar.add_task("examining", total=None, rate="", shown=0)

            def update(now: Progress) -> None:
                rate = now.examined / max(time.monotonic() - self._started, 0.001)
                bar.update(
                    job,
                    completed=now.examined,
                    total=now.ideas,
                    rate=f"{rate:.1f} a second",
                    shown=now.shown,
                )

            self._update = update
        return self

    def __exit__(self, *details: object) -> None:
        """Removes the bar."""
        self._stack.close()

    def is_over(self) -> bool:
        """Whether the time limit has passed."""
        return self._limit_s is not None and time.monotonic() - self._started > self._limit_s

    def __call__(self, now: Progress) -> None:
        """Records the progress of the search, and updates the bar."""
        self.last, self.contradictions = now, now.contradictions
        self._update(now)


def _show_all(suggestions: Sequence[Suggestion], options: dict[str, Any], search: _Search) -> None:
    """Shows the suggestions grouped by reason, the best first."""
    kept = [suggestion for suggestion in suggestions if not suggestion.rejected]
    rank = 0
    for reason, group in annotation.ranked(kept, search.contradictions):
        if not options["as_json"]:
            click.echo(f"{reason}:")
        for suggestion in group:
            rank += 1
            doubt = annotation.doubt_of(suggestion, search.contradictions)
            _show(suggestion, rank, doubt, reason, as_json=options["as_json"])
    if options["show_all"]:
        for suggestion in suggestions:
            if suggestion.rejected:
                _show(suggestion, 0, "", "", as_json=options["as_json"])
    if not options["as_json"]:
        _summarise(suggestions, options)
    _say_left_out(suggestions)


def _suggestions(
    annotator: Annotator, task: str, options: dict[str, Any], search: _Search
) -> Iterator[Suggestion]:
    cases = annotator.cases(task)
    number = options["base"] or cases[0].number
    base = next((case for case in cases if case.number == number), None)
    if base is None:
        raise UsageError(f"task {task} has no case {number}")
    victims = (
        annotation.accepted_solutions(annotator, task, options["files"]) if options["files"] else {}
    )
    return suggestions.suggest(
        annotator.task(task),
        base,
        annotator.maker,
        references=annotator.references(task, options["references"]),
        others=[case for case in cases if case is not base],
        seed=options["seed"],
        only=options["only"],
        numbers=range(1, max(options["accept"]) + 1) if options["accept"] else (),
        victims=victims,
        more=_proposed(annotator, task, base, victims, options),
        is_over=search.is_over,
        on_progress=search,
    )


def _proposed(
    annotator: Annotator,
    task: str,
    base: CaseData,
    victims: Mapping[str, Submission],
    options: dict[str, Any],
) -> list[Idea]:
    """Asks a chat model for counterexamples, if the options name a model."""
    if not options["model"]:
        return []

    chosen = {name: options[name] for name in _MODEL_OPTIONS}
    whom = api.InferOptions(model=options["model"], **chosen)
    ideas: list[Idea] = []
    for name, program in victims.items():

        def question(
            chat_model: ChatModel,
            model: str,
            params: Mapping[str, Any],
            program: Submission = program,
        ) -> Awaitable[tuple[list[Idea], list[str]]]:
            model_asked = annotation.ModelAsked(chat_model, model, params)
            return annotation.ask_for_ideas(
                model_asked, annotator.task(task), base, program, max_proposals=options["proposals"]
            )

        proposed, problems = api.ask_model(whom, question)
        ideas += proposed
        click.echo(f"{options['model']}: {len(proposed)} proposals for {name}", err=True)
        for line in problems:
            click.echo(f"not used: {line}", err=True)
    return ideas


def _accept(
    annotator: Annotator, task: str, suggestion: Suggestion, options: dict[str, Any]
) -> None:
    if suggestion.proposal is None or suggestion.proposal.gold is None:
        raise UsageError(
            f"suggestion {suggestion.number}: {suggestion.contested}",
            hint="Make the case with `judge annotate add … --gold CELL=VALUE`.",
        )
    if suggestion.contested and not options["decide"]:
        names = ", ".join(repr(name) for side in suggestion.proposal.sides for name in side.names)
        raise UsageError(
            f"suggestion {suggestion.number} is contested: {suggestion.contested}",
            hint="Compare its cells with the question. If it is a case, name the source that is "
            f"right with --decide: {names}.",
        )
    draft = annotator.book.begin(task, options["author"], base=options["base"])
    draft = annotator.book.extend(draft, suggestion.idea.edits)
    try:
        preview = annotator.preview(
            draft,
            annotator.references(task, options["references"]),
            decide=options["decide"],
            kills=bool(suggestion.kills),
            same_values=suggestion.idea.same_values,
        )
        _check_saveable(suggestion, preview)
    except BaseException:
        annotator.book.discard(draft)  # its number is free again
        raise
    facts = {
        "mutator": suggestion.idea.mutator,
        "seed": options["seed"],
        "suggestion": suggestion.number,
        "contested": suggestion.contested,
        "kills": [trial.name for trial in suggestion.kills],
    }
    saved = annotator.save(draft, preview, kind="suggest", facts=facts)
    click.echo(
        f"suggestion {suggestion.number} saved: {saved.input_path.name}, {saved.gold_path.name}"
    )


def _check_saveable(suggestion: Suggestion, preview: Preview) -> None:

    refused = [preview.problem] if preview.problem else annotation.refusals(preview)
    if refused:
        raise UsageError(f"suggestion {suggestion.number} is not saved: {'; '.join(refused)}")


def _summarise(suggestions: Sequence[Suggestion], options: dict[str, Any]) -> None:
    states = Counter(suggestion.state for suggestion in suggestions)
    killing = ", each makes a program fail" if options["files"] else ""
    click.echo(
        f"{states['sound']} sound, {states['contested']} contested{killing}; "
        f"{states['rejected']} ideas rejected",
        err=True,
    )
    reasons = Counter(
        suggestion.rejected.partition(":")[0] for suggestion in suggestions if suggestion.rejected
    )
    if not states["sound"] + states["contested"] or options["show_all"]:
        if not suggestions:
            click.echo(
                "no mutator applies: the answer does not depend on a constant that a mutator can "
                "change",
                err=True,
            )
        for reason, count in reasons.most_common(MAX_SHOWN_REASONS):
            click.echo(f"  {count} rejected: {reason}", err=True)
    if states["sound"] or states["contested"]:
        click.echo("save one with --accept N; a contested one also needs --decide SOURCE", err=True)


def _say_left_out(suggestions: Sequence[Suggestion]) -> None:
    """Prints how many ideas were not examined, why, and how to have them examined."""
    left_out: dict[str, list[Suggestion]] = {}
    for suggestion in suggestions:
        if not suggestion.examined:
            left_out.setdefault(suggestion.rejected, []).append(suggestion)
    for reason, ideas in left_out.items():
        mutators = list(dict.fromkeys(suggestion.idea.mutator for suggestion in ideas))
        click.echo(
            f"{len(ideas)} of {len(suggestions)} ideas were {reason}. Ask for "
            f"a few at a time: {' '.join(f'--mutator {name}' for name in mutators)}",
            err=True,
        )


def _show(suggestion: Suggestion, rank: int, doubt: str, group: str, *, as_json: bool) -> None:
    if as_json:
        facts = {"rank": rank or None, "doubtful": doubt, "group": group}
        document = _document(suggestion) | facts
        click.echo(json.dumps(document, ensure_ascii=False))
        return

    head = (
        f"{suggestion.number}. {suggestion.state}"
        if suggestion.number
        else f"-  {suggestion.state}"
    )
    click.echo(f"{head}, {suggestion.idea.mutator}: {suggestion.idea.title}")
    for edit in suggestion.idea.edits[:MAX_SHOWN_EDITS]:
        click.echo(f"     {annotation.describe(edit)}")
    if len(suggestion.idea.edits) > MAX_SHOWN_EDITS:
        click.echo(f"     … {len(suggestion.idea.edits)} changes in all")
    if suggestion.rejected:
        click.echo(f"   why: {suggestion.rejected}")
        return
    moved = suggestion.proposal.moved if suggestion.proposal else ()
    for cell in moved[:MAX_SHOWN_EDITS]:
        before, after = annotation.content_text(cell.before), annotation.content_text(cell.after)
        click.echo(
            f"   {annotation.address(cell.ref)}: {before or '(blank)'} -> {after or '(blank)'}"
        )
    if len(moved) > MAX_SHOWN_EDITS:
        click.echo(f"   … {len(moved)} cells of the answer change in all")
    if suggestion.contested:
        click.echo(f"   contested: {suggestion.contested}")
    if doubt:
        click.echo(f"   doubtful gold: {doubt}")
    if suggestion.proposal is not None:
        _show_sources(suggestion)
    for line in suggestion.doubts:
        click.echo(f"   look: {line}")


def _show_sources(suggestion: Suggestion) -> None:

    assert suggestion.proposal is not None
    if suggestion.idea.carried is not None and suggestion.kills:
        click.echo(f"   relation: {suggestion.idea.relation}")
        click.echo("   below: its answer before the change, carried over, and its answer after it")
    if suggestion.proposal.agreeing:
        click.echo(f"   gold by: {', '.join(suggestion.proposal.agreeing)}")
    for source in suggestion.proposal.disagreeing:
        click.echo(f"   against: {source.name}")
        for line in api.difference_lines(source.comparison, MAX_SHOWN_EDITS):
            click.echo(f"     {line}")
    for trial in suggestion.kills:
        click.echo(f"   kills: {trial.name} ({trial.verdict.value})")
        for line in api.difference_lines(trial.comparison, MAX_SHOWN_EDITS) or [trial.cause]:
            click.echo(f"     {line}")


def _document(suggestion: Suggestion) -> dict[str, Any]:

    proposal = suggestion.proposal
    return {
        "number": suggestion.number,
        "state": suggestion.state,
        "mutator": suggestion.idea.mutator,
        "title": suggestion.idea.title,
        "edits": [annotation.edit_to_json(edit) for edit in suggestion.idea.edits],
        "gold_by": list(proposal.agreeing) if proposal else [],
        "sides": [
            {"sources": list(side.names), "independent": side.independent}
            for side in (proposal.sides if proposal else ())
        ],
        "moved": [
            {
                "cell": annotation.address(cell.ref),
                "before": annotation.content_to_json(cell.before),
                "after": annotation.content_to_json(cell.after),
            }
            for cell in (proposal.moved if proposal else ())
        ],
        "rejected": suggestion.rejected,
        "contested": suggestion.contested,
        "doubts": list(suggestion.doubts),
        "kills": [
            {"solution": trial.name, "verdict": trial.verdict.value, "cause": trial.cause}
            for trial in suggestion.kills
        ],
    }
