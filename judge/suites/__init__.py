"""Suites: published formats turned into tasks."""

from __future__ import annotations

from judge.suites.load import load_suite
from judge.suites.suite import Suite

__all__ = ["Suite", "load_suite"]
