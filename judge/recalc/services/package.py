"""The package that an engine gets: checked for zip bombs, formulas adapted to the engine.

Standard library only: this text goes into the sandbox.
"""

from __future__ import annotations

import html
import io
import re
import zipfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from judge.recalc.services.common import CannotComputeError
from judge.recalc.services.dialect import split_arguments

UNPACKED_LIMIT_BYTES = 768 * 1024 * 1024
"""Most bytes that the parts of a workbook may claim together; real workbooks have far fewer."""

ENTRY_LIMIT = 20_000

MAX_BYTES = 65_536
LONGEST = 16_384
"""A formula with more bytes in the file, or with more characters, is not examined or changed.
Excel's own limit is 8,192 characters, without the prefixes that only the file contains."""

Rewrite = Callable[[str, bool], str]
"""Rewrites a formula's text, given whether it is an array formula."""

Slim = Callable[[Mapping[str, bytes]], Mapping[str, bytes]]
"""Removes everything from a package that no value depends on."""


@dataclass(frozen=True)
class Step:
    """A rewriting and what a formula must contain for it to apply."""

    trigger: re.Pattern[bytes]
    rewrite: Rewrite


def prepare(
    workbook: bytes,
    names: Mapping[str, str],
    *,
    step: Step | None = None,
    slim: Slim | None = None,
) -> bytes:
    """The workbook that the engine gets, packed again.

    Args:
        workbook: the package.
        names: function name -> name to write in its place wherever it is called *without* a
            prefix. This keeps an engine from computing what Excel would not recognise.
        step: turns a formula into what the engine reads as Excel does.
        slim: removes everything that no value depends on.

    Raises:
        CannotComputeError: not a package, or it claims to unpack to more than the limit.
    """
    try:
        archive = zipfile.ZipFile(io.BytesIO(workbook))
    except (zipfile.BadZipFile, ValueError, NotImplementedError) as error:
        raise CannotComputeError(f"the workbook is not a package: {error}") from error
    with archive:
        entries = archive.infolist()
        unpacked = sum(entry.file_size for entry in entries)
        if unpacked > UNPACKED_LIMIT_BYTES or len(entries) > ENTRY_LIMIT:
            raise CannotComputeError(
                f"the workbook claims {unpacked} bytes in {len(entries)} parts; "
                f"the limit is {UNPACKED_LIMIT_BYTES} bytes in {ENTRY_LIMIT} parts"
            )
        steps = [renaming(names)] if names else []
        if step is not None:
            steps.append(step)
        # Packed again even if nothing is changed, so that every engine sees the parts that we saw.
        parts: Mapping[str, bytes] = {
            entry.filename: only_elements(archive.read(entry)) for entry in entries
        }
    if slim is not None:
        parts = slim(parts)
    return _pack(parts, steps)


def _pack(parts: Mapping[str, bytes], steps: Sequence[Step]) -> bytes:
    """Packs some parts with edited formulas, without compression."""
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w", zipfile.ZIP_STORED) as package:
        for name, content in parts.items():
            holds_formulas = name.startswith("xl/") and name.endswith(".xml")
            package.writestr(name, edit_formulas(content, steps) if holds_formulas else content)
    return target.getvalue()


_BESIDE_ELEMENTS = re.compile(
    rb"<!--.*?-->|<!\[CDATA\[(?P<text>.*?)\]\]>|<\?(?!xml\s).*?\?>", re.DOTALL
)


def only_elements(content: bytes) -> bytes:
    """An XML part without comments and processing instructions, CDATA sections as plain text.

    Otherwise a formula could be in several pieces, and the code that rewrites formulas would miss
    it.
    """
    if not content.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"<"):
        return content
    if b"<!" not in content and content.count(b"<?") <= 1:
        return content

    def plain(found: re.Match[bytes]) -> bytes:
        text = found["text"] or b""
        return text.replace(b"&", b"&amp;").replace(b"<", b"&lt;").replace(b">", b"&gt;")

    return _BESIDE_ELEMENTS.sub(plain, content)


def renaming(names: Mapping[str, str]) -> Step:
    """Replaces the names of functions that are called without a prefix.

    If the new name is not the old one with a prefix, it means a function that no engine knows. Then
    the arguments are removed as well, since an unknown function is an error whatever its arguments.
    """
    alternatives = "|".join(map(re.escape, names))
    calls = re.compile(
        rf"""("[^"]*"|'[^']*')|(?<![\w.\\])({alternatives})(?=\s*\()""", re.IGNORECASE
    )

    def rewrite(formula: str, _: bool) -> str:
        pieces = []
        done = position = 0
        while (found := calls.search(formula, position)) is not None:
            position = found.end()
            if found[2] is None:
                continue
            new = names[found[2].upper()]
            pieces += [formula[done : found.start()], new]
            done = position
            if not new.upper().endswith(found[2].upper()):
                arguments, end = split_arguments(formula, formula.index("(", position) + 1)
                if arguments is None:
                    break  # a bracket is never closed: no engine reads the formula
                pieces.append("()")
                done = position = end
        return "".join((*pieces, formula[done:]))

    return Step(re.compile(alternatives.encode(), re.IGNORECASE), rewrite)


def edit_formulas(content: bytes, steps: Sequence[Step]) -> bytes:
    """Applies rewriting steps to the text of every formula of a part."""
    if not steps:
        return content

    def edit(found: re.Match[bytes]) -> bytes:
        raw = found[2]
        # A function's name may be written with character references.
        seen = html.unescape(raw.decode("utf-8", "replace")).encode() if b"&#" in raw else raw
        asked = [step for step in steps if step.trigger.search(seen)]
        if not asked or len(raw) > MAX_BYTES:
            return found[0]
        text = html.unescape(raw.decode("utf-8", "surrogateescape"))
        if len(text) > LONGEST:
            return found[0]
        new = text
        # A defined name is computed as an array formula is.
        is_array = b"definedName" in found[1] or _ARRAY.search(found[1]) is not None
        for step in asked:
            new = step.rewrite(new, is_array)
        if new == text:
            return found[0]
        escaped = new.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
        return found[1] + escaped.encode("utf-8", "surrogateescape")

    usual = b"<sheetData" in content and _PREFIXED_FORMULA.search(content) is None
    return (_SHEET_FORMULA if usual else _FORMULA).sub(edit, content)


_ARRAY = re.compile(rb"""\bt\s*=\s*["']array["']""")
_FORMULA = re.compile(
    rb"(<(?:\w+:)?(?:f|definedName)(?:\s[^<>]*)?(?<!/)>)([^<]*)(?=</(?:\w+:)?(?:f|definedName)>)"
)
_PREFIXED_FORMULA = re.compile(rb"<\w+:f[\s/>]")
_SHEET_FORMULA = re.compile(rb"(<f(?:\s[^<>]*)?(?<!/)>)([^<]*)(?=</f>)")
"""A faster pattern for sheets in the usual notation, since it begins with a literal."""
