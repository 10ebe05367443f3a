"""Rejudging: judges a set of submissions again; authors inspect it, then apply or cancel it."""
