"""The tasks of the sample suite for desktops, before they are written to files."""
