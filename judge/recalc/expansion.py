"""Rewrites calls of named LAMBDAs and spilled ranges so that every engine can read them.

Excel computes ``=week()``, where the name is defined as a LAMBDA, and ``=SUM(A1#)``, which files
contain as ``_xlfn.ANCHORARRAY(A1)``. Most engines support neither. The call is replaced by the body
of the LAMBDA, and the spilled range by the range that the file states for its formula.
"""

from __future__ import annotations

import html
import io
import re
import zipfile
from collections.abc import Callable, Mapping

from judge.errors import WorkbookError
from judge.formulas.lexer import Kind, Token, is_too_long, tokens
from judge.formulas.references import areas, reference
from judge.recalc.rewrite import check_size
from judge.recalc.services.dialect import split_arguments
from judge.workbook.address import cell_name
from judge.workbook.dependency import FormulaIndex
from judge.workbook.editing.parts import escape_text

MAX_EXPANSIONS = 6
"""How many calls are expanded in one formula; the body of a LAMBDA may add further calls."""

_ANCHOR = "_XLFN.ANCHORARRAY"
_FORMULA = re.compile(rb"(<f(?:\s[^<>]*)?(?<!/)>)([^<]*)(?=</f>)")
_NAME = re.compile(rb"<definedName\s([^<>]*)>([^<]*)</definedName>")
_NAME_OF = re.compile(rb"""\bname\s*=\s*"([^"]*)\"""")
_LAMBDA = re.compile(r"\s*_xlfn\.LAMBDA\s*\(", re.IGNORECASE)
_LET = re.compile(r"\s*_xlfn\.LET\s*\(", re.IGNORECASE)
_PARAMETER = re.compile(r"\s*_xlpm\.\w+\s*", re.IGNORECASE)

Lambda = tuple[tuple[str, ...], str]
"""The parameters of a LAMBDA, and its body."""


def lambdas(workbook_part: bytes) -> dict[str, Lambda]:
    """Name, in upper case -> the LAMBDA that it is defined as; names of single sheets are left out.

    Args:
        workbook_part: the part ``xl/workbook.xml``.
    """
    if b"LAMBDA" not in workbook_part.upper():
        return {}
    functions: dict[str, Lambda] = {}
    for match in _NAME.finditer(workbook_part):
        name = _NAME_OF.search(match[1])
        if name is None or b"localSheetId" in match[1]:
            continue
        text = html.unescape(match[2].decode("utf-8", "replace"))
        start = _LAMBDA.match(text)
        if start is None or is_too_long(text):
            continue
        arguments, end = split_arguments(text, start.end())
        if not arguments or text[end:].strip():
            continue
        *parameters, body = arguments
        if all(map(_PARAMETER.fullmatch, parameters)):
            stripped = tuple(parameter.strip() for parameter in parameters)
            functions[html.unescape(name[1].decode("utf-8", "replace")).upper()] = stripped, body
    return functions


def expanded(
    package: bytes, parts: Mapping[str, str], index: FormulaIndex
) -> tuple[bytes, frozenset[str]]:
    """Replaces calls of LAMBDAs and spilled ranges in a package.

    Args:
        package: the workbook; returned unchanged if it cannot be read here, or has neither.
        parts: worksheet -> name of its part.
        index: the formulas of the workbook; those of sheets that were not reached do not change.

    Returns:
        The package, and the names of the LAMBDAs.
    """
    try:
        with zipfile.ZipFile(io.BytesIO(package)) as archive:
            check_size(archive.infolist())
            contents = {name: archive.read(name) for name in archive.namelist()}
    except (WorkbookError, zipfile.BadZipFile, KeyError, NotImplementedError):
        return package, frozenset()
    names = lambdas(contents.get("xl/workbook.xml", b""))
    changed = False
    for sheet, part in parts.items():
        content = contents.get(part, b"")
        if not names and b"ANCHORARRAY" not in content.upper():
            continue
        new = _FORMULA.sub(_Expansion(names, sheet, index), content)
        changed = changed or new != content
        contents[part] = new
    if not changed:
        return package, frozenset(names)
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w", zipfile.ZIP_STORED) as copy:
        for name, content in contents.items():
            copy.writestr(zipfile.ZipInfo(name), content)
    return target.getvalue(), frozenset(names)


