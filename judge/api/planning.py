"""Plans a run of inference from its options, the options of a continued run, and the settings.

The options that a run remembers are in its folder, and a folder may come from anyone. Options that
decide which server is asked, with which key, what is read and what is paid are taken without asking
only from runs that this user started on this machine; from other folders, only with their consent.
"""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

from judge.api.infer_options import DEFAULTS, REMEMBERED, InferOptions, check_remembered
from judge.api.tools import named_set
from judge.core.option import Section, options_in, split_ids
from judge.core.records.runs import InferenceIdentity, RunDocument
from judge.core.task import Task
from judge.desktop.choices import ActionSpace
from judge.desktop.contract import DesktopOptions, WindowBounds
from judge.errors import StoreError, UsageError
from judge.files.paths import as_path
from judge.grading.store import RUN_FILE, RunDirectory
from judge.inference.config import (
    ModelSpec,
    Setting,
    TypedSetting,
    check_address,
    load_setting,
    load_typed_setting,
    origin_of,
    public_url,
)
from judge.inference.content import ContentLimits
from judge.inference.desktop.setting import (
    MODE,
    DesktopMode,
    DesktopSetting,
    load_desktop_setting,
    load_words,
    setting_name,
    why_not_asked,
)
from judge.inference.documents import DocumentFolder
from judge.inference.plan import Assignment, Background, InferencePlan, SuiteReference, TypedMode
from judge.inference.prompt import Template, load_feedback, load_template, load_user_template
from judge.inference.started import StartedRuns
from judge.inference.tools.setting import (
    MODE as TOOLS,
)
from judge.inference.tools.setting import (
    PRESETS,
    ToolMode,
    departures_of,
    load_preset,
)
from judge.inference.tools.setting import (
    why_not_asked as why_not_with_tools,
)
from judge.sandbox import open_sandbox
from judge.sandbox.contract import Sandbox
from judge.suites import load_suite
from judge.suites.suite import whole_source

_CHANGES = ("rounds", "rows", "content", "temperature", "top_p")
_TYPED_CHANGES = (
    *_CHANGES,
    *("pictures", "max_pictures", "picture_side", "picture_bytes", "picture_types"),
)
_Setting = TypeVar("_Setting", bound=Setting)


def changed(setting: _Setting, options: InferOptions) -> _Setting:
    """The setting, overridden by the options."""
    names = _TYPED_CHANGES if isinstance(setting, TypedSetting) else _CHANGES
    given_options = {
        name: value for name in names if (value := getattr(options, name)) not in {None, ()}
    }
    return replace(setting, **given_options)


def template_for(options: InferOptions, setting: Setting) -> Template:
    """The user's own prompt, or the setting's.

    Raises:
        UsageError: the user's prompt cannot be read, or lacks a field that every prompt needs.
    """
    if options.prompt:
        return load_user_template(as_path(options.prompt))
    return load_template(setting.prompt)


def content_limits(options: InferOptions, setting: Setting) -> ContentLimits:
    """How much of workbooks and tables goes into a prompt."""
    return ContentLimits(rows=setting.rows, notes=options.notes is not False)


def typed_mode(options: InferOptions, assignments: Sequence[Assignment]) -> TypedMode | None:
    """How the model is asked about tasks with typed answers; None if there are no such tasks."""
    forms = {assignment.question.answer.is_file for assignment in assignments}
    if False not in forms:
        return None
    assert options.mode is not None
    setting = changed(load_typed_setting(options.mode), options)
    # If a suite has both, the user's own template is for the tasks with workbooks.
    mine = options.prompt and True not in forms
    template = template_for(options, setting) if mine else load_template(setting.prompt)
    content = content_limits(options, setting)
    return TypedMode(setting, template, load_feedback("typed_feedback"), content)


