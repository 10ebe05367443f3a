"""``judge checklist``: what models and people say about items that the judge leaves to them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from judge import api
from judge.api.infer_options import InferOptions
from judge.cli.help import HelpCommand, HelpGroup
from judge.cli.options import by_option, json_option, option, who
from judge.errors import UsageError
from judge.files.documents import dump_json, read_json, utc_now
from judge.files.writing import write_whole
from judge.grading.store import RunDirectory
from judge.report.checklists import judges_line, percent
from judge.report.load import LoadedRun, load_run
from judge.report.marks import (
    MARKS_FILE,
    MarkRecord,
    agreements,
    marks_of_sheet,
    open_items,
    points_with_marks,
    read_marks,
    sheet_of,
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
    """Marks of models and people for items of checklists that the judge cannot decide.

    Marks are kept in marks.jsonl of the results directory. They change no verdict.
    """


def _opened(path: Path) -> tuple[LoadedRun, RunDirectory]:
    return load_run(path), RunDirectory(path)


@checklist.command(cls=HelpCommand, examples=("checklist ask results/mine --llm-judge small",))
@click.argument("run", type=_RUN)
@option("--llm-judge", "model", metavar="NAME", required=True, help="The chat model to ask.")
@option("--votes", type=click.IntRange(1, 99), default=1, help="Votes for each item, odd [1].")
@option("--base-url", help="Address of an OpenAI-compatible server. [of the model]")
@option("--api-key-env", metavar="NAME", help="Environment variable that holds the key.")
@option("--jobs", type=click.IntRange(1, 64), default=4, help="Items at a time [4].")
def ask(run: Path, votes: int, jobs: int, **options: Any) -> None:
    """Ask a chat model about the items of RUN that are left to one.

    An item is asked about once for the same output, prompt, model and parameters.
    """
    from judge.api.inferring import find_spec  # noqa: PLC0415  for a quick --help
    from judge.inference.prompt import load_template  # noqa: PLC0415
    from judge.report import llm_judge  # noqa: PLC0415

    if votes % 2 == 0:
        raise UsageError(f"--votes {votes}: an odd number has a median")
    loaded, store = _opened(run)
    items = [
        (item, llm_judge.material_of(item, _output(store, item.output_sha256)))
        for item in open_items(loaded, "llm")
    ]
    template, by = load_template(llm_judge.TEMPLATE), f"model {options['model']}"
    done = {mark.get("prompt") for mark in read_marks(store) if mark["by"] == by}
    asked = InferOptions(**options)
    price = find_spec(asked, key_said=bool(asked.base_url and asked.api_key_env)).price
    marks: list[MarkRecord] = []

    def cost_of(prompt: int, completion: int) -> float | None:
        return None if price is None else price.of(prompt, completion)

    def keep(mark: MarkRecord) -> None:
        store.append(MARKS_FILE, mark)
        marks.append(mark)

    async def question(
        chat_model: ChatModel, name: str, params: Mapping[str, Any]
    ) -> tuple[list[str], int]:
        judge = llm_judge.ChatJudge(chat_model, name, params, template, votes)
        fresh = [
            (item, material)
            for item, material in items
            if judge.digest(judge.prompt(item, material)) not in done
        ]
        failures = await llm_judge.ask_about(fresh, judge, by, keep, jobs=jobs, cost_of=cost_of)
        return failures, len(fresh)

    failures, fresh = api.ask_model(asked, question) if items else ([], 0)
    for line in failures:
        click.echo(f"no mark: {line}", err=True)
    tokens = sum(mark.get("prompt_tokens", 0) + mark.get("completion_tokens", 0) for mark in marks)
    costs = [mark.get("cost_usd") for mark in marks]
    cost = "cost unknown" if None in costs else f"{sum(filter(None, costs)):.4f} USD"
    click.echo(
        f"{options['model']}: {len(marks)} of {fresh} items marked, {len(items) - fresh} known "
        f"before; {tokens:,} tokens, {cost}; prompt {template.name} {template.digest[:12]}"
    )
    _print_points(loaded, read_marks(store))


def _output(store: RunDirectory, digest: str | None) -> bytes | None:
    return None if digest is None else store.get_workbook(digest)


@checklist.command(cls=HelpCommand, examples=("checklist sheet results/mine --out marks.json",))
@click.argument("run", type=_RUN)
@option("--out", type=_SHEET, required=True, metavar="FILE", help="The sheet to write.")
@option("--all", "all_items", is_flag=True, help="Items for a model as well, for a second rater.")
def sheet(run: Path, out: Path, all_items: bool) -> None:
    """Write a sheet of the items of RUN that people judge: fill in score, from 0 to 1."""
    loaded, _ = _opened(run)
    items = [*open_items(loaded, "human"), *(open_items(loaded, "llm") if all_items else ())]
    write_whole(out, f"{dump_json(sheet_of(items), indent=2)}\n".encode())
    click.echo(f"{out}: {len(items)} items; fill in score, then judge checklist take")


@checklist.command(cls=HelpCommand, examples=("checklist take results/mine marks.json --by NAME",))
@click.argument("run", type=_RUN)
@click.argument("marks", type=_SHEET)
@by_option()
def take(run: Path, marks: Path, by: str | None) -> None:
    """Take the scores of a sheet into RUN; several raters may each fill in one."""
    loaded, store = _opened(run)
    items = [*open_items(loaded, "human"), *open_items(loaded, "llm")]
    taken = marks_of_sheet(read_json(marks, UsageError), items, who(by), utc_now())
    for mark in taken:
        store.append(MARKS_FILE, mark)
    click.echo(f"{len(taken)} marks by {who(by)}")
    _print_points(loaded, read_marks(store))


@checklist.command(cls=HelpCommand, examples=("checklist points results/mine",))
@click.argument("run", type=_RUN)
@json_option("the points")
def points(run: Path, as_json: bool) -> None:
    """Show the points of RUN with all marks, and how far raters agree."""
    loaded, store = _opened(run)
    marks = read_marks(store)
    if as_json:
        sums, of_all, of_judged = points_with_marks(loaded, marks)
        shares = {"share_of_all": of_all, "share_of_judged": of_judged}
        document = {"by_judge": sums, **shares, "agreement": _agreement_json(marks)}
        click.echo(json.dumps(document, ensure_ascii=False))
        return
    _print_points(loaded, marks)
    for pair in agreements(marks):
        kappa = "none" if pair.kappa.value is None else f"{pair.kappa.value:.2f}"
        if pair.kappa.low is not None and pair.kappa.high is not None:
            kappa += f" [{pair.kappa.low:.2f}, {pair.kappa.high:.2f}]"
        click.echo(
            f"{pair.first} and {pair.second}: agree on {percent(pair.raw.value)} of "
            f"{pair.raw.n} items, Cohen's kappa {kappa}"
        )


def _agreement_json(marks: Sequence[MarkRecord]) -> list[dict[str, object]]:
    return [
        {
            "raters": [pair.first, pair.second],
            "items": pair.raw.n,
            "raw": pair.raw.value,
            "kappa": pair.kappa.value,
            "kappa_low": pair.kappa.low,
            "kappa_high": pair.kappa.high,
        }
        for pair in agreements(marks)
    ]


def _print_points(run: LoadedRun, marks: Sequence[MarkRecord]) -> None:
    sums, of_all, of_judged = points_with_marks(run, marks)
    click.echo(judges_line(sums))
    click.echo(f"{percent(of_all)} of all points, {percent(of_judged)} of the judged points")
