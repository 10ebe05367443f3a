"""Reads suites of every published format as tasks."""

from __future__ import annotations

from judge.suites.suite import Suite, load_suite

__all__ = ["Suite", "load_suite"]
