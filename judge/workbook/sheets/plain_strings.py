"""Shared strings as programs usually write them, read with regular expressions."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet

from judge.workbook.cell_values import read_string
from judge.workbook.namespaces import MAIN
from judge.workbook.sheets.raw_formula import TEXT, UNUSUAL_ENTITY, unescape

_TEXT = f'<t(?: xml:space="preserve")?(?:/>|>({TEXT}*)</t>)'
_REST = "\\s*(?:<phoneticPr[^<>]*/>\\s*)?</si>\\s*"
_PLAIN = re.compile(f"\\s*{_TEXT}{_REST}")
_RUN = re.compile(f"\\s*<r>\\s*(?:<rPr>(?:\\s*<[^<>]*>)*?\\s*</rPr>)?\\s*{_TEXT}\\s*</r>")
_END = re.compile(_REST)
_LONGEST_STRING_BYTES = 1 << 20
_ROOT = re.compile(
    rb"""(?:\xef\xbb\xbf)?(?:<\?xml version=["']1\.0["'](?: encoding=["'](?i:utf-8)["'])?"""
    rb"""(?: standalone=["'](?:yes|no)["'])?\s*\?>)?\s*+"""
    rb"""<sst((?:\s++[A-Za-z0-9:]++="[^"<&]*+")*+)\s*+>\s*+"""
)
_DEFAULT_NAMESPACE = re.compile(rb' xmlns="([^"]*)"')


def plain_strings(chunks: Iterable[bytes], wanted: AbstractSet[int]) -> dict[int, str] | None:
    """The strings at some indices of a table of shared strings.

    Args:
        chunks: the table's part.
        wanted: the indices; at least one.

    Returns:
        Index -> string; None if the table, or a string that is wanted, is written in a way that
        only a parser reads, or if a string is missing.
    """
    last = max(wanted)
    found: dict[int, str] = {}
    first = -1  # index of the string before those in the pieces
    pending = b""
    begun = False
    for chunk in chunks:
        pending += chunk
        if not begun:
            root = _ROOT.match(pending)
            if root is None or not _is_main(root[1]):
                return None
            pending, begun = pending[root.end() :], True
        if b"<!" in pending or b"<?" in pending[1:] or len(pending) > _LONGEST_STRING_BYTES:
            return None
        end = pending.find(b"</sst>")
        cut = end if end >= 0 else pending.rfind(b"<si>")
        if cut > 0:
            pieces = pending[:cut].split(b"<si>")
            if not _are_whole(pieces) or pending.count(b"<si", 0, cut) != len(pieces) - 1:
                return None
            for index in range(first + 1, min(last + 1, first + len(pieces))):
                if index in wanted:
                    string = _string(pieces[index - first])
                    if string is None:
                        return None
                    found[index] = string
            first += len(pieces) - 1
            pending = pending[cut:]
            if first >= last:
                break
        if end >= 0:
            break
    return found if len(found) == len(wanted) else None


def _is_main(attributes: bytes) -> bool:
    """Whether names without a prefix are in the transitional namespace, for every program."""
    found = _DEFAULT_NAMESPACE.findall(attributes)
    return (
        len(found) == 1
        and found[0] == MAIN.encode()
        and b":Ignorable" not in attributes
        and b":MustUnderstand" not in attributes
    )


def _are_whole(pieces: Sequence[bytes]) -> bool:
    """Whether each string ends before the next one begins, with nothing between them."""
    return not pieces[0].strip() and all(
        each.endswith(b"</si>") or each.rstrip().endswith(b"</si>") for each in pieces[1:]
    )


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
