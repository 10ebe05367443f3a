"""The state of a session as the page shows it: plain data."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from judge.annotate.annotator import Preview
from judge.annotate.edits import content_text, describe
from judge.annotate.gold import GoldSource
from judge.annotate.rules import RULES
from judge.annotate.web.colours import Recoloured
from judge.annotate.web.session import AnnotationSession
from judge.annotate.web.view import plain_time
from judge.compare.cells.render import difference_lines
from judge.errors import PositionError
from judge.workbook.address import cell_name
from judge.workbook.cell import CellRef

_MAX_LISTED = 200


def show_state(session: AnnotationSession, suite: str, author: str) -> dict[str, Any]:
    """Everything but the cells.

    Args:
        session: the session.
        suite: the suite's name.
        author: who works in it.

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
    painted = session.recoloured()
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
            f"{'gold: ' if index >= len(edits) - hand else ''}{plain_time(describe(each))}"
            for index, each in enumerate(edits)
        ],
        "saved": session.last_saved,
        "notes": notes + (list(preview.proposal.notes) if preview else []),
        "preview": _preview(preview, painted, session.distrusted) if preview else None,
    }


def _preview(
    preview: Preview, painted: Sequence[Recoloured], distrusted: Sequence[str]
) -> dict[str, Any]:
    proposal = preview.proposal
    errors = [preview.problem] if preview.problem else []
    moved = [
        _moved(
            each.ref, plain_time(content_text(each.before)), plain_time(content_text(each.after))
        )
        for each in proposal.moved
    ] + [_moved(each.ref, each.before, each.after) for each in painted]
    return {
        "has_gold": proposal.gold is not None,
        "sources": [_source(source) for source in proposal.sources],
        "moved": moved[:_MAX_LISTED],
        "moved_count": len({(each["sheet"], each["cell"]) for each in moved}),
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
