"""Judges submissions and records the verdicts."""
