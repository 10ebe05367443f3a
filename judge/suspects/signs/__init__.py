"""The signs, one per module."""
