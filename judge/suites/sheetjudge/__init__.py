"""The schema of suites of one's own: ``suite.json``, which says all that a task can have."""

DEFINITION = "suite.json"
FORMAT_NAME = "sheetjudge"
VERSION = 1
