"""``judge dataset``: lists, shows, counts, validates and fetches suites; sorts forum posts.

``judge dataset export-rewardkit`` and ``import-rewardkit`` write and read Harbor's checklists. The
commands that write suites are in :mod:`judge.cli.dataset_authoring`.
"""

from __future__ import annotations

import contextlib
import json
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from rich import progress

from judge import api
from judge.api.infer_options import InferOptions
from judge.authoring.rewardkit import read_rewardkit, rewardkit_files
from judge.authoring.triage import (
    ModelChoice,
    TriagedPost,
    TriageState,
    ask_about,
    read_posts,
    read_sheet,
    write_sheet,
)
from judge.cli.help import HelpCommand
from judge.cli.options import (
    by_option,
    corrections_options,
    json_option,
    option,
    read_corrections,
    who,
)
from judge.cli.output import print_table, table
from judge.compare.checklists.items import NAME as CHECKLIST
from judge.compare.checklists.items import read_items
from judge.console import clipped, make_console
from judge.core.task import Task, TestCase
from judge.errors import SuiteError, UsageError, did_you_mean
from judge.files.documents import dump_json, read_text
from judge.files.json_lines import read_lines
from judge.files.writing import naming_what_is_written, write_whole
from judge.inference.prompt import load_template
from judge.suites import load_suite
from judge.suites.corrections import corrected_suite
from judge.suites.fetch import OnProgress, fetch_suite
from judge.suites.suite import SHIPPED, PublishedSuite, data_folder, fetched_folder, load_sources
from judge.suites.validate import Severity, compute_stats, findings_of_corrections, validate_suite

if TYPE_CHECKING:
    from judge.inference.chat import ChatModel

_MAX_CELL_CHARS = 70  # of a cell of the table


@click.command("list", cls=HelpCommand, examples=("dataset list", "dataset list sample"))
@click.argument("suite", required=False)
@json_option()
def list_(suite: str | None, as_json: bool) -> None:
    """List the tasks of SUITE; without SUITE, list the suites that have a name."""
    if suite is None:
        _list_suites(as_json)
        return
    loaded = load_suite(suite)
    if as_json:
        _print_json([_task_record(task, full=False) for task in loaded.tasks])
        return
    shown = table("!task", "level", ">cases", "position", "instruction")
    for task in loaded.tasks:
        text = " ".join(task.instruction.split())
        shown.add_row(
            task.id,
            task.kind.split("-")[0].lower(),
            str(len(task.cases)),
            task.details.get("answer_position", ""),
            clipped(text, _MAX_CELL_CHARS),
        )
    print_table(shown)
    click.echo(f"{len(loaded.tasks)} tasks, {loaded.case_count} cases ({loaded.format})")


@click.command(cls=HelpCommand, examples=("dataset show sample 1001",))
@click.argument("suite")
@click.argument("task_id", metavar="TASK")
@json_option()
def show(suite: str, task_id: str, as_json: bool) -> None:
    """Show one TASK (an id) of SUITE: its instruction, position and files."""
    task = load_suite(suite).task(task_id)
    record = _task_record(task, full=True)
    if as_json:
        _print_json(record)
        return
    cases = record.pop("cases")
    for name, value in record.items():
        if value is not None and value != {}:
            text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
            click.echo(f"{name.replace('_', ' ')}: {text}")
    shown = table(">case", "!input", "!gold")
    for case in cases:
        inputs = "\n".join(file["path"] for file in case["inputs"])
        golds = "\n".join(
            gold.get("path") or json.dumps(gold["value"], ensure_ascii=False)
            for gold in case["golds"]
        )
        shown.add_row(str(case["number"]), inputs, golds)
    print_table(shown)


@click.command(cls=HelpCommand, examples=("dataset stats sample",))
@click.argument("suite")
@json_option()
def stats(suite: str, as_json: bool) -> None:
    """Count the tasks, cases, kinds and checkers of SUITE."""
    loaded = load_suite(suite)
    counts = {
        "name": loaded.name,
        "format": loaded.format,
        "digest": loaded.digest,
        **asdict(compute_stats(loaded)),
    }
    if as_json:
        _print_json(counts)
        return
    shown = table("what", ">count")
    for name, value in counts.items():
        title = name.replace("_", " ")
        if isinstance(value, dict):
            for key, count in value.items():
                shown.add_row(f"{title}: {key}", str(count))
        else:
            shown.add_row(title, str(value))
    print_table(shown)


