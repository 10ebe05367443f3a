"""The data model: tasks, submissions, verdicts and scores. Nothing here does input or output."""
