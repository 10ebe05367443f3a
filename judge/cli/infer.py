"""``judge infer``: ask a chat model for solutions."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from judge.cli.help import HelpCommand, OneOf
from judge.cli.options import (
    limit_options,
    model_options,
    parse_bytes,
    read_limits,
    sandbox_option,
)

if TYPE_CHECKING:
    from judge.api.arrivals import ArrivalScorer
    from judge.api.infer_options import InferOptions
    from judge.api.inferring import PlannedRun
    from judge.api.options import ScoredRun
    from judge.inference.progress import InferenceSummary

# What the command does besides, or instead of, asking.
_NOT_INFERENCE = (
    *("score", "dry_run", "import_log", "import_inspect", "export_log", "as_json", "quiet"),
)
_PATH = click.Path(path_type=Path)


@click.command(cls=HelpCommand)
@model_options
@click.option("--mode", type=OneOf(["single", "multi", "text", "desktop"]),
              default="single", show_default=True,
              help="One round, several, values for programs, or mouse and keyboard.")  # fmt: skip
@click.option("--feedback", type=OneOf(["row-exec", "react-exec", "row-react-exec"]),
              help="What the model sees between rounds of multi [row-react-exec].")  # fmt: skip
@click.option("--dataset", metavar="SUITE", help="Suite [the sample suite].")
@click.option("--out", type=_PATH, help="Results directory; an incomplete run in it is continued.")
@click.option("--ids", multiple=True, metavar="ID,…", help="Only these tasks; may be repeated.")
@click.option("--limit", type=click.IntRange(min=1), help="Only the first N tasks.")
@click.option("--instruction", metavar="NAME", default="both", show_default=True,
              help="Only in one phrasing: abstract or verbose, where tasks have both.")  # fmt: skip
@click.option(
    "--samples", type=click.IntRange(min=1, max=1000), default=1, help="Solutions of each task."
)
@click.option(
    "--rounds",
    type=click.IntRange(min=1),
    help="Rounds of multi [5; 10 for typed answers], turns of desktop [15].",
)
@click.option("--rows", type=click.IntRange(min=0), help="Rows of each sheet in the prompt [5].")
@click.option("--content",
              type=OneOf(["pandas", "markdown", "csv", "addresses", "info"]),
              help="How they are written [pandas]; info describes the columns.")  # fmt: skip
@click.option("--notes/--no-notes", default=True, help="Say in the prompt what was cut.")
@click.option("--prompt", type=_PATH, help="Your own prompt template.")
@click.option("--stop", type=OneOf(["output", "explicit"]), default="output",
              help="multi ends with the output workbook, or when the model says so.")  # fmt: skip
@click.option("--execution-feedback/--no-execution-feedback", default=True,
              help="Whether multi shows printouts and errors between rounds.")  # fmt: skip
@click.option("--oracle-plan", is_flag=True,
              help="Add the steps of an expert to the instruction.")  # fmt: skip
@click.option("--documents", type=_PATH, metavar="FOLDER",
              help="Quote the parts of these documents that fit the instruction best.")  # fmt: skip
@click.option("--session", is_flag=True, help="One interpreter per task for all its rounds.")
@click.option("--pictures", type=OneOf(["each", "stitched", "none"]),
              help="A question's pictures: one by one, as one, or only named [each].")  # fmt: skip
@click.option("--max-pictures", type=click.IntRange(min=0), help="Most pictures of a message [20].")
@click.option("--picture-side", type=click.IntRange(min=16), metavar="PIXELS",
              help="Shrink pictures with a longer side.")  # fmt: skip
@click.option("--picture-bytes", metavar="SIZE", help="Shrink larger pictures, such as 1MiB.")
@click.option("--picture-types", metavar="TYPE,…",
              help="Types that are sent [png,jpeg,webp,gif]; others become PNG.")  # fmt: skip
@click.option("--observation",
              type=OneOf(["screenshot", "tree", "screenshot+tree", "som"]),
              help="What desktop shows: screen, tree, both, marks [screenshot].")  # fmt: skip
@click.option("--action-space", type=OneOf(["pyautogui", "computer_13"]),
              help="The language of actions on a desktop [pyautogui].")  # fmt: skip
@click.option("--history", type=click.IntRange(min=0),
              help="Earlier turns that a request of desktop shows [3].")  # fmt: skip
@click.option("--minutes", type=click.FloatRange(min=0, min_open=True),
              help="No turn of an episode begins after them [30].")  # fmt: skip
@click.option("--tree-tokens", type=click.IntRange(min=100),
              help="Most tokens of the tree that desktop shows [10000].")  # fmt: skip
@click.option("--gui-only", is_flag=True, help="Actions may only use mouse and keyboard.")
@click.option("--as-published", multiple=True, metavar="NAME",
              help="Leave out a correction of desktops; may be repeated.")  # fmt: skip
@click.option("--window", metavar="X,Y,WxH", help="Place and size of the window [whole screen].")
@click.option("--screen", metavar="WxH", help="Size of the screen [1920x1080].")
@click.option("--clutter", type=click.IntRange(min=0, max=20), help="Other windows open [0].")
@click.option("--temperature", type=float,
              help="Of a request [1; typed answers 0.7; Spider2-V's desktop 0.5].")  # fmt: skip
@click.option(
    "--top-p", type=float, help="Nucleus of a request [1; 0.9 for typed answers and on a desktop]."
)
@click.option("--seed", type=int, help="Seed of sample 0; sample k gets seed + k.")
@click.option("--concurrency", "-c", type=click.IntRange(min=1), default=8, show_default=True,
              help="Tasks at a time.")  # fmt: skip
@click.option("--jobs", "-j", type=click.IntRange(min=1), help="Programs at a time [cores].")
@click.option("--rpm", type=click.IntRange(min=1), help="Requests per minute at most.")
@click.option("--tpm", type=click.IntRange(min=1), help="Tokens per minute at most.")
@click.option("--max-wait", type=click.FloatRange(min=0), default=900.0, show_default=True,
              help="Longest Retry-After in seconds that is waited for.")  # fmt: skip
@click.option("--max-cost", type=click.FloatRange(min=0), help="Stop before this many dollars.")
@click.option(
    "--max-tokens-total", type=click.IntRange(min=1), help="Stop before this many tokens."
)
@click.option("--price", metavar="IN/OUT", help="Dollars per million tokens, such as 2.5/10.")
@click.option("--batch/--no-batch", default=False,
              help="Send all requests together to the server's batch endpoints.")  # fmt: skip
@click.option("--batch-file", type=_PATH,
              help="Write the requests to a file, for vllm run-batch; ask nothing.")  # fmt: skip
@click.option("--batch-results", type=_PATH,
              help="Take the replies from a file of results; ask nothing.")  # fmt: skip
@click.option("--cache/--no-cache", default=True,
              help="Reuse replies to equal requests with a seed or temperature 0.")  # fmt: skip
@sandbox_option
@limit_options
@click.option("--trust-folder", is_flag=True,
              help="Resume a run not started here, with the options in its folder.")  # fmt: skip
@click.option("--score", is_flag=True, help="Grade submissions as they arrive.")
@click.option("--dry-run", is_flag=True, help="Show prompts, tokens and cost; ask nothing.")
@click.option("--import-log", type=_PATH, help="Make a run out of a conv_*.jsonl; ask nothing.")
@click.option("--import-inspect", type=_PATH, metavar="LOG",
              help="Make a run out of a log of Inspect (.eval); ask nothing.")  # fmt: skip
@click.option("--export-log", type=_PATH, help="Write the run in --out as a conv_*.jsonl.")
@click.option("--json", "as_json", is_flag=True, help="Print the summary as JSON on stdout.")
@click.option("--quiet", "-q", is_flag=True, help="No progress.")
@click.pass_context
def infer(context: click.Context, /, **options: Any) -> None:
    """Ask a chat model for solutions, and write them where `judge score` finds them.

    The same command with the same --out continues where it stopped; --out by itself is enough,
    since a run remembers its options. If you did not start the run on this machine, its options
    are shown first and you are asked to confirm them; without a terminal the command ends with
    exit code 9, unless --trust-folder is given. Keys are read from the environment and never
    written anywhere.
    """
    from judge.api.infer_options import REMEMBERED, InferOptions  # noqa: PLC0415  for a quick --help
    from judge.api.inferring import make_plan  # noqa: PLC0415
    from judge.api.resuming import resume  # noqa: PLC0415

    shown = {name: options.pop(name) for name in _NOT_INFERENCE}
    if options["picture_bytes"] is not None:
        options["picture_bytes"] = parse_bytes(options["picture_bytes"])
    if shown["export_log"]:
        _export(options["out"], shown["export_log"], as_json=shown["as_json"])
        return
    default = click.core.ParameterSource.DEFAULT
    for name in REMEMBERED:  # what is not said is the run's own
        if context.get_parameter_source(name) is default:
            options[name] = None
    if options["picture_types"] is not None:
        options["picture_types"] = tuple(options["picture_types"].lower().split(","))
    resumed = resume(InferOptions(limits=read_limits(options), **options))
    if resumed.dropped_key:
        click.echo(
            f"the key in {resumed.dropped_key} belongs to the run's former endpoint and is not "
            f"sent to the new one; --api-key-env {resumed.dropped_key} would send it",
            err=True,
        )
    if resumed.taken:
        from judge.cli.infer_trust import ask_for_word  # noqa: PLC0415  seldom needed

        imports = shown["import_log"] or shown["import_inspect"]
        resumed = ask_for_word(resumed, asks_model=not imports)
    if shown["import_log"]:
        _import(resumed.options, shown["import_log"], as_json=shown["as_json"])
        return
    if shown["import_inspect"]:
        _import_inspect(resumed.options, shown["import_inspect"], as_json=shown["as_json"])
        return
    planned = make_plan(resumed)
    if shown["dry_run"]:
        from judge.cli.infer_view import show_dry_run  # noqa: PLC0415
        from judge.inference.dryrun import dry_run  # noqa: PLC0415

        dry = dry_run(planned.plan)
        if shown["as_json"]:
            _print_json(dry.to_json(planned.plan))
        else:
            show_dry_run(planned.plan, dry)
        return
    _ask(planned, score=shown["score"], as_json=shown["as_json"], quiet=shown["quiet"])


def _ask(planned: PlannedRun, *, score: bool, as_json: bool, quiet: bool) -> None:
    from judge.api.inferring import ask, check_ready, is_offline, nearest_alias  # noqa: PLC0415
    from judge.api.progress import progress_for  # noqa: PLC0415
    from judge.cli.infer_view import InferenceProgress, show_start  # noqa: PLC0415
    from judge.cli.signals import run_until_signal  # noqa: PLC0415

    check_ready(planned)
    options = planned.options
    if not quiet and not is_offline(options):
        pace = "in batches" if options.batch else f"{options.concurrency} at a time"
        show_start(planned.plan, str(planned.out), pace)
        if nearest := nearest_alias(options):
            click.echo(f"note: {nearest.removeprefix('. ')}", err=True)
    scorer = _scorer(planned) if score else None
    try:
        with InferenceProgress(quiet=quiet) as progress:
            summary = run_until_signal(
                ask(
                    planned,
                    on_event=progress,
                    on_batch=progress.batch,
                    on_submission=(lambda _: scorer.arrived()) if scorer else (lambda _: None),
                )
            )
        scored: list[ScoredRun] = []
        if scorer and summary.finished:
            scored = scorer.finish(progress=lambda _: progress_for(quiet=quiet))
    except KeyboardInterrupt:
        click.echo(f"to continue: judge infer --out {planned.out}", err=True)
        raise
    finally:
        if scorer is not None:
            scorer.stop()
    _show(planned, summary, scored, as_json=as_json, quiet=quiet)
    if planned.options.batch_file is None or summary.failed:
        _check_complete(summary, planned.out)


def _show(
    planned: PlannedRun,
    summary: InferenceSummary,
    scored: Sequence[ScoredRun],
    *,
    as_json: bool,
    quiet: bool,
) -> None:
    from judge.cli.infer_view import show_requests, show_summary  # noqa: PLC0415
    from judge.cli.tables import print_ending, print_run  # noqa: PLC0415

    requests = planned.options.batch_file
    if as_json:
        document: dict[str, Any] = {"inference": asdict(summary), "results": str(planned.out)}
        if scored:
            document["report"] = scored[0].report
        _print_json(document)
        return
    if requests is not None:
        show_requests(summary, str(requests), str(planned.out))
        return
    show_summary(summary, str(planned.out))
    for run in scored:
        print_run(run)
    if scored and not quiet:
        print_ending(scored)
    if summary.finished and not scored:
        click.echo(f"to grade: judge score {planned.out}")


def _scorer(planned: PlannedRun) -> ArrivalScorer:
    from judge.api import ScoreOptions  # noqa: PLC0415
    from judge.api.arrivals import ArrivalScorer  # noqa: PLC0415

    options = planned.options
    return ArrivalScorer(
        planned.out,
        ScoreOptions(sandbox=options.sandbox, limits=options.limits, jobs=options.jobs or 1),
    )


def _check_complete(summary: InferenceSummary, out: Path) -> None:
    from judge.errors import IncompleteRunError, InferenceError  # noqa: PLC0415

    hint = f"judge infer --out {out}"
    if summary.stopped is not None:
        raise InferenceError(
            f"{summary.stopped}: {summary.unasked} of {summary.total} tasks were not asked",
            hint=f"Raise --max-cost or --max-tokens-total and continue with: {hint}",
        )
    if not summary.is_complete:
        raise IncompleteRunError(
            f"{summary.failed} of {summary.total} tasks failed", hint=f"Ask them again: {hint}"
        )


def _export(out: Path | None, log: Path, *, as_json: bool) -> None:
    from judge.errors import UsageError  # noqa: PLC0415
    from judge.grading.store import RunDirectory  # noqa: PLC0415
    from judge.inference.logs import export_log  # noqa: PLC0415

    if out is None:
        raise UsageError("--export-log needs --out, the run to export")
    with RunDirectory(out) as store:
        count = export_log(store, log)
    if as_json:
        _print_json({"conversations": count, "log": str(log)})
    else:
        click.echo(f"{count} conversations written to {log}")


def _import(options: InferOptions, log: Path, *, as_json: bool) -> None:
    from judge.core.task_ids import split_ids  # noqa: PLC0415
    from judge.grading.store import RunDirectory  # noqa: PLC0415
    from judge.inference.logs import import_log  # noqa: PLC0415
    from judge.suites import load_suite  # noqa: PLC0415
    from judge.suites.locate import whole_source  # noqa: PLC0415

    source = str(options.dataset or "sample")
    suite = load_suite(source)
    out = Path(options.out or Path("results") / log.stem)
    with RunDirectory(out) as store:
        count = import_log(log, suite, whole_source(source), store, split_ids(options.ids) or None)
    _show_imported(count, out, as_json=as_json)


def _import_inspect(options: InferOptions, log: Path, *, as_json: bool) -> None:
    from judge.core.task_ids import split_ids  # noqa: PLC0415
    from judge.errors import IncompleteRunError, UsageError  # noqa: PLC0415
    from judge.grading.store import RunDirectory  # noqa: PLC0415
    from judge.inference.inspect_logs import import_inspect_log, suite_named_in  # noqa: PLC0415
    from judge.suites import load_suite  # noqa: PLC0415
    from judge.suites.locate import whole_source  # noqa: PLC0415
    from judge.suites.whereabouts import source_of_digest  # noqa: PLC0415

    source = None if options.dataset is None else str(options.dataset)
    if source is None and (named := suite_named_in(log)) is not None:
        source = source_of_digest(digest=named[1], name=named[0])
    if source is None:
        raise UsageError(
            f"{log}: which suite does it answer?", hint="Give --dataset SUITE (a folder or a name)."
        )
    suite = load_suite(source)
    out = Path(options.out or Path("results") / log.stem)
    with RunDirectory(out) as store:
        done = import_inspect_log(
            log, suite, whole_source(source), store, split_ids(options.ids) or None
        )
    _show_imported(done.submissions, out, as_json=as_json)
    lacking = []
    if done.failed:
        names = ", ".join(list(done.failed)[:5])
        lacking.append(f"{_samples(len(done.failed))} ended with an error ({names})")
    if done.missing:
        lacking.append(f"{_samples(done.missing)} had no end yet when the evaluation stopped")
    if lacking:
        raise IncompleteRunError(
            f"{log}: {', and '.join(lacking)}; they have no submission",
            hint=f"inspect eval-retry {log} asks them again. Then import its log, with another "
            "--out.",
        )


def _show_imported(submissions: int, out: Path, *, as_json: bool) -> None:
    if as_json:
        _print_json({"submissions": submissions, "results": str(out)})
    else:
        click.echo(f"{submissions} submissions imported; to grade: judge score {out}")


def _print_json(document: object) -> None:
    click.echo(json.dumps(document, ensure_ascii=False))


def _samples(number: int) -> str:
    return "1 sample" if number == 1 else f"{number} samples"
