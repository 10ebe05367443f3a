"""The contents of the sample suite: one module for each task."""