def tasks_with_phrasing(tasks: Sequence[Task], name: str | None, suite: str) -> tuple[Task, ...]:
    """The tasks with one phrasing, of a suite that phrases the same tasks in several ways.

    Args:
        tasks: the tasks selected by the other options.
        name: the phrasing; None and ``both`` for all tasks.
        suite: name of the suite, for messages.

    Raises:
        UsageError: no task has this phrasing.
    """
    if name in {None, "both"}:
        return tuple(tasks)
    chosen = tuple(
        task for task in tasks if task.phrasing is not None and task.phrasing.name == name
    )
    if not chosen:
        phrasings = sorted({task.phrasing.name for task in tasks if task.phrasing is not None})
        raise UsageError(
            f"--instruction {str(name)[:80]}: no chosen task of {suite} has this phrasing",
            hint=f"Phrasings: {', '.join(phrasings)}."
            if phrasings
            else "It has only one phrasing of each task.",
        )
    return chosen


def background_of(options: InferOptions, assignments: Sequence[Assignment]) -> Background:
    """The background information that prompts add to the question.

    Raises:
        UsageError: no task has a plan, or the documents cannot be read.
    """
    if options.oracle_plan and not any(assignment.question.plan for assignment in assignments):
        raise UsageError("--oracle-plan: none of the chosen tasks has an expert's steps")
    folder = as_path(options.documents)
    documents = None if folder is None else DocumentFolder(folder)
    return Background(oracle_plan=bool(options.oracle_plan), documents=documents)


def check_typed(options: InferOptions) -> None:
    """Checks that no option is given that only applies to workbooks.

    Raises:
        UsageError: such an option is given.
    """
    unseen = options.execution_feedback is False or None
    given_options = {
        "feedback": options.feedback,
        "stop": options.stop,
        "no-execution-feedback": unseen,
    }
    for name, value in given_options.items():
        if value not in {None, "output"}:
            raise UsageError(f"--{name} is for tasks that ask for a workbook, and there are none")


def check_batch(options: InferOptions, executes: bool) -> None:
    """Checks the options of batches: whether the requests can be sent together.

    Args:
        options: the user's options.
        executes: whether any task is asked in several rounds.

    Raises:
        UsageError: requests depend on earlier replies, or several ways to send them are given.
    """
    ways = {
        "--batch-file": options.batch_file,
        "--batch-results": options.batch_results,
    }
    named = [name for name, value in ways.items() if value is not None]
    if len(named) > 1:
        raise UsageError(f"{' and '.join(named)}: give one of them")
    if executes and (named or options.batch):
        raise UsageError(
            f"{named[0] if named else '--batch'} belongs to --mode single and text: in multi, each "
            "request depends on the reply to the one before",
            hint="Leave it out, or give --mode single.",
        )