@click.command(cls=HelpCommand, examples=("dataset validate mysuite/",))
@click.argument("suite")
@corrections_options
@json_option()
def validate(suite: str, as_json: bool, **options: Any) -> None:
    """Check SUITE: every fault with its file. Exits with 3 if there is an error.

    With --corrections, lists the corrections and checks the corrected suite.
    """
    corrected = corrected_suite(load_suite(suite), read_corrections(options))
    loaded = corrected.suite
    with _progress("validating") as on_progress:
        findings = validate_suite(loaded, on_progress=on_progress)
    findings = [*findings_of_corrections(corrected), *findings]
    if as_json:
        _print_json([asdict(finding) for finding in findings])
    elif findings:
        shown = table("severity", "!task", "!file", "finding")
        for finding in findings:
            shown.add_row(
                finding.severity.value,
                finding.task or "",
                finding.file,
                finding.message,
            )
        print_table(shown)
    errors = sum(finding.severity is Severity.ERROR for finding in findings)
    if errors:
        raise SuiteError(f"{loaded.root} has {errors} errors; it cannot be judged as it is")
    if not as_json:
        click.echo(
            f"{loaded.name}: {len(loaded.tasks)} tasks, {loaded.case_count} cases, no errors, "
            f"{len(findings)} warnings and notes"
        )


@click.command(cls=HelpCommand, examples=("dataset fetch spreadsheetbench-verified-400",))
@click.argument("name")
@option(
    "--from",
    "archive",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="The archive, if you have downloaded it yourself; nothing is downloaded.",
)
@option("--url", multiple=True, help="Another address, such as a mirror; may be repeated.")
@option("--again", is_flag=True, help="Fetch it even if it already exists.")
@json_option()
def fetch(
    name: str, archive: Path | None, url: tuple[str, ...], again: bool, as_json: bool
) -> None:
    """Download the published suite NAME, check it, and unpack it into the cache folder.

    After an interrupted download, the same command continues it.
    """
    source = _source(name)
    with _progress("fetching", in_bytes=True) as on_progress:
        fetched = fetch_suite(
            source, archive=archive, urls=url, again=again, on_progress=on_progress
        )
    loaded = load_suite(name)
    if as_json:
        _print_json(
            {
                "name": name,
                "folder": str(fetched.folder),
                "sha256": fetched.sha256,
                "checked": fetched.checked,
                "fresh": fetched.fresh,
                "tasks": len(loaded.tasks),
                "cases": loaded.case_count,
            }
        )
        return
    if not fetched.fresh:
        click.echo(f"{name} already exists: {fetched.folder} (--again fetches it once more)")
    elif fetched.checked:
        click.echo(f"{name}: {fetched.folder}, sha256 matches")
    else:
        click.echo(
            f"{name}: {fetched.folder}\nNo checksum of this archive is published. "
            f"Recorded for the next time: sha256 {fetched.sha256}"
        )
    click.echo(f"{len(loaded.tasks)} tasks, {loaded.case_count} cases. Licence: {source.licence}")
    click.echo(f"judge score RESULTS --dataset {name}")


def _source(name: str) -> PublishedSuite:
    sources = {source.name: source for source in load_sources(data_folder())}
    if name not in sources:
        raise UsageError(
            f"no published suite is called {name}{did_you_mean(name, sources, before='. ')}",
            hint=f"there are {', '.join(sources)}; a suite of your own needs no fetching",
        )
    return sources[name]


def _list_suites(as_json: bool) -> None:
    rows: list[dict[str, Any]] = []
    for name in SHIPPED:
        shipped = load_suite(name)
        rows.append(
            {
                "name": name,
                "title": "A suite that ships with the judge",
                "tasks": len(shipped.tasks),
                "licence": "Apache-2.0",
                "folder": str(shipped.root),
            }
        )
    for source in load_sources(data_folder()):
        folder = fetched_folder(source.name)
        rows.append(
            {
                "name": source.name,
                "title": source.title,
                "tasks": source.tasks,
                "licence": source.licence,
                "folder": str(folder) if folder.is_dir() else None,
            }
        )
    if as_json:
        _print_json(rows)
        return
    shown = table("!name", ">tasks", "!here", "what, and under which licence")
    for row in rows:
        here = "yes" if row["folder"] else "no"
        shown.add_row(row["name"], str(row["tasks"]), here, f"{row['title']}. {row['licence']}")
    print_table(shown)
    click.echo("judge dataset fetch NAME   # gets one that is not here")


