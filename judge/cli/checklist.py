"""``judge checklist``: collects marks of models and people for items that the judge leaves open."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from judge import api
from judge.api.infer_options import InferOptions
from judge.api.rejudging import renew_report, stored_outputs
from judge.cli.help import HelpCommand, HelpGroup
from judge.cli.options import by_option, json_option, option, who
from judge.errors import SuiteError, UsageError
from judge.files.documents import utc_now
from judge.grading.marks import MarkRecord, read_marks
from judge.grading.store import MARKS_FILE, RunDirectory
from judge.report.checklists import marks_lines
from judge.report.load import LoadedRun, load_run
from judge.report.marks import (
    OpenItem,
    every_item,
    marked_points,
    marks_of_published,
    marks_of_sheet,
    open_items,
    write_item_sheet,
)

if TYPE_CHECKING:
    from judge.inference.chat import ChatModel

_RUN = click.Path(exists=True, file_okay=False, path_type=Path)
_SHEET = click.Path(dir_okay=False, path_type=Path)


@click.group(
    cls=HelpGroup,
    examples=(
        "checklist ask results/mine --llm-judge small",
        "checklist points results/mine",
    ),
)
def checklist() -> None:
    """Marks of models, people and programs for items that the judge cannot decide.

    Marks are kept in marks.jsonl of the results directory, and are in its report. They change no
    verdict.
    """


def _opened(path: Path) -> tuple[LoadedRun, RunDirectory]:
    return load_run(path), RunDirectory(path)


@checklist.command(cls=HelpCommand, examples=("checklist ask results/mine --llm-judge small",))
@click.argument("run", type=_RUN)
@option("--llm-judge", "model", metavar="NAME", required=True, help="The chat model to ask.")
@option("--votes", type=click.IntRange(1, 99), default=1, help="Votes for each item, odd [1].")
@option("--base-url", help="Address of an OpenAI-compatible server. [of the model]")
@option("--api-key-env", metavar="NAME", help="Environment variable that holds the key.")
@option("--param", multiple=True, metavar="NAME=JSON", help="Any other request parameter.")
@option("--jobs", type=click.IntRange(1, 64), default=4, help="Items at a time [4].")
def ask(run: Path, votes: int, jobs: int, **options: Any) -> None:
    """Ask a chat model about the items of RUN that a model has to judge.

    The same item is not asked about twice with the same output, prompt, model and parameters.
    """
    from judge.api.inferring import find_spec  # noqa: PLC0415  for a quick --help
    from judge.inference.prompt import load_template  # noqa: PLC0415
    from judge.report import markers  # noqa: PLC0415

    if votes % 2 == 0:
        raise UsageError(f"--votes {votes}: must be odd, so that there is a median")
    loaded, store = _opened(run)
    items = [
        (item, markers.material_of(item, output))
        for item, output in _with_outputs(loaded, store, "llm")
    ]
    template, by = load_template(markers.TEMPLATE), f"model {options['model']}"
    done = {mark.get("prompt") for mark in read_marks(store) if mark["by"] == by}
    infer_options = InferOptions(**options)
    price = find_spec(
        infer_options, key_given=bool(infer_options.base_url and infer_options.api_key_env)
    ).price
    marks: list[MarkRecord] = []

    def cost_of(prompt: int, completion: int) -> float | None:
        return None if price is None else price.of(prompt, completion)

    def keep(mark: MarkRecord) -> None:
        store.append(MARKS_FILE, mark)
        marks.append(mark)

    async def question(
        chat_model: ChatModel, name: str, params: Mapping[str, Any]
    ) -> tuple[list[str], int]:
        judge = markers.ChatJudge(chat_model, name, params, template, votes)
        fresh = [
            (item, material)
            for item, material in items
            if judge.digest(judge.prompt(item, material)) not in done
        ]
        failures = await markers.ask_about(fresh, judge, by, keep, jobs=jobs, cost_of=cost_of)
        return failures, len(fresh)

    failures, fresh = api.ask_model(infer_options, question) if items else ([], 0)
    for line in failures:
        click.echo(f"no mark: {line}", err=True)
    tokens = sum(mark.get("prompt_tokens", 0) + mark.get("completion_tokens", 0) for mark in marks)
    costs = [mark.get("cost_usd") for mark in marks]
    cost = "cost unknown" if None in costs else f"{sum(filter(None, costs)):.4f} USD"
    click.echo(
        f"{options['model']}: {len(marks)} of {fresh} items marked, {len(items) - fresh} known "
        f"before; {tokens:,} tokens, {cost}; prompt {template.name} {template.digest[:12]}"
    )
    _renew(loaded, store)


def _with_outputs(
    run: LoadedRun, store: RunDirectory, judged: str
) -> Iterator[tuple[OpenItem, bytes | None]]:
    """Yields the items that wait for a mark, with their outputs; reports missing outputs."""
    output_of = stored_outputs(store, run.run, run.suite)
    for item in open_items(run, judged):
        output = None
        if item.output_sha256 is not None:
            output = output_of(item.key[:3], item.output_sha256)
        if isinstance(output, str):
            click.echo(f"no mark: task {item.key[0]}, item {item.key[3]}: {output}", err=True)
        else:
            yield item, output


@checklist.command(cls=HelpCommand, examples=("checklist run results/mine",))
@click.argument("run", type=_RUN)
@option("--sandbox", default="auto", help="Where programs run. [auto]")
def run(run: Path, sandbox: str) -> None:
    """Run the programs of the suite that judge items of RUN, in the sandbox.

    A program is run only once on the same output. It gives its score in /logs/verifier/reward.txt,
    or by its exit code.
    """
    from judge.core.limits import Limits  # noqa: PLC0415  for a quick --help
    from judge.report.markers import RATER, program_of, run_item  # noqa: PLC0415

    loaded, store = _opened(run)
    done = {mark.get("prompt") for mark in read_marks(store) if mark["by"] == RATER}
    marked_before = marked = missing = 0
    with contextlib.closing(api.open_sandbox(sandbox)) as opened:
        for item, output in _with_outputs(loaded, store, "program"):
            program = program_of(item, output)
            if program is None:
                missing += 1
                continue
            if program.digest in done:
                marked_before += 1
                continue
            with contextlib.closing(opened.session()) as session:
                mark = run_item(item, program, session, Limits())
            if isinstance(mark, str):
                click.echo(f"no mark: task {item.key[0]}, item {item.key[3]}: {mark}", err=True)
                continue
            store.append(MARKS_FILE, mark)
            marked += 1
    without = f"; {missing} have no program that can be run here" if missing else ""
    click.echo(f"{marked} items marked, {marked_before} known before{without}")
    _renew(loaded, store)


@checklist.command(cls=HelpCommand, examples=("checklist sheet results/mine --out marks.json",))
@click.argument("run", type=_RUN)
@option("--out", type=_SHEET, required=True, metavar="FILE", help="The sheet to write.")
@option(
    "--all",
    "all_items",
    is_flag=True,
    help="Include the items that a model judges, for a second rater.",
)
def sheet(run: Path, out: Path, all_items: bool) -> None:
    """Write a sheet of the items of RUN that people judge: fill in each score, from 0 to 1."""
    loaded, _ = _opened(run)
    items = [*open_items(loaded, "human"), *(open_items(loaded, "llm") if all_items else ())]
    if not items:
        also = "" if all_items else "; --all includes those that a model judges"
        click.echo(f"no item of {run} waits for a person{also}")
        return
    write_item_sheet(out, items)
    click.echo(f"{out}: {len(items)} items; fill in score, then judge checklist take {run} {out}")


@checklist.command(
    cls=HelpCommand,
    examples=(
        "checklist take results/mine marks.json --by NAME",
        "checklist take results/mine eval/scores/MODEL/RUN",
    ),
)
@click.argument("run", type=_RUN)
@click.argument("marks", type=click.Path(exists=True, path_type=Path))
@by_option()
def take(run: Path, marks: Path, by: str | None) -> None:
    """Take the scores of a sheet into RUN; several raters may fill in a sheet each.

    MARKS may also be a folder of scores that IB-bench published for the run: each of its models
    and people becomes a separate rater.
    """
    loaded, store = _opened(run)
    if marks.is_dir():
        taken, notes = marks_of_published(marks, loaded, utc_now())
        for note in notes:
            click.echo(f"note: {note}", err=True)
    else:
        items = list(every_item(loaded))
        taken = marks_of_sheet(marks, items, who(by), utc_now())
    for mark in taken:
        store.append(MARKS_FILE, mark)
    raters = dict.fromkeys(mark["by"] for mark in taken)
    click.echo(
        f"{len(taken)} marks by {', '.join(raters)}"
        if taken
        else f"no mark was taken: {marks} has no score"
    )
    _renew(loaded, store)


@checklist.command(cls=HelpCommand, examples=("checklist points results/mine",))
@click.argument("run", type=_RUN)
@json_option("the points")
def points(run: Path, as_json: bool) -> None:
    """Show the points of RUN with all marks, and how well the raters agree."""
    loaded, store = _opened(run)
    report = marked_points(loaded, read_marks(store)).report()
    if as_json:
        click.echo(json.dumps(report, ensure_ascii=False))
        return
    _print_points(loaded, store)


def _renew(run: LoadedRun, store: RunDirectory) -> None:
    """Prints the points with the marks, and updates report.json."""
    _print_points(run, store)
    try:
        renew_report(run.path)
    except SuiteError as error:
        click.echo(f"note: report.json is unchanged: {error.message}", err=True)


def _print_points(run: LoadedRun, store: RunDirectory) -> None:
    for line in marks_lines(marked_points(run, read_marks(store)).report()):
        click.echo(line)
