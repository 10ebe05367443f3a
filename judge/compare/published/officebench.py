"""OfficeBench's own checks of a workspace, faults included.

Written from the behaviour of ``utils/evaluate.py`` and ``apps/excel_app/excel_read_file.py`` at
zlwang-cs/OfficeBench@4434746e. Its faults are numbered F1 to F13 in docs/checklists.md.
"""

from __future__ import annotations

import ast
import difflib
import posixpath
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from judge.compare.published_error import PublishedError, Side
from judge.errors import WorkbookError
from judge.workbook.address import WHOLE_SHEET
from judge.workbook.cell import CellRange
from judge.workbook.package import Package
from judge.workbook.reader import Workbook, open_workbook
from judge.workbook.tree import Element, read_tree

_MAX_SHEET_CELLS = 2_000_000
"""Largest number of cells of a sheet printed as text, blank ones included; the published code has
no limit."""

_BLANK = "[Empty Cell]"
_REFERENCE = "../../../../reference/"
_CACHE = re.compile(r"\.\./\.\./\.\./\.\./cache/[^/]+/testbed/")
_WORD = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
_READ_BY_OPENPYXL = (".xlsx", ".xlsm", ".xltx", ".xltm")


@dataclass(frozen=True, slots=True)
class Workspace:
    """The folder that an agent left, with its earlier state and the golds.

    Attributes:
        files: path below the workspace -> bytes, after the agent's work.
        before: path below the workspace -> bytes, before the work.
        references: name of a gold -> its bytes.
        pdf_text: reads the text of a PDF file; None if no PDF reader is available.
    """

    files: Mapping[str, bytes]
    before: Mapping[str, bytes] = field(default_factory=dict)
    references: Mapping[str, bytes] = field(default_factory=dict)
    pdf_text: Callable[[bytes], str] | None = None

    def read(self, path: str) -> bytes | None:
        """Returns the file that a check names, from the workspace, golds or earlier state."""
        if path.startswith(_REFERENCE):
            return self.references.get(posixpath.normpath(path.removeprefix(_REFERENCE)))
        before = _CACHE.match(path)
        if before is not None:
            return self.before.get(posixpath.normpath(path[before.end() :]))
        return self.files.get(posixpath.normpath(path))


def judge_check(function: str, arguments: Mapping[str, object], workspace: Workspace) -> bool:
    """Returns the result of a published function.

    Args:
        function: its name, such as ``evaluate_contain``.
        arguments: its arguments as given in the task.
        workspace: the workspace that it checks.

    Raises:
        PublishedError: the function raises, which the published runner counts as a failure.
    """
    check = FUNCTIONS.get(function)
    if check is None:
        raise PublishedError("NameError", f"name {function!r} is not defined", Side.RULES)
    return check(arguments, workspace)


def _argument(arguments: Mapping[str, object], name: str) -> str:
    if name not in arguments:
        raise PublishedError("KeyError", repr(name), Side.RULES)
    return str(arguments[name])


# -- texts of files --------------------------------------------------------------------------------


def _opened(data: bytes, path: str) -> Workbook:
    if not path.lower().endswith(_READ_BY_OPENPYXL):
        raise PublishedError("InvalidFileException", f"openpyxl does not support {path}")
    try:
        return open_workbook(data)
    except WorkbookError as error:
        raise PublishedError("BadZipFile", error.message, Side.ANSWER) from error


def _cells(workbook: Workbook) -> Mapping[tuple[int, int], object]:
    """Returns the stored cells of the active sheet, formatted blank ones included.

    Formulas are given as text, not as values (F2, F3).
    """
    sheet = workbook.active_sheet
    if sheet is None:
        raise PublishedError("AttributeError", "'Chartsheet' object has no attribute 'rows'")
    area = CellRange.of(sheet, WHOLE_SHEET)
    workbook.preload([area], blanks=True)
    return {
        position: cell.formula or getattr(cell.value, "code", cell.value)
        for position, cell in workbook.cells(area).items()
    }


