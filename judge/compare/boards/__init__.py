"""Judges by the check boards of SheetCopilot, as the published evaluation does and as intended."""
