"""OfficeBench's checks of a workspace as items."""

from __future__ import annotations

import datetime as dt
import fnmatch
import itertools
import posixpath
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

from judge.compare.checklists.file_items import events_of, moment, numbers_in, text_of_document
from judge.compare.checklists.items import Outcome, State, broken
from judge.compare.checklists.suites import ItemDetails, PublishedSuite, as_check, as_intended
from judge.compare.checklists.workspace import MissingError, Workspace
from judge.compare.published import officebench
from judge.compare.published_error import PublishedError, Side
from judge.compare.rules.book import text_of
from judge.errors import WorkbookError
from judge.workbook.address import cell_key
from judge.workbook.cell import CellValue
from judge.workbook.reader import open_workbook

_GOLDS = "../../../../reference/"
_NO_OVERLAP = "evaluate_calendar_no_overlap"
_ROUNDING_ERROR = 1e-9  # relative

Arguments = Mapping[str, object]


def _parts(check: object) -> tuple[str, Arguments]:
    """Returns the function of a check, and its arguments."""
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
        if function == _NO_OVERLAP:
            right = _no_overlap(arguments, workspace, fails_without_start=True)
        else:
            right = officebench.judge_check(function, arguments, _folder(workspace))
    except PublishedError as error:
        state = None if error.side is Side.ANSWER else State.ERROR
        return Outcome(0.0, detail=f"the published code raises {error}", state=state)
    return _shown(arguments).outcome(right=right)


def _shown(arguments: Arguments) -> ItemDetails:
    path = _path(arguments)
    return ItemDetails(arguments.get("keywords") or arguments.get("matches"), place=path)


def _path(arguments: Arguments, name: str = "") -> str:
    written = arguments.get(name) if name else arguments.get("file") or arguments.get("result_file")
    return posixpath.normpath(str(written)) if written else ""


# -- as intended --------------------------------------------------------------------------------

Intended = tuple[bool, str]
"""What a check should have returned, and the fault that explains a difference."""


def _standard(check: object, workspace: Workspace) -> Outcome:
    function, arguments = _parts(check)
    decide = _INTENDED.get(function)
    official = _official(check, workspace)
    if decide is None:
        return official
    if "username" not in arguments and not _path(arguments) and not _path(arguments, "input_file"):
        return broken("the check names no file, so that nothing can hold (F4)")
    shown = _shown(arguments)
    try:
        right, fault = decide(arguments, workspace)
    except MissingError as error:
        right, fault, shown = False, "F10", replace(shown, detail=str(error))
    except WorkbookError as error:
        right, fault, shown = False, "F10", replace(shown, detail=error.message)
    return as_intended(official, shown, fault, right=right)


# -- cells -----------------------------------------------------------------------------------------


def same_value(value: CellValue, text: str) -> bool:
    """Whether a cell's whole value, not just its beginning, is the value that a check states."""
    stated = text.strip()
    if isinstance(value, bool) or not isinstance(value, int | float):
        return stated in _texts_of(value)
    numbers = numbers_in(stated)
    bare = re.fullmatch(r"[-+$€£(]*\d[\d,.]*[)%]?", stated)
    return (
        bare is not None
        and len(numbers) == 1
        and abs(numbers[0] - value) <= abs(value) * _ROUNDING_ERROR
    )


def _texts_of(value: CellValue) -> set[str]:
    texts = {text_of(value).strip(), str(value).strip()}
    if isinstance(value, dt.time):
        texts |= {f"{value.hour}:{value.minute:02}", f"{value.hour:02}:{value.minute:02}"}
    if isinstance(value, dt.datetime) and value.time() == dt.time():
        texts.add(value.date().isoformat())
    return texts


def _matches(arguments: Arguments) -> list[tuple[int, int, Mapping[str, object]]]:
    listed = arguments.get("matches")
    return [
        (int(str(match.get("row"))), int(str(match.get("col"))), match)
        for match in (listed if isinstance(listed, list) else [])
        if isinstance(match, Mapping)
    ]


