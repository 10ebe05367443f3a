"""Sandboxes: run a program that nobody has read, and report facts."""