def _task_record(task: Task, *, full: bool) -> dict[str, Any]:
    record: dict[str, Any] = {
        "id": task.written_id,
        "instruction": task.instruction,
        "instruction_type": task.kind,
        "answer_position": task.details.get("answer_position"),
        "answer_sheet": task.details.get("answer_sheet"),
        "data_position": task.details.get("data_position"),
        "answer": task.answer.value,
        "phrasing": None if task.phrasing is None else asdict(task.phrasing),
        "groups": dict(task.groups),
        "context": {name: value for name, value in task.context.items() if name != "data_position"},
        "checker": task.checker.name,
        "options": {
            name: value
            for name, value in task.checker.options.items()
            if name not in task.checker.public
        },
        "excluded": task.excluded,
        "cases": len(task.cases),
    }
    if full:
        record["cases"] = [_case_record(case) for case in task.cases]
    return record


def _case_record(case: TestCase) -> dict[str, Any]:
    """A case as JSON; ``input`` and ``gold`` are its first input file and gold file, or null."""
    golds: list[dict[str, Any]] = [
        {"value": gold.value} if gold.path is None else {"path": str(gold.path)}
        for gold in case.golds
    ]
    for gold, described in zip(case.golds, golds, strict=True):
        if gold.options:
            described["options"] = dict(gold.options)
    inputs = [{"path": str(file.path), "kind": file.kind.value} for file in case.inputs]
    return {
        "number": case.number,
        "input": inputs[0]["path"] if inputs else None,
        "gold": golds[0].get("path") if golds else None,
        "inputs": inputs,
        "golds": golds,
    }


def _print_json(value: object) -> None:
    click.echo(json.dumps(value, ensure_ascii=False, indent=2, default=list))


@contextmanager
def _progress(title: str, *, in_bytes: bool = False) -> Iterator[OnProgress]:
    """Shows a progress bar if standard error is a terminal."""
    amount = progress.DownloadColumn() if in_bytes else progress.MofNCompleteColumn()
    speed = [progress.TransferSpeedColumn()] if in_bytes else []
    with progress.Progress(
        progress.TextColumn("{task.description}"),
        progress.BarColumn(),
        amount,
        *speed,
        progress.TimeRemainingColumn(),
        console=make_console(err=True),
        transient=True,
        disable=not sys.stderr.isatty(),
    ) as bar:
        job = bar.add_task(title, total=None)
        yield lambda done, total: bar.update(job, completed=done, total=total)


_READ = click.Path(exists=True, dir_okay=False, path_type=Path)
_WRITE = click.Path(dir_okay=False, path_type=Path)


@click.command(
    cls=HelpCommand,
    examples=(
        "dataset triage posts.jsonl --sheet decisions.csv",
        "dataset triage posts.jsonl --decide decisions.csv --kept kept.jsonl",
    ),
)
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
@option("--kept", type=_WRITE, help="Write the posts that a person decided to keep.")
@by_option()
def triage(posts: Path, **options: Any) -> None:
    """Sort forum POSTS (.jsonl): which of them are worth a task?

    Applies the filters of the SpreadsheetBench paper: solved, about spreadsheets only, with a
    workbook, not about parts of the software such as buttons and forms. Rules are applied first,
    then a chat model if --model names one, and a person decides: --sheet writes a file to fill in,
    --decide reads it back. Answers and decisions are kept, so that no question is asked twice.
    """
    lines = list(read_lines(posts, UsageError))
    read = read_posts(lines, posts.name)
    decide: Path | None = options["decide"]
    decisions = read_sheet(_read(decide), decide.name) if decide else {}
    for target in (options["sheet"], options["kept"]):
        # Somebody may be filling it in at the moment.
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
    undecided = sum(post.decision is None for post in triaged)
    if undecided and not options["sheet"]:
        click.echo(
            f"{undecided} posts wait for a person: judge dataset triage {posts} --sheet FILE.csv, "
            "fill it, --decide FILE.csv"
        )


def _ask(state: TriageState, triaged: Sequence[TriagedPost], options: dict[str, Any]) -> None:
    infer_options = InferOptions(
        model=options["model"], base_url=options["base_url"], api_key_env=options["api_key_env"]
    )
    template = load_template("triage")
    number = sum(bool(post.questions) for post in triaged)

    async def ask(chat_model: ChatModel, name: str, params: Mapping[str, Any]) -> list[str]:
        choice = ModelChoice(chat_model, name, params, template, options["jobs"])
        return await ask_about(
            triaged,
            choice,
            lambda post, judgements: state.keep_judgements(post.post, judgements),
        )

    failures = api.ask_model(infer_options, ask) if number else []
    for line in failures:
        click.echo(f"no answer: {line}", err=True)
    click.echo(f"{options['model']}: {number - len(failures)} of {number} open posts answered")


