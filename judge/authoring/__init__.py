"""Writing a suite from nothing: forum posts, tasks, reviews, export."""