class _Expansion:
    """Expands the formulas of one sheet.

    Args:
        names: the LAMBDAs.
        sheet: the sheet.
        index: the formulas of the workbook.
    """

    def __init__(self, names: Mapping[str, Lambda], sheet: str, index: FormulaIndex) -> None:
        self._names = names
        self._sheet = sheet
        self._index = index

    def __call__(self, match: re.Match[bytes]) -> bytes:
        """Returns the new element of a formula, without its end tag; shared formulas are kept."""
        if b"shared" in match[1] or len(match[2]) > 2**16:
            return match[0]
        text = html.unescape(match[2].decode("utf-8", "surrogateescape"))
        if is_too_long(text):
            return match[0]
        new = text
        for _ in range(MAX_EXPANSIONS):
            before, new = new, self._once(new)
            if new == before:
                break
        if new == text or is_too_long(new):
            return match[0]
        return match[1] + escape_text(new).encode("utf-8", "surrogateescape")

    def _once(self, formula: str) -> str:
        """Expands the first call of a formula that can be expanded."""
        for word in tokens(formula):
            replaced = self._replaced(word)
            if replaced is None:
                continue
            begin = formula.index("(", word.end) + 1
            arguments, end = split_arguments(formula, begin)
            new = None if arguments is None else replaced(arguments)
            if new is not None:
                return formula[: word.start] + new + formula[end:]
        return formula

    def _replaced(self, word: Token) -> Callable[[list[str]], str | None] | None:
        """A function from the arguments to the text that replaces a call; None to keep the call."""
        if word.kind is not Kind.FUNCTION:
            return None
        upper = word.text.upper()
        if upper == _ANCHOR:
            return self._spilled
        if upper in self._names:
            return lambda arguments: _applied(self._names[upper], arguments)
        return None

    def _spilled(self, arguments: list[str]) -> str | None:
        """The range that the file states for the array formula of a cell."""
        named = list(areas(arguments[0])) if len(arguments) == 1 else []
        if len(named) != 1 or arguments[0].strip() != arguments[0][named[0].start : named[0].end]:
            return None
        anchor = reference(named[0])
        sheet = self._sheet if anchor.sheet is None else self._index.named(anchor.sheet)
        if sheet is None or anchor.size != 1:
            return None
        for window, cell in self._index.sheet(sheet).filling:
            if (cell.row, cell.column) == (anchor.min_row, anchor.min_column):
                first = cell_name(window.min_row, window.min_column)
                last = cell_name(window.max_row, window.max_column)
                prefix = "" if named[0].sheet is None else named[0].sheet.text
                return f"{prefix}{first}:{last}"
        return None


def _applied(function: Lambda, arguments: list[str]) -> str | None:
    """The body of a LAMBDA with its arguments filled in; None if they do not fit its parameters."""
    parameters, body = function
    values = [] if [argument.strip() for argument in arguments] == [""] else arguments
    if len(values) != len(parameters) or not all(value.strip() for value in values):
        return None
    if not parameters:
        return f"({body})"
    pairs = ",".join(
        f"{parameter},{value}" for parameter, value in zip(parameters, values, strict=True)
    )
    inner = _LET.match(body)
    if inner is not None:
        # LibreOffice does not read a LET inside another LET.
        rest, end = split_arguments(body, inner.end())
        if rest is not None and not body[end:].strip():
            return f"_xlfn.LET({pairs},{','.join(rest)})"
    return f"_xlfn.LET({pairs},{body})"
