"""``judge dataset export-rewardkit`` and ``import-rewardkit``: checklists to and from Harbor."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from judge.authoring.rewardkit import read_rewardkit, rewardkit_files
from judge.cli.help import HelpCommand
from judge.cli.options import option
from judge.compare.checklists.items import NAME as CHECKLIST
from judge.errors import UsageError
from judge.files.documents import dump_json
from judge.files.writing import write_whole
from judge.files.yaml_documents import read_yaml
from judge.suites import load_suite


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
    options = _of_task(source, task_id) if task_id is not None else _of_file(Path(source))
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise UsageError(f"{target} exists already", hint="Name a folder that does not exist.")
    files = rewardkit_files(options)
    for name, text in files.items():
        path = target / name
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, text.encode())
    click.echo(f"{target}: {len(files)} files, {len(options['items'])} items")


def _of_task(source: str, task_id: str) -> dict[str, Any]:
    task = load_suite(source).task(task_id)
    if task.checker.name != CHECKLIST:
        raise UsageError(f"task {task.id} is judged by {task.checker.name}, not by a checklist")
    return dict(task.checker.own_options)


def _of_file(path: Path) -> dict[str, Any]:
    document = read_yaml(path, UsageError)
    options = {"items": document} if isinstance(document, list) else document
    if not isinstance(options, dict) or "items" not in options:
        raise UsageError(
            f"{path}: expected a list of items, or an object with the field 'items'",
            hint="docs/checklists.md lists the kinds of items.",
        )
    return options


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
    write_whole(out, text.encode())
    click.echo(f"{out}: {len(read.options['items'])} items")
