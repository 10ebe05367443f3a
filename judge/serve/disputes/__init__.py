"""Disputes about wrong golds: how they are reviewed and lead to corrections and new revisions."""
