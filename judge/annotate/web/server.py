"""Serves the annotator's page: its files, and the requests of its script.

Files are served by name from a fixed list.
"""

from __future__ import annotations

import string
from collections.abc import Callable, Mapping, Sequence
from importlib import resources
from pathlib import Path
from typing import Any

from starlette.requests import Request

from judge.annotate.annotator import Preview
from judge.annotate.casebook import ConflictError
from judge.annotate.edits import content_text, describe
from judge.annotate.gold import GoldSource
from judge.annotate.rules import RULES
from judge.annotate.web.session import AnnotationSession
from judge.annotate.web.view import ColourChange, plain_time
from judge.compare.cells.render import difference_lines
from judge.errors import JudgeError, PositionError, UsageError
from judge.local_page import LocalPage, object_of
from judge.report.html.page import LOOK, asset
from judge.workbook.address import cell_name
from judge.workbook.cell import CellRef

_MAX_LISTED = 200


def show_state(session: AnnotationSession, suite: str, author: str) -> dict[str, Any]:
    """The state of a session for the page's script, without the cells.

    Args:
        session: the session.
        suite: the suite's name.
        author: who works in the session.

    Raises:
        WorkbookError: the workbooks cannot be read.
    """
    task, draft, books, preview = session.task, session.draft, session.books(), session.preview
    notes = list(books.notes)
    try:
        answer = [
            {
                "sheet": answer_range.sheet,
                "row": answer_range.min_row,
                "column": answer_range.min_column,
            }
            for answer_range in session.answer_ranges()
        ]
    except PositionError as error:
        answer = []
        notes.append(error.message)
    painted = session.colour_changes()
    edits = [*draft.edits, *draft.answers] if draft else []
    hand = len(draft.answers) if draft else 0
    return {
        "suite": suite,
        "author": author,
        "revision": session.revision,
        "task": {
            "id": task.id,
            "instruction": task.instruction,
            "type": task.kind,
            "position": task.details.get("answer_position", ""),
            "answer_sheet": task.details.get("answer_sheet"),
        },
        "cases": session.case_numbers(),
        "base": session.base.number,
        "number": draft.number if draft else None,
        "resumed": session.resumed,
        "sheets": {"input": books.input.sheet_names, "gold": books.gold.sheet_names},
        "answer": answer,
        "edits": [
            f"{'gold: ' if index >= len(edits) - hand else ''}{plain_time(describe(edit))}"
            for index, edit in enumerate(edits)
        ],
        "saved": session.last_saved,
        "notes": notes + (list(preview.proposal.notes) if preview else []),
        "preview": _preview(preview, painted, session.distrusted) if preview else None,
    }


def _preview(
    preview: Preview, painted: Sequence[ColourChange], distrusted: Sequence[str]
) -> dict[str, Any]:
    proposal = preview.proposal
    errors = [preview.problem] if preview.problem else []
    moved = [
        _moved(
            change.ref,
            plain_time(content_text(change.before)),
            plain_time(content_text(change.after)),
        )
        for change in proposal.moved
    ] + [_moved(cell.ref, cell.before, cell.after) for cell in painted]
    return {
        "has_gold": proposal.gold is not None,
        "sources": [_source(source) for source in proposal.sources],
        "moved": moved[:_MAX_LISTED],
        "moved_count": len({(entry["sheet"], entry["cell"]) for entry in moved}),
        "errors": errors
        + [
            f"{finding.message} (the manual asks: {RULES[finding.rule]})"
            for finding in preview.findings
            if finding.is_error
        ],
        "warnings": [finding.message for finding in preview.findings if not finding.is_error]
        + list(preview.doubts)
        + list(distrusted),
    }


def _moved(ref: CellRef, before: str, after: str) -> dict[str, str]:
    return {
        "sheet": ref.sheet,
        "cell": cell_name(ref.row, ref.column),
        "before": before,
        "after": after,
    }


def _source(source: GoldSource) -> dict[str, Any]:
    return {
        "name": source.name,
        "agrees": source.agrees,
        "problem": source.problem,
        "differences": difference_lines(source.comparison, 20),
    }


STATIC_FILES: Mapping[str, str] = {
    "app.css": "text/css",
    "app.js": "text/javascript",
    "grid.js": "text/javascript",
}
GRID_FILES: Mapping[str, str] = {
    "jspreadsheet.js": "text/javascript",
    "jspreadsheet.css": "text/css",
    "jsuites.js": "text/javascript",
    "jsuites.css": "text/css",
}
_POLICY = (
    "default-src 'none'; script-src 'self'; connect-src 'self'; img-src 'self' data:; "
    "style-src 'self' 'unsafe-inline'; font-src 'self' data:; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'"
)