def sheet_text(data: bytes, path: str) -> str:
    """Returns the active sheet as the agent's reader prints it.

    Raises:
        PublishedError: the file cannot be read.
    """
    try:
        cells = _cells(_opened(data, path))
    except WorkbookError as error:
        raise PublishedError("BadZipFile", error.message, Side.ANSWER) from error
    rows = max((row for row, _ in cells), default=0)
    columns = max((column for _, column in cells), default=0)
    if rows * columns > _MAX_SHEET_CELLS:
        raise PublishedError("MemoryError", f"the sheet has {rows * columns:,} cells", Side.ANSWER)
    lines = []
    for row in range(1, rows + 1):
        line = [
            f"({row}, {column}): {_BLANK if value is None else value}\t"
            for column in range(1, columns + 1)
            for value in [cells.get((row, column))]
        ]
        lines.append("".join(line) + "\n")
    return "".join(lines)


def document_text(data: bytes) -> str:
    """Returns the paragraphs of a Word document that are outside tables (F13).

    Raises:
        PublishedError: the file is not a Word document.
    """
    try:
        root = read_tree(Package(data), "word/document.xml", text=True)
    except WorkbookError as error:
        raise PublishedError("PackageNotFoundError", error.message, Side.ANSWER) from error
    body = root.child(f"{_WORD}body")
    paragraphs = [] if body is None else body.children
    return "\n".join(
        "".join(_runs(paragraph)) for paragraph in paragraphs if paragraph.name == f"{_WORD}p"
    )


def _runs(paragraph: Element) -> list[str]:
    return [node.text for node in paragraph.walk() if node.name == f"{_WORD}t"]


def _mail_text(username: str, workspace: Workspace) -> str:
    """Never finds mail, because the published code looks for it in ``/testbed`` (F6).

    Raises:
        PublishedError: the workspace has no such mailbox, and the code reads an unset name (F5).
    """
    if any(
        name.startswith((f"emails/{username}/", f"emails/{username.lower()}/"))
        for name in workspace.files
    ):
        return "No emails found."
    raise PublishedError("UnboundLocalError", "cannot access local variable 'email_account'")


def _decoded(data: bytes) -> str:
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise PublishedError("UnicodeDecodeError", str(error), Side.ANSWER) from error
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _text_of(arguments: Mapping[str, object], workspace: Workspace) -> str | None:
    """Returns the text of the file that a check names; None if the file does not exist."""
    kind = _argument(arguments, "doc_type")
    if kind == "email":
        return _mail_text(_argument(arguments, "username"), workspace)
    path = _argument(arguments, "file")
    data = workspace.read(path)
    if data is None:
        return None
    if kind == "xlsx":
        return sheet_text(data, path)
    if kind in {"doc", "docx"}:
        return document_text(data)
    if kind == "pdf":
        if workspace.pdf_text is None:
            raise PublishedError("PdfReadError", "nothing reads PDF here", Side.ANSWER)
        return workspace.pdf_text(data)
    if kind in {"txt", "ics"}:
        return _decoded(data)
    raise PublishedError("AssertionError", f"Not implemented doc type: {kind}", Side.RULES)


# -- the functions ---------------------------------------------------------------------------------


def _contain(arguments: Mapping[str, object], workspace: Workspace) -> bool:
    text = _text_of(arguments, workspace)
    if text is None:
        return False
    text = text.lower()
    keywords = arguments.get("keywords")
    for keyword in keywords if isinstance(keywords, list) else []:
        sought = str(keyword).lower()
        if _is_number(sought):
            text = text.replace(",", "")
        if sought not in text:
            return False
    return True


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _not_contain(arguments: Mapping[str, object], workspace: Workspace) -> bool:
    return not _contain(arguments, workspace)


def _file_exists(arguments: Mapping[str, object], workspace: Workspace) -> bool:
    path = posixpath.normpath(_argument(arguments, "file"))
    folder = f"{path}/"
    return path in workspace.files or any(name.startswith(folder) for name in workspace.files)


def _file_missing(arguments: Mapping[str, object], workspace: Workspace) -> bool:
    return not _file_exists(arguments, workspace)


