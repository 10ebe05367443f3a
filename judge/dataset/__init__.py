"""Suites: published formats turned into tasks."""

from __future__ import annotations

from judge.dataset.load import load_suite
from judge.dataset.suite import Suite

__all__ = ["Suite", "load_suite"]
