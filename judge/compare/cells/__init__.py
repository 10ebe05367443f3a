"""Compares the cells of an answer range with its gold: values, looks, and what had to be kept."""
