"""A person works on a desktop in the browser; the episode is on record, and judged."""
