"""``judge infer``: asks a chat model for solutions, and shows the progress.

If somebody else started the run, its options are shown, and the user has to confirm them.
"""

from __future__ import annotations

import json
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import click

from judge import api
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
from judge.cli.signals import run_until_signal
from judge.console import SECONDS_BETWEEN_LINES, clock, make_console, visible
from judge.core.option import Section, split_ids
from judge.errors import IncompleteRunError, InferenceError, StoreError, UsageError

if TYPE_CHECKING:
    from judge.api.inferring import DryRun, PlannedRun
    from judge.api.planning import Resumed
    from judge.api.reporting import ScoredRun
    from judge.inference.plan import InferencePlan
    from judge.inference.run_records import BatchEvent, InferenceEvent, InferenceSummary


# Options for what the command does in addition to, or instead of, asking a model.
_NOT_INFERENCE = (
    *("score", "dry_run", "import_log", "import_inspect", "import_trajectory", "import_outputs"),
    *("export_log", "as_json", "quiet"),
)
_PATH = click.Path(path_type=Path)


@click.command(
    cls=HelpCommand,
    examples=(
        "infer --model deepseek-coder --dataset sample --limit 2 --dry-run",
        "infer --model vllm --base-url http://127.0.0.1:8000/v1 --limit 2",
        "infer --out results/mine",
    ),
    first="model mode dataset out ids limit base_url api_key_env dry_run score",
)
@option("--import-log", type=_PATH, section=Section.ELSEWHERE,
        help="Make a run out of a conv_*.jsonl; no model is asked.")  # fmt: skip
@option("--import-inspect", type=_PATH, metavar="LOG", section=Section.ELSEWHERE,
        help="Make a run out of an Inspect log (.eval); no model is asked.")  # fmt: skip
@option("--import-trajectory", metavar="PATTERN", section=Section.ELSEWHERE,
        help="Make a run out of what another agent did, such as 'runs/{task}/{task}.traj'; no "
        "model is asked.")  # fmt: skip
@option("--import-outputs", metavar="PATTERN", section=Section.ELSEWHERE,
        help="The workbooks that the agent left [next to the trajectories, named like outputs]."
        )  # fmt: skip
@option("--export-log", type=_PATH, section=Section.ELSEWHERE,
        help="Write the run in --out as a conv_*.jsonl.")  # fmt: skip
@options_of(InferOptions)
@limit_options
@option("--score", is_flag=True, section=Section.SHOWN, help="Grade submissions as they arrive.")
@option("--dry-run", is_flag=True, section=Section.SHOWN,
        help="Show prompts, tokens and cost; no model is asked.")  # fmt: skip
@json_option("the summary")
@option("--quiet", "-q", is_flag=True, section=Section.SHOWN, help="No progress.")
@click.pass_context
def infer(context: click.Context, /, **options: Any) -> None:
    """Ask a chat model for solutions, and write them where `judge score` finds them.

    The same command with the same --out continues where it stopped; --out is enough, since a run
    remembers its options. If you did not start the run on this machine, its options are shown
    first and you are asked to confirm them; without a terminal the command ends with exit code 9,
    unless --trust-folder is given. Keys are read from the environment and never written anywhere.
    """
    shown = {name: options.pop(name) for name in _NOT_INFERENCE}
    if shown["export_log"]:
        _export(options["out"], shown["export_log"], as_json=shown["as_json"])
        return
    for name in {*REMEMBERED} - given_options(context):  # None: use what the run remembers
        options[name] = None
    resumed = api.resume(InferOptions(limits=read_limits(options), **options))
    if resumed.dropped_key:
        click.echo(
            f"the key in {resumed.dropped_key} belongs to the run's former endpoint and is not "
            f"sent to the new one; --api-key-env {resumed.dropped_key} would send it",
            err=True,
        )
    if resumed.taken:
        imports = any(value for name, value in shown.items() if name.startswith("import_"))
        resumed = confirm_options(resumed, asks_model=not imports)
    if shown["import_log"]:
        _import(resumed.options, shown["import_log"], as_json=shown["as_json"])
        return
    if shown["import_inspect"]:
        _import_inspect(resumed.options, shown["import_inspect"], as_json=shown["as_json"])
        return
    if shown["import_trajectory"]:
        _import_trajectory(resumed.options, shown)
        return
    if shown["import_outputs"]:
        raise UsageError("--import-outputs can only be used with --import-trajectory")
    planned = api.make_plan(resumed)
    if shown["dry_run"]:
        dry = api.dry_run(planned.plan)
        if shown["as_json"]:
            _print_json(dry.to_json(planned.plan))
        else:
            show_dry_run(planned.plan, dry)
        return
    _ask(planned, score=shown["score"], as_json=shown["as_json"], quiet=shown["quiet"])


