"""The signs; a module has all signs on one subject."""
