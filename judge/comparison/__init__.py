"""Comparison of an answer range with its gold: positions, values, styles, profiles."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from judge.comparison.api import compare_workbooks

__all__ = ["compare_workbooks"]


def __getattr__(name: str) -> Any:
    """Imports the library entry when it is first used, so that the contracts load quickly."""
    if name == "compare_workbooks":
        from judge.comparison.api import compare_workbooks  # noqa: PLC0415 - lazy on purpose

        return compare_workbooks
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
