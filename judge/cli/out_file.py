"""What a command writes where its ``--out`` says."""

from __future__ import annotations

from pathlib import Path

import click

from judge.files.writing import naming_what_is_written


def write_text(text: str, out: Path | None) -> None:
    """Writes text to a file and names it on stderr; to stdout if there is none, or for ``-``.

    Raises:
        JudgeError: it cannot be written.
    """
    if out is None or str(out) == "-":
        click.echo(text, nl=False)
        return
    # Conversations and workbooks can hold halves of surrogate pairs, which no file can.
    write_file(text.encode("utf-8", "replace"), out)


def write_file(data: bytes, out: Path) -> None:
    """Writes a file and names it on stderr.

    Raises:
        JudgeError: it cannot be written.
    """
    with naming_what_is_written(out):
        out.write_bytes(data)
    click.echo(str(out), err=True)
