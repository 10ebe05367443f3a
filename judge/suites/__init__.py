"""Reads suites of every published format as tasks."""

from __future__ import annotations

from judge.suites.load import load_suite
from judge.suites.suite import Suite

__all__ = ["Suite", "load_suite"]
