"""``judge dataset new``, ``add-task``, ``edit-task``, ``review`` and ``export``.

If rules are proposed, a person keeps or drops them: on a terminal, by options, or in a file.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from judge import api
from judge.authoring.draft import SuiteDraft
from judge.authoring.export import (
    Origin,
    choose,
    export_card,
    export_corrected,
    export_suite,
)
from judge.authoring.kinds import (
    PROPOSED,
    DraftTask,
    ReviewStatus,
    State,
    given_options,
    kind_named,
    kind_names,
)
from judge.authoring.platforms import HarborImages, eval_yaml, export_codabench, export_harbor
from judge.authoring.proposals import Proposal, Proposals, text_of
from judge.cli.help import HelpCommand, OneOf
from judge.cli.options import (
    by_option,
    corrections_options,
    json_option,
    option,
    read_corrections,
    together,
    who,
)
from judge.cli.output import print_table, table
from judge.core.option import Section
from judge.errors import UsageError
from judge.files.writing import naming_what_is_written, write_whole
from judge.files.yaml_documents import read_yaml
from judge.suites import load_suite
from judge.suites.corrections import corrected_suite
from judge.suites.suite import SHIPPED, data_folder, load_sources
from judge.suites.validate import SuiteFinding

harbor_options = together(
    option("--agent-image", help="With harbor: image in which agents work, used unchanged."),
    option(
        "--verifier-image",
        help="With harbor and codabench: image that judges. "
        "[that of `judge sandbox build --verifier`]",
    ),
)
"""Adds the options that only the export to Harbor has."""


def export_tasks(
    suite: str, target: Path, agent_image: str | None, verifier_image: str | None
) -> None:
    """Writes a suite as tasks of Harbor, and prints what was written."""
    if verifier_image is None:
        verifier_image = api.verifier_tag()
    export = export_harbor(load_suite(suite), HarborImages(verifier_image, agent_image), target)
    click.echo(f"{target}: {export.tasks} tasks, {export.cases} cases; verifiers: {verifier_image}")
    if export.left_out:
        click.echo(
            f"{export.left_out} tasks do not ask for a workbook, or are left out by the suite",
            err=True,
        )


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
"""Adds the options that select which proposals to keep."""


@dataclass(frozen=True, slots=True)
class Choice:
    """Which proposals to keep, according to the options.

    Attributes:
        yes: whether all proposals are kept.
        keep: numbers of the proposals to keep, as typed, such as ``1,3``; None if not given.
        propose: the file to which the proposals are written; nothing is then added.
    """

    yes: bool
    keep: str | None
    propose: Path | None

    def refuse(self) -> None:
        """Refuses these options in a command that makes no proposals.

        Raises:
            UsageError: one of the options was given.
        """
        if self.yes or self.keep is not None or self.propose is not None:
            raise UsageError(
                "--yes, --keep and --propose are only for proposed rules",
                hint="Rules are proposed with --from GOLD --input INPUT, without --rules.",
            )

    def ask(self, proposals: Proposals, *, terminal: bool) -> tuple[Proposal, ...] | None:
        """Shows the proposals; returns those to keep, or None if they were only written to a file.

        Args:
            proposals: the proposals.
            terminal: whether there is a terminal, so that a person can be asked.

        Raises:
            UsageError: there are no proposals, none is kept, or no option says which to keep.
        """
        listed = proposals.listed
        if not listed:
            uncovered = proposals.uncovered
            gaps = f" that a rule covers ({', '.join(uncovered)})" * bool(uncovered)
            raise UsageError(
                f"nothing differs between input and gold{gaps}, so there is no rule to propose",
                hint="State the rules with --rules FILE.",
            )
        if self.propose is not None:
            text = text_of(proposals, len(listed[0].rules))
            with naming_what_is_written(self.propose):
                write_whole(self.propose, text.encode(), mode=0o644)
            noun = proposals.noun
            click.echo(f"{self.propose}: {len(listed)} {noun}; edit it and give it as --{noun}")
            return None
        for line in proposals.uncovered:
            click.echo(f"no {proposals.noun.removesuffix('s')} covers: {line}")
        asks = terminal and not self.yes and self.keep is None
        chosen = tuple(
            item
            for number, item in enumerate(listed, start=1)
            if _shown(f"{number}. {item.words}", asks=asks)
        )
        if not asks:
            chosen = self._chosen(listed)
        if not chosen:
            raise UsageError("no rule is kept, so nothing would be judged")
        return chosen

    def _chosen(self, listed: Sequence[Proposal]) -> tuple[Proposal, ...]:
        """Returns the proposals that the options select."""
        if self.yes:
            return tuple(listed)
        if self.keep is None:
            raise UsageError(
                f"no option says which of the {len(listed)} proposed rules to keep",
                hint="--yes keeps all, --keep 1,3 some; --propose FILE writes them down.",
            )
        words = [word.strip() for word in self.keep.split(",")]
        most = len(listed)
        if not all(word.isdecimal() and 1 <= int(word) <= most for word in words):
            raise UsageError(f"--keep {self.keep}: must be numbers from 1 to {most}, such as 1,2")
        return tuple(listed[number - 1] for number in sorted({int(word) for word in words}))


def _shown(line: str, *, asks: bool) -> bool:
    """Shows a proposal; if ``asks``, asks the user, and returns whether to keep it."""
    click.echo(line)
    return asks and click.confirm("   Keep it?", default=True, err=True)


_FOLDER = click.Path(file_okay=False, path_type=Path)
_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)
_ANSWERS: dict[str, tuple[str, dict[bool | None, str]]] = {
    "multiple_tables": ("tables", {True: "several", False: "one", None: "?"}),
    "non_standard_table": ("non-standard", {True: "yes", False: "no", None: "?"}),
}
"""Name of a note that reviews require -> its column heading, and the words for its values."""


_field_options = together(
    option(
        "--instruction",
        section=Section.QUESTION,
        help="The revised question; @FILE takes it from a file.",
    ),
    option(
        "--type",
        multiple=True,
        metavar="TYPE",
        section=Section.QUESTION,
        help="What the task changes: cell or sheet. For a typed answer: NAME=TYPE, where the type "
        "is int, float, bool, text, list or expression; may be repeated.",
    ),
    option("--position", section=Section.QUESTION, help="The answer: \"'Sheet 1'!B2:B9\"."),
    option(
        "--answer-sheet",
        section=Section.QUESTION,
        help="Sheet of the answer, if the position names none.",
    ),
    option("--data-position", section=Section.QUESTION, help="Range of the input's data."),
    option(
        "--style",
        multiple=True,
        section=Section.QUESTION,
        help="A style that is part of the answer: fill …",
    ),
    option(
        "--kind",
        "task_kind",
        section=Section.QUESTION,
        help="What sort of question it is, if its answer is typed.",
    ),
    option(
        "--group",
        multiple=True,
        metavar="DIVISION=GROUP",
        section=Section.QUESTION,
        help="A group of a typed question, such as difficulty=easy; may be repeated.",
    ),
    option(
        "--multiple-tables/--one-table",
        default=None,
        section=Section.QUESTION,
        help="Whether a sheet holds several tables.",
    ),
    option(
        "--non-standard-table/--standard-table",
        default=None,
        section=Section.QUESTION,
        help="Whether a table has nested or missing headers, merged cells or free text.",
    ),
    option(
        "--original-question",
        section=Section.ORIGIN,
        help="The original post, word for word; @FILE takes it from a file.",
    ),
    option("--source-url", section=Section.ORIGIN, help="Address of the post."),
    option(
        "--answer",
        multiple=True,
        metavar="NAME=VALUE",
        section=Section.TYPED_ANSWER,
        help="A variable of a typed answer and its correct value; may be repeated.",
    ),
    option(
        "--tolerance",
        multiple=True,
        metavar="NAME=NUMBER",
        section=Section.TYPED_ANSWER,
        help="How far a number may be from the correct one; may be repeated.",
    ),
    option(
        "--match",
        multiple=True,
        metavar="NAME=MATCH",
        section=Section.TYPED_ANSWER,
        help="How the variable is compared: exact, fuzzy, one_of or any_order; may be repeated.",
    ),
    option(
        "--variables",
        type=_FILE,
        section=Section.TYPED_ANSWER,
        help="All variables of a typed answer: JSON or YAML, NAME -> answer, type, match, "
        "tolerance, operands.",
    ),
    option(
        "--rules",
        type=_FILE,
        section=Section.FILES,
        help="The rules of a task that is judged by rules: JSON or YAML (docs/rules.md).",
    ),
    option(
        "--items",
        metavar="FILE",
        section=Section.FILES,
        help="The checklist that judges a task with workbooks: JSON or YAML with items, or "
        "`proposed` to have items proposed from --from, --input and --instruction.",
    ),
    option(
        "--checker",
        type=_FILE,
        section=Section.FILES,
        help="The checker of a task with workbooks, instead of rules: JSON or YAML with name and "
        "options.",
    ),
)
"""Adds the options that set the fields of a task."""


@click.command(cls=HelpCommand, examples=("dataset new mysuite/",))
@click.argument("folder", type=_FOLDER)
@option(
    "--kind",
    type=OneOf(kind_names()),
    default=kind_names()[0],
    show_default=True,
    help="What the suite's tasks ask for: cells of a workbook, a typed answer, a workbook with a "
    "checklist, or a workbook that keeps rules.",
)
@by_option()
def new(folder: Path, kind: str, by: str | None) -> None:
    """Make an empty suite in FOLDER."""
    SuiteDraft.create(folder, by=who(by), kind=kind)
    example = kind_named(kind).example
    click.echo(f"{folder}: an empty suite\nnext: judge dataset add-task {folder} ID {example}")


@click.command(
    "add-task",
    cls=HelpCommand,
    examples=(
        "dataset add-task mysuite/ 1 --case input.xlsx gold.xlsx --position B2:B9",
        "dataset add-task mysuite/ 2 --from gold.xlsx --input input.xlsx --yes",
    ),
    first="case input from yes instruction type position answer rules by",
)
@click.argument("suite", type=_FOLDER)
@click.argument("task_id", metavar="ID")
@option(
    "--case",
    type=(_FILE, _FILE),
    multiple=True,
    metavar="INPUT GOLD",
    section=Section.FILES,
    help="The two workbooks of a case; may be repeated.",
)
@option(
    "--input",
    type=_FILE,
    multiple=True,
    metavar="FILE",
    section=Section.FILES,
    help="An input file of a question with a typed answer: a table, a workbook, a picture, text; "
    "with --from, the input workbook of the first case, and then files that every case has. May be "
    "repeated.",
)
@option(
    "--from",
    "from",
    type=_FILE,
    metavar="GOLD",
    section=Section.FILES,
    help="The gold workbook of a task that is judged by rules; rules are proposed from its "
    "differences to --input.",
)
@proposal_options
@_field_options
@by_option(Section.ORIGIN)
def add_task(suite: Path, task_id: str, by: str | None, **options: Any) -> None:
    """Add a task to SUITE, as a draft; its files are copied.

    With --from GOLD --input INPUT, in a suite of the judge's own format, rules are proposed: one
    for each difference between input and gold. On a terminal, the command asks which of them to
    keep. Otherwise, --yes keeps all and --keep 1,3 some; --propose FILE writes them to a file, to
    be edited and given to --rules FILE.
    """
    is_number = task_id.isascii() and task_id.isdigit() and str(int(task_id)) == task_id
    choice = Choice(options.pop("yes"), options.pop("keep"), options.pop("propose"))
    contents = _read(options)
    draft = SuiteDraft(suite, given_options(contents))
    proposals = draft.kind.proposals(contents)
    if proposals is None:
        choice.refuse()
    else:
        terminal = sys.stdin.isatty() and sys.stderr.isatty()
        chosen = choice.ask(proposals, terminal=terminal)
        if chosen is None:
            return
        contents["kept"] = chosen
    fields, files = draft.kind.fields_of(contents), draft.kind.files_of(contents)
    findings = draft.add_task(int(task_id) if is_number else task_id, fields, files, by=who(by))
    _print_findings(findings)
    cases = len(draft.task(task_id).task.cases)
    click.echo(f"task {task_id}: draft, {cases} case{'s' if cases > 1 else ''}")


@click.command(
    "edit-task",
    cls=HelpCommand,
    examples=("dataset edit-task mysuite/ 1 --instruction @question.txt",),
    first="instruction type position answer rules by",
)
@click.argument("suite", type=_FOLDER)
@click.argument("task_id", metavar="ID")
@_field_options
@by_option(Section.ORIGIN)
def edit_task(suite: Path, task_id: str, by: str | None, **options: Any) -> None:
    """Change fields of a task of SUITE. Reviews of the earlier version no longer count."""
    contents = _read(options)
    draft = SuiteDraft(suite, given_options(contents))
    if not given_options(contents):
        raise UsageError("nothing to change", hint="`judge dataset edit-task --help`")
    _print_findings(draft.edit_task(task_id, draft.kind.fields_of(contents), by=who(by)))
    click.echo(f"task {task_id}: {_status_line(draft.task(task_id).status)}")


@click.command(
    cls=HelpCommand,
    examples=("dataset review mysuite/", "dataset review mysuite/ 1 --state checked --by Ben"),
)
@click.argument("suite", type=_FOLDER)
@click.argument("task_id", metavar="[ID]", required=False)
@option("--state", type=OneOf([member.value for member in State]), help="The new state.")
@option("--note", default="", help="A note on the review.")
@by_option()
@json_option()
def review(
    suite: Path, task_id: str | None, state: str | None, note: str, by: str | None, as_json: bool
) -> None:
    """Show the states of SUITE's tasks, or change the state of one of them.

    A task is a draft until somebody other than its authors has checked it (--state checked); it is
    accepted once a third person has reviewed it (--state accepted). --state draft sends it back. A
    review only covers the version that was reviewed: when the task changes, it is a draft again.
    """
    draft = SuiteDraft(suite)
    if state is not None:
        if task_id is None:
            raise UsageError("--state belongs to one task: give its ID")
        status = draft.review(task_id, State(state), by=who(by), note=note)
        if not as_json:
            click.echo(f"task {task_id}: {_status_line(status)}")
            return
    tasks = draft.tasks() if task_id is None else (draft.task(task_id),)
    if as_json:
        click.echo(json.dumps([_json_of(task) for task in tasks], ensure_ascii=False, indent=2))
        return
    questions = [(name, *_ANSWERS[name]) for name in draft.kind.wanted_for_review]
    headings = [heading for _, heading, _ in questions]
    shown = table("!task", "state", "authors", "reviewers", *headings, "note")
    for task in tasks:
        status = task.status
        shown.add_row(
            task.task.id,
            status.state.value + (" (changed since)" if status.changed_since else ""),
            ", ".join(status.authors) or "not on record",
            ", ".join(status.reviewers),
            *(answer[task.notes.get(name)] for name, _, answer in questions),
            status.note or "",
        )
    print_table(shown)
    counts = [sum(task.status.state is state for task in tasks) for state in State]
    click.echo(
        ", ".join(f"{count} {state.value}" for count, state in zip(counts, State, strict=True))
    )


@click.command(
    cls=HelpCommand,
    examples=(
        "dataset export mysuite/ mysuite.tar.gz",
        "dataset export sample card/ --format dataset-card",
    ),
)
@click.argument("suite")
@click.argument("target", type=click.Path(path_type=Path))
@option(
    "--state",
    type=OneOf([member.value for member in State]),
    help="Tasks that have reached at least this state. [accepted]",
)
@option(
    "--format",
    "form",
    type=OneOf(["suite", "dataset-card", "harbor", "codabench", "huggingface"]),
    default="suite",
    show_default=True,
    help="What to write: a suite to judge with, a dataset folder with a card and no golds, tasks "
    "for Harbor, a bundle for Codabench, or eval.yaml for Hugging Face.",
)
@harbor_options
@option("--licence", help="Licence of the data, for the card. [that of a published suite]")
@option("--source", help="Source of the data, for the card. [that of a published suite]")
@corrections_options
def export(suite: str, target: Path, state: str | None, form: str, **options: Any) -> None:
    """Write SUITE to TARGET: a folder, or a .tar.gz.

    Tasks with workbooks are written in SpreadsheetBench's own format, typed answers in the judge's.
    With --corrections or --corrections-from, SUITE can be any suite: it is written in its own
    format, corrected, with a provenance.json that names the corrections and the changed files.

    With --format dataset-card, SUITE can be any suite as well: the card is a README.md with the
    licence, source and counts, next to the inputs and an index of the tasks in Parquet.

    With --format harbor, each task is a folder that the agent framework Harbor runs, with a
    verifier that judges offline (docs/agents.md). With --format codabench, TARGET is a .zip for
    Codabench, with the golds for the workers of its queue; with --format huggingface, it is the
    eval.yaml of a data set there (docs/leaderboards.md).
    """
    licence, source = options.pop("licence"), options.pop("source")
    images = options.pop("agent_image"), options.pop("verifier_image")
    corrections = read_corrections(options)
    if form == "codabench" and images[0] is None:
        _refuse_others(form, state, corrections, source)
        _export_codabench(suite, target, images[1], licence)
        return
    if form != "harbor" and any(images):
        raise UsageError("--agent-image and --verifier-image can only be used with --format harbor")
    if form == "huggingface":
        _refuse_others(form, state, corrections, licence, source)
        _export_eval_yaml(suite, target)
        return
    if form == "harbor":
        if any((state, corrections, licence, source)):
            raise UsageError(
                "--format harbor takes a finished suite as it is",
                hint="Leave --state, --corrections, --licence and --source out; a corrected suite "
                "is exported first, and then for Harbor.",
            )
        export_tasks(suite, target, *images)
        return
    if form == "dataset-card":
        if state is not None or corrections is not None:
            raise UsageError(
                "--format dataset-card takes a finished suite as it is, without --state and "
                "--corrections",
                hint="Export the suite first, then the card of what was written.",
            )
        _export_card(suite, target, licence, source)
        return
    if licence is not None or source is not None:
        raise UsageError("--licence and --source can only be used with --format dataset-card")
    if corrections is not None:
        _export_corrected(suite, target, state, corrections)
        return
    state = state or State.ACCEPTED.value
    draft = SuiteDraft(Path(suite))
    tasks = draft.tasks()
    chosen = choose(tasks, State(state))
    cases = export_suite(draft, chosen, target)
    click.echo(f"{target}: {len(chosen)} of {len(tasks)} tasks, {cases} cases")


def _refuse_others(form: str, *given: object) -> None:
    if any(given):
        raise UsageError(
            f"--format {form} takes a finished suite as it is",
            hint="Leave --state, --corrections, --source and, but for codabench, --licence out.",
        )


def _export_codabench(suite: str, target: Path, image: str | None, licence: str | None) -> None:
    image = image or api.verifier_tag()
    export = export_codabench(load_suite(suite), image, target, licence=licence)
    click.echo(f"{target}: {export.tasks} tasks, {export.cases} cases; scored in {image}")
    click.echo("It holds the golds: give it to Codabench alone, and to no contestant.", err=True)


def _export_eval_yaml(suite: str, target: Path) -> None:
    text = eval_yaml(load_suite(suite))
    if target.exists():
        raise UsageError(f"{target} already exists", hint="Name another one, or move it away.")
    with naming_what_is_written(target):
        write_whole(target, text.encode(), mode=0o644)
    click.echo(str(target))


def _export_card(suite: str, target: Path, licence: str | None, source: str | None) -> None:
    loaded = load_suite(suite)
    published = {load_source.name: load_source for load_source in load_sources(data_folder())}.get(
        suite
    )
    origin = Origin(loaded.name, licence or "", source or "")
    if published is not None:
        origin = Origin(published.title, licence or published.licence, source or published.homepage)
    elif suite in SHIPPED:
        origin = Origin(loaded.name, licence or "Apache-2.0", source or "ships with sheetjudge")
    if not origin.licence:
        raise UsageError(
            f"{suite}: the licence of its data is unknown, and a card has to name it",
            hint="--licence NAME, such as --licence 'CC BY-SA 4.0'",
        )
    export = export_card(loaded, origin, target)
    click.echo(f"{target}: {export.tasks} tasks, {export.cases} cases, {export.files} input files")
    if export.absent:
        click.echo(f"{export.absent} input files that the suite names are missing", err=True)


def _export_corrected(suite: str, target: Path, state: str | None, corrections: Path) -> None:
    if state is not None:
        raise UsageError(
            "--state chooses tasks of a suite that is being written, --corrections corrects a "
            "finished one",
            hint="Give one of the two.",
        )

    loaded = load_suite(suite)
    corrected = corrected_suite(loaded, corrections)
    export = export_corrected(loaded, corrected, target)
    click.echo(
        f"{target}: {export.tasks} tasks, {export.cases} cases; corrections applied: "
        f"{export.corrections}, golds changed: {export.golds}"
    )
    for correction in corrected.unfit:
        click.echo(f"not applied: task {correction.task}: {correction}", err=True)


def _read(options: dict[str, Any]) -> dict[str, Any]:
    """Replaces the options that name files by the contents of these files."""
    for name in ("instruction", "original_question"):
        options[name] = _text(name, options[name])
    path = options["variables"]
    if path is not None:
        options["variables"] = read_yaml(path, UsageError)
        if not isinstance(options["variables"], dict):
            raise UsageError(f"--variables {path}: must be an object: name of a variable -> rule")
    for name in ("rules", "checker"):
        if options[name] is not None:
            options[name] = read_yaml(options[name], UsageError)
    if options["items"] not in {None, PROPOSED}:
        options["items"] = read_yaml(Path(options["items"]), UsageError)
    return options


def _text(name: str, value: str | None) -> str | None:
    if value is None or not value.startswith("@"):
        return value
    try:
        return Path(value[1:]).read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not UTF-8"
        raise UsageError(f"--{name.replace('_', '-')} {value}: cannot be read: {reason}") from error


def _print_findings(findings: Iterable[SuiteFinding]) -> None:
    for finding in findings:
        click.echo(f"{finding.severity.value}: {finding.file}: {finding.message}", err=True)


def _status_line(status: ReviewStatus) -> str:
    changed = ", changed since it was reviewed" if status.changed_since else ""
    by = f" ({', '.join(status.reviewers)})" if status.reviewers else ""
    return f"{status.state.value}{by}{changed}"


def _json_of(task: DraftTask) -> dict[str, Any]:
    status = task.status
    return {
        "id": task.record["id"],
        "state": status.state.value,
        "authors": list(status.authors),
        "reviewers": list(status.reviewers),
        "changed_since": status.changed_since,
        "note": status.note,
        **task.notes,
    }
