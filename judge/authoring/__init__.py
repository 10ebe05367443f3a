"""Tools to write a suite from scratch: forum posts, tasks, reviews, export."""
