"""OfficeBench's checks of a workspace as items."""

from __future__ import annotations

import posixpath
from collections.abc import Mapping

from judge.compare.checklists.items import Outcome, State
from judge.compare.checklists.published.data import Shown, as_check
from judge.compare.checklists.suites import PublishedSuite
from judge.compare.checklists.workspace import Workspace
from judge.compare.published import officebench
from judge.compare.rules.published_error import PublishedError


def _parts(check: object) -> tuple[str, Mapping[str, object]]:
    """Function and arguments."""
    written = as_check(check)
    arguments = written.get("args")
    return str(written.get("function")), arguments if isinstance(arguments, Mapping) else {}


def _folder(workspace: Workspace) -> officebench.Workspace:
    return workspace.once(
        "officebench",
        lambda: officebench.Workspace(
            workspace.files, workspace.before, workspace.golds, workspace.pdf_text
        ),
    )


def _official(check: object, workspace: Workspace) -> Outcome:
    function, arguments = _parts(check)
    try:
        right = officebench.judge_check(function, arguments, _folder(workspace))
    except PublishedError as error:
        return Outcome(0.0, detail=f"the published code raises {error}", state=State.ERROR)
    place = posixpath.normpath(str(arguments.get("file") or arguments.get("result_file") or ""))
    return Shown(arguments.get("keywords") or arguments.get("matches"), place=place).outcome(
        right=right
    )


def _in_words(check: object) -> str:
    function, arguments = _parts(check)
    values = arguments.get("keywords") or arguments.get("matches") or ""
    path = arguments.get("file") or arguments.get("result_file") or arguments.get("username") or ""
    words = [function.removeprefix("evaluate_").replace("_", " "), str(path), str(values)]
    return " ".join(word for word in words if word)[:300]


def _faults(check: object) -> tuple[str, ...]:
    function, _ = _parts(check)
    known_here = {*officebench.FUNCTIONS, "evaluate_calendar_no_overlap"}
    return () if function in known_here else (f"there is no function {function!r}",)


SUITE = PublishedSuite(_official, _official, _in_words, _faults)
