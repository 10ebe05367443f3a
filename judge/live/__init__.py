"""Lets a person work on a desktop in the browser; records and judges the episode."""
