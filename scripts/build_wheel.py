"""Build hook: a wheel brings the grid of the annotator's page along, which git does not keep.

JUDGE_WITHOUT_GRID=1 builds a wheel without it, where npm's registry cannot be reached.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class GridHook(BuildHookInterface[Any]):
    """Fetches the grid before a wheel is built; an editable installation takes what is there."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Called by hatchling."""
        del build_data
        if version == "editable" or os.environ.get("JUDGE_WITHOUT_GRID"):
            return
        script = Path(self.root) / "scripts" / "fetch-grid"
        done = subprocess.run([sys.executable, script], check=False)
        if done.returncode:
            raise SystemExit("no grid for the annotator's page; JUDGE_WITHOUT_GRID=1 goes without")
