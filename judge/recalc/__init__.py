"""Recalculation: an isolated engine computes formulas that have no value."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from judge.recalc.library import Recalculation


def recalculate(
    path: Path | str,
    *,
    at: str | None = None,
    output: Path | str | None = None,
    engine: str = "auto",
    sandbox: str = "auto",
    timeout_s: float = 60.0,
    lenient_names: bool = False,
) -> Recalculation:
    """Computes the formulas of a workbook, in an isolated engine.

    Args:
        path: the workbook.
        at: an answer position such as ``Sheet1!A1:B9``; None for every formula cell.
        output: where to write a copy whose formula cells hold the computed values.
        engine: ``auto`` or the name of one engine.
        sandbox: ``auto``, ``docker`` or ``bubblewrap``.
        timeout_s: processor seconds that one engine may take.
        lenient_names: whether newer functions without their prefix are computed.

    Returns:
        The computed values, and the cells that no engine could compute.

    Raises:
        WorkbookError: the workbook cannot be read.
        PositionError: nothing in the workbook fits ``at``.
        SandboxError: no sandbox is available.
        RecalcError: the requested engine is not installed.
    """
    from judge.recalc import library  # noqa: PLC0415 - keeps importing the package cheap

    with library.Recalculating(
        engine=engine, sandbox=sandbox, timeout_s=timeout_s, lenient_names=lenient_names
    ) as recalculating:
        return recalculating(path, at=at, output=output)


__all__ = ["recalculate"]
