"""Pages about several runs: the list of all runs, and the comparison of some."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from markupsafe import Markup

from judge.report.desktop.counts import differing
from judge.report.html.figures import MINUS, Figures
from judge.report.html.page import Assets, render_page
from judge.report.html.plots import difference_scale, difference_strip, effect
from judge.report.html.render import task_anchor
from judge.report.pairing import AGREES, FIGURES, NOT_RECORDED, RunComparison, tools_table

LIST_KEYS = (
    (("j", "k"), "next or previous row"),
    (("Enter",), "open the row"),
    (("x",), "mark the row for comparison"),
    (("c",), "compare the marked rows"),
    (("/",), "filter"),
    (("?",), "these keys"),
)
"""Keys of pages with a list; their script is ``lists.js``."""

_RUNS = Assets(scripts=("base.js", "lists.js", "runs.js"))
_COMPARISON = Assets(scripts=("base.js", "compare.js"))


@dataclass(frozen=True, slots=True)
class ListedRun:
    """A run in the list.

    Attributes:
        name: its name.
        document: ``name``, ``run``, ``overall``, ``notes`` and ``departures`` of its report's JSON
            form; None if there is no report yet.
        progress: ``done``, ``total``, ``verdicts`` and ``going``.
        problem: why there is no report; empty if there is one.
    """

    name: str
    document: Mapping[str, Any] | None
    progress: Mapping[str, Any]
    problem: str = ""


def render_runs(folder: str, listed: Sequence[ListedRun], *, token: str) -> str:
    """The list of runs, grouped by suite, the best first.

    Args:
        folder: name of the folder.
        listed: the runs in the folder.
        token: the token that requests to the server must have.
    """
    document = json.loads(
        json.dumps(
            [{"name": run.name, "report": run.document, "progress": run.progress} for run in listed]
        )
    )
    context = {
        "folder": folder,
        "listed": document,
        "groups": _by_suite(document),
        "problems": {run.name: run.problem for run in listed if run.problem},
        "going": any(run.progress["going"] for run in listed),
        "token": token,
        "run_url": _run_url,
        "keys": LIST_KEYS,
        **numbers_of(document),
    }
    return render_page("runs.html", context, _RUNS, connects=True)


def _run_url(name: str) -> str:
    return f"/runs/{quote(name, safe='')}/"


def render_comparison(comparison: RunComparison, *, token: str | None = None) -> str:
    """A comparison of runs as one HTML document.

    Args:
        comparison: the comparison; every number on the page comes from its JSON form.
        token: the token that requests to the server must have, if there is a server; the page then
            has links to the list of all runs and to each run.
    """
    document = json.loads(json.dumps(comparison.to_json()))
    links = None if token is None else lambda name: f"{_run_url(name)}?token={token}"

    def evidence_url(run: str, task: str, sample: int = 0, case: int | None = None) -> str:
        return f"{_run_url(run)}?token={token}{task_anchor(task, sample, case)}"

    context = {
        "doc": document,
        "figures": {name: FIGURES[name] for name in comparison.figures},
        "token": token,
        "run_url": links,
        "tools": tools_table(comparison),
        "matrix": comparison.matrix,
        "plots": _effects(document["runs"]),
        "differing_settings": differing(comparison.settings),
        **comparison_parts(document, {}, None if token is None else evidence_url),
    }
    return render_page("compare.html", context, _COMPARISON)


def comparison_parts(
    document: Mapping[str, Any],
    labels: Mapping[str, str],
    evidence_url: Callable[..., str] | None,
) -> dict[str, Any]:
    """The values for the parts of ``pairs.html``.

    Args:
        document: a document with ``pairs``, as in a comparison of runs.
        labels: name of a run -> the name to show; other runs are shown by their own name.
        evidence_url: returns the address of a page by run, task, sample and case, the last two of
            which may be left out; None if there are no pages of this kind.
    """
    scale = difference_scale(document["pairs"])
    points = f"{100 * scale:.0f}"
    return {
        "labels": labels,
        "evidence_url": evidence_url,
        "scale": scale,
        "axis_ends": (f"{MINUS}{points}", "0", f"+{points}"),
        "difference_strip": difference_strip,
        "agrees": AGREES,
        "not_recorded": NOT_RECORDED,
        **numbers_of(document),
    }


_EFFECTS = (("rounds", "rounds"), ("prompt_rows", "rows in the prompt"))


def _effects(runs: Sequence[Mapping[str, Any]]) -> list[tuple[str, Markup]]:
    """Plots of the scores against each setting of inference that differs between all runs."""
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


def numbers_of(document: Any) -> dict[str, Any]:
    """The functions that templates use to print a number, given its path in the document."""
    figures = Figures(document)
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

    Runs in progress follow, and runs without a score come last.
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
        # A score over the first few cases says little.
        return (int(document[index]["progress"]["going"]), -value, name)

    ordered = sorted(groups.items(), key=lambda item: (not item[0][0], item[0]))
    return [(name, sorted(indices, key=rank)) for (name, _), indices in ordered]
