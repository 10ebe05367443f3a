"""Judges and sandboxes are closed when an evaluation ends."""

from __future__ import annotations

import asyncio

from inspect_ai.hooks import Hooks, RunEnd, hooks

from sheetjudge.inspect.kept_open import KEPT_OPEN


@hooks(name="closes_judges", description="Closes the sandboxes of sheetjudge.")
class ClosesJudges(Hooks):
    """Closes what an evaluation opened; the end of the process does so otherwise."""

    def enabled(self) -> bool:
        """Only where something is open: evaluations of others do not hear of it."""
        return len(KEPT_OPEN) > 0

    async def on_run_end(self, data: RunEnd) -> None:
        """Called by Inspect when all tasks of a run have ended."""
        del data
        await asyncio.to_thread(KEPT_OPEN.close)