def _cells(
    arguments: Arguments,
    workspace: Workspace,
    fits: Callable[[CellValue, Mapping[str, object]], bool],
) -> tuple[bool, bool, bool]:
    """Looks for a sheet on which all cells match.

    Returns:
        Whether there is one, whether it is the active sheet, and whether any of the cells has a
        formula.
    """
    book = workspace.book(_path(arguments))
    front = book.workbook.active_sheet
    names = sorted(book.workbook.sheet_names, key=lambda name: name != front)
    computed = False
    for name in names:
        grid = book.grid(name)
        matches = _matches(arguments)
        values = [(grid.values.get(cell_key(row, column)), match) for row, column, match in matches]
        stored = (book.cell(name, row, column).stored for row, column, _ in matches)
        computed = computed or any(cell is not None and cell.formula is not None for cell in stored)
        if all(fits(value, match) for value, match in values):
            return True, name == front, computed
    return False, True, computed


def _cell_value(arguments: Arguments, workspace: Workspace) -> Intended:
    right, in_front, computed = _cells(
        arguments, workspace, lambda value, match: same_value(value, str(match.get("value")))
    )
    if right:
        return right, "F2" if computed else "F3" if not in_front else "F1"
    return right, "F1"


def _comparator(arguments: Arguments, workspace: Workspace) -> Intended:
    def fits(value: CellValue, match: Mapping[str, object]) -> bool:
        listed = officebench.listed_values(str(match.get("comparator")))
        return any(same_value(value, str(part)) for part in listed)

    right, in_front, computed = _cells(arguments, workspace, fits)
    return right, "F2" if computed else "F11" if in_front else "F3"


# -- texts -----------------------------------------------------------------------------------------


def has_word(text: str, word: str) -> bool:
    """Whether a string contains a keyword as whole words in any case, or a number by its value."""
    stated, within = word.strip().casefold(), text.casefold()
    if re.fullmatch(r"\d+(?:\.\d+)?", stated):
        return any(abs(part) == float(stated) for part in numbers_in(within)) or _bounded(
            within, stated
        )
    return _bounded(within, stated)


def _bounded(within: str, stated: str) -> bool:
    before = r"(?<!\w)" if stated[:1].isalnum() else ""
    after = r"(?!\w)" if stated[-1:].isalnum() else ""
    return re.search(before + re.escape(stated) + after, within) is not None


def _lines(arguments: Arguments, workspace: Workspace) -> tuple[list[str], str]:
    """Returns the strings to search for keywords, and the id of the published reader's fault."""
    kind, path = str(arguments.get("doc_type")), _path(arguments)
    if kind == "email":
        return _mails(arguments, workspace), "F6"
    if kind == "xlsx":
        book = workspace.book(path)
        values = [
            text_of(value)
            for sheet in book.workbook.sheet_names
            for value in book.grid(sheet).values.values()
        ]
        return values, "F7"
    data = workspace.read(path)
    if kind in {"doc", "docx"}:
        return [text_of_document(data)], "F13"
    if kind == "pdf":
        return [workspace.pdf_text(data)], "F7"
    return [data.decode("utf-8", "replace")], "F7"


def _mails(arguments: Arguments, workspace: Workspace) -> list[str]:
    user = str(arguments.get("username"))
    pattern = f"emails/{user}/*.eml"
    names = [name for name in workspace.files if fnmatch.fnmatchcase(name, pattern)]
    if not names:
        raise MissingError(f"there is no mail of {user}")
    return [workspace.files[name].decode("utf-8", "replace") for name in sorted(names)]


def _keywords(arguments: Arguments) -> Sequence[str]:
    listed = arguments.get("keywords")
    return [str(word) for word in listed] if isinstance(listed, list) else []


def _all_there(texts: Iterable[str], words: Sequence[str]) -> bool:
    listed = list(texts)
    return all(any(has_word(text, word) for text in listed) for word in words)


