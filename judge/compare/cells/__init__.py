"""Compares the cells of an answer range with its gold: values, formatting, parts to be kept."""
