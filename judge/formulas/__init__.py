"""The text of formulas: its tokens, and what they say. Pure; nothing is computed here."""
