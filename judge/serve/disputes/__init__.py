"""From "this gold is wrong" to a correction: disputes, suspects, reviewers, new revisions."""
