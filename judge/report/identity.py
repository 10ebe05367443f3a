"""The identity of a run as lines of text, with its departures from the published suite. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING

from judge.core.limits import Limits
from judge.core.records.runs import InferenceIdentity, RecalcIdentity, RunDocument, served_model

if TYPE_CHECKING:
    from judge.report.model import ReportData


def identity_lines(data: ReportData) -> list[tuple[str, str]]:
    """Name and value of every fact that identifies the run; empty values are left out."""
    return [(name, text) for name, text in _lines(data.run) if text]


DEPARTS = "departs from the suite as published"
_USUAL = "auto"
_MAX_NAMED = 5


def departures(run: RunDocument, *, by_hand: int = 0) -> tuple[str, ...]:
    """Lines, one for each setting that affects verdicts and departs from the published suite.

    The profile is not included, because it is shown wherever scores are.

    Args:
        run: the run's description.
        by_hand: how many verdicts a person changed.
    """
    changed = (f"verdicts that were changed by hand: {by_hand}",) if by_hand else ()
    return (*_departures(run), *changed)


def trusted_values(run: RunDocument) -> bool:
    """Whether the stored values of formulas counted.

    Older runs do not record this; if their outputs were made elsewhere, stored values counted.
    """
    usual = "stored" if run.get("outputs") is not None else "computed"
    return (run.get("values") or usual) == "stored"


def not_taken(before: RunDocument, now: RunDocument) -> tuple[str, ...]:
    """Lines, one for each setting in run.json that affects verdicts and is ignored now.

    Args:
        before: the run.json that existed before the command.
        now: the command's own description of the run.
    """
    counts = departures(now)
    lines = [departure for departure in departures(before) if departure not in counts]
    profile = before.get("profile")
    if profile is not None and profile != now.get("profile"):
        lines.insert(0, f"profile {profile}")
    if trusted_values(before) and not trusted_values(now):
        lines.append("values stored in outputs were trusted")
    return tuple(dict.fromkeys(lines))


def _departures(run: RunDocument) -> Iterator[str]:
    suite, recalc = run.get("suite"), run.get("recalc") or RecalcIdentity()
    if corrections := suite and suite.get("corrections"):
        named = ", ".join(map(_corrected, corrections[:_MAX_NAMED]))
        more = f" and {len(corrections) - _MAX_NAMED} more" if corrections[_MAX_NAMED:] else ""
        yield f"corrections: {len(corrections)} ({named}{more})"
    if checker := run.get("checker"):
        yield "options of the comparison: " + _joined(*(f"{k} {v}" for k, v in checker.items()))
    if style := run.get("style"):
        yield f"styles that are compared: {_joined(*style)}"
    if (mode := recalc.get("mode") or _USUAL) != _USUAL:
        yield f"recalculation {mode}"
    if (engine := recalc.get("engine") or _USUAL) != _USUAL:
        yield f"calculation engine {engine}"
    if recalc.get("lenient_names"):
        yield "newer functions without their prefix are computed"
    if run.get("values") == "stored" and not run.get("outputs"):
        yield "values stored in outputs were trusted"
    usual = asdict(Limits())
    limits = {k: v for k, v in (run.get("limits") or {}).items() if v != usual.get(k)}
    if limits:
        yield "limits: " + _joined(
            *(f"{k} {v} (usually {usual.get(k)})" for k, v in limits.items())
        )
    if run.get("reference"):
        yield "time limits follow reference solutions"
    if run.get("best_of"):
        yield "of several samples of a task, the best one counts"


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
        named = (_corrected(correction) for correction in corrections)
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