def _matches(arguments: Mapping[str, object]) -> Sequence[Mapping[str, object]]:
    listed = arguments.get("matches")
    return listed if isinstance(listed, list) else []


def _cell_value(arguments: Mapping[str, object], workspace: Workspace) -> bool:
    path = _argument(arguments, "file")
    data = workspace.read(path)
    if data is None:
        return False
    text = sheet_text(data, path)
    return all(
        f"({match.get('row')}, {match.get('col')}): {match.get('value')}" in text
        for match in _matches(arguments)
    )


def _comparator(arguments: Mapping[str, object], workspace: Workspace) -> bool:
    path = _argument(arguments, "file")
    data = workspace.read(path)
    if data is None:
        raise PublishedError("FileNotFoundError", f"no such file: {path}", Side.ANSWER)
    text = sheet_text(data, path)
    for match in _matches(arguments):
        position = rf"\({int(str(match.get('row')))}, {int(str(match.get('col')))}\)"
        line = re.search(rf"{position}: (\w+)\t", text)
        if line is None or line.group(1) not in listed_values(str(match.get("comparator"))):
            return False
    return True


def listed_values(comparator: str) -> Sequence[object]:
    """Reads the values of ``lambda x: x in [...]``, the only comparator in tasks; nothing is run.

    Raises:
        PublishedError: the comparator has another form.
    """
    try:
        node = ast.parse(comparator.strip(), mode="eval").body
        if (
            isinstance(node, ast.Lambda)
            and isinstance(node.body, ast.Compare)
            and isinstance(node.body.left, ast.Name)
            and isinstance(node.body.ops[0], ast.In)
            and len(node.body.ops) == 1
        ):
            values = ast.literal_eval(node.body.comparators[0])
            if isinstance(values, list | tuple):
                return values
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        pass
    raise PublishedError("NotImplementedError", f"comparator {comparator!r}", Side.RULES)


def _exact_match(arguments: Mapping[str, object], workspace: Workspace) -> bool:
    path, gold_path = _argument(arguments, "result_file"), _argument(arguments, "expected_file")
    result, expected = workspace.read(path), workspace.read(gold_path)
    if result is None:
        return False
    if expected is None:
        raise PublishedError("FileNotFoundError", f"no such file: {gold_path}", Side.RULES)
    kind = _argument(arguments, "doc_type")
    if kind in {"txt", "ics"}:
        return _decoded(result) == _decoded(expected)
    if kind != "xlsx":
        # Lists of page or paragraph objects are never equal, since each object is new (F9).
        return False
    first, second = _cells(_opened(result, path)), _cells(_opened(expected, gold_path))
    return all(first.get(position) == second.get(position) for position in {*first, *second})


def _diff_contains(arguments: Mapping[str, object], workspace: Workspace) -> bool:
    if _argument(arguments, "doc_type") != "xlsx":
        kind = arguments["doc_type"]
        raise PublishedError("AssertionError", f"Not implemented doc type: {kind}", Side.RULES)
    texts: list[str] = []
    for name in ("input_file", "output_file"):
        path = _argument(arguments, name)
        data = workspace.read(path)
        if data is None:
            raise PublishedError("FileNotFoundError", f"no such file: {path}", Side.ANSWER)
        texts.append(sheet_text(data, path))
    if texts[0] == texts[1]:
        return False
    before, after = (text.split("\n") for text in texts)
    difference = "\n".join(difflib.unified_diff(before, after, n=0))
    keywords = arguments.get("keywords")
    return all(str(word) in difference for word in (keywords if isinstance(keywords, list) else []))


FUNCTIONS: Mapping[str, Callable[[Mapping[str, object], Workspace], bool]] = {
    "evaluate_contain": _contain,
    "evaluate_not_contain": _not_contain,
    "evaluate_file_exist": _file_exists,
    "evaluate_file_not_exist": _file_missing,
    "evaluate_excel_cell_value": _cell_value,
    "evaluate_excel_cell_comparator": _comparator,
    "evaluate_exact_match": _exact_match,
    "evaluate_diff_contain_text": _diff_contains,
}
"""Name of a published function -> its emulation; ``evaluate_calendar_no_overlap`` has none."""
