"""Judges whole workbooks by rule lists, in the form published by Spider2-V and OSWorld."""
