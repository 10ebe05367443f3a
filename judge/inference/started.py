"""Remembers the runs that this user started on this machine; they resume without confirmation.

For each results directory, the user's state folder has a small file, which no other user may read
or write. The results directory itself, with its ``run.json``, may come from anybody; see
``docs/decisions/0035-what-decides-a-verdict.md``.
"""

from __future__ import annotations

import hashlib
import json
import os
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from judge.errors import StoreError
from judge.files.documents import read_json
from judge.files.paths import state_folder
from judge.files.writing import write_whole


class StartedRuns:
    """The runs that this user started on this machine.

    Args:
        folder: the folder of the records; None for the usual one in the user's state folder.
    """

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder

    def options_of(self, run: Path) -> dict[str, Any] | None:
        """Returns the options with which a run was started here; None if it was not started here.

        A record that another user could have written is ignored.

        Args:
            run: the results directory.
        """
        try:
            path = self._path(run)
            facts = path.lstat()
            mine = stat.S_ISREG(facts.st_mode) and facts.st_uid == os.geteuid()
            if not mine or stat.S_IMODE(facts.st_mode) & 0o077:
                return None
            document = read_json(path, StoreError)
        except (OSError, RuntimeError, StoreError):  # RuntimeError: the user has no home
            return None
        if not isinstance(document, dict) or document.get("run") != os.path.realpath(run):
            return None
        options = document.get("options")
        return options if isinstance(options, dict) else None

    def note(self, run: Path, options: Mapping[str, Any]) -> None:
        """Records that this user started a run, and with which options.

        If the record cannot be written, the user has to confirm the options when the run is
        continued.

        Args:
            run: the results directory.
            options: the options of the command line, or those that were confirmed; no secrets.
        """
        document = {"run": os.path.realpath(run), "options": dict(options)}
        try:
            path = self._path(run)
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            write_whole(path, json.dumps(document).encode())  # mode 0600
        except (OSError, RuntimeError):
            return

    def _path(self, run: Path) -> Path:
        folder = self._folder or state_folder() / "runs"
        name = hashlib.sha256(os.path.realpath(run).encode("utf-8", "surrogateescape")).hexdigest()
        return folder / f"{name}.json"