def _contain(arguments: Arguments, workspace: Workspace) -> Intended:
    texts, fault = _lines(arguments, workspace)
    right = _all_there(texts, _keywords(arguments))
    if fault == "F7" and right and arguments.get("doc_type") == "xlsx":
        book = workspace.book(_path(arguments))
        front = book.workbook.active_sheet
        stored = book.workbook.stored_values(front) if front else {}
        in_front = _all_there(map(text_of, stored.values()), _keywords(arguments))
        fault = "F2" if in_front or len(book.workbook.sheet_names) == 1 else "F3"
    if fault == "F13" and not right:
        fault = "F7"
    return right, fault


def _not_contain(arguments: Arguments, workspace: Workspace) -> Intended:
    right, fault = _contain(arguments, workspace)
    return not right, fault


# -- whole files -----------------------------------------------------------------------------------


def _exact_match(arguments: Arguments, workspace: Workspace) -> Intended:
    path, gold = _path(arguments), str(arguments.get("expected_file"))
    if gold.startswith(_GOLDS):
        data = workspace.golds.get(posixpath.basename(gold))
    else:
        data = workspace.read(gold)
    if data is None:
        raise PublishedError("FileNotFoundError", f"the gold {gold} is not in the suite (F8)")
    if arguments.get("doc_type") != "xlsx":
        own = workspace.read(path)
        return workspace.pdf_text(own) == workspace.pdf_text(data) != "", "F9"
    book, expected = workspace.book(path), open_workbook(data)
    front = expected.active_sheet
    right_values = {} if front is None else dict(expected.stored_values(front))
    names = sorted(book.workbook.sheet_names, key=lambda name: name != book.workbook.active_sheet)
    for name in names:
        values = book.grid(name).values
        if all(_alike(values.get(key), right_values.get(key)) for key in {*values, *right_values}):
            return True, "F2" if name == book.workbook.active_sheet else "F3"
    return False, "F2"


def _alike(value: CellValue, expected: CellValue) -> bool:
    if isinstance(value, int | float) and isinstance(expected, int | float):
        return abs(value - expected) <= abs(expected) * _ROUNDING_ERROR
    return value == expected or (value or None) == (expected or None)


# -- calendars -------------------------------------------------------------------------------------


def _no_overlap(
    arguments: Arguments, workspace: Workspace, *, fails_without_start: bool = False
) -> bool:
    """Whether no event in a person's calendar overlaps the next."""
    path = f"calendar/{arguments.get('username')}.ics"
    if path not in workspace.files:
        if fails_without_start:
            raise PublishedError("FileNotFoundError", f"no such file: {path}")
        raise MissingError(f"the answer has no file {path!r}")
    times = []
    for event in events_of(workspace.files[path]):
        start = moment(event.get("DTSTART", ""))
        if start is None:
            if fails_without_start:
                raise PublishedError("AttributeError", "an event has no dtstart (F12)")
            continue
        times.append((start, moment(event.get("DTEND", "")) or start))
    times.sort()
    return all(end <= start for (_, end), (start, _) in itertools.pairwise(times))


def _free(arguments: Arguments, workspace: Workspace) -> Intended:
    return _no_overlap(arguments, workspace), "F12"


_INTENDED: Mapping[str, Callable[[Arguments, Workspace], Intended]] = {
    "evaluate_contain": _contain,
    "evaluate_not_contain": _not_contain,
    "evaluate_excel_cell_value": _cell_value,
    "evaluate_excel_cell_comparator": _comparator,
    "evaluate_exact_match": _exact_match,
    _NO_OVERLAP: _free,
}
"""Function whose published code has a fault -> the function as intended."""


# -- the suite -------------------------------------------------------------------------------------


def _in_words(check: object) -> str:
    function, arguments = _parts(check)
    values = arguments.get("keywords") or arguments.get("matches") or ""
    path = _path(arguments) or arguments.get("username") or ""
    words = [function.removeprefix("evaluate_").replace("_", " "), str(path), str(values)]
    return " ".join(word for word in words if word)[:300]


def _faults(check: object) -> tuple[str, ...]:
    function, _ = _parts(check)
    if function in {*officebench.FUNCTIONS, _NO_OVERLAP}:
        return ()
    return (f"there is no function {function!r}",)


SUITE = PublishedSuite(_official, _standard, _in_words, _faults)
