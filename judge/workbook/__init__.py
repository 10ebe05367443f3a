"""Reads workbooks; any of them may be a hostile file."""
