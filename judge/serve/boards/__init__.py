"""Boards: ties, versions, signed results, and what feedback gives away."""
