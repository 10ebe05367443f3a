"""Pages that are served on this machine alone."""
