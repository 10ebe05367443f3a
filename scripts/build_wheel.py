"""Build hook: adds the grid of the annotator's page, which is not in git, to a wheel.

If npm's registry cannot be reached, JUDGE_WITHOUT_GRID=1 builds a wheel without the grid.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class GridHook(BuildHookInterface[Any]):
    """Fetches the grid before a wheel is built, but not for an editable installation."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Called by hatchling."""
        del build_data
        if version == "editable" or os.environ.get("JUDGE_WITHOUT_GRID"):
            return
        script = Path(self.root) / "scripts" / "fetch-grid"
        done = subprocess.run([sys.executable, script], check=False)
        if done.returncode:
            raise SystemExit(
                "the grid of the annotator's page could not be fetched; "
                "set JUDGE_WITHOUT_GRID=1 to build the wheel without it"
            )
