"""What the options of inference make of the settings: one for workbooks, one for typed answers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TypeVar

from judge.api.infer_options import InferOptions
from judge.core.task import Task
from judge.errors import UsageError
from judge.files.paths import as_path
from judge.inference.config import Setting, TypedSetting, load_typed_setting
from judge.inference.content import ContentLimits
from judge.inference.documents import DocumentFolder
from judge.inference.plan import Assignment, Background, TypedWay
from judge.inference.prompt import Template, load_feedback, load_template, load_user_template

_CHANGES = ("rounds", "rows", "content", "temperature", "top_p")
_TYPED_CHANGES = (
    *_CHANGES,
    *("pictures", "max_pictures", "picture_side", "picture_bytes", "picture_types"),
)
_Setting = TypeVar("_Setting", bound=Setting)


def changed(setting: _Setting, options: InferOptions) -> _Setting:
    """The setting, with what the options say in place of it."""
    names = _TYPED_CHANGES if isinstance(setting, TypedSetting) else _CHANGES
    said = {name: value for name in names if (value := getattr(options, name)) not in {None, ()}}
    return replace(setting, **said)


def template_for(options: InferOptions, setting: Setting) -> Template:
    """The user's own prompt, or that of the setting.

    Raises:
        UsageError: the user's cannot be read, or lacks a field that every prompt needs.
    """
    if options.prompt:
        return load_user_template(as_path(options.prompt))
    return load_template(setting.prompt)


def content_limits(options: InferOptions, setting: Setting) -> ContentLimits:
    """How much of workbooks and tables goes into a prompt."""
    return ContentLimits(rows=setting.rows, notes=options.notes is not False)


def typed_way(options: InferOptions, assignments: Sequence[Assignment]) -> TypedWay | None:
    """How tasks are asked that expect a typed answer; None if none of them does."""
    forms = {assignment.question.answer.is_file for assignment in assignments}
    if False not in forms:
        return None
    assert options.mode is not None
    setting = changed(load_typed_setting(options.mode), options)
    # A template of the user's own is for the workbooks where a suite has both.
    mine = options.prompt and True not in forms
    template = template_for(options, setting) if mine else load_template(setting.prompt)
    content = content_limits(options, setting)
    return TypedWay(setting, template, load_feedback("typed_feedback"), content)


def in_phrasing(tasks: Sequence[Task], name: str | None, suite: str) -> tuple[Task, ...]:
    """The tasks in one of the phrasings in which a suite asks the same things.

    Args:
        tasks: those that are chosen otherwise.
        name: the phrasing; None and ``both`` for all tasks.
        suite: name of the suite, for messages.

    Raises:
        UsageError: no task is phrased like that.
    """
    if name in {None, "both"}:
        return tuple(tasks)
    found = tuple(
        task for task in tasks if task.phrasing is not None and task.phrasing.name == name
    )
    if not found:
        known = sorted({task.phrasing.name for task in tasks if task.phrasing is not None})
        raise UsageError(
            f"--instruction {str(name)[:80]}: no task of {suite} that is asked about is phrased so",
            hint=f"Phrasings: {', '.join(known)}."
            if known
            else "It has one phrasing of each task.",
        )
    return found


def background_of(options: InferOptions, assignments: Sequence[Assignment]) -> Background:
    """What prompts add to the question.

    Raises:
        UsageError: no task has a plan, or the documents cannot be read.
    """
    if options.oracle_plan and not any(assignment.question.plan for assignment in assignments):
        raise UsageError("--oracle-plan: no task that is asked about comes with an expert's steps")
    folder = as_path(options.documents)
    documents = None if folder is None else DocumentFolder(folder)
    return Background(oracle_plan=bool(options.oracle_plan), documents=documents)


def check_typed(options: InferOptions) -> None:
    """Checks that no option is given that only concerns workbooks.

    Raises:
        UsageError: there is one.
    """
    unseen = options.execution_feedback is False or None
    said = {"feedback": options.feedback, "stop": options.stop, "no-execution-feedback": unseen}
    for name, value in said.items():
        if value not in {None, "output"}:
            raise UsageError(f"--{name} is for tasks that ask for a workbook, and there are none")


def check_batch(options: InferOptions, executes: bool) -> None:
    """Checks that requests can be sent together, if they are to be.

    Args:
        options: what the user says.
        executes: whether any task is asked in several rounds.

    Raises:
        UsageError: they cannot, or several ways to send them are named.
    """
    ways = {
        "--batch-file": options.batch_file,
        "--batch-results": options.batch_results,
    }
    said = [name for name, value in ways.items() if value is not None]
    if len(said) > 1:
        raise UsageError(f"{' and '.join(said)}: give one of them")
    if executes and (said or options.batch):
        raise UsageError(
            f"{said[0] if said else '--batch'} belongs to --mode single and text: in multi, each "
            "request depends on the reply to the one before",
            hint="Leave it away, or give --mode single.",
        )


def check_combinations(options: InferOptions, executes: bool) -> None:
    """Checks that no option of several rounds is given in a mode that has one.

    Raises:
        UsageError: there is one.
    """
    if executes:
        return
    unseen = options.execution_feedback is False
    for name, value in (
        ("session", options.session),
        ("stop", options.stop),
        ("no-execution-feedback", unseen),
    ):
        if value not in {None, False, "output"}:
            raise UsageError(f"--{name} belongs to --mode multi")
    if (options.rounds or 1) > 1:
        raise UsageError(f"--rounds belongs to --mode multi, not to {options.mode}")
