"""Checkers: how an answer is compared with its golds.

A checker is one module with one object, and one line in :mod:`judge.checkers.registry`. Nothing
else in the judge depends on which checker a task has.
"""

from __future__ import annotations

from judge.checkers.contract import Checker, Examination, Needs, Rules
from judge.checkers.registry import checker_of, register

__all__ = ["Checker", "Examination", "Needs", "Rules", "checker_of", "register"]
