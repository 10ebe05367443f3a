"""A report as one HTML file of bounded size, or as a page of the server for several runs."""

from __future__ import annotations

import base64
import json
import re
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

from markupsafe import Markup

from judge.files.media import image_type
from judge.files.paths import GivenPath
from judge.report.build import DEFAULT_METHOD, build_report_data
from judge.report.desktop.counts import differing
from judge.report.grid_window import GridBounds
from judge.report.html.figures import Figures
from judge.report.html.page import VERDICT_WORDS, Assets, inline_json, render_page
from judge.report.html.pages import TaskPages, kinds_of
from judge.report.html.pictures import PICTURES_BYTES, Shrink
from judge.report.html.plots import (
    effect,
    histogram,
    share_bar,
    time_against_size,
    verdict_bar,
)
from judge.report.identity import identity_lines
from judge.report.load import LoadedRun, load_run
from judge.report.model import Method, ReportData
from judge.report.shapes import inspect_files
from judge.report.tools import (
    GROUP_HEADINGS,
    USE_HEADINGS,
    USE_REMARK,
    ToolsSummary,
    group_cells,
    use_cells,
)

PAGES_BYTES = 26_000_000
"""Largest total size of a report's task pages, in bytes; it keeps the report below 30 MB."""

OnPage = Callable[[int, int], None]
"""Called with the number of pages that are done and the number of all pages."""

GRID_BOUNDS = (
    GridBounds(),
    GridBounds(cells=30_000, columns=60, text_chars=4_000),
    GridBounds(cells=4_000, columns=40, blocks=6, text_chars=500),
    GridBounds(cells=1_200, columns=24, blocks=3, text_chars=120),
)
"""Bounds of the grids, from the widest to the narrowest; with the last bounds, every report
fits."""


def pack(document: Any) -> str:
    """A JSON document, deflated, as base64."""
    text = json.dumps(document, ensure_ascii=False, separators=(",", ":"))
    return base64.b64encode(zlib.compress(text.encode("utf-8", "replace"), 6)).decode("ascii")


def pack_all(
    count: int,
    make: Callable[[int, GridBounds], Any],
    limit: int = PAGES_BYTES,
    *,
    on_page: OnPage = lambda _done, _total: None,
) -> list[str]:
    """Packs all task pages so that they fit into a number of bytes.

    The largest pages are made again with closer bounds until all of them fit.

    Args:
        count: how many pages there are.
        make: makes the page with a number within some bounds.
        limit: bytes for all pages.
        on_page: called with the number of pages that are done and the number of all pages.
    """
    packed = []
    for number in range(count):
        packed.append(pack(make(number, GRID_BOUNDS[0])))
        on_page(number + 1, count)
    for bounds in GRID_BOUNDS[1:]:
        for number in _too_large(packed, limit):
            packed[number] = pack(make(number, bounds))
    return packed


def _too_large(packed: Sequence[str], limit: int) -> list[int]:
    """The largest pages, as many as have to become smaller so that all pages fit."""
    total = sum(map(len, packed))
    chosen = []
    for number in sorted(range(len(packed)), key=lambda number: -len(packed[number])):
        if total <= limit:
            break
        chosen.append(number)
        # As a rule, closer bounds reduce a page to a tenth of its size.
        total -= len(packed[number]) * 9 // 10
    return chosen


_HEADER_CHARS = 64
"""How many base64 characters suffice to read the type of a picture."""

_NO_PICTURES: Mapping[str, str] = {}
REPORT = Assets(
    scripts=("base.js", "grid.js", "findings.js", "episode.js", "tools.js", "report.js"),
    styles=("style.css", "findings.css", "episode.css"),
)
"""Style and script of reports."""

KEYS = (
    (("j", "k"), "next and previous failed task in the list"),
    (("n", "p"), "next and previous difference"),
    (("f",), "formulas or values"),
    (("1", "…", "9"), "test case"),
    (("/",), "filter the list"),
    (("u",), "back to the list"),
    (("←", "↑", "→", "↓"), "next cell, once one is selected"),
    (("?",), "this list"),
)
EPISODE_KEYS = (
    (("←", "→"), "previous and next turn of an episode"),
    (("Home", "End"), "first and last turn of an episode"),
    (("m",), "show or hide mouse and keyboard actions"),
    (("z",), "full size, or fit to the page"),
)
"""Keys of a page with an episode, in addition to the keys of every report."""

