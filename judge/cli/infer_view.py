"""What ``judge infer`` shows: progress on stderr, a summary, a dry run."""

from __future__ import annotations

import sys
import time
from typing import Any, Self

import click

from judge.inference.address import public_url
from judge.inference.dryrun import DryRun
from judge.inference.plan import InferencePlan
from judge.inference.progress import BatchEvent, InferenceEvent, InferenceSummary

_MAX_LEFT_OUT = 10
_WORDS = {
    "program": "with a program",
    "answer": "with an answer",
    "file": "with a file",
    "no-code": "without",
    "failed": "failed",
}


def show_start(plan: InferencePlan, out: str, pace: str) -> None:
    """Says on stderr which model will be asked what, and how to continue after an interruption."""
    model, setting = plan.model, plan.setting
    name = model.name if model.model in {None, model.name} else f"{model.name} ({model.model})"
    unit = "rounds" if plan.desktop is None else "turns"
    how = f"{setting.name}, up to {setting.rounds} {unit}" if setting.executes else setting.name
    samples = f" x {plan.samples} samples" if plan.samples > 1 else ""
    tasks = len(plan.assignments)
    key = f" with the key in {model.key_env}" if model.key_env else ""
    click.echo(
        f"asking {name} at {public_url(model.base_url)}{key} about {tasks} task{'s'[: tasks != 1]}"
        f"{samples} of {plan.suite.name}: {how}, {pace}",
        err=True,
    )
    for task_id, problem in () if plan.desktop is None else plan.desktop.left_out[:_MAX_LEFT_OUT]:
        click.echo(f"  not asked: {task_id}: {problem}", err=True)
    more = 0 if plan.desktop is None else len(plan.desktop.left_out) - _MAX_LEFT_OUT
    if more > 0:
        click.echo(f"  and {more} more are not asked", err=True)
    click.echo(f"results: {out}  (to continue: judge infer --out {out})", err=True)


class InferenceProgress:
    """A live line on a terminal, a line every few seconds elsewhere.

    Args:
        quiet: show nothing.
        every_s: seconds between lines if there is no terminal.
    """

    def __init__(self, *, quiet: bool, every_s: float = 5.0) -> None:
        self._quiet = quiet
        self._every_s = every_s
        self._live = not quiet and sys.stderr.isatty()
        self._bar: Any = None
        self._task: Any = None
        self._counts = dict.fromkeys(_WORDS, 0)
        self._asked = 0
        self._started_s = time.monotonic()
        self._next_s = self._started_s + every_s
        self._said = ""

    def __enter__(self) -> Self:
        if self._live:
            from rich.progress import BarColumn, Progress, TextColumn  # noqa: PLC0415

            from judge.console import make_console  # noqa: PLC0415  only a live terminal needs it

            columns = (BarColumn(bar_width=24), TextColumn("{task.description}"))
            self._bar = Progress(*columns, console=make_console(err=True), transient=True)
            self._task = self._bar.add_task("asking", total=None)
            self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.stop()

    def __call__(self, event: InferenceEvent) -> None:
        """Counts a task and shows the progress."""
        self._counts[event.state] += 1
        self._asked += not event.reused
        line = self._line(event)
        if self._bar is not None:
            self._bar.update(self._task, total=event.total, completed=event.done, description=line)
            return
        now = time.monotonic()
        if not self._quiet and (now >= self._next_s or event.done == event.total):
            self._next_s = now + self._every_s
            click.echo(line, err=True)

    def batch(self, event: BatchEvent) -> None:
        """Shows how a batch is getting on."""
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
            parts.append(f"{_span_of((event.total - event.done) * elapsed_s / self._asked)} left")
        parts += [f"{count} {_WORDS[name]}" for name, count in self._counts.items() if count]
        parts.append(f"{event.tokens:,} tokens")
        if event.cost is not None:
            parts.append(f"${event.cost:.2f}")
        return ", ".join(parts)


def _span_of(seconds: float) -> str:
    minutes, seconds = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{seconds:02}" if hours else f"{minutes}:{seconds:02}"


def show_summary(summary: InferenceSummary, path: str) -> None:
    """Prints how a run ended."""
    reused = f" ({summary.reused} of them before)" if summary.reused else ""
    click.echo(
        f"{summary.finished} of {summary.total} finished{reused}, {summary.failed} failed, "
        f"{summary.truncated} truncated, {summary.no_code} without a program or answer"
    )
    if summary.unasked:
        click.echo(f"  not asked: {summary.unasked}")
    if summary.not_alone:
        click.echo(f"  programs that do not stand alone: {summary.not_alone}")
    retries = f", {summary.retries} retries" if summary.retries else ""
    click.echo(f"  calls: {summary.calls}{retries}")
    click.echo(
        f"  tokens: {summary.prompt_tokens:,} in prompts, {summary.completion_tokens:,} in replies"
    )
    if summary.cost is not None:
        click.echo(f"  cost: ${summary.cost:.4f}")
    click.echo(f"  time: {_span_of(summary.seconds)}")
    for name, problem in list(summary.failures.items())[:10]:
        click.echo(f"  {name}: {problem}")
    if len(summary.failures) > 10:
        click.echo(f"  and {len(summary.failures) - 10} more failures")
    click.echo(f"results: {path}")


def show_requests(summary: InferenceSummary, requests: str, path: str) -> None:
    """Says how to continue with a file of requests."""
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
            f"--- {len(dry.prompts) - len(shown)} more prompts; --ids ID shows that of a task"
        )
    sizes = sorted(prompt.tokens for prompt in dry.prompts if prompt.text is not None)
    if sizes:
        median = sizes[len(sizes) // 2]
        click.echo(f"prompts: {len(sizes)}, tokens: median {median:,}, largest {sizes[-1]:,}")
    for prompt in dry.prompts:
        if prompt.problem:
            click.echo(f"no prompt for task {prompt.task_id}: {prompt.problem}")
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
