"""Boards: ties, versions, signed results, and how much information feedback reveals."""