def check_combinations(options: InferOptions, executes: bool) -> None:
    """Checks that no option for several rounds is given in a mode with one round.

    Raises:
        UsageError: such an option is given.
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


_SIZE = re.compile(r"(\d{1,5})x(\d{1,5})")
_WINDOW = re.compile(r"(\d{1,5}),(\d{1,5}),(\d{1,5})x(\d{1,5})")
_LEAST, _MOST = 320, 7680
_DESKTOP_CHANGES = (
    *("rounds", "temperature", "top_p", "observation"),
    *("action_space", "history", "minutes", "tree_tokens"),
)
"""Fields of the setting that options change."""

_DESKTOP_OPTIONS = tuple(
    name
    for name, declared in options_in(InferOptions).items()
    if declared.option.section is Section.DESKTOP
)
"""Options of the mode."""

_TOOL_OPTIONS = tuple(
    name
    for name, declared in options_in(InferOptions).items()
    if declared.option.section is Section.TOOLS
)
"""Options that only the mode with tools has."""

_WITH_TOOLS_TOO = ("minutes", "as_published")
"""Options that desktops and the mode with tools share."""

_TOOL_CHANGES = (
    *("rounds", "temperature", "top_p", "minutes", "result_chars", "context_tokens"),
    *("episode_tokens", "episode_cost", "text_calls"),
)

_OPTIONS_OF_OTHER_MODES = (
    *("feedback", "stop", "session", "rows", "content"),
    *("pictures", "max_pictures", "picture_side", "picture_bytes", "picture_types"),
    *("batch", "batch_file", "batch_results"),
)
"""Options of the other modes."""


def desktop_mode(
    options: InferOptions, suite_format: str, assignments: Sequence[Assignment]
) -> DesktopMode | None:
    """How tasks are given to a model on a desktop, and which tasks cannot be; None in other modes.

    Args:
        options: the user's options.
        suite_format: name of the format of the suite.
        assignments: the tasks.

    Raises:
        UsageError: an option does not belong to the mode, options contradict each other, or no
            task can be asked.
        InferenceError: the settings are broken.
    """
    if options.mode != TOOLS:
        _check_none(options, _TOOL_OPTIONS, f"belongs to --mode {TOOLS}")
    if options.mode != MODE:
        shared = _WITH_TOOLS_TOO if options.mode == TOOLS else ()
        names = [name for name in _DESKTOP_OPTIONS if name not in shared]
        _check_none(options, names, f"belongs to --mode {MODE}")
        return None
    _check_none(options, _TOOL_OPTIONS, f"belongs to --mode {TOOLS}")
    _check_none(options, _OPTIONS_OF_OTHER_MODES, f"does not belong to --mode {MODE}")
    setting = _changed_for_desktop(load_desktop_setting(suite_format), options)
    problems = (
        (assignment.question, why_not_asked(assignment.question)) for assignment in assignments
    )
    left_out = tuple((question.id, problem) for question, problem in problems if problem)
    if len(left_out) == len(assignments):
        raise UsageError(
            "none of the chosen tasks can be asked on a desktop",
            hint="; ".join(f"{task_id}: {problem}" for task_id, problem in left_out[:3]),
        )
    return DesktopMode(setting, load_words(), _desktop_options(options), left_out)


def tool_mode(options: InferOptions, assignments: Sequence[Assignment]) -> ToolMode | None:
    """How tasks are given to a model with tools; None in the other modes.

    MCP servers are started once, in the sandbox, to list their tools.

    Args:
        options: the user's options.
        assignments: the tasks.

    Raises:
        UsageError: an option does not belong to the mode, or a task cannot be asked.
        SandboxError: a server was not built, or there is no sandbox.
        InferenceError: a preset is broken.
    """
    if options.mode != TOOLS:
        return None
    _check_none(options, _OPTIONS_OF_OTHER_MODES, f"does not belong to --mode {TOOLS}")
    for assignment in assignments:
        if (problem := why_not_with_tools(assignment.question)) is not None:
            raise UsageError(
                f"task {assignment.question.id} cannot be asked with --mode tools: {problem}",
                hint="Choose tasks with --ids, or use another mode.",
            )
    requested = options.tools or PRESETS[0]
    preset = load_preset(requested if requested in PRESETS else PRESETS[0])
    answer = options.answer or "workbook"
    if answer not in preset.prompts:
        raise UsageError(f"--answer {answer}: --tools {requested} submits a workbook")
    setting = replace(
        preset.setting,
        name=f"{TOOLS}/{requested}",
        pictures=options.tool_pictures or "after",
        **{name: value for name in _TOOL_CHANGES if (value := getattr(options, name)) is not None},
    )
    with contextlib.ExitStack() as stack:

        def opened() -> Sandbox:
            return stack.enter_context(contextlib.closing(open_sandbox(options.sandbox)))

        tools = named_set(requested, answer, opened)
    return ToolMode(
        setting,
        preset,
        tools,
        answer,
        options.instructions is not False,
        departures_of(preset, options.as_published, options.corrected),
    )


def without(
    assignments: Sequence[Assignment], left_out: Collection[tuple[str, str]]
) -> tuple[Assignment, ...]:
    """The tasks that are not left out."""
    ids = {task_id for task_id, _ in left_out}
    return tuple(assignment for assignment in assignments if assignment.question.id not in ids)


def _changed_for_desktop(setting: DesktopSetting, options: InferOptions) -> DesktopSetting:
    settings = {
        name: value for name in _DESKTOP_CHANGES if (value := getattr(options, name)) is not None
    }
    if "action_space" in settings:
        settings["action_space"] = ActionSpace(settings["action_space"])
    setting = replace(setting, **settings)
    if setting.form.has_marks and setting.action_space is ActionSpace.COMPUTER_13:
        raise UsageError(
            "--observation som with --action-space computer_13: marks are names in code (tag_1), "
            "which actions in JSON cannot hold; the papers do not have this pair either",
            hint="Give --action-space pyautogui, or another --observation.",
        )
    return replace(setting, name=setting_name(setting))


def _desktop_options(options: InferOptions) -> DesktopOptions:
    usual = DesktopOptions()
    width, height = usual.width, usual.height
    if options.screen is not None:
        match = _SIZE.fullmatch(options.screen)
        if match is None:
            raise UsageError(
                f"--screen {options.screen[:80]}: write width and height in pixels, as in 1280x720"
            )
        width, height = int(match[1]), int(match[2])
        if not (_LEAST <= width <= _MOST and _LEAST <= height <= _MOST):
            raise UsageError(f"--screen {options.screen}: from {_LEAST} to {_MOST} pixels each way")
    return replace(
        usual,
        width=width,
        height=height,
        as_published=frozenset(options.as_published),
        gui_only=bool(options.gui_only),
        window=_window(options.window, width, height),
        clutter=options.clutter or 0,
    )


def _window(text: str | None, width: int, height: int) -> WindowBounds | None:
    if text is None:
        return None
    match = _WINDOW.fullmatch(text)
    if match is None:
        raise UsageError(
            f"--window {text[:80]}: write place and size in pixels as X,Y,WxH, such as "
            "100,50,1280x720"
        )
    window = WindowBounds(*map(int, match.groups()))
    inside = window.x + window.width <= width and window.y + window.height <= height
    if not inside or window.width < _LEAST or window.height < 200:
        raise UsageError(
            f"--window {text}: does not fit into the screen of {width}x{height} pixels, or is too "
            f"small to work in (below {_LEAST}x200)"
        )
    return window


def _check_none(options: InferOptions, names: Sequence[str], problem: str) -> None:
    for name in names:
        value = getattr(options, name)
        if value is not None and value != () and value != DEFAULTS.get(name):
            raise UsageError(f"--{name.replace('_', '-')} {problem}")


def plan_of(options: InferOptions, model: ModelSpec) -> InferencePlan:
    """Makes the plan of a run; reads the suite, sends no request.

    Args:
        options: what to ask, with all defaults filled in
            (:meth:`judge.api.infer_options.InferOptions.filled`).
        model: the model to ask.

    Raises:
        UsageError: options contradict each other or cannot be read.
        SuiteError: the suite is missing or broken.
    """
    source = str(options.dataset or "sample")
    suite = load_suite(source)
    ids = split_ids(options.ids)
    # From here on, no gold is passed on: the plan gets only questions.
    named = suite.select(ids or None)
    phrased = tasks_with_phrasing(named.tasks, options.instruction, suite.name)
    chosen = named.with_tasks(phrased).select(None, options.limit).tasks
    assignments = tuple(
        Assignment(task.question, task.written_id)
        for task in chosen
        if task.excluded is None or ids
    )
    if not assignments:
        raise UsageError("there are no tasks to ask about", hint="Check --ids and --limit.")
    desktop = desktop_mode(options, suite.format, assignments)
    if desktop is not None:
        assignments = without(assignments, desktop.left_out)
    tools = tool_mode(options, assignments)
    setting, template, typed = _asking(options, assignments, desktop, tools)
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
        tools=tools,
        params=request_params(options),
        samples=options.samples or 1,
        session=bool(options.session),
        explicit_stop=options.stop == "explicit",
        execution_feedback=options.execution_feedback is not False,
        background=background_of(options, assignments),
        limits=options.limits,
        options=_plain(remembered | {"dataset": resolved}),
    )


def _asking(
    options: InferOptions,
    assignments: tuple[Assignment, ...],
    desktop: DesktopMode | None,
    tools: ToolMode | None,
) -> tuple[Setting, Template, TypedMode | None]:
    """Setting and prompt, and how the model is asked about tasks with typed answers."""
    if desktop is not None:
        return desktop.setting, template_for(options, desktop.setting), None
    if tools is not None:
        own = Template(tools.setting.prompt, tools.preset.prompts[tools.answer])
        return tools.setting, template_for(options, tools.setting) if options.prompt else own, None
    assert options.mode is not None
    setting = changed(load_setting(options.mode, options.feedback), options)
    check_combinations(options, setting.executes)
    typed = typed_mode(options, assignments)
    template = template_for(options, setting)
    if typed is not None and all(
        not assignment.question.answer.is_file for assignment in assignments
    ):
        check_typed(options)
        return typed.setting, typed.template, typed
    return setting, template, typed


def request_params(options: InferOptions) -> dict[str, Any]:
    """The request parameters that the options name, except ``temperature`` and ``top_p``.

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
    """Converts values for JSON; a user's prompt is remembered by its absolute path."""
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


