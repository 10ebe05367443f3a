"""When something was done, as records hold it."""

from __future__ import annotations

from datetime import UTC, datetime


def utc_now() -> str:
    """The time now in UTC to the second, as ISO 8601 writes it: ``2026-01-02T03:04:05+00:00``."""
    return datetime.now(UTC).isoformat(timespec="seconds")
