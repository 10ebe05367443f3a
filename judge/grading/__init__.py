"""From submissions to verdicts on record."""
