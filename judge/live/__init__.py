"""A person works on a desktop in the browser; what was done is on record, and judged."""
