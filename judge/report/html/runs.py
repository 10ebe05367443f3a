"""Pages about several runs: the list of all, and the comparison of some."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from markupsafe import Markup

from judge.core.verdict import Verdict
from judge.report.desktop.counts import differing
from judge.report.html.figures import Figures
from judge.report.html.page import render_page
from judge.report.html.plots import difference_scale, difference_strip, effect, interval_strip
from judge.report.html.render import task_key
from judge.report.markdown import tools_table
from judge.report.pairing import AGREES, FIGURES, NOT_RECORDED, RunComparison


@dataclass(frozen=True, slots=True)
class Listed:
    """A run in the list.

    Attributes:
        name: its name.
        document: ``name``, ``run``, ``overall``, ``notes`` and ``departures`` of its report's JSON
            form; None where there is none yet.
        progress: ``done``, ``total``, ``verdicts`` and ``going``.
        problem: why there is no report, or an empty string.
    """

    name: str
    document: Mapping[str, Any] | None
    progress: Mapping[str, Any]
    problem: str = ""


def render_runs(folder: str, listed: Sequence[Listed], *, token: str) -> str:
    """The list of runs, those of one suite together, the best first.

    Args:
        folder: name of the folder.
        listed: its runs.
        token: the token that requests to the server must have.
    """
    document = json.loads(
        json.dumps(
            [{"name": run.name, "report": run.document, "progress": run.progress} for run in listed]
        )
    )
    figures = Figures(document)
    context = {
        "folder": folder,
        "listed": document,
        "groups": _by_suite(document),
        "problems": {run.name: run.problem for run in listed if run.problem},
        "going": any(run.progress["going"] for run in listed),
        "token": token,
        "run_url": _run_url,
        "strip": interval_strip,
        **_numbers(figures),
    }
    return render_page("runs.html", context, scripts=("base.js", "runs.js"), connects=True)


def _run_url(name: str) -> str:
    return f"/runs/{quote(name, safe='')}/"


def render_comparison(comparison: RunComparison, *, token: str | None = None) -> str:
    """A comparison of runs as one HTML document.

    Args:
        comparison: every number of the page is one of its JSON form.
        token: the token that requests to the server must have, if there is one; the page then has
            links to the list of all runs and to each run.
    """
    document = json.loads(json.dumps(comparison.to_json()))
    context = {
        "doc": document,
        "figures": {name: FIGURES[name] for name in comparison.figures},
        "token": token,
        "run_url": None if token is None else lambda name: f"{_run_url(name)}?token={token}",
        "strip": interval_strip,
        "scale": difference_scale(document["pairs"]),
        "difference_strip": difference_strip,
        "tools": tools_table(comparison),
        "matrix": comparison.matrix,
        "agrees": AGREES,
        "not_recorded": NOT_RECORDED,
        "task_url": _task_url,
        "verdict_words": {verdict.value: verdict.description for verdict in Verdict},
        "plots": _effects(document["runs"]),
        "differing_settings": differing(comparison.settings),
        **_numbers(Figures(document)),
    }
    return render_page("compare.html", context, scripts=("base.js", "compare.js"))


def _task_url(run_url: str, task: str, sample: int = 0, case: int | None = None) -> str:
    """Where the report of a run shows a task, or one of its cases."""
    key = quote(task_key({"task_id": task, "sample": sample}), safe="")
    return f"{run_url}#/task/{key}{'' if case is None else f'?case={case}'}"


_EFFECTS = (("rounds", "rounds"), ("prompt_rows", "rows in the prompt"))


def _effects(runs: Sequence[Mapping[str, Any]]) -> list[tuple[str, Markup]]:
    """Plots of the scores against settings of inference in which all runs differ."""
    plots = []
    for key, name in _EFFECTS:
        values = [run[key] for run in runs]
        if None in values or len(set(values)) < len(values):
            continue
        ordered = sorted(runs, key=lambda run: run[key])
        plot = effect([{"label": str(run[key]), "scores": run} for run in ordered], name)
        if plot is not None:
            plots.append((f"Scores by {name}", plot))
    return plots


def _numbers(figures: Figures) -> dict[str, Any]:
    return {
        "n": figures.number,
        "interval": figures.interval,
        "estimate": figures.estimate,
        "signed": figures.signed,
        "moved": figures.moved,
        "length": figures.length,
    }


def _by_suite(document: Sequence[Mapping[str, Any]]) -> list[tuple[str, list[int]]]:
    """Suites with the indices of their runs, the best first.

    Those in progress come after these, and those without a score last.
    """
    groups: dict[tuple[str, str], list[int]] = {}
    for index, entry in enumerate(document):
        suite = ((entry["report"] or {}).get("run") or {}).get("suite") or {}
        groups.setdefault((str(suite.get("name") or ""), str(suite.get("digest"))), []).append(
            index
        )

    def rank(index: int) -> tuple[int, float, str]:
        report, name = document[index]["report"], document[index]["name"]
        value = None if report is None else report["overall"]["soft_restriction"]["value"]
        if value is None:
            return (2, 0.0, name)
        # The score of the first few cases says little.
        return (int(document[index]["progress"]["going"]), -value, name)

    ordered = sorted(groups.items(), key=lambda item: (not item[0][0], item[0]))
    return [(name, sorted(places, key=rank)) for (name, _), places in ordered]
