"""The judge under the names by which other frameworks look for it; importing this does no work.

``verifiers`` looks an environment up by the name of an import package, and takes from it what
``__all__`` names; that is imported on first use.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sheetjudge.environment import (
        SpreadsheetEnv,
        SpreadsheetHarness,
        SpreadsheetTaskset,
        load_environment,
    )

__all__ = ["SpreadsheetEnv", "SpreadsheetHarness", "SpreadsheetTaskset", "load_environment"]


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module 'sheetjudge' has no attribute {name!r}")
    return getattr(importlib.import_module("sheetjudge.environment"), name)
