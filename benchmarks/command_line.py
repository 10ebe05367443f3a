"""What the command lines of all benchmarks share: paths that have to exist, errors as sentences."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Collection
from pathlib import Path

from judge.errors import JudgeError


def parser_of(document: str | None) -> argparse.ArgumentParser:
    """A parser whose help is a module's docstring, as it is written there."""
    return argparse.ArgumentParser(
        description=document, formatter_class=argparse.RawDescriptionHelpFormatter
    )


def existing(text: str) -> Path:
    """The type of an argument that names a file or folder to read.

    Raises:
        ArgumentTypeError: there is no such file or folder.
    """
    path = Path(text)
    if not path.exists():
        raise argparse.ArgumentTypeError(f"there is no file or folder {text}")
    return path


def one_of(names: Collection[str]) -> Callable[[str], str]:
    """Makes the type of an argument that has to be one of some names.

    ``choices`` of argparse would also be compared with the default of an argument that takes
    several names, which is a list.
    """

    def name(text: str) -> str:
        if text not in names:
            raise argparse.ArgumentTypeError(f"{text!r} is none of {', '.join(names)}")
        return text

    return name


def run_command(main: Callable[[], int | None]) -> None:
    """Runs a command and ends the process; errors of the judge are sentences, not tracebacks."""
    try:
        sys.exit(main())
    except JudgeError as error:
        hint = "" if error.hint is None else f"\n{error.hint}"
        sys.exit(f"error: {error.message}{hint}")
    except (FileNotFoundError, IsADirectoryError, NotADirectoryError) as error:
        sys.exit(f"error: {error.filename}: {error.strerror}")
