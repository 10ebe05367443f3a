"""Suites: published formats turned into tasks."""