def _ask(planned: PlannedRun, *, score: bool, as_json: bool, quiet: bool) -> None:

    api.check_ready(planned)
    options = planned.options
    if not quiet and not api.is_offline(options):
        pace = "in batches" if options.batch else f"{options.concurrency} at a time"
        show_start(planned.plan, str(planned.out), pace)
        if nearest := api.nearest_alias(options):
            click.echo(f"note: {nearest.removeprefix('. ')}", err=True)
    scorer = _scorer(planned) if score else None
    try:
        # A batch takes hours, and the server reports how far it is.
        silent_s = None if quiet or options.batch else _SILENT_S
        with InferenceProgress(
            quiet=quiet, silent_s=silent_s, timeout_s=options.timeout
        ) as progress:
            summary = run_until_signal(
                api.ask(
                    planned,
                    on_event=progress,
                    on_batch=progress.batch,
                    on_submission=(lambda _: scorer.arrived()) if scorer else (lambda _: None),
                )
            )
        scored: list[ScoredRun] = []
        if scorer and summary.finished:
            scored = scorer.finish(progress=lambda _: api.progress_for(quiet=quiet))
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
    from judge.cli import tables  # noqa: PLC0415  `--help` needs none of it

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
        tables.print_run(run)
    if scored and not quiet:
        tables.print_ending(scored)
    if summary.finished and not scored:
        click.echo(f"to grade: judge score {planned.out}")


def _scorer(planned: PlannedRun) -> api.ArrivalScorer:

    options = planned.options
    return api.ArrivalScorer(
        planned.out,
        api.ScoreOptions(sandbox=options.sandbox, limits=options.limits, jobs=options.jobs or 1),
    )


def _check_complete(summary: InferenceSummary, out: Path) -> None:

    hint = f"judge infer --out {out}"
    if summary.stopped is not None:
        raise InferenceError(
            f"{summary.stopped}: {summary.unasked} of {summary.total} tasks were not begun",
            hint=f"Raise --max-cost or --max-tokens-total and continue with: {hint}",
        )
    if not summary.is_complete:
        raise IncompleteRunError(
            f"{summary.failed} of {summary.total} tasks failed", hint=f"To try them again: {hint}"
        )


def _export(out: Path | None, log: Path, *, as_json: bool) -> None:

    if out is None:
        raise UsageError("--export-log needs --out, the run to export")
    with api.RunDirectory(out) as store:
        count = api.export_log(store, log)
    if as_json:
        _print_json({"conversations": count, "log": str(log)})
    else:
        click.echo(f"{count} conversations written to {log}")


def _import(options: InferOptions, log: Path, *, as_json: bool) -> None:

    source = str(options.dataset or "sample")
    suite = api.load_suite(source)
    out = Path(options.out or Path("results") / log.stem)
    with api.RunDirectory(out) as store:
        count = api.import_log(
            log, suite, api.whole_source(source), store, split_ids(options.ids) or None
        )
    _show_imported(count, out, as_json=as_json)


def _import_inspect(options: InferOptions, log: Path, *, as_json: bool) -> None:

    source = None if options.dataset is None else str(options.dataset)
    if source is None and (named := api.suite_named_in(log)) is not None:
        source = api.source_of_digest(digest=named[1], name=named[0])
    if source is None:
        raise UsageError(
            f"{log}: it is not known which suite the log is about",
            hint="Give --dataset SUITE (a folder or a name).",
        )
    suite = api.load_suite(source)
    out = Path(options.out or Path("results") / log.stem)
    with api.RunDirectory(out) as store:
        imported = api.import_inspect_log(
            log, suite, api.whole_source(source), store, split_ids(options.ids) or None
        )
    _show_imported(imported.submissions, out, as_json=as_json)
    lacking = []
    if imported.failed:
        names = ", ".join(list(imported.failed)[:5])
        lacking.append(f"{_samples(len(imported.failed))} ended with an error ({names})")
    if imported.missing:
        lacking.append(f"{_samples(imported.missing)} had not ended when the evaluation stopped")
    if lacking:
        raise IncompleteRunError(
            f"{log}: {', and '.join(lacking)}; they have no submission",
            hint=f"inspect eval-retry {log} repeats them. Then import the new log with another "
            "--out.",
        )


