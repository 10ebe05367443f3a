"""Requests sent together and answered later: batch endpoints, and files for offline inference."""
