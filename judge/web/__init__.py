"""Web pages that are served on this machine only."""
