"""Finds golds and cases of a suite that may be at fault, each with its evidence.

Nothing here changes a suite or a score: a suspect is a reason to check, and a person decides.
"""
