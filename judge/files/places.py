"""Where the judge keeps what can be made again, and what it remembers of its user."""

from __future__ import annotations

import os
from importlib import resources
from pathlib import Path


def cache_folder() -> Path:
    """Suites, roots, computed values: ``JUDGE_CACHE``, else ``judge`` in the user's cache folder.

    A leading ``~`` is the user's home in both, as in a shell that did not expand it.
    """
    if named := os.environ.get("JUDGE_CACHE"):
        return Path(named).expanduser()
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base).expanduser() if base else Path.home() / ".cache") / "judge"


def shipped_folder(name: str, marker: str) -> Path | None:
    """A folder that people edit without touching code: of the checkout, or of the installation.

    Args:
        name: ``dataset`` or ``inference``; in an installed package it is in ``judge/data``.
        marker: a file that the folder has to hold.

    Returns:
        The folder; None if the installation is incomplete.
    """
    package = Path(str(resources.files("judge")))
    folders = (package / "data" / name, package.parent / name)
    return next((folder for folder in folders if (folder / marker).is_file()), None)


def state_folder() -> Path:
    """What the judge remembers of its user: ``judge`` in the user's state folder (XDG)."""
    base = os.environ.get("XDG_STATE_HOME")
    return (Path(base).expanduser() if base else Path.home() / ".local" / "state") / "judge"
