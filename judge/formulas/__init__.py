"""Analyses the text of formulas. Pure; nothing is computed here."""
