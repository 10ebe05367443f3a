"""``judge infer``: ask a chat model for solutions."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from judge.api.infer_options import REMEMBERED, InferOptions
from judge.cli.help import HelpCommand
from judge.cli.options import (
    given_options,
    json_option,
    limit_options,
    option,
    options_of,
    read_limits,
)
from judge.core.option import Section

if TYPE_CHECKING:
    from judge.api.arrivals import ArrivalScorer
    from judge.api.inferring import PlannedRun
    from judge.api.reporting import ScoredRun
    from judge.inference.progress import InferenceSummary

# What the command does besides, or instead of, asking.
_NOT_INFERENCE = (
    *("score", "dry_run", "import_log", "import_inspect", "export_log", "as_json", "quiet"),
)
_PATH = click.Path(path_type=Path)


@click.command(cls=HelpCommand)
@option("--import-log", type=_PATH, section=Section.ELSEWHERE,
        help="Make a run out of a conv_*.jsonl; ask nothing.")  # fmt: skip
@option("--import-inspect", type=_PATH, metavar="LOG", section=Section.ELSEWHERE,
        help="Make a run out of a log of Inspect (.eval); ask nothing.")  # fmt: skip
@option("--export-log", type=_PATH, section=Section.ELSEWHERE,
        help="Write the run in --out as a conv_*.jsonl.")  # fmt: skip
@options_of(InferOptions)
@limit_options
@option("--score", is_flag=True, section=Section.SHOWN, help="Grade submissions as they arrive.")
@option("--dry-run", is_flag=True, section=Section.SHOWN,
        help="Show prompts, tokens and cost; ask nothing.")  # fmt: skip
@json_option("the summary")
@option("--quiet", "-q", is_flag=True, section=Section.SHOWN, help="No progress.")
@click.pass_context
def infer(context: click.Context, /, **options: Any) -> None:
    """Ask a chat model for solutions, and write them where `judge score` finds them.

    The same command with the same --out continues where it stopped; --out by itself is enough,
    since a run remembers its options. If you did not start the run on this machine, its options
    are shown first and you are asked to confirm them; without a terminal the command ends with
    exit code 9, unless --trust-folder is given. Keys are read from the environment and never
    written anywhere.
    """
    from judge.api.inferring import make_plan  # noqa: PLC0415
    from judge.api.resuming import resume  # noqa: PLC0415

    shown = {name: options.pop(name) for name in _NOT_INFERENCE}
    if shown["export_log"]:
        _export(options["out"], shown["export_log"], as_json=shown["as_json"])
        return
    for name in {*REMEMBERED} - given_options(context):  # the run's own, if there is one
        options[name] = None
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
    from judge.core.task import split_ids  # noqa: PLC0415
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
    from judge.core.task import split_ids  # noqa: PLC0415
    from judge.errors import IncompleteRunError, UsageError  # noqa: PLC0415
    from judge.grading.store import RunDirectory  # noqa: PLC0415
    from judge.inference.inspect_logs import import_inspect_log, suite_named_in  # noqa: PLC0415
    from judge.suites import load_suite  # noqa: PLC0415
    from judge.suites.load import source_of_digest  # noqa: PLC0415
    from judge.suites.locate import whole_source  # noqa: PLC0415

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
