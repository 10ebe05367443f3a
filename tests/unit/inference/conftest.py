"""Fixtures that all tests of inference share."""

from __future__ import annotations

from tests.inference.planning import make_plan, own_state, questions

__all__ = ["make_plan", "own_state", "questions"]
