"""The signs, each with those on the same subject."""