_EFFECTS = ("rounds", "rows", "answer_cells", "workbook_bytes")
"""Breakdowns whose parts have an order, so that connecting them with a line makes sense."""


@dataclass(frozen=True, slots=True)
class PageLinks:
    """The addresses of a server's other pages, for a page that it sends.

    Attributes:
        pages_url: address of the task pages; the page's number is appended.
        home_url: the server's first page.
        token: the token that requests to the server must have, if the server requires one.
        up_url: the page of the subject of the report, if there is one.
        title: the name of that page.
        linked: address of style and script on the server, without ``.css`` and ``.js``; empty if
            the page has to contain them.
        disputes_url: address for disputing a verdict; ``task``, ``sample`` and ``case`` are
            appended. Empty if verdicts cannot be disputed.
    """

    pages_url: str
    home_url: str
    token: str = ""
    up_url: str = ""
    title: str = ""
    linked: str = ""
    disputes_url: str = ""


def report_html(
    path: Path | str,
    *,
    dataset: str | Path | None = None,
    suspects: GivenPath | None = None,
    method: Method = DEFAULT_METHOD,
    shrink: Shrink | None = None,
    on_page: OnPage = lambda _done, _total: None,
) -> str:
    """The HTML report of a results directory.

    Args:
        path: the results directory.
        dataset: the suite; None for the one that run.json names.
        suspects: a suspects.json to use instead of the suspects that the run keeps.
        method: confidence, resamples and seed of the intervals.
        shrink: makes screenshots smaller if not all of them fit in full size.
        on_page: called with the number of task pages that are done and the number of all.

    Returns:
        One HTML document that does not need any other file.

    Raises:
        StoreError: the directory does not hold a run, or has records that a judge did not write.
        SuiteError: the given suite is not the one that the run was made with.
        UsageError: the given suite does not exist.
    """
    run = load_run(path, dataset, suspects, details=False)
    data = build_report_data(run, inspect_files(run), method)
    page = render_report(data, run, shrink=shrink, on_page=on_page)
    run.check_intact()
    return page


def render_report(
    data: ReportData,
    run: LoadedRun,
    *,
    shrink: Shrink | None = None,
    on_page: OnPage = lambda _done, _total: None,
) -> str:
    """A report as one self-contained HTML document.

    Args:
        data: the report; every number in the document comes from its JSON form.
        run: the run of the report, for code, conversations and workbooks.
        shrink: makes screenshots smaller if not all of them fit in full size.
        on_page: called with the number of task pages that are done and the number of all.
    """
    document = json_form(data)
    pages = TaskPages(run, document)
    packed = pack_all(len(pages), pages.page, on_page=on_page)
    pictures = pages.pictures.within(PICTURES_BYTES, shrink)
    return _render(data, document, packed, None, pictures)


def render_served(data: ReportData, document: Mapping[str, Any], served: PageLinks) -> str:
    """The report as a page for a server, which sends the task pages one by one."""
    return _render(data, document, (), served)


def json_form(data: ReportData) -> dict[str, Any]:
    """The document that ``judge report --format json`` writes, as parsed."""
    document: dict[str, Any] = json.loads(json.dumps(data.to_json()))
    return document


def _render(
    data: ReportData,
    document: Mapping[str, Any],
    packed: Sequence[str],
    served: PageLinks | None,
    pictures: Mapping[str, str] = _NO_PICTURES,
) -> str:
    figures = Figures(document)
    kinds = kinds_of(document)
    context: dict[str, Any] = {
        "doc": document,
        "n": figures.number,
        "signed": figures.signed,
        "interval": figures.interval,
        "estimate": figures.estimate,
        "verdict_bar": verdict_bar,
        "share_bar": share_bar,
        "verdicts": _verdicts(document["phases"]),
        "plots": _plots(document),
        "histograms": _histograms(document),
        "tools": _tools(data.tools),
        "differing_settings": differing(() if data.episodes is None else data.episodes.settings),
        "first_episode": _first_episode(document["tasks"]),
        "kinds": kinds,
        "codes": [code for code in VERDICT_WORDS if code in document["overall"]["verdicts"]],
        "identity": [
            (name, text, name in {"suite digest", "image"}) for name, text in identity_lines(data)
        ],
        "measure_style": _measure_style,
        "measure_label": _measure_label,
        "task_key": task_key,
        "task_url": _task_url,
        "packed": map(Markup, packed),
        "pictures": [
            (digest, image_type(base64.b64decode(text[:_HEADER_CHARS])), Markup(text))  # noqa: S704 - base64
            for digest, text in pictures.items()
        ],
        "kinds_json": inline_json(
            {kind: {"letter": letter, "words": words} for kind, (letter, words) in kinds.items()}
        ),
        "verdicts_json": inline_json(VERDICT_WORDS),
        "keys": KEYS if data.episodes is None else (*KEYS, *EPISODE_KEYS),
        "served": served,
    }
    return render_page(
        "report.html",
        context,
        REPORT,
        linked="" if served is None else served.linked,
        connects=served is not None,
        pictures=True,
    )


