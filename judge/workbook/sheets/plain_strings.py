"""Shared strings as programs usually write them, read with regular expressions."""

from __future__ import annotations

import re
from collections.abc import Iterable
from collections.abc import Set as AbstractSet
from xml.parsers import expat

from judge.workbook.cell_values import read_string
from judge.workbook.namespaces import MAIN, SEPARATOR
from judge.workbook.sheets.raw_formula import TEXT, UNUSUAL_ENTITY, unescape
from judge.workbook.sheets.row_grammar import (
    NotPlainError,
    attributes_once,
    check_characters,
)

_TEXT = f'<t(?: xml:space="preserve")?(?:/>|>({TEXT}*)</t>)'
_HINT = f'\\s*<rPh[^<>]*>\\s*<t(?: xml:space="preserve")?(?:/>|>{TEXT}*</t>)\\s*</rPh>'
_REST = f"(?:{_HINT})*\\s*(?:<phoneticPr[^<>]*/>\\s*)?</si>\\s*"
_PLAIN = re.compile(f"\\s*{_TEXT}{_REST}")
_RUN = re.compile(f"\\s*<r>\\s*(?:<rPr>(?:\\s*<[^<>]*>)*?\\s*</rPr>)?\\s*{_TEXT}\\s*</r>")
_END = re.compile(_REST)

# The same as bytes, for strings that are only passed over: what is read is among what matches.
_ANY_TEXT = rb'\s*+<t(?: xml:space="preserve")?+(?:/>|>[^<]*+</t>)'
_FORMAT = rb"<rPr>(?:\s*+<[A-Za-z]++%b ?/>)*+\s*+</rPr>" % attributes_once(b"look")
_ANY_RUN = rb"\s*+<r>\s*+(?:%b)?+%b\s*+</r>" % (_FORMAT, _ANY_TEXT)
_ANY_HINT = rb"\s*+<rPh%b>%b\s*+</rPh>" % (attributes_once(b"hint"), _ANY_TEXT)
_STRINGS = re.compile(
    rb"(?:\s*+<si>(?:%b|(?:%b)++)(?:%b)*+\s*+(?:<phoneticPr%b ?/>)?+\s*+</si>)*+"
    % (_ANY_TEXT, _ANY_RUN, _ANY_HINT, attributes_once(b"phonetic"))
)
_END_OF_TABLE = re.compile(rb"\s*+</sst\s*+>")
_MAX_STRING_BYTES = 1 << 20
_ROOT = re.compile(
    rb"""(?:\xef\xbb\xbf)?(?:<\?xml version=["']1\.0["'](?: encoding=["'](?i:utf-8)["'])?"""
    rb"""(?: standalone=["'](?:yes|no)["'])?\s*\?>)?\s*+"""
    rb"""<sst((?:\s++[A-Za-z0-9:]++="[^"<&]*+")*+)\s*+>\s*+"""
)
_DEFAULT_NAMESPACE = re.compile(rb' xmlns="([^"]*)"')


def plain_strings(chunks: Iterable[bytes], wanted: AbstractSet[int]) -> dict[int, str] | None:
    """The strings at some indices of a table of shared strings, which is read to its end.

    Args:
        chunks: the table's part.
        wanted: the indices; at least one.

    Returns:
        Index -> string; None if the table is written in a way that only a parser reads, or if a
        string is missing.

    Raises:
        WorkbookError: the part is broken.
    """
    found: dict[int, str] = {}
    count = 0
    pending = b""
    begun = ended = False
    for chunk in chunks:
        pending += chunk
        if not begun:
            root = _ROOT.match(pending)
            if root is None or not _is_main(root[1]) or not _is_element(root[0]):
                return None
            pending, begun = pending[root.end() :], True
        match = _STRINGS.match(pending)
        position = match.end() if match is not None else 0
        if position:
            whole = pending[:position]
            try:
                check_characters(whole)
            except NotPlainError:
                return None
            pieces = whole.split(b"<si>")
            for index in _indices_between(wanted, count, count + len(pieces) - 1):
                string = _string(pieces[index - count + 1])
                if string is None:
                    return None
                found[index] = string
            count += len(pieces) - 1
            pending = pending[position:]
        if not ended and (end := _END_OF_TABLE.match(pending)) is not None:
            pending, ended = pending[end.end() :], True
        if (ended and pending.strip()) or b"</si>" in pending:
            return None
        if len(pending) > _MAX_STRING_BYTES:
            return None
    return found if ended and len(found) == len(wanted) else None


def _indices_between(wanted: AbstractSet[int], first: int, end: int) -> Iterable[int]:
    if len(wanted) < end - first:
        return (index for index in wanted if first <= index < end)
    return (index for index in range(first, end) if index in wanted)


def _is_main(attributes: bytes) -> bool:
    """Whether names without a prefix are in the transitional namespace, for every program."""
    found = _DEFAULT_NAMESPACE.findall(attributes)
    return (
        len(found) == 1
        and found[0] == MAIN.encode()
        and b":Ignorable" not in attributes
        and b":MustUnderstand" not in attributes
    )


def _is_element(root: bytes) -> bool:
    """Whether the start tag of a table is well-formed."""
    try:
        expat.ParserCreate(namespace_separator=SEPARATOR).Parse(root + b"</sst>", True)
    except expat.ExpatError:
        return False
    return True


def _string(piece: bytes) -> str | None:
    try:
        text = piece.decode()
    except UnicodeDecodeError:
        return None
    if UNUSUAL_ENTITY.search(text) is not None:
        return None
    match = _PLAIN.fullmatch(text)
    if match is not None:
        return read_string(unescape(match[1] or ""))
    runs = []
    position = 0
    while (run := _RUN.match(text, position)) is not None:
        runs.append(read_string(unescape(run[1] or "")))
        position = run.end()
    return "".join(runs) if runs and _END.fullmatch(text, position) is not None else None