def _import_trajectory(options: InferOptions, shown: Mapping[str, Any]) -> None:

    pattern, outputs = shown["import_trajectory"], shown["import_outputs"]
    source = str(options.dataset or "sample")
    suite = api.load_suite(source)
    out = Path(options.out or Path("results") / "trajectories")
    ids = split_ids(options.ids) or None
    with api.RunDirectory(out) as store:
        imported = api.import_trajectories(
            pattern, outputs, suite, api.whole_source(source), store, ids
        )
    if shown["as_json"]:
        _print_json({**asdict(imported), "results": str(out)})
        return
    click.echo(
        f"{imported.trajectories} trajectories and {imported.workbooks} workbooks imported; "
        f"to grade: judge score {out}"
    )
    if not imported.workbooks:
        click.echo(
            "no workbook is there, so nothing can be solved: --import-outputs PATTERN", err=True
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


_MAX_LEFT_OUT = 10
_WORDS = {
    "program": "with a program",
    "answer": "with an answer",
    "file": "with a file",
    "no-code": "without",
    "failed": "failed",
}


def show_start(plan: InferencePlan, out: str, pace: str) -> None:
    """Prints to stderr which model is asked about which tasks, and how to continue the run."""
    model, setting = plan.model, plan.setting
    name = model.name if model.model in {None, model.name} else f"{model.name} ({model.model})"
    unit = "rounds" if plan.desktop is None else "turns"
    how = f"{setting.name}, up to {setting.rounds} {unit}" if setting.executes else setting.name
    samples = f" x {plan.samples} samples" if plan.samples > 1 else ""
    tasks = len(plan.assignments)
    key = f" with the key in {model.key_env}" if model.key_env else ""
    click.echo(
        f"asking {name} at {model.public_url}{key} about {tasks} task{'s'[: tasks != 1]}"
        f"{samples} of {plan.suite.name}: {how}, {pace}",
        err=True,
    )
    for task_id, problem in () if plan.desktop is None else plan.desktop.left_out[:_MAX_LEFT_OUT]:
        click.echo(f"  not asked: {task_id}: {problem}", err=True)
    more = 0 if plan.desktop is None else len(plan.desktop.left_out) - _MAX_LEFT_OUT
    if more > 0:
        click.echo(f"  and {more} more are not asked", err=True)
    click.echo(f"results: {out}  (to continue: judge infer --out {out})", err=True)


_SILENT_S = 30.0
"""How long no task may finish until a line says that the command is waiting."""


class InferenceProgress:
    """Shows progress: a live line on a terminal, otherwise a new line every few seconds.

    Args:
        quiet: show nothing.
        silent_s: how long no task may finish until a line says so; it is repeated as often. None
            for never.
        timeout_s: seconds after which the judge gives up on a reply; the line states them.
    """

    def __init__(self, *, quiet: bool, silent_s: float | None, timeout_s: float) -> None:
        self._quiet = quiet
        self._silent_s = silent_s
        self._timeout_s = timeout_s
        self._heard_s = time.monotonic()
        self._tasks = "no task has finished"
        self._ended = threading.Event()
        self._watch: threading.Thread | None = None
        self._live = not quiet and sys.stderr.isatty()
        self._bar: Any = None
        self._task: Any = None
        self._counts = dict.fromkeys(_WORDS, 0)
        self._asked = 0
        self._started_s = time.monotonic()
        self._next_s = self._started_s + SECONDS_BETWEEN_LINES
        self._said = ""

    def __enter__(self) -> Self:
        if self._live:
            from rich.progress import BarColumn, Progress, TextColumn  # noqa: PLC0415

            columns = (BarColumn(bar_width=24), TextColumn("{task.description}"))
            self._bar = Progress(*columns, console=make_console(err=True), transient=True)
            self._task = self._bar.add_task("asking", total=None)
            self._bar.start()
        if self._silent_s is not None:
            self._watch = threading.Thread(
                target=self._report_silence, args=(self._silent_s,), daemon=True
            )
            self._watch.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        if self._watch is not None:
            self._watch.join()
        if self._bar is not None:
            self._bar.stop()

    def _report_silence(self, silent_s: float) -> None:
        """Prints a line whenever no task has finished for so many seconds; runs in a thread."""
        said_s = self._heard_s
        while True:
            due_s = max(self._heard_s, said_s) + silent_s
            if self._ended.wait(max(due_s - time.monotonic(), 0)):
                return
            if max(self._heard_s, said_s) + silent_s > due_s:
                continue  # a task has finished meanwhile
            said_s = time.monotonic()
            line = (
                f"{self._tasks}; waiting for replies for {clock(said_s - self._heard_s)} "
                f"(--timeout gives up a reply after {clock(self._timeout_s)})"
            )
            if self._bar is not None:
                self._bar.update(self._task, description=line)
            else:
                click.echo(line, err=True)

    def __call__(self, event: InferenceEvent) -> None:
        """Counts a finished task and shows the progress."""
        self._heard_s = time.monotonic()
        self._tasks = f"{event.done}/{event.total} tasks"
        self._counts[event.state] += 1
        self._asked += not event.reused
        line = self._line(event)
        if self._bar is not None:
            self._bar.update(self._task, total=event.total, completed=event.done, description=line)
            return
        now = time.monotonic()
        if not self._quiet and (now >= self._next_s or event.done == event.total):
            self._next_s = now + SECONDS_BETWEEN_LINES
            click.echo(line, err=True)

    def batch(self, event: BatchEvent) -> None:
        """Shows the progress of a batch."""
        line = f"batch {event.batch_id}: {event.status}, {event.answered}/{event.total} requests"
        if self._bar is not None:
            self._bar.update(
                self._task, total=event.total, completed=event.answered, description=line
            )
        elif not self._quiet and line != self._said:
            self._said = line
            click.echo(line, err=True)

    def _line(self, event: InferenceEvent) -> str:
        parts = [f"{event.done}/{event.total} tasks"]
        elapsed_s = max(time.monotonic() - self._started_s, 1e-6)
        if self._asked:
            per_minute = 60 * self._asked / elapsed_s
            parts.append(
                f"{per_minute / 60:.1f}/s" if per_minute >= 60 else f"{per_minute:.1f}/min"
            )
        if self._asked and event.done < event.total:
            parts.append(f"{clock((event.total - event.done) * elapsed_s / self._asked)} left")
        parts += [f"{count} {_WORDS[name]}" for name, count in self._counts.items() if count]
        parts.append(f"{event.tokens:,} tokens")
        if event.cost is not None:
            parts.append(f"${event.cost:.2f}")
        return ", ".join(parts)


def show_summary(summary: InferenceSummary, path: str) -> None:
    """Prints the outcome of a run: counts, tokens, cost, time, notes and failures."""
    reused = f" ({summary.reused} of them before)" if summary.reused else ""
    click.echo(
        f"{summary.finished} of {summary.total} finished{reused}, {summary.failed} failed, "
        f"{summary.truncated} truncated, {summary.no_code} without a program or answer"
    )
    if summary.unasked:
        click.echo(f"  not asked: {summary.unasked}")
    if summary.over_length:
        click.echo(f"  too long for the model's context: {summary.over_length}")
    if summary.not_alone:
        click.echo(f"  programs that only work after earlier rounds: {summary.not_alone}")
    retries = f", {summary.retries} retries" if summary.retries else ""
    click.echo(f"  calls: {summary.calls}{retries}")
    click.echo(
        f"  tokens: {summary.prompt_tokens:,} in prompts, {summary.completion_tokens:,} in replies"
    )
    if summary.cost is not None:
        click.echo(f"  cost: ${summary.cost:.4f}")
    click.echo(f"  time: {clock(summary.seconds)}")
    for note in summary.notes:
        click.echo(f"  note: {visible(note)}")
    for name, problem in list(summary.failures.items())[:10]:
        click.echo(f"  {name}: {problem}")
    if len(summary.failures) > 10:
        click.echo(f"  and {len(summary.failures) - 10} more failures")
    click.echo(f"results: {path}")


def show_requests(summary: InferenceSummary, requests: str, path: str) -> None:
    """Prints how to continue after the requests were written to a file."""
    done = f"; {summary.finished} finished before" if summary.finished else ""
    click.echo(f"{requests}: the requests of {summary.unasked} tasks{done}")
    click.echo(f"to answer them: vllm run-batch -i {requests} -o RESULTS --model MODEL")
    click.echo(f"to read them:   judge infer --out {path} --batch-results RESULTS")


def show_dry_run(plan: InferencePlan, dry: DryRun) -> None:
    """Prints prompts, token counts and the expected cost."""
    shown = dry.prompts if len(dry.prompts) <= 3 else dry.prompts[:1]
    for prompt in shown:
        click.echo(f"--- task {prompt.task_id}, about {prompt.tokens:,} tokens")
        click.echo(prompt.text if prompt.text is not None else f"no prompt: {prompt.problem}")
    if len(shown) < len(dry.prompts):
        click.echo(
            f"--- {len(dry.prompts) - len(shown)} more prompts; --ids ID shows a task's prompt"
        )
    sizes = sorted(prompt.tokens for prompt in dry.prompts if prompt.text is not None)
    if sizes:
        median = sizes[len(sizes) // 2]
        click.echo(f"prompts: {len(sizes)}, tokens: median {median:,}, largest {sizes[-1]:,}")
    for prompt in dry.prompts:
        if prompt.problem:
            click.echo(f"no prompt for task {prompt.task_id}: {prompt.problem}")
    if plan.tool_tokens:
        click.echo(f"tools, about {plan.tool_tokens:,} tokens in each request:")
        for definition in plan.tool_definitions:
            click.echo(f"  {tool_line(plan, definition)}")
    click.echo(f"calls: {_span(dry.calls)}")
    click.echo(f"tokens in prompts: about {_span(dry.prompt_tokens)}")
    click.echo(f"tokens in replies: about {_span(dry.completion_tokens)}")
    if dry.cost is None:
        click.echo(f"cost: no price is known for {plan.model.name}; give --price IN/OUT")
    else:
        low, high = dry.cost
        more = f" to ${high:.2f}" if high > low else ""
        source = plan.model.price.source if plan.model.price else ""
        click.echo(f"cost: about ${low:.2f}{more} (prices: {source})")
    if dry.over_length:
        click.echo(f"too long for the model's context: {', '.join(dry.over_length[:20])}")


def _span(figures: tuple[int, int]) -> str:
    low, high = figures
    return f"{low:,}" if low == high else f"{low:,} to {high:,}"


_SHOWN_CHARS = 200


def tool_line(plan: InferencePlan, definition: Mapping[str, Any]) -> str:
    """Describes a tool on one line: arguments, tokens in each request, start of its description."""
    function = definition["function"]
    properties = function["parameters"].get("properties")
    names = ", ".join(properties) if isinstance(properties, dict) else ""
    tokens = plan.tokens_of(definition)
    words = " ".join(str(function["description"]).split())
    shown = visible(f"{function['name']}({names})"), visible(words)[:_SHOWN_CHARS]
    return f"{shown[0]}, about {tokens:,} tokens: {shown[1]}"


def confirm_options(resumed: Resumed, *, asks_model: bool) -> Resumed:
    """Shows the options taken from a folder, and asks whether to continue with them.

    With ``--trust-folder``, nothing is asked.

    Args:
        resumed: the options, with the names of those that were taken from the folder.
        asks_model: whether a chat model will be asked.

    Returns:
        The options, confirmed by the user.

    Raises:
        StoreError: the options are not confirmed.
        UsageError: a key belongs to an endpoint other than the folder's.
    """
    for line in _lines(resumed, asks_model=asks_model):
        click.echo(line, err=True)
    if not resumed.options.trust_folder and sys.stdin.isatty() and sys.stderr.isatty():
        if not click.confirm("Continue with these?", default=False, err=True):
            raise StoreError(f"{resumed.options.out}: not continued")
        return replace(resumed, options=replace(resumed.options, trust_folder=True))
    resumed.check_trusted()
    return resumed


def _lines(resumed: Resumed, *, asks_model: bool) -> list[str]:
    from judge.api.planning import CONSENT_OPTIONS  # noqa: PLC0415  seldom needed
    from judge.grading.store import RUN_FILE  # noqa: PLC0415

    options = resumed.options
    values = {name: getattr(options, name) for name in resumed.taken}
    if asks_model and options.model:
        # Show the values in effect: an alias or a models file may add to the options.
        spec = api.find_spec(options, key_given=False)
        values |= {
            "model": spec.name
            if spec.model in {None, spec.name}
            else f"{spec.name} = {spec.model}",
            "base_url": spec.public_url,
            "api_key_env": f"the one in {spec.key_env}" if spec.key_env else "none is sent",
            "param": {**spec.params, **_pairs(options)} or None,
        }
    lines = [f"{options.out} was not started by you on this machine. Its {RUN_FILE} says:"]
    for name, title in CONSENT_OPTIONS.items():
        if values.get(name) is not None:
            lines.append(f"  {title:<12} {str(values[name])[:_SHOWN_CHARS]}")
    return lines


def _pairs(options: InferOptions) -> dict[str, str]:
    return dict(pair.partition("=")[::2] for pair in options.param)
