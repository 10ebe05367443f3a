"""What the options of inference make of the mode ``desktop``."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import replace

from judge.api.infer_options import USUAL, InferOptions
from judge.core.option import Section, options_in
from judge.desktop.contract import ActionSpace, DesktopOptions, WindowPlace
from judge.errors import UsageError
from judge.inference.desktop.setting import (
    MODE,
    DesktopSetting,
    DesktopWay,
    load_desktop_setting,
    load_words,
    setting_name,
    why_not_asked,
)
from judge.inference.plan import Assignment

_SIZE = re.compile(r"(\d{1,5})x(\d{1,5})")
_WINDOW = re.compile(r"(\d{1,5}),(\d{1,5}),(\d{1,5})x(\d{1,5})")
_LEAST, _MOST = 320, 7680
_CHANGES = (
    *("rounds", "temperature", "top_p", "observation"),
    *("action_space", "history", "minutes", "tree_tokens"),
)
"""Fields of the setting that options change."""

_OWN = tuple(
    name
    for name, declared in options_in(InferOptions).items()
    if declared.option.section is Section.DESKTOP
)
"""Options of the mode."""

_OTHERS = (
    *("feedback", "stop", "session", "rows", "content"),
    *("pictures", "max_pictures", "picture_side", "picture_bytes", "picture_types"),
    *("batch", "batch_file", "batch_results"),
)
"""Options of the other modes."""


def desktop_way(
    options: InferOptions, suite_format: str, assignments: Sequence[Assignment]
) -> DesktopWay | None:
    """How tasks are asked on a desktop, and which of them cannot be; None in the other modes.

    Args:
        options: what the user says.
        suite_format: name of the format of the suite.
        assignments: the tasks.

    Raises:
        UsageError: an option does not belong to the mode, options contradict each other, or no
            task can be asked.
        InferenceError: the settings are broken.
    """
    if options.mode != MODE:
        _check_none(options, _OWN, f"belongs to --mode {MODE}")
        return None
    _check_none(options, _OTHERS, f"does not belong to --mode {MODE}")
    setting = _changed(load_desktop_setting(suite_format), options)
    problems = (
        (assignment.question, why_not_asked(assignment.question)) for assignment in assignments
    )
    left_out = tuple((question.id, problem) for question, problem in problems if problem)
    if len(left_out) == len(assignments):
        raise UsageError(
            "no task that is chosen can be asked on a desktop",
            hint="; ".join(f"{task_id}: {problem}" for task_id, problem in left_out[:3]),
        )
    return DesktopWay(setting, load_words(), _desktop(options), left_out)


def without(
    assignments: Sequence[Assignment], left_out: Collection[tuple[str, str]]
) -> tuple[Assignment, ...]:
    """The tasks that are not left out."""
    ids = {task_id for task_id, _ in left_out}
    return tuple(assignment for assignment in assignments if assignment.question.id not in ids)


def _changed(setting: DesktopSetting, options: InferOptions) -> DesktopSetting:
    said = {name: value for name in _CHANGES if (value := getattr(options, name)) is not None}
    if "action_space" in said:
        said["action_space"] = ActionSpace(said["action_space"])
    setting = replace(setting, **said)
    if setting.form.has_marks and setting.action_space is ActionSpace.COMPUTER_13:
        raise UsageError(
            "--observation som with --action-space computer_13: marks are names in code (tag_1), "
            "which actions in JSON cannot hold; the papers do not have this pair either",
            hint="Give --action-space pyautogui, or another --observation.",
        )
    return replace(setting, name=setting_name(setting))


def _desktop(options: InferOptions) -> DesktopOptions:
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


def _window(text: str | None, width: int, height: int) -> WindowPlace | None:
    if text is None:
        return None
    match = _WINDOW.fullmatch(text)
    if match is None:
        raise UsageError(
            f"--window {text[:80]}: write place and size in pixels as X,Y,WxH, such as "
            "100,50,1280x720"
        )
    place = WindowPlace(*map(int, match.groups()))
    inside = place.x + place.width <= width and place.y + place.height <= height
    if not inside or place.width < _LEAST or place.height < 200:
        raise UsageError(
            f"--window {text}: does not fit into the screen of {width}x{height} pixels, or is too "
            f"small to work in (below {_LEAST}x200)"
        )
    return place


def _check_none(options: InferOptions, names: Sequence[str], what: str) -> None:
    for name in names:
        given = getattr(options, name)
        if given is not None and given != () and given != USUAL.get(name):
            raise UsageError(f"--{name.replace('_', '-')} {what}")
