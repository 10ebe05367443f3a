"""Compares the cells of an answer range with its gold: values, looks, and parts to be kept."""
