"""The kinds of sandbox."""