def page_folder() -> Path:
    """The folder with the page's own files; the grid's files are in a folder below it."""
    return Path(str(resources.files("judge.annotate.web")))


def check_grid() -> None:
    """Checks that the grid's files exist.

    Raises:
        UsageError: a file of the grid is missing.
    """
    folder = page_folder() / "grid"
    missing = [name for name in GRID_FILES if not (folder / name).is_file()]
    if missing:
        raise UsageError(
            f"a file of the page's grid is missing: {folder / missing[0]}",
            hint="In a clone, `scripts/fetch-grid` fetches the grid; wheels include it.",
        )


class Page(LocalPage):
    """The page of one session, as an ASGI application.

    Args:
        session: the session that the page shows and changes.
        suite: the suite's name.
        author: who works in the session.
        port: the port that requests must name; set by :func:`listen`.

    """

    def __init__(self, session: AnnotationSession, suite: str, author: str, port: int = 0) -> None:
        super().__init__("judge annotate", _POLICY, port)
        self._session = session
        self._suite = suite
        self._author = author
        self._posts: dict[str, Callable[[Mapping[str, Any]], dict[str, Any]]] = {
            "/api/change": self._change,
            "/api/undo": self._undo,
            "/api/base": self._base,
            "/api/compute": self._compute,
            "/api/save": self._save,
        }

    def index(self) -> str:
        """The page with its token."""
        text = (page_folder() / "static" / "index.html").read_text(encoding="utf-8")
        return string.Template(text).substitute(token=self.token)

    def file(self, path: str) -> tuple[bytes, str] | None:
        """The files of the page and the grid, and the common style sheet, from a fixed list."""
        kind, _, name = path[1:].partition("/")
        if (kind, name) == ("look", LOOK):
            return asset(LOOK).encode(), "text/css"
        files = {"static": STATIC_FILES, "grid": GRID_FILES}.get(kind, {})
        if name not in files:
            return None
        return (page_folder() / kind / name).read_bytes(), files[name]

    # -- the page's requests ----------------------------------------------------------------------

    def respond(
        self, method: str, path: str, request: Request, body: bytes
    ) -> dict[str, Any] | None:
        """Responses to the page's script."""
        if (method, path) == ("GET", "/api/state"):
            return self._state()
        if (method, path) == ("GET", "/api/window"):
            return self._window(request)
        post = self._posts.get(path)
        return post(object_of(body)) if method == "POST" and post is not None else None

    def refusal(self, error: JudgeError) -> tuple[dict[str, Any], int]:
        """The response to an error, with the current state if another request changed it first."""
        document, status = super().refusal(error)
        if not isinstance(error, ConflictError):
            return document, status
        return {**document, "state": self._state()}, 409

    def _state(self) -> dict[str, Any]:
        return show_state(self._session, self._suite, self._author)

    def _window(self, request: Request) -> dict[str, Any]:
        query = request.query_params
        numbers = query.get("row", "1"), query.get("column", "1")
        if not all(text.isascii() and text.isdigit() and len(text) < 9 for text in numbers):
            raise UsageError("row and column must be whole numbers")
        row, column = map(int, numbers)
        return self._session.window(query.get("book", ""), query.get("sheet", ""), (row, column))

    def _change(self, body: Mapping[str, Any]) -> dict[str, Any]:
        self._session.change(_revision(body), body)
        return self._state()

    def _undo(self, body: Mapping[str, Any]) -> dict[str, Any]:
        self._session.undo(_revision(body))
        return self._state()

    def _base(self, body: Mapping[str, Any]) -> dict[str, Any]:
        number = body.get("case")
        if not isinstance(number, int):
            raise UsageError("which case?")
        self._session.start_from(_revision(body), number)
        return self._state()

    def _compute(self, body: Mapping[str, Any]) -> dict[str, Any]:
        del body
        self._session.compute()
        return self._state()

    def _save(self, body: Mapping[str, Any]) -> dict[str, Any]:
        self._session.save(_revision(body), note=str(body.get("note") or ""))
        return self._state()


def _revision(body: Mapping[str, Any]) -> str:
    return str(body.get("revision", ""))
