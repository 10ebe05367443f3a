"""``judge view``: the pages of many runs, served only to the one who started it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote

from starlette.requests import Request

from judge.errors import JudgeError, StoreError, UsageError
from judge.report.html.render import Served, render_served
from judge.report.html.runs import Listed, render_comparison, render_runs
from judge.report.view_runs import RunShelf
from judge.web.local_page import INLINE_POLICY, LocalPage, UnwantedError, check_wanted

MAX_COMPARED = 24
"""Runs that one page compares: 276 pairs, each with its bootstrap."""


class ViewPage(LocalPage):
    """The runs of a results folder: a list, the report of each, and comparisons.

    Documents are ``/``, ``/compare?run=A&run=B`` and ``/runs/NAME/``; their scripts request
    ``/progress.json``, ``/runs/NAME/pages/NUMBER`` and ``/runs/NAME/report.json``.

    Args:
        folder: a results directory, or a folder of them.
        dataset: the suite; None for the one that each run remembers.
        port: the port that requests have to name.

    Raises:
        StoreError: no such folder.
    """

    def __init__(self, folder: Path, dataset: str | None = None, port: int = 0) -> None:
        super().__init__("judge view", INLINE_POLICY, port, only_reads=True)
        self._shelf = RunShelf(folder, dataset)

    # -- documents ---------------------------------------------------------------------------------

    def index(self) -> str:
        """All runs, best first."""
        listed = [self._listed(name) for name in self._shelf.runs()]
        return render_runs(self._shelf.folder.name, listed, token=self.token)

    def is_document(self, path: str) -> bool:
        """The list, comparisons, and the reports of runs."""
        return path in {"/", "/compare"} or (_parts(path)[1:] == [""])

    def document(self, path: str, request: Request) -> str:
        """One of them."""
        if path == "/":
            return self.index()
        if path == "/compare":
            return self._comparison(request.query_params.getlist("run"))
        name = _parts(path)[0]
        opened = self._shelf.open(name)
        served = Served(pages_url=f"/runs/{quote(name, safe='')}/pages/", token=self.token)
        return render_served(opened.data, opened.document, served)

    def _listed(self, name: str) -> Listed:
        check_wanted()
        progress = self._shelf.progress(name)
        try:
            document: Any = _summary(self._shelf.scores(name).to_json())
            problem = ""
        except UnwantedError:
            raise
        except JudgeError as error:
            where = f"{self._shelf.path(name)}: "
            document, problem = None, error.message.removeprefix(where)
        except Exception as error:  # noqa: BLE001  one run must not take the others along
            kind = type(error).__name__
            document, problem = None, f"its records cannot be shown ({kind}: {error})"
        return Listed(name, document, progress.to_json(), problem)

    def _comparison(self, given: list[str]) -> str:
        names = list(dict.fromkeys(given))
        if len(names) > MAX_COMPARED:
            raise UsageError(
                f"{len(names)} runs are too many for one page, which compares {MAX_COMPARED}",
                hint="Choose fewer; `judge compare-runs` compares any number of runs.",
            )
        return render_comparison(self._shelf.compare(names), token=self.token)

    # -- what their scripts request ----------------------------------------------------------------

    def respond(
        self, method: str, path: str, request: Request, body: bytes
    ) -> Mapping[str, Any] | None:
        """How far runs are, the report of a run as JSON, and its task pages."""
        del request, body
        if method != "GET":
            return None
        if path == "/progress.json":
            return {name: self._shelf.progress(name).to_json() for name in self._shelf.runs()}
        match _parts(path):
            case [name, "report.json"]:
                return self._shelf.open(name).document
            case [name, "pages", number] if number.isascii() and number.isdigit():
                pages = self._shelf.open(name).pages
                if len(number) < 9 and int(number) < len(pages):
                    page = pages.page(int(number))
                    return {**page, "pictures": pages.pictures_of(page)}
        return None

    def refusal(self, error: JudgeError) -> tuple[dict[str, Any], int]:
        """What is not there is not found."""
        told, status = super().refusal(error)
        return told, 404 if isinstance(error, StoreError) else status


def _parts(path: str) -> list[str]:
    """The parts of the path below ``/runs/``: the name of a run, and what is wanted of it."""
    return path.removeprefix("/runs/").split("/") if path.startswith("/runs/") else []


def _summary(document: dict[str, Any]) -> dict[str, Any]:
    return {name: document[name] for name in ("name", "run", "overall", "notes", "departures")}
