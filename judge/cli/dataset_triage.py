"""``judge dataset triage``: which forum posts are worth a task?"""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from judge.cli.help import HelpCommand
from judge.cli.listing import print_table, table
from judge.cli.options import by_option, option, who
from judge.errors import UsageError
from judge.files.documents import read_text
from judge.files.writing import naming_what_is_written

if TYPE_CHECKING:
    from judge.authoring.triage import TriagedPost, TriageState

_READ = click.Path(exists=True, dir_okay=False, path_type=Path)
_WRITE = click.Path(dir_okay=False, path_type=Path)


@click.command(cls=HelpCommand)
@click.argument("posts", type=_READ)
@option(
    "--state",
    "folder",
    type=click.Path(file_okay=False, path_type=Path),
    help="Folder that keeps answers and decisions [next to the posts: POSTS.triage].",
)
@option("--model", metavar="NAME", help="Ask this chat model if the rules cannot decide.")
@option("--base-url", metavar="URL", help="OpenAI-compatible endpoint, up to /v1.")
@option("--api-key-env", metavar="NAME", help="Environment variable that holds the key.")
@option("--jobs", type=click.IntRange(min=1), default=4, help="Requests at a time [4].")
@option("--sheet", type=_WRITE, help="Write a CSV whose column `decision` is to be filled.")
@option("--decide", type=_READ, metavar="FILE", help="Take the decisions of a filled CSV.")
@option("--kept", type=_WRITE, help="Write the posts that somebody decided to keep.")
@by_option()
def triage(posts: Path, **options: Any) -> None:
    """Sort forum POSTS (.jsonl): which of them are worth a task?

    The filters of the SpreadsheetBench paper: solved, about spreadsheets only, with a workbook,
    not about parts of the software such as buttons and forms. Rules go first, then a chat model
    if --model names one, and a person decides: --sheet writes a file to fill, --decide takes it
    back. Answers and decisions are kept, and nothing is asked twice.
    """
    from judge.authoring.posts import read_posts  # noqa: PLC0415  loaded when posts are read
    from judge.authoring.triage import TriageState, read_sheet  # noqa: PLC0415  likewise
    from judge.files.json_lines import read_lines  # noqa: PLC0415  likewise

    lines = list(read_lines(posts, UsageError))
    read = read_posts(lines, posts.name)
    decide: Path | None = options["decide"]
    decisions = read_sheet(_read(decide), decide.name) if decide else {}
    for target in (options["sheet"], options["kept"]):
        # Somebody may be filling it just now.
        if target is not None and target.exists():
            raise UsageError(f"{target} already exists", hint="Name another file.")
    folder = options["folder"] or posts.with_suffix(".triage")
    with contextlib.closing(TriageState(folder)) as state:
        if options["model"]:
            _ask(state, state.triage(read), options)
        if decide:
            fresh = state.decide(state.triage(read), decisions, by=who(options["by"]))
            click.echo(f"{decide.name}: {fresh} new decisions of {len(decisions)}")
        triaged = state.triage(read)
    _write(triaged, options, lines)
    _summarise(triaged)
    undecided = sum(each.decision is None for each in triaged)
    if undecided and not options["sheet"]:
        click.echo(
            f"{undecided} posts wait for a person: judge dataset triage {posts} --sheet FILE.csv, "
            "fill it, --decide FILE.csv"
        )


def _ask(state: TriageState, triaged: Sequence[TriagedPost], options: dict[str, Any]) -> None:
    from judge.api.inferring import read_key  # noqa: PLC0415  loaded when a model is asked
    from judge.authoring.triage_model import ModelChoice, ask_about  # noqa: PLC0415  see below
    from judge.inference.client import OpenAIChatModel  # noqa: PLC0415  likewise
    from judge.inference.config import check_key, find_model, load_models  # noqa: PLC0415  likewise
    from judge.inference.prompt import load_template  # noqa: PLC0415  likewise

    models = load_models()
    spec = find_model(
        options["model"],
        models,
        base_url=options["base_url"],
        key_env=options["api_key_env"],
    )
    if not (options["base_url"] and options["api_key_env"]):
        check_key(spec, models.values())
    template = load_template("triage")
    wanted = sum(bool(each.questions) for each in triaged)
    key = read_key(spec.key_env)

    async def run() -> list[str]:
        chat_model = OpenAIChatModel(spec.base_url, key)
        try:
            name = spec.model or await chat_model.only_model()
            choice = ModelChoice(chat_model, name, spec.params, template, options["jobs"])
            return await ask_about(
                triaged,
                choice,
                lambda each, judgements: state.keep_judgements(each.post, judgements),
            )
        finally:
            await chat_model.close()

    failures = asyncio.run(run()) if wanted else []
    for line in failures:
        click.echo(f"no answer: {line}", err=True)
    click.echo(f"{spec.name}: {wanted - len(failures)} of {wanted} open posts answered")


def _write(
    triaged: Sequence[TriagedPost], options: dict[str, Any], lines: Sequence[tuple[int, bytes]]
) -> None:
    from judge.authoring.triage import write_sheet  # noqa: PLC0415  loaded when it is used

    if options["sheet"]:
        # With the mark by which spreadsheet programs know UTF-8.
        with naming_what_is_written(options["sheet"]):
            options["sheet"].write_text(write_sheet(triaged), encoding="utf-8-sig", newline="")
        click.echo(f"{options['sheet']}: {len(triaged)} rows; fill the column decision")
    if options["kept"]:
        pairs = zip(lines, triaged, strict=True)
        chosen = [line for (_, line), each in pairs if each.decision == "keep"]
        with naming_what_is_written(options["kept"]):
            options["kept"].write_bytes(b"".join(line + b"\n" for line in chosen))
        click.echo(f"{options['kept']}: {len(chosen)} posts")


def _summarise(triaged: Sequence[TriagedPost]) -> None:
    shown = table("filter", ">yes", ">no", ">unsure", "by a model")
    for name in triaged[0].judgements:
        answers = Counter(each.judgements[name].answer.value for each in triaged)
        by_model = sum(each.judgements[name].source != "rules" for each in triaged)
        shown.add_row(
            name.replace("_", " "),
            *(str(answers[answer]) for answer in ("yes", "no", "unsure")),
            str(by_model),
        )
    print_table(shown)
    proposals = Counter(each.proposal.value for each in triaged)
    decided = Counter(each.decision for each in triaged if each.decision)
    click.echo(
        f"{len(triaged)} posts; proposed: {proposals['keep']} keep, {proposals['drop']} drop, "
        f"{proposals['unsure']} unsure; decided: {decided['keep']} keep, {decided['drop']} drop"
    )


def _read(path: Path) -> str:
    return read_text(path, UsageError)
