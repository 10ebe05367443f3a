"""Suites as tasks of Inspect AI, judged by a scorer that stays open (docs/inspect.md)."""
