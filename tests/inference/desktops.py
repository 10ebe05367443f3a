"""Plans for desktops, and runs of them with scripted models and scripted desktops."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

from judge.desktop.choices import ActionSpace
from judge.desktop.contract import DesktopOptions
from judge.grading.store import SUBMISSIONS_FILE, RunDirectory
from judge.inference.desktop.setting import (
    DesktopMode,
    load_desktop_setting,
    load_words,
    setting_name,
)
from judge.inference.plan import Assignment, InferencePlan
from judge.inference.prompt import load_template
from judge.inference.run import Resources, run_inference
from judge.inference.run_records import InferenceSummary
from tests.fakes.chat_model import Line, ScriptedModel
from tests.fakes.desktop import DesktopScript, Opening, ScriptedDesktopHost
from tests.inference.planning import MakePlan, check_declared

CLICK = "I click.\n```python\npyautogui.click(1, 2)\n```"
DONE = "```DONE```"
FAIL = "```FAIL```"


def desktop_plan(
    make_plan: MakePlan,
    *,
    tasks: int = 1,
    cases: int = 1,
    desktop: DesktopOptions | None = None,
    **changes: Any,
) -> InferencePlan:
    """Makes a plan for the first tasks and cases, with changes to the setting or to the plan."""
    setting = load_desktop_setting("spreadsheetbench-v0.1")
    own = {name: changes.pop(name) for name in list(changes) if hasattr(setting, name)}
    if "action_space" in own:
        own["action_space"] = ActionSpace(own["action_space"])
    setting = replace(setting, **own)
    setting = replace(setting, name=setting_name(setting))
    plan = make_plan()
    chosen = tuple(
        Assignment(replace(each.question, inputs=each.question.inputs[:cases]), each.raw_id)
        for each in plan.assignments[:tasks]
    )
    return replace(
        plan,
        assignments=chosen,
        setting=setting,
        template=load_template(setting.prompt),
        desktop=DesktopMode(setting, load_words(), desktop or DesktopOptions()),
        **changes,
    )


def run_desktop(
    plan: InferencePlan,
    path: Path,
    model: Iterable[Line] | ScriptedModel,
    host: ScriptedDesktopHost | None = None,
    *,
    scripts: Iterable[Opening] = (),
    **resources: Any,
) -> tuple[InferenceSummary, ScriptedModel, ScriptedDesktopHost]:
    """Runs a plan; desktops beyond the scripts leave a workbook of their own."""
    script = model if isinstance(model, ScriptedModel) else ScriptedModel(model)
    host = host or ScriptedDesktopHost(scripts, always=DesktopScript(left=b"a workbook"))
    resources.setdefault("concurrency", 1)
    resources.setdefault("jobs", 1)
    with RunDirectory(path) as store:
        summary = asyncio.run(
            run_inference(plan, store, Resources(script, desktops=host, **resources))
        )
    return summary, script, host


def submissions(path: Path) -> list[dict[str, Any]]:
    """Returns the records of a run's submissions."""
    records = list(RunDirectory(path).read_records(SUBMISSIONS_FILE))
    for record in records:
        check_declared(record)
    return records