CONSENT_OPTIONS = {
    "model": "chat model",
    "base_url": "endpoint",
    "api_key_env": "key",
    "models": "models file",
    "prompt": "prompt",
    "documents": "documents",
    "dataset": "suite",
    "param": "parameters",
    "samples": "samples",
    "rounds": "rounds",
    "price": "price",
    "tools": "tools",
}
"""Options that need the user's consent, with their names: they decide which server is asked, with
which key, which files of this machine are read and sent, and what is paid."""


@dataclass(frozen=True, slots=True)
class Resumed:
    """Options, completed with the options of the run that is continued.

    Attributes:
        options: the resulting options.
        taken: options that need consent and that only the folder of somebody else's run gives.
        key_given: whether this user gave endpoint and key name together.
        dropped_key: name of a key that was remembered for an endpoint other than the given one.
    """

    options: InferOptions
    taken: tuple[str, ...] = ()
    key_given: bool = False
    dropped_key: str | None = None

    def check_trusted(self) -> None:
        """Checks that no option that needs consent comes from another user's folder without it.

        Raises:
            StoreError: such an option does, and ``trust_folder`` is not given.
        """
        if self.taken and not self.options.trust_folder:
            raise StoreError(
                f"{self.options.out}: was not started by you on this machine, and its {RUN_FILE} "
                f"alone says which server to ask or what to read ({', '.join(self.taken)})",
                hint="Give the options yourself, or --trust-folder (trust_folder=True) if you know "
                "where the folder is from.",
            )


