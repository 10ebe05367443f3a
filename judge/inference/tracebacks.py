"""What a program printed or where it failed, cut to what a chat model can use. Pure."""

from __future__ import annotations

import re

_FRAME = re.compile(r'^  File "(?P<path>[^"]*)", line \d+')
_OWN = re.compile(r"(?:^|/)solution\.py$|^<string>$|^<stdin>$")


def cut_middle(text: str, limit: int) -> str:
    """The beginning and the end of a string, with a note on what was left out between them.

    Args:
        text: what a program printed.
        limit: characters to keep.
    """
    if len(text) <= limit:
        return text
    head = text[: limit * 2 // 3]
    tail = text[-(limit - len(head)) :]
    return f"{head}\n[… {len(text) - limit} characters left out …]\n{tail}"


def trim_traceback(text: str, limit: int = 3_000) -> str:
    """A traceback without the internals of libraries.

    Frames of the program stay, of a run of library frames only the last one does, and the message
    at the end is never lost.

    Args:
        text: standard error of a program.
        limit: characters to keep; the end counts more than the beginning.
    """
    kept: list[str] = []
    run: list[list[str]] = []
    for block in _blocks(text.splitlines()):
        match = _FRAME.match(block[0])
        if match and not _OWN.search(match["path"]):
            run.append(block)
            continue
        kept += _folded(run)
        run = []
        kept += block
    kept += _folded(run)
    lines = [line if len(line) <= 1_000 else f"{line[:1_000]} …" for line in kept]
    trimmed = "\n".join(lines).strip("\n")
    if len(trimmed) <= limit:
        return trimmed
    head = trimmed[: limit // 4]
    tail = trimmed[-(limit - len(head)) :]
    return f"{head}\n[… {len(trimmed) - limit} characters left out …]\n{tail}"


def _blocks(lines: list[str]) -> list[list[str]]:
    """Each frame with the source lines below it; every other line by itself."""
    blocks: list[list[str]] = []
    in_frame = False
    for line in lines:
        if _FRAME.match(line):
            blocks.append([line])
            in_frame = True
        elif in_frame and line.startswith("    "):
            blocks[-1].append(line)
        else:
            blocks.append([line])
            in_frame = False
    return blocks


def _folded(run: list[list[str]]) -> list[str]:
    if len(run) <= 1:
        return [line for block in run for line in block]
    count = len(run) - 1
    return [f"  [{count} frame{'s' if count > 1 else ''} inside libraries]", *run[-1]]
