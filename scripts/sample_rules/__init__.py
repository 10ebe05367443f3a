"""The tasks of the sample suite that is judged by rules, before they are written to files."""
