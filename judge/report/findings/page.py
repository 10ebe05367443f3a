"""The rules of a case on its page: in words, whether they hold, and what was found instead.

What differs is shown from the gold and the stored output, which are read once more: only for cases
in which a rule does not hold, and within the limits of the reader.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from judge.compare.contract import Requirements
from judge.compare.rules.book import Book
from judge.compare.rules.raised import PublishedError, Side
from judge.compare.rules.standard import MISSING_SHEET
from judge.core.finding import Subject
from judge.core.records.cases import AboutRecord, CaseComparison, DifferenceRecord, SheetRecord
from judge.errors import JudgeError
from judge.report.findings import tables
from judge.report.findings.cells import cell_rows
from judge.report.findings.parts import Shown, part_of
from judge.report.findings.rows import clip
from judge.report.grid import GridRules
from judge.report.grid_window import GridBounds
from judge.workbook.reader import Workbook, open_workbook

_MAX_FINDINGS = 40
_MAX_VALUE_LENGTH = 300
_WHOLE = {"charts", "pivots", "looks", "elsewhere"}
"""Kinds of parts that show where the difference is."""
_MERGED = {Subject.CHARTS.value, Subject.PIVOTS.value, Subject.FORMATS.value, Subject.FILTER.value}
"""What is shown once for all rules about the same sheets."""
_ON_A_SHEET = {subject.value for subject in Subject} - {Subject.SHEETS.value}


@dataclass(frozen=True, slots=True)
class CaseFiles:
    """The files that findings are shown from.

    Attributes:
        gold: the gold that counted; None if it is not there.
        output: the output; None if it is no longer there.
        before: the input; None without one.
    """

    gold: bytes | Path | None
    output: bytes | None
    before: Path | None


def rules_of_case(
    record: CaseComparison,
    required: Requirements,
    files: CaseFiles,
    rules: GridRules,
    bounds: GridBounds,
) -> dict[str, Any] | None:
    """The rules of a case, for its page.

    Args:
        record: the comparison as cases.jsonl has it; empty where there was none.
        required: what the task asks; empty if the suite is not available.
        files: gold, output and input.
        rules: how the run judged.
        bounds: how much is shown.

    Returns:
        ``rules``, each with ``number``, ``words``, ``state`` (``holds``, ``fails``, ``unknown``,
        ``unjudged``) and ``findings`` (see :class:`_Findings`); ``published`` (the other verdict
        on record, or null) and ``profile``. None if the task asks nothing by rules.
    """
    differences = sorted(
        (each for each in record.get("differences", ()) if "words" in each),
        key=lambda each: each.get("rule", 0),
    )
    if not required.rules and not differences:
        return None
    words = dict(enumerate(required.rules, start=1))
    failing: dict[int, list[dict[str, Any]]] = {}
    shown = _Findings(files, rules, bounds, _asked_of(differences))
    for difference in differences:
        number = difference.get("rule", 0)
        words[number] = difference["words"]
        failing.setdefault(number, []).append(shown.of(difference))
    return {
        "rules": [
            {
                "number": number,
                "words": words[number],
                "state": "fails" if number in failing else _state(record, required, number),
                "findings": failing.get(number, []),
            }
            for number in sorted(words)
        ],
        "published": _published(record, required),
        "profile": record.get("profile", ""),
    }


_Place = tuple[str, str, str]


def _place_of(about: AboutRecord) -> _Place:
    """What is shown once for all rules that are about it: the subject and both sheets."""
    return about["subject"], json.dumps(about["expected"]), json.dumps(about["found"])


def _asked_of(differences: Sequence[DifferenceRecord]) -> dict[_Place, list[str]]:
    """The properties that all rules about the same things of the same sheets ask for."""
    asked: dict[_Place, list[str]] = {}
    for difference in differences:
        if (about := difference.get("about")) is not None and about["subject"] in _MERGED:
            names = asked.setdefault(_place_of(about), [])
            names += [name for name in about["asked"] if name not in names]
    return asked


def _state(record: CaseComparison, required: Requirements, number: int) -> str:
    """Whether a rule without a difference holds, as far as the record tells."""
    differences = record.get("differences", ())
    if "equal" not in record:
        return "unjudged"
    if record.get("differing_cells", 0) > len(differences):
        return "unknown"
    if record["equal"]:
        return "holds"
    if not required.complete or any("words" not in difference for difference in differences):
        return "unknown"  # a difference may be about any rule
    if record.get("profile") == "official" and required.ends_early:
        first = min((difference.get("rule", 0) for difference in differences), default=number)
        return "holds" if number <= first else "unknown"
    return "holds"


def _published(record: CaseComparison, required: Requirements) -> dict[str, Any] | None:
    if "official_equal" not in record:
        return None
    return {
        "name": required.published,
        "equal": record.get("official_equal"),
        "error": clip(record["published_error"]) if "published_error" in record else None,
    }


class _Findings:
    """Shows differences from the workbooks, which are opened when the first one needs them.

    Args:
        files: gold, output and input.
        rules: how the run judged.
        bounds: how much is shown.
        asked: the properties that all rules about the same things ask for.
    """

    def __init__(
        self,
        files: CaseFiles,
        rules: GridRules,
        bounds: GridBounds,
        asked: Mapping[_Place, list[str]],
    ) -> None:
        self._files = files
        self._asked = asked
        self._first: dict[_Place, int] = {}
        self._rules = rules
        self._bounds = bounds
        self._books: dict[bool, Book | JudgeError | None] = {}
        self._shown = 0

    def _book(self, *, in_gold: bool) -> Book | None:
        """The gold, or the output; None if it is not there.

        Raises:
            WorkbookError: it cannot be read.
        """
        if in_gold not in self._books:
            source = self._files.gold if in_gold else self._files.output
            side = Side.GOLD if in_gold else Side.ANSWER
            try:
                book = None if source is None else Book(open_workbook(source), side)
            except JudgeError as error:
                self._books[in_gold] = error
            else:
                self._books[in_gold] = book
        found = self._books[in_gold]
        if isinstance(found, JudgeError):
            raise found
        return found

    @cached_property
    def _before(self) -> Workbook | None:
        try:
            return None if self._files.before is None else open_workbook(self._files.before)
        except JudgeError:
            return None

    def of(self, difference: DifferenceRecord) -> dict[str, Any]:
        """A difference as a page shows it.

        Returns:
            ``kind``, ``sheet``, ``expected`` and ``found`` (text; null where the parts show it
            better), ``detail``, ``part`` (null, or an object with ``kind`` and what that kind of
            part needs) and ``note`` (why there is none).
        """
        about = difference.get("about")
        part, note = None, ""
        self._shown += 1
        if about is not None and self._shown <= _MAX_FINDINGS:
            try:
                part = self._once(about, difference)
            except (JudgeError, PublishedError) as error:
                said = error.message
                note = f"what differs cannot be shown: {clip(said)}"
        is_missing = difference["kind"] == MISSING_SHEET
        lacks = about is not None and about["found"] is None and about["subject"] in _ON_A_SHEET
        if is_missing or lacks:
            note = note or "the output has no such sheet"
        has_rows = part is not None and (part["kind"] != "rows" or bool(part["rows"]))
        is_whole = part is not None and part["kind"] in _WHOLE
        texts = [
            None if is_missing or has_rows else _plain(difference.get(name))
            for name in ("expected", "actual")
        ]
        return {
            "kind": difference["kind"],
            "sheet": "" if is_missing else difference["sheet"],
            "expected": texts[0],
            "found": texts[1],
            "detail": "" if is_whole else clip(difference.get("detail", "")),
            "part": part,
            "note": note,
        }

    def _once(self, about: AboutRecord, difference: DifferenceRecord) -> dict[str, Any] | None:
        """A part, or where it is if another rule is about the same."""
        if about["subject"] in _MERGED:
            place = _place_of(about)
            if place in self._first:
                return {"kind": "elsewhere", "rule": self._first[place]}
            self._first[place] = difference.get("rule", 0)
            about = {**about, "asked": self._asked[place]}
        return self._part(about, difference)

    def _part(self, about: AboutRecord, difference: DifferenceRecord) -> dict[str, Any] | None:
        if about["subject"] == Subject.CELLS and "decimals" not in about:
            return {"kind": "rows", "rows": cell_rows(about.get("cells", ()))}
        if about["subject"] == Subject.SHEETS:
            gold, output = self._book(in_gold=True), self._book(in_gold=False)
            if gold is None or output is None:
                return None
            return {"kind": "rows", "rows": tables.sheet_rows(gold, output)}
        expected, found = self._sheet(about["expected"]), self._sheet(about["found"])
        wanted = difference.get("expected")
        shown = Shown(about, wanted, expected, found, self._before, self._rules, self._bounds)
        with ExitStack() as stack:
            for each in (expected, found):
                if each is not None:
                    stack.enter_context(each[0].workbook.package.budget.working())
            return part_of(shown)

    def _sheet(self, named: SheetRecord | None) -> tables.Sheet | None:
        if named is None:
            return None
        book = self._book(in_gold=named["file"] == "gold")
        tab = None if book is None else book.tab(named["sheet"])
        return None if book is None or tab is None else (book, tab)


def _plain(value: object) -> str | None:
    """A recorded value as text."""
    if value is None or isinstance(value, str):
        return None if value is None else clip(value)
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _MAX_VALUE_LENGTH else text[: _MAX_VALUE_LENGTH - 1] + "…"
