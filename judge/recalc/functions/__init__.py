"""Functions of Excel that the judge computes itself, before or after the engines."""
