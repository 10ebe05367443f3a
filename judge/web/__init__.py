"""Web pages that are served only on this machine."""
