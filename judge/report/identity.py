"""What a run is, as lines for people. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from judge.core.records.runs import InferenceIdentity, RecalcIdentity, RunDocument, served_model
from judge.report.model import ReportData


def identity_lines(data: ReportData) -> list[tuple[str, str]]:
    """Name and text of everything that made the run what it is; what is not known is left out."""
    return [(name, text) for name, text in _lines(data.run) if text]


def _lines(run: RunDocument) -> Iterator[tuple[str, str]]:
    suite, recalc = run.get("suite"), run.get("recalc") or RecalcIdentity()
    if suite:
        yield "suite", _joined(suite["name"], suite.get("format"))
        yield "suite digest", suite.get("digest") or ""
    yield "chat model", served_model(run) or ""
    yield "setting", run.get("setting") or ""
    yield "profile", _joined(run.get("profile"), *(run.get("style") or ()))
    yield "options", _joined(*(f"{k} {v}" for k, v in (run.get("checker") or {}).items()))
    if suite and (corrections := suite.get("corrections")):
        named = (_corrected(each) for each in corrections)
        yield "corrections", _joined(*named)
    yield "recalculation", _joined(recalc.get("mode"), *(recalc.get("engines") or ()))
    if sandbox := run.get("sandbox"):
        yield "sandbox", _joined(sandbox["backend"], sandbox.get("runtime"))
        yield "image", sandbox.get("image") or ""
        python, packages = sandbox.get("python"), sandbox.get("packages") or {}
        versions = (f"{name} {version}" for name, version in packages.items())
        yield "inside", _joined(f"Python {python}" if python else None, *versions)
    yield "limits", _joined(*(f"{k} {v}" for k, v in (run.get("limits") or {}).items()))
    for name, value in (run.get("inference") or InferenceIdentity()).items():
        if isinstance(value, str | int | float):
            yield f"inference, {name.replace('_', ' ')}", str(value)
    yield "judge", run.get("judge_version") or ""
    yield "begun", run.get("created") or ""


def _corrected(correction: Mapping[str, object]) -> str:
    case = f" case {correction['case']}" if "case" in correction else ""
    return f"{correction.get('task')}{case} {correction.get('field')}"


def _joined(*values: object) -> str:
    return ", ".join(dict.fromkeys(str(value) for value in values if value is not None))