def resume(options: InferOptions) -> Resumed:
    """Takes options that are not given from the run in ``out``.

    Args:
        options: the user's options.

    Raises:
        StoreError: the run's description cannot be read, or has a value that is not valid for an
            option.
    """
    stated = options.given()
    given_together = {"base_url", "api_key_env"} <= stated.keys()
    out = as_path(options.out)
    before = _options_in(out) if out is not None and out.is_dir() else None
    if out is None or before is None:
        return Resumed(options.filled({}), key_given=given_together)
    earlier = StartedRuns().options_of(out)
    own = earlier is not None and all(
        earlier.get(name) == before.get(name) for name in CONSENT_OPTIONS
    )
    remembered, taken = {}, []
    for name in REMEMBERED:
        if name in stated or before.get(name) is None:
            continue
        remembered[name] = _read_option(name, before[name], out)
        if name in CONSENT_OPTIONS and not own and _says_something(name, remembered[name]):
            taken.append(name)
    dropped = None
    moved = "base_url" in stated and not _same_server(stated["base_url"], before.get("base_url"))
    if moved and "api_key_env" not in stated:
        # A key belongs to its endpoint, and this is another one.
        dropped = remembered.pop("api_key_env", None)
        taken = [name for name in taken if name != "api_key_env"]
    remembered_together = own and "api_key_env" not in stated and before.get("base_url") is not None
    return Resumed(
        options.filled(remembered), tuple(taken), given_together or remembered_together, dropped
    )


def _options_in(out: Path) -> Mapping[str, Any] | None:
    run = RunDirectory(out).read_run() or RunDocument()
    return (run.get("inference") or InferenceIdentity()).get("options")


def _read_option(name: str, value: object, out: Path) -> Any:
    try:
        return check_remembered(name, value)
    except (TypeError, ValueError) as error:
        raise StoreError(
            f"{out / RUN_FILE}: inference.options.{name} is {str(value)[:80]!r}: {error}",
            hint="It was not written by the judge. Give another --out.",
        ) from error


def _says_something(name: str, value: object) -> bool:
    """Whether a remembered value differs from the default."""
    usual = () if name == "param" else DEFAULTS.get(name)
    return value != usual and not (name == "dataset" and value == "sample")


def _same_server(url: str, other: object) -> bool:
    if not isinstance(other, str):
        return False
    return origin_of(check_address(url)) == origin_of(check_address(other))
