"""Comparison of an answer range with its gold: positions, values, styles, profiles."""
