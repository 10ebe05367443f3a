"""Judges by the check boards of SheetCopilot: by its published evaluation, and as intended."""