def _verdicts(phases: Sequence[Mapping[str, Any]]) -> list[tuple[str, Mapping[str, Any]]]:
    """The verdicts of all phases with their paths in the document, accepted ones first."""
    verdicts = [
        (f"/phases/{number}/verdicts/{index}", verdict)
        for number, phase in enumerate(phases)
        for index, verdict in enumerate(phase["verdicts"])
    ]
    order = list(VERDICT_WORDS)
    return sorted(verdicts, key=lambda entry: order.index(entry[1]["verdict"]))


def _plots(document: Mapping[str, Any]) -> list[tuple[str, Markup]]:
    plots = [
        ("Wall time of a case against the size of its input", time_against_size(document["tasks"]))
    ]
    for breakdown in document["breakdowns"]:
        if breakdown["key"] in _EFFECTS and not breakdown["from_paper"]:
            label = str(breakdown["label"])
            plots.append(
                (f"Scores by {label[:1].lower()}{label[1:]}", effect(breakdown["groups"], label))
            )
    return [(caption, plot) for caption, plot in plots if plot is not None]


def _histograms(document: Mapping[str, Any]) -> list[tuple[str, Markup]]:
    summary = document.get("episodes") or {"steps": (), "turns": ()}
    plots = [
        ("Actions of an episode", histogram(summary["steps"], "actions")),
        ("Turns of an episode", histogram(summary["turns"], "turns")),
    ]
    return [(caption, plot) for caption, plot in plots if plot is not None]


def _tools(summary: ToolsSummary | None) -> list[tuple[str, Sequence[str], list[list[str]]]]:
    """The tables about tools: caption, headings, rows."""
    if summary is None:
        return []
    groups = [[group.label, *group_cells(group)] for group in summary.groups]
    uses = [[use.tool, *use_cells(use)] for use in summary.by_tool]
    return [("", ("", *GROUP_HEADINGS), groups), (USE_REMARK, ("tool", *USE_HEADINGS), uses)]


def _first_episode(tasks: Sequence[Mapping[str, Any]]) -> str:
    """The page of the first failed task with an episode; if none failed, of the first with one."""
    with_episode = [task for task in tasks if any(case.get("episode") for case in task["cases"])]
    failed = [task for task in with_episode if task["hard_restriction"] == 0]
    return "".join(map(_task_url, (failed or with_episode)[:1]))


def _measure_style(key: str) -> str:
    if key.endswith("_s"):
        return "seconds"
    if key.endswith("_bytes"):
        return "bytes"
    return "usd" if key.endswith("_usd") else "plain"


def _measure_label(label: str) -> str:
    """A label without its unit, which is shown after each number instead."""
    return re.sub(r"\s*\([^)]*\)$", "", label)


def _task_url(task: Mapping[str, Any]) -> str:
    return task_anchor(str(task["task_id"]), int(task["sample"]))


def task_anchor(task: str, sample: int = 0, case: int | None = None) -> str:
    """The address within a report of a task, or of one of its cases."""
    key = quote(task_key({"task_id": task, "sample": sample}), safe="")
    return f"#/task/{key}{'' if case is None else f'?case={case}'}"


def task_key(task: Mapping[str, Any]) -> str:
    """The name of a task's page in addresses: its id, and its sample unless it is the first one."""
    sample = int(task["sample"])
    return f"{task['task_id']}~{sample}" if sample else str(task["task_id"])
