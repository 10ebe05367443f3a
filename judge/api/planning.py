"""The plan of a run of inference, out of its options."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from judge.api.desktop_settings import desktop_way, without
from judge.api.infer_options import REMEMBERED, InferOptions
from judge.api.infer_settings import (
    background_of,
    changed,
    check_combinations,
    check_typed,
    content_limits,
    in_phrasing,
    template_for,
    typed_way,
)
from judge.core.task import split_ids
from judge.errors import UsageError
from judge.inference.address import public_url
from judge.inference.config import ModelSpec, Setting, load_setting
from judge.inference.desktop.setting import DesktopWay
from judge.inference.plan import Assignment, InferencePlan, SuiteReference, TypedWay
from judge.inference.prompt import Template, load_feedback
from judge.suites import load_suite
from judge.suites.locate import whole_source


def plan_of(options: InferOptions, model: ModelSpec) -> InferencePlan:
    """What is asked and how; reads the suite, asks nothing.

    Args:
        options: what to ask, with every option that is never without a value
            (:meth:`judge.api.infer_options.InferOptions.filled`).
        model: whom to ask.

    Raises:
        UsageError: options contradict each other or cannot be read.
        SuiteError: the suite is missing or broken.
    """
    source = str(options.dataset or "sample")
    suite = load_suite(source)
    ids = split_ids(options.ids)
    # Every golden workbook stays behind here: the plan gets questions only.
    named = suite.select(ids or None)
    phrased = in_phrasing(named.tasks, options.instruction, suite.name)
    chosen = named.with_tasks(phrased).select(None, options.limit).tasks
    assignments = tuple(
        Assignment(task.question, task.written_id)
        for task in chosen
        if task.excluded is None or ids
    )
    if not assignments:
        raise UsageError("no task is left to ask about", hint="Check --ids and --limit.")
    desktop = desktop_way(options, suite.format, assignments)
    if desktop is not None:
        assignments = without(assignments, desktop.left_out)
    setting, template, typed = _way(options, assignments, desktop)
    remembered = {name: getattr(options, name) for name in REMEMBERED}
    resolved = whole_source(source)
    return InferencePlan(
        suite=SuiteReference(suite.name, resolved, suite.digest, suite.format),
        assignments=assignments,
        model=model,
        model_name=model.model or "",
        setting=setting,
        template=template,
        feedback=load_feedback(),
        content=content_limits(options, setting),
        typed=typed,
        desktop=desktop,
        params=request_params(options),
        samples=options.samples or 1,
        session=bool(options.session),
        explicit_stop=options.stop == "explicit",
        execution_feedback=options.execution_feedback is not False,
        background=background_of(options, assignments),
        limits=options.limits,
        options=_plain(remembered | {"dataset": resolved}),
    )


def _way(
    options: InferOptions, assignments: tuple[Assignment, ...], desktop: DesktopWay | None
) -> tuple[Setting, Template, TypedWay | None]:
    """Setting and prompt, and how tasks are asked that expect a typed answer."""
    if desktop is not None:
        return desktop.setting, template_for(options, desktop.setting), None
    assert options.mode is not None
    setting = changed(load_setting(options.mode, options.feedback), options)
    check_combinations(options, setting.executes)
    typed = typed_way(options, assignments)
    template = template_for(options, setting)
    if typed is not None and all(
        not assignment.question.answer.is_file for assignment in assignments
    ):
        check_typed(options)
        return typed.setting, typed.template, typed
    return setting, template, typed


def request_params(options: InferOptions) -> dict[str, Any]:
    """The request parameters that the options name, except temperature and nucleus.

    Raises:
        UsageError: a parameter cannot be read, or must not be given.
    """
    params: dict[str, Any] = {}
    for pair in options.param:
        name, separator, text = pair.partition("=")
        if not separator or not name.strip():
            raise UsageError(f"--param {pair}: write NAME=VALUE")
        try:
            params[name.strip()] = json.loads(text)
        except ValueError:
            params[name.strip()] = text
    if "extra_headers" in params:
        raise UsageError(
            "--param extra_headers: headers may hold keys, and parameters are written to run.json",
            hint="Name the variable that holds the key with --api-key-env.",
        )
    for name in ("max_tokens", "seed"):
        if (value := getattr(options, name)) is not None:
            params[name] = value
    return params


def _plain(options: Mapping[str, Any]) -> dict[str, Any]:
    """Values that JSON can hold; a user's prompt is remembered by its whole path."""
    plain: dict[str, Any] = {}
    for name, value in options.items():
        if isinstance(value, Path):
            plain[name] = str(value.resolve())
        elif isinstance(value, tuple):
            plain[name] = list(value)
        else:
            plain[name] = value
    if plain.get("base_url"):
        plain["base_url"] = public_url(plain["base_url"])
    return plain