def _write(
    triaged: Sequence[TriagedPost], options: dict[str, Any], lines: Sequence[tuple[int, bytes]]
) -> None:
    if options["sheet"]:
        # With the byte order mark by which spreadsheet programs recognise UTF-8.
        with naming_what_is_written(options["sheet"]):
            options["sheet"].write_text(write_sheet(triaged), encoding="utf-8-sig", newline="")
        click.echo(f"{options['sheet']}: {len(triaged)} rows; fill the column decision")
    if options["kept"]:
        pairs = zip(lines, triaged, strict=True)
        chosen = [line for (_, line), post in pairs if post.decision == "keep"]
        with naming_what_is_written(options["kept"]):
            options["kept"].write_bytes(b"".join(line + b"\n" for line in chosen))
        click.echo(f"{options['kept']}: {len(chosen)} posts")


def _summarise(triaged: Sequence[TriagedPost]) -> None:
    shown = table("filter", ">yes", ">no", ">unsure", "by a model")
    for name in triaged[0].judgements:
        answers = Counter(post.judgements[name].answer.value for post in triaged)
        by_model = sum(post.judgements[name].source != "rules" for post in triaged)
        shown.add_row(
            name.replace("_", " "),
            *(str(answers[answer]) for answer in ("yes", "no", "unsure")),
            str(by_model),
        )
    print_table(shown)
    proposals = Counter(post.proposal.value for post in triaged)
    decided = Counter(post.decision for post in triaged if post.decision)
    click.echo(
        f"{len(triaged)} posts; proposed: {proposals['keep']} keep, {proposals['drop']} drop, "
        f"{proposals['unsure']} unsure; decided: {decided['keep']} keep, {decided['drop']} drop"
    )


def _read(path: Path) -> str:
    return read_text(path, UsageError)


@click.command(
    "export-rewardkit",
    cls=HelpCommand,
    examples=(
        "dataset export-rewardkit checklist.json tests/",
        "dataset export-rewardkit sample-checklist tests/ --task budget",
    ),
)
@click.argument("source")
@click.argument("target", type=click.Path(path_type=Path))
@option(
    "--task",
    "task_id",
    metavar="ID",
    help="If SOURCE is a suite: the task whose checklist to write.",
)
def export_rewardkit(source: str, target: Path, task_id: str | None) -> None:
    """Write the checklist SOURCE to the new folder TARGET, as Harbor's rewardkit reads it.

    Items that rewardkit can judge become calls of its criteria. All others call `judge compare`,
    which has to be installed where the folder is used. Items for people stay in checklist.json.
    """
    options = _of_task(source, task_id) if task_id is not None else read_items(Path(source))
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise UsageError(f"{target} exists already", hint="Name a folder that does not exist.")
    try:
        files = rewardkit_files(options)
    except UsageError as error:
        raise UsageError(f"{source}: {error.message}", hint=error.hint) from error
    for name, text in files.items():
        path = target / name
        with naming_what_is_written(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            write_whole(path, text.encode())
    click.echo(f"{target}: {len(files)} files, {len(options['items'])} items")


def _of_task(source: str, task_id: str) -> dict[str, Any]:
    task = load_suite(source).task(task_id)
    if task.checker.name != CHECKLIST:
        raise UsageError(f"task {task.id} is judged by {task.checker.name}, not by a checklist")
    return dict(task.checker.own_options)


@click.command(
    "import-rewardkit",
    cls=HelpCommand,
    examples=("dataset import-rewardkit tests/ --out checklist.json",),
)
@click.argument("folder", type=click.Path(exists=True, file_okay=False, path_type=Path))
@option(
    "--out",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Write the checklist to this file. [standard output]",
)
def import_rewardkit(folder: Path, out: Path | None) -> None:
    """Read the criteria and judge TOMLs of a rewardkit FOLDER as a checklist; run nothing.

    A Python file that does more than call criteria with literal arguments becomes a single item,
    which is not judged.
    """
    read = read_rewardkit(folder)
    for note in read.notes:
        click.echo(f"note: {note}", err=True)
    text = f"{dump_json(read.options, indent=2)}\n"
    if out is None:
        click.echo(text, nl=False)
        return
    with naming_what_is_written(out):
        write_whole(out, text.encode())
    click.echo(f"{out}: {len(read.options['items'])} items")
